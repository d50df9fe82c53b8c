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
# # How close to the optimum is TRACE?
#
# *A search that claims to find the best explanation had better find it.* With 16 patches an image has 65 536 subsets. All
# of them can be asked. That gives two yardsticks:
#
# - The *complete search* of the paper: the best subset of each size. The subsets need not be nested, so no order can beat
#   their sum. It is a bound.
# - The *optimum* itself, which the paper calls inaccessible. With the answers to all subsets it is a shortest path through
#   them, $2^{16}$ sums in place of $16!$ orders. The paper's Figure 2a squeezes it between search and bound; here it is
#   known, so that both can be measured against it.
#
# What a start and the neighbours of a search are worth is [a page of its own](annealing).

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's ResNet-9, such as {"epochs": 5}: see faithstudy.recipes
images = 32  # recognised test images
patch = 8  # side of a patch in pixels: 16 patches
most_features = 16  # the last patches are one feature where there are more; twice the subsets with each
steps = 5000  # of annealing; the paper takes 5000
restarts = 4  # chains per image; with more of them, they stand beside the one that the paper has
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
training_seeds = [0, 1, 2]  # each is a network of its own
seed = 0  # of the searches

# %% tags=["hide-input"]
import dataclasses
import itertools
from functools import cache, partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import search, segments, stats
from faithlab.metrics import METRICS, evaluate, trajectory
from faithlab.outputs import logit, probability
from faithlab.scores import Scores
from faithstudy import plots, recipes, tables
from faithstudy.claims import above, below, better, counted
from faithstudy.diagnostics import Reason
from faithstudy.run import Run
from faithstudy.trials import optimum, searches, tasks

plots.theme()
run = Run("trace/optimality", globals())

# %% [markdown]
# ## The network and its images
#
# The inputs are images that a small network recognises ([how many it does](../networks)). It is asked about every subset of their patches, removed ones set
# to zero, and both the probability (-p) and the logit (-y) of the class are read off the same answers. From here on every
# search is a matter of look-ups.

# %% tags=["hide-input"]
chosen = []
for training_seed in training_seeds:
    recipe = recipes.changed(recipes.RESNET9, {**training, "seed": training_seed})
    task = tasks.task(recipe, tasks.recognised(recipe, images), name="ResNet-9", precision=precision)
    patches = segments.patches(*task.x.shape[-2:], patch)
    chosen.append(dataclasses.replace(task, segments=patches.clamp(max=most_features - 1)))
features, device = segments.count(chosen[0].segments), chosen[0].x.device


@cache
def answers(n):
    """What a network answers to all subsets, of both outputs."""
    return optimum.all_subsets(chosen[n])


# %% [markdown]
# ## The squeezed gap (Figure 2a)
#
# Annealing starts at a random order. Greedy search takes one patch after the other. A gap to the bound needs a scale: it is a
# part of the range between the two bounds, CS-Mo and CS-Le, of the same image.

# %% tags=["hide-input"]
SOUGHT = {  # the long table's names: the metric and its objective
    name + suffix: (METRICS[name].given(output=output), i)
    for i, (suffix, output) in enumerate({"": probability, " of logits": logit}.items())
    for name in ("MoRF", "LeRF", "LeRF - MoRF")
}
removed = [k / features for k in range(features + 1)]


def scored(task, values, metric, explainer, **about):
    """Rows of the long table."""
    about |= {"images": task.images, "reference": "zero", **task.labels}
    return Scores.of(values, metric=metric, explainer=explainer, **about)


def lookups(task, answers, name):
    """The answers as a score, where searches start, and how annealing goes on."""
    metric, i = SOUGHT[name]
    identity, how = task.images.to(device), optimum.schedule(metric, steps)
    start, lookup = search.random_orders(identity, features, seed=seed)[:, 0], search.lookup(answers[i])
    return lookup, start, partial(search.anneal, lookup, start, **how, seed=seed, images=identity)


def best_orders(task, answers, name):
    """What each search finds."""
    lookup, start, anneal = lookups(task, answers, name)
    objective = optimum.schedule(SOUGHT[name][0], steps)["objective"]
    asked = {"count": len(start), "features": features, "objective": objective, "device": device}
    orders = {"annealing": anneal()}
    if objective != "Le-Mo":
        if restarts > 1:
            orders[f"annealing, {restarts} chains"] = anneal(restarts=restarts)
        orders["greedy"] = search.greedy(lookup, **asked)
    return orders | {"both ends, insertion": search.best(lookup, **asked, seed=seed, images=task.images.to(device))}


def ask(task, answers, searched=best_orders):
    """The orders that are found, beside the optimum and the bounds."""
    rows = []
    for name, (metric, i) in SOUGHT.items():
        table, objective = answers[i], optimum.schedule(metric, steps)["objective"]
        bounds = {of: search.bound(table, of) for of in search.OBJECTIVES}
        span, lookup = bounds["Le"].sum(1) - bounds["Mo"].sum(1), search.lookup(table)
        orders, curves = {"optimum": search.optimum(table, objective), **searched(task, answers, name)}, {}
        for explainer, order in orders.items():
            curves[explainer] = getattr(trajectory.curves(lookup, order.order), name[:4].lower())
            gap = (order.value - bounds[objective].sum(1)).abs() / span
            close = (order.value - orders["optimum"].value).abs() / span < 0.01
            measures = {name: order.value, f"gap of {name}": gap, f"close to the optimum of {name}": close}
            rows += [scored(task, of, measure, explainer) for measure, of in measures.items()]
        if objective != "Le-Mo":
            # The bound is by size of the prefix: of what is removed for MoRF, of what is kept for LeRF.
            curves["complete search"] = bounds[objective] if objective == "Mo" else bounds[objective].flip(1)
            rows += [scored(task, of, f"curve of {name}", explainer, sizes=removed) for explainer, of in curves.items()]
    return Scores.concat(rows)


def without_searches():
    """The optimum and the bounds of one image: rounding decides the way of a search."""
    one = chosen[0].part(torch.arange(1))
    return ask(one, optimum.all_subsets(one), searched=lambda *_: {})


def measure():
    """All networks."""
    return Scores.concat(ask(task, answers(n)) for n, task in enumerate(chosen))


scores = run.table("scores", measure, again=without_searches)

# %% mystnb={"figure": {"caption": "Mean answer of the network as patches are removed. The upper curves keep it high (TRACE-Le), the lower ones bring it down (TRACE-Mo). Where only one curve shows, the others lie beneath it. Bands: 95 % intervals over the images, of the bound.", "name": "tr-squeezed"}, "image": {"alt": "Two line charts, probabilities and logits: number of removed patches against the answer; complete search, annealing and greedy search, for LeRF above and for MoRF below."}} tags=["hide-input", "answer"]
figure, grid = plt.subplots(1, 2, figsize=(8, 3.4))
looks = {"complete search": {"color": "C0", "linewidth": 3.5, "alpha": 0.5}}
looks |= {"annealing": {"color": "C1", "linewidth": 1.6}, "greedy": {"color": "C2", "linewidth": 1.6}}
for axes, (suffix, title) in zip(grid, {"": "probability (-p)", " of logits": "logit (-y)"}.items(), strict=True):
    average = stats.mean if suffix else stats.Statistic(stats.mean, within=(0.0, 1.0))  # of probabilities
    for (criterion, style), (explainer, look) in itertools.product({"LeRF": "-", "MoRF": "--"}.items(), looks.items()):
        curve = stats.estimate(scores, average, metric=f"curve of {criterion}{suffix}", explainer=explainer)
        bound = explainer == "complete search"
        draw, of = (partial(plots.band, axes), curve) if bound else (axes.plot, curve.value)
        draw(range(len(curve.value)), of, linestyle=style, label=f"{explainer}, {criterion}", **look)
    axes.set(xlabel="removed patches", ylabel=title[:-5], title=title)
plots.key(figure, axes)
plots.show(figure)

# %% [markdown]
# The gap to the bound, mean over the images with its 95 % interval. The column *optimum* is how far the bound itself is from
# what any order can reach: what a search lacks is only the difference to that column. The last columns count the images for
# which a search found the optimum, of all networks. The paper's greedy
# search has none for LeRF − MoRF (TRACE-p, TRACE-y); ours goes [from both ends](../../book/trace/deviations), and then moves one patch after the
# other to its best place.


# %% tags=["hide-input"]
def optimal(name, explainer):
    """Of how many images a search is at the optimum, of all networks."""
    found, best = (scores.where(metric=name, explainer=of) for of in (explainer, "optimum"))
    return sum(int(((one.values - other.values).abs() < 1e-5).sum()) for one, other in zip(found, best, strict=True))


part_of_range = stats.Statistic(stats.mean, within=(0.0, 1.0))  # no order is beyond either bound
shown = []
for name, (metric, _) in SOUGHT.items():
    gaps = stats.summary(scores, ["explainer"], part_of_range, metric=f"gap of {name}")
    row = {"search": optimum.name(metric)} | {cell["explainer"]: tables.share(gap) for cell, gap in gaps}
    row |= {f"{of} at the optimum": optimal(name, of) for of in ("annealing", "both ends, insertion")}
    shown.append(row)
tables.prose(pd.DataFrame(shown).fillna("–"))

# %% [markdown]
# Where the optimum is not known, independent searches can say where it may lie: {py:func}`faithlab.search.subsets.limit`. How often
# is it right? Five searches by insertion start at random orders.

# %% tags=["hide-input"]
RIGHT, SLACK = "the limit is not below the optimum", "the limit as a part of the optimum"


def estimated():
    """The limit that five searches give, beside the optimum."""
    rows = []
    for n, task in enumerate(chosen):
        table, _ = answers(n)
        top = search.optimum(table, "Le-Mo").value
        score, many = searches.repeated(search.lookup(table), task.images.to(device), 5)
        apart = search.random_orders(many, features, seed=seed)[:, 0]
        alone = search.insert(score, apart, steps=4 * features, seed=seed, images=many)
        limit = search.limit(alone.value.view(5, -1))
        rows += [scored(task, limit >= top - 1e-6, RIGHT, "five searches")]
        rows += [scored(task, limit / top, SLACK, "five searches")]
    return Scores.concat(rows)


limits = run.table("limits", estimated, again="search")
right = stats.estimate(limits, metric=RIGHT)
Markdown(
    f"An upper limit of the optimum, estimated from what five searches found and meant to be right in 95 % of the cases, is not below it in "
    f"{tables.share(right)} of {sum(right.images_each)} cases, of an image and a network ({right.images} images), and on average at {tables.share(stats.estimate(limits, metric=SLACK))} of it. It is an estimate; the "
    "complete search is the bound."
)

# %% [markdown]
# ## Greedy search is exact where the answer is additive
#
# The paper says so, for linear models. Take a network whose answer is the sum of what its patches are worth: here the worth
# is Input × Gradient's, the linear model that touches the network at the image. On it greedy search must find the optimum of
# every image, which a claim below counts. On the network itself it need not.

# %% tags=["hide-input"]
exact = {"MoRF": [], "LeRF": []}
for task in chosen:
    worth = tasks.attributions(task, {"worth": "input-x-gradient"})["worth"]

    def additive(keep, images=None, worth=worth):
        return (keep * (worth[:, None] if images is None else worth[images])).sum(-1)

    table = search.answers(additive, len(worth), features, device=device)
    for criterion, objective in (("MoRF", "Mo"), ("LeRF", "Le")):
        greedy = search.greedy(additive, len(worth), features, objective=objective, device=device)
        short = (greedy.value - search.optimum(table, objective).value).abs()
        exact[criterion].append((short < 1e-5 * (1 + features) * worth.abs().sum(1)).cpu())
exact = {criterion: torch.cat(parts) for criterion, parts in exact.items()}
solved = [f"{optimal(criterion, 'greedy')} times for {criterion}" for criterion in exact]
count = sum(len(task.x) for task in chosen)
Markdown(f"On the network itself greedy search finds the optimum {' and '.join(solved)}, of {count} images.")

# %% [markdown]
# ## Insertion is deletion (Theorem 3.1)
#
# Insert the patches into an empty image, the most relevant first. The images met on the way are those of LeRF, in reverse.
# So the areas are equal; and inserting the other way round gives MoRF. Each metric asks the network itself here, in float32,
# about annealing's orders and about their reverses.


# %% tags=["hide-input"]
def of_annealing():
    """Insertion and deletion of annealing's orders and of their reverses."""
    rows = []
    for n, task in enumerate(chosen):
        *_, anneal = lookups(task, answers(n), "LeRF - MoRF")
        order = search.heat_map(anneal().order)
        for metric in ("Insertion", "LeRF", "MoRF"):
            asked = {"TRACE": order} | ({"TRACE, reversed": -order} if metric == "Insertion" else {})
            rows.append(evaluate({metric: METRICS[metric].given(exact=True)}, task, asked))
    return Scores.concat(rows)


areas = run.table("areas", of_annealing, again="search")


def apart(explainer, metric):
    """By how much the area of insertion differs from that of deletion, of every image."""
    pairs = zip(areas.where(metric="Insertion", explainer=explainer), areas.where(metric=metric), strict=True)
    return torch.cat([(insertion.values - deletion.values).abs().flatten() for insertion, deletion in pairs])


pairs = {"LeRF": apart("TRACE", "LeRF"), "MoRF": apart("TRACE, reversed", "MoRF")}
apart_by = [f"{of.max():.1e} ({metric})".replace("-", "−") for metric, of in pairs.items()]
Markdown(f"The areas differ by at most {', '.join(apart_by)}, on sums of up to {features + 1} probabilities.")

# %% [markdown]
# ## What reproduced
#
# Each claim is judged on the saved scores. A part of it *holds* where the whole interval, and every network's own estimate, lie
# on the claimed side. The paper prints no numbers of these searches, only curves.

# %% tags=["hide-input"]
single = {optimum.name(metric): of for of, (metric, _) in SOUGHT.items() if "LeRF - MoRF" not in of}
close = {of: f"close to the optimum of {of}" for of in single.values()}
run.claim(
    "tr-near-bound",
    "Section 5.1, Figure 2a",
    "Annealing almost reaches the complete search (here: within 1 % of the range between the two bounds: of the bound on average, and of "
    "the optimum, which is known here, on more than half of the images).",
    [
        *(
            below(scores, 0.01, metric=f"gap of {of}", explainer="annealing", name=f"{name}: to the bound")
            for name, of in single.items()
        ),
        *(
            above(scores, 0.5, metric=close[of], explainer="annealing", name=f"{name}: to the optimum")
            for name, of in single.items()
        ),
    ],
)

# %% [markdown]
# **Why?** Is it the search that falls short, or the bound? The optimum is known here, so that the two parts of the gap can be told
# apart, by the claim's bar.

# %% tags=["hide-input"]
asked, possible = partial(Reason, said=tables.share), []
for name, of in single.items():
    gap, pair = {"metric": f"gap of {of}"}, [{"explainer": "annealing"}, {"explainer": "optimum"}]
    least, left = stats.estimate(scores, part_of_range, **pair[1], **gap), stats.paired(scores, *pair, **gap)
    told = f"{name}, from the bound to the optimum", f"{name}, from the optimum to annealing"
    possible.append(asked("Is the optimum itself more than 1 % from the bound?", told[0], least, above=0.01))
    possible.append(asked("Is annealing more than 1 % from the optimum?", told[1], left, above=0.01))
run.why("tr-near-bound", *possible)

# %% [markdown]
# The bound itself may be out of reach. What annealing lacks of the optimum is next to nothing on many images and more on a few; the mean
# of such numbers has an interval that is unsure of itself with so few images, so that images are counted.

# %% tags=["hide-input"]
run.claim(
    "tr-beats-greedy",
    "Section 5.1, Figure 2a",
    "Annealing constantly beats greedy search (here: on average).",
    [
        better(scores, {"explainer": "annealing"}, {"explainer": "greedy"}, less="MoRF" in of, metric=of, name=name)
        for name, of in single.items()
    ],
)

# %% [markdown]
# **Why?** Is there something to win, or is greedy search at the optimum (within 1 % of the range) on most images already? And does a
# chain of annealing get stuck, where the best of several does not?

# %% tags=["hide-input"]
chains, possible = [name for name in scores.labels("explainer") if name.endswith(" chains")], []
for name, of in single.items():
    told = f"{name}: images where greedy search is within 1 % of the optimum"
    solved = stats.estimate(scores, metric=close[of], explainer="greedy")
    possible.append(asked("Is there little to win?", told, solved, above=0.5))
    for several in chains:
        pair = [{"explainer": e} for e in (several, "annealing")][:: -1 if "MoRF" in of else 1]
        told = f"{name}: the best of {several.split(', ')[1]} − one"
        lead = stats.paired(scores, *pair, metric=of)
        possible.append(Reason("Do several chains find more than one?", told, lead, above=0))
run.why("tr-beats-greedy", *possible)

# %% tags=["hide-input"]
run.claim(
    "tr-greedy-exact",
    "Section 4",
    "Greedy search reaches the optimum of TRACE-Mo and TRACE-Le where the features' contributions are additive.",
    [
        counted(f"{criterion}: greedy search is at the optimum", linear, reason="the linear model of every image")
        for criterion, linear in exact.items()
    ],
    follows="of additive contributions sorting is optimal, an identity",
)

# %% tags=["hide-input"]
run.claim(
    "tr-insertion",
    "Theorem 3.1",
    "Insertion and deletion have the same areas.",
    [
        counted(f"insertion and {metric}", of < 1e-4, reason="float32, sums that differ by less than 0.0001")
        for metric, of in pairs.items()
    ],
    follows="both areas are sums over the same orders of masks, an identity",
)

# %% tags=["hide-input"]
run.finish()
