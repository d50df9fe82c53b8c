"""Parameters are checked before anything runs, whichever way a notebook is started, and the message is one line."""

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError
from PIL import Image

from faithstudy import execute, parameters, paths, profiles, provenance, recipes, train
from faithstudy import run as results
from faithstudy.data import cache, datasets
from faithstudy.data.sources import OWN
from faithstudy.networks import training

NAME = "f-fidelity/images"

# Both are the same in every test, and take a tenth of a second each time.
read_script, digest_of_library = functools.cache(jupytext.read), functools.cache(provenance.library)

COUNT = "must be a whole number"
BAD = [
    # what is written; what the message says
    ("draws", "2.5", f"{NAME}: draws {COUNT}, but is 2.5."),
    ("draws", "true", f"{NAME}: draws {COUNT}, but is True"),
    ("draws", "null", f"{NAME}: draws {COUNT}, but is None"),
    ("draws", "[4]", f"{NAME}: draws {COUNT}, but is [4]"),
    ("roar_limit", "1.5", f"{NAME}: roar_limit must be a whole number or null, but is 1.5"),
    ("alpha", "half", f"{NAME}: alpha must be a number, but is 'half'"),
    ("seeds", "0", f"{NAME}: seeds must be a list, such as [0], but is 0"),
    ("seeds", "[0, 1.5]", f"{NAME}: seeds must be a whole number, but is 1.5"),
    ("noise_shares", "[0, x]", f"{NAME}: noise_shares must be a number, but is 'x'"),
    ("roar_fresh", "1", f"{NAME}: roar_fresh must be true or false, but is 1"),
    ("training", "10", f"{NAME}: training must be a mapping, but is 10"),
    (
        "image",
        "8",
        f"{NAME} has no parameter 'image'. Did you mean 'images'? Known: training,",
    ),
    ("profile", "paper", f"{NAME} has no parameter 'profile'."),
    ("seeds", "[1,", "The value of seeds cannot be read:  [1,  ("),
    ("seeds", "!!python/name:os.system", "The value of seeds cannot be read:  !!python/name:os.system  (could not"),
]


@pytest.fixture
def nothing_runs(monkeypatch):
    """Fail where something is trained or a kernel is started."""
    monkeypatch.setattr(training, "trained", lambda recipe: pytest.fail("it trains"))
    monkeypatch.setattr(papermill, "execute_notebook", lambda *_, **__: pytest.fail("it runs"))


@pytest.mark.parametrize("main", [execute.main, train.main], ids=["execute", "train"])
@pytest.mark.parametrize(("name", "value", "message"), BAD, ids=[f"{name}={value}" for name, value, _ in BAD])
def test_bad_input_is_one_line(main, name, value, message, nothing_runs, capsys):
    assert main([NAME, "--profile", "smoke", "-p", name, value]) == 2
    out, error = capsys.readouterr()
    (line,) = error.splitlines()
    assert message in line
    assert not out


def test_each_of_several_bad_values_has_its_line(nothing_runs, capsys):
    assert execute.main([NAME, "-p", "draws", "2.5", "-p", "images", "many", "-p", "roar_rate", "1e-3"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert execute.main([NAME, "-p", "draws", "2", "-p", "draws", "3"]) == 2
    assert capsys.readouterr().err == "The parameter draws is given twice.\n"


GOOD = [
    ("roar_rate", "1e-3", 0.001),
    ("roar_rate", "1E-3", 0.001),
    ("roar_rate", "1", 1.0),
    ("training", "{epochs: 5}", {"epochs": 5}),
    ("alpha", ".5", 0.5),
    ("seeds", "[7]", [7]),
    ("noise_shares", "[0, 1]", [0.0, 1.0]),
    ("noise_shares", "[0, 5e-1]", [0.0, 0.5]),
    ("roar_limit", "null", None),
    ("roar_limit", "None", None),
    ("roar_fresh", "True", True),
    ("seed", "0", 0),
]


@pytest.mark.parametrize(("name", "value", "expected"), GOOD, ids=[f"{name}={value}" for name, value, _ in GOOD])
def test_what_is_right_arrives_with_its_type(name, value, expected):
    found = profiles.resolve(NAME, "quick", parameters.given([(name, value)]))[name]
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(expected, list):
        assert list(map(type, found)) == list(map(type, expected))


# What people write


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("images=32 seed=1", [("images", "32"), ("seed", "1")]),
        ("  seeds=[0, 1]   rate = 1e-3 ", [("seeds", "[0, 1]"), ("rate", "1e-3")]),
        ("seeds=[1, draws=3", [("seeds", "[1,"), ("draws", "3")]),
        ('data_options={"size": 20, seed: 1} images=', [("data_options", '{"size": 20, seed: 1}'), ("images", "")]),
    ],
)
def test_a_value_ends_where_the_next_name_begins(text, pairs):
    assert parameters.split(text) == pairs


@pytest.mark.parametrize("text", ["images", "=3", "2x=3", "images: 3", "--images 3"])
def test_what_is_no_name_and_value_is_an_error_that_shows_how(text):
    with pytest.raises(parameters.ParameterError, match=r"are written  images=32 seeds=\[0,1\],  but got"):
        parameters.split(text)


# The study's own parameters


@pytest.mark.parametrize("profile", profiles.PROFILES)
@pytest.mark.parametrize("name", paths.notebooks())
def test_every_profile_of_every_notebook_keeps_the_rules(name, profile):
    profiles.resolve(name, profile)


@pytest.mark.parametrize("name", paths.notebooks())
def test_every_notebook_checks_its_parameters_in_the_next_cell(name):
    code = [cell for cell in read_script(paths.script(name)).cells if cell.cell_type == "code"]
    (at,) = [i for i, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])]
    assert at == 0
    assert f'\nrun = Run("{name}", globals())' in code[1].source


SCRIPT = """
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% tags=["parameters"]
profile = "quick"
images = 64
rate = 0.1
photographs = "imagenet-foolbox"
photographs_path = None

# %%
from faithstudy.run import Run

run = Run("mine", globals())

# %%
computed = True
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one notebook, `mine`."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/mine.py").write_text(SCRIPT.lstrip())
    (tmp_path / "notebooks/profiles.yml").write_text("mine: {smoke: {images: 8}}\n")
    jupytext.write(jupytext.read(tmp_path / "notebooks/mine.py"), tmp_path / "notebooks/mine.ipynb")
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    monkeypatch.setenv("FAITHLAB_BUILD", str(tmp_path / "build"))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine: {smoke: {images: 0.8}}", f"mine: images {COUNT}, but is 0.8."),
        ("mine: {smoke: {image: 8}}", "mine has no parameter 'image'"),
        ("mine: {smoke:\n  {images: 8", "notebooks/profiles.yml is no YAML: "),
        (
            "mine: {smke: {images: 8}}",
            "notebooks/profiles.yml, mine: Additional properties are not allowed ('smke' was",
        ),
        ("mine: {parts: {paper: 0}}", "notebooks/profiles.yml, mine, parts, paper: 0 is less than the minimum of 1"),
        ("mine: {data: digits}", "notebooks/profiles.yml, mine, data: 'digits' is not of type 'array'"),
    ],
)
def test_profiles_are_checked_by_the_same_rules(repository, text, message, capsys):
    (repository / "notebooks/profiles.yml").write_text(text)
    assert execute.main(["mine", "--profile", "smoke"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


# A notebook that papermill runs alone checks itself


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"images": 2.5}, f"mine: images {COUNT}, but is 2.5."),
        ({"image": 8}, "mine has no parameter 'image'. Did you mean 'images'? Known: images,"),
    ],
)
def test_papermill_alone_stops_before_anything_is_computed(repository, given, message, kernel_starts_warm):
    with pytest.raises(PapermillExecutionError) as caught:
        papermill.execute_notebook(
            repository / "notebooks/mine.ipynb", repository / "out.ipynb", parameters=given, progress_bar=False
        )
    assert message in caught.value.evalue
    assert caught.value.traceback == [caught.value.evalue]  # a notebook shows the line alone
    assert not (repository / "build").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"profile": "large"}, "Unknown profile 'large'. Known: smoke, quick, study, paper."),
        ({"rate": "fast"}, "mine: rate must be a number, but is 'fast'."),
        ({"photographs": "imagenet-folder"}, "Missing: imagenet-folder, for mine (photographs_path): "),
    ],
)
def test_a_run_checks_what_it_is_given(repository, changes, message):
    with pytest.raises(parameters.ParameterError) as caught:
        results.Run("mine", profiles.defaults("mine") | changes)
    assert message in str(caught.value)
    assert caught.value._render_traceback_() == [str(caught.value)]
    assert not (repository / "build").exists()


def test_a_folder_of_photographs_is_looked_for_before_anything_is_computed(tmp_path):
    Image.new("RGB", (32, 32)).save(tmp_path / "n01440764_tench.png")
    profiles.require_files({"mine": {"folder": str(tmp_path)}, "other": {"folder": None}})
    with pytest.raises(parameters.ParameterError, match=r"^Missing: imagenet-folder, for mine \(folder\): found no"):
        profiles.require_files({"mine": {"folder": str(tmp_path / "nowhere")}})


def test_names_that_a_reader_sets_in_a_notebook_are_no_parameters(repository):
    variables = profiles.defaults("mine") | {"image": 3, "fractions": [0.1], "In": ["", "image = 3", "images = 8"]}
    assert profiles.given("mine", variables) == profiles.defaults("mine")
    with pytest.raises(parameters.ParameterError, match="no parameter 'image'"):
        profiles.given("mine", variables | {"In": ["", "# Parameters\nimages = 8\nimage = 3\n"]})


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("given", "messages"),
    [
        (
            "draws=2.5 images=many alpha=half seeds=0",
            ["draws must be", "images must be", "alpha must be", "seeds must be"],
        ),
        ("seeds=[1,", ["The value of seeds cannot be read:  [1,  ("]),
        ("image=8", ["has no parameter 'image'"]),
        ("images", ["Parameters are written  images=32 seeds=[0,1],  but got  images"]),
        ("precision='bfloat16' seeds=[0, 1] images=0.5", ["images must be"]),
    ],
)
def test_make_says_it_before_snakemake_says_anything(given, messages, tmp_path, path_of_programs):
    ran = subprocess.run(
        ["make", "VENV=none", "notebook", f"NAME={NAME}", f"PARAMS={given}"],
        cwd=paths.root(),
        # as from a shell, also where make runs the tests
        env=os.environ | {"FAITHLAB_BUILD": str(tmp_path), "PATH": path_of_programs, "MAKEFLAGS": "", "MAKELEVEL": "0"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2
    *lines, make = (ran.stdout + ran.stderr).splitlines()
    assert make.startswith("make: ")
    assert len(lines) == len(messages), ran.stderr
    assert all(any(message in line for line in lines) for message in messages)


# Files of the reader's own


def asked_for(profile: str) -> dict[str, dict[str, str]]:
    """Notebook -> the sets of the reader's own files that its parameters name in a profile, by parameter."""
    found = {}
    for name in paths.notebooks():
        values = profiles.resolve(name, profile)
        own = {key: value for key, value in values.items() if isinstance(value, str) and value in OWN}
        if own := own | ({"folder": "imagenet-folder"} if values.get("folder") else {}):
            found[name] = own
    return found


NEEDED = {profile: asked_for(profile) for profile in profiles.PROFILES}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home folder, without another cache."""
    monkeypatch.setenv(cache.VARIABLE, str(cache.folder()))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def furnish(home: Path) -> None:
    """Put a few files of every set where the profiles study and paper look for them."""
    picture = Image.effect_noise((240, 230), 60).convert("RGB")
    box = "<xmin>60</xmin><ymin>60</ymin><xmax>170</xmax><ymax>170</ymax>"
    about = f"<size><width>240</width><height>230</height></size><object><bndbox>{box}</bndbox></object>"
    for identity in ["n01440764", "n02814533"]:  # tench, beach wagon
        for part, count in (("val", 3), ("train", 8)):
            folder = home / "imagenet" / part / identity
            folder.mkdir(parents=True)
            for i in range(count):
                picture.save(folder / f"{identity}_{i}.JPEG")
        (home / "imagenet-sample-images").mkdir(exist_ok=True)
        picture.save(home / "imagenet-sample-images" / f"{identity}_it.JPEG")
        boxes = home / "imagenet/boxes" / identity
        boxes.mkdir(parents=True)
        for i in range(8):
            (boxes / f"{identity}_{i}.xml").write_text(f"<annotation>{about}</annotation>")
    scans = home / "ct"
    scans.mkdir()
    header = "DimSize = 16 16 2\nElementType = MET_SHORT\nElementDataFile = scan.raw\n"
    (scans / "scan.mhd").write_text(header)
    (scans / "scan.raw").write_bytes(bytes(2 * 16 * 16 * 2))
    rows = ["file,slice,contrast,split,mask", "scan.mhd,0,1,train,", "scan.mhd,1,0,test,"]
    (scans / "slices.csv").write_text("\n".join(rows) + "\n")


def test_only_larger_profiles_need_files_of_the_readers_own_and_study_no_more_than_photographs():
    assert {profile for profile, needed in NEEDED.items() if needed} == {"study", "paper"}
    assert {own for sets in NEEDED["study"].values() for own in sets.items()} == {("folder", "imagenet-folder")}
    assert {own for sets in NEEDED["paper"].values() for own in sets.values()} == OWN.keys()


@pytest.mark.parametrize("profile", profiles.PROFILES)
@pytest.mark.parametrize("name", paths.notebooks())
def test_every_notebook_starts_or_says_what_is_missing(name, profile, home, nothing_runs, monkeypatch, capsys):
    monkeypatch.setenv("FAITHLAB_BUILD", str(home / "build"))
    run = [name, "--profile", profile]
    if profile == "paper" and name in NEEDED[profile]:  # what study has is recorded
        assert execute.main(run) == 2
        lines = capsys.readouterr().err.splitlines()
        assert sorted(line.split()[1].rstrip(",") for line in lines) == sorted(NEEDED[profile][name].values())
        assert all(line.startswith("Missing: ") and f"for {name} (" in line and str(home) in line for line in lines)
        furnish(home)

    def started(notebook, out, **_):
        Path(out).touch()
        return notebook

    monkeypatch.setattr(papermill, "execute_notebook", started)
    monkeypatch.setattr(jupytext, "read", read_script)
    monkeypatch.setattr(provenance, "library", digest_of_library)
    monkeypatch.setattr(execute, "_left", lambda *_: {})  # nothing ran, so that no table was left
    assert execute.main(run) == 0, capsys.readouterr().err
    assert profiles.given(name, profiles.resolve(name, profile)) == profiles.resolve(name, profile)


def test_what_is_missing_for_a_book_is_one_list(home):
    everything = {name: profiles.resolve(name, "paper") for name in paths.notebooks()}
    with pytest.raises(parameters.ParameterError) as caught:
        profiles.require_files(everything)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(OWN)
    for name, sets in NEEDED["paper"].items():
        for own in sets.values():
            assert any(line.startswith(f"Missing: {own}, for ") and f"{name} (" in line for line in lines)
    assert any("image-net.org" in line for line in lines)
    furnish(home)
    profiles.require_files(everything)
    shutil.rmtree(home / "imagenet/boxes")
    with pytest.raises(parameters.ParameterError) as caught:
        profiles.require_files(everything)
    (line,) = str(caught.value).splitlines()
    assert line.startswith("Missing: imagenet-vehicles, for few-class-fidelity/natural-images (data_options): ")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("imagenet-folder", {}, "imagenet-folder needs path, where your files lie"),
        ("imagenet-folder", {"path": "~/imagenet/val", "sise": 3}, "sise"),
        ("imagenet-vehicles", {"path": "~/imagenet/train"}, "imagenet-vehicles needs boxes"),
        ("ct-contrast", {"path": "~/other"}, "other/slices.csv has no slice whose split is 'train'"),
    ],
)
def test_a_set_that_cannot_be_read_says_why(home, name, options, message):
    furnish(home)
    (home / "other").mkdir()
    (home / "other/slices.csv").write_text("file,contrast,split\n")
    assert message in datasets.missing(name, **options)


def test_sets_that_are_there_or_are_fetched_are_not_missing(home):
    furnish(home)
    assert datasets.missing("imagenet-folder", path="~/imagenet/val") is None
    assert datasets.missing("cifar10") is None


class Reached(Exception):  # noqa: N818, it is no error
    """A notebook asks for a set of the reader's own files."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "key"), [(name, key) for name, sets in NEEDED["paper"].items() for key in sets])
def test_a_notebook_reads_its_files_where_they_were_looked_for(name, key, home, monkeypatch):
    """The smoke profile with the paper's files: it runs up to where it loads them."""
    furnish(home)
    paper, load = profiles.resolve(name, "paper"), datasets.load
    chosen = {k for k in paper if k in (key, f"{key}_options", f"{key}_path", "path", "networks")}
    namespace = profiles.resolve(name, "smoke") | {k: paper[k] for k in chosen}

    def watched(data, split="train", **options):
        if data in OWN and options.get("limit") != 1:  # the check itself reads one
            load(data, split, **options | {"limit": 1})
            raise Reached(data)
        return load(data, split, **options)

    monkeypatch.setattr(datasets, "load", watched)
    monkeypatch.setenv("FAITHLAB_BUILD", str(home / "build"))
    _, *code = [cell.source for cell in read_script(paths.script(name)).cells if cell.cell_type == "code"]
    with pytest.raises(Reached, match=NEEDED["paper"][name][key]):
        exec("\n".join(code), namespace)


SEED = "seed of a recipe is set elsewhere: it follows from the seed of both networks, on a page training_seeds or seed"
RECIPES = [
    # what a run changes of a recipe; what the message says
    ({"epochs": 2.5}, "epochs of a recipe must be a whole number, but is 2.5"),
    ({"epochs": -5}, "unknown optimiser, schedule or precision, or no epoch or example a step: "),
    ({"precision": "half"}, "unknown optimiser, schedule or precision, or no epoch or example a step: "),
    ({"optimiser": "sgd"}, "unknown optimiser, schedule or precision, or no epoch or example a step: Recipe("),
    ({"model_options": 4}, "model_options of a recipe must be a mapping, but is 4"),
    ({"epoch": 2}, "a recipe has no epoch; it has augment, batch, data"),
    ({1: 2, "a": 3}, "a recipe has no 1, a; it has augment, batch, data"),
    ({"start": "mine"}, "start of a recipe must be another or null, but is 'mine'"),
    ({"fold": [3, 2]}, "expected shares between 0 and 1, and a fold (i, k) with 0 <= i < k, but got Recipe("),
    ({"mask_channels": "one"}, "mask_channels of a recipe must be a whole number or null, but is 'one'"),
    ({"model": "nope"}, "a recipe cannot have nope with {}: \"no network 'nope'; known: bilstm, cnn1d, cnn3, "),
    (
        {"model_options": {"widht": 3}},
        "a recipe cannot have resnet9 with {'width': 16, 'widht': 3}: resnet9() got an unexpected",
    ),
    ({"model": "vit", "model_options": {"heads": 7}}, "a recipe cannot have vit with {'heads': 7}: "),
    (5, "expected fields of a recipe, such as {'epochs': 5}, but got 5"),
]


@pytest.mark.parametrize(("changes", "said"), RECIPES, ids=[str(changes) for changes, _ in RECIPES])
@pytest.mark.parametrize(
    "change",
    [
        lambda changes: recipes.changed(recipes.RESNET9, changes),
        lambda changes: recipes.pair(recipes.RESNET9, 0, training=changes),
    ],
    ids=["changed", "pair"],
)
def test_what_a_run_changes_of_a_networks_recipe_is_checked(change, changes, said):
    with pytest.raises(ValueError, match="^" + re.escape(said)) as caught:
        change(changes)
    assert "\n" not in str(caught.value)


ELSEWHERE = [
    ("training", {"seed": 3}, SEED),
    ("tuning", {"seed": 3}, SEED),
    ("tuning", {"mask_share": 0.9}, "mask_share of a recipe is set elsewhere: it follows from beta"),
    ("tuning", {"start": None}, "start of a recipe is set elsewhere: it follows from the original network"),
    ("tuning", {"model": "vit"}, "model of a recipe is set elsewhere: it follows from the original network"),
]


@pytest.mark.parametrize(("part", "changes", "said"), ELSEWHERE)
def test_what_follows_from_something_else_is_not_ignored_in_silence(part, changes, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        recipes.pair(recipes.RESNET9, 7, **{part: changes})


def test_the_seed_of_vision_transformers_is_not_that_of_training():
    with pytest.raises(ValueError, match=re.escape(SEED)):
        recipes.vits({"training": {"seed": 3}, "training_seeds": [0]})


def test_other_data_and_another_network_have_options_of_their_own():
    assert recipes.changed(recipes.RESNET9, {"model": "vit"}).model_options == {}
    assert recipes.changed(recipes.LSTM, {"data": "mnist"}).data_options == {}
    assert recipes.changed(recipes.LSTM, {"data_options": {"length": 9}}).data_options == {"length": 9, "words": 8000}
    assert recipes.changed(recipes.VIT, {"limit": None, "fold": [0, 2]}).fold == (0, 2)


def test_profiles_are_resolved_without_torch():
    code = f"""
import sys
from faithstudy import profiles
for profile in profiles.PROFILES:
    profiles.resolve({NAME!r}, profile)
print("torch" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=paths.root(), capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_kernel_that_is_killed_says_so_and_what_to_do(repository, capsys, kernel_starts_warm):
    script = repository / "notebooks/mine.py"
    cells = 'print("what was found")\n\n# %% [markdown]\n# More\n\n# %%\nimport os\n\nos.kill(os.getpid(), 9)'
    text = script.read_text().replace("computed = True", cells)
    script.write_text(text.replace('photographs = "imagenet-foolbox"\n', ""))
    assert execute.main(["mine"]) == 1
    error = capsys.readouterr().err
    assert "mine: its kernel ended in the cell above. If nobody stopped it, memory ran out" in error
    assert "expects it to take 4000 MB" in error
    assert "make book CORES=1" in error
    assert "Traceback" not in error
    (copy,) = paths.build().rglob("mine.failed.ipynb")
    *_, found, _, killed = nbformat.read(copy, as_version=4).cells
    assert found.outputs[0].text == "what was found\n", "a copy has what came before, whatever ends a run"
    assert "os.kill" in killed.source
