"""The kinds of network that are examined, and what is said of a reader's own before the work starts."""

import numpy as np
import pytest
import torch

from faithlab.readouts import probability
from faithlab.study import examine, kinds, profiles
from faithlab.study.kinds import KINDS
from faithlab.zoo.sets import SeriesSet, TextSet

PARAMETERS = {"images": 6, "side": 4, "steps": 4, "explainers": {"yours": ["saliency", "integrated-gradients"]}}

NETWORK = """
import torch
from torch import nn

def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear({inputs}, {classes}))
"""


@pytest.mark.parametrize(
    ("network", "model", "seed"), [("resnet9 1", "resnet9", 1), ("vit", "vit", 0), (" lstm 12 ", "lstm", 12)]
)
def test_a_network_is_named_by_its_model_and_seed(network, model, seed):
    assert kinds.named(network) == (model, seed)


@pytest.mark.parametrize("network", ["resnet", "resnet9 one", "resnet9 -1", "", "vit 0 0"])
def test_a_name_that_is_none_is_an_error(network):
    with pytest.raises(ValueError, match="expected a model and a training seed, such as 'resnet9 0'"):
        kinds.named(network)


def test_every_kind_has_explainers_and_can_be_fine_tuned():
    page = profiles.resolve("across/examination")
    for model, kind in KINDS.items():
        assert len(page["explainers"][model]) >= 3
        assert kind.recipe.model == model
        pair = kinds.networks.pair(kind.recipe, 3)
        assert pair["fine-tuned"].start == pair["original"]
        assert pair["original"].seed == 3
    assert len({kind.name for kind in KINDS.values()}) == len(KINDS)
    study = profiles.resolve("across/examination", "study")
    assert {kinds.named(network)[0] for network in study["networks"]} == set(KINDS)


def test_networks_of_a_kind_stand_together_and_once():
    one, other = (kinds.Asked(KINDS["resnet9"], seed, None, {}, ()) for seed in (0, 1))
    text = kinds.Asked(KINDS["lstm"], 0, None, {}, ())
    assert kinds.by_kind([one, text, other]) == {KINDS["resnet9"].name: [one, other], KINDS["lstm"].name: [text]}
    with pytest.raises(ValueError, match=r"ResNet-9, seed 0, is named twice"):
        kinds.by_kind([one, one])


def test_series_and_texts_of_some_length_are_explained():
    series = torch.zeros(6, 4, 2)
    series[::2, 2:] = torch.nan
    of = SeriesSet(series, torch.zeros(6, dtype=torch.int64), ("a",), (0.0, 0.0), (1.0, 1.0))
    assert kinds.chosen(of, 9, 3).tolist() == [1, 3, 5]
    tokens = torch.tensor([[3, 0, 0], [3, 3, 3], [3, 3, 0]])
    texts = TextSet(tokens, torch.zeros(3, dtype=torch.int64), ("a",), ("", "?", "!", "word"))
    assert kinds.chosen(texts, 9, 2).tolist() == [1, 2]


class Weighted(torch.nn.Module):
    """Logits of a sum of the steps, each with a weight of its own."""

    def forward(self, x):
        x = x.double() if x.ndim == 2 else x.sum(2).double()
        total = x @ torch.arange(1, x.shape[1] + 1).double()
        return torch.stack([-total, total], 1)


def test_occlusion_is_what_the_logit_loses_without_a_step():
    target = torch.tensor([1, 0])
    series = torch.tensor([[[1.0, 2.0], [3.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]])
    lost = kinds.occlusion(Weighted(), series, target, torch.arange(2))
    assert lost.shape == (2, 2, 1)
    assert lost[..., 0].tolist() == [[3, 6], [-1, -4]]
    tokens = torch.tensor([[5, 3], [2, 1]])  # the mask token is 1
    lost = kinds.occlusion(Weighted(), tokens, target, torch.arange(2))
    assert lost.tolist() == [[4, 4], [-1, 0]]


# A reader's own


@pytest.fixture
def mine(tmp_path):
    """Files of a reader's own: the network and the inputs."""

    def made(x=None, y=None, network="", **more):
        (tmp_path / "mine.py").write_text(network or NETWORK.format(inputs=64, classes=3))
        x = torch.rand(8, 1, 8, 8).numpy() if x is None else x
        np.savez(tmp_path / "mine.npz", **{"x": x, **({} if y is None else {"y": y}), **more})
        return {"model": f"{tmp_path}/mine.py:network", "data": f"{tmp_path}/mine.npz"}

    return made


def test_a_network_of_ones_own_is_asked_about_its_own_inputs(mine):
    y = np.arange(8) % 3
    found = kinds.yours(**mine(y=y), parameters=PARAMETERS)
    subject = found.subject
    assert subject.x.shape == (6, 1, 8, 8)
    assert sorted(subject.references) == ["blur", "mean", "zero"]
    predicted = subject.model(subject.x).argmax(1)
    assert (subject.target == predicted).all()
    assert float(found.right[0].value) == pytest.approx((predicted.numpy() == y[:6]).mean())
    whole = subject.score(probability)(torch.ones(6, 1, 16, dtype=torch.bool))
    expected = subject.model(subject.x).softmax(1).gather(1, predicted[:, None])
    assert torch.allclose(whole, expected, atol=1e-5)
    examine.check(**mine(y=y), parameters={**profiles.resolve("across/examination"), "side": 4})


def test_series_of_ones_own_have_steps_as_features(mine):
    files = mine(x=torch.rand(4, 16, 4).numpy())
    found = kinds.yours(**files, parameters=PARAMETERS)
    assert found.right == ()
    assert found.subject.segments.max() == 15
    assert sorted(found.subject.references) == ["mean", "zero"]


NAN = torch.full((4, 1, 8, 8), torch.nan).numpy()
GOOD = torch.rand(4, 1, 8, 8).numpy()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x": NAN}, "NaN or infinity in 4 of 4 inputs, the first is number 0"),
        ({"x": GOOD[:1]}, r"expected two or more images \[B, C, H, W\] or series"),
        ({"x": GOOD[:, 0, 0]}, r"but got torch.float32 \(4, 8\)"),
        ({"x": (GOOD * 255).astype("uint8")}, "of floating-point numbers"),
        ({"x": GOOD[..., :6]}, "fails on two inputs"),
        ({"x": torch.rand(4, 1, 4, 16).numpy()}, "expected square images, but got 4 x 16"),
        ({"x": GOOD, "y": np.arange(3)}, "one for each of the 4 inputs"),
        ({"x": GOOD, "y": np.ones(4)}, "expected whole numbers as labels"),
        ({"x": GOOD, "y": np.arange(4) + 2}, "expected labels of 0 to 2, but got 2 to 5"),
        ({"network": NETWORK.format(inputs=64, classes=1)}, r"expected logits \[2, classes\]"),
        ({"network": "def network():\n    return 3\n"}, "returns a torch.nn.Module, but it gave int"),
        ({"network": "def network(path):\n    return 3\n"}, r"expected a function of \(\), but its arguments"),
        ({"network": "import nowhere_at_all\n"}, "does not run: ModuleNotFoundError"),
        ({"network": "def other():\n    return 3\n"}, "has no function 'network'; it has other"),
    ],
)
def test_what_does_not_fit_is_said_before_the_work_starts(mine, given, said):
    with pytest.raises(ValueError, match=said):
        kinds.yours(**mine(**given), parameters=PARAMETERS)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "expected inputs for your network: DATA="),
        ("nowhere.npz", "nowhere.npz cannot be read"),
        ("nowhere.py:inputs", "is no file"),
        ("{folder}/text.npz", "cannot be read"),
        ("{folder}/other.npz", "expected an array x, and y where there are labels, but it has z"),
        ("{folder}/words.py:inputs", "expected tensors or arrays of numbers"),
        ("{folder}/words.py:three", "it gave 3 things"),
    ],
)
def test_data_that_are_none_are_an_error(tmp_path, mine, data, said):
    files = mine()
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "other.npz", z=GOOD)
    (tmp_path / "words.py").write_text("def inputs():\n    return 'words'\n\ndef three():\n    return 1, 2, 3\n")
    with pytest.raises(ValueError, match=said):
        kinds.yours(files["model"], data.format(folder=tmp_path), PARAMETERS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "expected a metric, an explainer or a network of yours"),
        ({"model": "a.py:f"}, "expected MODEL and DATA together"),
        ({"data": "a.npz"}, "expected a metric, an explainer or a network"),
        ({"metric": "nowhere.py:mine", "data": "a.npz"}, "expected MODEL and DATA together"),
    ],
)
def test_what_cannot_be_examined_is_said(given, said):
    with pytest.raises(ValueError, match=said):
        examine.examine(**given)


def test_an_explainer_that_fails_on_ones_own_network_is_named(mine, tmp_path):
    (tmp_path / "maps.py").write_text("def flat(model, x, target, images):\n    return x * 0\n")
    with pytest.raises(ValueError, match="the explainer 'flat' says the same of all features"):
        examine.check(explainer=f"{tmp_path}/maps.py:flat", **mine(), parameters={**PARAMETERS})
