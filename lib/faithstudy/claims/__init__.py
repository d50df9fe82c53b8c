"""Claims as declarations: parts on a long table, the verdict that follows, and how often it would be wrong."""

from faithstudy.claims.error_rates import ErrorRates, error_rate
from faithstudy.claims.parts import (
    Part,
    above,
    agrees,
    below,
    best,
    better,
    counted,
    in_order,
    most,
    no_worse,
    premise,
    some,
    timed,
    trend,
    within,
)
from faithstudy.claims.verdicts import (
    CONTRADICTED,
    MOSTLY_FAILS,
    OWN,
    PARTLY,
    REFUTED_IN_PART,
    REPRODUCED,
    RULED,
    SIZES,
    UNDECIDED,
    UNTESTED,
    VERDICTS,
    Claim,
    Judged,
    Verdict,
    evidence,
)
