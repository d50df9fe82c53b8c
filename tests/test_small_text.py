"""A figure fits the column of a page, and its text is never under 9 points there."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.text import Text

from faithstudy import plots


def smallest(width: float) -> tuple[float, float]:
    """The smallest text of a figure with small words and ticks, and how wide it came out beside the column."""
    figure, axes = plt.subplots(figsize=(width, 3))
    axes.plot([0, 1], [0, 1])
    axes.text(0.5, 0.5, "small", fontsize=6)
    axes.tick_params(labelsize=7)
    axes.set_title("large", fontsize=14)
    plots.show(figure)
    figure.draw_without_rendering()
    sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text()]
    assert max(sizes) == 14, "what is large enough stays as it is"
    return min(sizes), figure.get_tightbbox().width / plots.COLUMN


@pytest.mark.parametrize("share", [0.5, 1.05, 1.6])
def test_small_text_is_nine_points_where_the_page_shows_it(share):
    size, wide = smallest(share * plots.COLUMN)
    assert size == plots.SMALLEST
    assert wide <= 1


def test_what_stands_beside_the_axes_fits_the_column_too():
    plots.theme()
    figure, axes = plt.subplots(figsize=(1.5 * plots.COLUMN, 3))
    axes.plot([0, 1], [0, 1], label="a line with a long name")
    axes.legend(bbox_to_anchor=(1.0, 1.0), loc="upper left")
    plots.show(figure)
    figure.draw_without_rendering()
    wide = figure.get_tightbbox().width + 2 * plt.rcParams["savefig.pad_inches"]
    assert 0.9 * plots.COLUMN < wide <= plots.COLUMN


def test_a_key_is_above_the_panels_in_as_many_rows_as_it_needs():
    figure, axes = plt.subplots(figsize=(3.5, 2))
    for k in range(6):
        axes.plot([0, 1], [0, k], label=f"line number {k}")
    plots.key(figure, axes)
    plots.show(figure)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert len({round(text.get_window_extent().y0) for text in legend.get_texts()}) == 3
    assert legend.get_window_extent().y0 >= axes.get_window_extent().y1
    assert axes.get_window_extent().width > 0.8 * 3.5 * figure.dpi
