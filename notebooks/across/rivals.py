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
# # Is a paper's metric better than its rivals?
#
# *Each paper shows that its metric beats others, by a trial of its own.* The [examination](examination) puts all of them to seven
# trials, so that the same pairs meet in the trials of the others, too. And some metrics differ in one choice only: what does each choice do?

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
images = 200  # to ask again with more draws

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import stats
from faithlab.metrics import METRICS
from faithstudy import architectures, plots, profiles, records, summaries, tables
from faithstudy.claims import better
from faithstudy.diagnostics import Reason
from faithstudy.run import Run
from faithstudy.trials import examination, tasks

plots.theme()
run = Run("across/rivals", globals())

# %% [markdown]
# ## What it rests on
#
# The numbers are those of the [examination](examination): the trials' $T$, 1 for always right and 0 for a coin, of
# every metric, network and input. Only the claims on 50 draws evaluate a network here.

# %% tags=["hide-input"]
each = records.recorded("across/examination", "singles").frame
run.save(each, "singles")
places = {kind.name: (f"{kind.recipe.data} test", kind.network) for kind in architectures.KINDS.values()}

# %% [markdown]
# ## Is a paper's metric better away from home?
#
# What is compared is $T$ on single inputs: there every metric has room to be better.

# %% tags=["hide-input"]
places |= {"known truth": ("drawn inputs", "closed form")}  # Truth has a network of its own, the same for all kinds
asked = {tuple(b.labels[of] for of in ("metric", "variant", "dataset", "network")) for b in each}


def duels(pairs):
    """Is one metric better than the other? A part of a claim for each trial and kind of network that asks both."""
    found = {}
    for one, other in pairs:
        for trial in examination.TRIALS:
            for kind, (data, network) in places.items():
                if {(name, trial, data, network) for name in (one, other)} <= asked:
                    where = {"variant": trial, "dataset": data, "network": network}
                    name = f"{one} > {other}, {trial}, {kind}"
                    found[f"{one} > {other}", trial, kind] = better(
                        each, {"metric": one}, {"metric": other}, name=name, **where
                    )
    return found


def differences(parts):
    """The difference of T in each part, and on which side of zero its interval lies, tidy."""
    rows = []
    for (pair, trial, kind), part in parts.items():
        value, low, high = (float(x) for x in part.estimate.pooled)
        sign = "+" if low > 0 else "−" if high < 0 else ""
        rows.append({"pair": pair, "trial": trial, "kind": kind, "mean": value, "low": low, "high": high, "sign": sign})
    return pd.DataFrame(rows)


def duel_map(found):
    """Differences as colours, a panel for each kind of network; a sign where the interval does not hold 0."""
    pairs = list(dict.fromkeys(found["pair"]))
    trials = {kind: [t for t in examination.TRIALS if t in set(of["trial"])] for kind, of in found.groupby("kind")}
    kinds_there = [kind for kind in places if kind in trials]
    deep = [*(len(trials[kind]) for kind in kinds_there), 0.5]  # the last one is the key
    # As narrow as a phone.
    figure, panels = plt.subplots(
        len(deep), 1, figsize=(3.7, 0.24 * sum(deep) + 0.4 * len(deep) + 2), height_ratios=deep
    )
    for axes, kind in zip(panels, kinds_there, strict=False):
        own = found[found["kind"] == kind]
        grid, signs = (
            own.pivot(index="trial", columns="pair", values=of).loc[trials[kind]].reindex(columns=pairs)
            for of in ("mean", "sign")
        )
        look = {"cmap": "vlag_r", "center": 0, "vmin": -0.5, "vmax": 0.5, "linewidths": 0.5, "xticklabels": False}
        key = {"cbar_ax": panels[-1], "cbar_kws": {"label": "difference of T", "orientation": "horizontal"}}
        sns.heatmap(grid.astype(float), annot=signs.fillna(""), fmt="", ax=axes, **look, **key)
        look = {"xycoords": "axes fraction", "textcoords": "offset points", "fontsize": "x-small", "weight": "bold"}
        axes.annotate(kind, (0, 1), (-5, 2), ha="right", **look)
        axes.set(xlabel="", ylabel="", facecolor="0.93")
        axes.grid(False)
        axes.tick_params(axis="y", rotation=0, labelsize="small")
    panels[0].xaxis.tick_top()
    panels[0].set_xticks([k + 0.5 for k in range(len(pairs))], pairs, rotation=90, fontsize="x-small")
    return plots.show(figure)


def counted_in_words(found):
    """In how many of the cells the first of each pair is better and worse, a line for each pair."""
    lines = []
    for pair, of in found.groupby("pair", sort=False):
        signs = of["sign"].value_counts()
        lines.append(f"- {pair}: better in {signs.get('+', 0)}, worse in {signs.get('−', 0)} of {len(of)} cells.")
    return "\n".join(lines)


papers = {
    "F-Fidelity": [("FFid+", "Fid+"), ("FFid+", "RFid+"), ("FFid-", "Fid-"), ("FFid-", "RFid-")],
    "SaCo": [("SaCo", rival) for rival in ("AUC", "AOPC", "LOdds", "Comp.")],
    "TRACE": [("LeRF - MoRF", "LeRF"), ("LeRF - MoRF", "MoRF")],
}
home = {"F-Fidelity": "Order", "SaCo": "Chance", "TRACE": "Gaming"}
parts = {paper: duels(pairs) for paper, pairs in papers.items()}
away = pd.concat([differences(of).assign(home=home[paper]) for paper, of in parts.items()], ignore_index=True)
run.save(away, "away")

# %% mystnb={"figure": {"caption": "A paper's metric against its rivals, in every trial and on every kind of network: the difference of T on single inputs. + and \u2212: its 95 % interval lies above or below 0. Grey: the trial does not apply to both.", "name": "fi-away"}, "image": {"alt": "Heat maps of differences, a panel for each kind of network: rows are trials, columns are pairs of a paper's metric and a rival."}} tags=["hide-input", "answer"]
duel_map(away)

# %% tags=["hide-input"]
at_home = away["trial"] == away["home"]
Markdown(
    "In how many cells the 95 % interval is on one side, away from the trial of the metric's own paper, which the claims below leave "
    f"out (they judge each of so many cells at a stricter level, and settle fewer):\n\n{counted_in_words(away[~at_home])}\n\nAnd in that trial:\n\n{counted_in_words(away[at_home])}"
)

# %% [markdown]
# The three claims are our own, in the papers' spirit: a metric that is better should be so in the trials of others, too.
# F-Fidelity's columns are those of an input cut into 36 squares, series of a few steps and reviews of a few words. How it does at
# the scale of its paper, with single pixels, is judged on [](../f-fidelity/images).


# %% tags=["hide-input"]
def why(verdict):
    """By the label that the cells of a claim differ most by, the rival, the trial or the network: what they say."""
    cells = verdict.frame().query("network == 'pooled'").reset_index(drop=True)
    by = ["rival", "trial", "kind of network"]
    cells[by] = cells["part"].str.split(", ", n=2, expand=True)
    spread = {of: cells.groupby(of)["value"].transform("mean").var() for of in by if len({*cells[of]}) > 1}
    groups = cells.groupby(max(spread, key=spread.get) if spread else "trial", sort=False)
    said = groups["outcome"].value_counts().unstack(fill_value=0)
    said = said[[of for of in ("holds", "fails", "open", "depends on the network") if of in said]]
    said.insert(0, "mean difference of T", groups["value"].mean().map("{:+.2f}".format).str.replace("-", "−"))
    shown = tables.prose(said.loc[[name for name, _ in groups]].astype(str).reset_index())
    shares = ", ".join(f"{of} {part / cells['value'].var():.0%}" for of, part in spread.items())
    return tables.noted(shown, f"Of the variance of these differences goes with the {shares}") if shares else shown


f_fidelity = run.claim(
    "fi-f-fidelity",
    "this page",
    "With two draws F-Fidelity does better on a single input than Fidelity and R-Fidelity in the trials of other papers, too.",
    [part for (_, trial, _), part in parts["F-Fidelity"].items() if trial != home["F-Fidelity"]],
)
f_fidelity

# %% [markdown]
# **Why?** Does it go with the rival, the trial or the kind of network? The cells of the claim, by the one that their differences
# go with most. Whether two draws are too few is asked below.

# %% tags=["hide-input"]
why(f_fidelity)

# %% tags=["hide-input"]
saco = run.claim(
    "fi-saco",
    "this page",
    "On a single input SaCo does better than AUC, AOPC, LOdds and Comprehensiveness in the trials of other papers, too.",
    [part for (_, trial, _), part in parts["SaCo"].items() if trial != home["SaCo"]],
)
saco

# %% [markdown]
# **Why?** Does it go with the rival, the trial or the kind of network? The cells of the claim, by the one that their differences
# go with most. Of the rivals only AUC counts hits; what that costs is judged below.

# %% tags=["hide-input"]
why(saco)

# %% tags=["hide-input"]
trace = run.claim(
    "fi-trace",
    "this page",
    "On a single input LeRF − MoRF does better than LeRF and than MoRF in the trials of other papers, too.",
    [part for (_, trial, _), part in parts["TRACE"].items() if trial != home["TRACE"]],
)
trace

# %% [markdown]
# **Why?** LeRF − MoRF is two metrics added up. Is the sum better than both, or does it lie between a better and a worse end?

# %% tags=["hide-input"]
beside_ends = away[(away["home"] == "Gaming") & ~away["trial"].eq("Gaming")]
beside_ends = beside_ends.pivot(index=["trial", "kind"], columns="pair", values="mean").dropna()
above, below_ = (beside_ends > 0).all(axis=1).sum(), (beside_ends < 0).all(axis=1).sum()
between_ends = ((beside_ends > 0).any(axis=1) & (beside_ends < 0).any(axis=1)).sum()
Markdown(
    f"By the means, its *T* lies above that of both ends in {above} of {len(beside_ends)} trials and kinds of network, between them "
    f"in {between_ends}, below both in {below_}, and elsewhere level with one."
)

# %% tags=["hide-input"]
why(trace)

# %% [markdown]
# **Is it the few draws?** The examination gives R- and F-Fidelity two random subsets for each size, where the paper draws 50. So
# the same is asked again here with both, of one network. Where 50 draws do
# better than two, the columns above say something of the draws, and of what they cost; only where they still do worse than
# Fidelity do they speak of the metric.

# %% tags=["hide-input"]
settings = profiles.resolve("across/examination") | {"images": images}
one = architectures.asked("resnet9 0", settings, references=False)
two = {name: one.explainers[name] for name in ("gradcam", "integrated-gradients")}
sizes = [k / 10 for k in range(1, 10)]
same = {"Fid+": METRICS["Fid+"].given(sizes=sizes)}
same |= {f"FFid+, {n} draws": METRICS["FFid+"].given(sizes=sizes, draws=n) for n in (2, 50)}
by_trial = {trial: {"variant": trial} for trial in ("Order", "Chance")}


def with_draws(task):
    """T of each image in Order and Chance."""
    maps = tasks.attributions(task, two)
    return examination.singles(examination.directly(same, task, maps, {}, levels=settings["noise_shares"]), same)


# T takes few values: a hit that rounding turns moves it by much.
drawn = run.table("draws", with_draws, [one.task], rounding=records.BFLOAT16._replace(few=0.15))
tables.estimates({name: {"metric": name} for name in same}, by_trial, drawn)

# %% tags=["hide-input"]
run.claim(
    "fi-draws",
    "this page",
    "With the paper's 50 draws F-Fidelity does better on a single image than with two.",
    [
        better(drawn, {"metric": "FFid+, 50 draws"}, {"metric": "FFid+, 2 draws"}, variant=trial, name=trial)
        for trial in ("Order", "Chance")
    ],
)

# %% tags=["hide-input"]
run.claim(
    "fi-fifty",
    "this page",
    "With 50 draws F-Fidelity still does worse on a single image than Fidelity.",
    [
        better(drawn, {"metric": "Fid+"}, {"metric": "FFid+, 50 draws"}, variant=trial, name=trial)
        for trial in ("Order", "Chance")
    ],
)

# %% [markdown]
# **Why?** Are the two level, or are the images too few to tell? What the draws bring, what is left between the metrics then, and
# whether that is less than what few draws cost:

# %% tags=["hide-input"]
few, several, plain = ({"metric": name} for name in ("FFid+, 2 draws", "FFid+, 50 draws", "Fid+"))
possible = []
for trial in by_trial:
    cost = {"cells": [several, few, plain], "contrasts": torch.tensor([[2.0, -1.0, -1.0]])}
    gain, left = (stats.paired(drawn, *pair, variant=trial) for pair in ((several, few), (plain, several)))
    possible.append(Reason("Do more draws help?", f"{trial}: T, 50 draws − 2 draws", gain, above=0))
    possible.append(Reason("Is Fidelity still ahead?", f"{trial}: T, Fid+ − 50 draws", left, above=0))
    more = stats.estimate(drawn, variant=trial, **cost)
    possible.append(
        Reason(
            "Do few draws cost more than Fidelity is still ahead by?",
            f"{trial}: (50 draws − 2) − (Fid+ − 50 draws)",
            more,
            above=0,
        )
    )
run.why("fi-fifty", *possible)

# %% [markdown]
# ## What makes a metric good?
#
# Some metrics differ in one choice, or little more. What does each choice do, whatever the metric is called?
#
# | Choice | Pair |
# |---|---|
# | **read off** the probability in place of a hit or miss, of the same inputs | AOPC and AUC |
# | **remove the least** relevant first in place of the most | LeRF and MoRF, Fid− and Fid+ |
# | **both ends** in place of one | LeRF − MoRF and LeRF |
# | **stand in** the mean colour in place of zero (and ten steps in place of every feature) | AOPC and MoRF |
# | **remove some** of the most relevant, at random, in place of all | RFid+ and Fid+, RFid− and Fid− |
# | **fine-tune** the network for that, and remove at most a tenth | FFid+ and RFid+, FFid− and RFid− |

# %% mystnb={"figure": {"caption": "What a choice does to T on single inputs, in every trial and on every kind of network. + and \u2212: the 95 % interval lies above or below 0.", "name": "fi-choices"}, "image": {"alt": "Heat maps of differences, a panel for each kind of network: rows are trials, columns are pairs of metrics that differ in one choice."}} tags=["hide-input"]
choices = duels(
    [
        ("AOPC", "AUC"),
        ("LeRF", "MoRF"),
        ("Fid-", "Fid+"),
        ("LeRF - MoRF", "LeRF"),
        ("AOPC", "MoRF"),
        ("RFid+", "Fid+"),
        ("RFid-", "Fid-"),
        ("FFid+", "RFid+"),
        ("FFid-", "RFid-"),
    ]
)
effects = differences(choices)
run.save(effects, "choices")
duel_map(effects)

# %% tags=["hide-input"]
Markdown(counted_in_words(effects))

# %% tags=["hide-input"]
probability = run.claim(
    "fi-probability",
    "this page",
    "A metric that reads off the probability does better on a single input than the same one that counts hits (AOPC and AUC).",
    [part for (pair, _, _), part in choices.items() if pair == "AOPC > AUC"],
)
probability

# %% [markdown]
# **Why?** The same of this claim: what do its cells differ most by?

# %% tags=["hide-input"]
why(probability)

# %% tags=["hide-input"]
of_truth = choices.get(("LeRF > MoRF", "Truth", "known truth"))
of_both = (
    of_truth and f"LeRF less MoRF is {tables.number(of_truth.estimate)} on {of_truth.estimate.images} drawn inputs"
)
Markdown(f"The next claim leaves *Truth* out: there {of_both or 'both are not asked here'}.")

# %% tags=["hide-input"]
least_first = run.claim(
    "fi-least-first",
    "this page",
    "Removing the least relevant features first does better on a single input than removing the most (LeRF and MoRF).",
    [part for (pair, trial, _), part in choices.items() if pair == "LeRF > MoRF" and trial != "Truth"],
)
least_first

# %% [markdown]
# **Why?** The same of this claim: what do its cells differ most by?

# %% tags=["hide-input"]
why(least_first)

# %% [markdown]
# What a network has to lose to a random order, and so which end has something to show, is measured in the [examination](examination).

# %% tags=["hide-input", "headline"]
told = away[away["trial"] != away["home"]]


def by_side(paper):
    """In how many cells a paper's metric is clearly better and clearly worse than a rival, in words."""
    signs = told[told["home"] == home[paper]]["sign"].value_counts()
    name = {"F-Fidelity": "F-Fidelity (of two draws)", "TRACE": "LeRF − MoRF (of TRACE's paper)"}.get(paper, paper)
    return f"**{name}** is better in {signs.get('+', 0)} and worse in {signs.get('−', 0)} of {signs.sum()} comparisons"


ahead = [f"{tables.number(stats.paired(drawn, plain, several, variant=t))} ({t})" for t in by_trial]
Markdown(
    "Away from the trial of its own paper, on single inputs: "
    + summaries.listed([by_side(paper) for paper in papers])
    + " with a rival, each by a trial and on a kind of network; elsewhere the 95 % interval holds 0. "
    "Some of so many are so by chance: the claims below judge at a stricter level. "
    f"With the paper's 50 draws, on one network, Fidelity less F-Fidelity is {summaries.listed(ahead)}."
)

# %% tags=["hide-input"]
run.finish()
