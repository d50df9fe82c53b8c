"""Labelled examples of one kind: images, time series, texts. What a model sees of them, and what their features are."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from faithlab import segments

Index = Tensor | slice | Sequence[int]


@dataclass(frozen=True)
class LabelledSet:
    """Examples with labels.

    Attributes:
        inputs: [N, *S], as they are stored.
        labels: int64 [N], indices into `classes`.
        classes: their names.
    """

    inputs: Tensor
    labels: Tensor
    classes: tuple[str, ...]

    ABSENT: ClassVar[int] = 0
    """What a removed feature becomes in the inputs of a model."""

    def __post_init__(self) -> None:
        N = len(self.inputs)
        if self.labels.shape != (N,) or self.labels.dtype != torch.int64:
            raise ValueError(f"labels must be int64 [{N}], not {self.labels.dtype} {list(self.labels.shape)}")

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: Index) -> Self:
        """Return the examples at `index` (positions, booleans or a slice), in that order."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: t[index] for name, t in tensors.items() if isinstance(t, Tensor)})

    def model_inputs(self, index: Index = slice(None)) -> Tensor:
        """Return the examples at `index` as models see them, [n, *S]."""
        return self.inputs[index]

    def features(self) -> Tensor:
        """Return the segment map of the smallest features that may be removed."""
        raise TypeError(f"{type(self).__name__} does not say what its features are")

    def present(self, index: Index = slice(None)) -> Tensor | None:
        """Return which features an example has, bool [n, F]; None: all of them."""
        return None


@dataclass(frozen=True)
class ImageSet(LabelledSet):
    """Images, uint8 [N, C, H, W], intensities 0..255. Their features are pixels.

    Attributes:
        mean: per channel, of intensities as fractions of 255.
        std: per channel, likewise.
        masks: bool [N, H, W], True for the pixels of the true explanation; None where there is none.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    masks: Tensor | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs.dtype != torch.uint8 or not len(self.mean) == len(self.std) == self.inputs.shape[1]:
            raise ValueError(f"images must be uint8, and mean and std of {self.inputs.shape[1]} channels")

    def model_inputs(self, index: Index = slice(None)) -> Tensor:
        """Return (intensity / 255 - mean) / std of the images at `index`, float32 [n, C, H, W]."""
        mean, std = (torch.tensor(numbers)[:, None, None] for numbers in (self.mean, self.std))
        return self.inputs[index].float().div_(255).sub_(mean).div_(std)

    def features(self) -> Tensor:
        """Return the pixels, [H, W]."""
        return segments.pixels(*self.inputs.shape[-2:])


@dataclass(frozen=True)
class SeriesSet(LabelledSet):
    """Time series, float32 [N, T, C], NaN in the steps that a shorter series does not have.

    Attributes:
        mean: per channel, of the training series.
        std: per channel, likewise.
        unit: what may be removed, a feature: "step", all channels of a time step together, or "value", one channel of
            one step.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    unit: Literal["step", "value"] = "step"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit not in ("step", "value"):
            raise ValueError(f"unit must be 'step' or 'value', not {self.unit!r}")

    def model_inputs(self, index: Index = slice(None)) -> Tensor:
        """Return (value - mean) / std of the series at `index`, float32 [n, T, C]; 0 where a series has no step."""
        inputs = self.inputs[index].clone().sub_(torch.tensor(self.mean)).div_(torch.tensor(self.std))
        return inputs.masked_fill_(inputs.isnan(), self.ABSENT)

    def features(self) -> Tensor:
        """Return the time steps, [T, 1], or the values, [T, C]."""
        _, T, C = self.inputs.shape
        return segments.time_steps(T) if self.unit == "step" else segments.values(T, C)

    def present(self, index: Index = slice(None)) -> Tensor | None:
        """Return which steps or values a series has, bool [n, F]; None where all series at `index` have all."""
        steps = ~self.inputs[index].isnan().any(-1)  # [n, T]
        if bool(steps.all()):
            return None
        return steps if self.unit == "step" else steps.repeat_interleave(self.inputs.shape[2], dim=1)


@dataclass(frozen=True)
class TextSet(LabelledSet):
    """Texts as token ids, int64 [N, T], padded at the end. Their features are tokens; padding is none.

    Attributes:
        vocabulary: the token of each id; id 0 is padding, id 1 the mask, id 2 an unknown word.
    """

    vocabulary: tuple[str, ...]

    PADDING: ClassVar[int] = 0
    MASK: ClassVar[int] = 1
    UNKNOWN: ClassVar[int] = 2
    ABSENT: ClassVar[int] = MASK

    def features(self) -> Tensor:
        """Return the tokens, [T]."""
        return segments.tokens(self.inputs.shape[1])

    def present(self, index: Index = slice(None)) -> Tensor:
        """Return which places hold a token, bool [n, T]: padding is no feature."""
        return self.inputs[index] != self.PADDING
