"""How a model bears random masking, and what that warrants."""

import pytest
import torch

from faithlab.metrics.robustness import advise, robustness

SHARES = torch.tensor([0.0, 0.05, 0.1, 0.25, 0.5])


def test_the_score_sees_the_right_number_of_random_features():
    left = robustness(lambda keep: keep.double().mean(-1), (500, 40), SHARES)
    torch.testing.assert_close(left, (1 - SHARES.double()).expand(500, -1))
    # Every feature is as likely to go as any other.
    gone = robustness(lambda keep: (~keep[..., 3]).double(), (4000, 40), SHARES).mean(0)
    assert (gone - SHARES).abs().max() < 4 * (0.25 / 4000) ** 0.5


def test_an_input_meets_the_same_masks_in_any_batch():
    def at(images):
        weights = torch.rand(9, 12, generator=torch.Generator().manual_seed(0))[images]
        return robustness(lambda keep: (keep * weights[:, None]).sum(-1), (len(images), 12), SHARES, images=images)

    whole, some = at(torch.arange(9)), at(torch.tensor([7, 2]))
    assert torch.equal(whole[[7, 2]], some)


def test_padding_is_not_among_the_lost():
    present = torch.arange(12) < torch.tensor([[4], [12]])
    left = robustness(lambda keep: (keep & present[:, None]).sum(-1).double(), (2, 12), SHARES, present=present)
    assert left[0].tolist() == [4, 4, 4, 3, 2]
    assert left[1].tolist() == [12, 11, 11, 9, 6]


def hits(*accuracies, n=4000):
    """Inputs of which the given shares are right."""
    return torch.stack([torch.arange(n) < a * n for a in accuracies], 1)


@pytest.mark.parametrize(
    ("accuracies", "metric", "bearable"),
    [
        ((0.9, 0.9, 0.9, 0.9, 0.88), "Fidelity", 0.5),
        ((0.9, 0.9, 0.9, 0.88, 0.6), "R-Fidelity", 0.25),
        ((0.9, 0.89, 0.88, 0.7, 0.6), "F-Fidelity", 0.1),
        ((0.9, 0.5, 0.9, 0.9, 0.9), "F-Fidelity", 0.0),  # what lies behind a breakdown is not borne
    ],
)
def test_the_simplest_metric_that_the_network_bears(accuracies, metric, bearable):
    advice = advise(hits(*accuracies), SHARES)
    assert (advice.metric, advice.bearable) == (metric, pytest.approx(bearable))
    assert f"{bearable:.0%}" in advice.reason


def test_few_inputs_do_not_prove_robustness():
    """One of twenty lost is within five per cent, but could as well be three."""
    assert advise(hits(1.0, 0.95, 0.95, 0.95, 0.95, n=20), SHARES).metric == "F-Fidelity"
    assert advise(hits(1.0, 0.98, 0.98, 0.98, 0.98, n=5000), SHARES).metric == "Fidelity"
