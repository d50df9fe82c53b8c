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
# # Two classes, and regions that are exact
#
# *Does the metric still work where there is only one other class?* The paper's second task has two classes: CT slices with
# or without a contrast agent, of LIDC-IDRI {cite:p}`armato2011lidc` and LNDb {cite:p}`pedrosa2019lndb`, with the region that a
# clinician drew. Here it is digits, up to 4 or from 5, and the region is the digit itself, pixel by pixel. This page is the counterpart of the paper's Tables 2 and 4, Figures 5 and 7.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "colored-mnist-halves"
data_options = {"share": 0.2, "size": 28, "seed": 0}  # share: of the image that the digit covers
train_options = {"limit": 8000}  # of the training split, beside the above
test_options = {"limit": 1000}  # of the test split
# By name: a network of the zoo, its options, and the layer whose activations Grad-CAM weighs.
architectures = {
    "three layers": ["cnn3", {"width": 16}, "features"],
    "ResNet-9": ["resnet9", {"width": 8}, "features"],
}
epochs = 3
rate = 0.005  # peak learning rate
batch = 64
images = 32  # test images that every network gets right
step = 0.02  # replaced share between two points of a curve; the paper has 0.01
tuning_images = 16  # others, on which the noise of SG is chosen
noises = [0.02, 0.05, 0.1, 0.2, 0.3]  # its candidates, as shares of an image's range
background = 12  # training images for Expected Gradients; the paper has 200
integration_steps = 8  # of Integrated Gradients
smooth_samples = 6  # noisy copies per image in SG and SG²
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, masks, references
from faithlab.study import claims, few_class, figures, published, tables
from faithlab.study.results import Run, recorded
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe, accuracy, trained

figures.theme()
run = Run("few-class-fidelity/digits", globals())

# %% [markdown]
# ## The task
#
# A digit of MNIST in a random colour on black, zoomed until it covers a fixed share of the image. The colour tells nothing,
# and the background is black everywhere. What can tell the class lies in the digit's pixels, and in where they end.

# %% tags=["hide-input"]
recipes = {
    name: Recipe(
        data=data,
        data_options=data_options | train_options,
        model=model,
        model_options=options | {"classes": 2},
        epochs=epochs,
        batch=batch,
        rate=rate,
        precision=precision,
        seed=seed,
    )
    for name, (model, options, _) in architectures.items()
}
networks = {name: trained(recipe) for name, recipe in recipes.items()}
device = next(next(iter(networks.values())).parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
test = datasets.load(data, "test", **data_options, **test_options)
right = {name: accuracy(network, test) for name, network in networks.items()}
both = few_class.all_right(list(networks.values()), test, images + tuning_images)
chosen, tuning = both.take(slice(images)), both.take(slice(images, None))
train = datasets.load(data, "train", **data_options, **train_options)
known = train.model_inputs(torch.linspace(0, len(train) - 1, background).round().long()).to(device)
Markdown(
    "On test images "
    + " and ".join(f"{name} is right on **{value:.1%}**" for name, value in right.items())
    + f". As in the paper only images that every network gets right are used: {images} to judge explainers, and "
    f"{tuning_images} others to choose the noise of SG."
)

# %% [markdown]
# Each image gets its perturbed copy for each network, once, as [](perturbations) tells. The noise of SG and SG² is chosen on
# the other images: the level with the highest fidelity of BP with SG.

# %% tags=["hide-input"]
stand_in, noise, tried = {}, {}, {}
for name, network in networks.items():
    apart = few_class.undecided(network, tuning)
    tried[name] = few_class.noise_levels(
        network, tuning, apart.images, noises, samples=smooth_samples, seed=seed, precision=fast
    )
    noise[name] = tried[name].idxmax()
    stand_in[name] = few_class.undecided(network, chosen)
run.save(pd.concat(tried, names=["network"]).reset_index(), "noise")
Markdown(
    " ".join(
        f"For {name} the noise is {noise[name]:.0%} of an image's range; "
        f"{int(stand_in[name].fallback.sum())} of {images} images have no candidate under Δ."
        for name in networks
    )
)

# %% mystnb={"figure": {"caption": "Four images, their perturbed copies for each network with the probability of the right class, and the region that is known.", "name": "fc-digits-images"}, "image": {"alt": "Rows of small pictures: coloured digits on black, the same digits altered until the network is undecided, and their masks in white."}} tags=["hide-input"]
figure, grid = plt.subplots(2 + len(networks), 4, figsize=(5.6, 1.5 * (2 + len(networks))))
rows = {"image": few_class.intensities(chosen)} | {f"for {name}": p.images for name, p in stand_in.items()}
for row, (name, pictures) in zip(grid, rows.items(), strict=False):
    for axes, picture in zip(row, pictures.cpu(), strict=False):
        # A grey picture has one channel.
        axes.imshow(picture.clamp(0, 1).permute(1, 2, 0).expand(-1, -1, 3))
    row[0].set_ylabel(name, fontsize="x-small")
for (name, network), row in zip(networks.items(), grid[1:], strict=False):
    p = few_class.answer(network, chosen)(stand_in[name].images[:4]).cpu()
    for axes, value in zip(row, p.gather(1, chosen.labels[:4, None])[:, 0], strict=True):
        axes.set_xlabel(f"{value:.2f}", fontsize="x-small")
for axes, mask in zip(grid[-1], chosen.masks, strict=False):
    axes.imshow(mask, cmap="gray")
grid[-1][0].set_ylabel("region", fontsize="x-small")
for axes in grid.flat:
    axes.set(xticks=[], yticks=[])
figures.show(figure)

# %% [markdown]
# ## Explanations
#
# IG(zero) is left out, as in the paper's Table 2: black is both zero and the lowest value, so it would be IG(min). The paper
# left out SG and SG² of Deconvolution and of IG(max) to save time; here they are computed.

# %% tags=["hide-input"]
explainers = [name for name in few_class.EXPLAINERS if name != "IG(zero)"]
maps, scores = {}, []
for name, network in networks.items():
    maps[name] = few_class.explanations(
        network,
        chosen,
        layer=architectures[name][2],
        background=known,
        steps=integration_steps,
        samples=smooth_samples,
        noise=noise[name],
        names=explainers,
        seed=seed,
    )
    stand = references.given(few_class.normalised(stand_in[name].images, chosen))
    score = few_class.scorer(network, chosen, stand, precision=fast)
    scores.append(few_class.scores(score, maps[name], chosen, steps=round(1 / step)).assign(network=name))
scores = pd.concat(scores, ignore_index=True)
run.save(scores, "scores")
summary = few_class.summary(scores)
run.save(summary, "summary")
first = next(iter(networks))
change = engine.agreement(networks[first], chosen.model_inputs().to(device), chosen.labels.to(device), fast)
Markdown(
    f"{len(maps[first])} combinations of explainer and refinement, {images} images, {round(1 / step)} steps in two "
    f"directions. Forwards ran in {str(fast).removeprefix('torch.')}, which moves the followed probability by "
    f"{change['probability']:.4f} on average. {int(summary['missing'].sum())} scores are missing."
)

# %% mystnb={"figure": {"caption": "The maps of the explainers (columns) for one image, without and with refinements (rows). Brighter is more relevant; the outline is the digit's.", "name": "fc-digits-maps"}, "image": {"alt": "Grid of maps of one digit: six explainers, plain, averaged over regions, and smoothed, with the outline of the digit."}} tags=["hide-input"]
plain = [name for name in explainers if name != "Random"]
figure, grid = plt.subplots(4, len(plain), figsize=(8.4, 5.7))
for row, (refinement, label) in zip(grid, few_class.LABELS.items(), strict=True):
    for axes, name in zip(row, plain, strict=True):
        picture = maps[first][name, refinement][0].cpu().view(*chosen.inputs.shape[-2:])
        axes.imshow(picture, cmap="magma", vmax=picture.quantile(0.99).item())
        axes.contour(chosen.masks[0], [0.5], colors="w", linewidths=0.6)
        axes.set(xticks=[], yticks=[])
        sns.despine(ax=axes, left=True, bottom=True)
    row[0].set_ylabel(label, fontsize="small")
for axes, name in zip(grid[0], plain, strict=True):
    axes.set_title(name, fontsize="small", fontweight="normal")
figure.subplots_adjust(wspace=0.06, hspace=0.06)
plt.close(figure)
figure

# %% [markdown]
# ## Fidelity
#
# *Published* is the paper's Table 2, ResNet-50 on CT slices. It is another task with other images: compare the order within a
# column, not the numbers.

# %% tags=["hide-input"]
kept = recorded("few-class-fidelity/digits", "summary")
paper = published.load("fewclass_scores").rename(columns={"value": "mean"})


def table_of(measure, number):
    """The paper's table, the recorded one and this build's, side by side."""
    return few_class.beside(
        {
            "published": paper[(paper["table"] == number) & (paper["model"] == "ResNet-50")],
            "recorded": few_class.of_first_network(kept.frame, measure) if kept else None,
            "this build": few_class.of_first_network(summary, measure),
        }
    )


table_of("fidelity", 2)

# %% mystnb={"figure": {"caption": "Few-class Fidelity of every explainer and refinement over the images (box: middle half, line: median), a panel for each network. The dashed line is the mean of Random.", "name": "fc-digits-fidelity"}, "image": {"alt": "Two panels of box plots of fidelity, one group for each explainer, one box for each refinement, with a dashed line at Random's mean."}} tags=["hide-input"]
few_class.box_plots(scores, "fidelity", "Few-class Fidelity")

# %% tags=["hide-input"]
lines = []
for name, of in summary[summary["measure"] == "fidelity"].groupby("network", sort=False):
    ranked = of[of["explainer"] != "Random"].sort_values("mean", ascending=False)
    text = [
        f"{few_class.named(row.explainer, row.refinement)} ({row.mean:.3f})" for row in ranked.itertuples(name="Row")
    ]
    lines.append(
        f"**{name}**: the best three are {', '.join(text[:3])}, the last one is {text[-1]}. The standard error of a mean is "
        f"about {of['error'].mean():.3f}."
    )
Markdown("\n\n".join(lines))

# %% [markdown]
# ## Why Random need not be the lowest
#
# A random order is not the worst one. Two orders that are known show the range: the digit first, and the background first,
# each with its pixels in random order within. What replaces a background pixel is much like it, so that the second order
# changes little for long under MIF, and takes the digit away at the start of LIF.

# %% tags=["hide-input"]
truth = chosen.masks.flatten(1)
order = maps[first]["Random", "none"].cpu()
inside = truth + order / (2 * order.abs().amax())  # every pixel of the digit stays above those of the background
extremes = {
    ("digit first", "none"): inside,
    ("background first", "none"): order / (2 * order.abs().amax()) - truth.float(),
}
known_orders = []
for name, network in networks.items():
    stand = references.given(few_class.normalised(stand_in[name].images, chosen))
    score = few_class.scorer(network, chosen, stand, precision=fast)
    on_device = {key: attribution.to(device) for key, attribution in extremes.items()}
    found = few_class.scores(score, on_device, chosen, steps=round(1 / step))
    known_orders.append(found.assign(network=name))
known_orders = pd.concat(known_orders, ignore_index=True)
run.save(few_class.summary(known_orders), "extremes")
apart = few_class.above_random(scores)
run.save(apart, "differences")
reached = known_orders.groupby(["network", "explainer"])["fidelity"].mean()
lines = []
for name in networks:
    chance = summary.query("network == @name and explainer == 'Random' and measure == 'fidelity'")["mean"].item()
    lines.append(
        f"**{name}**: digit first {reached[name, 'digit first']:.3f}, Random {chance:.3f}, background first "
        f"{reached[name, 'background first']:.3f}. {few_class.lower(apart[apart['network'] == name])}"
    )
Markdown("\n\n".join(lines))

# %% mystnb={"figure": {"caption": "Of the pixels ranked first, as many as the digit has, the share that is the digit's, against mean fidelity: a point for each explainer, refinement and network. The dashed line is the digit's share of the image, which a random order gets.", "name": "fc-digits-overlap"}, "image": {"alt": "Scatter plot of the share of digit pixels among the first ranked against fidelity, with a dashed vertical line at the share of the digit in the image."}} tags=["hide-input"]
rows = []
for name, of_network in maps.items():
    for (explainer, refinement), attribution in of_network.items():
        ranked = truth.gather(1, masks.order(attribution.cpu()))
        first_ones = torch.arange(truth.shape[1]) < truth.sum(1, keepdim=True)
        hit = (ranked & first_ones).sum(1) / truth.sum(1)
        rows.append((name, explainer, refinement, hit.mean().item()))
overlap = pd.DataFrame(rows, columns=["network", "explainer", "refinement", "overlap"]).merge(
    summary[summary["measure"] == "fidelity"][["network", "explainer", "refinement", "mean"]]
)
run.save(overlap, "overlap")
figure, axes = plt.subplots(figsize=(7.2, 4))
sns.scatterplot(
    overlap,
    x="overlap",
    y="mean",
    hue="explainer",
    style="network",
    hue_order=explainers,
    palette="colorblind",
    s=55,
    ax=axes,
)
figures.mark(axes, truth.double().mean().item(), "digit's share")
axes.set(xlabel="digit's pixels among those ranked first (share)", ylabel="Few-class Fidelity (mean)")
axes.legend(fontsize="x-small", bbox_to_anchor=(1, 1), loc="upper left")
figures.show(figure)

# %% [markdown]
# ## The region
#
# A map is cut at every hundredth of its pixels, and the cut that suits the region best is kept: the Dice coefficient at its
# best. *Published* is the paper's Table 4, ResNet-50.
#
# One row has to be read with care. IG multiplies by the distance from its baseline, so that IG(min) is exactly zero on black
# pixels, whatever the network does. On black it finds the digit without having looked for it.

# %% tags=["hide-input"]
table_of("dice", 4)

# %% mystnb={"figure": {"caption": "Dice coefficient with the digit's pixels, of every explainer and refinement over the images, a panel for each network. The dashed line is the mean of Random.", "name": "fc-digits-dice"}, "image": {"alt": "Two panels of box plots of the Dice coefficient, one group for each explainer, one box for each refinement, with a dashed line at Random's mean."}} tags=["hide-input"]
few_class.box_plots(scores, "dice", "Dice coefficient")

# %% tags=["hide-input"]
share = truth.double().mean().item()
chance = summary[(summary["measure"] == "dice") & (summary["explainer"] == "Random")]["mean"].mean()
theirs = paper[(paper["table"] == 4) & (paper["explainer"] == "Random")]["mean"]
Markdown(
    f"The region covers {share:.0%} of the image. Taking the whole image has a Dice coefficient of "
    f"{2 * share / (1 + share):.2f}, so that no map can have less; Random has {chance:.2f}. In the paper Random has "
    f"{' and '.join(f'{value:.3f}' for value in theirs)}, which is what the whole image has where the region covers "
    f"{(theirs / (2 - theirs)).mean():.0%} of it."
)

# %% [markdown]
# ## Do they agree?

# %% tags=["hide-input"]
per_explainer = few_class.over_images(scores, "dice")
run.save(per_explainer, "alignment")
across = {name: few_class.agreement(of, "fidelity", "dice") for name, of in summary.groupby("network", sort=False)}
printed = {
    model: few_class.agreement(of, "few-class fidelity", "Dice")
    for model, of in paper[paper["table"].isin([2, 4])].groupby("model", sort=False)
}
Markdown(
    "Across explainers and refinements the rank correlation of fidelity and Dice is "
    + ", ".join(f"**{value:+.2f}** ({name})" for name, value in across.items())
    + "; from the numbers that the paper prints it is "
    + ", ".join(f"{value:+.2f} ({name})" for name, value in printed.items())
    + f". Across images, for one explainer and refinement, it is {per_explainer['correlation'].mean():+.2f} on average, "
    f"between {per_explainer['correlation'].min():+.2f} and {per_explainer['correlation'].max():+.2f} "
    f"({int(per_explainer['correlation'].isna().sum())} of {len(per_explainer)} are undefined, because all images score the same)."
)

# %% mystnb={"figure": {"caption": "The first network. Left: mean fidelity against the mean Dice coefficient, a point for each explainer and refinement. Right: the rank correlation of the two over the images, for each of them.", "name": "fc-digits-agreement"}, "image": {"alt": "A scatter plot of fidelity against the Dice coefficient with one marker per explainer, and a heat map of correlations, explainers by refinements."}} tags=["hide-input"]
few_class.agreement_plot(
    summary[summary["network"] == first], per_explainer[per_explainer["network"] == first], "dice", "Dice"
)

# %% [markdown]
# A map may be faithful without covering the digit. A stroke's end, or a gap, can tell 3 from 8; a network that looks only
# there is explained faithfully by a map with few bright pixels, and the Dice coefficient wants them all.

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(few_class.MASKS, {"summary": summary})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
