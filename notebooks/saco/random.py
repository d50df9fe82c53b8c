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
# # Random attribution
#
# *What does a metric say of an explanation that knows nothing?* Give every pixel a random score, without a look at the
# network. Whatever faithfulness is, this has none of it. A metric that can be trusted says so. The paper asks this in its
# section 5.2, with a case (Figure 3) and with all explainers and metrics side by side (Figure 4).

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "cifar10"
networks = ["vit"]  # "vit": the small one of the next lines; else names of timm, see faithlab.zoo.transformers
dim = 64  # width of the small network
depth = 6
heads = 4
patch = 4
epochs = 3  # of training
rate = 0.002  # peak learning rate
decay = 1e-5
batch = 128
augment = True
train_limit = 12000  # training images; None: all
weights = None  # a folder with weights of timm's networks; None: timm's own, for ImageNet
path = None  # a folder with ImageNet photographs, for imagenet-folder
images = 80  # test images to explain
groups = 10  # K of SaCo
steps = 16  # of Integrated Gradients
random_seeds = 8  # random attributions per image, to see how near to zero their SaCo is
resamples = 1000  # of the images, for the intervals
training = "bfloat16"  # precision of training
seed = 0

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import masks
from faithlab.explainers import explain
from faithlab.metrics import deletion
from faithlab.metrics.saco import coefficient, influences
from faithlab.study import claims, figures, saco, tables
from faithlab.study.results import Run, recorded

figures.theme()
run = Run("saco/random", globals())

# %% tags=["hide-input"]
recipe = saco.small_vit(
    data,
    dim=dim,
    depth=depth,
    heads=heads,
    patch=patch,
    train_limit=train_limit,
    epochs=epochs,
    rate=rate,
    decay=decay,
    batch=batch,
    augment=augment,
    precision=training,
    seed=seed,
)
subjects = saco.subjects(networks, data, images, recipe, weights=weights, path=path)
attributions = {s.name: saco.attribute(s, saco.EXPLAINERS, steps=steps, seed=seed) for s in subjects}
run.save(saco.accuracies(subjects), "networks")
Markdown(saco.introduced(subjects, recipe, recorded("saco/random", "networks")))

# %% [markdown]
# ## Zero, as it must be
#
# Sort random scores, cut them into groups: which pixels are in which group is chance. So of two groups each is as likely as
# the other to cost the prediction more. Every pair counts for SaCo with one half of its weight, and against it with the
# other: the expectation is zero, on any network and any image, as long as no two groups cost exactly the same (the paper's
# inequality counts a tie in favour).

# %% tags=["hide-input"]
rows, tied, pairs = [], 0, 0
for subject in subjects:
    score = saco.scorer(subject)
    for draw in range(random_seeds):
        attribution = explain("random", subject.model, subject.x, subject.target, subject.segments, seed=seed + draw)
        found = influences(score, attribution, groups)
        rows.append(saco.tidy(coefficient(found), network=subject.name, draw=draw))
        ordered = found.drop.sort(dim=1).values
        tied += int((ordered.diff() == 0).sum())
        pairs += ordered.diff().numel()
random_scores = pd.concat(rows, ignore_index=True)
run.save(random_scores, "random_scores")
per_image = random_scores.groupby(["network", "image"])["value"].mean()
seeds = pd.DataFrame(
    {
        "mean": [per_image.mean()],
        "error": [per_image.std() / len(per_image) ** 0.5],
        "tied": [tied / pairs],
        "images": [len(per_image)],
        "draws": [random_seeds],
    }
)
run.save(seeds, "seeds")
spread = random_scores["value"].std()
Markdown(
    f"Over {len(per_image)} images with {random_seeds} random attributions each, SaCo is "
    f"**{seeds['mean'].item():+.4f} ± {seeds['error'].item():.4f}** (standard error). {tied / pairs:.2%} of the neighbours in "
    f"the order of their costs are tied. Zero on average is not zero each time: a single image's SaCo has a standard "
    f"deviation of {spread:.2f}, because ten groups make only 45 pairs, and these pairs share their groups. One image says "
    "nothing about an explainer."
    if groups == 10
    else f"Over {len(per_image)} images SaCo is {seeds['mean'].item():+.4f} ± {seeds['error'].item():.4f} (standard error); "
    f"a single image's SaCo has a standard deviation of {spread:.2f}."
)

# %% [markdown]
# The other end of the scale is one. It belongs to an explanation that was told the answers: cut the pixels at random into 16
# equal groups, measure what each group costs alone, and give every pixel the cost of its group.

# %% tags=["hide-input"]
rows = []
for subject in subjects:
    score = saco.scorer(subject)
    anything = attributions[subject.name][saco.RANDOM]
    member = masks.group(masks.order(anything), 16)
    oracle = influences(score, anything, 16).drop.gather(1, member)
    for name, attribution in (("oracle", oracle), ("its opposite", -oracle)):
        rows.append(saco.tidy(coefficient(influences(score, attribution, 16)), network=subject.name, explanation=name))
ends = pd.concat(rows, ignore_index=True)
run.save(ends, "ends")
extremes = ends.groupby("explanation", sort=False)["value"].agg(["min", "max"])
Markdown(
    f"SaCo of this oracle: {extremes.loc['oracle', 'min']:+.4f} to {extremes.loc['oracle', 'max']:+.4f} over the images; of the "
    f"oracle with its sign turned, {extremes.loc['its opposite', 'min']:+.4f} to {extremes.loc['its opposite', 'max']:+.4f}."
)

# %% [markdown]
# ## A case
#
# The paper shows one photograph. Here it is, of the explained images, the one whose class the network is surest of. Three
# explanations: one that the paper finds good, one that it finds weaker, and chance.

# %% mystnb={"figure": {"caption": "One image, three explanations. Top: what is called relevant. Middle: the salience of the ten groups, from the most salient pixels to the least, as a share of the range. Bottom: what the prediction loses without one group alone (bars; SaCo looks at these) and without it and all groups before it (line; AOPC is the mean of these).", "name": "saco-case"}, "image": {"alt": "Three columns for Transformer Attribution, Raw Attention and Random: a relevance map, a bar chart of salience by group, and a chart of the loss of confidence by group alone and cumulatively."}} tags=["hide-input"]
subject = subjects[0]
score = saco.scorer(subject)
whole = score(torch.ones(len(subject.x), 1, subject.segments.numel(), dtype=torch.bool))[:, 0]
case = int(whole.argmax())
named = ["Transformer Attribution", "Raw Attention", saco.RANDOM]
figure, grid = plt.subplots(3, 3, figsize=(8, 6.4), height_ratios=[1.5, 1, 1.2], sharey="row", sharex=False)
rows = []
for column, name in zip(grid.T, named, strict=True):
    attribution = attributions[subject.name][name]
    found = influences(score, attribution, groups)
    removed = torch.arange(groups + 1) / groups
    cumulative = deletion.curve(score, attribution, removed)
    value = coefficient(found)[case].item()
    aopc = deletion.loss(cumulative, removed)[case].item()
    salience, drop = found.salience[case].cpu(), found.drop[case].cpu()
    left = (cumulative[case, :1] - cumulative[case, 1:]).cpu()
    rows += [(name, i + 1, salience[i].item(), drop[i].item(), left[i].item(), value, aopc) for i in range(groups)]
    colour = figures.COLOURS["Random"] if name == saco.RANDOM else figures.COLOURS["SaCo"]
    shown = attribution[case].view(subject.x.shape[-2:]).cpu()
    column[0].imshow(shown, cmap="magma")
    column[0].set(xticks=[], yticks=[], title=f"{name}\nSaCo {value:+.2f}, AOPC {aopc:.2f}".replace("-", "−"))
    sns.despine(ax=column[0], left=True, bottom=True)
    scaled = (salience - salience.min()) / (salience.max() - salience.min()).clamp(min=1e-30)
    at = np.arange(1, groups + 1)
    column[1].bar(at, scaled, color="0.6")
    column[2].bar(at, drop, color=colour, label="this group alone")
    column[2].plot(at, left, color="0.25", marker="o", markersize=4, label="cumulatively")
    column[2].axhline(0, color="0.3", linewidth=0.8)
    column[2].set(xlabel="group, most salient first")
    for axes in column[1:]:
        axes.set_xticks(at[:: max(1, groups // 10)])
        axes.grid(axis="x", visible=False)
        axes.tick_params(labelsize="small")
grid[1, 0].set_ylabel("salience")
grid[2, 0].set_ylabel("loss of confidence")
handles, labels = grid[2, 0].get_legend_handles_labels()
figure.legend(handles, labels, fontsize="small", loc="lower right", bbox_to_anchor=(1, -0.04), ncols=2)
run.save(pd.DataFrame(rows, columns=["explainer", "group", "salience", "alone", "cumulative", "SaCo", "AOPC"]), "case")
figures.show(figure)

# %% tags=["hide-input"]
early = {
    name: of.iloc[max(0, int(masks.counts([0.3], groups)) - 1)]["cumulative"]
    for name, of in pd.read_csv(run.folder / "case.csv").groupby("explainer", sort=False)
}
Markdown(
    f"The network gives the class a probability of {whole[case].item():.2f}. Without the first 30 % of the pixels it has lost "
    + ", ".join(f"{value:.2f} ({name})" for name, value in early.items())
    + ". Where this is nearly all there is to lose, what comes later makes no difference any more: a cumulative metric cannot "
    "see it. SaCo asks each group on its own."
)

# %% [markdown]
# ## All explainers, all metrics
#
# The table has means over the images with 95 % intervals. Compare every row with the last one.

# %% tags=["hide-input"]
scores = pd.concat([saco.measure(s, attributions[s.name], groups=groups) for s in subjects], ignore_index=True)
run.save(scores, "scores")
estimates = saco.estimates(scores, resamples=resamples, seed=seed)
run.save(estimates, "estimates")
tables.styled(saco.with_intervals(estimates, rows="explainer", columns="metric"))

# %% [markdown]
# Three of the columns beside those of the longest run that is kept in the repository:

# %% tags=["hide-input"]
kept = recorded("saco/random", "estimates")
sources = {
    name: frame[frame["metric"].isin(["SaCo", "AUC", "AOPC"])]
    for name, frame in (("recorded", kept.frame if kept else None), ("this build", estimates))
    if frame is not None
}
tables.styled(tables.side_by_side(sources, rows=["explainer"], columns=["metric"], order=list(saco.METRICS)))

# %% mystnb={"figure": {"caption": "Each explainer (filled) and Random (orange line) on five metrics. On every axis the worst of the eleven is near the centre, the best is outside. On a metric where the orange line reaches beyond the filled shape, chance is the better explanation.", "name": "saco-radar"}, "image": {"alt": "Ten small radar charts, one per explainer, with axes SaCo, AUC, AOPC, LOdds and Comp.; a orange line shows Random on each."}} tags=["hide-input"]
oriented = estimates.assign(mean=estimates["mean"] * estimates["metric"].map(saco.METRICS)).pivot(
    index="explainer", columns="metric", values="mean"
)[list(saco.METRICS)]
scaled = 0.15 + 0.85 * (oriented - oriented.min()) / (oriented.max() - oriented.min())
angles = np.linspace(0, 2 * np.pi, len(saco.METRICS) + 1)
figure, grid = plt.subplots(2, 5, figsize=(8.4, 4.3), subplot_kw={"projection": "polar"})
for axes, name in zip(grid.flat, saco.EXPLAINERS, strict=True):
    for which, colour in ((name, figures.COLOURS["SaCo"]), (saco.RANDOM, figures.COLOURS["Random"])):
        values = [*scaled.loc[which], scaled.loc[which].iloc[0]]
        axes.plot(angles, values, color=colour, linewidth=1.6)
        if which == name:
            axes.fill(angles, values, color=colour, alpha=0.3)
    axes.set_theta_offset(np.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(angles[:-1], list(saco.METRICS), fontsize="x-small")
    axes.tick_params(pad=-3)
    axes.set(ylim=(0, 1.05), yticks=[])
    axes.set_title(name, fontsize="small", pad=12)
    axes.spines["polar"].set_visible(False)
figures.show(figure)

# %% [markdown]
# ## Which metric knows chance when it sees it?
#
# Image by image, how much better than Random is an explainer? An explainer counts as better or worse where the interval of
# the mean difference leaves zero out.

# %% tags=["hide-input"]
against = saco.against_random(scores, resamples=resamples, seed=seed)
run.save(against, "against_random")
counts = pd.DataFrame(
    {
        "better than Random": against[against["low"] > 0].groupby("metric").size(),
        "no different": against[(against["low"] <= 0) & (against["high"] >= 0)].groupby("metric").size(),
        "worse than Random": against[against["high"] < 0].groupby("metric").size(),
    }
).reindex(list(saco.METRICS))
tables.styled(counts.fillna(0).astype(int).rename_axis(None))

# %% tags=["hide-input"]
worse = against[against["high"] < 0].groupby("metric", sort=False)["explainer"].agg(", ".join)
Markdown(
    "Worse than chance: "
    + ("; ".join(f"{names} by {metric}" for metric, names in worse.items()) if len(worse) else "nobody by any metric")
    + ". A metric that places Random among real explainers is not wrong by that alone: an explainer may be worse than chance. "
    "What sets SaCo apart is that chance has a fixed place on its scale, zero, so that a single number can be read without "
    "a Random beside it."
)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(saco.RANDOMNESS, {"seeds": seeds, "estimates": estimates, "against_random": against})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
