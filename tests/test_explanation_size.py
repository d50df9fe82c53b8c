"""The explanation size: named where there is one, refused where there is none, on curves whose truth is known."""

import functools
import math

import numpy as np
import pytest
import torch

from faithlab import masks, segments, stats
from faithlab.metrics import evaluate, size, tiers
from faithlab.metrics.size import (
    LEAST_ROWS,
    SETTINGS,
    SIZES,
    Setting,
    Size,
    explanation_size,
    law,
    read,
    readings,
    sweep,
)
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy import plots
from faithstudy.records import recorded
from faithstudy.trials.plateaus import ENDLESS, FEATURES, Plateau

F = FEATURES


@functools.cache
def study(plateau: Plateau, number: int) -> Size:
    """What is read in a study, which several tests look at."""
    return plateau.read(number)


NAMED = {
    "perfect": Plateau(),
    "a tenth of the ranking is noise": Plateau(noise=0.1, response="square"),
    "a fifth is": Plateau(noise=0.2),
    "saturated answers": Plateau(noise=0.1, response="saturated"),
    "unequal tiers": Plateau("unequal"),
    "two fifths are, more images": Plateau(noise=0.4, images=400),
    "decays, then ends": Plateau("fading", images=800),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_true_size_is_named_and_covered(case):
    """The goal is 90 % of each. A rate of 95 % leaves more than two of eight out in 0.6 % of the suites."""
    found = [study(NAMED[case], number) for number in range(8)]
    named = [size for size in found if not size.refusal]
    assert len(named) >= 6, [size.refusal for size in found]
    assert sum(size.low - 1e-9 <= 0.2 <= size.high + 1e-9 for size in named) >= len(named) - 2
    assert np.mean([size.fraction for size in named]) == pytest.approx(0.2, abs=0.012)
    assert max(size.high - size.low for size in named) < 0.12  # it says something


@pytest.mark.parametrize("kind", [*ENDLESS, "random", "ignored"])
def test_what_has_no_size_is_refused(kind):
    """The goal is 90 %, the gate as above: what a processor rounds cannot move three of eight."""
    found = [Plateau(kind).read(number) for number in range(8)]
    refused = [size for size in found if size.refusal]
    assert len(refused) >= 6, list(map(str, found))
    assert all(math.isnan(v) for size in refused for v in (size.fraction, size.low, size.high))
    why = "random ranking" if kind in ("random", "equal", "ignored") else "smooth decay"
    assert sum(why in size.refusal for size in refused) >= 5


WITHOUT = (*ENDLESS, "random", "ignored", "first sizes")
MISSED = "a second, weaker tier", "small explanation"


def test_the_recorded_studies_meet_the_goals_and_are_those_of_today():
    """Eight studies of a case tell 0.9 from 0.7; the recorded ones tell it from less.

    Of two cases fewer than 0.9 are named, as the page says: a reader that refuses decays misses some ends.
    """
    kept = recorded("f-fidelity/when-a-size-is-named", "readings").frame.set_index("case")
    for case, of in kept.groupby(level=0):
        assert len(of) >= 120
        named = of[of["size"].notna()]
        if any(word in case for word in WITHOUT):
            assert len(of) - len(named) >= 0.9 * len(of), case
        else:
            assert len(named) >= (0.8 if case in MISSED else 0.9) * len(of), case
            held = (named["low"] - 1e-9 <= named["truth"]) & (named["truth"] <= named["high"] + 1e-9)
            assert held.mean() >= 0.9, case
    for case, plateau in {"perfect ranking": Plateau(), "a second, weaker tier": Plateau("unequal")}.items():
        for number in range(2):
            found, before = study(plateau, number), kept.loc[case].iloc[number]
            assert (found.fraction, found.low, found.high) == pytest.approx(
                tuple(before[["size", "low", "high"]]), abs=0.02
            )


def test_a_size_beyond_the_sweep_is_not_named():
    """A block of 0.58 in a sweep that ends at 0.60: there is no fall to be seen."""
    long = Setting(0.5, 0.1), Setting(0.5, 0.05), Setting(0.5, 0.2)
    random, places = np.random.default_rng(0), torch.tensor(SIZES)
    p = torch.stack([law(places, setting, [0.58], [1.0]) for setting in long]).numpy()
    hits = torch.from_numpy((random.random((300, *p.shape)) < p).astype(float))
    assert read(hits, SIZES, long, F).refusal


def test_a_size_among_the_first_of_the_sweep_is_not_named():
    """All that matters lies before the first sizes: nothing shows where it begins to end."""
    found = [Plateau(size=0.04).read(number) for number in range(3)]
    assert all("may be smaller than the sweep shows, which begins at 0.03" in size.refusal for size in found)
    assert all(math.isnan(size.fraction) for size in found)
    coarse = SIZES[1::2]  # from 0.06 on, where the finer sweep names this size
    assert "which begins at 0.06" in read(Plateau(size=0.06).curves(0, coarse), coarse, SETTINGS, F).refusal
    assert not Plateau(size=0.06).read(0).refusal


@pytest.mark.parametrize("truth", [0.1, 0.4])
def test_a_small_and_a_large_size_in_the_sweep_are_named(truth):
    found = [Plateau(size=truth, images=400).read(number) for number in range(4)]
    assert sum(not size.refusal for size in found) >= 3
    assert np.nanmean([size.fraction for size in found]) == pytest.approx(truth, abs=0.02)


def test_a_p_value_is_printed_on_its_side_of_the_level():
    assert [size._printed(p) for p in (0.0547, 0.3)] == ["0.055", "0.30"]


def test_an_interval_holds_a_truth_between_two_sizes_that_are_tried():
    assert size.holds(0.35, 0.39, 0.390625)
    assert size.holds([0.35, 0.35, math.nan], [0.39, 0.38, math.nan], 0.390625).tolist() == [True, False, False]
    assert not size.holds(0.4, 0.45, 0.390625)


def test_what_cannot_be_simulated_is_an_error():
    with pytest.raises(ValueError, match="got 'cliff' and 'linear'"):
        Plateau("cliff")


def test_what_is_found_is_told():
    size = study(Plateau(), 0)
    low, high = size.block
    assert str(size) == f"{size.fraction:.2f} [{size.low:.2f}, {size.high:.2f}]"
    assert size.low <= size.fraction <= size.high
    assert low <= high
    assert size.smooth < 0.05
    assert size.flat < 0.05
    missed = {
        name: ((fit - size.curves) / size.errors.clamp(min=0.005)).pow(2).mean() for name, fit in size.fits.items()
    }
    assert missed["knee"] < 2  # in standard errors: the fit goes through the curves
    assert missed["knee"] < missed["smooth"] < missed["flat"]
    # All settings lie on one curve over what is removed: sorted by it, neighbours differ by their noise.
    order = size.gone.flatten().argsort()
    steps = size.curves.flatten()[order].diff()
    assert steps.abs().mean() < 4 * size.errors.mean()


def test_panels_show_what_is_read():
    sizes = {"an end": study(Plateau(), 0), "none": read(Plateau().curves(0)[:, :, [0] * 20], SIZES, SETTINGS, F)}
    figure = plots.plateaus(sizes | {"again": sizes["an end"]}, truth={"an end": 0.2})
    assert [a.get_title() for a in figure.axes[:2]] == [f"an end\nsize {sizes['an end']}", "none\nno size"]
    assert [a.axison for a in figure.axes] == [True, True, True, False]
    assert [[t.get_text() for t in a.texts] for a in figure.axes[:3]] == [["truth"], [], []]
    figure = plots.plateaus(sizes, collapse=True)
    assert [a.get_title() for a in figure.axes] == ["an end", "none"]
    assert [len(a.lines) for a in figure.axes] == [len(SETTINGS)] * 2


def test_the_same_seed_gives_the_same_reading_and_few_images_none():
    sample = Plateau().curves(1)
    one, same = (read(sample, SIZES, SETTINGS, F, seed=3) for _ in range(2))
    assert (one.fraction, one.low, one.high, one.smooth) == (same.fraction, same.low, same.high, same.smooth)
    few = read(sample[: LEAST_ROWS - 1], SIZES, SETTINGS, F)
    assert few.refusal == f"{LEAST_ROWS - 1} images, or draws of one, are too few: at least {LEAST_ROWS}"


@pytest.mark.parametrize("level", [0.0, -0.2])
def test_curves_that_never_leave_zero_have_no_size(level):
    size = read(torch.full((30, len(SETTINGS), len(SIZES)), level), SIZES, SETTINGS, F)
    assert size.refusal == "no removal changes what the model answers"
    assert math.isnan(size.fraction)
    assert size.fits["knee"].isnan().all()


def block(first: int, images: int, seed: int = 0):
    """A classifier of which `first` of F features matter, linearly, and where they are in each image: [images, F]."""
    generator = torch.Generator().manual_seed(seed)
    tier = torch.ones(images, F, dtype=torch.int64)
    for row in tier:
        row[torch.randperm(F, generator=generator)[:first]] = 0
    return tiers.scorer(tier, lambda kept: kept[..., 0] / first), -tier.float()


def test_a_user_gets_the_size_of_many_images_and_of_one():
    score, attribution = block(80, 60)
    many = explanation_size(score, attribution, draws=2)
    assert many.rows == 60
    assert many.fraction == pytest.approx(0.2, abs=0.02)
    score, attribution = block(80, 1)
    one = explanation_size(score, attribution, draws=150)
    assert one.rows == 150
    assert one.low - 1e-9 <= 0.2 <= one.high + 1e-9
    blind = explanation_size(score, torch.rand(1, F, generator=torch.Generator().manual_seed(0)), draws=150)
    assert blind.refusal


def test_one_input_is_shown_with_what_its_size_keeps():
    """The kept words are bold, the kept steps have squares; where nothing is named, nothing is kept."""
    score, attribution = block(80, 1)
    named = explanation_size(score, attribution, draws=150)
    kept = masks.order(attribution)[0, : int(masks.counts([named.fraction], F))]
    words = [f"w{k}" for k in range(F)]
    top = plots.explanation_size(named, words, attribution[0]).axes[0]
    assert {text.get_text() for text in top.texts if text.get_fontweight() == "bold"} == {
        words[k] for k in kept.tolist()
    }
    top = plots.explanation_size(named, torch.rand(F, 2), attribution[0]).axes[0]
    assert sorted(top.lines[-1].get_xdata().tolist()) == sorted(kept.tolist())
    blind = explanation_size(score, torch.rand(1, F, generator=torch.Generator().manual_seed(0)), draws=150)
    top = plots.explanation_size(blind, words, attribution[0]).axes[0]
    assert top.get_title() == "shaded: the explanation; no size, nothing to keep"
    assert all(text.get_fontweight() == "normal" for text in top.texts)
    top, curves = plots.explanation_size(blind, torch.rand(F, 2), attribution[0]).axes
    assert curves.get_position().height > top.get_position().height > 0.15, "nothing kept takes no room"
    with pytest.raises(ValueError, match="got the picture alone"):
        plots.explanation_size(named, torch.rand(20, 20, 3), attribution[0])


def test_a_sweep_asks_each_setting_with_subsets_of_its_own_and_its_curves_are_read_back():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    x = torch.rand(5, 1, 8, 8)
    task = Task(model, x, model(x).argmax(1), segments.pixels(8, 8), tuned=model)
    settings, sizes = [Setting(0.5, 0.1), Setting(1.0, None)], [0.25, 0.5, 1.0]
    metrics = sweep(settings, sizes, draws=20, seed=3)
    assert list(metrics) == ["FFid+, α 0.5, β 0.1", "FFid+, α 1, no cap"]
    explanations = {name: torch.rand(5, 64) for name in ("one", "other")}
    scores = evaluate(metrics, task, explanations)
    read_back = size.curves(scores, settings, explainer="other")
    assert read_back.shape == (5, 2, 3)
    assert read_back.dtype == torch.float64
    for j, metric in enumerate(metrics.values()):
        assert torch.allclose(
            read_back[:, j], metric(task, explanations["other"]).double(), atol=1e-6
        )  # saved in float32
    same = [sweep(settings, sizes, draws=20, seed=s)[settings[0].metric](task, explanations["one"]) for s in (3, 4)]
    assert not torch.equal(*same), "another seed, other subsets"


def test_a_stretch_is_the_change_that_the_law_says():
    """Rise and fall are those of the closed form, and between the knees nothing changes."""
    places = torch.arange(1, 21, dtype=torch.float64) / 20
    settings = [Setting(0.5, 0.1), Setting(0.5, 0.2), Setting(1.0, 0.4)]  # the knees of the caps: 0.2, 0.4, 0.4
    curves = {s.metric: law(places, s, [0.3], [1.0]) for s in settings}
    about = {"explainer": "truth", "dataset": "law", "network": "law", "training_seed": 0}
    scores = Scores.concat(
        Scores.of(curve.expand(5, -1), images=range(5), sizes=places.tolist(), metric=metric, **about)
        for metric, curve in curves.items()
    )

    def asked(name):
        return float(stats.estimate(scores, size.stretch(name, 0.3, settings, places)))

    at = [round(20 * share) - 1 for share in (0.05, 0.2, 0.3, 0.4, 1.0)]
    first, low, known, high, last = (torch.stack([*curves.values()])[:, i] for i in at)
    assert asked("rise") == pytest.approx(float(((low - first)[0] + (known - first)[1:].sum()) / 3))
    assert asked("rise") > 0.1
    assert asked("flat") == pytest.approx(0, abs=1e-12)
    assert asked("fall") == pytest.approx(float(((last - known)[0] + (last - high)[1:].sum()) / 3))
    assert asked("fall") < -0.05


def test_the_law_is_the_closed_form_of_a_linear_response():
    places = torch.tensor(SIZES)
    for setting in SETTINGS:
        exact = tiers.expected_fidelity(
            [100, 100, 200], lambda k: (2 * k[..., 0] + k[..., 1]) / 300, places, **setting._asdict()
        )
        found = law(places, setting, [0.25, 0.25], [2.0, 1.0])
        assert found.tolist() == pytest.approx(exact.tolist(), abs=0.01)  # it does not round what is removed
        s = places.double()
        removed = (setting.alpha * s).clamp(max=setting.cap)
        assert law(places, setting, [0.25], [3.0], noise=1.0).tolist() == pytest.approx(removed.tolist())
    assert law([0.0, 1.0], Setting(1.0, None), [0.3], [1.0]).tolist() == pytest.approx([0, 1])


def test_readings_follow_the_weights():
    """What a claim resamples: rows that count twice move the reading, rows that do not count are not there."""
    sample = torch.cat([Plateau().curves(2), Plateau("unequal").curves(3)])
    weights = torch.ones(3, len(sample), dtype=torch.float64)
    weights[1, 200:] = 0
    found = readings(sample, weights, SIZES, SETTINGS, F)
    assert found[0] == found[2]
    assert found.tolist() == pytest.approx([0.2] * 3, abs=0.03)
    nothing = torch.zeros(1, len(sample), dtype=torch.float64)
    nothing[0, :200] = 1
    sample[:200] = 0
    assert readings(sample, nothing, SIZES, SETTINGS, F).isnan().all()


def test_the_knee_of_a_table_is_that_of_its_curves():
    sample = Plateau().curves(4)
    labels = {"images": range(len(sample)), "sizes": SIZES, "dataset": "d", "network": "n", "explainer": "e"}
    table = Scores.concat(Scores.of(sample[:, j], metric=s.metric, **labels) for j, s in enumerate(SETTINGS))
    found = stats.estimate(table, size.knee(SETTINGS, SIZES, F), explainer="e")
    expected = readings(sample, torch.ones(1, len(sample)), SIZES, SETTINGS, F)
    assert float(found) == pytest.approx(float(expected), abs=1e-4)  # a table holds float32
    assert float(found.low) <= 0.2 <= float(found.high)


@pytest.mark.parametrize("seed", [0, 5])
def test_rounding_does_not_decide_what_is_read(seed):
    """Models whose pieces are nearly the same must not be told apart by the last digits of the curves."""
    settings, fractions = [Setting(0.5, 0.1), Setting(0.5, 0.2)], torch.linspace(0.05, 0.8, 8, dtype=torch.float64)
    g = torch.Generator().manual_seed(seed)
    curves = (torch.rand(40, 2, 8, generator=g, dtype=torch.float64) < 0.6).double()
    one, *others = (read(curves * (1 - apart), fractions, settings, 200) for apart in (0, 1e-13, 3e-13))
    for other in others:
        # A resample that is as good to the last digit may count in one of them.
        for p in ("smooth", "flat", "misfit"):
            assert getattr(other, p) == pytest.approx(getattr(one, p), abs=0.011)
