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
# # Which networks are explained?
#
# Which networks does the study explain, how good are they, and would they come out again?
#
# A metric is judged on a network, so every machine must explain the same one. These networks were trained once and ship with
# the repository, in `data/networks`. Training on another processor rounds differently and ends elsewhere; how far, is told
# below for those that were trained anew.
#
# Not listed are networks that do not ship. Small ones are trained where a page runs: LSTMs and CNNs of
# [time series](f-fidelity/time-series), LSTMs and Transformers of [texts](f-fidelity/text), those of digits
# ([here](f-fidelity/explanation-size) and [here](few-class-fidelity/digits)) and of
# [vehicles](few-class-fidelity/natural-images). Large ones of other makers are asked on [](trace/networks) and [](saco/beyond-vits).

# %% tags=["parameters", "hide-cell"]
profile = "quick"  # smoke, quick, study or paper: see notebooks/profiles.yml

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from IPython.display import Markdown, display

from faithlab.study import figures, tables
from faithlab.study.results import Run
from faithlab.zoo import shipped
from faithlab.zoo.training import Recipe

figures.theme()
run = Run("networks", globals())


# %% tags=["hide-input"]
def kind(recipe):
    """How a network was trained, in a few words."""
    words = ["fine-tuned" if recipe.start else "fresh weights"]
    if recipe.mask_share:
        words.append(f"beta {recipe.mask_share:g}")
    if recipe.orders:
        words.append("ROAR")
    if recipe.fold:
        words.append(f"one of {recipe.fold[1]} folds")
    if recipe.switched:
        words.append(f"{recipe.switched:.0%} of the labels switched")
    if recipe.limit:
        words.append(f"{recipe.limit} examples")
    return ", ".join(words)


def details(recipe, keys):
    """What else tells two networks of a kind and seed apart; stored orders are named after network and explainer."""
    words = [] if recipe.start else [f"{recipe.epochs} epochs"]
    if recipe.fold:
        words.append(f"block {recipe.fold[0] + 1} left out")
    if recipe.mask_channels:
        words.append(f"{recipe.mask_channels} channel masked")
    if recipe.mask_exactly:
        words.append("exactly that share")
    if recipe.orders:
        network = next((key for key in keys if recipe.orders.name.startswith(key)), "")
        words.append(recipe.orders.name.removeprefix(f"{network}-").rpartition("-")[0])
    return words


HEADS = {
    "accuracy_unrounded": "unrounded",
    "accuracy_anew": "anew",
    "same_class": "same class",
    "maps_input-x-gradient": "I x G",
    "maps_integrated-gradients": "IG",
    "megabytes": "MB",
    "minutes": "min",
}


def shown(frame, formats):
    """A table for the page."""
    which = frame["data"] + " " + frame["network"] + ", " + frame["training"] + ", seed " + frame["seed"].astype(str)
    table = frame[[*formats]].set_index(which.rename(None)).rename(columns=HEADS)
    return tables.styled(table).format({HEADS.get(name, name): form for name, form in formats.items()}, na_rep="–")


def places(frame):
    """Where networks were trained, as a sentence."""
    places = frame.groupby(["device", "torch", "commit"]).size()
    return "; ".join(
        f"{n} on {device}, torch {torch}, commit `{commit[:9]}`" for (device, torch, commit), n in places.items()
    )


rows, anew = [], []
keys = [network.facts["key"] for network in shipped.every()]
for network in shipped.every():
    network.weights()  # an error where the file is not the one that was committed
    facts, recipe = network.facts, Recipe.read(network.facts["recipe"])
    own = {
        key: value for key, value in recipe.model_options.items() if key not in ("classes", "channels")
    }  # as its data
    named = {
        "data": recipe.data,
        "network": " ".join([recipe.model, *(f"{key} {value}" for key, value in own.items())]),
        "training": ", ".join([kind(recipe), *details(recipe, keys)]),
        "seed": recipe.seed,
    }
    rounding = facts["rounding"]
    rows.append(
        named
        | {
            "accuracy": rounding["accuracy"][1],
            "accuracy_unrounded": rounding["accuracy"][0],
            "loss": rounding["loss"][1],
            "loss_unrounded": rounding["loss"][0],
            "same_class": rounding["agreement"],
            **{f"maps_{name}": r for name, r in rounding["maps"].items()},
            "kind": kind(recipe),
            "test_examples": rounding["examples"],
            "parameters": facts["parameters"],
            "megabytes": facts["bytes"] / 1e6,
            "epochs": recipe.epochs,
            "minutes": facts["seconds"] / 60,
            "device": facts["cpu"] if facts["device"] == "cpu" else facts["device"],
            "torch": facts["torch"],
            "commit": facts["commit"],
            "key": facts["key"],
        }
    )
    for again in facts["retrained"]:
        anew.append(
            named
            | {
                "accuracy": again["accuracy"][0],
                "accuracy_anew": again["accuracy"][1],
                "same_class": again["agreement"],
                **{f"maps_{name}": r for name, r in again["maps"].items()},
                "device": again["cpu"] if again["device"] == "cpu" else again["device"],
                "torch": again["torch"],
                "commit": again["commit"] or "unknown",
                "date": again["date"],
                "key": facts["key"],
            }
        )

names = ["data", "network", "training", "seed"]
networks = pd.DataFrame(rows).sort_values(names) if rows else pd.DataFrame(columns=[*names, "megabytes", "minutes"])
size = {"networks": len(networks), "megabytes": networks["megabytes"].sum(), "hours": networks["minutes"].sum() / 60}
run.save(pd.DataFrame([size | {"retrained": len(anew)}]), "size")
if rows:
    run.save(networks, "networks")

# %% tags=["hide-input"]
text = "No network ships: each is trained where the book is built."
if rows:
    text = (
        f"**{len(networks)} networks ship**, {size['megabytes']:.1f} MB that took {size['hours']:.1f} hours to train."
    )
    best = networks.groupby(["data", "network"])["accuracy"].max().sort_values(ascending=False)
    text += " The best of each kind: " + ", ".join(f"{a:.1%} on {d} ({n})" for (d, n), a in best.items()) + "."
    moved = (networks["accuracy"] - networks["accuracy_unrounded"]).abs().max()
    text += (
        f" Rounding to bfloat16 moves no accuracy by more than {100 * moved:.2f} percentage points, and leaves at least "
        f"{networks['same_class'].min():.2%} of the test examples in their class."
    )
Markdown(text)

# %% mystnb={"figure": {"caption": "Accuracy on the whole test split of each network that ships, one mark a seed or fold.", "name": "networks-accuracy"}, "image": {"alt": "Dots: a row for each data set and network, the accuracy of each seed, coloured by how it was trained."}} tags=["hide-input", "answer"]
if rows:
    height = 1.4 + 0.5 * networks.groupby(names[:2]).ngroups + 0.25 * networks["kind"].nunique()
    figure, axes = plt.subplots(figsize=(7.2, height))
    placed = networks.assign(place=networks["data"] + ", " + networks["network"])
    sns.stripplot(placed, x="accuracy", y="place", hue="kind", dodge=True, jitter=False, size=7, ax=axes)
    axes.set(xlabel="test accuracy", ylabel="")
    sns.move_legend(axes, "lower left", bbox_to_anchor=(0, 1), title=None)
    display(figures.show(figure))

# %% [markdown]
# ## Accuracy, size, and where they were trained
#
# Accuracy is that of the rounded weights, which are what ships and what the study explains, on the whole test split. *1 channel
# masked* and *exactly that share* are fine-tuned as [the public code](f-fidelity/public-code) of F-Fidelity does it; fresh
# weights with fewer epochs are its ROAR, which sees whole images.
# *I x G* and *IG* are mean rank correlations of explanations before and after rounding, by input x gradient and by integrated
# gradients.

# %% tags=["hide-input"]
maps = {"maps_input-x-gradient": "{:.3f}", "maps_integrated-gradients": "{:.3f}"}
if rows:
    formats = {"accuracy": "{:.2%}", "accuracy_unrounded": "{:.2%}", **maps, "megabytes": "{:.2f}", "minutes": "{:.0f}"}
    display(shown(networks, formats), Markdown(f"Trained: {places(networks)}."))

# %% [markdown]
# ## Trained anew
#
# `make retrain NAME=<key>` trains a network again, from the same recipe, and compares it with the one that ships: accuracy, the
# share of the test examples that both put into the same class, and the mean rank correlation of their explanations.

# %% tags=["hide-input"]
if anew:
    retrained = pd.DataFrame(anew).sort_values([*names, "date"])
    run.save(retrained, "retrained")
    formats = {"accuracy": "{:.2%}", "accuracy_anew": "{:.2%}", "same_class": "{:.2%}", **maps}
    display(shown(retrained, formats), Markdown(f"Trained anew: {places(retrained)}."))
else:
    display(Markdown("No training anew was kept yet."))

# %% tags=["hide-input"]
run.finish()
