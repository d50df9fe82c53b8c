"""Rankings planted in a known explanation, and the readers that never refuse."""

import pytest
import torch

from faithlab import masks, segments
from faithlab.metrics.size import SETTINGS, SIZES, law, read
from faithlab.task import Task
from faithstudy.trials import plateaus

SIDE = 16


@pytest.fixture(scope="module")
def squares():
    """Forty images of a bright square on black, what explains each, and a network that adds their pixels up."""
    x = torch.zeros(40, 1, SIDE, SIDE)
    for at, image in enumerate(x[:, 0]):
        image[at % 8 : at % 8 + 8, at % 5 : at % 5 + 8] = 0.5 + torch.rand(8, 8, generator=torch.manual_seed(at)) / 2
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIDE**2, 2))
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor([[-0.05], [0.05]]).expand(-1, SIDE**2))
        network[1].bias.copy_(torch.tensor([1.0, -1.0]))
    task = Task(network, x, torch.ones(40, dtype=torch.int64), segments.pixels(SIDE, SIDE), tuned=network)
    return task, x.flatten(1) > 0


def test_planted_rankings_end_with_the_explanation_or_fade_out_of_it(squares):
    task, known = squares
    ranked = plateaus.planted(task, known, seed=1)
    first = {name: known.gather(1, masks.order(of)).double().mean(0) for name, of in ranked.items()}
    count = int(known[0].sum())
    inside = {name: float(of[:count].mean()) for name, of in first.items()}
    ends = ("known", "strongest first", "rather strong first")
    assert [inside[name] for name in ends] == [1, 1, 1]
    assert inside["a tenth misplaced"] == pytest.approx(0.9, abs=0.02)
    assert inside["a fifth misplaced"] == pytest.approx(0.8, abs=0.02)
    for name in ("exponential", "linear", "power", "logistic", "cosine"):
        eighths = first[name].view(8, -1).mean(1)
        assert (eighths.diff() < 0.05).all(), name
        assert 0.5 < inside[name] < 0.9, name
        assert first[name][count : count + count // 2].mean() > 0.15, "no end where the explanation would have it"
    order = masks.order(ranked["strongest first"])[:, :count]
    assert (task.x.flatten(1).gather(1, order).diff(dim=1) <= 1e-6).all()
    assert inside["random"] == pytest.approx(count / SIDE**2, abs=0.05)


def test_a_study_reads_each_ranking_thrice(squares):
    rows = plateaus.study(*squares, SETTINGS[:3], SIZES[1::2], seed=0)
    assert [row["ranking"] for row in rows if row["ends"]] == [*plateaus.planted(*squares, 0)][:5]
    known, random = rows[0], rows[-2]
    assert known["truth"] == 0.25
    assert known["low"] - 0.01 <= 0.25 <= known["high"] + 0.01
    assert random["refusal"]
    assert {row["kneedle"] > 0 for row in rows} == {True}


def test_a_knee_is_seen_in_the_gain_curve_and_a_bend_where_nine_tenths_are_lost():
    block = torch.stack([law(SIZES, setting, [0.21], [1.0]) for setting in SETTINGS])[None].expand(30, -1, -1)
    noise = 0.001 * torch.randn(block.shape, generator=torch.manual_seed(0), dtype=torch.float64)
    assert plateaus.kneedle(read(block + noise, SIZES, SETTINGS, 400)) == pytest.approx(0.21)
    even = torch.tensor(SIZES).div(0.3).clamp(max=1).numpy()
    assert plateaus.bend(even, SIZES) == pytest.approx(0.3)
