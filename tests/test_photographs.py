"""The photographs of the study are fetched as they were, or not at all."""

import io
import tarfile
from pathlib import Path

import pytest

from faithstudy import paths, profiles
from faithstudy.data import cache, photographs, sources

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
    monkeypatch.setattr(sources.Archive, "get", get)
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
    with pytest.raises(sources.DatasetUnavailable, match=rf"the {len(files)} photographs in it are not the 1000 of"):
        photographs.fetch(tmp_path / "new" / "photographs")
    assert not [*(tmp_path / "new").iterdir()], "neither they nor a scratch folder"


@pytest.mark.parametrize("mine", ["cat.JPEG", "other.jpg", "n01440764/n01440764_1.JPEG", "notes.txt"])
def test_a_folder_with_something_else_is_left_alone(mine, offered, tmp_path):
    target = tmp_path / "mine"
    (target / mine).parent.mkdir(parents=True)
    (target / mine).write_bytes(b"mine")
    with pytest.raises(SystemExit, match=r"images, and they are not the 1000 of the study"):
        photographs.main([str(target)])
    assert [path.read_bytes() for path in target.rglob("*.*")] == [b"mine"]


def test_what_the_study_would_read_beside_them_is_no_part_of_them(offered, tmp_path):
    target = photographs.fetch(tmp_path / "photographs")
    (target / "README.md").write_text("no image")
    assert photographs.fetch(target) == target
    (target / "n00000009").mkdir()
    (target / "n00000009" / "one.png").write_bytes(b"more")
    with pytest.raises(sources.DatasetUnavailable, match="has 4 images"):
        photographs.fetch(target)


def test_an_empty_folder_and_a_link_to_one_are_filled_and_a_file_is_refused_before_anything_is_fetched(
    offered, tmp_path
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    assert photographs.fetch(tmp_path / "link") == tmp_path / "empty"
    assert len([*(tmp_path / "link").iterdir()]) == 3
    (tmp_path / "file").write_text("")
    offered.content = None  # nothing can be made of it
    with pytest.raises(sources.DatasetUnavailable, match="are not the 1000"):
        photographs.fetch(tmp_path / "file")
    with pytest.raises(SystemExit, match="home directory"):
        photographs.main(["~no-such-user-here/photographs"])


def test_a_fetch_that_is_interrupted_leaves_all_or_nothing(offered, tmp_path, monkeypatch):
    target = tmp_path / "new" / "photographs"
    count = iter(range(9))

    def rename(self, to, original=Path.rename):
        if next(count) == 1:
            raise KeyboardInterrupt
        return original(self, to)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        photographs.fetch(target)
    assert not [*target.parent.iterdir()]
    assert len([*photographs.fetch(target).iterdir()]) == 3


@pytest.mark.parametrize("damage", [b"no archive", archive(THREE)[:60] + b"?" * 40 + archive(THREE)[100:]])
def test_a_broken_archive_is_said_with_what_to_do_and_one_put_by_hand_is_taken(damage, offered, tmp_path):
    offered.content = damage
    place = cache.folder() / "by-hand/imagenet-sample-images" / photographs.ARCHIVE.name
    with pytest.raises(sources.DatasetUnavailable) as said:
        photographs.fetch(tmp_path / "photographs")
    for part in (photographs.ARCHIVE.addresses[0], place.parent, place.name):
        assert str(part) in str(said.value)
    place.parent.mkdir(parents=True)
    place.write_bytes(archive(THREE))
    assert len([*photographs.fetch(tmp_path / "photographs").iterdir()]) == 3


def test_who_lacks_them_is_told_the_command_first(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = {"trace/networks": {"folder": photographs.FOLDER}}
    with pytest.raises(profiles.ParameterError, match=r"\(folder\): python -m faithstudy\.data\.photographs fetches"):
        profiles.require_files(asked)
    (tmp_path / "imagenet-sample-images").mkdir()
    (tmp_path / "imagenet-sample-images/cat.txt").write_text("")
    with pytest.raises(profiles.ParameterError) as said:
        profiles.require_files(asked)
    assert "zoo.photographs" not in str(said.value), "it would refuse"
    assert not photographs.are_lacking("~no-such-user-here/photographs")
    assert not photographs.are_lacking(None)


def test_the_study_looks_where_they_are_put():
    asked = {profiles.resolve(name, "study").get("folder") for name in paths.notebooks()}
    assert asked - {None} == {photographs.FOLDER}
