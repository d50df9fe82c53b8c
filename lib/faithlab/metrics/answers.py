"""What a score answers, looked at before a metric counts on it."""

import torch
from torch import Tensor

from faithlab.engine import Score


def ask(score: Score, keep: Tensor) -> Tensor:
    """The answers to keep-masks [B, M, F], [B, M] float64 on the masks' device; none for no images.

    Raises:
        ValueError: answers of another shape, complex, NaN or infinite.
    """
    if not keep.numel():
        return torch.zeros(keep.shape[:2], dtype=torch.float64, device=keep.device)
    answers = score(keep)
    if not isinstance(answers, Tensor) or answers.shape != keep.shape[:2]:
        came = tuple(answers.shape) if isinstance(answers, Tensor) else type(answers).__name__
        raise ValueError(
            f"expected one answer for each mask, {tuple(keep.shape[:2])}, but the score gave {came}; make the score "
            "with faithlab.engine.scorer"
        )
    if answers.is_complex():
        raise ValueError(
            f"expected answers of real numbers, but the score gave {answers.dtype}; give their size, abs()"
        )
    answers = answers.to(keep.device).double()
    if not bool(answers.isfinite().all()):
        broken = (~answers.isfinite()).any(1).nonzero().flatten().tolist()
        raise ValueError(
            f"the score of {len(broken)} of {len(answers)} images is NaN or infinite (first: image {broken[0]}); check "
            "the model and its output, or drop and count these images"
        )
    return answers
