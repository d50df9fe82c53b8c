"""SaCo against its literal algorithm on thousands of cases, its invariances, and scores known on paper."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import literal
from faithlab import baselines, engine, segments
from faithlab.metrics.saco import Groups, bets, coefficient, influences, saco
from faithstudy.networks import models


def whole_numbers(count: int, features: int, seed: int, modulus: int = 7):
    """A score without rounding, with ties: a weighted count of what is kept, modulo a number; and its literal twin."""
    weights = torch.randint(0, 50, (count, features), generator=torch.Generator().manual_seed(seed))

    def score(keep):
        return ((keep.long() * weights[:, None]).sum(-1) % modulus).float()

    def ask_of(image):
        own = weights[image].tolist()
        return lambda kept: float(sum(own[f] for f in kept) % modulus)

    return score, ask_of


def logistic(weights: torch.Tensor):
    return lambda keep: torch.einsum("bmf,bf->bm", keep.double(), weights.double()).sigmoid()


@pytest.mark.parametrize("ratio", [False, True], ids=["difference", "ratio"])
@pytest.mark.parametrize("values", ["real", "few", "positive"])
@pytest.mark.parametrize(
    ("features", "groups"), [(2, 2), (7, 3), (10, 10), (20, 10), (23, 10), (40, 8), (33, 5), (64, 20)]
)
def test_is_algorithm_1_on_thousands_of_random_cases(features, groups, values, ratio):
    count = 80  # of each of 48 kinds
    generator = torch.Generator().manual_seed(features * groups)
    draws = {
        "real": torch.randn(count, features, generator=generator),
        # A group of salience 0 has no ratio.
        "few": torch.randint(1 if ratio else -2, 3, (count, features), generator=generator).float(),
        "positive": torch.rand(count, features, generator=generator) + 0.1,
    }
    attribution = draws[values].double()
    score, ask_of = whole_numbers(count, features, seed=groups)
    expected = [literal.saco(ask_of(b), attribution[b].tolist(), groups, ratio) for b in range(count)]
    torch.testing.assert_close(
        saco(score, attribution, groups, ratio=ratio),
        torch.tensor(expected, dtype=torch.float64),
        atol=1e-9,
        rtol=0,
        equal_nan=True,
    )


@given(st.integers(0, 10_000), st.integers(-20, 20), st.floats(-50, 50))
def test_is_invariant_to_a_positive_scale_and_a_shift(seed, exponent, shift):
    attribution = torch.randn(5, 30, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    score, _ = whole_numbers(5, 30, seed)
    plain = saco(score, attribution, 6)
    assert torch.equal(saco(score, attribution * 2.0**exponent, 6), plain)
    torch.testing.assert_close(saco(score, attribution * 3.7 + shift, 6), plain, atol=1e-9, rtol=0)


def test_a_shift_changes_nothing_where_groups_are_unequal_either():
    attribution = torch.randn(50, 23, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    score, _ = whole_numbers(50, 23, 0)
    torch.testing.assert_close(saco(score, attribution + 5), saco(score, attribution), atol=1e-12, rtol=0)


def test_the_ratio_is_invariant_to_a_scale_but_not_to_a_shift():
    attribution = torch.rand(50, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    score, _ = whole_numbers(50, 40, 0)
    plain = saco(score, attribution, ratio=True)
    torch.testing.assert_close(saco(score, attribution * 8, ratio=True), plain, atol=1e-12, rtol=0)
    assert ((saco(score, attribution + 1, ratio=True) - plain).abs() > 0.01).any()


def test_a_ratio_that_is_not_finite_has_no_coefficient():
    groups = Groups(torch.tensor([[2.0, 1.0, 0.0], [2.0, 1.0, 0.5]]), torch.tensor([[3.0, 2.0, 1.0]]).expand(2, -1))
    assert coefficient(groups, ratio=True).isnan().tolist() == [True, False]
    assert coefficient(groups).tolist() == [1.0, 1.0]


def test_of_a_negated_attribution_it_is_the_negative_where_no_drops_tie():
    weights, attribution = torch.randn(2, 40, 30, generator=torch.Generator().manual_seed(0))
    score = logistic(weights / 10)
    torch.testing.assert_close(saco(score, -attribution), -saco(score, attribution), atol=1e-12, rtol=0)


@pytest.mark.parametrize("groups", [5, 10, 16])
def test_of_a_random_attribution_it_is_zero_within_four_standard_errors(groups):
    weights = torch.randn(4000, 48, generator=torch.Generator().manual_seed(groups)) / 5
    attribution = torch.rand(4000, 48, generator=torch.Generator().manual_seed(99))
    found = saco(logistic(weights), attribution, groups)
    assert abs(found.mean()) < 4 * found.std() / len(found) ** 0.5
    assert found.std() > 0.1


@pytest.mark.parametrize(("features", "groups"), [(9, 5), (20, 6), (23, 7)])
def test_unequal_groups_do_not_tilt_the_zero(features, groups):
    # Every feature matters about the same, so that a group with one feature less always loses less.
    weights = 0.1 + torch.rand(4000, features, generator=torch.Generator().manual_seed(groups)) / 50
    attribution = torch.rand(4000, features, generator=torch.Generator().manual_seed(99))
    found = saco(logistic(weights), attribution, groups)
    assert abs(found.mean()) < 4 * found.std() / len(found) ** 0.5


@pytest.mark.parametrize(("features", "groups"), [(48, 6), (64, 16), (100, 10)])
def test_of_an_oracle_of_measured_drops_it_is_one(features, groups):
    weights = torch.randn(200, features, generator=torch.Generator().manual_seed(0)) / 5
    score = logistic(weights)
    anything = torch.rand(200, features, generator=torch.Generator().manual_seed(1))
    drop = influences(score, anything, groups).drop  # of a partition at random
    turn = anything.argsort(descending=True, stable=True).argsort()
    oracle = drop.gather(1, turn // (features // groups))  # every feature has the drop of its group
    torch.testing.assert_close(saco(score, oracle, groups), torch.ones(200, dtype=torch.float64))
    torch.testing.assert_close(saco(score, -oracle, groups), -torch.ones(200, dtype=torch.float64))


def test_of_an_oracle_on_a_network_it_is_one():
    torch.manual_seed(0)
    model = models.build("cnn3", classes=4, width=8).eval()
    x = torch.randn(6, 3, 16, 16)
    with torch.inference_mode():
        target = model(x).argmax(1)
    patches = segments.patches(16, 16, 4)
    score = engine.scorer(model, x, target, segments=patches, baseline=baselines.mean)
    drop = influences(score, torch.rand(6, 16).sort(descending=True).values, 16).drop  # in the order of the patches
    assert (drop.sort(dim=1).values.diff() > 0).all()
    assert torch.equal(saco(score, drop, 16), torch.ones(6, dtype=torch.float64))


def test_a_case_counted_by_hand():
    # Saliences 5, 3, 1 and drops 0.2, 0.4, 0.4: the pairs weigh 2 (violated), 4 (violated) and 2 (holds, a tie).
    groups = Groups(torch.tensor([[5.0, 3.0, 1.0]]), torch.tensor([[0.2, 0.4, 0.4]]))
    assert bets(groups).tolist() == [[-2, -4, 2]]
    assert coefficient(groups).tolist() == [(-2 - 4 + 2) / 8]
    assert coefficient(groups, ratio=True).tolist() == pytest.approx([(-5 / 3 - 5 + 3) / (5 / 3 + 5 + 3)])


def test_all_drops_tied_is_plus_one_by_the_papers_inequality():
    score, _ = whole_numbers(3, 20, 0, modulus=1)  # always 0
    attribution = torch.rand(3, 20, generator=torch.Generator().manual_seed(0))
    assert saco(score, attribution).tolist() == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("features", [20, 23])
@pytest.mark.parametrize("constant", [0.0, 0.1, -3e7])
def test_equal_scores_have_no_coefficient_and_do_not_touch_other_images(features, constant):
    attribution = torch.rand(4, features, generator=torch.Generator().manual_seed(0))
    attribution[2] = constant
    score, _ = whole_numbers(4, features, 0)
    assert saco(score, attribution).isnan().tolist() == [False, False, True, False]


def test_the_salience_of_a_group_is_its_sum_and_of_unequal_groups_their_mean_at_equal_size():
    attribution = torch.tensor([[5.0, 1.0, 4.0, 2.0, 3.0, 0.0]])
    score, _ = whole_numbers(1, 6, 0)
    torch.testing.assert_close(influences(score, attribution, 3).salience, torch.tensor([[9.0, 5.0, 1.0]]).double())
    # Groups of 2, 1, 1 and 2 features; each as if it had 6 / 4 of them.
    unequal = torch.tensor([[4.5, 3.0, 2.0, 0.5]]).double() * 6 / 4
    torch.testing.assert_close(influences(score, attribution, 4).salience, unequal)


def test_the_drop_of_a_group_is_what_is_lost_without_it_alone():
    weights = torch.tensor([[1.0, 20.0, 300.0, 4000.0]])
    drop = influences(lambda keep: keep.float() @ weights[0], torch.tensor([[0.4, 0.1, 0.3, 0.2]]), 2).drop
    assert drop.tolist() == [[301.0, 4020.0]]


def test_absent_features_belong_to_no_group():
    attribution = torch.randn(3, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    score, _ = whole_numbers(3, 12, 0)
    present = torch.ones(3, 12, dtype=torch.bool)
    present[1, 9:] = False
    attribution[1, 9:] = 100
    found = saco(score, attribution, 3, present=present)
    assert torch.equal(found[[0, 2]], saco(score, attribution, 3)[[0, 2]])

    def first_nine(keep):  # the other three are always kept
        return score(torch.cat([keep, torch.ones(*keep.shape[:2], 3, dtype=torch.bool)], -1))

    torch.testing.assert_close(found[1], saco(first_nine, attribution[:, :9], 3)[1])


def test_an_input_with_fewer_features_than_groups_has_no_coefficient():
    score, _ = whole_numbers(2, 12, 0)
    present = torch.ones(2, 12, dtype=torch.bool)
    present[0, 3:] = False
    attribution = torch.rand(2, 12, generator=torch.Generator().manual_seed(0))
    assert saco(score, attribution, 4, present=present).isnan().tolist() == [True, False]
