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
# # Does fine-tuning change what the network looks at?
#
# F-Fidelity judges explanations of one network by asking another, its fine-tuned copy. That is fair only if both look at
# the same things. The paper shows Grad-CAM pictures of both (Table 9). We show them too, and measure how alike the
# explanations are, for several explainers.

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
other_limit = 10000  # training images of the network for comparison; None: all
other_epochs = 2
images = 256  # test images to explain
beta = 0.1
explainers = ["gradcam", "layercam", "smoothgrad-squared", "saliency", "input-x-gradient"]
precision = "bfloat16"  # of training, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import dataclasses

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch

from faithlab import stats
from faithlab.explainers import explain
from faithlab.study import claims, f_fidelity, figures, networks, tables
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.training import logits, trained

figures.theme()
run = Run("f-fidelity/fine-tuning", globals())

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
models = {name: trained(recipe) for name, recipe in recipes.items()}
# For scale: a network that shares the task with the original, and no weights.
models["other seed"] = trained(
    dataclasses.replace(recipes["original"], seed=seed + 1, epochs=other_epochs, limit=other_limit or train_limit)
)
device = next(models["original"].parameters()).device
test = datasets.load(data, "test").take(slice(images))
x, y = test.model_inputs().to(device), test.labels.to(device)
pixels = test.features()
maps = {
    (name, explainer): explain(explainer, model, x, y, pixels)
    for name, model in models.items()
    for explainer in explainers
}

# %% [markdown]
# ## Pictures (Table 9)

# %% mystnb={"figure": {"caption": "Test images, and Grad-CAM of the original network and of the fine-tuned one for the true class.", "name": "ff-fine-tuning-maps"}, "image": {"alt": "Three rows of pictures: photographs, Grad-CAM maps of the original network, Grad-CAM maps of the fine-tuned network."}} tags=["hide-input"]
right = (logits(models["original"], x).argmax(1) == y) & (logits(models["fine-tuned"], x).argmax(1) == y)
shown = right.nonzero().flatten()[:8].cpu()
figure, grid = plt.subplots(3, max(len(shown), 1), figsize=(8.2, 3.4), squeeze=False)
for column, image in enumerate(shown.tolist()):
    grid[0, column].imshow(test.inputs[image].permute(1, 2, 0))
    for row, name in ((1, "original"), (2, "fine-tuned")):
        grid[row, column].imshow(maps[name, explainers[0]][image].cpu().view(x.shape[-2:]), cmap="magma")
for row, label in zip(grid, ("image", "original", "fine-tuned"), strict=True):
    row[0].set_ylabel(label)
for axes in grid.flat:
    axes.set(xticks=[], yticks=[])
    sns.despine(ax=axes, left=True, bottom=True)
figures.show(figure)

# %% [markdown]
# ## Numbers
#
# For each image, Spearman's correlation between the explanation of the original network and that of another network. The
# fine-tuned copy should be close to 1. A network trained apart, from another seed, shows what the same task alone brings
# about.

# %% tags=["hide-input"]
rows = []
for name in ("fine-tuned", "other seed"):
    for explainer in explainers:
        rho = stats.spearman(maps["original", explainer], maps[name, explainer])
        present = rho[~rho.isnan()]
        half = 1.96 * present.std() / max(len(present), 1) ** 0.5
        rows.append((explainer, name, present.mean().item(), half.item(), int(rho.isnan().sum()), len(rho)))
alike = pd.DataFrame(rows, columns=["explainer", "compared with", "mean", "half interval", "missing", "images"])
run.save(alike, "alike")
table = alike.assign(
    text=[
        f"{m:.2f} ± {h:.2f}" + (f" ({k} missing)" if k else "")
        for m, h, k in alike[["mean", "half interval", "missing"]].to_numpy()
    ]
).pivot(index="explainer", columns="compared with", values="text")
tables.styled(table.loc[explainers].rename_axis(index=None, columns=None))

# %% [markdown]
# *±* is half of a 95 % interval over the images. *Missing*: an explanation without any order, such as a Grad-CAM map
# that is zero everywhere.

# %% mystnb={"figure": {"caption": "Rank correlation between explanations of the original network and of another one, mean over the images with 95 % intervals.", "name": "ff-fine-tuning-alike"}, "image": {"alt": "Bar chart: explainers against rank correlation, one bar for the fine-tuned network and one for a network from another seed."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.2, 3))
places = torch.arange(len(explainers)).numpy()
for shift, (name, part) in zip((-0.2, 0.2), alike.groupby("compared with", sort=False), strict=True):
    axes.bar(places + shift, part["mean"], 0.38, yerr=part["half interval"], label=name, capsize=3)
axes.set(xticks=places, xticklabels=explainers, ylabel="rank correlation", ylim=(min(0, alike["mean"].min()), 1))
axes.tick_params(axis="x", labelsize="small")
axes.legend(title="compared with", loc="center left", bbox_to_anchor=(1.0, 0.5))
figures.show(figure)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(f_fidelity.FINE_TUNING, {"alike": alike})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
