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
# # How much of a SaCo is how it was computed?
#
# *The same explanation, the same images, another SaCo.* Three choices that stand in no table of the paper: the options with which
# the reference code of the explainers is run, the weight of a pair (section 5.5), and the number format of the network's answers.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
data = "cifar10"
networks = ["vit"]  # "vit": the small one of the study; else names of timm, see faithstudy.networks.transformers
training = {}  # what differs from the recipe of the small network, such as {"epochs": 5}: see faithstudy.recipes
training_seeds = [0, 1, 2]  # each is a network of its own
weights = None  # a folder with weights of timm's networks; None: timm's own, for ImageNet
path = None  # a folder with ImageNet photographs, for imagenet-folder
images = 300  # test images to explain
groups = 10  # K
steps = 50  # of Integrated Gradients
seed = 0  # of the random attribution

# %% tags=["hide-input"]
import dataclasses

import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import stats
from faithlab.metrics import METRICS, evaluate
from faithlab.metrics.saco import Groups, coefficient, influences
from faithlab.scores import Scores
from faithstudy import plots, summaries, tables
from faithstudy.claims import counted
from faithstudy.recipes import introduced, vits
from faithstudy.run import Run
from faithstudy.trials import tasks, transformers
from faithstudy.trials.chance import RANDOM

plots.theme()
run = Run("saco/settings", globals())

# %% [markdown]
# We evaluate a Vision Transformer on test images. Every explanation and every SaCo is about the
# class that the network predicts, right or wrong. A removed group of pixels becomes the image's mean colour.

# %% tags=["hide-input"]
chosen, counted_here = transformers.tasks(networks, data, images, vits(run.parameters), weights=weights, path=path)
recognised = run.table("recognised", lambda: counted_here)
Markdown(introduced(recognised, images))

# %% tags=["hide-input"]
explainers = transformers.EXPLAINERS | {"IG": ("integrated-gradients", {"steps": steps})}
with_random = explainers | {RANDOM: ("random", {"seed": seed})}
at, metric = f"SaCo, K = {groups}", METRICS["SaCo"].given(groups=groups)
scores = run.table("scores", lambda task: evaluate({at: metric}, task, tasks.attributions(task, with_random)), chosen)

# %% [markdown]
# ## As the reference code is run
#
# For its explainers the paper points to the public code of Chefer, Gur and Wolf. That code does not run all of them as their
# papers write them. Of Rollout and Transformer Attribution it multiplies the layers from the second on, where the papers multiply
# all. LRP and Partial LRP, the rivals there, get other rules than Transformer Attribution: a skip connection hands on what it
# receives, however much of it cancels, and each side of a matrix product receives half. Here the explainers have these as
# options, `layers` and `normalised`. The table says what each changes: the SaCo, image by image, and the map, as the rank
# correlation of its pixels with the map without the option.

# %% tags=["hide-input", "answer"]
FIRST, RULES = "without the first layer", "by the rivals' rules"
as_run = {"Rollout": FIRST, "Transformer Attribution": FIRST, "LRP": RULES, "Partial LRP": RULES}


def with_options(task):
    """SaCo without and with the options, and how alike the two maps are."""
    plain = tasks.attributions(task, {name: explainers[name] for name in as_run})
    given = {FIRST: {"layers": max(1, len(task.model.blocks) - 1)}, RULES: {"normalised": False}}
    other = {f"{name}, {how}": (explainers[name], given[how]) for name, how in as_run.items()}
    other = tasks.attributions(task, other)
    found = [evaluate({at: metric}, task, plain | other)]
    for of, (there, changed) in zip(plain.values(), other.items(), strict=True):
        about = {"explainer": there, "metric": "rank correlation", "images": task.images, **task.labels}
        found.append(Scores.of(stats.spearman(of, changed), **about))
    return Scores.concat(found)


options = run.table("options", with_options, chosen)
rows = []
for name, how in as_run.items():
    cells = [{"explainer": f"{name}, {how}"}, {"explainer": name}]
    own, plain = (stats.estimate(options, metric=at, **cell) for cell in cells)
    row = {"SaCo": plain, "with the option": own, "change": stats.paired(options, *cells, metric=at)}
    row["rank correlation of the maps"] = stats.estimate(options, metric="rank correlation", **cells[0])
    rows.append({"explainer": f"{name}, {how}"} | row)
said = [{key: e if key == "explainer" else tables.number(e) for key, e in row.items()} for row in rows]
tables.prose(pd.DataFrame(said))

# %% tags=["hide-input"]
moved = [row for row in rows if row["change"].low > 0 or row["change"].high < 0]
moved.sort(key=lambda row: -abs(float(row["change"].value)))
Markdown(
    (
        "Clearly changed, so that the interval of the change excludes 0, is the SaCo of "
        + "; ".join(f"{row['explainer']}: {tables.number(row['change'])}" for row in moved)
        if moved
        else f"On these {images} images no option changes a SaCo clearly: every interval of a change holds 0"
    )
    + ". Every other number of this book is of the papers' text: all layers, and normalised rules."
)

# %% [markdown]
# ## Differences or ratios
#
# A pair of groups counts with the difference of its saliences, $s_i - s_j$. The paper also considers the ratio
# $s_i / s_j$, and rejects it: it "violates the property of scale-invariance". Below every attribution is multiplied by a
# number, and shifted so that it lies in [0, 1], as maps often are for display. A metric of faithfulness should not care:
# the explanation says the same, and its groups are the same. The changes are facts of the first images, without an interval.


# %% tags=["hide-input"]
def changes(task, name, attribution):
    """The largest change of a coefficient of an explanation when its scores are scaled, or brought into [0, 1]."""
    found = influences(task.score(baseline="mean", exact=True), attribution, groups)
    low, high = attribution.double().amin(1, keepdim=True), attribution.double().amax(1, keepdim=True)
    shifted = (found.salience - low * attribution.shape[1] / groups) / (high - low)
    versions = {"multiplied by 1000": found.salience * 1000, "brought into [0, 1]": shifted}
    for weight, ratio in (("difference", False), ("ratio", True)):
        plain = coefficient(found, ratio=ratio)
        for change, salience in versions.items():
            moved = (coefficient(Groups(salience, found.drop), ratio=ratio) - plain).abs()
            about = task.network, task.training_seed, name, weight, change
            yield *about, moved.nan_to_num(0).max().item(), int(moved.isnan().sum())


count = min(16, images)  # are enough to see a fact


def scaled(some):
    """The changes of all explanations of the first images by some of the networks."""
    rows = []
    for task in (task.part(torch.arange(count)) for task in some):
        maps = tasks.attributions(task, with_random)
        rows += [row for name, attribution in maps.items() for row in changes(task, name, attribution)]
    columns = ["network", "training_seed", "explainer", "weight", "change", "largest", "undefined"]
    return pd.DataFrame(rows, columns=columns)


scale = run.table("scale", lambda: scaled(chosen), again=lambda: scaled(chosen[:1]))
largest = scale.groupby(["weight", "change"])["largest"].max()
said = largest.unstack().map(lambda change: f"{change:.2f}" if change > 1e-9 else "rounding alone")
tables.styled(said.rename_axis(index=None, columns="largest change of a coefficient"))

# %% tags=["hide-input"]
Markdown(
    f"**On how many images?** The two claims below are counted on the first {count} images, for {len(with_random)} explanations and "
    "each network: they say what arithmetic does to a coefficient, which a few images show."
)

# %% tags=["hide-input"]
by_difference = scale[scale["weight"] == "difference"].groupby("change")["largest"]
how = f"the first {count} images, K = {groups}; undefined coefficients are left out"
run.claim(
    "saco-scale",
    "Section 5.5",
    "SaCo does not depend on the scale of the scores.",
    [
        counted(f"{change}: no coefficient changes by 1e-6", (of < 1e-6).tolist(), reason=f"each explainer, {how}")
        for change, of in by_difference
    ],
    follows="a common factor of the scores cancels in the coefficient",
)

# %% tags=["hide-input"]
run.claim(
    "saco-ratio",
    "Section 5.5",
    "With ratios in place of differences SaCo would depend on the scale.",
    [
        counted(f"{change}: a coefficient changes by more than 0.001", [bool(of > 1e-3)], reason=how)
        for change, of in largest["ratio"].items()
    ],
)

# %% tags=["hide-input"]
Markdown(
    "The paper's word is *scale*, but a ratio does not mind a scale: the factor cancels "
    f"(largest change: {said.loc['ratio', 'multiplied by 1000']}). What it minds is a shift: bringing the same attribution into "
    f"[0, 1] changes a coefficient by up to {largest['ratio', 'brought into [0, 1]']:.2f}, where differences change by "
    f"{said.loc['difference', 'brought into [0, 1]']}. And it minds signs: an attribution with negative scores has groups whose "
    "salience is near zero or negative, and ratios of any size and sign. The conclusion stands, with another reason."
)

# %% [markdown]
# ## Precision
#
# SaCo takes the sign of the difference of two losses. Where they are nearly equal, rounding decides. So every SaCo in this
# book is computed in float32; this is what bfloat16, the fast format, would have done to it, on the first images.

# %% tags=["hide-input"]
few = min(32, images)  # are enough to see what rounding does
rough = {f"{at}, bfloat16": metric.given(exact=False)}


def in_both(task):
    """SaCo in bfloat16 and in float32."""
    maps = tasks.attributions(task, explainers)
    in_rough = dataclasses.replace(task, precision=torch.bfloat16)
    return evaluate(rough, in_rough, maps) + evaluate({at: metric}, task, maps)


rounded = run.table("rounded", in_both, [task.part(torch.arange(few)) for task in chosen])
rows = []
for name in explainers:
    cells = [{"metric": next(iter(rough))}, {"metric": at}]
    shift = stats.paired(rounded, *cells, explainer=name)
    short, exact = (rounded.where(explainer=name, **cell) for cell in cells)
    moved = torch.cat([b.values - a.values[: len(b.values)] for a, b in zip(exact, short, strict=True)]).abs()
    facts = moved.nan_to_num(0).max().item(), (moved > 1e-6).double().mean().item()
    rows.append((name, *(float(x[0]) for x in shift.pooled), *facts))
precision = pd.DataFrame(rows, columns=["explainer", "mean", "low", "high", "largest", "changed"])
run.save(precision, "precision")
shown = tables.side_by_side({"mean shift": precision}, rows=["explainer"], columns=[], order=list(explainers), digits=3)
facts = precision.set_index("explainer").loc[shown.index]
formats = {
    "largest shift": facts["largest"].map("{:.2f}".format),
    "images changed": facts["changed"].map("{:.0%}".format),
}
tables.styled(shown.assign(**formats))

# %% tags=["hide-input"]
clear = precision[(precision["low"] > 0) | (precision["high"] < 0)]["explainer"].tolist()
Markdown(
    f"In bfloat16 {precision['changed'].mean():.0%} of the coefficients change, a single one by up to "
    f"{precision['largest'].max():.2f}. The mean over {few} images is moved beyond its noise for "
    f"{len(clear)} of {len(precision)} explainers" + (f" ({', '.join(clear)})." if clear else ".")
)

# %% tags=["hide-input", "headline"]
by_option = {
    name: stats.paired(options, {"explainer": f"{name}, {how}"}, {"explainer": name}, metric=at)
    for name, how in as_run.items()
}
apart = [name for name, change in by_option.items() if change.low > 0 or change.high < 0]
most = max(apart, key=lambda name: abs(float(by_option[name])), default="")
by_weight = largest.groupby("weight").max()
by_ratio = [
    ("rounding alone" if moved < 1e-6 else f"up to {moved:.2f}") + f" with scores {change}"
    for change, moved in largest["ratio"].sort_values(ascending=False).items()
]
beyond, changed = len(clear), precision["changed"].mean()
Markdown(
    f"**Options of the reference code: {'yes' if apart else 'not clearly'}.** They change the SaCo of {len(apart) or 'none'} of {len(by_option)} "
    "explainers clearly"
    + (f"; that of {most} most, by {tables.number(by_option[most])}" if apart else "")
    + f" ({images} images). **Weights: "
    f"{'only ratios' if by_weight['difference'] < 1e-6 < by_weight['ratio'] else 'yes' if by_weight.max() > 1e-6 else 'no'}.** "
    f"Where pairs count with ratios, a coefficient changes by {summaries.listed(by_ratio)}, and by "
    + ("rounding alone" if by_weight["difference"] < 1e-6 else f"up to {by_weight['difference']:.2f}")
    + f" where they count with differences (the first {count}). **Precision: "
    f"{'some' if changed > 0 else 'no'} coefficients, {'the mean of ' + str(beyond) if beyond else 'no mean'}.** bfloat16 changes {changed:.0%} of "
    f"the coefficients, and the mean of {beyond or 'none'} of {len(precision)} explainers beyond its noise (the first {few})."
)

# %% tags=["hide-input"]
run.finish()
