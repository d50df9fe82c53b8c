"""Fid, RFid and FFid as one function: its properties, its errors, its Monte-Carlo error and its memory.

That it is the papers' definition, on any score, batch and device, is shown in tests/test_conformance.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import literal
from faithlab import masks
from faithlab.explainers.degrade import degrade
from faithlab.metrics.fidelity import fidelity, remaining

FRACTIONS = torch.tensor([0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
F = 10
seeds = st.integers(0, 2**31)
# Distinct relevances on a grid that scaling by a power of two and shifting by an integer leaves exact.
distinct = st.permutations(range(F)).map(lambda p: torch.tensor([p]) / 8)


def score_of(weights):
    """The logistic function of the weights of the kept features."""
    return lambda keep: torch.einsum("bmf,bf->bm", keep.double(), weights.double()).sigmoid()


def weights(seed, images=1):
    return torch.randn(images, F, generator=torch.Generator().manual_seed(seed))


settings = pytest.mark.parametrize(
    "options",
    [{}, {"alpha": 0.5, "draws": 3}, {"alpha": 0.5, "cap": 0.2, "draws": 3}, {"alpha": 1.0, "cap": 0.3, "draws": 3}],
    ids=["Fid", "RFid", "FFid", "FFid, alpha 1"],
)


@settings
@given(distinct, st.sampled_from([0.25, 0.5, 4.0]), st.integers(-8, 8), seeds)
def test_scaling_and_shifting_the_attribution_change_nothing(options, attribution, scale, shift, seed):
    score = score_of(weights(seed))
    one = fidelity(score, attribution, FRACTIONS, **options)
    other = fidelity(score, attribution * scale + shift, FRACTIONS, **options)
    assert torch.equal(one.value, other.value)
    assert torch.equal(one.error, other.error)


@given(distinct, st.permutations(range(F)), seeds)
def test_renaming_the_features_changes_nothing(attribution, permutation, seed):
    w = weights(seed)
    one = fidelity(score_of(w), attribution, FRACTIONS).value
    other = fidelity(score_of(w[:, permutation]), attribution[:, permutation], FRACTIONS).value
    torch.testing.assert_close(one, other, atol=1e-12, rtol=0)


@given(distinct, st.integers(1, 5), seeds)
def test_with_alpha_1_and_no_cap_nothing_is_random(attribution, draws, seed):
    score = score_of(weights(seed))
    fid = fidelity(score, attribution, FRACTIONS)
    same = fidelity(score, attribution, FRACTIONS, alpha=1.0, cap=1.0, draws=draws, seed=seed)
    assert torch.equal(fid.value, same.value)
    assert (same.error == 0).all()


@settings
@given(distinct, seeds)
def test_the_loss_of_a_hit_is_between_minus_1_and_1(options, attribution, seed):
    w = weights(seed)

    def hit(keep):
        return (torch.einsum("bmf,bf->bm", keep.float(), w) > 0).float()

    loss = fidelity(hit, attribution, FRACTIONS, **options).value
    assert loss.min() >= -1
    assert loss.max() <= 1


@settings
@given(distinct, seeds)
def test_where_nothing_is_removed_nothing_is_lost(options, attribution, seed):
    estimate = fidelity(score_of(weights(seed)), attribution, FRACTIONS, **options)
    assert estimate.value[0, 0].item() == pytest.approx(0, abs=1e-15)  # a mean of equal answers is rounded
    assert estimate.error[0, 0] == 0


@st.composite
def tied(draw):
    """Inputs of 1 to 9 features in a batch padded to 9 (odd: halves are half counts), with scores of 0, 1 or 2."""
    relevance = draw(st.lists(st.lists(st.integers(0, 2), min_size=9, max_size=9), min_size=1, max_size=3))
    present = draw(st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=len(relevance), max_size=3))
    whole = draw(st.booleans())
    present = torch.tensor(present[: len(relevance)]) | whole
    present[:, 4] = True
    fractions = draw(st.lists(st.sampled_from([0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.75, 0.9, 1]), min_size=1, max_size=4))
    return torch.tensor(relevance).float(), None if whole else present, fractions


@settings
@pytest.mark.parametrize(("direction", "sign"), [("MoRF", "+"), ("LeRF", "-")])
@given(tied(), seeds)
def test_both_directions_speak_of_the_same_top_under_ties_and_half_counts(options, direction, sign, asked, seed):
    attribution, present, fractions = asked
    here = torch.ones_like(attribution, dtype=torch.bool) if present is None else present
    w = torch.randn(attribution.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    images = torch.arange(len(attribution)) + 7

    def score(keep):
        return torch.einsum("bmf,bf->bm", (keep & here[:, None]).double(), w)

    drawn = {"images": images, "present": present, "seed": seed, **options}
    measured = fidelity(score, attribution, fractions, direction=direction, **drawn).value
    for b, relevance in enumerate(attribution.tolist()):
        own = here[b].nonzero().flatten().tolist()

        def ask(kept, b=b):
            return sum(w[b, feature].item() for feature in kept if here[b, feature])

        literally = {"alpha": 1.0, "draws": 1, **options, "seed": seed, "image": int(images[b]), "own": own}
        sizes = [literal.size(fraction, len(own)) for fraction in fractions]
        expected = [literal.rfid(ask, relevance, s, sign, **literally) for s in sizes]
        assert measured[b].tolist() == pytest.approx(expected, abs=1e-9)


@given(tied())
def test_what_one_direction_removes_the_other_keeps(asked):
    attribution, present, fractions = asked
    seen = []

    def watched(keep):
        seen.append(keep)
        return torch.zeros(keep.shape[:2])

    for direction in ("MoRF", "LeRF"):
        remaining(watched, attribution, fractions, direction=direction, present=present)
    morf, lerf = seen
    removed = ~morf
    absent = torch.zeros_like(attribution, dtype=torch.bool) if present is None else ~present
    assert torch.equal(removed, lerf & ~absent[:, None])


def test_keeping_the_top_keeps_the_first_of_equals_and_rounds_halves_up():
    # Two of three features tie for the second place: keeping the top 2 is keeping 2 and the first of the equals, 0.
    attribution = torch.tensor([[1.0, 1.0, 2.0]])
    weight = torch.tensor([[1.0, 10.0, 100.0]])
    left = remaining(lambda keep: (keep * weight[:, None]).sum(-1), attribution, [2 / 3, 0.5], direction="LeRF").value
    # Half of three features is two, halves up, in both directions.
    assert left.tolist() == [[101, 101]]


@given(seeds)
def test_fidelity_of_an_additive_score_is_the_removed_share_of_the_top(seed):
    # Every feature of the top s is removed with probability alpha, so the expected loss is alpha * their weights.
    w = weights(seed, images=30).abs()
    estimate = fidelity(lambda keep: torch.einsum("bmf,bf->bm", keep.float(), w), w, [0.4, 1.0], alpha=0.5, draws=60)
    top = w.sort(descending=True).values
    expected = torch.stack([top[:, :4].sum(1) / 2, top.sum(1) / 2], 1).double()
    mean = (estimate.value - expected).mean(0)
    assert (mean.abs() < 4.5 * estimate.mean().error).all()


def test_what_remains_and_what_is_lost_add_up_to_the_clean_score():
    w = weights(0, images=3)
    options = {"alpha": 0.5, "cap": 0.3, "draws": 4, "seed": 2}
    left = remaining(score_of(w), w, FRACTIONS, **options)
    lost = fidelity(score_of(w), w, FRACTIONS, **options)
    clean = score_of(w)(torch.ones(3, 1, F, dtype=torch.bool))
    torch.testing.assert_close(left.value + lost.value, clean.expand(3, 6), atol=1e-14, rtol=0)
    assert torch.equal(left.error, lost.error)


def test_the_error_is_the_standard_error_over_the_draws():
    w, draws = weights(0, images=3), 7
    order, counts = masks.order(w), masks.counts(FRACTIONS, F)
    keep = masks.remove_from_top(
        order,
        counts,
        masks.removals(counts, F, 0.5),
        seed=0,
        images=torch.arange(3),
        draws=torch.arange(draws),
    )
    answers = score_of(w)(keep.flatten(1, 2)).unflatten(1, (draws, len(FRACTIONS)))  # [B, N, K]
    estimate = fidelity(score_of(w), w, FRACTIONS, alpha=0.5, draws=draws)
    torch.testing.assert_close(estimate.error, answers.std(1) / draws**0.5, atol=1e-12, rtol=0)


def test_the_error_of_a_single_draw_is_unknown_where_it_is_random_and_zero_elsewhere():
    error = fidelity(score_of(weights(0)), weights(0), FRACTIONS, alpha=0.5, cap=0.2, draws=1).error
    # Sizes 0, 1, 3, 5, 9, 10 lose 0, 1, 2, 2, 2, 2: all, all, then a random choice.
    assert error.isnan().tolist() == [[False, False, True, True, True, True]]
    assert (error[:, :2] == 0).all()


def test_more_draws_only_add_draws():
    w = weights(0, images=2)
    values = [fidelity(score_of(w), w, FRACTIONS, alpha=0.5, draws=n).value for n in (1, 2)]
    second = 2 * values[1] - values[0]
    order, counts = masks.order(w), masks.counts(FRACTIONS, F)
    keep = masks.remove_from_top(
        order, counts, masks.removals(counts, F, 0.5), seed=0, images=torch.arange(2), draws=torch.tensor([1])
    )
    clean = score_of(w)(torch.ones(2, 1, F, dtype=torch.bool))
    torch.testing.assert_close(second, clean - score_of(w)(keep[:, 0]), atol=1e-12, rtol=0)


def test_where_nothing_is_random_the_score_is_asked_once_per_size_whatever_the_draws():
    asked = []

    def counting(keep):
        asked.append(keep.shape[1])
        return keep.float().mean(-1)

    fidelity(counting, weights(0), FRACTIONS, draws=50)
    assert sum(asked) == len(FRACTIONS) + 1  # and the clean input


def test_no_images_give_no_values():
    for options in ({}, {"alpha": 0.5, "draws": 2}):
        estimate = fidelity(lambda keep: keep.float().mean(-1), torch.zeros(0, F), FRACTIONS, **options)
        assert estimate.value.shape == estimate.error.shape == (0, 6)


SHARE = 8
PEAK = f"""
import re
from pathlib import Path
import torch
from faithlab import engine, masks, segments
from faithlab.metrics.fidelity import fidelity

def peak():
    print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024)

torch.set_num_threads(1)
masks.BUDGET //= {SHARE}
images = 2000 // {SHARE}
model = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(1, 2))
x = torch.rand(images, 1, 32, 32)
score = engine.scorer(model, x, torch.zeros(images, dtype=torch.int64), segments=segments.pixels(32, 32))
peak()
for draws in (5, 10):
    fidelity(score, torch.rand(images, 1024), torch.arange(1, 20) * 0.05, alpha=0.5, cap=0.1, draws=draws)
    peak()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from Linux's /proc")
def test_2000_images_of_1024_features_at_19_sizes_stay_below_4_gb_whatever_the_draws():
    # An eighth of the images with an eighth of the budget for masks. Five draws are as many as the budget ever has at
    # once; five more are 200 MB of masks more for all images, and as much of their turns, were they made at once.
    # The peak of getrusage would be that of the suite, from which this process was forked.
    # The C library gives every large block back at once: else the peak is that of its habits, 0.2 to 0.6 GB apart.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    env["MALLOC_MMAP_THRESHOLD_"] = str(1 << 20)
    run = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True, env=env)
    before, few, more = map(int, run.stdout.split())
    assert before + SHARE * (few - before) < 4e9
    assert SHARE * (more - few) < 0.2e9


# Inputs of different lengths


LENGTHS = [1, 2, 5, 9, 12]


@pytest.mark.parametrize("cap", [None, 0.25])
@pytest.mark.parametrize("sign", ["+", "-"])
def test_features_that_an_input_has_not_count_for_nothing(cap, sign):
    """A text of n tokens in a batch padded to 12 gets the numbers of a text of n tokens."""
    generator = torch.Generator().manual_seed(0)
    attribution = torch.randn(len(LENGTHS), 12, generator=generator)
    weights = torch.randn(len(LENGTHS), 12, generator=generator)
    present = torch.arange(12) < torch.tensor(LENGTHS)[:, None]
    fractions = torch.tensor([0.2, 0.5, 0.75])
    options = {"alpha": 0.5, "cap": cap, "draws": 3, "seed": 2}

    def score(keep):
        return torch.einsum("bmf,bf->bm", (keep & present[:, None]).double(), weights.double()).sigmoid()

    # The padding's own scores are the largest, then the smallest: neither matters.
    loud = attribution.masked_fill(~present, 1e9)
    direction = "MoRF" if sign == "+" else "LeRF"
    measured = fidelity(score, loud, fractions, direction=direction, present=present, **options).value
    for text, length in enumerate(LENGTHS):
        relevance = attribution[text, :length].tolist()

        def ask(kept, text=text):
            return float(torch.sigmoid(sum((weights[text, f].double() for f in kept), torch.zeros(()).double())))

        sizes = [literal.size(s, length) for s in fractions.tolist()]
        expected = [literal.rfid(ask, relevance, s, sign, image=text, **options) for s in sizes]
        assert measured[text].tolist() == pytest.approx(expected, abs=1e-9)


def test_the_degraded_scores_of_a_text_stay_in_the_text():
    attribution = torch.arange(24.0).view(2, 12)
    present = torch.arange(12) < torch.tensor([[5], [12]])
    noisy = degrade(attribution, 1.0, present=present)
    assert torch.equal(noisy[0, 5:], attribution[0, 5:])
    assert sorted(noisy[0, :5].tolist()) == attribution[0, :5].tolist()
    assert not torch.equal(noisy[0, :5], attribution[0, :5])
    alone = degrade(attribution[:1, :5], 0.6)
    assert torch.equal(degrade(attribution, 0.6, present=present)[0, :5], alone[0])
