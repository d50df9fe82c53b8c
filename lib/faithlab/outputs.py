"""What is read off a model's answer: logits [..., C] float32 and target [...] int64 -> one number per input [...].

`Logits` makes a model that answers with logits of one that answers with something else.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn


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


def correct(logits: Tensor, target: Tensor) -> Tensor:
    """1 where the target has the highest logit (the lowest class wins a tie), else 0: the accuracy's summand."""
    return (logits.argmax(-1) == target).to(logits.dtype)


class Logits(nn.Module):
    """A model that answers with logits [n, C], read off the answer of another, whatever that is.

    `Logits(model, torch.log)` is for a model that answers with probabilities, `Logits(model, two_classes)` for one
    number per input, `Logits(model, lambda answer: answer.logits)` for an object. `Logits(model)` says that the answers
    are logits even if they look like probabilities.

    Args:
        model: to ask.
        read: the logits in its answer; None: the answer as it is.
    """

    def __init__(self, model: nn.Module, read: Callable[..., Tensor] | None = None):
        super().__init__()
        self.model, self.read = model, read

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        answer = self.model(x)
        return answer if self.read is None else self.read(answer)


def two_classes(logit: Tensor) -> Tensor:
    """Logits [n, 2] of two classes from the second one's alone, [n] or [n, 1]: the first one's is 0."""
    z = logit.reshape(len(logit), 1)
    return torch.cat([torch.zeros_like(z), z], 1)
