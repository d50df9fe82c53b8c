"""The trial of wall times: what is timed, how often, and how many inputs the floor asks about."""

import time

import pytest
import torch
from torch import nn

from faithlab.trials import cost


def test_every_piece_of_work_runs_in_turn_after_a_round_that_warms_up():
    done = []
    jobs = {name: lambda name=name: done.append(name) for name in "ab"}
    found = cost.in_turn(jobs, 2)
    assert done == [*"ababab"]
    assert [(what, number) for what, number, _ in found] == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert len(cost.in_turn(jobs, 2, warm=False)) == 4
    assert done == [*"ababababab"]


def test_seconds_are_those_of_the_work():
    assert cost.seconds(lambda: time.sleep(0.02)) >= 0.02


@pytest.mark.parametrize("count", [1, 4, 9])
def test_the_floor_asks_about_so_many_inputs(count):
    class Counting(nn.Module):
        asked = 0

        def forward(self, x):
            self.asked += len(x)
            return x

    network = Counting()
    cost.forwards(network, torch.zeros(4, 3), count)
    assert network.asked == count
