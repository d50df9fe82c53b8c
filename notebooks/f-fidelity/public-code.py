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
# # Do the paper and its public code agree?
#
# In a dozen places the authors' code does something else than their paper says. *Which of them matter?* Each that can be switched on
# is switched on here, alone, and the same degraded explanations of the same images are ranked again; at the end all are on
# together. The list itself, with what we do and why, is on [](../../book/f-fidelity/deviations). CIFAR-10 stands for the paper's
# images, but in the profile `paper`, which has CIFAR-100.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's network, such as {"epochs": 5}: see faithstudy.recipes
tuning = {}  # the same of its fine-tuning on random masks
images = 2000  # test images to explain
noise_shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
seeds = [0]  # of the noise
size_step = 0.1  # between the explanation sizes, a share of the pixels; 0.05 in the paper
alpha = 0.5
beta = 0.1
draws = 1  # random subsets per image, size and direction; the paper draws 50, and more images decide more
smooth_samples = 16  # noisy copies per image in SG-SQ
integration_steps = 8  # of Integrated Gradients under SG-SQ; captum's default is 50
roar_limit = None  # training images for ROAR, each explained by each explainer; None: all
roar_epochs = 10
roar_rate = 0.01
roar_fresh = True  # retrain from fresh weights, as the paper does; else from the original's, which needs fewer images
roar_samples = 8  # noisy copies per training image in SG-SQ
precision = "bfloat16"  # of training and forwards, where the device computes it natively; else float32
training_seeds = [0]  # each is a network of its own
seed = 0  # of the random subsets and of SG-SQ

# %% tags=["hide-input"]
import dataclasses
import itertools
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown
from torch.nn.functional import dropout

from faithlab import masks, stats
from faithlab import rng as counter
from faithlab.explainers import refine
from faithlab.metrics import METRICS
from faithlab.metrics.fidelity import fidelity
from faithlab.scores import Scores
from faithlab.stats import Statistic
from faithstudy import plots, summaries, tables
from faithstudy import recipes as networks
from faithstudy.data import datasets
from faithstudy.networks.training import accuracy, trained
from faithstudy.run import Run
from faithstudy.trials import comparisons, degraded, roar, tasks

plots.theme()
run = Run("f-fidelity/public-code", globals())

# %% [markdown]
# ## Networks and explanations
#
# *Fine-tuning* differs twice. The code's mask indexes a flat three-channel picture with the number of a pixel, so that only the
# first channel is masked. And it always removes exactly $\lfloor \beta d \rfloor$ pixels, where the paper draws a number up to it.
#
# *ROAR* differs once, and for good. The number of pixels to remove is a share of the *first dimension* of the explanation: a map
# of three channels loses at most 2 of its 3072 values, a map of one channel nothing, a map without channels 31 of 1024. Its "retrained" network is trained on
# whole images.
#
# *SG-SQ* differs in kind. The code squares noisy *Integrated Gradients*: 10 copies, with noise of standard deviation 1 after
# normalisation, here a quarter of an image's range. The paper's text speaks of gradients.

# %% tags=["hide-input"]
gradients = {"SG-SQ": ("smoothgrad-squared", {"samples": smooth_samples, "seed": seed}), "GradCAM": "gradcam"}
of_integrals = refine.smooth("integrated-gradients", moment=2, samples=10, noise=0.25, seed=seed)
integrals = gradients | {"SG-SQ": (of_integrals, {"steps": integration_steps})}
for_roar = gradients | {"SG-SQ": ("smoothgrad-squared", {"samples": roar_samples, "seed": seed})}


def known(training_seed):
    """The images with their network; the networks beside it, in which variants differ; whose explanations are judged."""
    recipes = networks.pair(networks.RESNET9, training_seed, beta=beta, training=training, tuning=tuning)
    original, tuned = recipes["original"], recipes["fine-tuned"]
    paper = tasks.task(original, images, tuned=tuned, name="ResNet-9", precision=precision)
    again = roar.recipe(original, run.parameters)
    with_tuned = {"first channel": {"mask_channels": 1}, "exact number": {"mask_exactly": True}}
    with_tuned["both"] = with_tuned["first channel"] | with_tuned["exact number"]
    found = {name: {"tuned": trained(dataclasses.replace(tuned, **changes))} for name, changes in with_tuned.items()}
    found["paper"] = {"retrained": roar.networks(again, original, for_roar)}
    found["whole images"] = {"retrained": dict.fromkeys(gradients, trained(again))}

    of_networks = {
        "original": (paper.model, gradients),
        "fine-tuned": (paper.tuned, gradients),
        "over IG": (paper.model, integrals),
        "as in the code": (found["both"]["tuned"], integrals),
    }
    return paper, found, of_networks


# %% [markdown]
# ## One difference at a time
#
# | name | the paper | the public code |
# |---|---|---|
# | sizes | the top 5, 10, … % (MoRF), all but the top 5, 10, … % (LeRF) | the top 6, 11, … % (MoRF), the *bottom* 6, 11, … % (LeRF) |
# | up to 100 % | sizes end at 95 % | they end at 100 % |
# | subset | $\alpha s$ features | each with probability $\alpha$ |
# | first channel | fine-tuning masks pixels | one of their three channels |
# | exact number | fine-tuning removes 0 to $\lfloor \beta d \rfloor$ | always $\lfloor \beta d \rfloor$ |
# | explained network | the original, as for the other metrics | the fine-tuned one |
# | SG-SQ over IG | squared noisy gradients | squared noisy Integrated Gradients |
# | random top | the top $s$ by attribution, capped | drawn at random, not capped: the example offered for use as a metric |
# | ROAR | trained on images that lack 0 to 100 % of their pixels | on whole images |
#
# Every variant meets the same images, noise and random subsets. What differs between two rows differs because of the row.
#
# All are measured at the same sizes, and at 100 %, which only *up to 100 %* reads.

# %% tags=["hide-input"]
sizes = [k * size_step for k in range(1, round(1 / size_step))] + [1.0]
capped = {"alpha": alpha, "cap": beta, "draws": draws, "seed": seed}
drawn = {"subset": masks.remove_each_from_top}


def code_sizes(score, attribution, sizes, *, direction, images=None, **options):
    """What the code removes at a size: the top size + 1 % (MoRF), the bottom size + 1 % (LeRF)."""
    gone = (sizes + 0.01).clamp(max=1)
    left = gone if direction == "MoRF" else 1 - gone.flip(0)  # sizes increase
    found = fidelity(score, attribution, left, direction=direction, images=images, **options)
    return found if direction == "MoRF" else stats.MonteCarlo(found.value.flip(1), found.error.flip(1))


def random_top(score, attribution, sizes, *, direction, images, seed, **options):
    """A top of its own for every explanation, whatever that says; the same one in any batch, and however it is rounded."""
    places = masks.place(masks.order(attribution)) / attribution.shape[1]
    signs = counter.uniform(counter.stream("signs", seed), torch.zeros(1).long(), torch.arange(1), places.shape[1])[0]
    known = ((places * (signs > 0.5).to(places).sub(0.5)).sum(1) * 4).floor().long()
    explanations = images * 4096 + known.to(images.device)  # another explanation, another number
    top = counter.uniform(counter.stream("random top", seed), explanations, torch.arange(1), places.shape[1])[:, 0]
    return fidelity(score, top.to(attribution), sizes, direction=direction, images=images, seed=seed, **options)


# The metric, the networks asked, the explanations judged, what is different in it.
variants = {
    "paper": ("FFid", "paper", "original", capped),
    "sizes": ("FFid", "paper", "original", capped | {"compute": code_sizes}),
    "subset": ("FFid", "paper", "original", capped | drawn),
    "first channel": ("FFid", "first channel", "original", capped),
    "exact number": ("FFid", "exact number", "original", capped),
    "explained network": ("FFid", "paper", "fine-tuned", capped),
    "SG-SQ over IG": ("FFid", "paper", "over IG", capped),
    "random top": ("FFid", "paper", "original", capped | {"cap": None, "compute": random_top}),
    "all but random top": ("FFid", "both", "as in the code", capped | drawn | {"compute": code_sizes}),
    "ROAR, paper": ("ROAR", "paper", "original", {}),
    "ROAR, code": ("ROAR", "whole images", "original", {}),
}


def metric(name, way):
    """A variant as a metric, in one direction."""
    family, _, _, changes = variants[name]
    registered = METRICS[f"{family}{way}"]
    if "compute" in changes:
        own = {option: value for option, value in changes.items() if option != "compute"}
        changes = {"compute": partial(changes["compute"], direction=registered.direction, **own)}
    return registered.given(sizes=sizes, family=name, **changes)


metrics = {name: {f"{name} {way}": metric(name, way) for way in "+-"} for name in variants}
of_seed = {training_seed: known(training_seed) for training_seed in training_seeds}


def ask(task):
    """Every variant of the explanations that it judges, as they are and degraded."""
    _, beside, explained = of_seed[task.training_seed]
    maps = {
        name: tasks.attributions(dataclasses.replace(task, model=network), explainers)
        for name, (network, explainers) in explained.items()
    }
    asked = {name: dataclasses.replace(task, **networks_) for name, networks_ in beside.items()}
    return Scores.concat(
        degraded.degraded(metrics[name], asked[networks_], maps[judged], levels=noise_shares, seeds=seeds)
        for name, (_, networks_, judged, _) in variants.items()
    )


scores = run.table("scores", ask, [paper for paper, *_ in of_seed.values()])

# %% [markdown]
# ## How much each moves
#
# The macro correlation ranks the shares of noise by the area under their curve, the micro correlation at each size. Shares that
# nearly tie change their ranks by chance, and a rank does not say how far apart they are: *linear* is the macro correlation of
# the areas themselves in place of their ranks (Pearson's in place of Spearman's). It is ours, not the paper's.
#
# In brackets: 95 % intervals over the images, for the networks at hand; that of a change is that of a paired difference. Correlations
# stand as shares of their ideal, which is −1, +1 and −1: 1 is right in each. *Share of the ideal* is the mean of the three. A correlation that does not exist has found
# no order and counts as 0.


# %% tags=["hide-input"]
LEVELS = {"macro": {}, "linear": {"ranks": False}, "micro": {"micro": True}}


def correlations(name, level):
    """The three correlations of a difference: of samples -> [R, 3], and the labels of the samples."""
    longest = len(sizes) if name in ("up to 100 %", "all but random top") else len(sizes) - 1
    variant = "paper" if name == "up to 100 %" else name
    found = [
        stats.found_order(noise_shares, seeds, **LEVELS[level], metric=f"{variant} +"),
        stats.found_order(noise_shares, seeds, **LEVELS[level], metric=f"{variant} -"),
        stats.same_order(f"{variant} +", f"{variant} -", noise_shares, seeds, **LEVELS[level]),
    ]

    def three(*samples):
        cut = [dataclasses.replace(s, values=s.values[:, :longest], sizes=s.sizes[:longest]) for s in samples]
        first = len(found[0].over)
        groups = cut[:first], cut[first:], cut
        # Of what is lost, which has the opposite order of what remains.
        signed = zip((-1, -1, 1), found, groups, strict=True)
        return torch.stack([sign * s.function(*group) for sign, s, group in signed], -1)

    return three, found[2].over


IDEAL = torch.tensor([comparisons.IDEAL[name] for name in comparisons.COMPARISONS], dtype=torch.float64)


def read(name, what, level, base=None):
    """The statistic of a difference: one of the correlations or the share of the ideal, or its change from another's."""

    def pick(three):
        if what == "share of the ideal":
            return (three * IDEAL).nan_to_num(0).mean(-1)
        return three[..., comparisons.COMPARISONS.index(what)]

    own, over = correlations(name, level)
    if base is None:
        return Statistic(lambda *samples: pick(own(*samples)), over)
    other, others = correlations(base, level)

    def change(*samples):
        return pick(own(*samples[: len(over)])) - pick(other(*samples[len(over) :]))

    return Statistic(change, (*over, *others), difference=True)


differences = ["paper", "sizes", "up to 100 %", *[*variants][2:]]
reference = {name: "ROAR, paper" if name.startswith("ROAR") else "paper" for name in differences}
told = [*comparisons.COMPARISONS, "share of the ideal"]
rows = []
for name, explainer, level in itertools.product(differences, gradients, LEVELS):
    about = {"difference": name, "explainer": explainer, "level": level}
    asked_of = [(what, "value", None) for what in told]
    asked_of += [("share of the ideal", "change", reference[name])] if reference[name] != name else []
    for what, of, base in asked_of:
        found = stats.estimate(scores, read(name, what, level, base), explainer=explainer)
        rows.append(about | {"quantity": what, "of": of} | tables.interval(found))
measured = pd.DataFrame(rows)
# Intervals that are corrected for a bias may end where there are no correlations.
valued = measured["of"] == "value"
measured.loc[valued, ["low", "high"]] = measured.loc[valued, ["low", "high"]].clip(-1, 1)
run.save(measured, "changes")
order = [*gradients, *differences, *told]


def table_of(level):
    """The correlations of a level, a row for each difference."""
    of = {level: comparisons.in_one_sign(measured[valued & (measured["level"] == level)], by="quantity")}
    return tables.compared(of, rows=["explainer", "difference"], columns=["quantity"], order=order)


table_of("macro")

# %% tags=["hide-input"]
table_of("linear")

# %% mystnb={"figure": {"caption": "How much of the ideal order each difference costs (left of zero) or adds, in macro correlations (of ranks and linear) and in micro correlations, with 95 % intervals over the images. A difference whose interval holds zero cannot be told from none on these images.", "name": "ff-public-code-change"}, "image": {"alt": "Three dot plots with intervals, of macro, linear and micro correlations: for each difference between paper and code the change in the share of the ideal, one colour for each explainer."}} tags=["hide-input", "answer"]
change = measured[measured["of"] == "change"]
effect = change.groupby("difference")["mean"].apply(lambda values: values.abs().max()).sort_values(ascending=False)
figure, panels = plt.subplots(1, 3, figsize=(7.3, 3.6), sharey=True)
for axes, level in zip(panels, LEVELS, strict=True):
    of = change[change["level"] == level].set_index("difference")
    plots.forest(axes, [*effect.index], {name: of[of["explainer"] == name] for name in gradients})
    axes.axvline(0, color="0.4", linewidth=0.8)
    axes.set_title(level)
plots.key(figure, panels[0])
figure.supxlabel("change of the share of the ideal", fontsize="medium")
plots.show(figure, least=30)  # intervals of fewer fill the panels


# %% tags=["hide-input"]
def ranking(table):
    """Which differences are told from none, and how wide the intervals are, in a sentence."""
    changes = table[(table["level"] == "macro") & (table["of"] == "change")]
    certain = changes[(changes["low"] > 0) | (changes["high"] < 0)]
    ranked = certain.sort_values("mean", key=abs, ascending=False).to_dict("records")
    name, number = "{difference} with {explainer} ", "{mean:+.2f} [{low:+.2f}, {high:+.2f}]"  # names keep their hyphens
    listed = "; ".join(name.format(**row) + number.format(**row).replace("-", "−") for row in ranked)
    of = table[(table["of"] == "value") & table["quantity"].isin(comparisons.COMPARISONS)]
    width = of["high"] - of["low"]
    half = (width / 2).groupby(of["level"]).median()
    wide = ", ".join(of[(of["level"] == "macro") & (width > 0.2)]["difference"].unique())
    said = "By the macro correlations no difference can be told from none."
    if listed:
        said = f"These differences change the macro correlations, largest first: {listed}. "
        said += "By macro correlations the others cannot be told from none."
    said += " Half the width of an interval is in the median "
    said += ", ".join(f"{half[level]:.2f} ({level})" for level in LEVELS)
    if wide:
        said += f"; of a macro correlation it is above 0.1 with {wide}: there the shares of noise nearly tie"
    return said + "."


Markdown(ranking(measured))

# %% tags=["hide-input", "headline"]
moves = change[(change["level"] == "macro") & change["low"].notna()]
together, moves = (moves[(moves["difference"] == "all but random top") == yes] for yes in (True, False))
sure = moves[(moves["low"] > 0) | (moves["high"] < 0)].sort_values("mean", key=abs, ascending=False)
count = sure["difference"].nunique()
by_micro = change[(change["level"] == "micro") & ((change["low"] > 0) | (change["high"] < 0))]
by_micro = sorted({*by_micro["difference"]} & {*moves["difference"]} - {*sure["difference"]})


def told(of):
    """Each explainer's change, with its interval."""
    ends = ((f"{r.mean:+.2f} [{r.low:+.2f}, {r.high:+.2f}]".replace("-", "−"), r.explainer) for r in of.itertuples())
    return summaries.listed([f"{change} ({explainer})" for change, explainer in ends])


listed = "; ".join(f"“{name}” by {told(of)}" for name, of in sure.groupby("difference", sort=False))
Markdown(
    f"**{'Not everywhere' if len(sure) > 0.05 * len(moves) else 'No more is seen than by chance'}**: of {moves['difference'].nunique()} differences between code and paper "
    f"**{count or 'none'}** surely {'moves' if count == 1 else 'move'} the share of the ideal, the mean of three macro correlations: of MoRF and LeRF with "
    "the true order, and with each other"
    + f": {listed}. By macro correlations the others cannot be told from none" * bool(listed)
    + f" (by micro ones {summaries.listed([f'“{name}”' for name in by_micro])} can)" * bool(by_micro)
    + f", and of {len(moves)} intervals {0.05 * len(moves):.0f} may miss 0 by chance"
    + ". All differences of F-Fidelity together, but for its example for use as a metric (“random top”), change it by "
    + told(together)
    + f" ({moves['images'].max():,} images, {len(training_seeds)} ResNet-9)."
)

# %% [markdown]
# ## In accuracy
#
# A rank can stay where it is while the number below it moves. The same comparison in the unit of the curves: the accuracy that
# is lost for the explanation without noise, averaged over the sizes, and its change against the paper's definition.


# %% tags=["hide-input"]
def lost(sample):
    """The mean over the sizes up to 95 %."""
    return sample.mean()[:, :-1].mean(1)


rows = []
changed = [name for name in variants if reference[name] != name]
for name, explainer, way in itertools.product(changed, gradients, "+-"):
    cells = [{"metric": f"{of} {way}"} for of in (name, reference[name])]
    found = stats.paired(scores, *cells, lost, explainer=explainer, level=None)
    about = {"difference": name, "explainer": explainer, "direction": metrics[name][f"{name} {way}"].direction}
    rows.append(about | tables.interval(found))
accuracies = pd.DataFrame(rows)
run.save(accuracies, "accuracies")
columns = ["explainer", "direction"]
tables.compared({"change": accuracies}, rows=["difference"], columns=columns, order=order)

# %% [markdown]
# ## What cannot be switched on alone
#
# - **One image at a time.** The code's batches hold the draws of one image. It changes the time and no number, see [](../cost/engine).
# - **Checkpoints.** The code keeps the epoch of training, fine-tuning and ROAR that recognises most *test* images, the images that
#   are then explained. Our training never looks at them and keeps the last epoch, so that there is nothing to switch.
# - **From curves to correlations.** The code that turns curves into the numbers of the tables is not published.
# - **Dropout in the example.** The example offered for use as a metric never leaves training mode, so that half of the
#   last hidden layer is dropped at random in every answer. Our network has no such layer. Dropped before its last layer:

# %% tags=["hide-input"]
paper, *_ = of_seed[training_seeds[-1]]
network = paper.tuned
test = datasets.load(paper.dataset.split()[0], "test").take(slice(min(images, 500)))
before = accuracy(network, test)
*_, last = (layer for layer in network.modules() if isinstance(layer, torch.nn.Linear))
torch.manual_seed(seed)
hook = last.register_forward_pre_hook(lambda layer, inputs: (dropout(inputs[0], 0.5, training=True),))
after = accuracy(network, test)
hook.remove()
Markdown(f"The fine-tuned network recognises {after:.1%} of {len(test)} whole images instead of {before:.1%}.")

# %% [markdown]
# ## All changes in numbers

# %% tags=["hide-input"]
tables.compared({"change": change}, rows=["difference"], columns=["explainer", "level"], order=order)

# %% tags=["hide-input"]
run.finish()
