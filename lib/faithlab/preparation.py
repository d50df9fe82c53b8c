"""A user's model made ready for fast forwards, and the check that it still gives the model's own answers.

What is run is a copy in eval mode that keeps the model's `forward`, its hooks and its control flow. BatchNorm is folded
(see `faithlab.folding`), weights get the layout channels-last and the precision asked for. Each is compared with the
model itself on a few inputs, and taken back with a warning where answers differ by more than rounding.
"""

import copy
import dataclasses
import functools
import math
import random
import re
import sys
import types
import warnings
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from faithlab.folding import HOOKS, Watch, fold
from faithlab.outputs import Logits

INPUTS = 4
"""Inputs on which a prepared model is compared with the model itself, at most."""

_ROUNDING = 1e-3  # parts of the logits' spread that pass for the rounding of float32 in a deep network
_ROUNDING_COARSE = 2e-2  # where float32 products may be rounded to ten bits
_UNRELATED = 0.5  # parts of the logits' spread that no low precision explains
_SAID: WeakIdKeyDictionary = WeakIdKeyDictionary()  # model -> what was said of it


@dataclasses.dataclass(frozen=True)
class Scale:
    """How large the differences of a model's logits are, by which the rounding of its answers is judged.

    A class that is masked, filled with -1e4 say, or a single extreme input says nothing of how well the other logits
    are computed. So these do not set the scale; they are judged by their own distance from the others.

    Attributes:
        spread: largest distance of a logit from its row's mean, in the middle one of the rows.
        size: largest absolute logit of that kind.
        aside: [C] bool, the classes that are not looked at for this.
    """

    spread: float
    size: float
    aside: Tensor

    @classmethod
    def of(cls, answers: Tensor) -> "Scale":
        """The scale of answers [n, C] float64, of which some may be infinite or NaN."""
        finite = answers.masked_fill(~answers.isfinite(), math.nan)
        aside = _fixed(finite) | _outlying(finite, ~_fixed(finite))
        scale = cls(*(_middle(part) for part in _extents(finite, aside)), aside)
        if scale.spread:
            return scale
        aside = torch.zeros_like(aside)  # equal logits, or nearly none that is finite
        return cls(*(_middle(part) for part in _extents(finite, aside)), aside)

    def apart(self, answers: Tensor, expected: Tensor) -> float:
        """The largest difference; infinite where one of two is no number.

        Logits further from the others than the scale's spread count less in proportion, as their rounding is larger.
        """
        finite = expected.masked_fill(~expected.isfinite(), math.nan)
        spread, size = _extents(finite, self.aside)
        mean = finite.masked_fill(self.aside, math.nan).nanmean(1, keepdim=True).nan_to_num(0)
        excess = (finite - mean).abs().nan_to_num(0) / (self.spread or math.inf)
        row = torch.maximum(spread / (self.spread or math.inf), size / (self.size or math.inf))
        excess = torch.maximum(excess, row[:, None]).clamp(min=1)
        same = (answers == expected) | (answers.isnan() & expected.isnan())
        differences = ((answers - expected).abs() / excess).nan_to_num(math.inf, math.inf)
        return differences.masked_fill(same, 0).max().item()

    def tolerance(self, precision: torch.dtype | None, device: torch.device, relative: float = _ROUNDING) -> float:
        """The largest difference that passes for rounding."""
        unit = torch.finfo(precision or torch.float32).eps
        if device.type == "cuda" or torch.get_float32_matmul_precision() != "highest":
            relative = max(relative, _ROUNDING_COARSE)
        return max(relative, 8 * unit) * self.spread + 8 * unit * self.size


_OUTLYING = 100  # times the others' distance from their middle


def _fixed(answers: Tensor) -> Tensor:
    """Classes whose logit is the same number in every row, as where they are masked, [C] bool; none if nearly all."""
    fixed = ((answers == answers[:1]) | answers.isnan()).all(0)
    return fixed if len(answers) > 1 and int((~fixed).sum()) > 1 else torch.zeros_like(fixed)


def _outlying(answers: Tensor, among: Tensor) -> Tensor:
    """Of some classes those whose logits are much further from the middle than those of most, [C] bool."""
    chosen = answers.masked_fill(~among, math.nan)
    distances = (chosen - chosen.nanmedian(1, keepdim=True).values).abs().nanmedian(0).values
    typical = distances[distances > 0].nanmedian()
    far = distances > _OUTLYING * typical
    above = chosen.masked_fill(~far, math.inf).nan_to_num(math.inf).amin(1)
    below = chosen.masked_fill(far, -math.inf).nan_to_num(-math.inf).amax(1)
    if int(far.sum()) > 1 and bool((above > below).all()):  # it is most of them that are masked
        return among & ~far
    return far


def _extents(answers: Tensor, aside: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row the largest distance from its mean and the largest absolute number, [n]."""
    chosen = answers.masked_fill(aside, math.nan)
    distances = (chosen - chosen.nanmean(1, keepdim=True)).abs()
    return distances.nan_to_num(0).amax(1), chosen.abs().nan_to_num(0).amax(1)


def _middle(numbers: Tensor) -> float:
    """The median of those that are not zero, 0 if there is none."""
    return numbers[numbers > 0].nanmedian().nan_to_num(0).item()


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A model as the engine runs it.

    Attributes:
        model: maps inputs of `dtype` to what the user's model answers.
        dtype: of inputs that are floating-point.
        classes: of the model; None where there was no input to ask about.
        probabilities: whether the model answers with probabilities, not logits.
        folded: BatchNorms that are part of the layer before them now.
        unfolded: other BatchNorms, and why.
        difference: largest difference from the model's own answers on the inputs of the check.
        scale: of the logits there: what `difference` is to be compared with.
        notes: what was said in warnings.
        allowed: how far an answer to an input alone may be from that among others, infinite if nothing is promised.
    """

    model: nn.Module
    dtype: torch.dtype
    classes: int | None = None
    probabilities: bool = False
    folded: tuple[str, ...] = ()
    unfolded: Mapping[str, str] = dataclasses.field(default_factory=dict)
    difference: float = 0.0
    scale: Scale | None = None
    notes: tuple[str, ...] = ()
    allowed: float = math.inf

    @property
    def spread(self) -> float:
        """Largest distance of a logit from its row's mean, see `Scale`."""
        return self.scale.spread if self.scale else 0.0

    def logits(self, x: Tensor) -> Tensor:
        """Inputs [n, *S] to logits [n, C] float32; of probabilities, their logarithm. A model may write into `x`.

        Raises:
            ValueError: the answer is of another form.
        """
        answer = checked(self.model(x), len(x)).float()
        return answer.log() if self.probabilities else answer


def prepare(model: nn.Module, x: Tensor, precision: torch.dtype | None = None) -> Prepared:
    """A model ready for fast forwards, compared with the model itself on some inputs.

    The model is asked about the inputs in eval mode and left as it was: its flags, weights, buffers and other
    attributes are put back, see `keeping`. Hooks are part of what it computes: they run in every forward, and one that
    counts or collects does so.

    Args:
        model: maps inputs [n, *S] to logits [n, C].
        x: inputs [n, *S] like those that will be asked about; the first `INPUTS` are used. Without any nothing is
            checked, and so nothing is changed.
        precision: of the forward; None: the model's own.

    Raises:
        TypeError: not a module, or not a tensor.
        ValueError: a precision that is none; a model that is not initialised, is elsewhere than the inputs, or does not
            answer with logits, of one input alone too.
    """
    check(model, x)
    if precision not in (None, torch.bfloat16, torch.float16, torch.float32, torch.float64):
        raise ValueError(
            f"expected a precision of torch.bfloat16, float16, float32 or float64, or None, but got {precision!r}"
        )
    x = x.detach()[:INPUTS]
    # Ordinary tensors where the caller is in inference mode, too: what a forward keeps may be used in training later.
    with torch.inference_mode(False), torch.no_grad(), same_random_numbers(x.device):
        try:
            return _prepared(model, x.clone(), precision)
        except Exception as error:
            _say_how_many(error)
            if len(x) < 2 or not isinstance(error, RuntimeError) or not out_of_memory(error):
                raise
    return prepare(model, x[: len(x) // 2], precision)


def prepared(model: nn.Module, x: Tensor, precision: torch.dtype | None = None) -> Prepared:
    """As `prepare`, but a copy that was made before is used again where it still answers as the model does.

    It is kept as long as the model is there, with a second copy of its weights, of at most `LARGEST` bytes. It is used
    for inputs of the same shape, precision and device while all that can be seen of the model is as it was (`seen`:
    weights, buffers, modes, attributes; what has hooks is not kept), and gives the model's answers to the inputs at
    hand, which takes one forward of each. What needed a warning is prepared again every time. Arguments and errors as
    in `prepare`.
    """
    check(model, x)
    if x.device.type == "cpu":
        _keep_freed_memory()
    own = own_precision(model)
    native = x.dtype == own or not x.is_floating_point()
    if precision == own and native:
        precision = None  # the same
    about = (x.device, x.shape[1:], x.dtype)
    key = (precision, *about)
    leaves = seen(model) if len(x) else None
    held = sum(leaf.nbytes for leaf in leaves or () if isinstance(leaf, Tensor | np.ndarray))
    if leaves is None or held > LARGEST:
        _COPIES.pop(model, None)
        return prepare(model, x, precision)
    before, copies = _COPIES.get(model, ((), {}))
    if not alike(before, leaves):
        before, copies = kept(leaves), {}
    made = copies.pop(key, None)
    found = made and _confirmed(made, model, x.detach()[:INPUTS], precision)
    if found is None and precision and native and (plain := copies.get((None, *about))):
        made = found = _lowered(plain, model, x.detach()[:INPUTS], precision)
    if found is None:
        made = found = prepare(model, x, precision)
    if not found.notes and not isinstance(found.model, Lent):
        copies[key] = made
        if len(copies) > MOST:
            del copies[next(iter(copies))]  # the one that was not used for longest
    _COPIES[model] = before, copies
    return found


def _confirmed(found: Prepared, model: nn.Module, x: Tensor, precision: torch.dtype | None) -> Prepared | None:
    """A copy that was made before, if it gives the model's answers to these inputs."""
    own = own_precision(model)
    target = precision or own
    real = x.is_floating_point()
    try:
        with torch.inference_mode(False), torch.no_grad(), same_random_numbers(x.device):
            asked = x.to(target, copy=True) if target and real else x.clone()
            answers = checked(found.model(asked), len(x)).double()
            x = x.to(own, copy=True) if precision and own and real else x.clone()
            with evaluating(model, weights=True):
                expected = checked(model(x), len(x))
            answered, expected = expected.dtype, expected.double()
    except Exception:  # whatever the model raises, preparing it says it better
        return None
    if answers.shape != expected.shape:
        return None
    scale = Scale.of(expected)
    difference = scale.apart(answers, expected)
    # In a lower precision it was nearer to the model than such rounding may be: as near it has to be again.
    near = scale.tolerance(_coarser(own, answered), x.device)
    if difference > (near if target == own else max(near, 4 * found.difference)):
        return None
    if are_probabilities(model, expected, own) != found.probabilities:
        return None
    allowed = max(found.allowed, scale.tolerance(target, x.device))
    return dataclasses.replace(found, difference=difference, scale=scale, allowed=allowed)


def _lowered(plain: Prepared, model: nn.Module, x: Tensor, precision: torch.dtype) -> Prepared | None:
    """A copy in another precision, made of the one that is kept in the model's own, if that answers as the model does.

    All that was asked of the model was asked then.
    """
    if _confirmed(plain, model, x, None) is None:
        return None
    try:
        with torch.inference_mode(False), torch.no_grad(), same_random_numbers(x.device):
            expected = _answers(plain.model, x)
            twin = _cast(copy.deepcopy(plain.model), precision)
            scale = Scale.of(expected)
            low = x.to(precision) if x.is_floating_point() else x
            difference, _ = _difference(twin, low, expected, scale)
    except Exception:  # as of `_confirmed`
        return None
    if difference > scale.tolerance(precision, x.device, _UNRELATED):
        return None
    allowed = max(plain.allowed, scale.tolerance(precision, x.device))
    return dataclasses.replace(plain, model=twin, dtype=precision, difference=difference, scale=scale, allowed=allowed)


@functools.cache
def _keep_freed_memory() -> None:
    """Let the allocator keep what a forward frees for the next one, up to 64 MiB.

    glibc gives activations of some MiB back to the system after each forward, and the next one pays for fresh pages:
    up to twice the time, depending on what the process freed before. It keeps as much as twice the largest block that
    was freed so far, of blocks of up to 32 MiB (mallopt(3), M_MMAP_THRESHOLD). This one is never written to, so that
    it takes no memory. Other allocators do not mind.
    """
    torch.empty((1 << 25) - (1 << 16), dtype=torch.uint8)


LARGEST = 1 << 30
"""Bytes of weights of a model whose copy is kept, at most: a larger one may need the memory for its forwards."""
MOST = 4
"""Copies of a model that are kept, each for another shape, precision or device."""
_COPIES: WeakIdKeyDictionary = WeakIdKeyDictionary()
"""model -> what was seen of it, and its copies by precision, device, shape and type of the inputs."""

_PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    torch.Size,
    types.BuiltinFunctionType,
)


_OF_STATES = (
    *("_state_dict_hooks", "_state_dict_pre_hooks"),
    *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
)
"""Where a module keeps hooks that see its state when that is saved or loaded, and no input."""


class _UnseenError(Exception):
    """Something that a model's answers may depend on cannot be looked at."""


def seen(model: nn.Module) -> list[object] | None:
    """All that a model's answers depend on, as a list of tensors, arrays and plain values in a fixed order.

    Looked at are the attributes of all modules, and what is in them: dense tensors, arrays, numbers, texts, functions
    without a closure, containers of such and weak references to them. None where there is anything else, such as a hook
    of a forward or an object of some other kind, which may change without a trace.
    """
    leaves: list[object] = [torch.get_float32_matmul_precision()]
    try:
        if _has_any_global_hook():
            return None
        _see(model, leaves, {})
    except _UnseenError:
        return None
    return leaves


def _see(value: object, leaves: list[object], known: dict[int, int]) -> None:
    if isinstance(value, _PLAIN) and not isinstance(value, types.MethodType):
        leaves.append(value)
        return
    if id(value) in known:  # one thing in two places
        leaves.append(("known", known[id(value)]))
        return
    known[id(value)] = len(known)
    kind = type(value)
    leaves.append(kind)
    if isinstance(value, nn.Module):
        if isinstance(value, torch.jit.ScriptModule) or any(vars(value).get(hooks) for hooks in HOOKS):
            raise _UnseenError
        leaves.append(id(kind.forward))
        parts = [(name, part) for name, part in vars(value).items() if name not in _OF_STATES]
        leaves.append(len(parts))  # so that what ends one module does not begin another
        for name, part in parts:
            leaves.append(name)
            _see(part, leaves, known)
    elif kind in (Tensor, nn.Parameter, nn.Buffer) and value.layout is torch.strided:
        leaves.append(value)
    elif kind in (dict, OrderedDict, defaultdict):
        leaves.append(len(value))
        for key, part in value.items():
            _see(key, leaves, known)
            _see(part, leaves, known)
    elif kind in (list, tuple, deque):
        leaves.append(len(value))
        for part in value:
            _see(part, leaves, known)
    elif kind is weakref.ref:  # recurrent layers hold such of their weights
        _see(value(), leaves, known)
    elif kind is np.ndarray and value.dtype != object:
        leaves.append(value)
    elif kind in (set, frozenset) and all(isinstance(part, str | int) for part in value):
        leaves.append(frozenset(value))
    elif isinstance(value, types.FunctionType) and value.__closure__ is None:
        leaves.append(id(value))
    else:
        raise _UnseenError


def mark(model: nn.Module) -> list[object] | None:
    """All that can be seen of a model, to be kept with `kept` and compared later with `alike`; see `seen`.

    None of a model that holds what cannot be looked at. Of one above `LARGEST` bytes how often each weight was changed,
    which a change through `.data` does not count as.
    """
    leaves = seen(model)
    if leaves is None:
        return None
    tensors = [*model.parameters(), *model.buffers()]
    leaves = [id(leaf) if isinstance(leaf, Tensor) and leaf.layout is not torch.strided else leaf for leaf in leaves]
    if sum(leaf.nbytes for leaf in leaves if isinstance(leaf, Tensor | np.ndarray)) > LARGEST:
        return [(id(tensor), 0 if tensor.is_inference() else tensor._version) for tensor in tensors]
    return leaves


def kept(leaves: Sequence[object]) -> tuple[object, ...]:
    """A copy of what was seen."""
    return tuple(map(_kept, leaves))


def _kept(leaf: object) -> object:
    if isinstance(leaf, Tensor):
        return leaf.detach().clone()
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def alike(kept: Sequence[object], leaves: Sequence[object]) -> bool:
    """Whether two lists of `seen` are equal, number by number."""
    if len(kept) != len(leaves):
        return False
    for one, other in zip(kept, leaves, strict=True):
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            same = (one.shape, one.dtype, one.device, one.layout) == (
                other.shape,
                other.dtype,
                other.device,
                other.layout,
            )
            if not same or not (one.is_meta or torch.equal(_dense(one), _dense(other))):
                return False
        elif isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
            if one.dtype != other.dtype or not np.array_equal(one, other):
                return False
        elif type(one) is not type(other) or one != other:
            return False
    return True


def _dense(tensor: Tensor) -> Tensor:
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def _say_how_many(error: Exception) -> None:
    """Add to the error of a model that was exported for a fixed number of inputs that it was."""
    fixed = re.search(r"size\(\)\[0\] == (\d+)", str(error))
    if fixed:
        error.add_note(
            f"the model takes {fixed[1]} inputs at a time and no other number, as one that was exported without "
            "dynamic_shapes; export it with them"
        )


def out_of_memory(error: Exception) -> bool:
    """Whether an error says that a forward did not fit into memory."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def checked(answer: object, rows: int) -> Tensor:
    """A model's answer to so many inputs, if it is [rows, C] with two classes or more.

    Raises:
        ValueError: it is not; the message says what to wrap the model in.
    """
    if isinstance(answer, Tensor) and answer.is_complex():
        raise ValueError(
            f"expected logits [{rows}, classes], but the model gave {answer.dtype}, complex numbers, of which none is "
            "the largest; wrap it, such as in faithlab.outputs.Logits(model, torch.abs)"
        )
    if isinstance(answer, Tensor) and (answer.layout is not torch.strided or answer.is_meta):
        kind = "meta" if answer.is_meta else str(answer.layout).removeprefix("torch.")
        raise ValueError(
            f"expected logits [{rows}, classes] as an ordinary dense tensor, but the model gave a {kind} one; wrap it, "
            "such as in faithlab.outputs.Logits(model, torch.Tensor.to_dense)"
        )
    if isinstance(answer, Tensor) and answer.ndim == 2 and len(answer) == rows and answer.shape[1] > 1:
        return answer
    shape = tuple(answer.shape) if isinstance(answer, Tensor) else None
    read, names = "", "Logits"
    if shape is None:
        given = f"a {type(answer).__name__}"
        read = f"lambda answer: answer{_place_of_logits(answer, rows)}"
    elif shape in ((rows,), (rows, 1)) and not answer.is_floating_point():
        raise ValueError(
            f"expected logits [{rows}, classes], but the model gave {answer.dtype} {shape}, such as the predicted "
            "classes; return what they are the argmax of"
        )
    elif shape in ((rows,), (rows, 1)):
        given = f"one number for each input, {shape}. If it is the logit of the second of two classes"
        read, names = "two_classes", "Logits, two_classes"
    elif len(shape) == rows == 1:
        given = f"{shape} for one input alone, whose dimension is lost, as in squeeze() without one"
        read = f"lambda answer: answer.reshape(-1, {shape[0]})"
    elif len(shape) > 2 and shape[0] == rows:
        given = f"{shape}. If these are logits at many places, of which you want the mean"
        read = f"lambda answer: answer.mean({tuple(range(2, len(shape)))})"
    else:
        raise ValueError(f"expected logits [{rows}, classes] for {rows} inputs, but the model gave {shape}")
    raise ValueError(
        f"expected logits [{rows}, classes], but the model gave {given}; wrap it:\n"
        f"    from faithlab.outputs import {names}\n"
        f"    model = Logits(model, {read})"
    )


def _place_of_logits(answer: object, rows: int) -> str:
    """How to reach the first part of an answer that could be logits."""
    if isinstance(answer, Mapping):
        parts = [(f"[{key!r}]", value) for key, value in answer.items()]
    elif isinstance(answer, tuple | list):
        parts = [(f"[{place}]", value) for place, value in enumerate(answer)]
    else:
        parts = [(f".{name}", value) for name, value in getattr(answer, "__dict__", {}).items()]
    fitting = (way for way, value in parts if isinstance(value, Tensor) and value.ndim == 2 and len(value) == rows)
    return next(fitting, ".logits")


@contextmanager
def same_random_numbers(device: torch.device) -> Iterator[None]:
    """When the context ends, the random numbers of torch, NumPy and Python go on as if nothing had been drawn."""
    state, numbers = random.getstate(), np.random.get_state()  # noqa: NPY002 (what a model may draw from)
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            random.setstate(state)
            np.random.set_state(numbers)  # noqa: NPY002


@contextmanager
def evaluating(model: nn.Module, weights: bool = False) -> Iterator[None]:
    """While the context lasts, a model is in eval mode, by its own `eval` if it has one; then all is put back."""
    own = _switches_itself(model)
    with keeping(model, weights or own):
        _to_eval(model, own)
        yield


@contextmanager
def keeping(model: nn.Module, weights: bool = False) -> Iterator[None]:
    """When the context ends, all is put back: attributes of all modules, what is in them, and the values of buffers.

    What is in an attribute is looked at as far as it is dense tensors, arrays, random generators, modules and their
    methods, dicts, lists, tuples, sets, deques, and the attributes of objects that are not of a library, of which one
    can hold others. An object of another kind is left as it is.

    Args:
        model: whose modules are looked at.
        weights: put back the values of parameters, too, of which a copy is made.
    """
    back: list[Callable[[], None] | Collection] = []
    parameters = list(model.parameters())
    seen: set[int] = set() if weights else set(map(id, parameters))
    flags = [(module, module.training) for module in model.modules() if hasattr(module, "training")]
    for part in (*map(vars, model.modules()), *model.buffers(), *parameters):
        _remember(part, back, seen)
    try:
        yield
    finally:
        try:
            with torch.no_grad():
                for put_back in back:
                    put_back() if callable(put_back) else put_back.clear()
        finally:
            for module, training in flags:
                module.training = training


_KEPT = (dict, OrderedDict, defaultdict, list, set, deque)
_LIBRARIES = {*sys.stdlib_module_names, "torch", "numpy"} - {"__main__"}
_CONSTANT = {bool, int, float, str, type(None)}  # most attributes are; a look at them is cheaper than at all kinds


def _remember(value: object, back: list[Callable[[], None] | Collection], seen: set[int]) -> None:
    """Add what puts the contents of a value back, or one that is empty; `seen` were added or need not be."""
    if id(value) in seen:
        return
    if type(value) in _KEPT:
        seen.add(id(value))
        # Few new objects: thousands a forward wake the collector of garbage, which takes longer than all that is here.
        if not value:  # as most are: the hooks of all modules
            back.append(value)
            return
        # `copy.copy` of an OrderedDict takes many times as long.
        contents = value.copy() if type(value) is dict else list(value.items() if isinstance(value, dict) else value)

        def refill() -> None:
            value.clear()
            (value.extend if isinstance(value, list | deque) else value.update)(contents)

        back.append(refill)
        for part in value.values() if isinstance(value, dict) else value:
            if type(part) not in _CONSTANT:
                _remember(part, back, seen)
    elif isinstance(value, tuple):
        for part in value:
            if type(part) not in _CONSTANT:
                _remember(part, back, seen)
    elif isinstance(value, nn.Module):  # also one that is no child, such as in a list
        _remember(vars(value), back, seen)
    elif isinstance(value, random.Random):
        seen.add(id(value))
        numbers = value.getstate()
        back.append(lambda: value.setstate(numbers))
    elif isinstance(value, np.random.Generator):
        seen.add(id(value))
        bits = value.bit_generator.state
        back.append(lambda: setattr(value.bit_generator, "state", bits))
    elif isinstance(value, torch.Generator):
        seen.add(id(value))
        state = value.get_state()
        back.append(lambda: value.set_state(state))
    elif isinstance(value, Tensor):
        if value.layout is torch.strided and not value.is_meta:
            seen.add(id(value))
            before = value.detach().clone()
            back.append(lambda: _put_back(value, before))
    elif isinstance(value, np.ndarray):
        if value.flags.writeable:
            seen.add(id(value))
            array = value.copy()
            back.append(lambda: np.copyto(value, array))
    elif (held := _held(value)) is not None:
        _remember(held, back, seen)


def _held(value: object) -> object:
    """What a method, a partial function or an object of no library holds; None: nothing that is looked at."""
    if isinstance(value, types.MethodType):
        return value.__self__
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, type) or not isinstance(own := getattr(value, "__dict__", None), dict):
        return None
    foreign = type(value).__module__.partition(".")[0] in _LIBRARIES
    return None if foreign and not isinstance(value, types.SimpleNamespace) else own


def _put_back(value: Tensor, before: Tensor) -> None:
    """Give a tensor its shape and its numbers again; it is not touched where they are the same, NaN or not."""
    if value.shape != before.shape:
        value.data = before
    elif not torch.equal(value, before) and not bool(((value == before) | (value != value) & (before != before)).all()):
        value.copy_(before)


def _switches_itself(model: nn.Module) -> bool:
    """Whether a module has an `eval` or `train` of its own, which may do more than to set flags."""
    return any(
        switch in vars(module) or getattr(type(module), switch) is not getattr(nn.Module, switch)
        for module in model.modules()
        for switch in ("eval", "train")
    )


def _to_eval(model: nn.Module, own: bool) -> None:
    if own:
        try:
            model.eval()
            return
        except NotImplementedError:  # an exported program
            pass
    for module in model.modules():
        if hasattr(module, "training"):  # a frozen script has none
            module.training = False


class Lent(nn.Module):
    """A model that is put back after each forward, whatever this changes in it.

    Args:
        model: to run.
        within: the context of a forward: `evaluating`, or `keeping` for what is in eval mode.
    """

    def __init__(self, model: nn.Module, within: Callable = evaluating):
        super().__init__()
        # The model is no child: what is done to this module must not reach the user's.
        vars(self).update(lent=model, within=within)

    def forward(self, x: Tensor) -> object:
        """The model's answer."""
        with self.within(self.lent):
            return self.lent(x)


def check(model: nn.Module, x: Tensor) -> None:
    """A module with values that is where the inputs are.

    Raises:
        TypeError: no module, or no tensor.
        ValueError: a model that is not initialised, or is elsewhere.
    """
    if isinstance(model, type):
        raise TypeError(f"expected a model, but got the class {model.__name__}; make one: {model.__name__}(...)")
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"expected a torch.nn.Module, but got a {type(model).__name__}. Wrap a function of the inputs:\n"
            "    class Model(torch.nn.Module):\n"
            "        forward = staticmethod(function)"
        )
    if not isinstance(x, Tensor):
        raise TypeError(f"expected the inputs as a torch.Tensor, but got a {type(x).__name__}; use torch.as_tensor")
    devices = set()
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if isinstance(tensor, nn.parameter.UninitializedTensorMixin):
            raise ValueError(f"{name} of the model has no values yet; call the model on an input, and train it, first")
        devices.add(tensor.device)
    if devices and x.device not in devices:
        raise ValueError(
            f"the inputs are on {x.device}, but the model is on {' and '.join(sorted(map(str, devices)))}; move one of "
            "them with .to(device)"
        )


def _prepared(model: nn.Module, x: Tensor, precision: torch.dtype | None) -> Prepared:
    """The same, where nothing is differentiated."""
    notes: list[str] = []

    def say(text: str) -> None:
        notes.append(text)
        said = _SAID.setdefault(model, set())
        if text not in said:
            said.add(text)
            warnings.warn(f"{type(model).__name__}: {text}", stacklevel=5)

    own = own_precision(model)
    target = precision or own
    twin, problem = _copied(model)
    if not len(x):
        runner = Lent(model) if twin is None else _cast(twin, target)
        return Prepared(runner, target or x.dtype)

    with evaluating(model, weights=True):
        try:
            before = _random_state(x.device)
            x, expected = _own_answers(model, x, own if precision else None)
            answered, expected = expected.dtype, expected.double()
            draws = _random_state(x.device) != before and _draws(model, x)
        except Exception as error:
            error.add_note(f"this is the model itself, in eval mode, asked about inputs {tuple(x.shape)} {x.dtype}")
            if not x.is_floating_point() and not x.is_complex():
                error.add_note(
                    f"they hold numbers from {x.min()} to {x.max()}, the baseline's among them; token ids stay whole "
                    "numbers, but pixels and measurements are given as x.float()"
                )
            raise
        scale = Scale.of(expected)
        tolerance = scale.tolerance(_coarser(own, answered), x.device)
        watch = None
        if twin is not None:
            with keeping(twin):
                watch = Watch(twin, model, x[-1:])
        if watch and watch.strays:
            twin, problem = None, f"a copy would use {watch.strays} of the model itself"
        # Alone, then together with others: what this changes is rounding.
        runner = Lent(model) if twin is None else twin
        noise = max(_difference(runner, x[i : i + 1], expected[i : i + 1], scale)[0] for i in {0, len(x) - 1})
        if noise == math.inf:  # of the model itself, an answer of another form is an error
            checked(model(x[:1].clone()), 1)
        steady = independent = True
        if noise > tolerance:
            if _difference(model, x, expected, scale)[0] > tolerance:
                steady = False
                say("it gives other answers when it is asked again in eval mode, so that they could not be checked.")
            elif twin is not None and _difference(twin, x, expected, scale)[0] > tolerance:
                twin, problem = None, "a copy gives other answers"
            elif _difference(model, _shaken(x), expected, scale)[0] > noise / 10:
                say(
                    "rounding moves its answers by more than a thousandth of their spread, as it would if an input "
                    "changed by a few millionths. No more can be promised of its scores."
                )
            else:
                noise, independent = 0.0, False
                say(_DEPENDS)
        elif x.device.type == "cpu" and noise > _unfelt(expected, own) and steady:
            # Little beside the distances of the classes, and much of what the inputs change.
            again, moved = (_difference(model, part, expected, scale)[0] for part in (x, _shaken(x)))
            if max(again, moved) <= noise / 10:
                noise, independent = 0.0, False
                say(_DEPENDS)

        if draws and steady and independent:
            say("it draws random numbers in eval mode, so that its answers may differ from one time to the next.")

    carries = traces = False
    difference, folded, unfolded = noise, (), dict(watch.obstacles) if watch else {}
    if twin is not None and steady:
        tolerance += 10 * noise
        moved, traces = _asked_again(twin, x, expected, scale, independent)
        carries = moved > tolerance
        difference, folded = _quickened(twin, x, expected, scale, tolerance, watch.pairs, say)
        unfolded |= dict.fromkeys(watch.pairs.keys() - set(folded), "folded, the network gave other answers")
        if difference > tolerance:
            twin, problem, difference, folded = None, "a copy gives other answers", noise, ()
    if twin is not None and carries:
        say(
            "it keeps something from a forward that changes its answers to the next. It is put back after each forward "
            "to answer as it does now."
        )
    if twin is None:
        say(f"it is run itself, without a copy made for speed: {problem}. Its scores change when its weights do.")
        if target != own:
            say(f"it is run in its own precision, not in {target}.")
    elif target != own:
        low = x.to(target) if x.is_floating_point() else x
        difference, problem = _difference(_cast(twin, target), low, expected, scale)
        if steady and difference > scale.tolerance(target, x.device, _UNRELATED):
            plain = _prepared(model, x, None)
            where = _where(_trail(plain.model, x)[0], _trail(twin, low), _UNRELATED)
            say(f"in {target} it {problem or 'gives unrelated answers'}{where}; it is run in its own precision.")
            return dataclasses.replace(plain, notes=(*notes, *plain.notes))
    probabilities = are_probabilities(model, expected, own)
    if nearly := nearly_probabilities(model, expected, own):
        say(
            f"its answers look like probabilities ({nearly}), and are read as logits all the same. If they are "
            "probabilities, wrap it: faithlab.outputs.Logits(model, lambda p: (p / p.sum(1, keepdim=True)).log()); if "
            "they are logits, say so with Logits(model)."
        )
    if probabilities:
        say(
            "it answers with probabilities, not with logits (all are in 0..1, and each row sums to one). They are read "
            "as such, without a second softmax: their logarithms are taken for logits. If they are logits, say so with "
            "faithlab.outputs.Logits(model); if not, Logits(model, torch.log) says this without a warning."
        )
    return Prepared(
        model=Lent(model, functools.partial(evaluating, weights=_writes(model, x)))
        if twin is None
        else Lent(twin, functools.partial(keeping, weights=True))
        if carries or traces
        else twin,
        dtype=x.dtype if twin is None or not precision else precision,
        classes=expected.shape[1],
        probabilities=probabilities,
        folded=folded,
        unfolded=unfolded,
        difference=difference,
        scale=scale,
        notes=tuple(notes),
        allowed=max(tolerance, scale.tolerance(target, x.device)) if steady and independent else math.inf,
    )


def _quickened(
    model: nn.Module,
    x: Tensor,
    expected: Tensor,
    scale: Scale,
    tolerance: float,
    pairs: Mapping[str, str],
    say: Callable[[str], None],
) -> tuple[float, tuple[str, ...]]:
    """Change a copy in place as far as its answers stay: the largest difference, and the BatchNorms that are folded."""
    folding, layout = "with BatchNorm folded", "with channels-last weights"
    changes = {folding: lambda: fold(model, pairs), layout: lambda: _channels_last(model)}
    undo = [change() for change in changes.values()]
    difference, _ = _difference(model, x, expected, scale)
    if difference <= tolerance:
        return difference, tuple(pairs)
    for take_back in reversed(undo):
        take_back()
    kept = set(changes)
    for name, change in changes.items():
        before, _ = _trail(model, x)
        take_back = change()
        changed, problem = _difference(model, x, expected, scale)
        if changed > tolerance:
            where = _where(before, _trail(model, x), _ROUNDING_COARSE, pairs.values() if name == folding else ())
            say(f"{name} it {problem or 'gives other answers'}{where}; it is run without, and slower.")
            take_back()
            kept.remove(name)
    return _difference(model, x, expected, scale)[0], tuple(pairs) if folding in kept else ()


def _cast(model: nn.Module, precision: torch.dtype | None) -> nn.Module:
    """The model with its real numbers in a precision, in place; `Module.to` would cut complex ones down to real."""
    return model._apply(lambda t: t.to(precision) if precision and t.is_floating_point() else t)


def _channels_last(model: nn.Module) -> Callable[[], None]:
    """Give the weights of two-dimensional convolutions the layout channels-last; returns what takes it back."""
    before = []
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d) and "weight" in module._parameters:
            before.append((module.weight, module.weight.data))
            module.weight.data = module.weight.data.contiguous(memory_format=torch.channels_last)

    def undo() -> None:
        for weight, data in before:
            weight.data = data

    return undo


class _Unlinked(TorchFunctionMode):
    """Copies tensors that have a history, too, without it: old-style weight norm keeps such."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is Tensor.__deepcopy__ and not args[0].is_leaf:
            tensor, memo = args
            memo[id(tensor)] = tensor.detach().clone()
            return memo[id(tensor)]
        return function(*args, **(kwargs or {}))


def _copied(model: nn.Module) -> tuple[nn.Module | None, str]:
    """A deep copy in eval mode without gradients, or None and why there is none."""
    try:
        with _Unlinked():
            twin = copy.deepcopy(model)
    except Exception as error:
        # What an attribute of somebody's module raises when it is copied can be anything.
        return None, f"it cannot be deep-copied ({_said(error)})"
    if not isinstance(twin, nn.Module):
        return None, f"its deep copy is a {type(twin).__name__}"
    own = {id(part) for part in (*model.modules(), *model.parameters())}
    if any(id(part) in own for part in (*twin.modules(), *twin.parameters())):
        return None, "its deep copy shares layers with it"
    _to_eval(twin, _switches_itself(twin))
    for parameter in twin.parameters():
        parameter.requires_grad_(False).grad = None
    return twin, ""


def own_precision(model: nn.Module) -> torch.dtype | None:
    """The precision of a model's weights, None without weights or where it is mixed."""
    found = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    return found.pop() if len(found) == 1 else None


def _own_answers(model: nn.Module, x: Tensor, precision: torch.dtype | None) -> tuple[Tensor, Tensor]:
    """The model's answers to inputs in a precision, or as they are; if it takes them only in its own, in that."""
    x = x.to(precision) if precision and x.is_floating_point() else x
    try:
        return x, _given(model, x)
    except RuntimeError:
        own = own_precision(model)
        if not own or own == x.dtype or not x.is_floating_point():
            raise
    x = x.to(own)
    return x, _given(model, x)


def _given(model: nn.Module, x: Tensor) -> Tensor:
    """The answers to a copy of the inputs: a model may write into them, and keep what it computed."""
    with keeping(model):
        return checked(model(x.clone()), len(x)).clone()


def _answers(model: nn.Module, x: Tensor) -> Tensor:
    """The same in float64."""
    return _given(model, x).double()


def _random_state(device: torch.device) -> tuple:
    """The state of torch's, NumPy's and Python's random numbers, to be compared."""
    of = [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]
    numbers = np.random.get_state()  # noqa: NPY002 (what a model may draw from)
    return (*(bytes(state.numpy()) for state in of), numbers[1].tobytes(), numbers[2:], random.getstate())


def _draws(model: nn.Module, x: Tensor) -> bool:
    """Whether a forward takes random numbers that are others the next time: not of a model that sets its own seed."""
    _given(model, x)
    before = _random_state(x.device)
    _given(model, x)
    return _random_state(x.device) != before


_DEPENDS = (
    "its answer to an input depends on the other inputs of the same forward, as with a BatchNorm that has no running "
    "statistics. So will its scores; batch_size decides which inputs share a forward."
)


def _unfelt(answers: Tensor, precision: torch.dtype | None) -> float:
    """The largest difference that is rounding, or little beside what the inputs change in a model's answers [n, C]."""
    finite = answers.masked_fill(~answers.isfinite(), 0)
    change = (finite.amax(0) - finite.amin(0)).max().item()
    return max(0.01 * change, 64 * torch.finfo(precision or torch.float32).eps * finite.abs().max().item())


def _coarser(precision: torch.dtype | None, answered: torch.dtype) -> torch.dtype | None:
    """The precision of a model's weights, or that of its answers where this is lower, as under autocast."""
    if not answered.is_floating_point or torch.finfo(answered).eps <= torch.finfo(precision or torch.float32).eps:
        return precision
    return answered


def _asked_again(model: nn.Module, x: Tensor, expected: Tensor, scale: Scale, independent: bool) -> tuple[float, bool]:
    """How far a model's answers move when it is asked again and again, not put back; whether each leaves a trace.

    Other inputs in the same place tell a model that keeps its answers by the identity of an input. A trace of each
    forward may change answers later, if not the next one. What only the first one changes, as where it fills a table,
    and what is the same after the same inputs, as activations that are kept, is none.
    """
    moved, place, before, now = 0.0, x.clone(), (), ()
    with keeping(model, weights=True):
        for flips in ((0,) if independent else (), (), ()):
            answers = expected.flip(flips)
            place.copy_(x.flip(flips))
            try:
                given = model(place)
            except Exception:  # whatever the model's own code raises about what it has kept
                return math.inf, True
            moved = max(moved, scale.apart(checked(given, len(x)).double(), answers))
            before, now = now, kept(_trace(model))
    return moved, not alike(before, now)


def _writes(model: nn.Module, x: Tensor) -> bool:
    """Whether a forward in eval mode changes weights."""
    with evaluating(model, weights=True):
        before = [parameter.detach().clone() for parameter in model.parameters()]
        model(x.clone())
        return not alike(before, list(model.parameters()))


def _trace(model: nn.Module) -> list[object]:
    """All that can be seen in the attributes of a model; of what cannot be looked at, nothing."""
    leaves: list[object] = []
    known: dict[int, int] = {}

    def look(value: object) -> None:
        if isinstance(value, bool | int | float | complex | str | bytes | None):
            leaves.append(value)
        elif id(value) in known:
            leaves.append(known[id(value)])
        elif isinstance(value, Tensor):
            known[id(value)] = len(known)
            if value.layout is torch.strided and not value.is_meta:
                leaves.append(value)
        elif isinstance(value, np.ndarray) and value.dtype != object:
            leaves.append(value)
        elif isinstance(value, torch.Generator):
            leaves.append(value.get_state())
        elif isinstance(value, nn.Module):
            known[id(value)] = len(known)
            look(vars(value))
        elif isinstance(value, dict | list | tuple | set | frozenset | deque):
            known[id(value)] = len(known)
            leaves.append(len(value))
            # No pairs of keys and values: such a tuple is gone at once, and its id is that of the next one.
            for part in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
                look(part)
        elif (held := _held(value)) is not None:
            known[id(value)] = len(known)
            look(held)

    look(model)
    return leaves


def _shaken(x: Tensor) -> Tensor:
    """Inputs changed by a few units in the last place."""
    return x * (1 + 8 * torch.finfo(x.dtype).eps) if x.is_floating_point() else x


def _difference(model: nn.Module, x: Tensor, expected: Tensor, scale: Scale) -> tuple[float, str]:
    """The largest difference of a model's answers from those expected; infinite, and why, where it gives none."""
    try:
        answers = _answers(model, x)
    except Exception as error:
        if isinstance(error, RuntimeError) and out_of_memory(error):
            raise
        return math.inf, f"fails ({_said(error)})"
    if answers.shape != expected.shape:
        return math.inf, f"answers {tuple(answers.shape)}"
    return scale.apart(answers, expected), ""


def are_probabilities(model: nn.Module, logits: Tensor, precision: torch.dtype | None) -> bool:
    """Whether all rows of answers are in 0..1 and sum to one, unless the model is wrapped in `Logits`."""
    if isinstance(model, Logits):
        return False
    exact = [p for p in (torch.bfloat16, torch.float16) if torch.equal(logits.to(p).to(logits.dtype), logits)]
    # An answer may have been rounded on its way, as under autocast, whatever its type is now.
    slack = max(1e-4, *(4 * torch.finfo(p or torch.float32).eps for p in (precision, *exact)))
    return bool((logits >= 0).all()) and bool(((logits.sum(1) - 1).abs() <= slack).all())


def nearly_probabilities(model: nn.Module, logits: Tensor, precision: torch.dtype | None) -> str:
    """In words what makes answers look like probabilities that are rounded, smoothed or in percent; "" if nothing."""
    if isinstance(model, Logits) or not bool((logits >= 0).all()) or are_probabilities(model, logits, precision):
        return ""
    sums = logits.sum(1)
    for whole in (1, 100):
        if bool(((sums / whole - 1).abs() <= 0.01).all()):
            return f"none is negative, and each row sums to {sums.min():.5g}..{sums.max():.5g}"
    return ""


def _trail(model: nn.Module, x: Tensor) -> tuple[list[tuple[str, Tensor]], str | None]:
    """What each module puts out in a forward, in order, and the module in which it broke off."""
    outputs, inside = [], []

    def leave(name: str, output: object) -> None:
        inside.pop()
        if isinstance(output, Tensor):
            outputs.append((name, output.double()))

    handles = []
    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):  # which takes no hooks
            continue
        handles += [
            module.register_forward_pre_hook(lambda module, args, name=name: inside.append(name)),
            module.register_forward_hook(lambda module, args, output, name=name: leave(name, output)),
        ]
    try:
        model(x.clone())
    except Exception:
        return outputs, inside[-1] if inside else ""
    finally:
        for handle in handles:
            handle.remove()
    return outputs, None


def _where(
    before: list[tuple[str, Tensor]],
    after: tuple[list[tuple[str, Tensor]], str | None],
    relative: float,
    skipped: object = (),
) -> str:
    """In words, the first module whose output is another one than before."""
    outputs, broken = after
    for (name, one), (_, other) in zip(before, outputs, strict=False):
        same = one.shape == other.shape and bool((other - one).abs().amax() <= relative * one.abs().amax())
        if name not in skipped and not same:
            return f", first at {name!r}" if name else ""
    return f", at {broken!r}" if broken else ""


def _said(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
