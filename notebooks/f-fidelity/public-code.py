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
# # The paper and its public code
#
# In six places the authors' code does something else than their paper says. *Does it matter?* Each difference is switched
# on here, alone, and F-Fidelity ranks the same degraded explainers again. The list itself, with what we do and why, is on
# [](../../book/f-fidelity/deviations).

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "cifar10"
width = 16  # of ResNet-9; the paper uses 64
epochs = 3  # of training
tuning_epochs = 1  # of fine-tuning on random masks
rate = 0.01  # peak learning rate
tuning_rate = 0.001
decay = 1e-5
schedule = "cycle"
train_limit = None  # training images; None: all
images = 48  # test images to explain
noise_shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
seeds = [0]  # of the noise
size_step = 0.1  # between the explanation sizes, a share of the pixels; 0.05 in the paper
alpha = 0.5
beta = 0.1
draws = 4  # random subsets per image, size and direction; the paper draws 50
smooth_samples = 16  # noisy copies per image in SG-SQ
precision = "bfloat16"  # of training and forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import dataclasses

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, masks, readouts
from faithlab.explainers import explain
from faithlab.metrics.fidelity import remaining
from faithlab.study import figures, networks, tables, trials
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.training import trained

figures.theme()
run = Run("f-fidelity/public-code", globals())

# %% tags=["hide-input"]
recipes = networks.pair(
    data,
    "resnet9",
    {"width": width},
    epochs=epochs,
    tuning_epochs=tuning_epochs,
    rate=rate,
    tuning_rate=tuning_rate,
    decay=decay,
    schedule=schedule,
    train_limit=train_limit,
    beta=beta,
    precision=precision,
    seed=seed,
)
recipes["first channel"] = dataclasses.replace(recipes["fine-tuned"], mask_channels=1)
models = {name: trained(recipe) for name, recipe in recipes.items()}
device = next(models["original"].parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
test = datasets.load(data, "test").take(slice(images))
x, y = test.model_inputs().to(device), test.labels.to(device)
pixels = test.features()
explainers = {"SG-SQ": ("smoothgrad-squared", {"samples": smooth_samples, "seed": seed}), "GradCAM": ("gradcam", {})}
attributions = {
    name: {
        label: explain(explainer, models[name], x, y, pixels, **options)
        for label, (explainer, options) in explainers.items()
    }
    for name in ("original", "fine-tuned")
}
score = {
    name: engine.scorer(models[name], x, y, segments=pixels, readout=readouts.hit, precision=fast)
    for name in ("fine-tuned", "first channel")
}

# %% [markdown]
# ## One difference at a time
#
# - **sizes**: each size is one hundredth of the pixels too large (6 % for 5 %, 11 % for 10 %, and so on).
# - **subset**: each pixel is removed with a probability, so that the number removed varies.
# - **channel**: fine-tuning masks only the first colour channel.
# - **random top**: the example that is advertised for use as a metric draws its "top" pixels at random, and its cap never
#   acts. It does not see the explanation at all, so that every explainer must score the same: no order, no correlation.
# - **explained network**: F-Fidelity judges explanations of the fine-tuned network, not of the original.
#
# The sixth difference, one image at a time, changes no number but the time; see [](../cost/engine).

# %% tags=["hide-input"]
fractions = torch.arange(1, round(1 / size_step), dtype=torch.float64) * size_step
usual = {"alpha": alpha, "cap": beta, "draws": draws, "seed": seed}
anything = explain("random", models["original"], x, y, pixels, seed=seed + 1)


def without_looking(attribution):
    """The advertised example: a random "top", no cap; the attribution is not used."""
    options = {"alpha": alpha, "draws": draws, "seed": seed}
    return (
        remaining(score["fine-tuned"], anything, fractions, **options),
        remaining(score["fine-tuned"], -anything, 1 - fractions, **options),
    )


variants = {
    "as in the paper": ("original", trials.morf_and_lerf(score["fine-tuned"], fractions, **usual)),
    "sizes": ("original", trials.morf_and_lerf(score["fine-tuned"], (fractions + 0.01).clamp(max=1), **usual)),
    "subset": (
        "original",
        trials.morf_and_lerf(score["fine-tuned"], fractions, subset=masks.remove_each_from_top, **usual),
    ),
    "channel": ("original", trials.morf_and_lerf(score["first channel"], fractions, **usual)),
    "random top": ("original", without_looking),
    "explained network": ("fine-tuned", trials.morf_and_lerf(score["fine-tuned"], fractions, **usual)),
}
curves = pd.concat(
    [
        trials.degraded_curves({name: metric}, attributions[explained], noise_shares, fractions, seeds)
        for name, (explained, metric) in variants.items()
    ],
    ignore_index=True,
)
run.save(curves, "curves")
measured = trials.correlations(curves)
measured = measured[measured["level"] != "micro_rank"]
run.save(measured, "correlations")

# %% tags=["hide-input"]
tables.styled(
    tables.side_by_side(
        {"this build": measured[measured["level"] == "macro_correlation"]},
        rows=["metric"],
        columns=["explainer", "comparison"],
        order=[*variants, "MoRF vs GT"],
    )
)

# %% [markdown]
# Macro correlations above, micro correlations (mean and standard deviation over the sizes) below. The ideal is −1, +1, −1.

# %% tags=["hide-input"]
tables.styled(
    tables.side_by_side(
        {"this build": measured[measured["level"] == "micro_correlation"]},
        rows=["metric"],
        columns=["explainer", "comparison"],
        order=[*variants, "MoRF vs GT"],
    )
)

# %% mystnb={"figure": {"caption": "How far each difference moves the curve of the undegraded explanation: remaining accuracy under MoRF, the difference from the paper's definition.", "name": "ff-public-code-shift"}, "image": {"alt": "Two line charts, one per explainer: explanation size against the change in remaining accuracy, one line for each difference."}} tags=["hide-input"]
clean = curves[(curves["share"] == 0) & (curves["direction"] == "MoRF")]
table = clean.pivot(index=["explainer", "fraction"], columns="metric", values="value")
shift = table.sub(table["as in the paper"], axis=0).drop(columns="as in the paper")
shift = shift.reset_index().melt(["explainer", "fraction"], var_name="difference", value_name="change")
run.save(shift, "shift")
grid = sns.relplot(
    shift,
    x="fraction",
    y="change",
    hue="difference",
    style="difference",
    markers=True,
    dashes=False,
    col="explainer",
    kind="line",
    height=3,
    aspect=1.05,
)
for axes in grid.axes.flat:
    axes.axhline(0, color="0.4", linewidth=0.8)
grid.set_titles("{col_name}").set_axis_labels("size (share of pixels)", "change of accuracy")
plt.close(grid.figure)
grid.figure

# %% tags=["hide-input"]
moved = shift.groupby("difference")["change"].apply(lambda change: change.abs().max()).sort_values()
error = curves["error"].max()
Markdown(
    "Largest change of a point: "
    + ", ".join(f"{name} {value:.3f}" for name, value in moved.items())
    + f". For scale, the largest Monte-Carlo standard error of a point is {error:.3f}, and one of {images} images is "
    f"{1 / images:.3f}."
)

# %% tags=["hide-input"]
run.finish()
