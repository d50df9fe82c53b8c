"""The kinds of network that are examined, and what is said of a reader's own before the work starts."""

import json
import re

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch

from faithlab import metrics
from faithlab.metrics import METRICS
from faithlab.outputs import probability
from faithstudy import architectures, examine, profiles
from faithstudy.architectures import KINDS
from faithstudy.data.sets import SeriesSet, TextSet
from faithstudy.trials import checks

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
    assert architectures.named(network) == (model, seed)


@pytest.mark.parametrize("network", ["resnet", "resnet9 one", "resnet9 -1", "", "vit 0 0"])
def test_a_name_that_is_none_is_an_error(network):
    with pytest.raises(ValueError, match="expected a model and a training seed, such as 'resnet9 0'"):
        architectures.named(network)


def test_every_kind_has_explainers_and_can_be_fine_tuned():
    page = profiles.resolve("across/examination")
    for model, kind in KINDS.items():
        assert len(page["explainers"][model]) >= 3
        assert kind.recipe.model == model
        pair = architectures.recipes.pair(kind.recipe, 3)
        assert pair["fine-tuned"].start == pair["original"]
        assert pair["original"].seed == 3
    assert len({kind.name for kind in KINDS.values()}) == len(KINDS)
    study = profiles.resolve("across/examination", "study")
    assert {architectures.named(network)[0] for network in study["networks"]} == set(KINDS)


def test_networks_of_a_kind_stand_together_and_once():
    one, other = (architectures.Asked(KINDS["resnet9"], seed, None, {}, tuple) for seed in (0, 1))
    text = architectures.Asked(KINDS["lstm"], 0, None, {}, tuple)
    assert architectures.by_kind([one, text, other]) == {
        KINDS["resnet9"].name: [one, other],
        KINDS["lstm"].name: [text],
    }
    with pytest.raises(ValueError, match=r"ResNet-9, seed 0, is named twice"):
        architectures.by_kind([one, one])


def test_series_and_texts_of_some_length_are_explained():
    series = torch.zeros(6, 4, 2)
    series[::2, 2:] = torch.nan
    of = SeriesSet(series, torch.zeros(6, dtype=torch.int64), ("a",), (0.0, 0.0), (1.0, 1.0))
    assert architectures.chosen(of, 9, 3).tolist() == [1, 3, 5]
    tokens = torch.tensor([[3, 0, 0], [3, 3, 3], [3, 3, 0]])
    texts = TextSet(tokens, torch.zeros(3, dtype=torch.int64), ("a",), ("", "?", "!", "word"))
    assert architectures.chosen(texts, 9, 2).tolist() == [1, 2]


class Weighted(torch.nn.Module):
    """Logits of a sum of the steps, each with a weight of its own."""

    def forward(self, x):
        x = x.double() if x.ndim == 2 else x.sum(2).double()
        total = x @ torch.arange(1, x.shape[1] + 1).double()
        return torch.stack([-total, total], 1)


def test_occlusion_is_what_the_logit_loses_without_a_step():
    target = torch.tensor([1, 0])
    series = torch.tensor([[[1.0, 2.0], [3.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]])
    lost = architectures.occlusion(Weighted(), series, target, torch.arange(2))
    assert lost.shape == (2, 2, 1)
    assert lost[..., 0].tolist() == [[3, 6], [-1, -4]]
    tokens = torch.tensor([[5, 3], [2, 1]])  # the mask token is 1
    lost = architectures.occlusion(Weighted(), tokens, target, torch.arange(2))
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
    found = architectures.yours(**mine(y=y), parameters=PARAMETERS)
    task = found.task
    assert task.x.shape == (6, 1, 8, 8)
    assert sorted(task.baselines) == ["blur", "mean", "zero"]
    predicted = task.model(task.x).argmax(1)
    assert (task.target == predicted).all()
    assert float(found.right()[0].value) == pytest.approx((predicted.numpy() == y[:6]).mean())
    assert found.row["recognises"].startswith(f"{100 * float(found.right()[0].value):.1f} %")
    assert (found.row["fine-tuned"], found.row["explained"]) == ("there is none", 6)
    whole = task.score(probability)(torch.ones(6, 1, 16, dtype=torch.bool))
    expected = task.model(task.x).softmax(1).gather(1, predicted[:, None])
    assert torch.allclose(whole, expected, atol=1e-5)


def test_series_of_ones_own_have_steps_as_features(mine):
    files = mine(x=torch.rand(4, 16, 4).numpy())
    found = architectures.yours(**files, parameters=PARAMETERS)
    assert found.right() == ()
    assert found.row["recognises"] == "not known"
    assert found.task.segments.max() == 15
    assert sorted(found.task.baselines) == ["mean", "zero"]


NAN = torch.full((4, 1, 8, 8), torch.nan).numpy()
GOOD = torch.rand(4, 1, 8, 8).numpy()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x": NAN}, "of finite floating-point numbers"),
        ({"x": GOOD[:1]}, r"expected two or more square images \[B, C, H, W\] or series"),
        ({"x": GOOD[:, 0, 0]}, r"but got torch.float32 \(4, 8\)"),
        ({"x": (GOOD * 255).astype("uint8")}, "but got torch.uint8"),
        ({"x": GOOD[..., :6, :6]}, "fails on inputs of"),
        ({"x": torch.rand(4, 1, 4, 16).numpy()}, "expected two or more square images"),
        ({"x": GOOD, "y": np.arange(3)}, "label of each of the 4 inputs"),
        ({"x": GOOD, "y": np.ones(4)}, "expected a whole number as label of each"),
        ({"x": GOOD, "y": np.arange(4) + 2}, r"expected labels of 0 to 2, but got \[2, 3, 4, 5\]"),
        (
            {"network": NETWORK.format(inputs=64, classes=1)},
            r"expected finite logits \[6, 2 or more\], but it gave \(6, 1\)",
        ),
        (
            {"x": torch.rand(4, 1, 64).numpy()},
            r"with two features or more, but got torch.float32 \(4, 1, 64\)",
        ),
        (
            {"network": "def network():\n    raise OSError('no weights')\n"},
            r"fails: OSError: no weights \(mine.py, line 2\)",
        ),
        (
            {"network": NETWORK.format(inputs=64, classes=3).rstrip() + ".double()"},
            r"mine.npz, float32 \(6, 1, 8, 8\): ",
        ),
        (
            {"network": "import torch\ndef network():\n    return torch.nn.Flatten()\n"},
            "expected a torch.nn.Module with parameters",
        ),
        ({"network": "def network():\n    return 3\n"}, "expected a torch.nn.Module with parameters, but it gave int"),
        ({"network": "def network(path):\n    return 3\n"}, r"expected a function of \(\), but its arguments"),
        ({"network": "import nowhere_at_all\n"}, "does not run: ModuleNotFoundError"),
        ({"network": "def other():\n    return 3\n"}, "has no function 'network'; it has other"),
    ],
)
def test_what_does_not_fit_is_said_before_the_work_starts(mine, given, said):
    with pytest.raises(ValueError, match=said):
        architectures.yours(**mine(**given), parameters=PARAMETERS)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "expected MODEL and DATA together"),
        ("nowhere.npz", "nowhere.npz cannot be read"),
        ("nowhere.NPZ", "nowhere.NPZ cannot be read"),
        ("{folder}/empty.npz", "cannot be read"),
        ("{folder}/array.npz", "cannot be read"),
        ("table.csv", "expected path/to/file.py:function as the data, but got 'table.csv'"),
        ("{folder}/words.py:fails", r"fails: FileNotFoundError: no photographs \(words.py, line 8\)"),
        ("nowhere.py:inputs", "is no file"),
        ("{folder}/text.npz", "cannot be read"),
        ("{folder}/other.npz", "cannot be read as numpy.savez"),
        ("{folder}/words.py:inputs", "expected tensors or arrays of numbers"),
        ("{folder}/words.py:three", "expected two or more square images"),
    ],
)
def test_data_that_are_none_are_an_error(tmp_path, mine, data, said):
    files = mine()
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "other.npz", z=GOOD)
    text = "def inputs():\n    return 'words'\n\ndef three():\n    return 1, 2, 3\n\ndef fails():\n"
    (tmp_path / "words.py").write_text(text + "    raise FileNotFoundError('no photographs')\n")
    (tmp_path / "empty.npz").touch()
    np.save(tmp_path / "array.npy", GOOD)
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    with pytest.raises(ValueError, match=said):
        architectures.yours(files["model"], data.format(folder=tmp_path), PARAMETERS)


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


@pytest.fixture
def nothing_made(monkeypatch):
    def never(*given):
        raise AssertionError("before the files were looked for")

    for place, name in ((architectures, "asked"), (architectures, "yours"), (examine.execute, "execute")):
        monkeypatch.setattr(place, name, never)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metric": "nowhere.py:mine"}, ["nowhere.py is no file; name the metric as"]),
        ({"metric": "{folder}/own.py:other"}, ["own.py has no function 'other'; it has mine"]),
        ({"explainer": "nowhere.py:mine"}, ["nowhere.py is no file; name the explainer as"]),
        ({"explainer": "{folder}/own.py:other"}, ["own.py has no function 'other'; it has mine"]),
        ({"model": "nowhere.py:mine", "data": "nowhere.npz"}, ["the model as", "nowhere.npz cannot be read"]),
        ({"model": "{folder}/own.py:mine", "data": "nowhere.npz"}, ["nowhere.npz cannot be read"]),
        ({"model": "{folder}/own.py:mine", "data": "nowhere.py:x"}, ["nowhere.py is no file; name the data as"]),
        (
            {"model": "{folder}/own.py:mine", "data": "x.csv"},
            ["expected path/to/file.py:function as the data", "x.csv"],
        ),
        ({"metric": "no.py:a", "explainer": "none.py:a"}, ["no.py is no file", "none.py is no file"]),
    ],
)
def test_what_is_not_there_is_said_before_anything_is_fetched_or_built(tmp_path, nothing_made, given, said):
    (tmp_path / "own.py").write_text("def mine(*given):\n    return None\n")
    named = {what: one.format(folder=tmp_path) for what, one in given.items()}
    with pytest.raises(ValueError, match="(?s)" + ".*".join(map(re.escape, said))):
        examine.examine(**named)


def test_an_explainer_that_fails_on_ones_own_network_is_named(mine, tmp_path):
    (tmp_path / "maps.py").write_text("def flat(model, x, target, images):\n    return x * 0\n")
    with pytest.raises(ValueError, match="the explainer 'flat' says the same of all features"):
        architectures.check({**PARAMETERS, "networks": []}, explainer=f"{tmp_path}/maps.py:flat", **mine())


# What is said of a reader's own before the work starts


def written(tmp_path, text, name="own.py"):
    (tmp_path / name).write_text(f"import numpy as np\nimport torch\n\n\n{text}\n")
    return f"{tmp_path}/{name}"


@pytest.fixture(scope="module")
def page() -> dict:
    return {**profiles.resolve("across/examination"), "networks": ["resnet9 0"]}


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("x.sum(1)", r"not \[2, 32, 32\]"),
        ("x[:, :, ::4, ::4]", r"not \[2, 3, 8, 8\]"),
        ("None", "not NoneType"),
        ("torch.fft.fft2(x)", "number per element"),
        ("x / 0", "NaN or infinite"),
        ("x * 0", "says the same of all features"),
        ("{}['weights']", r"KeyError: 'weights' \(own.py, line 6\)"),
        ("exit(3)", r"SystemExit: 3 \(own.py, line 6\)"),
    ],
)
def test_an_explainer_that_answers_wrongly_is_told_what_was_expected(tmp_path, page, returned, said):
    named = written(tmp_path, f"def mine(model, x, target, images):\n    return {returned}")
    with pytest.raises(ValueError, match=rf"own.py:mine fails on two inputs.*{said}"):
        architectures.check(page, explainer=f"{named}:mine")


@pytest.mark.parametrize("name", ["saliency", "gradcam", "Random"])
def test_an_explainer_with_a_name_of_the_page_would_be_mistaken_for_another(tmp_path, page, name):
    named = written(tmp_path, f"def {name}(model, x, target, images):\n    return x.abs()")
    with pytest.raises(ValueError, match=f"there is an explainer '{name}' on the page already"):
        architectures.check(page, explainer=f"{named}:{name}")


def test_what_fits_one_kind_only_is_told_before_the_first_is_examined(tmp_path, page):
    text = "def mine(model, x, target, images):\n    return x - x.mean((1, 2, 3), keepdim=True)\n\n\n"
    text += "def few(score, attribution, present=None):\n"
    text += "    return attribution.reshape(len(attribution), 6, 6).std((1, 2))"
    named = written(tmp_path, text)
    parameters = {**page, "networks": ["resnet9 1", "bilstm 0", "resnet9 0"]}
    for given in ({"explainer": f"{named}:mine"}, {"metric": f"{named}:few"}):
        with pytest.raises(ValueError, match="fails on two inputs of an LSTM on JapaneseVowels"):
            architectures.check(parameters, **given)
    architectures.check(page, explainer=f"{named}:mine", metric=f"{named}:few")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("{}['weights']", r"KeyError: 'weights' \(own.py, line 6\)"),
        ("exit(3)", r"SystemExit: 3 \(own.py, line 6\)"),
        ("attribution", r"expected floating or bool scores \(2,\)"),
    ],
)
def test_a_metric_that_fails_is_told_in_which_line(tmp_path, page, answer, said):
    named = written(tmp_path, f"def mine(score, attribution):\n    return {answer}")
    with pytest.raises(ValueError, match=rf"own.py:mine fails on two inputs of a ResNet-9.*{said}"):
        architectures.check(page, metric=f"{named}:mine")


def test_a_file_that_ends_the_program_is_no_end_without_a_word(tmp_path, page):
    named = written(tmp_path, "raise SystemExit('usage: me')")
    with pytest.raises(ValueError, match="does not run: SystemExit: usage: me"):
        architectures.check(page, metric=f"{named}:mine")


@pytest.fixture
def registry(monkeypatch):
    """What is registered meanwhile is forgotten."""
    before = dict(METRICS)
    monkeypatch.setattr(metrics, "_PLACES", dict(metrics._PLACES))
    yield
    for name in set(METRICS) - set(before):
        del METRICS[name]


SPREAD = """
from faithlab.metrics import register


def spread(score, attribution):
    return attribution.std(1)


mine = register('{name}', spread, source='me'{more})
"""


@pytest.mark.usefixtures("registry")
def test_a_function_is_examined_with_the_settings_by_which_its_file_registers_it(tmp_path, page):
    named = written(tmp_path, SPREAD.format(name="Spread", more=", better=-1, baseline='mean'"))
    architectures.check(page, metric=f"{named}:spread")
    for function in ("spread", "mine"):
        found = checks.yours(f"{named}:{function}", "metric")
        assert (found.better, found.baseline, found.source) == (-1, "mean", "me")


@pytest.mark.usefixtures("registry")
def test_a_function_may_have_the_name_that_its_file_registers_it_by(tmp_path, page):
    architectures.check(page, metric=written(tmp_path, SPREAD.format(name="spread", more="")) + ":spread")


def test_a_network_may_be_named_itself_and_small_pictures_have_few_features(mine):
    files = mine(x=torch.rand(4, 1, 2, 2).numpy(), network=NETWORK.format(inputs=4, classes=3) + "\nmade = network()\n")
    found = architectures.yours(files["model"].replace(":network", ":made"), files["data"], PARAMETERS)
    assert found.task.segments.tolist() == [[0, 1], [2, 3]]


# What a reader is given


def test_the_page_reads_without_the_book():
    markdown = (
        "$T$ {cite:p}`wu2024saco`, {py:mod}`faithlab.masks`: see [](../../book/fork) and [](../f-fidelity/images)."
    )
    printed = [nbformat.v4.new_output("stream", name=name, text=f"{name} said") for name in ("stderr", "stdout")] + [
        nbformat.v4.new_output("display_data", data={"text/markdown": "told in [](../../book/submit)"})
    ]
    cells = [nbformat.v4.new_markdown_cell(markdown), nbformat.v4.new_code_cell("code()", outputs=printed)]
    page = examine.html(nbformat.v4.new_notebook(cells=cells))
    words = " ".join(page.partition("<body")[2].split())
    assert "<em>T</em>, <code>faithlab.masks</code>: see “fork” and “images”" in words
    assert "told in “submit”" in words
    assert "stdout said" in words
    assert not any(left in words for left in ("stderr said", "code()", "{cite", "{py", "[]("))


def test_the_row_is_json_and_says_how_the_metric_was_asked(tmp_path):
    named = written(tmp_path, "def mine(score, attribution):\n    return attribution.std(1)")
    trust = pd.DataFrame({"metric": ["mine", "SaCo"], "T": [float("nan"), 1.0]})
    price = pd.DataFrame({"metric": ["mine"], "images": [float("inf")], "images_low": [2.5]})
    for name, frame in (("trust", trust), ("price", price)):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    found = json.loads(json.dumps(examine.summary(tmp_path, metric=f"{named}:mine"), allow_nan=False))["metric"]
    asked = {"output": "probability", "reference": "zero", "network": "original", "better": 1}
    rows = {"trials": [{"metric": "mine", "T": None}]}
    rows["price"] = [{"metric": "mine", "images": "infinite", "images_low": 2.5}]
    assert found == {"name": "mine", **asked, **rows}


def test_what_is_interrupted_says_so_without_a_traceback(monkeypatch, capsys):
    def stopped(overrides, **given):
        assert overrides == {"images": 3, "seeds": [0, 1]}
        raise KeyboardInterrupt

    monkeypatch.setattr(examine, "examine", stopped)
    assert examine.main(["--metric", "a.py:f", "--params", "images=3 seeds=[0,1]"]) == 130
    assert "goes on after the last whole step" in capsys.readouterr().err
