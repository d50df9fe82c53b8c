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
# # Models made worse on purpose
#
# *Does {term}`MeGe` notice when a model has learnt less?* Take networks that are known to be bad, by a known amount. If
# MeGe says how general the reasons of a model are, it should fall step by step. The paper makes its networks worse in
# three ways. This page repeats its Figure 4 and its Tables 7 to 14.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
sets = ["fashion-mnist", "cifar10"]  # the paper has cifar100 and eurosat, too
retrained = ["fashion-mnist"]  # those that are also trained on wrong labels and on less data
width = 8  # base filters of ResNet-18; None: those of the paper, 26 (Fashion-MNIST), 46 (EuroSAT), 32 (CIFAR)
epochs = 2  # of training
rate = 0.003  # peak learning rate
decay = 1e-4
batch = 32
train_limit = 2000  # examples that the folds are made of; None: all
folds = 5
tolerance = 0.15  # how far a fold's accuracy may be from the median of the five; the paper has 3 %
test_limit = 500  # test pictures for this check; None: all
randomised = [0.05, 0.1, 0.3]  # shares of the layers
noise = 1.0  # standard deviation of what is added to their weights, in that of the weights themselves
switched = [0.05, 0.1, 0.3]  # shares of the training labels
limited = [0.75, 0.5, 0.25]  # shares of the training examples that are left
images = 100  # of the examples, explained by every network; None: all
steps = 4  # of Integrated Gradients; the paper has 60
samples = 4  # noisy copies in SmoothGrad; the paper has 60
shap_sets = []  # where SHAP is asked, too; in the paper CIFAR-10
patch = 4  # side of the patches of SHAP
permutations = 1  # of SHAP
precision = "bfloat16"  # of training, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from IPython.display import Markdown

from faithlab.study import claims, cross_training, figures, reco, tables
from faithlab.study.results import Run, recorded
from faithlab.zoo import datasets

figures.theme()
run = Run("reco-mege/degraded", globals())

# %% [markdown]
# ## Three ways to make a network worse
#
# | | what is done | here |
# |---|---|---|
# | *randomised* | Gaussian noise is added to the weights of a share of the layers | after training, from the output down, at least one layer |
# | *switched* | a share of the training labels is wrong | another class by chance; the same wrong labels for every fold |
# | *limited* | a share of the training data is left | more epochs, so that the number of steps stays the same |
#
# The paper does not say which layers it takes, nor how strong the noise is; these are our choices. The networks of the
# normal condition are those of [](../reco-mege/normal).

# %% tags=["hide-input"]
train, families = {}, {}
for data in sets:
    train[data] = datasets.load(data, "train", standardised=False)
    test = datasets.load(data, "test", standardised=False).take(slice(test_limit))
    recipes = reco.trained_conditions(data, run.parameters)
    normal = cross_training.train(recipes.pop("normal"), folds, test, tolerance=tolerance)
    families[data] = {"normal": normal}
    for part in randomised:
        families[data][f"randomized {part:.0%}"] = cross_training.randomised(normal, part, noise, test)
    if data in retrained:
        for condition, recipe in recipes.items():
            families[data][condition] = cross_training.train(recipe, folds, test, tolerance=tolerance)
accuracies = pd.DataFrame(
    [
        (reco.SETS[data], condition, number, accuracy)
        for data, conditions in families.items()
        for condition, family in conditions.items()
        for number, accuracy in enumerate(family.accuracies)
    ],
    columns=["dataset", "condition", "fold", "accuracy"],
)
run.save(accuracies, "accuracies")
run.download("accuracies")

# %% [markdown]
# Accuracy on test pictures, lowest to highest of the folds. The folds of a trained condition are kept comparable, as on
# the page before. Those with random weights are what they are.

# %% tags=["hide-input"]
ranges = accuracies.groupby(["condition", "dataset"], sort=False)["accuracy"].agg(["min", "max"])
tables.styled(
    ranges.apply(lambda row: f"{row['min']:.0%} – {row['max']:.0%}", axis=1)
    .unstack()
    .fillna("–")
    .rename_axis(None)
    .rename_axis(None, axis=1)
)

# %% tags=["hide-input"]
scores = pd.concat(
    [
        cross_training.scores(reco.compared(family, train[data], names, run.parameters).splits).assign(
            dataset=reco.SETS[data], model="ResNet-18", condition=condition
        )
        for data, conditions in families.items()
        for names in [[name for name in reco.EXPLAINERS if name != "SHAP" or data in shap_sets]]
        for condition, family in conditions.items()
    ],
    ignore_index=True,
)
run.save(scores, "scores")
run.download("scores")

# %% [markdown]
# ## MeGe falls, or does it? (Figure 4)

# %% mystnb={"figure": {"caption": "MeGe of normally trained networks (left of each panel) and of worse and worse ones. The paper's Figure 4 shows CIFAR-10, weights and labels. MeGe cannot be below \u00bd.", "name": "rc-degraded-mege"}, "image": {"alt": "Line charts, one per data set and kind of degradation: strength of the degradation against MeGe, one line per explainer."}} tags=["hide-input"]
kinds = {"randomized": "randomised weights", "switched": "switched labels", "limited": "limited data"}
panels = pd.concat(
    [
        scores[(scores["condition"] == "normal") | scores["condition"].str.startswith(kind)].assign(kind=title)
        for kind, title in kinds.items()
    ],
    ignore_index=True,
)
panels["strength"] = panels["condition"].str.split().str[-1]
panels["panel"] = panels["dataset"] + "\n" + panels["kind"]
panels = panels[panels.groupby("panel")["strength"].transform("nunique") > 1]
several = panels["panel"].unique()
explained = [name for name in reco.EXPLAINERS if name in set(scores["explainer"])]
looks = dict(zip(reco.EXPLAINERS, sns.color_palette("colorblind"), strict=False)) | {"Random": (0.6, 0.6, 0.6)}
columns = min(4, len(several))
figure, grid = plt.subplots(
    -(-len(several) // columns), columns, figsize=(8.4, 3.4 * -(-len(several) // columns)), sharey=True, squeeze=False
)
for axes in grid.flat[len(several) :]:
    axes.set_visible(False)
for axes, panel in zip(grid.flat, several, strict=False):
    sns.lineplot(
        panels[panels["panel"] == panel],
        x="strength",
        y="MeGe",
        hue="explainer",
        style="explainer",
        hue_order=explained,
        style_order=explained,
        palette=looks,
        markers=True,
        dashes=False,
        sort=False,
        legend=panel == several[-1],
        ax=axes,
    )
    axes.set(title=panel, xlabel="share")
    axes.title.set_fontsize("small")
    axes.tick_params(axis="x", rotation=45)
sns.move_legend(grid.flat[len(several) - 1], "center left", bbox_to_anchor=(1.02, 0.5), title=None)
figures.show(figure)

# %% tags=["hide-input"]
gradcam = scores[scores["explainer"] == "GradCAM"].set_index(["dataset", "condition"])
told = []
for data in gradcam.index.unique("dataset"):
    of = gradcam.loc[data]
    for kind, title in kinds.items():
        worse = of[of.index.str.startswith(kind)]
        if len(worse):
            told.append(
                f"- {data}, {title}: MeGe of Grad-CAM goes from {of.loc['normal', 'MeGe']:.3f} to "
                f"{worse['MeGe'].iloc[-1]:.3f} at the strongest degradation; the pairs in S= from "
                f"{of.loc['normal', 'same']} to {worse['same'].iloc[-1]}."
            )
Markdown(
    "\n".join(told)
    + "\n\nMeGe only looks at pairs of networks that are both right. Where a worse network is right less often, its MeGe rests "
    "on fewer pairs, and on the pictures that are easiest."
)

# %% [markdown]
# ## The tables (7 to 14)
#
# *Published* are the paper's networks, trained on everything. Their MeGe cannot be compared with ours digit by digit, as
# [](../reco-mege/normal) explains. What can be compared is the direction in which a row goes.

# %% tags=["hide-input"]
kept = recorded("reco-mege/degraded", "scores")
levels = {"randomized": randomised, "switched": switched, "limited": limited}


def beside_published(measure):
    """One measure of all data sets and conditions measured here, the paper's beside ours."""
    sources = {
        "published": reco.published_scores(measure).query("model == 'ResNet-18'"),
        "recorded": reco.long(kept.frame, measure) if kept else None,
        "this build": reco.long(scores, measure),
    }
    here = scores[["dataset", "condition"]].drop_duplicates()
    return tables.styled(
        tables.side_by_side(
            {
                source: frame[frame["explainer"].isin(explained)].merge(here)
                for source, frame in sources.items()
                if frame is not None
            },
            rows=["dataset", "condition"],
            columns=["explainer"],
            order=[
                *here["dataset"].unique(),
                "normal",
                *(f"{kind} {part:.0%}" for kind, parts in levels.items() for part in parts),
                *explained,
            ],
        )
    )


beside_published("ReCo")

# %% tags=["hide-input"]
beside_published("MeGe")

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(reco.DEGRADED, {"scores": scores})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
