"""Deletion along trajectories: ties, ends, insertion, and the share of what can be attained."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import literal
from faithlab import engine, masks, segments
from faithlab.metrics import trajectory
from faithstudy.networks import models


def additive(weights: torch.Tensor):
    """A score whose features add up: MoRF and LeRF are sums on paper."""
    return lambda keep: (keep * weights[:, None]).sum(-1)


def anything(images: int, features: int, seed: int = 0):
    """A score of which nothing is known: a random number for each subset."""
    table = torch.rand(images, 1 << features, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def score(keep):
        return table.gather(1, (keep.long() << torch.arange(features)).sum(-1))

    return score


@given(st.lists(st.lists(st.integers(-2, 2), min_size=5, max_size=5), min_size=1, max_size=4))
def test_of_equal_scores_the_smaller_index_is_the_less_relevant(relevance):
    order = trajectory.trajectory(torch.tensor(relevance).float())
    assert order.tolist() == [literal.trajectory(row)[::-1] for row in relevance]


def test_the_papers_example():
    # [0.1, 0.5, 0.3, 0.2] is the trajectory [1, 4, 3, 2], bottom-top and counted from one.
    order = trajectory.trajectory(torch.tensor([[0.1, 0.5, 0.3, 0.2]]))
    assert (order.flip(1) + 1).tolist() == [[1, 4, 3, 2]]


def test_of_additive_features_the_areas_are_known_on_paper():
    weights = torch.tensor([[3.0, 1.0, 2.0]])
    # Without the top k: 6, 3, 1, 0. Without the bottom k: 6, 5, 3, 0.
    both = trajectory.curves(additive(weights), trajectory.trajectory(weights))
    assert both.morf.tolist() == [[6, 3, 1, 0]]
    assert both.lerf.tolist() == [[6, 5, 3, 0]]
    assert trajectory.lerf_minus_morf(additive(weights), weights).item() == 4
    assert trajectory.morf(additive(weights), weights).item() == 10
    assert trajectory.lerf(additive(weights), weights).item() == 14


def test_a_constant_attribution_is_the_trajectory_of_the_indices():
    order = trajectory.trajectory(torch.zeros(2, 4))
    assert order.tolist() == [[3, 2, 1, 0]] * 2
    score = anything(2, 4)
    both = trajectory.curves(score, order)
    # One order read from both ends, not two orders.
    assert torch.equal(both.morf, trajectory.curves(score, order.flip(1)).lerf)


@given(st.integers(0, 10**6))
def test_insertion_is_deletion_read_from_its_end(seed):
    score = anything(3, 6, seed)
    order = torch.stack([torch.randperm(6, generator=torch.Generator().manual_seed(seed + b)) for b in range(3)])
    both = trajectory.curves(score, order)
    assert torch.equal(trajectory.insertion(score, order).flip(1), both.lerf)
    assert torch.equal(trajectory.insertion(score, order.flip(1)).flip(1), both.morf)


def test_insertion_is_deletion_on_a_network_too():
    torch.manual_seed(0)
    x, target, patches = torch.randn(3, 3, 8, 8), torch.tensor([0, 2, 1]), segments.patches(8, 8, 2)
    score = engine.scorer(models.build("cnn3", classes=4, width=4), x, target, segments=patches)
    order = trajectory.trajectory(torch.randn(3, 16))
    torch.testing.assert_close(
        trajectory.insertion(score, order).flip(1), trajectory.curves(score, order).lerf, atol=1e-6, rtol=0
    )


def test_a_random_order_has_no_difference_on_average():
    score = anything(1, 5)
    orders = torch.tensor(list(itertools.permutations(range(5))))
    values = torch.stack(
        [(both.lerf - both.morf).sum() for o in orders for both in [trajectory.curves(score, o[None])]]
    )
    assert values.mean().item() == pytest.approx(0, abs=1e-12)
    assert values.std() > 0.1


def test_curves_do_not_depend_on_the_chunks(monkeypatch):
    score, order = anything(3, 6), trajectory.trajectory(torch.randn(3, 6))
    whole = trajectory.curves(score, order)
    monkeypatch.setattr(masks, "BUDGET", 1)
    assert torch.equal(trajectory.curves(score, order).morf, whole.morf)
    assert torch.equal(trajectory.curves(score, order).lerf, whole.lerf)


def test_the_attainable_share_is_missing_where_there_is_nothing_to_attain():
    share = trajectory.attainable_share(torch.tensor([1.0, -1.0, 0.0, 2.0]), torch.tensor([2.0, 2.0, 0.0, -1.0]))
    assert share[:2].tolist() == [0.5, -0.5]
    assert share[2:].isnan().all()


def test_of_a_constant_model_the_difference_is_zero_and_the_share_is_missing():
    def constant(keep):
        return torch.full(keep.shape[:2], 0.3)

    value = trajectory.lerf_minus_morf(constant, torch.randn(2, 9))
    assert (value == 0).all()
    assert trajectory.attainable_share(value, value).isnan().all()
