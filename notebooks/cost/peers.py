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
# # How fast is it beside other libraries?
#
# Other libraries measure explanations too: [Quantus](https://github.com/understandable-machine-intelligence-lab/Quantus),
# [captum](https://captum.ai) and [pytorch-grad-cam](https://github.com/jacobgil/pytorch-grad-cam). This page gives each
# of their metrics some work, gives the engine the same work, and measures both against the floor: the bare forwards that
# the metric's definition asks for.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
width = 16  # of ResNet-9
images = 8
step = 32  # channel values removed at a time in Pixel-Flipping
runs = 100  # random subsets, or noisy copies, per image
noisy = 20  # noisy copies whose explanations are compared
percentages = [10, 20, 30, 40, 50, 60, 70, 80, 90]  # of the pixels, in ROAD
growing = ["images", "sizes", "draws"]  # what the engine's time may grow with: images, sizes, draws
scales = [1, 2, 4]  # how much more of these
repeats = 5  # of everything, in turn; intervals are over them
rows = 128  # inputs per bare forward
seed = 0

# %% tags=["hide-input"]
import itertools
import warnings
from functools import cache, partial
from importlib import metadata

import captum.metrics
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import quantus
import seaborn as sns
import torch
from captum.attr import Saliency
from IPython.display import Markdown
from pytorch_grad_cam.metrics.road import ROADMostRelevantFirst, ROADMostRelevantFirstAverage
from pytorch_grad_cam.utils.model_targets import ClassifierOutputSoftmaxTarget

from faithlab import engine, outputs
from faithlab.explainers import explain
from faithlab.metrics.fidelity import remaining
from faithlab.metrics.mufidelity import mu_fidelity
from faithstudy import plots, tables
from faithstudy.claims import counted, premise, timed
from faithstudy.data import datasets
from faithstudy.networks import models
from faithstudy.run import Run
from faithstudy.trials import cost, other_libraries

plots.theme()
run = Run("cost/peers", globals())
warnings.filterwarnings("ignore", module="captum|quantus|scipy")
versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("quantus", "captum", "grad-cam"))
Markdown(f"Measured: {versions}.")

# %% [markdown]
# ## The work
#
# The weights do not matter for the time, so the network is a fresh ResNet-9. The images are CIFAR-10, the explanation is
# a saliency map. Each metric is given to the library and to the engine in the same sizes:
#
# - *Pixel-Flipping*: values are removed step by step, the most relevant first; the probability is read off after each.
#   Quantus takes each colour value for a feature of its own, so the engine does so here too.
# - *Faithfulness correlation*: random subsets are removed; how well does the relevance of a subset predict the loss?
#   The engine's is µFidelity.
# - *Infidelity*: the same subsets; the squared difference between the relevance of a subset and the loss.
# - *Max-Sensitivity*: how far does the explanation move when the image is moved a little? Its unit is an explanation, a
#   forward and a backward pass.
# - *ROAD*: removed pixels are filled in from their neighbours, by solving a linear system per image and size. The book
#   has no metric of this kind. Quantus gets grey images, for a reason that is told below.

# %% tags=["hide-input"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
native = engine.native_precision(device)
torch.manual_seed(seed)
network = models.build("resnet9", width=width).to(device).eval()
grey_network = models.build("resnet9", width=width, channels=1).to(device).eval()
chosen = datasets.load("cifar10", "test").take(slice(images))
x, y = chosen.model_inputs().to(device), chosen.labels.to(device)
grey = x.mean(1, keepdim=True)
pixels = chosen.features()
values = torch.arange(x[0].numel()).view(x.shape[1:])  # each colour value a feature
relevance = explain("saliency", network, x, y, values)  # [B, C * H * W]
subset = values.numel() // 10
targets = [ClassifierOutputSoftmaxTarget(int(label)) for label in y]  # as grad-cam has them


def saliency(model, inputs, targets):
    """Absolute gradients of the logits [n, C, H, W], without anybody's library."""
    inputs = inputs.detach().requires_grad_()
    logits = model(inputs).gather(1, targets[:, None]).sum()
    return torch.autograd.grad(logits, inputs)[0].abs()


def on_engine(metric, *options):
    """A metric of the loss of probability without features, on the engine in a precision."""
    scorer = partial(engine.scorer, network, x, y, segments=values)
    return lambda precision: metric(scorer(precision=precision), relevance, *options)


def our_sensitivity(precision):
    runner = engine.prepare(network, x, precision)

    def explained(inputs):
        return explain("saliency", runner, inputs.to(precision), y.repeat(noisy + 1), values)

    return other_libraries.max_sensitivity(explained, x, 0.02, noisy, seed)


def captum_infidelity(limit=None):
    def remove(inputs):
        taken = torch.rand(len(inputs), values.numel(), device=device).argsort(1) < subset
        removed = inputs * taken.view(inputs.shape)
        return removed, inputs - removed

    attributions = relevance.view_as(x)
    options = {"target": y, "n_perturb_samples": runs, "max_examples_per_batch": limit}
    return captum.metrics.infidelity(lambda z: network(z).softmax(1), remove, x, attributions, **options)


def grad_cam_road():
    return ROADMostRelevantFirstAverage(percentages)(x, relevance.view_as(x).sum(1).cpu().numpy(), targets, network)


def in_quantus(metric, inputs=x, model=network, **options):
    """A metric of Quantus, called with numbers in its form."""

    def explained(model, inputs, targets, **_):
        tensors = torch.as_tensor(inputs, device=device), torch.as_tensor(targets, device=device)
        return saliency(model, *tensors).cpu().numpy()

    maps = relevance.view_as(x) if inputs is x else relevance.view_as(x).sum(1, keepdim=True)
    arrays = dict(zip(("x_batch", "y_batch", "a_batch"), (of.cpu().numpy() for of in (inputs, y, maps)), strict=True))
    metric = getattr(quantus, metric)(disable_warnings=True, **options)
    return metric(model=model, explain_func=explained, device=str(device), batch_size=rows, **arrays)


prepare = cache(engine.prepare)  # once for each network and precision, in the round that warms up


def floor(needed, unit, precision=None, model=network, inputs=x):
    """The bare forwards or explanations: as the libraries run them, or in the engine's form in a precision."""
    runner = model if precision is None else prepare(model, inputs, precision)
    layout = torch.contiguous_format if precision is None else torch.channels_last
    part = torch.arange(rows) % images
    batch, targets = inputs.to(precision or torch.float32)[part].contiguous(memory_format=layout), y[part]
    if unit == "forwards":
        return cost.forwards(runner, batch, needed)
    for start in range(0, needed, rows):
        saliency(runner, batch[: needed - start], targets[: needed - start])


sizes = torch.arange(step, values.numel() + 1, step, dtype=torch.float64) / values.numel()
flips, subsets, shares = images * -(-values.numel() // step), images * (runs + 1), len(percentages)
flipping = partial(in_quantus, "PixelFlipping", features_in_step=step)
correlation = partial(in_quantus, "FaithfulnessCorrelation", nr_runs=runs, subset_size=subset)
sensitivity = partial(in_quantus, "MaxSensitivity", nr_samples=noisy)
moved = partial(captum.metrics.sensitivity_max, Saliency(network).attribute, x, target=y, n_perturb_samples=noisy)
road = partial(in_quantus, "ROAD", percentages=percentages)
our_correlation = on_engine(partial(mu_fidelity, share=0.1, draws=runs, seed=seed))
our_infidelity = on_engine(other_libraries.infidelity, x.flatten(1), subset, runs, seed)
# Library, metric, how much its definition asks for, of what: the library's work, and the engine's where there is one.
works = {
    ("Quantus", "Pixel-Flipping", flips, "forwards"): (flipping, on_engine(remaining, sizes)),
    ("Quantus", "Faithfulness correlation", subsets, "forwards"): (correlation, our_correlation),
    ("Quantus", "Max-Sensitivity", images * noisy, "explanations"): (sensitivity, our_sensitivity),
    ("Quantus", "ROAD, grey images", images * shares, "forwards"): (partial(road, grey, grey_network), None),
    ("captum", "Infidelity", subsets, "forwards"): (captum_infidelity, our_infidelity),
    ("captum", "Max-Sensitivity", images * (noisy + 1), "explanations"): (moved, our_sensitivity),
    ("grad-cam", "ROAD", images * (shares + 1), "forwards"): (grad_cam_road, None),
}
if images * runs > 256:  # fewer are at once anyway
    works["captum", "Infidelity, 256 at once", subsets, "forwards"] = partial(captum_infidelity, 256), our_infidelity

# %% [markdown]
# ## Times the floor
#
# The libraries run the network as it is given to them, in float32. So there are two floors: the bare forwards of the
# network as it is, which no change to a library's own code can beat, and the bare forwards in the form in which the
# engine runs it. All of them run in turn, on the same threads.

# %% tags=["hide-input"]
names = ["library", "metric", "needed", "unit"]


def in_turn():
    """The seconds of all works and of their bare forwards, in turn."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002, Quantus draws from it
    jobs = {}
    for key, (theirs, ours) in works.items():
        bare = partial(floor, *key[2:], **({"model": grey_network, "inputs": grey} if "grey" in key[1] else {}))
        jobs |= {
            (*key, "floor"): bare,
            (*key, "floor, fast"): partial(bare, precision=native),
            (*key, "theirs"): theirs,
        }
        if ours is not None:
            jobs[*key, "floor, float32"] = partial(bare, precision=torch.float32)
            jobs |= {(*key, "ours, float32"): partial(ours, torch.float32), (*key, "ours, fast"): partial(ours, native)}
    return cost.in_turn(jobs, repeats, [*names, "what"])


base, columns = {"images": 8, "sizes": 5, "draws": 8}, ["what", "number", "forwards", "who"]


def of_growing_jobs():
    """The seconds of F-Fidelity, both directions, for more images, sizes or draws, and of their bare forwards."""
    pool = datasets.load("cifar10", "test").take(slice(base["images"] * max(scales)))
    many, labels = pool.model_inputs().to(device), pool.labels.to(device)
    maps = explain("saliency", network, many, labels, pixels)

    def f_fidelity(images, sizes, draws):
        asked = {"segments": pixels, "output": outputs.correct, "precision": native}
        score = engine.scorer(network, many[:images], labels[:images], **asked)
        fractions = torch.arange(1, sizes + 1, dtype=torch.float64) / (sizes + 1)
        for direction in ("MoRF", "LeRF"):
            remaining(score, maps[:images], fractions, direction=direction, alpha=0.5, cap=0.1, draws=draws, seed=seed)

    jobs, form = {}, str(native).removeprefix("torch.")
    for what, scale in itertools.product(growing, scales):
        counts = base | {what: base[what] * scale}
        needed = 2 * counts["images"] * counts["sizes"] * counts["draws"]
        key = what, counts[what], needed
        jobs[*key, f"the engine, {form}"] = partial(f_fidelity, **counts)
        jobs[*key, "the floor"] = partial(floor, needed, "forwards", native)
    return cost.in_turn(jobs, repeats, columns)


times = run.table("times", in_turn, again="time")
grown = run.table("grown", of_growing_jobs, again="time")
fast = grown["who"].iloc[0].removeprefix("the engine, ")  # the number format of the engine

# Ratios of neighbours in time, so that a machine whose speed drifts does not tilt them.
paired = times.pivot(index=[*names, "repeat"], columns="what", values="seconds")
over = {"theirs / floor": ("theirs", "floor"), "ours / floor": ("ours, float32", "floor")}
over |= {"theirs / fast floor": ("theirs", "floor, fast")}
over |= {"ours, float32 / fast floor": ("ours, float32", "floor, fast")}
over |= {"ours / fast floor": ("ours, fast", "floor, fast"), "theirs / ours": ("theirs", "ours, fast")}
ratios = pd.DataFrame({name: paired[one] / paired[other] for name, (one, other) in over.items()})
ratios = ratios.groupby(level=names, sort=False).agg(lambda of: cost.Ratio.over_turns(of).value)
run.save(ratios, "ratios")
shown = ratios.drop(columns="ours, float32 / fast floor").map("{:.1f}".format).replace("nan", "–")
tables.styled(shown.rename_axis([None] * len(names)))

# %% [markdown]
# In front stands what each metric needs. *Floor* is the network as it is, in float32; *ours / floor* is the engine in float32 over it,
# and may be below 1 because the engine folds BatchNorm and lays images out otherwise. *Fast floor* is the engine's form in bfloat16
# where the processor computes it natively, else in float32, and so are *ours* there and in the last column.

# %% mystnb={"figure": {"caption": "Wall time over the bare forwards (or explanations) that a metric needs, in the form in which the engine runs the network: the dashed line is the floor. Logarithmic scale. Where there is one dot only, the book does not have the metric.", "name": "cost-peers"}, "image": {"alt": "Dot chart of metrics of three libraries: for each the library's time and the engine's, in every number format that it ran in, as multiples of the floor."}} tags=["hide-input", "answer"]
dots = ratios.reset_index()
dots["label"] = dots["metric"] + " (" + dots["library"] + ")"
who = {"theirs / fast floor": "the library"}
who |= {"ours, float32 / fast floor": "the engine, float32"} if fast != "float32" else {}  # else the same again
who["ours / fast floor"] = f"the engine, {fast}"
dots = dots.melt("label", list(who), "who", "ratio").replace({"who": who})
figure, axes = plt.subplots(figsize=(7.2, 3.9))
sns.scatterplot(dots, x="ratio", y="label", hue="who", style="who", s=90, ax=axes)
axes.set_xscale("log")
ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200) if tick <= 1.2 * dots["ratio"].max()]
axes.set(xlabel="times the floor", ylabel=None, xticks=ticks, xticklabels=ticks, xlim=(0.7, None))
axes.minorticks_off()
plots.mark(axes, 1, "floor", height=0.06)
axes.legend(title=None, loc="upper center", bbox_to_anchor=(0.3, 1.14), ncols=3)
plots.show(figure)

# %% [markdown]
# ## Five times as fast: reached, and if not, could it be?
#
# The aim of this study is to be five times as fast as every library where the processor computes bfloat16 natively, and
# two and a half times in float32. Judged are Quantus and captum: of pytorch-grad-cam's metrics the book has none. No engine
# takes less than the bare forwards that the definition needs. So there is a most for each row: the library's time over
# those forwards, in the form in which the engine runs the network. An aim above it is
# *out of reach*. An aim below it that was missed is *lost on the way*: the engine's time goes into other things. Where the intervals over the turns, at the level that so many rows ask for, do not tell which, it is *missed*; where
# they do not even tell that, it is *open*.

# %% tags=["hide-input"]
AIMS = {"fast": 5.0, "float32": 2.5}  # times, in the engine's forms of the network
both, lines = len(ratios.dropna()), []
for ((library, metric, *_), turns), form in itertools.product(paired.dropna().groupby(names, sort=False), AIMS):
    beside = (f"ours, {form}", f"floor, {form}")
    reached, most = (cost.Ratio.over_turns(turns["theirs"] / turns[of], both) for of in beside)
    about = {"library": library, "metric": metric, "form": form, "aim": AIMS[form]}
    lines.append(about | {"reached": reached, "at most": most, "so": cost.against(AIMS[form], reached, most)})
every = pd.DataFrame(lines)
aims = every[(every["form"] == "float32") | (fast != "float32")].replace({"form": {"fast": fast}})
aims = aims.astype({"reached": str, "at most": str})
run.save(aims, "aims")
tables.prose(aims.assign(aim=aims["aim"].map("{:g}".format)).rename(columns={"form": "in"}))

# %% tags=["hide-input", "headline"]
told = aims.assign(times=aims["reached"].str.split().str[0].astype(float))
said = []
for form, of in told.groupby("form", sort=False):
    ends = [
        f"**{row['times']:.1f}** ({row['metric']} of {row['library']})" for _, row in of.sort_values("times").iterrows()
    ]
    met = f"the aim of {of['aim'].iloc[0]:g} is reached in {int((of['so'] == 'reached').sum()) or 'none'} of {len(of)}"
    said.append(f"in {form} {ends[0]} to {ends[-1]} times as long as the engine; {met}")
Markdown(
    f"For the same work the metrics of Quantus and captum take, {', and '.join(said)} ({images} images; all times of this page were taken "
    f"on one machine, {run.machine})."
)

# %% [markdown]
# ## What the engine's time grows with
#
# F-Fidelity for more images, more explanation sizes or more random draws: the time is the number of forwards times the
# time of one.

# %% tags=["hide-input"]
growth = grown.groupby(columns, sort=False)["seconds"].median().reset_index()
run.save(growth, "growth")

# %% mystnb={"figure": {"caption": "Wall time of F-Fidelity when one of the three grows and the others stay, beside the bare forwards.", "name": "cost-growth"}, "image": {"alt": "Three line charts: number of images, of explanation sizes and of random draws against seconds, one line for the engine and one for the bare forwards."}} tags=["hide-input"]
look = {"kind": "line", "style": "who", "markers": True, "dashes": False, "errorbar": None}
panels = {"col": "what", "height": 2.5, "aspect": 1.0, "facet_kws": {"sharex": False}}
grid = sns.relplot(growth, x="number", y="seconds", hue="who", **look, **panels)
grid.set_titles("{col_name}").set_axis_labels("number", "seconds").set(xlim=(0, None), ylim=(0, None))
sns.move_legend(grid, "outside upper center", ncols=2, title=None)
plots.show(grid.figure)

# %% [markdown]
# ## What else was found
#
# Running the libraries showed more than their time. Each line is measured here, on the versions named at the top;
# `tests/test_peers.py` shows the same on small inputs.


# %% tags=["hide-input"]
def watched(work):
    """What a piece of work asks the network about, how many inputs that are, and what it returns."""
    with other_libraries.asked(network) as seen:
        result = work()
    return seen, sum(map(len, seen)), result


again = "asks about the clean images again for every"
_, count, _ = watched(partial(captum_infidelity, 2 * images))
found = {("captum", f"infidelity with max_examples_per_batch {again} chunk"): f"{count:,} forwards for {subsets:,}"}
_, count, _ = watched(grad_cam_road)
found["grad-cam", f"ROAD {again} percentile"] = f"{count:,} forwards for {images * (shares + 1):,}"

flat = np.maximum(relevance.view_as(x).sum(1).cpu().numpy(), 0)
flat[flat < np.median(flat, axis=(1, 2), keepdims=True)] = 0  # zero in half of the image, as Grad-CAM's maps are
seen, _, _ = watched(lambda: ROADMostRelevantFirst(percentile=40)(x, flat, targets, network))
what = "ROAD's percentile is a threshold: where a map is zero in half of the image, asked for the upper 60 % it removes"
found["grad-cam", what] = f"{(seen[-1] != x).any(1).float().mean().item():.0%} of the pixels"

try:
    road()
    said = "it ran"
except Exception as error:
    said = f"{type(error).__name__}: {error}"
found["Quantus", "ROAD on images with three channels"] = said

seen, _, _ = watched(flipping)
changed = next(z for z in seen if bool((z != x).any())) != x
single, in_pixels = changed.sum().item() / images, changed.any(1).sum().item() / images
what = f"Pixel-Flipping with {step} features in a step removes single colour values: in the first step"
found["Quantus", what] = f"{single:.0f} values in {in_pixels:.0f} pixels"

patches = partial(in_quantus, "Infidelity", perturb_patch_sizes=[x.shape[-1] // 4])
_, few, once = watched(partial(patches, n_perturb_samples=1))
_, more, often = watched(partial(patches, n_perturb_samples=5))
change = (np.divide(often, once) - 1).max()
what = "Infidelity removes the same patches in every repetition, so that five tell as much as one"
found["Quantus", what] = f"{more / few:.1f} times the forwards; scores change by {change:.1%} at most"
findings = pd.DataFrame([(*what, said) for what, said in found.items()], columns=["library", "what", "measured"])
run.save(findings, "findings")
tables.prose(findings)

# %% [markdown]
# ## Claims
#
# They are this study's own, about the processor on which the times were taken.

# %% tags=["hide-input"]
over_turns = f"interval over the turns of one run on one machine, {repeats} of them"
parts = {form: [] for form in AIMS}
for of in lines:
    says = f"{of['metric']}, {of['library']}: {of['reached']} times"
    parts[of["form"]].append(timed(says, of["reached"].ends, at_least=of["aim"], reason=over_turns))
run.claim(
    "peers-five-times",
    "this page",
    "For the same work every library that is judged, Quantus and captum, takes at least five times as long as the engine, where the processor "
    "computes bfloat16 natively.",
    [premise(counted("this processor computes bfloat16 natively", [fast == "bfloat16"])), *parts["fast"]],
)

# %% tags=["hide-input"]
run.claim(
    "peers-float32",
    "this page",
    "For the same work every library that is judged, Quantus and captum, takes at least two and a half times as long as the engine in float32.",
    parts["float32"],
)

# %% tags=["hide-input"]
turns = grown.pivot(index=["what", "number", "forwards", "repeat"], columns="who", values="seconds")
over_floor = turns[f"the engine, {fast}"] / turns["the floor"]
timed_jobs = {key: of for key, of in over_floor.groupby(columns[:-1], sort=False) if key[2] >= 2000 or key[2] == 640}
parts = []
for (what, number, forwards), of in timed_jobs.items():
    ratio, most = cost.Ratio.over_turns(of, len(timed_jobs)), 1.1 if forwards >= 2000 else 1.3
    says = f"{number} {what}, {forwards:,} forwards: {ratio} times"
    parts.append(timed(says, ratio.ends, at_most=most, reason=over_turns))
run.claim(
    "peers-near-floor",
    "this page",
    "F-Fidelity on the engine takes at most 1.1 times its bare forwards from 2000 forwards on, and at most 1.3 times with 640.",
    parts,
)

# %% tags=["hide-input"]
run.finish()
