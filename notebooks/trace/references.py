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
# # What does it do to put something else in the place of pixels?
#
# *Removed pixels must be set to something: zero, a mean colour, a blur.* Whatever it is, the network has never seen such an
# image. Nothing is searched on this page. Explainers are tested with several baselines, and patches are removed at random, which
# explains nothing, with two of them.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's ResNet-9, such as {"epochs": 5}: see faithstudy.recipes
images = 1000  # recognised test images
sigma = 4.0  # of the blurred reference, in pixels
integration_steps = 32
draws = 1  # random orders per image: images decide
sides = [8, 4, 2, 1]  # of the patches that are removed at random, in pixels
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
training_seeds = [0, 1, 2]  # each is a network of its own
seed = 0  # of the random orders

# %% tags=["hide-input"]
import dataclasses
import itertools
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from IPython.display import Markdown

from faithlab import baselines, segments, stats
from faithlab.metrics import METRICS, evaluate, fidelity
from faithlab.outputs import probability
from faithlab.scores import Scores
from faithstudy import plots, summaries, tables
from faithstudy import recipes as networks
from faithstudy.claims import better, in_order
from faithstudy.run import Run
from faithstudy.trials import tasks

plots.theme()
run = Run("trace/references", globals())
REFERENCES = {**baselines.NAMED, "blur": partial(baselines.blur, sigma=sigma)}

# %% [markdown]
# The inputs are images that a small network recognises. Three baselines replace what is removed: zero, which is the
# mean colour of the training images, the image's own mean colour, and a blur of the image.


# %% tags=["hide-input"]
def network(training_seed):
    """A network's images; its features are pixels."""
    recipe = networks.changed(networks.RESNET9, {**training, "seed": training_seed})
    task = tasks.task(recipe, tasks.recognised(recipe, images), name="ResNet-9", precision=precision)
    return dataclasses.replace(task, baselines=REFERENCES)


chosen = [partial(network, s) for s in training_seeds]


def left(way, **options):
    """The probability that is left when features are removed in one direction, as a metric."""
    asked = {"compute": partial(fidelity.remaining, direction=way), "output": probability, "direction": way}
    return {f"probability left, {way}": METRICS["Fid+"].given(**asked, **options)}


# %% [markdown]
# ## What explainers say about baselines (Figure 1)
#
# First the usual way. Three explainers are tested pixel by pixel, with three baselines. Whether the baseline matters
# depends on whom one asks: that is the paper's case for asking nobody.

# %% tags=["hide-input"]
single = {"GradCAM": "gradcam", "IG": ("integrated-gradients", {"steps": integration_steps}), "Gradient": "saliency"}
shares_left = [k / 20 for k in range(21)]


def ask(task):
    """The probability that is left by three explainers, under each baseline."""
    maps, rows = tasks.attributions(task, single, batch_size=32), []
    for reference in REFERENCES:
        own = {"sizes": shares_left, "baseline": reference}
        rows.append(evaluate(left("MoRF", **own) | left("LeRF", **own), task, maps))
    return Scores.concat(rows)


by_pixel = run.table("by_pixel", ask, chosen)

# %% mystnb={"figure": {"caption": "Mean probability of the class when pixels are removed, by three explainers and with three baselines, with 95 % intervals over the images. Solid: least relevant first. Dashed: most relevant first.", "name": "tr-by-pixel"}, "image": {"alt": "Three line charts, one per explainer: share of removed pixels against the probability; a colour for each baseline, solid for LeRF and dashed for MoRF."}} tags=["hide-input"]
figure, grid = plt.subplots(1, len(single), figsize=(7.3, 3.2), sharey=True)
for axes, name in zip(grid, single, strict=True):
    for (number, reference), (way, style) in itertools.product(enumerate(REFERENCES), (("LeRF", "-"), ("MoRF", "--"))):
        curve = stats.estimate(by_pixel, explainer=name, reference=reference, metric=f"probability left, {way}")
        removed = [size if way == "MoRF" else 1 - size for size in shares_left]
        plots.band(axes, removed, curve, linestyle=style, color=f"C{number}", label=f"{reference}, {way}")
    axes.set_title(name)
figure.supxlabel("share of pixels removed", fontsize="medium")
grid[0].set_ylabel("probability of the class")
plots.key(figure, grid[0])
plots.show(figure)


# %% [markdown]
# The *spread* of an explainer is how far the areas under its curves with the zero and the blurred baseline lie apart, of
# MoRF and of LeRF. The paper prints only the curves. A curve that falls to its floor at once, as one of MoRF can, leaves no room
# for a spread.


# %% tags=["hide-input"]
def spread(way):
    """How far the mean areas of two references lie apart."""
    over = tuple({"metric": f"probability left, {way}", "reference": name} for name in ("zero", "blur"))
    return stats.Statistic(lambda zero, blur: (stats.area(zero) - stats.area(blur)).abs(), over, f"spread, {way}")


explained = {name: {"explainer": name} for name in single}
ways = {way: {"of": spread(way)} for way in ("MoRF", "LeRF")}
tables.estimates(explained, ways, by_pixel, digits=3)

# %% tags=["hide-input"]
run.claim(
    "tr-reference-spread",
    "Section 1, Figure 1",
    "By pixels, the reference matters more for explainers of single pixels (Gradient, Integrated Gradients) than for Grad-CAM.",
    [
        better(by_pixel, {"explainer": name}, {"explainer": "GradCAM"}, of=spread(way), name=f"{name}, {way}")
        for name in ("IG", "Gradient")
        for way in ("MoRF", "LeRF")
    ],
)

# %% [markdown]
# ## Random deletion: what the patch size does (Figure 4)
#
# Patches are removed at random. Nothing is explained, so what the answer loses is the price of strange images: the smaller
# the patches, the stranger an image that lacks as many pixels. The blurred baseline keeps images more natural, but deletes
# less. Where the two baselines agree, features are deleted and the image is not too strange: so the paper argues.

# %% tags=["hide-input"]
coarsest = (32 // max(sides)) ** 2
removed = [k / coarsest for k in range(coarsest + 1)]  # shares that every size of patch can have


def delete(task):
    """The probability that is left when patches of several sizes are removed at random."""
    rows = []
    for side, draw in itertools.product(sides, range(draws)):
        cells = dataclasses.replace(task, segments=segments.patches(*task.x.shape[-2:], side))
        random = tasks.attributions(cells, {"Random": ("random", {"seed": seed + draw})})
        for reference in ("zero", "blur"):
            asked = evaluate(left("MoRF", sizes=removed, baseline=reference), cells, random)
            rows.append(asked.labelled(variant="patches of side", level=side, draw=draw))
    return Scores.concat(rows)


deletion = run.table("random_deletion", delete, chosen)

# %% mystnb={"figure": {"caption": "Mean probability of the class when patches are removed at random, for several sides of the patches in pixels, under the zero baseline, the blurred one, and their difference; with 95 % intervals over the images.", "name": "tr-random-deletion"}, "image": {"alt": "Three line charts: share of removed patches against the probability with the zero baseline, with the blurred baseline, and the difference; one line for each patch side."}} tags=["hide-input", "answer"]
apart = stats.Statistic(lambda blur, zero: blur.mean() - zero.mean(), ({"reference": "blur"}, {"reference": "zero"}))
panels = {"zero": {"reference": "zero"}, "blur": {"reference": "blur"}, "blur minus zero": {"of": apart}}
figure, grid = plt.subplots(1, 3, figsize=(7.3, 3.2))
for axes, (title, own) in zip(grid, panels.items(), strict=True):
    for side, colour in zip(sides, sns.color_palette("viridis", len(sides)), strict=True):
        curve = stats.estimate(deletion, level=side, **own)
        plots.band(axes, removed, curve, color=colour, label=f"{side}")
    axes.set_title(title)
figure.supxlabel("share of patches removed", fontsize="medium")
grid[0].set_ylabel("probability of the class")
grid[2].set_ylabel("difference")
plots.key(figure, grid[0], title="side, pixels")
grid[1].sharey(grid[0])
plots.show(figure)

# %% tags=["hide-input", "headline"]
large, small = (end(deletion.labels("level")) for end in (max, min))
of_probability = stats.Statistic(stats.area, within=(0.0, 1.0))
area = {
    (by, side): stats.estimate(deletion, of_probability, reference=by, level=side)
    for by in ("zero", "blur")
    for side in (large, small)
}
finer = {
    by: stats.paired(deletion, {"level": large}, {"level": small}, stats.area, reference=by) for by in ("zero", "blur")
}
spreads = {name: stats.estimate(by_pixel, spread("LeRF"), explainer=name) for name in single}
cut = "single pixels" if small == 1 else f"patches of {small:.0f}"
Markdown(
    ("**The smaller the pieces, the more it costs.** " if all(float(of.low) > 0 for of in finer.values()) else "")
    + f"When random patches are set to zero, the mean probability of the class over all shares is {tables.number(area['zero', large])} with "
    f"patches of {large:.0f} pixels a side and {tables.number(area['zero', small])} with {cut}; when they are blurred, "
    f"{tables.number(area['blur', large])} and {tables.number(area['blur', small])}. How much the reference matters to an explainer's curve: "
    "with the least relevant pixels removed first, the areas under zero and under the blur lie "
    + summaries.listed([f"{tables.number(of)} ({name})" for name, of in spreads.items()])
    + f" apart ({area['zero', large].images:,} images)."
)

# %% [markdown]
# Small pictures and a small network may not tell what the paper's photographs tell: they are asked
# on [](networks).

# %% [markdown]
# ## What reproduced
#
# Each claim is judged on the saved scores. A part of it *holds* where the whole interval, and every network's own estimate, lie
# on the claimed side. The paper prints curves only.

# %% tags=["hide-input"]
areas = {"by": "level", "order": sides}
run.claim(
    "tr-random-deletion",
    "Section 5.2, Figure 4",
    "Random deletion in smaller patches hurts sooner.",
    [in_order(deletion, of=stats.area, reference="zero", name="less is left with every smaller patch", **areas)],
)

# %% tags=["hide-input"]
between_references = stats.Statistic(lambda blur, zero: stats.area(blur) - stats.area(zero), apart.over)
run.claim(
    "tr-blur-difference",
    "Section 5.2, Figure 4",
    "The larger the patches, the smaller the difference between the zero and the blurred reference.",
    [in_order(deletion, of=between_references, rises=True, name="more with every smaller patch", **areas)],
)

# %% [markdown]
# **Where does the order break?** The area counts all shares of removed pixels alike. Here is the same difference share by share: where
# does it grow from one side of the patches to the next smaller one, where does it fall, and where could it not grow, because
# zero would have to leave less than it does of an image that has lost everything?


# %% tags=["hide-input"]
def gain(side, larger):
    """How much more the blur leaves than zero does with one side of the patches than with a larger one."""
    pair = [{"reference": by, "level": of} for of in (side, larger) for by in ("blur", "zero")]
    return stats.Statistic(lambda b, z, c, y: b.mean() - z.mean() - c.mean() + y.mean(), tuple(pair))


def room(side, larger):
    """What zero would leave if the difference were the larger side's, above what it leaves where all is removed."""
    pair = [{"reference": "blur", "level": side}, {"level": side, "reference": "zero"}]
    pair += [{"reference": by, "level": larger} for by in ("blur", "zero")]
    return stats.Statistic(lambda b, z, c, y: b.mean() - (c.mean() - y.mean()) - z.mean()[:, -1:], tuple(pair))


inner = slice(1, -1)  # with nothing or everything removed the sides are one


def at(which):
    """The shares that are meant, in words."""
    return (
        summaries.listed([f"{k / (len(which) + 1):.0%}" for k, of in enumerate(which.tolist(), start=1) if of])
        or "none"
    )


rows, everywhere = [], True
for larger, side in itertools.pairwise(sorted(deletion.labels("level"), reverse=True)):
    change, left_over = (stats.estimate(deletion, of(side, larger)) for of in (gain, room))
    everywhere = everywhere & (change.low > 0)[inner]  # in every step so far
    known = {"grows": change.low > 0, "falls": change.high < 0, "could not grow": left_over.high < 0}
    rows.append(
        {"from side to side": f"{larger:.0f} to {side:.0f}"} | {what: at(of[inner]) for what, of in known.items()}
    )
tables.prose(pd.DataFrame(rows))

# %% [markdown]
# Shares of the image that are removed at which the difference clearly grows with the smaller patches, clearly falls, and clearly
# could not grow (95 % intervals over the images, for each share by itself).

# %% tags=["hide-input"]
Markdown(f"The difference grows with every smaller patch, as the paper says, at these shares: {at(everywhere)}.")

# %% tags=["hide-input"]
run.finish()
