"""Verdicts on ReCo and MeGe follow from the measured tables; recipes and published numbers are the paper's."""

import math

import pandas as pd
import pytest

from faithlab.study import claims, profiles, reco
from faithlab.study.claims import FAILED, PARTLY, REPRODUCED, UNTESTED

CONDITIONS = {
    "randomized": ["randomized 5%", "randomized 10%", "randomized 30%"],
    "switched": ["switched 5%", "switched 10%", "switched 30%"],
    "limited": ["limited 75%", "limited 50%", "limited 25%"],
}


def published(*tables: int) -> pd.DataFrame:
    """Scores of these printed tables, in the form of measured ones."""
    printed = reco.published_scores("ReCo", "MeGe")
    wide = printed[printed["table"].isin(tables)].pivot(
        index=["dataset", "model", "condition", "explainer"], columns="measure", values="mean"
    )
    return wide.reset_index()


def verdicts(chosen, **tables) -> dict[str, str]:
    return claims.judge(chosen, tables).set_index("id")["verdict"].to_dict()


def fidelity(**scores: tuple[float, float]) -> pd.DataFrame:
    return pd.DataFrame([(k, *v) for k, v in scores.items()], columns=["explainer", "muFidelity", "S_avg"])


PRINTED = {
    "IG": (0.107, 2.112),
    "SG": (0.305, 0.024),
    "Saliency": (0.229, 2.389),
    "GradientxInput": (0.101, 2.579),
    "GradCAM": (0.907, 0.012),
}


def test_the_papers_own_normal_tables_are_reproduced():
    found = verdicts(reco.NORMAL, scores=published(1, 2, 3), fidelity=fidelity(**PRINTED))
    assert set(found.values()) == {REPRODUCED}


def test_the_papers_own_right_method_tables_are_reproduced():
    scores = published(1, 2, 3, 4, 5).query("dataset == 'CIFAR-10'")
    assert set(verdicts(reco.RIGHT_METHOD, scores=scores).values()) == {REPRODUCED}


def test_another_explainer_on_top_is_not_grad_cam():
    scores = published(1, 2, 3)
    scores.loc[(scores["explainer"] == "IG"), ["ReCo", "MeGe"]] = 0.99
    found = verdicts(reco.NORMAL, scores=scores, fidelity=fidelity(**PRINTED | {"IG": (0.99, 0.001)}))
    assert found["rc-gradcam-reco"] == FAILED
    assert found["rc-gradcam-mege"] == PARTLY  # on Fashion-MNIST another one should be first
    assert found["rc-mufidelity"] == FAILED
    assert found["rc-stability"] == PARTLY


def degraded(mege) -> pd.DataFrame:
    """MeGe of Grad-CAM and IG on one data set; `mege` (explainer, condition, level) -> value."""
    rows = [("Fashion-MNIST", "normal", e, mege(e, "normal", 0)) for e in ("GradCAM", "IG")]
    rows += [
        ("Fashion-MNIST", condition, e, mege(e, kind, level))
        for kind, levels in CONDITIONS.items()
        for level, condition in enumerate(levels, start=1)
        for e in ("GradCAM", "IG")
    ]
    return pd.DataFrame(rows, columns=["dataset", "condition", "explainer", "MeGe"])


def test_every_level_must_fall_and_only_grad_cams_counts():
    falling = degraded(lambda explainer, kind, level: 0.9 - 0.1 * level)
    assert set(verdicts(reco.DEGRADED, scores=falling).values()) == {REPRODUCED}
    found = verdicts(
        reco.DEGRADED, scores=degraded(lambda e, kind, level: 0.6 + (0.1 - 0.2 * (e == "GradCAM")) * level)
    )
    assert found["rc-degraded-weights"] == found["rc-degraded-labels"] == found["rc-degraded-data"] == REPRODUCED
    assert found["rc-normal-best"] == PARTLY
    one_rises = degraded(lambda e, kind, level: 0.9 - 0.1 * level + 0.15 * (kind == "switched" and level == 3))
    found = verdicts(reco.DEGRADED, scores=one_rises)
    assert found["rc-degraded-labels"] == PARTLY
    assert found["rc-degraded-weights"] == REPRODUCED
    assert set(verdicts(reco.DEGRADED, scores=degraded(lambda e, kind, level: 0.5 + 0.1 * level)).values()) == {FAILED}


def test_a_data_set_counts_with_the_conditions_it_was_measured_in():
    falling = degraded(lambda explainer, kind, level: 0.9 - 0.1 * level)
    weights_only = falling[falling["condition"].str.startswith(("normal", "randomized"))].assign(dataset="CIFAR-10")
    scores = pd.concat([falling, weights_only], ignore_index=True)
    assert set(verdicts(reco.DEGRADED, scores=scores).values()) == {REPRODUCED}
    scores.loc[len(scores) - 1, "MeGe"] = math.nan
    assert verdicts(reco.DEGRADED, scores=scores)["rc-normal-best"] == UNTESTED


def test_what_was_not_measured_is_not_tested():
    normal = degraded(lambda e, kind, level: 0.8).query("condition == 'normal'")
    found = verdicts(reco.DEGRADED, scores=normal)
    assert found["rc-degraded-weights"] == UNTESTED
    missing = published(1, 2, 3).assign(ReCo=math.nan, MeGe=math.nan)
    found = verdicts(reco.NORMAL, scores=missing, fidelity=fidelity(**PRINTED))
    assert found["rc-gradcam-reco"] == found["rc-gradcam-mege"] == found["rc-products"] == UNTESTED
    both = published(1, 2, 3, 4, 5).query("dataset == 'CIFAR-10'").assign(ReCo=math.nan)
    assert verdicts(reco.RIGHT_METHOD, scores=both)["rc-best-pair"] == UNTESTED
    scores = published(1, 2, 3).query("dataset != 'Fashion-MNIST'")
    assert verdicts(reco.NORMAL, scores=scores, fidelity=fidelity(**PRINTED))["rc-products"] == UNTESTED


def falls(**largest: float) -> pd.DataFrame:
    return pd.DataFrame({"distance": list(largest), "largest_fall": list(largest.values())})


@pytest.mark.parametrize(
    ("largest", "verdict"),
    [
        ({"a": 0.0, "b": 0.02}, REPRODUCED),
        ({"a": 0.0, "b": 0.3}, PARTLY),
        ({"a": 0.2}, FAILED),
        ({"a": math.nan}, UNTESTED),
    ],
)
def test_a_distance_that_falls_has_not_grown(largest, verdict):
    found = verdicts(reco.DISTANCES, space=falls(**largest), noise=falls(**largest))
    assert set(found.values()) == {verdict}


def test_a_measure_that_sees_the_difference_is_not_blind():
    rows = [("KL", "KL", 2.0, 2.0), ("KL", "ReCo", 0.9, 0.0), ("W1", "W1", 2.0, 1.0), ("W1", "ReCo", 0.9, 0.8)]
    mirrored = pd.DataFrame(rows, columns=["example", "measure", "consistent", "inconsistent"])
    chance = pd.DataFrame([("balanced", 0.02), ("printed", 0.9)], columns=["rates", "ReCo"])
    found = verdicts(reco.WHY, mirrored=mirrored, chance=chance)
    assert found == {"rc-kl-blind": REPRODUCED, "rc-w1-blind": FAILED, "rc-zero": PARTLY}


def test_a_published_number_is_there_once_and_normal_models_have_no_other_value_in_two_tables():
    printed = reco.published_scores("ReCo", "MeGe", "muFidelity", "S_avg")
    keys = ["measure", "dataset", "model", "condition", "explainer"]
    assert not printed.duplicated(keys).any()
    assert set(printed["condition"]) == {"normal"}.union(*CONDITIONS.values())
    assert (printed.query("measure == 'MeGe'")["mean"] < 0.5).sum() > 100  # which a distance up to 1 does not allow


def test_the_paper_profile_has_the_papers_networks_and_the_folds_are_shared_between_pages():
    paper = profiles.resolve("reco-mege/degraded", "paper")
    found = reco.trained_conditions("fashion-mnist", paper)
    assert list(found) == ["normal", *CONDITIONS["switched"], *CONDITIONS["limited"]]
    assert found["normal"].model_options == {"classes": 10, "channels": 1, "width": 26, "dropout": 0.4}
    assert found["normal"].limit is None
    assert [found[name].limit for name in CONDITIONS["limited"]] == [45_000, 30_000, 15_000]
    steps = {round(r.epochs * (r.limit or 60_000) / found["normal"].epochs) for r in found.values()}
    assert all(abs(count - 60_000) <= 1000 for count in steps)  # as many steps, up to a whole epoch
    for data, width, dropout in (("eurosat", 46, 0.25), ("cifar10", 32, 0.25), ("cifar100", 32, 0.25)):
        options = reco.resnet(data, paper).model_options
        assert (options["width"], options["dropout"]) == (width, dropout)


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_pages_that_compare_the_same_networks_train_them_once(profile):
    normal, degraded, right = (
        {recipe.key() for recipe in of(profiles.resolve(f"reco-mege/{name}", profile))}
        for name, of in (
            ("normal", reco.normal_folds),
            ("degraded", reco.degraded_folds),
            ("right-method", reco.right_method_folds),
        )
    )
    assert normal < degraded
    assert len(right & normal) == 5


def test_only_the_sets_that_are_named_are_trained_anew():
    quick = profiles.resolve("reco-mege/degraded", "quick")
    of_set = {recipe.data: 0 for recipe in reco.degraded_folds(quick)}
    for recipe in reco.degraded_folds(quick):
        of_set[recipe.data] += 1
    assert of_set == {"fashion-mnist": 7 * 5, "cifar10": 5}
