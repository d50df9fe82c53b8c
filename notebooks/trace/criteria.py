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
# # Most relevant first, least relevant first, or both?
#
# *MoRF wants the answer to fall when the first features go, LeRF wants it to stay when the last go.* They are two metrics, and an
# order that is best for one need not be good for the other. Here the best order for each is searched for, and measured by the other.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's ResNet-9, such as {"epochs": 5}: see faithstudy.recipes
images = 100  # recognised test images; the paper has 200
patch_sides = [8, 4]  # of the patches in pixels, 16 and 64 of them; 2 is dear
steps = 100  # of annealing, through the paper's temperatures; the paper takes 5000
clothes_sides = [7, 4, 2]  # of the patches of one picture of clothes: 16, 49 and 196 of them, as in Figure 3a
clothes_steps = 200  # of annealing this picture
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
training_seeds = [0]  # each is a network of its own
seed = 0  # of the searches and of random orders

# %% tags=["hide-input"]
import dataclasses
import itertools
from functools import cache, partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import search, segments, stats
from faithlab.metrics import METRICS, evaluate, fidelity
from faithlab.outputs import probability
from faithlab.scores import Scores
from faithstudy import plots, profiles, tables
from faithstudy import recipes as networks
from faithstudy.claims import above, below, better, premise
from faithstudy.data import datasets
from faithstudy.diagnostics import Reason
from faithstudy.networks import folds
from faithstudy.run import Run
from faithstudy.trials import optimum, tasks

plots.theme()
run = Run("trace/criteria", globals())

# %% [markdown]
# The inputs are images that a small network recognises; their features are square patches.

# %% tags=["hide-input"]
recipes = [networks.changed(networks.RESNET9, {**training, "seed": s}) for s in training_seeds]
test = datasets.load(recipes[0].data, "test")
chosen = [
    tasks.task(recipe, tasks.recognised(recipe, images), name="ResNet-9", precision=precision) for recipe in recipes
]


def cut(task, side):
    """A task with square patches for features."""
    return dataclasses.replace(task, segments=segments.patches(*task.x.shape[-2:], side))


def left(way, sizes):
    """The probability that is left when features are removed in one direction, as a metric."""
    asked = {"compute": partial(fidelity.remaining, direction=way), "output": probability, "direction": way}
    return {f"probability left, {way}": METRICS["Fid+"].given(sizes=sizes, **asked)}


# %% [markdown]
# ## MoRF, LeRF, and both (Figure 3)
#
# TRACE-Mo wants the answer to fall when its first patches go. TRACE-Le wants it to stay when its last patches go. Each is
# also measured by the other criterion. On the scale below 1 is the best order for that criterion, and 0 a random order. An
# order that names what matters should do well by both. *-p* in a name says that the answer is the probability of the class.

# %% tags=["hide-input"]
sought = {name: METRICS[name] for name in ("MoRF", "LeRF", "LeRF - MoRF")}
both_ways = {name: METRICS[name] for name in ("MoRF", "LeRF")}


@cache
def found(n, side):
    """The best orders of a network's images."""
    find = partial(optimum.orders, sought, cut(chosen[n], side), steps=steps, seed=seed, progress=True)
    return run.kept(f"orders of patches of {side} pixels, network {n}", find)  # a killed run finds it made


def asked(metrics, task, side, orders):
    """Metrics of orders and of a random one; metrics may depend on the number of patches."""
    patches = cut(task, side)
    count = segments.count(patches.segments)
    orders = orders | tasks.attributions(patches, {"Random": ("random", {"seed": seed})})
    metrics = metrics(count) if callable(metrics) else metrics
    return evaluate(metrics, patches, orders).labelled(variant="patches", level=count)


def following(count):
    """The probability that is left after each patch, in both directions."""
    every = [k / count for k in range(count + 1)]
    return left("MoRF", every) | left("LeRF", every)


def measure(metrics):
    """All networks and sizes of patches."""
    each = itertools.product(enumerate(chosen), patch_sides)
    return Scores.concat(asked(metrics, task, side, found(n, side)) for (n, task), side in each)


def random_ones(metrics):
    """Random orders of some images, which no search decides."""
    few = chosen[0].part(torch.arange(min(8, images)))
    return Scores.concat(asked(metrics, few, side, {}) for side in patch_sides)


scores = run.table("scores", partial(measure, both_ways), again=partial(random_ones, both_ways))
curves = run.table("curves", partial(measure, following), again=partial(random_ones, following))

# %% mystnb={"figure": {"caption": "What each search reaches under each criterion, with 95 % intervals over the images: 1 is the best order found for that criterion, 0 a random one. Columns: the number of patches.", "name": "tr-criteria"}, "image": {"alt": "Dot plots, one per number of patches: five searches, a dot for MoRF and one for LeRF each."}} tags=["hide-input", "answer"]
BEST = {"MoRF": "TRACE-Mo-p", "LeRF": "TRACE-Le-p"}
searches = ["TRACE-p", "TRACE-Le-p", "TRACE-Mo-p", "Greedy-Le", "Greedy-Mo"]
figure, grid = plt.subplots(1, len(scores.labels("level")), figsize=(7.3, 3), sharey=True, squeeze=False)
for axes, count in zip(grid[0], sorted(scores.labels("level")), strict=True):
    parts = {c: [optimum.part_of_best(c, name, top) for name in searches] for c, top in BEST.items()}
    ahead = {c: [tables.interval(stats.estimate(scores, of, level=count)) for of in own] for c, own in parts.items()}
    plots.forest(axes, searches, {criterion: pd.DataFrame(of, searches) for criterion, of in ahead.items()})
    axes.set(title=f"t = {count:.0f}", xlabel="part of the best")
    axes.axvline(0, color="0.4", linewidth=1)
plots.key(figure, grid[0, 0])
plots.show(figure)

# %% [markdown]
# These are the curves behind the points. TRACE-Le seeks the highest in the upper row, TRACE-Mo the lowest in the lower one; the
# other row shows what that costs.

# %% mystnb={"figure": {"caption": "Mean probability of the class as patches are removed, in the orders of the five searches and in a random one, with 95 % intervals over the images. Above: least relevant first (LeRF, higher is better). Below: most relevant first (MoRF, lower is better). Columns: the number of patches.", "name": "tr-criteria-curves"}, "image": {"alt": "Line charts, LeRF in the first row and MoRF in the second, a column per number of patches: share of removed patches against the probability, a line for each of five searches and for a random order."}} tags=["hide-input"]
looks = dict(zip(searches, ("-", "--", "-.", (0, (3, 1, 1, 1)), (0, (1, 1))), strict=True))
counts = sorted(curves.labels("level"))
figure, grid = plt.subplots(2, len(counts), figsize=(7.3, 5.4), sharex=True, sharey=True, squeeze=False)
for (row, way), (column, count) in itertools.product(enumerate(("LeRF", "MoRF")), enumerate(counts)):
    shares = [k / count for k in range(int(count) + 1)]
    gone = shares if way == "MoRF" else [1 - share for share in shares]
    for name in (*searches, "Random"):
        curve = stats.estimate(curves, metric=f"probability left, {way}", explainer=name, level=count)
        look = {"linestyle": looks[name]} if name in looks else {"color": "0.4", "linewidth": 1}
        plots.band(grid[row, column], gone, curve, label=name, **look)
    grid[row, column].set_title(f"{way}, t = {count:.0f}")
grid[0, 0].set_ylim(0, 1)
figure.supxlabel("share of patches removed", fontsize="medium")
figure.supylabel("probability of the class", fontsize="medium")
plots.key(figure, grid[0, 0])
plots.show(figure)

# %% mystnb={"figure": {"caption": "What greedy search for the three objectives calls relevant in the same images, with 16 and 64 patches (rank squared, brighter is more relevant).", "name": "tr-objectives"}, "image": {"alt": "Grid of small pictures: photographs in the first column, then the maps of Le-Mo, Le and Mo for coarse and for fine patches."}} tags=["hide-input"]
maps, shown = {}, chosen[0].part(torch.arange(min(2, images)))
for side in patch_sides:
    patches = cut(shown, side)
    score, count = search.Remembered(patches.score()), segments.count(patches.segments)
    for objective in ("Le-Mo", "Le", "Mo"):
        order = search.greedy(score, len(shown.x), count, objective=objective, device=shown.x.device).order
        maps[f"{objective}, {count}"] = segments.spread(search.heat_map(order).cpu(), patches.segments)
plots.maps(test.inputs[shown.images].permute(0, 2, 3, 1), maps, across=True)

# %% tags=["hide-input", "headline"]
finest = max(scores.where(metric="MoRF", explainer="TRACE-Mo-p").labels("level"))


def kept_of_best(criterion, explainer, count=finest):
    """What an order has of the best one for a criterion; no order has more."""
    part = optimum.part_of_best(criterion, explainer, BEST[criterion])
    return stats.estimate(scores, dataclasses.replace(part, within=(-float("inf"), 1.0)), level=count)


mo, le = kept_of_best("LeRF", "TRACE-Mo-p"), kept_of_best("MoRF", "TRACE-Le-p")
at_both = [kept_of_best(criterion, "TRACE-p") for criterion in BEST]
at_both_good = all(float(of.low) > 0.5 for of in at_both)
if float(mo.high) < 0.5 < float(le.low):
    lead = "**LeRF rather than MoRF" + (", or both together" if at_both_good else "") + "**"
elif all(float(of.low) > 0.5 for of in (mo, le)):
    lead = "**Either**"
elif at_both_good:
    lead = "**Both together**"
else:
    lead = f"**Open on {mo.images} image{'s' * (mo.images > 1)}**"
Markdown(
    f"{lead}: on a scale from a random order (0) to the best for a criterion (1), the best order for MoRF has {tables.number(mo)} by "
    f"LeRF and the best for LeRF {tables.number(le)} by MoRF; the best for their difference has "
    + " and ".join(f"{tables.number(of)} by {criterion}" for criterion, of in zip(BEST, at_both, strict=True))
    + f" ({finest:.0f} patches; {mo.images} images)."
)

# %% [markdown]
# **As many patches as the paper has.** Its Figure 3a cuts one photograph into 16, 49 and 196 patches. A picture of clothes of
# 28 × 28 pixels can be cut so, too. It is the first test picture that a ResNet-18 recognises. The search is the paper's, from the
# greedy order, with few proposals.

# %% tags=["hide-input"]
recipe = folds.normal(profiles.defaults("reco-mege/normal"))[0]
worn = datasets.load(recipe.data, "test", standardised=False)
shirt = tasks.task(recipe, tasks.recognised(recipe, 1), name="ResNet-18", precision=precision)
labelled = {"Le-Mo": "LeRF - MoRF", "Le": "LeRF", "Mo": "MoRF"}
cuts = {segments.count(of.segments): of for of in (cut(shirt, side) for side in clothes_sides)}


def ordered():
    """The place of each patch in the best orders of the three objectives."""
    rows = []
    for count, patches in cuts.items():
        score = search.Remembered(patches.score(probability))  # the three searches meet the same subsets
        for objective, metric in labelled.items():
            own = {"objective": objective.split("-")[0], "device": shirt.x.device}
            start = search.greedy(score, 1, count, **own).order
            how = optimum.schedule(METRICS[metric], clothes_steps)
            order = search.anneal(score, start, **how, seed=seed, images=shirt.images.to(start.device)).order
            ranks = order.argsort(1)[0].tolist()
            rows += [(objective, count, k, rank) for k, rank in enumerate(ranks)]
    return pd.DataFrame(rows, columns=["objective", "patches", "patch", "place"])


clothes = run.table("clothes", ordered, again="search")
places = {key: torch.tensor(of["place"].to_numpy(copy=True)) for key, of in clothes.groupby(["objective", "patches"])}


def alike(ranks, patches):
    """The correlation of the ranks of patches that touch, of those that are not all black."""
    side = round(len(ranks) ** 0.5)
    pixels = shirt.x.abs().sum(1).flatten(1).cpu().unflatten(1, patches.segments.shape)
    worn_there = segments.pool(pixels, patches.segments)[0].view(side, side) > 0
    ranks = ranks.double().view(side, side)
    sides = (ranks[:, 1:], ranks[:, :-1], worn_there[:, 1:] & worn_there[:, :-1])
    below = (ranks[1:], ranks[:-1], worn_there[1:] & worn_there[:-1])
    one, other = (torch.cat([of[k][of[2]] for of in (sides, below)]) for k in (0, 1))
    return float(stats.pearson(one, other))


rows = [(objective, count, alike(ranks, cuts[count])) for (objective, count), ranks in places.items()]
neighbours = pd.DataFrame(rows, columns=["objective", "patches", "correlation"])
run.save(neighbours, "neighbours")

# %% mystnb={"figure": {"caption": "The best orders that were found for one picture of clothes, by the three objectives (rows) and for more and more patches (columns); rank squared, brighter is more relevant. Below each: the correlation of the ranks of patches that touch, of those that are not all black; it is near 1 where a map is smooth and near 0 where it is noise.", "name": "tr-clothes"}, "image": {"alt": "A picture of clothes and its maps in three rows, TRACE-Le-Mo, TRACE-Le and TRACE-Mo, and columns of more and more patches; a number below each map says how alike neighbouring patches are."}} tags=["hide-input"]
counts = sorted(neighbours["patches"].unique())
said = neighbours.pivot(index="objective", columns="patches", values="correlation")
photograph = worn.inputs[shirt.images][0].float()
heat = {key: search.heat_map(of.argsort()[None]) for key, of in places.items()}
maps = {(o, n): segments.spread(of, cuts[n].segments)[0] for (o, n), of in heat.items()}
plots.pictures(
    [[photograph / photograph.max(), *(maps[o, n] for n in counts)] for o in labelled],
    above=[[worn.classes[int(shirt.target)], *(f"t = {n}" for n in counts)]],
    below=[["", *(f"{said.loc[o, n]:.2f}".replace("-", "−") for n in counts)] for o in labelled],
    beside=[f"TRACE-{o}" for o in labelled],
    size=(5.6, 4.8),
)

# %% [markdown]
# The paper sees that maps become noisier with smaller patches, those of TRACE-Mo most. The lower the number, the noisier the map; but smaller
# patches lie nearer to each other, which raises it along a row whatever the maps are. So this cannot say whether smaller patches are
# noisier: compare the maps of one column. Black patches have nothing to lose: their order is that of
# the search, not of the network. One picture is an example, no test.

# %% [markdown]
# ## What reproduced
#
# Each claim is judged on the saved scores. A part of it *holds* where the whole interval, and every network's own estimate, lie
# on the claimed side.

# %% [markdown]
# The scale of the next claims goes from a random order (0) to the best order for the criterion (1). *Bad* is here less than
# half of the way, *good* more than half, and *slightly* less than a quarter of it lost, which the claim on large patches is held to,
# too. The paper prints curves only.

# %% tags=["hide-input"]
coarse, fine = (end(scores.labels("level")) for end in (min, max))
foreign_mo = optimum.part_of_best("LeRF", "TRACE-Mo-p", "TRACE-Le-p")
foreign_le = optimum.part_of_best("MoRF", "TRACE-Le-p", "TRACE-Mo-p")
run.claim(
    "tr-criteria",
    "Section 5.2, Figure 3b",
    "TRACE-Mo is bad under LeRF, and TRACE-Le is good under MoRF: LeRF is the better criterion.",
    [
        below(scores, 0.5, of=foreign_mo, level=fine, name="TRACE-Mo under LeRF"),
        above(scores, 0.5, of=foreign_le, level=fine, name="TRACE-Le under MoRF"),
    ],
)

# %% [markdown]
# **Why is one not good by the other?** Is it the number of patches: is an order more than half as good by the other criterion
# with one of these numbers? And how much of an order does LeRF need? Once so few patches are kept that the answer is as good as
# with all, the order of the others costs LeRF nothing, and MoRF begins with the few.

# %% tags=["hide-input"]
quarter = partial(lambda k, sample: sample.mean()[:, k], round(finest / 4))
possible = []
for criterion, name in (("MoRF", "TRACE-Le-p"), ("LeRF", "TRACE-Mo-p")):
    for count in sorted(scores.where(metric=criterion).labels("level")):
        asked_of = f"{name} by {criterion}, {count:.0f} patches"
        possible.append(
            Reason("Is it good with so many patches?", asked_of, kept_of_best(criterion, name, count), above=0.5)
        )
for name in ("TRACE-Le-p", "Random"):
    left_over = stats.estimate(curves, quarter, metric="probability left, LeRF", explainer=name, level=finest)
    asked_of = f"{name}: probability with a quarter of {finest:.0f} patches"
    possible.append(Reason("Does LeRF need only a few?", asked_of, left_over, above=0.9))
run.why("tr-criteria", *possible)

# %% tags=["hide-input"]
run.claim(
    "tr-combined",
    "Section 5.2, Figure 3b",
    "TRACE-Le-Mo loses only slightly under each criterion.",
    [
        above(scores, 0.75, of=optimum.part_of_best(criterion, "TRACE-p", top), level=fine, name=criterion)
        for criterion, top in BEST.items()
    ],
)

# %% [markdown]
# **Why not by both?** Is it the number of patches?

# %% tags=["hide-input"]
possible = [
    Reason(
        "Does it lose less than a quarter with so many patches?",
        f"TRACE-Le-Mo by {criterion}, {count:.0f} patches",
        kept_of_best(criterion, "TRACE-p", count),
        above=0.75,
    )
    for criterion in BEST
    for count in sorted(scores.where(metric=criterion).labels("level"))
]
run.why("tr-combined", *possible)

# %% tags=["hide-input"]
run.claim(
    "tr-coarse-mo",
    "Section 5.2, Figure 3b",
    "With few large patches TRACE-Mo is no longer bad under LeRF.",
    [
        premise(below(scores, 0.5, of=foreign_mo, level=fine, name="with small patches it is bad")),
        better(scores, {"level": coarse}, {"level": fine}, of=foreign_mo, name="better with large patches"),
        # More than "no longer bad", which is one half: the bar of the claim above, kept from the first record on.
        above(scores, 0.75, of=foreign_mo, level=coarse, name="it loses less than a quarter"),
    ],
)

# %% [markdown]
# **Why not with large patches either?** Do the patches whose removal hurts most suffice by themselves? Then the class would still have a
# probability above one half with a quarter of the patches, those that come first in the order. TRACE-Le's are beside them.

# %% tags=["hide-input"]
coarsest = min(scores.where(metric="LeRF").labels("level"))
quarter = partial(lambda k, sample: sample.mean()[:, k], round(coarsest / 4))
possible = []
for name in ("TRACE-Mo-p", "TRACE-Le-p"):
    left_over = stats.estimate(curves, quarter, metric="probability left, LeRF", explainer=name, level=coarsest)
    asked_of = f"{name}: probability with a quarter of {coarsest:.0f} patches"
    possible.append(Reason("Do the first patches suffice?", asked_of, left_over, above=0.5))
run.why("tr-coarse-mo", *possible)

# %% tags=["hide-input"]
run.finish()
