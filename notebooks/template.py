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
# Copied under a name of your own by the command of the guide, *Rerun and fork*, and changed, this notebook becomes a page
# of the book. The name stands in the line that begins with `run = Run(`, and in the labels of the figure and of the
# claim, which may be there only once in a book. The page asks one small question: *when the most relevant patches of a
# handwritten digit are removed, how much does the network lose, and which explainer finds the patches that hurt most?*
#
# ```bash
# # 1. Make the copy's pair, notebooks/mine.ipynb, to work on in Jupyter.
# make sync
# # 2. Run it, with any parameters.
# make notebook NAME=mine PARAMS="images=32 seed=1"
# ```
#
# What you run in Jupyter or with papermill goes to a folder of its own, `build/study+by-hand` or `build/study+edited-...`,
# and the last cell prints which; only `make` writes what the book shows.
#
# To put it into the book, add `- file: notebooks/mine` to `book/_toc.yml`. If it needs data, or other parameters in
# other profiles, say so in `notebooks/profiles.yml`.

# %% [markdown]
# ## Parameters
#
# The values below are those of the profile `study`, which the book shows. Every name here can be changed from outside; an unknown name is an error.

# %% tags=["parameters"]
profile = "study"  # as the book shows it; or quick, smoke, paper: see notebooks/profiles.yml
explainers = ["saliency", "integrated-gradients", "gradcam", "random"]
train = 6000  # images to train on
images = 256  # images to explain
patch = 4  # side of a patch, in pixels
seed = 0

# %%
import itertools

import matplotlib.pyplot as plt
from IPython.display import Markdown

from faithlab import segments, stats
from faithlab.metrics import METRICS, evaluate, own
from faithlab.outputs import probability
from faithstudy import plots, tables
from faithstudy.claims import best
from faithstudy.networks.training import Recipe
from faithstudy.run import Run
from faithstudy.trials import tasks

plots.theme()
run = Run("template", globals())

# %% [markdown]
# ## A network and some digits
#
# A network is addressed by its whole recipe. The same recipe is trained once and then comes from the cache. A *task* is
# the network with its inputs, their classes, and what counts as one feature of them: here, patches.

# %%
recipe = Recipe(data="mnist", model="cnn3", model_options={"channels": 1}, epochs=3, limit=train, seed=seed)
shape = segments.patches(28, 28, patch)
task = tasks.task(recipe, images, features=shape)
correct = (task.model(task.x).argmax(1) == task.target).float().mean()
Markdown(f"{correct:.1%} of {images} digits are recognised.")

# %% [markdown]
# ## Ask the network about inputs with some patches removed
#
# A metric of {py:data}`faithlab.metrics.METRICS` asks the network about *keep-masks*: which patches of each image stay. Here it is
# `Fid+`, asked for the probability of the true class in place of its hits,
#
# $$
# \mathrm{Fid}^+(s) = \frac1n \sum_{i=1}^{n} \Bigl( p_{y_i}(x_i) - p_{y_i}(x_i \text{ without its top } s) \Bigr) ,
# $$
#
# with $p_y$ the probability of the true class and $s$ the share of patches that is removed. Metrics of your own, from a file
# that `FAITHLAB_METRICS` names, are asked too. Every score of every image is kept.

# %%
metrics = {"Fid+": METRICS["Fid+"].given(output=probability, sizes=[k / 10 for k in range(1, 10)])} | own()


def measure(task):
    """Every metric of every explainer, of the images of a task."""
    return evaluate(metrics, task, tasks.attributions(task, {name: name for name in explainers}))


scores = run.table("scores", measure, [task])

# %% [markdown]
# ## What comes out
#
# A higher curve is a better explainer: it finds the patches that the network cannot do without. Random patches are the
# baseline.

# %% mystnb={"figure": {"caption": "Probability of the true class lost when the most relevant patches are removed. Higher is better. Bands: 95 % intervals over the images.", "name": "template-curves"}, "image": {"alt": "Line chart: share of patches removed against the probability lost, one line for each explainer."}} tags=["hide-input"]
figure, axes = plt.subplots()
for name, marker in zip(explainers, itertools.cycle("osD^vPX"), strict=False):
    curve = stats.estimate(scores, metric="Fid+", explainer=name)
    plots.band(axes, metrics["Fid+"].sizes, curve, marker=marker, label=name)
axes.set(xlabel="share of patches removed", ylabel="probability lost", xlim=(0, 1))
axes.legend()
plots.show(figure)

# %%
rows = {name: {"explainer": name} for name in explainers}
tables.estimates(rows, {name: {"metric": name, "of": metric.summary} for name, metric in metrics.items()}, scores)

# %% [markdown]
# A claim is a sentence with parts, and stands below what it is about. This one needs an explainer to be compared with others. [How it is judged](../book/evidence).
# Where yours is not reproduced, {py:meth}`faithstudy.run.Run.why` asks for the reason, with a number that tells it.

# %%
if {"integrated-gradients"} < set(explainers):
    run.claim(
        "template-ig",
        "this page",
        "Integrated Gradients finds the patches that hurt most.",
        [best(scores, "explainer", "integrated-gradients", of=stats.area, metric="Fid+")],
    )

# %% [markdown]
# The whole table is a file, and so is where it came from.

# %%
run.finish()
