"""What a page measures again are rows of the table that it is compared with."""

import ast
import pickle

import pytest

from faithlab.scores import Scores
from faithstudy import paths, records, slices


def tables_of(body: list[ast.stmt]) -> dict[str, tuple[ast.expr, ast.expr | None]]:
    """By table: what measures it, and what measures some of it again."""
    found = {}
    for statement in body:
        if table := slices.table_of(statement):
            asked = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
            call = next(node for node in asked if ast.unparse(node.func) == "run.table")
            found[table] = (call.args[1], next((of.value for of in call.keywords if of.arg == "again"), None))
    return found


def called(body: list[ast.stmt], asked: ast.expr) -> set[str]:
    """The functions of the page and of the library that an expression reaches."""
    imports = [s for s in body if isinstance(s, ast.ImportFrom) and s.module.startswith("faith")]
    modules = {of.asname or of.name for s in imports for of in s.names}
    made = {name: s for s in body if isinstance(s, ast.FunctionDef | ast.Assign) for name in slices.names(s)[1]}
    found, waiting = set(), [asked]
    while waiting:
        for node in ast.walk(waiting.pop()):
            name = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
            if name in made and name not in found:
                waiting.append(made[name])
            found.add(name)
    functions = {name for name in found if isinstance(made.get(name), ast.FunctionDef)}
    return functions | {name for name in found - {"Scores.concat"} if name.count(".") and name.split(".")[0] in modules}


def strangers(body: list[ast.stmt]) -> list[str]:
    """Tables that are measured again by nothing that measures them."""
    asked = {table: of for table, of in tables_of(body).items() if not isinstance(of[1], ast.Constant | None)}
    return [table for table, (measure, again) in asked.items() if not called(body, measure) & called(body, again)]


@pytest.mark.parametrize("page", paths.pages())
def test_a_table_is_measured_again_by_what_measures_it(page):
    assert strangers(ast.parse(paths.script(page).read_text(encoding="utf-8")).body) == []


PAGE = """
from faithlab import masks

def ask(task): return masks.order(task)
def few(): return ask(4)
def curve(): return masks.ranks(1)

scores = run.table("scores", ask, chosen, again=few)
sizes = run.table("sizes", lambda: curve(), again=AGAIN)
"""


@pytest.mark.parametrize(("again", "found"), [("curve", []), ("'time'", []), ("few", ["sizes"])])
def test_what_measures_another_table_again_is_found(again, found):
    assert strangers(ast.parse(PAGE.replace("AGAIN", again)).body) == found


def of_a_build() -> dict[str, tuple[str, str, bytes]]:
    """Page, table and rows of what a build has measured again, of small tables alone."""
    found, built = {}, paths.build() / "again"
    for path in sorted(built.rglob("*.pickle")):
        page, table = path.parent.relative_to(built).as_posix(), path.stem.partition(".")[2]
        kept = [file for file in records.tables_in(paths.recorded(page, "study")) if file.stem == table]
        if kept and kept[0].stat().st_size < 20_000:
            found[f"{page} {table}"] = (page, table, path.read_bytes()[32:])
    return found


BUILT = of_a_build()


@pytest.mark.skipif(not BUILT, reason=f"no build in {paths.build()}")
@pytest.mark.parametrize("name", BUILT)
def test_every_row_that_a_build_has_measured_again_is_recorded(name):
    page, table, content = BUILT[name]
    (rows, *_), kept = pickle.loads(content), records.recorded(page, table).frame
    assert isinstance(kept, Scores) or {*rows.reset_index()} - {"index"} <= {*kept}
    differing = records.compared(rows, kept, records.BFLOAT16).differing
    assert differing.empty or differing["recorded"].notna().all()
