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
# # How much masking a network bears
#
# *Why fine-tune at all?* A metric that removes features shows the network inputs that it never met in training. This page
# measures what random masking alone costs: no explanation is involved. It is the paper's Table 8 for images and its
# Figure 1.

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
betas = [0.05, 0.1, 0.2, 0.5]  # largest share of pixels masked in fine-tuning, one network each
beta = 0.1  # of F-Fidelity
sweep_limit = 6000  # training images for the networks of the sweep over beta; None: all
images = 500  # test images
masked = [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]  # share of pixels missing at test time
largest = 0.5  # the largest explanation size that the advice is for
precision = "bfloat16"  # of training and forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import dataclasses

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch

from faithlab import engine, readouts
from faithlab.metrics.robustness import advise, robustness
from faithlab.study import claims, f_fidelity, figures, networks, published, tables
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.training import logits, trained

figures.theme()
run = Run("f-fidelity/robustness", globals())

# %% [markdown]
# ## Networks
#
# One network is trained as usual. From its weights others are fine-tuned on images that lack up to a share $\beta$ of
# their pixels, chosen at random. $\beta = 0$ is the original.

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
sweep = {
    share: dataclasses.replace(recipes["fine-tuned"], mask_share=share, limit=sweep_limit or train_limit)
    for share in betas
}
tested = {"original": recipes["original"], "fine-tuned": recipes["fine-tuned"]}
tested |= {f"beta {share:g}": recipe for share, recipe in sweep.items()}
models = {name: trained(recipe) for name, recipe in tested.items()}
device = next(models["original"].parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32

test = datasets.load(data, "test").take(slice(images))
x, y = test.model_inputs().to(device), test.labels.to(device)
pixels = test.features()
predicted = logits(models["original"], x).argmax(1)
shares = torch.tensor(masked, dtype=torch.float64)
rows, hits = [], {}
for name, model in models.items():
    for measure, target in (("accuracy", y), ("agreement", predicted)):
        score = engine.scorer(model, x, target, segments=pixels, readout=readouts.hit, precision=fast)
        answers = robustness(score, (len(x), pixels.numel()), shares, seed=seed)
        hits[name, measure] = answers
        rows += [(name, measure, share, value) for share, value in zip(masked, answers.mean(0).tolist(), strict=True)]
curves = pd.DataFrame(rows, columns=["network", "measure", "masked", "value"])
run.save(curves, "curves")

# %% [markdown]
# ## Table 8, images
#
# Accuracy with a random share of the pixels set to the mean colour. *Published* is the paper's ResNet on CIFAR-100; the
# rows for time series and text are on their own pages, all of them together on [](../../book/f-fidelity/guideline).

# %% tags=["hide-input"]
table8 = curves[(curves["measure"] == "accuracy") & curves["network"].isin(["original", "fine-tuned"])]
table8 = table8[table8["masked"].isin([0.0, 0.05, 0.1])].drop(columns="measure").rename(columns={"value": "accuracy"})
table8 = table8.assign(dataset="CIFAR-10", architecture="ResNet")
run.save(table8, "robustness")
paper = published.load("ffidelity_robustness").query("dataset == 'CIFAR-100' and architecture == 'ResNet'")
paper = paper.rename(columns={"model": "network", "masked_fraction": "masked", "accuracy": "mean"})
tables.styled(
    tables.side_by_side(
        {"published": paper, "this build": table8.rename(columns={"accuracy": "mean"})},
        rows=["network"],
        columns=["masked"],
    )
)

# %% [markdown]
# ## Figure 1: the price of a larger β
#
# Fine-tuning with a larger $\beta$ makes a network bear more. It also moves it away from the original: *agreement* is the
# share of images to which both give the same class. F-Fidelity wants both: robust up to $\beta$, and still the model that
# was to be explained.

# %% mystnb={"figure": {"caption": "Left: accuracy on test images that lack a random share of their pixels. Right: agreement with the original network's answer to the whole image. One line for each beta of fine-tuning; 0 is the original.", "name": "ff-robustness-beta"}, "image": {"alt": "Two line charts against the share of masked pixels, accuracy and agreement, one line for each beta."}} tags=["hide-input"]
shown = curves[curves["network"] != "fine-tuned"].copy()
shown["β"] = shown["network"].str.removeprefix("beta ").replace("original", "0").astype(float)
grid = sns.relplot(
    shown,
    x="masked",
    y="value",
    hue="β",
    style="β",
    markers=True,
    dashes=False,
    palette="viridis",
    col="measure",
    kind="line",
    height=3.2,
    aspect=1.05,
)
grid.set_titles("{col_name}").set_axis_labels("share of pixels masked at random", "share of test images")
plt.close(grid.figure)
grid.figure

# %% [markdown]
# ## What this warrants
#
# {py:func}`faithlab.metrics.robustness.advise` reads such a curve and names the simplest metric whose masks the network
# bears. It asks for two standard errors of room, so that few images do not pass for robustness.

# %% tags=["hide-input"]
advice = pd.DataFrame(
    [
        {"network": name, **advise(hits[name, "accuracy"], shares, largest=largest, beta=beta)._asdict()}
        for name in models
    ]
)
run.save(advice, "advice")
tables.prose(advice[["network", "metric", "reason"]])

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(f_fidelity.ROBUSTNESS, {"curves": curves})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
