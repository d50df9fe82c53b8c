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
# # How close to the optimum is TRACE?
#
# *A search that claims to find the best explanation had better find it.* With 16 patches an image has 65 536 subsets. All
# of them can be asked. That gives two yardsticks:
#
# - The *complete search* of the paper: the best subset of each size. The subsets need not be nested, so no order can beat
#   their sum. It is a bound.
# - The *optimum* itself, which the paper calls inaccessible. With the answers to all subsets it is a shortest path through
#   them, $2^{16}$ sums in place of $16!$ orders. The paper's Figure 2a squeezes it between search and bound; here it is
#   known.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "cifar10"
width = 8  # of the network, three convolutions of stride 2
epochs = 3  # of training
train_limit = None  # training images; None: all
images = 8  # recognised test images
patch = 8  # side of a patch in pixels: 16 patches
steps = 5000  # of annealing; as in the paper
restarts = 4  # chains per image, beside the one that the paper has
other_steps = 1000  # when searches are compared with each other
neighbour_steps = 300  # when neighbours are
repeats = 8  # searches per image then
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, search, segments
from faithlab.metrics import trajectory
from faithlab.study import claims, figures, tables, trace
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe, accuracy, trained

figures.theme()
run = Run("trace/optimality", globals())

# %% [markdown]
# ## The network and its images

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
chosen = trace.recognised(network, test, images)
x, y = chosen.model_inputs().to(device), chosen.labels.to(device)
patches = segments.patches(*x.shape[-2:], patch)
features = segments.count(patches)
answers = {}
for readout, read in trace.READOUTS.items():
    score = engine.scorer(network, x, y, segments=patches, readout=read, precision=fast)
    answers[readout] = search.answers(score, len(x), features, device=device)
Markdown(
    f"A small network that recognises {accuracy(network, test.take(slice(2000))):.1%} of the test images. It is asked "
    f"about {len(x)} images that it recognises, {2**features:,} subsets each, removed patches set to zero, once for "
    "probabilities (-p) and once for logits (-y)."
)

# %% [markdown]
# ## The squeezed gap (Figure 2a)
#
# Annealing starts at a random order and makes the paper's 5000 proposals in the `quick` and `paper` profiles. Greedy search
# takes one patch after the other.

# %% tags=["hide-input"]
start = search.random_orders(torch.arange(len(x), device=device), features, seed=seed)[:, 0]
found, gaps, curves = {}, [], []
for readout, table in answers.items():
    bounds = {objective: search.bound(table, objective) for objective in search.OBJECTIVES}
    span = bounds["Le"].sum(1) - bounds["Mo"].sum(1)  # what there is between the two bounds
    lookup = search.lookup(table)
    for objective, bound in bounds.items():
        sums = {"optimum": search.optimum(table, objective)}
        sums["annealing"] = search.anneal(
            lookup, start, objective=objective, seed=seed, **trace.steps_of(steps, readout)
        )
        if objective != "Le-Mo":
            sums[f"annealing, {restarts} chains"] = search.anneal(
                lookup, start, objective=objective, seed=seed, restarts=restarts, **trace.steps_of(steps, readout)
            )
            sums["greedy"] = search.greedy(lookup, len(x), features, objective=objective, device=device)
        for name, result in sums.items():
            found[readout, objective, name] = result
            values = {"value": result.value, "bound": bound.sum(1), "gap": (result.value - bound.sum(1)).abs() / span}
            gaps.append(
                pd.DataFrame({column: v.cpu().numpy() for column, v in values.items()})
                .rename_axis("image")
                .reset_index()
                .assign(readout=readout, objective=objective, search=name)
            )
            if objective != "Le-Mo":
                both = trajectory.curves(lookup, result.order)
                curve = both.morf if objective == "Mo" else both.lerf
                curves.append((readout, objective, name, curve.mean(0)))
        if objective != "Le-Mo":
            # The bound is by size of the prefix: of what is removed for MoRF, of what is kept for LeRF.
            by_removed = bound if objective == "Mo" else bound.flip(1)
            curves.append((readout, objective, "complete search", by_removed.mean(0)))
gaps = pd.concat(gaps, ignore_index=True)
run.save(gaps, "gaps")
curves = pd.concat(
    [
        pd.DataFrame({"readout": r, "objective": o, "search": s, "removed": range(features + 1), "value": c.tolist()})
        for r, o, s, c in curves
    ],
    ignore_index=True,
)
run.save(curves, "curves")

# %% mystnb={"figure": {"caption": "Mean answer of the network as patches are removed. The upper curves keep it high (TRACE-Le), the lower ones bring it down (TRACE-Mo). Where only one curve shows, the others lie beneath it: what annealing finds can hardly be told from the bound.", "name": "tr-squeezed"}, "image": {"alt": "Two line charts, probabilities and logits: number of removed patches against the answer; complete search, annealing and greedy search, for LeRF above and for MoRF below."}} tags=["hide-input"]
names = {"p": "probability (-p)", "y": "logit (-y)"}
figure, grid = plt.subplots(1, 2, figsize=(8, 3.4))
colours = dict(zip(["complete search", "annealing", "greedy"], sns.color_palette("colorblind"), strict=False))
styles = {"Le": "-", "Mo": "--"}
for axes, (readout, title) in zip(grid, names.items(), strict=True):
    for (objective, name), part in curves[curves["readout"] == readout].groupby(["objective", "search"], sort=False):
        if name in colours:
            axes.plot(
                part["removed"],
                part["value"],
                linestyle=styles[objective],
                color=colours[name],
                linewidth=3.5 if name == "complete search" else 1.6,
                alpha=0.5 if name == "complete search" else 1,
                label=f"{name}, {'LeRF' if objective == 'Le' else 'MoRF'}",
            )
    axes.set(xlabel="removed patches", ylabel=title.split()[0], title=title)
handles, labels = axes.get_legend_handles_labels()
figure.legend(handles, labels, loc="upper center", ncols=3, bbox_to_anchor=(0.5, 0.02))
figures.show(figure)

# %% tags=["hide-input"]
columns = ["greedy", "annealing", f"annealing, {restarts} chains", "optimum"]
mean = gaps.groupby(["readout", "objective", "search"], sort=False)["gap"].mean().unstack("search")
exact = gaps.pivot(index=["readout", "objective", "image"], columns="search", values="value")
hit = ((exact["annealing"] - exact["optimum"]).abs() < 1e-6).groupby(["readout", "objective"]).sum()
Markdown(
    "The gap to the bound, as a part of the range between the two bounds CS-Mo and CS-Le, mean over the images. Greedy search "
    "is not defined for Le-Mo. The column *optimum* is how far the bound itself is from what any order can reach. What "
    "annealing lacks is the difference to that column."
)

# %% tags=["hide-input"]
shown = mean[columns].map(lambda gap: "–" if pd.isna(gap) else f"{gap:.2%}")
shown["annealing at the optimum"] = [f"{hit[of]} of {len(x)}" for of in mean.index]
shown.insert(0, "search", [f"TRACE-{objective}-{readout}" for readout, objective in mean.index])
tables.prose(shown)

# %% [markdown]
# ## Other searches, and time against optimality
#
# The paper names a genetic algorithm and tabu search, and other neighbours than the swap of two patches: one patch moves, a
# block moves, a block is turned round. A swap of places $i < j$ changes only the subsets between them. All four do, so that
# the price of a search is the number of questions that it asks. Below every search may ask about as many; the objective is
# LeRF − MoRF of the probability, and 100 % is the exact optimum.

# %% tags=["hide-input"]
lookup = search.lookup(answers["p"])
best = found["p", "Le-Mo", "optimum"].value
greedy = found["p", "Le", "greedy"]
budget = other_steps * 2 * (features + 1) / 3  # questions per image that annealing with swaps asks on average
paths = {
    "annealing": search.anneal(lookup, start, seed=seed, **trace.steps_of(other_steps)),
    "annealing from greedy-Le": search.anneal(lookup, greedy.order, seed=seed, **trace.steps_of(other_steps)),
    "tabu search": search.tabu(lookup, start, candidates=8, steps=max(1, other_steps // 8), seed=seed),
    "genetic algorithm": search.genetic(
        lookup, start, population=16, steps=max(1, round(budget / (16 * 2 * (features + 1)))), seed=seed
    ),
}
rows = []
for name, path in paths.items():
    share = (path.history / best[:, None]).mean(0)
    before = greedy.asked if name.endswith("greedy-Le") else torch.zeros_like(path.asked)
    asked = before.double().mean() + path.asked.double().mean() * torch.arange(len(share)) / (len(share) - 1)
    rows.append(
        pd.DataFrame({"search": name, "step": range(len(share)), "asked": asked.tolist(), "share": share.tolist()})
    )
searches = pd.concat(rows, ignore_index=True)
# A row in a hundred is enough for the curves; all of annealing's tenths are among them.
every = max(1, other_steps // 100)
kept = searches[
    ~searches["search"].str.startswith("annealing")
    | (searches["step"] % every == 0)
    | (searches["step"] == other_steps // 10)
]
run.save(kept, "searches")

# %% mystnb={"figure": {"caption": "LeRF \u2212 MoRF of the best order so far, as a part of the exact optimum, mean over the images, against the number of masked inputs asked about. The start from the greedy order has paid for that order before its curve begins.", "name": "tr-searches"}, "image": {"alt": "Line chart: masked inputs asked about per image against the part of the optimum reached, one line for each of four searches."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.2, 3.6))
sns.lineplot(kept, x="asked", y="share", hue="search", style="search", errorbar=None, ax=axes)
axes.set(xlabel="masked inputs asked about, per image", ylabel="part of the optimum")
axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}".replace("-", "−"))
axes.legend(title=None)
figures.show(figure)

# %% tags=["hide-input"]
several = search.lookup(answers["p"].repeat(repeats, 1))  # each repeat is an image with random numbers of its own
begin = search.random_orders(torch.arange(repeats * len(x), device=device), features, seed=seed)[:, 0]
shares = {}
for name in search.NEIGHBOURS:
    path = search.anneal(several, begin, neighbour=name, seed=seed, **trace.steps_of(neighbour_steps))
    shares[name] = (path.value / best.repeat(repeats)).cpu()
ahead = {name: shares["swap"] - share for name, share in shares.items()}
neighbours = pd.DataFrame(
    [
        (name, share.mean().item(), ahead[name].mean().item(), (ahead[name].std() / len(share) ** 0.5).item())
        for name, share in shares.items()
    ],
    columns=["neighbour", "share", "swap_ahead", "error"],
)
run.save(neighbours, "neighbours")
Markdown(
    f"Annealing with other neighbours, {neighbour_steps} proposals each, from {len(begin)} starts. *Ahead* is by how much the "
    "swap is better, with its standard error."
)

# %% tags=["hide-input"]
ahead = [f"{n.swap_ahead:+.2%} ± {n.error:.2%}".replace("-", "−") for n in neighbours.itertuples()]
shown = pd.DataFrame(
    {
        "neighbour": neighbours["neighbour"],
        "part of the optimum": neighbours["share"].map("{:.2%}".format),
        "swap is ahead by": pd.Series(ahead).where(neighbours["neighbour"] != "swap", ""),
    }
)
tables.prose(shown)

# %% [markdown]
# ## Insertion is deletion (Theorem 3.1)
#
# Insert the patches into an empty image, the most relevant first. The images met on the way are those of LeRF, in reverse.
# So the areas are equal. Both are asked here on the network, for annealing's orders.

# %% tags=["hide-input"]
score = engine.scorer(network, x, y, segments=patches, precision=fast)
order = found["p", "Le-Mo", "annealing"].order
both = trajectory.curves(score, order)
insertion = pd.concat(
    [
        pd.DataFrame({"image": range(len(x)), "criterion": criterion, "insertion": a.tolist(), "deletion": d.tolist()})
        for criterion, a, d in (
            ("LeRF", trajectory.insertion(score, order).sum(1), both.lerf.sum(1)),
            ("MoRF", trajectory.insertion(score, order.flip(1)).sum(1), both.morf.sum(1)),
        )
    ],
    ignore_index=True,
)
insertion["difference"] = insertion["insertion"] - insertion["deletion"]
run.save(insertion, "insertion")
Markdown(
    f"The areas of insertion and deletion differ by at most {insertion['difference'].abs().max():.1e}, on sums up to "
    f"{insertion['deletion'].max():.2f}."
)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(
    trace.OPTIMALITY, {"gaps": gaps, "searches": kept, "neighbours": neighbours, "insertion": insertion}
)
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
