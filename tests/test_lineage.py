"""The key of a result changes with the code that makes it, wherever it lies, and with nothing else."""

import ast
import dataclasses
import importlib
import importlib.util
import inspect
import linecache
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from faithlab import explainers
from faithstudy.data import datasets
from faithstudy.networks import lineage, models
from faithstudy.networks.training import Recipe
from faithstudy.trials import roar

LIBRARY = Path(__file__).parents[1] / "lib" / "faithlab"
TRAINING, SETS, MODELS = "zoo/training.py", "zoo/sets.py", "zoo/models.py"
PLAIN = Recipe("cifar10", "resnet9", epochs=3)
TUNED = dataclasses.replace(PLAIN, augment=True, mask_share=0.1, fold=(0, 2), start=PLAIN)


@pytest.fixture(scope="module")
def read():
    """Reads a file as lineage does, and what is in many copies of it once."""
    known, original = {}, lineage._read.__wrapped__

    def read(path: Path, name: str):
        key = path.name, name, path.read_bytes()
        if key not in known:
            known[key] = original(path, name)
        return known[key]

    return read


@pytest.fixture
def copied(tmp_path, monkeypatch, read):
    """A copy of the library to edit: from the first edit on, keys are of the copy."""
    root = tmp_path / "copy"
    shutil.copytree(LIBRARY, root / "faithlab", ignore=shutil.ignore_patterns("__pycache__"), copy_function=os.symlink)
    original = lineage.of

    def edit(file: str, old: str, new: str) -> None:
        path = root / "faithlab" / file
        text = path.read_text()
        assert old in text, f"{file} has no {old!r} any more: this test needs another place to edit"
        path.unlink()  # a link to the library's own
        path.write_text(text.replace(old, new))
        monkeypatch.setattr(lineage, "of", partial(original, root=root))

    monkeypatch.setattr(lineage, "_read", read)
    edit.root = root / "faithlab"
    return edit


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (TRAINING, "loss = cross_entropy(network(x).float(), y)", "loss = 2 * cross_entropy(network(x).float(), y)"),
        (TRAINING, "import cross_entropy, pad", "import nll_loss as cross_entropy, pad"),
        (TRAINING, "windows = pad(x", "windows = pad(-x"),
        (TRAINING, "shift: int = 4", "shift: int = 3"),
        (TRAINING, "max(1, steps // 5)", "max(1, steps // 6)"),
        (TRAINING, "_BLOCKS = 1", "_BLOCKS = 2"),
        (TRAINING, "weight_decay=recipe.decay", "weight_decay=0"),
        ("masks.py", "descending=True", "descending=False"),  # _epoch, mask_features, order
        ("draws.py", "_STEP = -7046029254386353131", "_STEP = 7046029254386353131"),  # seen, blocks, permutations, bits
        (SETS, ".float().div_(255)", ".float().div_(256)"),
        (MODELS, "return x + super().forward(x)", "return x - super().forward(x)"),
        (MODELS, "class Residual(nn.Sequential):", "class Residual(nn.Module):"),
        (
            "zoo/datasets.py",
            "std = (0.0,) * len(mean), (1.0,) * len(std)",
            "std = (1.0,) * len(mean), (1.0,) * len(std)",
        ),
    ],
    ids=lambda value: value[:30],
)
def test_other_code_that_trains_is_another_key(file, old, new, copied):
    before = TUNED.source()
    copied(file, old, new)
    assert TUNED.source() != before


def test_the_code_of_the_start_counts(copied):
    start = dataclasses.replace(PLAIN, switched=0.1)
    recipe = dataclasses.replace(PLAIN, start=start)
    before, alone = recipe.source(), PLAIN.source()
    copied("zoo/degradation.py", "both[:, 0] < share", "both[:, 0] <= share")
    assert recipe.source() != before
    assert PLAIN.source() == alone


def test_an_argument_that_was_only_renamed_is_the_same_key(copied):
    """ROAR's orders follow from `explain`, whose `batch_size` was called otherwise when many of them were made."""
    entries, files = [roar._order, explainers.find("gradient")], ("explainers/__init__.py", "explainers/gate.py")
    before = lineage.of(entries, recipe=PLAIN)
    assert {"faithlab.explainers.explain", "faithlab.explainers.gate.check_inputs"} <= {*before.definitions}
    for new, old in reversed(lineage.FORMER.items()):
        for file in files:
            if new in (copied.root / file).read_text():
                copied(file, new, old)
    assert "batch_size" not in (copied.root / files[0]).read_text()
    assert lineage.of(entries, recipe=PLAIN) == before


@pytest.mark.parametrize("change", [{"mean": (0.5, 0.5, 0.5)}, {"checksums": {"train": "other", "test": "x"}}])
def test_other_facts_about_the_data_are_another_key(change, monkeypatch):
    vehicles = dataclasses.replace(PLAIN, data="cifar10-vehicles")
    before = PLAIN.source(), vehicles.source()
    monkeypatch.setitem(datasets.COLLECTIONS, "cifar10", dataclasses.replace(datasets.COLLECTIONS["cifar10"], **change))
    assert PLAIN.source() != before[0]
    assert vehicles.source() != before[1]  # made of CIFAR-10


@pytest.mark.parametrize("name", datasets._MADE)
def test_a_set_that_is_made_of_another_says_so(name):
    """What it loads is apart, so the facts about it have to come in otherwise."""
    loaded = set()
    for definition in lineage.of([datasets._MADE[name]]).definitions:
        module, _, function = definition.rpartition(".")
        if module == datasets.__name__:
            for node in ast.walk(ast.parse(inspect.getsource(getattr(datasets, function)))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "load":
                    loaded.add(node.args[0].value)
    assert loaded == ({datasets._FROM[name]} if name in datasets._FROM else set())


@pytest.mark.parametrize("name", datasets.names())
def test_every_set_is_made_by_code_that_counts(name):
    code, _ = datasets.makers(name)
    assert "faithstudy.data.sets.LabelledSet" in lineage.of(code).definitions


FIELD = "    seed: int = 0\n\n    def __post_init__"
NEW_FIELD = "    seed: int = 0\n    smoothing: float = 0.0\n\n    def __post_init__"
STEP = "        optimiser.zero_grad()\n"


@pytest.mark.parametrize(
    "edits",
    [
        [(TRAINING, '"""Shift each image by up to `shift` pixels', '"""Move each image')],
        [(TRAINING, "# dropout, where a network has it", "# for dropout")],
        [(TRAINING, "def _augment(x: Tensor, generator: torch.Generator", "def _augment(x, generator: object")],
        [(TRAINING, "    steps = math.ceil(len(data)", "    steps: int = math.ceil(\n        len(data)")],
        [(TRAINING, "diverged in epoch", "exploded in epoch")],
        [(TRAINING, "    if len(data) and bool((data.labels == data.labels[0]).all()):\n", "    if not len(data):\n")],
        [(TRAINING, "    network.train()\n", "    _log.info('epoch %d', epoch)\n    network.train()\n")],
        [(TRAINING, "refresh=False", "refresh=True"), (TRAINING, '"seconds": self.seconds()', '"seconds": 0.0')],
        [(TRAINING, "def _device(", "def data(steps):\n    return steps + 1\n\n\ndef _device(")],
        [
            (TRAINING, FIELD, NEW_FIELD),
            (TRAINING, STEP, f"        if recipe.smoothing:\n            loss *= 2\n{STEP}"),
        ],
        [(TRAINING, '_OPTIMISERS = {"adam"', '_OPTIMISERS = {"sgd": torch.optim.SGD, "adam"')],
        [(TRAINING, '_SCHEDULES = {"constant"', '_SCHEDULES = {"step": _constant, "constant"')],
        [(TRAINING, "torch.where(keep.to(x.device), x, absent)", "torch.where(keep, x, absent)")],
        [(MODELS, "mlp_ratio=2.0", "mlp_ratio=4.0"), (MODELS, "@register\ndef cnn3", "@register\ndef cnn4")],
        [(MODELS, "_BUILDERS[builder.__name__] = builder", "_BUILDERS.setdefault(builder.__name__, builder)")],
        [("zoo/datasets.py", 'publish(\n    "mnist",', 'publish(\n    "new",'), ("zoo/texts.py", "lower()", "upper()")],
        [
            ("fetch/cache.py", "_PATIENCE = 2.0", "_PATIENCE = 3.0"),
            ("fetch/sources.py", "_TIMEOUT = (5", "_TIMEOUT = (6"),
        ],
        [("zoo/datasets.py", "(OSError, SafetensorError) as error", "Exception as error")],
    ],
    ids=lambda edits: edits[0][2].strip()[:30],
)
def test_whatever_does_not_train_leaves_the_key_alone(edits, copied):
    recipe = dataclasses.replace(PLAIN)
    object.__setattr__(recipe, "smoothing", 0.0)  # the new field, which the library of this process does not have
    before = recipe.source()
    for edit in edits:
        copied(*edit)
    assert recipe.source() == before


def test_code_for_a_field_counts_where_the_field_is_set(copied):
    before = [recipe.source() for recipe in (PLAIN, TUNED)]
    copied(TRAINING, "torch.where(keep.to(x.device), x, absent)", "torch.where(keep, x, absent)")
    assert [recipe.source() == key for recipe, key in zip((PLAIN, TUNED), before, strict=True)] == [True, False]


def test_code_that_moves_keeps_the_key(copied):
    before = TUNED.source()
    text = (copied.root / TRAINING).read_text()
    start, end = text.index("def _augment("), text.index("def _device(")
    (copied.root / "zoo" / "shifts.py").write_text(
        "import torch as pytorch\nfrom torch.nn import functional as F\n\n\n"
        + text[start:end].replace("torch.", "pytorch.").replace("pad(", "F.pad(")
    )
    copied(TRAINING, text[start:end], "")
    copied(
        TRAINING,
        "from faithstudy.data.sets import",
        "from faithstudy.networks.shifts import _augment as moved\nfrom faithstudy.data.sets import",
    )
    copied(TRAINING, "x = _augment(", "x = moved(")
    assert TUNED.source() == before


def test_a_module_that_is_renamed_keeps_the_key(copied):
    before = TUNED.source()
    (copied.root / "masks.py").rename(copied.root / "study" / "covers.py")
    copied(
        TRAINING,
        "from faithlab import draws, engine, masks",
        "from faithlab import draws, engine\nfrom faithstudy import covers",
    )
    copied(TRAINING, "masks.", "covers.")
    assert TUNED.source() == before


def test_a_renamed_function_and_the_entry_itself_elsewhere_keep_the_key(copied):
    entries = ["faithstudy.networks.training._train", "faithstudy.networks.models.resnet9"]
    before = lineage.of(entries, recipe=TUNED).key
    copied(TRAINING, "_without_first", "lacking")
    (copied.root / "zoo" / "training.py").rename(copied.root / "study" / "fits.py")
    names = {name.replace("zoo.training", "study.fits") for name in lineage.APART}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lineage, "APART", frozenset(names))  # whoever moves what is apart edits the list
        assert lineage.of(["faithstudy.fits._train", entries[1]], recipe=TUNED).key == before


def test_everything_that_is_apart_is_there():
    """Whoever moves or renames one has to say where it is now."""
    for name in lineage.APART:
        if name.startswith("faithlab."):
            *folders, last = name.split(".")[1:]
            files = [LIBRARY.joinpath(*folders).with_suffix(".py"), LIBRARY.joinpath(*folders, "__init__.py")]
            defined = [lineage._read(path, "any").definitions for path in files if path.is_file()]
            assert LIBRARY.joinpath(*folders, f"{last}.py").is_file() or last in defined[0], name
        else:
            assert importlib.util.find_spec(name), name


def test_an_entry_that_is_nowhere_is_an_error():
    with pytest.raises(KeyError, match=r"faithlab.masks.nothing"):
        lineage.of(["faithlab.masks.nothing"])


def test_a_network_in_a_package_of_the_users_own_is_followed(tmp_path, monkeypatch):
    keys = []
    for number, factor in enumerate((1, 1, 2)):
        folder = tmp_path / str(number)
        (folder / "own").mkdir(parents=True)
        (folder / "own" / "__init__.py").touch()
        (folder / "own" / "sizes.py").write_text(f"FACTOR = {factor}\n")
        (folder / "own" / "network.py").write_text(
            "from torch import nn\nfrom .sizes import FACTOR\n\n\ndef own():\n    return nn.Linear(2, FACTOR)\n"
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(folder))
            patch.setitem(models._BUILDERS, "own", importlib.import_module("own.network").own)
            keys.append(dataclasses.replace(PLAIN, model="own").source())
        for name in ("own.network", "own.sizes", "own"):
            sys.modules.pop(name, None)
    assert keys[0] == keys[1] != keys[2]


def test_a_network_typed_into_a_notebook_counts_by_its_text(monkeypatch):
    keys = []
    for number, factor in enumerate((1, 1, 2)):
        text, space, name = f"def typed():\n    return {factor}\n", {"__name__": "__main__"}, f"<cell {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)  # as IPython does
        exec(compile(text, name, "exec"), space)
        monkeypatch.setitem(models._BUILDERS, "typed", space["typed"])
        keys.append(dataclasses.replace(PLAIN, model="typed").source())
    assert keys[0] == keys[1] != keys[2]
    exec("def typed(): pass", space)
    monkeypatch.setitem(models._BUILDERS, "typed", space["typed"])
    assert dataclasses.replace(PLAIN, model="typed").source()  # it has no text; its layers count in the file's name


SMALL = {
    "__init__.py": "",
    "far.py": "SIZE = 3\n\ndef grow(x, by=SIZE):\n    return x + by\n",
    "near.py": "from . import far as away\nfrom .far import grow\n",
    "top.py": '''
import logging
from dataclasses import dataclass, field
import small.near
from small.near import grow as more

LOG = logging.getLogger(__name__)
TABLE = {"a": 1.5, "b": (1, 2)}
TABLE["c"] = b"x"

@dataclass(frozen=True)
class Thing:
    """Doc."""
    number: int
    names: list = field(default_factory=list)

    def twice(self, *args, key: str = "k", **rest):
        few = [self.number * TABLE["a"] * n for n in args if n], {k: v for k, v in rest.items()}
        return few, f"{key!r:>{4}} {self.number=}"

async def wait(x):
    async with x as y:
        return await y

def helper(x):
    return x

def main(recipe, x, /, grow=1):
    LOG.warning("at %s", x)
    more = lambda y: y  # a local of the name of an import
    try:
        for x[0], *rest in TABLE.items():
            while (n := small.near.away.grow(x)) > 1 and not n < 0:
                x += n
                continue
    except (KeyError, ValueError) as error:
        raise TypeError("no") from error
    else:
        match x:
            case [1, *_] | {"k": _}:
                pass
    finally:
        del rest
    if recipe.deep and recipe.size == 2:
        return Thing(1), wait
    elif x is None:
        raise ValueError
    return more(x), grow, map(lambda z: helper(z), x), x[1:2, ...], (yield)
''',
}


def small(folder: Path) -> Path:
    for name, text in SMALL.items():
        (folder / "small").mkdir(exist_ok=True)
        (folder / "small" / name).write_text(text)
    return folder


@dataclasses.dataclass
class Size:
    deep: bool = True
    size: int = 2


def test_the_key_of_a_small_package_is_this(tmp_path):
    """On every version of Python. Where this changes, everybody's networks are trained again."""
    found = lineage.of(["small.top.main"], recipe=Size(), facts=("a", 1.0), root=small(tmp_path))
    assert [name.removeprefix("small.") for name in found.definitions] == [
        *("top.main", "top.TABLE", "far.grow", "top.Thing", "top.wait", "top.helper", "far.SIZE"),
    ]
    assert found.key == "7a9e3a59a3841e95"


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_other_versions_of_python_find_the_same_keys(version, tmp_path):
    interpreter = shutil.which(f"python{version}")
    probe = [interpreter, "-c", "import symtable"]
    if interpreter is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip(f"there is no Python {version} here")
    entries = [
        "faithstudy.networks.training._train",
        "faithstudy.networks.models.transformer",
        "faithstudy.data.datasets._colored",
    ]
    script = (
        "import importlib.util, pathlib, sys\n"
        "spec = importlib.util.spec_from_file_location('lineage', sys.argv[1])\n"
        "sys.modules['lineage'] = lineage = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(lineage)\n"
        "print(lineage.of(sys.argv[3:], root=pathlib.Path(sys.argv[2])).key)\n"
    )
    command = [interpreter, "-c", script, lineage.__file__, str(LIBRARY.parent), *entries]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.strip() == lineage.of(entries, root=LIBRARY.parent).key


def test_recipes_that_decide_alike_share_one_walk_through_the_files(monkeypatch):
    alone, apart = PLAIN.source(), dataclasses.replace(PLAIN, augment=True).source()
    walks = []
    monkeypatch.setattr(lineage, "_FOLLOWED", {})
    monkeypatch.setattr(lineage, "_follow", lambda *of, follow=lineage._follow: walks.append(of) or follow(*of))
    seeds = [dataclasses.replace(PLAIN, seed=seed, epochs=seed + 1) for seed in range(3)]
    assert [recipe.source() for recipe in seeds] == [alone] * 3
    assert len(walks) == 1
    others = [dataclasses.replace(PLAIN, seed=seed, augment=True).source() for seed in range(2)]
    assert others == [apart] * 2 != [alone] * 2
    assert len(walks) == 2
