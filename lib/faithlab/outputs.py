"""Outputs of a model: answers [..., C] float32 and target [...] int64 -> one number per input [...].

A classifier answers with logits of C classes, of which one is right. A multi-label network answers with a logit for
each of C labels: `sigmoid` reads the target's probability. A regression network answers with numbers: `value` reads the
target's. `Logits` makes a model that answers with logits of one that answers with something else.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn


def logit(logits: Tensor, target: Tensor) -> Tensor:
    """The target's logit."""
    return logits.gather(-1, target[..., None]).squeeze(-1)


def probability(logits: Tensor, target: Tensor) -> Tensor:
    """The target's softmax probability.

    >>> probability(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor([0.5000])
    """
    return logit(logits.log_softmax(-1), target).exp()


def log_odds(logits: Tensor, target: Tensor) -> Tensor:
    """Log p / (1 - p) of the target's softmax probability p, from the logits, so that it does not overflow."""
    others = logits.scatter(-1, target[..., None], -torch.inf)
    return logit(logits, target) - others.logsumexp(-1)


def correct(logits: Tensor, target: Tensor) -> Tensor:
    """1 where the target has the highest logit (the lowest class wins a tie), else 0: the accuracy's summand."""
    return (logits.argmax(-1) == target).to(logits.dtype)


def sigmoid(logits: Tensor, target: Tensor) -> Tensor:
    """The sigmoid of the target's logit: its probability in a multi-label network.

    >>> sigmoid(torch.tensor([[0.0, 5.0]]), torch.tensor([0]))
    tensor([0.5000])
    """
    return logit(logits, target).sigmoid()


def value(answers: Tensor, target: Tensor) -> Tensor:
    """The target's number as the model answers it: of a regression [..., 1], whose target is 0, or [..., K].

    >>> value(torch.tensor([[3.5]]), torch.tensor([0]))
    tensor([3.5000])
    """
    return logit(answers, target)


OF_CLASSES = (probability, log_odds, correct, logit)
"""Outputs that need two classes or more."""
AS_ANSWERED = (value, sigmoid)
"""Outputs of what a model answers, even where that looks like probabilities of classes."""
LIBRARY = (*OF_CLASSES, *AS_ANSWERED)
"""All of these; they change nothing of what they are given."""


class Logits(nn.Module):
    """A model that answers with logits [n, C], read off the answer of another, whatever that is.

    `Logits(model, torch.log)` is for a model that answers with probabilities, `Logits(model, two_classes)` for one
    number per input, `Logits(model, lambda answer: answer.logits)` for an object. `Logits(model)` says that the answers
    are logits even if they look like probabilities.

    Args:
        model: to evaluate.
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


def checked(answer: object, rows: int, least: int = 1) -> Tensor:
    """A model's answer to so many inputs as [rows, K], with K of at least `least`; [rows] becomes [rows, 1].

    Raises:
        ValueError: it is something else; the message says how to wrap the model.
    """
    real = isinstance(answer, Tensor) and answer.is_floating_point() and answer.layout is torch.strided
    if real and not answer.is_meta and answer.shape[:1] == (rows,) and answer.ndim in (1, 2):
        logits = answer.reshape(rows, -1)
        if logits.shape[1] >= least:
            return logits
    came = f"{answer.dtype} {tuple(answer.shape)}" if isinstance(answer, Tensor) else f"a {type(answer).__name__}"
    raise ValueError(f"expected logits [{rows}, classes], but the model gave {came}{_advice(answer, rows)}")


def _advice(answer: object, rows: int) -> str:
    """How to make logits of an answer."""
    read = why = ""
    if isinstance(answer, Tensor):
        if answer.ndim == 3 and len(answer) == rows:
            read, why = "answer[:, -1]", "If these are positions x classes, take one position, such as the last"
        elif answer.ndim > 3 and len(answer) == rows:
            read, why = f"answer.mean({tuple(range(2, answer.ndim))})", "If these are classes x places, take the mean"
        elif answer.numel() == rows and answer.is_floating_point():
            read, why = (
                "two_classes(answer)",
                "If it is the logit of the second of two classes",
            )
        elif answer.ndim == rows == 1:
            read, why = f"answer.reshape(-1, {len(answer)})", "The dimension of the inputs is lost, as in squeeze()"
    else:
        named = answer.items() if isinstance(answer, Mapping) else getattr(answer, "__dict__", {}).items()
        places = enumerate(answer) if isinstance(answer, tuple | list) else named
        form = ".{}" if not isinstance(answer, Mapping | tuple | list) else "[{!r}]"
        fitting = (form.format(place) for place, part in places if getattr(part, "shape", ())[:1] == (rows,))
        read, why = f"answer{next(fitting, '.logits')}", "Take the logits out of it"
    imported = "from faithlab.outputs import Logits, two_classes"
    return f".\n{why}:\n    {imported}\n    model = Logits(model, lambda answer: {read})" if read else ""


def looks_like_probabilities(answers: Tensor) -> bool:
    """Whether no answer [n, C] is negative and every row sums to one (or 100 %), but for rounding."""
    sums = answers.double().sum(1)
    near = any(bool(((sums / whole - 1).abs() <= 0.01).all()) for whole in (1, 100))
    return near and answers.shape[1] > 1 and bool((answers >= 0).all())
