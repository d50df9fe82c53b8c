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
# # How fast is SaCo?
#
# *Is it the number of forwards that costs, or the program around them?* SaCo on the engine beside the plain loop that its algorithm
# is written as, on a convolutional network and a Vision Transformer.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
images = 32
groups = 10  # K
width = 16  # of ResNet-9
training = {}  # what differs from the recipe of the Vision Transformer, such as {"model_options": {"dim": 16}}
repeats = 5  # in turn; the median is reported
seed = 0  # of the networks' weights

# %% tags=["hide-input"]
from functools import partial

import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import baselines, engine
from faithlab.explainers import explain
from faithlab.metrics.saco import saco
from faithstudy import plots, tables
from faithstudy.data import datasets
from faithstudy.networks import models
from faithstudy.recipes import VIT, changed
from faithstudy.run import Run
from faithstudy.trials import cost

plots.theme()
run = Run("cost/saco", globals())

# %% [markdown]
# ## One loop, two networks
#
# A SaCo is $K + 1$ forwards for an image. The plain loop takes one image and one group at a time, as Algorithm 1 is written.
# The engine is given all images and groups at once, in float32 as this book does it, and in the fastest format that the
# processor computes natively. *Bare forwards* are the same number of forwards in full batches and nothing else: what a
# processor takes for these is most of what can be had in that format. All run in turn, on the same threads; the weights do not matter for the time.

# %% tags=["hide-input", "answer"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
native = engine.native_precision(device)
timed = datasets.load("cifar10", "test").take(slice(images))
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
        for i in range(groups):
            group = order[i * len(order) // groups : (i + 1) * len(order) // groups]
            removed = torch.zeros(len(order), dtype=torch.bool, device=device)
            removed[group] = True
            masked = torch.where(removed.view(image.shape[1:]), mean, image)
            salience.append(scores_of[group].sum().item())
            drop.append((whole - network(masked[None]).softmax(1)[0, label]).item())
        signed = total = 0.0
        for i in range(groups - 1):
            for j in range(i + 1, groups):
                weight = salience[i] - salience[j]
                signed += weight if drop[i] >= drop[j] else -weight
                total += abs(weight)
        coefficients.append(signed / total)
    return coefficients


def works(network):
    """What is timed on a network, by name; each gives its coefficients, if it has any."""
    with torch.inference_mode():
        target = network(x).argmax(1)
    attribution = explain("saliency", network, x, target, pixels)
    count = images * (groups + 1)
    work = {"plain loop, float32": lambda: in_a_loop(network, target, attribution)}
    for precision in (torch.float32, native):
        name = str(precision).removeprefix("torch.")
        score = engine.scorer(network, x, target, segments=pixels, baseline=baselines.mean, precision=precision)
        runner = engine.prepare(network, x, precision)
        full = x[torch.arange(count) % images].to(precision).contiguous(memory_format=torch.channels_last)
        work[f"engine, {name}"] = partial(saco, score, attribution, groups)
        work[f"bare forwards, {name}"] = partial(cost.forwards, runner, full, count)
    return work


by_network = {name: works(network.to(device).eval()) for name, network in built.items()}


def measure():
    """The seconds of everything, in turn."""
    jobs = {(name, what): job for name, work in by_network.items() for what, job in work.items()}
    return cost.in_turn(jobs, repeats, ["network", "what"])


times = run.table("times", measure, again="time")
median = times.groupby(["network", "what"], sort=False)["seconds"].median().unstack(0)
paired = times.pivot(index=["network", "repeat"], columns="what", values="seconds")
speedup = (
    paired.rdiv(paired["plain loop, float32"], axis=0)
    .groupby("network")
    .agg(lambda of: cost.Ratio.over_turns(of).value)
    .T
)
both = {"milliseconds per image": 1000 * median / images, "times as fast as the loop": speedup.loc[median.index]}
tidy = median.T.melt(var_name="what", value_name="seconds", ignore_index=False).reset_index()
run.save(tidy.assign(speedup=[speedup.loc[of] for of in zip(tidy["what"], tidy["network"], strict=True)]), "cost")
tables.styled(pd.concat(both, axis=1).map("{:.2f}".format).rename_axis(index=None, columns=[None, None]))

# %% tags=["hide-input"]
fastest = [what for what in median.index if what.startswith("engine")][-1]
short = fastest.removeprefix("engine, ")
agree = {
    name: (torch.tensor(work["plain loop, float32"]()) - work["engine, float32"]().cpu()).abs()
    for name, work in by_network.items()
}
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
    "equal. These networks have random weights, and their losses are nearer to each other than those of trained ones, of which "
    "the page on SaCo's settings says what bfloat16 does. Here "
    + "; ".join(
        f"on {name} {far} of {len(of)} differ{'s' * (far == 1)} by more than 0.001, on a scale from −1 to 1 (the median "
        f"difference is {float(of.median()):.4f}, the largest {float(of.max()):.2f})"
        for name, of in agree.items()
        for far in [int((of > 0.001).sum())]
    )
    + "."
)

# %% tags=["hide-input", "headline"]
turns = times.pivot(index="repeat", columns=["network", "what"], values="seconds")
LOOP, ENGINE = "plain loop, float32", "engine, float32"
faster = {of: cost.Ratio.over_turns(turns[of, LOOP] / turns[of, ENGINE]) for of in built}
Markdown(
    f"On the engine the SaCo of {images} images with {groups} groups, {images * (groups + 1)} forwards, is "
    + " and ".join(f"**{ratio}** times as fast on a {of}" for of, ratio in faster.items())
    + f" as in a plain loop over images and groups, both in float32. All was timed on one machine ({run.machine}), in {len(turns)} turns."
)

# %% tags=["hide-input"]
run.finish()
