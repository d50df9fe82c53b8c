# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,mystnb,-papermill
#     notebook_metadata_filter: kernelspec,jupytext
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How few forwards decide?
#
# F-Fidelity asks the network many times about an image: at each of many sizes about many random subsets. But whoever compares
# two explainers wants to know a mean over *images*, and over the sizes the subsets' noise averages out. So another image says more
# than a further subset of the same one, and the forwards are better spent there. This page measures how much better, and lets {py:func}`faithlab.decide.decide` stop as soon as the answer is clear.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, study or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's ResNet-9, such as {"epochs": 5}: see faithlab.study.networks
tuning = {}  # the same of its fine-tuning on random masks
explainers = {"GradCAM": "gradcam", "Saliency": "saliency"}  # the two that are compared
close = {"GradCAM": "gradcam", "LayerCAM": "layercam"}  # two that are alike
images = 120  # test images that are asked about once
split_images = 20  # of them, for the split of the variance
split_draws = 4  # random subsets there
published_images = 6  # of them, for the published protocol
published_draws = 50
controls = 3  # images whose whole picture is asked about, for each that is explained, as a control variate
other_images = 20  # of them, for the other metrics
rise_masks = [400, 100]  # for each of the maps of RISE: usual and thrifty
alpha = 0.5
beta = 0.1
precision = "bfloat16"  # of forwards, where the device computes it natively
seed = 0

# %% tags=["hide-input"]
import inspect
import itertools
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import draws as counter
from faithlab import masks, stats
from faithlab.claims import above, below, within
from faithlab.decide import UNDECIDED, decide
from faithlab.metrics import METRICS, deletion, evaluate
from faithlab.readouts import hit
from faithlab.scores import Scores
from faithlab.stats import sequential
from faithlab.study import figures, networks, tables
from faithlab.study.results import Run
from faithlab.trials import allocation, cost, subjects

figures.theme()
run = Run("cost/forwards", globals())

# %% [markdown]
# ## The question, and what is asked
#
# The estimand is the same throughout: the area under FFid+ over the sizes, as a mean over test images, for each of two
# explainers, and the difference of the two. Seven ways of asking are compared:
#
# - **published**: as many subsets for each size of each image as the paper draws;
# - **one subset for all sizes** of an image: one random order of the pixels serves them all;
# - **one subset a size**, each drawn apart ({py:func}`faithlab.masks.remove_apart_from_top`): sizes that share a subset err together, these do not;
# - **opposite subsets**: one a size, where neighbouring sizes share a random order and take its two ends, so that they err in opposite
#   directions ({py:func}`faithlab.trials.allocation.remove_in_opposite_pairs`);
# - **one size an image**: each image is asked about at one size only, drawn at random;
# - **one size an image, in turn**: likewise, but stratified: each size gets its share of the images
#   ({py:func}`faithlab.trials.allocation.sizes_in_turn`);
# - **with whole images**: one subset a size, and of several more images one forward each, undegraded and without an explanation. Whether
#   they are recognised is a control variate: it says how unlike other images those are that were asked about
#   ({py:func}`faithlab.trials.allocation.controlled`).
#
# All are unbiased: each subset has the law that the paper writes down. Explainers are always asked about the same images with the
# same random orders.

# %% tags=["hide-input"]
recipes = networks.pair(networks.RESNET9, seed, beta=beta, training=training, tuning=tuning)
own = {"tuned": recipes["fine-tuned"], "name": "ResNet-9", "precision": precision}
subject = subjects.subject(recipes["original"], images, **own)
start = time.perf_counter()
maps = subjects.attributions(subject, explainers)
explaining = (time.perf_counter() - start) / images / len(explainers)  # seconds an explanation
one, other = explainers
together = METRICS["FFid+"].given(alpha=alpha, cap=beta, seed=seed, draws=1)
apart = together.given(subset=masks.remove_apart_from_top)
OPPOSITE, opposite = "opposite subsets", together.given(subset=allocation.remove_in_opposite_pairs)
sizes = torch.tensor(apart.sizes, dtype=torch.float64)


def asked(metric, count, name, **labels):
    """The scores of the first so many images."""
    part = torch.arange(count)
    return evaluate({name: metric}, subject.part(part), {e: a[:count] for e, a in maps.items()}, **labels)


start = time.perf_counter()
once = asked(apart, images, "one subset a size")
asking = (time.perf_counter() - start) / images / len(explainers) / (len(sizes) + 1)  # seconds a forward
published = asked(apart.given(draws=published_draws), published_images, "published")
split = Scores.concat(
    asked(metric.given(seed=seed + 1 + draw), split_images, name, draw=draw)
    for name, metric in (("one subset for all sizes", together), ("one subset a size", apart), (OPPOSITE, opposite))
    for draw in range(split_draws)
)
scores = Scores.concat([once, published])
run.save(scores, "scores")
run.save(split, "split")
Markdown(
    f"As published that is {published_draws} subsets at each of {len(sizes)} sizes: the network is asked {published_draws * len(sizes)} times "
    "about an image."
)

# %% [markdown]
# ## Where the variance is
#
# The variance of the answer to a single forward, split into what differs between images, between the sizes of an image, and
# between the subsets of a size. Only the last is what more draws take away. Each component is an unbiased estimate, what is seen
# less what the draws add to it, so that where there is next to none it may come out a little below zero.

# %% tags=["hide-input"]
trapezoid = allocation.weights(sizes)  # what a size counts in the area


def answers(metric, explainer):
    """All draws of the split, [draws, images, sizes]."""
    rows = [split.where(metric=metric, explainer=explainer, draw=draw).blocks[0].values for draw in range(split_draws)]
    return torch.stack(rows).double()


KINDS = ("one subset for all sizes", "one subset a size")
difference, UNSHARED = f"{one} - {other}", ", not shared by the explainers"
found = {}
for kind in (*KINDS, OPPOSITE):
    both = answers(kind, one), answers(kind, other)
    of_kind = {(one, kind): both[0], (other, kind): both[1], (difference, kind): both[0] - both[1]}
    of_kind[difference, f"{kind}{UNSHARED}"] = both[0] - both[1].roll(1, 0)
    found |= {of: allocation.components(values, trapezoid) for of, values in of_kind.items()}
variance = pd.DataFrame(found).T.rename_axis(["of", "asked"])
run.save(variance, "variance")
tables.styled(variance.map(lambda component: f"{component:.4f}".replace("-", "−")))

# %% tags=["hide-input"]
level, told = variance.loc[one], variance.loc[difference]
Markdown(
    f"Of {one}'s area, the variance between images is **{level.loc[KINDS[1], 'images']:.3f}**. One subset for all sizes adds "
    f"{level.loc[KINDS[0], 'area, between draws']:.4f}, one subset a size {level.loc[KINDS[1], 'area, between draws']:.4f}, {published_draws} "
    f"of them 1/{published_draws} of that; opposite subsets add {level.loc[OPPOSITE, 'area, between draws']:.4f}. Of the difference between the explainers, which the images share, {told.loc[KINDS[1], 'images']:.4f} is "
    f"between images; one subset for all sizes adds {told.loc[KINDS[0], 'area, between draws']:.4f}, one subset a size "
    f"**{told.loc[KINDS[1], 'area, between draws']:.4f}**, opposite ones {told.loc[OPPOSITE, 'area, between draws']:.4f}, and {told.loc[KINDS[1] + UNSHARED, 'area, between draws']:.4f} where the explainers do not "
    "share it."
)

# %% [markdown]
# ## Interval width against forwards
#
# From the split follows the width of every way of asking: with $v_b$ between images, $v_w$ within and $N$ draws, the mean of $n$
# images has the variance $(v_b + v_w / N) / n$. The dots are intervals that were measured.

# %% mystnb={"figure": {"caption": "Half-width of the 95 % interval against forwards for each explainer. Left: the area of one explainer. Right: the difference of two. Dots: measured. Where lines coincide, a narrower one lies on a wider one.", "name": "cost-forwards-width"}, "image": {"alt": "Two line charts with logarithmic axes of half-width against forwards; the published protocol lies highest, one size an image lowest."}} tags=["hide-input", "answer"]
whole = subject.score(hit, "zero", "fine-tuned")(torch.ones(images, 1, maps[one].shape[1], dtype=torch.bool))
whole = whole[:, 0].cpu().double()
curves = {e: once.where(explainer=e).blocks[0].values.double().cpu() for e in explainers}
curves[difference] = curves[one] - curves[other]
areas = {of: curve @ trapezoid for of, curve in curves.items()}
explained = {of: float(torch.corrcoef(torch.stack([whole, area]))[0, 1] ** 2) for of, area in areas.items()}
AT_RANDOM, IN_TURN, CONTROLLED = "one size an image", "one size an image, in turn", "with whole images"


def of_an_image(of):
    """By way: the variance of an image's number, and the forwards for each explainer, images of the control included."""
    v, count = variance.loc[of], len(sizes)
    between, within = v.loc[KINDS[1], "images"], v["area, between draws"]  # between: the same whatever is asked
    each = between + within[KINDS[1]]
    return {
        "published": (between + within[KINDS[1]] / published_draws, published_draws * count),
        KINDS[0]: (between + within[KINDS[0]], count),
        KINDS[1]: (each, count),
        OPPOSITE: (between + within[OPPOSITE], count),
        AT_RANDOM: (between + v.loc[KINDS[1], ["sizes", "subsets"]].sum(), 1),
        IN_TURN: (v.loc[KINDS[1], "images, at a size"], 1),
        CONTROLLED: (each * (1 - explained[of] * (1 - 1 / controls)), count + controls / (1 + (of == difference))),
    }


def measured(of):
    """By way, where it was asked: images with an explanation, mean area and half of its interval."""
    contrasts = torch.tensor([[1.0, -1.0 * (of == difference)]])
    cells = {"cells": [{"explainer": e} for e in explainers], "contrasts": contrasts}
    asked_of = {way: stats.estimate(scores, stats.area, metric=way, **cells) for way in ("published", KINDS[1])}
    dots = {way: (e.images, float(e), float(e.high - e.low) / 2) for way, e in asked_of.items()}
    at, few = allocation.sizes_in_turn(seed, images, trapezoid), images // controls
    apart = {
        IN_TURN: allocation.in_turn(curves[of].gather(1, at[:, None])[:, 0], at, trapezoid),
        CONTROLLED: allocation.controlled(areas[of][:few], whole[:few], whole[few:]),
    }
    counts = {IN_TURN: images, CONTROLLED: few}
    return dots | {way: (counts[way], float(e.value), 1.96 * float(e.error)) for way, e in apart.items()}


WAYS = tuple(of_an_image(one))
figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.0))
counts = np.geomspace(10, 1e4, 30)
for axes, of in zip(panels, (one, difference), strict=True):
    dots = measured(of)
    for number, (way, (each, forwards)) in enumerate(of_an_image(of).items()):
        wide = 1.2 * (len(WAYS) - number)  # lines that coincide lie on each other, the narrower above
        axes.plot(counts * forwards, 1.96 * (each / counts) ** 0.5, color=f"C{number}", linewidth=wide, label=way)
        if way in dots:
            axes.plot(dots[way][0] * forwards, dots[way][2], "o", color=f"C{number}")
    axes.set(xscale="log", yscale="log", xlabel="forwards", title=of)
panels[0].set(ylabel="half-width of the interval")
panels[1].legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
figures.show(figure)

# %% tags=["hide-input"]
rows = []
for of in (one, other, difference):
    base, base_forwards = of_an_image(of)["published"]
    for way, (each, forwards) in of_an_image(of).items():
        rows.append((of, way, each / base, each * forwards / (base * base_forwards)))
needed = pd.DataFrame(rows, columns=["of", "asked", "images", "forwards"])
run.save(needed, "needed")
shown = needed.set_index(["of", "asked"]).rename_axis([None, None])
shown["images"] = shown["images"].map("{:.2f} times".format)
shown["forwards"] = (1 / shown["forwards"]).map("1/{:.0f}".format)
tables.styled(shown)

# %% tags=["hide-input"]
of_a_map = explaining / asking  # forwards
apart_of = {of: variance.loc[of].loc[KINDS[1]] for of in (one, difference)}
added = {of: variance.loc[of].loc[KINDS[1], "area, between draws"] / of_an_image(of)[KINDS[1]][0] for of in apart_of}
best = {of: (of_a_map * (v["sizes"] + v["subsets"]) / v["images"]) ** 0.5 for of, v in apart_of.items()}


def beside(way, base, maps=0.0):
    """How many forwards a way takes beside another for a level and the difference, in words; a map costs so many."""
    words = []
    for of, name in ((one, "a level"), (difference, "the difference")):
        (own, forwards), (their, base_forwards) = (of_an_image(of)[w] for w in (way, base))
        ratio = own * (forwards + maps) / (their * (base_forwards + maps))
        words.append(f"{abs(1 - ratio):.0%} {'fewer' if ratio < 1 else 'more'} for {name}")
    return " and ".join(words)


Markdown(
    "For the published interval the table gives the images, and the forwards, that each way needs, as parts of the published "
    f"ones. One size an image needs few forwards and many images, each with an explanation, which here costs as much "
    f"as {of_a_map:.0f} forwards. With that price the best number of sizes an image is about **{best[one]:.0f}** for a level and "
    f"**{best[difference]:.0f}** for the difference; all {len(sizes)} are the choice of this page, because a curve over sizes comes with them. "
    f"*Opposite subsets* take {beside(OPPOSITE, KINDS[1])} than those drawn apart; no way to draw them could save more than "
    f"{added[one]:.0%} for a level and {added[difference]:.0%} for the difference. "
    f"*In turn* takes {beside(IN_TURN, AT_RANDOM)} than at random: what can be saved there is what the mean differs by between sizes. "
    f"*With whole images*, {controls} times as many as are explained, takes {beside(CONTROLLED, KINDS[1])} than the same without, and with explanations "
    f"at their price {beside(CONTROLLED, KINDS[1], of_a_map)}: whether a whole image is recognised explains {explained[one]:.0%} of the variance of a "
    f"level, and {explained[difference]:.0%} of the difference's. With explanations at their price the best number for a level would be about "
    f"{(explained[one] / (1 - explained[one]) * (len(sizes) + of_a_map)) ** 0.5:.1f}."
)

# %% [markdown]
# **Areas, not orders at single sizes.** One draw is enough for a mean over sizes. At a single size nothing averages the subsets, and a
# rank correlation between explanations at each size (the paper's *micro* correlation) then ranks noise. Pages that judge orders
# at single sizes draw more.

# %% [markdown]
# ## Until two explainers are told apart
#
# {py:func}`faithlab.decide.decide` asks about a few images, then about a quarter more at each look, and stops at the first interval that
# excludes zero. Who does this with plain 95 % intervals errs too often: there are many looks. Its intervals are wider, so that
# all of them together cover in 95 % of the cases.

# %% mystnb={"figure": {"caption": "The interval of the difference at each look, until it excludes zero or the images end.", "name": "cost-forwards-decide"}, "image": {"alt": "Two charts of intervals that shrink with the forwards, one for explainers that differ and one for two that are alike."}} tags=["hide-input"]
least = min(32, images // 2)
decisions = [decide(apart, subject, *both.values(), names=tuple(both), first=least) for both in (explainers, close)]
figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True)
for axes, found_now in zip(panels, decisions, strict=True):
    looks = found_now.frame()
    half = (looks["high"] - looks["low"]) / 2
    axes.errorbar(looks["forwards"], looks["value"], half, fmt="o-", capsize=3)
    axes.axhline(0, color="0.5", lw=1)
    axes.set(xlabel="forwards", title=" - ".join(found_now.names))
panels[0].set(ylabel="difference of FFid+")
figures.show(figure)

# %% tags=["hide-input"]
columns = ["first", "second", "more faithful", "difference", "low", "high", "images", "forwards"]
rows = [(*d.names, d.verdict, d.value, d.low, d.high, d.images, d.forwards) for d in decisions]
run.save(pd.DataFrame(rows, columns=columns), "decisions")

# Under chance: the explainers of each image change places at random.
gap = areas[difference].numpy()
points = sequential.looks(least, images, 1.25)
chances = 2000
signs = np.random.default_rng(seed).choice([-1.0, 1.0], (chances, images)) * gap
n = np.array(points)
mean, square = (np.cumsum(x, 1)[:, n - 1] / n for x in (signs, signs**2))
distance = np.abs(mean) / np.sqrt((square - mean**2) / (n - 1))
plain = np.array([sequential.bounds([k])[0] for k in points])
false = [float((distance > bound).any(1).mean()) for bound in (sequential.bounds(points), plain)]
wrong = pd.DataFrame({"rule": ["decide", "a 95 % interval at every look"], "false verdicts": false})
run.save(wrong, "chance")
text = []
for d in decisions:
    called = f"are told apart, **{d.verdict}** is the more faithful one,"
    text.append(
        f"{' and '.join(d.names)} {'are **not told apart**' if d.verdict == UNDECIDED else called} after {d.images} images and **{d.forwards:,} forwards**: "
        + f"{d.value:.3f} [{d.low:.3f}, {d.high:.3f}]".replace("-", "−")
        + ". With the published draws as many images take "
        f"{2 * d.images * len(sizes) * published_draws:,}."
    )
text.append(
    f"Where the explainers of every image change places at random, {wrong['false verdicts'][0]:.1%} of {chances} such tables end with "
    f"a verdict; with a plain interval at every look it would be {wrong['false verdicts'][1]:.1%}."
)
Markdown(" ".join(text))

# %% [markdown]
# ## The other metrics
#
# Is it so with the others? Each is asked as its paper does, and thriftily, about the same two explainers.

# %% mystnb={"markdown_format": "myst"} tags=["hide-input"]
mu_subsets = inspect.signature(METRICS["µFidelity"].ask).parameters["draws"].default, 20
saco_asks = METRICS["SaCo"].forwards(maps[one].shape[1])
Markdown(
    f"- *RFid+*: one subset a size for {published_draws}.\n"
    f"- *µFidelity*: {mu_subsets[1]} subsets for {mu_subsets[0]}. Both explainers have the same ones, which are asked about once.\n"
    f"- *AOPC*, as any deletion curve: one of its {len(deletion.STEPS) - 1} sizes for each image, drawn at random.\n"
    f"- *RISE*, an explainer that is paid for in forwards: {rise_masks[1] / rise_masks[0]:.0%} of its masks, against the second of the two under "
    "FFid+ with one subset a size. With fewer masks it is another map.\n\n"
    "For equal intervals of the difference the number of images goes as its variance between images. Each costs two maps, and "
    f"the questions about both. SaCo is not among them: nothing in it is random, and its {saco_asks} questions are all of different groups. "
    "What can be saved there is images ({py:func}`faithlab.decide.decide`), not questions about one."
)

# %% [markdown]
# No metric of ours fills removed pixels in from their neighbours, as ROAD does {cite:p}`rong2022road`, so that it is not measured
# here ([](peers) runs that of other libraries). It asks one input a size and draws no subsets: as a curve over sizes it is nearest to AOPC
# with another reference, and what AOPC saves or loses is to be expected of it.


# %% tags=["hide-input"]
few = subject.part(torch.arange(other_images))
two = {e: a[:other_images] for e, a in maps.items()}
both_maps = len(explainers) * explaining / asking  # what two maps cost, in forwards


def with_subsets(draws):
    """RFid+ with so many subsets a size."""
    return METRICS["RFid+"].given(subset=masks.remove_apart_from_top, draws=draws, seed=seed)


def one_of_ten(curve):
    """AOPC of an image from one random size, [images, 11] -> [images]."""
    at = 1 + (10 * counter.uniform(seed, few.images, torch.tensor([0]), 1)[:, 0]).long()
    return (curve[:, 0] - curve.gather(1, at)[:, 0]) * 10 / 11


def with_rise(samples):
    """Maps of RISE from so many masks, and those that they are compared with."""
    options = {"samples": samples, "precision": few.precision, "seed": seed}
    return subjects.attributions(few, {"RISE": ("rise", options)}) | {other: two[other]}


mu = METRICS["µFidelity"].given(seed=seed)
deleted = METRICS["AOPC"].given(ask=lambda score, a, sizes: deletion.curve(score, a, sizes), sizes=deletion.STEPS)
area, itself, aopc = lambda v: v @ trapezoid, lambda v: v[:, 0], lambda v: v[:, :1].sub(v).mean(1)
PUBLISHED, THRIFTY = "as published", "thrifty"
OTHERS = {  # both ways: what is asked, an image's number, the maps, and an image's forwards
    "RFid+": [(with_subsets(n), area, two, both_maps + 2 * len(sizes) * n + 1) for n in (published_draws, 1)],
    "µFidelity": [(mu.given(draws=n), itself, two, both_maps + n) for n in mu_subsets],
    "AOPC": [(deleted, aopc, two, both_maps + 21), (deleted, one_of_ten, two, both_maps + 3)],
    "RISE": [(apart, area, with_rise(n), both_maps / 2 + n + 2 * len(sizes) + 1) for n in rise_masks],
}
others = []
for (name, ways), k in itertools.product(OTHERS.items(), range(2)):
    metric, number, attributions, _ = ways[k]
    answered = evaluate({name: metric}, few, attributions)
    first, second = (number(answered.where(explainer=e).blocks[0].values.double().cpu()) for e in attributions)
    labels = few.labels | {"explainer": " - ".join(attributions), "metric": name, "variant": (PUBLISHED, THRIFTY)[k]}
    others.append(Scores.of(first - second, images=few.images, **labels))
others = Scores.concat(others)
run.save(others, "others")


def spread(sample):
    """The variance between images."""
    weights = sample.weights / sample.weights.sum(1, keepdim=True)
    return (weights @ sample.values**2 - (weights @ sample.values) ** 2)[:, 0]


def price(name):
    """An image's forwards as published, over the thrifty ones."""
    return OTHERS[name][0][3] / OTHERS[name][1][3]


def times_fewer(name):
    """The statistic: the forwards of the published way over the thrifty one's, for equal intervals."""
    over = {"variant": PUBLISHED}, {"variant": THRIFTY}
    return stats.Statistic(lambda a, b: price(name) * spread(a) / spread(b), over, "times fewer forwards")


rows, cheaper, dearer, ratios, shifts = [], [], [], {}, {}
for name, ways in OTHERS.items():
    fewer = stats.estimate(others, times_fewer(name), metric=name)
    shift = stats.estimate(
        others, metric=name, cells=[{"variant": v} for v in (THRIFTY, PUBLISHED)], contrasts=torch.tensor([[1.0, -1.0]])
    )
    ratios[name], shifts[name] = fewer, shift
    row = {"metric": name} | {
        f"forwards, {v}": f"{way[3]:,.0f}" for way, v in zip(ways, (PUBLISHED, THRIFTY), strict=True)
    }
    row["images"] = f"{price(name) / float(fewer):.1f} times"
    row |= {"times fewer forwards": tables.number(fewer), "thrifty - published": tables.number(shift)}
    rows.append(row)
    if float(fewer.low) > 1 or float(fewer.high) < 1:
        (cheaper if float(fewer) > 1 else dearer).append(name)
tables.prose(pd.DataFrame(rows))

# %% tags=["hide-input"]
text = f"The thrifty way gives the same interval in surely fewer forwards for {', '.join(cheaper) or 'none of them'}"
text += f", and takes surely more for **{', '.join(dearer)}**" if dearer else ""
text += ". A metric with random numbers of its own at every size needs one draw, because the sizes average it. Where all draws "
text += "together make *one* number, as in µFidelity, fewer of them save little or nothing: what is saved is lost again in more images."
found, shift = ratios["RISE"], shifts["RISE"]
saves = "fewer" if found.low > 1 else "more" if found.high < 1 else "not clearly fewer or more"
moved = "another map, and judged otherwise" if shift.low > 0 or shift.high < 0 else "not seen to be judged otherwise"
text += f" *RISE* with {rise_masks[1]} masks for {rise_masks[0]} takes {saves} forwards for the same interval ({tables.number(found)} times fewer), and is "
text += f"{moved}: its difference moves by {tables.number(shift, 3)}. *µFidelity* of {mu_subsets[1]} subsets moves by {tables.number(shifts['µFidelity'], 3)}: a correlation over fewer of "
text += "them is another number. Both answer another question than with all, so that nothing is claimed of them."
Markdown(text)

# %% [markdown]
# ## Claims
#
# They are this study's own. A ratio of variances has an interval over images as any other number.

# %% tags=["hide-input"]
each_draw = tuple({"draw": draw} for draw in range(split_draws))
each_pair = tuple({"explainer": e} | draw for e in explainers for draw in each_draw)


def share_of_forwards(over, explainers):
    """The statistic: forwards for the published interval with one subset a size, as a share of the published ones."""
    images = cost.images_for_fewer_draws(over, published_draws, explainers)
    return stats.Statistic(
        lambda *draws: images.function(*draws) / published_draws, images.over, "share of the forwards"
    )


levels, pairs = share_of_forwards(each_draw, 1), share_of_forwards(each_pair, 2)
run.claim(
    "forwards-twentieth",
    "this page",
    "With F-Fidelity, one random subset a size, of as many more images as that takes, gives the interval of the published fifty with at most "
    "a twentieth of the forwards.",
    [below(split, 1 / 20, of=levels, name=e, metric=KINDS[1], explainer=e) for e in explainers]
    + [below(split, 1 / 20, of=pairs, name=difference, metric=KINDS[1])],
)

# %% tags=["hide-input"]
unbiased = Scores.concat([published, split.where(metric=KINDS[1])])
run.save(unbiased, "unbiased")
pair = {"metric": KINDS[1]}, {"metric": "published"}
same = {"of": stats.area, "margin": 0.02, "reason": "ours: the second digit of an area"}
run.claim(
    "forwards-others",
    "this page",
    "For two metrics other than F-Fidelity, RFid+ and AOPC, fewer subsets or sizes of more images give the same interval in fewer forwards, too.",
    [above(others, 1, of=times_fewer(name), name=name, metric=name) for name in ("RFid+", "AOPC")],
)

# %% tags=["hide-input"]
run.claim(
    "forwards-unbiased",
    "this page",
    "One random subset a size estimates the same area of F-Fidelity as the published fifty.",
    [within(unbiased, *pair, explainer=e, **same) for e in explainers],
)

# %% tags=["hide-input"]
run.finish()
