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
profile = "quick"  # smoke, quick, study or paper: see notebooks/profiles.yml
width = 16  # of ResNet-9
images = 4
step = 32  # channel values removed at a time in Pixel-Flipping
runs = 100  # random subsets, or noisy copies, per image
noisy = 20  # noisy copies whose explanations are compared
percentages = [10, 20, 30, 40, 50, 60, 70, 80, 90]  # of the pixels, in ROAD
scales = [1, 2, 4]  # how much more images, sizes or draws
repeats = 3  # of everything, in turn; intervals are over them
rows = 128  # inputs per bare forward
seed = 0

# %% tags=["hide-input"]
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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

from faithlab import engine, masks, preparation, readouts
from faithlab.claims import counted, premise, timed
from faithlab.explainers import explain
from faithlab.metrics.fidelity import remaining
from faithlab.study import figures, headlines, tables
from faithlab.study.results import Run
from faithlab.trials import cost
from faithlab.zoo import datasets, models

figures.theme()
run = Run("cost/peers", globals())
warnings.filterwarnings("ignore", module="captum|quantus|scipy")
Markdown(
    "Measured: " + ", ".join(f"{name} {metadata.version(name)}" for name in ("quantus", "captum", "grad-cam")) + "."
)

# %% [markdown]
# ## The work
#
# The weights do not matter for the time, so the network is a fresh ResNet-9. The images are CIFAR-10, the explanation is
# a saliency map. Each metric is given to the library and to the engine in the same sizes:
#
# - *Pixel-Flipping*: values are removed step by step, the most relevant first; the probability is read off after each.
#   Quantus takes each colour value for a feature of its own, so the engine does so here too.
# - *Faithfulness correlation*: random subsets are removed; how well does the relevance of a subset predict the loss?
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


def saliency(model, inputs, targets):
    """Absolute gradients of the logits [n, C, H, W], without anybody's library."""
    inputs = inputs.detach().requires_grad_()
    logits = model(inputs).gather(1, targets[:, None]).sum()
    return torch.autograd.grad(logits, inputs)[0].abs()


def random_subsets(precision):
    """Relevance of random subsets and the loss of probability without them, [B, N] each, on the engine."""
    score = engine.scorer(network, x, y, segments=values, precision=precision)
    order, sizes = masks.order(relevance), torch.tensor([values.numel(), subset])
    keep = masks.remove_from_top(
        order, sizes[:1], sizes[1:], seed=seed, images=torch.arange(images, device=device), draws=torch.arange(runs)
    )[:, :, 0]  # [B, N, F]
    loss = score(torch.ones_like(keep[:, :1])) - score(keep)
    return keep, loss


def our_correlation(precision):
    keep, loss = random_subsets(precision)
    summed = torch.einsum("bnf,bf->bn", (~keep).float(), relevance)
    return torch.stack([torch.corrcoef(torch.stack(pair))[0, 1] for pair in zip(summed, loss, strict=True)])


def our_infidelity(precision):
    keep, loss = random_subsets(precision)
    expected = torch.einsum("bnf,bf->bn", (~keep).float(), relevance * x.flatten(1))
    return ((expected - loss) ** 2).mean(1)


def our_flipping(precision):
    sizes = torch.arange(step, values.numel() + 1, step, dtype=torch.float64) / values.numel()
    score = engine.scorer(network, x, y, segments=values, precision=precision)
    return remaining(score, relevance, sizes).value


def our_sensitivity(precision):
    generator = torch.Generator().manual_seed(seed)
    runner = preparation.prepared(network, x, precision).model  # kept from one call to the next, as the engine's are
    shift = 0.02 * (2 * torch.rand(noisy * images, *x.shape[1:], generator=generator) - 1).to(x)
    asked = torch.cat([x, x.repeat(noisy, 1, 1, 1) + shift]).to(precision)
    maps = explain("saliency", runner, asked, y.repeat(noisy + 1), values)
    clean, others = maps[:images], maps[images:].view(noisy, images, -1)
    return ((others - clean).norm(dim=-1) / clean.norm(dim=-1)).amax(0)


def captum_infidelity(limit=None):
    def remove(inputs):
        taken = torch.rand(len(inputs), values.numel(), device=device).argsort(1) < subset
        removed = inputs * taken.view(inputs.shape)
        return removed, inputs - removed

    attributions = relevance.view_as(x)
    options = {"target": y, "n_perturb_samples": runs, "max_examples_per_batch": limit}
    return captum.metrics.infidelity(lambda z: network(z).softmax(1), remove, x, attributions, **options)


def captum_sensitivity():
    return captum.metrics.sensitivity_max(Saliency(network).attribute, x, target=y, n_perturb_samples=noisy)


def grad_cam_road():
    targets = [ClassifierOutputSoftmaxTarget(int(label)) for label in y]
    maps = relevance.view_as(x).sum(1).cpu().numpy()
    return ROADMostRelevantFirstAverage(percentages)(x, maps, targets, network)


def in_quantus(metric, inputs=x, model=network, **options):
    """A metric of Quantus, called with numbers in its form."""

    def explained(model, inputs, targets, **_):
        tensors = torch.as_tensor(inputs, device=device), torch.as_tensor(targets, device=device)
        return saliency(model, *tensors).cpu().numpy()

    maps = relevance.view_as(x) if inputs is x else relevance.view_as(x).sum(1, keepdim=True)
    arrays = dict(zip(("x_batch", "y_batch", "a_batch"), (of.cpu().numpy() for of in (inputs, y, maps)), strict=True))
    metric = getattr(quantus, metric)(disable_warnings=True, **options)
    return metric(model=model, explain_func=explained, device=str(device), batch_size=rows, **arrays)


@dataclass
class Work:
    """A metric of a library.

    Attributes:
        metric: its name.
        library: whose.
        needed: how many forwards, or explanations, its definition asks for.
        theirs: the library's work.
        ours: the same in a given precision; None: the book does not have it.
        model: what is run.
        inputs: what it is run on.
        unit: what is needed.
    """

    metric: str
    library: str
    needed: int
    theirs: Callable[[], object]
    ours: Callable[[torch.dtype], object] | None = None
    model: torch.nn.Module = network
    inputs: torch.Tensor = x
    unit: str = "forwards"


flips = -(-values.numel() // step)
flipping = partial(in_quantus, "PixelFlipping", features_in_step=step)
correlation = partial(in_quantus, "FaithfulnessCorrelation", nr_runs=runs, subset_size=subset)
sensitivity = partial(in_quantus, "MaxSensitivity", nr_samples=noisy)
road = partial(in_quantus, "ROAD", percentages=percentages)
moves = {"ours": our_sensitivity, "unit": "explanations"}
of_grey = {"model": grey_network, "inputs": grey}
works = [
    Work("Pixel-Flipping", "Quantus", images * flips, flipping, our_flipping),
    Work("Faithfulness correlation", "Quantus", images * (runs + 1), correlation, our_correlation),
    Work("Max-Sensitivity", "Quantus", images * noisy, sensitivity, **moves),
    Work("ROAD, grey images", "Quantus", images * len(percentages), partial(road, grey, grey_network), **of_grey),
    Work("Infidelity", "captum", images * (runs + 1), captum_infidelity, our_infidelity),
    Work("Infidelity, 256 at once", "captum", images * (runs + 1), partial(captum_infidelity, 256), our_infidelity),
    Work("Max-Sensitivity", "captum", images * (noisy + 1), captum_sensitivity, **moves),
    Work("ROAD", "grad-cam", images * (len(percentages) + 1), grad_cam_road),
]
prepared = {
    (network_, precision): engine.prepare(network_, inputs, precision)
    for network_, inputs in ((network, x), (grey_network, grey))
    for precision in {torch.float32, native}
}


def floor(work, precision=None):
    """The bare forwards or gradients of a work: as the libraries run them, or in the engine's form in a precision."""
    model = work.model if precision is None else prepared[work.model, precision]
    layout = torch.contiguous_format if precision is None else torch.channels_last
    part = torch.arange(rows) % images
    inputs, targets = work.inputs.to(precision or torch.float32)[part].contiguous(memory_format=layout), y[part]
    if work.unit == "forwards":
        return cost.forwards(model, inputs, work.needed)
    for start in range(0, work.needed, rows):
        saliency(model, inputs[: work.needed - start], targets[: work.needed - start])


# %% [markdown]
# ## Times the floor
#
# The libraries run the network as it is given to them, in float32. So there are two floors: the bare forwards of the
# network as it is, which no change to a library's own code can beat, and the bare forwards in the form in which the
# engine runs it. All of them run in turn, on the same threads.

# %% tags=["hide-input"]
torch.manual_seed(seed)
np.random.seed(seed)  # noqa: NPY002, Quantus draws from it
jobs = {}
for work in works:
    key = work.library, work.metric, work.needed, work.unit
    jobs |= {(*key, "floor"): partial(floor, work), (*key, "floor, fast"): partial(floor, work, native)}
    jobs[*key, "theirs"] = work.theirs
    if work.ours is not None:
        jobs[*key, "floor, float32"] = partial(floor, work, torch.float32)
        jobs[*key, "ours, float32"] = partial(work.ours, torch.float32)
        jobs[*key, "ours, fast"] = partial(work.ours, native)
measured = [(*key, number + 1, taken) for key, number, taken in cost.in_turn(jobs, repeats)]
times = pd.DataFrame(measured, columns=["library", "metric", "needed", "unit", "what", "repeat", "seconds"])
run.save(times, "times")

# Ratios of neighbours in time, so that a machine whose speed drifts does not tilt them.
paired = times.pivot(index=["library", "metric", "needed", "unit", "repeat"], columns="what", values="seconds")
over = {
    "theirs / floor": ("theirs", "floor"),
    "ours / floor": ("ours, float32", "floor"),
    "theirs / fast floor": ("theirs", "floor, fast"),
    "ours, float32 / fast floor": ("ours, float32", "floor, fast"),
    "ours / fast floor": ("ours, fast", "floor, fast"),
    "theirs / ours": ("theirs", "ours, fast"),
}
ratios = pd.DataFrame({name: paired[one] / paired[other] for name, (one, other) in over.items()})
ratios = ratios.groupby(level=["library", "metric", "needed", "unit"], sort=False).median()
run.save(ratios, "ratios")
shown = ratios.reset_index()
shown["needs"] = [f"{needed:,} {unit}" for needed, unit in zip(shown["needed"], shown["unit"], strict=True)]
columns = ["theirs / floor", "ours / floor", "theirs / fast floor", "ours / fast floor", "theirs / ours"]
shown[columns] = shown[columns].map(lambda ratio: "–" if pd.isna(ratio) else f"{ratio:.1f}")
tables.styled(shown.set_index(["library", "metric"])[["needs", *columns]].rename_axis([None, None]))

# %% tags=["hide-input"]
fast = str(native).removeprefix("torch.")
both = ratios.dropna()
like = both["theirs / floor"] / both["ours / floor"]
Markdown(
    "*Floor* is the network as it is, in float32; *ours / floor* is the engine in float32 over it, and may be below 1 "
    f"because the engine folds BatchNorm and lays images out otherwise. *Fast floor* is the engine's form in {fast}, and "
    f"*ours* there and in the last column runs in {fast}. For the same work the libraries take "
    f"{both['theirs / ours'].min():.1f} to {both['theirs / ours'].max():.1f} times as long as the engine"
    + (
        ", both in float32."  # the other column is the same work, measured a second time
        if native == torch.float32
        else f", and {like.min():.1f} to {like.max():.1f} times as long where both run in float32."
    )
)

# %% mystnb={"figure": {"caption": "Wall time over the bare forwards (or explanations) that a metric needs, in the form in which the engine runs the network: the dashed line is the floor. Logarithmic scale. Where there is one dot only, the book does not have the metric.", "name": "cost-peers"}, "image": {"alt": "Dot chart of metrics of three libraries: for each the library's time and the engine's, in every number format that it ran in, as multiples of the floor."}} tags=["hide-input", "answer"]
dots = ratios.reset_index()
dots["label"] = dots["metric"] + " (" + dots["library"] + ")"
names = {"theirs / fast floor": "the library"}
names |= {"ours, float32 / fast floor": "the engine, float32"} if native != torch.float32 else {}  # else the same again
names["ours / fast floor"] = f"the engine, {fast}"
dots = dots.melt("label", list(names), "who", "ratio").replace({"who": names})
figure, axes = plt.subplots(figsize=(7.2, 3.9))
sns.scatterplot(dots, x="ratio", y="label", hue="who", style="who", s=90, ax=axes)
axes.set_xscale("log")
ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200) if tick <= 1.2 * dots["ratio"].max()]
axes.set(xlabel="times the floor", ylabel=None, xticks=ticks, xticklabels=ticks, xlim=(0.7, None))
axes.minorticks_off()
figures.mark(axes, 1, "floor", height=0.06)
axes.legend(title=None, loc="upper center", bbox_to_anchor=(0.3, 1.14), ncols=3)
figures.show(figure)

# %% [markdown]
# ## Five times as fast: reached, and if not, could it be?
#
# The aim of this study is to be five times as fast as every library where the processor computes bfloat16 natively, and
# two and a half times in float32. Judged are Quantus and captum: of pytorch-grad-cam's metrics the book has none. No engine
# takes less than the bare forwards that the definition needs. So there is a most for each row: the library's time over
# those forwards, in the form in which the engine runs the network. An aim above it is
# *out of reach*. An aim below it that was missed is *lost on the way*, and it is said how much of the engine's time goes into
# other things. Where the intervals over the turns do not tell which, it is *missed*; where they do not even tell that, it is *open*.

# %% tags=["hide-input"]
AIMS = {"fast": 5.0, "float32": 2.5}  # times, in the engine's forms of the network
lines = []
for (library, metric, _, unit), turns in paired.dropna().groupby(level=[0, 1, 2, 3], sort=False):
    for form, aim in AIMS.items():
        found, possible, theirs, own, form_gain = (
            cost.Ratio.over_turns(turns[one] / turns[other], len(both))
            for one, other in (
                ("theirs", f"ours, {form}"),
                ("theirs", f"floor, {form}"),
                ("theirs", "floor"),
                (f"ours, {form}", f"floor, {form}"),
                ("floor", f"floor, {form}"),
            )
        )
        so = cost.against(aim, found, possible)
        so = "missed" if so == cost.OPEN and found.high < aim else so
        why = {
            cost.OUT_OF_REACH: f": it takes {theirs.value:.1f} times its bare {unit}, and these are {form_gain.value:.1f} times "
            "as fast in the engine's form; no engine can gain more",
            "missed": ": whether bare forwards would do it is open",
            cost.LOST: f": {1 - 1 / own.value:.0%} of the engine's time goes into other things than these {unit}",
        }
        about = {"library": library, "metric": metric, "form": form, "aim": aim}
        lines.append(about | {"reached": found, "at most": possible, "so": so, "why": so + why.get(so, "")})
every = pd.DataFrame(lines)
aims = every[(every["form"] == "float32") | (native != torch.float32)].replace({"form": {"fast": fast}})
aims = aims.astype({"reached": str, "at most": str})
run.save(aims, "aims")
tables.prose(aims.drop(columns="so").assign(aim=aims["aim"].map("{:g}".format)).rename(columns={"form": "in"}))

# %% tags=["hide-input"]
text = []
for (form, aim), of in aims.groupby(["form", "aim"], sort=False):
    counted_as = ", ".join(f"{count} {so}" for so, count in of["so"].value_counts().items())
    text.append(f"In {form} the aim of {aim:g} times is, of {len(of)} rows: **{counted_as}**.")
Markdown(
    " ".join(text) + f" Intervals are over {repeats} turn{'s' * (repeats > 1)}, at the level that so many rows ask for."
)

# %% [markdown]
# ## What the engine's time grows with
#
# F-Fidelity for more images, more explanation sizes or more random draws: the time is the number of forwards times the
# time of one.

# %% tags=["hide-input"]
base = {"images": 8, "sizes": 5, "draws": 8}
pool = datasets.load("cifar10", "test").take(slice(base["images"] * max(scales)))
many, labels = pool.model_inputs().to(device), pool.labels.to(device)
maps = explain("saliency", network, many, labels, pixels)


def f_fidelity(images, sizes, draws, precision):
    """Both directions of F-Fidelity."""
    asked = {"segments": pixels, "readout": readouts.hit, "precision": precision}
    score = engine.scorer(network, many[:images], labels[:images], **asked)
    fractions = torch.arange(1, sizes + 1, dtype=torch.float64) / (sizes + 1)
    for direction in ("MoRF", "LeRF"):
        remaining(score, maps[:images], fractions, direction=direction, alpha=0.5, cap=0.1, draws=draws, seed=seed)


jobs = {}
for what, scale in itertools.product(base, scales):
    counts = base | {what: base[what] * scale}
    needed = 2 * counts["images"] * counts["sizes"] * counts["draws"]
    bare = Work("F-Fidelity", "bare forwards", needed, flipping)
    key = what, counts[what], needed
    jobs[*key, f"the engine, {fast}"] = partial(f_fidelity, **counts, precision=native)
    jobs[*key, "the floor"] = partial(floor, bare, native)
columns = ["what", "number", "forwards", "who", "seconds"]
grown = [(*key, number + 1, taken) for key, number, taken in cost.in_turn(jobs, repeats)]
grown = pd.DataFrame(grown, columns=[*columns[:-1], "repeat", "seconds"])
run.save(grown, "grown")
growth = grown.groupby(columns[:-1], sort=False)["seconds"].median().reset_index()
run.save(growth, "growth")

# %% mystnb={"figure": {"caption": "Wall time of F-Fidelity when one of the three grows and the others stay, beside the bare forwards.", "name": "cost-growth"}, "image": {"alt": "Three line charts: number of images, of explanation sizes and of random draws against seconds, one line for the engine and one for the bare forwards."}} tags=["hide-input"]
look = {"kind": "line", "style": "who", "markers": True, "dashes": False, "errorbar": None}
panels = {"col": "what", "height": 2.5, "aspect": 1.0, "facet_kws": {"sharex": False}}
grid = sns.relplot(growth, x="number", y="seconds", hue="who", **look, **panels)
grid.set_titles("{col_name}").set_axis_labels("number", "seconds").set(xlim=(0, None), ylim=(0, None))
sns.move_legend(grid, "upper center", bbox_to_anchor=(0.45, 1.12), ncols=2, title=None)
plt.close(grid.figure)
grid.figure

# %% tags=["hide-input"]
LARGE, SMALL = 2000, 640  # forwards
NEAR, NEAR_SMALL = 1.10, 1.3  # times the floor
turns = grown.pivot(index=["what", "number", "forwards", "repeat"], columns="who", values="seconds")
over_floor = turns[f"the engine, {fast}"] / turns["the floor"]
jobs_timed = dict(list(over_floor.groupby(level=["what", "number", "forwards"], sort=False)))
judged_jobs = {key: of for key, of in jobs_timed.items() if key[2] >= LARGE or key[2] == SMALL}
near = {key: cost.Ratio.over_turns(of, len(judged_jobs)) for key, of in judged_jobs.items()}
Markdown(
    "Times the floor, over the turns: "
    + ", ".join(f"{number} {what} ({forwards:,} forwards) {ratio}" for (what, number, forwards), ratio in near.items())
    + "."
)

# %% [markdown]
# ## What else was found
#
# Running the libraries showed more than their time. Each line is measured here, on the versions named at the top;
# `tests/test_peers.py` shows the same on small inputs.


# %% tags=["hide-input"]
def watched(work):
    """What a piece of work asks the network about, how many inputs that are, and what it returns."""
    seen = []
    hook = network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach().clone()))
    try:
        result = work()
    finally:
        hook.remove()
    return seen, sum(map(len, seen)), result


_, infidelity, _ = watched(partial(captum_infidelity, 2 * images))
_, percentiles, _ = watched(grad_cam_road)

flat = np.maximum(relevance.view_as(x).sum(1).cpu().numpy(), 0)
flat[flat < np.median(flat, axis=(1, 2), keepdims=True)] = 0  # zero in half of the image, as Grad-CAM's maps are
targets = [ClassifierOutputSoftmaxTarget(int(label)) for label in y]
seen, _, _ = watched(lambda: ROADMostRelevantFirst(percentile=40)(x, flat, targets, network))
removed = (seen[-1] != x).any(1).float().mean().item()

try:
    road()
    said = "it ran"
except Exception as error:
    said = f"{type(error).__name__}: {error}"

seen, _, _ = watched(flipping)
changed = next(z for z in seen if bool((z != x).any())) != x

patches = partial(in_quantus, "Infidelity", perturb_patch_sizes=[x.shape[-1] // 4])
_, few, once = watched(partial(patches, n_perturb_samples=1))
_, many_asked, often = watched(partial(patches, n_perturb_samples=5))

found = {
    ("captum", "infidelity with max_examples_per_batch asks about the clean images again for every chunk"): (
        f"{infidelity:,} forwards for {images * (runs + 1):,}"
    ),
    ("grad-cam", "ROAD asks about the clean images again for every percentile"): (
        f"{percentiles:,} forwards for {images * (len(percentages) + 1):,}"
    ),
    (
        "grad-cam",
        "ROAD's percentile is a threshold: where a map is zero in half of the image, asked for the upper 60 % it removes",
    ): f"{removed:.0%} of the pixels",
    ("Quantus", "ROAD on images with three channels"): said,
    ("Quantus", f"Pixel-Flipping with {step} features in a step removes single colour values: in the first step"): (
        f"{changed.sum().item() / images:.0f} values in {changed.any(1).sum().item() / images:.0f} pixels"
    ),
    ("Quantus", "Infidelity removes the same patches in every repetition, so that five tell as much as one"): (
        f"{many_asked / few:.1f} times the forwards; scores change by {(np.divide(often, once) - 1).max():.1%} at most"
    ),
}
findings = pd.DataFrame([(*what, said) for what, said in found.items()], columns=["library", "what", "measured"])
run.save(findings, "findings")
tables.prose(findings)

# %% [markdown]
# ## Claims
#
# They are this study's own, about the processor that this page ran on.

# %% tags=["hide-input"]
over_turns = f"interval over the turns of one run on one machine, {repeats} of them"
judged = {
    form: [
        timed(f"{metric}, {library}: {found} times", found.ends, at_least=aim, reason=over_turns)
        for library, metric, aim, found in of[["library", "metric", "aim", "reached"]].itertuples(index=False)
    ]
    for form, of in every.groupby("form")
}
five_times = run.claim(
    "peers-five-times",
    "this page",
    "For the same work every library that is judged, Quantus and captum, takes at least five times as long as the engine, where the processor "
    "computes bfloat16 natively.",
    [premise(counted("this processor computes bfloat16 natively", [native == torch.bfloat16])), *judged["fast"]],
)
five_times

# %% tags=["hide-input"]
in_float32 = run.claim(
    "peers-float32",
    "this page",
    "For the same work every library that is judged, Quantus and captum, takes at least two and a half times as long as the engine in float32.",
    judged["float32"],
)
in_float32

# %% tags=["hide-input"]
near_floor = run.claim(
    "peers-near-floor",
    "this page",
    "F-Fidelity on the engine takes at most 1.1 times its bare forwards from 2000 forwards on, and at most 1.3 times with 640.",
    [
        timed(
            f"{number} {what}, {forwards:,} forwards: {ratio} times",
            ratio.ends,
            at_most=NEAR if forwards >= LARGE else NEAR_SMALL,
            reason=over_turns,
        )
        for (what, number, forwards), ratio in near.items()
    ],
)
near_floor

# %% tags=["hide-input"]
Markdown(headlines.on_machines(run, [five_times, in_float32, near_floor]))

# %% tags=["hide-input"]
run.finish()
