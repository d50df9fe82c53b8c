"""What is explained and measured: inputs, their target, and the networks that are evaluated on them.

A `Task` hands out `score` by output, baseline and network. Metrics, searches and meta-evaluation tests take a task, so
that each evaluates the right network in the right way without being told how.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from faithlab import baselines, engine, masks
from faithlab.outputs import LIBRARY, probability

Network = Literal["original", "fine-tuned", "retrained"]
"""The network that is explained; the same one fine-tuned on random masks (F-Fidelity, eq. 5); the one that ROAR
retrained without what an explainer calls relevant."""

_MOST = 8  # scorers that a task keeps, each with a copy of the network


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Inputs, and the network that is evaluated on them, with its companions.

    Attributes:
        model: the network that is explained, logits [n, C] of inputs [n, *S].
        x: inputs [B, *S], on the model's device.
        target: [B] int64, the class that everything is about.
        segments: the features, see `faithlab.segments`.
        dataset: for tables: the data set.
        network: for tables: what the network is.
        training_seed: for tables: the seed it was trained with; every seed is a network of its own.
        images: [B] integers, each input's index in its data set, which also decides its random numbers; None: 0..B-1.
        present: [B, F] bool, which features an input has; None: all.
        tuned: the network fine-tuned on random masks; None: there is none.
        retrained: ROAR's network of every explainer that has one.
        baselines: what a baseline's name stands for with these inputs, see `faithlab.baselines.NAMED`. For token
            ids all of them are a token.
        precision: of forward passes; None: the model's own. Not used where a metric needs exact answers.
        batch_size: masked inputs per forward pass; None chooses for the device.
    """

    model: nn.Module
    x: Tensor
    target: Tensor
    segments: Tensor
    dataset: str = "given inputs"
    network: str = "given network"
    training_seed: int | None = None
    images: Tensor | None = None
    present: Tensor | None = None
    tuned: nn.Module | None = None
    retrained: Mapping[str, nn.Module] = field(default_factory=dict)
    baselines: Mapping[str, engine.Baseline] = field(default_factory=lambda: baselines.NAMED)
    precision: torch.dtype | None = None
    batch_size: int | None = None
    # By what they were made of: that, the baseline, and the score.
    _scorers: dict[tuple, tuple] = field(default_factory=dict, init=False, repr=False)
    # By the name of a baseline and the mark of the inputs, the baseline of all of them.
    _wholes: dict[tuple, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        engine.check_inputs(self.x, self.target)
        images = torch.arange(len(self.x)) if self.images is None else torch.as_tensor(self.images)
        if images.shape != self.x.shape[:1] or images.dtype not in (torch.int64, torch.int32, torch.int16, torch.uint8):
            raise ValueError(f"expected images as {len(self.x)} integers, but got {images.dtype} {tuple(images.shape)}")
        object.__setattr__(self, "images", images.long())

    def __getstate__(self) -> dict[str, Any]:
        """All but what can be made again, so that a task can be sent to another process."""
        return vars(self) | {"_scorers": {}, "_wholes": {}}

    @property
    def labels(self) -> dict[str, str | int | None]:
        """Labels of its rows in the long table."""
        return {"dataset": self.dataset, "network": self.network, "training_seed": self.training_seed}

    @property
    def padded(self) -> bool:
        """Whether an input lacks features that others have."""
        return self.present is not None and not bool(self.present.all())

    def part(self, places: Tensor) -> "Task":
        """The same networks with some of the inputs, by positions [n] or a mask [B], each with its own baseline."""
        places = torch.as_tensor(places, device=self.x.device)
        return dataclasses.replace(
            self,
            x=self.x[places],
            target=self.target[places],
            images=self.images[places.to(self.images.device)],
            present=None if self.present is None else self.present[places.to(self.present.device)],
            baselines={name: functools.partial(self._of_part, name, places) for name in self.baselines},
        )

    def _of_part(self, name: str, places: Tensor, x: Tensor) -> Tensor:
        """A baseline of some inputs. That of all is made once: it may have been made for exactly these."""
        if not torch.equal(self.x[places], x):
            raise ValueError("the inputs of the task that this is a part of have changed since; take the part again")
        key = name, _mark(self.x)
        if key not in self._wholes:
            self._wholes[key] = engine.stand_in_of(self.baselines[name], self.x, self.segments)
        whole = self._wholes[key]
        return whole[places] if len(whole) == len(self.x) else whole

    def missing(self, baseline: str, network: Network, explainer: str | None = None) -> str | None:
        """Why there is no such network or baseline; None: there is."""
        if network == "fine-tuned" and self.tuned is None:
            return "no network that was fine-tuned on random masks"
        if network == "retrained" and explainer not in self.retrained:
            return f"no network retrained for {explainer or 'an explainer'}"
        return None if baseline in self.baselines else f"no baseline {baseline!r} for these inputs"

    def score(
        self,
        output: engine.Output | Sequence[engine.Output] = probability,
        baseline: str = "zero",
        network: Network = "original",
        *,
        explainer: str | None = None,
        exact: bool = False,
    ) -> engine.Score:
        """Return the scores of keep-masks, see `faithlab.engine.scorer`.

        The last few are kept. One is used again while baseline, inputs, target and segments have the same values, the
        network's weights were not written to, and the network still gives the same answer to the first input. A score
        that was handed out goes on with what it was made of.

        Args:
            output: what to read off, or several. Only scores of the library's own outputs are kept.
            baseline: what replaces a removed feature, by its name in `baselines`.
            network: which network.
            explainer: whose retrained network.
            exact: float32, whatever the task's precision; on a CUDA device see `faithlab.engine.scorer`.

        Raises:
            ValueError: this task has no such network or baseline, and what `faithlab.engine.scorer` raises.
        """
        if why := self.missing(baseline, network, explainer):
            raise ValueError(f"{self.network} on {self.dataset}: {why}; give it to the Task")
        precision = torch.float32 if exact else self.precision
        models = {"original": self.model, "fine-tuned": self.tuned, "retrained": self.retrained.get(explainer)}
        model, stand_in = models[network], engine.stand_in_of(self.baselines[baseline], self.x, self.segments)
        weights = (*model.parameters(), *model.buffers()) if isinstance(model, nn.Module) else ()
        held = (model, self.x, self.target, self.segments, *weights)  # so that nothing else gets their ids
        output = output if callable(output) else tuple(output)
        pure = all(any(each is known for known in LIBRARY) for each in (output if type(output) is tuple else (output,)))
        key = (output, baseline, precision, *map(_mark, held)) if pure else ()
        kept, now = self._scorers.pop(key, None), (stand_in, self.x, self.target, self.segments)
        if kept is None or not all(map(torch.equal, kept[1], now)) or not kept[-1].holds(model):
            options = {"segments": self.segments, "output": output, "precision": precision}
            options |= {"baseline": lambda x: stand_in, "batch_size": self.batch_size}
            kept = held, tuple(of.clone() for of in now), engine.scorer(model, self.x, self.target, **options)
        if pure:
            self._scorers[key] = kept
            for oldest in list(self._scorers)[:-_MOST]:
                del self._scorers[oldest]
        return kept[-1]


def _mark(part: object) -> tuple[int, int]:
    """What changes when a tensor is replaced or written to."""
    return id(part), part._version if isinstance(part, Tensor) and not part.is_inference() else 0


_ODD = (-7046029254386353131, 4354685564936845355, -4417276706812531889)  # mixed by multiplication, modulo 2 ** 64


class Remembered:
    """A score of several outputs that evaluates the network on a mask only once.

    A mask is known by a 64-bit number made of sums of random numbers of its kept features: of ten million different
    masks, two are taken for one with a probability of 3e-6. When more than `most` answers are known, all are forgotten.

    Args:
        score: of several outputs.
        outputs: how many.
        most: answers to keep.
    """

    def __init__(self, score: engine.Score, outputs: int, most: int = 1 << 22):
        self._score, self._outputs, self._most = score, outputs, most
        self.classes, self._check = getattr(score, "classes", None), getattr(score, "check", None)
        self._known = torch.empty(0, dtype=torch.int64)
        self.asked = 0  # masks that the network was evaluated on

    def of(self, output: int) -> engine.Score:
        """The score of one of the outputs."""

        def score(keep: Tensor, positions: Tensor | None = None) -> Tensor:
            return self(keep, positions)[..., output]

        score.classes = self.classes
        return score

    def __call__(self, keep: Tensor, positions: Tensor | None = None) -> Tensor:
        """Keep [B, M, F] bool -> [B, M, outputs], or keep [R, F] and positions [R] -> [R, outputs]."""
        if self._check:
            self._check(keep, positions)
        shape = keep.shape[:-1]
        if positions is None:
            positions = torch.arange(shape[0], device=keep.device).repeat_interleave(shape[1])
        keep, positions = keep.reshape(-1, keep.shape[-1]), positions.to(keep.device)
        keys, place = _keys(keep, positions).unique(return_inverse=True)
        if not len(self._known) or self._known.device != keys.device or len(self._known) + len(keys) > self._most:
            self._known, self._answers = (
                keys[:0],
                torch.empty(0, self._outputs, dtype=torch.float32, device=keys.device),
            )
        new = ~torch.isin(keys, self._known)
        if bool(new.any()):
            first = torch.full_like(keys, len(place))
            first = first.scatter_reduce(0, place, torch.arange(len(place), device=keys.device), "amin")[new]
            answers = self._score(keep[first], positions[first]).to(self._answers)
            self.asked += len(first)
            self._known, order = torch.cat([self._known, keys[new]]).sort()
            self._answers = torch.cat([self._answers, answers])[order]
        return self._answers[torch.searchsorted(self._known, keys)][place].view(*shape, self._outputs)


def _keys(keep: Tensor, positions: Tensor) -> Tensor:
    """A number for each mask [R, F] of an input [R], [R] int64."""
    features = keep.shape[1]
    largest = 1 << (52 - features.bit_length())  # so small that their sums are exact, the same in every batch
    generator = torch.Generator().manual_seed(0)
    random = torch.randint(largest, (features, 2), generator=generator).double().to(keep.device)
    rows = keep.split(max(1, (masks.BUDGET >> 3) // features))
    sums = torch.cat([part.double() @ random for part in rows]).long()
    return sums[:, 0] * _ODD[0] + sums[:, 1] * _ODD[1] + positions * _ODD[2]
