"""What is explained and measured: inputs, their target, and the networks that are asked about them.

A `Task` hands out `score` by output, baseline and network, and keeps the scorers that it made. Metrics, searches
and trials are put to a task, so that each of them asks rightly without being told how.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from faithlab import baselines, engine, masks, preparation
from faithlab.outputs import probability

Network = Literal["original", "fine-tuned", "retrained"]
"""The network that is explained; the same one fine-tuned on random masks (F-Fidelity, eq. 5); the one that ROAR
retrained without what an explainer calls relevant."""


@dataclass(frozen=True, eq=False)
class Task:
    """Inputs, and the network that is asked about them, with its companions.

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
        precision: of forwards; None: the model's own. Where a metric asks for exact answers it is not used.
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
    _scorers: dict[tuple, engine.Score] = field(default_factory=dict, init=False, repr=False)
    # The baseline and the network of each scorer.
    _held: dict[tuple, tuple[object, object]] = field(default_factory=dict, init=False, repr=False)
    # What the scorers were made of, as it was: the inputs, and each network.
    _asked: dict[object, object] = field(default_factory=dict, init=False, repr=False)
    # By the name of a baseline, the inputs as they were, and the baseline of all of them.
    _stand_ins: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        engine.check_inputs(self.x)
        try:
            given = torch.arange(len(self.x)) if self.images is None else torch.as_tensor(self.images)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            raise ValueError(
                f"expected images as integers, each input's index in its data set, but got {self.images!r:.80}"
            ) from None
        if (
            given.shape != self.x.shape[:1]
            or given.is_floating_point()
            or given.is_complex()
            or given.dtype == torch.bool
        ):
            raise ValueError(
                f"expected images as {len(self.x)} integers, each input's index in its data set, but got "
                f"{given.dtype} {tuple(given.shape)}"
            )
        object.__setattr__(self, "images", given.long())
        there = self.present
        if there is not None and not (isinstance(there, Tensor) and there.dtype == torch.bool and there.ndim == 2):
            came = f"{there.dtype} {tuple(there.shape)}" if isinstance(there, Tensor) else type(there).__name__
            raise ValueError(f"expected present as a bool tensor, inputs x features, or None for all, but got {came}")
        named = self.baselines if isinstance(self.baselines, Mapping) else {"": None}
        if not all(callable(baseline) for baseline in named.values()):
            raise TypeError(f"expected baselines as functions by name, but got {self.baselines!r}")

    def _forget_what_changed(self, network: nn.Module) -> None:
        """Drop all scorers if inputs, or a network that is asked again, are not as they were, or nobody can tell."""
        now = {"inputs": (self.x, self.target, self.segments), network: preparation.mark(network)}
        changed = any(
            leaves is None or not preparation.alike(self._asked[key], leaves)
            for key, leaves in now.items()
            if key in self._asked
        )
        if changed:
            for held in (self._scorers, self._held, self._asked, self._stand_ins):
                held.clear()
        for key, leaves in now.items():
            if key not in self._asked:
                self._asked[key] = () if leaves is None else preparation.kept(leaves)

    @property
    def labels(self) -> dict[str, str | int | None]:
        """Of its rows in the long table."""
        return {"dataset": self.dataset, "network": self.network, "training_seed": self.training_seed}

    @property
    def padded(self) -> bool:
        """Whether an input lacks features that others have."""
        return self.present is not None and not bool(self.present.all())

    def part(self, places: Tensor) -> "Task":
        """The same networks with some of the inputs, at positions [n] int64, each with its own baseline.

        Raises:
            ValueError: what is no positions of inputs.
        """
        try:
            places = torch.as_tensor(places, device=self.x.device)
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(f"expected positions of inputs, such as [0, 2], but got {places!r}") from None
        if places.dtype != torch.int64 or places.ndim != 1 or not bool(((places >= 0) & (places < len(self.x))).all()):
            raise ValueError(f"expected positions of inputs, 0..{len(self.x) - 1}, int64, but got {places}")
        at = places.to(self.images.device)
        present = None if self.present is None else self.present[places.to(self.present.device)]
        return dataclasses.replace(
            self,
            x=self.x[places],
            target=self.target[places],
            images=self.images[at],
            present=present,
            baselines={name: functools.partial(self._of_part, name, places) for name in self.baselines},
        )

    def _of_part(self, name: str, places: Tensor, x: Tensor) -> Tensor:
        """A baseline of some inputs. That of all is made once: it may have been made for exactly these."""
        if not torch.equal(self.x[places], x):
            raise ValueError("the inputs of the task that this is a part of have changed since; take the part again")
        of, whole = self._stand_ins.get(name, (None, None))
        if of is None or not torch.equal(of, self.x):
            of = self.x.clone()
            whole = engine.stand_in_of(self.baselines[name], of, self.segments)
            self._stand_ins[name] = of, whole
        return whole[places] if len(whole) == len(self.x) else whole

    def missing(self, baseline: str, network: Network, explainer: str | None = None) -> str | None:
        """Why a network or a baseline cannot be asked; None: it can."""
        if network == "fine-tuned" and self.tuned is None:
            return "no network that was fine-tuned on random masks"
        if network == "retrained" and explainer not in self.retrained:
            return f"no network retrained for {explainer or 'an explainer'}"
        if baseline not in self.baselines:
            return f"no baseline {baseline!r} for these inputs"
        return None

    def score(
        self,
        output: engine.Output | Sequence[engine.Output] = probability,
        baseline: str = "zero",
        network: Network = "original",
        *,
        explainer: str | None = None,
        exact: bool = False,
    ) -> engine.Score:
        """The answers to keep-masks, see `faithlab.engine.scorer`; made once, and anew if something has changed.

        Each call looks whether the network, the inputs, the target and the segments are as they were, and whether the
        baseline is the same function; if not, or where nobody can tell, as with a network that has hooks, scorers are
        made anew. One that was handed out before answers for what it was made of, also of its baseline.

        Args:
            output: what to read off, or several.
            baseline: what replaces a removed feature, by its name in `baselines`.
            network: which network to ask.
            explainer: whose retrained network.
            exact: float32, whatever the task's precision; on a CUDA device see `faithlab.engine.scorer`.

        Raises:
            ValueError: this task has no such network or baseline, and what `faithlab.engine.scorer` raises.
        """
        if why := self.missing(baseline, network, explainer):
            raise ValueError(f"{self.network} on {self.dataset}: {why}; give it to the Task")
        output = output if callable(output) else tuple(output)
        precision = torch.float32 if exact else self.precision
        models = {"original": self.model, "fine-tuned": self.tuned, "retrained": self.retrained.get(explainer)}
        model, stand_in = models[network], self.baselines[baseline]
        key = (output, id(stand_in), id(model), precision)
        changes = isinstance(model, nn.Module) and isinstance(self.target, Tensor)
        if changes and isinstance(self.segments, Tensor):  # else the scorer says what is wrong
            self._forget_what_changed(model)
        if key not in self._scorers:
            self._scorers[key] = engine.scorer(
                model,
                self.x,
                self.target,
                segments=self.segments,
                baseline=stand_in,
                output=output,
                precision=precision,
            )
            self._held[key] = stand_in, model  # so that nothing else gets their ids
        return self._scorers[key]


_ODD = (-7046029254386353131, 4354685564936845355, -4417276706812531889)  # mixed by multiplication, modulo 2 ** 64


class Remembered:
    """A score of several outputs that asks the network about a mask only once.

    A mask is known by a 64-bit number made of sums of random numbers of its kept features: of ten million different
    masks, two are taken for one with a probability of 3e-6. When more than `most` answers are known, all are forgotten.

    Args:
        score: of several outputs.
        outputs: how many.
        most: answers to keep.
    """

    def __init__(self, score: engine.Score, outputs: int, most: int = 1 << 22):
        self._score, self._readouts, self._most = score, outputs, most
        self._numbers: Tensor | None = None
        self.classes = getattr(score, "classes", None)
        self._check = getattr(score, "check", lambda keep, positions: None)
        self.asked = 0  # masks that the network was asked about

    def of(self, output: int) -> engine.Score:
        """The score of one of the outputs, with its errors."""

        def score(keep: Tensor, positions: Tensor | None = None) -> Tensor:
            return self(keep, positions)[..., output]

        score.classes = self.classes
        return score

    def __call__(self, keep: Tensor, positions: Tensor | None = None) -> Tensor:
        """Keep [B, M, F] bool -> [B, M, outputs], or keep [R, F] and positions [R] -> [R, outputs]."""
        self._check(keep, positions)
        shape = keep.shape[:-1]
        if positions is None:
            positions = torch.arange(shape[0], device=keep.device).repeat_interleave(shape[1])
        keep, positions = keep.reshape(-1, keep.shape[-1]), positions.to(keep.device)
        keys = self._keys(keep, positions)
        different, place = keys.unique(return_inverse=True)
        at = torch.searchsorted(self._known, different).clamp(max=max(0, len(self._known) - 1))
        new = self._known[at] != different if len(self._known) else torch.ones_like(different, dtype=torch.bool)
        answers = torch.empty(len(different), self._readouts, dtype=torch.float32, device=keep.device)
        answers[~new] = self._answers[at[~new]]
        if bool(new.any()):
            first = torch.full((len(different),), keys.numel(), device=keep.device)
            first = first.scatter_reduce(0, place, torch.arange(keys.numel(), device=keep.device), "amin")[new]
            asked = self._score(keep[first], positions[first])
            self.asked += len(first)
            answers[new] = asked.to(answers)
            self._keep(different[new], answers[new])
        return answers[place].view(*shape, self._readouts)

    def _keys(self, keep: Tensor, positions: Tensor) -> Tensor:
        """A number for each mask [R, F] of an image [R], [R] int64."""
        features = keep.shape[1]
        if self._numbers is None or self._numbers.device != keep.device:
            self._known = torch.empty(0, dtype=torch.int64, device=keep.device)
            self._answers = torch.empty(0, self._readouts, dtype=torch.float32, device=keep.device)
            # So small that their sums are exact, which makes a mask's number the same in every batch.
            largest = 1 << (52 - features.bit_length())
            generator = torch.Generator().manual_seed(0)
            self._numbers = torch.randint(largest, (features, 2), generator=generator).double().to(keep.device)
        rows = keep.split(max(1, (masks.BUDGET >> 3) // features))
        sums = torch.cat([part.double() @ self._numbers for part in rows]).long()
        return sums[:, 0] * _ODD[0] + sums[:, 1] * _ODD[1] + positions * _ODD[2]

    def _keep(self, keys: Tensor, answers: Tensor) -> None:
        if len(self._known) + len(keys) > self._most:
            self._known, self._answers = keys, answers  # sorted already
            return
        self._known, order = torch.cat([self._known, keys]).sort()
        self._answers = torch.cat([self._answers, answers])[order]
