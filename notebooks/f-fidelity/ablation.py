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
# # What each part of F-Fidelity is good for
#
# F-Fidelity does two things to Fidelity: it fine-tunes the network on random masks, and it removes only a random part of
# what an explanation names, with a cap. *Which of them helps?* This page is the paper's ablation (Figure 3) and its case
# study of a single image (Figure 2).

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
images = 128  # test images to explain
noise_shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
seeds = [0, 1]  # of the noise
size_step = 0.1  # between the explanation sizes, a share of the pixels; 0.05 in the paper
alpha = 0.5
beta = 0.1
draws = 4  # random subsets per image, size and direction; the paper draws 50
case_draws = 100  # in the case study
smooth_samples = 16  # noisy copies per image in SG-SQ
case = 0  # test image of the case study, counted among those that both networks recognise
precision = "bfloat16"  # of training and forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, readouts
from faithlab.explainers import explain
from faithlab.explainers.degrade import degrade
from faithlab.study import claims, f_fidelity, figures, networks, tables, trials
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.training import logits, trained

figures.theme()
run = Run("f-fidelity/ablation", globals())

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
device = next(models["original"].parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
test = datasets.load(data, "test").take(slice(images))
x, y = test.model_inputs().to(device), test.labels.to(device)
pixels = test.features()
attributions = {
    "SG-SQ": explain("smoothgrad-squared", models["original"], x, y, pixels, samples=smooth_samples, seed=seed)
}

# %% [markdown]
# ## Ablation (Figure 3)
#
# Three metrics rank SG-SQ and its noisier and noisier copies: plain *Fidelity*; *Fidelity + fine-tuning*, plain removal on
# the fine-tuned network; and *F-Fidelity*, which also samples what it removes and caps it.

# %% tags=["hide-input"]
fractions = torch.arange(1, round(1 / size_step), dtype=torch.float64) * size_step
score = {
    name: engine.scorer(model, x, y, segments=pixels, readout=readouts.hit, precision=fast)
    for name, model in models.items()
}
metrics = {
    "Fidelity": trials.morf_and_lerf(score["original"], fractions),
    "Fidelity + fine-tuning": trials.morf_and_lerf(score["fine-tuned"], fractions),
    "F-Fidelity": trials.morf_and_lerf(score["fine-tuned"], fractions, alpha=alpha, cap=beta, draws=draws, seed=seed),
}
curves = trials.degraded_curves(metrics, attributions, noise_shares, fractions, seeds)
run.save(curves, "curves")
measured = trials.correlations(curves)
run.save(measured, "correlations")

# %% mystnb={"figure": {"caption": "Agreement of each metric with the true order of the explainers, as a share of the ideal (1 is perfect, 0 is chance). Macro: over the area under the curve. Micro: at each size, the mean over sizes and seeds.", "name": "ff-ablation"}, "image": {"alt": "Two bar charts, macro and micro correlation: three comparisons with one bar for each of three metrics."}} tags=["hide-input"]
bars = measured[measured["level"] != "micro_rank"].copy()
bars["share of the ideal"] = bars["mean"] * bars["comparison"].map(trials.IDEAL)
bars["level"] = bars["level"].str.removesuffix("_correlation")
colours = sns.color_palette("colorblind")
grid = sns.catplot(
    bars,
    x="comparison",
    y="share of the ideal",
    hue="metric",
    palette=[figures.COLOURS["Fidelity"], colours[4], figures.COLOURS["F-Fidelity"]],
    col="level",
    kind="bar",
    height=3.2,
    aspect=1.35,
)
for axes in grid.axes.flat:
    axes.axhline(0, color="0.4", linewidth=0.8)
grid.set_titles("{col_name} correlation").set_axis_labels("", "correlation × ideal")
plt.close(grid.figure)
grid.figure

# %% tags=["hide-input"]
tables.styled(
    tables.side_by_side({"this build": measured}, rows=["level", "comparison"], columns=["metric"], order=list(metrics))
)

# %% [markdown]
# ## One image (Figure 2)
#
# For a single image a class is right or wrong, nothing between. So the curves follow the *probability* of the class. Each
# line is the Grad-CAM explanation with another share of its scores shuffled. A metric that works keeps the lines apart
# and in order, the darkest lowest.

# %% tags=["hide-input"]
right = (logits(models["original"], x).argmax(1) == y) & (logits(models["fine-tuned"], x).argmax(1) == y)
chosen = right.nonzero().flatten()[case : case + 1]
one, label = x[chosen], y[chosen]
cam = explain("gradcam", models["original"], one, label, pixels)
probability = {
    name: engine.scorer(model, one, label, segments=pixels, precision=fast) for name, model in models.items()
}
single = trials.fidelities(
    probability["original"],
    probability["fine-tuned"],
    None,
    fractions,
    alpha=alpha,
    beta=beta,
    draws=case_draws,
    seed=seed,
)
study = trials.degraded_curves(single, {"GradCAM": cam}, noise_shares, fractions, seeds, images=chosen)
run.save(study, "case")

# %% mystnb={"figure": {"caption": "The image of the case study, and its Grad-CAM map with more and more of its scores shuffled (brighter is more relevant).", "name": "ff-ablation-case"}, "image": {"alt": "A photograph and a row of relevance maps that turn from a smooth blob into noise."}} tags=["hide-input"]
figure, row = plt.subplots(1, 1 + len(noise_shares), figsize=(8, 1.7))
row[0].imshow(test.inputs[chosen.item()].permute(1, 2, 0))
row[0].set_title(test.classes[label.item()], fontsize="small")
for axes, share in zip(row[1:], noise_shares, strict=True):
    axes.imshow(degrade(cam, share, seed=seeds[0], images=chosen).cpu().view(x.shape[-2:]), cmap="magma")
    axes.set_title(f"{share:.0%} noise", fontsize="small")
for axes in row:
    axes.set(xticks=[], yticks=[])
    sns.despine(ax=axes, left=True, bottom=True)
figures.show(figure)

# %% mystnb={"figure": {"caption": "Probability of the image's class that remains when the most relevant pixels are removed, for Grad-CAM with more and more noise. The scales differ.", "name": "ff-ablation-case-curves"}, "image": {"alt": "Three line charts, one per metric: size against probability, one line for each share of noise."}} tags=["hide-input"]
figures.noise_curves(study, size="size (share of pixels)", left="probability")

# %% tags=["hide-input"]
order = trials.correlations(study)
order = order[(order["comparison"] == "MoRF vs GT") & (order["level"] == "micro_correlation")]
Markdown(
    "Mean rank correlation with the true order over the sizes, for this image under MoRF (−1 is perfect): "
    + ", ".join(
        f"**{r.metric} {r.mean:+.2f}**".replace("-0", "−0").replace("-1", "−1") for r in order.itertuples(index=False)
    )
    + ". One image is an illustration, not evidence."
)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(f_fidelity.ABLATION, {"correlations": measured})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
