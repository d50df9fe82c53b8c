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
# # The same question to a Vision Transformer
#
# Convolutions and attention break in different ways when pixels are missing. The paper repeats its image experiment with a
# Vision Transformer and SmoothGrad-squared (Table 5). So does this page. What the metrics are and how they are compared is
# told on [](images).

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "cifar10"
dim = 64  # width of the network; the paper uses 128
depth = 6
heads = 4  # the paper uses 8
patch = 4
epochs = 3  # of training
tuning_epochs = 1  # of fine-tuning on random masks
rate = 0.002  # peak learning rate
tuning_rate = 0.0003
decay = 1e-5
schedule = "cycle"
train_limit = 12000  # training images; None: all
images = 48  # test images to explain
noise_shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
seeds = [0, 1]  # of the noise; the paper has five
size_step = 0.1  # between the explanation sizes, a share of the pixels; 0.05 in the paper
alpha = 0.5
beta = 0.1
draws = 4  # random subsets per image, size and direction; the paper draws 50
smooth_samples = 8  # noisy copies per image in SG-SQ
roar_limit = 2000  # training images for ROAR; None: all
roar_epochs = 2
roar_rate = 0.0005
roar_fresh = False  # retrain from fresh weights, as the paper does; else from the original's, which needs fewer images
roar_samples = 4  # noisy copies per training image in SG-SQ
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import dataclasses

import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import engine, readouts
from faithlab.explainers import explain
from faithlab.metrics.robustness import robustness
from faithlab.study import claims, f_fidelity, figures, networks, published, tables, trials
from faithlab.study.results import Run, recorded
from faithlab.trials import roar
from faithlab.zoo import datasets
from faithlab.zoo.training import accuracy, trained

figures.theme()
run = Run("f-fidelity/vision-transformer", globals())

# %% tags=["hide-input"]
recipes = networks.pair(
    data,
    "vit",
    {"dim": dim, "depth": depth, "heads": heads, "patch": patch},
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
models = {name: trained(recipe) for name, recipe in recipes.items()}
retraining = dataclasses.replace(
    recipes["original"],
    epochs=roar_epochs,
    rate=roar_rate,
    limit=roar_limit,
    start=None if roar_fresh else recipes["original"],
)
options = {"samples": roar_samples, "seed": seed}
models["retrained"] = roar.retrained(retraining, recipes["original"], "smoothgrad-squared", **options)
device = next(models["original"].parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
test = datasets.load(data, "test")
whole = {name: accuracy(model, test) for name, model in models.items()}

some = test.take(slice(max(images, min(500, 10 * images))))
pixels = test.features()
masked = torch.tensor([0.0, 0.05, 0.1], dtype=torch.float64)
x, y = some.model_inputs().to(device), some.labels.to(device)
rows = [
    ("CIFAR-10", "ViT", name, share, value)
    for name in ("original", "fine-tuned")
    for score in [engine.scorer(models[name], x, y, segments=pixels, readout=readouts.hit, precision=fast)]
    for share, value in zip(
        masked.tolist(), robustness(score, (len(x), pixels.numel()), masked, seed=seed).mean(0).tolist(), strict=True
    )
]
bears = pd.DataFrame(rows, columns=["dataset", "architecture", "network", "masked", "accuracy"])
run.save(bears, "robustness")
at = bears.set_index(["network", "masked"])["accuracy"]
Markdown(
    f"The transformer recognises **{whole['original']:.1%}** of the test images, fine-tuned **{whole['fine-tuned']:.1%}**, "
    f"retrained by ROAR {whole['retrained']:.1%}. With a tenth of the pixels gone at random, the original falls from "
    f"{at['original', 0.0]:.1%} to {at['original', 0.1]:.1%} and the fine-tuned one from {at['fine-tuned', 0.0]:.1%} to "
    f"{at['fine-tuned', 0.1]:.1%} (on {len(some)} images)."
)

# %% tags=["hide-input"]
chosen = test.take(slice(images))
x, y = chosen.model_inputs().to(device), chosen.labels.to(device)
attributions = {
    "SG-SQ": explain("smoothgrad-squared", models["original"], x, y, pixels, samples=smooth_samples, seed=seed)
}
fractions = torch.arange(1, round(1 / size_step), dtype=torch.float64) * size_step
score = {
    name: engine.scorer(model, x, y, segments=pixels, readout=readouts.hit, precision=fast)
    for name, model in models.items()
}
metrics = trials.fidelities(
    score["original"],
    score["fine-tuned"],
    score["retrained"],
    fractions,
    alpha=alpha,
    beta=beta,
    draws=draws,
    seed=seed,
)
curves = trials.degraded_curves(metrics, attributions, noise_shares, fractions, seeds)
run.save(curves, "curves")

# %% mystnb={"figure": {"caption": "Accuracy that remains when the most relevant pixels are removed (MoRF), for SG-SQ with more and more noise. The scales differ: F-Fidelity removes at most a tenth of the pixels.", "name": "ff-vit-curves"}, "image": {"alt": "Four line charts, one per metric: share of pixels named against remaining accuracy, one line for each share of noise."}} tags=["hide-input"]
figures.noise_curves(curves, size="size (share of pixels)")

# %% [markdown]
# ## Table 5
#
# *Published* is CIFAR-100 with the paper's transformer. The ideal is −1 for MoRF against the truth, +1 for LeRF, −1 for MoRF
# against LeRF.

# %% tags=["hide-input"]
measured = trials.correlations(curves)
run.save(measured, "correlations")
kept = recorded("f-fidelity/vision-transformer", "correlations")
paper = published.load("ffidelity_correlations").query("table == 5 and dataset == 'CIFAR-100'")
sources = {"published": paper, "recorded": kept.frame if kept else None, "this build": measured}
tables.styled(
    tables.side_by_side(
        {name: frame for name, frame in sources.items() if frame is not None},
        rows=["level", "comparison", "metric"],
        columns=["explainer"],
        order=trials.ORDER,
    )
)

# %% tags=["hide-input"]
before = recorded("f-fidelity/vision-transformer", "robustness")
was = before.frame.set_index(["network", "masked"])["accuracy"] if before else None
Markdown(
    f"*Recorded* is a run of the `{before.profile}` profile. Its network recognises {was['original', 0.0]:.1%} of these test "
    f"images, and {was['original', 0.1]:.1%} with a tenth of the pixels gone at random; fine-tuned, "
    f"{was['fine-tuned', 0.0]:.1%} and {was['fine-tuned', 0.1]:.1%}. Compare this, and its column, with the network above."
    if before
    else "No run has been recorded."
)

# %% mystnb={"figure": {"caption": "Rank correlation of each metric with the true order at every explanation size, under MoRF, averaged over the seeds of the noise. The dashed line is the ideal. Missing points are sizes without a correlation.", "name": "ff-vit-micro"}, "image": {"alt": "Line chart: explanation size against micro correlation, one line for each metric."}} tags=["hide-input"]
figures.correlations_by_size(curves, size="explanation size (share of pixels)")

# %% tags=["hide-input"]
reach = curves.pivot(index=["metric", "seed", "direction", "fraction"], columns="share", values="value")
reach = (reach.max(axis=1) - reach.min(axis=1)).groupby("metric").median()
Markdown(
    f"How much there is to tell apart: at one size the best and the worst explainer differ by {reach['Fidelity']:.2f} of "
    f"accuracy in the median with Fidelity, by {reach['R-Fidelity']:.2f} with R-Fidelity and by {reach['F-Fidelity']:.2f} with "
    f"F-Fidelity, and one of {images} images is {1 / images:.3f}. Random masking of {masked[-1]:.0%} of the pixels costs the "
    f"original network {at['original', 0.0] - at['original', 0.1]:+.1%} of accuracy. Where that is next to nothing, "
    "F-Fidelity, which never removes more, has next to nothing to measure, and the paper's own guideline says to use plain "
    "Fidelity."
)

# %% [markdown]
# [](../../book/f-fidelity/guideline.md) is a page of its own.
#
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(f_fidelity.TRANSFORMER, {"correlations": measured})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
