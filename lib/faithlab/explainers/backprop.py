"""Relevance propagated backwards by a rule of its own at every layer. The rules are zennit's."""

import operator

import torch
from torch import Tensor, fx, nn
from zennit.composites import ExcitationBackprop
from zennit.layer import Sum
from zennit.rules import Pass
from zennit.types import Activation

from faithlab import engine
from faithlab.explainers import register


@register("excitation-backprop")
def excitation_backprop(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Excitation Backprop (Zhang, Bargal, Lin, Brandt, Shen, Sclaroff, 2018) down to the input, signed, [n, *S].

    Each neuron passes its relevance to the neurons that excite it, in proportion to activation times positive weight;
    biases take none, so that what arrives at the input adds up to one. BatchNorm is part of its convolution.

    Raises:
        ValueError: a model that torch.fx cannot trace, whose sums of branches cannot be found.
    """
    network = _with_sums(engine.prepare(model, x.dtype))
    composite = ExcitationBackprop(layer_map=[(Activation, Pass())], zero_params=["bias"])
    # The input asks for gradients here, so that it works where they are off.
    with torch.enable_grad(), composite.context(network):
        inputs = x.detach().clone().requires_grad_()
        logits = network(inputs)
        chosen = nn.functional.one_hot(target, logits.shape[1]).to(logits)
        (relevance,) = torch.autograd.grad(logits, inputs, chosen)
    return relevance


def _with_sums(model: nn.Module) -> nn.Module:
    """The model with each sum of two branches as a layer, so that a rule shares the relevance between them."""
    try:
        traced = fx.symbolic_trace(model)
    except Exception as error:
        # torch.fx raises whatever the model's own code raises on a symbolic input.
        raise ValueError(
            f"excitation-backprop needs a model that torch.fx can trace, to find the sums of its branches, but: {error}"
        ) from error
    sums = [node for node in traced.graph.nodes if node.target in (operator.add, operator.iadd, torch.add)]
    for number, node in enumerate(sums):
        if not all(isinstance(argument, fx.Node) for argument in node.args):
            continue  # a constant is added, no branch
        name = f"sum_of_branches_{number}"
        traced.add_submodule(name, Sum())
        with traced.graph.inserting_before(node):
            branches = traced.graph.call_function(torch.stack, (node.args, -1))
            node.replace_all_uses_with(traced.graph.call_module(name, (branches,)))
        traced.graph.erase_node(node)
    traced.recompile()
    return traced
