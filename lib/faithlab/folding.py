"""Which BatchNorms can become part of the layer before them, and folding them there.

What can be folded is seen, not deduced from a traced graph: during a forward every operation is watched. A pair is
folded only if the BatchNorm gets the layer's output untouched and nothing else gets it, both are used once, nothing
hangs on them or on what holds them, nothing else reads their weights, and no value of the input steers the forward.
The model keeps its own `forward`; only weights change.
"""

import functools
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook, register_module_forward_pre_hook
from torch.nn.utils import fusion
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_FOLDABLE = {
    nn.BatchNorm1d: (nn.Conv1d, nn.Linear),
    nn.BatchNorm2d: (nn.Conv2d,),
    nn.BatchNorm3d: (nn.Conv3d,),
}
_LAYERS = tuple({layer for layers in _FOLDABLE.values() for layer in layers})
_STEERS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
_READS = {Tensor.tolist, Tensor.numpy, Tensor.__array__, Tensor.__dlpack__}  # values that leave torch unseen
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""Where a module keeps its hooks."""


class Watch:
    """One forward of a copy of a model, watched.

    Attributes:
        strays: what of the original model the copy used, through a forward or a hook that holds on to it, or "".
        pairs: BatchNorms that can be folded, and the layers that take them; names.
        obstacles: the other BatchNorms, and why they cannot.
    """

    def __init__(self, model: nn.Module, original: nn.Module, x: Tensor):
        self.strays = ""
        self._model, self._original = model, original
        self._modules = dict(model.named_modules())
        self._names = {id(module): name for name, module in self._modules.items()}
        self._inside: list[str] = []
        self._calls: Counter[str] = Counter()
        self._inputs: dict[str, str] = {}  # BatchNorm -> the layer whose output it gets
        self._outputs: dict[int, tuple[str, Tensor]] = {}  # storage -> whose output; held, so that none is used again
        self._spoiled = self._hung()
        self._owner = self._owners()
        self._foreign = {
            address: name
            for name, tensor in (*original.named_parameters(), *original.named_buffers())
            if (address := _address(tensor))
        }
        self._steered = "a hook on all modules" if _has_any_global_hook() else ""
        self._look(x)
        self.pairs = {norm: self._inputs[norm] for norm in self._norms() if not self._obstacle(norm)}
        self.obstacles = {norm: why for norm in self._norms() if (why := self._obstacle(norm))}
        self._outputs.clear()
        self.strays = self.strays or self._held()

    def _look(self, x: Tensor) -> None:
        originals = {id(module): name for name, module in self._original.named_modules()}

        def strayed(module: nn.Module, args) -> None:
            if id(module) in originals:
                self.strays = self.strays or f"the module {originals[id(module)]!r}"

        handles = [register_module_forward_pre_hook(strayed)]
        for module in self._modules.values():
            if isinstance(module, (*_LAYERS, nn.modules.batchnorm._BatchNorm)):
                handles += [module.register_forward_pre_hook(self._enter), module.register_forward_hook(self._leave)]
        try:
            with warnings.catch_warnings(action="ignore"), _Functions(self), _Operations(self):
                answer = self._model(x.clone())
            for part in tree_leaves(answer):
                self._used(part, "the model's answer")
        except Exception as error:
            # Whatever the model's own code raises where it is watched: it may well run otherwise.
            self._steered = f"it cannot be watched ({type(error).__name__})"
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, module: nn.Module, args: tuple) -> None:
        name = self._names[id(module)]
        self._inside.append(name)
        self._calls[name] += 1
        if args and isinstance(args[0], Tensor):
            layer, output = self._outputs.get(_address(args[0]), ("", None))
            if output is args[0] and type(self._modules[layer]) in _FOLDABLE.get(type(module), ()):
                self._inputs[name] = layer

    def _leave(self, module: nn.Module, args: tuple, output: Tensor) -> None:
        self._inside.pop()
        if isinstance(module, _LAYERS) and isinstance(output, Tensor) and (address := _address(output)):
            self._outputs[address] = self._names[id(module)], output

    def sees(self, function: object, arguments: object) -> None:
        """Note an operation on tensors."""
        for part in tree_leaves(arguments):
            if isinstance(part, Tensor):
                self._used(part, getattr(function, "__name__", str(function)))

    def steers(self, function: object) -> None:
        """Note an operation whose value Python sees, and may act on."""
        self._steered = self._steered or f"the forward may depend on values ({getattr(function, '__name__', function)})"

    def _used(self, part: object, by: str) -> None:
        address = _address(part)
        if not address:
            return
        here = self._inside[-1] if self._inside else ""
        if address in self._foreign:
            self.strays = self.strays or f"the weight {self._foreign[address]!r}"
        if address in self._owner and self._owner[address] != here:
            self._spoiled.setdefault(self._owner[address], f"its weights are read elsewhere ({by})")
        if address in self._outputs:
            layer = self._outputs[address][0]
            if here != layer and self._inputs.get(here) != layer:
                self._spoiled.setdefault(layer, f"its output is used elsewhere ({by})")

    def _hung(self) -> dict[str, str]:
        """Modules that something hangs on, or on what holds them."""
        found = {}
        for name, module in self._modules.items():
            if any(vars(module).get(hooks) for hooks in HOOKS):
                found[name] = "a hook"
            elif "forward" in vars(module):
                found[name] = "a forward of its own"
        for name in self._modules:
            places = ["", *(name[:end] for end, letter in enumerate(name) if letter == "."), name]
            place = next((place for place in places if place in found), None)
            if place is not None and name not in found:
                found[name] = f"{found[place]} on {place or 'the model'}"
        return found

    def _held(self) -> str:
        """What of the original model a hook, or a function in place of a forward, holds on to, or ""."""
        own = {
            id(module): f"the module {name!r}" if name else "the model"
            for name, module in self._original.named_modules()
        }
        own |= {id(t): f"the weight {name!r}" for name, t in self._original.named_parameters()}
        own |= {id(t): f"the buffer {name!r}" for name, t in self._original.named_buffers()}
        for name, module in self._modules.items():
            functions = [("a hook", hook) for hooks in HOOKS for hook in (vars(module).get(hooks) or {}).values()]
            functions += [("a function", value) for value in vars(module).values() if callable(value)]
            for kind, function in functions:
                if found := next((own[id(part)] for part in _reached(function) if id(part) in own), None):
                    return f"{found}, which {kind} of {name or 'the model'!r} holds on to,"
        return ""

    def _owners(self) -> dict[int, str]:
        """Whose a weight is; one that two layers share is neither's."""
        owner = {}
        for name, module in self._modules.items():
            if isinstance(module, (*_LAYERS, nn.modules.batchnorm._BatchNorm)):
                for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
                    if address := _address(tensor):
                        owner[address] = name if owner.setdefault(address, name) == name else "shared by layers"
        return owner

    def _norms(self) -> list[str]:
        return [name for name, m in self._modules.items() if isinstance(m, nn.modules.batchnorm._BatchNorm)]

    def _obstacle(self, norm: str) -> str:
        """Why a BatchNorm cannot be folded, "" if it can."""
        module = self._modules[norm]
        if type(module) not in _FOLDABLE:
            return f"a {type(module).__name__}, which does more"
        if module.running_mean is None or module.training:
            return "no running statistics"
        if self._steered:
            return self._steered
        for name in filter(None, (norm, self._inputs.get(norm))):
            if name in self._spoiled:
                return self._spoiled[name] if name == norm else f"{name}: {self._spoiled[name]}"
            if self._calls[name] != 1:
                return f"{name} is used {self._calls[name]} times"
        if list(self._inputs.values()).count(self._inputs.get(norm)) > 1:
            return f"{self._inputs[norm]} has more than one BatchNorm"
        if norm not in self._inputs:
            return "its input is not the output of a layer that could take it"
        layer = self._modules[self._inputs[norm]]
        shared = [name for name, part in self._model.named_modules(remove_duplicate=False) if part in (module, layer)]
        if len(shared) != 2:
            return f"one layer has several names ({', '.join(shared)})"
        if isinstance(layer, nn.Linear) and self._outputs_of(layer).ndim != 2:
            return "its channels are not the features of the linear layer"
        if layer.weight.dtype not in (torch.float32, torch.float64) or module.running_mean.dtype != layer.weight.dtype:
            return f"rounding of {str(layer.weight.dtype).removeprefix('torch.')} would grow"
        return ""

    def _outputs_of(self, layer: nn.Module) -> Tensor:
        name = self._names[id(layer)]
        return next(output for of, output in self._outputs.values() if of == name)


def fold(model: nn.Module, pairs: dict[str, str]) -> Callable[[], None]:
    """Fold BatchNorms into the layers before them, in place: names, see `Watch.pairs`.

    Returns:
        What takes it back.
    """
    before = []
    for norm, layer in pairs.items():
        normalise, linear = model.get_submodule(norm), model.get_submodule(layer)
        before.append((norm, normalise, linear, linear.weight, linear.bias))
        mean = normalise.running_mean
        scale = torch.ones_like(mean) if normalise.weight is None else normalise.weight
        shift = torch.zeros_like(mean) if normalise.bias is None else normalise.bias
        fuse = fusion.fuse_linear_bn_weights if isinstance(linear, nn.Linear) else fusion.fuse_conv_bn_weights
        linear.weight, linear.bias = fuse(
            linear.weight, linear.bias, mean, normalise.running_var, normalise.eps, scale, shift
        )
        linear.requires_grad_(False)
        _put(model, norm, nn.Identity())

    def undo() -> None:
        for norm, normalise, linear, weight, bias in reversed(before):
            linear.weight, linear.bias = weight, bias
            _put(model, norm, normalise)

    return undo


def _reached(function: object, known: set[int] | None = None) -> Iterator[object]:
    """What a function can reach: its closure, defaults, the globals that it names, and what these hold."""
    known = set() if known is None else known
    if id(function) in known:
        return
    known.add(id(function))
    yield function
    inside: list[object] = []
    if isinstance(function, types.FunctionType):
        for cell in function.__closure__ or ():
            try:
                inside.append(cell.cell_contents)
            except ValueError:  # not filled yet
                continue
        inside += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        inside += [function.__globals__[name] for name in _named(function.__code__) if name in function.__globals__]
    elif isinstance(function, types.MethodType):
        inside = [function.__self__, function.__func__]
    elif isinstance(function, functools.partial):
        inside = [function.func, *function.args, *function.keywords.values()]
    elif isinstance(function, list | tuple | set):
        inside = list(function)
    elif isinstance(function, dict):
        inside = list(function.values())
    for part in inside:
        if isinstance(part, (*_HOLDERS, nn.Module, Tensor)):
            yield from _reached(part, known)


_HOLDERS = (types.FunctionType, types.MethodType, functools.partial, list, tuple, set, dict)


def _named(code: types.CodeType) -> Iterator[str]:
    """The names that a function, and the functions in it, look up."""
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _named(part)


def _put(model: nn.Module, name: str, module: nn.Module) -> None:
    holder, _, last = name.rpartition(".")
    model.get_submodule(holder)._modules[last] = module.train(False)


def _address(tensor: object) -> int:
    """Where a tensor's numbers lie, the same for all its views; 0 where there is no such place."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (AttributeError, RuntimeError, NotImplementedError):  # no tensor, or one of another layout
        return 0


class _Operations(TorchDispatchMode):
    """Shows a `Watch` all operations, in whatever language they were asked for."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to keep torch.compile out of here, torch would import it first, which takes seconds."""
        return False

    def __init__(self, watch: Watch):
        super().__init__()
        self._watch = watch

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self._watch.sees(function, (args, kwargs))
        places = function is torch.ops.aten.index.Tensor and not any(
            part.dtype in (torch.bool, torch.uint8) for part in args[1] if part is not None
        )
        if _STEERS & set(function.tags) and not places:  # numbers that are places decide no size
            self._watch.steers(function)
        return function(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    """Shows a `Watch` the functions that hand a tensor's values to others than torch."""

    def __init__(self, watch: Watch):
        super().__init__()
        self._watch = watch

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in _READS:
            self._watch.steers(function)
        return function(*args, **(kwargs or {}))
