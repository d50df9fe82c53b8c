"""Trials: questions to which the right answer is known, one file a question, put to any metric.

Each takes metrics, a `faithlab.task.Task` and attributions, and returns the long table. `examine` puts metrics to
all of them, see `faithstudy.trials.examination.examine`.
"""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    # By its name and when it is asked for: else whatever imports one trial would depend on all of them.
    if name == "examine":
        return importlib.import_module("faithstudy.trials.examination").examine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
