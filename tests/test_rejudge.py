"""Every recorded verdict, computed again from the saved tables: what a change of the code must leave as it is.

A page is a script, ``notebooks/<page>.py``. Of it only those statements run that its claims need. A saved table takes
the place of whatever made it, so that no network, data set or search is needed; the few other values that a claim
needs stand in `GIVEN`. The tests compare numbers and outcomes with ``rejudged.json``, and no words: names of parts and
contrasts stand there only so that a failure can name them.

``python tests/test_rejudge.py --write`` writes ``rejudged.json`` anew, and says what changed. A commit that does so
says why.
"""

import ast
import json
import math
import re
import sys
import types
from pathlib import Path

import pandas as pd
import pytest
import torch

import strange
from faithlab.scores import Scores
from faithstudy import architectures as examined
from faithstudy import paths
from faithstudy.claims import Claim
from faithstudy.slices import changed, compiled, names, table_of
from faithstudy.trials import examination, sizes

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "data" / "results" / "study"
EXPECTED = Path(__file__).with_name("rejudged.json")
PAGES = sorted(path.parent.relative_to(RECORD).as_posix() for path in RECORD.rglob("claims.csv"))
EXAMINATION, MODELS = "across/examination", "hostile models"
ROW = ("contrast", "network", "value", "low", "high", "printed", "images")
PART = ("kind", "premise", "outcome", "claimed_low", "claimed_high", "needed", "images_needed")
NAMES = ("part", "contrast", "network")
"""Words that are not compared."""

LEARNED = "chosen = [space(model=torch.nn.Linear(1, 10), x=torch.zeros(1, 1))]"  # it has ten classes, as the data
GIVEN = {
    "f-fidelity/fine-tuning": "test = space(classes=range(10))",
    "f-fidelity/images": "called, test = published.SETS.get(data, data), None",
    "f-fidelity/sizes-beyond-digits": """
cases = [law(name, settings, fractions) for name in ("vehicles of 39%", "phrases", "spans")]""",
    "f-fidelity/time-series": "chosen = {}",
    "few-class-fidelity/perturbations": """
tests = {"vehicles": space(classes=range(3)), "digits": space(classes=range(2))}""",
    "saco/ablation": LEARNED,
    "saco/groups": LEARNED,
    "saco/larger-vit": LEARNED,
    "saco/random": f"{LEARNED}; by_group = recorded_table('case')",
    "trace/optimality": "exact = dict(zip(('MoRF', 'LeRF'), as_recorded('tr-greedy-exact')))",
}
"""What stands in place of networks, data and explainers, by page: values of variables of its script."""


def with_given(body: list[ast.stmt], given: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a page, given ones in place of the first that write the same names."""
    body = list(body)
    for statement in given:
        own = names(compiled(statement))[1]
        writers = [k for k, other in enumerate(body) if own & (names(compiled(other))[1] | changed(other))]
        begin = next(k for k, other in enumerate(body) if ast.unparse(other).startswith("run = "))
        body.insert((writers or [begin])[0] + 1, statement)
    return body


def needed(page: str) -> list[ast.stmt]:
    """The statements of a page that its claims need, from the last one backwards; a saved table needs nothing."""
    body = ast.parse((ROOT / "notebooks" / f"{page}.py").read_text(encoding="utf-8")).body
    given = ast.parse(GIVEN.get(page, "")).body
    makers = {s.name for s in body if isinstance(s, ast.FunctionDef) and "run.claim(" in ast.unparse(s)}
    wanted, found = {"metrics"} if page == EXAMINATION else set(), []
    fixed = set().union(*(names(compiled(s))[1] for s in given))
    for statement in reversed(with_given(body, given)):
        read, written = names(compiled(statement))
        text, is_given = ast.unparse(statement), statement in given
        saved = re.fullmatch(r"run\.save\((\w+), '([^']+)'\)", text)
        if not isinstance(statement, ast.FunctionDef) and ("run.claim(" in text or read & makers):
            pass
        elif saved:
            if not (saved[1] in wanted - fixed and (RECORD / page / f"{saved[2]}.parquet").is_file()):
                continue
            statement = ast.parse(f"{saved[1]} = recorded_table({saved[2]!r})").body[0]
            read, written = {"recorded_table"}, {saved[1]}
        elif (table := table_of(statement)) and written & wanted - fixed:
            statement = ast.parse(f"{ast.unparse(statement.targets[0])} = recorded_table({table!r})").body[0]
            read = {"recorded_table"}
        elif not (written | changed(statement) & read) & (wanted if is_given else wanted - fixed):
            continue
        if not isinstance(statement, ast.For | ast.If):  # which may write nothing
            wanted -= written
        wanted |= read
        fixed -= written if is_given else set()
        found.append(statement)
    return found[::-1]


class Run:
    """A run of a page that has saved what the recorded one has, and remembers its claims."""

    def __init__(self, name: str, variables: object = None):
        self.name = name
        about = json.loads((RECORD / name / "provenance.json").read_text(encoding="utf-8"))
        self.parameters, self.profile = about["parameters"], about["profile"]
        self.claims: dict[str, Claim] = {}
        self.as_recorded: list[str] = []

    def claim(self, id: str, where: str, sentence: str, parts: list, *, paper: str | None = None, **about: str):
        about.setdefault("own", paper is None and self.name.split("/")[0] not in paths.PAPERS)
        self.claims[id] = Claim(id, where, sentence, tuple(parts), **about)
        return self.claims[id].verdict

    def table(self, name: str) -> Scores | pd.DataFrame:
        path = RECORD / self.name / f"{name}.parquet"
        return Scores.load(path) if path.is_file() else pd.read_csv(path.with_suffix(".csv"))

    def counts(self, claim: str) -> list[torch.Tensor]:
        """Of each counted part of a claim its cases, as they are recorded and cannot be computed again."""
        self.as_recorded.append(claim)
        parts = self.table("parts").query("claim == @claim and kind == 'counted'")
        return [torch.arange(int(all_)) < int(own) for own, all_ in zip(parts["value"], parts["images"], strict=True)]

    def law(self, name: str, settings: list, fractions: torch.Tensor, network: str = "") -> sizes.Case:
        """Inputs whose explanation is known to be a share of them, without the inputs."""
        read = self.table("sizes").query("data == @name and ranking == 'truth'")
        subject = types.SimpleNamespace(dataset=name, network=network, x=range(len(self.table("each"))))
        share = torch.tensor(read["truth"].iloc[0], dtype=torch.float64)
        return sizes.Case(subject, share, (), tuple(settings), fractions, 1, {}, None, 0)


def replayed(page: str) -> tuple[Run, dict]:
    """Run what the claims of a page need: its run, which has the claims, and its variables."""
    run = Run(page)
    helpers = {"recorded_table": run.table, "as_recorded": run.counts, "law": run.law, "space": types.SimpleNamespace}
    variables = {**helpers, "torch": torch, "display": lambda shown: None, "__name__": "page"}
    for statement in needed(page):
        target = ast.unparse(statement).partition(" = ")[0]
        if target == "run":
            variables["run"] = run
        elif "run" not in variables and target in run.parameters:
            variables[target] = run.parameters[target]
        else:
            try:
                exec(compiled(statement), variables)
            except Exception as error:
                error.add_note(f"{page} needs a value that no saved table gives (see GIVEN): {ast.unparse(statement)}")
                raise
    return run, variables


def numbers(claim: Claim, as_recorded: bool) -> dict:
    """What a claim says in numbers: its verdict, and each part with its contrasts, networks and intervals."""
    frame, parts = claim.verdict.frame().reindex(columns=["part", *PART, *ROW]), []
    for name, rows in frame.groupby("part", sort=False):
        about = {"part": name} | rows.iloc[0][list(PART)].to_dict()
        about |= {"recorded, not recomputed": True} if as_recorded and about["kind"] == "counted" else {}
        parts.append(
            about | {"rows": [dict(zip(ROW, row, strict=True)) for row in rows[list(ROW)].to_numpy().tolist()]}
        )
    return {"verdict": claim.verdict.outcome, "parts": parts}


def matrix(metrics: dict, run: Run) -> dict:
    """The cells of the examination, recomputed from its scores: T with its interval and grade."""
    kept, scores, cells = run.table("trust"), run.table("scores"), {}
    about = {kind.name: (kind.recipe.data, kind.network) for kind in examined.KINDS.values()}
    for kind, rows in kept.groupby("kind", sort=False):
        data, network = about[kind]
        own = Scores(b for b in scores if b.labels["dataset"] == f"{data} test" and b.labels["network"] == network)
        truth = Scores(b for b in scores if b.labels["network"] == "closed form")
        why = rows[rows["size"] == "all images"].dropna(subset="why").set_index(["metric", "trial"])["why"].to_dict()
        for row in examination.trust(own + truth, metrics, why).to_dict("records"):
            key = f"{kind}, {row['metric']}, {row['trial']}, {row['size']}"
            cells[key] = {name: row[name] for name in ("T", "low", "high", "verdict", "images", "undefined")}
    return cells


def recomputed(page: str) -> dict:
    """All that is compared of a page, as JSON has it."""
    run, variables = replayed(page)
    found = {id: numbers(claim, id in run.as_recorded) for id, claim in run.claims.items()}
    if page == EXAMINATION:
        found["matrix"] = matrix(variables["metrics"], run)
    return found


def differences(expected: object, found: object, place: str = "") -> list[str]:
    """What differs, and where; numbers differ by more than 1e-9 of themselves."""
    if isinstance(expected, dict) and isinstance(found, dict):
        named = ", ".join(str(expected[name]) for name in NAMES if expected.get(name))
        place = f"{place}: {named}" if named else place
        keys = [key for key in {**expected, **found} if key not in NAMES]
        return [d for key in keys for d in differences(expected.get(key), found.get(key), f"{place} / {key}")]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [
            d for k, pair in enumerate(zip(expected, found, strict=True)) for d in differences(*pair, f"{place} {k}")
        ]
    if isinstance(expected, list) and isinstance(found, list):
        return [f"{place}: {len(expected)} became {len(found)}"]
    if all(isinstance(x, int | float) and not isinstance(x, bool) for x in (expected, found)):
        close = math.isclose(expected, found, rel_tol=1e-9, abs_tol=1e-12)
        return [] if close or (expected != expected and found != found) else [f"{place}: {expected!r} became {found!r}"]
    return [] if expected == found else [f"{place}: {expected!r} became {found!r}"]


def plain(found: object) -> object:
    """The same as JSON gives it back."""
    return json.loads(json.dumps(found, default=lambda of: of.item()))


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No network is trained or fetched, and no data set is loaded: what would need one fails at once."""

    def refuse(*given, **named):
        raise AssertionError("a claim is computed from saved tables alone; see GIVEN")

    monkeypatch.setattr(torch.optim.Optimizer, "step", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setenv("FAITHLAB_CACHE", str(tmp_path))


@pytest.fixture(scope="module")
def frozen() -> dict:
    return json.loads(EXPECTED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_verdicts_follow_from_the_saved_tables_as_before(page, frozen):
    found = differences(frozen[page], plain(recomputed(page)), page)
    assert not found, "\n".join([f"{len(found)} numbers or outcomes changed:", *found[:40]])


def test_every_recorded_claim_is_recomputed(frozen):
    assert {*frozen} == {*PAGES, MODELS}
    for page in PAGES:
        recorded = pd.read_csv(RECORD / page / "claims.csv")["id"]
        assert [id for id in frozen[page] if id != "matrix"] == [*recorded], page


def test_hostile_models_stay(frozen):
    assert frozen[MODELS] == sorted(strange.BUILDERS)


def write() -> None:
    """Write what is expected anew, and say what changed."""
    before = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.is_file() else {}
    found = {page: plain(recomputed(page)) for page in PAGES} | {MODELS: sorted(strange.BUILDERS)}
    print("\n".join(differences(before, found)) if before else "written for the first time")
    lines = re.sub(
        r'(?=\{"(part|contrast|verdict|T)")', "\n", json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    )
    EXPECTED.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(write() if sys.argv[1:] == ["--write"] else __doc__)
