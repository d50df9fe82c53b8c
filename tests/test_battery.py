"""The engine answers for the user's model, whole or with parts removed, and leaves the model as it was."""

import copy
import itertools
import warnings
from collections.abc import Callable

import pytest
import timm
import torch
import torchvision
from torch import nn

import strange
from faithlab import engine, outputs, prepare, segments
from faithstudy import profiles
from faithstudy.networks import models
from strange import settled

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:Using .torch.compile:UserWarning")


def built(builder: Callable[[], nn.Module]) -> nn.Module:
    """The same model every time."""
    torch.manual_seed(0)
    return settled(builder())


def in_eval(model: nn.Module) -> nn.Module:
    try:
        return model.eval()
    except NotImplementedError:  # an exported program is what it was
        return model


def everything(model: nn.Module) -> dict[str, object]:
    """All of a model that a user could find changed."""
    found = {}
    for name, module in model.named_modules():
        found[f"{name} training"] = module.training
        found[f"{name} hooks"] = [len(vars(module).get(f"_{kind}_hooks", ())) for kind in ("forward", "forward_pre")]
        found[f"{name} attributes"] = sorted(vars(module)), repr(vars(module).get("calls"))
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        found[name] = tensor.data_ptr(), tensor.stride(), tensor.device, tensor.dtype, tensor.requires_grad, tensor.grad
        found[f"{name} values"] = hash(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return found


def check(
    build, x, segmentation, *, precision=None, tolerance=1e-4, says=None, masks=6, classes=4, times=1, fresh=False
) -> None:
    """The engine, asked so often, against the model on inputs masked by hand, one at a time; relative to the spread."""
    model, own = built(build), in_eval(built(build))
    before, asked = everything(model), x.clone()
    keep = torch.rand(len(x), masks, segments.count(segmentation), generator=torch.Generator().manual_seed(2)) < 0.6
    keep[:, 0] = True
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        scores = [
            engine.scorer(
                *(model, x, torch.full((len(x),), c)),
                segments=segmentation,
                output=outputs.logit,
                precision=precision,
            )
            for c in range(classes)
        ]
        answers = [torch.stack([score(keep) for score in scores], -1) for _ in range(times)][-1]
    expected = torch.empty_like(answers)
    with torch.no_grad():
        for b, m in itertools.product(range(len(x)), range(masks)):
            own = in_eval(built(build)) if fresh else own
            masked = torch.where(keep[b, m][segmentation].expand(x.shape[1:]), x[b], torch.zeros_like(x[b]))
            expected[b, m] = own(masked[None].clone())[0, :classes].float()
    spread = (expected - expected.mean()).abs().max()
    assert expected.std(1).max() > 1e-3 * spread, "the answers do not depend on the input: nothing is compared"
    assert (answers - expected).abs().max() <= tolerance * spread
    assert torch.equal(x, asked)
    assert everything(model) == before
    texts = [str(w.message) for w in said if type(model).__name__ in str(w.message)]
    texts = [text for text in texts if says or "rounding moves its answers" not in text]  # the processor decides that
    assert len(texts) == len(set(texts)), "said more than once"
    assert bool(texts) == bool(says), texts
    assert not says or says in " ".join(texts)


@pytest.mark.parametrize("name", strange.OTHER_INPUTS)
def test_other_inputs(name):
    check(*strange.OTHER_INPUTS[name])


ZOO = {
    "bilstm": ({"width": 8, "layers": 2}, torch.randn(3, 12, 6), torch.arange(12).view(12, 1) // 2),
    "cnn1d": ({"width": 8}, torch.randn(3, 16, 6), torch.arange(16).view(16, 1) // 2),
    "cnn3": ({"width": 4}, torch.randn(3, 3, 16, 16), segments.patches(16, 16, 4)),
    "lipschitz": ({"width": 4, "size": 16}, torch.randn(3, 3, 16, 16), segments.patches(16, 16, 4)),
    "lstm": ({"words": 20, "dim": 8, "hidden": 8, "classes": 4}, torch.randint(1, 20, (3, 6)), torch.arange(6)),
    "photographs": ({"architecture": "resnet18"}, torch.randn(3, 3, 32, 32), segments.patches(32, 32, 8)),
    "resnet18": ({"width": 4}, torch.randn(3, 3, 16, 16), segments.patches(16, 16, 4)),
    "resnet9": ({"width": 4}, torch.randn(3, 3, 16, 16), segments.patches(16, 16, 4)),
    "strided": ({"width": 4}, torch.randn(3, 3, 16, 16), segments.patches(16, 16, 4)),
    "unbounded": ({"width": 4, "size": 16}, torch.randn(3, 3, 16, 16), segments.patches(16, 16, 4)),
    "transformer": (
        {"words": 20, "dim": 8, "depth": 1, "heads": 2, "classes": 4},
        torch.randint(1, 20, (3, 6)),
        torch.arange(6),
    ),
    "vit": ({"size": 16, "dim": 16, "depth": 2, "heads": 2}, torch.randn(3, 3, 16, 16), segments.patches(16, 16, 4)),
}


# Two have weights to fetch: in test_pretrained.py and test_vit_small.py, and known once their modules are imported.
@pytest.mark.parametrize("name", [name for name in models.names() if name not in ("pretrained", "vit_small")])
def test_the_zoo(name):
    options, x, segmentation = ZOO[name]
    check(lambda: models.build(name, **options), x, segmentation)
    norms = [m for m in built(lambda: models.build(name, **options)).modules() if "BatchNorm" in type(m).__name__]
    assert len(prepare.prepare(built(lambda: models.build(name, **options)), x).folded) == len(norms)


def family(entry: str) -> nn.Module:
    """A network of torchvision or timm that uses its input: BatchNorm has the statistics of random images, changed."""
    library, name, side = entry.split()
    if library == "torchvision":
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        with torch.device("meta" if name.startswith("vgg") else "cpu"):
            network = torchvision.models.get_model(name, weights=None, num_classes=4, **options)
        if name.startswith("vgg"):  # its head, of 120 million weights, is what is slow about it: a narrow one
            network.classifier = nn.Sequential(nn.Linear(25088, 32), nn.ReLU(True), nn.Dropout(), nn.Linear(32, 4))
            network.to_empty(device="cpu").apply(lambda m: m.reset_parameters() if hasattr(m, "weight") else None)
    else:
        try:
            network = timm.create_model(name, num_classes=4, img_size=int(side))
        except TypeError:  # convolutional networks take any size
            network = timm.create_model(name, num_classes=4)
    network.eval()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Linear) and not module.weight.any():
                nn.init.normal_(module.weight, std=0.1)
        norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        for norm in norms:
            norm.train().momentum = 1.0
            norm.weight.uniform_(0.5, 1.5)
            norm.bias.normal_(std=0.3)
        network(torch.randn(8, 3, int(side), int(side)))
        for norm in norms:
            norm.running_mean += 0.2 * norm.running_var.sqrt() * torch.randn_like(norm.running_mean)
            norm.running_var *= torch.empty_like(norm.running_var).uniform_(0.7, 1.4)
    return network


MORE = ("torchvision densenet121 32", "torchvision vgg11_bn 32", "timm nf_resnet26 32", "timm mixer_s32_224 64")


@pytest.mark.parametrize("entry", [*profiles.resolve("cost/models", "quick")["networks"], *MORE])
def test_families(entry, monkeypatch):
    """Those of the book's page and some more, in training mode.

    A deep network with random weights multiplies rounding: alone and among eight its own answers differ by up to 0.1 %
    of the spread. A BatchNorm that is folded wrongly is off by the spread itself.
    """
    monkeypatch.setattr("test_battery.settled", lambda model: model)
    side = int(entry.split()[-1])
    x = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(5))
    patches = torch.arange(side).view(side, 1).expand(side, side).contiguous() * 4 // side
    network = built(lambda: family(entry).train())
    check(lambda: copy.deepcopy(network), x, patches, tolerance=1e-2, masks=3, classes=2)
