"""The only place that runs a model on masked inputs.

`scorer` closes over a model, a batch of inputs and what to read off; the function it returns takes keep-masks and
gives numbers. Metrics are arithmetic on these numbers. What makes it fast is here and nowhere else: full forwards
filled with images x masks, through a copy that `faithlab.preparation` has made fast and compared with the model.

The answers are those of the model in eval mode, whatever its mode is. The copy is made by `scorer`: what happens to the
model, the inputs, the target or the segments afterwards changes nothing. Where no copy can be made a warning says so.
The next scorer of a model that has not changed uses the same copy, see `faithlab.preparation.prepared`.

Memory: beside the model, the inputs and the caller's masks, a score call holds one block of at most `batch_size` masked
inputs and the activations of one forward over them, whatever the number of images and masks.
"""

import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from faithlab import baselines, preparation, validation
from faithlab import segments as segment_maps
from faithlab.outputs import correct, log_odds, logit, probability

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # element size -> integers of that size

_PURE = {correct, log_odds, logit, probability}  # outputs that change nothing of what they are given

_PLANNED = {"cuda"}  # devices whose libraries plan a layer for the size of a batch

Output = Callable[[Tensor, Tensor], Tensor]
Baseline = Callable[[Tensor], Tensor]


class Score(Protocol):
    """Numbers for inputs some of whose features are kept: all that a metric or a search knows of a network.

    Any function with these arguments is one. That of `scorer` also tells the number of the model's classes,
    `score.classes` (None without inputs), and says what is wrong with masks without asking about them,
    `score.check(keep, positions)`.

    Args:
        keep: bool, True = kept: [B, M, F], M masks for each of B inputs; with `positions` [R, F], any pairs.
        positions: [R] int64, 0..B-1, the input that each mask is of; None: every input has its own masks.

    Returns:
        A floating-point number for each mask, [B, M] or [R].
    """

    def __call__(self, keep: Tensor, positions: Tensor | None = None) -> Tensor:
        """Ask."""


def native_precision(device: torch.device | str = "cpu") -> torch.dtype:
    """The fastest precision that the device computes natively: bfloat16 if it has instructions for it, else float32."""
    if torch.device(device).type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    native = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if native else torch.float32


def prepare(model: nn.Module, x: Tensor, precision: torch.dtype | None = None) -> nn.Module:
    """A copy of a model made for fast forwards, in eval mode, compared with the model itself on the first of inputs x.

    It computes the same function up to rounding: BatchNorm is folded, weights are channels-last and in `precision`, as
    far as that holds. See `faithlab.preparation.prepare`, also for errors and warnings.
    """
    return preparation.prepare(model, x, precision).model


@torch.inference_mode(False)
@torch.no_grad()
def scorer(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    *,
    segments: Tensor,
    baseline: Baseline = baselines.zero,
    output: Output | Sequence[Output] = probability,
    precision: torch.dtype | None = None,
    batch_size: int | None = None,
) -> Score:
    """A function from keep-masks to the model's answers on the masked inputs.

    Args:
        model: maps inputs [n, *S] to logits [n, C]; `faithlab.outputs.Logits` makes such a model of another. Answers
            that are probabilities are read as such, with a warning.
        x: inputs [B, *S], on the model's device.
        target: [B] int64, the class to read off.
        segments: which elements form one feature, see `faithlab.segments`; F features.
        baseline: what stands in for a removed feature, see `faithlab.baselines`: inputs [B, *S] to one number, to one
            input [*S], or to [1 or B, ...] that broadcasts to the inputs.
        output: what to read off the logits, see `faithlab.outputs`; several are read off the same forward, and score
            then gives one more dimension, [B, M, outputs].
        precision: of the forward; None: the model's own, whatever that is, so that a model in half precision answers as
            it does by itself. The output is always computed in float32. On a CUDA device PyTorch lets convolutions in
            float32 round to TF32, ten bits behind the point, in the model itself as here: where signs of small
            differences count, as in SaCo, say ``torch.backends.cudnn.allow_tf32 = False`` first.
        batch_size: masked inputs per forward; None chooses for the device. Halved and tried again when memory runs out.

    Returns:
        score: keep [B, M, F] bool -> [B, M] float32, or keep [R, F] bool and positions [R] -> [R] float32, see `Score`.

    Raises:
        TypeError: no module, or what is no tensor, or no function.
        ValueError: (here) shapes, devices or number formats that do not fit, NaN in x, a baseline that is not finite,
            a model that does not answer with logits, a target that is no class; (from score) a mask of the wrong shape
            or type, NaN in the model's answer, an output that does not give one number for each.
    """
    check_inputs(x)
    check_targets(target, x)
    _check_tensor("segments", segments)
    if batch_size is not None:
        validation.whole("batch_size, masked inputs per forward,", batch_size, 1)
    outputs = tuple(output) if isinstance(output, list | tuple) else (output,)
    several = (len(outputs),) if isinstance(output, list | tuple) else ()
    if not outputs:
        raise ValueError("expected one output or several, but got an empty list")
    for name, given in [("baseline", baseline), *(("output", each) for each in outputs)]:
        if not callable(given):
            raise TypeError(f"expected {name} as a function, such as those of faithlab.{name}s, but got {given!r}")
    x, target, segments = x.detach().resolve_conj().resolve_neg(), target.clone(), segments.clone()
    features = segment_maps.count_of(segments, x)
    stand_in = stand_in_of(baseline, x, segments)
    prepared = preparation.prepared(model, _probe(x, stand_in, segments, batch_size), precision)
    if prepared.classes:
        check_classes(target, prepared.classes)
    if x.is_floating_point():
        x, stand_in = x.to(prepared.dtype), stand_in.to(prepared.dtype)
        if not bool(stand_in.isfinite().all()):
            raise ValueError(f"the baseline gives numbers that {prepared.dtype}, in which the model runs, cannot hold")
    if not x.is_contiguous() and prepared.allowed < math.inf:
        few = x[: preparation.INPUTS]
        lying = [prepared.logits(part.clone()).double() for part in (few, few.contiguous())]
        if (apart := prepared.scale.apart(*lying)) > prepared.allowed:
            warnings.warn(
                f"{type(model).__name__}: its answers depend on how the inputs lie in memory, by {apart:.3g}. It is "
                "asked about contiguous ones; give x.contiguous()",
                stacklevel=2,
            )
    # Two numbers chosen between by their bits, other ^ ((one ^ other) & mask): exact for any number, and several times
    # faster on a CPU than torch.where, whose mask has another element size.
    kind = _BITS[x.element_size()]
    stand_in = stand_in.clone(memory_format=torch.contiguous_format).view(kind)
    difference = x.contiguous().view(kind) ^ stand_in
    spread = segment_maps.spreading(segments, x.device)
    limit = batch_size or _batch_size(x)
    own = {each for each in outputs if isinstance(each, Hashable) and each in _PURE}
    name, compared = type(model).__name__, math.inf if prepared.allowed == math.inf else preparation.INPUTS

    odd: list[Tensor] = []  # of each block, whether a logit that matters is NaN or infinite

    @torch.inference_mode(False)
    @torch.no_grad()
    def score(keep: Tensor, positions: Tensor | None = None) -> Tensor:
        check(keep, positions)
        if positions is not None:
            positions = positions.to(x.device)
            return ask(keep[:, None], lambda part: positions[part])[:, 0]
        return ask(keep, lambda part: part)

    def check(keep: Tensor, positions: Tensor | None = None) -> None:
        _check_tensor("keep-masks", keep)
        if positions is not None:
            _check_pairs(keep, positions, len(x), features)
        elif keep.dtype != torch.bool or keep.ndim != 3 or keep.shape[::2] != (len(x), features):
            raise ValueError(
                f"expected a boolean keep-mask [{len(x)}, masks, {features}], but got {keep.dtype} {tuple(keep.shape)}"
            )

    def ask(keep: Tensor, inputs: Callable[[slice], slice | Tensor]) -> Tensor:
        """Keep-masks [n, M, F] of the inputs at n places -> [n, M]; `inputs` says which inputs a slice of n means."""
        nonlocal limit
        odd.clear()
        answers = torch.empty((*keep.shape[:2], *several), dtype=torch.float32, device=x.device)
        for places, masks in _blocks(*keep.shape[:2], limit):
            pending = [(places, masks)]
            while pending:
                i, m = pending.pop()
                try:
                    answers[i, m] = _answer(keep[i, m], inputs(i))
                except RuntimeError as error:
                    size = (i.stop - i.start) * (m.stop - m.start)
                    if size == 1 or not preparation.out_of_memory(error):
                        raise
                    limit = min(limit, (size + 1) // 2)
                    pending += [_within(i, m, part) for part in _blocks(i.stop - i.start, m.stop - m.start, limit)]
        # Asked once for all blocks: on a GPU each such question waits for the device.
        if bool(answers.isnan().any()):
            if not any(map(bool, odd)):
                raise ValueError(
                    f"the output gave NaN for {int(answers.isnan().sum())} of {answers.numel()} rows of logits that "
                    "are numbers"
                )
            raise ValueError(
                f"the model answered NaN (or an infinite logit) to {int(answers.isnan().sum())} of {answers.numel()} "
                "masked inputs; check its weights and, in a low precision, its range"
            )
        return answers

    def _answer(keep: Tensor, positions: slice | Tensor) -> Tensor:
        # All bits where kept, none where removed; as integers before they are spread over the elements.
        shown = spread(-keep.to(x.device, kind).contiguous())  # [b, m, *segments.shape]
        shape = (*keep.shape[:2], *x.shape[1:])
        # Dimensions that the map broadcasts over (channels) are inserted in front of it, behind b and m.
        shown = shown.view(*keep.shape[:2], *[1] * (x.ndim - 1 - segments.ndim), *segments.shape)
        behind = stand_in if len(stand_in) == 1 else _taken(stand_in, positions)
        masked = _taken(difference, positions)[:, None] & shown
        masked ^= behind[:, None]
        masked = masked.view(x.dtype).view(-1, *shape[2:])
        few = masked[:: len(masked) - 1] if len(masked) > compared else None  # the first and the last one
        alone = few if few is None else prepared.logits(few.clone()).clone()
        rows = len(masked)
        if more := _filled(rows, limit, masked.device) - rows:
            masked = torch.cat([masked, masked[:1].expand(more, *masked.shape[1:])])
        logits = prepared.logits(masked)[:rows]
        if alone is not None:
            compare(alone, logits)
        logits = logits.view(*shape[:2], -1)
        # A NaN in another class may not reach the output, and an infinite logit is NaN only there.
        broken = logits.isnan().any(-1)
        odd.append((~logits.amax(-1).isfinite()).any())
        asked = target[positions][:, None].expand(shape[:2])
        # Of anybody's output it is not known whether it works in place.
        read = [each(*((logits, asked) if each in own else (logits.clone(), asked.clone()))) for each in outputs]
        for given in read:
            if isinstance(given, Tensor) and not given.is_floating_point():
                raise ValueError(
                    f"expected the output to give floating-point numbers, but it gave {given.dtype}; give "
                    "value.to(logits.dtype), or real numbers"
                )
            if not isinstance(given, Tensor) or given.shape != shape[:2]:
                came = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
                raise ValueError(
                    f"expected the output to give one number for each row of logits {tuple(logits.shape)}, but it "
                    f"gave {came}; it works on the last dimension, as those of faithlab.outputs do"
                )
        read = [given.masked_fill(broken, torch.nan) for given in read]
        return torch.stack(read, -1) if several else read[0]

    def compare(alone: Tensor, among: Tensor) -> None:
        """Asked whenever there are more inputs in a forward than ever before."""
        nonlocal compared
        compared = math.inf if _differ(prepared, name, alone, among) else len(among)

    score.classes, score.check = prepared.classes, check
    return score


def classifier(
    model: nn.Module, *, precision: torch.dtype | None = None, batch_size: int | None = None
) -> Callable[[Tensor], Tensor]:
    """A function from whole inputs to the probabilities of all classes, as fast as `scorer` makes its forwards.

    The copy of the model is made, and compared with it, on the first inputs that are asked about.

    Args:
        model: maps inputs [n, *S] to logits [n, N].
        precision: of the forward; None: the model's own. The softmax is always computed in float32.
        batch_size: inputs per forward; None chooses for the device.

    Returns:
        classify: inputs [n, *S] on the model's device -> [n, N] float32. It raises what `scorer` does.
    """
    if batch_size is not None:
        validation.whole("batch_size, inputs per forward,", batch_size, 1)
    prepared: preparation.Prepared | None = None
    compared = preparation.INPUTS

    @torch.inference_mode(False)
    @torch.no_grad()
    def classify(x: Tensor) -> Tensor:
        nonlocal prepared, compared
        check_inputs(x)
        if prepared is None or prepared.classes is None:
            prepared = preparation.prepared(model, x, precision)
        limit = batch_size or _batch_size(x)
        logits = _logits(prepared, x, limit)
        if (most := min(limit, len(x))) > compared and prepared.allowed < math.inf:
            alone = _logits(prepared, x[[0, most - 1]], limit)
            compared = math.inf if _differ(prepared, type(model).__name__, alone, logits[:most]) else most
        return logits.softmax(-1)

    return classify


@torch.inference_mode(False)
@torch.no_grad()
def agreement(
    model: nn.Module, x: Tensor, target: Tensor, precision: torch.dtype, batch_size: int = 256
) -> dict[str, float]:
    """How far a precision moves a model's answers from float32: state it beside every number computed in it.

    Where the model cannot run in the precision, the engine's answers are those in its own, and so are these.

    Returns:
        `argmax`: fraction of inputs whose predicted class is the same; `probability`: mean absolute change of the
        target's probability; `largest`: the largest such change.
    """
    check_inputs(x)
    check_targets(target, x)
    validation.whole("batch_size, inputs per forward,", batch_size, 1)
    answers = []
    for p in (torch.float32, precision):
        prepared = preparation.prepared(model, x, p)
        answers.append(_logits(prepared, x, batch_size))
    baseline, other = answers
    validation.whole("the number of inputs to agree on", len(x), 1)
    check_classes(target, baseline.shape[1])
    change = (probability(baseline, target) - probability(other, target)).abs()
    same = (baseline.argmax(-1) == other.argmax(-1)).float().mean()
    return {"argmax": same.item(), "probability": change.mean().item(), "largest": change.max().item()}


def _differ(prepared: preparation.Prepared, name: str, alone: Tensor, among: Tensor) -> bool:
    """Say it, if answers depend on how many inputs are asked about, or on the place among them.

    `preparation` asks about few.

    Args:
        prepared: the model.
        name: what it is called.
        alone: its logits of the first and the last input, [2, C].
        among: those of all, [n, C].
    """
    alone, among = (part.softmax(1) if prepared.probabilities else part for part in (alone, among))
    apart = prepared.scale.apart(among[:: len(among) - 1].double(), alone.double())
    if apart > prepared.allowed:
        warnings.warn(
            f"{name}: its answer to an input among few and among {len(among)} differs by {apart:.3g}, as where it "
            "treats many inputs otherwise than few, or some places of a batch. So will its scores; batch_size "
            "decides how many share a forward.",
            stacklevel=6,
        )
    return apart > prepared.allowed


def _logits(prepared: preparation.Prepared, x: Tensor, batch_size: int) -> Tensor:
    """Logits of whole inputs, part by part; of a copy of each part, which the model may write into.

    Raises:
        ValueError: an input without probabilities, as some logit is NaN or infinite.
    """
    x = x.detach().to(prepared.dtype) if x.is_floating_point() else x
    logits = torch.cat([prepared.logits(part.clone()).clone() for part in x.split(batch_size)])
    broken = int((~logits.amax(-1).isfinite()).sum())
    if broken:
        raise ValueError(
            f"the model answered NaN (or an infinite logit) to {broken} of {len(x)} inputs; check its weights and, in "
            "a low precision, its range"
        )
    return logits


def _check_tensor(what: str, value: object) -> None:
    if not isinstance(value, Tensor):
        kind = type(value)
        raise TypeError(
            f"expected {what} as a torch.Tensor, but got {kind.__module__}.{kind.__name__}; use torch.as_tensor"
        )


def check_inputs(x: Tensor) -> None:
    """Inputs [B, *S] that a model can be asked about.

    Raises:
        TypeError: what is no tensor.
        ValueError: another shape, layout or type, NaN.
    """
    _check_tensor("inputs", x)
    if x.ndim < 2:
        raise ValueError(f"expected inputs [B, *S], a batch, but got {tuple(x.shape)}; of one input make x[None]")
    tiny = x.is_floating_point() and x.element_size() == 1  # which nothing can be computed in
    if x.layout is not torch.strided or x.is_quantized or x.is_meta or tiny or x.element_size() not in _BITS:
        kind = "meta" if x.is_meta else str(x.layout).removeprefix("torch.")
        raise ValueError(
            f"expected inputs as an ordinary dense tensor of 16 to 64 bits a number, or of integers, but got {kind} "
            f"{x.dtype}; make them one, such as with to_dense(), dequantize() or to()"
        )
    if x.is_floating_point() and bool(x.isnan().any()):
        raise ValueError("the inputs hold NaN; drop or repair them before scoring")


def check_targets(target: Tensor, x: Tensor) -> None:
    """A class for each of inputs [B, *S], [B] int64, beside them.

    Raises:
        TypeError: what is no tensor.
        ValueError: another shape, type or device.
    """
    _check_tensor("targets", target)
    if x.shape[:1] != target.shape or target.dtype != torch.int64:
        raise ValueError(
            f"expected one int64 target per input, shape {tuple(x.shape[:1])}, but got "
            f"{target.dtype} {tuple(target.shape)}"
        )
    if target.device != x.device:
        raise ValueError(f"expected targets on {x.device}, where the inputs are, but they are on {target.device}")


def check_classes(target: Tensor, classes: int) -> None:
    """Targets that are classes of a model.

    Raises:
        ValueError: one is not.
    """
    lowest, highest = int(target.min()), int(target.max())
    if lowest < 0 or highest >= classes:
        raise ValueError(
            f"expected targets 0..{classes - 1} for a model of {classes} classes, but got {lowest}..{highest}"
        )


def stand_in_of(baseline: Baseline, x: Tensor, segments: Tensor) -> Tensor:
    """What the baseline gives for inputs [B, *S], as [1 or B, ...] that broadcasts to them."""
    told = {"segments": segments} if baseline is baselines.mean else {}  # they tell it the layout
    stand_in = baseline(x.clone(), **told)  # which may work in place
    _check_tensor("what the baseline gives", stand_in)
    stand_in = stand_in.detach()
    shape, one = tuple(stand_in.shape), tuple(x.shape[1:])
    if shape == one and shape[0] == len(x):
        raise ValueError(
            f"the baseline gives {shape} for inputs {tuple(x.shape)}: one for all inputs, or one part for each? Give "
            f"it as many dimensions as the inputs have, {(1, *one)} for the first; keepdim=True keeps them"
        )
    fits = stand_in.ndim == x.ndim and all(size in (1, whole) for size, whole in zip(shape, x.shape, strict=True))
    if shape not in ((), one) and not fits:
        raise ValueError(
            f"expected a baseline of one number, of one input {one}, or one that broadcasts to the inputs "
            f"{tuple(x.shape)} with as many dimensions, but it gives {shape}"
        )
    if stand_in.device != x.device:
        raise ValueError(f"the inputs are on {x.device}, but the baseline gives numbers on {stand_in.device}")
    exact = x.is_floating_point() or torch.equal(stand_in.to(x.dtype).to(stand_in.dtype), stand_in)
    if stand_in.is_floating_point() != x.is_floating_point() or not exact:
        raise ValueError(f"expected a baseline of {x.dtype}, as the inputs are, but it gives {stand_in.dtype}")
    if not bool(stand_in.isfinite().all()):
        raise ValueError("the baseline gives numbers that are not finite; repair it, or the inputs that it is made of")
    return stand_in.to(x.dtype).view(*[1] * (x.ndim - stand_in.ndim), *shape)


def _probe(x: Tensor, stand_in: Tensor, segments: Tensor, batch_size: int | None) -> Tensor:
    """Some masked inputs as they will be asked about: two whole ones, and each with every other feature removed."""
    if not len(x):
        return x
    whole, other = torch.ones_like(segments, dtype=torch.bool), segments % 2 == 0
    middle = len(x) // 2
    asked = [(0, whole), (middle, whole), (0, other), (middle, ~other)][: batch_size or preparation.INPUTS]
    asked = asked[:1] + asked[2:] if middle == 0 else asked
    return torch.stack(
        [torch.where(keep.to(x.device), x[i], stand_in[i if len(stand_in) > 1 else 0]) for i, keep in asked]
    )


def _taken(inputs: Tensor, positions: slice | Tensor) -> Tensor:
    """Some of the inputs; `index_select` copies whole rows, which indexing does element by element."""
    return inputs[positions] if isinstance(positions, slice) else inputs.index_select(0, positions)


def _batch_size(x: Tensor) -> int:
    """Masked inputs per forward: the measured optimum for 32 x 32 on a CPU, as much as fills a large GPU there."""
    elements = max(1, x[0].numel() if len(x) else 1)
    if x.device.type in _PLANNED:
        return 1 << (max(32, min(8192, (1 << 26) // elements)).bit_length() - 1)
    return max(8, min(128, (1 << 19) // elements))


def _filled(rows: int, limit: int, device: torch.device) -> int:
    """How many inputs a forward of so many gets: on a GPU the next power of two, the rest copies of the first one.

    A GPU's library plans every layer anew for a batch of another size, seconds for a large network; and a search asks
    about another number of inputs in each of its steps.
    """
    if device.type not in _PLANNED:
        return rows
    # Where memory ran out the limit is lower than blocks that were cut before.
    return max(rows, min(limit, 1 << (rows - 1).bit_length()))


def _blocks(images: int, masks: int, batch_size: int):
    """Cut [images, masks] into blocks of at most `batch_size` and as equal as possible, as pairs of slices."""
    m = _even(masks, min(masks, batch_size))
    for first in range(0, masks, m):
        part = slice(first, min(first + m, masks))
        i = _even(images, max(1, batch_size // (part.stop - part.start)))
        for start in range(0, images, i):
            yield slice(start, min(start + i, images)), part


def _check_pairs(keep: Tensor, positions: Tensor, inputs: int, features: int) -> None:
    _check_tensor("positions of inputs", positions)
    if keep.dtype != torch.bool or keep.ndim != 2 or keep.shape[1] != features:
        raise ValueError(f"expected a boolean keep-mask [pairs, {features}], but got {keep.dtype} {tuple(keep.shape)}")
    if positions.dtype != torch.int64 or positions.shape != keep.shape[:1]:
        raise ValueError(
            f"expected the position of an input for each of the {len(keep)} masks, int64, but got {positions.dtype} "
            f"{tuple(positions.shape)}"
        )
    # Asked on the CPU only: a GPU checks its indices itself, without waiting.
    if (
        positions.device.type == "cpu"
        and len(positions)
        and not 0 <= int(positions.min()) <= int(positions.max()) < inputs
    ):
        raise ValueError(
            f"expected positions of inputs, 0..{inputs - 1}, but got {int(positions.min())}..{int(positions.max())}"
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
