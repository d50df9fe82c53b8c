"""From attributions to keep-masks: orders, counts, and random subsets of an exact size, uniform and reproducible."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

import literal
from faithlab import masks

attributions = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=10)


@given(attributions)
def test_order_is_by_relevance_then_by_index(relevance):
    assert masks.order(torch.tensor([relevance]))[0].tolist() == literal.ranking(relevance)


def test_ties_among_many_features_are_by_index_too():
    relevance = torch.randint(3, (1, 5000), generator=torch.Generator().manual_seed(0)).float()
    assert masks.order(relevance)[0].tolist() == literal.ranking(relevance[0].tolist())


@given(attributions, st.data())
def test_least_relevant_first_is_the_same_order_read_from_its_end(relevance, data):
    present = torch.tensor([data.draw(st.lists(st.booleans(), min_size=len(relevance), max_size=len(relevance)))])
    present[:, data.draw(st.integers(0, len(relevance) - 1))] = True
    scores = torch.tensor([relevance])
    assert masks.order(scores, direction="LeRF")[0].tolist() == literal.ranking(relevance)[::-1]
    own = int(present.sum())
    first = [feature for feature in literal.ranking(relevance) if present[0, feature]]
    order = masks.order(scores, present, "LeRF")[0].tolist()
    assert order[:own] == first[::-1]
    assert sorted(order) == list(range(len(relevance)))


def test_integer_scores_are_an_order_as_exactly_as_they_are():
    # As float32 the first two would be one.
    assert masks.order(torch.tensor([[2**53, 2**53 + 1, 0]])).tolist() == [[1, 0, 2]]


def test_no_images_have_no_orders():
    assert masks.order(torch.zeros(0, 3)).shape == (0, 3)


@given(st.permutations(range(7)))
def test_place_inverts_an_order(permutation):
    order = torch.tensor([permutation])
    assert masks.place(order)[0].tolist() == [permutation.index(feature) for feature in range(7)]
    assert torch.equal(masks.place(masks.place(order)), order)


@pytest.mark.parametrize("features", [1, 7, 10, 100, 200, 784, 1024])
def test_counts_are_exact_fractions_rounded_half_up(features):
    percents = [Fraction(k, 1000) for k in range(1001)]
    expected = [literal.half_up(p * features) for p in percents]
    assert masks.counts(torch.tensor([float(p) for p in percents], dtype=torch.float64), features).tolist() == expected
    # The same fractions as they come out of float arithmetic, 0.1 + 0.2 = 0.30000000000000004 and its kin.
    assert masks.counts(torch.arange(1001, dtype=torch.float64) * 0.001, features).tolist() == expected


@pytest.mark.parametrize("features", [1, 10, 50, 100, 200, 1000, 3072, 50176, 150528, 1_000_000])
@pytest.mark.parametrize(
    "fractions",
    [
        [k / 1000 for k in range(1001)],
        torch.tensor([k / 1000 for k in range(1001)]),
        torch.arange(1001) * 0.001,
        torch.linspace(0, 1, 1001),
        np.arange(1001, dtype=np.float32) * np.float32(0.001),
    ],
    ids=["floats", "float32", "products in float32", "a float32 range", "numpy"],
)
def test_a_fraction_in_any_precision_is_the_decimal_number_that_it_prints_as(fractions, features):
    expected = [literal.half_up(Fraction(k, 1000) * features) for k in range(1001)]
    assert masks.counts(fractions, features).tolist() == expected


def test_a_float32_fraction_that_is_no_short_decimal_stays_what_it_is():
    features = 3_000_017
    sizes = torch.tensor([1, 2, 3, 1_000_003])
    assert masks.counts((sizes / features).float(), features)[:3].tolist() == [1, 2, 3]


def test_shares_in_float32_are_decimals_too():
    counts = torch.arange(101)
    for share in (torch.tensor(0.35), np.float32(0.35)):
        assert torch.equal(masks.removals(counts, 100, share, share), masks.removals(counts, 100, 0.35, 0.35))


@given(st.integers(0, 100), st.integers(0, 5000))
def test_a_bound_is_the_largest_count_within_a_share(percent, features):
    assert masks.bound(percent / 100, features) == percent * features // 100


@given(
    features=st.integers(1, 300),
    alpha=st.integers(0, 100).map(lambda p: p / 100),
    cap=st.none() | st.integers(0, 100).map(lambda p: p / 100),
)
def test_removals_are_equation_6(features, alpha, cap):
    counts = torch.arange(features + 1)
    removals = masks.removals(counts, features, alpha, cap).tolist()
    bound = features if cap is None else literal.exact(cap) * features // 1
    assert removals == [min(literal.half_up(literal.exact(alpha) * s), bound) for s in range(features + 1)]


def test_remove_top_keeps_all_but_the_first_s():
    order = torch.tensor([[2, 0, 1], [1, 2, 0]])
    sizes = [0, 2, 3, 1]
    keep = masks.remove_top(order, torch.tensor(sizes))
    for image, (k, s) in itertools.product(range(2), enumerate(sizes)):
        assert keep[image, k].logical_not().nonzero().flatten().tolist() == sorted(order[image, :s].tolist())


# Random subsets

FEATURES = 24
ORDER = masks.order(torch.rand(6, FEATURES, generator=torch.Generator().manual_seed(0)))
COUNTS = torch.tensor([0, 1, 5, 12, 12, 24])
REMOVALS = torch.tensor([0, 1, 2, 0, 6, 3])
IMAGES = torch.tensor([3, 0, 8, 999, 5, 4])


SUBSETS = [masks.remove_from_top, masks.remove_apart_from_top]
both = pytest.mark.parametrize("subset", SUBSETS)


def subsets(
    order=ORDER,
    images=IMAGES,
    draws=range(40),
    counts=COUNTS,
    removals=REMOVALS,
    seed=0,
    subset=masks.remove_from_top,
):
    draws = torch.as_tensor(list(draws))
    return ~subset(order, counts, removals, seed=seed, images=images, draws=draws)


@both
def test_a_random_subset_has_its_exact_size_and_lies_within_the_top(subset):
    removed = subsets(subset=subset)  # [B, N, K, F]
    assert removed.shape == (6, 40, 6, FEATURES)
    assert (removed.sum(-1) == REMOVALS).all()
    top = ~masks.remove_top(ORDER, COUNTS)
    assert not (removed & ~top[:, None]).any()


def test_a_random_subset_is_the_first_of_the_top_in_the_draws_random_order():
    removed = subsets(draws=range(3), seed=7)
    for b, n, k in itertools.product(range(6), range(3), range(6)):
        top = ORDER[b, : COUNTS[k]].tolist()
        shuffled = literal.random_order(literal.stream("subsets", 7), int(IMAGES[b]), n, FEATURES)
        expected = [feature for feature in shuffled if feature in top][: REMOVALS[k]]
        assert removed[b, n, k].nonzero().flatten().tolist() == sorted(expected)


def test_sizes_that_are_drawn_apart_shuffle_the_draws_random_order_by_their_count():
    removed = subsets(draws=range(3), seed=7, subset=masks.remove_apart_from_top)
    for b, n, k in itertools.product(range(6), range(3), range(6)):
        top = ORDER[b, : COUNTS[k]].tolist()
        shuffled = literal.random_order(literal.stream("subsets", 7), int(IMAGES[b]), n, FEATURES)
        again = literal.random_order(masks.SHUFFLES, 0, int(COUNTS[k]), FEATURES)
        first = sorted(top, key=lambda feature: again[shuffled.index(feature)])
        assert removed[b, n, k].nonzero().flatten().tolist() == sorted(first[: REMOVALS[k]])


def test_sizes_that_are_drawn_apart_remove_other_features():
    """Two sizes out of 1000 features that remove 100 each: a few in common where they are drawn apart."""
    order = torch.arange(1000).expand(4, -1)
    counts, removals = torch.tensor([800, 850]), torch.tensor([100, 100])
    common = {}
    for subset in SUBSETS:
        removed = subsets(order, IMAGES[:4], range(20), counts, removals, subset=subset)
        common[subset] = float((removed[:, :, 0] & removed[:, :, 1]).sum(-1).double().mean())
    assert common[masks.remove_from_top] > 80
    assert common[masks.remove_apart_from_top] == pytest.approx(100 * 100 / 850, abs=8)


def test_numbers_of_features_of_their_own_do_not_change_the_subsets_drawn_apart():
    per_input = {"counts": COUNTS.expand(6, -1), "removals": REMOVALS.expand(6, -1)}
    assert torch.equal(
        subsets(subset=masks.remove_apart_from_top, **per_input), subsets(subset=masks.remove_apart_from_top)
    )


@both
def test_every_feature_and_every_pair_is_equally_often_removed(subset):
    s, m, draws = 10, 4, 20_000
    order = torch.randperm(16, generator=torch.Generator().manual_seed(0))[None]
    removed = subsets(order, torch.tensor([2]), range(draws), torch.tensor([s]), torch.tensor([m]), subset=subset)[
        0, :, 0
    ]
    removed = removed[:, order[0, :s]].double()  # [draws, s]
    together = removed.T @ removed / draws
    for expected, seen in (
        (m / s, together.diagonal()),
        (m * (m - 1) / (s * (s - 1)), together[~torch.eye(s, dtype=torch.bool)]),
    ):
        sigma = (expected * (1 - expected) / draws) ** 0.5
        assert (seen - expected).abs().max() < 4.5 * sigma


@both
@pytest.mark.parametrize("over", ["draws", "images"])
def test_every_subset_is_equally_likely(over, subset):
    many = torch.arange(6000)
    images, draws = (torch.tensor([0]), many) if over == "draws" else (many, torch.tensor([0]))
    order = torch.tensor([[4, 1, 0, 6, 3, 2, 5]]).expand(len(images), -1)
    removed = subsets(order, images, draws, torch.tensor([6]), torch.tensor([3]), subset=subset).view(len(many), 7)
    kinds, seen = removed.unique(dim=0, return_counts=True)
    assert len(kinds) == 20  # 6 over 3
    assert scipy.stats.chisquare(seen.numpy()).pvalue > 1e-4


@both
def test_subsets_do_not_depend_on_the_batch_its_order_or_the_other_sizes(subset):
    removed = subsets(subset=subset)
    some = torch.tensor([4, 0, 1])
    assert torch.equal(subsets(ORDER[some], IMAGES[some], [7, 3], subset=subset), removed[some][:, [7, 3]])
    for k in range(len(COUNTS)):
        assert torch.equal(subsets(counts=COUNTS[[k]], removals=REMOVALS[[k]], subset=subset), removed[:, :, [k]])


@both
def test_explainers_with_the_same_top_features_lose_the_same_subset(subset):
    other = ORDER.clone()
    other[:, :12] = other[:, :12].flip(-1)
    same = COUNTS >= 12
    assert torch.equal(subsets(other, subset=subset)[:, :, same], subsets(subset=subset)[:, :, same])


@both
def test_another_seed_or_image_or_draw_removes_others(subset):
    order = ORDER[:1].expand(6, -1)
    removed = subsets(order, subset=subset)[:, :, 4]  # 6 of the same 12 features
    assert len(removed.reshape(-1, FEATURES).unique(dim=0)) > 200  # of 240 subsets out of 924
    assert not torch.equal(removed, subsets(order, seed=1, subset=subset)[:, :, 4])


@pytest.mark.gpu
@both
def test_a_gpu_gives_the_same_masks(subset):
    on_gpu = subsets(ORDER.cuda(), IMAGES.cuda(), subset=subset)
    assert torch.equal(on_gpu.cpu(), subsets(subset=subset))
    assert torch.equal(masks.remove_top(ORDER.cuda(), COUNTS).cpu(), masks.remove_top(ORDER, COUNTS))


# Groups


@given(st.integers(1, 60), st.data())
def test_groups_are_consecutive_ranks_and_their_sizes_differ_by_at_most_one(features, data):
    groups = data.draw(st.integers(1, features))
    relevance = torch.randn(2, features, generator=torch.Generator().manual_seed(features))
    member = masks.group(masks.order(relevance), groups)
    for image in range(2):
        expected = literal.saco_groups(relevance[image].tolist(), groups)
        assert [sorted((member[image] == i).nonzero().flatten().tolist()) for i in range(groups)] == [
            sorted(group) for group in expected
        ]
    sizes = member[0].bincount(minlength=groups)
    assert sizes.max() - sizes.min() <= 1
    assert (sizes.max() == sizes.min()) == (features % groups == 0)
    middle = groups // 2 if groups % 2 == 0 and features % 2 else -1  # where an odd one falls to one side
    for i in range(groups // 2):
        assert sizes[i] == sizes[-1 - i] or i == middle - 1


def test_removing_each_group_keeps_all_others():
    member = torch.tensor([[0, 2, 1, 2], [-1, 0, 1, 2]])
    keep = masks.remove_each(member, 3)
    assert keep.shape == (2, 3, 4)
    assert (~keep[0]).int().tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]]
    assert (~keep[1]).int().tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def test_absent_features_are_in_no_group():
    present = torch.tensor([[True, False, True, True, False, True]])
    order = masks.order(torch.tensor([[1.0, 9.0, 3.0, 2.0, 8.0, 4.0]]), present)
    assert masks.group(order, 2, present).tolist() == [[1, -1, 0, 1, -1, 0]]
