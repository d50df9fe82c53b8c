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
# # How far from the optimum are explainers?
#
# *How good is an explainer, compared with the best that there is?* A deletion score of 14 says nothing. Nobody knows
# whether 15 or 50 could be had. TRACE finds the order that could be had, for each image. This page puts the eight explainers
# of the paper's Table 1 beside it, and gives each its **attainable share**: its LeRF − MoRF as a fraction of what TRACE
# reaches on the same image.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's ResNet-9, such as {"epochs": 5}: see faithstudy.recipes
images = 200  # recognised test images; the paper has 200
patch = 4  # side of a patch in pixels: 64 patches; the paper has 49
steps = 1000  # of annealing; 5000 in the paper
rise_samples = 200  # masks per image; 4000 in RISE's paper
ep_steps = 40  # of extremal perturbation; its authors take 800
integration_steps = 32
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
training_seeds = [0]  # each is a network of its own
seed = 0  # of the searches, and of explainers that draw

# %% tags=["hide-input"]
import dataclasses
import itertools
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import search, segments, stats
from faithlab.metrics import METRICS, evaluate, fidelity, trajectory
from faithlab.outputs import logit, probability
from faithlab.scores import Scores
from faithstudy import plots, published, summaries, tables
from faithstudy import recipes as networks
from faithstudy.claims import above, best
from faithstudy.data import datasets
from faithstudy.diagnostics import Reason
from faithstudy.display_names import named
from faithstudy.networks.training import accuracy
from faithstudy.run import Run
from faithstudy.trials import optimum, tasks

plots.theme()
run = Run("trace/explainers", globals())

# %% [markdown]
# ## The network and its images

# %% tags=["hide-input"]
recipes = [networks.changed(networks.RESNET9, {**training, "seed": s}) for s in training_seeds]
test = datasets.load(recipes[0].data, "test")
chosen = []
for recipe in recipes:
    task = tasks.task(recipe, tasks.recognised(recipe, images), name="ResNet-9", precision=precision)
    chosen.append(dataclasses.replace(task, segments=segments.patches(*task.x.shape[-2:], patch)))
features = (32 // patch) ** 2
Markdown(
    "The network recognises "
    + ", ".join(f"{accuracy(task.model, test.take(slice(1000))):.1%}" for task in chosen)
    + f" of the first thousand test images; {len(chosen[0].x)} that it recognises are explained and searched, at {features} patches. "
    "Removed patches are set to zero."
)

# %% [markdown]
# ## The best order of the patches
#
# Annealing exchanges two patches, asks the network about the subsets in between, and keeps the exchange if it helps, or
# sometimes if it does not: the less often, the colder it gets. It starts at the greedy order. The chains of all images go in
# lock-step, so that every forward of the network is full ([how fast that is](../cost/search)). The best orders stand beside
# the explanations as if they were explainers, too.

# %% tags=["hide-input"]
ours = {"LeRF - MoRF": METRICS["LeRF - MoRF"]}
explainers = ("Gradient", "GradCAM", "IBA", "RISE", "EP", "EBP", "IG", "InputxGradient")


def explained(task):
    """The eight explainers and random orders."""
    others = test.model_inputs(slice(-500, None)).to(
        task.x.device
    )  # which say what the noise of IBA's bottleneck is like
    eight = {
        "Gradient": "saliency",
        "GradCAM": "gradcam",
        "IBA": ("iba", {"seed": seed, "examples": others}),
        "RISE": ("rise", {"samples": rise_samples, "precision": task.precision, "seed": seed}),
        "EP": ("extremal-perturbation", {"steps": ep_steps}),
        "EBP": "excitation-backprop",
        "IG": ("integrated-gradients", {"steps": integration_steps}),
        "InputxGradient": "input-x-gradient",
    }
    return tasks.attributions(task, {**eight, "Random": ("random", {"seed": seed})}, batch_size=32)


def greedy(task, objective):
    """A greedy order, as a map."""
    found = search.greedy(task.score(), len(task.x), features, objective=objective, device=task.x.device)
    return search.heat_map(found.order)


def searched_orders(task):
    """The orders of annealing and of its greedy starts."""
    find = partial(optimum.orders, ours, task, steps=steps, seed=seed, progress=True)
    found = run.kept(f"orders of seed {task.training_seed}", find)  # a killed run finds the searches that are done
    return found | {"Greedy-Mo": greedy(task, "Mo")}


# %% [markdown]
# An order becomes a map by the rank of each patch, squared, so that the first patches stand out.

# %% mystnb={"figure": {"caption": "Images, what the greedy search of TRACE (Greedy-Le) calls relevant (rank squared, brighter is more relevant) and the maps of four explainers at the same patches, as ranks.", "name": "tr-maps"}, "image": {"alt": "Grid of small pictures: some photographs, their TRACE maps and the maps of four explainers."}} tags=["hide-input"]
task = chosen[0].part(torch.arange(min(6, len(chosen[0].x))))
maps = {"Greedy-Le": greedy(task, "Le"), **explained(task)}
shown = ("Greedy-Le", "GradCAM", "RISE", "EBP", "IG")
ranks = {name: search.heat_map(trajectory.trajectory(maps[name])) for name in shown}
pixels = task.segments.flatten().to(task.x.device)
plots.maps(test.inputs[task.images].permute(0, 2, 3, 1), {name: of[:, pixels] for name, of in ranks.items()})

# %% [markdown]
# ## What the explainers attain

# %% tags=["hide-input"]
kept = [k / features for k in range(features + 1)]
LEFT = {"probability left, {}": probability, "answer left, {} of logits": logit}  # the long table's names
left = {
    name.format(way): METRICS["Fid+"].given(
        compute=partial(fidelity.remaining, direction=way), output=output, sizes=kept, direction=way
    )
    for name, output in LEFT.items()
    for way in ("MoRF", "LeRF")
}
metrics = {**ours, "MoRF": METRICS["MoRF"], "LeRF": METRICS["LeRF"], **left}


def ask(task, searched=searched_orders):
    """What the explainers reach, and the best of the eight on every image, chosen with hindsight."""
    rows = evaluate(metrics, task, searched(task) | explained(task))
    eight = rows.where(metric="LeRF - MoRF", explainer=list(explainers)).blocks
    highest = torch.stack([b.values for b in eight]).amax(0)[:, 0]
    return rows + Scores.of(highest, images=eight[0].images, **{**eight[0].labels, "explainer": "best of the eight"})


def measure():
    """All networks, with the attainable shares."""
    rows = Scores.concat(ask(task) for task in chosen)
    return rows + optimum.shares(rows)


few = chosen[0].part(torch.arange(min(4, len(chosen[0].x))))  # measured again, without searches
scores = run.table("scores", measure, again=lambda: ask(few, searched=lambda task: {}))

# %% mystnb={"figure": {"caption": "Attainable share: LeRF \u2212 MoRF as a part of what TRACE reaches on the same image, mean over the images with its 95 % interval. 0 is chance, 1 is the best order that was found. *Best of the eight* takes, for every image, the explainer that is best there.", "name": "tr-shares"}, "image": {"alt": "Dot plot with intervals: eight explainers, the best of them for each image, a random order and two greedy searches against the attainable share."}} tags=["hide-input", "answer"]
plots.dots(scores, {"": {}}, label="attainable share", metric=optimum.SHARE, marks={0: "chance", 1: "TRACE"})

# %% [markdown]
# The figure shows shares of what *annealing* finds. [A better search](../../book/trace/deviations) finds more. Of *the best order
# known*, which is the better of the two on each image, annealing's own order has a share as well, and all shares are nearer to 0. The
# optimum itself is not known, but a bound is that no order exceeds: image by image it says what the share of *the optimum* is at least.
# It is at most the share of the best order known; a second number stands where shares below 0, which a better optimum brings nearer to
# 0, raise that end.

# %% tags=["hide-input"]


def certificates():
    """The shares of the best order known, and of a bound."""
    rows = scores.where(metric="LeRF - MoRF")
    for task in chosen:
        find = partial(optimum.best_orders, ours, task, seed=seed, progress=True)
        better, bounds = run.kept(f"best orders of seed {task.training_seed}", find)
        rows += evaluate(ours, task, better) + bounds
    return optimum.shares(rows, best="Best-p")


certified = run.table("certified", certificates, again="search")
rows = []
for name in certified.where(metric=optimum.SHARE).labels("explainer"):
    of_known, _, of_optimum = optimum.attained(certified, explainer=name).partition("; of the optimum ")
    of_annealing = optimum.attained(scores, explainer=name) if name != "TRACE-p" else "100%"
    rows.append((name, of_annealing, of_known, of_optimum or "–"))
heads = ["explainer", "share of what annealing found", "of the best order known", "of the optimum"]
tables.prose(pd.DataFrame(rows, columns=heads))

# %% tags=["hide-input", "headline"]
shares = {
    name: stats.estimate(scores, optimum.MEAN_SHARE, metric=optimum.SHARE, explainer=name)
    for name in (*explainers, "best of the eight", "Random")
    if name in scores.where(metric=optimum.SHARE).labels("explainer")
}
nearest, *others = sorted((name for name in shares if name in explainers), key=lambda name: -float(shares[name]))
pairs = [({"explainer": nearest}, {"explainer": name}) for name in others]
ahead = sum(bool((stats.paired(scores, *pair, metric=optimum.SHARE).low > 0).all()) for pair in pairs)
data = summaries.listed([named(name.split()[0]) for name in scores.labels("dataset")])
Markdown(
    f"**{nearest}** comes nearest, with {tables.share(shares[nearest])} of what TRACE finds on the same image, where a random order has "
    f"{tables.share(shares['Random'])}; it is clearly ahead of {ahead} of the {len(others)} other explainers. The best of the eight on "
    f"each image, chosen with hindsight, has {tables.share(shares['best of the eight'])} ({shares[nearest].images} images of "
    f"{data}; {summaries.listed(scores.labels('network'))})."
)

# %% [markdown]
# ## As the patches go (Figure 2b)
#
# Above the probability of the class, below its logit. The orders are the same: TRACE-p and the greedy search have sought theirs by
# the probability, so that on logits another order may do better. [](settings) has TRACE-y, the search on logits.

# %% mystnb={"figure": {"caption": "Mean probability of the class (above) and mean logit of the class (below) as patches are removed, the least relevant first (LeRF, higher is better) or the most relevant first (MoRF, lower is better), with 95 % intervals over the images. Explainers are thin lines, all in one colour but the best of them.", "name": "tr-curves"}, "image": {"alt": "Four line charts, LeRF and MoRF of the probability and of the logit: number of removed patches against the answer, for TRACE, greedy search, the best explainer, the other explainers and a random order."}} tags=["hide-input"]
share = {cell["explainer"]: e for cell, e in stats.summary(scores, ["explainer"], metric=optimum.SHARE)}
leader = max(explainers, key=lambda name: float(share[name]))
looks = {"TRACE-p": ("C3", 2.4, "-"), "Greedy-Le": ("C1", 1.6, "--"), leader: ("C0", 1.8, "-")}
looks |= {"Random": ("0.25", 1.4, ":")} | {name: ("0.7", 0.9, "-") for name in explainers if name != leader}
figure, grid = plt.subplots(2, 2, figsize=(8, 6), sharex=True, sharey="row")
panels = itertools.product(LEFT, ("LeRF", "MoRF"))
for axes, (metric, way) in zip(grid.flat, panels, strict=True):
    for name, (colour, linewidth, style) in looks.items():
        average = stats.Statistic(stats.mean, within=(0.0, 1.0)) if LEFT[metric] is probability else stats.mean
        curve = stats.estimate(scores, average, metric=metric.format(way), explainer=name)
        removed = [size * features if way == "MoRF" else (1 - size) * features for size in kept]
        label = name if colour != "0.7" else ("" if name != [*looks][-1] else "other explainers")
        look = {"color": colour, "linewidth": linewidth, "linestyle": style, "label": label or None}
        draw, of = (axes.plot, curve.value) if colour == "0.7" else (partial(plots.band, axes), curve)
        draw(removed, of, zorder=2 + linewidth, **look)
    axes.set_title(f"{way}, {LEFT[metric].__name__}")
for row, output in zip(grid, LEFT.values(), strict=True):
    row[0].set_ylabel(f"{output.__name__} of the class")
figure.supxlabel("removed patches", fontsize="medium")
plots.key(figure, grid[0, 0])
plots.show(figure)

# %% [markdown]
# ## Beside Table 1
#
# LeRF − MoRF of the probability, mean over the images with its 95 % interval. *Published* are the paper's six ImageNet
# networks with the zero baseline, their mean and, behind ±, their standard deviation over the networks. There are 49 patches
# there and another number here, so the sum has another number of terms: compare the order of the rows, and the last columns.
# They are the row as a part of the row *TRACE-p*, a ratio of means.

# %% tags=["hide-input"]
paper = published.load("trace_deletion").query("table == 1 and reference == 'zero'")
paper = paper.rename(columns={"lerf_minus_morf_probability_auc": "value"})
top = paper[paper["explainer"] == "TRACE-p"].set_index("model")["value"]
paper = paper.assign(share=paper["value"] / paper["model"].map(top))
printed = pd.concat(
    paper.groupby("explainer")[column].agg(["mean", "std"]).assign(quantity=quantity)
    for column, quantity in (("value", "LeRF − MoRF"), ("share", "part of TRACE-p"))
).reset_index()


def measured(scores):
    """LeRF - MoRF of each explainer, and the same as a part of TRACE-p's."""
    rows = []
    for name in dict.fromkeys(b.labels["explainer"] for b in scores.where(metric="LeRF - MoRF")):
        own, best_ = ({"metric": "LeRF - MoRF", "explainer": of} for of in (name, "TRACE-p"))
        ratio = stats.Statistic(lambda a, b: a.mean() / b.mean(), (own, best_))
        for quantity, e in (
            ("LeRF − MoRF", stats.estimate(scores, **own)),
            ("part of TRACE-p", stats.estimate(scores, ratio)),
        ):
            rows.append((name, quantity, *map(float, e.pooled)))
    return pd.DataFrame(rows, columns=["explainer", "quantity", "mean", "low", "high"])


run.save(measured(scores), "summary")
searched = ("TRACE-p", "TRACE-y", "Greedy-Le", "Greedy-Mo", "best of the eight")
apart = tables.paired(scores, ["explainer"], metric="LeRF - MoRF")  # parts of one whole are in its order
own = tables.marked(measured(scores), ["quantity"], 1, apart, aside=searched)  # which are no rivals
sources = {"published": printed, "measured": own}
order = [*searched, *explainers, "Random"]
tables.compared(sources, rows=["explainer"], columns=["quantity"], order=order)

# %% tags=["hide-input"]
rival = stats.estimate(
    scores,
    metric="LeRF - MoRF",
    cells=[{"explainer": name} for name in ("TRACE-p", "Greedy-Le", "best of the eight")],
    contrasts=torch.tensor([[1.0, 0, -1], [0, 1, -1]]),
)
Markdown(
    "**Is that more than choosing?** A search that looks at the metric's own answers must beat explainers that do not. So here is "
    "a control, the explainer that is best on each image, chosen with hindsight: TRACE is ahead of it by "
    + ", its greedy start by ".join(
        "{:.1f} [{:.1f}, {:.1f}]".format(*(round(float(x), 1) + 0.0 for x in found)).replace("-", "−")  # no −0.0
        for found in zip(*rival.pooled, strict=True)
    )
    + ". The best order says what the metric wants, not that it is an explanation."
)

# %% [markdown]
# ## What reproduced
#
# Each claim is judged on the saved scores. A part of it *holds* where the whole interval, and every network's own estimate, lie
# on the claimed side. The printed numbers are those of the paper's ResNet-18.

# %% tags=["hide-input"]
table_1 = paper[paper["model"] == "ResNet-18"].set_index("explainer")["value"].to_dict()
rivals = {"rivals": list(explainers), "metric": "LeRF - MoRF"}
run.claim(
    "tr-beats-explainers",
    "Section 5.1, Figure 2b, Table 1",
    "TRACE beats every explainer in LeRF − MoRF.",
    [
        best(
            scores,
            "explainer",
            "TRACE-p",
            name=f"TRACE-p is best, sums over {features} patches",
            printed=table_1,
            **rivals,
        )
    ],
    follows="TRACE maximises the number by which all are compared",
)

# %% tags=["hide-input"]
run.claim(
    "tr-greedy-beats-explainers",
    "Sections 4 and 5.2, Figure 3b",
    "TRACE-Greedy-Le, too, beats every explainer in LeRF − MoRF.",
    [best(scores, "explainer", "Greedy-Le", name=f"Greedy-Le is best, sums over {features} patches", **rivals)],
)

# %% [markdown]
# *Substantially* is ours: by more than 0.05 on average, a quarter of the patches removed.


# %% tags=["hide-input"]
def rise(sample):
    """What the mean answer gains when a quarter of the features is removed."""
    curve = sample.mean()
    return curve[:, round(0.75 * features)] - curve[:, -1]


run.claim(
    "tr-rises",
    "Section 5.1, Figure 2b",
    "The network's answer can rise substantially when unimportant features are deleted.",
    [
        above(
            scores,
            0.05,
            of=rise,
            metric="probability left, LeRF",
            explainer="TRACE-p",
            name="a quarter removed: gain above 0.05",
        )
    ],
)

# %% [markdown]
# **Why?** Is there room to rise? A probability ends at 1, and images that the network recognises begin near it. So here is what they lack,
# the gain on images that the network is less sure of, and that of the logit, which has no end and for which these orders were not sought.


# %% tags=["hide-input"]
def room(sample):
    """What is missing to a probability of 1 before anything is removed."""
    return 1 - sample.mean()[:, -1]


trace = {"explainer": "TRACE-p", "metric": "probability left, LeRF"}
SURE = 0.9
unsure = Scores.concat(
    Scores.of(b.values[few], images=b.images[few], sizes=b.sizes, **b.labels)
    for b in scores.where(**trace)
    for few in [b.values[:, -1] < SURE]
)
some = stats.estimate(unsure, rise, **trace) if sum(len(b.images) for b in unsure) else None
logits = stats.estimate(scores, rise, explainer="TRACE-p", metric="answer left, LeRF of logits")
run.why(
    "tr-rises",
    Reason(
        "Is there little room?",
        "what is missing to a probability of 1",
        stats.estimate(scores, room, **trace),
        below=0.1,
    ),
    Reason("Does it rise where there is room?", f"gain of images with less than {SURE:g}", some, above=0.05),
    Reason("Does the logit rise?", "gain of the logit", logits, above=0),
)

# %% tags=["hide-input"]
run.finish()
