"""The metrics to use: those that fail no trial, the cheapest first."""

from collections.abc import Sequence

import pandas as pd

from faithstudy.trials.concordance import FAILED, NONE, OPEN, PASSED
from faithstudy.trials.examination import TRIALS, applied

BUILT = "Truth"
"""The trial that has a network of its own, whose truth is known by construction, and says nothing of another one."""

STAYING = ("Stand-in", "Repeat")
"""The trials that ask the same twice, and whether the answer stays."""

TELLING = tuple(trial for trial in TRIALS if trial not in (BUILT, *STAYING))
"""The trials that have a right answer for the network itself; numbers that never ask it pass some of them."""


def places(
    names: Sequence[str], low: Sequence[float], high: Sequence[float], value: Sequence[float]
) -> dict[str, float]:
    """The place of each name by a value, 0 the lowest; those share one that overlap with the interval of its first.

    Args:
        names: of what is ordered.
        low: ends of the intervals, [N].
        high: likewise.
        value: in between.
    """
    found, place, top = {}, -1.0, float("-inf")
    for _, least, most, name in sorted(zip(value, low, high, names, strict=True), key=lambda row: row[0]):
        if least > top:
            place, top = place + 1, most
        found[name] = place
    return found


def usable(trust: pd.DataFrame) -> list[str]:
    """The metrics that fail no trial, pass `BUILT`, if that was asked at all, and one of `TELLING`.

    Args:
        trust: rows of `trust`, of one kind of network and one size.
    """
    asked = trust[trust["verdict"] != NONE]
    must = {BUILT} & {*asked["trial"]}
    found = []
    for name, own in asked.groupby("metric", sort=False):
        passed = {*own.loc[own["verdict"] == PASSED, "trial"]}
        if FAILED not in {*own["verdict"]} and must <= passed and passed & {*TELLING}:
            found.append(name)
    return found


def advice(trust: pd.DataFrame, price: pd.DataFrame) -> pd.DataFrame:
    """Which metrics to use, the cheapest first, and which trials the others fail: of the means over the images.

    To be used is what is `usable`: it has to pass a trial with a right answer that the network itself was put to, since
    `BUILT` has its own network and `STAYING` no right answer, and `BUILT`, which no number passes that asks nothing.

    Args:
        trust: of `trust`, with a column "kind" (of network).
        price: of `price`, likewise.

    Returns:
        A row for each kind and each metric that was put to a trial: kind, metric, place (0: those to be used that no
        other is cheaper than, 1: the next; metrics whose prices their intervals do not tell apart share a place; NaN:
        it fails a trial, or does not pass what it must), and the trials that it passed, failed and left open, as
        texts.
    """
    costs, rows = price.set_index(["kind", "metric"]), []
    for kind, of in applied(trust).groupby("kind", sort=False):
        trials = {
            name: {said: ", ".join(own.loc[own["verdict"] == said, "trial"]) for said in (PASSED, FAILED, OPEN)}
            for name, own in of.groupby("metric", sort=False)
        }
        clean = usable(of)
        told = costs.loc[[(kind, name) for name in clean]].reset_index()
        # A metric that asks nothing costs nothing, whatever the images.
        ends = [(told["each"] * told[end]).where(told["each"] > 0, 0.0) for end in ("images_low", "images_high")]
        at = places(told["metric"], *ends, told["forwards"])
        names = [*at, *(name for name in trials if name not in at)]
        rows += [{"kind": kind, "metric": name, "place": at.get(name), **trials[name]} for name in names]
    return pd.DataFrame(rows, columns=["kind", "metric", "place", PASSED, FAILED, OPEN]).astype({"place": float})


def recommended(advice: pd.DataFrame, price: pd.DataFrame, forwards: float) -> dict[str, str]:
    """The metric to take, by kind of network: of those to be used, the one that passes most of its own trials.

    Of equals it is the cheapest. Metrics of other libraries are examined, but not recommended: they cannot be called
    from here, and some have faults that no trial sees.

    Args:
        advice: of `advice`.
        price: of `price`, with a column "kind".
        forwards: that can be spent to tell two explanations apart; a metric that may need more is not recommended.

    Returns:
        The name of a registered metric; a kind for which there is none is left out.
    """
    found = advice[advice["place"].notna() & ~advice["metric"].str.contains(":")].merge(price, on=["kind", "metric"])
    found = found[2 * found["each"] * found["images_high"] <= forwards]
    passes = found[PASSED].map(lambda said: len({*said.split(", ")} - {BUILT, ""}))
    found = found.assign(passes=passes).sort_values(["passes", "forwards"], ascending=[False, True], kind="stable")
    return found.drop_duplicates("kind").set_index("kind")["metric"].to_dict()
