"""Own model: the model-randomisation test (Adebayo et al., 2018), asked of metrics.

The explanation of a network is better than the one, by the same explainer, of a stranger: the network with the weights
of its last layers drawn anew.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from faithlab import engine, masks, stats
from faithlab.task import Task
from faithstudy.networks.degradation import layers, randomised

RANDOMISED = "layers randomised"
"""The variant of a stranger's explanations in the long table."""

STRANGER = 0.2
"""Cohen's kappa of the classes that two networks recognise, below which neither knows what the other knows."""


@dataclass(frozen=True)
class Stranger:
    """A network that has forgotten what it knew.

    Attributes:
        model: the network; None where nothing makes it forget.
        drawn: layers whose weights were drawn anew.
        layers: all layers that have weights.
        agreement: share of the inputs to which it gives the same class as before.
    """

    model: nn.Module | None
    drawn: int
    layers: int
    agreement: float

    def __str__(self) -> str:
        return f"{self.drawn} of {self.layers} layers; {self.agreement:.0%}"

    @property
    def reason(self) -> str:
        """Why there is none."""
        if not self.layers:
            return "the network has no layers whose weights could be drawn anew"
        return (
            f"with all of its {self.layers} layers drawn anew, the network gives {self.agreement:.0%} of the inputs "
            "the class that it gave before, so that nobody knows whose explanation is better"
        )


def stranger(task: Task, share: float, *, seed: int = 0) -> Stranger:
    """The network with the weights of its last layers drawn anew, until its classes say nothing of what it said before.

    Only then is it known that its explanations are no better than the network's own: one that recognises the same
    inputs may explain them as well or better. So a share of the layers is where this starts, not where it ends. The
    classes are those of these inputs; agreement is counted beyond that of chance, as Cohen's kappa.

    Args:
        task: the inputs and the network, which is not changed.
        share: of the layers, at least.
        seed: of the weights.
    """
    own, number = engine.classifier(task.model)(task.x).argmax(1), len(layers(task.model))
    first = max(1, int(masks.counts([share], number))) if number else 1
    agreement = 1.0
    for drawn in range(first, number + 1):
        model = randomised(task.model, drawn / number, keep=False, seed=seed)
        other = engine.classifier(model)(task.x).argmax(1)
        agreement = (own == other).double().mean().item()
        if stats.kappa(own, other) < STRANGER:
            return Stranger(model, drawn, number, agreement)
    return Stranger(None, number, number, agreement)


def rows(elsewhere: Mapping[str, Tensor]) -> list[tuple[dict, Tensor]]:
    """Labels and attributions of a stranger, by explainer."""
    return [({"explainer": explainer, "variant": RANDOMISED}, of) for explainer, of in elsewhere.items()]


def pairs(base: Sequence[dict], found: Callable[..., list[dict]]) -> list[tuple[dict, dict]]:
    """Each explanation and the stranger's; arguments of `faithstudy.trials.concordance.cells`."""
    other = {cell["explainer"]: cell for cell in found(variant=RANDOMISED)}
    return [(own, other[own["explainer"]]) for own in base if own["explainer"] in other]
