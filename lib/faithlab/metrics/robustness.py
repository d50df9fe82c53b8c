"""How a model bears random masking, and which fidelity metric that warrants (F-Fidelity, section 5.4, appendix D.2).

A metric that removes features asks the model about inputs it was not trained on. Where the model is as accurate without
a random share of the features as with them, the answers can be trusted up to that share. Where it is not, a loss of
accuracy may come from the mask as well as from the explanation.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from faithlab import rng as counter
from faithlab import validation
from faithlab.engine import Score
from faithlab.metrics.fidelity import remaining


class Advice(NamedTuple):
    """Which metric a model's robustness warrants.

    Attributes:
        metric: "Fidelity", "R-Fidelity" or "F-Fidelity".
        bearable: the largest tested share of features, as a fraction, that the model can lose at random and stay
            within the tolerance.
        needed: the largest share that the metric advised removes.
        reason: a sentence.
    """

    metric: str
    bearable: float
    needed: float
    reason: str


def robustness(
    score: Score,
    shape: tuple[int, int],
    shares: Tensor,
    *,
    seed: int = 0,
    images: Tensor | None = None,
    present: Tensor | None = None,
) -> Tensor:
    """Return each input's score with a random share of its features removed.

    With the output `faithlab.outputs.correct` the mean over the inputs is the accuracy under masking (with the labels
    as targets), or the agreement with the whole input's prediction (with the predictions as targets).

    Args:
        score: see `faithlab.engine.scorer`.
        shape: inputs B and features F.
        shares: [K] fractions of the features to remove; larger shares contain smaller ones.
        seed: of the features.
        images: [B] identities of the inputs; None: 0..B-1.
        present: [B, F] bool, which features an input has, and which the shares refer to; None: all.

    Returns:
        [B, K] float64, never NaN.

    Raises:
        ValueError: as `faithlab.metrics.fidelity.remaining`.
    """
    identities = counter.identities(shape[0], images, torch.device("cpu") if present is None else present.device)
    anything = counter.uniform(seed, identities, torch.zeros(1, dtype=torch.int64), shape[1])[:, 0]  # [B, F]
    return remaining(score, anything, shares, images=identities, present=present).value


def advise(
    hits: Tensor,
    shares: Tensor,
    *,
    largest: float = 0.5,
    alpha: float = 0.5,
    beta: float = 0.1,
    tolerance: float = 0.05,
) -> Advice:
    """Return the simplest fidelity metric whose masks the model bears.

    A share is borne if the accuracy lost at it and at every smaller share is below the tolerance, with two standard
    errors to spare. Fidelity removes up to the `largest` size, R-Fidelity `alpha` of that, F-Fidelity `beta` of all
    features, from a network that is to be fine-tuned on such masks. The paper gives the principle, not the numbers.

    Args:
        hits: [B, K], of `robustness`; the first share must be 0.
        shares: [K] increasing fractions.
        largest: the largest explanation size that is to be compared, as a fraction of the features.
        alpha: share that R-Fidelity removes of it.
        beta: cap of F-Fidelity.
        tolerance: of accuracy, as a fraction.

    Raises:
        ValueError: shares that do not begin with 0 and increase, fewer than two inputs, hits that are NaN or not as
            many as shares.
    """
    shares = validation.fractions(shares).to(hits.device)
    if hits.ndim != 2 or hits.shape[1] != len(shares) or len(hits) < 2 or shares[0] != 0 or (shares.diff() <= 0).any():
        raise ValueError(f"expected hits of two inputs or more at increasing shares from 0, but got {shares.tolist()}")
    lost = hits[:, :1].double() - hits.double()  # [B, K]
    most = lost.mean(0) + 2 * lost.std(0) / len(lost) ** 0.5
    borne = (most <= tolerance).cumprod(0).bool()
    bearable = shares[borne].max().item()
    at = {"Fidelity": largest, "R-Fidelity": alpha * largest, "F-Fidelity": beta}
    metric = next((name for name in ("Fidelity", "R-Fidelity") if at[name] <= bearable + 1e-9), "F-Fidelity")
    share = f"{bearable:.0%}" if bearable else "none"
    said = f"the network bears the loss of {share} of its features within {tolerance:.0%} of accuracy; "
    reason = {
        "Fidelity": f"sizes up to {largest:.0%} need no more, so plain removal can be trusted",
        "R-Fidelity": f"removing a random {alpha:.0%} of sizes up to {largest:.0%} stays within that",
        "F-Fidelity": f"sizes up to {largest:.0%} need more: fine-tune it on random masks, remove at most {beta:.0%}",
    }[metric]
    return Advice(metric, bearable, at[metric], said + reason)
