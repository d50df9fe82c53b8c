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
# for which network, what the others fail, and how metrics of other libraries do. Whether a paper's metric is better than its rivals, and
# which choices in the making of a metric do good, says [the next page](rivals). Five minutes are enough for this one.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
images = 200  # to ask about a map that is the same everywhere
forwards = 100000  # that you can spend, to tell two explanations apart that differ

# %% tags=["hide-input"]
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab.metrics import METRICS, evaluate
from faithstudy import architectures, plots, profiles, records, summaries, tables
from faithstudy.claims import better
from faithstudy.run import Run
from faithstudy.trials import concordance, examination, recommendations, tasks
from faithstudy.trials.other_libraries import PEERS

plots.theme()
run = Run("across/findings", globals())

# %% [markdown]
# ## What it rests on
#
# The numbers are those of the [examination](examination): the trials' $T$, 1 for always right and 0 for a coin, of
# every metric, network and input. Only a control on infidelity is measured here.

# %% tags=["hide-input"]
kept = {table: records.recorded("across/examination", table) for table in ("trust", "price", "networks")}
trust, price, networks = (table.frame for table in kept.values())
here = [kind.name for kind in architectures.KINDS.values() if kind.name in set(trust["kind"])]
Markdown(
    "; ".join(
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

# %% mystnb={"figure": {"caption": "Metrics that fail no trial and pass Truth, and Order, Chance, Own model or Gaming, for each kind of network: the forwards that it takes to tell two explanations apart (95 % interval; an arrow: it may take more than is shown), and in the circle how many of the network's own trials the metric passed. The darker the circle, the more. The dashed line is what you can spend. Metrics with a library's name before theirs are not taken, whatever they pass.", "name": "fi-use"}, "image": {"alt": "A panel for each kind of network: metrics that fail no trial, the cheapest at the top, with the forwards that they need on a logarithmic axis."}} tags=["hide-input", "answer"]
advice = recommendations.advice(trust, price)
usable = advice[advice["place"].notna()].merge(price, on=["kind", "metric"])
usable = usable.assign(
    passes=usable["passed"].str.split(", ").map(lambda trials: len({*trials} - {recommendations.BUILT, ""})),
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
        says = "no metric passes what it must"
        axes.text(0.5, 0.5, says, transform=axes.transAxes, ha="center", va="center", fontsize="x-small")
    axes.hlines(of["metric"], of["least"].clip(upper=end), of["most"].clip(upper=end), color="0.6", zorder=1)
    beyond = of[of["most"] > end]
    axes.scatter([end] * len(beyond), beyond["metric"], marker=">", color="0.6", s=18)
    there = of[of["forwards"] < end]
    axes.scatter(there["forwards"], there["metric"], c=there["passes"], cmap="viridis_r", vmin=1, vmax=6, s=90)
    for row in there.itertuples():
        look = {"color": "white" if row.passes > 2 else "black", "ha": "center", "va": "center", "size": "x-small"}
        axes.text(row.forwards, row.metric, row.passes, **look)
    axes.axvline(forwards, linestyle="--", color="0.3", linewidth=0.8)
    axes.set(xscale="log")
    axes.set_title(kind, fontsize="small")
    axes.tick_params(labelsize="small")
    axes.set_ylim(-0.6, max(2, len(of)) - 0.4)
panels[-1, 0].set_xlabel("forwards that it takes", fontsize="small")
plots.show(figure)


# %% [markdown]
# Of the metrics of this study, those that pass most and can be paid, the cheapest. Metrics of other libraries have their name before
# theirs. They took the trials as they are, but are not recommended: [some have faults](../cost/peers) that no trial sees. Do not
# read the number of a *single* input as a verdict on its explanation: [of none is it known to be right often enough](examination).

# %% tags=["hide-input"]
take = recommendations.recommended(advice, price, forwards)
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


def not_put(kind):
    """Which trials the metric that is taken could not fail, since they do not apply to it."""
    own = ", ".join(said[kind][["passed", "open"]])
    left = [trial for trial in examination.TRIALS if trial not in own]
    return f"; not put to {summaries.listed(left)}" * bool(left)


Markdown(
    f"With {forwards:,} forwards: "
    + "; ".join(
        f"**{take[kind]}** for *{kind}* (planned: {said[kind]['forwards']:,.0f} [{said[kind]['least']:,.0f}, {said[kind]['most']:,.0f}] forwards to tell two explanations apart{not_put(kind)})"
        if kind in said
        else f"for *{kind}* {none_of[kind]}"
        for kind in here
    )
    + f". Taken is, of the metrics that this study computes itself, what fails no trial of the examination that could be put to it, and of that what passes most ("
    f"{len(networks)} networks, at most {networks['explained'].max()} inputs of each)."
)

# %% [markdown]
# What the others fail, and on how many kinds of network:

# %% tags=["hide-input"]
failed = advice[advice["failed"] != ""].assign(trial=lambda f: f["failed"].str.split(", ")).explode("trial")
run.save(failed.drop(columns="place"), "failed")
counts = failed.groupby(["trial", "metric"]).size().reset_index(name="kinds").sort_values("kinds", ascending=False)
put_to = trust[(trust["size"] == concordance.SIZES[0]) & (trust["verdict"] != concordance.NONE)]
put_to = put_to.groupby(["trial", "metric"]).size()  # neither metrics nor trials are asked on all kinds
counts["metric"] = [f"{m} ({k} of {put_to[t, m]})" for t, m, k in counts.itertuples(index=False)]
counts = (
    counts.groupby("trial")["metric"]
    .agg(", ".join)
    .reindex([t for t in examination.TRIALS if t in set(counts["trial"])])
)
tables.prose(counts.rename_axis("Trial").reset_index(name="Failed by"))

# %% tags=["hide-input"]
drawn = kept["trust"].provenance["parameters"]["draws"]
failing = failed.loc[failed["trial"] == "Repeat", "metric"].unique()
failing = [name for name in failing if name in METRICS and METRICS[name].family == "F-Fidelity"]
few = f"{summaries.listed(failing)}, which *Repeat* asks with other draws, had {drawn} of each size there, where the paper draws 50. "
Markdown(few * (bool(failing) and drawn < 50) + "*Truth* has a network of its own, one for all kinds.")

# %% [markdown]
# ## And the metrics of other libraries?
#
# They are run as they are, with their own baselines, random subsets and settings, and share nothing with the engine but the explanations.

# %% tags=["hide-input"]
others = advice[advice["metric"].isin(PEERS)]
tables.prose(others[["metric", "kind", "passed", "failed", "open"]])

# %% [markdown]
# **Why may infidelity fail?** It compares what an explanation says that a random part of the pixels is worth with what the answer loses
# without it, and calls the mean square of the difference infidelity. Most of that is the *mean* loss, which a map that says the same of
# every pixel tells well, and one whose parts sum to nothing does not. So what does it say of a map that is the same everywhere?

# %% tags=["hide-input"]
settings = profiles.resolve("across/examination") | {"images": images}
one = architectures.asked("resnet9 0", settings, references=False)
infidelity, flat = "captum: infidelity", "the same everywhere"


def infidelities(task):
    """Infidelity of each explanation, and of a map that is the same everywhere."""
    maps = tasks.attributions(task, one.explainers)
    return evaluate({infidelity: PEERS[infidelity]}, task, maps | {flat: torch.ones_like(maps["gradcam"])})


# It draws by an input's place in the batch, so that only the first ones can be measured again.
first = one.task.part(torch.arange(min(8, images)))
told = run.table("infidelity", partial(infidelities, one.task), again=partial(infidelities, first))
explained_by = [name for name in told.labels("explainer") if name != flat]
run.claim(
    "fi-infidelity",
    "this page",
    "captum's infidelity prefers a map that is the same everywhere to every explanation.",
    [better(told, {"explainer": flat}, {"explainer": name}, less=True, name=name) for name in explained_by],
)

# %% [markdown]
# ## Rules of thumb
#
# 1. Ask metrics of *several* families, and believe what they agree on: [which of them agree](examination) is measured.
# 2. Compare means over many inputs, not single inputs; how many are needed stands [there](examination), for each metric.
# 3. If the inputs are few, read off a probability rather than a hit: how far that is shown is judged [on the next page](rivals), in the claim on the
#    probability and hits.
# 4. A metric that was optimised is no judge any more: see in the table above how many fail Gaming.
# 5. Your network is not one of these: examine it, with `make examine MODEL=... DATA=...`, see
#    [](../../book/bring-your-own).

# %% tags=["hide-input"]
run.finish()
