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
# # Do explanations have a size, beyond digits?
#
# The *size* of an explanation is the number of features after which nothing more of it comes. It is read off curves of F-Fidelity, which
# remove a capped random part of the features ranked first: one knee of theirs moves with the cap, the one that does not is the
# size, and between them the curve is flat, its *plateau* ([in pictures](../../book/plateaus)). A digit on black has an explanation with an end: [its pixels, and nothing else](explanation-size). Does a vehicle in a photograph?
# A sentence? The movement of an arm? This page asks for sizes in six kinds of data, with the rankings of real explainers and with
# the order that TRACE finds by search; image by image, class by class and network by network. [](what-a-size-is-good-for) asks
# whether a size says how good a ranking is.
#
# Where there is no size, that is an answer, too. A *control* tells two reasons apart: the method could not have seen one, or
# there is none in this ranking. Three of the six kinds of data have an explanation that is known by construction.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
boxes = [20]  # sides of the vehicles in their images of 32 x 32 pixels
width = 8  # of the network that sorts vehicles
epochs = 3  # of its training
tuning_epochs = 1  # of its fine-tuning on random masks
train_limit = None  # training images of vehicles, and reviews; None: all
vehicles = 400  # images of vehicles
photographs = 400  # of CIFAR-10, for each network
training_seeds = [0, 1, 2]  # of the networks of the photographs
texts = 280  # sentences
phrase = 12  # tokens that are left of a sentence where the explanation is known
series = 60  # time series
span = 30  # steps that are left of a series where the explanation is known
betas = [0.05, 0.1, 0.15, 0.2]  # caps on the removed share, all with the first alpha; of photographs half of them
alphas = [0.5, 0.3, 1.0]  # the others with the middle cap
step = 0.03125  # between the sizes of a curve: one token of 32
longest = 0.6  # the largest size
image_draws = 1  # random subsets per image, setting and size
draws = 4  # of sentences and series
searched = ["vehicles", "photographs", "phrases", "spans"]  # the data for which TRACE searches an order
search_steps = 300  # of its annealing
smooth_samples = 16  # noisy copies for SG-SQ
integration_steps = 32  # of Integrated Gradients
ones = 50  # images of each set and network that are read by themselves
one_by = ["truth", "TRACE", "SG-SQ", "Integrated Gradients", "Grad-CAM"]  # their rankings
one_draws = 100  # random subsets of one image, for each setting and size
shown_draws = 80  # of an input that is shown
class_least = 30  # inputs of a class that is read by itself
precision = "bfloat16"  # of forwards of images, where the device computes it natively; else float32
seed = 0  # of places, searches and random subsets

# %% tags=["hide-input"]
import dataclasses
import itertools
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import segments, stats
from faithlab.metrics.size import Setting
from faithlab.scores import Scores
from faithstudy import plots, recipes, summaries, tables
from faithstudy.data import datasets
from faithstudy.diagnostics import Reason
from faithstudy.networks.training import Recipe
from faithstudy.run import Run
from faithstudy.trials import sizes

plots.theme()
run = Run("f-fidelity/sizes-beyond-digits", globals())

# %% [markdown]
# ## Six kinds of data
#
# - **Vehicles**: each pasted at a random place of an animal's photograph, as [there](../few-class-fidelity/natural-images). Nothing
#   outside the square can tell the class, so the square is the explanation. Its own pixels need not matter equally.
# - **Photographs**: CIFAR-10 and the three pairs of ResNet-9 that ship with the study. Nobody knows the truth.
# - **Sentences**: film reviews of 32 tokens and the LSTM of [](text). Nobody knows the truth.
# - **Phrases**: the same sentences, all tokens blank but a run of a few, which are the explanation. This is the digit on black, for texts.
# - **Series**: a smart watch's 100 steps and the LSTM of [](time-series). Nobody knows the truth.
# - **Spans**: the same series, all steps blank but one run of them, which is the explanation.
#
# A size is a question about one network. So, as with digits, the network that is fine-tuned on random masks is explained, searched and
# asked. It is used to as much as the largest cap removes; for phrases and spans, to that and the blanks. Only inputs that it
# recognises are asked about, so that there is something to lose.


# %% tags=["hide-input"]
def tuned(recipe, blank=0.0, **training):
    """A network that is used to as many missing features as the caps remove, and to blanks."""
    return recipes.pair(recipe, 0, beta=max(betas) + blank, training=training)["fine-tuned"]


sorting = Recipe("cifar10-vehicles", "resnet9", epochs, rate=0.01, decay=1e-5, batch=64, precision=precision)
of_vehicles = {"model_options": {"width": width, "classes": 3}, "limit": train_limit}
brief = {"epochs": tuning_epochs, "rate": 0.004}
moving = {"data": "basic-motions", "model_options": {"classes": 4, "channels": 6}}

ig, sg = {"steps": integration_steps}, {"samples": smooth_samples, "seed": seed}
gradients = {"SG-SQ": ("smoothgrad-squared", sg), "Integrated Gradients": ("integrated-gradients", ig)}
embedded = {"Integrated Gradients": ("integrated-gradients-embedding", ig)}
embedded |= {"Input × Gradient": "input-x-gradient-embedding"}
pictures = {"network": "ResNet-9", "precision": precision, "draws": image_draws}
pictures |= {"explainers": gradients | {"Grad-CAM": "gradcam", "centre": sizes.centre}}
pictures |= {"groups": segments.patches(32, 32, 8)}  # what TRACE moves as one
words = {"network": "LSTM", "draws": draws, "explainers": embedded}
steps = {"network": "LSTM", "draws": draws, "explainers": gradients, "groups": segments.time_steps(100) // 5}

asked = []  # kind, network, how many, and how
for box in boxes:
    training = of_vehicles | {"data_options": {"size": box, "seed": 0}}
    pasted = recipes.pair(sorting, 0, beta=max(betas), training=training, tuning=brief)["fine-tuned"]
    name = f"vehicles of {(box / 32) ** 2:.0%}"
    asked.append((name, pasted, vehicles, pictures | {"among": 2 * vehicles}))
for training_seed in training_seeds:
    shipped = recipes.pair(recipes.RESNET9, training_seed)["fine-tuned"]
    asked.append(("photographs", shipped, photographs, pictures | {"among": 2 * photographs}))
asked += [
    ("sentences", tuned(recipes.LSTM, limit=train_limit), texts, words),
    ("phrases", tuned(recipes.LSTM, 1 - phrase / 32, limit=train_limit), texts, words | {"left": phrase}),
    ("series", tuned(recipes.BILSTM, **moving), series, steps),
    ("spans", tuned(recipes.BILSTM, 1 - span / 100, **moving), series, steps | {"left": span}),
]
settings = [Setting(alphas[0], beta) for beta in betas]
settings += [Setting(alpha, betas[len(betas) // 2]) for alpha in alphas[1:]]
fractions = torch.arange(1, round(longest / step) + 1, dtype=torch.float64) * step
cases = [sizes.case(name, of, most, settings, fractions, **how, seed=seed) for name, of, most, how in asked]
kinds = {c.task.dataset: c for c in reversed(cases)}  # of photographs the first network
rows = []
for name, c in reversed(kinds.items()):
    explain = "unknown" if c.known is None else f"{c.known.double().mean():.0%}"
    caps = ", ".join(f"{s.cap:g}" for s in c.settings[: len(betas)])
    rows.append((name, c.task.network, len(c.task.x), segments.count(c.task.segments), explain, caps))
tables.prose(pd.DataFrame(rows, columns=["data", "network", "inputs", "features", "that explain", "caps"]))

# %% [markdown]
# ## The rankings
#
# *Truth* is the known explanation, in random order within and without. TRACE searches the order under which the answer falls
# fastest from one end and lasts longest from the other; it moves squares of 8 x 8 pixels, five time steps, or single tokens, and
# within a square the order is random. *Random* knows nothing. *Centre* ranks pixels by their distance from the middle of the image,
# and knows as little of the network; but it is a disc, and what a photograph shows is often in the middle. The others are
# explainers, signed: what speaks for the class comes first.
# Where *TRACE* has no row below it was not searched: for each input a search takes thousands of forwards.


# %% tags=["hide-input"]
def case_of(task):
    """Inputs of a kind and network, as a case."""
    about = (task.dataset, task.training_seed)
    return next(c for c in cases if (c.task.dataset, c.task.training_seed) == about).of(task)


def ranked(c, search=True):
    """Attributions of inputs by name, with the order of a search where it was asked for, and can be."""
    return c.rankings(search_steps * (search and c.task.dataset.split(" of ")[0] in searched))


def measure(task):
    """FFid+ of all rankings of inputs of one kind."""
    c = case_of(task)
    return c.ask(ranked(c))


def first_of(c, inputs):
    """The first inputs of a case."""
    return c.of(c.task.part(torch.arange(min(inputs, len(c.task.x)))))


def first_of_each():
    """The same of the first inputs of each kind, without the orders that are searched."""
    return Scores.concat(c.ask(ranked(c, search=False)) for c in (first_of(c, 4) for c in kinds.values()))


scores = run.table("scores", measure, [c.task for c in cases], again=first_of_each)

# %% [markdown]
# ## Do the curves rise and fall where the law says?
#
# Where the explanation is known, [Theorem 1](theorem) says how the curve of each setting moves: it rises up to the smaller one of
# the known size and the knee that the cap makes, and falls from the larger one on. It assumes features of equal influence, which
# these networks were never asked to give them. As [with digits](explanation-size), each number is the change over a stretch, the
# mean over the settings that have it; *random* is the control.

# %% tags=["hide-input"]
certain = [c for c in cases if c.known is not None]
rows = [
    {"stretch": name, "data": c.task.dataset, "ranking": ranking}
    | tables.interval(stats.estimate(scores, explainer=ranking, **c.law(name)))
    for c in certain
    for ranking in ("truth", "random")
    for name in ("rise", "flat", "fall")
]
changes = pd.DataFrame(rows)
run.save(changes, "changes")
of_law = {"rows": ["data", "ranking"], "columns": ["stretch"], "order": ["truth", "random", "rise", "flat", "fall"]}
tables.compared({"change of FFid+": changes}, **of_law)

# %% tags=["hide-input"]
run.claim(
    "ff-theorem-networks",
    "Theorem 1",
    "On trained networks of photographs, texts and series, too, FFid+ of a known explanation rises before both knees and falls after them, "
    "each more than that of a random ranking.",
    [part for c in certain for part in c.follows_the_law(scores)],
)

# %% [markdown]
# **Why?** Only inputs that the network recognises are asked about, and where a part of each is blank it recognises fewer. Is the law not
# seen in some data, or are its parts open for want of inputs? Rise and fall together tell more than each alone: the known
# explanation's rise less its fall, against the random ranking's.

# %% tags=["hide-input"]
possible, recipe_of = [], {name: recipe for name, recipe, *_ in asked}
for c in certain:
    rise, fall = (c.law(name)["of"] for name in ("rise", "fall"))
    control = ({"explainer": "truth"}, {"explainer": "random"})
    seen = stats.paired(scores, *control, stats.difference(rise, fall), dataset=c.task.dataset)
    recipe = recipe_of[c.task.dataset]
    held = len(datasets.load(recipe.data, "test", **recipe.data_options))
    said = c.task.dataset.replace(" of ", " on ").replace("%", " % of the image")
    said += f", of {held:,} test inputs: rise − fall, truth − random"
    possible.append(Reason("Is the law seen at all?", said, seen, above=0))
run.why("ff-theorem-networks", *possible)

# %% [markdown]
# ## Is there a size, and which?
#
# A size is named where a gain curve with a sharp knee explains the curves of all caps better than every smooth decay, and better than
# a random ranking, each tested; [](explanation-size) says how. What is refused stands at the place of its best knee all the same, as
# an open mark without an interval: no test supports it. A size that is one can be found again: where one is named, the
# ranking is read twice more, from every other input and from the rest, and *again in* counts these halves. Up to one in twenty would be
# named by chance, if all were smooth decays. Where *centre* has a size, a size is no praise: it knows nothing of the network.
# The table lists what is named.


# %% tags=["hide-input"]
def names_of(c):
    """The rankings of a case."""
    return scores.where(dataset=c.task.dataset, training_seed=c.task.training_seed).labels("explainer")


def read_together(cases, names):
    """What is read of rankings of all inputs of a kind."""
    return sizes.tabulated(cases, names, scores).drop(columns=["of", "read"])


of_all, of_first = (
    partial(read_together, cs, [names_of(c)[:n] for c in cs]) for cs, n in ((cases, None), (certain, 1))
)
table = run.table("sizes", of_all, again=lambda: of_first().drop(columns="refusal"))
table = table.fillna({"refusal": ""})
controls = ["truth", "random", "centre"]
true, found = table[table["ranking"] == "truth"], table.dropna(subset="size")
interval = [f"{r.size:.2f} [{r.low:.2f}, {r.high:.2f}]" for r in found.itertuples()]
found = found.assign(size=interval, truth=found["truth"].map("{:.2f}".format).replace("nan", "unknown"))
called = {"training_seed": "network", "truth": "true size", "halves": "again in"}
tables.prose(found[["data", "training_seed", "ranking", "size", "truth", "halves"]].rename(columns=called))

# %% tags=["hide-input", "headline"]
others = table[~table["ranking"].isin(controls)]
sized, found_again = int(others["size"].count()), true.query("halves == 2")["data"]
answer = "Most do" if 2 * sized > len(others) else "Some may" if sized > 0.05 * len(others) else "None is seen"
of_centre = table[table["ranking"] == "centre"]
middle = f", and the order from the centre outwards, which looks at no network, has one in {of_centre['size'].count()} of {len(of_centre)}"
true_ones = [
    f"{r.data}, {r.size:.2f} [{r.low:.2f}, {r.high:.2f}] where {r.truth:.2f} is true"
    for r in true.dropna(subset="size").itertuples()
]
Markdown(
    f"**{answer}**: of {len(others)} rankings by explainers and by search {sized or 'none'} ha{'s' if sized < 2 else 've'} a size that is "
    f"named, where chance would name up to {0.05 * len(others):.1f}{middle}; the known explanation has one in {true['size'].count()} of "
    f"{len(true)} kinds of data"
    + f" ({'; '.join(true_ones)})" * bool(true_ones)
    + ". "
    + (
        f"Only in {summaries.listed(list(found_again))}, where the known end is found in both halves of the inputs again, are the refusals the rankings' own"
        if len(found_again)
        else "The known end is not found in both halves of the inputs again in any, so that the inputs may be too few"
    )
    + f" ({others['data'].nunique()} kinds of data, {table['inputs'].min()} to {table['inputs'].max()} inputs of each)."
)

# %% [markdown]
# In the figure of all sizes each panel is a kind of data, each row a ranking. The photographs' networks stand one below the other.

# %% mystnb={"figure": {"caption": "Sizes that are named (blue, with 95 % intervals over the inputs), and where the best knee stands that is refused (grey), because a smooth decay (squares) or a random ranking (diamonds) explains the curves as well, or for another reason (triangles). A row without a mark has no knee at all. Dashed: the known size.", "name": "ff-beyond-sizes"}, "image": {"alt": "A panel for each kind of data, a row for each ranking: a blue dot where a size is named, a grey mark at the best knee where it is refused. A dashed line stands at the known size."}} tags=["hide-input", "answer"]
reasons = {"smooth": "refused: a smooth decay does as well", "random": "refused: a random ranking does as well"}
outcomes = ["named", *reasons.values(), "refused: another reason"]
of_words = [table["refusal"] == "", *(table["refusal"].str.contains(word) for word in reasons)]
found = table.assign(
    mean=table["size"].fillna(table["best_knee"]), outcome=np.select(of_words, outcomes[:3], outcomes[3])
)
rows = -(-found["data"].nunique() // 2)
figure, grid = plt.subplots(rows, 2, figsize=(7.3, 0.6 + 2.1 * rows), sharex=True)
for axes, (name, of) in itertools.zip_longest(grid.flat, found.groupby("data", sort=False), fillvalue=("", None)):
    if of is None:
        axes.set_axis_off()
        continue
    by_outcome = {outcome: of[of["outcome"] == outcome].set_index("ranking") for outcome in outcomes}
    plots.forest(axes, [*of["ranking"].unique()], by_outcome, ["C0", "0.5", "0.5", "0.5"])
    plots.mark(axes, of["truth"].iloc[0], "")
    axes.set(title=name, xlim=(0, longest + 0.03))
plots.key(figure, grid[0, 0])
figure.supxlabel(plots.EXPLANATION_SIZE, fontsize="small")
plots.show(figure)

# %% [markdown]
# The curves behind it: the known explanation where there is one, else the ranking that costs the network most at any size.

# %% mystnb={"figure": {"caption": "FFid+ over size for a sweep of caps. Points: measured, with two standard errors over the inputs; lines: the best fit. Triangles: the knee that each cap makes. Vertical line and band: the size, where one is named. Of photographs the caps are half of those in the key.", "name": "ff-beyond-curves"}, "image": {"alt": "Six panels of curves of FFid+ over size, a curve for each cap, with the size or the words no size above each."}} tags=["hide-input"]
behind, known = {}, {}  # by name: what was read, and the known size
for name, of in table.groupby("data", sort=False):
    unknown = kinds[name].known is None
    row = of.loc[of.loc[~of["ranking"].isin(controls), "largest_loss"].idxmax() if unknown else of.index[0]]
    c = next(c for c in cases if (c.task.dataset, c.task.training_seed) == (name, row["training_seed"]))
    behind[f"{name}, {row['ranking']}"] = c.read(scores, row["ranking"])
    known |= {} if unknown else {f"{name}, {row['ranking']}": row["truth"]}
plots.plateaus(behind, truth=known)

# %% [markdown]
# The same curves over what the best knee says is removed of its block, not over the size. Where the answer follows from how much of one block is
# gone, and from nothing else, all settings fall onto one curve; where the points are a cloud, it is noise, or another law.

# %% mystnb={"figure": {"caption": "The curves of the figure above, all settings, over the share of the block that is removed, by the best knee, be it named or refused. Points of one curve: one law, and the same block, for all caps. Of photographs the caps are half of those in the key.", "name": "ff-beyond-collapse"}, "image": {"alt": "Six panels of points: FFid+ over the share of the block that is removed, a sign for each setting."}} tags=["hide-input"]
plots.plateaus(behind, collapse=True)

# %% [markdown]
# Move through the caps yourself:

# %% tags=["hide-input"]
plots.movable(behind)

# %% [markdown]
# A ranking that puts the few features first that matter most has curves that fall as soon as the cap is reached: the end of what
# matters is hidden in a decay. [Theorem 1](theorem) speaks of features of equal influence, in no order among themselves. An explainer that orders the
# explanation's *inside* bends the gain curve there, so that less of an end is left. And an explanation of a few words in
# a sentence of 32 ends within the first steps of the sweep, one word being 3 %. Where a set's curves rise in teeth, whole tokens
# are being rounded.

# %% [markdown]
# ## See one
#
# One input of some kinds, read by itself from the probability that its network loses: the input, what the ranking calls
# relevant, and the curve of each cap. Of the inputs whose class is lost most often, over all caps and sizes, it is the first that has a
# size, where one of these few has; most inputs have none by themselves. A knee that moves with the cap is marked by a triangle; the one that stays is the size, where
# there is one (line and band). The points are means over random subsets of this one input.


# %% tags=["hide-input"]
swept = fractions[1::2]  # of single inputs
vocabulary = datasets.load(recipes.LSTM.data, "test", **recipes.LSTM.data_options).vocabulary


def chosen(kind, ranking):
    """Of the inputs of a kind that lose most one that has a size, if one of the first three has: its place, its size, and how it was chosen."""
    c = next(c for name, c in kinds.items() if name.startswith(kind))
    c = c.of(c.task.part(c.lost(scores, ranking).argsort(descending=True, stable=True)[:3]))
    own = ranked(c, search=False)[ranking]
    reading = partial(c.read_one, own, draws=shown_draws, fractions=swept)
    return c, own, *sizes.first_named(torch.zeros(len(own)), reading, len(own))


def one_figure(kind, searched=False):
    """An input of a kind, its explanation, its curves, and what the size keeps; with the ranking, or what is searched for the same input."""
    c, ranks, at, found, _ = one_of[kind]
    x = c.task.x[at].cpu()
    if searched:
        one = dataclasses.replace(c, task=c.task.part(torch.tensor([at])), known=None)
        ranks = one.rankings(search_steps)["TRACE"].expand_as(ranks)
        found = c.read_one(ranks, at, shown_draws, swept)
    if c.task.x.ndim == 4:
        x = ((x - x.amin()) / (x.amax() - x.amin())).permute(1, 2, 0)
    elif not x.is_floating_point():
        x = [vocabulary[token] if token > 1 else "" for token in x.tolist()]
    known = None if c.known is None else float(c.known[at].double().mean())
    return plots.explanation_size(found, x, ranks[at], c.task.segments, truth=known)


by_kind = {
    "vehicles": "truth",
    "photographs": "Grad-CAM",
    "phrases": "truth",
    "sentences": "Integrated Gradients",
    "spans": "truth",
}
one_of = {kind: chosen(kind, ranking) for kind, ranking in by_kind.items()}
Markdown("\n".join(f"- *{kind}*, {by_kind[kind]}: {how}." for kind, (*_, how) in one_of.items()))


# %% mystnb={"figure": {"caption": "A vehicle pasted into the photograph of an animal, and its known explanation: the square first, its pixels and all others in random order. Curves: FFid+ of this one input, a colour for each cap \u03b2; triangles: the knee that the cap makes.", "name": "ff-beyond-vehicle"}, "image": {"alt": "A small photograph with a square in it, the square alone, and curves of FFid+ over size for several caps."}} tags=["hide-input"]
one_figure("vehicles")

# %% mystnb={"figure": {"caption": "The same vehicle, with the order of its squares of 8 x 8 pixels that TRACE finds by search: those first without which the network no longer sees a vehicle of this class. Curves: FFid+ of this one input, a colour for each cap \u03b2; triangles: the knee that the cap makes.", "name": "ff-beyond-vehicle-searched"}, "image": {"alt": "A small photograph with a square in it, squares of it by rank, and curves of FFid+ over size for several caps."}} tags=["hide-input"]
one_figure("vehicles", searched=True)

# %% mystnb={"figure": {"caption": "A photograph of CIFAR-10 and its Grad-CAM. Nobody knows the truth. Curves: FFid+ of this one input, a colour for each cap \u03b2; triangles: the knee that the cap makes.", "name": "ff-beyond-photograph"}, "image": {"alt": "A small photograph, a heat map, and curves of FFid+ over size for several caps."}} tags=["hide-input"]
one_figure("photographs")

# %% mystnb={"figure": {"caption": "The same photograph, with the order that TRACE finds. Curves: FFid+ of this one input, a colour for each cap \u03b2; triangles: the knee that the cap makes.", "name": "ff-beyond-photograph-searched"}, "image": {"alt": "A small photograph, squares of it by rank, and curves of FFid+ over size for several caps."}} tags=["hide-input"]
one_figure("photographs", searched=True)

# %% mystnb={"figure": {"caption": "A phrase: all tokens but a few are blank, and those explain it. Curves: FFid+ of this one input, a colour for each cap \u03b2; triangles: the knee that the cap makes.", "name": "ff-beyond-phrase"}, "image": {"alt": "The words of a sentence in a row over their relevance, and curves of FFid+ over size for several caps."}} tags=["hide-input"]
one_figure("phrases")

# %% mystnb={"figure": {"caption": "A sentence, by Integrated Gradients. Curves: FFid+ of this one input, a colour for each cap \u03b2; triangles: the knee that the cap makes.", "name": "ff-beyond-sentence"}, "image": {"alt": "The words of a sentence in a row over their relevance, and curves of FFid+ over size for several caps."}} tags=["hide-input"]
one_figure("sentences")

# %% mystnb={"figure": {"caption": "A span: of a watch's steps all but some are blank, and those explain it. Curves: FFid+ of this one input, a colour for each cap \u03b2; triangles: the knee that the cap makes.", "name": "ff-beyond-span"}, "image": {"alt": "Lines over the steps of a series, flat but for a span that is shaded, and curves of FFid+ over size for several caps."}} tags=["hide-input"]
one_figure("spans")

# %% [markdown]
# ## One image, one class, one network
#
# How are sizes spread? Each input is read by itself, from the probability that its network loses, with an interval over random
# subsets; then the inputs of a class together; then those of each network. Of readings without any end one in twenty would name a size by
# chance. The single images were read before the reader knew relevance that decays before it ends, and are not measured again, which
# takes hours. It names fewer sizes today: of four rankings of the first vehicle two had a size, and have none now.


# %% tags=["hide-input"]
def read_singly(cases, inputs):
    """What is read of the first inputs of some kinds, each by itself."""
    rows = []
    for c in (first_of(c, inputs) for c in cases):
        own = ranked(c)
        for name, at in itertools.product((name for name in one_by if name in own), range(len(c.task.x))):
            of = c.read_one(own[name], at, one_draws, swept)
            row = {"data": c.task.dataset, "training_seed": c.task.training_seed, "ranking": name}
            row |= {"image": int(c.task.images[at]), "class": c.classes[int(c.task.target[at])]}
            rows.append(row | {"size": of.fraction, "low": of.low, "high": of.high, "refusal": of.refusal})
    return pd.DataFrame(rows)


pictured = [c for c in cases if c.task.network == "ResNet-9"]


each = run.table("each", partial(read_singly, pictured, ones), again="hours")

# %% mystnb={"figure": {"caption": "Images read one by one, a row for each kind of data, network and ranking: a point for each image that has a size, and how many have one. Dashed: the known size of the vehicles.", "name": "ff-beyond-each"}, "image": {"alt": "Rows of points along the explanation size, one row for each data set, network and ranking, with the number of images that have a size at the right: few of most rows, and those spread widely."}} tags=["hide-input"]
which = each["data"] + ", network " + each["training_seed"].astype(str) + ": " + each["ranking"]
counts = (
    each["size"].notna().groupby(which).transform("sum").astype(str)
    + " of "
    + which.map(which.value_counts()).astype(str)
)
figure, axes = plt.subplots(figsize=(7.3, 0.9 + 0.38 * which.nunique()))
sns.stripplot(x=each["size"], y=which + ", " + counts, color="C0", alpha=0.6, ax=axes)
axes.set(xlabel="size of one input's explanation (share of the features)", xlim=(0, longest), ylabel="")
plots.mark(axes, true["truth"].iloc[0], "truth", height=0.12)
plots.show(figure)

# %% [markdown]
# By class the curves of all its inputs are read together, where there are enough. So few would show a sharp end only. *By chance*: the
# rule's level times the number asked, if all were smooth decays.


# %% tags=["hide-input"]
def read_classes(of):
    """What is read of the inputs of each class, by case and ranking."""
    found = []
    for c, name in of:
        for label in c.task.target.unique().tolist():
            rows = (c.task.target == label).cpu()
            if rows.sum() >= class_least:
                of = c.read(scores, name, rows)
                row = {"data": c.task.dataset, "training_seed": c.task.training_seed, "ranking": name}
                row |= {"class": c.classes[label], "inputs": of.rows}
                found.append(row | {"size": of.fraction, "low": of.low, "high": of.high, "refusal": of.refusal})
    return pd.DataFrame(found)


sorted_by = [(c, name) for c in cases for name in names_of(c) if name not in controls[1:]]
classes = run.table(
    "classes", partial(read_classes, sorted_by), again=lambda: read_classes(sorted_by[:1]).drop(columns="refusal")
)
alone = each[each["ranking"] != "truth"]
counted = [
    (what, len(of), of["size"].count(), f"{0.05 * len(of):.1f}")
    for what, of in (("single images, by the real rankings", alone), ("single classes", classes))
]
tables.prose(pd.DataFrame(counted, columns=["read", "readings", "sizes named", "by chance, up to"]))

# %% tags=["hide-input"]
lines = []
for data, of in alone.groupby("data", sort=False):
    named, about = of["size"].dropna(), {"dataset": data, "network": "ResNet-9", "metric": "a size is named"}
    hits = Scores.concat(
        Scores.of(
            torch.tensor([*own["size"].notna()]), images=[*own["image"]], explainer=name, training_seed=s, **about
        )
        for (name, s), own in of.groupby(["ranking", "training_seed"], sort=False)
    )
    shared = set.intersection(*({*own["ranking"]} for _, own in of.groupby("training_seed")))  # by all networks
    rate = stats.estimate(hits, explainer=sorted(shared))
    more = "more than chance explains" if rate.low > 0.05 else "no more than chance may explain"
    text = f"- *{data}*: {len(named)} of {len(of):,} readings name a size, of an image's readings {tables.share(rate)}, {more}"
    if len(named) > 3:
        text += f"; half of these sizes lie between {named.quantile(0.25):.2f} and {named.quantile(0.75):.2f}"
    lines.append(f"{text}.")
Markdown("\n".join(lines) + "\n\nWhy there are more, where there are, this page does not tell." * bool(lines))

# %% [markdown]
# ## What to take home
#
# - Report a size together with its refusals.
# - Put a map that knows nothing, such as a disc in the middle, to the same test. What it has, too, says nothing about an explainer.
# - *No size* is about the ranking. A good explainer may have none *because* it orders the explanation's inside.
# - Where you need a size, build the control: inputs of your kind with a known explanation, as the vehicles, phrases and spans
#   here. If even that is refused, ask about more inputs.

# %% tags=["hide-input"]
run.finish()
