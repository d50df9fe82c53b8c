"""Guides of the book as tests read them: blocks of a page by their language, and the commands that it says to type."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Guide:
    """A page of the book that says what to type."""

    text: str

    def all(self, language: str) -> list[str]:
        """Its blocks of a language, in order."""
        return re.findall(rf"```{language}\n(.*?)```", self.text, flags=re.DOTALL)

    def holding(self, language: str, words: str) -> str:
        """The one block of a language with these words."""
        (found,) = [block for block in self.all(language) if words in block]
        return found


def guide(name: str) -> Guide:
    """A page below `book`."""
    return Guide((ROOT / f"book/{name}.md").read_text(encoding="utf-8"))


def command(*words: str, folder: Path, **environment: str) -> str:
    """What a command says in a clone of the repository; that it fails is a failed test."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    outside = {
        key: value for key, value in os.environ.items() if not key.startswith(("FAITHLAB_B", "FAITHLAB_R", "MAKE"))
    }
    known = {"PATH": path, "PYTHONPATH": str(folder / "lib"), "FAITHLAB_ROOT": str(folder)}
    ran = subprocess.run(words, cwd=folder, env=outside | known | environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout + ran.stderr
