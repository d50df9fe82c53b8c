"""Tables for the book: what a paper prints beside what was measured."""

from collections.abc import Mapping, Sequence

import pandas as pd
from pandas.io.formats.style import Styler


def side_by_side(
    sources: Mapping[str, pd.DataFrame | None],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    order: Sequence[str] = (),
    digits: int = 2,
) -> pd.DataFrame:
    """The same quantity from several sources, in adjacent columns.

    Args:
        sources: by the name of their column (published, recorded, this build); each tidy, with `rows`, `columns`,
            `mean`, optionally `std` and `missing`. A source that is None or empty has no column.
        rows: columns that make the table's rows, in the order of their first appearance.
        columns: columns that make the table's column groups.
        order: values that come first, in this order, in whichever column they are.
        digits: after the point.

    Returns:
        Text "mean ± std", with the number of missing values where there are any, and "–" where a source has no value.
    """
    keys = [*rows, *columns]
    parts = [
        frame.assign(source=name, text=[_text(row, digits) for row in frame.to_dict("records")])[
            [*keys, "source", "text"]
        ]
        for name, frame in sources.items()
        if frame is not None and len(frame)
    ]
    tidy = pd.concat(parts, ignore_index=True)
    for key in [*keys, "source"]:
        seen = list(tidy[key].unique())
        first = [value for value in order if value in seen]
        categories = first + [value for value in seen if value not in first]
        tidy[key] = pd.Categorical(tidy[key], categories=categories, ordered=True)
    table = tidy.pivot(index=list(rows), columns=[*columns, "source"], values="text").sort_index().sort_index(axis=1)
    table.index.names = [None] * table.index.nlevels
    table.columns.names = [None] * table.columns.nlevels
    return table.fillna("–")


def styled(table: pd.DataFrame) -> Styler:
    """A table of numbers as the book shows it: merged headers, its look in the book's style sheet."""
    return table.style.set_table_attributes('class="dataframe"')


def prose(frame: pd.DataFrame) -> Styler:
    """A table of sentences as the book shows it: text in lines, no index."""
    return frame.style.hide(axis="index").set_table_attributes('class="dataframe faithlab-text"')


def _text(row: Mapping, digits: int) -> str:
    """One cell."""
    if pd.isna(row["mean"]):
        return f"none ({int(row['missing'])} missing)" if row.get("missing") else "–"
    text = f"{row['mean']:.{digits}f}"
    if not pd.isna(row.get("std", float("nan"))):
        text += f" ± {row['std']:.{digits}f}"
    if row.get("missing"):
        text += f" ({int(row['missing'])} missing)"
    return text.replace("-", "−")
