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
# # Which metric should I use?
#
# The [examination](examination) puts every metric to seven trials. This page says what follows from it: which metric to take
# for which network, whether a paper's metric is better than its rivals *outside* the trial by which its paper shows it, and
# which choices in the making of a metric do good. Ten minutes are enough for it.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, study or paper: see notebooks/profiles.yml
images = 8  # to ask again with more draws
forwards = 100000  # that you can spend, to tell two explanations apart that differ

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import stats
from faithlab.claims import better
from faithlab.metrics import METRICS, evaluate
from faithlab.study import figures, kinds, profiles, tables
from faithlab.study.reasons import Reason
from faithlab.study.results import Run, recorded
from faithlab.trials import examination, subjects
from faithlab.trials.peers import PEERS

figures.theme()
run = Run("across/findings", globals())

# %% [markdown]
# ## What it rests on
#
# The numbers are those of the examination's largest recorded run: the trials' $T$, 1 for always right and 0 for a coin, of
# every metric, network and input. Only where more draws, or a control, would tell is the network asked again.

# %% tags=["hide-input"]
kept = {table: recorded("across/examination", table) for table in ("singles", "trust", "price", "networks")}
each, trust, price, networks = (table.frame for table in kept.values())
run.save(each, "singles")
places = {kind.name: (f"{kind.recipe.data} test", kind.network) for kind in kinds.KINDS.values()}
here = [kind for kind in places if kind in set(trust["kind"])]
Markdown(
    f"Recorded in the profile *{kept['trust'].profile}*: "
    + "; ".join(
        f"*{kind}*, {len(of)} network{'s' * (len(of) > 1)} and {of['explained'].max()} inputs of each"
        for kind, of in networks.groupby("kind", sort=False)
    )
    + ". What is said of a kind with a single network is said of this network."
)

# %% [markdown]
# ## What to use on Monday
#
# You have two explanations of a network's answers and want to know which one is better, on the mean over many inputs. Take a
# metric that fails no trial, passes *Truth*, which has a network of its own and which [numbers that never ask the network](controls) do not
# pass, and one with a right answer that such a network was put to (*Stand-in* and *Repeat* only ask the same twice), of those the one that passes
# most that you can pay, and of equals the cheapest. The price is what it takes to tell an explanation from one with 40 %
# of its scores shuffled and from a random order.

# %% mystnb={"figure": {"caption": "Of the examination's recorded run: metrics that fail no trial and pass Truth, and Order, Chance, Own model or Gaming, for each kind of network: the forwards that it takes to tell two explanations apart (95 % interval; an arrow: it may take more than is shown), and in the circle how many of the network's own trials the metric passed. The darker the circle, the more. The dashed line is what you can spend. Metrics with a library's name before theirs are not taken, whatever they pass.", "name": "fi-use"}, "image": {"alt": "A panel for each kind of network: metrics that fail no trial, the cheapest at the top, with the forwards that they need on a logarithmic axis."}} tags=["hide-input", "answer"]
advice = examination.advice(trust, price)
usable = advice[advice["place"].notna()].merge(price, on=["kind", "metric"])
usable = usable.assign(
    passes=usable["passed"].str.split(", ").map(lambda trials: len({*trials} - {examination.BUILT, ""})),
    least=2 * usable["each"] * usable["images_low"],
    most=2 * usable["each"] * usable["images_high"],
)
run.save(usable.drop(columns="failed"), "usable")  # which fail nothing
end = 30 * max(forwards, usable.loc[usable["forwards"] < float("inf"), "forwards"].max())
rows = [max(2, (usable["kind"] == kind).sum()) for kind in here]
look = {"figsize": (3.6, 1.2 + 0.24 * sum(rows) + 0.4 * len(rows)), "height_ratios": rows}  # a phone's width
figure, panels = plt.subplots(len(here), 1, sharex=True, squeeze=False, **look)
for axes, kind in zip(panels[:, 0], here, strict=True):
    of = usable[usable["kind"] == kind].iloc[::-1]
    if of.empty:
        axes.set_yticks([])
        axes.text(
            0.5,
            0.5,
            "no metric passes what it must",
            transform=axes.transAxes,
            ha="center",
            va="center",
            fontsize="x-small",
        )
    axes.hlines(of["metric"], of["least"].clip(upper=end), of["most"].clip(upper=end), color="0.6", zorder=1)
    beyond = of[of["most"] > end]
    axes.scatter([end] * len(beyond), beyond["metric"], marker=">", color="0.6", s=18)
    there = of[of["forwards"] < end]
    axes.scatter(there["forwards"], there["metric"], c=there["passes"], cmap="viridis_r", vmin=1, vmax=6, s=90)
    for row in there.itertuples():
        axes.text(
            row.forwards,
            row.metric,
            row.passes,
            color="white" if row.passes > 2 else "black",
            size="x-small",
            ha="center",
            va="center",
        )
    axes.axvline(forwards, linestyle="--", color="0.3", linewidth=0.8)
    axes.set(xscale="log")
    axes.set_title(kind, fontsize="small")
    axes.tick_params(labelsize="x-small")
    axes.set_ylim(-0.6, max(2, len(of)) - 0.4)
panels[-1, 0].set_xlabel("forwards that it takes", fontsize="small")
figures.show(figure)


# %% [markdown]
# Of the metrics of this study, those that pass most and can be paid, the cheapest. Metrics of other libraries have their name before
# theirs. They took the trials as they are, but are not recommended: [some have faults](../cost/peers) that no trial sees. Do not
# read the number of a *single* input as a verdict on its explanation: [of none is it known to be right often enough](examination).

# %% tags=["hide-input"]
take = examination.recommended(advice, price, forwards)
none_of = {
    kind: f"none is sure to do with {forwards:,}" if kind in {*usable["kind"]} else "no metric passes what it must"
    for kind in here
}
rows = []
for kind in here:
    row = usable.set_index(["kind", "metric"], drop=False).loc[(kind, take[kind])] if kind in take else None
    taken = {} if row is None else dict(row[["passed", "open"]])
    left = [trial for trial in examination.TRIALS if row is not None and trial not in ", ".join(taken.values())]
    taken |= {"not put to": ", ".join(left)}
    needs = "" if row is None else f"{row['forwards']:,.0f} (at most {row['most']:,.0f})"
    rows.append({"kind": kind, "take": take.get(kind, none_of[kind]), **taken, "forwards": needs})
tables.prose(pd.DataFrame(rows).fillna(""))

# %% tags=["hide-input", "headline"]
rows = usable.set_index(["kind", "metric"])
said = {kind: rows.loc[(kind, take[kind])] for kind in here if kind in take}
Markdown(
    f"With {forwards:,} forwards: "
    + "; ".join(
        f"**{take[kind]}** for *{kind}* ({said[kind]['forwards']:,.0f} [{said[kind]['least']:,.0f}, {said[kind]['most']:,.0f}] forwards tell two explanations apart)"
        if kind in said
        else f"for *{kind}* {none_of[kind]}"
        for kind in here
    )
    + f". Taken is, of our own metrics, what fails no trial of the examination, and of that what passes most (recorded run, {kept['trust'].profile} profile: "
    f"{len(networks)} networks, at most {networks['explained'].max()} inputs of each)."
)

# %% [markdown]
# What the others fail, and on how many kinds of network:

# %% tags=["hide-input"]
failed = advice[advice["failed"] != ""].assign(trial=lambda f: f["failed"].str.split(", ")).explode("trial")
run.save(failed.drop(columns="place"), "failed")
counts = failed.groupby(["trial", "metric"]).size().reset_index(name="kinds").sort_values("kinds", ascending=False)
put_to = trust[(trust["size"] == examination.SIZES[0]) & (trust["verdict"] != examination.NONE)]
put_to = put_to.groupby(["trial", "metric"]).size()  # neither metrics nor trials are asked on all kinds
counts["metric"] = [f"{m} ({k} of {put_to[t, m]})" for t, m, k in counts.itertuples(index=False)]
counts = (
    counts.groupby("trial")["metric"]
    .agg(", ".join)
    .reindex([t for t in examination.TRIALS if t in set(counts["trial"])])
)
tables.prose(counts.rename_axis("Trial").reset_index(name="Failed by"))

# %% [markdown]
# ## Is a paper's metric better away from home?
#
# Each paper shows that its metric beats others, by a trial of its own. Here the same pairs meet in every trial. What is
# compared is $T$ on single inputs: there every metric has room to be better.

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
    return figures.show(figure)


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

# %% mystnb={"figure": {"caption": "A paper's metric against its rivals, in every trial and on every kind of network: the difference of T on single inputs. + and −: its 95 % interval lies above or below 0. Grey: the trial does not apply to both.", "name": "fi-away"}, "image": {"alt": "Heat maps of differences, a panel for each kind of network: rows are trials, columns are pairs of a paper's metric and a rival."}} tags=["hide-input"]
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
#
# Where a claim of this page says *this build*, it was judged in this build; the scores that it judges are those of the examination's
# recorded run. Only the claims on 50 draws and on infidelity ask the network here.

# %% tags=["hide-input"]
run.claim(
    "fi-f-fidelity",
    "this page",
    "With two draws F-Fidelity does better on a single input than Fidelity and R-Fidelity in the trials of other papers, too.",
    [part for (_, trial, _), part in parts["F-Fidelity"].items() if trial != home["F-Fidelity"]],
)


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
    return tables.prose(said.loc[[name for name, _ in groups]].astype(str).reset_index())


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
# the same is asked again here with both, of one network; the table is of the recorded run, where there is one. Where 50 draws do
# better than two, the columns above say something of the draws, and of what they cost; only where they still do worse than
# Fidelity do they speak of the metric.

# %% tags=["hide-input"]
settings = profiles.resolve("across/examination", "quick") | {"images": images}
one = kinds.asked("resnet9 0", settings)
maps = subjects.attributions(one.subject, one.explainers)
two = {name: maps[name] for name in ("gradcam", "integrated-gradients")}
sizes = [k / 10 for k in range(1, 10)]
same = {"Fid+": METRICS["Fid+"].given(sizes=sizes)}
same |= {f"FFid+, {n} draws": METRICS["FFid+"].given(sizes=sizes, draws=n) for n in (2, 50)}
table = examination.directly(same, one.subject, two, {}, levels=settings["noise_shares"])
drawn = examination.singles(table, same)
run.save(drawn, "draws")
shown = recorded("across/findings", "draws")
drawn_by = "recorded" if shown else "this build"
shown = shown.frame if shown else drawn
by_trial = {trial: {"variant": trial} for trial in ("Order", "Chance")}
tables.estimates({name: {"metric": name} for name in same}, by_trial, shown)

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
    gain, left = (stats.paired(shown, *pair, variant=trial) for pair in ((several, few), (plain, several)))
    possible.append(Reason("Do more draws help?", f"{trial}: T, 50 draws − 2 draws", gain, above=0))
    possible.append(Reason("Is Fidelity still ahead?", f"{trial}: T, Fid+ − 50 draws", left, above=0))
    more = stats.estimate(shown, variant=trial, **cost)
    possible.append(
        Reason(
            "Do few draws cost more than Fidelity is still ahead by?",
            f"{trial}: (50 draws − 2) − (Fid+ − 50 draws)",
            more,
            above=0,
        )
    )
run.why("fi-fifty", *possible, source=drawn_by)

# %% [markdown]
# ## And the metrics of other libraries?
#
# They are asked as they are, with their own references, draws and settings, and share nothing with the engine but the explanations.

# %% tags=["hide-input"]
others = advice[advice["metric"].isin(PEERS)]
tables.prose(others[["metric", "kind", "passed", "failed", "open"]])

# %% [markdown]
# **Why may infidelity fail?** It compares what an explanation says that a random part of the pixels is worth with what the answer loses
# without it, and calls the mean square of the difference infidelity. Most of that is the *mean* loss, which a map that says the same of
# every pixel tells well, and one whose parts sum to nothing does not. So what does it say of a map that is the same everywhere?

# %% tags=["hide-input"]
infidelity = "captum: infidelity"
flat = {"the same everywhere": torch.ones_like(maps["gradcam"])}
told = evaluate({infidelity: PEERS[infidelity]}, one.subject, maps | flat)
run.save(told, "infidelity")
run.claim(
    "fi-infidelity",
    "this page",
    "captum's infidelity prefers a map that is the same everywhere to every explanation.",
    [better(told, {"explainer": next(iter(flat))}, {"explainer": name}, less=True, name=name) for name in maps],
)

# %% [markdown]
# ## What makes a metric good?
#
# Some metrics differ in one choice only. What does each choice do, whatever the metric is called?
#
# | Choice | Pair |
# |---|---|
# | **read off** the probability in place of a hit or miss, of the same inputs | AOPC and AUC |
# | **remove the least** relevant first in place of the most | LeRF and MoRF, Fid− and Fid+ |
# | **both ends** in place of one | LeRF − MoRF and LeRF |
# | **stand in** the mean colour in place of zero | AOPC and MoRF |
# | **remove some** of the most relevant, at random, in place of all | RFid+ and Fid+, RFid− and Fid− |
# | **fine-tune** the network for that, and remove at most a tenth | FFid+ and RFid+, FFid− and RFid− |

# %% mystnb={"figure": {"caption": "What a choice does to T on single inputs, in every trial and on every kind of network. + and −: the 95 % interval lies above or below 0.", "name": "fi-choices"}, "image": {"alt": "Heat maps of differences, a panel for each kind of network: rows are trials, columns are pairs of metrics that differ in one choice."}} tags=["hide-input"]
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

# %% [markdown]
# ## Rules of thumb
#
# 1. Ask metrics of *several* families, and believe what they agree on: [which of them agree](examination) is measured.
# 2. Compare means over many inputs, not single inputs; how many are needed stands [there](examination), for each metric.
# 3. If the inputs are few, read off a probability rather than a hit: how far that is shown is judged above, in the claim on the probability and hits.
# 4. A metric that was optimised is no judge any more: see in the table above how many fail Gaming.
# 5. Your network is not one of these: examine it, with `make examine MODEL=... DATA=...`, see
#    [](../../book/bring-your-own).

# %% tags=["hide-input"]
run.finish()
