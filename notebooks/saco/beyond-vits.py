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
# # Beyond Vision Transformers
#
# *The paper tests SaCo on Vision Transformers. Is there anything about it that needs one?* Its definition does not mention
# attention, patches or images: it takes an attribution, groups of features, and a model to ask. Here it judges explanations
# of a convolutional network, of a network for time series, and of one for texts. The paper has no such numbers, so there is
# nothing to reproduce, but two things must hold if SaCo is what it claims to be: chance is near zero, and an explanation that was
# measured by SaCo's own question is far above it.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
width = 16  # of ResNet-9
image_epochs = 3
image_rate = 0.01
image_limit = None  # training images; None: all
images = 100  # test images to explain
series_set = "japanese-vowels"
series_width = 32  # of the bidirectional LSTM
series_layers = 2
series_epochs = 30
series = 128  # test series to explain, at most
text_set = "rotten-tomatoes"
text_length = 32  # tokens of a text that are read
text_words = 8000  # of the vocabulary
shortest = 20  # tokens of a text that is explained, at least
text_dim = 64  # of the LSTM's embedding and state
text_epochs = 3
text_limit = None  # training texts; None: all
texts = 128  # test texts to explain, at most
groups = 10  # K for images and texts
series_groups = 5  # K for series, which have few steps
steps = 16  # of Integrated Gradients
smooth_samples = 8  # noisy copies of an image in SmoothGrad-squared
resamples = 1000  # of the inputs, for the intervals
training = "bfloat16"  # precision of training
seed = 0

# %% tags=["hide-input"]
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import references, segments
from faithlab.study import figures, networks, saco, tables
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.sets import TextSet
from faithlab.zoo.training import Recipe, accuracy, logits, trained

figures.theme()
run = Run("saco/beyond-vits", globals())

# %% [markdown]
# ## Three networks
#
# What is a feature, and what stands in for a removed one, depends on the data. Pixels get their image's mean colour, as in the
# paper. The values of a time step get their channels' means over the training series. A word becomes the mask token. Series
# and texts differ in length; steps and tokens that an input does not have are in no group.

# %% tags=["hide-input"]
recipes = {
    "CNN": networks.pair(
        "cifar10",
        "resnet9",
        {"width": width},
        epochs=image_epochs,
        tuning_epochs=1,
        rate=image_rate,
        tuning_rate=0.001,
        decay=1e-5,
        schedule="cycle",
        train_limit=image_limit,
        beta=0.1,
        precision=training,
        seed=seed,
    )["original"]
}
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
reference = {
    "CNN": references.mean,
    "series": references.zero,
    "text": partial(references.token, identity=TextSet.MASK),
}
K = {"CNN": groups, "series": series_groups, "text": groups}
what = {
    "CNN": ("ResNet-9", "CIFAR-10", "pixels", "the image's mean colour"),
    "series": (
        "bidirectional LSTM",
        "JapaneseVowels" if series_set == "japanese-vowels" else series_set,
        "time steps",
        "zero, the training mean",
    ),
    "text": ("LSTM", "Rotten Tomatoes" if text_set == "rotten-tomatoes" else text_set, "tokens", "the mask token"),
}
subjects, rows = {}, []
for kind, recipe in recipes.items():
    network = trained(recipe)
    device = next(network.parameters()).device
    x = data[kind].model_inputs(chosen[kind]).to(device)
    present = data[kind].present(chosen[kind])
    subjects[kind] = saco.Subject(
        name=kind,
        model=network,
        x=x,
        target=logits(network, x).argmax(1),
        segments=data[kind].features().to(device),
        accuracy=accuracy(network, data[kind]),
        reference=reference[kind],
        present=None if present is None else present.to(device),
    )
    own = None if present is None else present.sum(1)
    features = f"{segments.count(data[kind].features())}" if own is None else f"{own.min()}–{own.max()}"
    network_name, set_name, feature, stand_in = what[kind]
    rows.append(
        (network_name, set_name, f"{subjects[kind].accuracy:.1%}", len(x), f"{features} {feature}", stand_in, K[kind])
    )
tables.prose(
    pd.DataFrame(
        rows, columns=["network", "data", "test accuracy", "explained", "features", "a removed one becomes", "groups"]
    )
)

# %% [markdown]
# ## Explanations
#
# Gradient explainers exist for all three kinds; the CNN also has class activation maps. **Occlusion** removes one feature at a
# time (for images, one patch of 4 × 4 pixels) and scores it by what the prediction loses: it is SaCo's own question, asked of
# single features in place of groups.

# %% tags=["hide-input"]
gradient = {"Saliency": "saliency", "Input × gradient": "input-x-gradient", "IG": "integrated-gradients"}
explainers = {
    "CNN": gradient | {"SG-SQ": "smoothgrad-squared", "Grad-CAM": "gradcam", "LayerCAM": "layercam"},
    "series": gradient,
    "text": {"Input × gradient": "input-x-gradient-embedding", "IG": "integrated-gradients-embedding"},
}
attributions = {}
for kind, subject in subjects.items():
    more = {"smoothgrad-squared": {"samples": smooth_samples, "seed": seed}}
    found = saco.attribute(subject, explainers[kind], steps=steps, seed=seed, options=more)
    chance = found.pop(saco.RANDOM)
    coarse = segments.patches(*subject.x.shape[-2:], 4).to(subject.x.device) if kind == "CNN" else None
    attributions[kind] = found | {"Occlusion": saco.occlusion(subject, coarse), saco.RANDOM: chance}
scores = {kind: saco.measure(s, attributions[kind], groups=K[kind]) for kind, s in subjects.items()}
every = pd.concat(scores.values(), ignore_index=True)
run.save(every, "scores")
Markdown(f"In all {len(every):,} numbers.")

# %% mystnb={"figure": {"caption": "SaCo on three kinds of data. Points: means over the inputs; bars: 95 % bootstrap intervals. Random is orange. Zero is chance; one is the best possible.", "name": "saco-beyond"}, "image": {"alt": "Three charts, for a CNN, time series and text: explainers against SaCo with intervals, Random in orange near zero."}} tags=["hide-input"]
estimates = pd.concat(
    [saco.estimates(of, resamples=resamples, seed=seed).assign(kind=kind) for kind, of in scores.items()],
    ignore_index=True,
)
run.save(estimates, "estimates")
figure, panels = plt.subplots(1, 3, figsize=(8.4, 3), sharex=True)
for axes, kind in zip(panels, subjects, strict=True):
    of = estimates[(estimates["kind"] == kind) & (estimates["metric"] == "SaCo")].iloc[::-1]
    for at, (_, row) in enumerate(of.iterrows()):
        colour = figures.COLOURS["Random"] if row["explainer"] == saco.RANDOM else figures.COLOURS["SaCo"]
        error = [[row["mean"] - row["low"]], [row["high"] - row["mean"]]]
        axes.errorbar(row["mean"], at, xerr=error, fmt="o", color=colour, capsize=3)
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.set_yticks(range(len(of)), of["explainer"])
    axes.set(title=f"{what[kind][0]}\n{what[kind][1]}", xlabel="SaCo")
    axes.tick_params(labelsize="small")
    axes.grid(axis="y", visible=False)
figures.show(figure)

# %% tags=["hide-input"]
lines = []
for kind in subjects:
    of = estimates[(estimates["kind"] == kind) & (estimates["metric"] == "SaCo")].set_index("explainer")
    per_input = scores[kind].query("explainer == @saco.RANDOM and metric == 'SaCo'")["value"]
    error = per_input.std() / per_input.count() ** 0.5
    lines.append(
        f"**{what[kind][0]}**: Random {per_input.mean():+.3f} ± {error:.3f} (standard error), Occlusion "
        f"{of.loc['Occlusion', 'mean']:+.2f}, the best gradient explainer {of['mean'].drop([saco.RANDOM, 'Occlusion']).max():+.2f}"
        + (f"; {int(of['missing'].sum())} coefficients do not exist" if of["missing"].sum() else "")
        + "."
    )
Markdown(
    " ".join(lines)
    + " Few features may not divide evenly: then some groups are smaller and have less to lose. They lie alike at both ends of "
    "the order, so that chance stays near zero."
)

# %% [markdown]
# ## And the other metrics?
#
# The same two questions as on [the page about relations](../saco/relations): does SaCo rank the inputs, or the explainers of an input,
# as the other four metrics do? Random is left out. The text has three explainers, so that their ranks are coarse.

# %% mystnb={"figure": {"caption": "Rank correlation of SaCo with the other four metrics, and the mean among those four (grey). Lines: 95 % bootstrap intervals. Top: inputs ranked for each explainer; bottom: explainers ranked for each input.", "name": "saco-beyond-relations"}, "image": {"alt": "Six bar charts: rank correlations of SaCo with AUC, AOPC, LOdds and Comp. for three kinds of data and two ways of ranking."}} tags=["hide-input"]
relations = pd.concat(
    [
        saco.relations(of[of["explainer"] != saco.RANDOM], resamples=200, seed=seed).assign(kind=kind)
        for kind, of in scores.items()
    ],
    ignore_index=True,
)
run.save(relations, "relations")
figure, grid = plt.subplots(2, 3, figsize=(8.4, 4.6), sharey=True, sharex=True)
for row, ranked in zip(grid, ("images", "explainers"), strict=True):
    for axes, kind in zip(row, subjects, strict=True):
        of = relations[(relations["kind"] == kind) & (relations["ranked"] == ranked)]
        ours, others = of[of["one"] == "SaCo"], of[of["one"] != "SaCo"]
        at = range(len(ours))
        axes.bar(at, ours["mean"], color=figures.COLOURS["SaCo"], width=0.65)
        axes.vlines(at, ours["low"], ours["high"], color="0.2", linewidth=1.5)
        axes.bar(len(ours) + 0.3, others["mean"].mean(), color="0.65", width=0.65)
        axes.axhline(0, color="0.3", linewidth=0.8)
        axes.set_xticks([*at, len(ours) + 0.3], [*ours["other"], "others"], rotation=45, ha="right")
        axes.tick_params(labelsize="small")
        axes.grid(axis="x", visible=False)
for axes, kind in zip(grid[0], subjects, strict=True):
    axes.set_title(what[kind][0])
grid[0, 0].set_ylabel("ranking inputs")
grid[1, 0].set_ylabel("ranking explainers")
figures.show(figure)

# %% [markdown]
# ## All numbers

# %% tags=["hide-input"]
tables.styled(
    saco.with_intervals(
        estimates.assign(
            row=[
                f"{what[kind][0]}: {name}" for kind, name in zip(estimates["kind"], estimates["explainer"], strict=True)
            ]
        ),
        rows="row",
        columns="metric",
    )
)

# %% tags=["hide-input"]
run.finish()
