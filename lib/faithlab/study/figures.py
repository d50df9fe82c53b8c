"""How the study's figures look: one theme, one colour per metric or explainer, readable without colour vision."""

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from matplotlib.axes import Axes
from matplotlib_inline.backend_inline import set_matplotlib_formats

from faithlab import stats

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
