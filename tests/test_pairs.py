"""No edit of a script or of its notebook is lost when the two are brought together."""

import os
import shutil
import subprocess
from pathlib import Path

import jupytext
import nbformat
import pytest

from faithstudy import pairs

SCRIPT = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A title

# %% tags=["parameters"]
profile = "quick"

# %%
print("found")
"""


@pytest.fixture
def pair(tmp_path, monkeypatch) -> Path:
    """The script of a notebook; its pair is beside it."""
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(__file__).parents[1] / "pyproject.toml", tmp_path)
    script = tmp_path / "notebooks/part/a.py"
    script.parent.mkdir(parents=True)
    (tmp_path / "notebooks/profiles.yml").touch()
    script.write_text(SCRIPT)
    assert pairs.main([]) == 0
    for command in ("init -q", "add -A", "-c user.name=n -c user.email=e commit -qm one"):
        subprocess.run(["git", *command.split()], check=True)
    return script


def edit(path: Path, old: str, new: str, older: bool = False) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    if older:
        os.utime(path, (1_700_000_000,) * 2)


def said(path: Path) -> str:
    return "\n".join(cell.source for cell in jupytext.read(path).cells)


@pytest.mark.parametrize("face", pairs.FACES)
def test_the_face_that_was_edited_counts_however_old_it_is(pair, capsys, face):
    edited, other = pair.with_suffix(f".{face}"), pair.with_suffix(".ipynb" if face == "py" else ".py")
    edit(edited, "A title", "My title", older=True)
    assert pairs.unheard(["part/a"]) == (
        ["notebooks/part/a.ipynb was edited, and notebooks/part/a.py, which is what runs, has not got it: make sync"]
        if face == "ipynb"
        else []
    )
    assert pairs.main([]) == 0
    assert "part/a: its two faces agree again" in capsys.readouterr().out
    assert "My title" in said(other)
    assert said(other) == said(edited)
    before = pair.read_bytes(), pair.with_suffix(".ipynb").read_bytes()
    assert pairs.main([]) == 0
    assert capsys.readouterr().out == ""
    assert before == (pair.read_bytes(), pair.with_suffix(".ipynb").read_bytes())
    edit(edited, "found", "found again", older=True)  # and once more before it is committed
    assert pairs.main([]) == 0
    assert "found again" in said(other)


def test_where_both_were_edited_nothing_is_written(pair, capsys):
    notebook = pair.with_suffix(".ipynb")
    edit(pair, "found", "mine")
    edit(notebook, "found", "yours")
    before = pair.read_bytes(), notebook.read_bytes()
    assert pairs.main([]) == 1
    error = capsys.readouterr().err
    assert "make sync NAME=part/a TAKE=py" in error
    assert before == (pair.read_bytes(), notebook.read_bytes())
    assert pairs.unheard(["part/a"])
    assert pairs.main(["part/a", "--take", "ipynb"]) == 0
    assert said(pair) == said(notebook)
    assert "yours" in said(pair)


def test_outputs_are_removed_and_count_as_no_edit(pair, capsys):
    path = pair.with_suffix(".ipynb")
    notebook = nbformat.read(path, as_version=4)
    ids = [cell.id for cell in notebook.cells]
    notebook.cells[-1].execution_count = 3
    notebook.cells[-1].outputs = [nbformat.v4.new_output("stream", text="found")]
    nbformat.write(notebook, path)
    edit(pair, "A title", "My title", older=True)
    assert pairs.unheard(["part/a"]) == []
    assert pairs.main([]) == 0
    notebook = nbformat.read(path, as_version=4)
    assert "My title" in notebook.cells[0].source
    assert (notebook.cells[-1].outputs, notebook.cells[-1].execution_count) == ([], None)
    assert [cell.id for cell in notebook.cells][1:] == ids[1:]
    with pytest.raises(SystemExit, match="2"):
        pairs.main(["part/b"])
    assert "There are: part/a" in capsys.readouterr().err
