"""A fast copy of a user's model, used only where it gives the model's own answers.

The copy is in eval mode. BatchNorm is folded into the layer before it, weights of convolutions are channels-last, and
the precision is the one that is wanted. Nothing is proved about the model's code: its copy is compared with the model
itself on the user's inputs, whole and masked, where the model gets one input at a time and the copy gets them together
and in another order. Where they differ, a warning says so, and the model is run as it is.
"""

import copy
import functools
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import fusion
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from faithlab.outputs import Logits, checked, looks_like_probabilities

INPUTS = 4  # on which a copy is compared with the model, at most

_ROUNDING = 1e-3  # share of the answers' spread that passes for rounding in float32
_FOLDABLE = {nn.BatchNorm1d: (nn.Conv1d, nn.Linear), nn.BatchNorm2d: (nn.Conv2d,), nn.BatchNorm3d: (nn.Conv3d,)}
_LAYERS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
_LOCK = threading.RLock()  # while a user's model is in eval mode, or put back, no other thread runs it
_LOOKS = {Tensor.dim, Tensor.size, Tensor.shape.__get__, Tensor.ndim.__get__, Tensor.dtype.__get__}  # no value is used


@dataclass(frozen=True)
class Prepared:
    """A model as the engine runs it.

    Attributes:
        model: maps inputs of `dtype` to what the user's model answers.
        dtype: of inputs that are floating-point.
        x: the inputs of the comparison, [n, *S].
        expected: the model's own answers to them, [n, K]; None where there was no input.
        guessed: whether its answers may be something else than logits, as nobody says what they are.
        folded: names of the BatchNorms that are part of the layer before them now.
    """

    model: nn.Module
    dtype: torch.dtype
    x: Tensor
    expected: Tensor | None = None
    guessed: bool = False
    folded: tuple[str, ...] = ()

    @functools.cached_property
    def probabilities(self) -> bool:
        """Whether answers look like probabilities of classes, see `faithlab.outputs.looks_like_probabilities`."""
        return self.guessed and looks_like_probabilities(self.expected)

    def holds(self, model: nn.Module) -> bool:
        """Whether the model still gives the answer to the first input that it gave."""
        with torch.inference_mode(False), torch.no_grad(), same_random_numbers(self.x.device):
            return not len(self.x) or torch.equal(_own_answers(model, self.x[:1], None)[1], self.expected[:1])

    def answers(self, x: Tensor) -> Tensor:
        """Inputs [n, *S] to the model's answers [n, K] float32; the model may write into `x`."""
        return checked(self.model(x), len(x)).float()


def prepare(model: nn.Module, x: Tensor, precision: torch.dtype | None = None, rows: int = INPUTS) -> Prepared:
    """Copy a model for fast forward passes, and compare the copy with it.

    The model itself is evaluated in eval mode and left as it was; so are torch's random numbers.

    Args:
        model: maps inputs [n, *S] to answers [n, K], or to one number each, [n].
        x: inputs [n, *S] like those to come; the first `INPUTS` are used. Without any, nothing is compared.
        precision: of forward passes; None: the model's own.
        rows: inputs in one forward pass of the comparison; halved where memory runs out.

    Raises:
        TypeError: no module.
        ValueError: answers that are neither logits nor numbers.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a torch.nn.Module, but got {model!r:.80}; wrap a function in a module's `forward`")
    try:
        with torch.inference_mode(False), torch.no_grad(), same_random_numbers(x.device):
            return _prepared(model, x.detach()[:INPUTS], precision, rows)
    except RuntimeError as error:
        if rows > 1 and out_of_memory(error):
            return prepare(model, x, precision, rows // 2)
        raise


def _prepared(model: nn.Module, x: Tensor, precision: torch.dtype | None, rows: int) -> Prepared:
    if not len(x):
        return Prepared(AsItIs(model), x.dtype, x)
    own = own_precision(model)
    x, expected = _own_answers(model, x, own)
    compare = functools.partial(_apart, x=x, expected=expected, rows=rows, precision=own)
    twin, notes = None, []
    for steps in ((_fold, _channels_last), (_fold,), ()):
        if twin is None:
            twin, problem = _tried(model, functools.partial(_copied, model, steps, x[:rows]), compare, rows)
            notes += [f"a faster copy {problem}, and what is run is slower"] * (twin is None and not notes)
    runner, dtype = AsItIs(model) if twin is None else twin, precision or x.dtype
    if twin is None and compare(runner) > 1:
        notes = ["its answers depend on the other inputs of a batch, or change from pass to pass; so do its scores"]
    if precision not in (None, own):

        def cast(tensor: Tensor) -> Tensor:
            return tensor.to(precision) if tensor.is_floating_point() else tensor

        # Half of the spread is more than any precision explains.
        compare = functools.partial(compare, x=cast(x), precision=precision, relative=0.5)
        low, problem = _tried(model, lambda: copy.deepcopy(twin)._apply(cast), compare, rows)
        notes += [f"in {precision} it {problem}, and it is run in its own precision"] * (low is None)
        runner, dtype = (runner, x.dtype) if low is None else (low, precision)
    if notes:
        warnings.warn(f"{type(model).__name__}: {'; '.join(notes)}.", stacklevel=3)
    folded = tuple(name for name, module in runner.named_modules() if vars(module).get("forward") is _same)
    return Prepared(runner, dtype, x, expected, not isinstance(model, Logits), folded)


def _own_answers(model: nn.Module, x: Tensor, own: torch.dtype | None) -> tuple[Tensor, Tensor]:
    """The inputs, in the model's precision where it takes no other, and its answers to one at a time, [n, K]."""
    try:
        return x, torch.cat([checked(AsItIs(model)(row.clone()), 1) for row in x.split(1)])
    except RuntimeError:
        if x.is_floating_point() and own not in (None, x.dtype):
            return _own_answers(model, x.to(own), own)
        raise


def _tried(model: nn.Module, build: Callable, compare: Callable, rows: int) -> tuple[nn.Module | None, str]:
    """A copy of a model and "" if it answers as the model does; else None and what it does instead."""
    used: list[nn.Module] = []
    try:
        with _LOCK, keeping(model):  # also the hooks that are registered here
            twin = build()
            for module in (m for m in model.modules() if not isinstance(m, torch.jit.ScriptModule)):
                module.register_forward_pre_hook(lambda module, args: used.append(module))
            same = compare(twin) <= 1
    except Exception as error:  # the model's own code may raise anything
        if out_of_memory(error) and rows > 1:
            raise
        return None, f"fails ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
    if used:
        return None, "runs the model itself, which a hook or a replaced forward holds on to"
    return (twin, "") if same else (None, "gives other answers")


def _apart(model: nn.Module, x: Tensor, expected: Tensor, rows: int, **tolerance) -> float:
    """`apart` of a model's answers to inputs together, and again in another order and in the same place."""
    place, found = x[:rows].clone(), 0.0
    for inputs, answers in ((x, expected), (x.flip(0), expected.flip(0))):
        parts = [checked(model(place[: len(part)].copy_(part)), len(part)).clone() for part in inputs.split(rows)]
        found = max(found, apart(torch.cat(parts), answers, **tolerance))
    return found


def apart(answers: Tensor, expected: Tensor, relative: float = _ROUNDING, precision=None) -> float:
    """The largest difference of answers [n, K] from those expected, in units of what passes for rounding.

    Classes whose answer is fixed or infinite, as where they are masked, do not set the scale.

    Args:
        answers: of a model.
        expected: of the same shape.
        relative: share of the spread of an input's answers that passes for rounding.
        precision: type of the computation, if that is lower than the type of `expected`.
    """
    if expected.device.type == "cuda" or torch.get_float32_matmul_precision() != "highest":
        relative = max(relative, 20 * _ROUNDING)  # float32 products may be rounded to ten bits
    unit = 8 * max(torch.finfo(t).eps for t in (expected.dtype, precision, torch.float32) if t)
    answers, expected = answers.double(), expected.double()
    felt = (expected != expected[:1]).any(0) & expected.isfinite().all(0)
    shown = (expected[:, felt] if int(felt.sum()) > 1 else expected).nan_to_num(0, 0, 0)
    spread = (shown - shown.mean(1 if shown.shape[1] > 1 else 0, keepdim=True)).abs().amax(1)
    allowed = max(relative, unit) * spread.clamp(min=spread.median()) + unit * shown.abs().amax(1)
    same = (answers == expected) | (answers.isnan() & expected.isnan())
    differences = (answers - expected).abs().masked_fill(same, 0).nan_to_num(torch.inf).amax(1)
    return (differences / allowed).nan_to_num(0, torch.inf).max().item()


# The copy


def _copied(model: nn.Module, steps: Sequence[Callable[[nn.Module, Tensor], None]], x: Tensor) -> nn.Module:
    """A deep copy in eval mode, without gradients, after these steps."""
    twin = copy.deepcopy(model)
    own = {id(part) for part in (*model.modules(), *model.parameters())}
    if any(id(part) in own for part in (*twin.modules(), *twin.parameters())):
        raise ValueError("its deep copy shares layers with it")
    with suppress(NotImplementedError):  # an exported program is what it was
        twin.eval()
    for parameter in twin.parameters():
        parameter.requires_grad_(False)
    for step in steps:
        step(twin, x)
    return twin


def _channels_last(model: nn.Module, x: Tensor) -> None:
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d) and "weight" in module._parameters:
            module.weight.data = module.weight.data.contiguous(memory_format=torch.channels_last)


def _fold(model: nn.Module, x: Tensor) -> None:
    """Fold each BatchNorm into the layer whose output it alone gets, in place."""
    uses, made, pairs = _Uses(), {}, []

    def after(module: nn.Module, args: tuple, output: Tensor) -> None:
        if isinstance(module, _LAYERS):
            made[id(output)], uses.times[id(output)] = (module, output), 0  # held, so that its id stays its own
        elif id(args[0]) in made:
            pairs.append((module, *made[id(args[0])]))

    plain = [module for module in model.modules() if type(module) in (*_LAYERS, *_FOLDABLE)]
    plain = [m for m in plain if not (m._forward_hooks or m._forward_pre_hooks or "forward" in vars(m))]
    for module in plain:
        module.register_forward_hook(after)
    with uses:
        model(x.clone())
    for module in plain:
        module._forward_hooks.clear()
    for norm, layer, output in pairs:
        once = all(uses.times[id(tensor)] == 1 for tensor in (output, layer.weight, norm.running_mean))
        linear = isinstance(layer, nn.Linear)
        fits = type(layer) in _FOLDABLE[type(norm)] and (not linear or (output.ndim == 2 and norm.affine))
        if once and fits and layer.weight.dtype in (torch.float32, torch.float64) and not norm.training:
            fuse = fusion.fuse_linear_bn_weights if linear else fusion.fuse_conv_bn_weights
            statistics = norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
            layer.weight, layer.bias = fuse(layer.weight, layer.bias, *statistics)
            norm.forward = _same  # and not replaced: it may be called by several names


def _same(x: Tensor) -> Tensor:
    return x


class _Uses(TorchFunctionMode):
    """Counts how often each tensor is used, by its id."""

    def __init__(self):
        super().__init__()
        self.times: Counter[int] = Counter()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function not in _LOOKS:
            self.times.update(id(part) for part in tree_leaves((args, kwargs)) if isinstance(part, Tensor))
        return function(*args, **(kwargs or {}))


# The model itself


class AsItIs(nn.Module):
    """A model that is run in eval mode and put back after each forward pass.

    Args:
        model: to run; it is no child, so that what is done to this module does not reach it.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        vars(self)["lent"] = model

    def forward(self, x: Tensor) -> object:
        """The model's answer."""
        with evaluating(self.lent):
            answer = self.lent(x)
            return answer.clone() if isinstance(answer, Tensor) else answer


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model in eval mode; when the context ends it is as it was, see `keeping`."""
    with _LOCK, keeping(model):
        with suppress(NotImplementedError):
            model.eval()
        yield


@contextmanager
def keeping(model: nn.Module) -> Iterator[None]:
    """Put back a model's modes, weights, buffers and attributes when the context ends.

    Of attributes that are containers the entries are put back, not what is inside these.
    """
    held = [part for module in model.modules() for part in (vars(module), *vars(module).values())]
    held = [(part, part.copy()) for part in held if isinstance(part, dict | list | set)]
    modes = [(module, module.training) for module in model.modules() if hasattr(module, "training")]
    tensors = [t for t in (*model.parameters(), *model.buffers()) if t.layout is torch.strided and not t.is_meta]
    values = [tensor.detach().clone() for tensor in tensors]
    try:
        yield
    finally:
        for part, before in held:
            part.clear()
            (part.extend if isinstance(part, list) else part.update)(before)
        for module, mode in modes:
            module.training = mode
        for tensor, before in zip(tensors, values, strict=True):
            if not torch.equal(tensor, before):
                tensor.data.copy_(before)


def same_random_numbers(device: torch.device):
    """Put back torch's random numbers when the context ends."""
    return torch.random.fork_rng([device] if device.type == "cuda" else [])


def own_precision(model: nn.Module) -> torch.dtype | None:
    """The precision of a model's weights, None without weights or where it is mixed."""
    found = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    return found.pop() if len(found) == 1 else None


def out_of_memory(error: Exception) -> bool:
    """Whether an error says that a forward pass did not fit into memory."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
