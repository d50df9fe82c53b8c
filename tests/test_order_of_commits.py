"""A claim is committed before the run that judges it; where it was changed since, its page says so."""

import ast
import itertools
import json
import shutil
import subprocess
from datetime import datetime

import forest
import judged
import pandas as pd
import pytest
import reader

from faithstudy import paths
from faithstudy.run import recorded_runs

RUNS = [run for run in recorded_runs() if "claims" in run["tables"]]


def git(*words):
    """What git says of the repository; None: there is no git, no history, or no such thing in it."""
    try:
        ran = subprocess.run(["git", *words], cwd=paths.root(), capture_output=True, text=True)
    except OSError:
        return None
    return ran.stdout if ran.returncode == 0 else None


def script_then(run):
    """The script that a recorded run had: of its commit, else of the last one that was made before it started."""
    path = f"notebooks/{run['notebook']}.py"
    if (found := git("show", f"{run['commit']}:{path}")) is not None:
        return found
    started = datetime.fromisoformat(run["date"]).timestamp() - run["seconds"]
    commits = [line.split() for line in git("log", "--format=%H %at", "--", path).splitlines()]
    before = [commit for commit, made in commits if int(made) <= started]
    return git("show", f"{before[0]}:{path}") if before else ""


def made(script):
    """The claims of a script by id: the sentence, the calls, and the code of these and of the functions and plain
    values that they use. Claims whose id or sentence is computed have None for it."""
    tree = ast.parse(script)
    known = {}
    for of in tree.body:
        targets = [of.name] if isinstance(of, ast.FunctionDef) else []
        if isinstance(of, ast.Assign) and not any(isinstance(node, ast.Call) for node in ast.walk(of)):
            targets = [node.id for target in of.targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        for name in targets:
            known.setdefault(name, []).append(of)

    def whole(node, seen):
        used = {of.id for of in ast.walk(node) if isinstance(of, ast.Name)} & known.keys() - seen
        seen |= used
        return [ast.dump(node), *itertools.chain(*(whole(of, seen) for name in sorted(used) for of in known[name]))]

    found = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "run.claim":
            name, _, sentence = (getattr(argument, "value", None) for argument in call.args[:3])
            _, calls, code = found.get(name, (None, [], []))
            found[name] = sentence if isinstance(sentence, str) else None, [*calls, call], code + whole(call, set())
    return found


def as_judged(claim, sentence, calls, parts):
    """Whether a recorded claim has the sentence, the kinds of parts and the margins that a script writes out."""
    nodes = [node for call in calls for node in ast.walk(call)]
    kinds = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)} & set(forest.TESTS)
    values = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "margin"]
    margins = {round(value.value, 6) for value in values if isinstance(value, ast.Constant)}
    half = set(((parts["claimed_high"] - parts["claimed_low"]) / 2).round(6))
    return sentence in (None, claim["claim"]) and kinds <= set(parts["kind"]) and margins <= half


def changed(run):
    """The claims of a recorded run that its page makes otherwise today: by id, today's sentence."""
    folder, name = paths.recorded(run["notebook"], run["profile"]), run["notebook"]
    now, then = made(paths.script(name).read_text(encoding="utf-8")), made(script_then(run))
    claims, parts = pd.read_csv(folder / "claims.csv"), judged._whole(folder / "parts.csv")
    found = {}
    for claim in claims[claims["id"].isin(judged._made(name))].to_dict("records"):
        sentence, calls, code = now.get(claim["id"], now.get(None, (None, [], [])))
        before = not run["dirty"] and code == then.get(claim["id"], then.get(None, (None, [], [])))[2]
        if not before and not as_judged(claim, sentence, calls, parts[parts["claim"] == claim["id"]]):
            found[claim["id"]] = sentence
    return found


@pytest.mark.parametrize("run", RUNS, ids=[run["notebook"] for run in RUNS])
def test_claims_are_committed_before_the_run_that_judges_them_or_the_page_says_so(run, tmp_path):
    if git("rev-parse", "--is-shallow-repository") != "false\n":
        pytest.skip("no history of commits: a shallow or an exported clone")
    if not (since := changed(run)):
        return
    # What a build of today would show beside the record: the recorded claims, as the page says them now.
    shutil.copytree(paths.recorded(run["notebook"], run["profile"]), build := tmp_path / "build")
    (build / "provenance.json").write_text(json.dumps(run | {"profile": "quick"}))
    claims = pd.read_csv(build / "claims.csv")
    judged_then = claims.loc[claims["id"].isin(since), "claim"].str.rstrip(".")
    claims["claim"] = [since.get(name) or said for name, said in zip(claims["id"], claims["claim"], strict=True)]
    claims.to_csv(build / "claims.csv", index=False)
    said = dict(reader.caveats(judged.page(build, run["notebook"]))).get(judged.CHANGED, "")
    silent = [sentence for sentence in judged_then if f"“{sentence}”" not in said]
    assert not silent, f"{run['notebook']} was changed since its run, which no badge says: {silent}. Record it again."


SCRIPT = """
bar = 0.1

def part(x):
    return within(x, margin=bar)

table = load("it")
run.claim("a", "Table 1", "So it is.", [part(table), above(table, 0, name="b")])
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('load("it")', 'load("other")', True),
        ("bar = 0.1", "bar = 0.2", False),
        ("margin=bar", "margin=2 * bar", False),
        ("So it is", "So be it", False),
        ("above", "below", False),
    ],
)
def test_what_a_claim_says_is_its_call_and_the_functions_and_values_that_it_uses(old, new, same):
    assert (made(SCRIPT)["a"][2] == made(SCRIPT.replace(old, new))["a"][2]) == same


@pytest.mark.parametrize(
    ("sentence", "margin", "kind", "same"),
    [
        ("S.", 0.1, "within", True),
        ("T.", 0.1, "within", False),
        ("S.", 0.2, "within", False),
        ("S.", 0.1, "best", False),
    ],
)
def test_a_claim_is_as_it_was_judged_where_sentence_kinds_and_margins_are_recorded(sentence, margin, kind, same):
    parts = pd.DataFrame({"kind": [kind], "claimed_low": -0.1, "claimed_high": 0.1})
    ((_, calls, _),) = made(f"run.claim('a', 'Table 1', {sentence!r}, [within(x, margin={margin})])").values()
    assert as_judged({"claim": "S."}, sentence, calls, parts) == same
