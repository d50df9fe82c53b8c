"""Few-class Fidelity's study: its explainers and their refinements, the scores of all of them, and the paper's claims."""

from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from torch import Tensor, nn
from tqdm import tqdm

from faithlab import engine, perturbed, references, stats
from faithlab.explainers import Explainer, explain, find, refine
from faithlab.metrics import alignment, few_class
from faithlab.study.claims import Claim, verdict
from faithlab.zoo.sets import ImageSet

_PAPER = "Few-class Fidelity"

EXPLAINERS = {
    "BP": ("gradient", {}),
    "Deconv": ("deconvolution", {}),
    "EG": ("expected-gradients", {}),
    "IG(min)": ("integrated-gradients", {"baseline": "min"}),
    "IG(zero)": ("integrated-gradients", {"baseline": 0.0}),
    "IG(max)": ("integrated-gradients", {"baseline": "max"}),
    "GradCAM": ("gradcam", {}),
    "Random": ("random", {}),
}
"""The paper's explainers by its names: ours, with their options."""

REFINEMENTS = ("none", "XRAI", "SG", "SG2")
"""The paper's refinements by the names of its tables."""


def all_right(networks: Sequence[nn.Module], data: ImageSet, count: int) -> ImageSet:
    """The first images whose class every network predicts rightly, as the paper chooses them.

    Raises:
        ValueError: there are fewer such images than `count`.
    """
    right = torch.ones(len(data), dtype=torch.bool)
    for network in networks:
        predicted = engine.classifier(network)(data.model_inputs().to(_device(network))).argmax(1).cpu()
        right &= predicted == data.labels
    if int(right.sum()) < count:
        raise ValueError(f"all networks are right on {int(right.sum())} of {len(data)} images, fewer than {count}")
    return data.take(right.nonzero().flatten()[:count])


def intensities(data: ImageSet) -> Tensor:
    """The images as they are stored, float32 [N, C, H, W] in 0..1: what `faithlab.perturbed` alters."""
    return data.inputs.float() / 255


def normalised(images: Tensor, data: ImageSet) -> Tensor:
    """Intensities as the networks of a data set see them."""
    mean, std = (torch.tensor(numbers).to(images).view(-1, 1, 1) for numbers in (data.mean, data.std))
    return (images - mean) / std


def undecided(
    network: nn.Module, data: ImageSet, *, prune: bool = True, precision: torch.dtype = torch.float32
) -> perturbed.Perturbed:
    """The perturbed image of each image of a set, see `faithlab.perturbed.search`."""
    return perturbed.search(intensities(data).to(_device(network)), answer(network, data, precision), prune=prune)


def answer(network: nn.Module, data: ImageSet, precision: torch.dtype = torch.float32) -> perturbed.Answer:
    """A network's probabilities for images that are not normalised yet."""
    classify = engine.classifier(network, precision=precision)
    return lambda images: classify(normalised(images, data))


def explainer(name: str, refinement: str, *, samples: int, noise: float, seed: int = 0) -> Explainer:
    """An explainer with a refinement, by the paper's names; its map is a magnitude.

    XRAI averages the magnitudes. SG is the magnitude of the mean map over noisy copies, SG2 the mean of its squares.

    Args:
        name: a key of `EXPLAINERS`.
        refinement: one of `REFINEMENTS`.
        samples: noisy copies.
        noise: their standard deviation, as a fraction of the image's range.
        seed: of the noise.
    """
    inner = find(EXPLAINERS[name][0])
    copies = {"samples": samples, "noise": noise, "seed": seed}
    if refinement == "none":
        return refine.magnitude(inner)
    if refinement == "XRAI":
        return refine.region(refine.magnitude(inner))
    if refinement == "SG":
        return refine.magnitude(refine.smooth(inner, moment=1, **copies))
    return refine.smooth(inner, moment=2, **copies)


def explanations(
    network: nn.Module,
    data: ImageSet,
    *,
    layer: str,
    background: Tensor,
    steps: int,
    samples: int,
    noise: float,
    names: Sequence[str] = tuple(EXPLAINERS),
    refinements: Sequence[str] = REFINEMENTS,
    seed: int = 0,
) -> dict[tuple[str, str], Tensor]:
    """The attributions of every explainer under every refinement to the images' labels.

    Args:
        network: to explain.
        data: images.
        layer: whose activations Grad-CAM weighs.
        background: [R, C, H, W] training images as the network sees them, for Expected Gradients.
        steps: of Integrated Gradients.
        samples: noisy copies of SG and SG2.
        noise: their standard deviation, as a fraction of the image's range.
        names: keys of `EXPLAINERS`.
        refinements: of `REFINEMENTS`; Random has none.
        seed: of the noise, of Random and of Expected Gradients.

    Returns:
        (explainer, refinement) -> [B, H * W].
    """
    x, target = data.model_inputs().to(_device(network)), data.labels.to(_device(network))
    own = {
        "expected-gradients": {"background": background, "seed": seed},
        "integrated-gradients": {"steps": steps},
        "gradcam": {"layer": layer},
        "random": {"seed": seed},
    }
    jobs = [(n, r) for n in names for r in (refinements if n != "Random" else ("none",))]
    found = {}
    for name, refinement in tqdm(jobs, desc="explanations", mininterval=5):
        registered, options = EXPLAINERS[name]
        found[name, refinement] = explain(
            explainer(name, refinement, samples=samples, noise=noise, seed=seed),
            network,
            x,
            target,
            data.features().to(x.device),
            **options,
            **own.get(registered, {}),
        )
    return found


def scorer(
    network: nn.Module,
    data: ImageSet,
    reference: engine.Reference = references.zero,
    *,
    target: Tensor | None = None,
    precision: torch.dtype = torch.float32,
) -> engine.Score:
    """The engine on a set of images whose pixels are the features; it follows their labels, or another target [B]."""
    x = data.model_inputs().to(_device(network))
    target = (data.labels if target is None else target).to(x.device)
    return engine.scorer(
        network, x, target, segments=data.features().to(x.device), reference=reference, precision=precision
    )


def scores(
    score: engine.Score,
    attributions: Mapping[tuple[str, str], Tensor],
    data: ImageSet,
    *,
    steps: int = 100,
) -> pd.DataFrame:
    """Few-class Fidelity of every attribution of every image, and where the set has masks its alignment with these.

    An attribution with a NaN has no scores: they are NaN.

    Args:
        score: see `scorer`.
        attributions: (explainer, refinement) -> [B, F].
        data: the images.
        steps: of the curves.

    Returns:
        Tidy: explainer, refinement, image, fidelity, mif, lif, and with masks iou, dice.
    """
    parts = []
    for (name, refinement), attribution in tqdm(attributions.items(), desc="fidelity", mininterval=5):
        broken = attribution.isnan().any(1).cpu()
        attribution = attribution.nan_to_num()
        areas = few_class.areas(score, attribution, steps=steps)
        columns = {"fidelity": few_class.fid(areas, len(data.classes)), **areas._asdict()}
        if data.masks is not None:
            columns["iou"] = alignment.iou(attribution, alignment.boxes(data.masks), *data.masks.shape[1:])
            columns["dice"] = alignment.dice(attribution, data.masks)
        columns = {key: values.cpu().masked_fill(broken, torch.nan).numpy() for key, values in columns.items()}
        parts.append(pd.DataFrame({"explainer": name, "refinement": refinement, "image": range(len(data)), **columns}))
    return pd.concat(parts, ignore_index=True)


def summary(scores: pd.DataFrame, by: Sequence[str] = ("network", "explainer", "refinement")) -> pd.DataFrame:
    """The mean of each measure over the images, with its standard error and the number of missing ones.

    Returns:
        Tidy: the columns of `by`, measure, mean, error, missing.
    """
    measures = [m for m in ("fidelity", "iou", "dice", "mif", "lif") if m in scores]
    long = scores.melt(id_vars=list(by), value_vars=measures, var_name="measure")
    grouped = long.groupby([*by, "measure"], sort=False)["value"]
    return grouped.agg(mean="mean", error="sem", missing=lambda values: int(values.isna().sum())).reset_index()


def agreement(summary: pd.DataFrame, measure: str, other: str) -> float:
    """Spearman's correlation over explainers and refinements of two measures of a `summary` of one network."""
    pair = summary.pivot(index=["explainer", "refinement"], columns="measure", values="mean")[[measure, other]]
    return stats.spearman(*(torch.from_numpy(pair[m].to_numpy(copy=True)) for m in (measure, other))).item()


def _device(network: nn.Module) -> torch.device:
    return next(network.parameters()).device
