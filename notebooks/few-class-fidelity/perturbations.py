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
# # An image that leaves the model undecided
#
# *What should stand in for a removed pixel?* Black, say. But a black image is not an empty answer: the network has never
# seen one and may be sure that it shows a ship. Few-class Fidelity looks for a better stand-in. For each image it makes 804
# altered copies, and takes the one that is near the image and leaves the network undecided between its classes. This page
# follows that search (the paper's Figures 1 and 3) and makes it cheaper.

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
images = 24  # of each task; every one is searched in full
background = 500  # training images that say what is familiar
neighbours = 10  # the distance to the k-th nearest of them
precision = "bfloat16"  # of training; the search is always in float32
seed = 0

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import draws
from faithlab.metrics import novelty
from faithlab.references import perturbed
from faithlab.study import claims, few_class, figures, tables
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe, accuracy, trained

figures.theme()
run = Run("few-class-fidelity/perturbations", globals())

# %% [markdown]
# ## Two tasks
#
# **Vehicles**, three classes: air, road and water. Vehicles of CIFAR-10 are pasted, somewhat smaller, at a random place of
# an animal's photograph. The animal says nothing about the class. **Digits**, two classes: is the digit of colored MNIST
# up to 4, or from 5? The paper has photographs of vehicles, and CT scans with and without a contrast agent.

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
tests = {
    "vehicles": datasets.load("cifar10-vehicles", "test", size=size, seed=seed),
    "digits": datasets.load("colored-mnist-halves", "test", **digits, limit=1000),
}
right = {task: accuracy(networks[task], tests[task]) for task in networks}
chosen = {task: few_class.all_right([networks[task]], tests[task], images) for task in networks}
Markdown(
    f"The networks recognise **{right['vehicles']:.1%}** of the vehicles and **{right['digits']:.1%}** of the digits they "
    f"were not trained on. As in the paper only images are used that the network gets right, {images} of each task."
)

# %% mystnb={"figure": {"caption": "Six images of each task. The networks must name the vehicle, or say whether the digit is up to 4 or from 5.", "name": "fc-perturbations-tasks"}, "image": {"alt": "Two rows of six small pictures: photographs of animals with a smaller photograph of a vehicle in them, and coloured digits on black."}} tags=["hide-input"]
figure, grid = plt.subplots(2, 6, figsize=(7.2, 2.9))
for row, data in zip(grid, chosen.values(), strict=True):
    for axes, picture, label in zip(row, data.inputs, data.labels.tolist(), strict=False):
        axes.imshow(picture.permute(1, 2, 0))
        axes.set_title(data.classes[label], fontsize="small", fontweight="normal")
        axes.axis("off")
figures.show(figure)

# %% [markdown]
# ## The candidates
#
# A candidate is a Gaussian blur, with an operation before or after it, and an adjustment at the end. That makes 33 chains;
# with 12 to 80 widths of the blur each they are 804 candidates. The paper names these parts and totals, but neither all
# operations nor the widths. The table is our choice; $m$ is the mean of each colour channel.

# %% tags=["hide-input"]
candidates = pd.DataFrame(perturbed.CANDIDATES, index=pd.Index(range(804), name="candidate"))
candidates["blur"] = perturbed.WIDTHS[candidates["width"]]
candidates["same_as"] = perturbed.ORIGINAL
run.save(candidates, "candidates")
formula = {
    "none": "–",
    "square": "x²",
    "root": "√x",
    "difference": "|x − m|",
    "product": "m x",
    "quotient": "x / m",
}
different = candidates["same_as"] == candidates.index
kinds = candidates.assign(different=different, chain=candidates["adjustment"]).groupby(
    ["operation", "place"], sort=False
)
listing = pd.DataFrame(
    {
        "chains": kinds["adjustment"].nunique(),
        "widths each": kinds.size() // kinds["adjustment"].nunique(),
        "candidates": kinds.size(),
        "different": kinds["different"].sum(),
    }
)
listing.loc[("all", ""), :] = listing.sum()
shown = listing.astype(int).astype(str).rename(index=lambda name: formula.get(name, name), level="operation")
shown.loc[("all", ""), "widths each"] = ""
tables.styled(shown)

# %% tags=["hide-input"]
fewer = different.sum()
whole = candidates.groupby(["operation", "place", "adjustment"]).ngroups
left = candidates[different].groupby(["operation", "place", "adjustment"]).ngroups
Markdown(
    f"The widths go from {perturbed.WIDTHS[0]:.0%} to {perturbed.WIDTHS[-1]:.0%} of the image's side, each a little wider than "
    "the last; a chain with fewer of them takes them evenly from the 80.\n\n"
    f"Not all of these are different. A factor commutes with a blur, and matching the range undoes it. An increasing "
    f"operation after the blur is undone by matching the histogram. So {804 - fewer} of the 804 candidates repeat another "
    f"one on any image, and {left} of {whole} chains are left. The product and the quotient, and that square, are the paper's "
    "own examples: some of its 33 chains must repeat others too."
)

# %% [markdown]
# ## How one is chosen
#
# With $N$ classes and $y_c$ the probability of class $c$ for a candidate $x'$:
#
# $$
# U &= \frac1N \sum_c \left|\tfrac1N - y_c\right| \\
# S &= \frac{\mathrm{MSE}(x, x')}{(\max x - \min x)^2} \\
# P &= U + \frac{10}{\Delta} S, \quad \Delta = \min\bigl(0.1, \tfrac N{40}\bigr)
# $$
#
# $U$ says how decided the network still is, $S$ how far the candidate is from the image. Candidates with $U > \Delta$ are
# discarded; of the others the lowest $P$ wins. Where all are discarded we take the lowest $U$, and count it as a fallback.

# %% tags=["hide-input"]
found, rows = {}, []
for task, network in networks.items():
    data = chosen[task]
    image = few_class.intensities(data)
    device = next(network.parameters()).device
    U, S = (t.cpu() for t in perturbed.scores(image.to(device), few_class.answer(network, data)))
    place, fallback = perturbed.winners(U, S, len(data.classes))
    won = torch.arange(images), place
    full = perturbed.Perturbed(
        images=torch.cat([perturbed.candidates(image[i : i + 1], (int(w),))[0] for i, w in enumerate(place)]),
        candidate=torch.tensor(perturbed.ORIGINAL)[place],
        uncertainty=U[won],
        distance=S[won],
        score=(U + 10 / perturbed.threshold(len(data.classes)) * S)[won],
        fallback=fallback,
        forwards=torch.full((images,), U.shape[1]),
    )
    pruned = few_class.undecided(network, data)
    found[task] = U, S, full
    delta = perturbed.threshold(len(data.classes))
    blurs = torch.tensor((candidates["operation"] == "none").to_numpy(copy=True))
    distinct = torch.tensor(different.to_numpy(copy=True))
    near = ((10 / delta * S < full.score[:, None]) | full.fallback[:, None]) & distinct
    rows.append(
        pd.DataFrame(
            {
                "task": task,
                "image": range(images),
                "candidate": full.candidate,
                "uncertainty": full.uncertainty,
                "distance": full.distance,
                "score": full.score,
                "fallback": full.fallback,
                "blur_fallback": (U[:, blurs] > delta).all(1),
                "forwards_near": near.sum(1),
                "forwards_pruned": pruned.forwards.cpu(),
                "same": pruned.candidate.cpu() == full.candidate,
            }
        )
    )
winners = pd.concat(rows, ignore_index=True).join(candidates, on="candidate")
run.save(winners, "winners")
per_task = winners.groupby("task", sort=False)
fallbacks = per_task["fallback"].agg(["sum", "size"])
lines = [f"{row['sum']} of {row['size']} {task}" for task, row in fallbacks.iterrows()]
Markdown(
    f"The fallback was needed for {' and '.join(lines)}. Two classes are easier than three: with two, a network that goes "
    "from sure of one class to sure of the other must pass the middle; with three it can go round it."
)

# %% mystnb={"figure": {"caption": "The candidates of one image of each task: how far each is from the image, and how decided the network still is. Those above the dashed line are discarded, the star wins.", "name": "fc-perturbations-candidates"}, "image": {"alt": "Two scatter plots of distance against decidedness; grey points above a dashed threshold, coloured points below it, a star at the winner, which lies to the left among the coloured ones."}} tags=["hide-input"]
figure, grid = plt.subplots(1, 2, figsize=(8, 3.6))
samples = {}
for axes, (task, (U, S, full)) in zip(grid, found.items(), strict=True):
    wins = (~full.fallback).nonzero().flatten()
    # The image whose winner is the median one, so that the figure shows nothing special.
    i = wins[full.score[wins].argsort()[len(wins) // 2]].item() if len(wins) else 0
    samples[task] = i
    delta = perturbed.threshold(len(chosen[task].classes))
    kept = U[i] <= delta
    axes.plot(S[i][~kept], U[i][~kept], "o", color="0.75", markersize=3, label="discarded")
    axes.plot(S[i][kept], U[i][kept], "o", color=sns.color_palette()[0], markersize=4, label="kept")
    axes.plot(full.distance[i], full.uncertainty[i], "*", color=sns.color_palette()[3], markersize=15, label="winner")
    figures.mark(axes, delta, "Δ", axis="y")
    axes.set(xscale="log", xlabel="distance S from the image", ylabel="U (0 is undecided)", title=task)
grid[0].legend(loc="center left", fontsize="small")
figures.show(figure)

# %% mystnb={"figure": {"caption": "The two images of the figure above, the winner, and the best candidate of four other chains. Below each: the probabilities of the classes, in the order of the tasks above.", "name": "fc-perturbations-altered"}, "image": {"alt": "Two rows of six pictures: an image, its winning blurred or altered copy, and four other altered copies, each with its class probabilities."}} tags=["hide-input"]
figure, grid = plt.subplots(2, 6, figsize=(8.4, 4.2))
for row, (task, i) in zip(grid, samples.items(), strict=True):
    U, S, full = found[task]
    data, network = chosen[task], networks[task]
    delta = perturbed.threshold(len(data.classes))
    image = few_class.intensities(data.take([i]))
    P = U[i] + 10 / delta * S[i]
    order = torch.where(U[i] <= delta, P, P + 1e6).argsort().tolist()
    named, pictures = {}, {}
    for c in [int(full.candidate[i]), *order]:
        chain = tuple(candidates.loc[perturbed.ORIGINAL[c], ["operation", "place", "adjustment"]])
        if chain not in named and len(named) < 5 and (not named or chain[0] not in {k[0] for k in named}):
            named[chain] = c
    pictures["image"] = image[0]
    for place, (chain, c) in enumerate(named.items()):
        operation, where, adjustment = chain
        name = "blur" if operation == "none" else f"{formula[operation]} {where}"
        label = f"winner:\n{name}" if place == 0 else name
        pictures[label + (f",\n{adjustment}" if adjustment != "none" else "")] = perturbed.candidates(image, (c,))[0, 0]
    answers = few_class.answer(network, data)(torch.stack(list(pictures.values())))
    for axes, (name, picture), probabilities in zip(row, pictures.items(), answers, strict=False):
        axes.imshow(picture.clamp(0, 1).permute(1, 2, 0))
        axes.set_title(name, fontsize="x-small", fontweight="normal")
        axes.set_xlabel(" ".join(f"{p:.2f}" for p in probabilities), fontsize="x-small")
        axes.set(xticks=[], yticks=[])
    for axes in row[len(pictures) :]:
        axes.axis("off")
figures.show(figure)

# %% [markdown]
# ## Which chains win

# %% mystnb={"figure": {"caption": "How often each chain wins, as a share of the images that have a candidate under the threshold. Rows are the operation and its place, columns the adjustment. Chains that repeat others are empty.", "name": "fc-perturbations-chains"}, "image": {"alt": "Two heat maps, one per task, of eleven operations by three adjustments, with the share of images that each chain wins."}} tags=["hide-input"]
won = winners[~winners["fallback"]].copy()
label = {"none": "blur alone"} | {name: formula[name] for name in formula if name != "none"}
won["chain"] = won["operation"].map(label) + won["place"].map({"": "", "before": " before", "after": " after"})
names = [label[o] + {"": "", "before": " before", "after": " after"}[p] for o, p in listing.index[:-1]]
figure, grid = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True)
for axes, task in zip(grid, networks, strict=True):
    counts = won[won["task"] == task].groupby(["chain", "adjustment"]).size().unstack(fill_value=0)
    counts = counts.reindex(index=names, columns=["none", "range", "histogram"], fill_value=0)
    shares = counts / max(1, counts.to_numpy().sum())
    sns.heatmap(
        shares,
        annot=shares.map(lambda v: f"{v:.0%}" if v else ""),
        fmt="",
        cmap="Blues",
        vmin=0,
        vmax=0.4,
        cbar=False,
        ax=axes,
    )
    axes.set(title=f"{task} ({len(won[won['task'] == task])} images)", xlabel="adjustment", ylabel="")
figures.show(figure)

# %% tags=["hide-input"]
alone = per_task[["fallback", "blur_fallback"]].mean()
Markdown(
    " ".join(
        f"With blur alone {row['blur_fallback']:.0%} of the {task} would have no candidate under Δ; with all chains it is "
        f"{row['fallback']:.0%}."
        for task, row in alone.iterrows()
    )
)

# %% [markdown]
# ## The same winner with fewer forwards
#
# The paper calls its search slow: 804 forwards for every image. Three facts save most of them.
#
# 1. Candidates that repeat others need no forward of their own.
# 2. $S$ needs no forward, and $P \ge 10 S / \Delta$. Visited from near to far, a candidate whose $S$ alone is worse than the
#    best $P$ so far cannot win, nor can any behind it.
# 3. Along a chain the answers change little from one width to the next. Between two widths that were asked, the logarithms
#    of the probabilities are taken to lie near a straight line. Only where $U$ could then be low enough is it worth asking.
#
# The first two are exact. The third is a wager, so it is checked: both searches run on every image of this page.

# %% tags=["hide-input"]
cost = pd.DataFrame(
    {
        "all candidates": 804.0,
        "1 without repetitions": float(fewer),
        "2 near enough (exact)": per_task["forwards_near"].mean(),
        "3 near a line": per_task["forwards_pruned"].mean(),
        "saved": 1 - per_task["forwards_pruned"].mean() / 804,
        "same winner": per_task["same"].mean(),
    }
)
run.save(cost, "cost")
same = per_task["same"].agg(["sum", "size"])
display_cost = cost.copy()
for column in display_cost:
    display_cost[column] = display_cost[column].map(
        ("{:.0%}" if column in ("saved", "same winner") else "{:.0f}").format
    )
tables.styled(display_cost.rename_axis(None))

# %% tags=["hide-input"]
found_same = " and ".join(f"{row['sum']} of {row['size']} {task}" for task, row in same.iterrows())
Markdown(
    f"The pruned search finds the winner of the full one for {found_same}. It takes between "
    f"{804 / cost['3 near a line'].max():.1f} and {804 / cost['3 near a line'].min():.1f} times fewer forwards."
)

# %% mystnb={"figure": {"caption": "U along the widths of the plain blur, for eight images of each task. Where a line rises, the network becomes surer of a class when the blur grows.", "name": "fc-perturbations-widths"}, "image": {"alt": "Two line charts of U against the width of the blur; one line per image, with a dashed threshold."}} tags=["hide-input"]
plain = candidates[(candidates["operation"] == "none") & (candidates["adjustment"] == "none")]
figure, grid = plt.subplots(1, 2, figsize=(8, 3.2))
falling = {}
for axes, (task, (U, *_)) in zip(grid, found.items(), strict=True):
    lines = U[:, plain.index.to_numpy()]
    falling[task] = (lines.diff(dim=1) <= 1e-4).float().mean().item()
    axes.plot(plain["blur"], lines[:8].T, linewidth=1.2)
    figures.mark(axes, perturbed.threshold(len(chosen[task].classes)), "Δ", axis="y")
    axes.set(xscale="log", xlabel="width of the blur (share of the side)", ylabel="U (0 is undecided)", title=task)
    axes.set_xticks([0.01, 0.03, 0.1, 0.3], ["1 %", "3 %", "10 %", "30 %"])
figures.show(figure)

# %% tags=["hide-input"]
Markdown(
    "From one width to the next *U* does not rise in "
    + " and ".join(f"{share:.0%} of the steps ({task})" for task, share in falling.items())
    + ": it is not monotone, and a search cannot stop where it first rises."
)

# %% [markdown]
# ## Out of distribution?
#
# What does the network make of other stand-ins? Below, a whole image is replaced by black, by white, by its own mean
# colour, by a blur of fixed width, and by the winner of the search. The first thing to ask is whether the network is
# undecided. The second is whether it has seen anything like it: the distance to the nearest training images among the
# network's own features {cite:p}`sun2022ood`, which tells a replaced image from a clean one with some probability. At 0.5 it
# cannot be told.

# %% tags=["hide-input"]
rows, examples = [], {}
for task, network in networks.items():
    data, recipe = chosen[task], recipes[task]
    train = datasets.load(recipe.data, "train", **recipe.data_options)
    far = few_class.unfamiliar(network, train, background, neighbours)
    image = few_class.intensities(data)
    examples[task] = {"image": image} | few_class.stand_ins(image, found[task][2].images)
    # Half of the pixels, in random order: the middle of the curves that the metric follows.
    pixels = image[0, 0].numel()
    turn = draws.permutations(seed, torch.arange(images), torch.zeros(1, dtype=torch.int64), pixels)
    half = (turn < pixels // 2).view(images, 1, *image.shape[-2:])
    clean = far(image, data)
    for name, stand_in in list(examples[task].items())[1:]:
        probabilities = few_class.answer(network, data)(stand_in)
        rows.append(
            {
                "task": task,
                "reference": name,
                "delta": perturbed.threshold(len(data.classes)),
                "uncertainty": perturbed.uncertainty(probabilities).mean().item(),
                "sure": (probabilities.amax(1) > 0.9).double().mean().item(),
                "detectability": novelty.detectability(clean, far(stand_in, data)),
                "detectability_half": novelty.detectability(clean, far(torch.where(half, stand_in, image), data)),
            }
        )
compared = pd.DataFrame(rows)
run.save(compared, "references")
names = {
    "uncertainty": "U (0 is undecided)",
    "sure": "sure of a class (p > 0.9)",
    "detectability": "can be told, all replaced",
    "detectability_half": "can be told, half replaced",
}
table = compared.pivot(index="reference", columns="task", values=list(names)).reindex(
    list(compared["reference"].unique())
)
table = table.rename(columns=names, level=0).map("{:.2f}".format)
table.columns.names = [None, None]
tables.styled(table.rename_axis(None))

# %% mystnb={"figure": {"caption": "One image of each task, replaced as a whole, and what the network makes of it: the class and its probability.", "name": "fc-perturbations-ood"}, "image": {"alt": "Two rows of six pictures: the image, black, white, its mean colour, a blurred copy, and the optimised perturbation, each with the predicted class and its probability."}} tags=["hide-input"]
figure, grid = plt.subplots(2, 6, figsize=(8.4, 3.8))
for row, (task, pictures) in zip(grid, examples.items(), strict=True):
    data, i = chosen[task], samples[task]
    for axes, (name, stand_in) in zip(row, pictures.items(), strict=True):
        shown = stand_in[i]
        p = few_class.answer(networks[task], data)(shown[None])[0]
        axes.imshow(shown.clamp(0, 1).permute(1, 2, 0))
        axes.set_title(name, fontsize="small", fontweight="normal")
        axes.set_xlabel(f"{data.classes[int(p.argmax())]} {p.max():.2f}", fontsize="small")
        axes.set(xticks=[], yticks=[])
figures.show(figure)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(few_class.PERTURBATIONS, {"winners": winners, "references": compared})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
