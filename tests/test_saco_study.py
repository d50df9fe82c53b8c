"""What the SaCo pages compute from scores: means with intervals, relations, comparisons with Random, and verdicts."""

import itertools
import zlib

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch

from faithlab import readouts, references, segments
from faithlab.metrics import deletion
from faithlab.study import claims, saco
from faithlab.study.claims import FAILED, PARTLY, REPRODUCED, UNTESTED
from faithlab.study.results import Recorded
from faithlab.zoo import models

METRICS = list(saco.METRICS)


def scores(values, networks=("vit",)) -> pd.DataFrame:
    """Tidy scores from values (network, explainer, metric, image) -> number, of three explainers and 40 images."""
    rows = [
        (network, explainer, metric, image, values(network, explainer, metric, image))
        for network in networks
        for explainer in ("IG", "LRP", "Random")
        for metric in METRICS
        for image in range(40)
    ]
    return pd.DataFrame(rows, columns=["network", "explainer", "metric", "image", "value"])


@pytest.fixture(scope="module")
def noise():
    draws = np.random.default_rng(0).normal(size=1000)
    return lambda *key: draws[zlib.crc32(repr(key).encode()) % 1000]


# Means


def test_estimates_are_means_with_intervals_around_them():
    table = saco.estimates(scores(lambda n, e, m, i: i + 10 * METRICS.index(m)), resamples=400)
    assert len(table) == 15
    assert table["explainer"].unique().tolist() == ["IG", "LRP", "Random"]
    row = table.iloc[0]
    assert row["mean"] == pytest.approx(19.5)
    # The standard error of the mean of 0..39 is 1.85; the interval is two of it to both sides.
    assert row["low"] == pytest.approx(19.5 - 1.96 * 1.83, abs=0.8)
    assert row["high"] == pytest.approx(19.5 + 1.96 * 1.83, abs=0.8)
    # The same resamples for all: a shifted metric has a shifted interval.
    assert table.iloc[1]["low"] - row["low"] == pytest.approx(10)


def test_missing_values_are_left_out_and_counted():
    table = saco.estimates(scores(lambda n, e, m, i: np.nan if e == "IG" and i < 30 else 1.0), resamples=50)
    ig, lrp = table[table["explainer"] == "IG"].iloc[0], table[table["explainer"] == "LRP"].iloc[0]
    assert (ig["mean"], ig["missing"], ig["count"]) == (1, 30, 40)
    assert (lrp["mean"], lrp["missing"], lrp["count"]) == (1, 0, 40)
    nothing = saco.estimates(scores(lambda n, e, m, i: np.nan if e == "IG" else 1.0), resamples=50)
    assert np.isnan(nothing.iloc[0]["mean"])
    assert nothing.iloc[0]["missing"] == 40


def test_networks_are_averaged_before_the_images_are_drawn():
    table = saco.estimates(scores(lambda n, e, m, i: i if n == "a" else -i, networks=("a", "b")), resamples=50)
    assert table["mean"].tolist() == table["low"].tolist() == table["high"].tolist() == [0.0] * 15
    assert table["count"].tolist() == [80] * 15


def test_intervals_are_written_with_a_real_minus_and_what_is_missing():
    table = pd.DataFrame(
        [("IG", "SaCo", -0.5, -0.75, 0.25, 3), ("IG", "AUC", 0.5, 0.25, 0.75, 0), ("LRP", "SaCo", np.nan, 0, 0, 40)],
        columns=["explainer", "metric", "mean", "low", "high", "missing"],
    )
    text = saco.with_intervals(table, rows="explainer", columns="metric")
    assert text.loc["IG", "SaCo"] == "−0.50<br><small>−0.75 to 0.25, 3 missing</small>"
    assert text.loc["IG", "AUC"] == "0.50<br><small>0.25 to 0.75</small>"
    assert text.loc["LRP", "SaCo"] == "none (40 missing)"


# Relations


def test_relations_are_one_where_all_metrics_say_the_same():
    # Better images and better explainers by every metric, each in its own direction.
    table = saco.relations(
        scores(lambda n, e, m, i: saco.METRICS[m] * (i + 100 * ["Random", "LRP", "IG"].index(e))), resamples=20
    )
    assert len(table) == 20
    assert table["mean"].tolist() == pytest.approx([1.0] * 20)
    assert table["low"].tolist() == pytest.approx([1.0] * 20)
    assert table["missing"].tolist() == [0] * 20
    assert table["count"].tolist() == [3] * 10 + [40] * 10


def test_relations_are_spearman_of_the_images_and_of_the_explainers(noise):
    frame = scores(noise, networks=("a", "b"))
    table = saco.relations(frame, resamples=10).set_index(["ranked", "one", "other"])["mean"]
    oriented = frame.assign(value=frame["value"] * frame["metric"].map(saco.METRICS))
    at = oriented.set_index(["network", "explainer", "metric", "image"])["value"].sort_index()
    for one, other in itertools.combinations(METRICS, 2):
        of_images = [
            scipy.stats.spearmanr(at[n, e, one], at[n, e, other]).statistic
            for n in ("a", "b")
            for e in ("IG", "LRP", "Random")
        ]
        assert table["images", one, other] == pytest.approx(np.mean(of_images))
        of_explainers = [
            scipy.stats.spearmanr(at[n, :, one, i], at[n, :, other, i]).statistic for n in ("a", "b") for i in range(40)
        ]
        assert table["explainers", one, other] == pytest.approx(np.mean(of_explainers))


def test_a_metric_that_says_the_same_of_everything_has_no_relations(noise):
    table = saco.relations(scores(lambda n, e, m, i: 0.5 if m == "AUC" else noise(n, e, m, i)), resamples=10)
    with_auc = table[(table["one"] == "AUC") | (table["other"] == "AUC")]
    assert with_auc["mean"].isna().all()
    assert (with_auc["missing"] == with_auc["count"]).all()
    assert table.drop(with_auc.index)["mean"].notna().all()


def test_images_without_a_saco_are_left_out_of_its_relations(noise):
    frame = scores(lambda n, e, m, i: np.nan if (m, i) == ("SaCo", 7) else noise(n, e, m, i))
    without = scores(noise)
    without = without[without["image"] != 7]
    one, other = (saco.relations(f, resamples=1).query("ranked == 'images'")["mean"] for f in (frame, without))
    assert one.tolist() == pytest.approx(other.tolist())


def test_against_random_is_a_difference_turned_so_that_more_is_better():
    better = {"IG": 2, "LRP": -1, "Random": 0}
    table = saco.against_random(scores(lambda n, e, m, i: i + saco.METRICS[m] * better[e]), resamples=50)
    assert len(table) == 10
    assert (table["mean"] == table["explainer"].map(better)).all()
    assert (table["low"] == table["mean"]).all()


# Measuring


def subject(**options) -> saco.Subject:
    torch.manual_seed(0)
    model = models.build("cnn3", classes=4, width=8).eval()
    x = torch.randn(5, 3, 8, 8)
    with torch.inference_mode():
        target = model(x).argmax(1)
    return saco.Subject("cnn", model, x, target, segments.patches(8, 8, 2), 1.0, **options)


def test_the_four_are_measured_as_their_module_defines_them():
    of, attribution = subject(), torch.rand(5, 16, generator=torch.Generator().manual_seed(0))
    found = saco.measure(of, {"some": attribution}, groups=4).set_index(["metric", "image"])["value"]

    def curve(readout, sign=1):
        return deletion.curve(saco.scorer(of, readout), sign * attribution)

    expected = {
        "AUC": deletion.area(curve(readouts.hit)),
        "AOPC": deletion.loss(curve(readouts.probability)),
        "LOdds": -deletion.loss(curve(readouts.log_odds)),
        "Comp.": deletion.loss(curve(readouts.probability, -1)),
    }
    for metric, values in expected.items():
        torch.testing.assert_close(torch.tensor(found[metric].to_numpy()), values, atol=1e-6, rtol=0)


def test_an_explanation_that_says_the_same_everywhere_has_no_saco_and_is_counted():
    of, some = subject(), torch.rand(5, 16, generator=torch.Generator().manual_seed(0))
    flat = some.clone()
    flat[[1, 3]] = 0.25
    measured = saco.measure(of, {"some": some, "flat": flat}, groups=4)
    table = saco.estimates(measured, resamples=20).set_index(["explainer", "metric"])
    assert table["missing"].to_dict() == {(e, m): 2 * ((e, m) == ("flat", "SaCo")) for e, m in table.index}
    values = measured.set_index(["explainer", "metric", "image"])["value"]
    assert values["flat", "SaCo"].isna().tolist() == [False, True, False, True, False]
    assert table.loc[("flat", "SaCo"), "mean"] == pytest.approx(values["some", "SaCo"][[0, 2, 4]].mean())


def test_a_page_says_how_good_its_network_is_and_that_a_small_one_is_weak_only_if_it_is():
    recipe = saco.small_vit("cifar10", dim=16, depth=2, heads=2, patch=8, train_limit=12000, epochs=3)
    weak, good, other = (subject()._replace(name=n, accuracy=a) for n, a in (("vit", 0.39), ("vit", 0.7), ("x", 0.4)))
    said = saco.introduced([weak], recipe)
    assert "**vit** recognises **39.0%**" in said
    assert "The first 5 of them" in said
    assert "3 epochs on 12,000 training images" in said
    assert "weak" not in saco.introduced([good, other], recipe)
    kept = Recorded(saco.accuracies([good]), "long", {})
    assert "recorded" not in said
    assert saco.introduced([weak], recipe, kept).endswith("`long` profile (vit 70.0%).")


def test_occlusion_is_the_loss_without_one_feature():
    of = subject(reference=references.zero)
    losses = saco.occlusion(of)
    masked = of.x.clone()
    masked[:, :, 2:4, 4:6] = 0  # the seventh patch
    with torch.no_grad():
        before, after = (of.model(x).softmax(1).gather(1, of.target[:, None])[:, 0] for x in (of.x, masked))
    torch.testing.assert_close(losses[:, 6], before - after, atol=1e-6, rtol=0)
    coarse = saco.occlusion(of._replace(segments=segments.pixels(8, 8)), segments.patches(8, 8, 2))
    assert coarse.shape == (5, 64)
    torch.testing.assert_close(coarse.view(5, 8, 8)[:, ::2, ::2].flatten(1), losses)


def test_a_small_transformer_is_a_recipe_of_the_zoo():
    recipe = saco.small_vit("cifar10", dim=16, depth=2, heads=2, patch=8, train_limit=100, epochs=1, seed=3)
    assert recipe.model == "vit"
    assert recipe.model_options == {"dim": 16, "depth": 2, "heads": 2, "patch": 8}
    assert (recipe.limit, recipe.seed) == (100, 3)


# Verdicts


def verdicts(list_of_claims, **tables) -> dict[str, str]:
    return claims.judge(list_of_claims, tables).set_index("id")["verdict"].to_dict()


def relations(ours, others):
    pairs = list(itertools.combinations(METRICS, 2))
    return pd.DataFrame(
        [("images", a, b, ours if a == "SaCo" else others, 0, 1) for a, b in pairs],
        columns=["ranked", "one", "other", "mean", "low", "high"],
    )


def test_relations_are_judged():
    judge = lambda *values: list(verdicts(saco.RELATIONS, relations=relations(*values)).values())  # noqa: E731
    assert judge(0.2, 0.5) == [REPRODUCED, REPRODUCED]
    assert judge(0.6, 0.2) == [FAILED, FAILED]
    assert judge(0.5, 0.45) == [FAILED, PARTLY]
    assert judge(np.nan, 0.5) == [UNTESTED, UNTESTED]


def by_explainer(saco_of, others=0.5, ig=(0.1, 0.9, -9.0, 0.9)):
    """Estimates: SaCo by explainer, and IG's four numbers (AUC, AOPC, LOdds, Comp.) beside the others' one."""
    rows = []
    for explainer in [*saco.EXPLAINERS, saco.RANDOM]:
        value = saco_of(explainer)
        rows.append((explainer, "SaCo", value, value - 0.05, value + 0.05))
        for metric, own in zip(METRICS[1:], ig, strict=True):
            rows.append((explainer, metric, own if explainer == "IG" else others, 0, 1))
    return pd.DataFrame(rows, columns=["explainer", "metric", "mean", "low", "high"])


def test_random_attribution_is_judged():
    def as_published(explainer):
        return {"Random": 0.0, "Raw Attention": 0.2}.get(explainer, 0.5 if explainer in saco.ATTENTION else 0.1)

    against = pd.DataFrame(
        [("IG", metric, -0.1 if metric != "SaCo" else 0.4) for metric in METRICS],
        columns=["explainer", "metric", "mean"],
    )
    tables = {
        "seeds": pd.DataFrame({"mean": [0.01], "error": [0.004]}),
        "estimates": by_explainer(as_published),
        "against_random": against,
    }
    assert set(verdicts(saco.RANDOMNESS, **tables).values()) == {REPRODUCED}
    tables["seeds"] = pd.DataFrame({"mean": [0.02], "error": [0.004]})
    tables["against_random"] = against.assign(mean=0.1)
    tables["estimates"] = by_explainer(lambda e: -as_published(e), ig=(0.9, 0.1, 9.0, 0.1))
    assert set(verdicts(saco.RANDOMNESS, **tables).values()) == {FAILED}


def test_the_ablation_is_judged_by_intervals():
    def effects(gradient, aggregation):
        return pd.DataFrame(
            [
                (step, given, m, m - 0.05, m + 0.05)
                for step, ms in (("gradient", gradient), ("aggregation", aggregation))
                for given, m in zip("ab", ms, strict=True)
            ],
            columns=["step", "given", "mean", "low", "high"],
        )

    judge = lambda *values: list(verdicts(saco.ABLATION, effects=effects(*values)).values())  # noqa: E731
    assert judge((0.2, 0.2), (0.07, 0.08)) == [REPRODUCED] * 3
    assert judge((0.2, 0.04), (-0.1, 0.0)) == [PARTLY, FAILED, REPRODUCED]
    assert judge((0.0, 0.0), (0.1, 0.1)) == [FAILED, REPRODUCED, FAILED]


def groups(change):
    rows = [(e, k, 0.5 + change(e) * (k - 5) / 15) for e in saco.EXPLAINERS for k in (5, 10, 20)]
    return pd.DataFrame(rows, columns=["explainer", "groups", "mean"])


def scale(difference, scaled, shifted):
    rows = [("difference", "scaled", difference), ("difference", "shifted", difference)]
    return pd.DataFrame(
        [*rows, ("ratio", "scaled", scaled), ("ratio", "shifted", shifted)], columns=["weight", "change", "largest"]
    )


def test_groups_and_weights_are_judged():
    steep = ("Partial LRP", "Transformer Attribution", "Transformer-MM")
    change = lambda e: -0.3 if e in steep else 0.0 if e in ("IG", "ATTCAT") else -0.1  # noqa: E731
    judged = verdicts(saco.GROUPS, estimates=groups(change), scale=scale(1e-15, 0.5, 0.5))
    assert set(judged.values()) == {REPRODUCED}
    judged = verdicts(saco.GROUPS, estimates=groups(lambda e: -change(e)), scale=scale(0.1, 0.0, 0.0))
    assert judged == {"saco-groups": FAILED, "saco-groups-who": PARTLY, "saco-scale": FAILED, "saco-ratio": FAILED}
    assert verdicts(saco.GROUPS, estimates=groups(change), scale=scale(0, 1e-16, 1.9))["saco-ratio"] == PARTLY


def test_ids_are_unique():
    ids = [claim.id for claim in saco.RELATIONS + saco.RANDOMNESS + saco.ABLATION + saco.GROUPS]
    assert len(ids) == len(set(ids))
