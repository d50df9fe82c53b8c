"""The perturbed images of Few-class Fidelity: what they are, how one is chosen, and that pruning changes nothing."""

import functools
import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import literal
from faithlab import baselines, engine, segments
from faithlab.baselines import perturbed
from faithstudy.networks import models

GENERATOR = torch.Generator().manual_seed(0)
IMAGES = torch.rand(3, 3, 12, 14, generator=GENERATOR)


def pictures(count: int = 4, size: int = 32) -> torch.Tensor:
    """Images with something in them at every scale: soft noise at four resolutions, [count, 3, size, size]."""
    generator = torch.Generator().manual_seed(1)
    layers = [
        nn.functional.interpolate(
            torch.rand(count, 3, side, side, generator=generator), (size, size), mode="bilinear", align_corners=False
        )
        for side in (2, 5, 11, size)
    ]
    return sum(layers) / len(layers)


def classifier(classes: int = 3) -> perturbed.Answer:
    """A network that was not trained, made to be sure of its answers."""
    torch.manual_seed(3)
    model = models.build("cnn3", classes=classes, width=4).eval()
    with torch.no_grad():
        model.head[-1].weight *= 60
    answer = engine.classifier(model)
    return lambda images: answer((images - 0.5) / 0.25)


@functools.cache
def full_search(classes: int) -> perturbed.Perturbed:
    """All 804 candidates of the pictures, which two tests ask about."""
    return perturbed.search(pictures(), classifier(classes), prune=False)


# The candidates


def test_chains_are_named_by_what_they_do():
    assert len(set(perturbed.CHAINS)) == 33
    for number, of in enumerate(perturbed.CANDIDATES):
        same = [perturbed.CHAINS[n] for n, other in enumerate(perturbed.CANDIDATES) if other[:3] == of[:3]]
        assert set(same) == {perturbed.CHAINS[number]}
    assert perturbed.CHAINS[0] == "blur alone"
    assert perturbed.CHAINS.count("x² before histogram") == 22


def test_there_are_33_chains_of_12_to_80_widths_and_804_candidates():
    chains = {}
    for operation, place, adjustment, width in perturbed.CANDIDATES:
        chains.setdefault((operation, place, adjustment), []).append(width)
    assert len(chains) == 33
    assert len(perturbed.CANDIDATES) == len(set(perturbed.CANDIDATES)) == 804
    assert {len(widths) for widths in chains.values()} == {12, 22, 36, 80}
    for widths in chains.values():
        assert widths == sorted(set(widths))
        assert (widths[0], widths[-1]) == (0, len(perturbed.WIDTHS) - 1)
    assert len({(operation, place) for operation, place, _ in chains}) == 11


def test_each_candidate_is_what_its_name_says():
    made = perturbed.candidates(IMAGES.double())
    assert made.shape == (3, 804, 3, 12, 14)
    image = IMAGES[1].double()
    for number, (operation, place, adjustment, width) in enumerate(perturbed.CANDIDATES):
        expected = literal.perturbed(image.numpy(), operation, place, adjustment, perturbed.WIDTHS[width] * 12)
        found = made[1, number]
        if adjustment == "histogram":  # equal up to pixels whose altered values are equal up to rounding
            torch.testing.assert_close(found.flatten(1).sort(1).values, image.flatten(1).sort(1).values)
            assert (found - torch.from_numpy(expected)).abs().mean() < 0.02, perturbed.CANDIDATES[number]
        else:
            torch.testing.assert_close(found, torch.from_numpy(expected), atol=1e-9, rtol=1e-9)


def test_some_candidates_are_asked_for_by_number():
    some = (803, 0, 400, 401)
    assert torch.equal(perturbed.candidates(IMAGES, some), perturbed.candidates(IMAGES)[:, list(some)])


def test_candidates_that_repeat_others_make_the_same_image():
    made = perturbed.candidates(pictures(1, 16).double())[0]
    repeated = [i for i, other in enumerate(perturbed.ORIGINAL) if other != i]
    assert len(repeated) == 804 - len(perturbed.DISTINCT) == 154  # as the book's page of deviations says
    for i in repeated:
        original = perturbed.ORIGINAL[i]
        assert perturbed.ORIGINAL[original] == original
        torch.testing.assert_close(made[i], made[original], atol=1e-6, rtol=1e-6)


def test_those_that_are_called_different_are():
    # On a small image the narrowest blurs would do nothing.
    made = perturbed.candidates(pictures(1, 64).double(), perturbed.DISTINCT)[0].flatten(1)
    apart = torch.cdist(made, made)
    apart.fill_diagonal_(torch.inf)
    assert apart.min() > 0


def test_an_image_is_altered_alike_in_any_batch():
    alone, together = perturbed.candidates(IMAGES[1:2])[0], perturbed.candidates(IMAGES)[1]
    # Pixels whose altered values are equal up to rounding may change places in a histogram.
    assert ((alone - together).abs() > 1e-5).double().mean() < 0.05


# The scores


@given(st.integers(2, 60))
def test_the_threshold_is_the_papers(classes):
    assert perturbed.threshold(classes) == (0.05 if classes == 2 else 0.075 if classes == 3 else 0.1)


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=8))
def test_uncertainty_is_the_papers_and_bounded(weights):
    p = [w / sum(weights) for w in weights]
    found = perturbed.uncertainty(torch.tensor([p], dtype=torch.float64)).item()
    assert found == pytest.approx(literal.uncertainty(p), abs=1e-12)
    assert 0 <= found <= 2 * (len(p) - 1) / len(p) ** 2 + 1e-12  # reached where one class has everything


def test_the_undecided_and_the_sure():
    answers = torch.tensor([[0.25] * 4, [0, 0, 1.0, 0]])
    assert perturbed.uncertainty(answers).tolist() == [0, pytest.approx(2 * 3 / 16)]


def test_distance_is_the_papers():
    made = perturbed.candidates(IMAGES.double(), (0, 300, 700))
    found = perturbed.distance(IMAGES.double(), made)
    for b in range(3):
        for n in range(3):
            expected = literal.change(IMAGES[b].double().numpy(), made[b, n].numpy())
            assert found[b, n].item() == pytest.approx(expected, rel=1e-9)


@given(st.floats(0.1, 200))
def test_distance_does_not_depend_on_the_units_of_the_image(unit):
    x = IMAGES.double()
    moved = torch.roll(x, 1, -1)[:, None]
    torch.testing.assert_close(perturbed.distance(x * unit, moved * unit), perturbed.distance(x, moved))


# The choice


@given(
    st.lists(st.tuples(st.floats(0, 0.5), st.floats(0, 0.1)), min_size=1, max_size=9),
    st.integers(2, 6),
)
def test_the_winner_is_the_papers(candidates, classes):
    us, ss = zip(*candidates, strict=True)
    place, fallback = perturbed.winners(*torch.tensor([[us], [ss]], dtype=torch.float64), classes)
    assert place.item() == literal.best_candidate(us, ss, classes)
    assert fallback.item() == (min(us) > perturbed.threshold(classes))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_choice_is_the_papers(classes):
    x, answer = pictures(), classifier(classes)
    U, S = perturbed.scores(x, answer)
    assert U.shape == S.shape == (4, 804)
    found = full_search(classes)
    delta = perturbed.threshold(classes)
    for b in range(4):
        winner = literal.best_candidate(U[b].tolist(), S[b].tolist(), classes)
        assert found.candidate[b] == perturbed.ORIGINAL[winner]
        assert found.uncertainty[b].item() == pytest.approx(U[b, winner].item(), abs=1e-6)
        assert found.distance[b].item() == pytest.approx(S[b, winner].item(), abs=1e-6)
        assert found.score[b].item() == pytest.approx((U + 10 / delta * S)[b, winner].item(), rel=1e-5)
        torch.testing.assert_close(
            found.images[b], perturbed.candidates(x[b : b + 1], (winner,))[0, 0], atol=1e-5, rtol=0
        )
        assert bool(found.fallback[b]) == (U[b].min().item() > delta)
        assert found.forwards[b] == 804


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_pruned_search_finds_the_winner_of_the_full_one_with_fewer_forwards(classes):
    full, pruned = full_search(classes), perturbed.search(pictures(), classifier(classes))
    assert torch.equal(pruned.candidate, full.candidate)
    assert torch.equal(pruned.fallback, full.fallback)
    torch.testing.assert_close(pruned.images, full.images)
    torch.testing.assert_close(pruned.score, full.score)
    assert (pruned.forwards < 804 // 2).all()


def test_the_search_asks_about_no_image_twice_and_counts_what_it_asks():
    x, answer, asked = pictures(2), classifier(), []

    def counting(images):
        asked.append(images)
        return answer(images)

    found = perturbed.search(x, counting)
    assert len(torch.cat(asked)) == found.forwards.sum()
    assert len(torch.cat(asked).flatten(1).unique(dim=0)) == found.forwards.sum()


def test_an_image_gets_the_same_in_any_batch_and_part(monkeypatch):
    x, answer = pictures(), classifier()
    whole = perturbed.search(x, answer)
    alone = perturbed.search(x[2:3], answer)
    monkeypatch.setattr(perturbed, "BUDGET", 1)
    parts = perturbed.search(x, answer)
    assert torch.equal(parts.candidate, whole.candidate)
    assert torch.equal(parts.forwards, whole.forwards)
    assert alone.candidate[0] == whole.candidate[2]
    assert alone.forwards[0] == whole.forwards[2]


@pytest.mark.parametrize("prune", [True, False])
def test_a_network_that_never_doubts_falls_back_to_the_lowest_uncertainty(prune):
    def stubborn(images):
        first = 0.9 + 0.05 * images.flatten(1).std(1)
        return torch.stack([first, 1 - first], 1)

    found = perturbed.search(pictures(2), stubborn, prune=prune)
    assert found.fallback.all()
    U, _ = perturbed.scores(pictures(2), stubborn)
    torch.testing.assert_close(found.uncertainty, U.amin(1))


@pytest.mark.parametrize("prune", [True, False])
def test_a_network_that_always_doubts_gets_the_nearest_candidate(prune):
    found = perturbed.search(pictures(2), lambda images: images.new_full((len(images), 4), 0.25), prune=prune)
    assert not found.fallback.any()
    _, S = perturbed.scores(pictures(2), lambda images: images.new_full((len(images), 4), 0.25))
    torch.testing.assert_close(found.distance, S.amin(1))


def test_it_is_a_reference_of_the_engine():
    x, answer = pictures(), classifier()
    stand_in = perturbed.search(x, answer).images
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 2)).eval()
    score = engine.scorer(
        model,
        x,
        torch.zeros(4, dtype=torch.int64),
        segments=segments.pixels(32, 32),
        baseline=baselines.given(stand_in),
    )
    keep = torch.zeros(4, 1, 32 * 32, dtype=torch.bool)
    keep[..., : 16 * 32] = True
    mixed = torch.cat([x[:, :, :16], stand_in[:, :, 16:]], 2)
    with torch.no_grad():
        torch.testing.assert_close(score(keep)[:, 0], model(mixed).softmax(1)[:, 0], atol=1e-6, rtol=1e-5)


# Size


def test_all_candidates_of_a_small_image_are_asked_in_one_pass():
    calls = []

    def answer(images):
        calls.append(len(images))
        return images.new_full((len(images), 2), 0.5)

    perturbed.search(pictures(1), answer, prune=False)
    assert calls == [804]


MEASURE = """
import re, resource, sys, torch
from pathlib import Path
from faithlab.baselines import perturbed

def peak():
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # On Linux that has the peak of who started this process, too.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

def answer(images):
    assert len(images) == 804
    p = torch.cat([part.flatten(1).std(1) for part in images.split(64)])
    return torch.stack([p, 1 - p], 1)

perturbed.BUDGET //= 16  # for a sixteenth of the pixels, which take a sixteenth of the time
x = torch.rand(1, 3, 56, 56, generator=torch.Generator().manual_seed(0))
before = peak()
perturbed.search(x, answer, prune=False)
print(peak() - before)
"""


def test_all_candidates_of_a_photograph_are_made_at_once_within_the_memory_bound():
    assert perturbed.BUDGET >= 804 * 3 * 224 * 224
    ran = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    # The candidates, in float32, the blurred sources, and what comparing them with the image takes.
    assert int(ran.stdout) < 4 * 4 * perturbed.BUDGET // 16


# What cannot be


def answering(*probabilities: float) -> perturbed.Answer:
    return lambda images: torch.tensor(probabilities).expand(len(images), -1)


@pytest.mark.parametrize("search", [perturbed.scores, perturbed.search])
@pytest.mark.parametrize(
    ("x", "answer", "message"),
    [
        (IMAGES, answering(1.0), "the softmax of two or more classes, but got 1"),
        (IMAGES, answering(0.6, 0.6), r"sums off by 0\.2"),
        (IMAGES, answering(2.0, -1.0), "the softmax of"),
        (IMAGES, answering(math.nan, math.nan), "sums off by nan"),
        (torch.cat([IMAGES[:1], IMAGES[1:] * 0 + 0.25]), answering(0.5, 0.5), r"constant images, but \[1, 2\] of 3"),
        (IMAGES - 0.5 - IMAGES.min(), answering(0.5, 0.5), r"at least zero and finite, but the lowest is -0\.5"),
        (IMAGES / 0, answering(0.5, 0.5), "at least zero and finite"),
    ],
)
def test_what_has_no_perturbed_image_is_an_error(search, x, answer, message):
    with pytest.raises(ValueError, match=message):
        search(x, answer)


def test_a_channel_without_contrast_is_no_trouble():
    x = pictures(2)
    x[:, 1] = 0
    made = perturbed.candidates(x)
    assert made.isfinite().all()
    found = perturbed.search(x, classifier())
    assert found.images.isfinite().all()
