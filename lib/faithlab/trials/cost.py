"""What does a piece of work cost: its wall time, beside that of the bare forwards that it needs?

The speed of a machine drifts. So what is compared runs in turn, and ratios are taken within a turn.
"""

import time
from collections.abc import Callable, Hashable, Mapping

import torch
from torch import Tensor, nn

Work = Callable[[], object]


def seconds(work: Work) -> float:
    """Wall time of a function call, the device's queue included."""
    for waits in (True, False):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if waits:
            start = time.perf_counter()
            work()
    return time.perf_counter() - start


def in_turn(jobs: Mapping[Hashable, Work], repeats: int, *, warm: bool = True) -> list[tuple[Hashable, int, float]]:
    """The wall time of every piece of work in every round: what, the round from 0, seconds.

    Args:
        jobs: the work, by name.
        repeats: rounds that are reported.
        warm: with one round before them that is not.
    """
    rounds = [(number, what, seconds(job)) for number in range(-warm, repeats) for what, job in jobs.items()]
    return [(what, number, taken) for number, what, taken in rounds if number >= 0]


@torch.inference_mode()
def forwards(network: nn.Module, batch: Tensor, count: int) -> None:
    """So many inputs, those of a batch again and again, and nothing else: the floor of all work that asks as many."""
    for start in range(0, count, len(batch)):
        network(batch[: count - start])
