"""What staging makes of an executed notebook: the box, the answer, and parameters at the end; titles of the book."""

import copy
import dataclasses
import math
import re
import subprocess
from collections import Counter

import build
import judged
import nbformat
import pandas as pd
import pytest
import reader
import yaml

from faithstudy import paths, profiles
from faithstudy.claims import CONTRADICTED, REPRODUCED

text, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
RESULTS = pd.DataFrame(
    {
        "id": ["c-one", "c-two", "c-three"],
        "paper": "SaCo",
        "claim": "Claim.",
        "verdict": [REPRODUCED, CONTRADICTED, REPRODUCED],
    }
)


def tagged(source, *tags):
    return code(source, metadata={"tags": list(tags)})


@pytest.fixture
def notebook():
    return nbformat.v4.new_notebook(
        cells=[
            text("# Is it so?\n\nWhy one asks."),
            text("## Parameters\n\nWhat they are for."),
            tagged("images = 4", "parameters"),
            tagged("images = 8", "injected-parameters", "hide-input"),
            tagged("import faithlab", "hide-input"),
            text("## How"),
            tagged("draw()", "hide-input", "answer"),
            tagged("run.finish()", "hide-input"),
        ]
    )


def page(claims=RESULTS, name="saco/one", **parameters):
    parts = pd.DataFrame(columns=["claim", *judged.WORDS, *judged.NUMBERS, "premise"])
    return judged.Page(name, claims, parts.loc[:, ~parts.columns.duplicated()], parts, {"parameters": parameters})


def test_the_answer_comes_first_and_the_parameters_last(notebook):
    before = notebook.copy()
    sources = [cell.source for cell in reader.arranged(notebook, page(images=8)).cells]
    assert sources[0] == "# Is it so?"
    assert sources[1].startswith('<div class="faithlab-box"')
    assert sources[2:6] == ["draw()", "Why one asks.", "import faithlab", "## How"]
    assert sources[6].startswith("## Parameters\n")
    assert '`make notebook NAME=saco/one PARAMS="images=8"`' in sources[6]
    assert sources[7:] == ["What they are for.", "images = 4", "images = 8", "run.finish()"]
    assert notebook == before, "the executed notebook stays as it ran"
    nbformat.validate(reader.arranged(notebook, page()))


def test_parameters_are_folded_and_say_so(notebook):
    cells = reader.arranged(notebook, page()).cells
    for cell in (c for c in cells if c.source.startswith("images =")):
        assert "hide-input" in cell.metadata["tags"]
        assert cell.metadata["tags"].count("hide-input") == 1
        assert cell.metadata["mystnb"]["code_prompt_show"].startswith("Parameters ")


def part(value, low, high):
    """The table of a page whose claim c-one has one part, a value above 0.5 & no less."""
    row = {
        "claim": "c-one",
        "part": "a < b",
        "kind": "above",
        "premise": False,
        "outcome": "holds",
        "contrast": "x",
        "unit": "",
    }
    row |= {"network": "pooled", "value": value, "low": low, "high": high, "claimed_low": 0.5, "claimed_high": math.inf}
    return pd.DataFrame([row | {"images": 9.0, "datasets": "d", "needed": 1.0}])


def drawn(arrangement):
    return [c.metadata["mystnb"]["image"]["alt"] for c in arrangement.cells if "image" in c.metadata.get("mystnb", {})]


def test_whoever_cannot_see_the_answer_is_told_it_in_numbers(notebook):
    about = {"figure": {"name": "f"}, "image": {"alt": "Bars."}}
    notebook.cells[6].metadata["mystnb"] = about
    notebook.cells[4].metadata["mystnb"] = {"image": {"alt": "Pictures."}}
    before = copy.deepcopy(notebook)
    says = dataclasses.replace(page(RESULTS.iloc[:1].assign(claim="More & more.")), parts=part(0.75, 0.6, 0.9))
    answer, other = drawn(reader.arranged(notebook, says))
    assert other == "Pictures.", "only the figure of the answer"
    said = "Bars. The answer: “More & more”: reproduced. a < b: 0.75 [0.60, 0.90] (claimed: above 0.5; 9 inputs)."
    assert answer == said
    assert drawn(reader.arranged(notebook, page(RESULTS.iloc[:0])))[0] == "Bars.", "no claim, no answer"
    assert notebook == before, "the executed notebook stays as it ran"


def headlined(notebook, said="Yes: **0.75** [0.6, 0.9] & more."):
    output = nbformat.v4.new_output("execute_result", {"text/markdown": said}, execution_count=1)
    notebook.cells.insert(6, tagged("Markdown(said)", "hide-input", "headline"))
    notebook.cells[6].outputs = [output]
    return notebook


def test_a_sentence_that_answers_the_title_heads_the_box_and_folds_the_claims(notebook):
    before = copy.deepcopy(headlined(notebook))
    for says, counted in ((page(), 1), (page(RESULTS.iloc[:0]), 0)):
        arrangement = reader.arranged(notebook, says)
        box = arrangement.cells[1].source
        said = '<p class="faithlab-headline">Yes: <strong>0.75</strong> [0.6, 0.9] &amp; more.</p>'
        assert box.partition(">")[2].startswith(said)
        assert box.count("<summary>The claims and the numbers that decide</summary>") == counted
        (left,) = (c for c in arrangement.cells if c.source == "Markdown(said)")
        assert left.outputs == [], "said once"
    assert notebook == before, "the executed notebook stays as it ran"
    committed = headlined(notebook, said="")
    committed.cells[6].outputs = []
    assert "“Claim”" in reader.arranged(committed, page()).cells[1].source, "it has not run: the first claim leads"


def test_whoever_cannot_see_the_answer_is_told_the_sentence_that_heads(notebook):
    headlined(notebook).cells[7].metadata["mystnb"] = {"image": {"alt": "Bars."}}
    told = drawn(reader.arranged(notebook, page()))[-1]
    assert told == "Bars. The answer: Yes: 0.75 [0.6, 0.9] & more."


HEADED = [
    "across/examination",
    "across/findings",
    "across/rivals",
    "cost/engine",
    "f-fidelity/images",
    "f-fidelity/public-code",
    "f-fidelity/text",
    "f-fidelity/time-series",
    "f-fidelity/what-a-size-is-good-for",
    "saco/beyond-vits",
    "saco/larger-vit",
    "trace/searches",
]
"""Pages whose first claim does not answer their title, or that judge none."""


@pytest.mark.parametrize("name", HEADED)
def test_a_page_whose_first_claim_is_no_answer_has_a_sentence_that_is(name):
    committed = nbformat.read(paths.script(name).with_suffix(".ipynb"), as_version=4)
    (cell,) = (c for c in committed.cells if reader._tagged(c, reader.HEADLINE))
    assert "Markdown(" in cell.source
    assert reader.arranged(committed, page(name=name)) is not committed, "a page without a box"
    cell.outputs = [nbformat.v4.new_output("execute_result", {"text/markdown": "So it is."}, execution_count=1)]
    box = reader.arranged(committed, page(name=name)).cells[1].source
    assert box.index("So it is.") < box.index("faithlab-badges")


def test_a_page_about_its_own_code_stays_as_it_is(notebook):
    for cell in notebook.cells[4:-1]:
        cell.metadata["tags"] = []
    assert reader.arranged(notebook, page()) is notebook


def test_the_template_is_a_page_about_its_own_code():
    template = nbformat.read(paths.root() / "notebooks/template.ipynb", as_version=4)
    assert reader.arranged(template, page(name="template")) is template


@pytest.mark.parametrize("name", sorted({*paths.pages()} - {"across/exercises"}))  # there the reader answers
def test_every_page_that_is_not_about_its_own_code_shows_its_answer_first(name):
    committed = nbformat.read(paths.script(name).with_suffix(".ipynb"), as_version=4)
    if reader.arranged(committed, page(name=name)) is not committed:
        assert any(reader._tagged(cell, reader.ANSWER) for cell in committed.cells)


def test_a_page_without_a_title_is_an_error_that_names_it(notebook):
    notebook.cells[0].source = "No title."
    with pytest.raises(ValueError, match="saco/one: expected a page that begins with its title"):
        reader.arranged(notebook, page())


def test_the_box_counts_verdicts_and_leads_to_each_claim():
    box = reader.box(page(), [("Small < large", "It is small.")])
    assert re.findall(r'<span class="faithlab-badge \w+">.*?</span> ([^<]*)</span>', box) == [
        "2 reproduced",
        "1 contradicted",
    ]
    address = "../../book/saco/verdict.html#claim-"
    assert re.findall(r'<li><a class="faithlab-badge \w+" href="([^"]*)"', box) == [address + c for c in RESULTS["id"]]
    assert "Small &lt; large" in box
    assert reader.box(page(RESULTS.iloc[:0])) == ""
    assert "<a class" not in reader.box(page(RESULTS.assign(paper="Across"))), "it has no verdict page"


def test_a_page_without_a_record_says_so_below_the_box(notebook):
    output = nbformat.v4.new_output("display_data", {"text/markdown": "**Your run** (smoke): measured in it."})
    notebook.cells[4].outputs = [output]
    cells = reader.arranged(notebook, page()).cells
    assert cells[2].source == "**Your run** (smoke): measured in it."
    assert [cell.outputs for cell in cells if cell.source == "import faithlab"] == [[]]


def test_rows_that_a_build_has_measured_otherwise_are_linked_at_the_foot(notebook):
    *_, finish, last = reader.arranged(notebook, page(), differing=["scores"]).cells
    assert finish.source == "run.finish()"
    assert re.findall('href="([^"]*)"', last.source) == ["../../results/saco/one/differing/scores.csv"]


def test_caveats_are_those_that_are_true_of_the_run():
    declared = {
        "saco": [
            {"badge": "All", "says": "x", "not": ["saco/two"]},
            {"badge": "ViT", "says": "y", "when": {"networks": ["vit"]}},
        ],
        "saco/one": [{"badge": "One", "says": "z"}],
    }
    assert [b for b, _ in reader.caveats(page(networks=["vit"]), declared)] == ["All", "ViT", "One"]
    assert [b for b, _ in reader.caveats(page(networks=["vit-b"]), declared)] == ["All", "One"]
    assert [b for b, _ in reader.caveats(page(name="saco/two"), declared)] == []


def test_declared_caveats_name_pages_and_parameters_that_exist():
    declared = yaml.safe_load((paths.root() / "book/caveats.yml").read_text(encoding="utf-8"))
    names = paths.pages()
    for name, known in declared.items():
        own = [page for page in names if page == name or page.startswith(f"{name}/")]
        assert own, name
        for caveat in known:
            assert set(caveat) <= {"badge", "says", "when", "not"}
            assert set(caveat.get("not", [])) <= set(own)
            scripts = [paths.script(page).read_text(encoding="utf-8") for page in own]
            for parameter in caveat.get("when", {}):
                assert any(re.search(rf"^{parameter} = ", script, re.M) for script in scripts), (name, parameter)
            runs = [profiles.resolve(page, profile) for page in own for profile in profiles.PROFILES]
            true = [run for run in runs if run.items() >= caveat.get("when", {}).items()]
            assert true, f"{name}: no profile has {caveat.get('when')}, so that nobody reads {caveat['badge']!r}"


def test_every_page_of_the_book_has_a_title_of_its_own():
    root = paths.root()
    notebooks = [paths.script(name).read_text(encoding="utf-8") for name in paths.pages()]
    pages = [path.read_text(encoding="utf-8") for path in sorted((root / "book").rglob("*.md"))]
    titles = [re.search(r"^# # (.+)$", script, re.M).group(1) for script in notebooks]
    titles += [found.group(1) for page in pages if (found := re.search(r"^# (.+)$", page, re.M))]
    assert len(titles) > 60
    assert [title for title, count in Counter(title.casefold() for title in titles).items() if count > 1] == []


def test_experiments_of_papers_ask_a_question():
    names = [name for name in paths.pages() if name.split("/")[0] in paths.PAPERS]
    asked = {
        name: re.search(r"^# # (.+)$", paths.script(name).read_text(encoding="utf-8"), re.M).group(1) for name in names
    }
    assert [title for title in asked.values() if not title.endswith("?")] == []


def test_what_is_offered_for_download_runs_from_top_to_bottom(notebook, tmp_path, monkeypatch):
    executed = tmp_path / "executed.ipynb"
    nbformat.write(notebook, executed)
    monkeypatch.setattr(paths, "pages", lambda: ["saco/one"])
    monkeypatch.setattr(paths, "executed", lambda name, profile: executed)
    offered = tmp_path / "_build/html/_sources/notebooks/saco/one.ipynb"

    def sphinx(*arguments, **options):
        offered.parent.mkdir(parents=True)
        nbformat.write(reader.arranged(notebook, page()), offered)
        return subprocess.CompletedProcess(arguments, 0)

    monkeypatch.setattr(build.subprocess, "run", sphinx)
    assert build.build(tmp_path / "site", tmp_path / "html", "quick") == 0
    assert (tmp_path / "html/_sources/notebooks/saco/one.ipynb").read_bytes() == executed.read_bytes()
