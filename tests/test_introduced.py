"""What the pages about SaCo say of their networks, and how estimates become cells and words."""

import pytest
import torch

from faithlab import stats
from faithlab.scores import Scores
from faithstudy import tables
from faithstudy.recipes import VIT, changed, introduced, vits


def recognised(*shares, networks=("ViT", "ViT"), seeds=(0, 1)) -> Scores:
    return Scores.concat(
        Scores.of(
            torch.arange(200) < 200 * share,
            images=range(200),
            dataset="cifar10 test",
            network=network,
            training_seed=seed,
            metric="accuracy",
        )
        for share, network, seed in zip(shares, networks, seeds, strict=False)
    )


def test_a_page_says_how_good_its_network_is_and_that_a_weak_one_is_weak_only_if_it_is():
    said = introduced(recognised(0.4), 5)
    assert "**ViT** recognises **40.0 % [" in said
    assert "of 200 test images. The first 5 test images" in said
    assert "Less than 60% is a weak network" in said
    assert "weak" not in introduced(recognised(0.7), 5)


def test_networks_are_told_apart_by_their_seeds_only_where_they_must():
    assert "**ViT (seed 0)** recognises **70.0 % [" in introduced(recognised(0.7, 0.8), 5)
    said = introduced(recognised(0.7, 0.8, networks=("ViT", "DeiT")), 5)
    assert "**ViT** recognises" in said
    assert "**DeiT** recognises" in said


def test_the_small_transformer_is_one_recipe_for_each_training_seed():
    recipes = vits({"training": {"model_options": {"dim": 16}, "epochs": 1, "limit": 100}, "training_seeds": [3, 4]})
    assert [recipe.seed for recipe in recipes] == [3, 4]
    assert recipes[0].model_options == VIT.model_options | {"dim": 16}
    assert (recipes[0].limit, recipes[0].epochs, recipes[0].rate) == (100, 1, VIT.rate)


def test_an_unknown_choice_of_a_recipe_is_an_error_that_lists_the_known():
    with pytest.raises(ValueError, match="a recipe has no epoch; it has augment, batch,"):
        changed(VIT, {"epoch": 3})


def test_estimates_as_rows_and_words():
    values = torch.arange(200.0)
    values[7] = torch.nan
    scores = Scores.of(values, images=range(200), dataset="d", network="n", explainer="IG", metric="SaCo")
    (row,) = tables.summary(scores, ["explainer", "metric"]).to_dict("records")
    of = stats.estimate(scores)
    assert (row["explainer"], row["metric"], row["missing"], row["images"]) == ("IG", "SaCo", 1, 199)
    assert (row["mean"], row["low"], row["high"]) == pytest.approx(tuple(map(float, of.pooled)))
    assert tables.number(of, 1) == f"{float(of.value):.1f} [{float(of.low):.1f}, {float(of.high):.1f}]"
    flat = Scores.of(torch.full((200,), -0.5), images=range(200), dataset="d", network="n", metric="SaCo")
    assert tables.number(stats.estimate(flat)) == "−0.50"
