"""The study's figures: one style, one colour per metric or explainer, readable without colour vision."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from cycler import cycler
from IPython.display import Markdown
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.text import Text
from matplotlib_inline.backend_inline import set_matplotlib_formats
from PIL import Image
from torch import Tensor

from faithlab import masks, stats
from faithlab.scores import Scores
from faithstudy import numbers
from faithstudy.display_names import named, plain
from faithstudy.tables import summary

if TYPE_CHECKING:  # else every page would depend on them
    from faithlab.metrics import Metric
    from faithlab.metrics.saco import Groups
    from faithlab.metrics.size import Setting, Size

Labels = Mapping[str, Mapping[str, Any]]
"""What is told apart: by name, labels of rows of the long table."""
EXPLANATION_SIZE = "explanation size (share of the features)"
COLOURS = {"F-Fidelity": "C0", "R-Fidelity": "C1", "Fidelity": "C2", "ROAR": "C3", "SaCo": "C4", "Random": "C3"}
"""Colours that metrics and explainers have in every figure of the book."""
MARKERS = "osD^vP*X<>"
SMALLEST = 9.0
"""The smallest text of a figure, in points."""
COLUMN = 704 / 96
"""The width of a page's column on a screen of 1280 pixels, in inches; wider figures would be shown smaller."""
TIGHT = {"figure.constrained_layout.use": False}
"""What seaborn's grids, which lay themselves out before `show` does, are drawn with."""
INPUTS = SimpleNamespace(measured=None)
"""How many inputs a reader's own run has measured last; None: the page shows what is recorded."""


def theme() -> None:
    """Use the style `faithstudy.mplstyle` for every figure of this process, and vector images in notebooks."""
    plt.style.use("faithstudy.faithstudy")
    set_matplotlib_formats("svg", metadata={"Date": None})


def mark(axes: Axes, at: float, text: str, *, axis: str = "x", height: float = 1.0) -> None:
    """Draw a dashed line at a value, with a label at its end: on white beside it, or outside on the right."""
    line, look = {"color": "C7", "linestyle": "--"}, {"color": "0.35", "fontsize": "small"}
    if axis == "x":
        axes.axvline(at, **line)
        ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1}
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top", "zorder": 6}
        axes.annotate(text, (at, height), (4, -2), bbox=ground, **place, **look)
    else:
        axes.axhline(at, **line)
        axes.annotate(text, (1.0, at), (3, 0), ("axes fraction", "data"), "offset points", va="center", **look)


def show(figure: plt.Figure, least: int = 1) -> plt.Figure:
    """Lay out a figure to end a cell with: not wider than `COLUMN`, no text smaller than `SMALLEST`.

    Args:
        figure: to be shown.
        least: so many inputs it needs; a run of a reader's own with fewer shows that in its place.
    """
    if INPUTS.measured is not None:
        said = f"of {INPUTS.measured:,} inputs"
        if INPUTS.measured < least:
            figure.clear()
            figure.set_size_inches(COLUMN, 0.6)
            said = f"needs {least:,} inputs, this run has {INPUTS.measured:,}"
        figure.text(1.0, 0.0, said, ha="right", va="top", fontsize="small")
    figure.set_layout_engine("constrained" if figure.axes else "none")
    figure.set_figwidth(min(figure.get_figwidth(), COLUMN - 2 * plt.rcParams["savefig.pad_inches"]))
    figure.draw_without_rendering()
    for text in figure.findobj(Text):
        text.set(text=named(text.get_text()), fontsize=max(SMALLEST, text.get_fontsize()))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # drawn once more, it stays as it is
    plt.close(figure)
    return figure


def key(figure: plt.Figure, axes: Axes, **look: Any) -> None:
    """Explain the lines of some axes above all panels, in as few rows as fit: beside them it takes their width."""
    lines, names = axes.get_legend_handles_labels()
    for rows in range(1, len(names) + 1):
        place = {"loc": "outside upper center", "fontsize": "small", "ncols": -(-len(names) // rows)} | look
        legend = figure.legend(lines, names, **place)
        width, height = legend.get_window_extent().size / figure.dpi
        if rows == len(names) or width <= min(figure.get_figwidth(), COLUMN):
            break
        legend.remove()
    if "outside right" not in place["loc"]:  # the panels keep their height
        figure.set_figheight(figure.get_figheight() + height)


def _image(axes: Axes, picture: Tensor) -> None:
    """Draw a picture [C, H, W] in 0..1 or in bytes, C is 1 or 3, or a map [H, W] with its own scale, without ticks."""
    picture = picture.cpu() / 255 if picture.dtype == torch.uint8 else picture.cpu()
    if picture.ndim == 3:
        axes.imshow(picture.clamp(0, 1).permute(1, 2, 0).expand(-1, -1, 3))
    else:
        axes.imshow(picture, cmap="magma", vmax=picture.quantile(0.99).item(), interpolation="nearest", rasterized=True)
    axes.set(xticks=[], yticks=[], frame_on=False)


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
    for (r, c), cell in np.ndenumerate(axes):
        _image(cell, grid[r][c])
        title = above[r][c] if r < len(above) else ""
        cell.set_title(title, fontsize="x-small", fontweight="normal", rotation=90 * turned)
        cell.set_xlabel(below[r][c] if r < len(below) else "", fontsize="x-small")
        cell.set_ylabel(beside[r] if beside and c == 0 else "", fontsize="x-small")
    return show(figure)


def maps(images: Tensor, attributions: Mapping[str, Tensor], *, across: bool = False) -> plt.Figure:
    """Some inputs and their explanations, a row each; brighter is more relevant, every map has its own scale.

    Args:
        images: [n, H, W, C], as imshow takes them.
        attributions: by explainer, [B, F], of the same pixels.
        across: explainers are columns, for many of them.
    """
    n = min(len(images), *(len(of) for of in attributions.values()))
    rows = {"image": images[:n].permute(0, 3, 1, 2)}
    rows |= {name: of[:n].cpu().view(n, *images.shape[1:3]) for name, of in attributions.items()}
    if across:
        size, above = (COLUMN, COLUMN / len(rows) * n + 1), [[name.replace(" ", "\n") for name in rows]]
        return pictures([*zip(*rows.values(), strict=True)], above=above, turned=True, size=size)
    return pictures([*rows.values()], beside=[*rows], size=(1.2 * n, 1.2 * len(rows) + 0.1))


def series(axes: Axes, shown: Tensor, relevance: Tensor) -> None:
    """Draw a series over the relevance of its steps: the darker, the more relevant; below 0 is white.

    Args:
        axes: to draw on.
        shown: [steps, channels], in standard deviations; a line for each channel.
        relevance: [steps].
    """
    extent = (-0.5, len(shown) - 0.5, shown.min().item() - 0.5, shown.max().item() + 0.5)
    look = {"aspect": "auto", "cmap": "Greys", "interpolation": "none", "extent": extent}
    shade = relevance.cpu().clamp(min=0)
    # The lines stay readable on the darkest shade.
    axes.imshow(shade[None].numpy(), vmin=0, vmax=1.6 * shade.max().item(), **look)
    axes.set_prop_cycle(cycler(linestyle=("-", "--", ":", "-.")) * cycler(color=sns.color_palette("colorblind")[:4]))
    axes.plot(shown.cpu().numpy(), linewidth=1.2, label=[f"{k + 1}" for k in range(shown.shape[1])])
    axes.grid(False)
    axes.set(xlim=extent[:2], ylim=extent[2:], xlabel="time step", ylabel="value (sd)")


def curves(
    scores: Scores,
    *,
    lines: Labels,
    x: str,
    y: str,
    rows: Labels | None = None,
    columns: Labels | None = None,
    ordered: bool = False,
    title: str | None = None,
    ideal: float | None = None,
) -> plt.Figure:
    """A statistic over sizes with its interval, such as mean curves: a panel for each row and column.

    Args:
        scores: the long table, with sizes.
        lines: names and labels of the lines of every panel; `of` among them is a statistic, else it is the mean.
        x: label of the horizontal axis.
        y: label of the vertical axis.
        rows: names and labels of the rows; None: one.
        columns: names and labels of the columns; None: one.
        ordered: the lines are steps of one thing, with colours from dark to bright, and each panel has its own scale;
            else kinds of things, and the panels of a row share theirs.
        title: of the key.
        ideal: a value that is marked so.
    """
    colours = sns.color_palette("viridis" if ordered else "colorblind", len(lines))
    colours = [COLOURS[line] for line in lines] if COLOURS.keys() >= lines.keys() else colours
    rows, columns = rows or {"": {}}, columns or {"": {}}
    size, share = (min(COLUMN, 2.9 * len(columns) + 1.4), 2.1 * len(rows) + 0.5), "none" if ordered else "row"
    figure, grid = plt.subplots(len(rows), len(columns), figsize=size, squeeze=False, sharex=True, sharey=share)
    for of_row, (row, in_row) in zip(grid, rows.items(), strict=True):
        for axes, (column, in_column) in zip(of_row, columns.items(), strict=True):
            for colour, marker, (line, in_line) in zip(colours, MARKERS * 3, lines.items(), strict=False):
                labels = {**in_row, **in_column, **in_line}
                of = labels.pop("of", stats.mean)
                sizes = scores.where(**labels).blocks[0].sizes
                curve = stats.estimate(scores, of, **labels)
                band(axes, sizes, curve, color=colour, marker=marker, markersize=4, label=line)
            axes.set_title(column if axes in grid[0] else "", fontsize="small")
            if len(columns) > 2:  # more would run into each other
                axes.set_xticks([sizes[0], sizes[-1]])
            if ideal is not None:
                mark(axes, ideal, "ideal" * (axes is of_row[-1]), axis="y")
        of_row[0].set_ylabel("\n".join(filter(None, (row, y))), fontsize="small")
    figure.supxlabel(x, fontsize="small")
    beside = {} if len(columns) > 1 else {"loc": "outside right upper", "ncols": 1}
    key(figure, grid[0, 0], title=title, **beside)
    return show(figure)


def band(axes: Axes, x: Sequence[float], curve: stats.Estimate, **look: Any) -> None:
    """Draw a curve with its 95 % band; `look` as in `matplotlib.axes.Axes.plot`."""
    (line,) = axes.plot(x, curve.value, **look)
    axes.fill_between(x, *curve.shown[1:], color=line.get_color(), alpha=0.12, linewidth=0)


def degraded_curves(
    scores: Scores,
    metrics: Mapping[str, Metric],
    *,
    size: str,
    lost: str,
    direction: masks.Direction = "MoRF",
    rows: Labels | None = None,
) -> plt.Figure:
    """Loss under MoRF or LeRF for more and more noise: one line per share of noise, a column per metric.

    Args:
        scores: of `faithstudy.trials.degraded.degraded`.
        metrics: by name; those of the direction are shown.
        size: label of the horizontal axis: what an explanation names, in both directions.
        lost: what is lost.
        direction: which end of the order is removed first.
        rows: names and labels of the rows; None: the explainers.

    Raises:
        ValueError: none of the metrics has this direction.
    """
    columns = {name: {"metric": name} for name, metric in metrics.items() if metric.direction == direction}
    if not columns:
        raise ValueError(f"expected a metric that removes features under {direction}; there are {', '.join(metrics)}")
    levels = sorted([None, *scores.labels("level")], key=lambda level: level or 0)
    lines = {f"{level or 0:g}": {"level": level} for level in levels}
    rows = rows or {name: {"explainer": name} for name in scores.labels("explainer")}
    look = {"x": size, "y": f"lost {lost}", "ordered": True, "title": "noise share"}
    return curves(scores, lines=lines, rows=rows, columns=columns, **look)


def order_by_size(
    scores: Scores,
    metrics: Mapping[str, Metric],
    *,
    levels: Sequence[float],
    seeds: Sequence[int],
    size: str,
    cols: Labels | None = None,
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
    order = partial(stats.found_order, levels, seeds, micro=True, each_size=True)
    lines = {of.family or name: {"of": order(metric=name)} for name, of in metrics.items() if of.direction == "MoRF"}
    cols = cols or {name: {"explainer": name} for name in scores.labels("explainer")}
    return curves(scores, lines=lines, columns=cols, x=size, y="correlation with the truth", ideal=1)


def distance_histograms(scores: Scores, *, row: str, col: str) -> plt.Figure:
    """Histograms of the distances of S= and S!=, one for each row and column; shares, no intervals.

    Args:
        scores: with rows of `faithstudy.trials.cross_trained`.
        row: the label that makes the rows of the figure.
        col: the label that makes the columns of the figure.
    """
    found = scores.where(metric=["S=", "S≠"]).frame().replace({"metric": {"S=": "$S^{=}$", "S≠": r"$S^{\neq}$"}})
    shape = {"stat": "proportion", "common_norm": False, "bins": 20, "binrange": (0, 1), "element": "step"}
    panels = {"height": 1.0, "aspect": 1.8, "facet_kws": {"sharey": False, "margin_titles": True}}
    with plt.rc_context(TIGHT):
        grid = sns.displot(found, x="value", hue="metric", row=row, col=col, linewidth=0, **shape, **panels)
    grid.set(yticks=[], xticks=[0, 0.5, 1], xlabel="", ylabel="").set_titles(
        row_template="{row_name}", col_template="{col_name}", size="small"
    )
    grid.figure.supxlabel("distance", fontsize="small")
    grid.figure.supylabel("share of pairs (each panel to its own height)", fontsize="small")
    sns.move_legend(grid, "outside upper center", ncols=2, title=None)
    return show(grid.figure)


def forest(
    axes: Axes, names: Sequence[str], groups: Mapping[str, pd.DataFrame | None], colours: Sequence[Any] = ()
) -> None:
    """Draw numbers with their intervals: a row for each name, the first on top, and a mark for each group.

    Args:
        axes: to draw on.
        names: of the rows.
        groups: by name, `mean`, `low` and `high` by the name of their row; None: it has none here.
        colours: of the groups.
    """
    colours = colours or sns.color_palette("colorblind", len(groups))
    for k, (group, of) in enumerate(groups.items()):
        if of is not None:
            at = [names.index(name) + 0.6 * ((k + 0.5) / len(groups) - 0.5) for name in of.index]
            ends = np.stack([of["mean"] - of["low"], of["high"] - of["mean"]])
            ends = np.nan_to_num(ends).clip(min=0)  # rounding may pass a limit
            look = {"fmt": MARKERS[k % len(MARKERS)], "color": colours[k], "capsize": 2, "markersize": 5}
            axes.errorbar(of["mean"], at, xerr=ends, label=group, **look)
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.set_ylim(len(names) - 0.5, -0.5)


_REFINED = {"none": "C7", "XRAI": "C3", "SG": "C2", "SG²": "C1"}


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
        forest(axes, names, {way: own[own["refinement"] == way] for way in _REFINED}, [*_REFINED.values()])
        mark(axes, own.loc[["Random"], "mean"].min(), "Random")
        axes.set_title(network if len(networks) > 1 else "")
    axes.set_xlabel(label)
    key(figure, grid[0, 0])
    return show(figure)


def against(found: pd.DataFrame, metric: str, other: str) -> plt.Figure:
    """Means of two metrics, a point with its intervals for each explainer and refinement, a panel for each network.

    Args:
        found: of `faithstudy.trials.refined.table`.
        metric: on the horizontal axis.
        other: on the vertical one.
    """
    wide = found.pivot(index=["network", "explainer", "refinement"], columns="metric", values=["mean", "low", "high"])
    # As narrow as a phone: panels below each other.
    look = {"height": 3.4, "aspect": 1.1, "palette": _REFINED, "facet_kws": {"sharex": False, "sharey": False}}
    look |= {"row_order": found["network"].unique(), "style_order": found["explainer"].unique()}
    tidy = wide["mean"].reset_index()
    with plt.rc_context(TIGHT):
        grid = sns.relplot(tidy, x=metric, y=other, row="network", hue="refinement", style="explainer", s=50, **look)
    for network, axes in grid.axes_dict.items():
        x, y = (wide.loc[network].xs(name, level="metric", axis=1) for name in (metric, other))
        axes.hlines(y["mean"], x["low"], x["high"], "0.6", linewidth=0.5, zorder=0)
        axes.vlines(x["mean"], y["low"], y["high"], "0.6", linewidth=0.5, zorder=0)
    grid.set_titles("{row_name}").set_axis_labels(f"{metric} (mean)", f"{other} (mean)")
    sns.move_legend(grid, "outside lower center", ncols=3, fontsize="small")
    return show(grid.figure)


def dots(
    scores: Scores,
    groups: Labels,
    *,
    label: str,
    row: str = "explainer",
    panels: Labels | None = None,
    marks: Mapping[float, str] | None = None,
    printed: Mapping[str, float] | None = None,
    **labels: Any,
) -> plt.Figure:
    """Means with their 95 % intervals over the images, a row for each explainer, the best on top.

    Args:
        scores: the long table.
        groups: names and labels of what is told apart in every row, such as baselines; `of` among them is a statistic,
            else it is the mean.
        label: of the horizontal axis.
        row: the label that makes the rows.
        panels: names and labels of the panels, one below the other, with the same rows; None: one. A group without
            scores in a panel is left out of it.
        marks: values that are marked, and their names.
        printed: a paper's numbers, by row: crosses.
        **labels: of all rows.
    """
    found = {}
    for (panel, of_panel), (group, own) in itertools.product((panels or {"": {}}).items(), groups.items()):
        asked = {key: value for key, value in (of_panel | own).items() if key != "of"}
        if not panels or any(asked.items() <= block.labels.items() for block in scores):
            found[panel, group] = summary(scores, [row], **{**labels, **of_panel, **own}).set_index(row)
    means = pd.concat([of["mean"] for of in found.values()]).groupby(level=0, sort=False).sum()
    names = means.sort_values(ascending=False, kind="stable").index.tolist()
    there = list(dict.fromkeys(panel for panel, _ in found))
    size = (3.7, 0.8 + len(there) * (0.3 + 0.27 * len(names)))  # as narrow as a phone
    figure, grid = plt.subplots(len(there), figsize=size, sharex=True, squeeze=False)
    for panel, axes in zip(there, grid.flat, strict=True):
        for dashes, (value, text) in zip(("--", ":", "-."), (marks or {}).items(), strict=False):
            axes.axvline(value, color="C7", linestyle=dashes, linewidth=1.2, label=text)
        if crosses := {name: of for name, of in (printed or {}).items() if name in names}:
            axes.plot([*crosses.values()], [*map(names.index, crosses)], "x", color="0.2", label="in print", zorder=3)
        forest(axes, names, {group: found.get((panel, group)) for group in groups})
        axes.set_title(panel, fontsize="small", loc="right")
    axes.set_xlabel(label)
    if len(groups) > 1 or printed or marks:
        key(figure, max(grid.flat, key=lambda axes: len(axes.containers)))
    return show(figure)


def heat(axes: Axes, cells: pd.DataFrame) -> None:
    """Draw correlations, or differences of them, as colours from −1 to 1 with their numbers."""
    said, look = cells.map(lambda value: numbers.number(value, 2)), {"cmap": "vlag_r", "vmin": -1, "vmax": 1}
    sns.heatmap(cells, annot=said, fmt="", annot_kws={"size": SMALLEST}, linewidths=1, cbar=False, ax=axes, **look)
    axes.set(xlabel="", ylabel="")
    axes.tick_params(axis="y", rotation=0)
    axes.grid(False)


def plateau(axes: Axes, size: Size, name: str = "", truth: float | None = None) -> None:
    """Draw FFid+ over size for a sweep of caps, with both knees: one moves with the cap, one stays.

    Bands are two standard errors, over images or over the draws of one. Lines are the best fit: the knee where a size
    is named, else the best smooth decay. Triangles are at beta / alpha, where each cap makes its own knee.

    Args:
        axes: to draw on.
        size: of `faithlab.metrics.size.explanation_size`; its settings with the first alpha are shown.
        name: above the panel.
        truth: the true size, where it is known.
    """
    chosen = [j for j, setting in enumerate(size.settings) if setting.alpha == size.settings[0].alpha]
    fit = size.fits["smooth" if size.refusal else "knee"]
    for colour, j in zip(sns.color_palette("viridis", len(chosen)), chosen, strict=True):
        setting, curve, error = size.settings[j], size.curves[j], 2 * size.errors[j]
        axes.plot(size.fractions, curve, "o", color=colour, markersize=3)
        axes.fill_between(size.fractions, curve - error, curve + error, color=colour, alpha=0.2, linewidth=0)
        axes.plot(size.fractions, fit[j], color=colour, linewidth=1.3, label=_cap(setting))
        if setting.cap is not None and (knee := setting.cap / setting.alpha) <= float(size.fractions[-1]):
            # A little below the axis, so that it does not hide the curve.
            axes.plot([knee], [-0.02], "^", color=colour, transform=axes.get_xaxis_transform(), clip_on=False)
    if truth is not None:
        mark(axes, truth, "truth", height=0.1)
    if not size.refusal:
        axes.axvspan(size.low, size.high, color="0.5", alpha=0.25, linewidth=0)
        axes.axvline(size.fraction, color="0.3", linewidth=1.2)
    axes.set_title("\n".join(filter(None, (name, _named(size)))), fontsize="small")
    axes.set_ylim(min(0.0, float(size.curves.min())), None)
    axes.tick_params(axis="x", pad=6)


def _cap(setting: Setting) -> str:
    return "no cap" if setting.cap is None else f"β {setting.cap:g}"


def _named(size: Size) -> str:
    """A size, or why there is none: the curves were not read, or have no knee."""
    refused = f"not read: {size.rows} are too few" if "too few" in size.refusal else "no size"
    return refused if size.refusal else f"size {size}"


def collapsed(axes: Axes, size: Size, name: str = "") -> None:
    """Draw FFid+ over the removed share of the block that the best knee names: all settings fall onto one curve.

    Args:
        axes: to draw on.
        size: of `faithlab.metrics.size.explanation_size` or `read`, also one that is refused.
        name: above the panel.
    """
    for marker, curve, gone, setting in zip(MARKERS * 2, size.curves, size.gone, size.settings, strict=False):
        label = f"α {setting.alpha:g}, {_cap(setting)}"
        axes.plot(gone, curve, marker=marker, markersize=3.5, linewidth=0, label=label)
    axes.set_title(name, fontsize="small")


def plateaus(
    sizes: Mapping[str, Size],
    *,
    columns: int = 2,
    truth: float | Mapping[str, float] | None = None,
    least: int = 30,
    collapse: bool = False,
) -> plt.Figure:
    """The `plateau` of several rankings or kinds of data, a panel each, with the size that is read or why none is.

    Args:
        sizes: by name, of `faithlab.metrics.size.read`.
        columns: panels beside each other.
        truth: the true size, of all or by name, where it is known.
        least: see `show`.
        collapse: show what is `collapsed` in place of the plateaus.
    """
    rows = -(-len(sizes) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(7.3, 0.3 + 2.6 * rows), squeeze=False, sharex=not collapse)
    for axes, (name, size) in zip(grid.flat, sizes.items(), strict=False):
        if collapse:
            collapsed(axes, size, name)
        else:
            plateau(axes, size, name, truth.get(name) if isinstance(truth, Mapping) else truth)
    for axes in grid.flat[len(sizes) :]:
        axes.set_axis_off()
    key(figure, grid[0, 0])
    figure.supxlabel("removed share of the block" if collapse else EXPLANATION_SIZE, fontsize="small")
    figure.supylabel("FFid+", fontsize="small")
    return show(figure, least)


def explanation_size(
    size: Size,
    shown: Tensor | Sequence[str],
    attribution: Tensor,
    segments: Tensor | None = None,
    *,
    truth: float | None = None,
) -> plt.Figure:
    """A plateau of one input: the input, its explanation, the curves, and what the size keeps.

    Args:
        size: of `faithlab.metrics.size.explanation_size`.
        shown: a picture [H, W, C] as imshow takes it, a series [steps, channels], or the words of a text.
        attribution: [F], of the picture's segments, the steps or the words.
        segments: the features of a picture, [H, W], see `faithlab.segments`.
        truth: the true size, where it is known.

    Raises:
        ValueError: a picture without its features.
    """
    attribution, picture = attribution.cpu(), isinstance(shown, Tensor) and shown.ndim == 3
    if picture and segments is None:
        raise ValueError("expected the segments of the picture, but got the picture alone")
    # The input above, the curves below: as wide as a phone shows without scrolling.
    rows = [[0, 1, 2] if picture else ["input"] * 3, ["curves"] * 3]
    figure, panels = plt.subplot_mosaic(rows, figsize=(5.4, 4.6), height_ratios=[1, 1.7])
    plateau(panels["curves"], size, truth=truth)
    panels["curves"].set(xlabel=EXPLANATION_SIZE, ylabel="FFid+")
    panels["curves"].legend(fontsize="small", handlelength=1, loc="upper left", bbox_to_anchor=(1, 1))
    top = masks.counts([0.0 if size.refusal else size.fraction], len(attribution))
    # What is kept is the top, which is what removing it takes away.
    kept = ~masks.remove_top(masks.order(attribution[None]), top)[0, 0]
    says = f"{_named(size)}, nothing to keep" if size.refusal else f"its top {size.fraction:.0%}"
    if picture:
        colours, at = shown.permute(2, 0, 1), segments.cpu()
        titles = {"image": colours, "explanation": attribution[at], says.replace(", ", ",\n"): colours * kept[at]}
        for column, (title, of) in enumerate(titles.items()):
            _image(panels[column], of)
            panels[column].set_title(title, fontsize="small")
        return show(figure)
    if isinstance(shown, Tensor):
        series(panels["input"], shown, attribution)
        if at := kept.nonzero()[:, 0].tolist():  # no points have no place, and the layout would make room for them
            panels["input"].plot(at, [shown.min().item() - 0.5] * len(at), "ks", markersize=3, clip_on=False)
    else:
        _words(panels["input"], shown, attribution, kept)
    look = ("squares: " if isinstance(shown, Tensor) else "bold: ") * bool(kept.any())
    panels["input"].set_title(f"shaded: the explanation; {look}{says}", fontsize="small")
    return show(figure)


def _words(axes: Axes, words: Sequence[str], attribution: Tensor, kept: Tensor) -> None:
    """Draw a text as it is read, each word shaded by its relevance; what is kept is bold, and a blank is a point."""
    shades = (attribution - attribution.min()) / (attribution.max() - attribution.min()).clamp(min=1e-12)
    column, line = 0, 0
    look = {"xycoords": "axes fraction", "textcoords": "offset points", "fontsize": SMALLEST, "va": "top"}
    for word, shade, stays in zip(words, shades.tolist(), kept.tolist(), strict=True):
        word = word or "\N{MIDDLE DOT}"
        if column and column + len(word) > 60:  # characters in a line
            column, line = 0, line + 1
        # Letters of one width stand where they are, however wide the axes get; 0.6 of their size is what they take.
        at, weight = (0.6 * SMALLEST * column, -8 - 2 * SMALLEST * line), "bold" if stays else "normal"
        ground = {"facecolor": plt.get_cmap("Blues")(0.6 * shade), "edgecolor": "none", "pad": 1.0}
        axes.annotate(word, (0, 1), at, family="monospace", fontweight=weight, bbox=ground, **look)
        column += len(word) + 1
    axes.set_axis_off()


def movable(sizes: Mapping[str, Size]) -> Markdown:
    """Curves and sizes for a figure with a slider over the caps, which `book/_static/movable.js` draws.

    Args:
        sizes: of `faithlab.metrics.size`, by what a reader chooses them by.
    """

    def rounded(of: Tensor) -> list:
        return [round(v, 4) if v == v else None for v in of.tolist()]

    panels = []
    for name, of in sizes.items():
        alpha, fit = of.settings[0].alpha, of.fits["smooth" if of.refusal else "knee"]
        own = sorted((s.cap, j) for j, s in enumerate(of.settings) if s.alpha == alpha and s.cap is not None)
        size = None if of.refusal else [round(v, 3) for v in (of.fraction, of.low, of.high)]
        told = {"name": name, "size": size, "refusal": of.refusal, "alpha": alpha, "sizes": rounded(of.fractions)}
        lines = {"curves": of.curves, "errors": of.errors, "fits": fit}
        told |= {key: [rounded(values[j]) for _, j in own] for key, values in lines.items()}
        panels.append(told | {"caps": [cap for cap, _ in own]})
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
            the groups of this image, [1, K], and SaCo's bets on them, [1, pairs].
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


VERDICTS = {"passed": ("#0173b2", "✓"), "failed": ("#d55e00", "✗"), "open": ("0.88", "?")}
"""Of each verdict of the examination its colour and symbol."""


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
        size: of `faithstudy.trials.examination.SIZES`.
    """
    of = trust[trust["size"] == size]
    of = of if "kind" in of else of.assign(kind="")
    kinds, trials = list(dict.fromkeys(of["kind"])), list(dict.fromkeys(of["trial"]))
    names, counts = zip(*in_order(of), strict=True)
    between, many = [k for k in range(1, len(names)) if counts[k - 1] != counts[k]], len(kinds) > 1
    said = of["verdict"].map({name: symbol for name, (_, symbol) in VERDICTS.items()}).fillna("")
    # Narrow cells have no room for numbers.
    said = said.replace("?", "") if many else said + of["T"].map(lambda T: f" {numbers.number(T, 2)}")
    of = of.assign(said=said, code=of["verdict"].map({name: k for k, name in enumerate(VERDICTS)}))
    figsize = (1.9 + (0.5 if many else 0.88) * len(trials) * len(kinds), (2.4 if many else 0.9) + 0.3 * len(names))
    figure, grid = plt.subplots(1, len(kinds), figsize=figsize, sharey=True, squeeze=False)
    look = {"cmap": ListedColormap([colour for colour, _ in VERDICTS.values()]), "vmin": 0, "vmax": 2, "cbar": False}
    hatched = {"hatch": "////", "facecolor": "white", "edgecolor": "0.75"}
    outline = {"facecolor": "none", "edgecolor": "black", "linewidth": 1.6}
    for axes, kind in zip(grid[0], kinds, strict=True):
        own = of[of["kind"] == kind]
        cells = own.pivot(index="metric", columns="trial", values=["code", "said"]).reindex(names)
        code, text = cells["code"].reindex(columns=trials).astype(float), cells["said"].reindex(columns=trials)
        sns.heatmap(code, annot=text, fmt="", linewidths=1.5, annot_kws={"fontsize": "small"}, ax=axes, **look)
        for row in own[own["home"]].itertuples():
            at = trials.index(row.trial) + 0.04, names.index(row.metric) + 0.06
            axes.add_patch(plt.Rectangle(at, 0.92, 0.88, **outline))
        axes.hlines(between, 0, len(trials), "0.2", linewidth=0.7)
        axes.patch.set(**hatched, linewidth=0)
        axes.xaxis.tick_top()
        axes.tick_params(axis="x", rotation=90 * many, labelsize=SMALLEST, length=0)
        axes.set(xlabel="", ylabel="")
        axes.set_title(kind.replace(", ", "\n"), fontsize="small")
        axes.grid(False)
    keys = {f"{symbol} {name}": {"facecolor": colour} for name, (colour, symbol) in VERDICTS.items()}
    keys |= {"does not apply": hatched, "at home": outline}
    keys = [plt.Rectangle((0, 0), 1, 1, label=name, **look) for name, look in keys.items()]
    figure.legend(handles=keys, loc="outside lower center", ncols=5, fontsize="x-small")
    return show(figure)
