"""The only place that runs a model on masked inputs.

`scorer` closes over a model, a batch of inputs and what to read off; the function it returns takes keep-masks and
gives numbers. Metrics are arithmetic on these numbers. What makes it fast is here and nowhere else: BatchNorm folded
into the convolutions, channels-last weights, bfloat16 where asked, full forwards filled with images x masks.

Memory: beside the model, the inputs and the caller's masks, a score call holds one block of at most `rows` masked
inputs and the activations of one forward over them, whatever the number of images and masks.
"""

import copy
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.fx.experimental.optimization import fuse

from faithlab import references
from faithlab import segments as segment_maps
from faithlab.readouts import probability

Score = Callable[..., Tensor]
"""Keep-masks to one number for each, float32; True = kept. `score(keep)` takes as many masks for every input,
[B, M, F] bool -> [B, M]; `score(keep, images)` takes any pairs, [R, F] bool and the inputs' positions [R] -> [R]."""

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # element size -> integers of that size

Readout = Callable[[Tensor, Tensor], Tensor]
Reference = Callable[[Tensor], Tensor]


def native_precision(device: torch.device | str = "cpu") -> torch.dtype:
    """The fastest precision that the device computes natively: bfloat16 if it has instructions for it, else float32."""
    if torch.device(device).type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    native = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if native else torch.float32


def prepare(model: nn.Module, precision: torch.dtype = torch.float32) -> nn.Module:
    """A copy of a model made for fast forwards: eval mode, BatchNorm folded, channels-last, in `precision`.

    The copy computes the same function up to rounding. A model whose graph cannot be traced keeps its BatchNorm.
    """
    model = copy.deepcopy(model).eval().requires_grad_(False)
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                model = fuse(model)
        except Exception:
            # torch.fx raises whatever the model's own code raises on a symbolic input. Folding is an optimisation:
            # the unfolded model computes the same function.
            pass
    return model.to(precision).to(memory_format=torch.channels_last)


def scorer(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    *,
    segments: Tensor,
    reference: Reference = references.zero,
    readout: Readout = probability,
    precision: torch.dtype = torch.float32,
    rows: int | None = None,
) -> Score:
    """A function from keep-masks to the model's answers on the masked inputs.

    Args:
        model: maps inputs [n, *S] to logits [n, C].
        x: inputs [B, *S], on the model's device.
        target: [B] int64, the class to read off.
        segments: which elements form one feature, see `faithlab.segments`; F features.
        reference: what stands in for a removed feature, see `faithlab.references`.
        readout: what to read off the logits, see `faithlab.readouts`.
        precision: of the forward; the readout is always computed in float32.
        rows: masked inputs per forward; None chooses for the device. Halved and tried again when memory runs out.

    Returns:
        score: keep [B, M, F] bool -> [B, M] float32, or keep [R, F] bool and images [R] -> [R] float32, see `Score`.

    Raises:
        ValueError: (here) shapes that do not fit, NaN in x; (from score) a mask of the wrong shape or type, a target
            that is no class of the model, NaN in the model's answer.
    """
    if x.shape[:1] != target.shape or target.dtype != torch.int64:
        raise ValueError(
            f"expected one int64 target per input, shape {tuple(x.shape[:1])}, but got "
            f"{target.dtype} {tuple(target.shape)}"
        )
    if x.is_floating_point() and bool(x.isnan().any()):
        raise ValueError("the inputs hold NaN; drop or repair them before scoring")
    features = segment_maps.count(segments)
    try:
        segments.expand(x.shape[1:])
    except RuntimeError:
        raise ValueError(
            f"segments {tuple(segments.shape)} do not broadcast to the shape of one input {tuple(x.shape[1:])}"
        ) from None
    stand_in = reference(x)
    if x.is_floating_point():
        x, stand_in = x.to(precision), stand_in.to(precision)
    # Two numbers chosen between by their bits, other ^ ((one ^ other) & mask): exact for any number, and several times
    # faster on a CPU than torch.where, whose mask has another element size.
    kind = _BITS[x.element_size()]
    # One stand-in per input or one for all, its other sizes as small as the reference gave them.
    stand_in = stand_in.to(x.dtype).view(*[1] * (x.ndim - stand_in.ndim), *stand_in.shape).contiguous().view(kind)
    difference = x.contiguous().view(kind) ^ stand_in
    spread = segment_maps.spreading(segments, x.device)
    runner = prepare(model, precision)
    lowest, highest = (int(target.min()), int(target.max())) if len(target) else (0, 0)
    limit = rows or _rows(x)

    @torch.inference_mode()
    def score(keep: Tensor, images: Tensor | None = None) -> Tensor:
        if images is not None:
            _check_pairs(keep, images, len(x), features)
            images = images.to(x.device)
            return ask(keep[:, None], lambda part: images[part])[:, 0]
        if keep.dtype != torch.bool or keep.ndim != 3 or keep.shape[::2] != (len(x), features):
            raise ValueError(
                f"expected a boolean keep-mask [{len(x)}, masks, {features}], but got {keep.dtype} {tuple(keep.shape)}"
            )
        return ask(keep, lambda part: part)

    def ask(keep: Tensor, inputs: Callable[[slice], slice | Tensor]) -> Tensor:
        """Keep-masks [n, M, F] of the inputs at n places -> [n, M]; `inputs` says which inputs a slice of n means."""
        nonlocal limit
        answers = torch.empty(keep.shape[:2], device=x.device)
        for places, masks in _blocks(*keep.shape[:2], limit):
            pending = [(places, masks)]
            while pending:
                i, m = pending.pop()
                try:
                    answers[i, m] = _answer(keep[i, m], inputs(i))
                except (torch.OutOfMemoryError, RuntimeError) as error:
                    size = (i.stop - i.start) * (m.stop - m.start)
                    if size == 1 or not _out_of_memory(error):
                        raise
                    limit = min(limit, (size + 1) // 2)
                    pending += [_within(i, m, part) for part in _blocks(i.stop - i.start, m.stop - m.start, limit)]
        # Asked once for all blocks: on a GPU each such question waits for the device.
        if bool(answers.isnan().any()):
            raise ValueError(
                f"the model answered NaN (or an infinite logit) to {int(answers.isnan().sum())} of {answers.numel()} "
                "masked inputs; check its weights and, in a low precision, its range"
            )
        return answers

    def _answer(keep: Tensor, images: slice | Tensor) -> Tensor:
        # All bits where kept, none where removed; as integers before they are spread over the elements.
        shown = spread(-keep.to(x.device, kind))  # [b, m, *segments.shape]
        shape = (*keep.shape[:2], *x.shape[1:])
        # Dimensions that the map broadcasts over (channels) are inserted in front of it, behind b and m.
        shown = shown.view(*keep.shape[:2], *[1] * (x.ndim - 1 - segments.ndim), *segments.shape)
        behind = stand_in if len(stand_in) == 1 else _taken(stand_in, images)
        masked = _taken(difference, images)[:, None] & shown
        masked ^= behind[:, None]
        masked = masked.view(x.dtype).view(-1, *shape[2:])
        logits = runner(masked).float()
        if logits.ndim != 2 or len(logits) != len(masked):
            raise ValueError(f"expected logits [{len(masked)}, classes], but the model gave {tuple(logits.shape)}")
        if lowest < 0 or highest >= logits.shape[1]:
            raise ValueError(
                f"expected targets 0..{logits.shape[1] - 1} for a model of {logits.shape[1]} classes, but got "
                f"{lowest}..{highest}"
            )
        logits = logits.view(*shape[:2], -1)
        # A NaN in another class may not reach the readout, and an infinite logit is NaN only there.
        broken = logits.isnan().any(-1)
        return readout(logits, target[images][:, None].expand(shape[:2])).masked_fill(broken, torch.nan)

    return score


def classifier(
    model: nn.Module, *, precision: torch.dtype = torch.float32, rows: int | None = None
) -> Callable[[Tensor], Tensor]:
    """A function from whole inputs to the probabilities of all classes, as fast as `scorer` makes its forwards.

    Args:
        model: maps inputs [n, *S] to logits [n, N].
        precision: of the forward; the softmax is always computed in float32.
        rows: inputs per forward; None chooses for the device.

    Returns:
        classify: inputs [n, *S] on the model's device -> [n, N] float32.
    """
    runner = prepare(model, precision)

    @torch.inference_mode()
    def classify(x: Tensor) -> Tensor:
        x = x.to(precision) if x.is_floating_point() else x
        return torch.cat([runner(part).float().softmax(-1) for part in x.split(rows or _rows(x))])

    return classify


def agreement(model: nn.Module, x: Tensor, target: Tensor, precision: torch.dtype, rows: int = 256) -> dict[str, float]:
    """How far a precision moves a model's answers from float32: state it beside every number computed in it.

    Returns:
        `argmax`: fraction of inputs whose predicted class is the same; `probability`: mean absolute change of the
        target's probability; `largest`: the largest such change.
    """
    answers = []
    with torch.inference_mode():
        for p in (torch.float32, precision):
            runner = prepare(model, p)
            inputs = x.to(p) if x.is_floating_point() else x
            answers.append(torch.cat([runner(part).float() for part in inputs.split(rows)]))
    reference, other = answers
    change = (probability(reference, target) - probability(other, target)).abs()
    same = (reference.argmax(-1) == other.argmax(-1)).float().mean()
    return {"argmax": same.item(), "probability": change.mean().item(), "largest": change.max().item()}


def _taken(inputs: Tensor, images: slice | Tensor) -> Tensor:
    """Some of the inputs; `index_select` copies whole rows, which indexing does element by element."""
    return inputs[images] if isinstance(images, slice) else inputs.index_select(0, images)


def _rows(x: Tensor) -> int:
    """Masked inputs per forward: the measured optimum for 32 x 32 on a CPU, as much as fills a large GPU there."""
    elements = x[0].numel() if len(x) else 1
    if x.device.type == "cuda":
        return max(32, min(8192, (1 << 24) // elements))
    return max(8, min(128, (1 << 19) // elements))


def _blocks(images: int, masks: int, rows: int):
    """Cut [images, masks] into blocks of at most `rows` and as equal as possible, as pairs of slices."""
    m = _even(masks, min(masks, rows))
    for first in range(0, masks, m):
        part = slice(first, min(first + m, masks))
        i = _even(images, max(1, rows // (part.stop - part.start)))
        for start in range(0, images, i):
            yield slice(start, min(start + i, images)), part


def _check_pairs(keep: Tensor, images: Tensor, inputs: int, features: int) -> None:
    if keep.dtype != torch.bool or keep.ndim != 2 or keep.shape[1] != features:
        raise ValueError(f"expected a boolean keep-mask [pairs, {features}], but got {keep.dtype} {tuple(keep.shape)}")
    if images.dtype != torch.int64 or images.shape != keep.shape[:1]:
        raise ValueError(
            f"expected the position of an input for each of the {len(keep)} masks, int64, but got {images.dtype} "
            f"{tuple(images.shape)}"
        )
    # Asked on the CPU only: a GPU checks its indices itself, without waiting.
    if images.device.type == "cpu" and len(images) and not 0 <= int(images.min()) <= int(images.max()) < inputs:
        raise ValueError(
            f"expected positions of inputs, 0..{inputs - 1}, but got {int(images.min())}..{int(images.max())}"
        )


def _even(total: int, most: int) -> int:
    """The part size that cuts `total` into as few parts of at most `most` as possible, all nearly equal."""
    parts = -(-total // max(most, 1))
    return max(-(-total // max(parts, 1)), 1)


def _within(images: slice, masks: slice, part: tuple[slice, slice]) -> tuple[slice, slice]:
    """A block of a block, in the coordinates of the whole."""
    i, m = part
    return (
        slice(images.start + i.start, images.start + i.stop),
        slice(masks.start + m.start, masks.start + m.stop),
    )


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
