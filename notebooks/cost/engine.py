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
# # What does a metric cost?
#
# A faithfulness metric is forwards of the network, and little else. Their number is fixed by the definition: F-Fidelity
# over $n$ images, $K$ sizes, $N$ draws and two directions needs $2nKN$ of them. So there is a floor: the time of these
# forwards alone, in the fastest form in which the machine runs the network. This page measures how far above the floor
# the engine is, and how far above it a plain loop over images is.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, study or paper: see notebooks/profiles.yml
width = 16  # of ResNet-9
images = 24
steps = 19  # explanation sizes
draws = 50
loop_images = 4  # images of what is slow, whose time grows in proportion to their number
repeats = 2  # of everything, in turn; the median is reported
batches = [64, 128, 256]  # inputs per forward that are tried for the floor
seed = 0

# %% tags=["hide-input"]
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, readouts, segments
from faithlab.explainers import explain
from faithlab.metrics.fidelity import remaining
from faithlab.study import figures, tables
from faithlab.study.results import Run
from faithlab.trials import cost
from faithlab.zoo import datasets, models

figures.theme()
run = Run("cost/engine", globals())

# %% [markdown]
# ## The floor
#
# The weights do not matter for the time, so the network is a fresh ResNet-9. The images are CIFAR-10. Each variant adds
# one step: images last in memory order (channels-last), BatchNorm folded into the convolutions, bfloat16 where the
# processor computes it natively.

# %% tags=["hide-input"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(seed)
network = models.build("resnet9", width=width).to(device).eval()
chosen = datasets.load("cifar10", "test").take(slice(images))
x, y = chosen.model_inputs().to(device), chosen.labels.to(device)
native = engine.native_precision(device)


variants = {
    "float32": (network, torch.float32, torch.contiguous_format),
    "+ channels-last": (network, torch.float32, torch.channels_last),
    "+ BatchNorm folded": (engine.prepare(network, x, torch.float32), torch.float32, torch.channels_last),
    f"+ {str(native).removeprefix('torch.')}": (engine.prepare(network, x, native), native, torch.channels_last),
}


def floor(variant, batch, count):
    """So many inputs through a variant of the network, in batches."""
    runner, precision, layout = variants[variant]
    part = x[torch.arange(batch) % images].to(precision).contiguous(memory_format=layout)
    return partial(cost.forwards, runner, part, count)


needed = 2 * images * steps * draws
probe = min(needed, 2048)
rows = []
for _ in range(repeats + 1):
    for variant, (runner, _, layout) in variants.items():
        runner.to(memory_format=layout)  # the first two share one network
        rows += [(variant, batch, probe / cost.seconds(floor(variant, batch, probe))) for batch in batches]
rows = rows[len(variants) * len(batches) :]  # the first round warms up
rates = pd.DataFrame(rows, columns=["variant", "batch", "inputs per second"])
rates = rates.groupby(["variant", "batch"], sort=False)["inputs per second"].median().reset_index()
run.save(rates, "rates")
best = rates.loc[rates["inputs per second"].idxmax()]
Markdown(
    f"The best is *{best['variant'].removeprefix('+ ')}* at {best['batch']} inputs per forward: "
    f"{best['inputs per second']:,.0f} inputs per second. This is the floor below."
)

# %% mystnb={"figure": {"caption": "Bare forwards of ResNet-9 on 32 \u00d7 32 images: inputs per second against inputs per forward. Each line adds one step to the one before it.", "name": "cost-rates"}, "image": {"alt": "Line chart of inputs per second against inputs per forward for four variants of the network; each step of the engine raises the rate."}} tags=["hide-input", "answer"]
figure, axes = plt.subplots()
sns.lineplot(
    rates, x="batch", y="inputs per second", hue="variant", style="variant", markers=True, dashes=False, ax=axes
)
axes.set_xscale("log", base=2)
axes.set(xlabel="inputs per forward", xticks=batches, xticklabels=batches, ylim=(0, None))
axes.get_legend().remove()
figures.key(figure, axes)
figures.show(figure)

# %% [markdown]
# ## F-Fidelity on the engine, and in a plain loop
#
# The engine is given all images at once. The plain loop is how such metrics are usually written: one image after the
# other, one size after the other, the $N$ draws as a batch, float32. Both compute the same numbers up to their random
# subsets. They run in turn with the bare forwards, on the same threads.

# %% tags=["hide-input"]
pixels = segments.pixels(*x.shape[-2:])
attribution = explain("saliency", network, x, y, pixels)
fractions = torch.arange(1, steps + 1, dtype=torch.float64) / (steps + 1)
options = {"alpha": 0.5, "cap": 0.1, "draws": draws, "seed": seed}


def on_the_engine(count, precision):
    """F-Fidelity, both directions, the first `count` images."""
    score = engine.scorer(network, x[:count], y[:count], segments=pixels, readout=readouts.hit, precision=precision)
    for direction in ("MoRF", "LeRF"):
        remaining(score, attribution[:count], fractions, direction=direction, **options)


@torch.inference_mode()
def in_a_loop(count):
    """The same for the first `count` images, one at a time, as published code does it."""
    features = pixels.numel()
    for image, target, scores in zip(x[:count], y[:count], attribution[:count], strict=True):
        order = scores.argsort(descending=True)
        for size in (round(share * features) for share in fractions.tolist()):
            for removable in (order[:size], order[size:]):
                taken = min(round(0.5 * len(removable)), int(0.1 * features))
                masks = torch.ones(draws, features, device=device)
                for mask in masks:
                    mask[removable[torch.randperm(len(removable), device=device)[:taken]]] = 0
                logits = network(image * masks.view(draws, 1, *x.shape[-2:]))
                (logits.argmax(1) == target).float().mean()


network.to(memory_format=torch.contiguous_format)
jobs = {
    "bare forwards (floor)": floor(best["variant"], int(best["batch"]), needed),
    "the engine": partial(on_the_engine, images, native),
    "the engine, in float32": partial(on_the_engine, loop_images, torch.float32),
    "a loop over images, in float32": partial(in_a_loop, loop_images),
}
times = pd.DataFrame(cost.in_turn(jobs, repeats, warm=False), columns=["what", "repeat", "seconds"])
times.loc[times["what"].str.endswith("in float32"), "seconds"] *= images / loop_images  # so many of all images
run.save(times, "times")
summary = times.groupby("what", sort=False)["seconds"].median().to_frame("seconds")
# Ratios of neighbours in time, so that a machine whose speed drifts does not tilt them.
paired = times.pivot(index="repeat", columns="what", values="seconds")
over_floor = paired.div(paired["bare forwards (floor)"], axis=0).median()
summary["times the floor"] = over_floor[summary.index]
summary["inputs per second"] = needed / summary["seconds"]
run.save(summary.reset_index(), "summary")
tables.styled(
    summary.assign(
        **{
            "seconds": summary["seconds"].map("{:.1f}".format),
            "times the floor": summary["times the floor"].map("{:.2f}".format),
            "inputs per second": summary["inputs per second"].map("{:,.0f}".format),
        }
    ).rename_axis(None)
)

# %% tags=["hide-input"]
loop = (paired["a loop over images, in float32"] / paired["the engine"]).median()
like = (paired["a loop over images, in float32"] / paired["the engine, in float32"]).median()
Markdown(
    f"{needed:,} masked inputs: {images} images, {steps} sizes, {draws} draws, two directions. The engine computes in "
    f"{str(native).removeprefix('torch.')} and takes **{over_floor['the engine']:.2f} times the floor**; masks, random "
    f"subsets, sorting and bookkeeping are the rest. The plain loop takes **{loop:.1f} times as long as the engine**. Like "
    f"with like, both in float32, it takes {like:.1f} times as long: the rest of the gain is the number format. The loop is "
    f"{over_floor['a loop over images, in float32']:.1f} times above the floor, and no implementation can gain more than that "
    "on this processor. What runs in float32 was "
    f"timed on {loop_images} images and scaled."
)

# %% [markdown]
# ## What it does not cost
#
# A score call holds one block of masked inputs and one forward's activations, however many images, sizes and draws there
# are; a metric holds masks of at most 32 MiB (or one per image) at a time. The test suite holds 2000 images × 19 sizes to
# 4 GB, and shows that more draws do not need more.

# %% tags=["hide-input"]
run.finish()
