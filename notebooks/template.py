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
# # Template: an experiment of your own
#
# Copy this notebook, change it, and it becomes a page of the book. It asks one small question: *when the most
# relevant patches of a handwritten digit are removed, how much does the network lose, and which explainer finds the
# patches that hurt most?*
#
# ```bash
# # 1. Copy it, and change "template" to "mine" in the line that begins with `run = Run(`.
# cp notebooks/template.py notebooks/mine.py
# # 2. Make its pair, notebooks/mine.ipynb, to work on in Jupyter.
# make sync
# # 3. Run it, with any parameters.
# make notebook NAME=mine PARAMS="images=32 seed=1"
# ```
#
# What you run in Jupyter or with papermill goes to a folder of its own, `build/quick+by-hand` or `build/quick+edited-...`,
# and the last cell prints which; only `make` writes what the book shows.
#
# To put it into the book, add `- file: notebooks/mine` to `book/_toc.yml`. If it needs data, or other parameters in
# other profiles, say so in `notebooks/profiles.yml`.

# %% [markdown]
# ## Parameters
#
# The values below are the `quick` profile. Every name here can be changed from outside; an unknown name is an error.

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
explainers = ["saliency", "integrated-gradients", "gradcam", "random"]
train = 6000  # images to train on
images = 256  # images to explain
patch = 4  # side of a patch, in pixels
seed = 0

# %%
import pandas as pd
import seaborn as sns
import torch

from faithlab import engine, readouts, references, segments
from faithlab.explainers import explain
from faithlab.metrics.fidelity import fidelity
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe, trained

run = Run("template", globals())

# %% [markdown]
# ## A network and some digits
#
# A network is addressed by its whole recipe. The same recipe is trained once and then comes from the cache.

# %%
recipe = Recipe(
    data="mnist",
    model="cnn3",
    model_options={"channels": 1},
    epochs=3,
    limit=train,
    seed=seed,
)
network = trained(recipe)
device = next(network.parameters()).device

digits = datasets.load("mnist", "test").take(slice(images))
x, y = digits.model_inputs().to(device), digits.labels.to(device)
with torch.inference_mode():
    accuracy = (network(x).argmax(1) == y).float().mean().item()
print(f"{accuracy:.1%} of {images} digits are recognised.")

# %% [markdown]
# ## Ask the network about inputs with some patches removed
#
# `score` answers *keep-masks*: which patches of each image stay. `fidelity` removes the most relevant patches first and
# reports what is lost,
#
# $$
# \mathrm{Fid}^+(s) = \frac1n \sum_{i=1}^{n} \Bigl( p_{y_i}(x_i) - p_{y_i}(x_i \text{ without its top } s) \Bigr) ,
# $$
#
# with $p_y$ the probability of the true class and $s$ the share of patches that is removed.

# %%
shape = segments.patches(*x.shape[-2:], patch)
score = engine.scorer(network, x, y, segments=shape, reference=references.zero, readout=readouts.probability)
shares = torch.arange(0.0, 1.01, 0.1)

parts = []
for name in explainers:
    attribution = explain(name, network, x, y, shape)
    lost = fidelity(score, attribution, shares).value.mean(0).cpu()  # [images, shares] -> [shares]
    parts.append(pd.DataFrame({"explainer": name, "removed": shares, "lost": lost}))
curves = pd.concat(parts, ignore_index=True)
run.save(curves, "curves")

# %% [markdown]
# ## What comes out
#
# A higher curve is a better explainer: it finds the patches that the network cannot do without. Random patches are the
# baseline.

# %% mystnb={"figure": {"caption": "Probability of the true class lost when the most relevant patches are removed. Higher is better.", "name": "template-curves"}, "image": {"alt": "Line chart: share of patches removed against the probability lost, one line for each explainer."}} tags=["hide-input"]
axes = sns.lineplot(curves, x="removed", y="lost", hue="explainer", style="explainer", markers=True, dashes=False)
axes.set(xlabel="share of patches removed", ylabel="probability lost", xlim=(0, 1))
sns.despine()

# %%
table = curves.pivot_table("lost", index="explainer", columns="removed")
table[shares.numpy()[1:6]].round(3)

# %% [markdown]
# The whole table is a file, and so is where it came from.

# %%
run.finish()
