"""What F-Fidelity compares the order of explanations with, and which correlation is the right one."""

import pandas as pd

COMPARISONS = ("MoRF vs GT", "LeRF vs GT", "MoRF vs LeRF")
"""What F-Fidelity compares: the accuracy that remains without the most, or the least, relevant features with the true
order (GT), and with each other. The ideal correlations are -1, 1 and -1."""

ALONE = "score vs GT"
"""The comparison of a metric that comes in one direction: its score, turned so that higher is better, with GT."""

IDEAL = dict(zip((*COMPARISONS, ALONE), (-1, 1, -1, 1), strict=True))
"""The correlation of a metric that ranks rightly, by comparison."""


def in_one_sign(table: pd.DataFrame, by: str = "comparison") -> pd.DataFrame:
    """Correlations times their ideal, so that 1 is the right order and -1 the reverse in every comparison.

    Args:
        table: a row for each number, with `mean` and where there are intervals `low` and `high`.
        by: the column with the comparison; numbers of what is none stay as they are.

    Returns:
        The same rows; ends of intervals that are turned change places.
    """
    ideal = table[by].map(IDEAL).astype(float).fillna(1)  # of no rows, too
    if "level" in table:
        ideal = ideal.where(~table["level"].str.endswith("rank"), 1)
    table = table.assign(mean=table["mean"] * ideal)
    if "low" not in table:
        return table
    ends = table[["low", "high"]].mul(ideal, axis=0)
    return table.assign(low=ends.min(axis=1), high=ends.max(axis=1))
