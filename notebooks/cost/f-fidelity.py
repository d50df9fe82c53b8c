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
# # How much cheaper than ROAR is F-Fidelity?
#
# *What does it cost to judge two explainers, from the trained network to the scores?* ROAR explains all training images
# with each explainer and trains a network for each. F-Fidelity fine-tunes one network for all explainers, and explains
# only the images that it judges. In return it asks more of that network: many random subsets of pixels instead of one.
# The paper's Table 13 adds this up.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the network that is explained: see faithstudy.recipes
tuning = {}  # the same of fine-tuning
cost_limit = 2000  # training images of ROAR's networks and of fine-tuning; None: all
cost_epochs = 5  # of both, as in the paper, where both have 100
images = 20  # test images to judge the explainers on; 2000 in the paper
size_step = 0.05
draws = 5  # random subsets per image, size and direction; the paper draws 50
alpha = 0.5
beta = 0.1
precision = "bfloat16"  # where the device computes it natively; else float32
published_draws = 50  # of the loop as published
loop_images = 2  # images that it is timed on; its time grows in proportion to their number
same_images = 200  # images whose interval is asked for
repeats = 4  # of both, in turn
seed = 0

# %% tags=["hide-input"]
import dataclasses
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import masks, stats
from faithlab.metrics import METRICS, evaluate
from faithlab.scores import Scores
from faithstudy import plots, published, recipes, tables
from faithstudy.claims import counted, timed
from faithstudy.data import cache as stored
from faithstudy.data import datasets
from faithstudy.display_names import named
from faithstudy.networks.training import trained, weights
from faithstudy.records import recorded
from faithstudy.run import Run
from faithstudy.trials import cost, roar, tasks

plots.theme()
run = Run("cost/f-fidelity", globals())

# %% [markdown]
# ## End to end
#
# Everything is run from the beginning: what an earlier run has stored is not used. Only the network that is explained is
# there already. Training and evaluation are smaller than in the paper by about the same factor.

# %% tags=["hide-input"]
pair = recipes.pair(recipes.RESNET9, seed, beta=beta, training=training, tuning=tuning)
original = pair["original"]
retraining = dataclasses.replace(original, epochs=cost_epochs, limit=cost_limit)
tuned = dataclasses.replace(pair["fine-tuned"], epochs=cost_epochs, limit=cost_limit)
task = tasks.task(original, images, name="ResNet-9", precision=precision)
device = task.x.device
sizes = [k * size_step for k in range(1, round(1 / size_step))]
drawn = {"alpha": alpha, "cap": beta, "draws": draws, "seed": seed}
metrics = {name: METRICS[name].given(sizes=sizes) for name in ("ROAR+", "ROAR-")}
metrics |= {name: METRICS[name].given(sizes=sizes, **drawn) for name in ("FFid+", "FFid-")}
EXPLAINERS = {"GradCAM": "gradcam", "Saliency": "saliency"}
EXPLAIN, TRAIN, EVALUATE = "explain training images", "train or fine-tune", "evaluate"


@contextmanager
def empty_cache():
    """A cache that has the data and the network to be explained, and nothing else."""
    full, before = stored.folder(), os.environ.get(stored.VARIABLE)
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "datasets").symlink_to(full / "datasets")
        (Path(place) / "weights").mkdir()
        for file in (full / "weights").glob(f"{weights(original).stem}.*"):  # with its checksum
            shutil.copy(file, Path(place) / "weights")
        os.environ[stored.VARIABLE] = place
        try:
            yield
        finally:
            os.environ.pop(stored.VARIABLE) if before is None else os.environ.update({stored.VARIABLE: before})


anew = partial(trained, ships=False)  # what ships costs nothing here


def stage(rows, metric, what, explainer, work):
    """Do a piece of work, note its wall time, and return what it gives."""
    for waits in (True, False):
        if device.type == "cuda":
            torch.cuda.synchronize()
        if waits:
            start = time.perf_counter()
            result = work()
    rows.append((metric, what, explainer, time.perf_counter() - start))
    return result


def judged(family, explainer, **networks):
    """Explain the test images, and ask both directions of a metric."""
    asked = dataclasses.replace(task, **networks)
    maps = tasks.attributions(asked, {explainer: EXPLAINERS[explainer]})
    return evaluate({name: metrics[name] for name in (f"{family}+", f"{family}-")}, asked, maps)


@cache
def end_to_end():
    """The seconds of each stage, the scores, and the fine-tuned network."""
    judged("FFid", "Saliency", tuned=task.model)  # warms up
    rows, parts = [], []
    timed_stage = partial(stage, rows)
    with empty_cache():
        for name, explainer in EXPLAINERS.items():
            orders = timed_stage("ROAR", EXPLAIN, name, lambda e=explainer: roar.ordered(retraining, original, e))
            judge = timed_stage("ROAR", TRAIN, name, lambda o=orders: anew(dataclasses.replace(retraining, orders=o)))
            own = partial(judged, "ROAR", name, retrained={name: judge})
            parts.append(timed_stage("ROAR", EVALUATE, name, own))
        judge = timed_stage("F-Fidelity", TRAIN, "both", lambda: anew(tuned))
        for name in EXPLAINERS:
            parts.append(timed_stage("F-Fidelity", EVALUATE, name, partial(judged, "FFid", name, tuned=judge)))
    found = pd.DataFrame(rows, columns=["metric", "stage", "explainer", "seconds"])
    whole = found.groupby("metric", sort=False)["seconds"].sum().reset_index()
    return pd.concat([found, whole.assign(stage="total", explainer="both")]), Scores.concat(parts), judge


stages = run.table("stages", lambda: end_to_end()[0], again="time")
scores = run.table("scores", lambda: end_to_end()[1], again="training")
totals = stages[stages["stage"] == "total"].set_index("metric")["seconds"]
seen = len(datasets.load(original.data, "train")) if cost_limit is None else cost_limit
asked = images * len(sizes) * 2 * draws
Markdown(
    f"Training took {seen:,} images for {cost_epochs} epochs, and F-Fidelity asked about "
    f"{asked:,} masked inputs per explainer ({images} images, {len(sizes)} sizes, {draws} draws, two directions). "
    f"**ROAR took {totals['ROAR']:.1f} s, F-Fidelity {totals['F-Fidelity']:.1f} s: "
    f"ROAR took {totals['ROAR'] / totals['F-Fidelity']:.2f} times as long.** All times of this page were taken on one machine "
    f"({run.machine})."
)

# %% [markdown]
# ## Published and measured
#
# Shares of the total of F-Fidelity, so that machines and sizes can be compared; behind them the seconds. *Published* is
# the paper's Table 13: Tiny-ImageNet, ResNet-9 of width 64, 100 epochs, 2000 test images. The two explainers are added up.

# %% tags=["hide-input"]
STAGES = {
    "explain training samples (100k)": EXPLAIN,
    "train (100 epochs)": TRAIN,
    "fine-tune (100 epochs)": TRAIN,
    "evaluate (2000 samples)": EVALUATE,
}
paper = published.load("ffidelity_cost").replace({"stage": STAGES})


def in_totals(frame):
    """Seconds by metric and stage as text: as a share of F-Fidelity's total, and as they are."""
    summed = frame.groupby(["metric", "stage"], sort=False)["seconds"].sum()
    whole = summed["F-Fidelity", "total"]
    return (summed / whole).map("{:.2f}".format) + summed.map(
        " ({:,.0f} s)".format if whole > 100 else " ({:.1f} s)".format
    )


table = pd.DataFrame({"published": in_totals(paper), "measured": in_totals(stages)})
table = table.reindex(
    [
        (metric, what)
        for metric in ("ROAR", "F-Fidelity")
        for what in (EXPLAIN, TRAIN, EVALUATE, "total")
        if (metric, what) in table.index
    ]
)
tables.styled(table.fillna("–").rename_axis([None, None]))


# %% tags=["hide-input", "headline"]
def longer(frame):
    """How many times as long ROAR takes, and the seconds of both."""
    whole = frame[frame["stage"] == "total"].set_index("metric")["seconds"]
    roars, own = whole["ROAR"], whole["F-Fidelity"]
    said = [f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.1f}" for seconds in (roars, own)]
    return roars / own, f"{roars / own:.1f} times", f"{said[0]} s against {said[1]} s"


ratio, times_longer, of_both = longer(stages)
_, in_print, printed_seconds = longer(paper)
limit = "all" if cost_limit is None else f"{cost_limit:,}"
Markdown(
    ("" if ratio > 1 else "**It is not cheaper here.** ")
    + f"To judge {len(EXPLAINERS)} explainers ROAR takes **{times_longer}** as long as F-Fidelity "
    f"({of_both}; one run, no interval); {in_print} in print, with a larger network and more images and epochs ({printed_seconds})"
    f". All is counted from a trained ResNet-9 on: explaining, training on {limit} images of "
    f"{named(training.get('data', recipes.RESNET9.data))} and asking about {images} others."
)

# %% mystnb={"figure": {"caption": "Wall time to judge explainers, against their number, as it follows from the stages: what is done once, and the mean of what is done for each explainer.", "name": "cost-roar"}, "image": {"alt": "Line chart: number of explainers against seconds, one line for ROAR and one for F-Fidelity."}} tags=["hide-input", "answer"]
numbers = range(1, 11)
of = stages[stages["stage"] != "total"]
once = of[of["explainer"] == "both"].groupby("metric")["seconds"].sum().reindex(totals.index, fill_value=0)
each = of[of["explainer"] != "both"].groupby("metric")["seconds"].sum() / len(EXPLAINERS)
growth = pd.DataFrame(
    [(metric, n, once[metric] + n * each[metric]) for metric in totals.index for n in numbers],
    columns=["metric", "explainers", "seconds"],
)
run.save(growth, "growth")
figure, axes = plt.subplots(figsize=(6.2, 3.4))
look = {"hue": "metric", "style": "metric", "markers": True, "dashes": False, "palette": plots.COLOURS}
sns.lineplot(growth, x="explainers", y="seconds", **look, ax=axes)
axes.set(xlabel="number of explainers", ylabel="seconds", ylim=(0, None), xticks=list(numbers))
axes.get_legend().set_title(None)
plots.show(figure)

# %% [markdown]
# ## The same interval, against the loop as published
#
# Evaluation can be had for much less. FFid+ as published asks about many random subsets a size. [](forwards) shows that one
# is enough, with a few more images for an interval as wide. So both ways are timed in turn until they know a mean over images
# equally well: the loop as published on a few images, scaled to all of them, and the engine with one draw on as many more as that
# page's draws ask for.
#
# *The loop as published* is ours, written as the authors' public code asks: one image after the other, size by size, the random
# subsets of a size as one batch, in float32, the network as it is. It is not that code, which draws its subsets by another law ([](../f-fidelity/public-code)).
# So the bare forwards of the loop, in its batches, are timed too: no loop that asks so much takes less. Explaining is counted apart:
# the additional images have to be explained, too.

# %% tags=["hide-input"]
ONE_DRAW = "one subset a size"
sparing = METRICS["FFid+"].given(
    sizes=sizes, alpha=alpha, cap=beta, draws=1, seed=seed, subset=masks.remove_apart_from_top
)


@cache
def judging():
    """The images whose interval is asked for with the network that judges, and their explanations."""
    wide = tasks.task(original, same_images, name="ResNet-9", precision=precision)
    wide = dataclasses.replace(wide, tuned=end_to_end()[2])
    return wide, tasks.attributions(wide, EXPLAINERS)


def two_draws():
    """Two draws of one subset a size."""
    draws = (evaluate({ONE_DRAW: sparing.given(seed=seed + draw)}, *judging(), draw=draw) for draw in range(2))
    return Scores.concat(draws)


kept = recorded("cost/forwards", "split") if profile == "study" else None  # which has more draws and images
split = kept.frame if kept else two_draws()
each_draw = [{"draw": draw} for draw in sorted({block.labels["draw"] for block in split.blocks})]
BOTH = " - ".join(EXPLAINERS)


def more_images(of):
    """How many times the images one draw needs for the published interval, with its interval over images."""
    over = [{"explainer": e} | draw for e in (EXPLAINERS if of == BOTH else [of]) for draw in each_draw]
    return cost.Ratio.of(
        stats.estimate(split, cost.images_for_fewer_draws(over, published_draws, 1 + (of == BOTH)), metric=ONE_DRAW)
    )


@torch.inference_mode()
def in_a_loop(explainer):
    """FFid+ of a few images as published code asks for it: one after the other, size by size, in float32."""
    (wide, maps), judge = judging(), end_to_end()[2]
    x, features = wide.x[:loop_images], maps[explainer].shape[1]
    for image, target, scores in zip(x, wide.target, maps[explainer], strict=False):
        (judge(image[None]).argmax(1) == target).float()
        order = scores.argsort(descending=True)
        for size in (round(share * features) for share in metrics["FFid+"].sizes):
            taken = min(round(alpha * size), int(beta * features))
            keep = torch.ones(published_draws, features, device=device)
            for mask in keep:
                mask[order[torch.randperm(size, device=device)[:taken]]] = 0
            (judge(image * keep.view(published_draws, 1, *x.shape[-2:])).argmax(1) == target).float().mean()


LOOP, BARE, ENGINE, MAPS = "the loop as published", "its bare forwards", "the engine, one draw", "explain"


def in_turn():
    """The seconds of both, of bare forwards and of explaining, in turn."""
    (wide, maps), judge = judging(), end_to_end()[2]
    jobs, batch = {}, wide.x[:1].repeat(published_draws, 1, 1, 1)
    for explainer, method in EXPLAINERS.items():
        jobs[explainer, LOOP] = partial(in_a_loop, explainer)
        jobs[explainer, BARE] = partial(cost.forwards, judge, batch, loop_images * (len(sizes) * published_draws + 1))
        jobs[explainer, ENGINE] = partial(evaluate, {"FFid+": sparing}, wide, {explainer: maps[explainer]})
        jobs[explainer, MAPS] = partial(tasks.attributions, wide, {explainer: method})
    for explainer in EXPLAINERS:
        jobs[explainer, ENGINE]()  # warms up
    found = cost.in_turn(jobs, repeats, ["explainer", "what"], warm=False)
    return found.assign(images=found["what"].map({LOOP: loop_images, BARE: loop_images}).fillna(same_images))


taken = run.table("timed", in_turn, again="time")
taken["an image"] = taken["seconds"] / taken["images"]
an_image = taken.pivot(index=["repeat", "explainer"], columns="what", values="an image")
ASKING, BARELY, EXPLAINING = "asking", "the loop's bare forwards", "with explaining"
found, factors = {}, {of: more_images(of) for of in (*EXPLAINERS, BOTH)}
for of, factor in factors.items():
    both = an_image if of == BOTH else an_image.xs(of, level="explainer")
    both = both.groupby("repeat").sum()  # of a difference, both explainers
    ratios = {
        ASKING: both[LOOP] / both[ENGINE],
        BARELY: both[BARE] / both[ENGINE],
        EXPLAINING: (both[LOOP] + both[MAPS]) / (both[ENGINE] + both[MAPS]),
    }
    found |= {(of, what): cost.Ratio.over_turns(r).over(factor) for what, r in ratios.items()}
rows = [(of, factors[of].value, what, r.value, r.low, r.high) for (of, what), r in found.items()]
same = pd.DataFrame(rows, columns=["of", "images", "what", "ratio", "low", "high"])
run.save(same, "same-interval")
shown = pd.DataFrame({what: {of: str(found[of, what]) for of in factors} for what in (ASKING, BARELY, EXPLAINING)})
shown.insert(0, "images", {of: f"{factor} times" for of, factor in factors.items()})
tables.styled(shown)

# %% tags=["hide-input"]
bare = cost.Ratio.over_turns(an_image[LOOP] / an_image[BARE]).value
Markdown(
    f"The loop takes {bare:.2f} times its bare forwards. In brackets 95 % intervals: over {repeats} repeats on one machine and, of the "
    f"factor of images, over the images that it is estimated from. "
    "The two are independent, and their logarithms put together by MOVER. "
    f"The loop was timed on {loop_images} image{'s' * (loop_images > 1)}, the engine on {same_images}."
)

# %% [markdown]
# ## What reproduced
#
# A time has no interval over images. It was taken once on each machine, alone, and what it is made of is above: the sentence holds
# where the total is less. It is a sentence about *training*: it turns round where evaluation is long and training short, as with few
# training images or many draws.

# %% tags=["hide-input"]
run.claim(
    "ff-cheaper-than-roar",
    "Appendix D.11, Table 13",
    "Judging two explainers costs less with F-Fidelity, which fine-tunes once, than with ROAR.",
    [
        counted(
            f"F-Fidelity's total ({totals['F-Fidelity']:.1f} s) is below ROAR's ({totals['ROAR']:.1f} s)",
            [bool(totals["F-Fidelity"] < totals["ROAR"])],
            reason="wall times of one run on one machine",
        )
    ],
    paper="F-Fidelity",
)

# %% tags=["hide-input"]
why = f"interval over {repeats} repeats on one machine and over the images that the factor is from"
run.claim(
    "ff-hundred-times",
    "this page",
    "For an interval as wide, a loop over images and sizes, written as published, takes at least a hundred times as long as the engine with "
    "one draw and more images, with and without the time of the explanations that both need.",
    [
        timed(f"{of}, {what}: {(r := found[of, what])} times", r.ends, at_least=100, reason=why)
        for what in (ASKING, EXPLAINING)
        for of in factors
    ],
)

# %% [markdown]
# **Why?** Where is the factor least, and of what is it made: of the inputs that are asked, of the time of one, of the images that
# one draw needs more, of the explanations that both need?

# %% tags=["hide-input"]
least = same[same["what"].isin([ASKING, EXPLAINING])].sort_values("ratio").iloc[0]
of = taken[taken["explainer"].isin(least["of"].split(" - "))]
spent = of.groupby(["what", "explainer"])["an image"].median().groupby("what").sum()  # seconds
several = of["explainer"].nunique()
asked_of = {LOOP: several * (len(sizes) * published_draws + 1), ENGINE: several * (len(sizes) + 1)}
rows = [(what, f"{n:,}", f"{1000 * spent[what]:.2f}", f"{1e6 * spent[what] / n:.0f}") for what, n in asked_of.items()]
rows.append((MAPS, "–", f"{1000 * spent[MAPS]:.2f}", "–"))
said = f"The least factor is {least['ratio']:.0f} [{least['low']:.0f}, {least['high']:.0f}] times, of {least['of']}, {least['what']}: "
said += f"the engine takes {least['images']:.2f} times as many images."
tables.prose(pd.DataFrame(rows, columns=["what", "inputs an image", "ms an image", "µs an input"])).set_caption(said)

# %% tags=["hide-input"]
run.finish()
