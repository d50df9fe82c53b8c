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
# # Do explanations have a size, beyond digits?
#
# A digit on black has an explanation with an end: [its pixels, and nothing else](explanation-size). Does a vehicle in a photograph?
# A sentence? The movement of an arm? This page asks for sizes in six kinds of data, with the rankings of real explainers and with
# the order that TRACE finds by search; image by image, class by class and network by network; and it asks what a size is good
# for: is a larger one the sign of a worse explanation, and is it the size at which deletion curves flatten?
#
# Where there is no size, that is an answer, too. A *control* tells two reasons apart: the method could not have seen one, or
# there is none in this ranking. Three of the six kinds of data have an explanation that is known by construction.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, study or paper: see notebooks/profiles.yml
boxes = [20]  # sides of the vehicles in their images of 32 x 32 pixels
width = 8  # of the network that sorts vehicles
epochs = 3  # of its training
tuning_epochs = 1  # of its fine-tuning on random masks
train_limit = None  # training images of vehicles; None: all
vehicles = 120  # images of vehicles
photographs = 24  # of CIFAR-10, for each network
training_seeds = [0, 1, 2]  # of the networks of the photographs
texts = 160  # sentences
phrase = 12  # tokens that are left of a sentence where the explanation is known
series = 60  # time series
span = 30  # steps that are left of a series where the explanation is known
betas = [0.05, 0.1, 0.15, 0.2]  # caps on the removed share, all with the first alpha; of photographs half of them
alphas = [0.5, 0.3, 1.0]  # the others with the middle cap
step = 0.03125  # between the sizes of a curve: one token of 32
longest = 0.6  # the largest size
image_draws = 1  # random subsets per image, setting and size
draws = 4  # of sentences and series
searched = ["photographs"]  # the data for which TRACE searches an order
search_steps = 50  # of its annealing
smooth_samples = 8  # noisy copies for SG-SQ
integration_steps = 16  # of Integrated Gradients
levels = [0.2, 0.5]  # of the true order, the share that is shuffled
ones = 6  # images of each set and network that are read by themselves
one_by = ["truth", "Grad-CAM"]  # their rankings
one_draws = 30  # random subsets of one image, for each setting and size
class_least = 30  # inputs of a class that is read by itself
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0  # of places, searches and random subsets

# %% tags=["hide-input"]
import dataclasses
from typing import NamedTuple

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import draws as counter
from faithlab import masks, segments, stats
from faithlab.explainers.degrade import degrade
from faithlab.metrics import METRICS, evaluate, fidelity
from faithlab.metrics.size import Setting, curves, explanation_size, read, readings, sweep
from faithlab.readouts import hit, probability
from faithlab.scores import Scores
from faithlab.study import figures, networks, tables
from faithlab.study.results import Run
from faithlab.subject import Subject
from faithlab.trials import optimum, subjects
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe

figures.theme()
run = Run("f-fidelity/sizes-beyond-digits", globals())
sizes = torch.arange(1, round(longest / step) + 1, dtype=torch.float64) * step


def settings_to(largest):
    """Settings whose caps end at what a network is used to."""
    caps = [beta * largest / max(betas) for beta in betas]
    return [Setting(alphas[0], cap) for cap in caps] + [Setting(alpha, caps[len(caps) // 2]) for alpha in alphas[1:]]


# %% [markdown]
# ## Six kinds of data
#
# - **Vehicles**: each pasted at a random place of an animal's photograph, as [there](../few-class-fidelity/natural-images). Nothing
#   outside the square can tell the class, so the square is the explanation. Its own pixels need not matter equally.
# - **Photographs**: CIFAR-10 and the three pairs of ResNet-9 that ship with the study. Nobody knows the truth.
# - **Sentences**: film reviews of 32 tokens and the LSTM of [](text). Nobody knows the truth.
# - **Phrases**: the same sentences, all tokens blank but a run of a few, which are the explanation. This is the digit on black, for texts.
# - **Series**: a smart watch's 100 steps and the LSTM of [](time-series). Nobody knows the truth.
# - **Spans**: the same series, all steps blank but one run of them, which is the explanation.
#
# A size is a question about one network. So, as with digits, the network that is fine-tuned on random masks is explained, searched and
# asked. It is used to as much as the largest cap removes; for phrases and spans, to that and the blanks. Only inputs that it
# recognises are asked about, so that there is something to lose.


# %% tags=["hide-input"]
class Case(NamedTuple):
    """Inputs that are asked about, in which features explain them (None: nobody knows), and how they are asked."""

    subject: Subject
    known: torch.Tensor | None  # [B, F] bool
    settings: list[Setting]
    draws: int
    groups: torch.Tensor  # a segment map: what TRACE moves as one
    classes: tuple[str, ...]
    explainers: dict[str, subjects.Chosen]


def case(name, tuned, most, data, places=None, known=None, left=None, largest=None, groups=None, **about):
    """Inputs of a data set that the fine-tuned network recognises, at most so many; `left`: the rest is blanked."""
    places = torch.arange(len(data)) if places is None else places
    subject = subjects.subject(tuned, places, tuned=tuned, data=data, precision=precision, name=about.pop("network"))
    features = segments.count(subject.segments)
    if left:
        start = counter.uniform(seed + 1, places, torch.tensor([0]), 1)[:, 0] * (features + 1 - left)
        known = (torch.arange(features) >= start.long()) & (torch.arange(features) < start.long() + left)
        stays = known.view(*known.shape, *[1] * (subject.x.ndim - 2)).to(subject.x.device)
        subject = dataclasses.replace(subject, x=subject.x.where(stays, subject.references["zero"](subject.x)))
    answers = subject.score(hit)(torch.ones(len(places), 1, features, dtype=torch.bool, device=subject.x.device))[:, 0]
    at = subjects.evenly(answers.bool().nonzero().flatten(), most)
    chosen = dataclasses.replace(subject.part(at), dataset=name)
    known = None if known is None else known[at.cpu()]
    about |= {"groups": chosen.segments if groups is None else groups, "classes": data.classes}
    return Case(chosen, known, settings_to(largest or max(betas)), **about)


ig = {"steps": integration_steps}
of_images = {
    "SG-SQ": ("smoothgrad-squared", {"samples": smooth_samples, "seed": seed}),
    "Integrated Gradients": ("integrated-gradients", ig),
    "Grad-CAM": "gradcam",
}
of_series = {name: of_images[name] for name in ("SG-SQ", "Integrated Gradients")}
of_texts = {
    "Integrated Gradients": ("integrated-gradients-embedding", ig),
    "Input × Gradient": "input-x-gradient-embedding",
}
pictures = {"draws": image_draws, "explainers": of_images, "groups": segments.patches(32, 32, 8), "network": "ResNet-9"}
cases = []
for box in boxes:
    about = {"data": "cifar10-vehicles", "data_options": {"size": box, "seed": 0}, "decay": 1e-5, "limit": train_limit}
    shape = {"model": "resnet9", "model_options": {"width": width, "classes": 3}}
    original = Recipe(**about, **shape, epochs=epochs, rate=0.01, batch=64, precision=precision)
    tuned = dataclasses.replace(original, start=original, epochs=tuning_epochs, rate=0.004, mask_share=max(betas))
    test = datasets.load(original.data, "test", **original.data_options)
    places = torch.arange(min(2 * vehicles, len(test)))
    square = test.masks[places].flatten(1)
    cases.append(case(f"vehicles of {square.double().mean():.0%}", tuned, vehicles, test, places, square, **pictures))
test = datasets.load(networks.RESNET9.data, "test")
for training_seed in training_seeds:
    tuned = networks.pair(networks.RESNET9, training_seed)["fine-tuned"]
    some = torch.arange(2 * photographs), None, None, tuned.mask_share
    cases.append(case("photographs", tuned, photographs, test, *some, **pictures))

reviews = networks.changed(networks.LSTM, {"limit": train_limit})
watch = {"data": "basic-motions", "model_options": {"classes": 4, "channels": 6}}
sentences = datasets.load(reviews.data, "test", **reviews.data_options)
motions = datasets.load(watch["data"], "test", unit="step")
full = sentences.present().all(1).nonzero().flatten()
read_so = {"most": texts, "data": sentences, "places": full, "explainers": of_texts}
moved_so = {"most": series, "data": motions, "explainers": of_series, "groups": motions.features() // 5}
for original, of, (plain, left) in (
    (reviews, read_so, ("sentences", {"phrases": phrase})),
    (networks.changed(networks.BILSTM, watch), moved_so, ("series", {"spans": span})),
):
    features = segments.count(of["data"].features())
    for name, stays in ({plain: None} | left).items():
        share = max(betas) + (1 - stays / features if stays else 0)
        tuned = networks.changed(original, networks.TUNED[original.model] | {"start": original, "mask_share": share})
        cases.append(case(name, tuned, left=stays, draws=draws, network="LSTM", **of))
seen = {c.subject.dataset: c for c in reversed(cases)}  # of photographs the first network
names = list(dict.fromkeys(c.subject.dataset for c in cases))
rows = [
    {
        "data": name,
        "network": c.subject.network,
        "inputs": len(c.subject.x),
        "features": segments.count(c.subject.segments),
        "that explain, by construction": "unknown" if c.known is None else f"{c.known.double().mean():.0%}",
        "caps": ", ".join(f"{s.cap:g}" for s in c.settings[: len(betas)]),
    }
    for name, c in ((name, seen[name]) for name in names)
]
tables.prose(pd.DataFrame(rows))

# %% [markdown]
# ## The rankings
#
# *Truth* is the known explanation, in random order within and without. TRACE searches the order under which the answer falls
# fastest from one end and lasts longest from the other; it moves squares of 8 x 8 pixels, five time steps, or single tokens, and
# within a square the order is random. *Random* knows nothing. The others are explainers, signed: what speaks for the class comes first.


# %% tags=["hide-input"]
def ranked(case):
    """Attributions by name: known, searched, those of explainers, and no one's."""
    subject, features = case.subject, segments.count(case.subject.segments)
    anyhow = counter.uniform(seed, subject.images, torch.tensor([0]), features)[:, 0].to(subject.x.device)
    found = {} if case.known is None else {"truth": anyhow / 2 + case.known.to(anyhow)}
    if subject.dataset.split(" of ")[0] in searched:
        wanted = {"LeRF - MoRF": METRICS["LeRF - MoRF"]}
        coarse = dataclasses.replace(subject, segments=case.groups)
        heat = optimum.orders(wanted, coarse, steps=search_steps, seed=seed)["TRACE-p"]
        group = torch.empty(features, dtype=torch.int64)
        group[subject.segments.flatten()] = case.groups.flatten()
        found["TRACE"] = anyhow / 2 - masks.place(masks.order(heat))[:, group]
    return found | subjects.attributions(subject, case.explainers) | {"random": anyhow}


def asked_with(case):
    """FFid+ with each of its settings."""
    return sweep(case.settings, sizes, draws=case.draws, seed=seed)


def curves_of(case, **labels):
    """FFid+ of each input [inputs, settings, sizes]."""
    of = {"dataset": case.subject.dataset, "training_seed": case.subject.training_seed, "variant": None} | labels
    return curves(scores, case.settings, **of)


ends = {
    way: METRICS["Fid+"].given(
        ask=lambda *asked, way=way, **options: fidelity.remaining(*asked, direction=way, **options),
        readout=probability,
        sizes=[k / 16 for k in range(17)],
        direction=way,
    )
    for way in ("MoRF", "LeRF")
}
rankings = [ranked(c) for c in cases]
parts = []
for c, attributions in zip(cases, rankings, strict=True):
    parts.append(evaluate(asked_with(c) | ends, c.subject, attributions))
    for level in levels if c.known is not None else ():
        shuffled = {"truth": degrade(attributions["truth"], level, seed=seed, images=c.subject.images)}
        parts.append(evaluate(asked_with(c), c.subject, shuffled, variant="shuffled", level=level))
    for name, attribution in attributions.items() if c.known is not None else ():
        # Of the features ranked first, as many as the explanation has, which are its own?
        place, inside = masks.place(masks.order(attribution)).cpu(), c.known
        found = ((place < inside.sum(1, keepdim=True)) & inside).sum(1) / inside.sum(1)
        about = c.subject.labels | {"explainer": name, "metric": "overlap"}
        parts.append(Scores.of(found, images=c.subject.images, **about))
scores = Scores.concat(parts)
run.save(scores, "scores")

# %% [markdown]
# ## Is there a size, and which?
#
# A size is named where a gain curve with a sharp knee explains the curves of all caps better than every smooth decay, and better than
# a random ranking, each tested; [](explanation-size) says how. What is refused stands at the place of its best knee all the same, as
# an open mark without an interval: no test supports it.


# %% tags=["hide-input"]
def read_there(case, name, rows=slice(None), **labels):
    """The size of a ranking of a case, of some of its inputs, or why there is none."""
    curves = curves_of(case, explainer=name, **labels)[rows]
    return read(curves, sizes, case.settings, segments.count(case.subject.segments), seed=seed)


def why(of):
    """A refusal in a word."""
    reasons = {"random": "random", "smooth": "smooth", "may be": "beyond the sweep", "gain curve": "misfit"}
    return next((word for part, word in reasons.items() if part in of.refusal), "nothing is lost") if of.refusal else ""


found = {(i, name): read_there(c, name) for i, c in enumerate(cases) for name in rankings[i]}
table = []
for (i, name), of in found.items():
    labels, known = cases[i].subject.labels, cases[i].known
    row = {"data": labels["dataset"], "training_seed": labels["training_seed"], "ranking": name}
    row |= {"truth": float("nan"), "overlap": float("nan")}
    if known is not None:
        row |= {"truth": float(known.double().mean())}
        row |= {"overlap": float(stats.estimate(scores, metric="overlap", dataset=labels["dataset"], explainer=name))}
    row |= {"size": of.fraction, "low": of.low, "high": of.high, "best_knee": sum(of.block) / 2}
    row |= {"p_smooth": of.smooth, "p_flat": of.flat, "p_fit": of.misfit, "largest_loss": float(of.curves.max())}
    table.append(row | {"inputs": of.rows, "refusal": of.refusal, "why": why(of)})
table = pd.DataFrame(table)
run.save(table.drop(columns="why"), "sizes")
real = table[~table["ranking"].isin(["truth", "random"])]
true = table[table["ranking"] == "truth"]


def listed(rows, what):
    """Rows in words, for a sentence."""
    return "; ".join(what(row) for _, row in rows.iterrows())


def in_words(row, of="ranking"):
    """A size with its interval."""
    return f"{row['data']}, {row[of]}: {row['size']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


sized, sure = real[real["size"].notna()], true[true["size"].notna()]
known_to = sure["truth"].round(2)  # as the reading, which knows hundredths
held = int((sure["low"].le(known_to) & sure["high"].ge(known_to)).sum())
wide = int((sure["high"] - sure["low"]).gt(sure["truth"]).sum())
text = f"Of {len(real)} rankings by explainers and by search **{len(sized)}** "
text += f"{'has' if len(sized) == 1 else 'have'} a size" + (f" ({listed(sized, in_words)})" if len(sized) else "")
text += f"; up to {0.05 * len(real):.1f} would by chance, if all were smooth decays. "
text += f"The known explanation has one in **{len(sure)} of {len(true)}** kinds of data"
if len(sure):
    text += f" ({listed(sure, lambda r: in_words(r) + f', true {r.truth:.2f}')}); the interval holds the true size in {held}"
    text += f", and is wider than that size in {wide}"
if 2 * len(sized) > len(real):
    text += ". Most rankings have an end."
elif len(sure):
    text += ". So a size can be seen in such data where a ranking has one; what most rankings lack is an end."
else:
    text += ". Not even this one is named: so many inputs say nothing about the others."
Markdown(text)

# %% [markdown]
# Each panel is a kind of data, each row a ranking. The photographs' networks stand one below the other.


# %% tags=["hide-input"]
def panels(draw, label):
    """A panel for each kind of data with a row for each ranking; `draw(axes, row, height)` draws one."""
    figure, grid = plt.subplots(-(-len(names) // 2), 2, figsize=(7.4, 2.1 * -(-len(names) // 2)), sharex=True)
    for axes, name in zip(grid.flat, names, strict=False):
        of = table[table["data"] == name]
        order = list(dict.fromkeys(of["ranking"]))
        for _, row in of.iterrows():
            nets = sorted(of["training_seed"].unique())
            shift = 0.25 * (nets.index(row["training_seed"]) - (len(nets) - 1) / 2)
            draw(axes, row, order.index(row["ranking"]) + shift)
        axes.set_yticks(range(len(order)), order, fontsize="small")
        axes.set(
            title=name, ylim=(len(order) - 0.5, -0.5), xlim=(0, 1 if label.startswith("share") else longest + 0.03)
        )
        if of["truth"].notna().any():
            axes.axvline(of["truth"].iloc[0], color=figures.COLOURS["truth"], linestyle="--", linewidth=1.2)
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    figure.supxlabel(label, fontsize="small")
    return figure


MARKS = {"smooth": ("o", "a smooth decay does as well"), "random": ("X", "a random ranking does as well")}


def draw_size(axes, row, at):
    """A size with its interval, or where the best knee stands that is refused."""
    if row["why"]:
        look = {"markerfacecolor": "none", "color": "0.5", "markersize": 6, "linestyle": ""}
        axes.plot(row["best_knee"], at, MARKS.get(row["why"], ("^", ""))[0], **look)
        return
    ends = [[max(0, row["size"] - row["low"])], [max(0, row["high"] - row["size"])]]
    axes.errorbar(row["size"], at, xerr=ends, fmt="D", color="C0", capsize=3, markersize=7)


# %% mystnb={"figure": {"caption": "Sizes that are named (diamonds, with 95 % intervals over the inputs), and where the best knee stands that is refused, because a smooth decay (circles) or a random ranking (outlined crosses) explains the curves as well, or for another reason (triangles, where there are any). Dashed: the known size.", "name": "ff-beyond-sizes"}, "image": {"alt": "Six panels, one for each kind of data. Where the explanation is known, its own ranking has a size near the dashed line. Nearly all other rankings are open marks: they have none."}} tags=["hide-input", "answer"]
figure = panels(draw_size, "explanation size (of the features)")
other_reason = not {*table["why"]} <= {"", *MARKS}
handles = [plt.Line2D([], [], marker="D", color="C0", linestyle="", label="named")]
handles += [
    plt.Line2D([], [], marker=m, color="0.5", markerfacecolor="none", linestyle="", label=f"refused: {says}")
    for m, says in [*MARKS.values(), *([("^", "another reason")] if other_reason else [])]
]
figure.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small")
figures.show(figure)

# %% [markdown]
# The curves behind it: the known explanation where there is one, else the ranking that costs the network most at any size.

# %% mystnb={"figure": {"caption": "FFid+ over size for a sweep of caps. Points: measured, with two standard errors over the inputs; lines: the best fit. Triangles: the knee that each cap makes. Vertical line and band: the size, where one is named.", "name": "ff-beyond-curves"}, "image": {"alt": "Six panels of curves of FFid+ over size. Those of a known explanation stay high up to its size and then fall; those of an explainer are highest at the first sizes and fall from there."}} tags=["hide-input"]
figure, grid = plt.subplots(
    -(-len(names) // 2), 2, figsize=(7.4, 2.5 * -(-len(names) // 2)), sharex=True, squeeze=False
)
for axes, name in zip(grid.flat, names, strict=False):
    of = table[(table["data"] == name) & (table["ranking"] != "random")]
    at = of["largest_loss"].idxmax() if of["truth"].isna().all() else of.index[0]
    known = of["truth"][at]
    figures.plateau(axes, list(found.values())[at], truth=known if known == known else None)
    size = list(found.values())[at]
    axes.set_title(f"{name}, {of['ranking'][at]}:\n{'no size' if size.refusal else size}", fontsize="small")
    axes.tick_params(labelsize="small")
    axes.legend(fontsize="xx-small", handlelength=1, labelspacing=0.2)
for axes in grid.flat[len(names) :]:
    axes.set_axis_off()
figure.supxlabel("explanation size (share of the features)", fontsize="small")
figure.supylabel("FFid+", fontsize="small")
figures.show(figure)

# %% tags=["hide-input"]
numbers = {"truth": "true size", "overlap": "of the truth", "p_smooth": "p (smooth)", "p_flat": "p (random)"}
numbers |= {"p_fit": "p (fit)", "largest_loss": "largest loss"}
shown = table[list(numbers)].rename(columns=numbers).map("{:.2f}".format).replace("nan", "–")
read_as = ["no size" if of.refusal else str(of) for of in found.values()]
for place, (column, values) in enumerate(
    {"data": table["data"], "seed": table["training_seed"], "ranking": table["ranking"], "read": read_as}.items()
):
    shown.insert(place, column, values)
tables.styled(shown).hide(axis="index")

# %% [markdown]
# *p (smooth)* and *p (random)* must be small for a size to be named, *p (fit)* must not. *Of the truth* is the share of the features ranked
# first, as many as the explanation has, that are its own. *Largest loss* is the highest point of all curves: the share of the inputs
# whose class is lost. It tells a good ranking with no end from one that finds nothing.

# %% tags=["hide-input"]
reasons = real["why"].value_counts()
stronger = real[real["data"].isin(true["data"])].merge(true, on="data", suffixes=("", "_true"))
beats = int((stronger["largest_loss"] > stronger["largest_loss_true"]).sum())
lines = [f"- **Why refused.** {', '.join(f'{word}: {count}' for word, count in reasons.items() if word) or 'none is'}."]
if len(stronger):
    lines.append(
        f"- **Where the truth is known**, {beats} of {len(stronger)} rankings by explainers and search cost the network more "
        "at their best size than the known explanation in random order does. "
        + (
            "They put the few features first that matter most, so that their curves fall as soon as the cap is reached: the "
            "end of what matters is hidden in a decay."
            if 2 * beats > len(stronger)
            else "So most of them do not even find what matters most."
        )
    )
Markdown("\n".join(lines))

# %% [markdown]
# [Theorem 1](theorem) speaks of features of equal influence, in no order among themselves. An explainer that orders the
# explanation's *inside* bends the gain curve there: the better it ranks, the less of an end is left. And an explanation of a few words in
# a sentence of 32 ends within the first steps of the sweep, one word being 3 %. Where a set's curves rise in teeth, whole tokens
# are being rounded.
#
# ## One image, one class, one network
#
# How are sizes spread? Each input is read by itself, from the probability that its network loses, with an interval over random
# subsets; then the inputs of a class together; then those of each network. Of readings without any end one in twenty would name a size by
# chance.


# %% tags=["hide-input"]
def alone(case, attribution, at):
    """The size of one input's explanation."""
    score = case.subject.part(torch.tensor([at])).score(probability, network="fine-tuned")
    return explanation_size(
        score, attribution[[at]], sizes[1::2], case.settings[: len(betas)], draws=one_draws, seed=seed
    )


pictured = [(i, c) for i, c in enumerate(cases) if c.subject.x.ndim == 4]
each = []
for (i, c), name in ((of, name) for of in pictured for name in one_by if name in rankings[of[0]]):
    for at in range(min(ones, len(c.subject.x))):
        of = alone(c, rankings[i][name], at)
        row = {"data": c.subject.dataset, "training_seed": c.subject.training_seed, "ranking": name}
        row |= {"image": int(c.subject.images[at]), "class": c.classes[int(c.subject.target[at])]}
        each.append(row | {"size": of.fraction, "low": of.low, "high": of.high, "refusal": of.refusal, "why": why(of)})
each = pd.DataFrame(each)
run.save(each.drop(columns="why"), "each")
groups = each.groupby(["data", "training_seed", "ranking"], sort=False)

# %% mystnb={"figure": {"caption": "Images read one by one, a row for each kind of data, network and ranking: a point for each image that has a size, and how many have one. Dashed: the known size of the vehicles.", "name": "ff-beyond-each"}, "image": {"alt": "Rows of points along the explanation size, one row for each data set, network and ranking, with the number of images that have a size at the right: few of most rows, and those spread widely."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.2, 0.9 + 0.38 * groups.ngroups))
for at, (_, part) in enumerate(groups):
    spread = 0.3 * (torch.arange(len(part)) % 5 / 4 - 0.5).numpy()
    axes.plot(part["size"], at + spread, "o", color="C0", alpha=0.6, markersize=5)
    axes.annotate(
        f"{part['size'].notna().sum()} of {len(part)}",
        (1.01, at),
        xycoords=("axes fraction", "data"),
        va="center",
        fontsize="small",
    )
axes.set_yticks(range(groups.ngroups), [f"{d}, network {s}: {r}" for d, s, r in groups.groups], fontsize="small")
axes.set(
    xlabel="size of one image's explanation (share of the pixels)", xlim=(0, longest), ylim=(groups.ngroups - 0.5, -0.5)
)
if "vehicles" in names[0]:
    figures.mark(axes, true["truth"].iloc[0], "truth", height=0.12)
figures.show(figure)

# %% tags=["hide-input"]
lines = []
for (data, network, name), part in groups:
    rate = torch.tensor([part["size"].notna().mean()])
    low, high = (float(end) for end in stats.exact(rate, torch.tensor(len(part))))
    line = f"- **{data}, network {network}, {name}**: {float(rate):.0%} of {len(part)} images have a size [{low:.0%}, {high:.0%}]"
    middle = part["size"].dropna()
    if len(middle) == 1:
        line += f", of {middle.iloc[0]:.2f}"
    elif len(middle):
        line += f"; their median is {middle.median():.2f}, from {middle.min():.2f} to {middle.max():.2f}"
    lines.append(line + ".")
Markdown("\n".join(lines))

# %% [markdown]
# By class: the curves of all inputs of a class together, where there are enough.

# %% tags=["hide-input"]
classes = []
for c, name in ((c, name) for c, own in zip(cases, rankings, strict=True) for name in own if name != "random"):
    for label in c.subject.target.unique().tolist():
        rows = (c.subject.target == label).cpu()
        if rows.sum() >= class_least:
            of = read_there(c, name, rows)
            row = {"data": c.subject.dataset, "training_seed": c.subject.training_seed, "ranking": name}
            row |= {"class": c.classes[label], "inputs": of.rows}
            classes.append(row | {"size": of.fraction, "low": of.low, "high": of.high, "refusal": of.refusal})
classes = pd.DataFrame(classes)
run.save(classes, "classes")
sized_so = zip(classes["size"], classes["low"], classes["high"], strict=True)
classes["text"] = [f"{size:.2f} [{low:.2f}, {high:.2f}]" if size == size else "no size" for size, low, high in sized_so]
wide = classes.rename(columns={"training_seed": "seed"})
wide = wide.pivot(index=["data", "seed", "class"], columns="ranking", values="text")
tables.styled(wide[list(dict.fromkeys(classes["ranking"]))].fillna("not asked"))

# %% tags=["hide-input"]
by_network = real[real["data"] == "photographs"].groupby("ranking", sort=False)
several = {name: part["size"].notna().sum() for name, part in by_network}
same = [name for name, part in by_network if several[name] in (0, len(part))]
text = f"**Across the {len(training_seeds)} network{'s' * (len(training_seeds) > 1)} of the photographs** "
text += ", ".join(f"{name} has a size on {count}" for name, count in several.items())
text += f"; that there is one, or none, is the same on all of them for {len(same)} of {len(several)} rankings."
one_class = int(classes["size"].notna().sum())
text += f" **Of {len(classes)} readings of single classes** {one_class} name{'s' * (one_class == 1)} a size."
if 4 * one_class < len(classes):
    text += " As far as this sweep can see, the inputs of a class are no more alike than all of them."
Markdown(text)

# %% [markdown]
# ## Does a larger size mean a worse explanation?
#
# The known explanation is made worse by a known amount: a share of the features have their places shuffled. If a size said
# how good a ranking is, it would move.


# %% tags=["hide-input"]
def knee_of(case):
    """Samples of all settings -> where their best knee stands, be it named or not."""
    F = segments.count(case.subject.segments)
    return lambda *of: readings(torch.stack([s.values for s in of], 1), of[0].weights, sizes, case.settings, F)


def moved(case, level):
    """How far the best knee moves when a share of the known explanation is shuffled."""
    J, knee, both = len(case.settings), knee_of(case), ({"variant": "shuffled", "level": level}, {"variant": None})
    over = tuple({"metric": s.metric, **of} for of in both for s in case.settings)
    difference = stats.Statistic(lambda *of: knee(*of[:J]) - knee(*of[J:]), over, "knee moved", steps=True)
    return stats.estimate(scores, difference, dataset=case.subject.dataset, explainer="truth")


def shown_as(value, low, high, sign=""):
    """A number with its interval, or that there is none."""
    return f"{value:{sign}.2f} [{low:{sign}.2f}, {high:{sign}.2f}]".replace("-", "−") if value == value else "no size"


worse = []
for c in (c for c in cases if c.known is not None):
    for level in [None, *levels]:
        of = read_there(c, "truth", **({"variant": "shuffled", "level": level} if level else {}))
        row = {"data": c.subject.dataset, "shuffled": level or 0.0, "size": of.fraction, "low": of.low, "high": of.high}
        by = map(float, moved(c, level).pooled) if level else (0.0, 0.0, 0.0)
        row |= dict(zip(("moved", "moved_low", "moved_high"), by, strict=True))
        worse.append(row | {"refusal": of.refusal})
worse = pd.DataFrame(worse)
run.save(worse, "shuffled")
cells = worse[["data"]].assign(shuffled=worse["shuffled"].map("{:.0%}".format))
cells["size"] = [shown_as(*of) for of in worse[["size", "low", "high"]].to_numpy()]
by = worse[["moved", "moved_low", "moved_high"]].to_numpy()
cells["the best knee moves by"] = [
    shown_as(*of, "+") if share else "" for share, of in zip(worse["shuffled"], by, strict=True)
]
tables.styled(cells).hide(axis="index")

# %% tags=["hide-input"]
later = worse[worse["shuffled"] > 0]
up, down = int((later["moved_low"] > 0).sum()), int((later["moved_high"] < 0).sum())
text = f"In {up} of {len(later)} comparisons the best knee of the worse ranking is surely at a larger size, in {down} "
text += f"surely at a smaller one. Of the shuffled rankings {later['size'].notna().sum()} of {len(later)} have a size, "
text += f"of the unshuffled ones {len(sure)} of {len(true)}. "
if up > len(later) / 2:
    text += "**So here a larger size does mean a worse ranking** of one and the same explanation."
elif down > len(later) / 2:
    text += "**So a larger size is no sign of a worse ranking**: with the shuffling it gets smaller."
else:
    text += "**So a size does not say which ranking is worse**: what shuffling takes away first is its certainty."
Markdown(text)

# %% [markdown]
# Between real explainers the question is whether those that find less of the truth have larger sizes. Only named sizes can be
# compared.

# %% tags=["hide-input"]
comparable = sized[sized["overlap"].notna()]
pairs = comparable.merge(comparable, on="data", suffixes=("", "_other")).query("overlap < overlap_other")
text = "**Between explainers** "
if len(pairs):
    agree = int((pairs["size"] > pairs["size_other"]).sum())
    text += f"{len(pairs)} pair{'s have' if len(pairs) > 1 else ' has'} a size each, on data whose truth is known; in {agree} "
    text += "of them the one that finds less of the truth has the larger size. That is too few for an interval. "
else:
    text += "it cannot be said: on data whose truth is known no two of them have a size. "
if len(of_true := comparable.merge(sure, on="data", suffixes=("", "_true"))):
    less = int((of_true["high"] < of_true["truth"]).sum())
    text += f"Of their {len(of_true)} named size{'s' * (len(of_true) > 1)} {less} {'is' if less == 1 else 'are'} surely below "
    text += "the true one: what is read is a ranking's own first block, not all that explains. "
one_sizes = each[each["data"].isin(true["data"]) & (each["ranking"] != "truth") & each["size"].notna()]
text += f"**Between images** whose truth is known {len(one_sizes)} "
text += "map of an explainer has a size" if len(one_sizes) == 1 else "maps of explainers have a size"
said = []
for (data, network, name), part in one_sizes.groupby(["data", "training_seed", "ranking"], sort=False):
    if len(part) >= 10:
        about = {"explainer": name, "dataset": data, "network": "ResNet-9", "training_seed": network}
        own = torch.tensor(part["size"].to_numpy()), part["image"].to_numpy()
        both = Scores.of(own[0], images=own[1], metric="size", **about)
        both += scores.where(metric="overlap", explainer=name, dataset=data)
        alike = stats.Statistic(stats.association, ({"metric": "size"}, {"metric": "overlap"}), "rank correlation")
        said.append(f"{name} on {data} {tables.number(stats.estimate(both, alike))}")
text += (
    f"; size and overlap with the truth correlate by {', '.join(said)}."
    if said
    else ", too few to say whether the larger one is the worse."
)
Markdown(text)

# %% [markdown]
# ## Is it the size at which deletion curves flatten?
#
# Deletion curves have a bend, too, and people read sizes off it. We take the size by which nine tenths of the whole change
# have happened, divided by 0.9: where a curve that changes evenly would end. One curve is the answer when the features ranked first
# are removed (MoRF), the other when only they are left (LeRF). If removal did nothing but take away what explains, and all of it
# mattered equally, both would stand at the known explanation's size.


# %% tags=["hide-input"]
most = 0.9  # of the change


def flattens(sample):
    """The statistic: where a mean curve would end, by the size at which it has made nine tenths of its whole change."""
    curve = sample.mean()
    done = (curve - curve[:, :1]) / (curve[:, -1:] - curve[:, :1])
    after = (done >= most).double().argmax(1, keepdim=True).clamp(min=1)
    low, high = done.gather(1, after - 1), done.gather(1, after)
    first, last = sample.sizes[after - 1], sample.sizes[after]
    return ((first + ((most - low) / (high - low)).clamp(0, 1) * (last - first)) / most).clamp(max=1)[:, 0]


bends = []
for (i, name), of in found.items():
    labels = {k: cases[i].subject.labels[k] for k in ("dataset", "training_seed")}
    for way in ends:
        statistic = stats.Statistic(flattens, ({"metric": way},), steps=True)
        bend = map(float, stats.estimate(scores, statistic, explainer=name, **labels).pooled)
        row = {"data": labels["dataset"], "training_seed": labels["training_seed"], "ranking": name, "curve": way}
        row |= dict(zip(("bend", "low", "high"), bend, strict=True))
        bends.append(row | {"size": of.fraction, "size_low": of.low, "size_high": of.high, "refusal": of.refusal})
bends = pd.DataFrame(bends)
run.save(bends, "bends")


def draw_bends(axes, row, at):
    """Where both deletion curves flatten, and the size where it is named."""
    key = row[["data", "training_seed", "ranking"]].to_list()
    of = bends[(bends[["data", "training_seed", "ranking"]] == key).all(axis=1)]
    for (_, bend), colour, marker in zip(of.iterrows(), ("C1", "C2"), "v^", strict=False):
        reach = [[max(0, bend["bend"] - bend["low"])], [max(0, bend["high"] - bend["bend"])]]
        axes.errorbar(bend["bend"], at, xerr=reach, fmt=marker, color=colour, capsize=2, markersize=5)
    if not row["why"]:
        axes.plot(row["size"], at, "D", color="C0", markersize=7, zorder=1)


# %% mystnb={"figure": {"caption": "Where deletion curves flatten: removed in order of relevance (MoRF, pointing down), and only the first left (LeRF, pointing up), with 95 % intervals over the inputs. Diamonds: sizes that are named. Dashed: the known size.", "name": "ff-beyond-bends"}, "image": {"alt": "Six panels: for each ranking, where its two deletion curves flatten. Every ranking has such bends, the random one too. Most of those of the known explanation stand near the dashed line; those of explainers of text stand long before it."}} tags=["hide-input"]
figure = panels(draw_bends, "share of the features that is removed, or left")
looks = {"MoRF": ("v", "C1"), "LeRF": ("^", "C2"), "size, where named": ("D", "C0")}
handles = [plt.Line2D([], [], marker=m, color=c, linestyle="", label=says) for says, (m, c) in looks.items()]
figure.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small")
figures.show(figure)

# %% tags=["hide-input"]
lines = []
for way in ends:
    part = bends[(bends["curve"] == way) & bends["size"].notna()]
    later, sooner = int((part["low"] > part["size_high"]).sum()), int((part["high"] < part["size_low"]).sum())
    line = f"- **{way}**: {len(part)} rankings have a size to compare with. "
    if len(part):
        line += f"The deletion curve flattens surely beyond it in {later}, surely before it in {sooner} (their intervals do not "
        line += f"overlap); in {len(part) - later - sooner} the two cannot be told apart. Curve and size: "
        at = part[["data", "ranking", "bend", "low", "high", "size", "size_low", "size_high"]].to_numpy()
        line += "; ".join(f"{d}, {name} {shown_as(*of[:3])} and {shown_as(*of[3:])}" for d, name, *of in at) + "."
    lines.append(line)
own = bends[bends["ranking"] == "truth"].merge(true[["data", "truth"]], on="data")
for way, part in own.groupby("curve", sort=False):
    early, late = int((part["high"] < part["truth"]).sum()), int((part["low"] > part["truth"]).sum())
    line = f"- **The known explanation under {way}**: its curve is flat surely before its true size in {early} of "
    line += f"{len(part)} kinds of data, surely after it in {late}. "
    at = part[["data", "truth", "bend", "low", "high"]].to_numpy()
    lines.append(line + "; ".join(f"{data} {shown_as(*of)}, true {known:.2f}" for data, known, *of in at) + ".")
of_words = bends[(bends["curve"] == "MoRF") & (bends["data"] == "sentences") & (bends["ranking"] != "random")]
lengths = ", ".join(
    f"{name} {sentences.inputs.shape[1] * most * at:.1f}"
    for name, at in zip(of_words["ranking"], of_words["bend"], strict=True)
)
lines.append(f"- **Sentences** have made nine tenths of their loss with so many tokens: {lengths}.")
Markdown("\n".join(lines))

# %% [markdown]
# Every curve flattens somewhere, also that of a random ranking, so that a bend is no evidence of an end: it says how soon *this* ranking
# has done its work on a network that loses what it is not used to lose. On the known explanation a bend can be compared
# with the truth; on others there is nothing to compare it with.
#
# ## What to take home
#
# - Report a size together with its refusals, and never a bend for one.
# - *No size* is about the ranking. A good explainer may have none *because* it orders the explanation's inside.
# - Where you need a size, build the control: inputs of your kind with a known explanation, as the vehicles, phrases and spans
#   here. If even that is refused, ask about more inputs.

# %% tags=["hide-input"]
run.finish()
