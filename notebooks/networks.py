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
# the repository, in `data/networks`. A page finds them by their recipe, which has a version, and compares a checksum. Training on
# another processor, or with another number of threads, rounds differently and ends in other weights. The section *Trained anew* shows
# how far.
#
# Some networks do not ship: they are listed at the end. Large
# networks of other makers are downloaded: EfficientNet-Lite0 is evaluated on
# [](f-fidelity/explainers), [](f-fidelity/sizes-of-photographs), [](few-class-fidelity/photographs), [](trace/networks) and, in
# larger profiles, [](trace/searches) and [](trace/best-orders); the pages of SaCo evaluate the paper's own Vision Transformers where they are given them. Of ViT-S
# the matrices are downloaded, and what was trained for CIFAR-10 ships.

# %% tags=["parameters", "hide-cell"]
profile = "study"  # as the book shows it; or quick, smoke, paper: see notebooks/profiles.yml

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import Markdown, display

from faithstudy import plots, records, summaries, tables
from faithstudy.display_names import NETWORKS
from faithstudy.display_names import named as readable
from faithstudy.networks import shipped
from faithstudy.networks.training import Recipe
from faithstudy.run import Run

plots.theme()
run = Run("networks", globals())


# %% tags=["hide-input"]
def kind(recipe):
    """How a network was trained, in a few words."""
    words = [
        "fine-tuned" if recipe.start else "around weights of others" if recipe.model == "vit_small" else "fresh weights"
    ]
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
    words += [f"{name} {recipe.data_options[name]}" for name in ("share", "unit") if name in recipe.data_options]
    if recipe.fold:
        words.append(f"block {recipe.fold[0] + 1} left out")
    if recipe.mask_channels:
        words.append(f"{recipe.mask_channels} channel masked")
    if recipe.mask_exactly:
        words.append("exactly that share")
    if recipe.orders:
        network = next((key for key in keys if recipe.orders.startswith(key)), "")
        words.append(recipe.orders.removeprefix(f"{network}-").rpartition("-")[0])
    return words


MARKERS = {"fresh weights": "o", "fine-tuned": "s", "one of five folds": "D", "for ROAR": "^"}
KINDS = NETWORKS | {
    "strided": "strided CNN",
    "unbounded": "three-layer CNN without the bound",
    "pretrained": "fine-tuned from a large network",
}  # as a reader knows them; as words of a text they would be other things


def of_reader(network):
    """A network with its options as a reader knows it."""
    first, _, options = network.partition(" ")
    return f"{KINDS.get(first, first)} {options}".strip()


def way_of(kind):
    """How a network was trained, coarsely: a key of `MARKERS`."""
    named = {"ROAR": "for ROAR", "folds": "one of five folds", "fine-tuned": "fine-tuned"}
    return next((way for word, way in named.items() if word in kind), "fresh weights")


HEADS = {
    "accuracy_unrounded": "unrounded",
    "accuracy_anew": "anew",
    "same_class": "same class",
    "maps_input-x-gradient": "maps, Input × Gradient",
    "maps_integrated-gradients": "maps, IG",
    "megabytes": "MB",
    "minutes": "min",
}


def shown(frame, formats):
    """A table for the page."""
    which = [
        frame["data"].map(readable) + ", " + frame["network"].map(of_reader),
        frame["training"] + ", seed " + frame["seed"].astype(str),
    ]
    table = frame[[*formats]].set_index(which).rename_axis([None, None]).rename(columns=HEADS)
    return tables.styled(table).format({HEADS.get(name, name): form for name, form in formats.items()}, na_rep="–")


def places(frame):
    """Where networks were trained, as a sentence; each one's own commit stands in its table."""
    parts = []
    for (device, torch), of in frame.groupby(["device", "torch"]):
        commits = of["commit"].nunique()
        parts.append(f"{len(of)} on {device} with torch {torch}, at {commits} commit{'s' * (commits > 1)} of the study")
    return "; ".join(parts)


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
                "rounding_alone": all(abs(r - rounding["maps"][name]) < 5e-4 for name, r in again["maps"].items()),
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
    same = networks["same_class"].min()
    moved = (networks["accuracy"] - networks["accuracy_unrounded"]).abs().max()
    text += (
        f" Rounding to bfloat16 moves no accuracy by more than {100 * moved:.2f} percentage points, and leaves "
        f"{'all' if same == 1 else f'at least {np.floor(1e4 * same) / 100:.2f}%'} of the test examples in their class."
    )
Markdown(text)

# %% tags=["hide-input", "headline"]
text = "**None is fixed**: no network ships, and each page trains its own."
if rows:
    ways = networks["kind"].map(way_of)
    judged = networks[ways != "for ROAR"]  # which are not explained
    first_words = networks["network"].str.split().str[0]
    called = list(dict.fromkeys(first_words[judged.index].map(lambda word: KINDS.get(word, word))))
    ends = [judged.loc[at] for at in (judged["accuracy"].idxmin(), judged["accuracy"].idxmax())]
    of_ends = [
        f"{one['accuracy']:.0%} ({of_reader(one['network'].split()[0])} on {readable(one['data'])})" for one in ends
    ]
    roar = len(networks) - len(judged)
    text = (
        f"**{len(judged)} networks** that ship with the study, of {len(called)} kinds ({summaries.listed(called)}) on "
        f"{judged['data'].nunique()} data sets. They are right on {of_ends[0]} to {of_ends[1]} of their test examples, the median on "
        f"{judged['accuracy'].median():.0%}"
        + (
            f"; {roar} more that ship were retrained for ROAR on masked images, which pages evaluate and do not explain"
            if roar
            else ""
        )
        + "."
    )
Markdown(text)

# %% mystnb={"figure": {"caption": "Accuracy on the whole test split of each network that ships: a row for each data set and kind of network, a mark for each network.", "name": "networks-accuracy"}, "image": {"alt": "Dots: a row for each data set and network, the accuracy of each seed, with a colour and a shape for how it was trained."}} tags=["hide-input", "answer"]
if rows:
    # As narrow as a phone. How each was trained stands in the table below, too.
    words = networks["network"].str.split().str[0].map(lambda word: KINDS.get(word, word))
    rows_of = networks["data"].map(readable) + ",\n" + words
    figure, axes = plt.subplots(figsize=(4.2, 1.1 + 0.54 * rows_of.nunique()))
    of_kind = networks["kind"].map(way_of)
    look = {"hue": of_kind, "style": of_kind, "hue_order": [*MARKERS], "alpha": 0.8, "s": 34}
    sns.scatterplot(x=networks["accuracy"], y=rows_of, markers=MARKERS, ax=axes, **look)
    axes.set(xlabel="test accuracy", ylabel="", ylim=(rows_of.nunique() - 0.5, -0.5))
    axes.get_legend().remove()
    plots.key(figure, axes)
    display(plots.show(figure))

# %% [markdown]
# ## Accuracy, size, and where they were trained
#
# Accuracy is that of the rounded weights, which are what ships and what the study explains, on the whole test split. *1 channel
# masked* and *exactly that share* are fine-tuned as [the public code](f-fidelity/public-code) of F-Fidelity does it; on CIFAR-10
# ResNet-9's fresh weights with fewer epochs are its ROAR, which sees whole images. *Beta* is the largest share that fine-tuning
# masks, *unit* what it masks of a series, and *share* how much of the image a digit covers.
# *Maps* are mean rank correlations of explanations before and after rounding, by Input × Gradient and by Integrated Gradients (IG).

# %% tags=["hide-input"]
maps = {"maps_input-x-gradient": "{:.3f}", "maps_integrated-gradients": "{:.3f}"}
if rows:
    formats = {"accuracy": "{:.2%}", "accuracy_unrounded": "{:.2%}", **maps, "megabytes": "{:.2f}", "minutes": "{:.0f}"}
    display(shown(networks, formats), Markdown(f"Trained: {places(networks)}."))

# %% [markdown]
# ## Trained anew
#
# `make retrain NAME=<key>` trains a network again, from the same recipe, and compares it with the one that ships: accuracy, the
# share of the test examples that both put into the same class, and the mean rank correlation of their explanations. What was trained
# anew is not rounded, so that a network that comes out the same is as far from what ships as it was before its own rounding.

# %% tags=["hide-input"]
if anew:
    retrained = pd.DataFrame(anew).sort_values([*names, "date"])
    run.save(retrained, "retrained")
    formats = {"accuracy": "{:.2%}", "accuracy_anew": "{:.2%}", "same_class": "{:.2%}", **maps}
    moved = (retrained["accuracy"] - retrained["accuracy_anew"]).abs()
    alike = retrained[list(maps)].min(axis=1)
    same = int(retrained["rounding_alone"].sum())
    least = retrained.loc[alike.idxmin()]
    text = f"Of **{len(retrained)}** networks that were trained anew, none moves its accuracy by more than {100 * moved.max():.2f} "
    text += f"percentage points. The maps of {same} are as far from those that ship as rounding takes them, to three digits."
    if same < len(retrained):
        text += f" Least alike are the explanations of {of_reader(least['network'])} on {readable(least['data'])}, whose accuracy moved by "
        text += f"{100 * moved[alike.idxmin()]:.2f} points: their maps, of the kind that is less alike, have a rank correlation of **{alike.min():.2f}** with those that "
        text += "ship. So what is measured on explanations is measured on one network, and the networks ship."
    display(Markdown(text), shown(retrained, formats), Markdown(f"Trained anew: {places(retrained)}."))
else:
    display(Markdown("No training anew was kept yet."))

# %% [markdown]
# ## Networks that do not ship
#
# What ships was to fit into 60 MB and ten hours of training; the hours were passed. The study trained the networks below as well,
# most of them further trainings of a kind of which one ships. A build of the book shows what was measured on them, and trains none of them;
# what you run with parameters of your own trains those that it needs. *With other weights*: the network ships since, and the page was
# measured before.

# %% tags=["hide-input"]
weights = {network.facts["sha256"] for network in shipped.every()}
trained = [
    {"name": used["name"], "sha256": used["sha256"], "page": record["notebook"], "minutes": used["seconds"] / 60}
    for record in records.all_provenance()
    for used in record["networks"]
    if used["kind"] == "network" and used["sha256"] not in weights
]
if trained:
    elsewhere = pd.DataFrame(trained)
    run.save(elsewhere, "not-shipped")
    kinds = elsewhere["name"].str.rsplit("-", n=1).str[0].str.rsplit("-", n=1)  # a file is data-kind-key
    of = {
        "data": kinds.str[0].map(readable),
        "network": kinds.str[1].map(of_reader),
        "recipe": elsewhere["name"].isin(keys).map({True: "ships, with other weights", False: "does not ship"}),
    }
    by_kind = elsewhere.assign(**of).groupby([*of])
    table = pd.DataFrame(
        {
            "trainings": by_kind["sha256"].nunique(),
            "minutes": [each.drop_duplicates("sha256")["minutes"].sum() for _, each in by_kind],
            "pages": by_kind["page"].unique().map(", ".join),
        }
    )
    table["minutes"] = table["minutes"].map("{:.1f}".format)
    display(tables.prose(table.astype(str).reset_index()))
else:
    display(Markdown("The study trained no other."))

# %% tags=["hide-input"]
run.finish()
