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
# # Vehicles: fidelity and localisation
#
# *Which explainer is the most faithful, and does it also point at the right place?* Seven explainers with three refinements
# each are ranked by Few-class Fidelity and by how well they find the box that the object lies in: the paper's Tables 1 and
# 3, Figures 4 and 6, on photographs of vehicles in three classes.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "cifar10-vehicles"
data_options = {"size": 20, "seed": 0}  # of the vehicle in its image of 32 x 32 pixels
# By name: a network of the zoo, its options, and the layer whose activations Grad-CAM weighs.
architectures = {"ResNet-9": ["resnet9", {"width": 8}, "features"]}
epochs = 3
rate = 0.01  # peak learning rate
batch = 64
train_limit = None  # training images; None: all
images = 32  # test images that every network gets right
step = 0.02  # replaced share between two points of a curve; the paper has 0.01
tuning_images = 16  # others, on which the noise of SG is chosen
noises = [0.02, 0.05, 0.1, 0.2, 0.3]  # its candidates, as shares of an image's range
background = 12  # training images for Expected Gradients; the paper has 200
integration_steps = 8  # of Integrated Gradients
smooth_samples = 6  # noisy copies per image in SG and SG²
pretrained = "efficientnet-lite0"
photographs = "imagenet-foolbox"
photographs_options = {}  # with imagenet-folder: {"path": "..."}
photographs_limit = 2  # vehicles among the photographs
photographs_step = 0.05
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, references
from faithlab.explainers import explain, find
from faithlab.metrics import alignment
from faithlab.metrics import few_class as metric
from faithlab.study import claims, few_class, figures, published, tables
from faithlab.study.results import Run, recorded
from faithlab.zoo import datasets, models, vehicles
from faithlab.zoo import pretrained as zoo
from faithlab.zoo.training import Recipe, accuracy, trained

figures.theme()
run = Run("few-class-fidelity/natural-images", globals())
refinements = few_class.LABELS

# %% [markdown]
# ## The task
#
# The paper sorts ImageNet's vehicles into private ones, two-wheelers, and trucks and services. CIFAR-10 has airplanes,
# automobiles, ships and trucks, so the classes here are air, road and water, of equal size. And it has no boxes. So each
# vehicle is pasted, somewhat smaller, at a random place of an animal's photograph. Only the pasted square can tell the
# class, because the animal is drawn without a look at it. The box is not what an annotator thought, it is right by
# construction.

# %% tags=["hide-input"]
recipes = {
    name: Recipe(
        data=data,
        data_options=data_options,
        model=model,
        model_options=options | {"classes": 3},
        epochs=epochs,
        batch=batch,
        rate=rate,
        decay=1e-5,
        limit=train_limit,
        precision=precision,
        seed=seed,
    )
    for name, (model, options, _) in architectures.items()
}
networks = {name: trained(recipe) for name, recipe in recipes.items()}
device = next(next(iter(networks.values())).parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
test = datasets.load(data, "test", **data_options)
right = {name: accuracy(network, test) for name, network in networks.items()}
both = few_class.all_right(list(networks.values()), test, images + tuning_images)
chosen, tuning = both.take(slice(images)), both.take(slice(images, None))
train = datasets.load(data, "train", **data_options)
known = train.model_inputs(torch.linspace(0, len(train) - 1, background).round().long()).to(device)
Markdown(
    "On the test set "
    + ", ".join(f"{name} is right on **{value:.1%}**" for name, value in right.items())
    + f". As in the paper only images that every network gets right are used: {images} to judge explainers, and "
    f"{tuning_images} others to choose the noise of SG."
)

# %% [markdown]
# ## Perturbed images, and the noise of SG
#
# Each image gets its perturbed copy once, for all explainers: [](perturbations) tells how. The noise of SG and SG² is
# chosen for each network on the other images, as its authors ask: the candidate with the highest fidelity of BP with SG.

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
fallbacks = {name: int(p.fallback.sum()) for name, p in stand_in.items()}
Markdown(
    " ".join(
        f"For {name} the chosen noise is {noise[name]:.0%} of an image's range (fidelity "
        + ", ".join(f"{value:.3f} at {level:.0%}" for level, value in of.items())
        + ")."
        for name, of in tried.items()
    )
    + " The paper found 10 to 20 %. "
    + " ".join(
        f"{count} of {images} images have no candidate under Δ for {name}, and fall back to the least decided one."
        for name, count in fallbacks.items()
    )
)

# %% [markdown]
# ## Explanations
#
# BP is the gradient. The others are Deconvolution {cite:p}`zeiler2014deconvolution`, Expected Gradients (EG)
# {cite:p}`erion2021expected`, Integrated Gradients (IG) {cite:p}`sundararajan2017integrated` from the lowest value, zero and the
# highest value, and Grad-CAM {cite:p}`selvaraju2017gradcam`. A map may be averaged over regions of the image (XRAI), or be the
# mean of the maps of noisy copies (SG) or of their squares (SG²).
#
# All maps are magnitudes: how much a pixel matters, in whichever direction. The paper does not say what it does with
# signs; a section below shows what they change.

# %% tags=["hide-input"]
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
        seed=seed,
    )
    score = few_class.scorer(
        network,
        chosen,
        references.given(few_class.normalised(stand_in[name].images, chosen)),
        precision=fast,
    )
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

# %% mystnb={"figure": {"caption": "Two images with their boxes, and the maps of the explainers (columns) without and with refinements (rows). Brighter is more relevant.", "name": "fc-natural-maps"}, "image": {"alt": "Grid of maps: for two photographs, the maps of seven explainers, plain, averaged over regions, and smoothed."}} tags=["hide-input"]
plain = [name for name in few_class.EXPLAINERS if name != "Random"]
boxes = alignment.boxes(chosen.masks)
figure, grid = plt.subplots(8, len(plain) + 1, figsize=(8.4, 8.6))
for row, (i, refinement) in zip(grid, [(i, r) for i in range(2) for r in refinements], strict=True):
    row[0].axis("off")
    if refinement == "none":
        row[0].imshow(chosen.inputs[i].permute(1, 2, 0))
        top, left, bottom, right_ = boxes[i].tolist()
        row[0].add_patch(plt.Rectangle((left - 0.5, top - 0.5), right_ - left, bottom - top, fill=False, color="w"))
    for axes, name in zip(row[1:], plain, strict=True):
        picture = maps[first][name, refinement][i].cpu().view(*chosen.inputs.shape[-2:])
        axes.imshow(picture, cmap="magma", vmax=picture.quantile(0.99).item())
        axes.set(xticks=[], yticks=[])
        sns.despine(ax=axes, left=True, bottom=True)
    row[1].set_ylabel(refinements[refinement], fontsize="small")
for axes, name in zip(grid[0, 1:], plain, strict=True):
    axes.set_title(name, fontsize="small", fontweight="normal")
figure.subplots_adjust(wspace=0.06, hspace=0.06)
plt.close(figure)
figure

# %% [markdown]
# ## The metric
#
# Pixels are replaced by those of the perturbed image, most important first (MIF) and least important first (LIF). With $A$
# the area under the probability of the class,
#
# $$
# \mathrm{Fid} = 1 - \frac{|1 - A_\mathrm{LIF}| + |\frac1N - A_\mathrm{MIF}|}{1 + \frac{N-1}N} .
# $$
#
# A faithful explanation drops at once to $1/N$ under MIF, and stays at 1 until the end under LIF.

# %% mystnb={"figure": {"caption": "The probability of the class, averaged over the images, as more and more pixels are replaced: three explainers, most important first (solid) and least important first (dashed). All curves share both ends.", "name": "fc-natural-curves"}, "image": {"alt": "Line chart of replaced share against probability: a solid and a dashed curve for each of three explainers, from the same start to the same end."}} tags=["hide-input"]
score = few_class.scorer(
    networks[first],
    chosen,
    references.given(few_class.normalised(stand_in[first].images, chosen)),
    precision=fast,
)
best = summary[(summary["network"] == first) & (summary["measure"] == "fidelity")].set_index(
    ["explainer", "refinement"]
)["mean"]
shown = dict.fromkeys([best.idxmax(), ("BP", "none"), ("Random", "none")])
figure, axes = plt.subplots(figsize=(6.4, 3.6))
for colour, key in zip(sns.color_palette(), shown, strict=False):
    label = key[0] if key[1] == "none" else f"{key[0]} + {refinements[key[1]]}"
    for sign, style in ((1, "-"), (-1, "--")):
        curve = metric.curve(score, sign * maps[first][key], steps=round(1 / step)).mean(0).cpu()
        axes.plot(torch.linspace(0, 1, len(curve)), curve, style, color=colour, label=label if sign == 1 else None)
figures.mark(axes, 1 / len(chosen.classes), "1/N", axis="y")
axes.set(xlabel="replaced pixels (share)", ylabel="probability of the class", ylim=(0, 1))
axes.legend()
figures.show(figure)

# %% [markdown]
# ## Fidelity
#
# *Published* is the paper's Table 1, ResNet-18 on ImageNet's vehicles. It is not the same task, so compare the order within
# a column, not the numbers.

# %% tags=["hide-input"]
kept = recorded("few-class-fidelity/natural-images", "summary")
paper = published.load("fewclass_scores").rename(columns={"value": "mean"})


def table_of(measure, number):
    """The paper's table, the recorded one and this build's, side by side."""
    return few_class.beside(
        {
            "published": paper[(paper["table"] == number) & (paper["model"] == "ResNet-18")],
            "recorded": few_class.of_first_network(kept.frame, measure) if kept else None,
            "this build": few_class.of_first_network(summary, measure),
        }
    )


table_of("fidelity", 1)

# %% mystnb={"figure": {"caption": "Few-class Fidelity of every explainer and refinement over the images (box: middle half, line: median). The dashed line is the mean of Random.", "name": "fc-natural-fidelity"}, "image": {"alt": "Box plots of fidelity, one group for each explainer, one box for each refinement, with a dashed line at Random's mean."}} tags=["hide-input"]

few_class.box_plots(scores, "fidelity", "Few-class Fidelity")

# %% tags=["hide-input"]
of = summary[(summary["network"] == first) & (summary["measure"] == "fidelity")]
chance = of[of["explainer"] == "Random"].iloc[0]
ranked = of[of["explainer"] != "Random"].sort_values("mean", ascending=False)
text = [f"{few_class.named(row.explainer, row.refinement)} ({row.mean:.3f})" for row in ranked.itertuples(name="Row")]
apart = few_class.above_random(scores)
run.save(apart, "differences")
Markdown(
    f"The best three are {', '.join(text[:3])}. The standard error of a mean is about {of['error'].mean():.3f}, so that "
    f"neighbours in this list are not told apart. Random has {chance['mean']:.3f}. "
    f"{few_class.lower(apart[apart['network'] == first])} A random order is not the worst one: a map that ranks what the "
    "network does not need above what it needs is worse."
)

# %% [markdown]
# ## Localisation
#
# A map is made binary at the box's area: as many pixels as the box has. A box is drawn round the largest connected region
# of these, and compared with the true one by intersection over union (IoU). *Published* is the paper's Table 3.

# %% tags=["hide-input"]
table_of("iou", 3)

# %% mystnb={"figure": {"caption": "Intersection over union with the true box, of every explainer and refinement over the images. The dashed line is the mean of Random.", "name": "fc-natural-iou"}, "image": {"alt": "Box plots of intersection over union, one group for each explainer, one box for each refinement, with a dashed line at Random's mean."}} tags=["hide-input"]
few_class.box_plots(scores, "iou", "IoU")

# %% tags=["hide-input"]
printed_random = paper[(paper["table"] == 3) & (paper["explainer"] == "Random")]["mean"]
random_iou = summary.query("network == @first and explainer == 'Random' and measure == 'iou'")["mean"].item()
Markdown(
    f"Random has {random_iou:.3f} here, and {' and '.join(f'{value:.3f}' for value in printed_random)} in the paper. It depends on "
    f"the size of the box, which is {chosen.masks.double().mean():.0%} of the image here: random pixels join into one region that "
    "spans the image only where they are more than about 59 % of it (site percolation)."
)

# %% [markdown]
# ## Do they agree?
#
# The paper concludes that a metric without people could replace one with people, because both rank the explainers alike.
# There are two ways to ask. *Across explainers*: is the explainer with the better fidelity the one with the better IoU?
# *Across images*, for one explainer: is the image that it explains faithfully the one where it finds the box?

# %% tags=["hide-input"]

per_explainer = few_class.over_images(scores, "iou")
run.save(per_explainer, "alignment")
across = {name: few_class.agreement(of, "fidelity", "iou") for name, of in summary.groupby("network", sort=False)}
printed = {
    model: few_class.agreement(of, "few-class fidelity", "object localisation IoU")
    for model, of in paper[paper["table"].isin([1, 3])].groupby("model", sort=False)
}
Markdown(
    "Across explainers and refinements the rank correlation is "
    + ", ".join(f"**{value:+.2f}** ({name})" for name, value in across.items())
    + "; from the numbers that the paper prints it is "
    + ", ".join(f"{value:+.2f} ({name})" for name, value in printed.items())
    + f". Across images, for one explainer and refinement, it is {per_explainer['correlation'].mean():+.2f} on average, "
    f"between {per_explainer['correlation'].min():+.2f} and {per_explainer['correlation'].max():+.2f} "
    f"({int(per_explainer['correlation'].isna().sum())} of {len(per_explainer)} are undefined, because all images score the same)."
)

# %% mystnb={"figure": {"caption": "Left: mean fidelity against mean IoU, a point for each explainer and refinement. Right: the rank correlation of the two over the images, for each explainer and refinement.", "name": "fc-natural-agreement"}, "image": {"alt": "A scatter plot of fidelity against intersection over union with one marker per explainer, and a heat map of correlations, explainers by refinements."}} tags=["hide-input"]
few_class.agreement_plot(
    summary[summary["network"] == first], per_explainer[per_explainer["network"] == first], "iou", "IoU"
)

# %% [markdown]
# ## The sign of an explanation
#
# Gradients, Deconvolution, EG and IG have a sign. If maps are ordered as they come, a pixel that speaks against the class
# counts as the least important one, and LIF replaces it first.

# %% tags=["hide-input"]
own = {
    "expected-gradients": {"background": known, "seed": seed},
    "integrated-gradients": {"steps": integration_steps},
}
signed = {}
x, target = chosen.model_inputs().to(device), chosen.labels.to(device)
for name in ("BP", "Deconv", "EG", "IG(min)", "IG(zero)", "IG(max)"):
    registered, options = few_class.EXPLAINERS[name]
    signed[name, "signed"] = explain(
        find(registered), networks[first], x, target, chosen.features().to(device), **options, **own.get(registered, {})
    )
with_sign = few_class.scores(score, signed, chosen, steps=round(1 / step))
with_sign = few_class.summary(with_sign.assign(network=first))
both_ways = pd.concat([with_sign, summary[(summary["network"] == first) & (summary["refinement"] == "none")]])
both_ways = both_ways[both_ways["explainer"].isin(with_sign["explainer"])].replace(
    {"refinement": {"none": "magnitude"}}
)
run.save(both_ways, "sign")
table = both_ways[both_ways["measure"].isin(["fidelity", "iou"])].pivot(
    index="explainer", columns=["measure", "refinement"], values="mean"
)
columns = [(m, r) for m in ("fidelity", "iou") for r in ("magnitude", "signed")]
table = table.reindex(index=[name for name, _ in signed], columns=columns)
table.columns.names = [None, None]
tables.styled(table.map("{:.3f}".format).rename(columns={"iou": "IoU"}, level=0).rename_axis(None))

# %% tags=["hide-input"]
fid = table["fidelity"]
Markdown(
    f"With signs {(fid['signed'] < chance['mean']).sum()} of {len(fid)} are below Random ({chance['mean']:.3f}), with magnitudes "
    f"{(fid['magnitude'] < chance['mean']).sum()}. In the paper's Table 1 SG and SG² of EG and IG are nearly equal, though a square has no "
    "sign; we read it so that the paper, too, orders magnitudes."
)

# %% [markdown]
# ## Which class is followed
#
# The metric follows the probability of one class. Following the predicted class is the usual choice. The same maps can be
# asked about every class in turn; a class that the image does not show starts near 0 and ends near $1/N$.

# %% tags=["hide-input"]
rows = []
for shift in range(len(chosen.classes)):
    followed = (chosen.labels + shift) % len(chosen.classes)
    own_score = few_class.scorer(
        networks[first],
        chosen,
        references.given(few_class.normalised(stand_in[first].images, chosen)),
        target=followed,
        precision=fast,
    )
    some = {key: maps[first][key] for key in [("BP", "none"), ("GradCAM", "none"), ("Random", "none")]}
    part = few_class.scores(own_score, some, chosen, steps=round(1 / step))
    rows.append(part.assign(followed="the predicted class" if shift == 0 else "another class"))
followed = pd.concat(rows).groupby(["followed", "explainer"], sort=False)["fidelity"].mean().reset_index()
run.save(followed, "classes")
table = followed.pivot(index="followed", columns="explainer", values="fidelity")
table = table.reindex(index=["the predicted class", "another class"], columns=["BP", "GradCAM", "Random"])
table.columns.name = None
tables.styled(table.map("{:.3f}".format).rename_axis(None))

# %% [markdown]
# Equation 1 has its ideal at $A_\mathrm{LIF} = 1$, which a class that starts near 0 cannot reach. It is a measure for the
# class that the network predicts.

# %% [markdown]
# ## A network trained on ImageNet
#
# EfficientNet-Lite0 knows 1000 classes. Its probabilities are summed in the paper's three groups of vehicles, over sixteen
# classes that we chose, and everything above applies. Its activation is ReLU6, which Deconvolution cannot replace, so that
# explainer is left out.

# %% tags=["hide-input"]
everything = datasets.load(photographs, "test", **photographs_options)
groups = vehicles.group_indices()
group_of = {index: number for number, group in enumerate(groups) for index in group}
vehicle = [i for i, label in enumerate(everything.labels.tolist()) if label in group_of][:photographs_limit]
named = everything.take(vehicle)
grouped = models.Grouped(zoo.load(pretrained), groups).to(device).eval()
wide = type(named)(
    named.inputs,
    torch.tensor([group_of[label] for label in named.labels.tolist()]),
    tuple(vehicles.IMAGENET),
    named.mean,
    named.std,
)
wide_stand_in = few_class.undecided(grouped, wide, precision=fast)
some = ["BP", "IG(zero)", "GradCAM", "Random"]
wide_maps = few_class.explanations(
    grouped,
    wide,
    layer="network.features",
    background=wide.model_inputs()[:1].to(device),
    steps=integration_steps,
    samples=smooth_samples,
    noise=noise[first],
    names=some,
    refinements=["none", "XRAI"],
    seed=seed,
)
wide_score = few_class.scorer(
    grouped, wide, references.given(few_class.normalised(wide_stand_in.images, wide)), precision=fast
)
wide_scores = few_class.scores(wide_score, wide_maps, wide, steps=round(1 / photographs_step)).assign(
    network=pretrained
)
run.save(wide_scores, "photographs")
clean = few_class.answer(grouped, wide)(few_class.intensities(wide).to(device))
correct = int((clean.argmax(1).cpu() == wide.labels).sum())
Markdown(
    f"Of the {len(everything)} photographs {len(vehicle)} are used, which show "
    + ", ".join(sorted({everything.classes[label] for label in named.labels.tolist()}))
    + f". The network puts {correct} of them into the right group. The search took "
    f"{wide_stand_in.forwards.double().mean():.0f} of 804 forwards per image, and {int(wide_stand_in.fallback.sum())} fell back. "
    "So few images rank nothing; they show that the method runs at this size. A folder of photographs of your own makes it "
    "an experiment: the parameters `photographs` and `photographs_options`."
)

# %% mystnb={"figure": {"caption": "Photographs of ImageNet, their perturbed copies with the probabilities of the three groups (private, two-wheeled, trucks and services), and three maps with their fidelity.", "name": "fc-natural-photographs"}, "image": {"alt": "One row per photograph: the photograph, its perturbed copy, and the maps of three explainers."}} tags=["hide-input"]
rows_ = min(2, len(wide))
columns = [("BP", "none"), ("BP", "XRAI"), ("GradCAM", "none")]
figure, grid = plt.subplots(rows_, 2 + len(columns), figsize=(8.4, 1.95 * rows_), squeeze=False)
after = few_class.answer(grouped, wide)(wide_stand_in.images)
for i, row in enumerate(grid):
    row[0].imshow(wide.inputs[i].permute(1, 2, 0))
    row[0].set_xlabel(" ".join(f"{p:.2f}" for p in clean[i]), fontsize="x-small")
    row[1].imshow(wide_stand_in.images[i].clamp(0, 1).cpu().permute(1, 2, 0))
    row[1].set_xlabel(" ".join(f"{p:.2f}" for p in after[i]), fontsize="x-small")
    for axes, (name, refinement) in zip(row[2:], columns, strict=True):
        picture = wide_maps[name, refinement][i].cpu().view(*wide.inputs.shape[-2:])
        axes.imshow(picture, cmap="magma", vmax=picture.quantile(0.99).item(), interpolation="nearest", rasterized=True)
        value = wide_scores.query("explainer == @name and refinement == @refinement and image == @i")["fidelity"].item()
        axes.set_xlabel(f"{name}{'' if refinement == 'none' else ' + ' + refinement}: {value:.2f}", fontsize="x-small")
    for axes in row:
        axes.set(xticks=[], yticks=[])
figures.show(figure)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(few_class.NATURAL, {"summary": summary})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
