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
# # Explainers against the optimum
#
# *How good is an explainer, compared with the best that there is?* A deletion score of 14 says nothing. Nobody knows
# whether 15 or 50 could be had. TRACE finds the order that could be had, for each image. This page puts the eight explainers
# of the paper's Table 1 beside it, and gives each its **attainable share**: its LeRF − MoRF as a fraction of what TRACE
# reaches on the same image.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "cifar10"
width = 8  # of the network, three convolutions of stride 2
epochs = 3  # of training
train_limit = None  # training images; None: all
images = 32  # recognised test images; the paper has 200
patch = 4  # side of a patch in pixels: 64 patches; the paper has 49
steps = 5000  # of annealing; as in the paper
timed_width = 16  # of ResNet-9, on which the search is timed, too
timed_steps = 40  # of annealing there
plain_images = 2  # for the plain search that it is timed against
plain_steps = 10
rise_samples = 400  # masks per image; 4000 in RISE's paper
ep_steps = 60  # of extremal perturbation; its authors take 800
integration_steps = 32
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import time

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, search, segments
from faithlab.metrics import trajectory
from faithlab.study import claims, figures, published, tables, trace
from faithlab.study.results import Run, recorded
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe, accuracy, trained

figures.theme()
run = Run("trace/explainers", globals())

# %% [markdown]
# ## The best order of the patches
#
# Annealing exchanges two patches, asks the network about the subsets in between, and keeps the exchange if it helps, or
# sometimes if it does not: the less often, the colder it gets. The chains of all images go in lock-step, so that every
# forward of the network is full. A subset that was asked before is remembered, until a newer one takes its place in memory.
# And a proposal is given up where the subsets that are left could not save it even with probabilities of 0 and 1.


# %% tags=["hide-input"]
def train(model, width):
    """A network trained as every one of this page."""
    options = {"epochs": epochs, "rate": 0.01, "decay": 1e-5, "limit": train_limit, "augment": True}
    about = {"data": data, "model": model, "model_options": {"width": width}, "precision": precision, "seed": seed}
    return trained(Recipe(**about, **options))


network = train("strided", width)
device = next(network.parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
test = datasets.load(data, "test")
chosen = trace.recognised(network, test, images)
x, y = chosen.model_inputs().to(device), chosen.labels.to(device)
patches = segments.patches(*x.shape[-2:], patch)
features = segments.count(patches)
score = engine.scorer(network, x, y, segments=patches, precision=fast)
greedy = {
    objective: search.greedy(score, len(x), features, objective=objective, device=device) for objective in ("Le", "Mo")
}
remembered = search.Remembered(score)
began = time.perf_counter()
best = trace.trace(remembered, len(x), features, steps=steps, start=greedy["Le"].order, seed=seed, progress=True)
wall = time.perf_counter() - began
Markdown(
    f"The network recognises {accuracy(network, test.take(slice(2000))):.1%} of the test images; {len(x)} that it recognises "
    f"are searched, {steps} proposals each, at {features} patches. That took {wall:.0f} s and {remembered.forwards:,} "
    f"forwards; {1 - remembered.forwards / remembered.asked:.0%} of the questions had been asked before."
)

# %% [markdown]
# ## The explainers

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
orders = {"TRACE-p": best.order, "Greedy-Le": greedy["Le"].order, "Greedy-Mo": greedy["Mo"].order} | orders
scores = trace.scores(score, orders)
run.save(scores, "scores")
shares = trace.shares(scores[scores["explainer"] != "TRACE-p"], best.value, seed=seed)
run.save(shares, "shares")

# %% mystnb={"figure": {"caption": "Attainable share: LeRF \u2212 MoRF as a part of what TRACE reaches on the same image. Points are means over the images, lines the middle 95 % of the means of resampled images. 0 is chance, 1 is the best order that was found.", "name": "tr-shares"}, "image": {"alt": "Dot plot with intervals: eight explainers, a random order and two greedy searches against the attainable share."}} tags=["hide-input"]
ranked = shares.sort_values("mean", ascending=False).reset_index(drop=True)
figure, axes = plt.subplots(figsize=(7.2, 3.8))
searched = ranked["explainer"].str.startswith("Greedy")
for kind, colour, part in (
    ("search", sns.color_palette("colorblind")[2], ranked[searched]),
    ("explainer", sns.color_palette("colorblind")[0], ranked[~searched]),
):
    axes.errorbar(
        part["mean"],
        part.index,
        xerr=[part["mean"] - part["low"], part["high"] - part["mean"]],
        fmt="s" if kind == "search" else "o",
        color=colour,
        capsize=3,
        label=kind,
    )
axes.set_yticks(range(len(ranked)), ranked["explainer"])
axes.invert_yaxis()
axes.set(xlabel="attainable share")
figures.mark(axes, 0, "chance")
figures.mark(axes, 1, "TRACE")
axes.legend(loc="lower right", bbox_to_anchor=(0.92, 0))
figures.show(figure)

# %% [markdown]
# ## As the patches go (Figure 2b)

# %% tags=["hide-input"]
rows = []
for name, order in orders.items():
    both = trajectory.curves(score, order)
    rows += [
        pd.DataFrame(
            {
                "explainer": name,
                "direction": direction,
                "removed": range(features + 1),
                "probability": curve.mean(0).tolist(),
            }
        )
        for direction, curve in (("LeRF", both.lerf), ("MoRF", both.morf))
    ]
curves = pd.concat(rows, ignore_index=True)
run.save(curves, "curves")

# %% mystnb={"figure": {"caption": "Mean probability of the class as patches are removed, the least relevant first (LeRF, higher is better) or the most relevant first (MoRF, lower is better). Explainers are thin lines, all in one colour but the best of them.", "name": "tr-curves"}, "image": {"alt": "Two line charts, LeRF and MoRF: number of removed patches against the probability, for TRACE, greedy search, the best explainer, the other explainers and a random order."}} tags=["hide-input"]
leader = ranked[~searched]["explainer"].iloc[0]
looks = {
    "TRACE-p": ("C3", 2.4, "-"),
    "Greedy-Le": ("C1", 1.6, "--"),
    leader: ("C0", 1.8, "-"),
    "Random": ("0.25", 1.4, ":"),
}
figure, grid = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
for axes, direction in zip(grid, ("LeRF", "MoRF"), strict=True):
    for name, part in curves[curves["direction"] == direction].groupby("explainer", sort=False):
        if name == "Greedy-Mo":
            continue
        colour, linewidth, style = looks.get(name, ("0.7", 0.9, "-"))
        label = name if name in looks else "other explainers"
        known = axes.get_legend_handles_labels()[1]
        axes.plot(
            part["removed"],
            part["probability"],
            color=colour,
            linewidth=linewidth,
            linestyle=style,
            label=None if label in known else label,
            zorder=3 if name in looks else 2,
        )
    axes.set(xlabel="removed patches", ylabel="probability of the class", title=direction)
handles, labels = grid[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="upper center", ncols=5, bbox_to_anchor=(0.5, 0.02))
figures.show(figure)

# %% [markdown]
# ## Beside Table 1
#
# LeRF − MoRF of the probability, mean over the images. *Published* are the paper's six ImageNet networks with the zero
# reference, their mean and, behind ±, their standard deviation over the networks. There are 49 patches there and another
# number here, so the sum has another number of terms: compare the order of the rows, and the last column. It is the row
# as a part of the row *TRACE-p*.

# %% tags=["hide-input"]
paper = published.load("trace_deletion").query("table == 1 and reference == 'zero'")
paper = paper.rename(columns={"lerf_minus_morf_probability_auc": "value"})
own = paper[paper["explainer"] == "TRACE-p"].set_index("model")["value"]
paper = paper.assign(share=paper["value"] / paper["model"].map(own))
printed = pd.concat(
    [
        paper.groupby("explainer")["value"].agg(["mean", "std"]).assign(quantity="LeRF − MoRF"),
        paper.groupby("explainer")["share"].agg(["mean", "std"]).assign(quantity="part of TRACE-p"),
    ]
).reset_index()


def summary(scores):
    """LeRF - MoRF of each explainer, and the same as a part of TRACE-p's: means over the images."""
    means = scores.groupby("explainer", sort=False)["difference"].agg(["mean"]).reset_index()
    part = means["mean"] / means.set_index("explainer")["mean"]["TRACE-p"]
    return pd.concat(
        [means.assign(quantity="LeRF − MoRF"), means.assign(mean=part, quantity="part of TRACE-p")], ignore_index=True
    )


kept = recorded("trace/explainers", "scores")
sources = {
    "published": printed,
    "recorded": summary(kept.frame) if kept else None,
    "this build": summary(scores),
}
order = ["TRACE-p", "TRACE-y", "Greedy-Le", "Greedy-Mo", *trace.EXPLAINERS, "Random"]
tables.styled(tables.side_by_side(sources, rows=["explainer"], columns=["quantity"], order=order))

# %% [markdown]
# ## Maps
#
# An order becomes a map by the rank of each patch, squared, so that the first patches stand out.

# %% mystnb={"figure": {"caption": "Images, what TRACE calls relevant (rank squared, brighter is more relevant) and the maps of four explainers at the same patches, as ranks.", "name": "tr-maps"}, "image": {"alt": "Grid of small pictures: six photographs, their TRACE maps and the maps of four explainers."}} tags=["hide-input"]
shown = min(6, len(x))
side = x.shape[-1] // patch
figure, grid = plt.subplots(6, shown, figsize=(1.2 * shown, 7.4), squeeze=False)
for column, i in enumerate(range(shown)):
    grid[0, column].imshow(chosen.inputs[i].permute(1, 2, 0))
    for row, name in enumerate(["TRACE-p", "GradCAM", "RISE", "EBP", "IG"], start=1):
        grid[row, column].imshow(search.heat_map(orders[name][i : i + 1]).view(side, side).cpu(), cmap="magma")
        grid[row, 0].set_ylabel(name)
grid[0, 0].set_ylabel("image")
for axes in grid.flat:
    axes.set(xticks=[], yticks=[])
    sns.despine(ax=axes, left=True, bottom=True)
figures.show(figure)

# %% [markdown]
# ## How fast it is
#
# The plain search takes one image after the other, in float32, and asks about all subsets of an order again at every
# proposal: *one by one*, as the sums are written, or *plain*, in one forward. The engine asks only about those that changed,
# for all images at once, in the precision that the processor is fast in. Of a probability (*p*) it stops asking when a
# proposal cannot be taken any more. A logit (*y*) has no highest value, so that everything is asked. The *floor* makes as many
# bare forwards, with nothing else done. *Whole search* is the one at the top of this page; the others run through the same
# temperatures in another number of steps. How much the engine gains depends on the network and on the processor: two thirds of the
# forwards fall away anywhere, the rest is layout, precision, full batches, memory, and how soon a proposal is hopeless. In a
# longer search there is more to remember, and more proposals are hopeless.

# %% tags=["hide-input"]
larger = train("resnet9", timed_width)
on_larger = engine.scorer(larger, x, y, segments=patches, precision=fast)
start = search.greedy(on_larger, len(x), features, objective="Le", device=device).order
speeds = {
    "the network above": (network, greedy["Le"].order, 10),  # ten times the steps, each a tenth of ResNet-9's
    "ResNet-9": (larger, start, 1),
}
speed = pd.concat(
    [
        trace.speed(
            timed,
            x,
            y,
            patches.to(device),
            begin,
            steps=more * timed_steps,
            plain_images=plain_images,
            plain_steps=more * plain_steps,
            precision=fast,
            seed=seed,
        ).assign(network=name)
        for name, (timed, begin, more) in speeds.items()
    ],
    ignore_index=True,
)
whole = {
    "search": "whole search",
    "readout": "p",
    "images": len(x),
    "forwards_per_proposal": remembered.forwards / (steps * len(x)),
    "proposals_per_second": steps * len(x) / wall,
    "network": "the network above",
}
at = speed.set_index(["network", "search", "readout"])["proposals_per_second"]
plain = at["the network above", "plain", "p"]
whole["times_plain"] = whole["proposals_per_second"] / plain
speed = pd.concat([speed, pd.DataFrame([whole])], ignore_index=True).sort_values(
    "network", kind="stable", ascending=False
)
run.save(speed, "speed")
shown = pd.DataFrame(
    {
        "network": speed["network"],
        "search": speed["search"],
        "readout": speed["readout"],
        "forwards per proposal": speed["forwards_per_proposal"].map("{:.0f}".format),
        "proposals per second": speed["proposals_per_second"].map("{:,.0f}".format),
        "times the plain search": speed["times_plain"].map("{:.1f}".format),
    }
)
tables.prose(shown)


# %% tags=["hide-input"]
def described(speed):
    """For each network: times the floor, and proposals in the time of one of the plain searches; p and y."""
    at = speed.set_index(["network", "search", "readout"])["proposals_per_second"]
    lines = []
    for name in speeds:
        asked, floor, plain, single = (at[name, search] for search in ("engine", "floor", "plain", "one by one"))
        lines.append(
            f"- {name}: {floor['p'] / asked['p']:.2f} times its floor for probabilities, {floor['y'] / asked['y']:.2f} times for "
            f"logits; **{asked['p'] / plain['p']:.1f}** and **{asked['y'] / plain['p']:.1f}** proposals in the time of one of the "
            f"plain search, {asked['p'] / single['p']:.0f} and {asked['y'] / single['p']:.0f} in that of one that asks one by one"
        )
    return "\n".join(lines)


kept_speed = recorded("trace/explainers", "speed")
text = (
    f"In this build, with {timed_steps} steps on ResNet-9 of width {timed_width} and ten times as many on the other network, in "
    f"{str(fast).removeprefix('torch.')}, the engine takes\n\n{described(speed)}\n"
)
if kept_speed and kept_speed.profile != profile:
    given = kept_speed.provenance["parameters"]
    text += f"\nIn the recorded run (`{kept_speed.profile}`), with {given['timed_steps']} steps in place of {timed_steps}, it takes\n\n"
    text += described(kept_speed.frame)
Markdown(text)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(trace.EXPLAINERS_CLAIMS, {"scores": scores, "curves": curves})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
