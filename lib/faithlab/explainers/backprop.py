"""Relevance propagated backwards by a rule of its own at every layer. The rules are zennit's."""

import operator
from operator import attrgetter

import torch
from torch import Tensor, fx, nn
from zennit.composites import ExcitationBackprop
from zennit.layer import Sum
from zennit.rules import Pass
from zennit.types import Activation

from faithlab import engine
from faithlab.explainers import register

_SUMS = (operator.add, operator.iadd, torch.add)
_ARITHMETIC = (*_SUMS, operator.mul, operator.imul, torch.mul)


@register("excitation-backprop")
def excitation_backprop(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Excitation Backprop (Zhang, Bargal, Lin, Brandt, Shen, Sclaroff, 2018) down to the input, signed, [n, *S].

    Each neuron passes its relevance to the neurons that excite it, in proportion to activation times positive weight;
    biases take none, so that what arrives at the input adds up to one. BatchNorm is part of its convolution.

    Raises:
        ValueError: a model that torch.fx cannot trace, whose sums of branches cannot be found.
    """
    network = _with_layers(engine.prepare(model, x, x.dtype))
    composite = ExcitationBackprop(layer_map=[((Activation, _WithConstant), Pass())], zero_params=["bias"])
    # The input asks for gradients here, so that it works where they are off.
    with torch.enable_grad(), composite.context(network):
        inputs = x.detach().clone().requires_grad_()
        logits = network(inputs)
        chosen = nn.functional.one_hot(target, logits.shape[1]).to(logits)
        (relevance,) = torch.autograd.grad(logits, inputs, chosen)
    return relevance


class _WithConstant(nn.Module):
    """A sum with, or a product by, a constant: one input has all of its relevance."""

    def __init__(self, operation, constant: Tensor):
        super().__init__()
        self.operation = operation
        self.register_buffer("constant", constant)

    def forward(self, x: Tensor) -> Tensor:
        return self.operation(x, self.constant)


def _with_layers(model: nn.Module) -> nn.Module:
    """The model with each sum of two branches, and each constant, as a layer that a rule can share relevance in."""
    try:
        traced = fx.symbolic_trace(model)
    except Exception as error:
        # torch.fx raises whatever the model's own code raises on a symbolic input.
        raise ValueError(
            f"excitation-backprop needs a model that torch.fx can trace, to find the sums of its branches, but: {error}"
        ) from error
    for number, node in enumerate(list(traced.graph.nodes)):
        if node.target not in _ARITHMETIC or not all(isinstance(argument, fx.Node) for argument in node.args):
            continue
        one, other = node.args
        with traced.graph.inserting_before(node):
            name = f"arithmetic_{number}"
            if other.op == "get_attr":
                traced.add_submodule(name, _WithConstant(node.target, attrgetter(other.target)(traced)))
                layer = traced.graph.call_module(name, (one,))
            elif node.target in _SUMS:
                traced.add_submodule(name, Sum())
                layer = traced.graph.call_module(name, (traced.graph.call_function(torch.stack, (node.args, -1)),))
            else:
                continue
        node.replace_all_uses_with(layer)
        traced.graph.erase_node(node)
    traced.recompile()
    return traced
