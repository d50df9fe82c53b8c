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
# # Would a metric pass that never asks the network?
#
# A faithfulness metric says whether an explanation is true of a *network*. A number that is read off the map alone cannot know that. So
# such numbers are controls: a trial that passes them does not show that a metric looks at the network, however well the
# metric does there. This page puts three of them to the trials of [](examination), on the same networks and inputs.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
networks = [
    "resnet9 0",
    "resnet9 1",
    "resnet9 2",
    "vit 0",
    "bilstm 0",
    "lstm 0",
]  # models of faithstudy.architectures, each with its training seed
images = 100  # test images, series or texts of each network

# %% tags=["hide-input"]
import functools

import pandas as pd
import torch
from IPython.display import Markdown

from faithlab.metrics import Metric
from faithstudy import architectures, plots, profiles, records, summaries
from faithstudy.run import Run
from faithstudy.trials import examination, truth

plots.theme()
run = Run("across/controls", globals())

# %% [markdown]
# ## Three numbers that need no network
#
# - **Nearness to the middle**: the correlation, over the features, of their scores with how near they are to the middle of the input.
#   Objects are often there, and so are good maps of them.
# - **Smoothness**: the correlation of a score with that of the next feature. Noise is not smooth.
# - **Concentration**: the largest score, in magnitude, over the mean one. It does not change when scores are shuffled.
#
# Each is a metric like any other, higher is better, and each ignores `score`, by which a metric asks the network.

# %%
settings = profiles.resolve("across/examination", "paper" if profile == "paper" else "study") | {"images": images}


def correlation(a, b, counted):
    """Pearson's over the features that count, [B]."""
    a, b, n = a.double(), b.double(), counted.double()
    a, b = (x - (x * n).sum(1, keepdim=True) / n.sum(1, keepdim=True) for x in (a, b))
    return (a * b * n).sum(1) / ((a * a * n).sum(1) * (b * b * n).sum(1)).sqrt()


def everywhere(attribution, present):
    """[B, F]: the features that an input has."""
    return torch.ones_like(attribution, dtype=torch.bool) if present is None else present


def middle(score, attribution, present=None):
    """Nearness to the middle of the square of an image's features, or of a series or text."""
    there = everywhere(attribution, present)
    place = torch.arange(attribution.shape[1], device=attribution.device).expand_as(attribution)
    if present is None:
        row, column = (x - (settings["side"] - 1) / 2 for x in (place // settings["side"], place % settings["side"]))
        return correlation(attribution, -torch.hypot(row, column), there)
    return correlation(attribution, -(place - (there.sum(1, keepdim=True) - 1) / 2).abs(), there)


def smoothness(score, attribution, present=None):
    """The correlation of neighbours, in the order of reading."""
    there = everywhere(attribution, present)
    return correlation(attribution[:, :-1], attribution[:, 1:], there[:, :-1] & there[:, 1:])


def concentration(score, attribution, present=None):
    """The largest magnitude over the mean one."""
    there = everywhere(attribution, present)
    size = attribution.double().abs() * there
    return size.amax(1) * there.sum(1) / size.sum(1)


named = {"nearness to the middle": middle, "smoothness": smoothness, "concentration": concentration}
controls = {name: Metric(function, source="this page") for name, function in named.items()}

# %% [markdown]
# ## The trials
#
# Order, Chance, Own model, Truth and Repeat, as [](examination) asks them. *Gaming* needs an order of features that a metric likes best,
# and *Stand-in* a baseline for removed features; of numbers that remove nothing there is neither.

# %% tags=["hide-input"]
asking = {"levels": settings["noise_shares"], "seeds": settings["seeds"]}


@functools.cache
def found():
    """What each kind of network is found to be. Some networks do not ship, and are trained."""
    asked = architectures.by_kind([architectures.asked(network, settings) for network in networks])
    pairs = {kind: [(one.task, one.explainers) for one in of] for kind, of in asked.items()}
    given = {of: settings[of] for of in ("budget", "randomised_share")} | asking
    return examination.examine_kinds(controls, pairs, truth=[truth.closed_form(2 * images)], kept=run.kept, **given)


def some_again():
    """Order and Chance of the first four images, and Truth."""
    one = architectures.asked("resnet9 0", settings | {"images": 4})
    return examination.sampled(controls, one.task, one.explainers, truth=truth.closed_form(2 * images), **asking)


def judged():
    """The trials of each kind of network."""
    return pd.concat([of.trust.assign(kind=kind) for kind, of in found().items()], ignore_index=True)


def judged_again():
    """Those of one kind of network, by the scores."""
    kind = architectures.KINDS["bilstm"]
    own = scores.where(dataset=f"{kind.recipe.data} test", network=kind.network) + scores.where(network="closed form")
    rows = records.recorded(run.name, "trust").frame.query("kind == @kind.name")
    return examination.trust(own, controls, examination.obstacles_in(rows)).assign(kind=kind.name)


scores = run.table(
    "scores", lambda: examination.joined({kind: of.scores for kind, of in found().items()}), again=some_again
)
trust = run.table("trust", judged, again=judged_again)

# %% mystnb={"figure": {"caption": "Three numbers that never ask the network, by trials, on the means over the inputs. T: 1 always right, 0 a coin. Passed: its interval lies above 0.8; failed: below 0.5; open: neither, or these inputs do not decide. Hatched: the trial does not apply.", "name": "co-matrix"}, "image": {"alt": "Heat map of three controls by seven trials, for each kind of network: each cell has a number and says passed, failed, open or does not apply."}} tags=["hide-input", "answer"]
plots.matrix(trust)

# %% [markdown]
# ## What that says of the trials

# %% tags=["hide-input", "headline"]
known = trust[trust["size"] == "all images"]


def of_trials(verdict):
    """The trials with such a verdict of a control: which controls, and of how many kinds of network."""
    kinds_of = known[known["verdict"] == verdict].groupby(["trial", "metric"], sort=False)["kind"].nunique()
    return {
        trial: [f"{name} ({count})" for (_, name), count in of.items()]
        for trial, of in kinds_of.groupby("trial", sort=False)
    }


passed, failed = of_trials("passed"), of_trials("failed")
never = [trial for trial in failed if trial not in passed]
Markdown(
    f"Three numbers never ask the network. In brackets, on how many of {known['kind'].nunique()} kinds of network one passes: "
    + ("; ".join(f"**{trial}** by {summaries.listed(who)}" for trial, who in passed.items()) or "none passes any trial")
    + f". None of them passes, and at least one fails, {' or '.join(f'**{trial}**' for trial in never) or 'any other'}."
)

# %% [markdown]
# So to pass Order, Chance or Own model does not show that a metric asks the network: where objects are in the middle and explanations
# are smooth, less noise, an explanation instead of a random order, and a network that has learnt all give maps that a blind number likes
# better, too. What these trials find out is who *fails* them. *Truth* is another matter: there the features that decide lie anywhere, and no place or
# shape of a map gives them away. Therefore a metric is [recommended](findings) only where it passes Truth, besides a trial that the network itself was put to.

# %% tags=["hide-input"]
run.finish()
