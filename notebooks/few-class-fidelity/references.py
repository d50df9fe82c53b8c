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
# # Does the stand-in decide the ranking?
#
# *Would black pixels, or a plain blur, have ranked the explainers in the same order?* The paper argues for its perturbed images: they leave the
# network undecided, and they are near the data. But it does not show what they change. Here the same maps of the same images
# are judged with five stand-ins, and the five rankings are compared.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
size = 20  # of the vehicle in its image of 32 x 32 pixels
width = 8  # of ResNet-9 for the vehicles
epochs = 3  # of training, on both tasks
rate = 0.01  # peak learning rate, vehicles
digit_share = 0.2  # of the image that the digit covers
digit_limit = 8000  # training images of digits
digit_width = 16  # of the network for the digits
digit_rate = 0.005
train_limit = None  # training images of vehicles; None: all
images = 32  # of each task
step = 0.04  # replaced share between two points of a curve
refinements = ["none", "SG"]  # of the paper's four
noise = 0.1  # of SG, as a share of an image's range
background = 8  # training images for Expected Gradients
integration_steps = 6  # of Integrated Gradients
smooth_samples = 4  # noisy copies per image in SG
familiar = 500  # training images that say what is familiar
neighbours = 10  # the distance to the k-th nearest of them
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, masks, references, stats
from faithlab.metrics import few_class as metric
from faithlab.metrics import novelty
from faithlab.references import perturbed
from faithlab.study import few_class, figures, tables
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe, trained

figures.theme()
run = Run("few-class-fidelity/references", globals())

# %% [markdown]
# ## Two tasks, five stand-ins
#
# The networks and images are those of [](perturbations): vehicles in three classes, digits in two. A removed pixel is replaced
# by black, by white, by the image's mean colour, by a blur of fixed width, or by the optimised image of the search.

# %% tags=["hide-input"]
digits = {"share": digit_share, "size": 28, "seed": seed}
recipes = {
    "vehicles": Recipe(
        data="cifar10-vehicles",
        data_options={"size": size, "seed": seed},
        model="resnet9",
        model_options={"width": width, "classes": 3},
        epochs=epochs,
        batch=64,
        rate=rate,
        decay=1e-5,
        limit=train_limit,
        precision=precision,
        seed=seed,
    ),
    "digits": Recipe(
        data="colored-mnist-halves",
        data_options=digits | {"limit": digit_limit},
        model="cnn3",
        model_options={"width": digit_width, "classes": 2},
        epochs=epochs,
        batch=64,
        rate=digit_rate,
        precision=precision,
        seed=seed,
    ),
}
networks = {task: trained(recipe) for task, recipe in recipes.items()}
device = next(networks["vehicles"].parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
tests = {
    "vehicles": datasets.load("cifar10-vehicles", "test", size=size, seed=seed),
    "digits": datasets.load("colored-mnist-halves", "test", **digits, limit=1000),
}
chosen = {task: few_class.all_right([networks[task]], tests[task], images) for task in networks}
shown = {}
for task, network in networks.items():
    image = few_class.intensities(chosen[task]).to(device)
    shown[task] = few_class.stand_ins(image, few_class.undecided(network, chosen[task]).images)

# %% [markdown]
# ## The same maps under each stand-in
#
# *Fidelity* is equation 1. *Lead* is how far it lifts the average explainer above a random order. *U* says how decided the
# network is about the image that is replaced as a whole: 0 is undecided. *Can be told* is the chance that a half replaced
# image is farther from the training data than a clean one, in the order of BP: 0.5 means that it cannot be told.

# %% tags=["hide-input"]
scores, rows, curves = [], [], []
for task, network in networks.items():
    data = chosen[task]
    train = datasets.load(recipes[task].data, "train", **recipes[task].data_options)
    spread = torch.linspace(0, len(train) - 1, background).round().long()
    maps = few_class.explanations(
        network,
        data,
        layer="features",
        background=train.model_inputs(spread).to(device),
        steps=integration_steps,
        samples=smooth_samples,
        noise=noise,
        # Black is zero and the lowest value of a digit's image, so that IG(zero) would be IG(min).
        names=[n for n in few_class.EXPLAINERS if not (task == "digits" and n == "IG(zero)")],
        refinements=refinements,
        seed=seed,
    )
    far = few_class.unfamiliar(network, train, familiar, neighbours)
    image = few_class.intensities(data).to(device)
    clean = far(image, data)
    # [images, 1, H, W] the half of the pixels that BP ranks first
    half = masks.place(masks.order(maps["BP", "none"])) < image[0, 0].numel() // 2
    half = half.view(len(image), 1, *image.shape[-2:])
    for name, stand_in in shown[task].items():
        score = few_class.scorer(network, data, references.given(few_class.normalised(stand_in, data)), precision=fast)
        found = few_class.scores(score, maps, data, steps=round(1 / step))
        scores.append(found.assign(task=task, reference=name))
        mean = found.groupby(["explainer", "refinement"])["fidelity"].mean()
        rows.append(
            {
                "task": task,
                "reference": name,
                "fidelity": mean.drop(index="Random", level="explainer").mean(),
                "random": mean.loc["Random"].item(),
                "lead": mean.drop(index="Random", level="explainer").mean() - mean.loc["Random"].item(),
                "uncertainty": perturbed.uncertainty(few_class.answer(network, data)(stand_in)).mean().item(),
                "detectability": novelty.detectability(clean, far(torch.where(half, stand_in, image), data)),
            }
        )
        for sign, direction in ((1, "most important first"), (-1, "least important first")):
            line = metric.curve(score, sign * maps["BP", "none"], steps=round(1 / step)).mean(0).cpu()
            share = torch.linspace(0, 1, len(line))
            curves.append(
                pd.DataFrame(
                    {"task": task, "reference": name, "direction": direction, "share": share, "probability": line}
                )
            )
scores, curves, compared = pd.concat(scores, ignore_index=True), pd.concat(curves), pd.DataFrame(rows)
run.save(scores, "scores")
run.save(curves, "curves")
run.save(compared, "references")
labels = {
    "fidelity": "fidelity",
    "random": "of Random",
    "lead": "lead",
    "uncertainty": "U",
    "detectability": "can be told",
}
table = compared.pivot(index="reference", columns="task", values=list(labels)).swaplevel(axis=1)
table = table.reindex(
    index=list(shown["digits"]), columns=[(task, column) for task in networks for column in labels]
).rename(columns=labels, level=1)
table.columns.names = [None, None]
tables.styled(table.map("{:.2f}".format).rename_axis(None))

# %% mystnb={"figure": {"caption": "The probability of the class while more and more pixels are replaced in the order of BP, the mean over the images: a panel for each task and direction, a line for each stand-in. The dashed line is 1/N, where an undecided network ends.", "name": "fc-references-curves"}, "image": {"alt": "Four line charts of replaced share against probability; five lines each, one per stand-in, which end at different heights around a dashed line."}} tags=["hide-input"]
figure, grid = plt.subplots(2, 2, figsize=(8, 5.6), sharex=True, sharey=True)
for row, task in zip(grid, networks, strict=True):
    for axes, (direction, of) in zip(row, curves[curves["task"] == task].groupby("direction", sort=False), strict=True):
        sns.lineplot(of, x="share", y="probability", hue="reference", style="reference", ax=axes)
        figures.mark(axes, 1 / len(chosen[task].classes), "1/N", axis="y")
        axes.set(title=f"{task}, {direction}", xlabel="replaced pixels (share)", ylabel="probability", ylim=(0, 1.02))
        if axes is not grid[0, 0]:
            axes.get_legend().remove()
grid[0, 0].legend(title="", fontsize="x-small")
figures.show(figure)

# %% [markdown]
# ## Five rankings
#
# Each stand-in ranks the same combinations of explainer and refinement. The rank correlation of two rankings is 1 where both
# agree. The last row is the alignment with what is known: the box of the vehicle (IoU), the pixels of the digit (Dice).

# %% mystnb={"figure": {"caption": "Rank correlation (Spearman) between the rankings of the explainers under each two stand-ins, and with the alignment to the known box or region.", "name": "fc-references-rankings"}, "image": {"alt": "Two heat maps of rank correlations, one per task: five stand-ins and the alignment measure against each other."}} tags=["hide-input"]
agreement = []
figure, grid = plt.subplots(1, 2, figsize=(9, 3.9))
for axes, (task, measure) in zip(grid, {"vehicles": "iou", "digits": "dice"}.items(), strict=True):
    of = scores[scores["task"] == task]
    means = of.pivot_table(index=["explainer", "refinement"], columns="reference", values="fidelity", sort=False)
    means["alignment"] = of[of["reference"] == "optimised"].groupby(["explainer", "refinement"])[measure].mean()
    names = list(means)
    values = torch.from_numpy(means.to_numpy().T.copy())
    ranks = torch.stack([stats.spearman(values, other.expand_as(values)) for other in values])
    ranks = pd.DataFrame(ranks.numpy(), index=names, columns=names)
    agreement.append(ranks.rename_axis("reference").reset_index().melt("reference", var_name="other").assign(task=task))
    sns.heatmap(ranks, annot=True, fmt=".2f", cmap="vlag_r", vmin=-1, vmax=1, cbar=False, ax=axes)
    axes.set(title=task, xlabel="", ylabel="")
agreement = pd.concat(agreement, ignore_index=True)
run.save(agreement, "agreement")
figures.show(figure)

# %% tags=["hide-input"]
lines = []
for task, of in agreement.groupby("task", sort=False):
    pairs = of[(of["reference"] < of["other"]) & (of["reference"] != "alignment") & (of["other"] != "alignment")]
    lowest, highest = (pairs.loc[getattr(pairs["value"], f"idx{end}")()] for end in ("min", "max"))
    aligned = of[(of["reference"] == "alignment") & (of["other"] != "alignment")].sort_values("value", ascending=False)
    best = scores[scores["task"] == task].groupby(["reference", "explainer", "refinement"])["fidelity"].mean()
    first = {reference: best[reference].idxmax() for reference in shown[task]}
    lines.append(
        f"**{task}**: the rankings agree by {pairs['value'].mean():.2f} on average, the least with {lowest['value']:.2f} "
        f"({lowest['reference']} and {lowest['other']}), the most with {highest['value']:.2f} ({highest['reference']} and "
        f"{highest['other']}). With the alignment agree: "
        + ", ".join(f"{row.other} {row.value:.2f}" for row in aligned.itertuples())
        + ". First is "
        + ", ".join(
            f"{name}{'' if refinement == 'none' else ' + ' + few_class.LABELS[refinement]} ({reference})"
            for reference, (name, refinement) in first.items()
        )
        + "."
    )
Markdown("\n\n".join(lines).replace(" -0", " −0"))

# %% [markdown]
# ## Equation 1 or the plain difference?
#
# Earlier work takes the area between the two curves, $A_\mathrm{LIF} - A_\mathrm{MIF}$. Equation 1 differs from it in one
# thing: it charges for an area under MIF that is below $1/N$. As long as $A_\mathrm{MIF} \ge 1/N$,
#
# $$
# \mathrm{Fid} = 1 - \frac{1 - A_\mathrm{LIF} + A_\mathrm{MIF} - \frac1N}{1 + \frac{N-1}N}
#  = \frac{A_\mathrm{LIF} - A_\mathrm{MIF} + 1}{2 - \frac1N} ,
# $$
#
# and the two rank any explanations alike.

# %% tags=["hide-input"]
scores["difference"] = scores["lif"] - scores["mif"]
scores["below"] = scores["mif"] < 1 / scores["task"].map({task: len(of.classes) for task, of in chosen.items()})
rows = []
for (task, name), of in scores.groupby(["task", "reference"], sort=False):
    means = of.groupby(["explainer", "refinement"])[["fidelity", "difference"]].mean()
    pair = (torch.from_numpy(means[column].to_numpy(copy=True)) for column in means)
    rows.append(
        {
            "task": task,
            "reference": name,
            "A_MIF below 1/N": of["below"].mean(),
            "correlation of rankings": stats.spearman(*pair).item(),
        }
    )
plain = pd.DataFrame(rows)
run.save(plain, "difference")
table = plain.pivot(index="reference", columns="task").swaplevel(axis=1)
table = table.reindex(
    index=list(shown["digits"]),
    columns=[(task, column) for task in networks for column in ("A_MIF below 1/N", "correlation of rankings")],
)
table.columns.names = [None, None]
tables.styled(table.map("{:.2f}".format).rename_axis(None))

# %% tags=["hide-input"]
lines = [
    f"for the {row['task']} under {row['reference']} {row['A_MIF below 1/N']:.0%}"
    for _, row in plain.loc[plain.groupby("task", sort=False)["A_MIF below 1/N"].idxmax()].iterrows()
]
optimised = plain[plain["reference"] == "optimised"]
Markdown(
    "The share of maps whose A_MIF is below 1/N is highest "
    + " and ".join(lines)
    + "; under the optimised stand-in it is "
    + " and ".join(f"{row['A_MIF below 1/N']:.0%} ({row['task']})" for _, row in optimised.iterrows())
    + ". Where it is 0 equation 1 is the plain difference in other units."
)

# %% tags=["hide-input"]
run.finish()
