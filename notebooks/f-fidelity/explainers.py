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
# # Two real explainers compared
#
# *Which explains better, Grad-CAM or a saliency map?* So far the explainers were one explanation with more and more
# noise. Here F-Fidelity compares two real ones, as the paper does in appendix D.10. Grad-CAM points at regions, the
# saliency map at single pixels. The paper does this on Tiny-ImageNet (Table 11) and on ImageNet (Table 12); here it is
# done on CIFAR-10 and on photographs of ImageNet.

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
images = 512  # test images to explain
photographs = "imagenet-foolbox"  # or imagenet-folder
photographs_path = None  # of imagenet-folder: the folder that they lie in
photographs_limit = None  # of imagenet-folder: so many of them, drawn at random; 5000 in the paper
photographs_judged = 20  # so many of these, drawn at random; 500 in the paper
network = "efficientnet-lite0"  # pretrained on ImageNet; resnet18 in the paper
photographs_epochs = 6  # of fine-tuning on random masks, on the same photographs
photographs_rate = 0.0001
size_step = 0.1  # between the explanation sizes, a share of the pixels; 0.05 in the paper
alpha = 0.5
beta = 0.1
draws = 4  # random subsets per image, size and direction; the paper draws 50
photographs_draws = 4  # the same for photographs
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import dataclasses

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, readouts
from faithlab.explainers import explain
from faithlab.metrics.fidelity import fidelity
from faithlab.study import claims, f_fidelity, figures, published, tables
from faithlab.study.results import Run, recorded
from faithlab.zoo import datasets, pretrained
from faithlab.zoo.training import Recipe, accuracy, trained

figures.theme()
run = Run("f-fidelity/explainers", globals())
EXPLAINERS = {"GradCAM": "gradcam", "Saliency": "saliency"}
SMALL, LARGE = "small images", "photographs"

# %% [markdown]
# ## Two scores for an explanation
#
# FFid+ is the accuracy that is lost when a part of the most relevant pixels is removed: the higher, the better. FFid− is
# the accuracy that is lost when a part of the other pixels is removed: the lower, the better. Both are averaged over the
# explanation sizes. At most a tenth of the pixels is removed, from a network that was fine-tuned on such images.
#
# Both explainers explain the true class to the original network. An image that the fine-tuned network gets wrong as a
# whole, and right when pixels are gone, has a negative score.

# %% tags=["hide-input"]
fractions = torch.arange(1, round(1 / size_step), dtype=torch.float64) * size_step


def measure(setting, original, tuned, chosen, draws):
    """The explanations by explainer, and both scores of each image at each size: tidy."""
    device = next(original.parameters()).device
    x, y, pixels = chosen.model_inputs().to(device), chosen.labels.to(device), chosen.features()
    fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
    score = engine.scorer(tuned, x, y, segments=pixels, readout=readouts.hit, precision=fast)
    attributions, rows = {}, []
    for name, explainer in EXPLAINERS.items():
        attributions[name] = a = explain(explainer, original, x, y, pixels)
        options = {"alpha": alpha, "cap": beta, "draws": draws, "seed": seed}
        losses = {
            "FFid+": fidelity(score, a, fractions, direction="MoRF", **options),
            "FFid-": fidelity(score, a, fractions, direction="LeRF", **options),
        }
        rows += [
            pd.DataFrame(loss.value.cpu().numpy(), columns=fractions.numpy().round(6))
            .rename_axis(index="image")
            .reset_index()
            .melt("image", var_name="size", value_name="value")
            .assign(setting=setting, explainer=name, measure=which)
            for which, loss in losses.items()
        ]
    return {name: a.cpu() for name, a in attributions.items()}, pd.concat(rows, ignore_index=True)


# %% [markdown]
# ## Small images
#
# The networks are those of [the page before](images): ResNet-9 on CIFAR-10, and the same network fine-tuned on random
# masks.

# %% tags=["hide-input"]
original = Recipe(
    data=data,
    model="resnet9",
    model_options={"width": width},
    epochs=epochs,
    rate=rate,
    decay=decay,
    schedule=schedule,
    limit=train_limit,
    augment=True,
    precision=precision,
    seed=seed,
)
tuned = dataclasses.replace(original, epochs=tuning_epochs, rate=tuning_rate, mask_share=beta, start=original)
small = datasets.load(data, "test").take(slice(images))
networks = {SMALL: (trained(original), trained(tuned))}
explanations, scores = {}, {}
explanations[SMALL], scores[SMALL] = measure(SMALL, *networks[SMALL], small, draws)

# %% [markdown]
# ## Photographs
#
# The second network was trained on ImageNet by others. As in the paper's appendix D.10 it is fine-tuned on random masks
# of the *same* photographs on which the explainers are compared. That network is fit for this comparison only.

# %% tags=["hide-input"]
folder = {"path": photographs_path, "limit": photographs_limit} if photographs == "imagenet-folder" else {}
every = datasets.load(photographs, "test", **folder)
picked = torch.randperm(len(every), generator=torch.Generator().manual_seed(seed))[:photographs_judged].sort().values
large = every.take(picked)
tuning = Recipe(
    data=photographs,
    data_options=folder,
    model="pretrained",
    model_options={"weights": network},
    epochs=photographs_epochs,
    rate=photographs_rate,
    decay=decay,
    schedule="constant",
    mask_share=beta,
    precision=precision,
    seed=seed,
)
device = next(networks[SMALL][0].parameters()).device
networks[LARGE] = (pretrained.load(network).to(device), trained(tuning))
explanations[LARGE], scores[LARGE] = measure(LARGE, *networks[LARGE], large, photographs_draws)

judged = {SMALL: small, LARGE: large}
right = {setting: [accuracy(n, judged[setting], rows=64) for n in pair] for setting, pair in networks.items()}
Markdown(
    "\n".join(
        f"- *{setting}*: {len(judged[setting])} images; the original network gets {before:.1%} of them right, the "
        f"fine-tuned one {after:.1%}."
        for setting, (before, after) in right.items()
    )
)

# %% [markdown]
# ## The scores at every size

# %% tags=["hide-input"]
each = pd.concat(scores.values(), ignore_index=True)
curves = each.groupby(["setting", "measure", "explainer", "size"], sort=False)["value"].mean().reset_index()
run.save(curves, "curves")

# %% mystnb={"figure": {"caption": "Accuracy lost when a random part of the pixels that an explainer calls relevant is removed (FFid+, higher is better), and when a part of the others is (FFid\u2212, lower is better), against the explanation size. The scales differ.", "name": "ff-explainers-curves"}, "image": {"alt": "Four line charts, settings by scores: explanation size against lost accuracy, one line each for Grad-CAM and the saliency map."}} tags=["hide-input"]
grid = sns.relplot(
    curves.replace({"measure": {"FFid-": "FFid−"}}),
    x="size",
    y="value",
    hue="explainer",
    style="explainer",
    markers=True,
    dashes=False,
    row="setting",
    col="measure",
    kind="line",
    height=2.4,
    aspect=1.4,
    facet_kws={"sharey": "row"},
)
grid.set_titles("{row_name}: {col_name}").set_axis_labels("size (share of pixels)", "lost accuracy")
sns.move_legend(grid, "upper center", bbox_to_anchor=(0.45, 1.06), ncols=2, title=None)
plt.close(grid.figure)
grid.figure

# %% [markdown]
# ## Published and measured
#
# *Published* are the paper's averages: Tiny-ImageNet with ResNet-9 under *small images*, 500 photographs of ImageNet with
# ResNet-18 under *photographs*. Our data, and in the quick profile our networks, are others, so only the order of the two
# explainers is to be compared. Behind ± is the standard error over the images.

# %% tags=["hide-input"]
per_image = each.groupby(["setting", "measure", "explainer", "image"], sort=False)["value"].mean().reset_index()
run.save(per_image, "per_image")
averages = per_image.groupby(["setting", "measure", "explainer"], sort=False)["value"].agg(["mean", "sem"])
averages = averages.rename(columns={"sem": "std"}).reset_index()
run.save(averages.rename(columns={"std": "error"}), "averages")
paper = published.load("ffidelity_explainers").rename(columns={"value": "mean"})
paper["setting"] = paper["table"].map({11: SMALL, 12: LARGE})
kept = recorded("f-fidelity/explainers", "averages")
sources = {
    "published": paper,
    "recorded": kept.frame.rename(columns={"error": "std"}) if kept else None,
    "this build": averages,
}
tables.styled(
    tables.side_by_side(
        sources, rows=["measure", "explainer"], columns=["setting"], order=[*EXPLAINERS, SMALL, LARGE], digits=4
    )
)

# %% [markdown]
# An image that is hard for one explainer is often hard for the other. So the two are compared image by image.

# %% tags=["hide-input"]
wide = per_image.pivot(index=["setting", "measure", "image"], columns="explainer", values="value")
differences = (wide["GradCAM"] - wide["Saliency"]).groupby(["setting", "measure"], sort=False)
differences = differences.agg(["mean", "sem", "size"]).set_axis(["difference", "error", "images"], axis=1)
differences = differences.loc[[SMALL, LARGE]].reset_index()
run.save(differences, "differences")


def told(row):
    """One comparison as a sentence."""
    better = row["difference"] > 0 if row["measure"] == "FFid+" else row["difference"] < 0
    clear = abs(row["difference"]) > 2 * row["error"]
    verdict = f"{'Grad-CAM' if better else 'the saliency map'} is better" if clear else "no clear difference"
    name = row["measure"].replace("-", "−")
    return f"- *{row['setting']}*, {name}: {row['difference']:+.4f} ± {row['error']:.4f} ({verdict})"


Markdown(
    "Grad-CAM minus saliency map, mean and standard error over the images. A difference is called clear where it is more "
    "than two standard errors.\n\n" + "\n".join(told(row) for row in differences.to_dict("records")).replace(" -", " −")
)


# %% [markdown]
# ## Five cases each
#
# The first five images that the original network gets right and whose scores are not all zero, with both explanations
# (brighter is more relevant). An image that is recognised whatever is removed of it has scores of zero.


# %% tags=["hide-input"]
def cases(setting, count=5):
    """A figure of images and explanations with the scores of each."""
    chosen, (original, _) = judged[setting], networks[setting]
    values = per_image[per_image["setting"] == setting].set_index(["explainer", "measure", "image"])["value"]
    moved = values.abs().groupby("image").max()
    candidates = [*moved.index[moved > 0], *moved.index[moved == 0]]  # the others come where there are too few
    some = chosen.take(candidates[:64])
    with torch.no_grad():
        found = original(some.model_inputs().to(device)).argmax(1).cpu() == some.labels
    recognised = [i for i, right in zip(candidates, found.tolist(), strict=False) if right]
    shown = recognised[:count] or candidates[:1]
    figure, grid = plt.subplots(3, len(shown), figsize=(7.2, 5.4), squeeze=False)
    for column, i in zip(grid.T, shown, strict=True):
        image = chosen.inputs[i].permute(1, 2, 0)
        column[0].imshow(image)
        column[0].set_title(chosen.classes[int(chosen.labels[i])], fontsize="small", fontweight="normal")
        for axes, name in zip(column[1:], EXPLAINERS, strict=True):
            relevance = explanations[setting][name][i].view(image.shape[:2])
            axes.imshow(relevance, cmap="magma", vmax=relevance.quantile(0.99).item() or None)
            plus, minus = (values[name, which, i] for which in ("FFid+", "FFid-"))
            scored = f"FFid+ {plus:.3f}\nFFid− {minus:.3f}".replace("-", "−")
            axes.set_title(scored, fontsize="small", fontweight="normal")
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[])
        sns.despine(ax=axes, left=True, bottom=True)
    for row, name in zip(grid, ["image", *EXPLAINERS], strict=True):
        row[0].set_ylabel(name)
    return figures.show(figure)


# %% mystnb={"figure": {"caption": "Small images: five cases, with the scores of each image averaged over the explanation sizes.", "name": "ff-explainers-small"}, "image": {"alt": "Three rows of five small pictures: photographs, their Grad-CAM maps and their saliency maps, with two scores under each map."}} tags=["hide-input"]
cases(SMALL)

# %% mystnb={"figure": {"caption": "Photographs: five cases, with the scores of each image averaged over the explanation sizes.", "name": "ff-explainers-large"}, "image": {"alt": "Three rows of five pictures: photographs of ImageNet, their Grad-CAM maps and their saliency maps, with two scores under each map."}} tags=["hide-input"]
cases(LARGE)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(f_fidelity.EXPLAINERS, {"differences": differences})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
