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
# # Do the metrics agree?
#
# *Five numbers claim to measure one thing: how faithful an explanation is.* If they did, they would rank explanations
# alike. The paper asks this in its section 5.1 and Figure 2, and answers: four metrics that remove pixels cumulatively
# agree with each other, SaCo agrees with none of them. This page asks it again.

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
images = 100  # test images to explain
groups = 10  # K of SaCo
steps = 16  # of Integrated Gradients
resamples = 200  # of the images, for the intervals
training = "bfloat16"  # precision of training
seed = 0

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from IPython.display import Markdown

from faithlab.study import claims, figures, published, saco, tables
from faithlab.study.results import Run, recorded

figures.theme()
run = Run("saco/relations", globals())

# %% [markdown]
# ## A Vision Transformer, and ten explanations of it
#
# Every metric here is about the class that the network predicts, right or wrong. Removed pixels become their image's mean
# colour.

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
attributions = {s.name: saco.attribute(s, saco.EXPLAINERS, steps=steps, random=False) for s in subjects}
run.save(saco.accuracies(subjects), "networks")
Markdown(saco.introduced(subjects, recipe, recorded("saco/relations", "networks")))

# %% mystnb={"figure": {"caption": "Five test images and what the ten explainers call relevant for the predicted class (brighter is more relevant; each map has its own scale). Maps of attention are made of patches, enlarged to pixels. Integrated Gradients, LRP and Conservative LRP score the pixels one by one.", "name": "saco-maps"}, "image": {"alt": "Five rows of pictures: a photograph and ten maps of relevance, one for each explainer."}} tags=["hide-input"]
subject, shown = subjects[0], min(5, images)
size = tuple(subject.x.shape[-2:])
columns = {"image": None, **attributions[subject.name]}
figure, grid = plt.subplots(shown, len(columns), figsize=(8.2, 0.82 * shown + 0.9), squeeze=False)
low, high = subject.x.amin((1, 2, 3), keepdim=True), subject.x.amax((1, 2, 3), keepdim=True)
photographs = ((subject.x - low) / (high - low)).permute(0, 2, 3, 1).cpu()
for column, (name, maps) in zip(grid.T, columns.items(), strict=True):
    for i, axes in enumerate(column):
        if maps is None:
            axes.imshow(photographs[i])
        else:
            of = maps[i].view(size).cpu()
            axes.imshow(of, cmap="magma", vmin=of.quantile(0.01).item(), vmax=of.quantile(0.99).item())
        axes.set(xticks=[], yticks=[])
        sns.despine(ax=axes, left=True, bottom=True)
    column[0].set_title(name, rotation=55, ha="left", va="bottom", fontsize="small", fontweight="normal", x=0.1)
figure.subplots_adjust(0, 0, 0.97, 0.72, wspace=0.06, hspace=0.06)
plt.close(figure)
figure

# %% [markdown]
# ## Five numbers for each explanation
#
# **SaCo** cuts the pixels into groups by their score, removes each group alone, and asks whether groups with higher scores
# cost the prediction more. The other four remove 0, 10, …, 100 % of the pixels cumulatively: **AUC** is the area under
# the share of images that keep their class, **AOPC** the mean loss of probability, **LOdds** the mean change of the
# log-odds, all with the most relevant pixels first; **Comp.** (comprehensiveness) is the mean loss of probability with the
# least relevant first. SaCo and AOPC are better when higher, the other three when lower.

# %% tags=["hide-input"]
scores = pd.concat([saco.measure(s, attributions[s.name], groups=groups) for s in subjects], ignore_index=True)
run.save(scores, "scores")
relations = saco.relations(scores, resamples=resamples, seed=seed)
run.save(relations, "relations")
undefined = scores[scores["value"].isna()].groupby("explainer", sort=False).size()
Markdown(
    f"That makes {scores['image'].nunique()} images × {len(saco.EXPLAINERS)} explainers × {len(saco.METRICS)} metrics"
    + (f" × {len(subjects)} networks" if len(subjects) > 1 else "")
    + ". "
    + (
        "SaCo does not exist where all groups are equally salient, and these are left out: "
        + ", ".join(f"{name} {count} images" for name, count in undefined.items())
        + "."
        if len(undefined)
        else "Every explanation has all five."
    )
)

# %% [markdown]
# ## Do they rank alike?
#
# There are two ways to ask. *Which images are explained well?* Hold the explainer fixed, rank the images by each metric,
# compare the rankings, and average over the explainers. This is the paper's question. *Which explainer explains an image
# well?* Hold the image fixed, rank the explainers, average over the images. This is what a metric is used for. In both,
# every metric is turned so that higher is better.

# %% mystnb={"figure": {"caption": "Rank correlation (Spearman) between the metrics, averaged over what is held fixed. Bars: SaCo with each of the other four, and the mean of the six pairs without SaCo (grey). Lines: 95 % bootstrap intervals over the images. Dashed: the numbers that the paper prints, for its own question and its own networks.", "name": "saco-relations"}, "image": {"alt": "Two bar charts: rank correlation of SaCo with AUC, AOPC, LOdds and Comp., and the mean among those four; left for rankings of images, right for rankings of explainers."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(8, 3.5), sharey=True)
titles = {"images": "ranking the images", "explainers": "ranking the explainers"}
paper = published.load("saco_metric_correlation").set_index("quantity")["value"]
summary = []
for axes, (ranked, title) in zip(panels, titles.items(), strict=True):
    of = relations[relations["ranked"] == ranked]
    ours, others = of[of["one"] == "SaCo"], of[of["one"] != "SaCo"]
    summary += [
        (title, "SaCo vs each existing metric (rank correlation), lowest", ours["mean"].min()),
        (title, "SaCo vs each existing metric (rank correlation), highest", ours["mean"].max()),
        (title, "mean correlation among the existing metrics", others["mean"].mean()),
    ]
    at = range(len(ours))
    axes.bar(at, ours["mean"], color=figures.COLOURS["SaCo"], width=0.65)
    axes.vlines(at, ours["low"], ours["high"], color="0.2", linewidth=1.5)
    axes.bar(len(ours) + 0.3, others["mean"].mean(), color="0.65", width=0.65)
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.set_xticks([*at, len(ours) + 0.3], [*ours["other"], "mean of\nthe others"])
    axes.set(
        title=title,
        ylabel="rank correlation" if ranked == "images" else "",
        ylim=(min(-0.3, ours["low"].min() - 0.05), 1),
    )
    axes.grid(axis="x", visible=False)
panels[0].hlines(paper.iloc[:2], -0.4, 3.4, color="0.35", linestyle="--", linewidth=1)
panels[0].hlines(paper.iloc[2], 3.9, 4.7, color="0.35", linestyle="--", linewidth=1)
figures.show(figure)

# %% [markdown]
# *Published* are the paper's numbers, averages over ViT-B, ViT-L and DeiT-B on CIFAR-10, CIFAR-100 and ImageNet: not the
# same experiment.

# %% tags=["hide-input"]
summary = pd.DataFrame(summary, columns=["ranking", "quantity", "mean"])
run.save(summary, "summary")
kept = recorded("saco/relations", "summary")
sources = {
    "published": paper.rename("mean").reset_index().assign(ranking=titles["images"]),
    "recorded": kept.frame if kept else None,
    "this build": summary,
}
tables.styled(tables.side_by_side(sources, rows=["quantity"], columns=["ranking"], order=list(titles.values())))

# %% mystnb={"figure": {"caption": "All pairs. Left: images ranked, right: explainers ranked. AOPC and LOdds see the same curve in two units, so they rank nearly alike.", "name": "saco-relations-all"}, "image": {"alt": "Two heat maps of rank correlations between SaCo, AUC, AOPC, LOdds and Comp."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(8, 3.2))
for axes, (ranked, title) in zip(panels, titles.items(), strict=True):
    of = relations[relations["ranked"] == ranked]
    square = pd.concat([of, of.rename(columns={"one": "other", "other": "one"})]).pivot(
        index="one", columns="other", values="mean"
    )
    square = square.reindex(index=list(saco.METRICS), columns=list(saco.METRICS))
    sns.heatmap(square, annot=True, fmt=".2f", cmap="vlag", vmin=-1, vmax=1, linewidths=1.5, cbar=False, ax=axes)
    axes.set(title=title, xlabel="", ylabel="")
    axes.tick_params(axis="y", rotation=0)
    axes.grid(False)
figures.show(figure)

# %% tags=["hide-input"]
means = scores.groupby(["metric", "network", "image"])["value"].transform("mean")
by_image = means.groupby(scores["metric"]).var() / scores.groupby("metric")["value"].var()
same = relations.query("ranked == 'images' and one == 'AOPC' and other == 'LOdds'")["mean"].item()
orders = relations.query("ranked == 'images' and one == 'AOPC' and other == 'Comp.'")["mean"].item()
explainers = relations[(relations["ranked"] == "explainers") & (relations["one"] == "SaCo")]
Markdown(
    f"What stands behind the numbers? AOPC and LOdds are one curve read in two units: over the images they correlate at "
    f"{same:+.2f}. And a cumulative metric depends on the image, whoever explains it: some images are easier to break than "
    "others. The image alone accounts for "
    + ", ".join(f"{by_image[metric]:.0%} of the variance of {metric}" for metric in ("AUC", "AOPC", "LOdds", "Comp."))
    + f", and for {by_image['SaCo']:.0%} of that of SaCo. Where an image is easy to break, AOPC is high, which counts as a "
    "good explanation, and Comp. is high, which counts as a bad one. So over the images these two, which differ only in the "
    f"order of removal, may even disagree: they correlate at {orders:+.2f}. Ranking the explainers of each image takes the "
    "image out. Then SaCo correlates with "
    f"the other four at {explainers['mean'].min():+.2f} to {explainers['mean'].max():+.2f}."
)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(saco.RELATIONS, {"relations": relations})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
