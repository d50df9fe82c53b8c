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
# # Does SaCo work beyond Vision Transformers?
#
# *The paper tests SaCo on Vision Transformers. Is there anything about it that needs one?* Its definition does not mention
# attention, patches or images: it takes an attribution, groups of features, and a model to ask. Here it judges explanations
# of a convolutional network, of a network for time series, and of one for texts. The paper has no such numbers, so there is
# nothing to reproduce, but two things must hold if SaCo is what it claims to be: chance is near zero, and an explanation that was
# measured by SaCo's own question is far above it.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
image_training = {}  # what differs from the recipe of the study's ResNet-9: see faithstudy.recipes
images = 500  # test images to explain
series_set = "japanese-vowels"
series_width = 32  # of the bidirectional LSTM
series_layers = 2
series_epochs = 30
series = 370  # test series to explain, at most
text_set = "rotten-tomatoes"
text_length = 32  # tokens of a text that are read
text_words = 8000  # of the vocabulary
shortest = 20  # tokens of a text that is explained, at least
text_dim = 64  # of the LSTM's embedding and state
text_epochs = 3
text_limit = None  # training texts; None: all
texts = 500  # test texts to explain, at most
groups = 10  # K for images and texts
series_groups = 5  # K for series, which have few steps
steps = 50  # of Integrated Gradients
smooth_samples = 8  # noisy copies of an image in SmoothGrad-squared
random_seeds = 4  # random attributions per input
attained_images = 16  # of the test images: so many beside the best order of their patches
attained_patch = 8  # side of these patches in pixels: 16 patches, of which all 65 536 subsets are asked
training = "bfloat16"  # precision of training
seed = 0

# %% tags=["hide-input"]
import dataclasses
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import segments, stats
from faithlab.metrics import METRICS
from faithlab.scores import Scores
from faithstudy import plots, summaries, tables
from faithstudy import recipes as networks
from faithstudy.data import datasets
from faithstudy.display_names import named
from faithstudy.networks.training import Recipe, logits
from faithstudy.run import Run
from faithstudy.trials import optimum, tasks
from faithstudy.trials.chance import RANDOM, against, chance

plots.theme()
run = Run("saco/beyond-vits", globals())

# %% [markdown]
# ## Three networks
#
# What is a feature, and which baseline replaces a removed one, depends on the data. Pixels get their image's mean colour, as in the
# paper. The values of a time step get their channels' means over the training series. A word becomes the mask token. Series
# and texts differ in length; steps and tokens that an input does not have are in no group.

# %% tags=["hide-input"]
recipes = {"CNN": networks.pair(networks.RESNET9, seed, training=image_training)["original"]}
data = {"CNN": datasets.load("cifar10", "test"), "series": datasets.load(series_set, "test")}
text_options = {"length": text_length, "words": text_words}
data["text"] = datasets.load(text_set, "test", **text_options)
recipes["series"] = Recipe(
    data=series_set,
    model="bilstm",
    model_options={
        "classes": len(data["series"].classes),
        "channels": data["series"].inputs.shape[2],
        "width": series_width,
        "layers": series_layers,
    },
    epochs=series_epochs,
    rate=0.01,
    decay=0.01,
    optimiser="adamw",
    batch=16,
    seed=seed,
)
recipes["text"] = Recipe(
    data=text_set,
    data_options=text_options,
    model="lstm",
    model_options={"words": text_words, "dim": text_dim, "hidden": text_dim},
    epochs=text_epochs,
    rate=0.005,
    decay=1e-5,
    limit=text_limit,
    seed=seed,
)
spread_out = np.linspace(0, len(data["series"]) - 1, min(series, len(data["series"]))).round().astype(int)
chosen = {
    "CNN": torch.arange(images),
    "series": torch.from_numpy(spread_out),  # the set is sorted by class
    "text": (data["text"].present().sum(1) >= shortest).nonzero().flatten()[:texts],
}
reference = {"CNN": "mean", "series": "zero", "text": "mean"}  # of a text all references are the mask token
K = {"CNN": groups, "series": series_groups, "text": groups}
what = {
    "CNN": ("ResNet-9", "CIFAR-10", "pixels", "the image's mean colour"),
    "series": ("bidirectional LSTM", series_set, "time steps", "zero, the training mean"),
    "text": ("LSTM", text_set, "tokens", "the mask token"),
}
explained, hits = {}, []
for kind, recipe in recipes.items():
    options = {"name": what[kind][0], "about": "prediction", "data": data[kind]}
    task = explained[kind] = tasks.task(recipe, chosen[kind], **options)
    seen = torch.arange(min(1000, len(data[kind])))
    right = logits(task.model, data[kind].model_inputs(seen)).argmax(1).cpu() == data[kind].labels[seen]
    hits.append(Scores.of(right, images=seen, metric="accuracy", **task.labels))
recognised = run.table("recognised", lambda: Scores.concat(hits))
rows = []
for kind, task in explained.items():
    name, set_name, feature, stand_in = what[kind]
    right = tables.share(stats.estimate(recognised, network=name))
    own = None if task.present is None else task.present.sum(1)
    features = f"{segments.count(task.segments)}" if own is None else f"{own.min()}–{own.max()}"
    rows.append((name, set_name, right, len(task.x), f"{features} {feature}", stand_in, K[kind]))
columns = ["network", "data", "test accuracy", "explained", "features", "a removed one becomes", "groups"]
tables.prose(pd.DataFrame(rows, columns=columns))

# %% [markdown]
# ## Explanations
#
# Gradient explainers exist for all three kinds; the CNN also has class activation maps. **Occlusion** removes one feature at a
# time (for images, one patch of 4 × 4 pixels) and scores it by what the prediction loses: it is SaCo's own question, asked of
# single features in place of groups.


# %% tags=["hide-input"]
def occlusion(task, reference, coarse=None):
    """What the predicted class's probability loses without each feature alone (or each larger one), [B, F]."""
    larger = task if coarse is None else dataclasses.replace(task, segments=coarse)
    count = segments.count(larger.segments)
    keep = torch.cat([torch.ones(1, count, dtype=torch.bool), ~torch.eye(count, dtype=torch.bool)])
    answers = larger.score(baseline=reference, exact=True)(keep.to(task.x.device).expand(len(task.x), -1, -1))
    loss = answers[:, :1] - answers[:, 1:]
    return loss if coarse is None else segments.spread(loss, coarse).flatten(1)


gradient = {"Saliency": "saliency", "Input × gradient": "input-x-gradient"}
gradient["IG"] = ("integrated-gradients", {"steps": steps})
smooth = ("smoothgrad-squared", {"samples": smooth_samples, "seed": seed})
explainers = {
    "CNN": gradient | {"SG-SQ": smooth, "Grad-CAM": "gradcam", "LayerCAM": "layercam"},
    "series": gradient,
    "text": {
        "Input × gradient": "input-x-gradient-embedding",
        "IG": ("integrated-gradients-embedding", {"steps": steps}),
    },
}
names = ["SaCo", "AUC", "AOPC", "LOdds", "Comp."]
shown = {kind: [*of, "Occlusion"] for kind, of in explainers.items()}


def explanations(kind, task):
    """The maps of all explainers of a kind of data."""
    coarse = segments.patches(*task.x.shape[-2:], 4).to(task.x.device) if kind == "CNN" else None
    return tasks.attributions(task, explainers[kind]) | {"Occlusion": occlusion(task, reference[kind], coarse)}


def ask(task):
    """All metrics of the explanations, and of random ones."""
    kind = next(kind for kind, about in what.items() if about[0] == task.network)
    metrics = {name: METRICS[name].given(baseline=reference[kind]) for name in names}
    metrics["SaCo"] = metrics["SaCo"].given(groups=K[kind])
    return chance(metrics, task, explanations(kind, task), seeds=range(seed, seed + random_seeds))


scores = run.table("scores", ask, [*explained.values()])
Markdown(f"In all {len(scores):,} numbers.")

# %% mystnb={"figure": {"caption": "SaCo on three kinds of data. Points: means over the inputs; bars: 95 % intervals. Random is orange. Zero is chance; one is the best possible.", "name": "saco-beyond"}, "image": {"alt": "Three dot plots of SaCo, for a CNN, time series and text. Occlusion is close to one on all three, Random lies at zero, and the other explainers lie between; on text all are close to one."}} tags=["hide-input", "answer"]
estimates = tables.summary(scores, ["dataset", "network", "explainer", "metric"])
run.save(estimates, "estimates")
deep = [len(explainers[kind]) + 1 for kind in explained]
figure, panels = plt.subplots(3, 1, figsize=(4.8, 1.4 + 0.24 * sum(deep)), height_ratios=deep, sharex=True)
for axes, (kind, task) in zip(panels, explained.items(), strict=True):
    of = estimates[(estimates["dataset"] == task.dataset) & (estimates["metric"] == "SaCo")].set_index("explainer")
    groups = {"SaCo": of.drop(RANDOM), "Random": of.loc[[RANDOM]]}
    plots.forest(axes, [*of.index], groups, [plots.COLOURS[name] for name in groups])
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.set_title(", ".join(what[kind][:2]), fontsize="small")
panels[-1].set_xlabel("SaCo")
plots.show(figure)

# %% tags=["hide-input"]
lines = []
for kind, task in explained.items():
    own = {"dataset": task.dataset, "metric": "SaCo"}
    random, told = (stats.estimate(scores, explainer=name, **own) for name in (RANDOM, "Occlusion"))
    of = {name: stats.estimate(scores, explainer=name, **own) for name in explainers[kind]}
    first = max(of, key=lambda name: float(of[name]))
    lines.append(
        f"**{what[kind][0]}**: Random {tables.number(random, 3)}, Occlusion {tables.number(told)}, the highest of the other "
        f"explainers, {first}, {tables.number(of[first])}"
        + (f"; {sum(told.missing)} coefficients of Occlusion do not exist" if sum(told.missing) else "")
        + "."
    )
Markdown(
    " ".join(lines)
    + " Few features may not divide evenly: then some groups are smaller and have less to lose. They lie alike at both ends of "
    "the order, so that chance stays near zero."
)

# %% tags=["hide-input", "headline"]
clear, on = 0, []
for test, network in zip(scores.labels("dataset"), scores.labels("network"), strict=True):
    own = {"dataset": test, "metric": "SaCo"}
    ahead = stats.paired(scores, {"explainer": "Occlusion"}, {"explainer": RANDOM}, **own)
    told, by_chance = (tables.number(stats.estimate(scores, explainer=of, **own)) for of in ("Occlusion", RANDOM))
    clear += bool((ahead.low > 0).all())
    on.append(f"{told} against {by_chance} on {ahead.images} inputs of {named(test.split()[0])} ({network})")
answer = "Yes, as far as this test goes" if clear == len(on) else "In part" if clear else "Not that it shows"
Markdown(
    f"**{answer}**: on {clear} of {len(on)} networks that are no Vision Transformers SaCo puts an explanation that asks its own question, "
    f"Occlusion, clearly ahead of a random order: {summaries.listed(on)}."
)

# %% [markdown]
# ## Which metric knows chance here? (Figure 4, on other networks)
#
# The paper's Figure 4 shows on Vision Transformers that other metrics put a random explanation above real ones;
# [the page on chance](random) repeats it. Here is the same question of three more networks: how many explainers are clearly better than
# Random, and how many clearly worse, input by input, where the interval of the mean difference leaves zero out.

# %% tags=["hide-input"]
known = {}
for cell, _ in stats.summary(scores, ["network", "dataset"], metric="SaCo", explainer=RANDOM):
    compared = against(scores, {name: METRICS[name] for name in names}, **cell)
    outcomes = {"better": compared["low"] > 0, "worse": compared["high"] < 0}
    outcomes["no different"] = ~(outcomes["better"] | outcomes["worse"])
    counts = pd.DataFrame({name: of.groupby(compared["metric"]).sum() for name, of in outcomes.items()}).loc[names]
    column = f"{cell['network']}, {named(cell['dataset'].split()[0])}"
    known[column] = [", ".join(f"{n} {name}" for name, n in row.items() if n) for _, row in counts.iterrows()]
tables.prose(pd.DataFrame(known, index=names).rename_axis("metric").reset_index())

# %% tags=["hide-input"]
worse = {name: sum("worse" in column[k] for column in known.values()) for k, name in enumerate(names)}
said = [f"{name} on {count} of {len(known)} networks" for name, count in worse.items() if count]
Markdown(
    (
        "Clearly below Random are some explainers by " + summaries.listed(said)
        if said
        else "No metric puts an explainer clearly below Random"
    )
    + "."
)

# %% [markdown]
# ## And the other metrics?
#
# The same two questions as on [the page about relations](../saco/relations): does SaCo rank the inputs, or the explainers of an input,
# as the other four metrics do? Random is left out. The text has three explainers, so that their ranks are coarse. The
# correlations keep their signs.

# %% mystnb={"figure": {"caption": "Rank correlation of SaCo with the other four metrics, and the mean among those four (others). Lines: 95 % intervals over the inputs; a point without one rests on too few inputs. Top: inputs ranked for each explainer; bottom: explainers ranked for each input.", "name": "saco-beyond-relations"}, "image": {"alt": "Six dot plots of rank correlations, three kinds of data by two ways of ranking. SaCo correlates little with AUC, AOPC, LOdds and Comp., mostly below 0.3; for explainers of series and text those four agree better with each other."}} tags=["hide-input"]
better = {name: METRICS[name].better for name in names}
bars = {name: [("SaCo", name)] for name in names[1:]} | {"others": list(itertools.combinations(names[1:], 2))}
readings = {"ranking inputs": stats.images_ranked, "ranking explainers": stats.explainers_ranked}
figure, grid = plt.subplots(2, 3, figsize=(8.4, 4.6), sharey=True, sharex=True)
rows = []
for of_reading, (ranked, reading) in zip(grid, readings.items(), strict=True):
    for axes, (kind, task) in zip(of_reading, explained.items(), strict=True):
        own = [stats.estimate(scores, reading(p, shown[kind], better), dataset=task.dataset) for p in bars.values()]
        of = pd.DataFrame([tables.interval(e) for e in own], list(bars))
        rows.append(of[["mean", "low", "high"]].rename_axis("pair").reset_index().assign(kind=kind, ranked=ranked))
        plots.forest(axes, list(bars), {"": of}, [plots.COLOURS["SaCo"]])
        axes.axvline(0, color="0.3", linewidth=0.8)
    of_reading[0].set_ylabel(ranked)
for axes, kind in zip(grid[0], explained, strict=True):
    axes.set_title(what[kind][0])
figure.supxlabel("rank correlation", fontsize="medium")
run.save(pd.concat(rows)[["kind", "ranked", "pair", "mean", "low", "high"]], "relations")
plots.show(figure, least=30)

# %% [markdown]
# ## How much of it could be had?
#
# SaCo has a scale of its own, from −1 to 1. But no explanation has to reach 1: the network's answers may have no order that does. For
# LeRF − MoRF it is known what can be reached. Where an image is cut into a few large patches, all their subsets can be asked
# of the network, and the best of all orders follows exactly. An explainer's [attainable share](../trace/explainers) is its LeRF − MoRF
# as a part of what the best order of the same image has: 1 is the best that there is (*Best-p* in the table), 0 is chance. The explanations of
# the convolutional network are summed over the patches, and removed patches get the image's mean colour. All subsets of one
# image are 65 536 forwards, so that only a few images are asked about.


# %% tags=["hide-input"]
def with_the_best(task):
    """LeRF - MoRF of the explanations, summed over large patches, beside that of the best order of these."""
    coarse = segments.patches(*task.x.shape[-2:], attained_patch).to(task.x.device)
    maps = explanations("CNN", task)
    of_patches = {name: segments.pool(of.unflatten(1, coarse.shape), coarse) for name, of in maps.items()}
    task = dataclasses.replace(task, segments=coarse)
    trajectories = {"LeRF - MoRF": METRICS["LeRF - MoRF"].given(baseline=reference["CNN"])}
    return optimum.optimum(trajectories, task, of_patches, exact=segments.count(coarse))


few = explained["CNN"].part(torch.arange(min(attained_images, images)))
attained = run.table("attained", with_the_best, [few], again="subsets")
by_measure = tables.measures(attained, ["explainer"], optimum.MEASURES)
tables.noted(
    tables.compared(by_measure, rows=["explainer"], columns=["measure"]), f"images: {by_measure['images'].max()}"
)

# %% [markdown]
# ## All numbers

# %% tags=["hide-input"]
tables.compared(estimates, rows=["network", "explainer"], columns=["metric"], order=names)

# %% tags=["hide-input"]
run.finish()
