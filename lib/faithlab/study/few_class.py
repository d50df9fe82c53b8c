"""The study of Few-class Fidelity: its explainers and refinements, their scores, and the paper's claims."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from pandas.io.formats.style import Styler
from torch import Tensor, nn
from tqdm import tqdm

from faithlab import engine, references, stats
from faithlab.explainers import Explainer, explain, find, refine
from faithlab.metrics import alignment, few_class, novelty
from faithlab.references import perturbed
from faithlab.study import figures, tables
from faithlab.study.claims import Claim, verdict
from faithlab.zoo import models
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

LABELS = dict(zip(REFINEMENTS, ("none", "XRAI", "SG", "SG²"), strict=True))
"""Refinements as tables and figures write them."""

MARKERS = [sns.color_palette("colorblind")[i] for i in (7, 3, 2, 1)]
"""The colours of the refinements, as near to the paper's as a colour-blind-safe palette allows."""


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
    """The images as they are stored, float32 [N, C, H, W] in 0..1: what `faithlab.references.perturbed` alters."""
    return data.inputs.float() / 255


def normalised(images: Tensor, data: ImageSet) -> Tensor:
    """Intensities as the networks of a data set see them."""
    mean, std = (torch.tensor(numbers).to(images).view(-1, 1, 1) for numbers in (data.mean, data.std))
    return (images - mean) / std


def undecided(
    network: nn.Module, data: ImageSet, *, prune: bool = True, precision: torch.dtype = torch.float32
) -> perturbed.Perturbed:
    """The perturbed image of each image of a set, see `faithlab.references.perturbed.search`."""
    return perturbed.search(intensities(data).to(_device(network)), answer(network, data, precision), prune=prune)


def answer(network: nn.Module, data: ImageSet, precision: torch.dtype = torch.float32) -> perturbed.Answer:
    """A network's probabilities for images that are not normalised yet."""
    classify = engine.classifier(network, precision=precision)
    return lambda images: classify(normalised(images, data).to(_device(network))).to(images.device)


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


def noise_levels(
    network: nn.Module,
    data: ImageSet,
    stand_in: Tensor,
    levels: Sequence[float],
    *,
    samples: int,
    steps: int = 20,
    seed: int = 0,
    precision: torch.dtype = torch.float32,
) -> pd.Series:
    """Mean fidelity of BP with SG at each level of noise, on images kept for this choice: level -> fidelity.

    Args:
        network: to explain.
        data: images other than those that explainers are judged on.
        stand_in: their perturbed images, intensities.
        levels: standard deviations of the noise, as fractions of an image's range.
        samples: noisy copies.
        steps: of the curves.
        seed: of the noise.
        precision: of forwards.
    """
    x, target = data.model_inputs().to(_device(network)), data.labels.to(_device(network))
    score = scorer(network, data, references.given(normalised(stand_in, data)), precision=precision)
    found = {}
    for level in levels:
        smoothed = explainer("BP", "SG", samples=samples, noise=level, seed=seed)
        attribution = explain(smoothed, network, x, target, data.features().to(x.device))
        fidelity = few_class.few_class_fidelity(score, attribution, len(data.classes), steps=steps)
        found[level] = fidelity.mean().item()
    return pd.Series(found, name="fidelity").rename_axis("noise")


def stand_ins(images: Tensor, optimised: Tensor) -> dict[str, Tensor]:
    """What may replace a whole image, by name: black, white, its mean colour, a blur of fixed width, the optimised one.

    Args:
        images: intensities [N, C, H, W].
        optimised: those that `undecided` found.
    """
    return {
        "black": torch.zeros_like(images),
        "white": torch.ones_like(images),
        "mean": references.mean(images).expand_as(images),
        "blur": references.blur(images, images.shape[-1] / 8),
        "optimised": optimised,
    }


def unfamiliar(
    network: nn.Module, train: ImageSet, count: int, neighbours: int
) -> Callable[[Tensor, ImageSet], Tensor]:
    """A function from intensities, and the set they belong to, to their distance from the training data.

    Args:
        network: whose features are compared, see `faithlab.metrics.novelty.distance`.
        train: its training set.
        count: so many training images, evenly spread over the set.
        neighbours: the distance to the k-th nearest of them.
    """
    spread = torch.linspace(0, len(train) - 1, count).round().long()
    known = models.representation(network, train.model_inputs(spread).to(_device(network)))

    def distance(images: Tensor, data: ImageSet) -> Tensor:
        seen = models.representation(network, normalised(images, data).to(_device(network)))
        return novelty.distance(seen, known, neighbours)

    return distance


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

    An attribution that holds NaN or an infinity has no scores: they are NaN, and `summary` counts them.

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
        broken = (~attribution.isfinite()).any(1)
        attribution = attribution.masked_fill(broken[:, None], 0)
        areas = few_class.areas(score, attribution, steps=steps)
        columns = {"fidelity": few_class.fid(areas, len(data.classes)), "mif": areas.mif, "lif": areas.lif}
        if data.masks is not None:
            columns["iou"] = alignment.iou(attribution, alignment.boxes(data.masks), *data.masks.shape[1:])
            columns["dice"] = alignment.dice(attribution, data.masks)
        columns = {key: values.cpu().masked_fill(broken.cpu(), torch.nan).numpy() for key, values in columns.items()}
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


def above_random(scores: pd.DataFrame, measure: str = "fidelity") -> pd.DataFrame:
    """The mean difference from Random on the same images, with its standard error.

    Args:
        scores: of `scores`, with a column network.
        measure: a column.

    Returns:
        Tidy: network, explainer, refinement, difference, error; without Random.
    """
    wide = scores.pivot(index=["network", "image"], columns=["explainer", "refinement"], values=measure)
    apart = wide.drop(columns="Random", level="explainer").sub(wide["Random"]["none"], axis=0)
    long = apart.melt(ignore_index=False, value_name="difference").reset_index()
    grouped = long.groupby(["network", "explainer", "refinement"], sort=False)["difference"]
    return grouped.agg(difference="mean", error="sem").reset_index()


def lower(differences: pd.DataFrame) -> str:
    """Which explainers are below Random, by how much, and how many of them by more than chance, as a sentence.

    Args:
        differences: of `above_random`, one network.
    """
    low = differences[differences["difference"] < 0].sort_values("difference")
    if low.empty:
        return f"Below Random on the same images is none of {len(differences)}."
    text = [
        f"{named(row.explainer, row.refinement)} ({row.difference:+.3f} ± {row.error:.3f})" for row in low.itertuples()
    ]
    sure = int((low["difference"] < -2 * low["error"]).sum())
    below = ", ".join(text).replace("(-", "(−")
    return (
        f"Below Random on the same images are {len(low)} of {len(differences)}: {below}; {sure} of them by more than "
        "two standard errors."
    )


def named(explainer: str, refinement: str) -> str:
    """An explainer with its refinement, as the book writes them."""
    return explainer if refinement == "none" else f"{explainer} + {LABELS[refinement]}"


def over_images(scores: pd.DataFrame, other: str) -> pd.DataFrame:
    """Spearman's correlation over the images of fidelity and another measure, for each explainer and refinement.

    Args:
        scores: of `scores`, with a column network.
        other: a column.

    Returns:
        Tidy: network, explainer, refinement, correlation.
    """
    rows = []
    for (network, name, refinement), of in scores.groupby(["network", "explainer", "refinement"], sort=False):
        pair = (torch.from_numpy(of[measure].to_numpy(copy=True)) for measure in ("fidelity", other))
        rows.append((network, name, refinement, stats.spearman(*pair).item()))
    return pd.DataFrame(rows, columns=["network", "explainer", "refinement", "correlation"])


def beside(sources: Mapping[str, pd.DataFrame | None], *, digits: int = 3) -> Styler:
    """A table as the paper prints it, explainers by refinements, from several sources in adjacent columns.

    Args:
        sources: by name; each with explainer, refinement and mean, of one network and measure. None has no column.
        digits: after the point.
    """
    columns = ["explainer", "refinement", "mean"]
    chosen = {name: frame[columns] for name, frame in sources.items() if frame is not None}
    table = tables.side_by_side(
        chosen, rows=["explainer"], columns=["refinement"], order=[*EXPLAINERS, *REFINEMENTS], digits=digits
    )
    return tables.styled(table.rename(columns=LABELS, level=0))


def of_first_network(frame: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The rows of a measure of the network that comes first, from a table with network and measure."""
    return frame[(frame["measure"] == measure) & (frame["network"] == frame["network"].iloc[0])]


def box_plots(scores: pd.DataFrame, measure: str, label: str) -> plt.Figure:
    """A measure over the images by explainer and refinement, a panel for each network (the paper's Figures 4 to 7).

    Args:
        scores: of `scores`, with a column network.
        measure: a column.
        label: of the measure's axis.
    """
    of_network = dict(list(scores.groupby("network", sort=False)))
    figure, grid = plt.subplots(len(of_network), 1, figsize=(8.4, 3.2 * len(of_network)), squeeze=False)
    for axes, (name, of) in zip(grid[:, 0], of_network.items(), strict=True):
        sns.boxplot(
            of.replace({"refinement": LABELS}),
            x="explainer",
            y=measure,
            hue="refinement",
            hue_order=list(LABELS.values()),
            palette=MARKERS,
            fliersize=1.5,
            linewidth=0.8,
            ax=axes,
        )
        chance = of[of["explainer"] == "Random"][measure].mean()
        axes.axhline(chance, color=figures.COLOURS["truth"], linestyle="--", linewidth=1.2)
        axes.set(xlabel="", ylabel=label, title=name if len(of_network) > 1 else "")
        axes.get_legend().remove()
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=4, loc="upper center", fontsize="small")
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.2 / figure.get_figheight()))
    plt.close(figure)
    return figure


def agreement_plot(summary: pd.DataFrame, correlations: pd.DataFrame, other: str, label: str) -> plt.Figure:
    """Left, mean fidelity against another measure; right, their rank correlations over the images.

    Args:
        summary: of `summary`, one network.
        correlations: of `over_images`, the same network.
        other: the measure.
        label: its name.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 5.2), gridspec_kw={"width_ratios": [1.25, 1]})
    means = summary.pivot(index=["explainer", "refinement"], columns="measure", values="mean").reset_index()
    names = [name for name in EXPLAINERS if name in set(means["explainer"])]
    sns.scatterplot(
        means.replace({"refinement": LABELS}),
        x="fidelity",
        y=other,
        hue="refinement",
        style="explainer",
        hue_order=list(LABELS.values()),
        style_order=names,
        palette=MARKERS,
        s=60,
        ax=left,
    )
    left.set(xlabel="Few-class Fidelity (mean)", ylabel=f"{label} (mean)")
    left.legend(fontsize="x-small", ncols=3, loc="upper left", bbox_to_anchor=(-0.1, -0.17), handletextpad=0.2)
    heat = correlations.pivot(index="explainer", columns="refinement", values="correlation")
    heat = heat.reindex(index=names, columns=list(REFINEMENTS)).rename(columns=LABELS)
    sns.heatmap(heat, annot=True, fmt=".2f", cmap="vlag_r", vmin=-1, vmax=1, cbar=False, ax=right)
    right.set(xlabel="", ylabel="", title="over the images")
    return figures.show(figure)


def _device(network: nn.Module) -> torch.device:
    return next(network.parameters()).device


def _listed(values: Mapping[str, float], digits: int = 2) -> str:
    return ", ".join(f"{name} {value:.{digits}f}".replace(" -", " −") for name, value in values.items())


def _always_found(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    found = 1 - tables["winners"].groupby("task", sort=False)["fallback"].mean()
    passed = (found >= 0.95).tolist()
    return verdict(passed, found), f"images with a candidate under Δ: {_listed(found)} (asked for: 0.95 of them)"


def _blur_alone(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    table = tables["winners"].groupby("task", sort=False)[["fallback", "blur_fallback"]].mean()
    passed = (table["blur_fallback"] > table["fallback"]).tolist()
    detail = "; ".join(
        f"{task}: blur alone fails on {row['blur_fallback']:.2f} of the images, all chains on {row['fallback']:.2f}"
        for task, row in table.iterrows()
    )
    return verdict(passed, table.to_numpy().ravel()), detail


def _unsure(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    table = tables["references"].pivot(index="task", columns="reference", values="uncertainty")
    delta = tables["references"].groupby("task")["delta"].first()
    others = table.drop(columns="optimised").min(axis=1)
    passed = [*(others > delta), *(table["optimised"] <= delta)]
    detail = "; ".join(f"{task}: {_listed(row.sort_values())} (Δ {delta[task]:g})" for task, row in table.iterrows())
    return verdict(passed, table.to_numpy().ravel()), f"mean U of the replaced image (0 is undecided): {detail}"


def _familiar(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    table = tables["references"].pivot(index="task", columns="reference", values="detectability")
    fixed = table[["black", "white", "mean"]]
    passed = (table["optimised"] < fixed.min(axis=1)).tolist()
    detail = "; ".join(f"{task}: {_listed(row.sort_values())}" for task, row in table.iterrows())
    return verdict(
        passed, table.to_numpy().ravel()
    ), f"how well replaced images can be told (0.5 is not at all): {detail}"


PERTURBATIONS = [
    Claim(
        "fc-found",
        _PAPER,
        "Section 3.4.1",
        "The 804 candidates offer a very high probability to always find one that leaves the model undecided.",
        _always_found,
    ),
    Claim(
        "fc-blur-alone",
        _PAPER,
        "Section 3.4.1",
        "For some images blur alone has no suitable candidate, and the other operations find one.",
        _blur_alone,
    ),
    Claim(
        "fc-undecided",
        _PAPER,
        "Sections 3.2 and 3.4",
        "Fixed values and a plain blur do not leave the model undecided; the chosen perturbation does.",
        _unsure,
    ),
    Claim(
        "fc-distribution",
        _PAPER,
        "Sections 2.2 and 3.4",
        "The chosen perturbation is nearer to the training data than an image of one fixed value.",
        _familiar,
    ),
]


def _of(tables: Mapping[str, pd.DataFrame], measure: str) -> pd.DataFrame:
    """The rows of a measure in the summary."""
    return tables["summary"][tables["summary"]["measure"] == measure]


def _means(tables: Mapping[str, pd.DataFrame], measure: str) -> pd.DataFrame:
    """Means of a measure: rows network and explainer, columns refinement."""
    return _of(tables, measure).pivot(index=["network", "explainer"], columns="refinement", values="mean")


def _gains(tables: Mapping[str, pd.DataFrame], measure: str, refinements: Sequence[str]) -> tuple[str, str]:
    """Whether each refinement raises a measure for more than half of the explainers, over all networks."""
    table = _means(tables, measure).drop(index="Random", level="explainer")
    better = {r: table[r] > table["none"] for r in refinements}
    gain = {r: (table[r] - table["none"]).mean() for r in refinements}
    detail = "; ".join(
        f"+{LABELS[r]}: {better[r].sum()} of {len(table)} higher, {gain[r]:+.3f} on average" for r in refinements
    )
    passed = [better[r].mean() > 0.5 for r in refinements]
    return verdict(passed, table[["none", *refinements]].to_numpy().ravel()), detail.replace(" -", " −")


def _smoothing_helps(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    return _gains(tables, "fidelity", ["SG", "SG2"])


def _best(tables: Mapping[str, pd.DataFrame], measure: str) -> dict[str, tuple[str, str, float]]:
    """The best explainer and refinement of each network, and its mean."""
    rows = _of(tables, measure)
    ranked = rows["mean"].fillna(-math.inf)  # a missing one is no winner; the verdict counts it
    best = rows.loc[ranked.groupby(rows["network"], sort=False).idxmax()]
    columns = ["network", "explainer", "refinement", "mean"]
    return {network: tuple(rest) for network, *rest in best[columns].to_numpy()}


def _named(best: Mapping[str, tuple[str, str, float]]) -> str:
    return "; ".join(
        f"{network}: {named(name, refinement)} {value:.3f}" for network, (name, refinement, value) in best.items()
    )


def _eg_best(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    best = _best(tables, "fidelity")
    passed = [name == "EG" and refinement in ("SG", "SG2") for name, refinement, _ in best.values()]
    means = _means(tables, "fidelity").loc[(slice(None), "EG"), ["SG", "SG2"]].max(axis=1)
    own = "; ".join(f"{network}: {value:.3f}" for (network, _), value in means.items())
    return verdict(passed, _of(tables, "fidelity")["mean"]), f"best is {_named(best)}; EG with SG or SG²: {own}"


def _bp_near_random(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    plain = _means(tables, "fidelity")["none"].unstack("network")
    lead = plain.drop(index="Random") - plain.loc["Random"]
    passed = (lead.loc["BP"] <= lead.min()).tolist()
    detail = "; ".join(f"{network}: {_listed(lead[network].sort_values(), 3)}" for network in lead)
    return verdict(passed, lead.to_numpy().ravel()), f"lead over Random without refinement: {detail}"


def _random_lowest(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    passed, details, numbers = [], [], []
    for network, rows in _of(tables, "fidelity").groupby("network", sort=False):
        chance = rows[rows["explainer"] == "Random"]["mean"].item()
        others = rows[rows["explainer"] != "Random"]["mean"]
        passed.append(chance < others.min())
        numbers += [chance, others.sum(skipna=False)]
        details.append(f"{network}: Random {chance:.3f}, {(others < chance).sum()} of {len(others)} below it")
    return verdict(passed, numbers), "; ".join(details)


def _xrai_aligns(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    """Best for more than half of the explainers. The mean gain is shown too: one explainer can decide it."""
    table = _means(tables, "iou").drop(index="Random", level="explainer")
    added = table[["XRAI", "SG", "SG2"]]
    best = (added["XRAI"] >= added.max(axis=1)).groupby(level="network", sort=False)
    gain = added.sub(table["none"], axis=0).groupby(level="network", sort=False).mean().rename(columns=LABELS)
    detail = "; ".join(
        f"{network}: the best for {count} of {of} explainers, mean gain {_listed(gain.loc[network], 3)}"
        for network, count, of in zip(gain.index, best.sum(), best.size(), strict=True)
    )
    return verdict((best.mean() > 0.5).tolist(), table.to_numpy().ravel()), detail


def _aligned(measure: str, least: float = 0.6):
    def test(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
        found = {
            network: agreement(of_network, "fidelity", measure)
            for network, of_network in tables["summary"].groupby("network", sort=False)
        }
        detail = f"Spearman over explainers and refinements: {_listed(found)} (strong: {least} and more)"
        return verdict([value >= least for value in found.values()], found.values()), detail

    return test


NATURAL = [
    Claim(
        "fc-sg",
        _PAPER,
        "Table 1, Figure 4",
        "On photographs SG and SG² raise the fidelity of most explainers.",
        _smoothing_helps,
    ),
    Claim("fc-eg", _PAPER, "Table 1, Figure 4", "On photographs EG with SG or SG² is the best.", _eg_best),
    Claim("fc-bp", _PAPER, "Section 4.2", "On photographs BP is the explainer nearest to Random.", _bp_near_random),
    Claim("fc-random-natural", _PAPER, "Table 1", "On photographs Random is the lowest.", _random_lowest),
    Claim(
        "fc-xrai-iou",
        _PAPER,
        "Table 3, Figure 6",
        "For localisation XRAI is overall the best refinement.",
        _xrai_aligns,
    ),
    Claim(
        "fc-alignment-natural",
        _PAPER,
        "Section 5",
        "On photographs fidelity and localisation rank the explainers alike.",
        _aligned("iou"),
    ),
]


def _xrai_best(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    best = _best(tables, "fidelity")
    passed = [
        refinement == "XRAI" or (name, refinement) == ("GradCAM", "none") for name, refinement, _ in best.values()
    ]
    _, gains = _gains(tables, "fidelity", ["XRAI"])
    return verdict(passed, _of(tables, "fidelity")["mean"]), f"best is {_named(best)}; {gains}"


def _networks_agree(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    table = _of(tables, "fidelity").pivot(index=["explainer", "refinement"], columns="network", values="mean")
    ranks = table.corr("spearman").to_numpy()
    found = {f"{a} and {b}": ranks[i, j] for (i, a), (j, b) in itertools.combinations(enumerate(table.columns), 2)}
    detail = f"Spearman between the networks: {_listed(found)} (asked for: 0.7)"
    return verdict([value >= 0.7 for value in found.values()], _of(tables, "fidelity")["mean"]), detail


MASKS = [
    Claim(
        "fc-xrai",
        _PAPER,
        "Table 2, Figure 5",
        "On the binary task the highest fidelity is XRAI's, on a par with plain GradCAM.",
        _xrai_best,
    ),
    Claim("fc-random-masks", _PAPER, "Table 2", "On the binary task Random is the lowest.", _random_lowest),
    Claim(
        "fc-convergence",
        _PAPER,
        "Section 4.2",
        "On the binary task the networks agree on the ranking of the explainers.",
        _networks_agree,
    ),
    Claim(
        "fc-alignment-masks",
        _PAPER,
        "Section 5",
        "On the binary task fidelity and the Dice coefficient rank the explainers alike.",
        _aligned("dice"),
    ),
]
