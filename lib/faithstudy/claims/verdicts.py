"""What the parts of a claim say together.

A part *holds* if the pooled interval and every single network's estimate lie on the claimed side, in all contrasts. It
*fails* if in one contrast both lie on the other side. It *depends on the network* if one network's interval lies on the
claimed side and another's on the other. Else it is *open*, and always of fewer than six inputs. The verdict of all
parts:

    reproduced     all parts hold
    contradicted   all parts fail
    partly         one holds and one fails, or one depends on the network
    undecided      anything else
    not tested     a premise fails, or depends on the network

A premise is no part of the counts, but nothing is decided before it holds.

**Claims of many parts.** With k parts there are k chances of a false failure beside true successes, and one is enough
for a false "partly". Therefore each part of a claim of more than four is judged at tails of 10 % / k instead of 2.5 %:
by Bonferroni's inequality, whatever the dependence of the parts, a false failure (or success) happens in fewer than one
claim in ten. Within a part, one failing contrast of Q is enough, so that the tail on the failing side is shared by the
contrasts; on the holding side all are needed, and nothing is shared. Where only m of Q contrasts are needed (some,
most), Q - m + 1 share the holding side and m the failing side, by the same inequality. For "depends on the network",
where each of N networks could be the one, the networks' intervals have tails of 10 % / (k N), at most 2.5 %.
An interval at another tail is the 95 % interval with its halves stretched by the ratio of Student's quantiles.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd
import scipy.special
import torch
from torch import Tensor

from faithlab.stats import Estimate, Interval
from faithlab.stats.intervals import METHODS, TAIL
from faithstudy import numbers
from faithstudy.claims.parts import Part
from faithstudy.display_names import plain

HOLDS, FAILS, DEPENDS, OPEN = "holds", "fails", "depends on the network", "open"
COUNTS = {"hold": HOLDS, "fail": FAILS, "depend": DEPENDS, "open": OPEN}
"""The columns of a table of claims that count parts, and the outcomes that they count."""
REPRODUCED, CONTRADICTED, PARTLY, UNDECIDED, UNTESTED = (
    "reproduced",
    "contradicted",
    "partly",
    "undecided",
    "not tested",
)
VERDICTS = (REPRODUCED, CONTRADICTED, PARTLY, UNDECIDED, UNTESTED)

FALSE_PARTLY = 0.10
POWER = 0.8
FAR_MORE = 100
"""So many times more inputs are more than a study asks."""
LEAST = 6
"""Fewer inputs decide nothing: that all five are on one side is chance once in sixteen, whatever an interval says."""
FEW = 10
"""Of fewer inputs an interval is too odd to say how many more would decide."""
POOLED, BETWEEN = "pooled", "between networks"
"""What stands for all networks together in a table of parts."""
COUNTED = "counted"
_LEVEL = re.compile(r"\d+(?:\.\d+)?%?")
ROUNDING = 1e-12
"""An end that is nearer to the bar than this lies on it: the rounding of sums decides no verdict."""
LINES = 8
"""Numbers of a verdict that a page shows in the open; more are folded."""


def tail(parts: int, networks: int = 1) -> float:
    """The share left outside at each end of an interval of a part of a claim (see above)."""
    return min(TAIL, FALSE_PARTLY / (parts * max(1, networks)))


def _inside(interval: Interval, low: float, high: float) -> Tensor:
    return (interval.low > low + ROUNDING) & (interval.high < high - ROUNDING)  # NaN: neither


def _outside(interval: Interval, low: float, high: float) -> Tensor:
    return (interval.high < low - ROUNDING) | (interval.low > high + ROUNDING)


def outcome(estimate: Estimate, low: float, high: float, parts: int = 1, needed: int | None = None) -> str:
    """Whether a part holds, fails, depends on the network or is open; with fewer than `LEAST` inputs of one it is.

    Args:
        estimate: of its contrasts, values [contrasts].
        low: the claimed side is above this,
        high: and below this.
        parts: how many parts the claim has.
        needed: how many contrasts must lie on the claimed side; None: all.
    """
    pooled, each = (Interval(*(x[..., None] for x in interval)) for interval in (estimate.pooled, estimate.each))
    return outcomes(replace(estimate, pooled=pooled, each=each), low, high, parts, needed)[0]


def outcomes(estimate: Estimate, low: float, high: float, parts: int = 1, needed: int | None = None) -> list[str]:
    """The `outcome` of a part in each of R simulations, values [contrasts, R]; arguments as there."""
    contrasts, runs = estimate.value.shape
    if min(estimate.images_each) < LEAST:
        return [OPEN] * runs
    needed = contrasts if needed is None else needed
    spare = contrasts - needed  # may lie on the other side
    wide = estimate.stretch(tail(parts) / (spare + 1)), estimate.stretch(tail(parts) / needed)
    each = estimate.each.value
    on, off = (each > low) & (each < high), (each < low) | (each > high)
    holds = (_inside(estimate.pooled.widened(wide[0]), low, high) & on.all(0)).sum(0) >= needed
    fails = (_outside(estimate.pooled.widened(wide[1]), low, high) & off.all(0)).sum(0) > spare
    own = tail(parts, len(estimate.networks))
    one_holds = _inside(estimate.each.widened(estimate.stretch(own / (spare + 1))), low, high).sum(1) >= needed
    one_fails = _outside(estimate.each.widened(estimate.stretch(own / needed)), low, high).sum(1) > spare
    depends = one_holds.any(0) & one_fails.any(0)
    told = zip(holds.tolist(), fails.tolist(), depends.tolist(), strict=True)
    return [HOLDS if a else FAILS if b else DEPENDS if c else OPEN for a, b, c in told]


def images_needed(estimate: Estimate, low: float, high: float, parts: int = 1) -> float:
    """How many images of each network would decide an open part with a power of 80 %, were the estimates the truth.

    For a contrast with half-width h at distance d from the bar that is ((z + z_power) / z)^2 (h / d)^2 n, at 95 %
    2.04 (h / d)^2 n; h is as with many images, without what Student's quantile adds for few. The hardest undecided
    contrast counts; where the pooled interval is clear but a network's estimate lies on the other side, that network's
    interval does. Infinite at distance 0, NaN without an interval.
    """
    level, asked = tail(parts), max(estimate.images_each)
    z, stretch = -float(scipy.special.ndtri(level)), estimate.stretch(level)
    factor = ((z + float(scipy.special.ndtri(POWER))) / z * estimate.shrink(level)) ** 2
    pooled, each = estimate.pooled.widened(stretch), estimate.each.widened(stretch)

    def needed(interval: Interval) -> Tensor:
        half = (interval.high - interval.low) / 2
        # To the bar that is nearer; an infinite bar is none.
        distance = (interval.value - low).abs().minimum((interval.value - high).abs())
        return factor * (half / distance) ** 2 * asked

    clear = _inside(pooled, low, high) | _outside(pooled, low, high)
    inside = (pooled.value > low) & (pooled.value < high)
    against = ((each.value > low) & (each.value < high)) != inside
    settled = _inside(each, low, high) | _outside(each, low, high)
    numbers = torch.cat([needed(pooled)[~clear], needed(each)[clear & against & ~settled]])
    # So many were not enough here, whatever the formula says of an interval that is not symmetric.
    if not len(numbers):
        return float(LEAST) if min(estimate.images_each) < LEAST else math.nan
    return float(numbers.max().clamp(min=max(asked + 1, LEAST)))


@dataclass(frozen=True)
class Judged:
    """A part, what became of it, and the images that would decide it (NaN: decided, or nobody can tell)."""

    part: Part
    outcome: str
    needed: float = math.nan


def judge_part(part: Part, parts: int = 1) -> Judged:
    """What becomes of a part of a claim.

    Args:
        part: the part.
        parts: how many the claim has.
    """
    if part.gathered is None:
        return Judged(part, OPEN if part.untold else HOLDS if part.count == part.cases else FAILS)
    estimate = part.estimate
    found = outcome(estimate, part.low, part.high, parts, part.needed)
    told = found == OPEN and part.needed is None  # of some or most nobody can tell which will decide it
    return Judged(part, found, images_needed(estimate, part.low, part.high, parts) if told else math.nan)


def rule(outcomes: Sequence[str], premises: Sequence[str] = ()) -> str:
    """The verdict that follows from the outcomes of the parts and of the premises."""
    if FAILS in premises or DEPENDS in premises:
        return UNTESTED
    if OPEN in premises or not outcomes:
        return UNDECIDED if outcomes else UNTESTED
    found = set(outcomes)
    if found == {HOLDS}:
        return REPRODUCED
    if found == {FAILS}:
        return CONTRADICTED
    return PARTLY if DEPENDS in found or {HOLDS, FAILS} <= found else UNDECIDED


@dataclass(frozen=True)
class Claim:
    """A claim of a paper.

    Attributes:
        id: short, unique, stable.
        where: section, table or figure of the paper.
        sentence: the claim in our words.
        parts: what it says, in parts.
        unit: what one row of its scores is about, in words.
    """

    id: str
    where: str
    sentence: str
    parts: tuple[Part, ...]
    unit: str = "input"

    def __post_init__(self):
        object.__setattr__(self, "parts", tuple(self.parts))
        if not any(not part.premise for part in self.parts):
            raise ValueError(f"claim {self.id}: expected at least one part that is no premise")
        names = Counter(part.name for part in self.parts)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise ValueError(f"claim {self.id}: parts need different names, but {', '.join(twice)} is there twice")

    @cached_property
    def verdict(self) -> "Verdict":
        """What the tables say of it."""
        return Verdict(self, tuple(judge_part(part, self.size) for part in self.parts))

    @property
    def size(self) -> int:
        """Number of parts that are estimates and no premises: what the level of each depends on."""
        return max(1, sum(part.gathered is not None and not part.premise for part in self.parts))


def reopened(frame: pd.DataFrame) -> pd.DataFrame:
    """Parts by the rule of today, whenever they were judged: open where a network has fewer than `LEAST` inputs.

    Args:
        frame: of `Verdict.frame`, or what a run has saved of it.

    Returns:
        The same with a column `fewest`: the inputs of the network of its part that has fewest; NaN of what is counted.
    """
    about = [name for name in ("claim", "part") if name in frame]
    own = frame[~frame["network"].isin((POOLED, BETWEEN))].groupby(about, as_index=False)["images"].min()
    fewest = frame[about].merge(own, on=about, how="left")["images"].to_numpy(dtype=float)
    return frame.assign(fewest=fewest, outcome=frame["outcome"].mask(fewest < LEAST, OPEN))


def evidence(frame: pd.DataFrame) -> str:
    """A claim's counts, the networks, data and inputs they speak of, and what would decide it.

    Args:
        frame: of `Verdict.frame`, or what a run has saved of it. Premises count where they do not hold.
    """
    frame = reopened(frame)
    unit, several = unit_of(frame), unit_of(frame, 2)
    pooled = frame[frame["network"] == POOLED]
    parts = pooled.drop_duplicates("part").set_index("part")
    own = parts[~parts["premise"].astype(bool)]
    counts, total = Counter(own["outcome"]), len(own)
    alone = {HOLDS: "holds", OPEN: "is open", FAILS: "fails", DEPENDS: "depends on the network"}
    if total == 1:
        text = f"The one part {alone[own['outcome'].iloc[0]]}"
    else:
        text = f"{counts[HOLDS]} of {total} parts hold{'s' * (counts[HOLDS] == 1)}"
        text += f", {counts[OPEN]} open, {counts[FAILS]} fail{'s' * (counts[FAILS] == 1)}"
        text += f", {counts[DEPENDS]} depend{'s' * (counts[DEPENDS] == 1)} on the network" * (counts[DEPENDS] > 0)
    for name, outcome in parts.loc[parts["premise"].astype(bool), "outcome"].items():
        if outcome != HOLDS:
            text += f"; the premise {name!r} {'is open' if outcome == OPEN else outcome}"
    estimated = own[own["kind"] != COUNTED]
    if len(estimated):
        lines = frame[frame["part"].isin(estimated.index) & ~frame["network"].isin((POOLED, BETWEEN))]
        # A statistic of several networks names them together, and the seed that they share once.
        seeds = [re.search(r"( \(seed \d+\))?$", name)[0] for name in lines["network"]]
        together = [
            one.removesuffix(seed) + seed
            for name, seed in zip(lines["network"], seeds, strict=True)
            for one in name.split(" and ")
        ]
        networks = list(dict.fromkeys(together))
        datasets = list(dict.fromkeys(one for names in estimated["datasets"] for one in names.split(", ")))
        images = sorted({int(n) for n in estimated["images"]})
        span = " to ".join(f"{n:,}" for n in dict.fromkeys((images[0], images[-1])))
        text += f". On {_listed(networks)}, {span} {several if images[-1] != 1 else unit} of {_listed(datasets)}"
        lost = int(estimated["missing"].max())  # many parts lack the same scores
        most = "up to " if lost > estimated["missing"].min() else ""
        text += f"; {most}{lost} missing score{'s' * (lost > 1)} left out" * (lost > 0)
    text += "."
    undecided = parts.loc[(parts["outcome"] == OPEN) & (parts["kind"] != COUNTED), "images_needed"]
    if len(undecided):
        is_open = pooled[pooled["outcome"] == OPEN]
        claimed = is_open[~is_open["premise"].astype(bool)]
        needed, asked = undecided.max(skipna=False), parts.loc[undecided.index, "images"].max()
        text += _open(claimed if len(claimed) else is_open)
        if (few := parts.loc[undecided.index, "fewest"].min()) < LEAST:
            text += f" Where there are fewest there are {few:.0f}; fewer than {LEAST} {several} decide nothing."
        elif asked < FEW:
            text += f" How many {several} would decide it cannot be told from so few."
        elif needed < FAR_MORE * asked:
            text += f" Were the estimates the truth, about {_round(needed):,} {several} would decide the claim."
        elif needed < math.inf:
            text += (
                f" Were the estimates the truth, not even {FAR_MORE} times as many {several} would decide the claim."
            )
        else:
            text += f" How many {several} would decide it cannot be told."
    failing = [name for name, of in pooled[pooled["kind"] != COUNTED].groupby("part", sort=False) if _printed_fails(of)]
    if failing:
        text += f" The paper's own numbers do not satisfy {len(failing)} part{'s' * (len(failing) != 1)}: "
        text += f"{_listed(failing)}."
    return text


def unit_of(frame: pd.DataFrame, number: int = 1) -> str:
    """What the rows of a claim's scores are about, in words; "input" in what a run has saved before it was said."""
    said = [unit for unit in frame.get("unit", ()) if isinstance(unit, str) and unit]
    unit = said[0] if said else "input"
    if number == 1:
        return unit
    return f"{unit[:-1]}ies" if unit.endswith("y") else f"{unit}s"


def deciding(contrasts: pd.DataFrame) -> pd.Series:
    """Of pooled contrasts with one outcome the one that decides it, by distances from the bar in half-widths.

    Of what is open that is the least sure: the nearest to its bar among those whose interval has both sides. Else it is
    the one that lies worst for the claim; where not all contrasts have to hold, of a part that holds, worst of those
    that do. Whatever names a comparison of a claim takes it from here.
    """
    value, low, high, least, most = (
        contrasts[name] for name in ("value", "low", "high", "claimed_low", "claimed_high")
    )
    margin = (value - least).combine(most - value, min).fillna(math.inf)
    half = (high - low) / 2
    clear = (margin / half).where((margin != 0) | (half != 0), 0.0)
    clear = clear if clear.notna().any() else margin  # nothing has an interval
    inside, outside = (low > least) & (high < most), (high < least) | (low > most)
    outcome = contrasts["outcome"].iloc[0]
    if outcome == OPEN:
        clear = clear.abs()
    # With an interval on the one side, else with a value there, else any.
    for held in {OPEN: [~inside & ~outside], HOLDS: [inside, margin > 0]}.get(outcome, []):
        if clear[held].notna().any():
            clear = clear[held]
            break
    return contrasts.loc[clear.idxmin()]


def sureness(row: pd.Series) -> str:
    """What `deciding` has chosen of several comparisons, in words."""
    return "the surest to fail" if row["outcome"] == FAILS else "the least sure"


def _open(pooled: pd.DataFrame) -> str:
    """Which comparison of a claim's open parts is the farthest from decided, for a sentence."""
    row = deciding(pooled)
    own = pooled[pooled["part"] == row["part"]]
    low, high, least, most = (own[name] for name in ("low", "high", "claimed_low", "claimed_high"))
    straddles = ~((low > least) & (high < most)) & ~((high < least) | (low > most))  # or it has no interval
    parts = pooled["part"].nunique()
    text = f" Open is {row['part']!r}" if parts == 1 else f" The least sure of {parts} open parts is {row['part']!r}"
    if len(own) > 1:
        among = f"in {straddles.sum()} of {len(own)} comparisons, " * bool(straddles.any())
        text += f", {among}{sureness(row)} {compared(row['contrast'])}"
    found = numbers.interval(row["value"], row["low"], row["high"])
    found += "" if row["low"] == row["low"] else " without an interval"
    bars = {"above": row["claimed_low"], "below": row["claimed_high"]}
    asked = " and ".join(f"{side} {numbers.number(bar)}" for side, bar in bars.items() if math.isfinite(bar))
    in_print = f", in print {numbers.number(row['printed'])}" if row["printed"] == row["printed"] else ""
    return f"{text}: {found}{in_print}; the claim asks for {asked}."


def compared(contrast: str) -> str:
    """A comparison, one side less the other, as it is read; levels that are numbers stand in quotes: it is no sum."""
    sides = contrast.split(" - ")
    if len(sides) == 2 and any(_LEVEL.fullmatch(side) for side in sides):
        return " less ".join(f"“{side}”" for side in sides)
    return " − ".join(sides)


def _printed_fails(contrasts: pd.DataFrame) -> bool:
    """Whether the paper prints numbers of all contrasts of a part, and too few are on the claimed side."""
    low, high = contrasts["claimed_low"], contrasts["claimed_high"]
    inside = (contrasts["printed"] > low) & (contrasts["printed"] < high)
    return bool(contrasts["printed"].notna().all() and inside.sum() < contrasts["needed"].iloc[0])


@dataclass(frozen=True)
class Verdict:
    """A claim with its parts judged; `worded` gives what a page shows of it a reader's names."""

    claim: Claim
    judged: tuple[Judged, ...]
    worded: Callable[[str], str] = str

    @property
    def outcome(self) -> str:
        """One of `VERDICTS`."""
        return rule(
            [j.outcome for j in self.judged if not j.part.premise], [j.outcome for j in self.judged if j.part.premise]
        )

    @property
    def counts(self) -> Counter:
        """How many parts hold, fail, depend on the network, are open; without premises."""
        return Counter(j.outcome for j in self.judged if not j.part.premise)

    @property
    def needed(self) -> float:
        """Images that would decide all open parts with a power of 80 % each."""
        numbers = [j.needed for j in self.judged if j.outcome == OPEN]
        return max(numbers) if numbers and not any(math.isnan(n) for n in numbers) else math.nan

    @property
    def sentence(self) -> str:
        """The counts, the networks, data and images they speak of, and what would decide it."""
        return evidence(self.frame())

    def row(self) -> dict[str, Any]:
        """The claim as a row of a table: id, where, claim, verdict, evidence, and the counts."""
        return {
            "id": self.claim.id,
            "where": self.claim.where,
            "claim": self.claim.sentence,
            "verdict": self.outcome,
            "evidence": self.sentence,
            **{name: self.counts[outcome] for name, outcome in COUNTS.items()},
            "images_needed": self.needed,
        }

    def frame(self) -> pd.DataFrame:
        """Everything that a page draws: a row for every part, contrast and network.

        `network` is a name, "pooled", or "between networks" (Student's interval over networks). `claimed_low` and
        `claimed_high` are the claimed side, where `needed` of the contrasts must lie. Intervals are the 95 % ones,
        whatever level judged the part, which is `judged_at`. A counted fact has `value` = cases as claimed and
        `images` = cases.
        """
        rows = []
        for j in self.judged:
            p = j.part
            head = {"claim": self.claim.id, "part": p.name, "kind": p.kind, "premise": p.premise, "outcome": j.outcome}
            head["unit"] = self.claim.unit
            end = {"claimed_low": p.low, "claimed_high": p.high, "reason": p.reason, "images_needed": j.needed}
            end["needed"] = len(p.contrasts) if p.needed is None else p.needed
            if p.gathered is None:
                rows.append(head | {"contrast": "", "network": POOLED, "value": p.count, "images": p.cases} | end)
                continue
            e = p.estimate
            end["judged_at"] = 1 - 2 * tail(self.claim.size)
            for q, contrast in enumerate(p.contrasts):
                printed = p.printed[q] if p.printed else math.nan
                lines = [(POOLED, e.shown, e.images, sum(e.missing), METHODS[int(e.method[q])])]
                each = zip(e.networks, map(Interval, *e.cut(e.each)), e.images_each, e.missing, strict=True)
                lines += [(*line, "") for line in each]
                if len(e.networks) > 1:
                    lines.append((BETWEEN, e.between, e.images, sum(e.missing), "Student"))
                for network, interval, images, missing, method in lines:
                    value, low, high = (float(x[q]) for x in interval)
                    rows.append(
                        head
                        | {"contrast": contrast, "network": network, "value": value, "low": low, "high": high}
                        | {"printed": printed, "images": images, "missing": missing, "method": method}
                        | {"undefined": e.undefined, "datasets": ", ".join(e.datasets)}
                        | end
                    )
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        return f"{self.claim.id} ({self.claim.where}): {self.claim.sentence}\n{self.outcome}: {self.sentence}"

    def _repr_markdown_(self) -> str:
        """The verdict in words, and a table of its numbers; more than `LINES` are folded."""
        lines = [line for j in self.judged for line in self._lines(j)]
        table = "\n".join(["| part | outcome | estimate |", "|---|---|---|", *lines])
        if len(lines) > LINES:
            own, premises = (sum(j.part.premise == of for j in self.judged) for of in (False, True))
            what = f"{len(lines)} numbers of {own} part{'s' * (own != 1)}"
            what += f" and {premises} premise{'s' * (premises > 1)}" * (premises > 0)
            table = f":::{{dropdown}} {what}, each with its interval\n{table}\n:::"
        said = f"{plain(self.claim.sentence)} ({plain(self.claim.where)}) {plain(self.worded(self.sentence))}"
        return f"**{self.outcome.capitalize()}.** {said}\n\n{table}\n"

    def _lines(self, j: Judged) -> list[str]:
        """Of a part a line of the table for each of its numbers; the first one says whose they are."""
        part = j.part
        if part.gathered is None:
            own = ["cannot be told" if part.untold else f"{part.count} of {part.cases}"]
        else:
            shown = [*zip(*(ends.tolist() for ends in part.estimate.shown), strict=True)]
            own = [numbers.interval(*ends) + " (no interval)" * math.isnan(ends[1]) for ends in shown]
            if len(own) > 1:
                own = [f"{compared(c)}: {found}" for c, found in zip(part.contrasts, own, strict=True)]
        head = "premise: " * part.premise + plain(self.worded(part.name))
        heads = [f"{head} | {j.outcome}"] + [" | "] * (len(own) - 1)
        return [f"| {head} | {plain(self.worded(found))} |" for head, found in zip(heads, own, strict=True)]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _round(number: float) -> int:
    """Two digits, upwards."""
    unit = 10 ** max(0, math.floor(math.log10(max(number, 1))) - 1)
    return math.ceil(number / unit) * unit
