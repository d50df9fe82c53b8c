"""The photographs of the study are fetched as they were, or not at all."""

import io
import tarfile

import pytest

from faithlab.fetch import cache, sources
from faithlab.study import places, profiles
from faithlab.zoo import photographs

THREE = {f"n0000000{i}_thing.JPEG": bytes([i]) * 9 for i in range(3)}


def archive(files, folder="imagenet-sample-images-1"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """Puts an archive in the place of the download; the study's are three photographs."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    (known := tmp_path / "known").mkdir()
    for name, content in THREE.items():
        (known / name).write_bytes(content)
    monkeypatch.setattr(photographs, "SHA256", photographs.fingerprint(known))

    def get(self, folder):
        (folder / self.name).write_bytes(get.content)
        return folder / self.name

    get.content = archive({"README.md": b"#", **THREE})
    monkeypatch.setattr(sources.Download, "get", get)
    return get


def test_photographs_are_fetched_once_and_compared(offered, tmp_path, capsys):
    target = tmp_path / "new" / "photographs"
    photographs.main([str(target)])
    assert {path.name: path.read_bytes() for path in target.iterdir()} == THREE
    assert capsys.readouterr().out.endswith(f"verified, {target}\n")
    assert [path.name for path in target.parent.iterdir()] == ["photographs"], "no scratch is left"
    offered.content = b"not asked again"
    assert photographs.fetch(target) == target


@pytest.mark.parametrize(
    "files", [dict(list(THREE.items())[:2]), {**THREE, "n00000009_more.JPEG": b"x"}, {**THREE, next(iter(THREE)): b"?"}]
)
def test_other_photographs_are_refused_and_leave_nothing(files, offered, tmp_path):
    offered.content = archive(files)
    with pytest.raises(sources.DatasetUnavailable, match="are not those of the study"):
        photographs.fetch(tmp_path / "photographs")
    assert not (tmp_path / "photographs").exists()


def test_a_folder_with_photographs_of_its_own_is_left_alone(offered, tmp_path):
    (target := tmp_path / "mine").mkdir()
    (target / "cat.JPEG").write_bytes(b"cat")
    with pytest.raises(SystemExit, match=r"has other photographs \(1\) than the 1000 of the study"):
        photographs.main([str(target)])
    assert (target / "cat.JPEG").read_bytes() == b"cat"
    assert len([*target.iterdir()]) == 1


def test_a_broken_archive_and_one_put_by_hand(offered, tmp_path):
    offered.content = b"no archive"
    with pytest.raises(sources.DatasetUnavailable, match=r"Put https://github\.com/EliSchwartz/.* into .*by-hand"):
        photographs.fetch(tmp_path / "photographs")
    place = sources.by_hand("imagenet-sample-images")
    place.mkdir(parents=True)
    (place / photographs.ARCHIVE.name).write_bytes(archive(THREE))
    assert len([*photographs.fetch(tmp_path / "photographs").iterdir()]) == 3


def test_the_study_looks_where_they_are_put():
    asked = {profiles.resolve(name, "study").get("folder") for name in places.notebooks()}
    assert asked - {None} == {photographs.FOLDER}
