"""The counter gives the same, uniform, independent numbers whatever is asked together."""

import itertools

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

import literal
from faithlab import masks, rng
from faithlab.explainers import explain
from faithlab.explainers.degrade import degrade

IMAGES = torch.tensor([0, 1, 7, 49_999])
DRAWS = torch.arange(5)


def test_splitmix64_reproduces_its_published_sequence():
    # The first outputs of the reference implementation (splitmix64.c) for the state 1234567.
    state, step = 1234567, 0x9E3779B97F4A7C15
    sequence = [literal.mix(state + (i + 1) * step) for i in range(5)]
    assert sequence == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("seed", [0, 1, -3, 2**62])
def test_bits_are_the_words_of_python_integers(seed):
    ours = rng.bits(seed, IMAGES, DRAWS, 6)
    for (b, image), (n, draw) in itertools.product(enumerate(IMAGES.tolist()), enumerate(DRAWS.tolist())):
        unsigned = [word % (1 << 64) for word in ours[b, n].tolist()]
        assert unsigned == literal.words(seed, image, draw, 6)


def test_bits_are_pinned():
    # literal.words(42, 49_999, 7, 3), written down: a change of the scheme changes every recorded result.
    words = rng.bits(42, torch.tensor([49_999]), torch.tensor([7]), 3).flatten().tolist()
    assert [w % (1 << 64) for w in words] == [11141051954930235947, 5952245371624754115, 8245916641564685643]


@pytest.mark.parametrize("kind", [rng.bits, rng.uniform, rng.normal, rng.permutations])
def test_numbers_belong_to_image_and_draw_not_to_the_batch(kind):
    together = kind(3, IMAGES, DRAWS, 50)
    image, draw = torch.tensor([3, 1]), torch.tensor([4, 0, 2])
    apart = kind(3, IMAGES[image], DRAWS[draw], 50)
    assert torch.equal(apart, together[image][:, draw])


@pytest.mark.parametrize("kind", [rng.bits, rng.uniform, rng.normal])
def test_more_elements_only_add_numbers(kind):
    assert torch.equal(kind(3, IMAGES, DRAWS, 50)[..., :20], kind(3, IMAGES, DRAWS, 20))


def test_uniform_is_uniform_within_and_across_draws_and_images():
    u = rng.uniform(0, torch.arange(40), torch.arange(50), 100).numpy()
    for view in (u.ravel(), u[0, 0], u[:, 0, 0], u[0, :, 0]):
        assert scipy.stats.kstest(view, "uniform").pvalue > 1e-4
    assert u.min() > 0
    assert u.max() < 1


def test_uniform_stays_inside_the_interval_at_the_extreme_words(monkeypatch):
    # The largest word would round to exactly 1, whose normal quantile is infinite, if one bit too many were kept.
    for word in (0, -1):
        monkeypatch.setattr(rng, "bits", lambda *_, word=word: torch.tensor([[[word]]]))
        assert 0 < rng.uniform(0, IMAGES, DRAWS, 1).item() < 1
        assert rng.normal(0, IMAGES, DRAWS, 1).isfinite().all()


def test_normal_is_normal():
    z = rng.normal(0, torch.arange(20), torch.arange(50), 100)
    assert z.dtype == torch.float32
    assert scipy.stats.kstest(z.numpy().ravel(), "norm").pvalue > 1e-4


@pytest.mark.parametrize("along", ["images", "draws", "elements", "seeds"])
def test_neighbours_are_uncorrelated(along):
    u = torch.stack([rng.uniform(seed, torch.arange(30), torch.arange(30), 30) for seed in range(30)]).numpy()
    u = np.moveaxis(u, ["seeds", "images", "draws", "elements"].index(along), 0)
    for lag in (1, 2, 16):
        a, b = u[:-lag].ravel(), u[lag:].ravel()
        # The correlation of n independent pairs has a standard deviation of 1 / sqrt(n).
        assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / np.sqrt(len(a))


def test_each_of_the_64_bits_is_fair():
    words = rng.bits(0, torch.arange(50), torch.arange(20), 20).flatten()
    ones = torch.stack([(words >> bit) & 1 for bit in range(64)]).double().mean(1)
    assert (ones - 0.5).abs().max() < 4.5 * 0.5 / len(words) ** 0.5


def test_permutations_are_permutations_and_those_of_the_literal_order():
    p = rng.permutations(5, IMAGES, DRAWS, 33)
    assert torch.equal(p.sort(-1).values, torch.arange(33).expand_as(p))
    assert p[2, 4].tolist() == literal.random_order(5, 7, 4, 33)


def test_all_permutations_are_equally_likely():
    p = rng.permutations(0, torch.arange(240), torch.arange(50), 4)
    kinds, seen = p.view(-1, 4).unique(dim=0, return_counts=True)
    assert len(kinds) == 24
    assert scipy.stats.chisquare(seen.numpy()).pvalue > 1e-4


def test_identities_are_positions_unless_given():
    assert rng.identities(3, None, torch.device("cpu")).tolist() == [0, 1, 2]
    assert rng.identities(2, torch.tensor([9, 4], dtype=torch.int32), torch.device("cpu")).tolist() == [9, 4]


@pytest.mark.gpu
def test_a_gpu_gives_the_same_numbers():
    for kind in (rng.bits, rng.uniform, rng.permutations):
        assert torch.equal(kind(3, IMAGES.cuda(), DRAWS, 500).cpu(), kind(3, IMAGES, DRAWS, 500))
    # The quantile function is the device's own: equal to the last bits only.
    torch.testing.assert_close(rng.normal(3, IMAGES.cuda(), DRAWS, 500).cpu(), rng.normal(3, IMAGES, DRAWS, 500))


def test_streams_of_one_seed_are_independent():
    seeds = [rng.stream(purpose, seed) for purpose in ("subsets", "degrade", "") for seed in (0, 1, -1, (1 << 63) - 1)]
    assert len(set(seeds)) == len(seeds)
    assert all(-(1 << 63) <= seed < 1 << 63 for seed in seeds)
    assert rng.stream("subsets", 3) == rng.stream("subsets", 3)
    one, other = (rng.uniform(seed, IMAGES, DRAWS, 5000).numpy().ravel() for seed in (0, rng.stream("subsets", 0)))
    assert abs(np.corrcoef(one, other)[0, 1]) < 5 / np.sqrt(len(one))
    with pytest.raises(TypeError, match="as an integer"):
        rng.stream("subsets", 0.5)


@pytest.mark.parametrize("subset", [masks.remove_from_top, masks.remove_apart_from_top, masks.remove_each_from_top])
@pytest.mark.parametrize("draw", [0, 1])
def test_what_a_metric_removes_is_independent_of_what_was_shuffled(subset, draw):
    """Both with seed 0. They met the same random numbers once: draw 0 removed exactly what had been shuffled."""
    B, F, share = 200, 100, 0.4
    explanation = torch.rand(B, F, generator=torch.Generator().manual_seed(0))
    images = torch.arange(B)
    noisy = degrade(explanation, share, seed=0, images=images)
    shuffled = noisy != explanation
    everything, few = torch.tensor([F]), torch.tensor([10])
    order = masks.order(noisy)
    removed = ~subset(order, everything, few, seed=0, images=images, draws=torch.tensor([draw]))[:, 0, 0]
    found = (removed & shuffled).sum() / removed.sum()
    assert abs(found - share) < 5 * (share * (1 - share) / (10 * B)) ** 0.5


def test_what_a_metric_removes_is_independent_of_a_random_explanation():
    B, F = 200, 100
    images = torch.arange(B)
    random = explain(
        "random", nn.Linear(F, 2), torch.zeros(B, F), torch.zeros(B, dtype=torch.int64), torch.arange(F), images=images
    )
    order = masks.order(torch.zeros(B, F))
    keep = masks.remove_from_top(
        order, torch.tensor([F]), torch.tensor([50]), seed=0, images=images, draws=torch.tensor([0])
    )
    centred = random.view(B, F) - 0.5
    assert abs(centred[~keep[:, 0, 0]].mean()) < 5 * (1 / 12 / (50 * B)) ** 0.5


def test_numbers_that_steps_draw_together_are_those_that_each_draws_alone():
    images, streams = torch.tensor([3, 11]), torch.arange(3) << 32
    drawn, made = rng.by_step(5, images, streams, 4), rng.by_step(5, images, streams, 4, lambda u: (u[..., 3], -u))
    for step in (0, 1, 2, 3, 4, *range(9, 200), 64, 5, 6, 7):
        alone = rng.uniform(5, images, streams + step, 4)
        for each, expected in zip((*drawn(step), *made(step)), (alone, alone[..., 3], -alone), strict=True):
            assert torch.equal(each, expected)
