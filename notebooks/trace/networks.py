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
# # Other networks, and photographs
#
# *Does TRACE win on real photographs and larger networks, too?* The paper's Table 1 has six networks of ImageNet. Here are a
# ResNet-9 on CIFAR-10 and a network that others trained on ImageNet, on photographs of ImageNet. A search on a large network
# is dear: the `quick` profile takes a few photographs, 16 patches and a few proposals after the greedy order. The `long`
# profile takes more photographs and three sizes of that network, the `paper` profile the paper's networks and 5000 proposals.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "cifar10"
resnet_width = 16  # of ResNet-9
epochs = 3  # of training
rate = 0.01  # peak learning rate
decay = 1e-5
schedule = "cycle"
train_limit = None  # training images; None: all
images = 16  # recognised test images
patch = 8  # side of a patch of these, in pixels
steps = 150  # of annealing on ResNet-9
photographs = "imagenet-foolbox"  # or imagenet-folder
photographs_path = None  # of imagenet-folder: the folder that they lie in
photographs_judged = 3  # recognised photographs; 200 in the paper
networks = ["efficientnet-lite0"]  # pretrained on ImageNet
references = ["zero"]  # or mean, blur
photograph_patch = 56  # side of a patch of these: 16 patches; 32 (49 patches) in the paper
photograph_steps = 12  # of annealing on them
rise_samples = 60  # masks per image; 4000 in RISE's paper
ep_steps = 6  # of extremal perturbation; its authors take 800
ep_areas = [0.1, 0.2, 0.4]  # its areas, shares of the image
integration_steps = 8  # of Integrated Gradients
timed_steps = 3  # of annealing, to time the search on the first of these networks
plain_steps = 1  # of the plain search, on one photograph
timed_patch = 32  # side of a patch then: 49 patches
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import functools

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

import faithlab.references
from faithlab import engine, search, segments
from faithlab.explainers import explain
from faithlab.metrics import trajectory
from faithlab.study import claims, figures, published, tables, trace
from faithlab.study.results import Run, recorded
from faithlab.zoo import datasets, pretrained
from faithlab.zoo.training import Recipe, trained

figures.theme()
run = Run("trace/networks", globals())

# %% [markdown]
# ## Searches and explainers on each network
#
# Images are the first that the network recognises. The score is the probability of their class. Annealing starts at
# TRACE-Greedy-Le, and keeps the best order that it has seen.


# %% tags=["hide-input"]
def stand_in(reference, side):
    """A reference by name; the blur's width grows with the image."""
    if reference == "blur":
        return functools.partial(faithlab.references.blur, sigma=side / 8)
    return getattr(faithlab.references, reference)


def examine(name, network, images, count, patch, steps, reference, others=None):
    """Scores of TRACE and the explainers on one network, their attainable shares, the images and the orders."""
    device = next(network.parameters()).device
    fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
    chosen = trace.recognised(network, images, count, rows=16)
    x, y = chosen.model_inputs().to(device), chosen.labels.to(device)
    patches = segments.patches(*x.shape[-2:], patch)
    score = engine.scorer(network, x, y, segments=patches, reference=stand_in(reference, x.shape[-1]), precision=fast)
    features = segments.count(patches)
    greedy = search.greedy(score, len(x), features, objective="Le", device=device)
    best = trace.trace(score, len(x), features, steps=steps, start=greedy.order, seed=seed, progress=True)
    attributions = trace.explained(
        network,
        x,
        y,
        patches,
        options={
            "RISE": {"samples": rise_samples, "precision": fast, "seed": seed},
            "EP": {"steps": ep_steps, "areas": ep_areas},
            "IG": {"steps": integration_steps},
            "IBA": {"seed": seed, "samples": 4, "examples": others},
        },
        rows=16 if x.shape[-1] < 64 else 4,
    )
    orders = {n: trajectory.trajectory(a) for n, a in attributions.items()}
    orders = {"TRACE-p": best.order, "Greedy-Le": greedy.order} | orders
    about = {"network": name, "reference": reference}
    scores = trace.scores(score, orders).assign(**about)
    explainers = scores[scores["explainer"] != "TRACE-p"]
    shares = trace.shares(explainers, best.value, seed=seed).assign(**about, patches=features)
    return scores, shares, chosen, orders


examined = {}
small = trained(
    Recipe(
        data=data,
        model="resnet9",
        model_options={"width": resnet_width},
        epochs=epochs,
        rate=rate,
        decay=decay,
        schedule=schedule,
        limit=train_limit,
        augment=True,
        precision=precision,
        seed=seed,
    )
)
device = next(small.parameters()).device
test = datasets.load(data, "test")
others = test.model_inputs(slice(-500, None)).to(device)  # which say what IBA's noise is like
for reference in references:
    examined["ResNet-9", reference] = examine("ResNet-9", small, test, images, patch, steps, reference, others)
folder = {"path": photographs_path} if photographs == "imagenet-folder" else {}
pictures = datasets.load(photographs, "test", **folder)
for name in networks:
    network = pretrained.load(name).to(device)
    for reference in references:
        examined[name, reference] = examine(
            name, network, pictures, photographs_judged, photograph_patch, photograph_steps, reference
        )
scores = pd.concat([found[0] for found in examined.values()], ignore_index=True)
shares = pd.concat([found[1] for found in examined.values()], ignore_index=True)
run.save(scores, "scores")
run.save(shares, "shares")
sizes = shares.groupby("network", sort=False)[["count", "patches"]].first()
Markdown("\n".join(f"- *{n}*: {row['count']} images, {row['patches']} patches" for n, row in sizes.iterrows()))

# %% [markdown]
# ## Beside Table 1
#
# Sums over other numbers of patches cannot be compared. So the table has the part of TRACE-p that each row reaches, as a
# ratio of means. *Published* are the mean and the standard deviation over the paper's six networks, zero reference.
# *Lite* are EfficientNets of that name, on photographs; the recorded run has more of both.

# %% tags=["hide-input"]
paper = published.load("trace_deletion").query("table == 1 and reference == 'zero'")
own = paper[paper["explainer"] == "TRACE-p"].set_index("model")["lerf_minus_morf_probability_auc"]
paper = paper.assign(share=paper["lerf_minus_morf_probability_auc"] / paper["model"].map(own))
printed = paper.groupby("explainer")["share"].agg(["mean", "std"]).reset_index().assign(network="six networks")


def parts(scores):
    """The part of TRACE-p's score that each explainer reaches, by network and reference."""
    means = scores.groupby(["network", "reference", "explainer"], sort=False)["difference"].mean()
    part = (means / means.xs("TRACE-p", level="explainer")).rename("mean").reset_index()
    several = len(part["reference"].unique()) > 1
    name = part["network"].str.replace("efficientnet-lite", "Lite")
    return part.assign(network=name + ", " + part["reference"] if several else name)


kept = recorded("trace/networks", "scores")
sources = {"published": printed, "recorded": parts(kept.frame) if kept else None, "this build": parts(scores)}
order = ["six networks", "TRACE-p", "TRACE-y", "Greedy-Le", *trace.EXPLAINERS, "Random"]
tables.styled(tables.side_by_side(sources, rows=["explainer"], columns=["network"], order=order))

# %% mystnb={"figure": {"caption": "Attainable share of each explainer, mean over the images and the middle 95 % of resampled means. With a few photographs the intervals are wide, and say so.", "name": "tr-networks"}, "image": {"alt": "Dot plot with intervals: explainers against the attainable share, one colour per network."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.2, 4))
names = shares.groupby("explainer")["mean"].mean().sort_values(ascending=False).index.tolist()
cells = list(examined)
for number, (name, reference) in enumerate(cells):
    part = shares[(shares["network"] == name) & (shares["reference"] == reference)].set_index("explainer").loc[names]
    offset = 0.5 * ((number + 0.5) / len(cells) - 0.5)
    axes.errorbar(
        part["mean"],
        [i + offset for i in range(len(names))],
        xerr=[part["mean"] - part["low"], part["high"] - part["mean"]],
        fmt="os^vD*"[number % 6],
        capsize=2,
        markersize=5,
        label=name if len(references) == 1 else f"{name}, {reference}",
    )
axes.set_yticks(range(len(names)), names)
axes.invert_yaxis()
axes.set(xlabel="attainable share")
figures.mark(axes, 0, "chance")
figures.mark(axes, 1, "TRACE")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.02), ncols=3, fontsize="small")
figures.show(figure)

# %% [markdown]
# ## What TRACE sees in photographs

# %% mystnb={"figure": {"caption": "Photographs, and what TRACE, TRACE-Greedy-Le and two explainers call relevant in them (rank squared, brighter is more relevant).", "name": "tr-photographs"}, "image": {"alt": "Grid of pictures: photographs, and maps of TRACE, of greedy search, of Grad-CAM and of Integrated Gradients."}} tags=["hide-input"]
_, _, chosen, orders = examined[networks[0], references[0]]
shown = min(4, len(chosen))
rows = ["TRACE-p", "Greedy-Le", "GradCAM", "IG"]
figure, grid = plt.subplots(1 + len(rows), shown, figsize=(1.5 * shown, 7.6), squeeze=False)
for i in range(shown):
    grid[0, i].imshow(chosen.inputs[i].permute(1, 2, 0))
    name = chosen.classes[int(chosen.labels[i])].split(",")[0]
    grid[0, i].set_title(name, fontsize="small", fontweight="normal")
    for axes, row in zip(grid[1:, i], rows, strict=True):
        heat = search.heat_map(orders[row][i : i + 1]).cpu()
        axes.imshow(heat.view(chosen.inputs.shape[-1] // photograph_patch, -1), cmap="magma")
for axes, row in zip(grid[:, 0], ["image", *rows], strict=True):
    axes.set_ylabel(row)
for axes in grid.flat:
    axes.set(xticks=[], yticks=[])
    sns.despine(ax=axes, left=True, bottom=True)
figures.show(figure)

# %% [markdown]
# ## How fast it is on photographs
#
# As on [an earlier page](../trace/explainers): a plain search in float32, one photograph after the other, the engine for
# probabilities (*p*) and for logits (*y*), and bare forwards. All start at Grad-CAM's order.

# %% tags=["hide-input"]
network = pretrained.load(networks[0]).to(device)
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
x, y = chosen.model_inputs().to(device), chosen.labels.to(device)
cells = segments.patches(*x.shape[-2:], timed_patch).to(device)
speed = trace.speed(
    network,
    x,
    y,
    cells,
    trajectory.trajectory(explain("gradcam", network, x, y, cells, rows=4)),
    steps=timed_steps,
    plain_images=1,
    plain_steps=plain_steps,
    precision=fast,
    rows=8,
    seed=seed,
).assign(network=networks[0], patches=segments.count(cells))
run.save(speed, "speed")
text = f"{networks[0]}, {segments.count(cells)} patches, {str(fast).removeprefix('torch.')}."
kept_speed = recorded("trace/networks", "speed")
if kept_speed and kept_speed.profile != profile:
    at = kept_speed.frame.set_index(["search", "readout"])
    text += (
        f" In the recorded run (`{kept_speed.profile}`), with {at.loc[('engine', 'p'), 'images']} photographs at once, the engine "
        f"makes {at.loc[('engine', 'p'), 'times_plain']:.1f} proposals (probabilities) and "
        f"{at.loc[('engine', 'y'), 'times_plain']:.1f} (logits) in the time of one of the plain search."
    )
Markdown(text + " This build:")

# %% tags=["hide-input"]
shown = pd.DataFrame(
    {
        "search": speed["search"],
        "readout": speed["readout"],
        "photographs": speed["images"],
        "forwards per proposal": speed["forwards_per_proposal"].map("{:.0f}".format),
        "proposals per second": speed["proposals_per_second"].map("{:.2f}".format),
        "times the plain search": speed["times_plain"].map("{:.1f}".format),
    }
)
tables.prose(shown)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(trace.NETWORKS, {"scores": scores})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
