"""Which code a result follows from: a key that changes with that code, wherever it lies, and with nothing else.

Trained weights are wrong as soon as other code would make them. Their key follows the source from a few entries (the
function that trains, the network's class, the loader of its data) to every definition of the same package that they
use, and hashes what these say. It reads source and runs none. Every version of Python that reads it finds the same key.

What does not change a key: comments, docstrings, annotations and layout; the names and places of files, modules,
definitions and imports; errors, and checks that only raise them; what `APART` lists; an argument that has a new name,
if `FORMER` lists it; other packages, of which the names count; and whatever is not reached. A condition on fields of
the recipe alone (``if recipe.augment:``) takes one branch, so that code for a field that is added later counts only
where that field is set. A class counts whole.

Tools that know which module imports which (grimp, modulefinder) are too coarse: a comment or another function in the
same file would count. Those that hash a function (joblib) do not see what it calls.
"""

import ast
import functools
import hashlib
import inspect
import pickle
import symtable
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType
from typing import NamedTuple

APART = frozenset(
    {
        # Words to the user.
        "logging",
        "tqdm",
        "warnings",
        # Fetching and keeping files. What is in them is compared with a checksum.
        "faithstudy.data.cache",
        "faithstudy.networks.origins",
        "faithstudy.data.sources",
        "faithstudy.data.datasets._path",
        "faithstudy.data.datasets._read",
        "faithstudy.data.datasets._stored",
        "faithstudy.data.datasets._write",
        "faithstudy.networks.pretrained._LITE",
        "faithstudy.networks.pretrained._weights",
        "faithstudy.networks.vit_small.BACKBONE",
        # Registries, and what chooses from them: whoever asks for a key enters by what was chosen.
        "faithlab.explainers.find",
        "faithlab.explainers.register",
        "faithstudy.data.datasets.COLLECTIONS",
        "faithstudy.data.datasets.load",
        "faithstudy.networks.models.build",
        "faithstudy.networks.models.find",
        "faithstudy.networks.models.register",
        "faithstudy.networks.training._OPTIMISERS",
        "faithstudy.networks.training._SCHEDULES",
        # Results that have keys of their own.
        "faithstudy.networks.training.trained",
        "faithstudy.networks.training._stored_orders",
    }
)
"""What decides no result, or is known by other means, by its full name; a module stands for all that is in it."""

FORMER = {
    "batch_size": "rows",
    "batch_size, inputs explained at once,": "rows, images explained at once,",
}
"""What arguments, and texts about them, were called when stored results were made: a new name counts as the old one."""

_CUT = ast.Constant(...)  # stands where something of APART stood
_FIELD = ast.Constant("field")  # stands for the annotation of a field of a class
_DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CONDITION = (
    *(ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp),
    *(ast.boolop, ast.cmpop, ast.unaryop, ast.expr_context),
)


class Lineage(NamedTuple):
    """What a result follows from.

    Attributes:
        key: 16 hexadecimal digits.
        definitions: full names of the definitions that count, in the order in which they are reached.
    """

    key: str
    definitions: tuple[str, ...]


def of(
    entries: Iterable[Callable | str], *, recipe: object = None, facts: object = (), root: Path | None = None
) -> Lineage:
    """The lineage of what some functions and classes make. Each file is read once in a process.

    Args:
        entries: functions and classes, or their full names. Their packages are followed. What lies in no file, as a
            function in a notebook, counts with its own text alone; what has no text does not count.
        recipe: what a function's parameter of this name stands for.
        facts: anything else that counts, by its `repr`.
        root: the folder of the packages; None: where they were imported from.
    """
    asked = (tuple(entries), recipe is None, root, APART)
    known = _FOLLOWED.setdefault(asked, [])
    # What a recipe decides is all that it changes: seeds, for example, share one walk through the files.
    followed = next((of for of in known if all(_holds(c, recipe) == held for c, held in of.decided.items())), None)
    if followed is None:
        known.append(followed := _follow(asked[0], recipe, root))
    key = hashlib.sha256("\n".join([repr(facts), *followed.texts]).encode()).hexdigest()[:16]
    return Lineage(key, followed.definitions)


class _Followed(NamedTuple):
    """A walk through the files: the texts that count, and how the conditions came out that the recipe decides."""

    texts: list[str]
    definitions: tuple[str, ...]
    decided: dict[CodeType, bool | None]


_FOLLOWED: dict[tuple, list[_Followed]] = {}


def _follow(entries: tuple[Callable | str, ...], recipe: object, root: Path | None) -> _Followed:
    source = _Source(recipe, root)
    texts = [*filter(None, [source.enter(entry) for entry in entries])]
    for module, name in source.reached:  # grows while its texts are made
        tree = pickle.loads(pickle.dumps(source.module(module).definitions[name]))  # half the time of copy.deepcopy
        _rename(tree, name)
        texts.append(_text(_Reader(source, module, name).generic_visit(tree)))
    return _Followed(texts, tuple(f"{module}.{name}" for module, name in source.reached), source.decided)


def _holds(condition: CodeType, recipe: object) -> bool | None:
    """What a condition on fields of the recipe comes to; None: it has no such field."""
    try:
        return bool(eval(condition, {"recipe": recipe}))
    except AttributeError:
        return None


class _Module(NamedTuple):
    """A file that was read."""

    definitions: dict[str, ast.Module]  # the statements that define a name
    imports: dict[str, str]  # what an imported name stands for
    used: dict[str, set[str]]  # the names that a definition looks up in the file


@functools.cache
def _read(path: Path, name: str) -> _Module:
    text = path.read_text(encoding="utf-8")
    tree, found = ast.parse(text), _Module({}, {}, {})
    tables: dict[str, list[symtable.SymbolTable]] = {}
    for table in symtable.symtable(text, str(path), "exec").get_children():
        tables.setdefault(table.get_name(), []).append(table)
    for statement in tree.body:
        for defined in _defined(statement):
            found.definitions.setdefault(defined, ast.Module([])).body.append(statement)
            # A function's own names are known from its table; what stands in its head is looked up outside it.
            heads = _head(statement) if isinstance(statement, _DEFINITION) else [statement]
            names = {part.id for head in heads for part in ast.walk(head) if isinstance(part, ast.Name)}
            found.used.setdefault(defined, set()).update(names, *map(_looked_up, tables.get(defined, ())))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.imports.update(
                (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
                for alias in node.names
            )
        elif isinstance(node, ast.ImportFrom):
            folders = name.split(".")[: None if path.stem == "__init__" else -1]
            base = folders[: len(folders) - node.level + 1] if node.level else []
            base = ".".join([*base, *filter(None, [node.module])])
            found.imports.update((alias.asname or alias.name, f"{base}.{alias.name}") for alias in node.names)
    return found


def _defined(statement: ast.AST) -> set[str]:
    if isinstance(statement, _DEFINITION):
        return {statement.name}
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):  # also `name["key"] = ...`
        targets = getattr(statement, "targets", None) or [statement.target]
        return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return set().union(*map(_defined, ast.iter_child_nodes(statement)))  # if, try


def _head(definition: ast.stmt) -> list[ast.AST]:
    rest = [definition.args] if hasattr(definition, "args") else [*definition.bases, *definition.keywords]
    return [*definition.decorator_list, *rest]


def _looked_up(table: symtable.SymbolTable) -> set[str]:
    names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() or symbol.is_imported()}
    return names.union(*map(_looked_up, table.get_children()))


class _Source:
    """The packages that are followed, and what has been reached in them; its place there stands for a name."""

    def __init__(self, recipe: object, root: Path | None):
        self.recipe = recipe
        self.decided: dict[CodeType, bool | None] = {}
        self.reached: list[tuple[str, str]] = []
        self._root = root
        self._packages: set[str] = set()
        self._modules: dict[str, _Module | None] = {}

    def enter(self, entry: Callable | str) -> str | None:
        """Reach an entry; the text of one that lies in no file."""
        full = entry if isinstance(entry, str) else f"{entry.__module__}.{entry.__qualname__}".partition(".<")[0]
        self._packages.add(full.partition(".")[0])
        found = self._absolute(full.split("."))
        while isinstance(found, ast.Attribute):  # a method
            found = found.value
        if isinstance(found, ast.Name) and found.id.startswith("#"):
            return None
        if isinstance(entry, str):
            raise KeyError(f"there is no definition {entry}")
        try:
            return _text(ast.parse(textwrap.dedent(inspect.getsource(entry))))
        except (OSError, TypeError, SyntaxError):
            return None

    def module(self, name: str) -> _Module | None:
        """A module of the packages that are followed."""
        if name.partition(".")[0] not in self._packages:
            return None
        if name not in self._modules:  # each name that is met asks for its module
            self._modules[name] = self._find_module(name)
        return self._modules[name]

    def _find_module(self, name: str) -> _Module | None:
        top, *inner = name.split(".")
        place = getattr(sys.modules.get(top), "__file__", None)
        if self._root is None and place is None:
            return None
        folder = (self._root or (p := Path(place)).parents[p.stem == "__init__"]).joinpath(top, *inner)
        files = (folder.with_name(f"{folder.name}.py"), folder / "__init__.py")
        return next((_read(path, name) for path in files if path.is_file()), None)

    def find(self, module: str, chain: list[str]) -> ast.expr | None:
        """What stands for `a.b.c` in a module; None where no import or definition of it begins with `a`."""
        here, first = self.module(module), chain[0]
        if first not in here.definitions:
            return self._absolute([*here.imports[first].split("."), *chain[1:]]) if first in here.imports else None
        if {module, f"{module}.{first}"} & APART or self._logger(module, first):
            return _CUT
        if (module, first) not in self.reached:
            self.reached.append((module, first))
        return _attributes(f"#{self.reached.index((module, first))}", chain[1:])

    def _absolute(self, chain: list[str]) -> ast.expr:
        for end in range(len(chain), 0, -1):
            if (module := ".".join(chain[:end])) in APART:
                return _CUT
            if self.module(module) is not None:
                found = self.find(module, chain[end:]) if chain[end:] else None
                return found or _attributes("module", chain[end:])
        return _attributes(".".join(chain), [])

    def _logger(self, module: str, name: str) -> bool:
        value = getattr(self.module(module).definitions[name].body[-1], "value", None)
        chain = _chain(value.func) if isinstance(value, ast.Call) else []
        return bool(chain) and self.module(module).imports.get(chain[0], "").partition(".")[0] in APART


class _Reader(ast.NodeTransformer):
    """Takes out of a definition what does not count, and puts what its names stand for in their place."""

    def __init__(self, source: _Source, module: str, name: str):
        self._source, self._module, self._used = source, module, source.module(module).used[name]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return node if isinstance(node.ctx, ast.Store) else self._referred(node, [node.id])

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        chain = _chain(node)
        return self._referred(node, chain) if chain else self.generic_visit(node)

    def _referred(self, node: ast.expr, chain: list[str]) -> ast.expr:
        return (chain[0] in self._used and self._source.find(self._module, chain)) or node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if (function := self.visit(node.func)) is _CUT:
            return _CUT
        return ast.Call(function, [*map(self.visit, node.args)], [*map(self.visit, node.keywords)])

    def visit_FunctionDef(self, node):
        node.returns = None
        for statement in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(statement, ast.AnnAssign):
                statement.annotation = _FIELD
        node = self.generic_visit(node)
        node.decorator_list = [decorator for decorator in node.decorator_list if decorator is not _CUT]
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # noqa: N815

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        if node.annotation is _FIELD:
            return self.generic_visit(node)
        return self.generic_visit(ast.Assign([node.target], node.value)) if node.value else None

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        node = self.generic_visit(node)
        return None if isinstance(node.value, ast.Constant) else node

    def visit_Raise(self, node: ast.Raise) -> None:
        return None

    visit_Assert = visit_Import = visit_ImportFrom = visit_Raise  # noqa: N815

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt] | None:
        decided = self._decided(node.test)
        body, orelse = (
            [] if decided is unwanted else self.generic_visit(ast.Module(statements)).body
            for statements, unwanted in ((node.body, False), (node.orelse, True))
        )
        if decided is not None:
            return body + orelse
        if not body and not orelse and not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test)):
            return None
        return ast.If(self.visit(node.test), body, orelse)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        decided = self._decided(node.test)
        return self.generic_visit(node) if decided is None else self.visit(node.body if decided else node.orelse)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        # Python 3.12 puts an empty text into some formats.
        return self.generic_visit(ast.JoinedStr([part for part in node.values if getattr(part, "value", None) != ""]))

    def _decided(self, test: ast.expr) -> bool | None:
        """What a condition on fields of the recipe alone comes to; None: it asks for more."""
        parts = list(ast.walk(test))
        about = {part.id for part in parts if isinstance(part, ast.Name)}
        if self._source.recipe is None or about != {"recipe"} or not all(isinstance(p, _CONDITION) for p in parts):
            return None
        condition = compile(ast.Expression(test), "condition", "eval")
        self._source.decided[condition] = _holds(condition, self._source.recipe)
        return self._source.decided[condition]


def _rename(tree: ast.Module, name: str) -> None:
    """Take a definition's own name out of it."""
    for statement in tree.body:
        if isinstance(statement, _DEFINITION):
            statement.name = "own"
        else:
            for part in ast.walk(statement):
                if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store):
                    part.id = "own"


def _chain(node: ast.expr) -> list[str]:
    """The names of `a.b.c`; none where it begins with anything but a name."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def _attributes(name: str, names: list[str]) -> ast.expr:
    node = ast.Name(name, ast.Load())
    return functools.reduce(lambda value, name: ast.Attribute(value, name, ast.Load()), names, node)


def _text(node: object) -> str:
    """A tree as text, without what is empty: `ast.dump` and `ast.unparse` differ between 3.11, 3.12 and 3.13."""
    if isinstance(node, list):
        return f"[{' '.join(map(_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(FORMER.get(node, node))
    fields = ((name, value) for name, value in ast.iter_fields(node) if name not in ("ctx", "kind", "type_comment"))
    return f"({type(node).__name__} {' '.join(f'{n}={_text(v)}' for n, v in fields if v is not None and v != [])})"
