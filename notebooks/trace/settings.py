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
# # Which settings to trust
#
# *A deletion metric is a family: probability or logit, one reference or another, large patches or pixels, most or least
# relevant first.* A study of them with some explainers says as much about the explainers. Here the optimum of each setting
# stands for the setting: what TRACE finds is what that metric wants.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "cifar10"
width = 8  # of the network, three convolutions of stride 2
epochs = 3  # of training
train_limit = None  # training images; None: all
images = 16  # recognised test images; the paper has 200
patch = 4  # side of a patch in pixels
steps = 400  # of annealing, through the paper's temperatures; the paper takes 5000
sigma = 4.0  # of the blurred reference, in pixels
patch_sides = [8, 4]  # for MoRF, LeRF and their difference; 2 is dear
rise_samples = 400  # masks per image; 4000 in RISE's paper
ep_steps = 40  # of extremal perturbation; its authors take 800
integration_steps = 32
deletion_images = 200  # recognised test images for random deletion
deletion_draws = 2  # random orders per image
deletion_sides = [8, 4, 2, 1]  # sides of the patches
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import functools

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch

from faithlab import engine, masks, references, search, segments
from faithlab.explainers import explain
from faithlab.metrics import trajectory
from faithlab.study import claims, figures, published, tables, trace
from faithlab.study.results import Run, recorded
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe, trained

figures.theme()
run = Run("trace/settings", globals())
REFERENCES = {
    "zero": references.zero,
    "mean": references.mean,
    "blur": functools.partial(references.blur, sigma=sigma),
}

# %% tags=["hide-input"]
network = trained(
    Recipe(
        data=data,
        model="strided",
        model_options={"width": width},
        epochs=epochs,
        rate=0.01,
        decay=1e-5,
        limit=train_limit,
        augment=True,
        precision=precision,
        seed=seed,
    )
)
device = next(network.parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
test = datasets.load(data, "test")
many = trace.recognised(network, test, max(images, deletion_images))
chosen = many.take(slice(images))
x, y = chosen.model_inputs().to(device), chosen.labels.to(device)
patches = segments.patches(*x.shape[-2:], patch)
features = segments.count(patches)

# %% [markdown]
# ## What explainers say about references (Figure 1)
#
# First the usual way. Three explainers are tested pixel by pixel, with three references. Whether the reference matters
# depends on whom one asks: that is the paper's case for asking nobody.

# %% tags=["hide-input"]
pixels = segments.pixels(*x.shape[-2:])
shown = {"GradCAM": "gradcam", "IG": "integrated-gradients", "Gradient": "saliency"}
single = {name: explain(ours, network, x, y, pixels) for name, ours in shown.items()}
share = torch.arange(0, 21) / 20
sizes = masks.counts(share, pixels.numel())
rows = []
for reference, stand_in in REFERENCES.items():
    score = engine.scorer(network, x, y, segments=pixels, reference=stand_in, precision=fast)
    for name, attribution in single.items():
        order = trajectory.trajectory(attribution)
        for criterion, path in (("MoRF", order), ("LeRF", order.flip(1))):
            left = score(masks.remove_top(path, sizes)).mean(0)
            rows += [(name, reference, criterion, *point) for point in zip(share.tolist(), left.tolist(), strict=True)]
columns = ["explainer", "reference", "criterion", "removed", "probability"]
by_pixel = pd.DataFrame(rows, columns=columns)
run.save(by_pixel, "by_pixel")

# %% mystnb={"figure": {"caption": "Mean probability of the class when pixels are removed, by three explainers and with three references. Solid: least relevant first. Dashed: most relevant first.", "name": "tr-by-pixel"}, "image": {"alt": "Three line charts, one per explainer: share of removed pixels against the probability; a colour for each reference, solid for LeRF and dashed for MoRF."}} tags=["hide-input"]
grid = sns.relplot(
    by_pixel,
    x="removed",
    y="probability",
    hue="reference",
    style="criterion",
    style_order=["LeRF", "MoRF"],
    col="explainer",
    kind="line",
    height=2.8,
    aspect=0.95,
)
grid.set_titles("{col_name}").set_axis_labels("share of pixels removed", "probability of the class")
plt.close(grid.figure)
grid.figure

# %% [markdown]
# ## Probability against logit, and the reference (Table 1)
#
# TRACE-p maximises LeRF − MoRF of the probability, TRACE-y that of the logit. Both, and the explainers, are then measured
# by both. The explanations are the same under all references.

# %% tags=["hide-input"]
attributions = trace.explained(
    network,
    x,
    y,
    patches,
    options={
        "RISE": {"samples": rise_samples, "precision": fast, "seed": seed},
        "EP": {"steps": ep_steps},
        "IG": {"steps": integration_steps},
        # Other images say what the noise of its bottleneck is like.
        "IBA": {"seed": seed, "examples": test.model_inputs(slice(-500, None)).to(device)},
    },
)
orders = {name: trajectory.trajectory(a) for name, a in attributions.items()}
rows, shares = [], []
for reference, stand_in in REFERENCES.items():
    score = {
        readout: engine.scorer(network, x, y, segments=patches, reference=stand_in, readout=read, precision=fast)
        for readout, read in trace.READOUTS.items()
    }
    best = {
        f"TRACE-{readout}": trace.trace(s, len(x), features, steps=steps, readout=readout, seed=seed, device=device)
        for readout, s in score.items()
    }
    for readout, s in score.items():
        measured = trace.scores(s, {name: b.order for name, b in best.items()} | orders)
        rows.append(measured.assign(reference=reference, measured=readout))
    by_p = rows[-2]  # measured by probabilities
    explainers = by_p[~by_p["explainer"].str.startswith("TRACE")]
    shares.append(trace.shares(explainers, best["TRACE-p"].value, seed=seed).assign(reference=reference))
everything = pd.concat(rows, ignore_index=True)
scores = everything[everything["measured"] == "p"].drop(columns="measured")
run.save(everything, "scores")
shares = pd.concat(shares, ignore_index=True)
run.save(shares, "shares")
both = everything[everything["explainer"].str.startswith("TRACE")]

# %% [markdown]
# LeRF − MoRF of the probability. *Published* are the means of the paper's six ImageNet networks and, behind ±, their
# standard deviation; *this build* is the mean over the images. The number of patches differs, so compare the order of
# the rows and how a row changes with the reference.

# %% tags=["hide-input"]
paper = published.load("trace_deletion").query("table == 1")
paper = paper.groupby(["reference", "explainer"])["lerf_minus_morf_probability_auc"].agg(["mean", "std"]).reset_index()
paper["reference"] = paper["reference"].replace({"blurring": "blur"})


def by_reference(everything, measured="p"):
    """LeRF - MoRF measured by probabilities or logits, means over the images."""
    chosen = everything[everything["measured"] == measured]
    return chosen.groupby(["reference", "explainer"], sort=False)["difference"].agg(["mean"]).reset_index()


kept = recorded("trace/settings", "scores")
sources = {
    "published": paper,
    "recorded": by_reference(kept.frame) if kept else None,
    "this build": by_reference(everything),
}
first = ["TRACE-y", "TRACE-p", *trace.EXPLAINERS, "Random", *REFERENCES]
tables.styled(tables.side_by_side(sources, rows=["explainer"], columns=["reference"], order=first))

# %% [markdown]
# The same with the logit as the measure (the paper has it in its appendix):

# %% tags=["hide-input"]
tables.styled(
    tables.side_by_side(
        {"recorded": by_reference(kept.frame, "y") if kept else None, "this build": by_reference(everything, "y")},
        rows=["explainer"],
        columns=["reference"],
        order=first,
    )
)

# %% mystnb={"figure": {"caption": "Attainable share of the explainers under three references, mean over the images and the middle 95 % of resampled means. A reference that hardly mattered would leave the points of a row together.", "name": "tr-references"}, "image": {"alt": "Dot plot: eight explainers and a random order against the attainable share, three points each for the zero, mean and blurred reference."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.2, 4))
names = shares.groupby("explainer")["mean"].mean().sort_values(ascending=False).index.tolist()
for offset, (reference, part) in zip((-0.22, 0, 0.22), shares.groupby("reference", sort=False), strict=True):
    part = part.set_index("explainer").loc[names]
    axes.errorbar(
        part["mean"],
        [i + offset for i in range(len(names))],
        xerr=[part["mean"] - part["low"], part["high"] - part["mean"]],
        fmt={"zero": "o", "mean": "s", "blur": "^"}[reference],
        capsize=2,
        markersize=5,
        label=reference,
    )
axes.set_yticks(range(len(names)), names)
axes.invert_yaxis()
axes.set(xlabel="attainable share")
figures.mark(axes, 0, "chance")
axes.legend(title="reference", loc="lower right")
figures.show(figure)

# %% [markdown]
# ## MoRF, LeRF, and both (Figure 3)
#
# TRACE-Mo wants the answer to fall when its first patches go. TRACE-Le wants it to stay when its last patches go. Each is
# also measured by the other criterion. On the scale below 1 is the best order found for that criterion, and 0 a random
# order. An order that names what matters should do well by both.

# %% tags=["hide-input"]
rows, maps = [], {}
for side in patch_sides:
    cells = segments.patches(*x.shape[-2:], side)
    count = segments.count(cells)
    score = engine.scorer(network, x, y, segments=cells, precision=fast)
    found = {
        f"TRACE-{objective}": trace.trace(
            score, len(x), count, objective=objective, steps=steps, seed=seed, device=device
        ).order
        for objective in search.OBJECTIVES
    }
    maps[side] = found
    greedy = {
        f"Greedy-{objective}": search.greedy(score, len(x), count, objective=objective, device=device).order
        for objective in ("Mo", "Le")
    }
    orders_here = found | greedy
    orders_here["Random"] = search.random_orders(torch.arange(len(x), device=device), count, seed=seed)[:, 0]
    table = trace.scores(score, orders_here).groupby("explainer")[["morf", "lerf"]].mean()
    # The mean over all orders is the same for both criteria; a random order estimates it twice.
    chance = table.loc["Random"].mean()
    for name in (*found, *greedy):
        for criterion, column, best in (("MoRF", "morf", table["morf"].min()), ("LeRF", "lerf", table["lerf"].max())):
            value = table.loc[name, column]
            rows.append((count, name, criterion, value, (value - chance) / (best - chance)))
criteria = pd.DataFrame(rows, columns=["patches", "trace", "criterion", "value", "share"])
run.save(criteria, "criteria")

# %% mystnb={"figure": {"caption": "What each search reaches under each criterion: 1 is the best order found for that criterion, 0 a random one. Columns: the number of patches.", "name": "tr-criteria"}, "image": {"alt": "Bar charts, one per number of patches: five searches, a bar for MoRF and a bar for LeRF each."}} tags=["hide-input"]
grid = sns.catplot(
    criteria.assign(patches="t = " + criteria["patches"].astype(str)),
    x="share",
    y="trace",
    hue="criterion",
    col="patches",
    kind="bar",
    height=2.9,
    aspect=1.25,
)
grid.set_titles("{col_name}").set_axis_labels("part of the best", "")
for axes in grid.axes.flat:
    axes.axvline(0, color="0.4", linewidth=1)
plt.close(grid.figure)
grid.figure

# %% mystnb={"figure": {"caption": "What the three objectives call relevant in the same images, coarse patches above and fine ones below (rank squared, brighter is more relevant).", "name": "tr-objectives"}, "image": {"alt": "Grid of small pictures: photographs in the first column, then the maps of TRACE-Le-Mo, TRACE-Le and TRACE-Mo for coarse and for fine patches."}} tags=["hide-input"]
shown = min(3, len(x))
columns = [(name, side) for side in patch_sides for name in ("TRACE-Le-Mo", "TRACE-Le", "TRACE-Mo")]
figure, grid = plt.subplots(shown, 1 + len(columns), figsize=(1.15 * (1 + len(columns)), 1.35 * shown), squeeze=False)
for i in range(shown):
    grid[i, 0].imshow(chosen.inputs[i].permute(1, 2, 0))
    for axes, (name, side) in zip(grid[i, 1:], columns, strict=True):
        heat = search.heat_map(maps[side][name][i : i + 1]).view(x.shape[-1] // side, -1).cpu()
        axes.imshow(heat, cmap="magma")
        if i == 0:
            axes.set_title(f"{name.removeprefix('TRACE-')}\nt = {heat.numel()}", fontsize="small", fontweight="normal")
for axes in grid.flat:
    axes.set(xticks=[], yticks=[])
    sns.despine(ax=axes, left=True, bottom=True)
figures.show(figure)

# %% [markdown]
# ## Random deletion: what the patch size does (Figure 4)
#
# Patches are removed at random. Nothing is explained, so what the answer loses is the price of strange images: the smaller
# the patches, the stranger an image that lacks as many pixels. The blurred reference keeps images more natural, but deletes
# less. Where the two references agree, features are deleted and the image is not too strange: so the paper argues.

# %% tags=["hide-input"]
many = many.take(slice(deletion_images))
xs, ys = many.model_inputs().to(device), many.labels.to(device)
coarsest = segments.count(segments.patches(*xs.shape[-2:], max(deletion_sides)))
removed = torch.arange(coarsest + 1) / coarsest  # shares that every size of patch can have
rows = []
for side in deletion_sides:
    cells = segments.patches(*xs.shape[-2:], side)
    count = segments.count(cells)
    identity = torch.arange(len(xs), device=device)
    random = search.random_orders(identity, count, seed=seed, count=deletion_draws)  # [B, N, F]
    sizes = masks.counts(removed, count)
    for reference in ("zero", "blur"):
        score = engine.scorer(network, xs, ys, segments=cells, reference=REFERENCES[reference], precision=fast)
        left = sum(score(masks.remove_top(order, sizes)).mean(0) for order in random.unbind(1)) / deletion_draws
        rows += [(side, reference, *point) for point in zip(removed.double().tolist(), left.tolist(), strict=True)]
deletion = pd.DataFrame(rows, columns=["patch", "reference", "removed", "probability"])
run.save(deletion, "random_deletion")

# %% mystnb={"figure": {"caption": "Mean probability of the class when patches are removed at random, for several sides of the patches in pixels, under the zero reference, the blurred one, and their difference.", "name": "tr-random-deletion"}, "image": {"alt": "Three line charts: share of removed patches against the probability with the zero reference, with the blurred reference, and the difference; one line for each patch side."}} tags=["hide-input"]
wide = deletion.pivot(index=["patch", "removed"], columns="reference", values="probability").reset_index()
wide["difference"] = wide["blur"] - wide["zero"]
figure, grid = plt.subplots(1, 3, figsize=(9, 3.2))
for axes, (column, title) in zip(
    grid, {"zero": "zero", "blur": "blur", "difference": "blur minus zero"}.items(), strict=True
):
    sns.lineplot(
        wide,
        x="removed",
        y=column,
        hue="patch",
        style="patch",
        palette="viridis",
        ax=axes,
        legend=column == "difference",
    )
    axes.set(xlabel="share of patches removed", ylabel="probability of the class", title=title)
grid[2].set(ylabel="difference")
grid[2].legend(title="side, pixels", loc="center left", bbox_to_anchor=(1.02, 0.5))
grid[1].sharey(grid[0])
figures.show(figure)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(
    trace.SETTINGS,
    {"scores": scores, "readouts": both, "criteria": criteria, "random_deletion": deletion},
)
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
