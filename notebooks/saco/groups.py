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
# # Do groups, weights and precision change SaCo?
#
# *How much of a SaCo is the explanation, and how much is how SaCo was computed?* Six choices: the number of groups $K$
# (the paper's Table 2), whether an explanation keeps its sign, the options with which the reference code of the explainers is
# run, the weight of a pair (section 5.5), the number format of the network's answers, and the program.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, study or paper: see notebooks/profiles.yml
data = "cifar10"
networks = ["vit"]  # "vit": the small one of the study; else names of timm, see faithlab.zoo.transformers
training = {}  # what differs from the recipe of the small network, such as {"epochs": 5}: see faithlab.study.networks
training_seeds = [0]  # each is a network of its own
weights = None  # a folder with weights of timm's networks; None: timm's own, for ImageNet
path = None  # a folder with ImageNet photographs, for imagenet-folder
images = 16  # test images to explain
numbers_of_groups = [5, 10, 20]  # K
steps = 50  # of Integrated Gradients
timed_images = 8  # images of the timing
width = 16  # of the ResNet-9 that is timed beside the Vision Transformer
repeats = 2  # of the timing, in turn; the median is reported
seed = 0  # of the random attribution

# %% tags=["hide-input"]
import dataclasses
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import engine, references, stats
from faithlab.claims import best, better, counted, most, within
from faithlab.explainers import explain
from faithlab.metrics import METRICS, evaluate
from faithlab.metrics.saco import Groups, coefficient, influences, saco
from faithlab.scores import Scores
from faithlab.study import figures, headlines, published, tables
from faithlab.study.networks import VIT, changed, introduced, vits
from faithlab.study.results import Run
from faithlab.trials import cost, subjects, transformers
from faithlab.trials.chance import RANDOM
from faithlab.zoo import datasets, models

figures.theme()
run = Run("saco/groups", globals())

# %% [markdown]
# The subject is a Vision Transformer with test images. Every explanation and every SaCo is about the
# class that the network predicts, right or wrong. A removed group of pixels becomes the image's mean colour.

# %% tags=["hide-input"]
chosen, recognised = transformers.subjects(networks, data, images, vits(run.parameters), weights=weights, path=path)
run.save(recognised, "recognised")
Markdown(introduced(recognised, images, run.beside("recognised").get("recorded")))

# %% [markdown]
# ## The number of groups
#
# Few groups are large: each holds many pixels, and the order of a few large losses should be easier to get right. Many groups
# ask for more, and ask with smaller differences. *Published* is the paper's Table 2, a mean over ViT-B, ViT-L and DeiT-B on
# ImageNet. In brackets: 95 % intervals over the images.
#
# Integrated Gradients and Conservative LRP are sums over the colours of contributions with a sign. The paper does not say
# whether it takes their magnitude, and the two differ: $|\text{IG}|$ and $|\text{Conservative LRP}|$ stand below.

# %% tags=["hide-input"]
explainers = transformers.EXPLAINERS | {"IG": ("integrated-gradients", {"steps": steps})}
attributions = [subjects.attributions(s, explainers | {RANDOM: ("random", {"seed": seed})}) for s in chosen]
K = 10 if 10 in numbers_of_groups else numbers_of_groups[0]
of = {k: METRICS["SaCo"].given(groups=k) for k in numbers_of_groups}
metrics = {f"SaCo, K = {k}": metric for k, metric in of.items()}
named, at = list(metrics), f"SaCo, K = {K}"
rough = {f"{at}, bfloat16": of[K].given(exact=False)}

FEW = 32  # images are enough to see what rounding does
found = []
for subject, maps in zip(chosen, attributions, strict=True):
    found.append(evaluate(metrics, subject, maps))
    found.append(evaluate({at: of[K]}, subject, transformers.magnitudes(maps)))
    few = dataclasses.replace(subject, precision=torch.bfloat16).part(torch.arange(min(FEW, images)))
    found.append(evaluate(rough, few, {name: maps[name][:FEW] for name in explainers}))
scores = Scores.concat(found)
run.save(scores, "scores")

# A table of its own, so that the one above has the rows that earlier records of it have.
others = {name: metric for name, metric in metrics.items() if name != at}
found = [evaluate(others, s, transformers.magnitudes(maps)) for s, maps in zip(chosen, attributions, strict=True)]
magnitudes = Scores.concat(found)
run.save(magnitudes, "magnitudes")

# %% tags=["hide-input"]
estimates = tables.summary(scores, ["explainer", "metric"], metric=named)
run.save(estimates, "estimates")
table2 = published.load("saco_groups").rename(columns={"saco": "mean"})
table2 = table2.assign(metric=[f"SaCo, K = {k}" for k in table2["groups"]])
sources = run.beside("estimates", table2[table2["metric"].isin(named)])
tables.compared(sources, rows=["explainer"], columns=["metric"], order=[*explainers, *named])

# %% mystnb={"figure": {"caption": "SaCo of each explainer against the number of groups. Points: means over the images; bars: 95 % intervals. Dashed: the paper's Table 2. The grey line in each panel is Random.", "name": "saco-groups"}, "image": {"alt": "Ten small line charts, one per explainer: number of groups against SaCo, with Random in grey and the paper's numbers dashed."}} tags=["hide-input", "answer"]
figure, grid = plt.subplots(-(-len(explainers) // 2), 2, figsize=(3.7, 7.5), sharex=True, sharey=True)  # as a phone
ours, theirs = (f.set_index(["explainer", "metric"]).sort_index() for f in (estimates, table2))
for axes, name in zip(grid.flat, explainers, strict=True):
    own = ours.loc[name].loc[named]
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.plot(numbers_of_groups, ours.loc[RANDOM].loc[named, "mean"], color="0.65")
    axes.plot(numbers_of_groups, theirs.loc[name]["mean"].reindex(named), color="0.4", linestyle="--", linewidth=1)
    error, colour = [own["mean"] - own["low"], own["high"] - own["mean"]], figures.COLOURS["SaCo"]
    axes.errorbar(numbers_of_groups, own["mean"], error, color=colour, marker="o", markersize=4, capsize=2)
    axes.set_xscale("log")
    axes.set_xticks(numbers_of_groups, numbers_of_groups)
    axes.minorticks_off()
    axes.set_title(name.replace(" ", "\n"), fontsize="small")
figure.supxlabel("groups", fontsize="medium")
figure.supylabel("SaCo", fontsize="medium")
figures.show(figure)

# %% [markdown]
# How SaCo falls from few groups to many is judged image by image. *Most* is more than half of the ten. "Hardly" is within
# 0.05: the paper says "relatively consistent" of IG and ATTCAT, whose printed numbers rise by 0.02 and 0.04.

# %% tags=["hide-input"]
few, many = named[0], named[-1]
falls = stats.difference(*(stats.Statistic(stats.mean, ({"metric": name},)) for name in (few, many)), f"{few} - {many}")
fall = table2.pivot(index="explainer", columns="metric", values="mean").reindex(columns=[few, many])
printed = (fall[few] - fall[many]).to_dict()
pair = {"metric": few}, {"metric": many}
parts = [better(scores, *pair, explainer=name, printed=fall.loc[name].to_list()) for name in explainers]
falling = most(parts, "explainers whose SaCo falls")
run.claim("saco-groups", "Section 5.5, Table 2", "With more groups the SaCo of most explainers falls.", [falling])

# %% tags=["hide-input"]
steep, steady = ["Partial LRP", "Transformer Attribution", "Transformer-MM"], ["IG", "ATTCAT"]
rest = [name for name in explainers if name not in steep]
hardly = {"margin": 0.05, "reason": "the paper calls a change of 0.044 relatively consistent", "of": falls}
learned = transformers.learned(recognised, chosen[0])
parts = [learned]
for name in steep:
    more = {"name": f"{name} falls more than the rest", "printed": printed}
    parts.append(best(scores, "explainer", name, rivals=rest, of=falls, **more))
for name in steady:
    same = {"name": f"{name} hardly changes", "printed": [printed[name]]}
    parts.append(within(scores, {"explainer": name}, **same, **hardly))
run.claim(
    "saco-groups-who",
    "Section 5.5, Table 2",
    "With more groups the SaCo of Partial LRP, Transformer Attribution and Transformer-MM falls most; that of IG and ATTCAT hardly "
    "changes.",
    parts,
)

# %% [markdown]
# **Why?** Is the order of the falls another one than in print, or does one explainer spoil it? Each is left out in turn. And does the
# missing sign of Integrated Gradients decide about its own part? *Recorded* and *this build* say whose images a number is of.


# %% tags=["hide-input"]
def fall_alike(called):
    """The rank correlation of how explainers fall here and in print."""
    theirs = stats.rank(torch.tensor([printed[name] for name in called], dtype=torch.float64))

    def correlation(*samples):
        means = torch.stack([sample.mean() for sample in samples], -1)
        here = stats.rank(means[..., : len(called)] - means[..., len(called) :])
        return stats.pearson(here, theirs.expand_as(here))

    over = tuple({"explainer": name, "metric": metric} for metric in (few, many) for name in called)
    return stats.Statistic(correlation, over, "rank correlation", steps=True, bounds=(-1.0, 1.0))


source, known = next((n, of) for n, of in run.beside("scores").items() if {few, many} <= set(of.labels("metric")))
alike = stats.estimate(known, fall_alike([*explainers]))
without = {name: stats.estimate(known, fall_alike([e for e in explainers if e != name])) for name in explainers}
spoils = max(without, key=lambda name: float(without[name]))
first_of = {
    name: [stats.paired(known, {"explainer": name}, {"explainer": e}, falls) for e in rest if e != spoils]
    for name in steep
}
clear = [name for name, leads in first_of.items() if all(float(lead.low) > 0 for lead in leads)]
behind_one = [name for name, leads in first_of.items() if any(float(lead.high) < 0 for lead in leads)]
unsigned = scores + magnitudes
both = {name: stats.estimate(unsigned, falls, explainer=name) for name in ("IG", "|IG|")}
by_sign = stats.paired(unsigned, {"explainer": "IG"}, {"explainer": "|IG|"}, falls)
level = stats.estimate(known, metric=few, explainer=spoils)
say = partial(tables.by_sign, more="falls by {}", less="rises by {}", same="stays ({})", said=tables.number)
Markdown(
    f"The falls agree with the printed ones by {tables.number(alike)} ({source}), most without {spoils}: {tables.number(without[spoils])}. "
    f"{spoils} {say(stats.estimate(known, falls, explainer=spoils))} here, from {tables.number(level)}; in print it "
    f"{'falls' if printed[spoils] > 0 else 'rises'} by {abs(printed[spoils]):.2f}, from {fall.loc[spoils, few]:.2f}. Left out, "
    f"{len(clear)} of the {len(steep)} fall clearly more than the rest"
    + (f" ({', '.join(clear)})" if clear else "")
    + (f", and {', '.join(behind_one)} clearly not. " if behind_one else ", and none clearly less than one of these. ")
    + f"IG {say(both['IG'])} with its sign and {say(both['|IG|'])} without (this build), and {'falls' if printed['IG'] > 0 else 'rises'} by "
    f"{abs(printed['IG']):.2f} in print: "
    + (
        "the sign is a reason. "
        if float(by_sign.low) > 0 and abs(float(both["|IG|"])) < abs(float(both["IG"]))
        else "that the sign is a reason is not clear on so many images. "
    )
    + f"What is left of {spoils}, network or its reading, the paper's own networks would tell: the profile `paper` asks them."
)

# %% [markdown]
# ## With a sign, or without
#
# Six explainers stand above Integrated Gradients in the paper's Table 2 at $K = 10$. Do they here, with a sign and without?

# %% tags=["hide-input"]
paper = table2[table2["groups"] == K].set_index("explainer")["mean"]
ahead = [name for name in explainers if paper[name] > paper["IG"]]


def behind(gradients):
    """Every explainer that the paper puts above Integrated Gradients is above it here."""
    parts, rival = [learned], {"explainer": gradients}
    for name in ahead:
        about = {"name": f"{name} is above {gradients}", "printed": [float(paper[name]), float(paper["IG"])]}
        parts.append(better(scores, {"explainer": name}, rival, metric=at, **about))
    return parts


run.claim(
    "saco-ig-signed",
    "Table 2, K = 10",
    "Integrated Gradients, as the signed sum over the colours, is less faithful than the six explainers above it in Table 2.",
    behind("IG"),
)

# %% tags=["hide-input"]
run.claim(
    "saco-ig-magnitude",
    "Table 2, K = 10",
    "Integrated Gradients, as a magnitude, is less faithful than the six explainers above it in Table 2.",
    behind("|IG|"),
)

# %% tags=["hide-input"]
lines = []
for name in transformers.SIGNED:
    with_sign, without = (stats.estimate(scores, metric=at, explainer=e) for e in (name, f"|{name}|"))
    lines.append(
        f"of **{name}** the paper prints {paper[name]:.2f}; here it is {tables.number(with_sign)} with its sign and "
        f"{tables.number(without)} as a magnitude"
    )
Markdown(
    f"The SaCo with {K} groups: "
    + "; ".join(lines)
    + ". A pixel that speaks against the class is the last to be removed with a sign, and among the first "
    "without one. SaCo asks whether a group that is said to matter more costs the class more: pixels against it must be at the "
    "end of the order, so that a reading without sign throws away what SaCo rewards."
)

# %% [markdown]
# ## As the reference code is run
#
# For its explainers the paper points to the public code of Chefer, Gur and Wolf. That code does not run all of them as their
# papers write them. Of Rollout and Transformer Attribution it multiplies the layers from the second on, where the papers multiply
# all. LRP and Partial LRP, the rivals there, get other rules than Transformer Attribution: a skip connection hands on what it
# receives, however much of it cancels, and each side of a matrix product receives half. Here the explainers have these as
# options, `layers` and `normalised`. The table says what each changes: the SaCo, image by image, and the map, as the rank
# correlation of its pixels with the map above.

# %% tags=["hide-input"]
FIRST, RULES = "without the first layer", "by the rivals' rules"
as_run = {"Rollout": FIRST, "Transformer Attribution": FIRST, "LRP": RULES, "Partial LRP": RULES}
found = [scores.where(explainer=list(as_run), metric=at)]
for subject, maps in zip(chosen, attributions, strict=True):
    given = {FIRST: {"layers": max(1, len(subject.model.blocks) - 1)}, RULES: {"normalised": False}}
    other = {f"{name}, {how}": (explainers[name], given[how]) for name, how in as_run.items()}
    other = subjects.attributions(subject, other)
    found.append(evaluate({at: of[K]}, subject, other))
    for name, how in as_run.items():
        alike = {"explainer": f"{name}, {how}", "metric": "rank correlation"}
        alike |= {"images": subject.images, **subject.labels}
        found.append(Scores.of(stats.spearman(maps[name], other[f"{name}, {how}"]), **alike))
options = Scores.concat(found)
run.save(options, "options")
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
# ## The order of the explainers
#
# Do the ten stand in the order of the paper's Table 2? The rank correlation between their mean SaCo here and the ten printed
# numbers, at each $K$ and in three readings: all with the sign that they have, Integrated Gradients and Conservative LRP as
# magnitudes, and without these two. In brackets: 95 % intervals over the images; the printed numbers are fixed.

# %% tags=["hide-input"]
readings = {
    "with signs": {name: name for name in explainers},
    "as magnitudes": {name: f"|{name}|" if name in transformers.SIGNED else name for name in explainers},
    "without the two": {name: name for name in explainers if name not in transformers.SIGNED},
}


def like_the_paper(k, called):
    """The rank correlation of the explainers' means with the printed numbers, by the names that they have here."""
    theirs = stats.rank(torch.tensor(printed_means.loc[k, list(called)].to_numpy()))

    def correlation(*samples):
        means = torch.stack([sample.mean() for sample in samples], -1)
        return stats.pearson(stats.rank(means), theirs.expand_as(means))

    over = tuple({"explainer": name, "metric": f"SaCo, K = {k}"} for name in called.values())
    return stats.Statistic(correlation, over, "rank correlation", steps=True, bounds=(-1.0, 1.0))


def orders(both):
    """The correlations of a table, in every reading that it has been asked."""
    asked = {(block.labels["explainer"], block.labels["metric"]) for block in both}
    for k in printed_means.index.intersection(numbers_of_groups):
        for reading, called in readings.items():
            if {(name, f"SaCo, K = {k}") for name in called.values()} <= asked:
                order = tables.interval(stats.estimate(both, like_the_paper(k, called)))
                yield {"groups": f"K = {k}", "reading": reading, **order}


printed_means = table2.pivot(index="groups", columns="explainer", values="mean")
of_run, of_magnitudes = run.beside("scores"), run.beside("magnitudes")
agreement = {
    source: pd.DataFrame(orders(Scores.concat([kept, *filter(None, [of_magnitudes.get(source)])])))
    for source, kept in of_run.items()
}
run.save(agreement["this build"], "agreement")
tables.compared(agreement, rows=["groups"], columns=["reading"], order=[*agreement["this build"]["groups"], *readings])

# %% tags=["hide-input"]
by_reading = agreement["this build"].pivot(index="groups", columns="reading", values="mean")
by_reading = by_reading.loc[agreement["this build"]["groups"].unique()]
lines = []
for k, own in by_reading.iterrows():
    values = ", ".join(f"{own[reading]:.2f} {reading}" for reading in readings).replace("-", "−")
    nearest = " and ".join(reading for reading in readings if own[reading] == own.max())
    lines.append(f"at {k} it is {values} (nearest to the paper: {nearest})")
Markdown("A correlation of 1 is the paper's order, 0 none of it: " + "; ".join(lines) + ".")

# %% [markdown]
# ## Differences or ratios
#
# A pair of groups counts with the difference of its saliences, $s_i - s_j$. The paper also considers the ratio
# $s_i / s_j$, and rejects it: it "violates the property of scale-invariance". Below every attribution is multiplied by a
# number, and shifted so that it lies in [0, 1], as maps often are for display. A metric of faithfulness should not care:
# the explanation says the same, and its groups are the same. The changes are facts of the first images, without an interval.


# %% tags=["hide-input"]
def changes(subject, name, attribution):
    """The largest change of a coefficient of an explanation when its scores are scaled, or brought into [0, 1]."""
    found = influences(subject.score(reference="mean", exact=True), attribution, K)
    low, high = attribution.double().amin(1, keepdim=True), attribution.double().amax(1, keepdim=True)
    shifted = (found.salience - low * attribution.shape[1] / K) / (high - low)
    versions = {"multiplied by 1000": found.salience * 1000, "brought into [0, 1]": shifted}
    for weight, ratio in (("difference", False), ("ratio", True)):
        plain = coefficient(found, ratio=ratio)
        for change, salience in versions.items():
            moved = (coefficient(Groups(salience, found.drop), ratio=ratio) - plain).abs()
            yield subject.network, name, weight, change, moved.nan_to_num(0).max().item(), int(moved.isnan().sum())


count = min(16, images)  # enough to see a fact
rows = []
for subject, maps in zip(chosen, attributions, strict=True):
    first = subject.part(torch.arange(count))
    rows += [row for name, attribution in maps.items() for row in changes(first, name, attribution[:count])]
scale = pd.DataFrame(rows, columns=["network", "explainer", "weight", "change", "largest", "undefined"])
run.save(scale, "scale")
largest = scale.groupby(["weight", "change"])["largest"].max()
said = largest.unstack().map(lambda change: f"{change:.2f}" if change > 1e-9 else "rounding alone")
tables.styled(said.rename_axis(index=None, columns="largest change of a coefficient"))

# %% tags=["hide-input"]
by_difference = scale[scale["weight"] == "difference"].groupby("change")["largest"]
how = f"the first {count} images, K = {K}; undefined coefficients are left out"
run.claim(
    "saco-scale",
    "Section 5.5",
    "SaCo does not depend on the scale of the scores.",
    [
        counted(f"{change}: no coefficient changes by 1e-6", (of < 1e-6).tolist(), reason=f"each explainer, {how}")
        for change, of in by_difference
    ],
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
rows = []
for name in explainers:
    cells = [{"metric": next(iter(rough))}, {"metric": at}]
    shift = stats.paired(scores, *cells, explainer=name)
    short, exact = (scores.where(explainer=name, **cell) for cell in cells)
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
    f"{precision['largest'].max():.2f}. The mean over {min(FEW, images)} images is moved beyond its noise for "
    f"{len(clear)} of {len(precision)} explainers" + (f" ({', '.join(clear)})." if clear else ".")
)

# %% [markdown]
# ## Cost
#
# A SaCo is $K + 1$ forwards for an image. The plain loop takes one image and one group at a time, as Algorithm 1 is written.
# The engine is given all images and groups at once, in float32 as this book does it, and in the fastest format that the
# processor computes natively. *Bare forwards* are the same number of forwards in full batches and nothing else: what a
# processor takes for these is most of what can be had in that format. All run in turn, on the same threads; the weights do not matter for the time.

# %% tags=["hide-input"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
native = engine.native_precision(device)
timed = datasets.load("cifar10", "test").take(slice(timed_images))
x = timed.model_inputs().to(device)
pixels = timed.features().to(device)
torch.manual_seed(seed)
built = {
    "ResNet-9": models.build("resnet9", width=width),
    "Vision Transformer": models.build("vit", **changed(VIT, training).model_options),
}


@torch.inference_mode()
def in_a_loop(network, target, attribution):
    """Algorithm 1, one image and one group at a time."""
    coefficients = []
    for image, label, scores_of in zip(x, target.tolist(), attribution, strict=True):
        order = scores_of.argsort(descending=True)
        mean = image.mean(dim=(1, 2), keepdim=True)
        whole = network(image[None]).softmax(1)[0, label]
        salience, drop = [], []
        for i in range(K):
            group = order[i * len(order) // K : (i + 1) * len(order) // K]
            removed = torch.zeros(len(order), dtype=torch.bool, device=device)
            removed[group] = True
            masked = torch.where(removed.view(image.shape[1:]), mean, image)
            salience.append(scores_of[group].sum().item())
            drop.append((whole - network(masked[None]).softmax(1)[0, label]).item())
        signed = total = 0.0
        for i in range(K - 1):
            for j in range(i + 1, K):
                weight = salience[i] - salience[j]
                signed += weight if drop[i] >= drop[j] else -weight
                total += abs(weight)
        coefficients.append(signed / total)
    return coefficients


short = str(native).removeprefix("torch.")


def timed_on(network):
    """Seconds of everything, in turn, and the differences between the loop's coefficients and the engine's."""
    with torch.inference_mode():
        target = network(x).argmax(1)
    attribution = explain("saliency", network, x, target, pixels)
    count = timed_images * (K + 1)
    work = {"plain loop, float32": lambda: in_a_loop(network, target, attribution)}
    for name, precision in {"float32": torch.float32, short: native}.items():
        score = engine.scorer(network, x, target, segments=pixels, reference=references.mean, precision=precision)
        runner = engine.prepare(network, x, precision)
        full = x.to(precision).contiguous(memory_format=torch.channels_last)
        work[f"engine, {name}"] = partial(saco, score, attribution, K)
        work[f"bare forwards, {name}"] = partial(cost.forwards, runner, full, count)
    difference = torch.tensor(work["plain loop, float32"]()) - work["engine, float32"]().cpu()  # and a warm-up
    for name in (f"engine, {short}", f"bare forwards, {short}"):
        work[name]()
    return cost.in_turn(work, repeats, warm=False), difference.abs()


rows, agree = [], {}
for name, network in built.items():
    taken, agree[name] = timed_on(network.to(device).eval())
    rows += [(name, *entry) for entry in taken]
times = pd.DataFrame(rows, columns=["network", "what", "repeat", "seconds"])
run.save(times, "times")
median = times.groupby(["network", "what"], sort=False)["seconds"].median().unstack(0)
paired = times.pivot(index=["network", "repeat"], columns="what", values="seconds")
speedup = paired.rdiv(paired["plain loop, float32"], axis=0).groupby("network").median().T
both = {"milliseconds per image": 1000 * median / timed_images, "times as fast as the loop": speedup.loc[median.index]}
tidy = median.T.melt(var_name="what", value_name="seconds", ignore_index=False).reset_index()
run.save(tidy.assign(speedup=[speedup.loc[of] for of in zip(tidy["what"], tidy["network"], strict=True)]), "cost")
tables.styled(pd.concat(both, axis=1).map("{:.2f}".format).rename_axis(index=None, columns=[None, None]))

# %% tags=["hide-input"]
fastest = f"engine, {short}"
lines = []
for name in built:
    like, over = speedup.loc["engine, float32", name], speedup.loc[fastest, name]
    bound = speedup.loc[f"bare forwards, {short}", name]
    faster = f"{like:.1f} times as fast as the loop in the same format, float32"
    lines.append(
        f"**{name}**: the engine is {faster}"
        + (f", {over:.1f} times in {short}" if short != "float32" else "")
        + f", where it takes {bound / over:.2f} times as long as bare forwards (a number below 1 is the noise of the clock)."
    )
Markdown(
    " ".join(lines)
    + " The loop and the engine compute the same coefficients but for rounding, which can turn the sign of two losses that are nearly "
    "equal: "
    + "; ".join(
        f"on {name} {far} of {len(of)} differ{'s' * (far == 1)} by more than 0.001, on a scale from −1 to 1 (the median "
        f"difference is {float(of.median()):.4f}, the largest {float(of.max()):.2f})"
        for name, of in agree.items()
        for far in [int((of > 0.001).sum())]
    )
    + "."
)

# %% tags=["hide-input", "headline"]
told, settings, source, _ = headlines.best(run, "scores", scores)
scaled, _, source_of_scale, _ = headlines.best(run, "scale", scale)
rounded, _, source_of_rounding, _ = headlines.best(run, "precision", precision)
ends_of = [f"SaCo, K = {settings['numbers_of_groups'][end]}" for end in (0, -1)]
change_of = {name: stats.paired(told, *({"metric": m} for m in ends_of), explainer=name) for name in explainers}
down, up = (
    sum(bool(of) for of in ends) for ends in zip(*((e.low > 0, e.high < 0) for e in change_of.values()), strict=True)
)
mean_fall = stats.estimate(
    told,
    cells=[{"explainer": name, "metric": metric} for metric in ends_of for name in explainers],
    contrasts=torch.tensor([[1.0] * len(explainers) + [-1.0] * len(explainers)]) / len(explainers),
)
by_weight = scaled.groupby(["weight", "change"])["largest"].max().groupby("weight").max()
beyond = int(((rounded["low"] > 0) | (rounded["high"] < 0)).sum())
from_runs = {"groups": source, "weights": source_of_scale, "precision": source_of_rounding}
same_run = len(set(from_runs.values())) == 1


def whose(what):
    """Which run says it, where not all are of one."""
    return "" if same_run else f" ({from_runs[what]})"


Markdown(
    f"**Groups: {'yes' if down + up else 'not clearly'}.** From {settings['numbers_of_groups'][0]} to {settings['numbers_of_groups'][-1]} "
    f"groups the SaCo of {down} of {len(explainers)} explainers clearly falls and of {up} clearly rises, "
    + tables.by_sign(mean_fall, "a mean fall of {}", "a mean rise of {}", "a mean change of {}", tables.number)
    + whose("groups")
    + f". **Weights: {'only ratios' if by_weight['difference'] < 1e-6 < by_weight['ratio'] else 'yes' if by_weight.max() > 1e-6 else 'no'}.** "
    "Scores that are multiplied or shifted change a coefficient by up to "
    f"{by_weight['ratio']:.2f} where pairs count with ratios, and by "
    + ("rounding alone" if by_weight["difference"] < 1e-6 else f"up to {by_weight['difference']:.2f}")
    + " where they count with differences"
    + whose("weights")
    + f". **Precision: {'some' if rounded['changed'].mean() > 0 else 'no'} coefficients, "
    f"{'the mean of ' + str(beyond) if beyond else 'no mean'}.** "
    f"bfloat16 changes {rounded['changed'].mean():.0%} of the coefficients, and the mean of {beyond or 'none'} of {len(rounded)} explainers "
    "beyond its noise" + whose("precision") + (f" ({source})." if same_run else ".")
)

# %% tags=["hide-input"]
run.finish()
