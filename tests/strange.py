"""Models that are easily run wrong, as users have them: shared layers, hooks, patches, control flow, odd layouts.

Each builder gives a model whose weights the global seed decides. `IMAGES` are for those that classify images.
"""

import functools
import re
import threading
import types

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize, spectral_norm, weight_norm
from torch.utils.checkpoint import checkpoint

BUILDERS = {}
IMAGES = torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def register(builder):
    """Make a builder one of `BUILDERS`."""
    words = re.sub("(?<=[a-z])(?=[A-Z])|_", " ", builder.__name__)
    BUILDERS[words.lower()] = builder
    return builder


def settled(model: nn.Module) -> nn.Module:
    """The model with BatchNorms that do something: statistics, scales and shifts of no fresh model."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
                module.running_mean.normal_(0, 0.5)
                module.running_var.uniform_(0.3, 2)
                if module.affine:
                    module.weight.uniform_(0.5, 2)
                    module.bias.normal_(0, 0.5)
    return model


class Net(nn.Module):
    """Two convolutions with BatchNorm and a head; the models below change one thing of it."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.head = nn.Linear(6, 4)

    def body(self, x):
        x = self.bn(self.conv(x)).relu()
        return self.bn2(self.conv2(x)).relu()

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


register(Net)


# Layers used more than once


@register
class Siamese(Net):
    """Two halves of the image through one backbone."""

    def forward(self, x):
        left, right = self.body(x[..., :4]), self.body(x[..., 4:])
        return self.head((left - right).abs().mean((2, 3)))


@register
class Recurrent(Net):
    """One convolution and BatchNorm, again and again."""

    def forward(self, x):
        x = self.bn(self.conv(x))
        for _ in range(3):
            x = self.bn2(self.conv2(x)).relu()
        return self.head(x.mean((2, 3)))


@register
class SharedBatchNorm(Net):
    """Two convolutions, one BatchNorm."""

    def forward(self, x):
        return self.head(self.bn(self.conv2(self.bn(self.conv(x)).relu())).mean((2, 3)))


@register
class SharedConvolution(Net):
    """One convolution call, two BatchNorms."""

    def forward(self, x):
        y = self.conv(x)
        return self.head((self.bn(y) * self.bn2(y)).mean((2, 3)))


@register
class CalledWithoutHooks(Net):
    """The second use goes past __call__, where no hook sees it."""

    def forward(self, x):
        return self.head((self.bn(self.conv(x)) + self.conv.forward(x)).mean((2, 3)))


@register
class OutputUsedTwice(Net):
    """A shortcut that starts before the BatchNorm."""

    def forward(self, x):
        y = self.conv(x)
        return self.head((self.bn(y).relu() + y).mean((2, 3)))


@register
class OutputSeenByAnotherName(Net):
    """The convolution's output is used through .data, which is another tensor with the same numbers."""

    def forward(self, x):
        y = self.conv(x)
        seen = y.data
        return self.head((self.bn(y).relu() + seen).mean((2, 3)))


@register
class OutputChangedInPlace(Net):
    """What is normalised is not what the convolution gave."""

    def forward(self, x):
        y = self.conv(x)
        y.data.abs_()
        return self.head(self.bn(y).mean((2, 3)))


@register
class TiedWeights(Net):
    """Two convolutions have one weight."""

    def __init__(self):
        super().__init__()
        self.third = nn.Conv2d(6, 6, 3, padding=1, bias=False)
        self.third.weight = self.conv2.weight

    def forward(self, x):
        return self.head(self.third(self.body(x)).mean((2, 3)))


@register
class TwoNames(Net):
    """One BatchNorm has two names, and is called by the second."""

    def __init__(self):
        super().__init__()
        self.again = self.bn

    def body(self, x):
        return self.bn2(self.conv2(self.again(self.conv(x)).relu())).relu()


@register
class HiddenInList(Net):
    """Called through a list that is no ModuleList."""

    def __init__(self):
        super().__init__()
        self.steps = [self.conv, self.bn, torch.relu]

    def body(self, x):
        return functools.reduce(lambda value, step: step(value), self.steps, x)


# Hooks


@register
def root_hook():
    """Temperature scaling."""
    net = Net()
    net.register_forward_hook(lambda module, args, output: output / 4)
    return net


@register
def root_pre_hook():
    net = Net()
    net.register_forward_pre_hook(lambda module, args: (args[0] * 0.5 - 0.1,))
    return net


@register
def layer_hook():
    net = Net()
    net.conv.register_forward_hook(lambda module, args, output: output.sin())
    return net


@register
def batchnorm_hook():
    net = Net()
    net.bn.register_forward_hook(lambda module, args, output: output + args[0])
    return net


@register
def layer_pre_hook():
    net = Net()
    net.bn.register_forward_pre_hook(lambda module, args: (args[0].abs(),))
    return net


@register
def hook_with_keywords():
    net = Net()
    net.conv.register_forward_hook(lambda module, args, kwargs, output: output * 2, with_kwargs=True)
    return net


@register
def backward_hook():
    net = Net()
    net.bn.register_full_backward_hook(lambda module, inputs, outputs: None)
    return net


@register
def hook_that_holds_on_to_the_model():
    net = Net()
    net.conv2.register_forward_hook(lambda module, args, output: output + net.bn(args[0]))
    return net


@register
def hook_that_holds_on_to_a_weight():
    net = Net()
    weight = net.head.weight
    net.register_forward_hook(lambda module, args, output: output * weight.sum())
    return net


# Weights that are not what they seem


@register
def weight_norm_old():
    net = Net()
    weight_norm(net.conv)
    net(IMAGES)  # leaves a weight with a history, which cannot be deep-copied
    return net


@register
def spectral_norm_old():
    net = Net()
    spectral_norm(net.conv)
    net(IMAGES)
    return net


@register
def weight_norm_new():
    net = Net()
    parametrizations.weight_norm(net.conv2)
    return net


@register
def spectral_norm_new():
    net = Net()
    parametrizations.spectral_norm(net.conv)
    net(IMAGES)
    return net


class _Squared(nn.Module):
    def forward(self, weight):
        return weight.abs().sqrt() * weight.sign()


@register
def parametrised_scale_of_a_batchnorm():
    net = Net()
    parametrize.register_parametrization(net.bn, "weight", _Squared())
    return net


@register
class ReadsWeight(Net):
    """The convolution's weight is used a second time, by itself."""

    def forward(self, x):
        y = self.bn(self.conv(x))
        return self.head((y + functional.conv2d(x, self.conv.weight, padding=1)).mean((2, 3)))


@register
class ReadsWeightByAnotherName(Net):
    """The same through .data."""

    def forward(self, x):
        y = self.bn(self.conv(x))
        return self.head((y * self.conv.weight.data.norm() + self.bn.running_mean.view(-1, 1, 1)).mean((2, 3)))


@register
class ComplexWeights(Net):
    """A Fourier layer."""

    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(6, 8, 5, dtype=torch.complex64))

    def forward(self, x):
        spectrum = torch.fft.rfft2(self.body(x).float()) * self.filter
        return self.head(torch.fft.irfft2(spectrum, s=(8, 8)).relu().mean((2, 3)).to(self.head.weight.dtype))


@register
class Lora(Net):
    """Merges its low-rank update into the weight in eval mode, and takes it out again in training mode."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(4, 2)), nn.Parameter(torch.randn(2, 6))
        self.merged = False

    def train(self, mode=True):
        super().train(mode)
        if self.merged == mode:
            self.head.weight.data += (-1 if mode else 1) * self.a.data @ self.b.data
            self.merged = not mode
        return self

    def forward(self, x):
        features = self.body(x).mean((2, 3))
        return self.head(features) + (0 if self.merged else features @ self.b.T @ self.a.T)


# Forwards that are not those of the class


@register
def patched_forward():
    """Holds on to the forward of the model it was made for, which no copy can change."""
    net = Net()
    forward = net.forward
    net.forward = lambda x: forward(x) / 4
    return net


@register
def patched_forward_of_a_layer():
    net = Net()
    forward = net.conv.forward
    net.conv.forward = lambda x: forward(x).sin()
    return net


@register
def bound_forward():
    net = Net()
    net.bn.forward = types.MethodType(lambda self, x: x * self.weight.view(-1, 1, 1) + 1, net.bn)
    return net


@register
def partial_forward():
    net = Net()
    net.forward = functools.partial(lambda model, x: model.head(model.body(x).amax((2, 3))), net)
    return net


@register
class StridesSetInForward(Net):
    """The layer's settings belong to the forward."""

    def forward(self, x):
        self.conv.stride = (2, 2)
        y = self.bn(self.conv(x)).mean((2, 3))
        self.conv.stride = (1, 1)
        return self.head(y)


class _Same(nn.Conv2d):
    def forward(self, x):
        return super().forward(x).flip(-1)


class _WithActivation(nn.BatchNorm2d):
    def forward(self, x):
        return super().forward(x).sin()


@register
def subclasses():
    net = Net()
    net.conv, net.bn2 = _Same(3, 6, 3, padding=1), _WithActivation(6)
    return net


# Control flow


@register
class IsinstanceGuard(Net):
    """A tensor, or a list of tensors."""

    def forward(self, x):
        if isinstance(x, torch.Tensor):
            return self.head(self.bn(self.conv(x)).relu().mean((2, 3)))
        return super().forward(x[0])


@register
class BranchesOnValues(Net):
    """Masked inputs go another way than whole ones."""

    def forward(self, x):
        ways = []
        for image in x.split(1):
            y = self.conv(image)
            ways.append(self.bn(y) if (image == 0).float().mean() < 0.3 else y)
        return self.head(torch.cat(ways).mean((2, 3)))


@register
class BranchesUnseen(Net):
    """The same, where the value leaves torch."""

    def forward(self, x):
        y = self.conv(x)
        z = self.bn(y)
        masked = [sum(row) > 60 for row in (x == 0).flatten(1).float().tolist()]
        return self.head(torch.stack([b if m else a for a, b, m in zip(z, y, masked, strict=True)]).mean((2, 3)))


@register
class BranchesOnShapes(Net):
    """How many pixels are positive decides which pixels are summed."""

    def forward(self, x):
        y = self.bn(self.conv(x))
        counts = [len(image.nonzero()) // 24 for image in x > 0]
        return self.head(torch.stack([z[:, : 1 + n].mean((1, 2)) for z, n in zip(y, counts, strict=True)]))


@register
class Checkpointed(Net):
    """Recomputes activations in training."""

    def forward(self, x):
        return self.head(checkpoint(self.body, x, use_reentrant=False).mean((2, 3)))


@register
class Mapped(Net):
    """torch.vmap over the images."""

    def forward(self, x):
        features = self.body(x).mean((2, 3))
        return torch.vmap(lambda row: self.head.weight @ row)(features)


@register
class Differentiates(Net):
    """A forward that needs a gradient of its own."""

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(super().forward(x).logsumexp(1).sum(), x)
        return self.head(self.body(1000 * slope).mean((2, 3)))


# Layouts and inputs


@register
class Views(nn.Module):
    """The usual small network: .view after a convolution, which channels-last activations refuse."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.Linear(6 * 36, 4)

    def forward(self, x):
        return self.fc(self.bn(self.conv(x)).relu().view(-1, 6 * 36))


@register
class StridedView(Views):
    """Reads memory in its order, which channels-last changes without an error."""

    def forward(self, x):
        y = self.bn(self.conv(x)).relu()
        return self.fc(y.as_strided((len(x), 6 * 36), (6 * 36, 1)))


@register
class WritesIntoItsInput(Net):
    """Normalises in place."""

    def forward(self, x):
        return super().forward(x.mul_(0.5).add_(0.2))


@register
def relu_first():
    return nn.Sequential(nn.LeakyReLU(0.2, inplace=True), Net())


@register
class ReturnsView(Net):
    """A part of a tensor with more columns."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 9)

    def forward(self, x):
        return super().forward(x)[:, 2:6]


@register
class ReturnsOneBuffer(Net):
    """Every answer is in the same place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("answers", torch.zeros(256, 4))

    def forward(self, x):
        self.answers[: len(x)] = super().forward(x)
        return self.answers[: len(x)]


@register
class Counts(Net):
    """Counts its calls in a buffer and an attribute."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("rows", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        self.rows += len(x)
        return super().forward(x)


# What a forward keeps


@register
class Stateful(Net):
    """Adds the features of the forward before."""

    seen = None

    def forward(self, x):
        features = self.body(x).mean((2, 3))
        before, self.seen = self.seen, features.mean(0)
        return self.head(features if before is None else features + before)


@register
class MovingMean(Net):
    """Subtracts a mean that moves in eval mode, too."""

    def __init__(self):
        super().__init__()
        self.register_buffer("centre", torch.zeros(6))

    def forward(self, x):
        features = self.body(x).mean((2, 3))
        answer = self.head(features - self.centre)
        self.centre += features.mean(0)
        return answer


@register
class AnswersByPlace(Net):
    """Knows an input by its place in memory, where another may be next time."""

    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, x):
        place = x.data_ptr(), x.shape
        if place not in self.known:
            self.known[place] = super().forward(x)
        return self.known[place]


@register
class WritesDown(Net):
    """Keeps a list, a tensor and an array of its calls."""

    def __init__(self):
        super().__init__()
        self.calls = {"shapes": [], "rows": torch.zeros(1), "times": numpy.zeros(1)}

    def forward(self, x):
        self.calls["shapes"].append(x.shape)
        self.calls["rows"] += len(x)
        self.calls["times"] += 1
        return super().forward(x)


@register
class ScalesItsWeights(Net):
    """Writes into its weights in every forward."""

    def forward(self, x):
        self.head.weight.data /= self.head.weight.data.norm()
        return super().forward(x)


# Modes


@register
class ModeOfItsOwn(Net):
    """Another function in training mode, of which no flag tells."""

    scale = 3

    def train(self, mode=True):
        self.scale = 3 if mode else 1
        return super().train(mode)

    def forward(self, x):
        return super().forward(x * self.scale)


@register
def training():
    return nn.Sequential(Net(), nn.Dropout(0.5)).train()


@register
def frozen():
    net = Net().train().requires_grad_(False)
    net.bn.eval()
    net.head.requires_grad_()
    return net


@register
class KeepsBatchNormInEval(Net):
    """train() that leaves BatchNorm as it is."""

    def train(self, mode=True):
        super().train(mode)
        self.bn.eval(), self.bn2.eval()
        return self


@register
class BatchNormWithoutAffine(Net):
    """Nothing but statistics, the average of all batches."""

    def __init__(self):
        super().__init__()
        self.bn, self.bn2 = nn.BatchNorm2d(6, affine=False, momentum=None), nn.BatchNorm2d(6, eps=0.1)


# Copies


@register
class NoCopy(Net):
    """A lock cannot be copied."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


@register
class CopiesAreItself(Net):
    """A model that thinks there is only one of it."""

    def __deepcopy__(self, memo):
        return self


@register
class ShallowCopies(Net):
    """A copy that shares the weights."""

    def __deepcopy__(self, memo):
        twin = type(self)()
        twin._parameters, twin._buffers, twin._modules = self._parameters, self._buffers, dict(self._modules)
        return twin


@register
class Remembers(Net):
    """Keeps its last activations, with their history."""

    def forward(self, x):
        self.seen = {"features": [self.body(x)]}
        return self.head(self.seen["features"][0].mean((2, 3)))


@register
def remembers_already():
    net = Remembers()
    net(IMAGES)
    return net


# Made by torch


@register
def scripted():
    return torch.jit.script(Net())


@register
def traced_by_jit():
    return torch.jit.trace(Net().eval(), IMAGES)


@register
def traced_by_fx():
    return torch.fx.symbolic_trace(Net())


@register
def exported():
    return torch.export.export(Net().eval(), (IMAGES,), dynamic_shapes=({0: torch.export.Dim("n")},)).module()


@register
def compiled():
    return torch.compile(Net(), backend="eager")


@register
def parallel():
    return nn.DataParallel(Net())


# Other inputs than images: name -> (builder, inputs, segments of 6 features)

SERIES = torch.randn(3, 12, 2, generator=torch.Generator().manual_seed(1))
VOLUMES = torch.randn(3, 1, 6, 6, 6, generator=torch.Generator().manual_seed(2))
TEXTS = torch.randint(1, 20, (3, 6), generator=torch.Generator().manual_seed(3))


class Series(nn.Module):
    """Convolutions over time."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(2, 6, 3), nn.BatchNorm1d(6), nn.ReLU(), nn.Flatten(), nn.Linear(60, 5), nn.BatchNorm1d(5)
        )
        self.head = nn.Linear(5, 4)

    def forward(self, x):
        return self.head(self.layers(x.transpose(1, 2)))


class Steps(nn.Module):
    """A linear layer and a BatchNorm over the steps, not over its features."""

    def __init__(self):
        super().__init__()
        self.first, self.bn, self.head = nn.Linear(2, 12), nn.BatchNorm1d(12), nn.Linear(12, 4)

    def forward(self, x):
        return self.head(self.bn(self.first(x)).relu().mean(1))


class Recurrence(nn.Module):
    """A recurrent layer over series."""

    def __init__(self, layer=nn.LSTM):
        super().__init__()
        self.layer, self.head = layer(2, 8, 2, batch_first=True, bidirectional=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.layer(x)[0].mean(1))


class Volumes(nn.Module):
    """Convolutions in three dimensions beside one in two."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv3d(1, 4, 3), nn.BatchNorm3d(4)
        self.conv2, self.bn2, self.head = nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 4)

    def forward(self, x):
        x = self.bn(self.conv(x)).relu().mean(2)
        return self.head(self.bn2(self.conv2(x)).mean((2, 3)))


class Tokens(nn.Module):
    """A Transformer of torch over token ids, 0 for padding; its fast path is another code than its slow one."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8, padding_idx=0)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
        self.head = nn.Linear(8, 4)

    def forward(self, ids):
        padding = ids == 0
        features = self.layers(self.embedding(ids), src_key_padding_mask=padding)
        return self.head(features.masked_fill(padding[..., None], 0).sum(1))


class Bag(nn.Module):
    """The mean of the tokens' vectors."""

    def __init__(self):
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(20, 8, mode="sum"), nn.Linear(8, 4)

    def forward(self, ids):
        return self.head(self.bag(ids).relu())


_TIME = torch.arange(12).view(12, 1) // 2
OTHER_INPUTS = {
    "series": (Series, SERIES, _TIME),
    "batch norm over steps": (Steps, SERIES, _TIME),
    "lstm": (Recurrence, SERIES, _TIME),
    "gru": (lambda: Recurrence(nn.GRU), SERIES, _TIME),
    "volumes": (Volumes, VOLUMES, torch.arange(6).view(6, 1, 1)),
    "tokens": (Tokens, TEXTS, torch.arange(6)),
    "bag of tokens": (Bag, TEXTS, torch.arange(6)),
}
