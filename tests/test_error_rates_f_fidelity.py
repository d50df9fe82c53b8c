"""How often the claims of F-Fidelity would be reproduced by chance, on small tables shaped like those of its pages."""

import pytest
import torch

from faithlab import stats
from faithlab.metrics.size import Setting, readings
from faithlab.scores import Scores
from faithstudy import claims
from faithstudy.trials import masking

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RUNS, GATE = 100, 11
"""An error rate of 5 % gives so many or more of 100 in 1.2 % of the suites."""

LEVELS, SIZES = (0.0, 0.5, 1.0), (0.2, 0.4, 0.6, 0.8)
FALLS = {"by": "level", "order": [None, 0.5, 1.0], "of": stats.area}


def table(cells, effect, *, images=120) -> Scores:
    """Scores over sizes of cells (labels), each image with a level of its own, cell k lower by `effect` * k."""
    g = torch.Generator().manual_seed(0)
    image = torch.randn(images, 1, generator=g)
    return Scores.concat(
        Scores.of(
            0.5 * image - effect * k + 0.5 * torch.randn(images, len(SIZES), generator=g),
            images=range(images),
            sizes=SIZES,
            **{"dataset": "d", "network": "n", "metric": "FFid+", "explainer": "e"} | labels,
        )
        for k, labels in enumerate(cells)
    )


def degraded(metrics, effect=0.3) -> Scores:
    noise = [{"level": r, "noise_seed": 0, "variant": "shuffled"} if r else {} for r in LEVELS]
    return Scores.concat(table([{"metric": m, **of} for of in noise], effect) for m in metrics)


def hits(networks, images=300) -> Scores:
    """Fewer hits for larger shares, fewer of them in each network than in the one before."""
    g = torch.Generator().manual_seed(0)
    shares = torch.tensor([0.0, 0.1, 0.5], dtype=torch.float64)
    return Scores.concat(
        Scores.of(
            torch.rand(images, 3, generator=g) < 0.9 - 0.4 * shares - 0.1 * k,
            images=range(images),
            sizes=shares,
            dataset="d",
            network=name,
            metric="accuracy",
        )
        for k, name in enumerate(networks)
    )


def sizes_read() -> list[claims.Part]:
    """Curves of two settings on images whose explanation is a fifth of the features."""
    g = torch.Generator().manual_seed(0)
    at = torch.arange(1, 13, dtype=torch.float64) * 0.05
    settings = [Setting(0.5, 0.05), Setting(0.5, 0.1)]
    loss = [torch.minimum(at * s.alpha, torch.tensor(s.cap)) * at.clamp(max=0.2) / at * 8 for s in settings]
    tables = [
        Scores.of(
            torch.rand(120, 12, generator=g) < curve,
            images=range(120),
            sizes=at,
            dataset="d",
            network="n",
            metric=str(s.cap),
        )
        for s, curve in zip(settings, loss, strict=True)
    ]

    def read(*samples):
        return readings(torch.stack([s.values for s in samples], 1), samples[0].weights, at, settings, 100)

    of = stats.Statistic(read, ({"metric": "0.05"}, {"metric": "0.1"}), steps=True)
    return [claims.within(Scores.concat(tables), {}, of=of, about=0.2, margin=0.03, reason="declared")]


def ablation():
    scores = degraded(("Fid+", "tuned", "FFid+"))
    of = stats.mean_step(LEVELS, micro=True)
    pairs = [("tuned", "Fid+"), ("FFid+", "tuned")]
    return [claims.better(scores, {"metric": a}, {"metric": b}, of=of, name=f"{a} and {b}") for a, b in pairs]


def sensitivity():
    scores = degraded(("N = 1", "N = 4"))
    return [claims.in_order(scores, metric=metric, **FALLS) for metric in ("N = 1", "N = 4")]


def explainers():
    scores = table([{"explainer": name} for name in ("GradCAM", "Saliency")], 0.3)
    return [claims.better(scores, {"explainer": "GradCAM"}, {"explainer": "Saliency"}, of=stats.area)]


def robust():
    scores = hits(["fine-tuned", "original"])
    lost = masking.lost(0.1)
    return [
        claims.above(scores, 0.1, of=lost, network="original"),
        claims.below(scores, 0.05, of=lost, network="fine-tuned"),
    ]


def beta_price():
    scores = hits(["beta 0.1", "beta 0.2", "beta 0.5"])
    order = ["beta 0.1", "beta 0.2", "beta 0.5"]
    return [claims.in_order(scores, "network", order, of=masking.at(share), name=str(share)) for share in (0.0, 0.5)]


def whole_kept():
    scores = hits(["original", "fine-tuned"])
    own = {"margin": 0.05, "reason": "declared", "of": masking.at(0.0)}
    return [claims.within(scores, {"network": "fine-tuned"}, {"network": "original"}, **own)]


@pytest.mark.parametrize(
    "parts", [ablation, sensitivity, explainers, robust, beta_price, whole_kept, sizes_read], ids=lambda p: p.__name__
)
def test_chance_is_rarely_reproduced(parts):
    rates = claims.error_rate(claims.Claim("x", "Table 1", "x", parts()), RUNS, resamples=400)
    assert rates.reproduced < GATE, str(rates)
