"""Whether a build agrees with the record: ``python -m faithstudy.regression --profile quick``.

A quick run evaluates the first images of the recorded run, with the same networks and settings: so every row that both
have must hold the same numbers at the sizes that both have, whatever processor made them. Rounding differs between
processors, and where two classes are all but even it decides a hit; so rows may differ, but few, and not to one side:
by `FLOAT32` where both have evaluated in float32, else by `BFLOAT16`.

A search for the best order takes another way where rounding decides one step: what it finds, and what is a share of
that, is left out, and counted.

ROAR trains a network for every explanation. Where it does not ship, another processor trains another one, with other
weights, and quick may train one on fewer images: its rows say nothing of rounding. They are left out, and counted.
"""

import argparse
import json
import sys
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import torch

from faithlab.metrics import METRICS
from faithlab.scores import Block, Label, Scores
from faithstudy import paths, profiles
from faithstudy import run as results
from faithstudy.trials import optimum

NOT_COMPARED = {
    "across/examination": "the search for the best order has fewer forwards in quick",
    "cost/f-fidelity": "every network that judges is trained anew there, in quick on fewer images",
    "cost/forwards": "the split of the variance has fewer draws in quick",
    "cost/search": "searches have fewer steps in quick",
    "trace/best-orders": "quick evaluates one network, and no subsets that cost much",
    "trace/annealing": "quick evaluates all subsets of fewer features",
    "trace/networks": "searches of photographs have fewer steps in quick",
    "trace/optimality": "quick evaluates all subsets of fewer features",
    "trace/searches": "quick compares other searches, which cost less",
}
"""Pages whose quick run is no subsample of the recorded one, and why."""

LEFT_TO_THE_RECORD = {"f-fidelity/explainers, attained", "saco/beyond-vits, attained"}
"""Tables that quick does not make. That a build lacks another one is a fault."""

MORE = {"across/rivals, draws": 0.15, "trace/optimum-of-photographs, answers": 0.15, "saco/": 0.03}
"""How the names of tables begin of which a larger share may differ. Numbers that are orders of the hits of one input:
each rests on a hundred hits and more, one of which moves it by a step; seen 5 of 72, beside 0.4 % of the hits.
Probabilities that EfficientNet-Lite0 gives to photographs without some of their patches: bfloat16 moves them by 0.02 in
the mean and 0.11 at most; seen 11 of 144. SaCo, which takes the sign of small differences: seen 4 of 360 in float32."""

LEAST = 10
"""Inputs whose mean is compared, at least: of fewer, one that rounding turns moves it by itself, and is counted."""


class Rounding(NamedTuple):
    """How far the numbers of a build and of the record may differ, as shares.

    Attributes:
        near: two numbers agree within this share of the range of their metric's values on the same data and network, of
            all explainers: of two inputs the numbers of one explainer may lie next to each other.
        few: of all numbers of a table that may differ by more. Two may in any: of few numbers two are no small share.
        shift: of that range, by which the mean of a metric and explainer may move over all its rows.
    """

    near: float
    few: float
    shift: float


FLOAT32 = Rounding(near=0.05, few=0.005, shift=0.005)
"""Where both have evaluated in float32: of 170 000 hits of time series and texts none differed between an AMD EPYC and
an Intel Xeon with AVX-512."""

BFLOAT16 = Rounding(near=0.05, few=0.03, shift=0.02)
"""Where either has, or may have, evaluated in bfloat16, which has 8 bits: that turned 0.2 % of the hits of the networks
of time series and 1.8 % of those of EfficientNet-Lite0."""


class Agreement(NamedTuple):
    """How far the rows agree that two tables share.

    Attributes:
        values: numbers that both have.
        different: of them, those that are not near each other, or that only one has; and those of rows that are absent.
        shift: the largest distance of the means of one metric, explainer and level over at least `LEAST` inputs, as a
            share of the range, the one number that differs most left out; None: no rows have so many inputs.
        absent: rows of the build that the record lacks. Where only inputs that a network recognises are asked about,
            rounding decides about a few.
        new: rows of explainers that the record has nowhere: the page asks them since.
        rounding: how far they may differ.
    """

    values: int
    different: int
    shift: float | None
    absent: int
    new: int
    rounding: Rounding

    @property
    def holds(self) -> bool:
        """Whether what differs is no more than rounding makes."""
        few = self.different <= max(2, self.rounding.few * self.values)
        return self.values > 0 and few and (self.shift is None or self.shift <= self.rounding.shift)

    def sentence(self, profile: str) -> str:
        """What was found, in a line.

        Args:
            profile: that of the recorded run.
        """
        absent = f"; {self.absent} rows are not recorded" if self.absent else ""
        absent += f"; {self.new} rows are of explainers that were not asked then" if self.new else ""
        moved = f"no mean is of {LEAST} inputs"
        if self.shift is not None:
            moved = f"means by up to {100 * self.shift:.2g} % of the range"
        return (
            f"of {self.values} numbers, {self.different} differ from the recorded run ({profile}), {moved}{absent}"
            + ("" if self.holds else "; that is more than rounding makes")
        )


def compared(built: Scores, kept: Scores, rounding: Rounding) -> Agreement:
    """Compare the rows of a build with those of the recorded run.

    Args:
        built: the table of the build.
        kept: that of the recorded run.
        rounding: how far they may differ.

    Raises:
        ValueError: a metric was evaluated at no size of the recorded ones.
    """
    known = {block.key: block for block in kept}
    asked, spans = kept.labels("explainer"), _spans(kept)
    values = different = absent = new = 0
    shift = None
    for block in built:
        other = known.get(block.key)
        if other is None and block.labels.get("explainer") not in [None, *asked]:
            new += len(block.images)
            continue
        if other is None:
            absent += len(block.images)
            different += block.values.numel()
            continue
        shared = _shared(block, other)
        place = {row: index for index, row in enumerate(_rows(other))}
        pairs = [(i, place[row]) for i, row in enumerate(_rows(block)) if row in place]
        absent += len(block.images) - len(pairs)
        different += block.values[0].numel() * (len(block.images) - len(pairs))
        if not pairs:
            continue
        own, others = (torch.tensor(side) for side in zip(*pairs, strict=True))
        now, then = (of.values[rows].double() for of, rows in ((block, own), (other, others)))
        if shared:
            now, then = (of[:, list(places)] for of, places in zip((now, then), shared, strict=True))
        span = spans[_scale(block)]
        same = ((now - then).abs() <= rounding.near * span) | (now.isnan() & then.isnan())
        values += same.numel()
        different += int((~same).sum())
        if len(pairs) < LEAST:
            continue
        moved = (now - then).nan_to_num(0).flatten()
        # One answer that rounding turns is counted above. Of few it would move the mean by more than rounding does.
        one = moved[moved.abs().argmax()] if len(moved) > 1 else 0
        shift = max(shift or 0.0, float((moved.sum() - one).abs()) / max(1, int((~(now - then).isnan()).sum())) / span)
    return Agreement(values, different, shift, absent, new, rounding)


def _scale(block: Block) -> tuple[Label, ...]:
    """Rows whose numbers have one range: of a metric on some data and a network, whatever explains."""
    return tuple(block.labels.get(key) for key in ("metric", "dataset", "network"))


def _spans(kept: Scores) -> dict[tuple[Label, ...], float]:
    """The range of the numbers of each `_scale`; 1 where they are all one."""
    ends: dict[tuple[Label, ...], tuple[float, float]] = {}
    for block in kept:
        low, high = ends.get(_scale(block), (torch.inf, -torch.inf))
        values = block.values.double()
        least, most = float(values.nan_to_num(torch.inf).min()), float(values.nan_to_num(-torch.inf).max())
        ends[_scale(block)] = min(low, least), max(high, most)
    return {scale: high - low if 0 < high - low < torch.inf else 1.0 for scale, (low, high) in ends.items()}


def _shared(block: Block, other: Block) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Where the sizes stand that both were asked at, in each; None: neither has sizes."""
    if block.sizes is None and other.sizes is None:
        return None
    at = {round(size, 6): place for place, size in enumerate(other.sizes or ())}
    both = [(place, at[round(size, 6)]) for place, size in enumerate(block.sizes or ()) if round(size, 6) in at]
    if not both:
        raise ValueError(f"{dict(block.labels)}: evaluated at the sizes {block.sizes}, recorded at {other.sizes}")
    return tuple(zip(*both, strict=True))


def _rows(block: Block) -> list[tuple[int, int | None]]:
    pairs = [None] * len(block.images) if block.pairs is None else block.pairs.tolist()
    return list(zip(block.images.tolist(), pairs, strict=True))


def trained_anew(built: Mapping[str, Any], kept: Mapping[str, Any]) -> set[str]:
    """The networks that a build has trained, none of which ships, with other weights than the recorded run's.

    Args:
        built: provenance of the run of the build.
        kept: that of the recorded run.
    """
    own, other = (
        {
            (of["name"], of["sha256"])
            for of in run.get("networks", ())
            if of["kind"] == "network" and not of.get("shipped")
        }
        for run in (built, kept)
    )
    return {name for name, _ in own - other}


def of_another_network(block: Block, networks: Collection[str]) -> bool:
    """Whether a metric evaluates a retrained network, and it is among these of the data.

    If the network that is explained were among them, its other metrics would tell.

    Args:
        block: rows of a metric.
        networks: names that begin with their data, of `trained_anew`.
    """
    metric, data = METRICS.get(block.labels.get("metric")), str(block.labels.get("dataset")).rsplit(" ", 1)[0]
    retrained = metric is not None and metric.network == "retrained"
    return retrained and any(name.startswith(f"{data}-") for name in networks)


def report(profile: str) -> tuple[list[str], bool]:
    """A line for each table of a build that has a larger recorded run, and whether all of them agree.

    Args:
        profile: the profile of the build.
    """
    lines, good = [], True
    for record in results.recorded_runs():
        name, of = record["notebook"], record["profile"]
        built, kept = paths.results(name, profile), paths.recorded(name, of)
        if of == profile or not (built / "provenance.json").is_file():
            continue
        if name in NOT_COMPARED:
            lines.append(f"{name}: not compared with the recorded run ({of}): {NOT_COMPARED[name]}")
            continue
        now = json.loads((built / "provenance.json").read_text(encoding="utf-8"))
        # A run from before precisions were noted may be of either.
        either = [precision for of in (now, record) for precision in of.get("precisions", ["bfloat16"])]
        rounding = BFLOAT16 if "bfloat16" in either else FLOAT32
        other = [key for key, value in now["parameters"].items() if record["parameters"].get(key) != value]
        networks = trained_anew(now, record)
        for path in sorted(kept.glob("*.parquet")):
            table = f"{name}, {path.stem}"
            if not (built / path.name).is_file():
                lines.append(f"{table}: not made in this build")
                good = good and table in LEFT_TO_THE_RECORD
                continue
            rows, apart, found = [], [], 0
            for block in Scores.load(built / path.name):
                if optimum.searched(block.labels):
                    found += len(block.images)
                else:
                    (apart if of_another_network(block, networks) else rows).append(block)
            left, rows, apart = [], Scores(rows), Scores(apart)
            if len(apart):
                of_metrics = ", ".join(apart.labels("metric"))
                left.append(f"{len(apart)} rows of {of_metrics} are of a network that was trained anew")
            if found:
                left.append(f"{found} rows are of what a search finds, whose way rounding decides")
            said = f"; left out: {'; '.join(left)}" * bool(left)
            if not len(rows):
                lines.append(f"{table}: not compared{said}")
                continue
            few = next((more for start, more in MORE.items() if table.startswith(start)), rounding.few)
            agreed = compared(rows, Scores.load(path), rounding._replace(few=few))
            good = good and agreed.holds
            if not agreed.holds:
                said += f"; parameters that differ: {', '.join(other) or 'none'}"
            lines.append(f"{table}: {agreed.sentence(of)}{said}")
    return lines, good


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`report`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.regression", description="Compare with the record.")
    parser.add_argument("--profile", default="quick", choices=profiles.PROFILES)
    if (profile := parser.parse_args(arguments).profile) == "smoke":
        print("smoke has networks and data of its own, of which nothing is recorded: nothing is compared.")
        return 0
    lines, good = report(profile)
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
