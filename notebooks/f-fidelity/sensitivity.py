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
# # Three numbers to choose: N, α and β
#
# F-Fidelity has three parameters: the number $N$ of random subsets, the share $\alpha$ of an explanation that is removed,
# and the cap $\beta$. *Does the ranking depend on them?* As in the paper's Figure 5 and Tables 24 to 26, one is varied at a
# time, on colored MNIST with a fifth of the image covered by the digit.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
digit_share = 0.2  # of the image that the digit covers
size = 28  # side of the images in pixels
train_limit = 8000  # training images
epochs = 3
tuning_epochs = 2
images = 160  # test images; the paper has 400
explainer = "input-x-gradient"
noise_shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
seeds = [0]  # of the noise
size_step = 0.1  # between the explanation sizes, a share of the pixels; 0.05 in the paper
draws = 5  # N where another parameter is varied; 50 in the paper
alpha = 0.5
beta = 0.1
vary_draws = [1, 2, 5, 10]  # the paper: 10, 30, 50, 80, 150
vary_alpha = [0.3, 0.5, 0.7]
vary_beta = [0.05, 0.1, 0.2]
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
from faithlab.study import claims, f_fidelity, figures, tables, trials
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe, accuracy, trained

figures.theme()
run = Run("f-fidelity/sensitivity", globals())

# %% [markdown]
# ## Networks
#
# $\beta$ is also the largest share of pixels that fine-tuning masks, so every $\beta$ has a network of its own.

# %% tags=["hide-input"]
made = {"share": digit_share, "size": size, "seed": seed}
original = Recipe(
    data="colored-mnist",
    data_options=made | {"limit": train_limit},
    model="cnn3",
    epochs=epochs,
    batch=64,
    rate=5e-3,
    seed=seed,
)
tuned = {
    b: trained(dataclasses.replace(original, epochs=tuning_epochs, rate=2e-3, mask_share=b, start=original))
    for b in sorted({*vary_beta, beta})
}
network = trained(original)
device = next(network.parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
test = datasets.load("colored-mnist", "test", **made, limit=max(images, 1000))
found = {b: accuracy(model, test) for b, model in tuned.items()}
chosen = test.take(slice(images))
x, y = chosen.model_inputs().to(device), chosen.labels.to(device)
pixels = chosen.features()
# What is relevant can speak for the class or against it: the size of the product counts.
attribution = {explainer: explain(explainer, network, x, y, pixels).abs()}
Markdown(
    f"The network recognises {accuracy(network, test):.1%} of the test digits, the fine-tuned ones "
    f"{min(found.values()):.1%} to {max(found.values()):.1%}."
)

# %% [markdown]
# ## One parameter at a time

# %% tags=["hide-input"]
fractions = torch.arange(1, round(1 / size_step), dtype=torch.float64) * size_step
score = {
    b: engine.scorer(model, x, y, segments=pixels, readout=readouts.hit, precision=fast) for b, model in tuned.items()
}
usual = {"draws": draws, "alpha": alpha, "beta": beta}
settings = [
    (parameter, value)
    for parameter, values in (("draws", vary_draws), ("alpha", vary_alpha), ("beta", vary_beta))
    for value in values
]
parts = []
for parameter, value in settings:
    chosen = usual | {parameter: value}
    metric = trials.morf_and_lerf(
        score[chosen["beta"]],
        fractions,
        alpha=chosen["alpha"],
        cap=chosen["beta"],
        draws=chosen["draws"],
        seed=seed,
    )
    curves = trials.degraded_curves({"F-Fidelity": metric}, attribution, noise_shares, fractions, seeds)
    parts.append(trials.correlations(curves).assign(parameter=parameter, value=value))
measured = pd.concat(parts, ignore_index=True)
measured = measured[measured["level"] != "micro_rank"]
run.save(measured, "correlations")

# %% mystnb={"figure": {"caption": "Macro correlation of F-Fidelity with the true order, for each value of one parameter while the others keep theirs. 1 is the ideal in all three comparisons.", "name": "ff-sensitivity"}, "image": {"alt": "Three line charts: number of draws, alpha and beta against correlation times ideal, one line per comparison."}} tags=["hide-input"]
macro = measured[measured["level"] == "macro_correlation"].copy()
macro["share of the ideal"] = macro["mean"] * macro["comparison"].map(trials.IDEAL)
grid = sns.relplot(
    macro,
    x="value",
    y="share of the ideal",
    hue="comparison",
    style="comparison",
    markers=True,
    dashes=False,
    col="parameter",
    kind="line",
    height=2.7,
    aspect=0.95,
    facet_kws={"sharex": False},
)
for axes, (parameter, label) in zip(
    grid.axes.flat, {"draws": "N (random subsets)", "alpha": "α (share)", "beta": "β (share)"}.items(), strict=True
):
    axes.set(xlabel=label, ylim=(-1.1, 1.1), title="")
    figures.mark(axes, usual[parameter], "used for the others", height=0.2)
grid.set_ylabels("correlation × ideal")
grid.tight_layout()
sns.move_legend(grid, "center left", bbox_to_anchor=(1.0, 0.5))
plt.close(grid.figure)
grid.figure

# %% tags=["hide-input"]
tables.styled(
    tables.side_by_side(
        {"this build": measured},
        rows=["parameter", "value"],
        columns=["level", "comparison"],
        order=["draws", "alpha", "beta", *vary_draws],
    )
)

# %% [markdown]
# The paper prints Tables 24 to 26 as pictures of curves, without numbers: there is nothing to set beside these.
#
# Under LeRF there is little to see in these images. The background is black, and black is what a removed pixel becomes: so
# what is removed of the rest changes the image only where noise has put pixels of the digit there. The more of them go (a
# larger $\alpha$ or $\beta$) and the more draws average over them, the clearer the order.

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(f_fidelity.SENSITIVITY, {"correlations": measured})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
