"""What the parts of a claim say together: the one rule of verdicts.

A part *holds* if the pooled interval and every single network's estimate lie on the claimed side, in all contrasts. It
*fails* if in one contrast both lie on the other side. It *depends on the network* if one network's interval lies on the
claimed side and another's on the other. Else it is *open*, and always of fewer than six inputs. `rule` gives the
verdict of all parts; a premise is no part of the counts, but nothing is decided before it holds.

**Several parts and contrasts.** A claim of k parts has k chances of a false failure. So a part has three p-values, of
holding, failing and depending on the network, and each of the three is corrected over the parts by Holm's procedure at
2.5 %, whatever the dependence of the parts. Where all parts are below 2.5 % nothing is corrected: for all to hold, each
has to. Within a part, one failing contrast of Q is enough, so that its smallest p-value is multiplied by Q; to hold all
are needed, and the largest counts. Where only m of Q contrasts are needed (some, most), the m-th smallest times
Q - m + 1 holds and the (Q - m + 1)-th smallest times m fails. Each of N networks could be the one on which a part
depends: times N. A p-value is the tail at which the interval, its halves stretched by the ratio of Student's quantiles,
would touch the bar. tests/test_error_rates.py simulates how often the verdict is wrong.
"""

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from faithlab.stats import Estimate, Interval
from faithlab.stats.intervals import METHODS, TAIL
from faithstudy import numbers
from faithstudy.claims.parts import Part
from faithstudy.display_names import plain

HOLDS, FAILS, DEPENDS, OPEN = OUTCOMES = ("holds", "fails", "depends on the network", "open")
COUNTS = {"hold": HOLDS, "fail": FAILS, "depend": DEPENDS, "open": OPEN}
"""The columns of a table of claims that count parts, and the outcomes that they count."""
REPRODUCED, PARTLY, MOSTLY_FAILS, REFUTED_IN_PART, CONTRADICTED, UNDECIDED, UNTESTED = RULED = (
    "reproduced",
    "partly",
    "mostly fails",
    "refuted in part",
    "contradicted",
    "undecided",
    "not tested",
)
"""What `rule` decides."""
OWN = {REPRODUCED: "supported", PARTLY: "partly supported", CONTRADICTED: "not supported"}
"""What a verdict is called of a finding of this study, which is no claim of a paper."""
VERDICTS = (*RULED, *OWN.values())
AGREES, COMPATIBLE, DIFFERS = SIZES = ("agrees in size", "compatible, not precise", "differs in size")
"""How an interval lies to the printed number."""
YES, NOT_KNOWN, NO = "yes", "not known", "no"
"""Whether what a claim says of these networks is sure to be so over others like them."""

LEVEL = TAIL
"""The chance that any part of a claim falsely fails: that outside one end of a 95 % interval."""
POWER = 0.8
STUDIES = 400
"""Simulated studies of each number of images."""
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


def _chances(estimate: Estimate, interval: Interval, low: float, high: float) -> tuple[Tensor, Tensor]:
    """How rarely chance shows a value as far inside the claimed side as this, and as far outside; 1 where unknown."""

    def chance(distance: Tensor, half: Tensor) -> Tensor:
        return estimate.outside((distance - ROUNDING) / half).nan_to_num(1.0)

    value, down, up = interval.value, interval.value - interval.low, interval.high - interval.value
    inside = chance(value - low, down).maximum(chance(high - value, up))
    return inside, chance(low - value, up).minimum(chance(value - high, down))


def p_values(estimate: Estimate, low: float, high: float, needed: int | None = None) -> Tensor:
    """How rarely chance makes a part hold, fail or depend on the network as clearly as here.

    Args:
        estimate: of its contrasts, values [contrasts, ...].
        low: the claimed side is above this,
        high: and below this.
        needed: how many contrasts must lie on the claimed side; None: all.

    Returns:
        Three p-values before any correction for the other parts, [3, ...]; 1 with fewer than `LEAST` inputs.
    """
    contrasts, networks = len(estimate.value), len(estimate.networks)
    if min(estimate.images_each) < LEAST:
        return torch.ones(3, *estimate.value.shape[1:], dtype=torch.float64)
    needed = contrasts if needed is None else needed
    spare = contrasts - needed  # may lie on the other side

    def part(inside: Tensor, outside: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        return (
            inside.kthvalue(needed, dim).values * (spare + 1),
            outside.kthvalue(spare + 1, dim).values * needed,
        )

    each = estimate.each.value
    on, off = (each > low) & (each < high), (each < low) | (each > high)
    inside, outside = _chances(estimate, estimate.pooled, low, high)
    holds, fails = part(inside.where(on.all(0), 1.0), outside.where(off.all(0), 1.0), 0)
    one_holds, one_fails = part(*_chances(estimate, estimate.each, low, high), 1)
    depends = one_holds.amin(0).maximum(one_fails.amin(0)) * networks
    return torch.stack([holds, fails, depends])


def settle(chances: Sequence[Tensor]) -> Tensor:
    """What becomes of the parts of a claim together, by Holm's procedure.

    Args:
        chances: of every part, its `p_values` [3, ...].

    Returns:
        Places in `OUTCOMES`, [parts, ...].
    """
    found = torch.stack(list(chances))
    ordered, places = found.sort(0)
    left = torch.arange(len(found), 0, -1).reshape(-1, *[1] * (found.ndim - 1))
    holm = (ordered * left).cummax(0).values.gather(0, places.argsort(0))
    sure = (holm < LEVEL) | (found.amax(0) < LEVEL)
    return torch.cat([sure, torch.ones_like(sure[:, :1])], 1).byte().argmax(1)


def power(part: Part, times: float, parts: int = 1) -> float:
    """How often a study of more images decides a part, were the estimates the truth: the whole rule, simulated.

    The estimates of all networks and contrasts spread around the recorded ones together, as the resamples do.

    Args:
        part: the part.
        times: so many times the images.
        parts: how many parts share the level.
    """
    e, few = part.estimate, Interval(*(x[..., None] for x in part.estimate.each))
    more = replace(e, images_each=tuple(math.floor(times * n) for n in e.images_each))
    shrink = more.quantile / e.quantile / times**0.5
    apart = torch.einsum("qc,nrc->rnq", part.matrix, part.resampled[:, 1:]).nan_to_num(0)
    apart = (apart - apart.mean(0)).flatten(1)
    draws = torch.randn(STUDIES, len(apart), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    unit = (draws @ (apart / apart.norm(dim=0).clamp(min=1e-300))).T.unflatten(0, e.each.value.shape)
    moved = unit * (few.high - few.low) / 2 / e.quantile / times**0.5

    def drawn(interval: Interval, by: Tensor) -> Interval:
        value, low, high = interval
        return Interval(value, value - shrink * (value - low), value + shrink * (high - value)).shifted(by)

    pooled = drawn(Interval(*(x[:, None] for x in e.pooled)), moved.mean(0))
    chances = p_values(replace(more, pooled=pooled, each=drawn(few, moved)), part.low, part.high, part.needed)
    return float((chances.amin(0) < LEVEL / parts).double().mean())


def images_needed(part: Part, parts: int = 1) -> float:
    """How many images of each network would decide an open part with a power of 80 %, see `power`.

    Args:
        part: the part.
        parts: how many parts of the claim are open: they share the level.

    Returns:
        Infinite where `FAR_MORE` times as many would not; NaN without an interval.
    """
    if not part.estimate.low.isfinite().all():
        return math.nan
    asked, steps = max(part.estimate.images_each), [FAR_MORE ** (k / 50) for k in range(1, 51)]
    found = bisect_left(steps, True, key=lambda times: power(part, times, parts) >= POWER)
    return max(math.ceil(steps[found] * asked), LEAST) if found < len(steps) else math.inf


@dataclass(frozen=True)
class Judged:
    """A part, what became of it, and how many parts of its claim are open."""

    part: Part
    outcome: str
    open_parts: int = 1

    @cached_property
    def needed(self) -> float:
        """The images that would decide it; NaN: decided, or nobody can tell."""
        asked = self.outcome == OPEN and self.part.gathered is not None
        return images_needed(self.part, self.open_parts) if asked else math.nan


def judge(parts: Sequence[Part]) -> tuple[Judged, ...]:
    """What becomes of the parts of a claim; its premises are settled apart, and counted facts are as they are."""
    found = {
        k: OPEN if part.untold else HOLDS if part.count == part.cases else FAILS
        for k, part in enumerate(parts)
        if part.gathered is None
    }
    left = {}
    for premise in (True, False):
        own = [k for k, part in enumerate(parts) if part.gathered is not None and part.premise == premise]
        if own:
            settled = settle([p_values(p.estimate, p.low, p.high, p.needed) for p in (parts[k] for k in own)])
            found |= {k: OUTCOMES[place] for k, place in zip(own, settled, strict=True)}
            left[premise] = sum(found[k] == OPEN for k in own)
    return tuple(Judged(part, found[k], left.get(part.premise, 1)) for k, part in enumerate(parts))


def rule(outcomes: Sequence[str], premises: Sequence[str] = ()) -> str:
    """The verdict that follows from the outcomes of the parts and of the premises: the one place that decides.

    - not tested: a premise fails, or depends on the network;
    - undecided: a premise is open;
    - reproduced, contradicted: all parts hold, or all fail;
    - mostly fails: more than half of the parts fail, and at least one holds;
    - partly: at least one part holds and one fails, or one depends on the network;
    - refuted in part: some parts fail, the rest is open;
    - undecided: no part fails, and some are open.
    """
    if not outcomes or {FAILS, DEPENDS} & {*premises}:
        return UNTESTED
    if OPEN in premises:
        return UNDECIDED
    count = Counter(outcomes)
    for outcome, verdict in ((HOLDS, REPRODUCED), (FAILS, CONTRADICTED)):
        if count[outcome] == len(outcomes):
            return verdict
    if count[HOLDS] and 2 * count[FAILS] > len(outcomes):
        return MOSTLY_FAILS
    if count[DEPENDS] or (count[HOLDS] and count[FAILS]):
        return PARTLY
    return REFUTED_IN_PART if count[FAILS] else UNDECIDED


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, or a finding of this study.

    Attributes:
        id: short, unique, stable.
        where: section, table or figure of the paper.
        sentence: the claim in our words.
        parts: what it says, in parts.
        unit: what one row of its scores is about, in words.
        own: whether it is a finding of this study, which is supported or not.
        untested: why our data do not test it; empty: they do.
        follows: why it is true by construction, whatever is measured; empty: it is not.
        blind: which control that never queries the network passes, too; empty: none.
    """

    id: str
    where: str
    sentence: str
    parts: tuple[Part, ...]
    unit: str = "input"
    own: bool = False
    untested: str = ""
    follows: str = ""
    blind: str = ""

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
        return Verdict(self, judge(self.parts))

    def ruled(self, outcomes: Sequence[str], premises: Sequence[str] = ()) -> str:
        """The verdict as it is called: one of `VERDICTS`; arguments as of `rule`."""
        found = UNTESTED if self.untested else rule(outcomes, premises)
        return OWN.get(found, found) if self.own else found


def evidence(frame: pd.DataFrame) -> str:
    """A claim's counts, the networks, data and inputs they speak of, and what would decide it.

    Args:
        frame: of `Verdict.frame`, or what a run has saved of it. Premises count where they do not hold.
    """
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
    compared = pooled[pooled["part"].isin(own.index) & (pooled["kind"] != COUNTED)]
    if counts[FAILS] and len(compared) > total:
        claimed = (compared["value"] > compared["claimed_low"]) & (compared["value"] < compared["claimed_high"])
        text += f"; {claimed.sum()} of {len(compared)} comparisons are on the claimed side"
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
        each = frame[frame["part"].isin(undecided.index) & ~frame["network"].isin((POOLED, BETWEEN))]
        if (few := each["images"].min()) < LEAST:
            text += f" Where there are fewest there are {few:.0f}; fewer than {LEAST} {several} decide nothing."
        elif asked < FEW:
            text += f" How many {several} would decide it cannot be told from so few."
        elif math.isnan(needed):
            text += f" How many {several} would decide it cannot be told."
        else:
            enough = f"about {_round(needed):,}" if needed < math.inf else f"not even {FAR_MORE} times as many"
            text += f" Were the estimates the truth, {enough} {several} would decide the claim."
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


def _size(low: float, high: float, printed: float, margin: float) -> str:
    """How an interval lies to the printed number; empty where one of them is missing."""
    if math.isnan(low) or math.isnan(high) or math.isnan(printed):
        return ""
    if low >= printed - margin and high <= printed + margin:
        return AGREES
    return COMPATIBLE if low <= printed <= high else DIFFERS


@dataclass(frozen=True)
class Verdict:
    """A claim with its parts judged; `worded` gives what a page shows of it a reader's names."""

    claim: Claim
    judged: tuple[Judged, ...]
    worded: Callable[[str], str] = str

    @property
    def outcome(self) -> str:
        """One of `VERDICTS`."""
        outcomes, premises = ([j.outcome for j in self.judged if j.part.premise == which] for which in (False, True))
        return self.claim.ruled(outcomes, premises)

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
    def generalises(self) -> str:
        """Whether the claim is sure to hold over other trainings: Student's interval between networks, for all parts.

        Yes where all intervals lie on the claimed side, no where one lies on the other, else not known: with three
        trainings an interval has 4.30 standard errors to either side. Empty of counted facts.
        """
        found = set()
        for part in (j.part for j in self.judged if j.part.gathered is not None and not j.part.premise):
            low, high = part.estimate.between[1:]
            needed = len(low) if part.needed is None else part.needed
            holds, fails = (low > part.low) & (high < part.high), (high < part.low) | (low > part.high)
            found.add(YES if holds.sum() >= needed else NO if fails.sum() > len(low) - needed else NOT_KNOWN)
        return next((said for said in (NO, NOT_KNOWN, YES) if said in found), "")

    @property
    def sizes(self) -> Counter:
        """How many of the printed numbers each of `SIZES` is true of."""
        frame = self.frame()
        return Counter(frame.loc[~frame["premise"] & frame["size"].isin(SIZES), "size"])

    @property
    def sentence(self) -> str:
        """The counts, the networks, data and images they speak of, what would decide it, and what stands beside it."""
        claim, text = self.claim, evidence(self.frame())
        for says, why in (
            ("Our data do not test it", claim.untested),
            ("It follows by construction", claim.follows),
            ("A control that never queries the network passes, too", claim.blind),
        ):
            text += f" {says}: {why.rstrip('.')}." if why else ""
        if self.outcome in (REPRODUCED, OWN[REPRODUCED]):
            text += f" Over other trainings: {self.generalises}." if self.generalises else ""
            said = ", ".join(f"{self.sizes[size]} {size}" for size in SIZES if self.sizes[size])
            text += f" Of {self.sizes.total()} printed numbers, {said}." if said else ""
        return text

    def row(self) -> dict[str, Any]:
        """The claim as a row of a table: id, where, claim, verdict, evidence, the counts, and what stands beside it."""
        return {
            "id": self.claim.id,
            "where": self.claim.where,
            "claim": self.claim.sentence,
            "verdict": self.outcome,
            "evidence": self.sentence,
            **{name: self.counts[outcome] for name, outcome in COUNTS.items()},
            "images_needed": self.needed,
            "generalises": self.generalises,
            **{size: self.sizes[size] for size in SIZES},
            **{name: getattr(self.claim, name) for name in ("untested", "follows", "blind")},
        }

    def frame(self) -> pd.DataFrame:
        """Everything that a page draws: a row for every part, contrast and network.

        `network` is a name, "pooled", or "between networks" (Student's interval over networks). `claimed_low` and
        `claimed_high` are the claimed side, where `needed` of the contrasts must lie. Intervals are the 95 % ones,
        whatever level judged the part. `size` is one of `SIZES` where a number is printed. A counted fact has `value` =
        cases as claimed and `images` = cases.
        """
        rows = []
        for j in self.judged:
            p = j.part
            head = {"claim": self.claim.id, "part": p.name, "kind": p.kind, "premise": p.premise, "outcome": j.outcome}
            head["unit"] = self.claim.unit
            end = {"claimed_low": p.low, "claimed_high": p.high, "reason": p.reason, "images_needed": j.needed}
            end["needed"] = len(p.contrasts) if p.needed is None else p.needed
            if p.gathered is None:
                fact = {"contrast": "", "network": POOLED, "value": p.count, "images": p.cases, "size": ""}
                rows.append(head | fact | end)
                continue
            e = p.estimate
            for q, contrast in enumerate(p.contrasts):
                printed = p.printed[q] if p.printed else math.nan
                lines = [(POOLED, e.shown, e.images, sum(e.missing), METHODS[int(e.method[q])])]
                each = zip(e.networks, map(Interval, *e.cut(e.each)), e.images_each, e.missing, strict=True)
                lines += [(*line, "") for line in each]
                if len(e.networks) > 1:
                    lines.append((BETWEEN, e.between, e.images, sum(e.missing), "Student"))
                for network, interval, images, missing, method in lines:
                    value, low, high = (float(x[q]) for x in interval)
                    size = _size(low, high, printed, p.size_margin) if network == POOLED else ""
                    rows.append(
                        head
                        | {"contrast": contrast, "network": network, "value": value, "low": low, "high": high}
                        | {"printed": printed, "images": images, "missing": missing, "method": method}
                        | {"undefined": e.undefined, "datasets": ", ".join(e.datasets), "size": size}
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
