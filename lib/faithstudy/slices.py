"""What a table rests on: the statements of the page that make it, and the modules that these reach.

Editing a sentence, a claim or a figure leaves all of it as it is. Editing a metric changes it for the tables that have
the metric.
"""

import ast
import hashlib
import re
import symtable
from collections.abc import Mapping, Sequence

from faithlab.metrics import METRICS
from faithstudy import dependencies, paths, provenance

IN_PLACE = ("append", "extend", "update", "add")
"""Methods that change what they are called on."""


def names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """Global names that a statement of a page reads, and those that it writes."""
    text = ast.unparse(statement)
    scopes = [symtable.symtable(text, "page", "exec")]
    written = {of.get_name() for of in scopes[0].get_symbols() if of.is_assigned() or of.is_imported()}
    read = {name for query in re.findall(r"""["'].*["']""", text) for name in re.findall(r"@(\w+)", query)}  # of pandas
    for scope in scopes:
        scopes += scope.get_children()
        read |= {of.get_name() for of in scope.get_symbols() if of.is_referenced() and of.is_global()}
    for node in ast.walk(statement):
        if isinstance(node, ast.For):
            read -= {of.id for of in ast.walk(node.target) if isinstance(of, ast.Name)}
        elif isinstance(node, ast.AugAssign):
            read.add(ast.unparse(node.target))
    return read, written


def changed(statement: ast.stmt) -> set[str]:
    """Names whose value a statement may change in place: items that are set, lists that grow."""
    grown = [node for node in ast.walk(statement) if isinstance(node, ast.Attribute) and node.attr in IN_PLACE]
    set_ = [n for n in ast.walk(statement) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return {re.match(r"\w*", ast.unparse(node))[0] for node in grown + set_}


def table_of(statement: ast.stmt) -> str | None:
    """The table that a statement is about: ``name = run.table("scores", ...)``."""
    found = re.match(r"[\w, ]+ = run\.table\('([\w-]+)'", ast.unparse(statement))
    return found[1] if found else None


def rests_on(page: str, table: str) -> list[ast.stmt]:
    """The statements of a page that make one of its tables, ``run.table`` last; none: it is made otherwise."""
    body = ast.parse(paths.script(page).read_text(encoding="utf-8")).body
    last = next((k for k, statement in enumerate(body) if table_of(statement) == table), -1)
    wanted, found = set(), []
    for statement in reversed(body[: last + 1]):
        read, written = names(statement)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            statement.names = [of for of in statement.names if (of.asname or of.name).partition(".")[0] in wanted]
            found += [statement] if statement.names else []
        elif not found or (written | changed(statement) & read) & wanted:
            wanted |= read - {"run"}
            found.append(statement)
    return found[::-1]


def key(page: str, table: str, metrics: Sequence[str]) -> str:
    """A hash of what a table rests on: of the page's statements, and of each module of the library that they reach.

    Args:
        page: its name.
        table: its name.
        metrics: those that the table has, whose names begin or go on as those of the registry.
    """
    text = "\n".join(map(ast.unparse, rests_on(page, table)))
    own = " ".join(f'"{name}"' for name in METRICS if any(name in metric for metric in metrics))
    modules = dependencies.files(sorted(dependencies.reached(provenance.imports(text), own)))
    return hashlib.sha256(f"{text}\n{dependencies.listed(modules)}".encode()).hexdigest()[:16]


def parameters_of(page: str, table: str, parameters: Mapping[str, object]) -> set[str]:
    """The parameters of a page that one of its tables takes."""
    statements = rests_on(page, table)
    if "run.parameters" in "\n".join(map(ast.unparse, statements)):
        return set(parameters)
    return {name for s in statements for name in names(s)[0] & set(parameters)}
