"""The ReCo and MeGe paper: the networks its pages train, and its claims that the book tests."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import torch

from faithlab import engine, masks
from faithlab.study import cross_training, published
from faithlab.study.claims import UNTESTED, Claim, verdict
from faithlab.zoo.sets import LabelledSet
from faithlab.zoo.training import Recipe

_PAPER = "ReCo-MeGe"

EXPLAINERS = ("IG", "SG", "Saliency", "GradientxInput", "GradCAM", "SHAP", "Random")
"""By the names of the published tables; "Random" is the floor that we add."""
_GRADIENT = ("IG", "SG", "Saliency", "GradientxInput")

SETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "eurosat": "EuroSAT", "fashion-mnist": "Fashion-MNIST"}
"""The paper's data sets, and their names in its tables."""


class _Task(NamedTuple):
    examples: int  # in the training split
    channels: int
    side: int
    classes: int
    filters: int  # base filters of ResNet-18, and its dropout, as appendix A.3 prints them
    dropout: float


_TASKS = {
    "cifar10": _Task(50_000, 3, 32, 10, 32, 0.25),
    "cifar100": _Task(50_000, 3, 32, 100, 32, 0.25),
    "eurosat": _Task(21_600, 3, 64, 10, 46, 0.25),
    "fashion-mnist": _Task(60_000, 1, 28, 10, 26, 0.4),
}

Parameters = Mapping[str, Any]
"""Those of a notebook, from its parameters cell and profile."""


def resnet(data: str, parameters: Parameters) -> Recipe:
    """ResNet-18 for a data set; `width` None is the paper's. Inputs are intensities from 0 to 1, so that 0 is black."""
    task = _TASKS[data]
    options = {
        "classes": task.classes,
        "channels": task.channels,
        "width": parameters["width"] or task.filters,
        "dropout": task.dropout,
    }
    fast = engine.native_precision("cuda" if torch.cuda.is_available() else "cpu")
    mixed = parameters["precision"] == "bfloat16" and fast == torch.bfloat16
    return Recipe(
        data=data,
        data_options={"standardised": False},
        model="resnet18",
        model_options=options,
        epochs=parameters["epochs"],
        rate=parameters["rate"],
        decay=parameters["decay"],
        batch=parameters["batch"],
        limit=parameters["train_limit"],
        precision="bfloat16" if mixed else "float32",
        seed=parameters["seed"],
    )


def lipschitz(data: str, parameters: Parameters) -> Recipe:
    """The 1-Lipschitz network of Table 6, in float32: low precision would break its bound."""
    task = _TASKS[data]
    options = {
        "classes": task.classes,
        "channels": task.channels,
        "size": task.side,
        "width": parameters["lipschitz_width"],
        "scale": parameters["lipschitz_scale"],
    }
    return dataclasses.replace(
        resnet(data, parameters),
        model="lipschitz",
        model_options=options,
        epochs=parameters["lipschitz_epochs"],
        precision="float32",
    )


def trained_conditions(data: str, parameters: Parameters) -> dict[str, Recipe]:
    """Normal training and the degradations that need training of their own, by the names of the published tables.

    Where the data are limited, epochs are added so that the number of steps stays the same.
    """
    normal = resnet(data, parameters)
    found = {"normal": normal}
    for share in parameters["switched"]:
        found[f"switched {share:.0%}"] = dataclasses.replace(normal, switched=share)
    for share in parameters["limited"]:
        limit = int(masks.counts([share], normal.limit or _TASKS[data].examples))
        found[f"limited {share:.0%}"] = dataclasses.replace(normal, limit=limit, epochs=round(normal.epochs / share))
    return found


def _folds(recipes: Sequence[Recipe], parameters: Parameters) -> list[Recipe]:
    return [fold for recipe in recipes for fold in cross_training.folds(recipe, parameters["folds"])]


def normal_folds(parameters: Parameters) -> list[Recipe]:
    """All networks of the page on normal models, fold after fold of each."""
    return _folds([resnet(data, parameters) for data in parameters["sets"]], parameters)


def degraded_folds(parameters: Parameters) -> list[Recipe]:
    """All networks of the page on degraded models, fold after fold of each."""
    conditions = {data: trained_conditions(data, parameters) for data in parameters["sets"]}
    chosen = [
        recipe
        for data, recipes in conditions.items()
        for condition, recipe in recipes.items()
        if condition == "normal" or data in parameters["retrained"]
    ]
    return _folds(chosen, parameters)


def right_method_folds(parameters: Parameters) -> list[Recipe]:
    """All networks of the page on the right method for the right model, fold after fold of each."""
    data = parameters["data"]
    return _folds([resnet(data, parameters), lipschitz(data, parameters)], parameters)


def explainers(names: Sequence[str], data: LabelledSet, parameters: Parameters, **options):
    """The explainers at the sizes that a notebook's parameters say, see `cross_training.explainers`."""
    sizes = {key: parameters[key] for key in ("steps", "samples", "patch", "permutations", "seed") if key in parameters}
    return cross_training.explainers(names, data.inputs.shape[1:], **sizes | options)


def compared(
    family: cross_training.Family, data: LabelledSet, names: Sequence[str], parameters: Parameters, **options
) -> cross_training.Compared:
    """S= and S!= over the first `images` of the training examples (None: all) that the folds were made of."""
    limit = family.recipes[0].limit or len(data)
    examples = torch.arange(min(parameters["images"] or limit, limit))
    return cross_training.compare(family, data, examples, explainers(names, data, parameters, **options))


# The numbers of the paper, and ours in the same form


def published_scores(*measures: str) -> pd.DataFrame:
    """What Tables 1 to 5 and 7 to 14 print of these measures; a number that several of them print is there once.

    Returns:
        table, measure, dataset, model, condition, explainer, mean.
    """
    normal = published.load("consistency_scores").assign(condition="normal")
    both = pd.concat([normal, published.load("consistency_degradations")], ignore_index=True)
    both = both.rename(columns={"value": "mean"})
    both = both[both["measure"].isin(measures)]
    return both.drop_duplicates(["measure", "dataset", "model", "condition", "explainer"], ignore_index=True)


def long(scores: pd.DataFrame, *measures: str) -> pd.DataFrame:
    """Measured scores in the form of the published ones: a row per measure, its number in `mean`."""
    keys = [name for name in ("dataset", "model", "condition", "explainer") if name in scores]
    return scores.melt(id_vars=keys, value_vars=list(measures), var_name="measure", value_name="mean")


# What the claims rest on


def _cells(scores: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Datasets by explainers of the paper, of networks trained normally."""
    chosen = scores[(scores["condition"] == "normal") & (scores["explainer"] != "Random")]
    return chosen.pivot(index="dataset", columns="explainer", values=measure)


def _lead(row: pd.Series, name: str) -> str:
    """A score and the best of the others."""
    others = row.drop(name).dropna()
    best = f", best other {others.idxmax()} {others.max():.2f}" if len(others) else ""
    return f"{name} {row[name]:.2f}{best}"


def _gradcam_reco(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    table = _cells(tables["scores"], "ReCo")
    passed = (table["GradCAM"] >= table.max(axis=1)).tolist()
    detail = "; ".join(f"{data}: {_lead(row, 'GradCAM')}" for data, row in table.iterrows())
    return verdict(passed, table.to_numpy().ravel()), detail


def _gradcam_mege(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    table = _cells(tables["scores"], "MeGe")
    highest = table["GradCAM"] >= table.max(axis=1)
    passed = [bool(first) != (data == "Fashion-MNIST") for data, first in highest.items()]
    detail = "; ".join(f"{data}: {_lead(row, 'GradCAM')}" for data, row in table.iterrows())
    return verdict(passed, table.to_numpy().ravel()), detail


def _products_on_fashion(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    table = _cells(tables["scores"], "MeGe")
    if "Fashion-MNIST" not in table.index:
        return UNTESTED, "Fashion-MNIST was not measured"
    row = table.loc["Fashion-MNIST"]
    products, others = row[["IG", "GradientxInput"]], row.drop(["IG", "GradientxInput"])
    passed = [value > others.max() for value in products]
    detail = ", ".join(f"{name} {value:.2f}" for name, value in row.sort_values(ascending=False).items())
    return verdict(passed, row), f"MeGe: {detail}"


def _mu_fidelity(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    values = tables["fidelity"].set_index("explainer")["muFidelity"].drop("Random", errors="ignore")
    values = values.sort_values(ascending=False)
    detail = ", ".join(f"{name} {value:.2f}" for name, value in values.items())
    return verdict([values.idxmax() == "GradCAM"], values), detail


def _stability(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    values = tables["fidelity"].set_index("explainer")["S_avg"].drop("Random", errors="ignore").sort_values()
    passed = [name in values.index[:2] for name in ("GradCAM", "SG")]
    detail = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
    return verdict(passed, values), detail


def _falls(kind: str):
    """Whether the MeGe of Grad-CAM falls with every level of a degradation, on every data set."""

    def test(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
        scores = tables["scores"]
        scores = scores[scores["explainer"] == "GradCAM"]
        passed, measured, detail = [], [], []
        for data, of_data in scores.groupby("dataset", sort=False):
            chosen = of_data[of_data["condition"].str.startswith(kind) | (of_data["condition"] == "normal")]
            values = chosen.set_index("condition")["MeGe"]
            if len(values) < 2:
                continue
            passed += [after < before for before, after in itertools.pairwise(values)]
            measured += values.tolist()
            detail.append(f"{data}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))
        return verdict(passed, measured), "; ".join(detail) or "no level was measured"

    return test


def _normal_is_best(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    scores = tables["scores"]
    scores = scores[scores["explainer"] != "Random"]
    table = scores.pivot(index=["dataset", "explainer"], columns="condition", values="MeGe")
    best = table["normal"] >= table.max(axis=1)  # of the conditions that a data set was measured in
    failing = ", ".join(f"{explainer} ({data})" for (data, explainer), passed in best.items() if not passed)
    detail = f"highest without degradation in {best.sum()} of {len(best)} cases"
    return verdict(best.tolist(), scores["MeGe"]), detail + (f"; not for {failing}" if failing else "")


def _by_model(tables: Mapping[str, pd.DataFrame], measure: str) -> pd.DataFrame:
    """Explainers of the paper by models."""
    scores = tables["scores"]
    return scores[scores["explainer"] != "Random"].pivot(index="explainer", columns="model", values=measure)


def _raised(measure: str, names: Sequence[str] | None):
    """Whether the 1-Lipschitz network raises a score of these explainers; None: of all."""

    def test(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
        table = _by_model(tables, measure)
        table = table if names is None else table.loc[list(names)]
        passed = (table["1-Lipschitz"] > table["ResNet-18"]).tolist()
        pairs = table[["ResNet-18", "1-Lipschitz"]].itertuples()
        detail = ", ".join(f"{name} {before:.2f} → {after:.2f}" for name, before, after in pairs)
        return verdict(passed, table.to_numpy().ravel()), f"ResNet-18 → 1-Lipschitz: {detail}"

    return test


def _best_pair(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    table = _by_model(tables, "ReCo")
    if table.isna().to_numpy().any():
        return UNTESTED, "there are missing scores"
    best = table.idxmax()
    passed = [best["ResNet-18"] == "GradCAM", best["1-Lipschitz"] == "SG"]
    detail = ", ".join(f"{model}: {name} {table.loc[name, model]:.2f}" for model, name in best.items())
    return verdict(passed, table.to_numpy().ravel()), f"highest ReCo: {detail}"


def _grows(table: str):
    """Whether every distance grows from step to step, up to a share of its range."""

    def test(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
        falls = tables[table].set_index("distance")["largest_fall"]
        passed = (falls <= 0.02).tolist()
        failing = ", ".join(f"{name} by {fall:.0%}" for name, fall in falls.items() if fall > 0.02)
        detail = f"{sum(passed)} of {len(passed)} distances grow"
        return verdict(passed, falls), detail + (f"; of their range fall {failing}" if failing else "")

    return test


def _blind(measure: str):
    """Whether a measure is the same for a consistent family and its mirror image, and ReCo is not."""

    def test(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
        table = tables["mirrored"]
        row = table[table["example"] == measure].set_index("measure")
        other, reco = row.loc[measure], row.loc["ReCo"]
        passed = [
            abs(other["consistent"] - other["inconsistent"]) <= 0.02 * abs(other["consistent"]),
            reco["consistent"] > reco["inconsistent"] + 0.5,
        ]
        detail = f"{measure} {other['consistent']:.2f} and {other['inconsistent']:.2f}, "
        detail += f"ReCo {reco['consistent']:.2f} and {reco['inconsistent']:.2f}"
        return verdict(passed, [*other[["consistent", "inconsistent"]]]), detail

    return test


def _zero(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    table = tables["chance"].groupby("rates")["ReCo"].agg(["min", "max"])
    passed = (table["max"] < 0.1).tolist()
    detail = "; ".join(f"{rates}: {row['min']:.2f} to {row['max']:.2f}" for rates, row in table.iterrows())
    return verdict(passed, table.to_numpy().ravel()), f"one distribution for S= and S≠ scores, {detail}"


DISTANCES = [
    Claim(
        "rc-distance-space",
        _PAPER,
        "Section 4.3.1, Figure 2",
        "Every candidate distance grows steadily as the spot of interest moves away.",
        _grows("space"),
    ),
    Claim(
        "rc-distance-noise",
        _PAPER,
        "Section 4.3.2, Figure 3",
        "Every candidate distance grows steadily with the noise.",
        _grows("noise"),
    ),
]

WHY = [
    Claim(
        "rc-kl-blind",
        _PAPER,
        "Appendix A.2, Figure 7",
        "The Kullback-Leibler divergence cannot tell a consistent family from an inconsistent one; ReCo can.",
        _blind("KL"),
    ),
    Claim(
        "rc-w1-blind",
        _PAPER,
        "Appendix A.2, Figure 8",
        "The 1-Wasserstein distance cannot tell them apart either; ReCo can.",
        _blind("W1"),
    ),
    Claim(
        "rc-zero",
        _PAPER,
        "Section 3.4, eq. 7",
        "A ReCo of 0 means total inconsistency, whichever rates are used.",
        _zero,
    ),
]

NORMAL = [
    Claim("rc-gradcam-reco", _PAPER, "Table 1", "Grad-CAM has the highest ReCo on every data set.", _gradcam_reco),
    Claim(
        "rc-gradcam-mege",
        _PAPER,
        "Table 2",
        "Grad-CAM has the highest MeGe on every data set except Fashion-MNIST.",
        _gradcam_mege,
    ),
    Claim(
        "rc-products",
        _PAPER,
        "Table 2, section 5.1.1",
        "On Fashion-MNIST the explanations that are multiplied with the input have the highest MeGe.",
        _products_on_fashion,
    ),
    Claim("rc-mufidelity", _PAPER, "Table 3", "µFidelity ranks Grad-CAM first.", _mu_fidelity),
    Claim("rc-stability", _PAPER, "Table 3", "Grad-CAM and SmoothGrad are the most stable.", _stability),
]

DEGRADED = [
    Claim(
        "rc-degraded-weights",
        _PAPER,
        "Figure 4, Tables 8, 10, 12, 14",
        "The MeGe of Grad-CAM falls with every further share of layers that is randomised.",
        _falls("randomized"),
    ),
    Claim(
        "rc-degraded-labels",
        _PAPER,
        "Figure 4, Tables 8, 10, 12, 14",
        "It falls with every further share of labels that is switched.",
        _falls("switched"),
    ),
    Claim(
        "rc-degraded-data",
        _PAPER,
        "Tables 8, 10, 12, 14",
        "It falls with every further limit of the training data.",
        _falls("limited"),
    ),
    Claim(
        "rc-normal-best",
        _PAPER,
        "Section 5.2",
        "Whatever the explainer, models without a degradation have the highest MeGe.",
        _normal_is_best,
    ),
]

RIGHT_METHOD = [
    Claim(
        "rc-lipschitz-reco",
        _PAPER,
        "Table 4",
        "The 1-Lipschitz network raises the ReCo of gradient methods.",
        _raised("ReCo", _GRADIENT),
    ),
    Claim(
        "rc-lipschitz-mege",
        _PAPER,
        "Table 5",
        "The 1-Lipschitz network raises the MeGe of every method.",
        _raised("MeGe", None),
    ),
    Claim(
        "rc-best-pair",
        _PAPER,
        "Table 4, section 5.3",
        "Grad-CAM has the highest ReCo on ResNet-18, SmoothGrad on the 1-Lipschitz network.",
        _best_pair,
    ),
]
