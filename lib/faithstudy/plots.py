"""How the study's figures look: one theme, one colour per metric or explainer, readable without colour vision."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from IPython import get_ipython
from IPython.core.pylabtools import print_figure
from IPython.display import Markdown
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib_inline.backend_inline import set_matplotlib_formats
from PIL import Image
from scipy.cluster import hierarchy
from torch import Tensor

from faithlab import masks, stats
from faithlab.metrics.size import LEAST_ROWS, Setting, Size
from faithlab.metrics.size import law as size_law
from faithlab.scores import Scores
from faithlab.stats.samples import Function, Statistic
from faithstudy import numbers
from faithstudy.display_names import named, plain

if TYPE_CHECKING:  # else every page would depend on them
    from faithlab.decide import Decision
    from faithlab.metrics import Metric
    from faithlab.metrics.saco import Groups

_PLACES = {"F-Fidelity": 0, "R-Fidelity": 1, "Fidelity": 2, "ROAR": 3, "truth": 7, "SaCo": 4, "Random": 3}
COLOURS = {name: sns.color_palette("colorblind")[place] for name, place in _PLACES.items()}
"""What has a colour of its own in every figure of the book."""


class Inputs:
    """How many inputs a reader's own run has measured last; None: the page shows what is recorded."""

    measured: int | None = None


INPUTS = Inputs()


def theme() -> None:
    """Use the study's theme for every figure of this process, and vector images in notebooks."""
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette="colorblind",
        rc={
            "figure.constrained_layout.use": True,
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
    set_matplotlib_formats("svg")
    if shell := get_ipython():
        undated = partial(print_figure, fmt="svg", metadata={"Date": None})
        shell.display_formatter.formatters["image/svg+xml"].for_type(plt.Figure, undated)


def mark(axes: Axes, at: float, text: str, *, axis: str = "x", height: float = 1.0) -> None:
    """A dashed line at a value on an axis, with a label at its end: on white beside it, or outside on the right."""
    colour = COLOURS["truth"]
    look = {"textcoords": "offset points", "color": "0.35", "fontsize": "small"}
    if axis == "x":
        axes.axvline(at, color=colour, linestyle="--", linewidth=1.2)
        ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1}
        place = ("data", "axes fraction")
        axes.annotate(text, (at, height), (4, -2), place, va="top", bbox=ground, zorder=6, **look)
    else:
        axes.axhline(at, color=colour, linestyle="--", linewidth=1.2)
        axes.annotate(text, (1.0, at), (3, 0), ("axes fraction", "data"), va="center", **look)


SMALLEST = 9.0
"""The smallest text of a figure, in points."""
COLUMN = 704 / 96
"""What the column of a page is wide on a screen of 1280 pixels, in inches; wider figures would be shown smaller."""


def show(figure: plt.Figure, least: int = 1) -> plt.Figure:
    """A laid-out figure to end a cell with, drawn once: not wider than `COLUMN`, no text smaller than `SMALLEST`.

    Args:
        figure: to be shown.
        least: so many inputs it needs; a run of a reader's own with fewer shows that in its place.
    """
    if INPUTS.measured is not None:
        enough = INPUTS.measured >= least
        if not enough:
            figure.clear()
            figure.set_size_inches(COLUMN, 0.6)
        said = (
            f"of {INPUTS.measured:,} inputs" if enough else f"needs {least:,} inputs, this run has {INPUTS.measured:,}"
        )
        figure.text(1.0 if enough else 0.5, 0.0, said, ha="right" if enough else "center", va="top", fontsize="small")
    for text in figure.findobj(Text):
        text.set_text(named(text.get_text()))
        text.set_fontsize(max(SMALLEST, text.get_fontsize()))
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        for which, ticks in {"major": axis.majorTicks, "minor": axis.minorTicks}.items():
            if any(tick.label1.get_fontsize() <= SMALLEST for tick in ticks):
                axis.set_tick_params(which=which, labelsize=SMALLEST)  # of ticks that are still to come, too
    figure.set_layout_engine("constrained" if figure.axes else "none")
    figure.set_figwidth(min(figure.get_figwidth(), COLUMN))
    for _ in range(4):  # what lies beside the axes, such as a legend, keeps its width
        figure.draw_without_rendering()
        beyond = figure.get_tightbbox().width + 2 * plt.rcParams["savefig.pad_inches"] - COLUMN
        if beyond <= 0:
            break
        figure.set_figwidth(figure.get_figwidth() - beyond - 0.01)
    figure.set_layout_engine("none")
    plt.close(figure)
    return figure


def _image(axes: Axes, picture: Tensor) -> None:
    """A picture [C, H, W] in 0..1 or in bytes, C is 1 or 3, or a map [H, W] with its own scale: no ticks, no frame."""
    picture = picture.cpu() / 255 if picture.dtype == torch.uint8 else picture.cpu()
    if picture.ndim == 3:
        axes.imshow(picture.clamp(0, 1).permute(1, 2, 0).expand(-1, -1, 3))
    else:
        top = picture.quantile(0.99).item()
        axes.imshow(picture, cmap="magma", vmax=top, interpolation="nearest", rasterized=True)
    axes.set(xticks=[], yticks=[])
    sns.despine(ax=axes, left=True, bottom=True)


def maps(images: Tensor, attributions: Mapping[str, Tensor], *, across: bool = False) -> plt.Figure:
    """Some inputs and their explanations, a row each; brighter is more relevant, every map has its own scale.

    Args:
        images: [n, H, W, C], as imshow takes them.
        attributions: by explainer, [B, F] with B of at least n, of the same pixels.
        across: explainers are columns, for many of them.
    """
    n, height, width = images.shape[:3]
    n = min(n, *(len(of) for of in attributions.values()))
    rows = {"image": images[:n].permute(0, 3, 1, 2)}
    rows |= {name: of[:n].cpu().view(-1, height, width) for name, of in attributions.items()}
    if across:
        names = [[name.replace(" ", "\n") for name in rows]]
        size = (COLUMN, COLUMN / len(rows) * n + 1)
        return pictures([*zip(*rows.values(), strict=True)], above=names, turned=True, size=size)
    return pictures([*rows.values()], beside=[*rows], size=(1.2 * n, 1.2 * len(rows) + 0.1))


def series(shown: Tensor, attributions: Mapping[str, Tensor], steps: int | None = None) -> plt.Figure:
    """A series over the relevance of its steps, a panel for each explanation: the darker, the more; below 0 is white.

    Args:
        shown: [steps, channels], in standard deviations; a line for each channel.
        attributions: by the title of their panel, [F], of the steps or of their values.
        steps: so many are shown, the others fill it up; None: all.
    """
    whole, shown = len(shown), shown[:steps].cpu().numpy()
    figure, grid = plt.subplots(
        len(attributions), 1, figsize=(8.4, 2.3 * len(attributions)), sharex=True, squeeze=False
    )
    extent = (-0.5, len(shown) - 0.5, shown.min() - 0.5, shown.max() + 0.5)
    looks = list(itertools.product(("-", "--", ":", "-."), sns.color_palette("colorblind")[:4]))
    for axes, (title, of) in zip(grid[:, 0], attributions.items(), strict=True):
        shade = of.cpu().view(whole, -1).sum(1)[: len(shown)].clamp(min=0)
        # The lines stay readable on the darkest shade.
        look = {"aspect": "auto", "cmap": "Greys", "vmax": 1.6, "interpolation": "none", "extent": extent}
        axes.imshow((shade / shade.max())[None].numpy(), **look)
        for channel, (values, (dashes, colour)) in enumerate(zip(shown.T, itertools.cycle(looks), strict=False)):
            axes.plot(values, color=colour, linestyle=dashes, linewidth=1.2, label=f"{channel + 1}")
        axes.grid(False)
        axes.set(xlim=extent[:2], ylim=extent[2:], ylabel="value (sd)", title=title)
    grid[-1, 0].set_xlabel("time step")
    grid[0, 0].legend(title="channel", loc="center left", bbox_to_anchor=(1.01, 0.5))
    return show(figure)


def pictures(
    grid: Sequence[Sequence[Tensor]],
    *,
    size: tuple[float, float],
    above: Sequence[Sequence[str]] = (),
    below: Sequence[Sequence[str]] = (),
    beside: Sequence[str] = (),
    turned: bool = False,
) -> plt.Figure:
    """Small pictures in rows, with words round them.

    Args:
        grid: the rows; pictures are [C, H, W] in 0..1, C is 1 or 3, or maps [H, W], each with its own scale.
        size: of the figure, in inches.
        above: the words above each picture, as many rows as have some; and so on.
        below: the words below.
        beside: the words to the left of each row.
        turned: the words above are read from below.
    """
    figure, axes = plt.subplots(len(grid), len(grid[0]), figsize=size, squeeze=False)
    for r, row in enumerate(grid):
        for c, picture in enumerate(row):
            _image(axes[r, c], picture)
            title = above[r][c] if r < len(above) else ""
            axes[r, c].set_title(title, fontsize="x-small", fontweight="normal", rotation=90 * turned)
            axes[r, c].set_xlabel(below[r][c] if r < len(below) else "", fontsize="x-small")
        axes[r, 0].set_ylabel(beside[r] if beside else "", fontsize="x-small")
    return show(figure)


def degraded_curves(
    scores: Scores,
    metrics: Mapping[str, Metric],
    *,
    size: str,
    lost: str,
    direction: masks.Direction = "MoRF",
    row: str = "explainer",
    rows: Mapping[str, Mapping[str, Any]] | None = None,
) -> plt.Figure:
    """What is lost under MoRF or LeRF for more and more noise: one line per share of noise, a column per metric.

    Args:
        scores: of `faithstudy.trials.degraded.degraded`.
        metrics: by name; those of the direction are shown.
        size: label of the horizontal axis: what an explanation names, in both directions.
        lost: what is lost.
        direction: which end of the order is removed first.
        row: the label that makes the rows of the figure.
        rows: their names and labels; None: the values of `row`.

    Raises:
        ValueError: none of the metrics has this direction.
    """
    shown = [name for name, metric in metrics.items() if metric.direction == direction]
    if not shown:
        raise ValueError(f"expected a metric that removes features under {direction}; there are {', '.join(metrics)}")
    levels = sorted([None, *scores.labels("level")], key=lambda level: level or 0)
    return curves(
        scores,
        lines={f"{level or 0:g}": {"level": level} for level in levels},
        x=size,
        y=f"lost {lost}",
        rows={str(value): {row: value} for value in scores.labels(row)} if rows is None else rows,
        columns={metric: {"metric": metric} for metric in shown},
        ordered=True,
        sharey="none",
        title="noise share",
    )


def key(figure: plt.Figure, axes: Axes, **look: Any) -> None:
    """What the lines of some axes are, above all panels in as few rows as fit: beside them it takes their width."""
    lines, names = axes.get_legend_handles_labels()
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "fontsize": "small", "columnspacing": 1.2}
    for rows in range(1, len(names) + 1):
        legend = figure.legend(lines, names, **(place | look | {"ncols": -(-len(names) // rows)}))
        if rows == len(names) or legend.get_window_extent().width <= min(figure.get_figwidth(), COLUMN) * figure.dpi:
            break
        legend.remove()


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
        scores: of `faithstudy.trials.degraded.degraded`.
        metrics: by name; those that remove the most relevant first are shown.
        levels: shares of noise, from none (0) upwards.
        seeds: of the noise.
        size: label of the horizontal axis.
        cols: names and labels of the columns of the figure; None: the explainers.
    """
    shown = [name for name, metric in metrics.items() if metric.direction == "MoRF"]
    families = {metrics[name].family or name: {"metric": name} for name in shown}
    colours = [COLOURS.get(family, f"C{k}") for k, family in enumerate(families)]

    def found(metric: str, **labels: Any) -> stats.Estimate:
        order = stats.found_order(levels, seeds, micro=True, each_size=True, metric=metric)
        return stats.estimate(scores, order, **labels)

    cols = {name: {"explainer": name} for name in scores.labels("explainer")} if cols is None else cols
    look = {"x": size, "y": "correlation with the truth", "colours": colours}
    figure, grid = _curves(scores, found, families, {"": {}}, cols, **look)
    for axes in grid[0]:
        mark(axes, 1, "ideal", axis="y")
        axes.set_ylim(-1.1, 1.1)
    return show(figure)


def distance_histograms(scores: Scores, *, row: str, col: str) -> plt.Figure:
    """How the distances of S= and S!= are spread, a small histogram for each row and column; shares, no intervals.

    Args:
        scores: with rows of `faithstudy.trials.cross_trained`.
        row: the label that makes the rows of the figure.
        col: the label that makes the columns of the figure.
    """
    found = scores.where(metric=["S=", "S≠"]).frame()
    rows, cols = (list(dict.fromkeys(found[name])) for name in (row, col))
    size = (min(COLUMN, 1.9 * len(cols)), 0.95 * len(rows) + 0.6)
    figure, grid = plt.subplots(len(rows), len(cols), figsize=size, squeeze=False, sharex=True)
    for of_row, name in zip(grid, rows, strict=True):
        for axes, other in zip(of_row, cols, strict=True):
            own = found[(found[row] == name) & (found[col] == other)]
            for metric, label in {"S=": "$S^{=}$", "S≠": r"$S^{\neq}$"}.items():
                values = own.loc[own["metric"] == metric, "value"].dropna()
                shares = np.full(len(values), 1 / max(1, len(values)))
                axes.hist(values, 20, (0, 1), weights=shares, histtype="stepfilled", alpha=0.5, label=label)
            heads = [other if axes in grid[0] else "", name if axes is of_row[0] else ""]  # beside a row it takes width
            axes.set_title("\n".join(filter(None, heads)), fontsize="small", fontweight="normal", loc="left")
            axes.set(yticks=[], xticks=[0, 0.5, 1])
    figure.supxlabel("distance", fontsize="small")
    figure.supylabel("share of pairs (each panel to its own height)", fontsize="small")
    key(figure, grid[0, 0])
    return show(figure)


_REFINED = {way: sns.color_palette("colorblind")[i] for way, i in {"none": 7, "XRAI": 3, "SG": 2, "SG²": 1}.items()}


def refined(found: pd.DataFrame, label: str) -> plt.Figure:
    """The mean of each explainer under each refinement with its interval, a panel for each network.

    Args:
        found: of `faithstudy.trials.refined.table`, of one metric. The dashed line is the explainer Random.
        label: of the metric's axis.
    """
    networks, names = found["network"].unique(), list(found["explainer"].unique())
    size = (COLUMN, len(networks) * (0.8 + 0.42 * len(names)))
    figure, grid = plt.subplots(len(networks), 1, figsize=size, squeeze=False, sharex=True)
    for axes, network in zip(grid[:, 0], networks, strict=True):
        own = found[found["network"] == network].set_index("explainer")
        _spots(axes, names, {way: own[own["refinement"] == way] for way in _REFINED}, [*_REFINED.values()])
        mark(axes, own.loc[["Random"], "mean"].min(), "Random")
        axes.set_title(network if len(networks) > 1 else "")
    axes.set_xlabel(label)
    key(figure, grid[0, 0])
    return show(figure)


def _spots(
    axes: Axes, names: Sequence[str], groups: Mapping[str, pd.DataFrame | None], colours: Sequence[Any] = ()
) -> None:
    """Numbers with their intervals: a row for each name, the first on top, and a mark for each group.

    Args:
        axes: to draw on.
        names: of the rows.
        groups: by name, mean, low and high by the name of their row; None: it has none here.
        colours: of the groups.
    """
    for number, (group, of) in enumerate(groups.items()):
        if of is not None:
            at = [names.index(name) + 0.6 * ((number + 0.5) / len(groups) - 0.5) for name in of.index]
            ends = np.stack([of["mean"] - of["low"], of["high"] - of["mean"]])
            ends = np.nan_to_num(ends).clip(min=0)  # rounding may pass a limit
            look = {"fmt": "os^vD*"[number % 6], "color": [*colours, *(f"C{k}" for k in range(10))][number]}
            axes.errorbar(of["mean"], at, xerr=ends, label=group, capsize=2, markersize=5, **look)
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.invert_yaxis()


def against(found: pd.DataFrame, metric: str, other: str) -> plt.Figure:
    """Means of two metrics, a point with its intervals for each explainer and refinement, a panel for each network.

    Args:
        found: of `faithstudy.trials.refined.table`.
        metric: on the horizontal axis.
        other: on the vertical one.
    """
    networks = found["network"].unique()
    names = list(found["explainer"].unique())
    # As narrow as a phone: panels below each other, shapes above them and colours below.
    figure, grid = plt.subplots(len(networks), 1, figsize=(3.7, 3.4 * len(networks)), squeeze=False)
    for axes, network in zip(grid[:, 0], networks, strict=True):
        x, y = (found[(found["network"] == network) & (found["metric"] == m)] for m in (metric, other))
        for one, two in zip(x.itertuples(), y.set_index("name").loc[x["name"]].itertuples(), strict=True):
            axes.errorbar(
                one.mean,
                two.mean,
                xerr=[[one.mean - one.low], [one.high - one.mean]],
                yerr=[[two.mean - two.low], [two.high - two.mean]],
                fmt="osD^vP*X<>"[names.index(one.explainer) % 10],
                color=_REFINED.get(one.refinement),
                linewidth=0.5,
            )
        axes.set(xlabel=f"{metric} (mean)", ylabel=f"{other} (mean)", title=network)
    shapes = [
        plt.Line2D([], [], marker="osD^vP*X<>"[i % 10], color="black", markerfacecolor="none", ls="", label=n)
        for i, n in enumerate(names)
    ]
    colours = [plt.Rectangle((0, 0), 1, 1, color=colour, label=name) for name, colour in _REFINED.items()]
    look = {"fontsize": "small", "title_fontsize": "small", "columnspacing": 1.0, "handletextpad": 0.4}
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3, "title": "shape: explainer"}
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": 4, "title": "colour: refinement"}
    figure.legend(handles=shapes, **above, **look)
    figure.legend(handles=colours, **below, **look, handlelength=1.0)
    return show(figure)


def dots(
    scores: Scores,
    groups: Mapping[str, Mapping[str, Any]],
    *,
    label: str,
    row: str = "explainer",
    panels: Mapping[str, Mapping[str, Any]] | None = None,
    marks: Mapping[float, str] | None = None,
    printed: Mapping[str, float] | None = None,
    statistics: Mapping[str, stats.Statistic] | None = None,
    **labels: Any,
) -> plt.Figure:
    """Means with their 95 % intervals over the images, a row for each explainer, the best on top.

    Args:
        scores: the long table.
        groups: names and labels of what is told apart in every row, such as references.
        label: of the horizontal axis.
        row: the label that makes the rows.
        panels: names and labels of the panels, one below the other, with the same rows; None: one. A group without
            scores in a panel is left out of it.
        marks: values that are marked, and their names.
        printed: a paper's numbers, by row: crosses.
        statistics: by group, what stands in the place of the mean.
        **labels: of all rows.
    """
    asked, found = dict.fromkeys(groups, stats.mean) | dict(statistics or {}), {}
    for panel, of_panel in (panels or {"": {}}).items():
        for group, own in groups.items():
            if not panels or any((of_panel | own).items() <= block.labels.items() for block in scores):
                each = stats.summary(scores, [row], asked[group], **labels, **of_panel, **own)
                rows = {cell[row]: [float(x) for x in e.shown] for cell, e in each}
                found[panel, group] = pd.DataFrame(rows, ["mean", "low", "high"]).T
    means = pd.concat([of["mean"] for of in found.values()]).groupby(level=0, sort=False).sum()
    names = means.sort_values(ascending=False, kind="stable").index.tolist()
    there = list(dict.fromkeys(panel for panel, _ in found))
    size = (3.7, 0.8 + len(there) * (0.3 + 0.27 * len(names)))  # as narrow as a phone
    figure, grid = plt.subplots(len(there), figsize=size, sharex=True, squeeze=False)
    for panel, axes in zip(there, grid.flat, strict=True):
        for dashes, (value, text) in zip(("--", ":", "-."), (marks or {}).items(), strict=False):
            axes.axvline(value, color=COLOURS["truth"], linestyle=dashes, linewidth=1.2, label=text)
        if crosses := {name: of for name, of in (printed or {}).items() if name in names}:
            at = [names.index(name) for name in crosses]
            axes.plot([*crosses.values()], at, "x", color="0.2", label="in print", zorder=3)
        _spots(axes, names, {group: found.get((panel, group)) for group in groups})
        axes.set_title(panel, fontsize="small", loc="right")
    axes.set_xlabel(label)
    if len(groups) > 1 or printed or marks:
        key(figure, max(grid.flat, key=lambda axes: len(axes.containers)))
    return show(figure)


def plateau(axes: Axes, size: Size, *, truth: float | None = None, settings: Sequence[int] | None = None) -> None:
    """FFid+ over size for a sweep of caps, with both knees: the one that moves with the cap, and the one that stays.

    Bands are two standard errors, over images or over the draws of one. Lines are the best fit: the knee where a size
    is named, else the best smooth decay. Triangles are at beta / alpha, where each cap makes its own knee.

    Args:
        axes: to draw on.
        size: of `faithlab.metrics.size.explanation_size`.
        truth: the true size, where it is known.
        settings: which of its settings; None: those with its first alpha.
    """
    alpha = size.settings[0].alpha
    chosen = [j for j, s in enumerate(size.settings) if s.alpha == alpha] if settings is None else settings
    fit = size.fits["smooth" if size.refusal else "knee"]
    for colour, j in zip(sns.color_palette("viridis", len(chosen)), chosen, strict=True):
        setting, curve, error = size.settings[j], size.curves[j], 2 * size.errors[j]
        axes.plot(size.fractions, curve, "o", color=colour, markersize=3)
        axes.fill_between(size.fractions, curve - error, curve + error, color=colour, alpha=0.2, linewidth=0)
        named = "no cap" if setting.cap is None else f"β {setting.cap:g}"
        axes.plot(size.fractions, fit[j], color=colour, linewidth=1.3, label=named)
        if setting.cap is not None and (knee := setting.cap / setting.alpha) <= float(size.fractions[-1]):
            # A little below the axis, so that it does not hide the curve.
            axes.plot(
                [knee], [-0.02], "^", color=colour, markersize=6, transform=axes.get_xaxis_transform(), clip_on=False
            )
    if truth is not None:
        mark(axes, truth, "truth", height=0.1)
    if size.refusal:
        axes.set_title(_unnamed(size), fontsize="small")
    else:
        axes.axvspan(size.low, size.high, color="0.5", alpha=0.25, linewidth=0)
        axes.axvline(size.fraction, color="0.3", linewidth=1.2)
        axes.set_title(f"size {size}", fontsize="small")
    axes.set_ylim(min(0.0, float(size.curves.min())), None)
    axes.tick_params(axis="x", pad=6)


def _unnamed(size: Size) -> str:
    """Of a size that is refused, whether the curves were read at all."""
    return f"not read: {size.rows} are too few" if size.rows < LEAST_ROWS else "no size"


def collapsed(axes: Axes, size: Size) -> None:
    """FFid+ over what the best knee says is removed of its block: with the right one all settings fall onto one curve.

    Args:
        axes: to draw on.
        size: of `faithlab.metrics.size.explanation_size` or `read`, also one that is refused.
    """
    for j, setting in enumerate(size.settings):
        cap = "no cap" if setting.cap is None else f"β {setting.cap:g}"
        look = {"marker": "osD^vPXd<"[j % 9], "markersize": 3.5, "linewidth": 0}
        axes.plot(size.gone[j], size.curves[j], label=f"α {setting.alpha:g}, {cap}", **look)


def plateaus(
    sizes: Mapping[str, Size],
    *,
    columns: int = 2,
    truth: float | Mapping[str, float] | None = None,
    least: int = 30,
) -> plt.Figure:
    """The `plateau` of several rankings or kinds of data, a panel each, with the size that is read or why none is.

    Args:
        sizes: by name, of `faithlab.metrics.size.read`.
        columns: panels beside each other.
        truth: the true size, of all or by name, where it is known.
        least: see `show`.
    """

    def draw(axes: Axes, name: str, size: Size) -> None:
        plateau(axes, size, truth=truth.get(name) if isinstance(truth, Mapping) else truth)
        axes.set_title(f"{name}\n{_unnamed(size) if size.refusal else size}", fontsize="small")

    return _each(sizes, columns, draw, "explanation size (share of the features)", least, sharex=True)


def collapses(sizes: Mapping[str, Size], *, columns: int = 2) -> plt.Figure:
    """What is `collapsed` of several rankings or kinds of data, a panel each.

    Args:
        sizes: by name, of `faithlab.metrics.size.read`.
        columns: panels beside each other.
    """

    def draw(axes: Axes, name: str, size: Size) -> None:
        collapsed(axes, size)
        axes.set_title(name, fontsize="small")

    return _each(sizes, columns, draw, "share of the block that is removed", 30)


def _each(
    sizes: Mapping[str, Size], columns: int, draw: Callable[[Axes, str, Size], None], x: str, least: int, **shared: bool
) -> plt.Figure:
    """A panel for each size."""
    figure, grid = _panels(sizes, columns, 2.6, **shared)
    for axes, (name, size) in zip(grid.flat, sizes.items(), strict=False):
        draw(axes, name, size)
    key(figure, grid[0, 0])
    figure.supxlabel(x, fontsize="small")
    figure.supylabel("FFid+", fontsize="small")
    return show(figure, least)


def _panels(of: Collection, columns: int, height: float, **shared: bool) -> tuple[plt.Figure, np.ndarray]:
    """A panel for each of several; those of the last row that are left over are blank."""
    rows = -(-len(of) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(7.3, 0.3 + height * rows), squeeze=False, **shared)
    for axes in grid.flat[len(of) :]:
        axes.set_axis_off()
    return figure, grid


REFUSED = {"smooth": ("o", "a smooth decay does as well"), "random": ("X", "a random ranking does as well")}
"""How a size that is refused is drawn, by a word of the refusal, and what stands in the key; others are triangles."""


def named_sizes(found: pd.DataFrame, longest: float) -> plt.Figure:
    """Sizes that are named, with their intervals, and best knees that are refused: a panel for each kind of data.

    A row of a panel is a ranking; networks stand one below the other in it.

    Args:
        found: of `faithstudy.trials.sizes.tabulated`.
        longest: the largest size that was asked.
    """
    other, kneeless = ("^", "another reason"), {"no removal": "nothing is lost", "too few": "too few inputs"}
    figure, grid = _panels(found["data"].unique(), 2, 2.1, sharex=True)
    for axes, (name, of) in zip(grid.flat, found.groupby("data", sort=False), strict=False):
        order, nets = [*of["ranking"].unique()], [*of["training_seed"].unique()]
        for _, row in of.iterrows():
            at = order.index(row["ranking"]) + 0.25 * (nets.index(row["training_seed"]) - (len(nets) - 1) / 2)
            if pd.isna(row["best_knee"]):  # no curve to have a knee
                why = next((short for word, short in kneeless.items() if word in row["refusal"]), "no knee")
                axes.text(0.02, at, why, va="center", color="0.4", fontsize="x-small")
            elif row["refusal"]:
                marker, _ = next((look for word, look in REFUSED.items() if word in row["refusal"]), other)
                axes.plot(row["best_knee"], at, marker, color="0.5", markerfacecolor="none", markersize=6)
            else:
                reach = [[row["size"] - row["low"]], [row["high"] - row["size"]]]
                axes.errorbar(row["size"], at, xerr=reach, fmt="D", color="C0", capsize=3, markersize=7)
        axes.set_yticks(range(len(order)), order, fontsize="small")
        axes.set(title=name, ylim=(len(order) - 0.5, -0.5), xlim=(0, longest + 0.03))
        if of["truth"].notna().any():
            axes.axvline(of["truth"].iloc[0], color=COLOURS["truth"], linestyle="--", linewidth=1.2)
    handles = [plt.Line2D([], [], marker="D", color="C0", linestyle="", label="named")]
    handles += [
        plt.Line2D([], [], marker=marker, color="0.5", markerfacecolor="none", linestyle="", label=f"refused: {says}")
        for marker, says in [*REFUSED.values(), other]
    ]
    figure.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize="small")
    figure.supxlabel("explanation size (of the features)", fontsize="small")
    return show(figure)


def single_sizes(each: pd.DataFrame, by: str, longest: float, truth: float | None = None) -> plt.Figure:
    """Inputs read one by one: a point for each that has a size, and how many have one, in a row for each group.

    Args:
        each: a row for each input, with its "size", missing where it is refused.
        by: the column whose values are the rows of the figure.
        longest: the largest size that was asked.
        truth: the known size, where there is one.
    """
    groups = dict(list(each.groupby(by, sort=False)))
    figure, axes = plt.subplots(figsize=(7.2, 0.9 + 0.38 * len(groups)))
    for at, part in enumerate(groups.values()):
        spread = 0.3 * (np.arange(len(part)) % 5 / 4 - 0.5)
        axes.plot(part["size"], at + spread, "o", color="C0", alpha=0.6, markersize=5)
        says = f"{part['size'].notna().sum()} of {len(part)}"
        axes.annotate(says, (1.01, at), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    axes.set_yticks(range(len(groups)), [*groups], fontsize="small")
    label = "size of one input's explanation (share of the features)"
    axes.set(xlabel=label, xlim=(0, longest), ylim=(len(groups) - 0.5, -0.5))
    if truth is not None:
        mark(axes, truth, "truth", height=0.12)
    return show(figure)


STORIES = {"knee": "it has an end", "smooth": "it fades out", "flat": "it knows no order"}
"""What each family of gain curves says of a ranking, see `faithlab.metrics.size.read`."""


def stories(sizes: Mapping[str, Size]) -> plt.Figure:
    """The best that each of `STORIES` can do, a row for each ranking, with the smallest and the largest cap.

    Above each panel stands how far the story misses all curves, root mean square in their standard errors.

    Args:
        sizes: by name, of `faithlab.metrics.size.read`.
    """
    figure, grid = plt.subplots(
        len(sizes), 3, figsize=(7.3, 2.4 * len(sizes)), sharex=True, sharey="row", squeeze=False
    )
    for row, (name, size) in zip(grid, sizes.items(), strict=True):
        alpha = size.settings[0].alpha
        caps = sorted((s.cap, j) for j, s in enumerate(size.settings) if s.alpha == alpha and s.cap is not None)
        for axes, (family, fit) in zip(row, size.fits.items(), strict=True):
            for (cap, j), colour in zip((caps[0], caps[-1]), ("C0", "C1"), strict=True):
                look = {"color": colour, "label": f"cap {cap:g}, measured"}
                axes.plot(size.fractions, size.curves[j], "o", markersize=3, **look)
                axes.plot(size.fractions, fit[j], color=colour, linewidth=1.2, label=f"cap {cap:g}, by the story")
            miss = ((fit - size.curves) / size.errors.clamp(min=1 / size.rows)).pow(2).mean().sqrt()
            axes.set_title(f"{STORIES[family]}:\n{miss:.1f} × noise off", fontsize="small")
        row[0].set_ylabel(f"{name}\nFFid+", fontsize="small")
    key(figure, grid[0, 0])
    figure.supxlabel("explanation size (share of the features)", fontsize="small")
    return show(figure)


def explanation_size(
    size: Size,
    shown: Tensor | Sequence[str] | None = None,
    attribution: Tensor | None = None,
    segments: Tensor | None = None,
    *,
    truth: float | None = None,
) -> plt.Figure:
    """What a plateau is, for one input: the input, its explanation, the curves, and what the size keeps.

    Args:
        size: of `faithlab.metrics.size.explanation_size`.
        shown: a picture [H, W, C] as imshow takes it, a series [steps, channels], or the words of a text; None: the
            curves alone.
        attribution: [F], of the picture's segments, the steps or the words.
        segments: the features of a picture, [H, W], see `faithlab.segments`.
        truth: the true size, where it is known.

    Raises:
        ValueError: an input without its attribution, or a picture without its features.
    """
    picture = isinstance(shown, Tensor) and shown.ndim == 3
    if shown is not None and (attribution is None or (picture and segments is None)):
        raise ValueError("expected the attribution and the segments of the picture, but got the picture alone")
    # The input above, the curves below: as wide as a phone shows without scrolling.
    figure = plt.figure(figsize=(5.4, 2.9 if shown is None else 4.6))
    grid = figure.add_gridspec(1 if shown is None else 2, 3, height_ratios=None if shown is None else [1, 1.7])
    axes = figure.add_subplot(grid[-1, :])
    plateau(axes, size, truth=truth)
    axes.set_xlabel("explanation size (share of features)", fontsize="small")
    axes.set_ylabel("FFid+", fontsize="small")
    axes.legend(fontsize="x-small", handlelength=1, labelspacing=0.2, loc="upper left", bbox_to_anchor=(1, 1))
    if shown is None:
        return show(figure)
    attribution = attribution.cpu()
    top = masks.counts([0.0 if size.refusal else size.fraction], len(attribution))
    # What is kept is the top, which is what removing it takes away.
    kept = ~masks.remove_top(masks.order(attribution[None]), top)[0, 0]
    says = f"{_unnamed(size)}, nothing to keep" if size.refusal else f"its top {size.fraction:.0%}"
    if picture:
        shown, at = shown.permute(2, 0, 1), segments.cpu()
        says = says.replace(", ", ",\n")
        for column, (title, of) in enumerate(
            {"image": shown, "explanation": attribution[at], says: shown * kept[at]}.items()
        ):
            axes = figure.add_subplot(grid[0, column])
            _image(axes, of)
            axes.set_title(title, fontsize="small")
    else:
        draw = _series if isinstance(shown, Tensor) else _words
        draw(figure.add_subplot(grid[0, :]), shown, attribution, kept, says)
    return show(figure)


def _series(axes: Axes, shown: Tensor, attribution: Tensor, kept: Tensor, says: str) -> None:
    """A series over the relevance of its steps; what is kept is marked below."""
    low, high = shown.min().item(), shown.max().item()
    axes.imshow(attribution[None], cmap="Blues", aspect="auto", extent=(-0.5, len(attribution) - 0.5, low, high))
    axes.plot(shown, linewidth=1)
    at = kept.nonzero()[:, 0]
    if len(at):  # a line of no points that nothing clips has no place, and the layout would make room for it
        axes.plot(at, torch.full_like(at, low, dtype=shown.dtype), "ks", markersize=3, clip_on=False)
    axes.set(yticks=[])
    sns.despine(ax=axes, left=True, bottom=True)
    axes.set_xlabel("step", fontsize="small")
    axes.set_title(f"shaded: the explanation; {'squares: ' * bool(kept.any())}{says}", fontsize="small")


LINE = 60
"""Characters in a line of words in a figure."""


def _words(axes: Axes, words: Sequence[str], attribution: Tensor, kept: Tensor, says: str) -> None:
    """A text as it is read, each word shaded by its relevance; what is kept is bold, and a blank is a point."""
    relevance = (attribution - attribution.min()) / (attribution.max() - attribution.min()).clamp(min=1e-12)
    column, line = 0, 0
    for word, shade, stays in zip(words, relevance.tolist(), kept.tolist(), strict=True):
        word = word or "\N{MIDDLE DOT}"
        if column and column + len(word) > LINE:
            column, line = 0, line + 1
        # Letters of one width stand where they are, however wide the axes get; 0.6 of their size is what they take.
        axes.annotate(
            word,
            (0, 1),
            (0.6 * SMALLEST * column, -8 - 2 * SMALLEST * line),
            xycoords="axes fraction",
            textcoords="offset points",
            family="monospace",
            fontsize=SMALLEST,
            fontweight="bold" if stays else "normal",
            va="top",
            bbox={"facecolor": plt.get_cmap("Blues")(0.6 * shade), "edgecolor": "none", "pad": 1.0},
        )
        column += len(word) + 1
    axes.set_axis_off()
    axes.set_title(f"shaded: the explanation; {'bold: ' * bool(kept.any())}{says}", fontsize="small")


def law(alpha: float = 0.5, caps: Sequence[float] = (0.05, 0.1, 0.2)) -> plt.Figure:
    """What a plateau is, from the closed form: the curves of some caps, by a perfect ranking and by a mixed one.

    The picture of the book's interactive figure where scripts are off.
    """
    places = torch.linspace(0, 0.6, 121, dtype=torch.float64)
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 2.8), sharey=True)
    for axes, (title, noise) in zip(panels, {"perfect ranking": 0.0, "half of it random": 0.5}.items(), strict=True):
        for colour, cap in zip(sns.color_palette("viridis", len(caps)), caps, strict=True):
            axes.plot(
                places, size_law(places, Setting(alpha, cap), [0.2], [1.0], noise), color=colour, label=f"β {cap:g}"
            )
            axes.plot([cap / alpha], [0], "^", color=colour, clip_on=False)
        mark(axes, 0.2, "size")
        axes.set_title(title, fontsize="small")
        axes.set_xlabel("explanation size", fontsize="small")
    panels[0].set_ylabel("FFid+", fontsize="small")
    panels[0].legend(fontsize="x-small")
    return show(figure)


def movable(sizes: Mapping[str, Size]) -> Markdown:
    """What was read, for a figure with a slider over the caps, which `book/_static/movable.js` draws.

    Args:
        sizes: of `faithlab.metrics.size`, by what a reader chooses them by.
    """

    def numbers(of: Tensor) -> list:
        return [round(v, 4) if v == v else None for v in of.tolist()]

    panels = []
    for name, of in sizes.items():
        alpha = of.settings[0].alpha
        own = sorted((s.cap, j) for j, s in enumerate(of.settings) if s.alpha == alpha and s.cap is not None)
        fit = of.fits["smooth" if of.refusal else "knee"]
        panels.append(
            {
                "name": name,
                "size": None if of.refusal else [round(v, 3) for v in (of.fraction, of.low, of.high)],
                "refusal": of.refusal,
                "alpha": alpha,
                "sizes": numbers(of.fractions),
                "caps": [cap for cap, _ in own],
                "curves": [numbers(of.curves[j]) for _, j in own],
                "errors": [numbers(of.errors[j]) for _, j in own],
                "fits": [numbers(fit[j]) for _, j in own],
            }
        )
    return _movable({"kind": "measured", "panels": panels}, "The figures above show the same curves.")


def removal(
    rows: Mapping[str, tuple[Tensor, Tensor, Tensor]], shares: Tensor, *, across: str, down: str, alt: str
) -> Markdown:
    """Images with more and more removed, for a figure with a slider, which `book/_static/movable.js` draws.

    Without scripts it is one strip of all these images.

    Args:
        rows: by the name of each way to choose what goes first: pictures [K, 3, H, W] in 0..1, what the network answers
            to each [K], in 0..1, and whether it still recognises the class [K].
        shares: what is removed in each picture, [K], ascending from 0.
        across: of what these are shares; the label of the slider and of the horizontal axis.
        down: what the answers are.
        alt: what the strip shows, in words.
    """
    ways = [
        {"name": name, "answers": [round(p, 4) for p in answers.tolist()], "kept": kept.bool().tolist()}
        for name, (_, answers, kept) in rows.items()
    ]
    told = {"kind": "removed", "shares": [round(s, 4) for s in shares.tolist()], "across": across, "down": down}
    return _movable(told | {"ways": ways}, _strip([pictures for pictures, _, _ in rows.values()], alt))


def bets(rows: Mapping[str, tuple[Tensor, Groups, Tensor]], *, name: str, down: str, alt: str) -> Markdown:
    """SaCo's bets on pairs of groups, for a figure with a slider, which `book/_static/movable.js` draws.

    It has an address, so that a page of a part can show it, too: see `book/gallery.py`. Without scripts it is one strip
    of all images.

    Args:
        rows: by the name of each ranking: pictures [1 + K, 3, H, W] in 0..1 of the image and of it without each group,
            the groups of this image, [1, K], and their bets, of `faithlab.metrics.saco.bets`.
        name: the address of the figure.
        down: what the drops are losses of.
        alt: what the strip shows, in words.
    """
    ways = []
    for ranking, (_, groups, bets) in rows.items():
        numbers = {key: [float(f"{v:.5g}") for v in of[0].tolist()] for key, of in groups._asdict().items()}
        stakes = [round(stake, 6) for stake in (bets[0] / bets.abs().sum()).tolist()]
        ways.append({"name": ranking, **numbers, "stakes": stakes})
    told = {"kind": "bets", "down": down, "ways": ways}
    return _movable(told, _strip([pictures for pictures, *_ in rows.values()], alt), name)


def _strip(rows: Sequence[Tensor], alt: str) -> str:
    """The pictures [K, 3, H, W] of each row in one image."""
    sheet = torch.cat([torch.cat(list(pictures), 2) for pictures in rows], 1)  # [3, rows H, K W]
    file = io.BytesIO()
    pixels = (255 * sheet.clamp(0, 1)).round().byte().permute(1, 2, 0).cpu().contiguous().numpy()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return f"![{plain(alt)}](data:image/png;base64,{base64.b64encode(file.getvalue()).decode()})"


def _movable(told: Mapping[str, Any], still: str, name: str = "") -> Markdown:
    """What the script is told, below what stands there without scripts."""
    head = ":::{div} faithlab-movable" + f"\n:name: {name}" * bool(name)
    return Markdown(f"{head}\n\n{still}\n\n```json\n{json.dumps(told, ensure_ascii=False)}\n```\n:::\n")


def band(axes: Axes, x: Sequence[float], curve: stats.Estimate, **look: Any) -> None:
    """A curve with its 95 % band; `look` as in `matplotlib.axes.Axes.plot`."""
    (line,) = axes.plot(x, curve.value, **look)
    axes.fill_between(x, *curve.shown[1:], color=line.get_color(), alpha=0.12, linewidth=0)


def curves(
    scores: Scores,
    *,
    lines: Mapping[str, Mapping[str, Any]],
    x: str,
    y: str,
    rows: Mapping[str, Mapping[str, Any]] | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    of: Statistic | Function = stats.mean,
    ordered: bool = False,
    sharey: Literal["all", "row", "none"] = "row",
    title: str | None = None,
) -> plt.Figure:
    """A statistic over sizes with its interval, such as mean curves: a panel for each row and column.

    Args:
        scores: the long table, with sizes.
        lines: names and labels of the lines of every panel.
        x: label of the horizontal axis.
        y: label of the vertical axis.
        rows: names and labels of the rows; None: one.
        columns: names and labels of the columns; None: one.
        of: the statistic.
        ordered: the lines are steps of one thing, with colours from dark to bright; else kinds of things.
        sharey: which panels have one vertical scale.
        title: of the key.
    """
    colours = sns.color_palette("viridis" if ordered else "colorblind", len(lines))
    look = {"x": x, "y": y, "colours": colours, "sharey": sharey, "title": title}
    found = partial(stats.estimate, scores, of)
    figure, _ = _curves(scores, found, lines, rows or {"": {}}, columns or {"": {}}, **look)
    return show(figure)


def _curves(
    scores: Scores,
    found: Callable[..., stats.Estimate],
    lines: Mapping[str, Mapping[str, Any]],
    rows: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, Mapping[str, Any]],
    *,
    x: str,
    y: str,
    colours: Sequence[Any],
    sharey: Literal["all", "row", "none"] = "row",
    title: str | None = None,
) -> tuple[plt.Figure, np.ndarray]:
    """Panels of `curves`, before they are laid out; `found` is the estimate of the labels of a line."""
    size = (min(COLUMN, 2.9 * len(columns) + 1.4), 2.1 * len(rows) + 0.5)
    figure, grid = plt.subplots(len(rows), len(columns), figsize=size, squeeze=False, sharex=True, sharey=sharey)
    for of_row, (row, in_row) in zip(grid, rows.items(), strict=True):
        for axes, (column, in_column) in zip(of_row, columns.items(), strict=True):
            for colour, marker, (line, in_line) in zip(colours, "osD^vPXd<>" * 3, lines.items(), strict=False):
                labels = {**in_row, **in_column, **in_line}
                sizes = scores.where(**labels).blocks[0].sizes
                band(axes, sizes, found(**labels), color=colour, marker=marker, markersize=4, label=line)
            axes.set_title(column if axes in grid[0] else "", fontsize="small")
            if len(columns) > 2:  # more would run into each other
                axes.set_xticks([sizes[0], sizes[-1]])
        of_row[0].set_ylabel("\n".join(filter(None, (row, y))), fontsize="small")
    figure.supxlabel(x, fontsize="small")
    if len(columns) > 1:
        key(figure, grid[0, 0], title=title)
    else:
        look = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": "small", "title": title}
        grid[0, 0].legend(**look)
    return figure, grid


def decisions(decisions: Sequence[Decision], label: str) -> plt.Figure:
    """The interval of a difference at each look until it excludes zero, over forwards: a panel for each decision.

    Args:
        decisions: of `faithlab.decide.decide`.
        label: of the vertical axis.
    """
    figure, panels = plt.subplots(1, len(decisions), figsize=(7.2, 3.2), sharey=True, squeeze=False)
    for axes, decision in zip(panels[0], decisions, strict=True):
        looks = decision.frame()
        reach = looks["value"] - looks["low"], looks["high"] - looks["value"]
        axes.errorbar(looks["forwards"], looks["value"], reach, fmt="o-", capsize=3)
        axes.axhline(0, color="0.5", lw=1)
        axes.set(xlabel="forwards", title=" - ".join(decision.names))
    panels[0, 0].set_ylabel(label)
    return show(figure)


VERDICTS = {
    "passed": (sns.color_palette("colorblind")[0], "✓", "white"),
    "failed": (sns.color_palette("colorblind")[3], "✗", "white"),
    "open": ("0.88", "?", "0.15"),
}
"""Of each verdict of the examination its colour, symbol and the colour of its text."""


def in_order(of: pd.DataFrame) -> list[tuple[str, tuple[int, int]]]:
    """Metrics of a trust table by failed trials, the fewest first, and passed ones, the most first; with both counts.

    Those that apply to no trial come last.
    """
    count = {v: of[of["verdict"] == v].groupby("metric").size() for v in VERDICTS}
    names = list(dict.fromkeys(of["metric"]))
    none = {n: sum(c.get(n, 0) for c in count.values()) == 0 for n in names}
    key = {n: (int(count["failed"].get(n, 0)), -int(count["passed"].get(n, 0))) for n in names}
    names.sort(key=lambda n: (none[n], *key[n]))
    return [(n, key[n]) for n in names]


def matrix(trust: pd.DataFrame, size: str = "all images") -> plt.Figure:
    """Metrics by trials: T and what follows from it. What does not apply is hatched, a metric at home is outlined.

    Args:
        trust: of `faithstudy.trials.examination.trust`; with a column "kind", a panel for each. Metrics that fail
            fewest trials come first, of those the ones that pass most, over all kinds; a line stands between those that
            differ in that, and what lies between two lines is in no order.
        size: of `faithstudy.trials.concordance.SIZES`.
    """
    of = trust[trust["size"] == size]
    of = of if "kind" in of else of.assign(kind="")
    kinds, trials = list(dict.fromkeys(of["kind"])), list(dict.fromkeys(of["trial"]))
    ordered = in_order(of)
    names = [name for name, _ in ordered]
    many = len(kinds) > 1
    wide = 0.5 if many else 0.88
    size = (1.9 + wide * len(trials) * len(kinds), 0.9 + 0.3 * len(names))
    figure, grid = plt.subplots(1, len(kinds), figsize=size, sharey=True, squeeze=False)
    for axes, kind in zip(grid[0], kinds, strict=True):
        for row in of[of["kind"] == kind].itertuples():
            x, y = trials.index(row.trial), names.index(row.metric)
            colour, symbol, ink = VERDICTS.get(row.verdict, ("white", "", ""))
            look = {} if symbol else {"hatch": "////", "alpha": 0.7, "edgecolor": "0.6"}
            axes.add_patch(plt.Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, facecolor=colour, linewidth=0, **look))
            if symbol:  # narrow cells have no room for numbers
                text = symbol.replace("?", "") if many else f"{symbol} {numbers.number(row.T, 2)}"
                axes.text(x, y, text, ha="center", va="center", color=ink, fontsize="small")
            if row.home:
                edge = {"fill": False, "edgecolor": "black", "linewidth": 1.6}
                axes.add_patch(plt.Rectangle((x - 0.45, y - 0.42), 0.9, 0.84, **edge))
        between = [k - 0.5 for k in range(1, len(ordered)) if ordered[k - 1][1] != ordered[k][1]]
        axes.hlines(between, -0.5, len(trials) - 0.5, color="0.2", linewidth=0.7)
        axes.set(xlim=(-0.5, len(trials) - 0.5), ylim=(len(names) - 0.5, -0.5))
        axes.xaxis.tick_top()
        axes.set_xticks(range(len(trials)), trials, fontsize="small", rotation=90 * many)
        axes.set_yticks(range(len(names)), names, fontsize="small")
        axes.set_title(kind.replace(", ", "\n"), fontsize="small")
        axes.grid(False)
        axes.tick_params(length=0)
        sns.despine(ax=axes, left=True, bottom=True)
    keys = [plt.Rectangle((0, 0), 1, 1, facecolor=colour) for colour, *_ in VERDICTS.values()]
    keys += [
        plt.Rectangle((0, 0), 1, 1, facecolor="white", hatch="////", alpha=0.7, edgecolor="0.6"),
        plt.Rectangle((0, 0), 1, 1, fill=False, edgecolor="black", linewidth=1.6),
    ]
    said = [f"{symbol} {name}" for name, (_, symbol, _) in VERDICTS.items()]
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": 5, "columnspacing": 1.2}
    figure.legend(keys, [*said, "does not apply", "at home"], fontsize="x-small", **below)
    return show(figure)


def trust_and_price(trust: pd.DataFrame, price: pd.DataFrame) -> plt.Figure:
    """The lowest T of each metric against its price, a panel for each kind, with names beside that do not overlap.

    Args:
        trust: of `faithstudy.trials.examination.trust`, with a column "kind".
        price: of `faithstudy.trials.prices.price`, with a column "kind". What asks the network nothing has none.
    """
    judged = trust[(trust["size"] == "all images") & trust["verdict"].isin(list(VERDICTS))]
    kinds = list(dict.fromkeys(price["kind"]))
    figure, grid = plt.subplots(len(kinds), 1, figsize=(7.6, 4.8 * len(kinds)), squeeze=False)
    for axes, kind in zip(grid[:, 0], kinds, strict=True):
        weakest = judged[judged["kind"] == kind].sort_values("T").drop_duplicates("metric").set_index("metric")
        told = price[price["kind"] == kind].set_index("metric")
        ends_of_T = weakest[["T", "low", "high", "trial", "verdict"]].rename(columns={"low": "low_T", "high": "high_T"})
        told = told[(told["images"] < float("inf")) & (told["forwards"] > 0)].join(ends_of_T)
        told = told.sort_values(["T", "forwards"], ascending=False)
        for row in told.itertuples():
            colour = "0.55" if row.verdict == "open" else VERDICTS[row.verdict][0]
            ends = [2 * row.each * row.images_low, 2 * row.each * row.images_high]
            right = ends[1] if ends[1] < float("inf") else 30 * row.forwards  # no end: the bar leaves the picture
            axes.hlines(row.T, ends[0], right, color=colour, linewidth=0.7, alpha=0.7)
            axes.vlines(row.forwards, row.low_T, row.high_T, color=colour, linewidth=0.7, alpha=0.7)
            axes.plot(row.forwards, row.T, "o", color=colour, markersize=5)
        low, high = told["forwards"].min(), told["forwards"].max()
        axes.set(xscale="log", xlim=(low / 3, high * 3), xlabel="forwards to tell two explanations apart")
        axes.set(ylim=(-1.05, 1.05), ylabel="T of the weakest trial", title=kind if len(kinds) > 1 else "")
        mark(axes, 0.5, "", axis="y")
        place = ("axes fraction", "data")
        axes.annotate("failed below", (0, 0.5), (3, -3), place, textcoords="offset points", va="top", fontsize="small")
        # Names stand one below the other, in the order of T, and a thin line leads from each to its point.
        for place, row in zip(np.linspace(0.98, 0.02, len(told)), told.itertuples(), strict=True):
            axes.annotate(
                f"{row.Index} ({row.trial})",
                (row.forwards, row.T),
                (1.03, place),
                textcoords="axes fraction",
                va="center",
                fontsize="x-small",
                arrowprops={"arrowstyle": "-", "color": "0.75", "linewidth": 0.5, "shrinkB": 3},
                annotation_clip=False,
            )
    return show(figure)


def agreement(alike: pd.DataFrame) -> plt.Figure:
    """Which metrics rank explainers alike: mean correlations over the kinds, clustered; a dot where none may be 0.

    Args:
        alike: of `faithstudy.trials.readings.agreement`, with a column "kind".
    """
    of = alike.assign(sure=(alike["low"] > 0) | (alike["high"] < 0))
    of = of.groupby(["metric", "other"], sort=False).agg({"correlation": "mean", "sure": "all"}).reset_index()
    both = pd.concat([of, of.rename(columns={"metric": "other", "other": "metric"})])
    square = both.pivot(index="metric", columns="other", values="correlation").rename_axis(index=None, columns=None)
    sure = both.pivot(index="metric", columns="other", values="sure").fillna(False).astype(bool)
    filled = square.fillna(0.0).to_numpy(copy=True)
    filled[range(len(filled)), range(len(filled))] = 1.0
    order = square.index[hierarchy.leaves_list(hierarchy.linkage(filled, "average"))]
    square, sure = square.loc[order, order], sure.loc[order, order]
    text = np.where(sure, "·", "")
    side = 1.8 + 0.31 * len(order)
    figure, axes = plt.subplots(figsize=(side + 0.9, side), layout="constrained")
    look = {"annot": text, "fmt": "", "annot_kws": {"size": 7.5}, "cbar_kws": {"label": "rank correlation"}}
    sns.heatmap(square, vmin=-1, vmax=1, cmap="RdBu", ax=axes, **look)
    axes.set_facecolor("0.93")  # the diagonal, and what has no correlation
    axes.grid(False)
    axes.tick_params(labelsize="small")
    return show(figure)
