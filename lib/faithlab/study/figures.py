"""How the study's figures look: one theme, one colour per metric or explainer, readable without colour vision."""

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib_inline.backend_inline import set_matplotlib_formats

COLOURS = dict(
    zip(
        ["F-Fidelity", "R-Fidelity", "Fidelity", "ROAR", "truth"],
        [sns.color_palette("colorblind")[i] for i in (0, 1, 2, 3, 7)],
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
