"""The only place that runs a model on masked inputs.

`scorer` closes over a model, a batch of inputs and an output; the function it returns maps keep-masks to numbers.
Metrics are arithmetic on these numbers. What makes it fast is here and nowhere else: full forward passes over images x
masks, through a copy that `faithlab.prepare` has made fast and compared with the model.

The answers are those of the model in eval mode, whatever its mode is. The copy is made by `scorer`: what happens to the
model, the inputs, the target or the segments afterwards changes nothing. Where a copy answers otherwise than the model,
the model itself is run, and a warning says so.

Memory: beside the model, the inputs and the caller's masks, a score call holds one block of at most `batch_size` masked
inputs and the activations of one forward pass over them, whatever the number of images and masks.
"""

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from faithlab import baselines, validation
from faithlab import prepare as preparation
from faithlab import segments as segment_maps
from faithlab.outputs import AS_ANSWERED, LIBRARY, OF_CLASSES, correct, log_odds, probability, sigmoid

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # element size -> integers of that size

NUMBERS = (
    "For a regression use faithlab.outputs.value; in place of correct predictions, an output of your own, such as "
    "lambda answers, target: (answers[..., 0] > 3).float(). If the number is the logit of the second of two classes, "
    "wrap the model: faithlab.outputs.Logits(model, faithlab.outputs.two_classes)"
)
_PLANNED = {"cuda"}  # devices whose libraries plan a layer for the size of a batch

Output = Callable[[Tensor, Tensor], Tensor]
Baseline = Callable[[Tensor], Tensor]


class Score(Protocol):
    """Numbers for inputs some of whose features are kept: all that a metric or a search knows of a network.

    Any function with these arguments is one. That of `scorer` also tells how many numbers the model answers for each
    input, `score.classes` (None without inputs), and raises what is wrong with masks without evaluating them,
    `score.check(keep, positions)`.

    Args:
        keep: bool, True = kept: [B, M, F], M masks for each of B inputs; with `positions` [R, F], any pairs.
        positions: [R] int64, 0..B-1, the input that each mask is of; None: every input has its own masks.

    Returns:
        A floating-point number for each mask, [B, M] or [R].
    """

    def __call__(self, keep: Tensor, positions: Tensor | None = None) -> Tensor:
        """Score masks."""


def native_precision(device: torch.device | str = "cpu") -> torch.dtype:
    """The fastest precision that the device computes natively: bfloat16 if it has instructions for it, else float32."""
    if torch.device(device).type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    native = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if native else torch.float32


def prepare(model: nn.Module, x: Tensor, precision: torch.dtype | None = None) -> nn.Module:
    """Copy a model for fast forward passes: in eval mode, compared with the model itself on the first of inputs x.

    It computes the same function up to rounding: BatchNorm is folded, weights are channels-last and in `precision`, as
    far as that holds. See `faithlab.prepare.prepare`, also for errors and warnings.
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
            that are probabilities are read as such, with a warning. A regression network answers [n, 1] or [n].
        x: inputs [B, *S], on the model's device.
        target: [B] int64, the class, label or number to read; 0 where a model answers with one number.
        segments: which elements form one feature, see `faithlab.segments`; F features.
        baseline: what replaces a removed feature, see `faithlab.baselines`: inputs [B, *S] to one number, to one
            input [*S], or to [1 or B, ...] that broadcasts to the inputs.
        output: what to read off the answers, see `faithlab.outputs`; several are read off the same forward pass, and
            score then gives one more dimension, [B, M, outputs].
        precision: of forward passes; None: the model's own, whatever that is, so that a model in half precision answers
            as it does by itself. The output is always computed in float32. On a CUDA device PyTorch lets convolutions
            in float32 round to TF32, ten bits behind the point, in the model itself as here: where signs of small
            differences count, as in SaCo, say ``torch.backends.cudnn.allow_tf32 = False`` first.
        batch_size: masked inputs per forward pass; None chooses for the device. Halved when memory runs out.

    Returns:
        score: keep [B, M, F] bool -> [B, M] float32, or keep [R, F] bool and positions [R] -> [R] float32, see `Score`.

    Raises:
        TypeError: no module, no tensor, or no function.
        ValueError: (here) shapes, devices or number formats that do not fit, NaN in x, a baseline that is not finite,
            answers that the output cannot read, a target that is no class; (from score) a mask of the wrong shape
            or type, NaN in the model's answer, an output that does not give one number for each.

    >>> score = scorer(nn.Identity(), torch.eye(2), torch.tensor([0, 1]), segments=torch.arange(2), output=value)
    >>> score(torch.tensor([[[True, True], [False, True]]] * 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    _keep_freed_memory()
    check_inputs(x, target)
    several, outputs = ((len(output),), tuple(output)) if isinstance(output, list | tuple) else ((), (output,))
    limit = _batch_size(x) if batch_size is None else validation.whole("batch_size", batch_size, 1)
    x, target, segments = x.detach().resolve_conj().resolve_neg(), target.clone(), segments.clone()
    features = segment_maps.count_of(segments, x)
    stand_in = stand_in_of(baseline, x, segments)
    rows = min(limit, preparation.INPUTS)
    prepared = preparation.prepare(model, _probe(x, stand_in, segments), precision, rows)
    classes = _check_outputs(prepared, model, outputs)
    if classes is not None and not 0 <= int(target.min()) <= int(target.max()) < classes:
        raise ValueError(f"expected targets 0..{classes - 1}, which the model answers, but got {target.tolist()!r:.80}")
    if x.is_floating_point():
        x, stand_in = x.to(prepared.dtype), stand_in.to(prepared.dtype)
        if not bool(stand_in.isfinite().all()):
            raise ValueError(f"the baseline gives numbers that are not finite in {prepared.dtype}; repair it")
    # Two numbers chosen between by their bits, other ^ ((one ^ other) & mask): exact for any number, and several times
    # faster on a CPU than torch.where, whose mask has another element size.
    kind = _BITS[x.element_size()]
    stand_in = stand_in.clone(memory_format=torch.contiguous_format).view(kind)
    difference = x.contiguous().view(kind) ^ stand_in
    spread = segment_maps.spreading(segments, x.device)

    odd: list[Tensor] = []  # of each block, whether a logit that matters is NaN or infinite

    @torch.inference_mode(False)
    @torch.no_grad()
    def score(keep: Tensor, positions: Tensor | None = None) -> Tensor:
        check(keep, positions)
        if positions is not None:
            positions = positions.to(x.device)
            return of_blocks(keep[:, None], lambda part: positions[part])[:, 0]
        return of_blocks(keep, lambda part: part)

    def check(keep: Tensor, positions: Tensor | None = None) -> None:
        wanted = (len(x), *keep.shape[1:2], features) if positions is None else (len(positions), features)
        if keep.dtype != torch.bool or keep.shape != wanted:
            raise ValueError(f"expected boolean keep-masks {wanted}, but got {keep.dtype} {tuple(keep.shape)}")

    def of_blocks(keep: Tensor, inputs: Callable[[slice], slice | Tensor]) -> Tensor:
        """Keep-masks [n, M, F] of the inputs at n places -> [n, M]; `inputs` says which inputs a slice of n means."""
        nonlocal limit
        odd.clear()
        answers = torch.empty((*keep.shape[:2], *several), dtype=torch.float32, device=x.device)
        pending = list(_blocks(slice(0, keep.shape[0]), slice(0, keep.shape[1]), limit))
        while pending:
            i, m = pending.pop()
            try:
                answers[i, m] = of_block(keep[i, m], inputs(i))
            except RuntimeError as error:
                size = (i.stop - i.start) * (m.stop - m.start)
                if size > 1 and preparation.out_of_memory(error):
                    limit = min(limit, (size + 1) // 2)
                    pending += _blocks(i, m, limit)
                    continue
                raise
        # Looked at once for all blocks: on a GPU each look waits for the device.
        if broken := int(answers.isnan().sum()):
            blamed = "model" if any(map(bool, odd)) else "output"
            raise ValueError(f"the {blamed} gave NaN or infinity for {broken} of {answers.numel()} masked inputs")
        return answers

    def of_block(keep: Tensor, positions: slice | Tensor) -> Tensor:
        # All bits where kept, none where removed; as integers before they are spread over the elements.
        shown = spread(-keep.to(x.device, kind).contiguous())  # [b, m, *segments.shape]
        shape = (*keep.shape[:2], *x.shape[1:])
        # Dimensions that the map broadcasts over (channels) are inserted in front of it, behind b and m.
        shown = shown.view(*keep.shape[:2], *[1] * (x.ndim - 1 - segments.ndim), *segments.shape)
        behind = stand_in if len(stand_in) == 1 else _taken(stand_in, positions)
        masked = _taken(difference, positions)[:, None] & shown
        masked ^= behind[:, None]
        masked = masked.view(x.dtype).view(-1, *shape[2:])
        rows = len(masked)
        if more := _filled(rows, limit, masked.device) - rows:
            masked = torch.cat([masked, masked[:1].expand(more, *masked.shape[1:])])
        answered = prepared.answers(masked)[:rows].view(*shape[:2], -1)
        logits = answered.log() if prepared.probabilities else answered
        # A NaN in another class may not reach the output, and an infinite logit is NaN only there.
        broken = logits.isnan().any(-1)
        odd.append((~logits.amax(-1).isfinite()).any())
        targets = target[positions][:, None].expand(shape[:2])
        read = []
        for each in outputs:
            own = not any(each is known for known in LIBRARY)  # it may work in place
            seen = answered if each in AS_ANSWERED else logits
            given = each(*((seen.clone(), targets.clone()) if own else (seen, targets)))
            came = (given.dtype, *given.shape) if isinstance(given, Tensor) else type(given).__name__
            if not isinstance(given, Tensor) or given.shape != shape[:2] or not given.is_floating_point():
                raise ValueError(f"expected an output of a real number for each of {shape[:2]}, but it gave {came}")
            read.append(given.masked_fill(broken, torch.nan))
        return torch.stack(read, -1) if several else read[0]

    score.classes, score.check, score.holds = classes, check, prepared.holds
    return score


def classifier(
    model: nn.Module, *, precision: torch.dtype | None = None, batch_size: int | None = None
) -> Callable[[Tensor], Tensor]:
    """A function from whole inputs to the probabilities of all classes, as fast as `scorer` makes forward passes.

    The copy of the model is made, and compared with it, on the first inputs that are given.

    Args:
        model: maps inputs [n, *S] to logits [n, N].
        precision: of forward passes; None: the model's own. The softmax is always computed in float32.
        batch_size: inputs per forward pass; None chooses for the device.

    Returns:
        classify: inputs [n, *S] on the model's device -> [n, N] float32. It raises what `scorer` does.
    """
    prepared: preparation.Prepared | None = None

    @torch.inference_mode(False)
    @torch.no_grad()
    def classify(x: Tensor) -> Tensor:
        nonlocal prepared
        if prepared is None or prepared.expected is None:
            prepared = _of_classes(model, x, precision)
        return _logits(prepared, x, batch_size or _batch_size(x)).softmax(-1)

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
    exact, other = (_logits(_of_classes(model, x, p), x, batch_size) for p in (torch.float32, precision))
    change = (probability(exact, target) - probability(other, target)).abs()
    same = (exact.argmax(-1) == other.argmax(-1)).float().mean()
    return {"argmax": same.item(), "probability": change.mean().item(), "largest": change.max().item()}


def _of_classes(model: nn.Module, x: Tensor, precision: torch.dtype | None) -> preparation.Prepared:
    prepared = preparation.prepare(model, x, precision)
    _check_outputs(prepared, model, (probability,))
    return prepared


def _logits(prepared: preparation.Prepared, x: Tensor, batch_size: int) -> Tensor:
    """Logits of whole inputs, part by part; of a copy of each part, which the model may write into."""
    x = x.detach().to(prepared.dtype) if x.is_floating_point() else x
    answers = torch.cat([prepared.answers(part.clone()).clone() for part in x.split(batch_size)])
    logits = answers.log() if prepared.probabilities else answers
    return logits


def _check_outputs(prepared: preparation.Prepared, model: nn.Module, outputs: Sequence[Output]) -> int | None:
    """The number of answers to an input; a ValueError or a warning where outputs may misread them."""
    if prepared.expected is None:
        return None
    name, answers = type(model).__name__, prepared.expected
    of_classes = [each.__name__ for each in OF_CLASSES if any(each is given for given in outputs)]
    if answers.shape[1] == 1 and of_classes:
        raise ValueError(f"{name} answers with one number for each input; {of_classes[0]} needs classes. {NUMBERS}")
    bounded = bool(((answers >= 0) & (answers <= 1)).all() & ((answers > 0) & (answers < 1)).any())
    if prepared.probabilities and not all(any(each is known for known in AS_ANSWERED) for each in outputs):
        warnings.warn(
            f"{name} answers with probabilities, not with logits (no answer is negative, each row sums to one). They "
            "are read as such, without a second softmax. If they are logits, say so with "
            "faithlab.outputs.Logits(model); if not, Logits(model, torch.log) says this without a warning.",
            stacklevel=3,
        )
    elif bounded and prepared.guessed and any(each in (probability, log_odds, correct, sigmoid) for each in outputs):
        warnings.warn(
            f"{name}: all answers lie in 0..1, but rows do not sum to one. If they are probabilities of labels, read "
            "them with faithlab.outputs.value (or of their logits faithlab.outputs.sigmoid), not by a softmax. If they "
            "are logits of classes, say so with faithlab.outputs.Logits(model).",
            stacklevel=3,
        )
    return answers.shape[1]


def check_inputs(x: Tensor, target: Tensor) -> None:
    """Check inputs [B, *S] that a model can be evaluated on, and a class for each, [B] int64, beside them.

    Raises:
        ValueError: no tensors, another shape, layout, type or device, NaN.
    """
    fits = isinstance(x, Tensor) and x.layout is torch.strided and x.ndim > 1
    fits = fits and 1 + x.is_floating_point() <= x.element_size() <= 8
    if not fits or bool(x.isnan().any()):
        came = f"{x.dtype} {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"expected inputs [B, *S], dense, of 16 to 64 bits a number, without NaN, but got {came}")
    about = (target.dtype, *target.shape, target.device) if isinstance(target, Tensor) else type(target)
    if about != (torch.int64, *x.shape[:1], x.device):
        raise ValueError(f"expected an int64 target for each of {len(x)} inputs, beside them, but got {about}")


def stand_in_of(baseline: Baseline, x: Tensor, segments: Tensor) -> Tensor:
    """What the baseline gives for inputs [B, *S], as [1 or B, ...] that broadcasts to them.

    Raises:
        ValueError: it gives another shape, device or type.
    """
    told = {"segments": segments} if baseline is baselines.mean else {}  # they tell it the layout
    stand_in = baseline(x.clone(), **told)  # which may work in place
    shape, one = tuple(getattr(stand_in, "shape", ())), tuple(x.shape[1:])
    whole = len(shape) == x.ndim and all(size in (1, full) for size, full in zip(shape, x.shape, strict=True))
    fits = whole or shape == () or (shape == one and shape[0] != len(x))  # else it may be one part for each input
    fits = fits and isinstance(stand_in, Tensor) and stand_in.device == x.device
    if fits and not x.is_floating_point():
        fits = not stand_in.is_floating_point() and torch.equal(stand_in.to(x.dtype).to(stand_in.dtype), stand_in)
    came = f"{stand_in.dtype} {shape}, {stand_in.device}" if isinstance(stand_in, Tensor) else repr(stand_in)
    if not fits or stand_in.is_floating_point() != x.is_floating_point():
        raise ValueError(f"expected a baseline that broadcasts to {tuple(x.shape)}, {x.dtype}, but it gives {came}")
    return stand_in.detach().to(x.dtype).view(*[1] * (x.ndim - stand_in.ndim), *shape)


def _probe(x: Tensor, stand_in: Tensor, segments: Tensor) -> Tensor:
    """Some masked inputs as they will come: two whole ones, and each with every other feature removed."""
    if not len(x):
        return x
    whole, other = torch.ones_like(segments, dtype=torch.bool), segments % 2 == 0
    middle = len(x) // 2
    chosen = [(0, whole), (0, other), (middle, ~other), *([(middle, whole)] if middle else [])]
    return torch.stack(
        [torch.where(keep.to(x.device), x[i], stand_in[i if len(stand_in) > 1 else 0]) for i, keep in chosen]
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

    A GPU's library plans every layer anew for a batch of another size, seconds for a large network; and a search
    evaluates another number of inputs in each of its steps.
    """
    if device.type not in _PLANNED:
        return rows
    # Where memory ran out the limit is lower than blocks that were cut before.
    return max(rows, min(limit, 1 << (rows - 1).bit_length()))


def _blocks(images: slice, masks: slice, batch_size: int) -> Iterator[tuple[slice, slice]]:
    """Cut images x masks into blocks of at most `batch_size` and as equal as possible, as pairs of slices."""
    m = _even(masks.stop - masks.start, batch_size)
    for first in range(masks.start, masks.stop, m):
        part = slice(first, min(first + m, masks.stop))
        i = _even(images.stop - images.start, max(1, batch_size // (part.stop - part.start)))
        for start in range(images.start, images.stop, i):
            yield slice(start, min(start + i, images.stop)), part


def _even(total: int, most: int) -> int:
    """The part size that cuts `total` into as few parts of at most `most` as possible, all nearly equal."""
    parts = -(-total // max(most, 1))
    return max(-(-total // max(parts, 1)), 1)


@functools.cache
def _keep_freed_memory() -> None:
    """Let glibc keep what a forward pass frees for the next one, up to 64 MiB.

    It keeps as much as twice the largest block that was freed so far, of blocks of up to 32 MiB (mallopt(3),
    M_MMAP_THRESHOLD). Else activations of some MiB cost fresh pages in every pass, up to twice the time.
    """
    torch.empty((1 << 25) - (1 << 16), dtype=torch.uint8)
