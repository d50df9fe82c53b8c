"""Does a build agree with the record? ``python -m faithstudy.regression --profile quick``.

A quick run asks about the first images of the recorded run, with the same networks and settings: so every row that
both have must hold the same numbers at the sizes that both have, whatever processor made them. Rounding differs between
processors, and where two classes are all but even it decides a hit; so rows may differ, but few, and not to one side.

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

INPUTS = (
    *("images", "series", "texts", "vehicles", "photographs", "photographs_judged", "test_limit"),
    *("fidelity_images", "split_images", "classifiers", "ones", "one_draws", "more_photographs", "sentences"),
    *("attained_images", "reason_images", "same_images", "studies"),
)
"""Parameters that say how many inputs are asked about, where they are numbers: a run with fewer asks about the first
of them. Those that begin with one are of readings of single inputs, which are in no table of rows."""

APART = (
    *("shown_draws", "more_background", "reason_images", "clothes_sides", "clothes_steps", "longer"),
    *("repeats", "restarts", "subsets", "other_forms", "unbounded_epochs", "explained_by", "growing"),
    *("loop_images", "counted"),
)
"""Parameters of figures, tables, networks, data and explainers of their own: no row that a run without them has depends
on them."""

LEFT_OUT = {
    "f-fidelity/vision-transformer": ("roar_limit",),
    "trace/explainers": ("steps",),
    "trace/settings": ("steps",),
}
"""Pages, and their parameters on which only rows rest that are left out: of a search, or of a network of ROAR."""

NOT_ASKED = {"f-fidelity/explainers": ("attained",), "saco/beyond-vits": ("attained",)}
"""Pages, and the tables that quick leaves to the record. That a build lacks another one is a fault."""

OF_A_FOLDER = ("folder", "folder_limit", "more_photographs")
"""Parameters of inputs from a reader's folder, beside the others: a build without one has no row of them."""

NOT_COMPARED = {
    "across/examination": "the search for the best order has fewer forwards in quick",
    "cost/f-fidelity": "every network that judges is trained anew there, in quick on fewer images",
    "cost/forwards": "the split of the variance has fewer draws in quick",
    "cost/search": "searches have fewer steps in quick",
    "trace/best-orders": "quick asks one network, and about no subsets that cost much",
    "trace/annealing": "quick asks about all subsets of fewer features",
    "trace/networks": "searches of photographs have fewer steps in quick",
    "trace/optimality": "quick asks about all subsets of fewer features",
    "trace/searches": "quick compares other searches, which cost less",
}
"""Pages whose quick run is no subsample of the recorded one, and why. Of any other page that is a fault."""

NEAR = 0.05
"""Two numbers agree within this share of the range of their metric's values on the same data and network, of all
explainers: bfloat16 has 8 bits, and of two inputs the numbers of one explainer may lie next to each other."""

FEW = 0.03
"""The share of all numbers of a table that may differ by more: a processor with bfloat16 beside one without turned 1.8
% of the hits of EfficientNet-Lite0. Two may in any table: of few numbers two are no small share."""

MORE = {"across/rivals, draws": 0.15, "trace/optimum-of-photographs, answers": 0.15}
"""Tables of which a larger share may differ. Numbers that are orders of the hits of one input: each rests on a hundred
hits and more, one of which moves it by a step; seen 5 of 72, beside 0.4 % of the hits. Probabilities that
EfficientNet-Lite0 gives to photographs without some of their patches: bfloat16 moves them by 0.02 in the mean and
0.11 at most; seen 11 of 144."""

SHIFT = 0.02
"""How far, in shares of that range, the mean of a metric and explainer may move over all its rows."""

LEAST = 10
"""Inputs whose mean is looked at, at least: of fewer, one that rounding turns moves it by itself, and is counted."""

WAYS = ("part of the optimum by ", "part of the optimum, ")
"""How metrics begin that tell the way of a random search: where rounding decides one step, the rest is another way."""


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
        few: the share of the values that may be different.
    """

    values: int
    different: int
    shift: float | None
    absent: int
    new: int = 0
    few: float = FEW

    @property
    def holds(self) -> bool:
        """Whether what differs is no more than rounding makes."""
        few = self.different <= max(2, self.few * self.values)
        return self.values > 0 and few and (self.shift is None or self.shift <= SHIFT)

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
            + ("" if self.holds else ". That is more than rounding makes.")
        )


def compared(built: Scores, kept: Scores) -> Agreement:
    """Compare the rows of a build with those of the recorded run.

    Args:
        built: the table of the build.
        kept: that of the recorded run.

    Raises:
        ValueError: a metric was asked at no size of the recorded ones.
    """
    known = {block.key: block for block in kept}
    asked, spans = kept.labels("explainer"), _spans(kept)
    values = different = absent = new = 0
    shift = None
    for block in built:
        if str(block.labels.get("metric")).startswith(WAYS):
            continue
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
        same = ((now - then).abs() <= NEAR * span) | (now.isnan() & then.isnan())
        values += same.numel()
        different += int((~same).sum())
        if len(pairs) < LEAST:
            continue
        moved = (now - then).nan_to_num(0).flatten()
        # One answer that rounding turns is counted above. Of few it would move the mean by more than rounding does.
        one = moved[moved.abs().argmax()] if len(moved) > 1 else 0
        shift = max(shift or 0.0, float((moved.sum() - one).abs()) / max(1, int((~(now - then).isnan()).sum())) / span)
    return Agreement(values, different, shift, absent, new)


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
        raise ValueError(f"{dict(block.labels)}: asked at the sizes {block.sizes}, recorded at {other.sizes}")
    return tuple(zip(*both, strict=True))


def _rows(block: Block) -> list[tuple[int, int | None]]:
    pairs = [None] * len(block.images) if block.pairs is None else block.pairs.tolist()
    return list(zip(block.images.tolist(), pairs, strict=True))


def trained_anew(built: Mapping[str, Any], kept: Mapping[str, Any], *, of_others: bool = False) -> set[str]:
    """The networks that a build has trained, none of which ships, with other weights than the recorded run's.

    Args:
        built: provenance of the run of the build.
        kept: that of the recorded run.
        of_others: those by recipes that the recorded run does not know, too.
    """
    own, other = (
        {
            of["name"]: of["sha256"]
            for of in run.get("networks", ())
            if of["kind"] == "network" and not of.get("shipped")
        }
        for run in (built, kept)
    )
    return {name for name, weights in own.items() if weights != other.get(name, None if of_others else weights)}


def of_another_network(block: Block, networks: Collection[str]) -> bool:
    """Whether a metric asks a retrained network, and it is among these of the data.

    If the network that is explained were among them, its other metrics would tell.

    Args:
        block: rows of a metric.
        networks: names that begin with their data, of `trained_anew`.
    """
    metric, data = METRICS.get(block.labels.get("metric")), str(block.labels.get("dataset")).rsplit(" ", 1)[0]
    return (
        metric is not None and metric.network == "retrained" and any(name.startswith(f"{data}-") for name in networks)
    )


def reason(name: str, built: Mapping[str, Any], kept: Mapping[str, Any]) -> str | None:
    """Why the rows of two runs cannot be compared: a setting that differs; None where they can.

    Args:
        name: the notebook.
        built: parameters of the run of the build.
        kept: those of the recorded run.
    """
    for key in profiles.defaults(name):
        if key in ("profile", *APART, *LEFT_OUT.get(name, ())):
            continue
        if key in built and key in kept and built[key] == kept[key]:
            continue
        if key in OF_A_FOLDER and built.get("folder") is None:
            continue  # nor had a run from before the page asked for one
        if key not in built or key not in kept:
            return f"only one has {key}"
        if key == "size_step":
            continue  # random subsets belong to their size, not to the other sizes
        if key in INPUTS and all(not isinstance(of[key], str) for of in (built, kept)):
            continue
        if isinstance(built[key], list) and set(map(str, built[key])) <= set(map(str, kept[key])):
            continue  # rows know their labels
        return f"{key} is {built[key]}, recorded with {kept[key]}"
    return None


def report(profile: str) -> tuple[list[str], bool]:
    """A line for each page of a build that has a larger recorded run, and whether all of them agree.

    Args:
        profile: the profile of the build.
    """
    lines, good = [], True
    for record in results.recorded_runs():
        name, of = record["notebook"], record["profile"]
        built, kept = paths.results(name, profile), paths.recorded(name, of)
        if of == profile or not (built / "provenance.json").is_file():
            continue
        now = json.loads((built / "provenance.json").read_text(encoding="utf-8"))
        if why := reason(name, now["parameters"], record["parameters"]):
            declared = NOT_COMPARED.get(name)
            good = good and declared is not None
            said = declared or f"{why}. No reason for it is declared."
            lines.append(f"{name}: not compared with the recorded run ({of}): {said}")
            continue
        for path in sorted(kept.glob("*.parquet")):
            if not (built / path.name).is_file():
                lines.append(f"{name}, {path.stem}: not asked in this build")
                good = good and path.stem in NOT_ASKED.get(name, ())
                continue
            networks = trained_anew(now, record, of_others="roar_limit" in LEFT_OUT.get(name, ()))
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
            said = f"left out: {'; '.join(left)}" * bool(left)
            if not len(rows):
                lines.append(f"{name}, {path.stem}: not compared; {said}")
                continue
            agreed = compared(rows, Scores.load(path))._replace(few=MORE.get(f"{name}, {path.stem}", FEW))
            good = good and agreed.holds
            lines.append(f"{name}, {path.stem}: {agreed.sentence(of)}" + f"; {said}" * bool(said))
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
