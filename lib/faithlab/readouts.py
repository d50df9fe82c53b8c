"""What is read off a model's answer: logits [..., C] float32 and target [...] int64 -> one number per input [...]."""

import torch
from torch import Tensor


def logit(logits: Tensor, target: Tensor) -> Tensor:
    """The target's logit."""
    return logits.gather(-1, target[..., None]).squeeze(-1)


def probability(logits: Tensor, target: Tensor) -> Tensor:
    """The target's softmax probability."""
    return logit(logits.log_softmax(-1), target).exp()


def log_odds(logits: Tensor, target: Tensor) -> Tensor:
    """Log p / (1 - p) of the target's softmax probability p, from the logits, so that it does not overflow."""
    others = logits.scatter(-1, target[..., None], -torch.inf)
    return logit(logits, target) - others.logsumexp(-1)


def hit(logits: Tensor, target: Tensor) -> Tensor:
    """1 where the target has the highest logit (the lowest class wins a tie), else 0: the accuracy's summand."""
    return (logits.argmax(-1) == target).to(logits.dtype)
