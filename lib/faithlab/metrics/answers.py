"""The numbers that a score gives for keep-masks, checked before a metric computes with them."""

import torch
from torch import Tensor

from faithlab.engine import Score


class UndefinedError(ValueError):
    """A metric that has no value, because the numbers it is computed from are not finite."""


def ask(score: Score, keep: Tensor) -> Tensor:
    """Return the scores of keep-masks [B, M, F], [B, M] float64 on the masks' device.

    Raises:
        ValueError: scores of another shape.
        UndefinedError: a score that is NaN or infinite.
    """
    if not keep.numel():
        return torch.zeros(keep.shape[:2], dtype=torch.float64, device=keep.device)
    answers = score(keep)
    if answers.shape != keep.shape[:2]:
        raise ValueError(f"expected a score of each mask, {tuple(keep.shape[:2])}, but got {tuple(answers.shape)}")
    answers = answers.to(keep.device).double()
    if not bool(answers.isfinite().all()):
        raise UndefinedError("the score is NaN or infinite for some inputs; check the model and its output")
    return answers
