"""The paper's trial of a metric: explainers whose true order is known (F-Fidelity, section 5).

One good explanation is degraded by known shares of noise. A metric that can be trusted puts the degraded explainers in
the order of their noise. `degraded_curves` measures, `correlations` judges.
"""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import torch
from pandas.io.formats.style import Styler
from torch import Tensor
from tqdm import tqdm

from faithlab.engine import Score
from faithlab.explainers.degrade import degrade
from faithlab.metrics import ranking
from faithlab.metrics.fidelity import remaining
from faithlab.stats import MonteCarlo
from faithlab.study import tables

Curves = Callable[[Tensor], tuple[MonteCarlo, MonteCarlo]]
"""Attribution [B, F] -> the scores that remain under MoRF and under LeRF at each size, two estimates [B, K]."""

IDEAL = {"MoRF vs GT": -1, "LeRF vs GT": 1, "MoRF vs LeRF": -1}
"""The three comparisons, and the correlation of a metric that ranks rightly."""


ORDER = ("Fidelity", "ROAR", "R-Fidelity", "F-Fidelity")
"""The metrics of the paper's tables, in their order."""


def morf_and_lerf(score: Score, fractions: Tensor, **options) -> Curves:
    """A metric of `faithlab.metrics.fidelity.remaining` in both directions; `options` are its arguments."""
    return lambda a: (
        remaining(score, a, fractions, direction="MoRF", **options),
        remaining(score, a, fractions, direction="LeRF", **options),
    )


def fidelities(
    original: Score,
    tuned: Score,
    retrained: Score | None,
    fractions: Tensor,
    *,
    alpha: float,
    beta: float,
    draws: int,
    seed: int = 0,
    present: Tensor | None = None,
) -> dict[str, Curves]:
    """The metrics that the paper compares, as it defines them (sections 2.3, 3.2 and 5).

    Args:
        original: the network's hits.
        tuned: those of the network fine-tuned on random masks.
        retrained: those of the network retrained by ROAR for the explainer at hand; None leaves ROAR out.
        fractions: [K] sizes.
        alpha: see `faithlab.metrics.fidelity.remaining`, like the following.
        beta: its cap.
        draws: random subsets per input and size.
        seed: of these subsets.
        present: [B, F] bool, which features an input has; None: all.
    """
    drawn = {"alpha": alpha, "draws": draws, "seed": seed}
    metrics = {
        "Fidelity": morf_and_lerf(original, fractions, present=present),
        "ROAR": retrained and morf_and_lerf(retrained, fractions, present=present),
        "R-Fidelity": morf_and_lerf(original, fractions, present=present, **drawn),
        "F-Fidelity": morf_and_lerf(tuned, fractions, present=present, cap=beta, **drawn),
    }
    return {name: metric for name, metric in metrics.items() if metric}


def degraded_curves(
    metrics: Mapping[str, Curves],
    attributions: Mapping[str, Tensor],
    shares: Sequence[float],
    fractions: Tensor,
    seeds: Sequence[int],
    *,
    images: Tensor | None = None,
    present: Tensor | None = None,
) -> pd.DataFrame:
    """The curves of every metric for every explainer, share of noise and seed.

    Args:
        metrics: by name.
        attributions: by explainer, [B, F].
        shares: of the features whose scores are permuted.
        fractions: [K] sizes that the metrics use, as fractions.
        seeds: of the noise. The undegraded explanation is measured once and serves all of them.
        images: [B] identities of the images; None: 0..B-1.
        present: [B, F] bool, which features an input has; None: all.

    Returns:
        Tidy: explainer, metric, share, seed, direction (MoRF or LeRF), fraction, value (mean over the images), error
        (its Monte-Carlo standard error).
    """
    rows = []
    jobs = [(e, r, s) for e in attributions for r in shares for s in (seeds if r else seeds[:1])]
    progress = tqdm([(*job, metric) for job in jobs for metric in metrics], desc="degraded explainers", mininterval=5)
    for explainer, share, seed, metric in progress:
        noisy = degrade(attributions[explainer], share, seed=seed, images=images, present=present)
        for direction, estimate in zip(("MoRF", "LeRF"), metrics[metric](noisy), strict=True):
            mean = estimate.mean()
            rows.extend(
                (explainer, metric, share, served, direction, *point)
                for served in ([seed] if share else seeds)
                for point in zip(fractions.tolist(), mean.value.tolist(), mean.error.tolist(), strict=True)
            )
    columns = ["explainer", "metric", "share", "seed", "direction", "fraction", "value", "error"]
    return pd.DataFrame(rows, columns=columns)


def correlations(curves: pd.DataFrame) -> pd.DataFrame:
    """Macro and micro correlations and micro ranks of `degraded_curves`, as in the paper's Tables 1 to 7.

    Macro: over the seeds. Micro: over sizes and seeds. A correlation with a constant side is missing, and counted.

    Returns:
        Tidy: explainer, level (macro_correlation, micro_correlation, micro_rank), comparison, metric, mean, std
        (population), missing, count.
    """
    rows = []
    metrics = list(curves["metric"].unique())
    for explainer, of_explainer in curves.groupby("explainer", sort=False):
        macro = {comparison: [] for comparison in IDEAL}  # comparison -> a list over seeds of [metrics]
        micro = {comparison: [] for comparison in IDEAL}  # comparison -> a list over seeds of [metrics, K]
        for _, of_seed in of_explainer.groupby("seed"):
            compared = [_compare(of_seed[of_seed["metric"] == metric]) for metric in metrics]
            for comparison in IDEAL:
                macro[comparison].append(torch.tensor([c[comparison][0] for c in compared]))
                micro[comparison].append(torch.stack([c[comparison][1] for c in compared]))
        for comparison, ideal in IDEAL.items():
            levels = {
                "macro_correlation": torch.stack(macro[comparison], dim=1),  # [metrics, seeds]
                "micro_correlation": torch.cat(micro[comparison], dim=1),  # [metrics, K * seeds]
                "micro_rank": torch.cat([ranking.micro_rank(m, ideal) for m in micro[comparison]], dim=1),
            }
            for level, values in levels.items():
                rows.extend(
                    (explainer, level, comparison, metric, *ranking.spread(of_metric), of_metric.numel())
                    for metric, of_metric in zip(metrics, values, strict=True)
                )
    columns = ["explainer", "level", "comparison", "metric", "mean", "std", "missing", "count"]
    return pd.DataFrame(rows, columns=columns)


def beside_published(
    level: str, sources: Mapping[str, pd.DataFrame | None], *, columns: Sequence[str] = ("explainer",)
) -> Styler:
    """One level of comparison (see `correlations`), what the paper prints beside what was measured.

    Args:
        level: macro_correlation, micro_correlation or micro_rank.
        sources: by the name of their column; each a table like that of `correlations`, or None.
        columns: what makes the groups of columns.
    """
    of_level = {name: f[f["level"] == level] for name, f in sources.items() if f is not None}
    return tables.styled(
        tables.side_by_side(of_level, rows=["comparison", "metric"], columns=list(columns), order=list(ORDER))
    )


def _compare(curves: pd.DataFrame) -> dict[str, tuple[float, Tensor]]:
    """Macro correlation and micro correlations [K] of one metric, explainer and seed, for the three comparisons."""
    table = {
        direction: part.pivot(index="share", columns="fraction", values="value")
        for direction, part in curves.groupby("direction")
    }
    morf, lerf = (torch.from_numpy(table[direction].to_numpy(copy=True)) for direction in ("MoRF", "LeRF"))  # [L, K]
    fractions = torch.tensor(table["MoRF"].columns.to_numpy(copy=True))
    quality = -torch.tensor(table["MoRF"].index.to_numpy(copy=True))  # the less noise, the better
    pairs = {"MoRF vs GT": (morf, quality), "LeRF vs GT": (lerf, quality), "MoRF vs LeRF": (morf, lerf)}
    return {
        name: (ranking.macro_correlation(*pair, fractions), ranking.micro_correlations(*pair))
        for name, pair in pairs.items()
    }
