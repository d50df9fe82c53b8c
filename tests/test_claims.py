"""Verdicts follow from the measured tables, and missing numbers are never a verdict."""

import math

import pandas as pd
import pytest

from faithlab.study import claims, f_fidelity
from faithlab.study.claims import FAILED, PARTLY, REPRODUCED, UNTESTED, Claim
from faithlab.study.trials import IDEAL

METRICS = ("Fidelity", "ROAR", "R-Fidelity", "F-Fidelity")
LEVELS = ("macro_correlation", "micro_correlation", "micro_rank")


def correlations(value) -> pd.DataFrame:
    """A table of correlations; `value` (explainer, level, comparison, metric) -> mean."""
    rows = [
        (e, level, c, m, value(e, level, c, m))
        for e in ("SG-SQ", "GradCAM", "LayerCAM")
        for level in LEVELS
        for c in IDEAL
        for m in METRICS
    ]
    return pd.DataFrame(rows, columns=["explainer", "level", "comparison", "metric", "mean"])


def as_the_paper_says(explainer, level, comparison, metric):
    """F-Fidelity is ideal, the others only under LeRF."""
    if level == "micro_rank":
        return 1.0 if metric == "F-Fidelity" else 2.0
    return float(IDEAL[comparison]) if metric == "F-Fidelity" or comparison == "LeRF vs GT" else 0.3


def verdicts(list_of_claims, **tables) -> dict[str, str]:
    return claims.judge(list_of_claims, tables).set_index("id")["verdict"].to_dict()


def test_what_the_paper_says_is_reproduced():
    judged = verdicts(f_fidelity.IMAGES, correlations=correlations(as_the_paper_says))
    assert set(judged.values()) == {REPRODUCED}


def test_the_opposite_is_not():
    opposite = correlations(lambda e, level, c, m: 4.0 if m == "F-Fidelity" and level == "micro_rank" else -IDEAL[c])
    judged = verdicts(f_fidelity.IMAGES, correlations=opposite)
    assert set(judged.values()) == {FAILED}


def test_a_claim_about_two_explainers_that_holds_for_one_is_partly_reproduced():
    def only_sg_sq(explainer, level, comparison, metric):
        right = as_the_paper_says(explainer, level, comparison, metric)
        return right if explainer == "SG-SQ" else {"Fidelity": -1.0}.get(metric, 0.3)

    assert verdicts(f_fidelity.IMAGES, correlations=correlations(only_sg_sq))["ff-ood"] == PARTLY


def test_missing_correlations_leave_a_claim_untested():
    judged = verdicts(f_fidelity.IMAGES, correlations=correlations(lambda *cell: math.nan))
    assert set(judged.values()) == {UNTESTED}


def sizes(oracle, real) -> pd.DataFrame:
    shares = [0.1, 0.15, 0.2, 0.25, 0.3]
    return pd.DataFrame(
        [("oracle", s, s * (1 + o)) for s, o in zip(shares, oracle, strict=True)]
        + [("gradcam", s, s * (1 + r)) for s, r in zip(shares, real, strict=True)],
        columns=["attribution", "share", "size"],
    )


@pytest.mark.parametrize(
    ("oracle", "verdict"),
    [
        ([0, 0.1, -0.14, 0.149, 0], REPRODUCED),
        ([0, 0.1, -0.14, 0.16, 0], REPRODUCED),  # one of five may miss
        ([0, 0.1, -0.14, 0.16, math.nan], PARTLY),  # a missing size misses
        ([0.2] * 5, FAILED),
        ([math.nan] * 5, UNTESTED),
    ],
)
def test_sizes_are_judged_by_15_percent(oracle, verdict):
    theorem = pd.DataFrame({"measured": [0.1, 0.2], "exact": [0.1, 0.21], "error": [0.0, 0.003]})
    judged = verdicts(f_fidelity.SIZE, sizes=sizes(oracle, [0.5] * 5), theorem=theorem)
    assert judged == {"ff-theorem-1": REPRODUCED, "ff-size": verdict, "ff-size-real": FAILED}


def test_a_miss_of_more_than_four_standard_errors_breaks_the_theorem():
    theorem = pd.DataFrame({"measured": [0.1, 0.2], "exact": [0.1, 0.21], "error": [0.0, 0.002]})
    assert verdicts(f_fidelity.SIZE, sizes=sizes([0] * 5, [0] * 5), theorem=theorem)["ff-theorem-1"] == PARTLY


def bearing(original, tuned, largest, agreement) -> pd.DataFrame:
    """Accuracy of the two networks at 0 and 10 %; accuracy at 50 % and agreement of two betas."""
    rows = [
        *(("original", "accuracy", share, value) for share, value in zip((0.0, 0.1), original, strict=True)),
        *(("fine-tuned", "accuracy", share, value) for share, value in zip((0.0, 0.1), tuned, strict=True)),
        *((f"beta {b}", "accuracy", 0.5, value) for b, value in zip((0.05, 0.5), largest, strict=True)),
        *((f"beta {b}", "agreement", 0.0, value) for b, value in zip((0.05, 0.5), agreement, strict=True)),
    ]
    return pd.DataFrame(rows, columns=["network", "measure", "masked", "value"])


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        (bearing((0.7, 0.4), (0.7, 0.69), (0.2, 0.6), (0.95, 0.85)), (REPRODUCED, REPRODUCED)),
        (bearing((0.7, 0.68), (0.7, 0.69), (0.2, 0.6), (0.85, 0.95)), (PARTLY, PARTLY)),
        (bearing((0.7, 0.68), (0.7, 0.5), (0.6, 0.2), (0.85, 0.95)), (FAILED, FAILED)),
    ],
)
def test_robustness_is_judged_by_what_masking_costs(curves, expected):
    assert tuple(verdicts(f_fidelity.ROBUSTNESS, curves=curves).values()) == expected


@pytest.mark.parametrize(
    ("fidelity", "tuned", "f_fidelity_", "verdict"),
    [(0.3, 0.6, 0.9, REPRODUCED), (0.3, 0.9, 0.6, PARTLY), (0.9, 0.6, 0.3, FAILED), (0.3, math.nan, 0.9, UNTESTED)],
)
def test_the_ablation_is_judged_step_by_step(fidelity, tuned, f_fidelity_, verdict):
    reached = {"Fidelity": fidelity, "Fidelity + fine-tuning": tuned, "F-Fidelity": f_fidelity_}
    rows = [("macro_correlation", c, m, IDEAL[c] * value) for c in IDEAL for m, value in reached.items()]
    table = pd.DataFrame(rows, columns=["level", "comparison", "metric", "mean"])
    assert verdicts(f_fidelity.ABLATION, correlations=table) == {"ff-ablation": verdict}


@pytest.mark.parametrize(
    ("tuned", "apart", "verdict"), [(0.9, 0.4, REPRODUCED), (0.9, 0.85, PARTLY), (0.5, 0.45, FAILED)]
)
def test_explanations_are_kept_if_they_are_closer_than_those_of_a_network_trained_apart(tuned, apart, verdict):
    table = pd.DataFrame(
        [("gradcam", "fine-tuned", tuned), ("gradcam", "other seed", apart)],
        columns=["explainer", "compared with", "mean"],
    )
    assert verdicts(f_fidelity.FINE_TUNING, alike=table) == {"ff-kept-explanations": verdict}


def test_sensitivity_needs_every_setting_near_the_ideal():
    def table(*reached):
        rows = [("macro_correlation", "LeRF vs GT", value) for value in reached]
        return pd.DataFrame(rows, columns=["level", "comparison", "mean"])

    for reached, verdict in (((1, 0.95), REPRODUCED), ((1, 0.5), PARTLY), ((0.1, 0.5), FAILED)):
        assert verdicts(f_fidelity.SENSITIVITY, correlations=table(*reached)) == {"ff-insensitive": verdict}


def test_a_verdict_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match=r"claim x: expected one of reproduced, .*, but its test gave 'maybe'"):
        claims.judge([Claim("x", "P", "1", "All is well.", lambda tables: ("maybe", ""))], {})


def test_ids_are_unique():
    of_module = [value for value in vars(f_fidelity).values() if isinstance(value, list)]
    ids = [claim.id for of_page in of_module for claim in of_page]
    assert len(ids) == len(set(ids)) > 10


def differences(*gains, error=0.01) -> pd.DataFrame:
    """Grad-CAM minus saliency map, from gains that are positive where Grad-CAM is better."""
    cells = [(setting, measure) for setting in ("small images", "photographs") for measure in ("FFid+", "FFid-")]
    return pd.DataFrame(
        [(*cell, gain if cell[1] == "FFid+" else -gain, error) for cell, gain in zip(cells, gains, strict=True)],
        columns=["setting", "measure", "difference", "error"],
    )


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ([0.03, 0.021, 0.5, 0.03], REPRODUCED),
        ([0.03, 0.019, 0.5, 0.03], PARTLY),  # one difference may be chance
        ([0.03, -0.5, 0.5, 0.03], PARTLY),
        ([-0.03, 0.01, -0.5, -0.03], FAILED),
        ([0.019, -0.01, 0.0, 0.0], UNTESTED),  # too few images to tell
        ([math.nan] * 4, UNTESTED),
    ],
)
def test_an_explainer_is_better_only_by_more_than_chance(gains, verdict):
    assert verdicts(f_fidelity.EXPLAINERS, differences=differences(*gains)) == {"ff-gradcam-beats-saliency": verdict}


@pytest.mark.parametrize(
    ("roar", "ours", "verdict"), [(2.0, 1.0, REPRODUCED), (1.0, 2.0, FAILED), (math.nan, 1.0, UNTESTED)]
)
def test_cost_is_the_total(roar, ours, verdict):
    rows = [("ROAR", "total", roar), ("F-Fidelity", "total", ours), ("F-Fidelity", "evaluate", 100.0)]
    stages = pd.DataFrame(rows, columns=["metric", "stage", "seconds"])
    assert verdicts(f_fidelity.COST, stages=stages) == {"ff-cheaper-than-roar": verdict}
