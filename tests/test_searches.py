"""Searches side by side: tabu search takes the best swap that is allowed, and what they find is told by forwards."""

import itertools

import pytest
import torch

from faithlab import search
from faithlab.metrics import trajectory
from faithlab.outputs import probability
from faithstudy.trials import searches


def table(images: int, features: int) -> torch.Tensor:
    """A random number for each subset."""
    return torch.rand(images, 1 << features, generator=torch.Generator().manual_seed(0))


def starts(images: torch.Tensor, features: int) -> torch.Tensor:
    return search.random_orders(images, features, seed=9)[:, 0]


def test_tabu_search_leaves_an_order_that_no_swap_betters_and_does_not_come_back_at_once():
    lookup = search.lookup(table(1, 3))
    ways = {"candidates": 60, "tenure": 2}  # of three features all three swaps are among so many
    orders = [
        tuple(searches.tabu(lookup, starts(torch.tensor([0]), 3), steps=k, **ways).state["order"][0].tolist())
        for k in range(1, 9)
    ]
    # With two swaps forbidden, the third is taken, so that three steps in a row are three different swaps.
    assert all(one != other for one, other in itertools.pairwise(orders))
    assert all(one != other for one, other in zip(orders, orders[2:], strict=False))


def test_a_child_has_a_block_of_one_parent_and_the_rest_in_the_order_of_the_other():
    one, other = torch.tensor([[0, 1, 2, 3, 4]]), torch.tensor([[4, 3, 2, 1, 0]])
    child = searches._crossed(one, other, torch.tensor([1]), torch.tensor([2]))
    assert child.tolist() == [[4, 1, 2, 3, 0]]


@pytest.mark.parametrize("further", [search.insert, search.anneal, searches.tabu, searches.genetic])
def test_what_a_search_reaches_is_told_as_it_goes_on(further):
    answers, images = table(3, 6), torch.tensor([4, 0, 9])
    score, start = search.Remembered(search.lookup(answers)), starts(images, 6)
    path = searches.by_forwards(further, score, start, 1e9, 6, 3, seed=1, images=images)
    whole = further(search.lookup(answers), start, steps=6, seed=1, images=images)
    assert len(path) == 2
    assert torch.equal(path[1][1], whole.value)
    assert torch.equal(path[0][1], whole.history[:, 3])
    assert path[0][0] <= path[1][0] == score.forwards / 3


def test_a_search_ends_where_its_forwards_do():
    images = torch.arange(3)
    score = search.Remembered(search.lookup(table(3, 8)))
    path = searches.by_forwards(search.insert, score, starts(images, 8), 30, 500, images=images)
    assert [used < 30 for used, _ in path] == [True] * (len(path) - 1) + [False]
    assert searches.by_forwards(search.insert, score, starts(images, 8), 30, 500, images=images) == []


@pytest.mark.parametrize("first", [0, 1])
def test_a_repeated_search_is_the_same_search_with_other_random_numbers(first):
    answers, images = table(2, 6), torch.tensor([3, 7])
    score, many = searches.repeated(search.lookup(answers), images, 2, first=first)
    found = search.insert(score, starts(many, 6), steps=3, images=many).value.view(2, 2)
    for k in range(2):
        own = images + 10_000_000 * (first + k)
        alone = search.insert(search.lookup(answers), starts(own, 6), steps=3, images=own).value
        assert torch.equal(found[k], alone)
    assert first == 1 or many[:2].tolist() == [3, 7]


def test_what_is_reached_is_told_by_questions_those_for_the_start_included():
    history, order = torch.tensor([[0.0, 1.0, 2.0, 3.0], [5.0, 5.0, 6.0, 7.0]]), torch.arange(4).repeat(2, 1)
    path = search.Trajectory(order, history[:, -1], history, torch.tensor([20, 40]))  # ten a step, on average
    start = search.Trajectory(order, history[:, 0], history[:, :1], torch.tensor([5, 15]))
    assert searches.by_questions(path, [0, 9.9, 10, 25, 1000]).tolist() == [[0, 0, 1, 2, 3], [5, 5, 5, 6, 7]]
    assert searches.by_questions(path, [5, 20, 39], start).tolist() == [[0, 1, 2], [5, 5, 6]]


def compared(features=6, most=1e9):
    answers, images = table(3, features), torch.tensor([4, 0, 9])
    settings = {"output": probability, "most": most, "moves": 9, "seed": 1}
    return answers, images, searches.compare(search.lookup(answers), images, features, **settings)


def test_every_search_finds_orders_that_are_no_better_than_the_optimum_and_no_worse_than_its_start():
    answers, images, found = compared()
    assert [*found] == [*searches.PAPER, *searches.OURS]
    optimum = search.optimum(answers, "Le-Mo").value
    for name, of in found.items():
        reached = torch.stack([value for _, value in of.path])
        assert (reached <= optimum + 1e-6).all(), name
        assert (reached.diff(dim=0) >= -1e-9).all(), f"{name}: what is best so far does not get worse"
        assert of.path[-1][0] == of.forwards
    for objective, name in (("Mo", "greedy, MoRF"), ("Le", "greedy, LeRF"), ("Le-Mo", "greedy, both ends")):
        order = search.greedy(search.lookup(answers), len(images), 6, objective=objective).order
        curves = trajectory.curves(search.lookup(answers), order)
        assert len(found[name].path) == 1
        assert torch.equal(found[name].path[0][1], (curves.lerf - curves.morf).sum(1))
    assert torch.equal(found["both ends, insertion"].path[0][1], found["greedy, both ends"].path[0][1])
    assert torch.equal(found["annealing"].path[0][1], found["greedy, LeRF"].path[0][1])


def test_none_gains_from_what_another_has_asked():
    answers, images, found = compared()
    asked_before = search.Remembered(search.lookup(answers))
    settings = {"output": probability, "most": 1e9, "moves": 9, "seed": 1}
    for _ in range(2):
        again = searches.compare(asked_before, images, 6, **settings)
        assert {name: of.forwards for name, of in again.items()} == {name: of.forwards for name, of in found.items()}
    assert asked_before.forwards < sum(of.forwards for of in found.values()) * len(images)


def test_a_search_that_has_no_order_in_its_forwards_is_left_out():
    *_, found = compared(features=8, most=40)  # of 36 subsets one end needs up to 37, both ends 148
    assert "greedy, both ends" not in found
    assert "tabu search" in found
    assert all(used <= 40 for of in found.values() for used, _ in of.path)


def test_before_there_is_an_order_a_search_has_reached_chance():
    path = [(10.0, torch.tensor([1.0, -2.0])), (20.0, torch.tensor([3.0, -1.0]))]
    assert [searches.reached(path, spent).tolist() for spent in (9, 10, 19.9, 1000)] == [
        [0, 0],
        [1, -2],
        [1, -2],
        [3, -1],
    ]
