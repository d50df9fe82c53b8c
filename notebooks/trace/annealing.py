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
# # Where should annealing start, and what should it change?
#
# *A search is two choices: where it begins, and what it tries next.* The paper begins at random or at a greedy order, and swaps two
# features at a time. With 16 patches the answers to all 65 536 subsets are known, and with them the exact optimum: whatever a search
# reaches in so many questions can be said [as a part of it](optimality).

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's ResNet-9, such as {"epochs": 5}: see faithstudy.recipes
images = 32  # recognised test images
patch = 8  # side of a patch in pixels: 16 patches
most_features = 16  # the last patches are one feature where there are more; twice the subsets with each
steps = 1000  # of annealing, when starts are compared; the paper takes 5000
neighbour_steps = 300  # when neighbours are
repeats = 8  # searches per image then
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
training_seeds = [0, 1, 2]  # each is a network of its own
seed = 0  # of the searches

# %% tags=["hide-input"]
import dataclasses
from functools import partial

import matplotlib.pyplot as plt
from IPython.display import Markdown

from faithlab import search, segments, stats
from faithlab.metrics import METRICS
from faithlab.scores import Scores
from faithstudy import plots, recipes, tables
from faithstudy.claims import best, better
from faithstudy.diagnostics import Reason
from faithstudy.run import Run
from faithstudy.trials import optimum, searches, tasks

plots.theme()
run = Run("trace/annealing", globals())

# %% [markdown]
# ## The network, its images and their optima
#
# The inputs are images that a small network recognises ([how many it does](../networks)). It is asked about every subset of their
# patches, removed ones set to zero. From here on every search is a matter of look-ups, and the optimum of LeRF − MoRF of the
# probability, which all searches below look for, is a shortest path through the answers.


# %% tags=["hide-input"]
def network(training_seed):
    """A network's images, and what it answers to all subsets of their patches."""
    recipe = recipes.changed(recipes.RESNET9, {**training, "seed": training_seed})
    task = tasks.task(recipe, tasks.recognised(recipe, images), name="ResNet-9", precision=precision)
    patches = segments.patches(*task.x.shape[-2:], patch)
    task = dataclasses.replace(task, segments=patches.clamp(max=most_features - 1))
    return task, optimum.all_subsets(task)[0]


# %% [markdown]
# ## Starts, and time against optimality
#
# The paper names other neighbours than the swap of two patches: one patch moves, a block moves, a block is turned round. A swap of
# places $i < j$ changes only the subsets between them. All four do, so that the price of a search is the number of questions that it
# asks. Below every search may ask about as many, and 100 % is the exact optimum. Insertion, which moves one patch after the other to its
# best place, is [ours](searches); the genetic algorithm and tabu search that the paper names stand there, too.

# %% tags=["hide-input"]
SPENT = [k / 20 for k in range(1, 21)]  # of the questions that annealing with swaps asks
SHORT = (12, 60, 150)  # proposals: a search of a large network can afford no more
QUESTIONS, NEIGHBOUR = "part of the optimum by questions", "part of the optimum by neighbours"
LONGER = NEIGHBOUR + ", longer searches"  # as long as those that starts are compared by
STARTS = ("annealing", "annealing from greedy-Le", "insertion", "insertion from both ends")
ours = METRICS["LeRF - MoRF"]


def scored(task, values, metric, explainer, **about):
    """Rows of the long table."""
    about |= {"images": task.images, "reference": "zero", **task.labels}
    return Scores.of(values, metric=metric, explainer=explainer, **about)


def by_neighbour(task, table, metric, proposals):
    """Rows of annealing with each set of neighbours in so many proposals, several times for each image."""
    rows, top, features = [], search.optimum(table, "Le-Mo").value, segments.count(task.segments)
    score, many = searches.repeated(search.lookup(table), task.images.to(task.x.device), repeats, first=0)
    begin = search.random_orders(many, features, seed=seed)[:, 0]
    how = {**optimum.schedule(ours, proposals), "seed": seed, "images": many}
    for name in search.NEIGHBOURS:
        reached = search.anneal(score, begin, neighbour=name, **how).value.view(repeats, -1)
        rows += [scored(task, of / top, metric, name, draw=draw) for draw, of in enumerate(reached)]
    return rows


def by_start(task, table):
    """Rows of searches with several starts, and of short ones."""
    rows, top, features = [], search.optimum(table, "Le-Mo").value, segments.count(task.segments)
    lookup, device = search.lookup(table), task.x.device
    identity, budget = task.images.to(device), steps * 2 * (features + 1) / 3
    start = search.random_orders(identity, features, seed=seed)[:, 0]
    of_images = {"count": len(start), "features": features, "device": device}
    greedy, ends = (search.greedy(lookup, **of_images, objective=of) for of in ("Le", "Le-Mo"))
    own = {"seed": seed, "images": identity}
    anneal = partial(search.anneal, lookup, **optimum.schedule(ours, steps), **own)
    insert = partial(search.insert, lookup, steps=max(1, steps), **own)
    paths = {  # each with the search that it starts from
        "annealing": (anneal(start), None),
        "annealing from greedy-Le": (anneal(greedy.order), greedy),
        "insertion": (insert(start), None),
        "insertion from both ends": (insert(ends.order), ends),
        "annealing from both ends": (anneal(ends.order), ends),  # what a reason below asks
    }
    for name, (path, first) in paths.items():
        reached = searches.by_questions(path, [share * budget for share in SPENT], first)
        rows.append(scored(task, reached / top[:, None], QUESTIONS, name, sizes=SPENT))
    for short in SHORT:
        reached = search.anneal(lookup, greedy.order, **optimum.schedule(ours, short), **own).value
        metric = f"part of the optimum, {short} proposals"
        rows.append(scored(task, reached / top, metric, "annealing from greedy-Le"))
    return rows


def measure():
    """All searches, by all networks."""
    rows = []
    for training_seed in training_seeds:
        of = network(training_seed)
        rows += by_start(*of) + by_neighbour(*of, NEIGHBOUR, neighbour_steps) + by_neighbour(*of, LONGER, steps)
    return Scores.concat(rows)


scores = run.table("scores", measure, again="search")
count = stats.estimate(scores, metric=QUESTIONS, explainer="annealing")
Markdown(f"Networks: {len(training_seeds)}; images: {count.images}.")

# %% mystnb={"figure": {"caption": "LeRF \u2212 MoRF of the best order so far, as a part of the exact optimum, mean over the images with its 95 % interval, against the masked inputs asked about so far, a part of those that all of annealing asks about. A start that is no random order has been paid for.", "name": "tr-searches"}, "image": {"alt": "Line chart: share of the questions of annealing against the part of the optimum reached, one line for each of four searches."}} tags=["hide-input", "answer"]
part = stats.Statistic(stats.mean, within=(-1.0, 1.0))  # the reverse of the best order, and that order
figure, axes = plt.subplots(figsize=(7.2, 3.6))
for name, style in zip(STARTS, ("-", "--", "-.", ":"), strict=True):
    curve = stats.estimate(scores, part, metric=QUESTIONS, explainer=name)
    plots.band(axes, [100 * share for share in SPENT], curve, linestyle=style, label=name)
axes.set(xlabel="masked inputs asked about, % of those that all of annealing asks about", ylabel="part of the optimum")
axes.legend()
plots.show(figure)

# %% [markdown]
# **How short is a short search?** On a large network only some proposals after the greedy order can be afforded. A share of
# what such a search reaches is too high by what it lacks here. Below them is annealing with other *neighbours* from random orders, several
# for each image; by how much the swap is better on the same images, its claim says.

# %% tags=["hide-input"]
shown = {f"{short} proposals after greedy-Le": {"metric": f"part of the optimum, {short} proposals"} for short in SHORT}
shown |= {f"neighbours: {name}": {"metric": NEIGHBOUR, "explainer": name} for name in search.NEIGHBOURS}
tables.estimates(shown, {"part of the optimum": {"of": part}}, scores, 4)

# %% [markdown]
# ## What reproduced
#
# Each claim is judged on the saved scores. A part of it *holds* where the whole interval, and every network's own estimate, lie
# on the claimed side. The paper prints no numbers of these searches, only curves.


# %% tags=["hide-input"]
def after(share):
    """The part of the optimum after a share of the questions, those for the start included, as a statistic."""
    return lambda sample: sample.mean()[:, SPENT.index(share)]


early = after(0.1)
start = {"explainer": "annealing from greedy-Le"}, {"explainer": "annealing"}
run.claim(
    "tr-greedy-start",
    "Section 5.2, appendix F",
    "A start at TRACE-Greedy-Le speeds up annealing: after a tenth of the questions it is ahead.",
    [better(scores, *start, of=early, metric=QUESTIONS)],
)

# %% [markdown]
# **Why?** Is a tenth of the questions too late to see it, is annealing the wrong search to start, being hot at first, or is it the wrong
# order, greedy for LeRF alone? Insertion, which never leaves what it has for worse, starts from both ends above; annealing from the
# same order was run with it. A lead is over the same search from a random start, as a part of the optimum.

# %% tags=["hide-input"]
asked = partial(Reason, said=tables.share)


def ahead(name, share=0.1, start="from both ends"):
    """The lead of a start over a random one after a share of the questions."""
    return stats.paired(scores, {"explainer": f"{name} {start}"}, {"explainer": name}, after(share), metric=QUESTIONS)


told = f"lead of annealing from greedy-Le after {SPENT[0]:.0%}"
sooner = ahead("annealing", SPENT[0], start="from greedy-Le")
alone = stats.estimate(scores, early, explainer="annealing", metric=QUESTIONS)
run.why(
    "tr-greedy-start",
    asked("Is it ahead sooner?", told, sooner, above=0),
    asked("Does a start help another search?", "lead of insertion from both ends", ahead("insertion"), above=0),
    asked("Does another start help annealing?", "lead of annealing from both ends", ahead("annealing"), above=0),
    asked("Is there little to be ahead by?", "annealing from a random order", alone, above=0.9),
)

# %% tags=["hide-input"]
run.claim(
    "tr-swap",
    "Section 4, appendix B.4",
    "The swap of two features is the best neighbour set, better than those for the travelling salesman.",
    [best(scores, "explainer", "swap", metric=NEIGHBOUR)],
)

# %% [markdown]
# **Why?** Were the searches too short, or do the neighbour sets find equally much on so few patches? With more proposals a neighbour
# set that is slow has time. A difference is a part of the optimum.


# %% tags=["hide-input"]
why = []
for metric, proposals in ((NEIGHBOUR, neighbour_steps), (LONGER, steps)):
    swap, *others = ({"explainer": name} for name in search.NEIGHBOURS)
    leads = {other["explainer"]: stats.paired(scores, swap, other, metric=metric) for other in others}
    rival, lead = min(leads.items(), key=lambda one: float(one[1]))
    told = f"swap − {rival}, {proposals} proposals"
    why += [asked("Were the searches too short?", told, lead, above=0)] * (metric == LONGER)
    why.append(asked("Are they nearly equal?", told, lead, within=0.02))
run.why("tr-swap", *why)

# %% tags=["hide-input"]
run.finish()
