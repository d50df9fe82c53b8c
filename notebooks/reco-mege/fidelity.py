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
# # Are the most consistent explanations faithful and stable, too?
#
# *Does a map that every model agrees on say what the model uses?* [Grad-CAM comes first by ReCo](normal). The paper's Table 3 asks
# two other questions of the same explainers: is a map faithful, and does it stay where the picture hardly changes?

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
sets = ["cifar10"]  # as in the paper's Table 3
width = 16  # base filters of ResNet-18; None: those of the paper, 32
epochs = 6  # of training
rate = 0.005  # peak learning rate
decay = 1e-4
batch = 128
train_limit = None  # examples that the folds are made of; None: all
folds = 5
tolerance = 0.03  # how far a fold's accuracy may be from the median of the five, as in the paper
test_limit = None  # test pictures that say whether the networks recognise the data; None: all
images = 400  # test pictures whose explanations are judged; the paper has 10 000
steps = 8  # of Integrated Gradients; the paper has 60
samples = 8  # noisy copies in SmoothGrad; the paper has 60
share = 0.15  # of the pixels in a random subset
draws = 30  # random subsets per picture
radius = 0.1  # of the neighbourhood
neighbours = 1  # drawn from it
precision = "bfloat16"  # of training
training_seeds = [0]  # each is a set of folds: fold i starts from weights of seed + i
seed = 0  # of what explainers and metrics draw

# %% tags=["hide-input"]
import dataclasses
import functools
import itertools
from functools import partial

import torch
from IPython.display import Markdown

from faithlab import segments, stats
from faithlab.explainers import gradient
from faithlab.metrics import METRICS, evaluate
from faithlab.scores import Scores
from faithstudy import plots, published, tables
from faithstudy.claims import best
from faithstudy.data import datasets
from faithstudy.diagnostics import Reason
from faithstudy.networks import folds as networks
from faithstudy.run import Run
from faithstudy.trials import cross_trained, tasks
from faithstudy.trials import neighbours as nearby

plots.theme()
run = Run("reco-mege/fidelity", globals())

# %% [markdown]
# ## The networks
#
# They are the five folds of [the page before](normal), each of which never saw a fifth of the training pictures. Here each of them is
# asked about test pictures, which none has seen, and explains the class that it predicts.


# %% tags=["hide-input"]
@functools.cache
def folds_of(data, s):
    """The recipes of the folds of a data set."""
    return networks.comparable(networks.resnet(data, run.parameters, s), folds, tolerance=tolerance)


def single(images):
    """Each fold with the first test pictures."""
    found = []
    for data, s in itertools.product(sets, training_seeds):
        for number, recipe in enumerate(folds_of(data, s)):
            found.append(tasks.task(recipe, images, about="prediction", name=f"ResNet-18 fold {number}"))
    return found


# %% [markdown]
# ## Faithful: µFidelity. Stable: S_avg
#
# {term}`µFidelity` {cite:p}`bhatt2020evaluating` removes random 15 % of the pixels (black takes their place) and asks
# whether the relevance of a subset, summed with its sign, says what its removal costs: higher is better. Fifteen percent of
# single pixels hold about the same share of a smooth map, whichever they are, which is hard on Grad-CAM. So the variant
# *patches* removes whole patches of a quarter of the side. $S_{avg}$ moves the picture a little and asks how far the
# explanation moves: lower is better. The paper draws the neighbours from an $\ell_1$ ball of radius 0.1. Spread over
# thousands of values that is next to nothing. So the table has the ball of the maximum norm, too (*max*), in which every
# value may move by 0.1. SmoothGrad draws new noise for every neighbour, as it would if it were asked again. All folds are
# asked, on test pictures.

# %% tags=["hide-input"]
explainers = {
    "IG": ("integrated-gradients", {"steps": steps, "rule": "riemann_trapezoid"}),
    "SG": ("smoothgrad", {"samples": samples, "noise": 0.2, "seed": seed}),
    "Saliency": "saliency",
    "GradientxInput": "input-x-gradient",
    "GradCAM": "gradcam",
    "Random": ("random", {"seed": seed}),
}
real = [name for name in explainers if name != "Random"]
faithful = {"µFidelity": METRICS["µFidelity"].given(share=share, draws=draws, seed=seed)}
stable = {"S_avg": METRICS["S_avg"]}


def judged(task):
    """Both metrics of one network's explanations."""
    maps = tasks.attributions(task, explainers)
    patches = segments.patches(*task.x.shape[-2:], task.x.shape[-1] // 4)
    pooled = {name: segments.pool(of.unflatten(-1, patches.shape), patches) for name, of in maps.items()}
    coarse = dataclasses.replace(task, segments=patches)
    found = evaluate(faithful, task, maps) + evaluate(faithful, coarse, pooled, variant="patches")
    for variant, norm in ((None, "l1"), ("max", "max")):
        around = {"radius": radius, "count": neighbours, "norm": norm, "seed": seed}
        found += nearby.neighbours(stable, task, explainers, maps, variant=variant, **around)
    return found


def measure(images, tested):
    """The same of all folds, and which test pictures they recognise."""
    parts = [judged(task) for task in single(images)]
    for data, s in itertools.product(sets, training_seeds):
        test = datasets.load(data, "test", standardised=False).take(slice(tested))
        family = cross_trained.family(folds_of(data, s), 1, name="ResNet-18", training_seed=s)  # for its networks
        parts.append(cross_trained.recognised(family, test))
    return Scores.concat(parts)


scores = run.table("scores", partial(measure, images, test_limit), again=partial(measure, 2, 8))
right = {data: stats.estimate(scores, metric="accuracy", dataset=f"{data} test") for data in sets}
Markdown(
    "On test pictures the networks are right in "
    + ", ".join(f"**{tables.share(of)}** ({networks.TASKS[data].name})" for data, of in right.items())
    + f" of the cases, a mean of {folds} folds."
)

# %% mystnb={"figure": {"caption": "\u00b5Fidelity of the explainers where single pixels are removed and where whole patches are: means with 95 % intervals over the pictures, all folds together. Higher is better.", "name": "rc-fidelity"}, "image": {"alt": "Dot plot with intervals: explainers against \u00b5Fidelity, one colour for single pixels and one for patches."}} tags=["hide-input", "answer"]
removal = {"single pixels": {"variant": None}, "patches": {"variant": "patches"}}
plots.dots(scores, removal, label="µFidelity", metric="µFidelity", marks={0: "chance"})

# %% [markdown]
# ## Beside Table 3

# %% tags=["hide-input"]
third = tables.summary(scores.where(metric=["µFidelity", "S_avg"]), ["metric", "variant", "explainer"])
third["measure"] = third["metric"] + third["variant"].map(" ({})".format, na_action="ignore").fillna("")
third = third[["measure", "explainer", "mean", "low", "high"]]
run.save(third, "fidelity")
paper = published.load("consistency_scores").rename(columns={"value": "mean"})
printed = paper[paper["table"] == 3].replace({"muFidelity": "µFidelity"}).query("measure in ['µFidelity', 'S_avg']")
order = [*explainers, *third["measure"].unique()]
tables.compared(
    {"published": printed, "measured": third}, rows=["explainer"], columns=["measure"], order=order, digits=3
)

# %% [markdown]
# In the $\ell_1$ ball the explainers without random numbers hardly move. What is left for SmoothGrad there is the noise of
# its own sample, which more copies make smaller.

# %% [markdown]
# ## What reproduced
#
# Each claim is judged on the saved scores. A part of it *holds* where the whole interval, and every network's own estimate,
# lie on the claimed side; every fold is a network. That the networks recognise the data is a premise, with the bar of
# [the page before](normal).


# %% tags=["hide-input"]
def first(measure, winner, rivals, **options):
    """That an explainer is the best of several in Table 3."""
    numbers = printed[printed["measure"] == measure].set_index("explainer")["mean"].to_dict()
    own = {"rivals": rivals, "printed": numbers, "metric": measure, "variant": None}
    return best(scores, "explainer", winner, **own, **options)


learned = cross_trained.known(scores, *sets)
gradcam = first("µFidelity", "GradCAM", [name for name in real if name != "GradCAM"])
run.claim("rc-mufidelity", "Table 3", "µFidelity ranks Grad-CAM first.", [*learned, gradcam])

# %% [markdown]
# **Why?** Is it the network, or what is removed? Random single pixels hold about the same share of a smooth map, whichever they
# are. The same maps on whole patches tell: if Grad-CAM is ahead of its nearest rival there, and not on single pixels, it is what
# is removed.

# %% tags=["hide-input"]
by_removal, of_print = {}, printed[printed["measure"] == "µFidelity"].set_index("explainer")["mean"]
for removed, variant in (("single pixels", None), ("patches", "patches")):
    of = {"metric": "µFidelity", "variant": variant}
    leads = {r: stats.paired(scores, {"explainer": "GradCAM"}, {"explainer": r}, **of) for r in real if r != "GradCAM"}
    by_removal[removed] = min(leads.items(), key=lambda item: float(item[1]))
in_print = of_print["GradCAM"] - of_print.drop("GradCAM").max()
run.why(
    "rc-mufidelity",
    *(
        Reason(
            "Is Grad-CAM ahead?",
            f"{removed}: Grad-CAM − {r}, its nearest rival; in print {in_print:.3f}",
            lead,
            above=0,
        )
        for removed, (r, lead) in by_removal.items()
    ),
)

# %% tags=["hide-input"]
rivals = ["IG", "Saliency", "GradientxInput"]
stablest = [first("S_avg", name, rivals, less=True, name=f"{name} before the others") for name in ("GradCAM", "SG")]
run.claim("rc-stability", "Table 3", "Grad-CAM and SmoothGrad are the most stable.", learned + stablest)

# %% [markdown]
# **Why?** Is a neighbour's map of SmoothGrad another one because the network's gradients are, or because its noise is drawn anew? With
# the *same noise* for a picture and its neighbours only the network is left; more copies leave less of the noise. On the first
# pictures of one fold, in the paper's ball.

# %% tags=["hide-input"]
smooth = {"samples": samples, "noise": 0.2, "seed": seed}


def same_noise(model, x, target, images):
    """SmoothGrad with one draw of noise for every input."""
    return gradient.smoothgrad(model, x, target, torch.zeros_like(images), **smooth)


asked = {"SG": explainers["SG"], "60 copies": ("smoothgrad", smooth | {"samples": 60}), "same noise": same_noise}
asked |= {name: explainers[name] for name in rivals}
ball = {"radius": radius, "count": neighbours, "seed": seed}


def measure_noises(images):
    """S_avg of the first fold, with other noise."""
    once = single(images)[0]
    return nearby.neighbours(stable, once, asked, tasks.attributions(once, asked), **ball)


noises = run.table("noises", partial(measure_noises, min(20, images)), again=partial(measure_noises, 2))
steadiest = min(rivals, key=lambda name: float(stats.estimate(noises, explainer=name)))
gaps = {
    name: stats.paired(noises, {"explainer": steadiest}, {"explainer": name}) for name in ("60 copies", "same noise")
}
pair = {"explainer": "same noise"}, {"explainer": "SG"}
left = stats.estimate(noises, stats.Statistic(lambda one, other: one.mean() / other.mean(), pair, "ratio"))
before = partial(Reason, "Would it be before the others?", above=0, said=partial(tables.number, digits=4))
ahead = f"SmoothGrad's lead over {steadiest} with "
run.why(
    "rc-stability",
    Reason(
        "Is it new noise?", "part of its S_avg that is left with the same noise", left, below=0.1, said=tables.share
    ),
    before(f"{ahead}the same noise", gaps["same noise"]),
    before(f"{ahead}60 copies, new noise", gaps["60 copies"]),
)

# %% tags=["hide-input"]
run.finish()
