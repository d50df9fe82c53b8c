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
# # When is a size named, and is it the right one?
#
# The [size of an explanation](explanation-size) is read off curves of F-Fidelity, or refused. How far can such a reading be trusted?
# On real data nobody can say: there the truth is not known, or there are too few studies to count. So this page makes up studies whose truth is
# known, hundreds of them, and counts. Of explanations that do have an end: how many are named, and does the interval hold the
# end? Of rankings without one: how many are refused?
#
# The goals were set before: nine of ten named, nine of ten intervals right, nine of ten refused, in every case below.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
studies = 120  # simulated studies of each case
digit_shares = [0.12, 0.15, 0.25, 0.3]  # of the image, that the digit covers: a network each, with a seed of its own
network_studies = 6  # of each network, each of other images
network_images = 250  # of one study

# %% tags=["hide-input"]
import dataclasses
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import stats
from faithlab.metrics.size import SETTINGS, SIZES, Setting, holds
from faithlab.scores import Scores
from faithlab.stats.intervals import exact
from faithstudy import plots, tables
from faithstudy.claims import above
from faithstudy.data import datasets
from faithstudy.diagnostics import Reason
from faithstudy.networks.training import Recipe
from faithstudy.run import Run
from faithstudy.trials import plateaus, tasks
from faithstudy.trials.plateaus import FEATURES, Plateau

plots.theme()
run = Run("f-fidelity/when-a-size-is-named", globals())

# %% [markdown]
# ## The cases
#
# No network is asked. A study has rankings of made-up images, in each of which a known share of the features is relevant. FFid+ removes
# a random part of the features ranked first; how much relevance goes with it is drawn, from a normal law with the mean and the spread
# that exact subsets have (the estimator counts on the same law, which is in its favour), a *response* says how many answers that
# costs, and the answers of one image err together ({py:mod}`faithstudy.trials.plateaus`).
#
# What can go wrong is tried one by one: features of the explanation change places with others (the paper's degradation), the
# response is bent or saturates, a second tier of features matters less, the explanation is small or large, or its relevance decays
# before it ends. And there are rankings without an end: relevance that fades out in five ways, random order, relevance that is equal everywhere, a network that does not look, and an
# end among the first sizes of the sweep, which hardly shows what is before it: this one must be called too small to be told.

# %% tags=["hide-input"]
cases = {
    "perfect ranking": Plateau(),
    "a tenth is misplaced, bent response": Plateau(noise=0.1, response="square"),
    "a fifth is misplaced": Plateau(noise=0.2),
    "two fifths are misplaced": Plateau(noise=0.4, images=400),
    "saturated answers": Plateau(noise=0.1, response="saturated"),
    "a second, weaker tier": Plateau("unequal"),
    "small explanation": Plateau(size=0.1),
    "large explanation": Plateau(size=0.4, images=400),
    "relevance that decays, then ends": Plateau("fading", images=800),
    "exponential decay": Plateau("exponential", size=0.15),
    "linear decay": Plateau("linear", size=0.15),
    "power-law decay": Plateau("power"),
    "logistic decay": Plateau("logistic"),
    "cosine decay": Plateau("cosine"),
    "random ranking": Plateau("random"),
    "equal relevance": Plateau("equal"),
    "ignored input": Plateau("ignored"),
    "an end at the first sizes": Plateau(size=0.04),
}
ENDS = [name for name, of in cases.items() if of.known and of.size > 2 * min(SIZES)]
rows = [
    (name, f"{of.size:.2f}" if name in ENDS else "none", f"{of.noise:.0%}", of.response, of.images, of.draws)
    for name, of in cases.items()
]
tables.prose(pd.DataFrame(rows, columns=["case", "size", "misplaced", "response", "images", "draws"]))


# %% tags=["hide-input"]
def read(name, studies):
    """What is read in the first studies of a case."""
    found = [cases[name].read(number) for number in range(studies)]
    rows = [{"size": of.fraction, "low": of.low, "high": of.high, "refusal": of.refusal} for of in found]
    return [{"case": name, "study": number, "truth": cases[name].size} | row for number, row in enumerate(rows)]


def read_all(studies):
    """The same of all cases; each is kept, so that a run that was stopped goes on from there."""
    return pd.DataFrame([row for name in cases for row in run.kept(name, partial(read, name, studies))])


def first_of_each():
    """The same of one study each, without the words of a refusal, which have a p-value that rounding changes."""
    return read_all(1).drop(columns="refusal")


readings = run.table("readings", partial(read_all, studies), again=first_of_each)
readings = readings.fillna({"refusal": ""})

goals = {}  # by metric and case: of every study that is asked, whether it came out as it should
for name, of in readings.groupby("case", sort=False):
    named = of["size"].notna()
    if name in ENDS:
        held = (of["low"] - 1e-9 <= of["truth"]) & (of["truth"] <= of["high"] + 1e-9)
        goals["named", name] = named
        if named.any():
            goals["held", name] = held[named]
    else:
        goals["refused", name] = ~named
about = {key: {"metric": key[0], "dataset": key[1], "network": "simulated"} for key in goals}
numbers = readings["study"]
scores = Scores.concat(
    Scores.of(torch.tensor(came.to_numpy(dtype=bool)), images=numbers[came.index].tolist(), **about[key])
    for key, came in goals.items()
)
run.save(scores, "scores")
shares = {key: stats.estimate(scores, **labels) for key, labels in about.items()}
features = f"{FEATURES} features, {len(SETTINGS)} settings of FFid+, sizes from {min(SIZES):g} to {max(SIZES):g}"
Markdown(f"Every study: {features}. There are {studies} of each case.")

# %% [markdown]
# ## What was found
#
# *Named* counts studies whose size is named; *held* those, of the named, whose interval holds the truth; *refused* studies without a
# size, of rankings that have none. Beside it stand the mean size that was named and how far the interval reaches on average.

# %% tags=["hide-input"]
rows = []
for name, of in readings.groupby("case", sort=False):
    some = of.dropna(subset="size")
    row = {"case": name, "true": f"{of['truth'].iloc[0]:.2f}" if name in ENDS else "none"}
    for metric in ("named", "held", "refused"):
        row[metric] = tables.share(shares[metric, name]) if (metric, name) in shares else ""
    row["mean size"] = f"{some['size'].mean():.3f}" if len(some) else ""
    rows.append(row | {"interval": f"{(some['high'] - some['low']).mean():.3f}" if len(some) else ""})
tables.prose(pd.DataFrame(rows))

# %% mystnb={"figure": {"caption": "How often the simulated studies come out as they should, with 95 % intervals: sizes that are named, intervals of the named that hold the truth, and refusals of what has no size. Dashed: the goal.", "name": "ff-named-goals"}, "image": {"alt": "Rows of points with intervals along a share from one half to one, a row for each simulated case, with a dashed line at nine of ten."}} tags=["hide-input", "answer"]
figure, axes = plt.subplots(figsize=(7.2, 0.9 + 0.36 * len(cases)))
groups = {"named": "named", "held": "of these, held", "refused": "refused"}
of = {metric: {name: tables.interval(e) for (m, name), e in shares.items() if m == metric} for metric in groups}
plots.forest(axes, [*cases], {says: pd.DataFrame(of[metric]).T for metric, says in groups.items()})
plots.mark(axes, 0.9, "goal")
axes.set(xlabel="share of the studies", xlim=(None, 1.02))
plots.key(figure, axes)
plots.show(figure)

# %% tags=["hide-input", "headline"]
OUTCOMES = {
    "named": "of {} with an end a size is named in",
    "held": "the interval of a named size holds the true one in",
    "refused": "of {} in which the sweep shows no end, a size is refused in",
}
least = {}  # by outcome: the case that comes out worst, how often it does, and how many cases there are
for metric in (name for name in OUTCOMES if name in scores.labels("metric")):
    of_case = {name: of for (outcome, name), of in shares.items() if outcome == metric}
    worst = min(of_case, key=lambda name: float(of_case[name].value))
    least[metric] = worst, of_case[worst], len(of_case)
Markdown(
    "**Of simulated studies**: "
    + "; ".join(
        OUTCOMES[name].format(f"{n} case{'s' * (n > 1)}")
        + f" **{tables.share(of)}** of the studies, in the worst case (*{worst}*)"
        for name, (worst, of, n) in least.items()
    )
    + f" ({studies} studies of each case)."
)

# %% [markdown]
# What a reading says where it names none is counted, too: of a ranking without an end by what it was refused, and of a true end why it
# was missed.

# %% tags=["hide-input"]
REASONS = {
    "a random ranking": "random ranking explains",
    "a smooth decay": "smooth decay explains",
    "the interval is wide": "says too little",
    "no gain curve fits": "no gain curve",
    "perhaps smaller than the sweep": "smaller than the sweep",
    "perhaps larger than it": "larger than the sweep",
    "nothing is lost": "no removal",
}


def reason(text):
    """Why a size is refused, in short; nothing: it is named."""
    return next((name for name, words in REASONS.items() if words in text), "named")


why = readings["refusal"].map(reason)
order = [name for name in ("named", *REASONS) if (why == name).any()]
tables.prose(pd.crosstab(readings["case"], why).loc[list(cases), order].rename_axis(None, axis=1).reset_index())

# %% [markdown]
# ## On trained networks
#
# The simulation counts on the reader's own law. Here a network is asked, and no law: digits of 16 x 16 pixels whose pixels are the
# known explanation, and rankings that are made of it. Five end with the digit: in random order, with a tenth or a fifth misplaced, and
# with its pixels ordered inside by Input x Gradient. Seven have no end: the chance that a pixel is the digit's falls in five ways, or the
# ranking is random, or goes from the centre outwards. The reader's nulls were chosen on other networks, of 28 x 28 pixels, and on one of
# these. Beside it stand two readers that never refuse: *kneedle*, where the gain curve is furthest above a straight line, and the
# *bend* of the plain deletion curve.


# %% tags=["hide-input"]
def study(share, number, block):
    """What is read in a study on the network of a share, with the readers that never refuse."""
    made = {"share": share, "size": 16, "seed": 0}
    original = Recipe(
        "colored-mnist", "strided", 3, rate=5e-3, batch=64, seed=number + 1, data_options=made | {"limit": 8000}
    )
    tuned = dataclasses.replace(original, start=original, epochs=2, rate=2e-3, mask_share=0.2)
    test = datasets.load("colored-mnist", "test", **made)
    images = torch.arange(network_images) + block * network_images
    task = tasks.task(tuned, images, tuned=tuned, data=test, name="strided CNN")
    sweep = [*(Setting(0.5, cap) for cap in (0.05, 0.1, 0.2)), Setting(1.0, 0.1)], [k / 20 for k in range(1, 13)]
    found = plateaus.study(task, test.masks[images].flatten(1), *sweep, seed=10000 * (number + 1) + block)
    return [{"network": f"digits of {share:.0%}", "study": block} | row for row in found]


def by_network():
    """The same of all networks, study by study."""
    each = [(share, number, block) for block in range(network_studies) for number, share in enumerate(digit_shares)]
    rows = [run.kept(f"study {b} of {share:.0%}", partial(study, share, number, b)) for share, number, b in each]
    return pd.DataFrame([row for of in rows for row in of])


planted = run.table("networks", by_network, again="training").fillna({"refusal": ""})
rows = []
for name, of in planted.groupby("ranking", sort=False):
    ends, named = bool(of["ends"].iloc[0]), of["size"].notna()
    held = holds(of["low"], of["high"], of["truth"])
    row = {"ranking": name, "studies": len(of), "named": int(named.sum())}
    row["of these, the interval holds the truth"] = f"{int(held.sum())}" if ends else "no end to be held"
    for other in ("kneedle", "bend"):
        near = ((of[other] - of["truth"]).abs() <= 0.15 * of["truth"]).sum()
        row[other] = f"{near} within 15 %" if ends else f"{len(of)} false"
    rows.append(row)
tables.prose(pd.DataFrame(rows))

# %% tags=["hide-input"]
ended, endless = planted[planted["ends"]], planted[~planted["ends"]]
false, named = int(endless["size"].count()), ended.dropna(subset="size")
right = int(holds(named["low"], named["high"], named["truth"]).sum())
counts = torch.tensor([len(endless), max(1, len(named))]).double()
low, high = exact(torch.tensor([false, right]) / counts, counts)
Markdown(
    f"**On networks**: {false} of {len(endless)} rankings without an end are given a size (the aim: at most 5 %; as far as so few tell, "
    f"at most {high[0]:.1%}); of {len(ended)} with one {len(named)} are, and {right} of these intervals hold it (the aim: at least 95 %; "
    f"as far as so few tell, at least {low[1]:.0%}). These 95 % bounds take studies for independent, which share {len(digit_shares)} networks."
)

# %% [markdown]
# ## What holds


# %% tags=["hide-input"]
def goal(metric):
    """A part for each case: more than nine of ten studies come out so."""
    return [above(scores, 0.9, dataset=name, metric=of, name=name) for of, name in goals if of == metric]


run.claim(
    "ff-size-goal-named",
    "beyond the paper",
    "Of explanations that have an end, more than nine of ten are given a size, in every case that was simulated.",
    goal("named"),
    paper="Beyond F-Fidelity",
    own=True,
    unit="simulated study",
)

# %% [markdown]
# **Why?** In the case that is named least often, is a size surely named in fewer than nine of ten studies, or are there too few studies
# to tell? And is one kind of refusal alone more than the tenth that the goal leaves?

# %% tags=["hide-input"]
ended = readings[readings["case"].isin(ENDS)]
least = ended["size"].notna().groupby(ended["case"]).mean().idxmin()
told = ended[ended["case"] == least].set_index("study")["refusal"].map(reason)
rows = [("Is it named too seldom?", "named", {"below": 0.9})]
rows += [("Is one refusal alone too many?", of, {"above": 0.1}) for of in REASONS if (told == of).any()]
possible = []
for question, came, bar in rows:
    about = {"images": [*told.index], "metric": came, "dataset": least, "network": "simulated"}
    found = stats.estimate(Scores.of(torch.tensor((told == came).tolist()), **about))
    possible.append(Reason(question, f"{least}: {came}", found, said=tables.share, **bar))
run.why("ff-size-goal-named", *possible)

# %% tags=["hide-input"]
run.claim(
    "ff-size-goal-held",
    "beyond the paper",
    "Where a size is named, more than nine of ten intervals hold the true one, in every case that was simulated.",
    goal("held"),
    paper="Beyond F-Fidelity",
    own=True,
    unit="simulated study",
)

# %% tags=["hide-input"]
run.claim(
    "ff-size-goal-refused",
    "beyond the paper",
    "Of rankings that have no end which the sweep shows, more than nine of ten are refused a size, in every case that was simulated.",
    goal("refused"),
    paper="Beyond F-Fidelity",
    own=True,
    unit="simulated study",
)

# %% [markdown]
# ## What these numbers are not
#
# They speak of the simulation: of one sweep, of this many images, of images that are alike, and of answers that err as simulated here. A
# real explanation whose size differs from image to image, or whose features matter unequally in ways that are not tried here, is
# none of these cases. With fewer images fewer sizes are named.

# %% tags=["hide-input"]
run.finish()
