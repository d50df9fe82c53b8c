"""AUC, AOPC, LOdds and Comprehensiveness on scores whose curves are known on paper."""

import pytest
import torch

from faithlab import engine, outputs, segments
from faithlab.metrics import deletion
from faithstudy.networks import models


def linear(keep):
    """The kept fraction of the input's worth; feature f is worth 9 - f of 45."""
    return keep.double() @ torch.arange(9, -1, -1).double() / 45


BEST = torch.arange(9.0, -1, -1)[None]  # the true order


def test_the_curve_of_a_sum_is_what_is_left_of_it():
    worth = torch.arange(9, -1, -1).double() / 45
    expected = 1 - torch.cat([torch.zeros(1), worth.cumsum(0)])
    torch.testing.assert_close(deletion.curve(linear, BEST)[0], expected.double())


def test_area_and_loss_of_a_curve_counted_by_hand():
    # What is left in 45ths: 45 36 28 21 15 10 6 3 1 0 0, in sum 165.
    assert deletion.area(deletion.curve(linear, BEST)).item() == pytest.approx((165 - 45 / 2) / 45 / 10)
    assert deletion.loss(deletion.curve(linear, BEST)).item() == pytest.approx(1 - 165 / 45 / 11)
    # The other way round: 45 45 44 42 39 35 30 24 17 9 0, in sum 330.
    assert deletion.loss(deletion.curve(linear, -BEST)).item() == pytest.approx(1 - 330 / 45 / 11)


def test_the_steps_are_the_papers():
    assert pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]) == deletion.STEPS


def test_the_papers_four_are_choices_of_readout_and_order():
    torch.manual_seed(0)
    model = models.build("cnn3", classes=4, width=8).eval()
    x = torch.randn(5, 3, 8, 8)
    with torch.inference_mode():
        target = model(x).argmax(1)
    patches = segments.patches(8, 8, 2)
    attribution = torch.rand(5, 16, generator=torch.Generator().manual_seed(0))

    def score(output):
        return engine.scorer(model, x, target, segments=patches, output=output)

    probability = deletion.curve(score(outputs.probability), attribution)
    odds = deletion.curve(score(outputs.log_odds), attribution)
    torch.testing.assert_close(odds, (probability / (1 - probability)).log(), atol=1e-4, rtol=1e-4)
    assert (probability[:, :1] >= 1 / 4).all()  # the predicted class
    hits = deletion.curve(score(outputs.correct), attribution)
    assert hits[:, 0].tolist() == [1.0] * 5
    assert set(hits.flatten().tolist()) <= {0.0, 1.0}
    assert (deletion.area(hits) >= 0.05).all()  # at least half of the first step


def test_fractions_are_of_the_features_that_an_input_has():
    present = torch.ones(2, 10, dtype=torch.bool)
    present[1, 5:] = False
    both = BEST.expand(2, -1)
    found = deletion.curve(linear, both, [0, 0.4, 1], present=present)
    assert found[0].tolist() == pytest.approx([1, 15 / 45, 0])
    assert found[1].tolist() == pytest.approx([1, 28 / 45, 10 / 45])  # two of five, then all five
