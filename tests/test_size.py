"""A budget of code lines for each room, and of guards in faithlab.

Code lines hold code: no blank lines, comments or docstrings. Budgets are lowered with each step, and raised only in a
commit that gives the reason.
"""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUDGETS = {
    "lib/faithlab": 1265,
    "lib/faithlab/baselines": 278,
    "lib/faithlab/explainers": 970,
    "lib/faithlab/metrics": 1233,
    "lib/faithlab/search": 507,
    "lib/faithlab/stats": 925,
    "lib/faithstudy": 2848,
    "lib/faithstudy/claims": 764,
    "lib/faithstudy/data": 1154,
    "lib/faithstudy/networks": 1003,
    "lib/faithstudy/trials": 2680,
    "book": 1033,
    "notebooks": 12323,
    "tests": 23239,
}
"""Code lines at most; `lib/faithlab` and `lib/faithstudy` are the files of the package itself."""
GUARDS = {"lib/faithlab": 0.05}
"""Share of a package's code lines that only raise or check, at most."""
EMPTY = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DEFINES = ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(source: str) -> set[int]:
    """Numbers of the lines with code."""
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in EMPTY:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | DEFINES) and ast.get_docstring(node) is not None:
            found -= lines(node.body[0])
    return found


def lines(node: ast.stmt, last: ast.stmt | None = None) -> set[int]:
    """Numbers of the lines of a statement, or from it to the last one."""
    return set(range(node.lineno, (last or node).end_lineno + 1))


def called(node: ast.AST) -> str:
    """The name of the function that a statement calls: `check(x)`, `x = check(x)`."""
    call = node.value if isinstance(node, ast.Expr | ast.Assign) else None
    name = getattr(call, "func", None)
    return getattr(name, "attr", getattr(name, "id", ""))


def only_checks(function: DEFINES, checks: set[str]) -> bool:
    """Return whether a function raises, or calls one that does, and has no other effect and no result of its own."""
    given = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)} | {None}
    body = function.body[ast.get_docstring(function) is not None :]
    found = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.stmt)]
    for node in found:
        result = getattr(node.value, "id", "a result") if isinstance(node, ast.Return) and node.value else None
        stored = node.targets if isinstance(node, ast.Assign) else []
        effect = isinstance(node, DEFINES) or (isinstance(node, ast.Expr) and called(node) not in checks)
        if result not in given or effect or not all(isinstance(name, ast.Name) for name in stored):
            return False
    return any(isinstance(node, ast.Raise) or called(node) in checks for node in found)


def guard_lines(sources: dict) -> dict:
    """Lines that only raise or check, by file: `if ...: raise`, `raise`, functions of these, and calls of those."""
    nodes = {name: list(ast.walk(ast.parse(source))) for name, source in sources.items()}
    functions = [node for found in nodes.values() for node in found if isinstance(node, DEFINES)]
    checks = set()
    while more := {node.name for node in functions if node.name not in checks and only_checks(node, checks)}:
        checks |= more
    guards = {name: set() for name in sources}
    for name, found in nodes.items():
        for node in found:
            if isinstance(node, ast.If) and any(isinstance(each, ast.Raise) for each in node.body):
                guards[name] |= lines(node, node.body[-1])
            check = isinstance(node, DEFINES) and only_checks(node, checks)
            if check or isinstance(node, ast.Raise) or called(node) in checks:
                guards[name] |= lines(node)
    return guards


def room(path: Path) -> str:
    """The room of a file: a folder of a package, the package for its own files, else the top folder."""
    top, *folders = path.relative_to(ROOT).parent.parts
    return "/".join([top, *folders[:2]]) if top == "lib" else top


@pytest.fixture(scope="module")
def sources() -> dict[Path, str]:
    found = [path for top in ("lib", "book", "notebooks", "tests") for path in sorted((ROOT / top).rglob("*.py"))]
    return {path: path.read_text(encoding="utf-8") for path in found if ".ipynb_checkpoints" not in path.parts}


def test_every_room_is_within_its_budget(sources):
    sizes = Counter()
    for path, source in sources.items():
        sizes[room(path)] += len(code_lines(source))
    assert set(sizes) == set(BUDGETS)
    assert not {name: (size, BUDGETS[name]) for name, size in sizes.items() if size > BUDGETS[name]}


@pytest.mark.parametrize("package", GUARDS)
def test_guards_are_a_small_share_of_a_package(sources, package):
    files = {path: source for path, source in sources.items() if path.is_relative_to(ROOT / package)}
    code = {path: code_lines(source) for path, source in files.items()}
    guards = sum(len(found & code[path]) for path, found in guard_lines(files).items())
    assert guards / sum(map(len, code.values())) <= GUARDS[package]


PLANTED = '''"""A docstring
of two lines."""
import math  # 1: code, no guard


def check(x):  # 2 to 5: a function that only checks
    """Raise for what is negative."""

    sign = math.copysign(1, x)
    if sign < 0:
        raise ValueError(x)


def root(x):  # 6: code
    check(x)  # 7: a call of the check
    if x > 9 and (
        # a comment inside
        x < 99
    ):  # 8 to 10: a guard
        raise ValueError("""of two
lines""")  # 11 and 12: its raise
    return math.sqrt(x)  # 13
'''


def test_lines_are_counted_in_a_planted_file():
    assert len(code_lines(PLANTED)) == 13
    assert len(guard_lines({"planted": PLANTED})["planted"] & code_lines(PLANTED)) == 10
