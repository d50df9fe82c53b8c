"""Where to spend forwards: what the answer to one of them varies with, and estimates of an area that need fewer.

The estimand is a mean over images of the area under a curve over explanation sizes. An area is a weighted mean over
sizes (`weights`), so a size that is drawn with these weights is an unbiased answer about it.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from faithlab import masks
from faithlab import rng as counter
from faithlab.stats import MonteCarlo


def weights(sizes: Tensor) -> Tensor:
    """What each of increasing sizes [K] counts in the area under a curve by the trapezoid rule; they add up to 1."""
    steps = sizes.double().diff()
    nothing = steps.new_zeros(1)
    return (torch.cat([steps, nothing]) + torch.cat([nothing, steps])) / (2 * steps.sum())


def components(answers: Tensor, weights: Tensor) -> Mapping[str, float]:
    """The variance of a single answer, split into what it varies with; unbiased, so that a small one may be negative.

    Args:
        answers: [draws, images, K], two draws or more.
        weights: [K], of `weights`.

    Returns:
        "images": of the areas; "sizes": within an image; "subsets": of one size of an image; "area, between draws":
        of an image's area; "images, at a size": of answers at one size, subsets included, the mean over sizes.
    """
    mean, subsets = answers.mean(0), answers.var(0)  # [images, K]
    area, within = mean @ weights, (answers @ weights).var(0).mean()
    between_sizes = ((mean - area[:, None]) ** 2 @ weights).mean()
    # What is left of the subsets in these means of few.
    between_sizes -= (subsets @ (weights - weights**2)).mean() / len(answers)
    return {
        "images": float(area.var() - within / len(answers)),
        "sizes": float(between_sizes),
        "subsets": float((subsets @ weights).mean()),
        "area, between draws": float(within),
        "images, at a size": float((answers.var(1) @ weights).mean()),
    }


def sizes_in_turn(seed: int, images: int, weights: Tensor) -> Tensor:
    """One size for each image, at random, but each size for its share of the images: [images] int64.

    A systematic sample: images in random order are spread evenly over the sizes, from a random start. Each image has
    each size with the probability of its weight, so that the mean of the answers is unbiased; and what differs between
    sizes is no part of its error.

    Args:
        seed: another seed gives another design.
        images: how many there are.
        weights: [K], of `weights`.
    """
    nobody = torch.zeros(1, dtype=torch.int64)
    own = counter.stream("sizes in turn", seed)
    place = counter.permutations(own, nobody, nobody, images).flatten()
    start = counter.uniform(own, nobody, nobody + 1, 1).flatten()
    return torch.searchsorted(weights.cumsum(0), (place + start) / images).clamp(max=len(weights) - 1)


def remove_in_opposite_pairs(
    order: Tensor, counts: Tensor, removals: Tensor, *, seed: int, images: Tensor, draws: Tensor
) -> Tensor:
    """As `faithlab.masks.remove_from_top`, but neighbouring sizes err in opposite directions (antithetic subsets).

    The sizes, as they are listed, go in pairs that share a random order of the features: the first of a pair removes
    those that come first in it, the other those that come last. Each subset has the law of `remove_from_top`; each pair
    has random orders of its own. Arguments, result and errors as there.
    """
    kept, drawn = [], {"images": images, "draws": draws}
    for pair in torch.arange(counts.shape[-1], device=counts.device).split(2):
        drawn["seed"] = counter.stream(f"opposite pair {int(pair[0])}", seed)
        kept.append(masks.remove_from_top(order, counts[..., pair[:1]], removals[..., pair[:1]], **drawn))
        if len(pair) > 1:
            s, m = counts[..., pair[1:]], removals[..., pair[1:]]
            # Of the first s features all but the s - m that come first are the m that come last.
            others = masks.remove_from_top(order, s, s - m, **drawn)
            kept.append(masks.remove_top(order, s)[:, None] | ~others)
    return torch.cat(kept, 2)


def in_turn(answers: Tensor, size: Tensor, weights: Tensor) -> MonteCarlo:
    """The mean area from one answer an image, at the sizes of `sizes_in_turn`; its error is over images and subsets.

    Args:
        answers: [images], each at its size.
        size: [images], of `sizes_in_turn`.
        weights: [K], of `weights`.
    """
    # Of a size that fewer than two images have the spread is not known: it counts as the mean of the others'.
    groups = [answers[size == k] for k in range(len(weights))]
    known = [(weight, group.var()) for weight, group in zip(weights, groups, strict=True) if len(group) > 1]
    shares, variances = (torch.stack(of) for of in zip(*known, strict=True))
    return MonteCarlo(answers.mean(), (shares @ variances / shares.sum() / len(answers)).sqrt())


def controlled(answers: Tensor, control: Tensor, others: Tensor) -> MonteCarlo:
    """A mean over images, less what a control that is cheap to ask says of how unlike other images these are.

    The regression estimate of two-phase sampling (Cochran, "Sampling Techniques", 1977, section 12.6), made unbiased:
    each half of the images is corrected with the slope of the other half, towards images of which neither half has
    anything to do with the slope.

    Args:
        answers: [images], what is asked for.
        control: [images], of the same images.
        others: of more images, drawn alike, of which only the control is known.
    """
    value, variance, gain = answers.new_zeros(()), answers.new_zeros(()), answers.new_zeros(())
    first = torch.arange(len(answers)) % 2 == 0
    for here in (first, ~first):
        mine = int(here.sum())
        apart = control[~here] - control[~here].mean()
        slope = (apart * answers[~here]).sum() / (apart**2).sum().clamp(min=1e-300)  # 0 where it does not vary
        slope = slope * len(others) / (mine + len(others))
        left, share = answers[here] - slope * control[here], mine / len(answers)
        value = value + share * left.mean()
        variance = variance + share**2 * left.var() / mine
        gain = gain + share * slope
    return MonteCarlo(value + gain * others.mean(), (variance + gain**2 * others.var() / len(others)).sqrt())
