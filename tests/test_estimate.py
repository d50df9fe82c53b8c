"""`estimate` against loops that draw images with replacement, and against scipy."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from faithlab import stats
from faithlab.metrics import consistency
from faithlab.scores import Scores
from faithlab.stats import samples
from faithlab.stats.intervals import METHODS, resampled
from faithlab.stats.samples import Sample, gather, statistic

NAN = float("nan")
X, Y = {"explainer": "x"}, {"explainer": "y"}
DIFFERENCE = torch.tensor([[1.0, -1.0]])


def table(values: torch.Tensor, *, images=None, sizes=None, **labels) -> Scores:
    """Values [networks, explainers, images] or [..., sizes]."""
    images = torch.arange(values.shape[2]) if images is None else images
    return Scores.concat(
        Scores.of(
            values[n, e],
            images=images,
            sizes=sizes,
            **{"dataset": "digits", "network": f"net {n}", "explainer": "xyz"[e], "metric": "m"} | labels,
        )
        for n in range(values.shape[0])
        for e in range(values.shape[1])
    )


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def of_weights(values, weights, *, images=None, sizes=None) -> Sample:
    return Sample(torch.as_tensor(values).double().reshape(len(values), -1), images, weights.double(), sizes)


counts = st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(lambda w: sum(v > 0 for v in w) > 2)


@given(counts, st.lists(st.integers(-2, 2), min_size=16, max_size=16))
def test_weighted_statistics_are_those_of_repeated_images(weights, numbers):
    weights = torch.tensor([weights])
    a, b = torch.tensor(numbers).double().reshape(2, 8)
    again = weights[0]
    x, y = of_weights(a, weights), of_weights(b, weights)
    assert x.mean().item() == pytest.approx(a.repeat_interleave(again).mean().item())
    assert stats.mege(of_weights(a.abs(), weights)).item() == pytest.approx(
        consistency.mege(a.abs().repeat_interleave(again))
    )
    one, other = a.repeat_interleave(again), b.repeat_interleave(again)
    if len(one.unique()) > 1 and len(other.unique()) > 1:
        expected = scipy.stats.spearmanr(one, other).statistic
        assert stats.association(x, y).item() == pytest.approx(expected, abs=1e-9)
    else:
        assert stats.association(x, y).isnan()
    expected = consistency.reco(one.abs(), other.abs())
    assert stats.youden(of_weights(a.abs(), weights), of_weights(b.abs(), weights)).item() == pytest.approx(expected)


def test_rows_with_pairs_carry_the_weight_of_their_image():
    weights, images = torch.tensor([[2, 0, 1], [1, 1, 1]]), torch.tensor([2, 0, 0, 1])
    sample = of_weights([1.0, 2.0, 3.0, 9.0], weights, images=images)
    assert sample.mean().tolist() == pytest.approx([(1 + 2 * 5) / 5, 15 / 4])


def test_an_area_is_that_of_the_mean_curve():
    sizes = torch.tensor([0.1, 0.2, 0.5]).double()
    sample = of_weights(normal(5, 3), torch.tensor([[1, 1, 1, 1, 1], [0, 3, 0, 1, 1]]), sizes=sizes)
    torch.testing.assert_close(stats.area(sample), stats.auc(sample.mean(), sizes))


def test_the_order_of_means_is_compared_by_rank():
    samples = [of_weights([v], torch.ones(1, 1)) for v in (1, 2, 3, 10, 30, 20)]
    assert stats.ranked_alike(*samples).item() == pytest.approx(0.5)


def test_means_of_many_cells_are_those_of_each():
    g = torch.Generator().manual_seed(3)
    values = torch.randn(250, 6, generator=g)
    values[:, 5] = values[:, 1]  # an explainer twice
    names = [f"e{k}" for k in range(6)]
    t = Scores.concat(
        Scores.of(values[:, k], images=range(250), dataset="d", network="n", metric="m", explainer=name)
        for k, name in enumerate(names)
    )

    def each(*samples):
        return torch.stack([replace(sample).mean() for sample in samples], -1)  # without those of the others

    def together(*samples):
        return torch.stack([sample.mean() for sample in samples], -1)

    over = tuple({"explainer": name} for name in names)
    one, all_at_once = (stats.estimate(t, stats.Statistic(of, over)).pooled for of in (each, together))
    for a, b in zip(one, all_at_once, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-8, atol=1e-10)
    assert all(bool(end[1] == end[5]) for end in all_at_once)


@pytest.mark.parametrize("different", [3, 40])
def test_reco_of_many_distances_is_looked_for_in_pieces(monkeypatch, different):
    g = torch.Generator().manual_seed(different)
    a, b = (torch.randint(0, different, (50,), generator=g).double() / 8 for _ in range(2))  # alike in many places
    b += different / 16
    weights = torch.randint(0, 3, (40, 50), generator=g)
    found = []
    for piece in (1, 7, 4096):
        monkeypatch.setattr(samples, "_PIECE", piece)
        found.append(stats.youden(of_weights(a, weights), of_weights(b, weights)))
    expected = [consistency.reco(a.repeat_interleave(w), b.repeat_interleave(w)) for w in weights]
    for of in found:
        assert of.tolist() == pytest.approx([float(one) for one in expected])


def test_reco_without_rows_of_one_kind_is_undefined():
    some = Sample(torch.tensor([[0.5]], dtype=torch.float64), torch.tensor([0]), torch.ones(3, 1).double(), None)
    none = Sample(torch.empty(0, 1, dtype=torch.float64), torch.empty(0, dtype=torch.int64), some.weights, None)
    assert stats.youden(some, none).isnan().all()
    assert stats.youden(none, some).isnan().all()


@pytest.mark.parametrize("of", [stats.mean, lambda s: s.mean() ** 2])
def test_a_resample_is_one_set_of_images_for_all_networks_and_cells(of):
    values = normal(2, 2, 120)
    gathered = gather(table(values), statistic(of), [X, Y], {"metric": "m"})
    got = resampled(gathered, 50)  # [networks, 1 + R, cells]
    from faithlab import rng

    picks = (rng.uniform(0, torch.arange(50), torch.zeros(1, dtype=torch.int64), 120)[:, 0] * 120).long()
    for r, pick in enumerate([torch.arange(120), *picks]):
        expected = values.double()[..., pick].mean(-1)
        torch.testing.assert_close(got[:, r], expected if of is stats.mean else expected**2)


def test_from_100_images_on_it_is_the_bootstrap_with_students_tails():
    values = normal(1, 2, 150)
    e = stats.estimate(table(values), cells=[X, Y], contrasts=DIFFERENCE)
    difference = (values[0, 0] - values[0, 1]).double()
    replicates = resampled(gather(table(values), statistic(stats.mean), [X, Y], {}))[0, 1:] @ DIFFERENCE[0].double()
    tail = scipy.stats.norm.cdf(-scipy.stats.t.ppf(0.975, 149) * np.sqrt(150 / 149))
    assert e.value.item() == pytest.approx(difference.mean().item())
    assert [e.low.item(), e.high.item()] == pytest.approx(np.quantile(replicates, [tail, 1 - tail]).tolist())
    # And that is close to Student's.
    assert (e.high - e.low).item() == pytest.approx(
        2 * scipy.stats.t.ppf(0.975, 149) * difference.std().item() / 150**0.5, rel=0.1
    )
    assert METHODS[int(e.method)] == "bootstrap"


@pytest.mark.parametrize("images", [2, 20, 99])
def test_a_mean_of_fewer_images_has_students_interval(images):
    values = normal(1, 1, images)
    e = stats.estimate(table(values))
    x = values.flatten().double().numpy()
    expected = scipy.stats.t.interval(0.95, images - 1, x.mean(), scipy.stats.sem(x))
    assert [float(e.low), float(e.high)] == pytest.approx(list(expected))
    assert METHODS[int(e.method)] == "Student"


def test_networks_are_fixed_and_count_equally():
    values = normal(3, 1, 200) + torch.tensor([0.0, 5.0, 10.0])[:, None, None]
    e = stats.estimate(table(values))
    own = values.double().mean(-1).flatten()
    assert e.networks == ("net 0", "net 1", "net 2")
    assert e.each.value.tolist() == pytest.approx(own.tolist())
    assert float(e) == pytest.approx(own.mean().item())
    assert (e.high - e.low).item() < 0.3  # the spread between networks is no part of it,
    between = scipy.stats.t.interval(0.95, 2, own.mean(), own.std() / 3**0.5)  # and stands beside it
    assert [e.between.low.item(), e.between.high.item()] == pytest.approx(list(between))


def test_one_network_has_no_interval_over_networks():
    e = stats.estimate(table(normal(1, 1, 120)))
    assert e.between.value.item() == float(e)
    assert e.between.low.isnan()
    assert e.between.high.isnan()


def test_every_training_seed_is_a_network():
    both = table(normal(1, 1, 10), training_seed=1) + table(normal(1, 1, 10, seed=1), training_seed=2)
    assert stats.estimate(both).networks == ("net 0 (seed 1)", "net 0 (seed 2)")


def test_a_cell_that_chooses_its_network_is_compared_across_networks():
    values = normal(2, 1, 30)
    e = stats.estimate(table(values), cells=[{"network": "net 0"}, {"network": "net 1"}], contrasts=DIFFERENCE)
    assert e.networks == ("net 0 and net 1",)
    assert e.value.item() == pytest.approx((values[0] - values[1]).mean().item(), abs=1e-6)


@pytest.mark.parametrize("images", [30, 130])
def test_missing_scores_are_left_out_of_both_sides_and_counted(images):
    values = normal(2, 2, images)
    values[0, 0, 3] = NAN  # undefined for x: its pair must go, too
    values[0, 1, 4] = 1e6
    kept = torch.ones(images, dtype=torch.bool)
    kept[3] = kept[4] = False
    whole = table(values)
    # Image 4 is absent for net 0 and x.
    holes = Scores.concat(
        Scores.of(b.values[keep, 0], images=b.images[keep], **b.labels)
        for b in whole
        for keep in [
            b.images != 4 if b.labels["network"] == "net 0" and b.labels["explainer"] == "x" else b.images >= 0
        ]
    )
    e = stats.estimate(holes, cells=[X, Y], contrasts=DIFFERENCE)
    assert e.missing == (2, 0)
    assert e.images == images
    assert e.images_each == (images - 2, images)
    difference = (values[:, 0] - values[:, 1]).double()
    assert e.each.value.flatten().tolist() == pytest.approx(
        [difference[0, kept].mean().item(), difference[1].mean().item()]
    )
    alone = stats.estimate(table(values[:1, :, kept]), cells=[X, Y], contrasts=DIFFERENCE)
    if images < 100:
        assert e.each.low[0].item() == pytest.approx(alone.low.item())


def test_no_common_image_is_an_error():
    values = torch.full((1, 2, 3), NAN)
    with pytest.raises(ValueError, match="no image of digits has a score in every cell; 3 were looked at"):
        stats.estimate(table(values), cells=[X, Y])


def test_a_network_without_rows_of_a_cell_is_an_error():
    lacking = table(normal(1, 2, 5)) + table(normal(1, 1, 5), network="other")
    with pytest.raises(ValueError, match=r"other and net 0 differ in the rows .*explainer y"):
        stats.estimate(lacking, cells=[X, Y])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({}, r"several explainers: choose one of \['x', 'y'\]"),
        ({"explainer": "x", "metric": "n"}, "no row has metric 'n'"),
    ],
)
def test_nothing_is_averaged_over_that_nobody_asked_for(labels, message):
    with pytest.raises(ValueError, match=message):
        stats.estimate(table(normal(1, 2, 5)), **labels)


def test_a_list_of_labels_and_draws_are_averaged_over():
    values = normal(1, 2, 5)
    listed = stats.estimate(table(values), explainer=["x", "y"])
    assert float(listed) == pytest.approx(values.mean().item(), abs=1e-6)
    drawn = table(values[:, :1], draw=0) + table(values[:, 1:], draw=1, explainer="x")
    assert float(stats.estimate(drawn)) == pytest.approx(values.mean().item(), abs=1e-6)


def test_two_data_sets_are_not_mixed_but_can_be_compared():
    both = table(normal(1, 1, 40)) + table(1 + normal(1, 1, 60, seed=1), dataset="letters")
    with pytest.raises(ValueError, match=r"several datasets: choose one of \['digits', 'letters'\]"):
        stats.estimate(both)
    e = stats.estimate(both, cells=[{"dataset": "digits"}, {"dataset": "letters"}], contrasts=DIFFERENCE)
    assert e.datasets == ("digits", "letters")
    variance = sum(b.values.double().var().item() / len(b.values) for b in both)
    assert (e.high - e.value).item() == pytest.approx(scipy.stats.t.ppf(0.975, 39) * variance**0.5)


def test_curves_have_an_estimate_at_every_size():
    sizes = torch.tensor([0.1, 0.5, 0.9])
    e = stats.estimate(table(normal(2, 1, 30, 3), sizes=sizes))
    assert e.value.shape == e.low.shape == (3,)
    assert e.each.value.shape == (2, 3)


def test_rows_of_different_sizes_are_an_error():
    values = normal(1, 1, 5, 2)
    mixed = table(values, sizes=[0.1, 0.2]) + table(values, sizes=[0.1, 0.3], explainer="y")
    with pytest.raises(ValueError, match="different sizes"):
        stats.estimate(mixed, cells=[X, Y])


@pytest.mark.parametrize("images", [1, 5, 50, 200])
def test_a_sample_without_spread_is_not_certainty(images):
    e = stats.estimate(table(torch.full((2, 1, images), 0.3)))
    assert float(e) == pytest.approx(0.3)
    assert e.low.isnan()
    assert e.high.isnan()
    assert METHODS[int(e.method)] == "none"
    assert str(e) == "0.3 (no interval)"


@pytest.mark.parametrize("images", [5, 50, 200])
def test_a_bounded_mean_without_spread_knows_how_many_other_images_can_be_unseen(images):
    of = stats.Statistic(stats.mean, bounds=(-1.0, 1.0))
    e = stats.estimate(table(torch.full((1, 1, images), 0.5)), of)
    # A share of others of which n images show none once in forty studies, all of them at a bound.
    unseen = 1 - 0.025 ** (1 / images)
    assert (1 - unseen) ** images == pytest.approx(0.025)
    assert [float(e.low), float(e.high)] == pytest.approx([0.5 - 1.5 * unseen, 0.5 + 0.5 * unseen])
    assert METHODS[int(e.method)] == "bounds"


def test_no_interval_reaches_beyond_the_bounds():
    of = stats.Statistic(stats.mean, bounds=(0.0, 1.0))
    values = 1 - 0.2 * (torch.arange(12) == 3).double().expand(1, 1, -1)
    free, bound = stats.estimate(table(values)), stats.estimate(table(values), of)
    assert float(free.high) > 1 == float(bound.high)
    assert float(free.low) == float(bound.low)
    one_end = stats.estimate(table(values), stats.Statistic(stats.mean, bounds=(float("-inf"), 1.0)))
    assert [float(one_end.low), float(one_end.high)] == [float(bound.low), float(bound.high)]
    paired = stats.estimate(
        table(values.repeat(1, 2, 1) - 0.9), of, cells=[X, Y], contrasts=torch.tensor([[1.0, -1.0]])
    )
    assert -1 <= float(paired.low[0]) <= float(paired.high[0]) <= 1


def test_what_is_shown_is_cut_at_the_bounds_and_what_is_judged_is_not():
    def at_first(sample):
        return sample.mean()[:, 0]

    hits = torch.ones(1, 2, 40, 2, dtype=torch.bool)
    hits[0, 0, :2], hits[0, 1, 2:] = False, False
    both = table(hits, sizes=[0.0, 1.0])
    accuracy = stats.Statistic(at_first, within=(0.0, 1.0))
    for of in (accuracy, stats.area):
        found = stats.estimate(both, of, **X)
        assert float(found.high) > 1
        assert [float(x) for x in found.shown] == [float(found.value), float(found.low), 1.0]
    contrast = stats.estimate(both, accuracy, cells=[X, Y], contrasts=DIFFERENCE)
    assert float(contrast.high) > 1
    assert float(contrast.cut(contrast.each).high) == 1.0, "of a difference of two, from -1 to 1"
    perfect = stats.estimate(table(hits | True, sizes=[0.0, 1.0]), accuracy, **X)
    assert perfect.shown.low.isnan(), "no perfect sample is certain"
    at_the_end = replace(found, pooled=found.pooled.shifted(1 - found.low))
    assert at_the_end.shown.low.isnan(), "nor is what only a bias has moved there"


def test_an_order_in_which_all_resamples_agree_is_rarely_the_wrong_one():
    """Heavy ties, rare large differences: where 100 images show one order in every resample, others do, too."""
    generator = torch.Generator().manual_seed(0)
    of = stats.found_order([0.0, 0.5])
    wrong = sure = 0
    for share in (0.02, 0.05, 0.1, 0.5):
        for _ in range(50):
            differs = torch.rand(100, generator=generator) < share
            gap = torch.where(torch.rand(100, generator=generator) < 0.6, 1.0, -1.0) * differs  # the first is better
            rows = [
                Scores.of(
                    values,
                    images=torch.arange(100),
                    dataset="d",
                    network="n",
                    training_seed=0,
                    metric="m",
                    explainer="e",
                    **level,
                )
                for values, level in ((gap, {}), (torch.zeros(100), {"level": 0.5, "noise_seed": 0}))
            ]
            e = stats.estimate(Scores.concat(rows), of)
            if float(e.low) == float(e.high):
                sure += 1
                wrong += float(e) < 0
    assert sure > 20
    assert wrong <= 0.025 * 200


def test_one_image_has_no_interval():
    assert stats.estimate(table(normal(2, 1, 1))).low.isnan()


@pytest.mark.parametrize("images", [1, 20, 400])
@pytest.mark.parametrize("hit", [True, False])
def test_a_rate_without_a_miss_has_an_exact_interval(images, hit):
    e = stats.estimate(table(torch.full((1, 1, images), hit)))
    expected = scipy.stats.binomtest(images * hit, images).proportion_ci(method="exact")
    assert [float(e.low), float(e.high)] == pytest.approx([expected.low, expected.high], abs=1e-9)


def test_a_rate_of_few_images_has_an_exact_interval():
    e = stats.estimate(table((torch.arange(20) < 17).reshape(1, 1, 20)))
    expected = scipy.stats.binomtest(17, 20).proportion_ci(method="exact")
    assert [float(e.low), float(e.high)] == pytest.approx([expected.low, expected.high], abs=1e-9)
    assert METHODS[int(e.method)] == "Clopper and Pearson"


def test_equal_hits_of_two_explainers_are_not_certainty():
    values = (torch.arange(100) < 90).expand(1, 2, 100)
    e = stats.estimate(table(values), cells=[X, Y], contrasts=DIFFERENCE)
    assert e.value.item() == 0
    half = scipy.stats.t.ppf(0.975, 101) * 2**0.5 / 102  # two pseudo-images in 102
    assert [e.low.item(), e.high.item()] == pytest.approx([-half, half])


def test_a_statistic_that_is_often_undefined_has_no_interval():
    values = torch.zeros(1, 2, 120)
    values[0, :, 0] = 1  # without image 0, in a third of the resamples, both are constant
    of = stats.Statistic(stats.association, (X, Y))
    e = stats.estimate(table(values), of)
    assert 250 < e.undefined < 500
    assert e.low.isnan()


def test_pairs_that_have_no_distance_are_left_out_and_counted():
    rows = {"dataset": "d", "network": "folds", "images": [0, 0, 1, 2], "pairs": [1, 2, 1, 1]}
    found = Scores.of(torch.tensor([1.0, NAN, 3.0, 5.0]), metric="S=", **rows)
    e = stats.estimate(found, stats.mege)
    assert float(e) == pytest.approx(1 / 4)
    assert e.missing == (1,)
    assert e.images_each == (3,)


def test_a_pair_without_a_distance_in_one_cell_is_left_out_of_all():
    g = torch.Generator().manual_seed(0)
    one, rows = torch.rand(60, generator=g), {"dataset": "d", "network": "folds", "metric": "S="}
    images, pairs = torch.arange(60) // 2, torch.arange(60) % 2
    other = torch.where(one < 0.5, NAN, one)  # the same wherever both have one
    both = Scores.of(one, images=images, pairs=pairs, explainer="a", **rows)
    both += Scores.of(other, images=images, pairs=pairs, explainer="b", **rows)
    lost = stats.paired(both, {"explainer": "a"}, {"explainer": "b"}, stats.mege)
    assert float(lost.value) == 0
    assert float(lost.pooled.low) != float(lost.pooled.low), "what differs nowhere has no interval"
    assert lost.missing == (int((one < 0.5).sum()),)
    assert lost.images_each == (len(images[one >= 0.5].unique()),), "an image without a pair is none"
    # Of one cell an image counts that has a distance, and those without one do not make the interval narrower.
    alone = stats.estimate(both, stats.mege, explainer="b")
    kept = Scores.of(other[one >= 0.5], images=images[one >= 0.5], pairs=pairs[one >= 0.5], explainer="b", **rows)
    torch.testing.assert_close(torch.stack([*alone.pooled]), torch.stack([*stats.estimate(kept, stats.mege).pooled]))


def test_the_area_of_one_size_is_the_score_there():
    values = torch.rand(30, 1, generator=torch.Generator().manual_seed(0))
    one = Scores.of(values, images=range(30), sizes=[0.5], dataset="d", network="n", metric="m")
    plain = Scores.of(values[:, 0], images=range(30), dataset="d", network="n", metric="m")
    assert str(stats.estimate(one, stats.area)) == str(stats.estimate(plain))


def test_reco_takes_an_image_with_all_its_pairs():
    g = torch.Generator().manual_seed(0)
    distances, right = torch.rand(40, 4, generator=g), torch.rand(40, 4, generator=g) < 0.7
    distances = distances + 0.3 * ~right
    images, pairs = torch.arange(40)[:, None].expand(40, 4), torch.arange(4).expand(40, 4)
    found = Scores.concat(
        Scores.of(distances[k], images=images[k], pairs=pairs[k], dataset="d", network="folds", metric=metric)
        for metric, k in (("S=", right), ("S!=", ~right))
    )
    reco = stats.Statistic(stats.youden, ({"metric": "S="}, {"metric": "S!="}))
    gathered = gather(found, reco, [{}], {})
    got = resampled(gathered)[0, :, 0]  # the jackknife
    assert got[0].item() == pytest.approx(consistency.reco(distances[right], distances[~right]))
    for image in range(40):
        keep = images != image
        expected = consistency.reco(distances[right & keep], distances[~right & keep])
        assert got[1 + image].item() == pytest.approx(expected)


@pytest.mark.parametrize("pairs", [False, True])
def test_permuting_cells_moves_an_image_as_a_whole(pairs):
    g = torch.Generator().manual_seed(0)
    orders = torch.rand(6, 2, 3, generator=g).argsort(-1)
    images = torch.arange(6).repeat_interleave(2) if pairs else torch.arange(6)
    extra = {"pairs": torch.arange(12) % 2} if pairs else {}
    values = normal(2, 3, len(images))
    rows = Scores.concat(
        Scores.of(values[n, e], images=images, dataset="d", network=str(n), explainer=str(e), metric="m", **extra)
        for n in range(2)
        for e in range(3)
    )
    moved = gather(rows, statistic(stats.mean), [{"explainer": str(e)} for e in range(3)], {}).permuted(orders)
    for n, i, o, e in itertools.product(range(2), range(6), range(2), range(3)):
        target = moved.rows[n][3 * o + int(orders[i, o, e])][0]
        got = target.values[target.images == i] if pairs else target.values[i]
        assert sorted(got.flatten().tolist()) == pytest.approx(sorted(values[n, e, images == i].tolist()))


def test_estimates_do_not_depend_on_the_order_of_rows_or_on_earlier_ones():
    values = normal(2, 2, 130)
    first = stats.estimate(table(values), cells=[X, Y], contrasts=DIFFERENCE)
    order = torch.randperm(130, generator=torch.Generator().manual_seed(1))
    again = stats.estimate(table(values[..., order], images=order), cells=[X, Y], contrasts=DIFFERENCE)
    torch.testing.assert_close(torch.stack(first.pooled), torch.stack(again.pooled))


def test_summary_has_an_estimate_for_every_combination():
    values = normal(2, 2, 20)
    found = stats.summary(table(values), ["network", "explainer"])
    assert [tuple(labels.values()) for labels, _ in found] == [(f"net {n}", e) for n in range(2) for e in "xy"]
    assert [float(e) for _, e in found] == pytest.approx(values.mean(-1).flatten().tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"resamples": 999}, "at least 1000 resamples, but got 999"),
        ({"contrasts": torch.ones(1, 1), "cells": [X, Y]}, "contrasts"),
        ({"cells": [X, Y], "explainer": "x"}, "explainer is chosen twice: 'x' and 'y'"),
    ],
)
def test_bad_questions(arguments, message):
    with pytest.raises(ValueError, match=message):
        stats.estimate(table(normal(1, 2, 5)), **arguments)


def test_what_is_outside_a_wider_interval_is_told_by_students_law():
    e = stats.estimate(table(normal(1, 1, 20)))
    times = scipy.stats.t.ppf([0.975, 0.995], 19) / scipy.stats.t.ppf(0.975, 19)
    assert e.outside(torch.tensor(times)).tolist() == pytest.approx([0.025, 0.005])


def test_an_interval_holds_its_value():
    """Also where every resample is worse than the table, as for orders of many levels."""
    g = torch.Generator().manual_seed(0)
    image = torch.randn(150, generator=g)
    levels = [0.0, 0.25, 0.5, 0.75, 1.0]
    sizes = [0.2, 0.5, 0.8]
    for seed in range(25):
        g = torch.Generator().manual_seed(seed)
        rows = [
            Scores.of(
                image[:, None] - 0.3 * level + torch.randn(150, 3, generator=g),
                images=range(150),
                sizes=sizes,
                dataset="d",
                network="n",
                metric="m",
                level=level or None,
                noise_seed=0 if level else None,
            )
            for level in levels
        ]
        e = stats.estimate(Scores.concat(rows), stats.found_order(levels, [0], micro=True))
        assert e.low <= e.value <= e.high


def test_a_difference_within_a_statistic_is_that_of_cells():
    """The larger of two means is biased upwards in every resample; in a difference of two such this cancels."""
    t = table(normal(1, 3, 120), metric="m") + table(normal(1, 3, 120, seed=1), metric="n")

    def largest(*samples):
        return torch.stack([s.mean() for s in samples]).amax(0)

    over = tuple({"explainer": name} for name in "xyz")
    cells = [{"metric": "m"}, {"metric": "n"}]
    expected = stats.estimate(t, stats.Statistic(largest, over), cells=cells, contrasts=DIFFERENCE)

    def difference(*samples):
        return largest(*samples[:3]) - largest(*samples[3:])

    both = tuple(cell | own for cell in cells for own in over)
    found = stats.estimate(t, stats.Statistic(difference, both, difference=True))
    for one, other in zip(found.pooled, expected.pooled, strict=True):
        assert float(one) == pytest.approx(float(other[0]))
    alone = stats.estimate(t, stats.Statistic(largest, over), metric="m")
    shifted = stats.estimate(t, stats.Statistic(largest, over, difference=True), metric="m")
    assert float(alone.low) < float(shifted.low)


@pytest.mark.parametrize("bar", [0.05, 0.2, 0.3, 0.5, 0.8, 0.9])
def test_no_number_of_images_is_so_small_that_chance_passes_a_bar(bar):
    """At the bar itself a rate is called higher in at most 2.5 % of the cases, whatever the number of images."""
    for images in range(1, 40):
        hits = torch.arange(images + 1)
        low, _ = stats.exact(hits / images, torch.tensor(images))
        chance = scipy.stats.binom.pmf(hits.numpy(), images, bar)
        assert chance[(low > bar).numpy()].sum() <= 0.025 + 1e-9


@pytest.mark.parametrize("images", range(2, 13))
def test_no_number_of_images_is_so_small_that_chance_tells_two_rates_apart(images):
    """Where each image is hit by one of the two alone, and by either with a chance of a half."""
    chance = 0.0
    for wins in range(images // 2 + 1, images + 1):
        first = torch.arange(images) < wins
        e = stats.estimate(table(torch.stack([first, ~first])[None]), cells=[X, Y], contrasts=DIFFERENCE)
        chance += scipy.stats.binom.pmf(wins, images, 0.5) * float(e.low.item() > 0)
    assert chance <= 0.05


@pytest.mark.parametrize("hits", [False, True])
def test_images_without_a_score_say_nothing(hits):
    """The interval is that of the images that count, however many others stand in the table."""
    values = normal(1, 2, 200)
    values = (values > -0.5).float() if hits else values
    values[:, 0, 5:] = NAN
    with_others = stats.estimate(table(values), cells=[X, Y], contrasts=DIFFERENCE)
    alone = stats.estimate(table(values[:, :, :5]), cells=[X, Y], contrasts=DIFFERENCE)
    assert (with_others.images, with_others.missing) == (5, (195,))
    for one, other in zip(with_others.pooled, alone.pooled, strict=True):
        assert one.item() == pytest.approx(other.item(), nan_ok=True)


def test_one_common_image_decides_nothing():
    first, second = torch.zeros(100), torch.ones(100)
    first[-1], second[0] = 1, 0
    own = {"dataset": "d", "network": "n", "metric": "m"}
    both = Scores.of(first.bool(), images=range(100), explainer="x", **own)
    both += Scores.of(second.bool(), images=range(99, 199), explainer="y", **own)
    e = stats.estimate(both, cells=[X, Y], contrasts=DIFFERENCE)
    assert e.images == 1
    assert not (e.low > 0).item()
    assert not (e.high < 0).item()


def test_a_network_with_few_images_is_not_outvoted():
    """Of networks that count equally, the one with two images says how sure the mean is."""
    held = 0
    g = torch.Generator().manual_seed(0)
    for _ in range(400):
        few, many = torch.randn(2, generator=g), 0.001 + 0.0001 * torch.randn(500, generator=g)
        own = {"dataset": "d", "explainer": "x", "metric": "m"}
        t = Scores.of(few, images=range(2), network="few", **own)
        t += Scores.of(many, images=range(2, 502), network="many", **own)
        e = stats.estimate(t)
        assert e.missing == (0, 0)
        held += bool(e.low > 0.0005)
    assert held <= 20


def test_networks_average_over_the_same_rows():
    t = table(normal(2, 2, 50))
    lacking = Scores([b for b in t if (b.labels["network"], b.labels["explainer"]) != ("net 1", "y")])
    with pytest.raises(ValueError, match="net 1 and net 0 differ in the rows"):
        stats.estimate(lacking, explainer=["x", "y"])
    assert len(stats.estimate(lacking, explainer="x").networks) == 2


def test_a_paired_difference_is_the_contrast_of_two_cells():
    scores = table(normal(2, 2, 30))
    found, same = stats.paired(scores, X, Y), stats.estimate(scores, cells=[X, Y], contrasts=DIFFERENCE)
    assert [x.tolist() for x in found.pooled] == [x.tolist() for x in same.pooled]
    one, other = (stats.estimate(scores, **cell) for cell in (X, Y))
    assert float(found.value) == pytest.approx(float(one.value) - float(other.value))
