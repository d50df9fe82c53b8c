"""How the study's figures look: one theme, one colour per metric or explainer, readable without colour vision."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from matplotlib.axes import Axes
from matplotlib_inline.backend_inline import set_matplotlib_formats
from torch import Tensor

from faithlab import stats
from faithlab.metrics import Metric
from faithlab.scores import Scores

COLOURS = dict(
    zip(
        ["F-Fidelity", "R-Fidelity", "Fidelity", "ROAR", "truth", "SaCo", "Random"],
        [sns.color_palette("colorblind")[i] for i in (0, 1, 2, 3, 7, 4, 3)],
        strict=True,
    )
)
"""What has a colour of its own in every figure of the book."""


def theme() -> None:
    """Use the study's theme for every figure of this process, and vector images in notebooks."""
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette="colorblind",
        rc={
            "figure.figsize": (7.2, 4.2),
            "figure.dpi": 110,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "axes.titleweight": "bold",
            "grid.alpha": 0.5,
            "legend.frameon": False,
            "svg.fonttype": "none",  # text stays text: searchable, and small
            "svg.hashsalt": "faithlab",  # the same figure is the same file
        },
    )
    set_matplotlib_formats("svg", metadata={"Date": None})


def mark(axes: Axes, at: float, text: str, *, axis: str = "x", height: float = 1.0) -> None:
    """A dashed line at a value on an axis, with a label at its end."""
    colour = COLOURS["truth"]
    if axis == "x":
        axes.axvline(at, color=colour, linestyle="--", linewidth=1.2)
        axes.annotate(
            text,
            (at, height),
            xycoords=("data", "axes fraction"),
            xytext=(3, -2),
            textcoords="offset points",
            va="top",
            color="0.35",
            fontsize="small",
        )
    else:
        axes.axhline(at, color=colour, linestyle="--", linewidth=1.2)
        axes.annotate(
            text,
            (1.0, at),
            xycoords=("axes fraction", "data"),
            xytext=(-3, 3),
            textcoords="offset points",
            ha="right",
            color="0.35",
            fontsize="small",
        )


def show(figure: plt.Figure) -> plt.Figure:
    """A laid-out figure to end a cell with, drawn once."""
    figure.tight_layout()
    plt.close(figure)
    return figure


def maps(pictures: Tensor, attributions: Mapping[str, Tensor], *, across: bool = False) -> plt.Figure:
    """Some inputs and their explanations, a row each; brighter is more relevant, every map has its own scale.

    Args:
        pictures: [n, H, W, C], as imshow takes them.
        attributions: by explainer, [B, F] with B of at least n, of the same pixels.
        across: explainers are columns, for many of them.
    """
    n, height, width = pictures.shape[:3]
    n = min(n, *(len(of) for of in attributions.values()))
    rows = {"image": pictures, **{name: of[:n].cpu().view(-1, height, width) for name, of in attributions.items()}}
    if across:
        figure, grid = plt.subplots(n, len(rows), figsize=(8.2, 8.2 / len(rows) * n + 0.9), squeeze=False)
    else:
        figure, grid = plt.subplots(len(rows), n, figsize=(1.2 * n, 1.2 * len(rows) + 0.1), squeeze=False)
    for row, (name, of) in zip(grid.T if across else grid, rows.items(), strict=True):
        for axes, picture in zip(row, of[:n], strict=True):
            top = None if picture.ndim == 3 else picture.quantile(0.99).item()
            axes.imshow(picture, cmap="magma", vmax=top)
            axes.set(xticks=[], yticks=[])
            sns.despine(ax=axes, left=True, bottom=True)
        if across:
            row[0].set_title(name, rotation=55, ha="left", va="bottom", fontsize="small", fontweight="normal", x=0.1)
        else:
            row[0].set_ylabel(name)
    return show(figure)


def degraded_curves(
    scores: Scores,
    metrics: Mapping[str, Metric],
    *,
    size: str,
    lost: str,
    row: str = "explainer",
    rows: Mapping[str, Mapping[str, Any]] | None = None,
) -> plt.Figure:
    """What is lost under MoRF for more and more noise: one line per share of noise, a column per metric.

    Args:
        scores: of `faithlab.trials.degraded.degraded`.
        metrics: by name; those that remove the most relevant first are shown.
        size: label of the horizontal axis.
        lost: what is lost.
        row: the label that makes the rows of the figure.
        rows: their names and labels; None: the values of `row`.
    """
    shown = [name for name, metric in metrics.items() if metric.direction == "MoRF"]
    of_row = {str(value): {row: value} for value in scores.labels(row)} if rows is None else rows
    levels = sorted([None, *scores.labels("level")], key=lambda level: level or 0)
    colours = sns.color_palette("viridis", len(levels))
    figure, grid = plt.subplots(
        len(of_row), len(shown), figsize=(2.3 * len(shown) + 0.9, 1.9 * len(of_row) + 0.3), squeeze=False, sharex=True
    )
    for of_metric, (name, labels) in zip(grid, of_row.items(), strict=True):
        for axes, metric in zip(of_metric, shown, strict=True):
            curves = stats.estimate(scores, metric=metric, cells=[{"level": level} for level in levels], **labels)
            for level, colour, value, low, high in zip(levels, colours, *curves.pooled, strict=True):
                axes.plot(metrics[metric].sizes, value, color=colour, label=f"{level or 0:g}")
                axes.fill_between(metrics[metric].sizes, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.set_title(f"{name}: {metric}", fontsize="small")
        of_metric[0].set_ylabel(f"lost {lost}", fontsize="small")
    for axes in grid[-1]:
        axes.set_xlabel(size, fontsize="small")
    grid[0, -1].legend(title="noise share", bbox_to_anchor=(1.0, 1.0), loc="upper left", fontsize="small")
    return show(figure)


def noise_curves(curves: pd.DataFrame, *, row: str = "explainer", size: str, left: str = "accuracy") -> plt.Figure:
    """What remains under MoRF for more and more noise: one line per share of noise, a column per metric.

    Args:
        curves: of `faithlab.study.trials.degraded_curves`.
        row: the column that makes the rows of the figure.
        size: label of the horizontal axis.
        left: what remains.
    """
    grid = sns.relplot(
        curves[curves["direction"] == "MoRF"],
        x="fraction",
        y="value",
        hue="share",
        style="share",
        palette="viridis",
        row=row,
        col="metric",
        kind="line",
        height=2.1,
        aspect=1.15,
        errorbar=None,
        facet_kws={"sharey": False},  # F-Fidelity removes little, so its curves lie close together
    )
    grid.set_titles("{row_name}: {col_name}").set_axis_labels(size, f"remaining {left}")
    grid.tight_layout()
    sns.move_legend(grid, "center left", bbox_to_anchor=(1.0, 0.5), title="noise share")
    plt.close(grid.figure)
    return grid.figure


def correlations_by_size(curves: pd.DataFrame, *, col: str = "explainer", size: str) -> plt.Figure:
    """Rank correlation of each metric with the true order at each size under MoRF, the mean over the seeds.

    Args:
        curves: of `faithlab.study.trials.degraded_curves`.
        col: the column that makes the columns of the figure.
        size: label of the horizontal axis.
    """
    per_size = curves[curves["direction"] == "MoRF"].pivot(
        index=[col, "metric", "seed", "fraction"], columns="share", values="value"
    )
    quality = -torch.tensor(per_size.columns.to_numpy(copy=True))
    found = stats.spearman(torch.from_numpy(per_size.to_numpy(copy=True)), quality.expand(len(per_size), -1))
    grid = sns.relplot(
        per_size.assign(correlation=found.numpy()).reset_index(),
        x="fraction",
        y="correlation",
        hue="metric",
        style="metric",
        markers=True,
        dashes=False,
        palette={name: COLOURS[name] for name in curves["metric"].unique()},
        col=col,
        kind="line",
        errorbar=None,
        height=2.9,
        aspect=1.0,
    )
    for axes in grid.axes.flat:
        mark(axes, -1, "ideal", axis="y")
        axes.set(ylim=(-1.1, 1.1))
    grid.set_titles("{col_name}").set_axis_labels(size, "correlation with the truth")
    plt.close(grid.figure)
    return grid.figure


def order_by_size(
    scores: Scores,
    metrics: Mapping[str, Metric],
    *,
    levels: Sequence[float],
    seeds: Sequence[int],
    size: str,
    cols: Mapping[str, Mapping[str, Any]] | None = None,
) -> plt.Figure:
    """Rank correlation of each metric with the true order at each size under MoRF, with its interval.

    Args:
        scores: of `faithlab.trials.degraded.degraded`.
        metrics: by name; those that remove the most relevant first are shown.
        levels: shares of noise, from none (0) upwards.
        seeds: of the noise.
        size: label of the horizontal axis.
        cols: names and labels of the columns of the figure; None: the explainers.
    """
    shown = [name for name, metric in metrics.items() if metric.direction == "MoRF"]
    cols = {name: {"explainer": name} for name in scores.labels("explainer")} if cols is None else cols
    figure, grid = plt.subplots(1, len(cols), figsize=(2.9 * len(cols) + 1.2, 2.9), squeeze=False, sharey=True)
    for axes, (name, labels) in zip(grid[0], cols.items(), strict=True):
        for metric, marker in zip(shown, "osD^vPX", strict=False):
            family = metrics[metric].family or metric
            of = stats.found_order(levels, seeds, micro=True, each_size=True, metric=metric)
            found = stats.estimate(scores, of, **labels)
            axes.plot(metrics[metric].sizes, found.value, marker=marker, label=family, color=COLOURS.get(family))
            axes.fill_between(metrics[metric].sizes, found.low, found.high, color=COLOURS.get(family), alpha=0.12)
        mark(axes, 1, "ideal", axis="y")
        axes.set(title=name, xlabel=size, ylim=(-1.1, 1.1))
    grid[0, 0].set_ylabel("correlation with the truth")
    grid[0, -1].legend(bbox_to_anchor=(1.0, 1.0), loc="upper left")
    return show(figure)


def distance_histograms(spread: pd.DataFrame, *, row: str, col: str) -> plt.Figure:
    """How the distances of S= and S!= are spread, a small histogram for each row and column.

    Args:
        spread: of `faithlab.study.cross_training.histograms`, with the columns named by `row` and `col`.
        row: the column that makes the rows of the figure.
        col: the column that makes the columns of the figure.
    """
    grid = sns.displot(
        spread,
        x="distance",
        weights="share",
        hue="set",
        hue_order=["S=", "S≠"],
        row=row,
        col=col,
        bins=spread["distance"].nunique(),
        binrange=(0, 1),
        element="step",
        height=1.25,
        aspect=2.6,
        facet_kws={"sharey": False},  # what counts is where the two lie, not how high they are
    )
    grid.set_titles("{row_name}: {col_name}", fontsize="small").set_axis_labels("distance", "share")
    grid.set(yticks=[])
    sns.move_legend(grid, "upper left", bbox_to_anchor=(1.0, 0.98), title=None)
    plt.close(grid.figure)
    return grid.figure
