"""Sizes of any data: what is known is where it should be, the rest is blank, and every ranking is an order."""

import dataclasses
import re
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from faithlab import masks, segments
from faithlab.metrics import METRICS, alignment, size
from faithlab.metrics.size import Setting
from faithlab.outputs import correct
from faithlab.scores import Scores
from faithstudy.claims import Claim
from faithstudy.data import datasets
from faithstudy.data.sets import ImageSet, LabelledSet, SeriesSet, TextSet
from faithstudy.networks import training
from faithstudy.networks.training import Recipe
from faithstudy.trials import sizes, truth

LABELS = torch.arange(60) % 2
RECIPE = Recipe("drawn", "summing", 1, mask_share=0.2)
ASKED = ([Setting(0.5, 0.1), Setting(0.5, 0.2)], [0.1, 0.3, 0.5])
ABOUT = {"network": "sum", "explainers": {"gradient": "gradient", "product": "input-x-gradient"}}


class Summing(nn.Module):
    """Two classes: whether the sum of an input is above zero; of tokens, of what their numbers stand for."""

    def __init__(self):
        super().__init__()
        self.worth = nn.Embedding.from_pretrained(torch.tensor([[0.0], [0.0], [0.0], [1.0], [-1.0]]))

    def forward(self, x):
        total = (x if x.is_floating_point() else self.worth(x)).flatten(1).sum(1)
        return torch.stack([torch.zeros_like(total), total], 1)


def series() -> SeriesSet:
    inputs = torch.randn(60, 20, 2, generator=torch.Generator().manual_seed(0))
    return SeriesSet(inputs, LABELS, ("below", "above"), (0.0, 0.0), (1.0, 1.0))


def texts() -> TextSet:
    inputs = torch.randint(3, 5, (60, 12), generator=torch.Generator().manual_seed(0))
    inputs[::3, 8:] = TextSet.PADDING
    return TextSet(inputs, LABELS, ("below", "above"), ("padding", "mask", "unknown", "good", "bad"))


def images() -> ImageSet:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 256, (60, 3, 8, 8), dtype=torch.uint8, generator=generator)
    known = torch.zeros(60, 8, 8, dtype=torch.bool)
    for image in range(60):
        known[image, image % 5 : image % 5 + 4, 2:6] = True
    return ImageSet(inputs, LABELS, ("below", "above"), (0.5,) * 3, (0.25,) * 3, known)


@pytest.fixture
def case(monkeypatch):
    monkeypatch.setattr(training, "trained", lambda recipe: Summing().eval())

    def made(data: LabelledSet, most: int = 100, recipe: Recipe = RECIPE, asked=ASKED, **options) -> sizes.Case:
        monkeypatch.setattr(datasets, "load", lambda name, split, **options: data)
        return sizes.case("drawn inputs", recipe, most, *asked, **ABOUT | options)

    return made


@pytest.mark.parametrize("data", [series(), texts(), images()], ids=lambda data: type(data).__name__)
@pytest.mark.parametrize("left", [None, 5])
def test_only_inputs_that_the_network_recognises_are_asked_about(case, data, left):
    of = case(data, left=left).task
    assert 10 < len(of.x) < 50, "some of the labels are those of the network, and some are not"
    whole = torch.ones(len(of.x), 1, segments.count(of.segments), dtype=torch.bool)
    assert of.score(correct)(whole).all()
    assert torch.equal(of.target, data.labels[of.images])
    few = case(data, most=4, left=left, among=30).task
    assert len(few.x) == 4
    assert torch.equal(few.images, of.images[:4]), "fewer inputs are the first of more"
    assert not torch.equal(of.images, of.images.sort().values), "sets may be sorted by class"
    assert set(case(data, left=left, among=30).task.images.tolist()) < set(of.images.tolist())
    assert (few.dataset, few.network) == ("drawn inputs", "sum")


def test_what_the_set_says_of_an_image_is_known_and_nothing_of_others(case):
    of = case(images())
    assert torch.equal(of.known, images().masks[of.task.images].flatten(1))
    assert torch.equal(of.task.x, images().model_inputs(of.task.images)), "nothing is blanked"
    assert case(series()).known is None


def test_texts_with_padding_are_left_out(case):
    of = case(texts())
    assert of.task.present.all()
    assert not (of.task.images % 3 == 0).any()


@pytest.mark.parametrize(("data", "blank"), [(series(), 0), (texts(), TextSet.MASK), (images(), 0)])
def test_all_is_blank_but_the_run_that_is_known(case, data, blank):
    of = case(data, left=5)
    at, whole = of.task.images, data.model_inputs(of.task.images)
    assert torch.equal(of.known, sizes.run(segments.count(data.features()), 5, at, seed=1))
    stays = segments.spread(of.known, data.features())
    stays = (stays[:, None] if whole.ndim == 4 else stays).expand_as(whole)
    assert torch.equal(of.task.x[stays], whole[stays])
    assert (of.task.x[~stays] == blank).all()


def test_a_run_is_in_one_piece_anywhere_and_belongs_to_the_image():
    runs = sizes.run(12, 5, torch.arange(400))
    first = runs.int().argmax(1)
    assert (runs.sum(1) == 5).all()
    assert runs[torch.arange(400)[:, None], first[:, None] + torch.arange(5)].all()
    assert set(first.tolist()) == set(range(8)), "from the first place to the last"
    assert torch.equal(sizes.run(12, 5, torch.tensor([7, 300])), runs[[7, 300]])
    assert not torch.equal(sizes.run(12, 5, torch.arange(400), seed=1), runs)
    assert sizes.run(12, 12, torch.arange(3)).all()


def test_caps_end_at_what_the_network_is_used_to(case):
    assert [s.cap for s in case(series()).settings] == pytest.approx([0.1, 0.2])
    less = dataclasses.replace(RECIPE, mask_share=0.1)
    assert [s.cap for s in case(series(), recipe=less).settings] == pytest.approx([0.05, 0.1])
    more = dataclasses.replace(RECIPE, mask_share=0.7)
    assert [s.cap for s in case(series(), recipe=more).settings] == pytest.approx([0.1, 0.2])
    assert {s.alpha for s in case(series(), recipe=less).settings} == {0.5}


def test_rankings_are_complete_orders_that_follow_from_the_seed(case):
    of = case(images(), groups=segments.patches(8, 8, 4))
    found, again = of.rankings(steps=3), of.rankings(steps=3)
    assert list(found) == ["truth", "TRACE", "gradient", "product", "random"]
    assert list(case(series()).rankings()) == ["gradient", "product", "random"]
    for name, attribution in found.items():
        assert attribution.shape == of.known.shape, name
        assert torch.equal(attribution, again[name]), name
        assert torch.equal(masks.order(attribution).sort(1).values, torch.arange(64).expand(len(of.known), -1)), name
    other = case(images(), groups=segments.patches(8, 8, 4), seed=1).rankings()
    for name in ("truth", "random"):
        assert found[name].unique().numel() > 0.99 * found[name].numel(), "no ties, which would have an order"
        assert not torch.equal(found[name], other[name]), name


def test_the_truth_comes_first_in_any_order_and_the_search_moves_groups(case):
    of = case(images(), groups=segments.patches(8, 8, 4))
    found = of.rankings(steps=3)
    assert (alignment.overlap(found["truth"], of.known) == 1).all()
    inside = masks.order(found["truth"])[:, :16]
    assert not torch.equal(inside.sort(1).values, inside), "in random order within"
    groups = of.groups.flatten()[masks.order(found["TRACE"])].view(-1, 4, 16)
    assert (groups == groups[..., :1]).all(), "a group is ranked whole"
    assert len({tuple(row) for row in groups[..., 0].tolist()}) > 1, "each image has an order of its own"


def test_the_overlap_is_counted():
    attribution = torch.tensor([[4.0, 3, 2, 1], [1, 2, 3, 4], [4, 1, 2, 3]])
    known = torch.tensor([[True, True, False, False], [True, True, True, False], [False, False, False, True]])
    assert alignment.overlap(attribution, known).tolist() == pytest.approx([1, 2 / 3, 0])


def test_where_known_features_matter_alike_their_size_is_read_and_that_of_no_ranking_is_not():
    task, known = truth.closed_form(images=200)
    asked = tuple(Setting(0.5, cap) for cap in (0.05, 0.1, 0.15)), torch.tensor(size.SIZES)
    of = sizes.Case(task, known, ("0", "1"), *asked, draws=4, explainers={}, groups=task.segments, seed=0)
    rankings = of.rankings()
    scores = of.ask(rankings)
    row = of.row(scores, "truth", of.read(scores, "truth"))
    assert (row["truth"], row["overlap"], row["refusal"]) == (0.25, 1, "")
    assert row["low"] <= 0.25 <= row["high"]
    assert row["high"] - row["low"] < 0.1
    assert row["largest_loss"] > 0.3
    none = of.row(scores, "random", of.read(scores, "random"))
    assert none["refusal"]
    assert none["overlap"] == pytest.approx(0.25, abs=0.05)
    assert of.read(scores, "truth", torch.arange(50)).rows == 50
    how = {"fractions": asked[1], "settings": asked[0], "draws": 150}
    one = sizes.of_one(task, rankings["truth"], 7, **how)
    assert one.rows == 150
    assert one.low - 1e-9 <= 0.25 <= one.high + 1e-9


def test_a_case_asks_its_law_its_halves_and_single_inputs():
    task, known = truth.closed_form(images=200)
    caps, fractions = tuple(Setting(0.5, cap) for cap in (0.05, 0.1, 0.15)), torch.tensor(size.SIZES)
    asked = (*caps, Setting(1.0, 0.1)), fractions
    of = sizes.Case(task, known, ("0", "1"), *asked, draws=4, explainers={}, groups=task.segments, seed=0)
    rankings = of.rankings()
    scores = of.ask(rankings)
    table = sizes.tabulated([of], [rankings], scores).set_index("ranking")
    assert table.loc["truth", "halves"] == 2
    assert table.loc["random", "halves"] == 0
    assert table.loc["truth", "read"].fraction == table.loc["truth", "size"]
    assert table["of"].tolist() == [of, of]
    assert [part.name for part in of.follows_the_law(scores)] == [
        f"{task.dataset}: {says}" for says in ("rises", "rises more", "falls", "falls more")
    ]

    def holding(table):
        judged = Claim("law", "Theorem 1", "It follows the law.", of.follows_the_law(table)).verdict.judged
        return [part.outcome == "holds" for part in judged]

    assert all(holding(scores))
    others = {"truth": "random", "random": "truth"}
    in_its_place = Scores.concat(scores.where(explainer=a).labelled(explainer=b) for a, b in others.items())
    assert not any(
        holding(in_its_place)[1:]
    )  # any ranking's curve rises as more is removed, but not more than the truth's
    one = of.read_one(rankings["truth"], 7, 150, fractions[1::2])
    assert (one.rows, one.settings) == (150, caps)  # of the first alpha alone
    assert one.fractions.tolist() == pytest.approx(fractions[1::2].tolist())
    every = [block.values.mean(1) for s in asked[0] for block in scores.where(metric=s.metric, explainer="truth")]
    assert of.lost(scores, "truth").tolist() == pytest.approx(torch.stack(every).view(4, -1, 200).mean((0, 1)).tolist())


def test_the_centre_is_the_middle_of_any_image():
    found = sizes.centre(None, torch.zeros(2, 3, 5, 7), None, None)
    assert found.shape == (2, 1, 5, 7)
    assert found[1, 0].flatten().argmax() == 2 * 7 + 3
    assert found[0, 0, 0, 0] == found[0, 0, 4, 6] == found.min()


def test_no_explainer_has_a_size_where_a_blind_ranking_has_one():
    task, known = truth.closed_form(images=200)
    asked = tuple(Setting(0.5, cap) for cap in (0.05, 0.1, 0.15)), torch.tensor(size.SIZES)
    of = sizes.Case(task, known, ("0", "1"), *asked, draws=4, explainers={}, groups=task.segments, seed=0)
    ranked = of.rankings()
    found = {}
    for middle in ("truth", "random"):  # what the order from the centre outwards happens to be
        rankings = {"truth": ranked["truth"], "explainer": ranked["truth"], "centre": ranked[middle]}
        found[middle] = sizes.tabulated([of], [rankings], of.ask(rankings)).set_index("ranking")
    assert found["truth"]["size"].isna().to_dict() == {"truth": False, "explainer": True, "centre": True}
    assert "a blind ranking" in found["truth"].loc["explainer", "refusal"]
    assert found["random"]["size"].isna().to_dict() == {"truth": False, "explainer": False, "centre": True}


@pytest.mark.parametrize(
    ("named", "tried", "place", "how"),
    [
        ({3}, 4, 3, "of those that lose most the first that has a size"),
        ({0, 1}, 4, 1, "of those that lose most the first that has a size, after 2 without"),
        ({0}, 3, 3, "the one that loses most; none of the 3 that lose most has a size"),
        ({0}, 1, 3, "the one that loses most; it has no size"),
    ],
)
def test_the_input_that_is_shown_has_a_size_where_one_of_those_that_lose_most_has(named, tried, place, how):
    def read(at):
        return SimpleNamespace(at=at, refusal="" if at in named else "no end")

    found = sizes.first_named(torch.tensor([0.1, 0.2, 0.3, 0.4]), read, tried)
    assert (found[0], found[1].at, found[2]) == (place, place, how)


def test_other_metrics_are_put_to_the_same_rankings(case):
    of = case(series())
    more = {"one": METRICS["LeRF - MoRF"]}
    assert {"one"} < set(of.ask(of.rankings(), more).labels("metric"))


BAD = {
    "a network that is used to nothing": (
        {"recipe": dataclasses.replace(RECIPE, mask_share=0.0)},
        "a network that was fine-tuned on random masks (mask_share of its recipe), but got caps [0.1, 0.2]",
    ),
    "no cap": ({"asked": ([Setting(0.5, None), Setting(0.5, 0.2)], [0.1, 0.3, 0.5])}, "caps [None, 0.2]"),
    "nothing is recognised": (
        {"data": dataclasses.replace(series(), labels=(series().inputs.flatten(1).sum(1) <= 0).long())},
        "sum recognises none of 60 drawn inputs: there is nothing to lose; train it longer",
    ),
    "more is left than there is": ({"left": 21}, "expected left to be a whole number from 1 to 20, but got 21"),
    "nothing is left": ({"left": 0}, "expected left to be a whole number from 1 to 20, but got 0"),
    "no input": ({"most": 0}, "expected most to be a whole number from 1 to inf, but got 0"),
    "groups of other inputs": (
        {"groups": segments.time_steps(10)},
        "groups as a segment map of (20, 1), but got (10, 1)",
    ),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_asked_is_an_error(case, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        case(**{"data": series()} | options)


@pytest.mark.parametrize("stay", [torch.ones(60, 19, dtype=torch.bool), torch.ones(60, 20)])
def test_what_stays_is_a_bool_for_each_feature(case, stay):
    whole = case(dataclasses.replace(series(), labels=(series().inputs.flatten(1).sum(1) > 0).long())).task
    with pytest.raises(ValueError, match=r"which features stay, bool \(60, 20\), but got"):
        sizes.blanked(whole, stay)
