"""What every metric must do, whatever it measures. A new metric is one more entry in METRICS, and meets it all.

Each metric is held against its literal re-implementation (tests/literal.py) on a score that is known on paper and on a
network through the engine; it must give an image the same number in any chunk, batch, order, process and on any device,
and it must tell an oracle from a random attribution.
"""

import copy
import json
import math
import os
import subprocess
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

import literal
from faithlab import baselines, engine, masks, segments
from faithlab.metrics import deletion, few_class, trajectory
from faithlab.metrics.fidelity import fidelity
from faithlab.metrics.saco import saco
from faithstudy.networks import models

FEATURES = 16
FRACTIONS = [0.1, 0.25, 0.5, 0.75, 0.9]
SIZES = [literal.size(f, FEATURES) for f in FRACTIONS]


class Metric(NamedTuple):
    """A metric under test.

    Attributes:
        name: as in its paper.
        compute: (score, attribution [B, F], images [B]) -> a row of numbers per image, [B, K].
        literal: (ask, relevance, image) -> that row for one image, see tests/literal.py.
        negated: the same for the negated attribution, by the paper's own name for it.
        better: +1 if a better explanation has larger numbers, -1 if smaller ones.
        rough: how far bfloat16 may move a number here.
        of_a_constant: whether a constant attribution has a number; else it has NaN.
    """

    name: str
    compute: Callable[..., Tensor]
    literal: Callable[..., list[float]]
    negated: Callable[..., list[float]]
    better: int
    rough: float = 0.02
    of_a_constant: bool = True


def fidelities(name: str, alpha: float = 1.0, cap: float | None = None, draws: int = 1) -> list[Metric]:
    """The + and the - of one of the fidelities of F-Fidelity; each is the other's mirror image."""
    options = {"alpha": alpha, "cap": cap, "draws": draws, "seed": 5}

    def plus(score, attribution, images):
        return fidelity(score, attribution, torch.tensor(FRACTIONS), images=images, **options).value

    def minus(score, attribution, images):
        return fidelity(score, attribution, FRACTIONS, direction="LeRF", images=images, **options).value

    def row(sign, sizes):
        if alpha == 1 and cap is None:
            return lambda ask, relevance, image: [literal.fid(ask, relevance, s, sign) for s in sizes]
        return lambda ask, relevance, image: [
            literal.rfid(ask, relevance, s, sign, image=image, **options) for s in sizes
        ]

    mirrored = [FEATURES - s for s in SIZES]
    return [
        Metric(f"{name}+", plus, row("+", SIZES), row("-", mirrored), +1),
        Metric(f"{name}-", minus, row("-", SIZES), row("+", mirrored), -1),
    ]


def each_with_a_probability() -> list[Metric]:
    """RFid as the authors' public code draws its subsets."""
    options = {"alpha": 0.5, "draws": 4, "seed": 5}

    def plus(score, attribution, images):
        subset = masks.remove_each_from_top
        return fidelity(score, attribution, torch.tensor(FRACTIONS), images=images, subset=subset, **options).value

    def row(sign, sizes):
        return lambda ask, relevance, image: [
            literal.bernoulli_rfid(ask, relevance, s, sign, image=image, **options) for s in sizes
        ]

    # The mirror image of a size in + is the rest of the features in -, of which all but that size are removable.
    return [
        Metric(
            "RFid+, each feature with a probability", plus, row("+", SIZES), row("-", [FEATURES - s for s in SIZES]), +1
        )
    ]


def few_class_fidelity() -> Metric:
    """Eq. 1 with four classes; of the negated attribution A_MIF and A_LIF have changed places."""
    classes, steps = 4, 10

    def compute(score, attribution, images):
        return few_class.few_class_fidelity(score, attribution, classes, steps=steps)[:, None]

    def exchanged(ask, relevance, image):
        lif, mif = literal.few_class_areas(ask, relevance, steps)
        return [1 - (abs(1 - lif) + abs(1 / classes - mif)) / (1 + (classes - 1) / classes)]

    return Metric(
        "Few-class Fidelity",
        compute,
        lambda ask, relevance, image: [literal.few_class_fidelity(ask, relevance, classes, steps)],
        exchanged,
        +1,
    )


def sacos() -> list[Metric]:
    """SaCo; where all groups are equally large, that of the negated attribution is its negative."""

    def of(groups):
        return (
            lambda score, attribution, images: saco(score, attribution, groups)[:, None],
            lambda ask, relevance, image: [literal.saco(ask, relevance, groups)],
        )

    def negative(ask, relevance, image):
        return [-literal.saco(ask, relevance, 4)]

    def of_negated(ask, relevance, image):
        return [literal.saco(ask, [-r for r in relevance], 5)]

    # It takes the sign of small differences: where rounding turns one, the whole pair changes sides.
    options = {"better": +1, "rough": 0.4, "of_a_constant": False}
    return [Metric("SaCo", *of(4), negative, **options), Metric("SaCo, unequal groups", *of(5), of_negated, **options)]


def cumulative() -> list[Metric]:
    """What SaCo is compared with. On these scores AUC and LOdds are read off a probability, too."""

    def entry(name, compute, literally, better):
        return Metric(
            name,
            lambda score, attribution, images: compute(score, attribution)[:, None],
            lambda ask, relevance, image: [literally(ask, relevance)],
            lambda ask, relevance, image: [literally(ask, [-r for r in relevance])],
            better,
        )

    return [
        entry("AUC", lambda score, a: deletion.area(deletion.curve(score, a)), literal.deletion_area, -1),
        entry("AOPC", lambda score, a: deletion.loss(deletion.curve(score, a)), literal.aopc, +1),
        entry("LOdds", lambda score, a: -deletion.loss(deletion.curve(score, a)), literal.mean_change, -1),
        entry(
            "Comp",
            lambda score, a: deletion.loss(deletion.curve(score, a, direction="LeRF")),
            literal.comprehensiveness,
            -1,
        ),
    ]


def deletions() -> list[Metric]:
    """MoRF, LeRF and their difference, of TRACE; the negated attribution turns one into the other."""

    def row(of_ask):
        return lambda ask, relevance, image: [of_ask(ask, literal.trajectory(relevance))]

    def compute(metric):
        return lambda score, attribution, images: metric(score, attribution)[:, None]

    def difference(ask, tau):
        return literal.lerf(ask, tau) - literal.morf(ask, tau)

    return [
        Metric("MoRF", compute(trajectory.morf), row(literal.morf), row(literal.lerf), -1),
        Metric("LeRF", compute(trajectory.lerf), row(literal.lerf), row(literal.morf), +1),
        Metric(
            "LeRF-MoRF",
            compute(trajectory.lerf_minus_morf),
            row(difference),
            row(lambda ask, tau: -difference(ask, tau)),
            +1,
        ),
    ]


METRICS = [
    *sacos(),
    *cumulative(),
    *fidelities("Fid"),
    *each_with_a_probability(),
    *fidelities("RFid", alpha=0.5, draws=4),
    *fidelities("FFid", alpha=0.5, cap=0.2, draws=4),
    few_class_fidelity(),
    *deletions(),
]

every_metric = pytest.mark.parametrize("metric", METRICS, ids=[metric.name for metric in METRICS])

# The images, and two kinds of score on them

COUNT = 6
IDENTITIES = torch.tensor([11, 3, 0, 400, 7, 8])
ATTRIBUTION = torch.randn(COUNT, FEATURES, generator=torch.Generator().manual_seed(1))
WEIGHTS = torch.randn(COUNT, FEATURES, generator=torch.Generator().manual_seed(2))
PATCHES = segments.patches(8, 8, 2)
TARGET = torch.tensor([0, 3, 1, 1, 2, 0])


def analytic(weights: Tensor = WEIGHTS):
    """A score that is known on paper: the logistic function of the weights of the kept features."""
    return lambda keep: torch.einsum("bmf,bf->bm", keep.double(), weights.double()).sigmoid()


def ask_analytic(image: int):
    own = WEIGHTS[image].tolist()
    return lambda kept: 1 / (1 + math.exp(-sum(own[f] for f in kept)))


@cache
def network(channels: int) -> tuple[torch.nn.Module, Tensor]:
    """A convolutional network with BatchNorm statistics of its own, and its inputs."""
    torch.manual_seed(0)
    model = models.build("cnn3", classes=4, channels=channels, width=4)
    x = torch.randn(COUNT, channels, 8, 8)
    with torch.no_grad():
        for _ in range(3):
            model(x * 2 + 0.5)
    return model.eval(), x


@cache  # all metrics ask the same ones
def scorer(channels: int = 3, some: tuple[int, ...] = tuple(range(COUNT)), **options):
    model, x = network(channels)
    some = torch.tensor(some)
    return engine.scorer(model, x[some], TARGET[some], segments=PATCHES, **options)


@cache
def through_engine(metric: Metric) -> Tensor:
    return metric.compute(scorer(), ATTRIBUTION, IDENTITIES)


def remembered(answer: Callable[[Tensor], float]):
    """What a literal metric asks, from an answer to the features that are shown, bool [F]: many ask the same."""
    known = cache(lambda kept: answer(torch.tensor([f in kept for f in range(FEATURES)])))
    return lambda kept: known(frozenset(kept))


@cache
def ask_network(channels: int, image: int):
    model, x = network(channels)

    @torch.no_grad()
    def answer(shown):
        return model(x[image : image + 1] * shown[PATCHES]).softmax(-1)[0, TARGET[image]].item()

    return remembered(answer)


def literally(row, ask_of, attribution: Tensor = ATTRIBUTION) -> Tensor:
    """A literal metric's rows, image by image."""
    return torch.tensor(
        [row(ask_of(b), attribution[b].tolist(), int(IDENTITIES[b])) for b in range(COUNT)], dtype=torch.float64
    )


@every_metric
def test_is_the_papers_definition_on_a_score_known_on_paper(metric):
    torch.testing.assert_close(
        metric.compute(analytic(), ATTRIBUTION, IDENTITIES),
        literally(metric.literal, ask_analytic),
        atol=1e-12,
        rtol=0,
    )


@every_metric
@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "RGB"])
def test_is_the_papers_definition_on_a_network(metric, channels):
    torch.testing.assert_close(
        metric.compute(scorer(channels), ATTRIBUTION, IDENTITIES),
        literally(metric.literal, lambda image: ask_network(channels, image)),
        atol=1e-5,
        rtol=0,
    )


def bag_of_words(x: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(x, 30).float().mean(1) @ torch.linspace(-3, 3, 120).sin().view(30, 4) * 9


def recurrent() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = torch.nn.ModuleDict({"rnn": torch.nn.GRU(2, 8, batch_first=True), "head": torch.nn.Linear(8, 4)})
    layers.forward = lambda x: layers["head"](layers["rnn"](x)[0].mean(1))
    return layers


class Words(torch.nn.Module):
    def forward(self, x):
        return bag_of_words(x)


MASK = 1
KINDS = {
    "time steps": (recurrent, (FEATURES, 2), segments.time_steps(FEATURES), 0),
    "single values": (recurrent, (FEATURES // 2, 2), segments.values(FEATURES // 2, 2), 0),
    "tokens": (Words, (FEATURES,), segments.tokens(FEATURES), MASK),
}


@cache
def on(kind: str):
    """A score on inputs of a kind, and what a literal metric asks of each."""
    build, shape, features, absent = KINDS[kind]
    model = build().eval()
    generator = torch.Generator().manual_seed(4)
    texts = kind == "tokens"
    draw = torch.randint(3, 30, (COUNT, *shape), generator=generator)
    x = draw if texts else torch.randn(COUNT, *shape, generator=generator)
    reference = partial(baselines.token, identity=MASK) if texts else baselines.zero

    @cache
    def ask_of(image):
        @torch.no_grad()
        def answer(shown):
            masked = torch.where(shown[features], x[image], torch.tensor(absent, dtype=x.dtype))
            return model(masked[None]).softmax(-1)[0, TARGET[image]].item()

        return remembered(answer)

    return engine.scorer(model, x, TARGET, segments=features, baseline=reference), ask_of


@every_metric
@pytest.mark.parametrize("kind", KINDS)
def test_is_the_papers_definition_on_time_series_and_texts(metric, kind):
    score, ask_of = on(kind)
    torch.testing.assert_close(
        metric.compute(score, ATTRIBUTION, IDENTITIES), literally(metric.literal, ask_of), atol=1e-5, rtol=0
    )


@every_metric
def test_of_the_negated_attribution_is_its_mirror_image(metric):
    torch.testing.assert_close(
        metric.compute(analytic(), -ATTRIBUTION, IDENTITIES),
        literally(metric.negated, ask_analytic),
        atol=1e-12,
        rtol=0,
    )


@every_metric
@pytest.mark.parametrize("elements", [1, 1000, 3000])
def test_does_not_depend_on_the_chunks(metric, elements, monkeypatch):
    whole = metric.compute(analytic(), ATTRIBUTION, IDENTITIES)
    monkeypatch.setattr(masks, "BUDGET", elements)
    torch.testing.assert_close(metric.compute(analytic(), ATTRIBUTION, IDENTITIES), whole, atol=1e-12, rtol=0)


@every_metric
@pytest.mark.parametrize("batch_size", [1, 3, 7])
def test_does_not_depend_on_the_batch_size(metric, batch_size):
    found = metric.compute(scorer(batch_size=batch_size), ATTRIBUTION, IDENTITIES)
    torch.testing.assert_close(found, through_engine(metric), atol=1e-6, rtol=0)


@every_metric
@pytest.mark.parametrize("order", [(4,), (0, 1, 2), (5, 2, 0, 4, 3, 1)], ids=["one", "three", "permuted"])
def test_gives_an_image_the_same_number_in_any_batch_and_order(metric, order):
    some = torch.tensor(order)
    together = metric.compute(analytic(), ATTRIBUTION, IDENTITIES)
    apart = metric.compute(analytic(WEIGHTS[some]), ATTRIBUTION[some], IDENTITIES[some])
    torch.testing.assert_close(apart, together[some], atol=1e-12, rtol=0)
    found = metric.compute(scorer(some=order), ATTRIBUTION[some], IDENTITIES[some])
    torch.testing.assert_close(found, through_engine(metric)[some], atol=1e-6, rtol=0)


def computed(metric: Metric) -> Tensor:
    return metric.compute(analytic(), ATTRIBUTION, IDENTITIES)


@pytest.fixture(scope="module")
def elsewhere(python) -> list[Tensor]:
    """What each metric gives in a process of its own, with nothing of this one but the code."""
    asks = "import json; from test_conformance import METRICS, computed; "
    asks += "print(json.dumps([computed(metric).tolist() for metric in METRICS]))"
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    ran = subprocess.run([python, "-c", asks], capture_output=True, text=True, check=True, env=environment)
    return [torch.tensor(rows, dtype=torch.float64) for rows in json.loads(ran.stdout)]


@every_metric
def test_gives_the_same_numbers_in_another_process(metric, elsewhere):
    torch.testing.assert_close(elsewhere[METRICS.index(metric)], computed(metric), atol=1e-12, rtol=0)


@every_metric
def test_is_close_in_bfloat16(metric):
    rough = metric.compute(scorer(precision=torch.bfloat16), ATTRIBUTION, IDENTITIES)
    torch.testing.assert_close(rough, through_engine(metric), atol=metric.rough, rtol=0)


@every_metric
def test_tells_an_oracle_from_a_random_and_from_a_reversed_attribution(metric):
    weights = torch.rand(COUNT, FEATURES, generator=torch.Generator().manual_seed(3)) ** 3
    oracle, chance, worst = (
        metric.compute(analytic(weights), attribution, IDENTITIES).mean().item()
        for attribution in (weights, ATTRIBUTION, -weights)
    )
    assert metric.better * oracle > metric.better * chance > metric.better * worst


@every_metric
def test_of_a_constant_attribution_is_a_number_or_nan_whatever_the_constant(metric):
    values = [
        metric.compute(analytic(), torch.full((COUNT, FEATURES), constant), IDENTITIES) for constant in (0.0, 1.0, -3.5)
    ]
    assert (values[0].isfinite() if metric.of_a_constant else values[0].isnan()).all()
    torch.testing.assert_close(values[1], values[0], atol=0, rtol=0, equal_nan=True)
    torch.testing.assert_close(values[2], values[0], atol=0, rtol=0, equal_nan=True)


@every_metric
def test_of_an_attribution_with_nan_is_an_error(metric):
    attribution = ATTRIBUTION.clone()
    attribution[2, 5] = torch.nan
    with pytest.raises(ValueError, match=r"images \[2\] holds NaN or infinity"):
        metric.compute(analytic(), attribution, IDENTITIES)


@every_metric
def test_leaves_the_attribution_alone(metric):
    attribution = ATTRIBUTION.clone()
    metric.compute(analytic(), attribution, IDENTITIES)
    assert torch.equal(attribution, ATTRIBUTION)


@pytest.mark.gpu
@every_metric
@pytest.mark.parametrize(("precision", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.02)])
def test_does_not_depend_on_the_device(metric, precision, tolerance):
    model, x = network(3)
    model = copy.deepcopy(model).cuda()
    score = engine.scorer(model, x.cuda(), TARGET.cuda(), segments=PATCHES, precision=precision)
    on_gpu = metric.compute(score, ATTRIBUTION.cuda(), IDENTITIES)
    torch.testing.assert_close(on_gpu.cpu(), through_engine(metric), atol=tolerance, rtol=0)
