"""What a table of a page rests on: the statements of the page that make it, and the modules that these reach.

Editing a sentence, a claim or a figure leaves all of it as it is. Editing a metric changes it for the tables that have
the metric.
"""

import ast
import dis
import hashlib
import re
import types
from collections.abc import Mapping, Sequence

from faithlab.metrics import METRICS
from faithstudy import dependencies, paths


def names(code: types.CodeType, top: bool = True) -> tuple[set[str], set[str]]:
    """Global names that code reads before it has written them, and those that it writes."""
    read, written, inside, loop = set(), set(), set(), False
    for step in dis.get_instructions(code):
        loop = loop or step.opname == "FOR_ITER"
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL") and not (top and step.argval in written):
            read.add(step.argval)
        elif step.opname == "STORE_NAME" and top:
            written.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            inside |= names(inner, top=False)[0]
        elif isinstance(inner, str):
            inside |= set(re.findall(r"@(\w+)", inner))  # in a query of pandas
    return read | (inside - written if loop else inside), written


def compiled(statement: ast.stmt) -> types.CodeType:
    """A statement of a page as it runs there."""
    return compile(ast.Module([statement], []), "page", "exec")


def changed(statement: ast.stmt) -> set[str]:
    """Names whose value a statement changes in place: items that are set, lists that grow."""
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node.value
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("append", "extend", "update", "add"):
            target = node.func.value
        else:
            continue
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        found |= {target.id} if isinstance(target, ast.Name) else set()
    return found


def table_of(statement: ast.stmt) -> str | None:
    """The table that a statement is about: ``name = run.table("scores", ...)``."""
    call = statement.value if isinstance(statement, ast.Assign) else None
    of = call.func if isinstance(call, ast.Call) else None
    asked = isinstance(of, ast.Attribute) and of.attr == "table" and ast.unparse(of.value) == "run"
    return ast.literal_eval(call.args[0]) if asked else None


def rests_on(page: str, table: str) -> list[ast.stmt]:
    """The statements of a page that make one of its tables, ``run.table`` last; none: it is made otherwise."""
    body = ast.parse(paths.script(page).read_text(encoding="utf-8")).body
    last = next((k for k, statement in enumerate(body) if table_of(statement) == table), None)
    if last is None:
        return []
    wanted, found = names(compiled(body[last]))[0] - {"run"}, [body[last]]
    for statement in reversed(body[:last]):
        read, written = names(compiled(statement))
        if isinstance(statement, ast.Import | ast.ImportFrom):
            statement.names = [of for of in statement.names if (of.asname or of.name).partition(".")[0] in wanted]
            found += [statement] if statement.names else []
        elif (written | changed(statement) & read) & wanted:
            wanted |= read - {"run"}
            found.append(statement)
    return found[::-1]


def modules(statements: Sequence[ast.stmt], metrics: Sequence[str]) -> list[str]:
    """The modules of the library that statements of a page reach, and those of some metrics."""
    own = [f'"{name}"' for name in METRICS if any(name in metric for metric in metrics)]
    asked: set[str] = set()
    for node in statements:
        if isinstance(node, ast.ImportFrom):
            asked |= {node.module, *(f"{node.module}.{of.name}" for of in node.names)}
        elif isinstance(node, ast.Import):
            asked |= {of.name for of in node.names}
    return sorted(of for of in dependencies.reached(asked, " ".join(own)) if of.startswith(dependencies.PACKAGES))


def key(page: str, table: str, metrics: Sequence[str], parameters: Mapping[str, object]) -> dict[str, str]:
    """What a table rests on, by name: a hash of the page's statements, and one of each file of the library.

    Args:
        page: its name.
        table: its name.
        metrics: those that the table has, whose names begin or go on as those of the registry.
        parameters: of the page, which are known by themselves.
    """
    statements = rests_on(page, table)
    own = [s for s in statements if not names(compiled(s))[1] <= {*parameters, "profile"} or table_of(s)]
    text = "\n".join(map(ast.unparse, own))
    files = dependencies.listed(dependencies.files(modules(statements, metrics))).splitlines()
    hashes = {file: of[:8] for of, file in (line.split("  ", 1) for line in files)}
    return {"the page": hashlib.sha256(text.encode()).hexdigest()[:8], **hashes}


def parameters_of(page: str, table: str, parameters: Mapping[str, object]) -> set[str]:
    """The parameters of a page that one of its tables takes."""
    statements = rests_on(page, table)
    if "run.parameters" in "\n".join(map(ast.unparse, statements)):
        return set(parameters)
    return {name for s in statements for name in names(compiled(s))[0] & set(parameters)}
