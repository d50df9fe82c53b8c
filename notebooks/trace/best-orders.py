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
# # How good is the best order that a search finds?
#
# [Which search finds most](searches) is one question; whether that is much is another. How far from the best of all orders is what they
# find? Would the same search find as much with other random numbers? And how long does it take? The paper answers the second by repeated
# runs (appendices D and E), the third in seconds (appendix F); the first it cannot, beyond a few patches.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's ResNet-9, such as {"epochs": 5}: see faithstudy.recipes
training_seed = 0  # of ResNet-9; the others have the study's
compared = [
    "resnet9 16 p 6 900 210",
    "resnet9 16 y 6 900 130",
    "resnet9 64 p 6 10000 280",
    "vit 16 p 6 900 210",
    "vit 16 y 6 900 130",
    "resnet18 49 p 6 6000 230",
    "lstm 32 p 6 3000 260",
    "lstm 32 y 6 3000 150",
    "bilstm 29 p 6 3000 260",
    "bilstm 29 y 6 3000 150",
    "efficientnet-lite0 16 p 4 900 210",
]
photograph_networks = ["efficientnet-lite0"]  # those among them that others trained, for photographs
certified = 6  # inputs of each network whose subsets are all asked, or that independent searches ask about; 0: of none
repeats = 4  # independent searches from random orders, for the estimate
runs = 3  # of each search that draws random numbers, on the first network; of one nothing is known of luck
repeated = 6  # inputs of the first network that they are run on
timed = 3  # inputs of the first network that searches are timed with, each by itself
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0  # of the proposals

# %% tags=["hide-input"]
import dataclasses
import itertools
from functools import partial

import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import search, stats
from faithlab.scores import Scores
from faithlab.stats.samples import Statistic
from faithstudy import plots, search_settings, summaries, tables
from faithstudy.run import Run
from faithstudy.trials import optimum, searches

plots.theme()
run = Run("trace/best-orders", globals())

# %% [markdown]
# ## How much better could an order be?
#
# The eight searches of [the comparison](searches) ask in as many forwards as there, about the first inputs that a network recognises.
# *Ours* is greedy search from both ends with insertion, *best* the best of all eight. Three answers, of different kinds.
#
# - The **optimum**: of up to 16 features all subsets are asked, and the best order is a shortest path through them,
#   as on [](optimality). Probability and logit are read off the same forwards.
# - A **bound** holds for every order: all subsets of one feature, and of all but one, are asked, the best counts, and
#   nothing else is taken for better than certain. So it exists for probabilities alone: a logit has no highest value.
# - An **estimate**: of further searches by insertion, each from a random order of its own, the best two are apart by a gap, and 19 times
#   that gap beyond the best is where the best of all would lie with 95 % confidence, were their values spread evenly below it
#   ({cite:t}`robson1964truncation`). They are not, so that this is no bound, and what the eight searches found may lie above it; where it
#   lies above the bound, the bound takes its place.
#
# Photographs are too dear for all subsets and for further searches, and so are more than 64 features: they have the bound.

# %% tags=["hide-input"]
EXACT, SEARCHED = 16, 64  # features up to which all subsets are asked, and independent searches made
OPTIMUM, BOUND, ESTIMATE = (f"share of the {of}" for of in ("optimum", "bound", "estimate"))
own = {"photographed": photograph_networks, "training": {**training, "seed": training_seed}, "precision": precision}
complete = {}  # by network, features and number of inputs, of both outputs


def known(table, score):
    """A score that looks the first inputs up in a table of all subsets, and asks about the others."""
    lookup = search.lookup(table)

    def ask(keep, at):
        found, there = torch.empty(len(at), dtype=table.dtype, device=table.device), at < len(table)
        found[there] = lookup(keep[there], at[there])
        found[~there] = score(keep[~there], at[~there]).to(found)
        return found

    return ask


def studied(case):
    """The rows of a case: how good the best order of the searches is."""
    task, output = search_settings.task(case, **own), search_settings.OUTPUTS[case.output]
    score, device = task.score(output), task.x.device
    few = task.part(torch.arange(0 if case.network in photograph_networks else min(certified, len(task.x))))
    table = None
    if len(few.x) and case.features <= EXACT:
        if (which := (*case[:2], len(few.x))) not in complete:
            step = f"all subsets of {case.features} features of {len(few.x)} inputs of {case.network}"
            complete[which] = run.kept(step, partial(optimum.all_subsets, few, search_settings.OUTPUTS.values()))
        table = complete[which][[*search_settings.OUTPUTS].index(case.output)]
    score = search.Remembered(score if table is None else known(table, score))  # by all searches together
    about = {"output": output, "most": case.most, "moves": case.moves, "seed": seed}
    found = searches.compare(score, task.images.to(device), case.features, **about)
    last = {name: searches.reached(of.path, case.most) for name, of in found.items()}
    last = {"ours": last.get(searches.OURS[-1]), "best": torch.stack([*last.values()]).amax(0)}
    above = {}  # by kind, what stands above the orders that were found, of the first inputs
    if table is not None:
        above[OPTIMUM] = search.optimum(table, "Le-Mo").value.cpu()
    elif len(few.x) and case.features <= SEARCHED:
        several, many = searches.repeated(score, few.images.to(device), repeats)
        start = search.random_orders(many, case.features, seed=seed + 1)[:, 0]
        again = search.insert(several, start, steps=4 * case.features, seed=seed, images=many).value
        above[ESTIMATE] = search.limit(again.view(repeats, -1).cpu())
    if case.output == "p":
        above[BOUND] = search.ceiling(score, len(task.x), case.features, score_range=(0, 1), device=device).sum(1).cpu()
        if ESTIMATE in above:  # beyond what is certain
            above[ESTIMATE] = above[ESTIMATE].minimum(above[BOUND][: len(few.x)])
    rows = []
    for (kind, top), (whose, value) in itertools.product(above.items(), last.items()):
        if value is not None:
            part = task.part(torch.arange(len(top)))
            labels = {"images": part.images, "reference": "zero", **part.labels}
            rows.append(Scores.of(value[: len(top)] / top, metric=kind, explainer=whose, **labels))
    return Scores.concat(rows) if rows else None


cases = search_settings.cases(compared)


def measure():
    """All cases."""
    found = [run.kept(str(case), partial(studied, case)) for case in cases]
    if there := [rows for rows in found if rows is not None]:
        return Scores.concat(there)
    raise ValueError(
        "nothing stands above these orders: compare a probability, which has a bound, or ask for some certified inputs"
    )


shares = run.table("shares", measure, again="search")

# %% mystnb={"figure": {"caption": "LeRF \u2212 MoRF of the best order that any of the searches found, as a share of the optimum, of an estimate of it, and of a bound that no order exceeds: mean over the inputs with its 95 % interval. Each row: a network, number of features, output (p: probability, y: logit). 1 is the optimum, the estimate, or the bound; an estimate can be exceeded. Below a bound it is not known whether the order or the bound falls short.", "name": "tr-best-orders"}, "image": {"alt": "Dot plot with intervals, a row for each network, number of features and output: shares of the optimum lie close to 1, those of the estimate little below, those of the bound between a half and 0.9."}} tags=["hide-input", "answer"]
kinds = {kind.removeprefix("share of the "): {"metric": kind} for kind in (OPTIMUM, ESTIMATE, BOUND)}
kinds = {name: of for name, of in kinds.items() if of["metric"] in shares.labels("metric")}
outputs = {f", {output.__name__}": f", {letter}" for letter, output in search_settings.OUTPUTS.items()}


def short(block):
    """A block whose network has a name that leaves room for its numbers."""
    network = block.labels["network"].replace(" features", "")
    for long, letter in outputs.items():
        network = network.replace(long, letter)
    return dataclasses.replace(block, labels={**block.labels, "network": network})


brief = Scores([short(block) for block in shares])
MEAN_SHARE = Statistic(stats.mean, within=(float("-inf"), 1.0))  # no share is larger than the whole
of_share = {OPTIMUM: MEAN_SHARE, BOUND: MEAN_SHARE, ESTIMATE: Statistic(stats.mean)}  # an estimate may be too low
certain = {name: of | {"of": of_share[of["metric"]]} for name, of in kinds.items()}
look = {"row": "network", "label": "share", "marks": {1: "all of it"}}
plots.dots(brief, certain, **look, explainer="best")

# %% [markdown]
# A share of the optimum says it exactly. The share of the bound of an order that is better than chance is the least that it can be. A share
# above 1 of either would be an error of a search, and is counted. Without an optimum or a bound nothing is certain: not all subsets were asked, and nothing bounds a logit.


# %% tags=["hide-input"]
def of(network, kind, whom):
    """A share of what is possible, in words."""
    there = {"network": network, "metric": kind, "explainer": whom}
    if not (rows := [block for block in shares if there.items() <= block.labels.items()]):
        return "–"
    values = torch.cat([block.values.flatten() for block in rows])
    above = int((values > 1 + 1e-3).sum()) if kind != ESTIMATE else 0  # beyond rounding; an estimate may be too low
    text = f"{tables.share(stats.estimate(Scores(rows), of_share[kind]))}, {len(values)} inputs"
    return text + f"; {above} above 1: an error of the search" * bool(above)


columns = {f"ours, {OPTIMUM}": (OPTIMUM, "ours"), f"best, {OPTIMUM}": (OPTIMUM, "best")}
columns |= {f"best, {kind}": (kind, "best") for kind in (ESTIMATE, BOUND)}
asked = [case.called for case in cases]
said = {network: {column: of(network, *which) for column, which in columns.items()} for network in asked}
tables.prose(pd.DataFrame(said).T.rename_axis("network").reset_index())

# %% [markdown]
# ## How much is luck?
#
# Tabu search, the genetic algorithm and annealing draw random numbers. Here they start anew with other random numbers, on inputs of the
# first network, with as many forwards each, from random orders. *Spread* is the standard deviation over the runs on one input, mean over
# the inputs, as a part of the best of all these runs.


# %% tags=["hide-input"]
def again():
    """The values of every run of the searches that draw, as parts of the best of them all."""
    case = cases[0]._replace(inputs=repeated)
    task, output = search_settings.task(case, **own), search_settings.OUTPUTS[case.output]
    score, identity = search.Remembered(task.score(output)), task.images.to(task.x.device)
    values = {}
    for name, draw in itertools.product(("annealing", "tabu search", "genetic algorithm"), range(runs)):
        way, numbers = searches.ways(output, case.moves)[name], {"seed": seed + 1000 * (1 + draw), "images": identity}
        begin = search.random_orders(identity, case.features, seed=numbers["seed"])[:, 0]
        asking = search.Remembered(score), begin, case.most, 4 * case.moves, way.stride
        values[name, draw] = searches.by_forwards(way.further, *asking, **numbers)[-1][1]
    top = torch.stack([*values.values()]).amax(0)
    top = top.masked_fill(top <= 0, torch.nan)
    labels = {"images": task.images, "reference": "zero", **task.labels}
    metric = "part of the best of the runs"
    return Scores.concat(
        Scores.of(value / top, metric=metric, explainer=name, draw=draw, **labels)
        for (name, draw), value in values.items()
    )


repeated_runs = run.table("repeats", again, again="search")
luck = {}
for name in repeated_runs.labels("explainer"):
    values = torch.stack([block.values[:, 0] for block in repeated_runs.where(explainer=name)])
    part = tables.share(stats.estimate(repeated_runs, MEAN_SHARE, explainer=name))
    spread = values.std(0, unbiased=True).nanmean() if len(values) > 1 else torch.nan
    luck[name] = {"part of the best run": part, "spread of a run": "–" if spread != spread else f"{100 * spread:.1f} %"}
drawn = (
    f"{len(values)} run{'s' * (len(values) > 1)} of each search on {values.shape[1]} input{'s' * (values.shape[1] > 1)}"
)
drawn += f" of {repeated_runs.labels('network')[0]}"
tables.prose(pd.DataFrame(luck).T.rename_axis("search").reset_index()).set_caption(f"{drawn}.")

# %% [markdown]
# ## How long does it take?
#
# Each search by itself, on inputs of the first network, so that nothing is known before that another has asked. The seconds are of
# one machine, and of whatever ran beside it: they say which search is dear, not how dear it is.


# %% tags=["hide-input"]
def clocked():
    """Forwards and seconds of every search for each input, none of which knows what another has asked."""
    case = cases[0]._replace(inputs=timed)
    task, output = search_settings.task(case, **own), search_settings.OUTPUTS[case.output]
    score, device = task.score(output), task.x.device
    score(torch.ones(timed, 1, case.features, dtype=torch.bool, device=device))  # the first call prepares
    about = {"output": output, "most": case.most, "moves": case.moves, "seed": seed}
    found = searches.compare(score, task.images.to(device), case.features, **about)
    rows = [(name, of.forwards, of.seconds) for name, of in found.items()]
    return pd.DataFrame(rows, columns=["search", "forwards", "seconds"]).assign(network=case.called, inputs=timed)


seconds = run.table("seconds", clocked, again="time")
shown = seconds[["search"]].assign(
    **{
        "forwards an input": seconds["forwards"].map("{:,.0f}".format),
        "seconds an input": seconds["seconds"].map("{:.2g}".format),
    }
)
tables.prose(shown).set_caption(f"{seconds['network'].iloc[0]}; inputs timed: {timed}.")

# %% tags=["hide-input", "headline"]
kind = next((kind for kind in (OPTIMUM, BOUND) if kind in shares.labels("metric")), ESTIMATE)
networks = shares.where(metric=kind).labels("network")
parts = {of: stats.estimate(shares, of_share[kind], metric=kind, explainer="best", network=of) for of in networks}
order = sorted(parts, key=lambda network: float(parts[network]))
ends = [
    f"{tables.share(parts[network])} ({network}; {parts[network].images} inputs)"
    for network in dict.fromkeys((order[0], order[-1]))
]
others = [block for block in shares if block.labels["explainer"] == "best" and block.labels["network"] not in networks]
found_of = {}
for cell, of in stats.summary(Scores(others), ["metric", "network"]):
    found_of.setdefault(cell["metric"].removeprefix("share of the "), []).append(round(100 * float(of)))
elsewhere = [f"{' to '.join(map(str, sorted({min(of), max(of)})))} % of the {what}" for what, of in found_of.items()]
elsewhere = f" Elsewhere it is {summaries.listed(elsewhere)}." if elsewhere else ""
lead = {
    OPTIMUM: f"**{' to '.join(f'{100 * float(parts[network]):.1f} %' for network in (order[0], order[-1]))} of the optimum**, where that is known",
    BOUND: "**How good is not known, but how bad at most**",
    ESTIMATE: "**Nothing is certain of these**",
}[kind]
spreads = summaries.listed([f"{of['spread of a run']} ({name})" for name, of in luck.items()])
Markdown(
    f"{lead}: the best of the searches reaches {' to '.join(ends)}, as a mean share of the {kind.removeprefix('share of the ')}.{elsewhere} One run of "
    f"a search is not another: their values differ by {spreads}, as a standard deviation over {drawn}."
)

# %% tags=["hide-input"]
run.finish()
