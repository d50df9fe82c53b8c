"""SaCo, the salience-guided faithfulness coefficient (Wu, Kang, Tang, Hong, Yan, CVPR 2024), in one function.

Cut the features of an input into K groups by their attribution, the most salient first. s_i is the salience of group i
(eq. 1), d_i what the predicted class's probability loses when that group alone is replaced by the input's mean (eq. 2).
Every pair i < j has s_i >= s_j and should have d_i >= d_j (eq. 3). Algorithm 1 weighs each pair by how sure the
attribution is of it:

    F = sum over i < j of w_ij * (s_i - s_j) / sum over i < j of (s_i - s_j),   w_ij = +1 if d_i >= d_j else -1

The authors' repository leaves the groups, s and d out; this is the reference implementation of the text. In the paper
the score is `faithlab.outputs.probability` of the predicted class with the baseline `faithlab.baselines.mean`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from faithlab import masks, validation
from faithlab.engine import Score
from faithlab.metrics import register
from faithlab.metrics.answers import ask


class Groups(NamedTuple):
    """The groups that SaCo compares, the most salient group first.

    Attributes:
        salience: [B, K] float64, s_i.
        drop: [B, K] float64, d_i, what the score loses without that group.
    """

    salience: Tensor
    drop: Tensor


def influences(score: Score, attribution: Tensor, groups: int = 10, *, present: Tensor | None = None) -> Groups:
    """Return the salience of each group (eq. 1) and the loss without it (eq. 2).

    Where K does not divide F the groups' sizes differ by one, and so would sums of equal scores. The salience is then
    the group's mean score times F / K, which is the sum where all groups are equally large.

    Args:
        score: see `faithlab.engine.scorer`.
        attribution: [B, F], on any device; the result is on the same.
        groups: number of groups K.
        present: [B, F] bool, which features an input has; only those are grouped. None: all.

    Returns:
        The groups. The salience of a group without a feature is NaN, which only an input with fewer features than
        groups has; nothing else is.

    Raises:
        ValueError: an attribution that is no dense tensor of finite numbers, more groups than features, a score that is
            NaN or infinite.
    """
    order = masks.order(attribution, present)
    member = masks.group(order, groups, present)  # [B, F]
    here = member >= 0  # [B, F]
    # Counted from each input's lowest score, so that groups of equal scores are equal to the last bit.
    scores = attribution.detach().double()
    lowest = scores.masked_fill(~here, torch.inf).amin(1, keepdim=True)
    above = scores.new_zeros(len(member), groups).scatter_add_(1, member.clamp(min=0), (scores - lowest) * here)
    sizes = torch.zeros_like(above).scatter_add_(1, member.clamp(min=0), here.to(above))
    salience = (lowest + above / sizes) * (here.sum(1, keepdim=True) / groups)
    keep = torch.cat([torch.ones_like(here)[:, None], masks.remove_each(member, groups)], dim=1)
    answers = ask(score, keep)  # [B, 1 + K]
    return Groups(salience, answers[:, :1] - answers[:, 1:])


def bets(groups: Groups, *, ratio: bool = False) -> Tensor:
    """Return the stake of every pair of groups i < j, [B, K (K - 1) / 2] float64: with a minus where the bet is lost.

    The pairs are (1, 2), (1, 3), to (K - 1, K); arguments as in `coefficient`, which is their sum over that of their
    magnitudes. A lost bet without a stake is -0.
    """
    salience, drop = groups
    i, j = torch.triu_indices(salience.shape[1], salience.shape[1], offset=1, device=salience.device)
    weight = salience[:, i] / salience[:, j] if ratio else salience[:, i] - salience[:, j]
    return torch.where(drop[:, i] >= drop[:, j], weight, -weight)


def coefficient(groups: Groups, *, ratio: bool = False) -> Tensor:
    """Return the faithfulness coefficient of groups (Algorithm 1), [B] float64 in [-1, 1].

    Two losses that are equal up to the score's rounding may fall either way and turn the whole weight of their pair. So
    evaluate in float32, and expect other digits where that happens: in another batch or on another processor.

    Args:
        groups: as `influences` gives them.
        ratio: weigh a pair by s_i / s_j in place of s_i - s_j, the variant that section 5.5 argues against.

    Returns:
        NaN where it is not defined: all groups equally salient, a group without a feature, or a ratio that is not
        finite. Nothing else is NaN.
    """
    signed = bets(groups, ratio=ratio)
    # A sum of zeros over a sum of zeros is NaN, as is anything with an infinite ratio.
    return signed.sum(1) / signed.abs().sum(1)


def saco(
    score: Score, attribution: Tensor, groups: int = 10, *, ratio: bool = False, present: Tensor | None = None
) -> Tensor:
    """Return SaCo of each input: `coefficient` of `influences`, with their arguments and errors.

    Returns:
        [B] float64 in [-1, 1]; NaN where it is not defined, which is for the caller to count: all groups equally
        salient, fewer features than groups, or a ratio that is not finite.

    >>> saco(lambda keep: keep.float().mean(-1), torch.tensor([[3.0, 1.0, 2.0, 0.0]]), groups=2)
    tensor([1.], dtype=torch.float64)
    """
    groups = validation.whole("groups", groups, 2)
    return coefficient(influences(score, attribution, groups, present=present), ratio=ratio)


register("SaCo", saco, source="Wu et al. 2024, Algorithm 1", baseline="mean", exact=True, chance=0.0, ideal=1.0)
