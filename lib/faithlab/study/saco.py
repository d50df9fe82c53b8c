"""The SaCo study: the explainers, what they are measured by, the networks that they explain, and the paper's claims."""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.stats
import torch
from torch import Tensor, nn

from faithlab import engine, readouts, references, stats
from faithlab import segments as segment_maps
from faithlab.explainers import explain
from faithlab.metrics import deletion
from faithlab.metrics.saco import saco
from faithlab.study.claims import Claim, verdict
from faithlab.study.results import Recorded
from faithlab.zoo import datasets, training, transformers
from faithlab.zoo.training import Recipe

# What explains

EXPLAINERS = {
    "IG": "integrated-gradients",
    "Grad-CAM": "gradcam-vit",
    "LRP": "lrp",
    "Partial LRP": "partial-lrp",
    "Transformer Attribution": "transformer-attribution",
    "Conservative LRP": "conservative-lrp",
    "Raw Attention": "raw-attention",
    "Rollout": "rollout",
    "Transformer-MM": "transformer-mm",
    "ATTCAT": "attcat",
}
"""The paper's ten by its names and in the order of its Table 2, as explainers of `faithlab.explainers`."""

ATTENTION = ("Raw Attention", "Rollout", "Transformer-MM", "ATTCAT")
"""Those that the paper calls attention-based."""

METRICS = {"SaCo": 1, "AUC": -1, "AOPC": 1, "LOdds": -1, "Comp.": -1}
"""The metrics; +1: higher is better, -1: lower is better."""

RANDOM = "Random"


# What is explained


class Subject(NamedTuple):
    """A network, and the inputs on which it is explained.

    Attributes:
        name: of the network.
        model: in eval mode.
        x: inputs as it sees them, [n, *S], on its device.
        target: its predicted classes, [n], which are what the metrics are about.
        segments: the features.
        accuracy: on the whole test split, or on the n inputs where more was not asked.
        reference: what stands in for a removed feature; the paper's is the image's mean.
        present: [n, F] bool, which features an input has; None: all.
    """

    name: str
    model: nn.Module
    x: Tensor
    target: Tensor
    segments: Tensor
    accuracy: float
    reference: engine.Reference = references.mean
    present: Tensor | None = None


def small_vit(data: str, *, dim: int, depth: int, heads: int, patch: int, train_limit: int | None, **choices) -> Recipe:
    """The recipe of a small Vision Transformer; `choices` as in `faithlab.zoo.training.Recipe`."""
    options = {"dim": dim, "depth": depth, "heads": heads, "patch": patch}
    return Recipe(data=data, model="vit", model_options=options, limit=train_limit, **choices)


def subjects(
    networks: Sequence[str],
    data: str,
    images: int,
    recipe: Recipe,
    *,
    weights: str | None = None,
    path: str | None = None,
) -> list[Subject]:
    """The networks with the first images of a test split.

    Args:
        networks: "vit" is the small one, trained by `recipe`; all others are timm's, see `faithlab.zoo.transformers`.
        data: an image set of `faithlab.zoo.datasets`.
        images: number n of images.
        recipe: of the small network.
        weights: folder of the weights of timm's networks; None: timm's own, for ImageNet.
        path: folder of the photographs, for imagenet-folder.
    """
    found = []
    for name in networks:
        if name == "vit":
            test = datasets.load(data, "test")
            model = training.trained(recipe)
            chosen = test.take(slice(images))
            x, accuracy = chosen.model_inputs(), training.accuracy(model, test)
        else:
            options = {"path": path, "limit": images} if path else {}
            chosen = datasets.load(data, "test", **options).take(slice(images))
            model = transformers.load(name, data, len(chosen.classes), weights)
            model = model.to("cuda" if torch.cuda.is_available() else "cpu")
            x, accuracy = transformers.view(chosen, model), None
        device = next(model.parameters()).device
        target = training.logits(model, x).argmax(1)
        if accuracy is None:
            accuracy = (target.cpu() == chosen.labels).double().mean().item()
        pixels = torch.arange(x[0, 0].numel(), device=device).view(x.shape[-2:])
        found.append(Subject(name, model, x.to(device), target, pixels, accuracy))
    return found


def accuracies(subjects: Sequence[Subject]) -> pd.DataFrame:
    """How good the networks are, tidy: network, accuracy."""
    return pd.DataFrame([(s.name, s.accuracy) for s in subjects], columns=["network", "accuracy"])


def introduced(subjects: Sequence[Subject], recipe: Recipe, kept: Recorded | None = None) -> str:
    """Sentences for a page: how good the networks are, how many inputs are explained, whether the small one is weak.

    Args:
        subjects: the networks and their inputs.
        recipe: of the small network.
        kept: the recorded `accuracies` of this page.
    """
    text = "; ".join(f"**{s.name}** recognises **{s.accuracy:.1%}** of the test images" for s in subjects)
    text += f". The first {len(subjects[0].x)} of them are explained, for the class that the network predicts."
    if any(s.name == "vit" and s.accuracy < 0.6 for s in subjects):
        seen = "all" if recipe.limit is None else f"{recipe.limit:,}"
        epochs = f"{recipe.epochs} epoch" + "s" * (recipe.epochs != 1)
        text += (
            f" Less than 60 % is a weak network. It was trained for {epochs} on {seen} training images, so that this "
            "page can be rerun quickly. Read what follows as a statement about such a network: more training "
            "(`epochs`, `train_limit`) or the paper's networks (the `paper` profile) may change it."
        )
    if kept is not None:
        reached = ", ".join(f"{name} {accuracy:.1%}" for name, accuracy in kept.frame.to_numpy())
        text += f" The *recorded* numbers below are those of the `{kept.profile}` profile ({reached})."
    return text


def attribute(
    subject: Subject,
    explainers: Mapping[str, str],
    *,
    steps: int,
    seed: int = 0,
    random: bool = True,
    options: Mapping[str, Mapping] | None = None,
) -> dict[str, Tensor]:
    """Attributions of the predicted classes by explainer, each [n, F].

    Args:
        subject: what to explain.
        explainers: names in the book to names in `faithlab.explainers`.
        steps: of Integrated Gradients.
        seed: of the random attribution.
        random: whether to add one.
        options: of other explainers, by their names in `faithlab.explainers`.
    """
    integrated = {"steps": steps}
    options = {
        "integrated-gradients": integrated,
        "integrated-gradients-embedding": integrated,
        "random": {"seed": seed},
    } | dict(options or {})
    wanted = dict(explainers) | ({RANDOM: "random"} if random else {})
    return {
        label: explain(
            name, subject.model, subject.x, subject.target, subject.segments, rows=64, **options.get(name, {})
        )
        for label, name in wanted.items()
    }


# What is measured


def scorer(subject: Subject, readout=readouts.probability, precision: torch.dtype = torch.float32) -> engine.Score:
    """The paper's score: of the predicted class, removed features replaced by the subject's reference."""
    model, x, target = subject.model, subject.x, subject.target
    options = {"segments": subject.segments, "reference": subject.reference, "precision": precision}
    return engine.scorer(model, x, target, readout=readout, **options)


def occlusion(subject: Subject, coarse: Tensor | None = None) -> Tensor:
    """What the predicted class's probability loses without each feature alone, [n, F].

    An explanation measured by the very question that SaCo asks, one feature at a time.

    Args:
        subject: what to explain.
        coarse: larger features, whose loss each of their elements gets; None: the subject's own.
    """
    larger = subject._replace(segments=subject.segments if coarse is None else coarse)
    count = segment_maps.count(larger.segments)
    keep = torch.cat([torch.ones(1, count, dtype=torch.bool), ~torch.eye(count, dtype=torch.bool)])
    answers = scorer(larger)(keep.expand(len(subject.x), -1, -1))
    loss = answers[:, :1] - answers[:, 1:]
    return loss if coarse is None else segment_maps.spread(loss, coarse).flatten(1)


def measure(
    subject: Subject, attributions: Mapping[str, Tensor], *, groups: int = 10, precision: torch.dtype = torch.float32
) -> pd.DataFrame:
    """All five metrics of every attribution and input: columns network, image, explainer, metric, value.

    AUC's accuracy is the share of inputs that still have their predicted class.
    """
    score = {r: scorer(subject, r, precision) for r in (readouts.probability, readouts.log_odds, readouts.hit)}
    own = {"present": subject.present}
    frames = []
    for explainer, attribution in attributions.items():
        odds = deletion.curve(score[readouts.log_odds], attribution, **own)
        values = {
            "SaCo": saco(score[readouts.probability], attribution, groups, **own),
            "AUC": deletion.area(deletion.curve(score[readouts.hit], attribution, **own)),
            "AOPC": deletion.loss(odds.sigmoid()),  # the probability, without asking the model again
            "LOdds": -deletion.loss(odds),
            "Comp.": deletion.loss(deletion.curve(score[readouts.probability], attribution, direction="LeRF", **own)),
        }
        frames += [tidy(value, network=subject.name, explainer=explainer, metric=m) for m, value in values.items()]
    return pd.concat(frames, ignore_index=True)


def tidy(values: Tensor, **labels) -> pd.DataFrame:
    """A value per image [n] as a frame: the labels' columns, image, value."""
    return pd.DataFrame(labels | {"image": range(len(values)), "value": values.cpu().numpy()})


def estimates(
    scores: pd.DataFrame, by: Sequence[str] = ("explainer", "metric"), *, resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Means over the images, after the mean over the networks, with 95 % bootstrap intervals over the images.

    Every group meets the same resamples. Images without a value are left out, and counted.

    Args:
        scores: tidy, with the columns `by`, image, network and value.
        by: columns that make the groups.
        resamples: of the images.
        seed: of the resamples.

    Returns:
        The columns `by`, mean, low, high, missing (image-network pairs without a value), count.
    """
    by = list(by)
    per_image = scores.pivot_table(index="image", columns=by, values="value", dropna=False, sort=False)
    values = torch.from_numpy(per_image.to_numpy(copy=True))  # [n, groups]
    weights = stats.bootstrap(len(values), resamples, torch.Generator().manual_seed(seed))
    present = (~values.isnan()).double()
    means = (weights @ values.nan_to_num(0)) / (weights @ present)  # [resamples, groups]
    low, high = (torch.nanquantile(means, q, dim=0) for q in (0.025, 0.975))
    table = pd.DataFrame({"mean": per_image.mean().to_numpy(), "low": low, "high": high}, index=per_image.columns)
    missing = scores["value"].isna().groupby([scores[column] for column in by]).agg(["sum", "size"])
    table["missing"], table["count"] = missing["sum"], missing["size"]
    return table.reset_index()


def relations(scores: pd.DataFrame, *, resamples: int = 200, seed: int = 0) -> pd.DataFrame:
    """Spearman correlations between the metrics' rankings, all turned so that higher is better (Figure 2).

    Two readings of "rankings": of the images, for each explainer (the paper's), and of the explainers, for each image.
    Each correlation is averaged over the networks and what is held fixed, with a bootstrap over the images.

    Returns:
        Columns ranked ("images", "explainers"), one, other (metrics), mean, low, high, missing (correlations that do
        not exist, because a metric gives equal numbers or none), count.
    """
    metrics, images = list(METRICS), sorted(scores["image"].unique())
    oriented = scores.assign(value=scores["value"] * scores["metric"].map(METRICS))
    wide = oriented.pivot(index=["network", "explainer"], columns=["image", "metric"], values="value")
    wide = wide[pd.MultiIndex.from_product([images, metrics])]
    values = wide.to_numpy().reshape(len(wide), len(images), len(metrics))  # [networks * explainers, n, metrics]
    by_network = values.reshape(wide.index.get_level_values("network").nunique(), -1, *values.shape[1:])

    draw = np.random.default_rng(seed)
    picks = [np.arange(len(images)), *draw.integers(len(images), size=(resamples, len(images)))]
    of_images = np.array([[_spearman(held[pick]) for held in values] for pick in picks])  # [1 + R, held, pairs]
    per_image = np.array([[_spearman(network[:, i]) for i in range(len(images))] for network in by_network])
    of_explainers = np.array([np.concatenate(per_image[:, pick]) for pick in picks])
    rows = []
    for ranked, found in (("images", of_images), ("explainers", of_explainers)):
        present = ~np.isnan(found)
        means = _over(np.nan_to_num(found).sum(1), present.sum(1))  # [1 + R, pairs]
        low, high = (torch.nanquantile(torch.from_numpy(means[1:]), q, dim=0).tolist() for q in (0.025, 0.975))
        for pair, *numbers in zip(
            itertools.combinations(metrics, 2), means[0], low, high, (~present[0]).sum(0), strict=True
        ):
            rows.append((ranked, *pair, *numbers, found.shape[1]))
    return pd.DataFrame(rows, columns=["ranked", "one", "other", "mean", "low", "high", "missing", "count"])


def _over(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


def _spearman(values: np.ndarray) -> np.ndarray:
    """Rank correlation of every pair of columns [m, metrics] over the rows without NaN, [pairs]; NaN where constant."""
    values = values[~np.isnan(values).any(1)]
    upper = np.triu_indices(values.shape[1], 1)
    if len(values) < 3:
        return np.full(len(upper[0]), np.nan)
    ranks = scipy.stats.rankdata(values, axis=0)
    ranks -= ranks.mean(0)
    norms = np.sqrt((ranks**2).sum(0))
    return _over(ranks.T @ ranks, np.outer(norms, norms))[upper]


def with_intervals(table: pd.DataFrame, *, rows: str, columns: str, digits: int = 2) -> pd.DataFrame:
    """Estimates as cells of two lines, mean and interval, with the number of missing values where there are any."""

    def text(row) -> str:
        if pd.isna(row["mean"]):
            return f"none ({int(row['missing'])} missing)"
        numbers = [f"{row[key]:.{digits}f}".replace("-", "−") for key in ("mean", "low", "high")]
        missing = f", {int(row['missing'])} missing" if row["missing"] else ""
        return "{}<br><small>{} to {}".format(*numbers) + f"{missing}</small>"

    wide = table.assign(text=table.apply(text, axis=1)).pivot(index=rows, columns=columns, values="text")
    return wide.loc[table[rows].unique(), table[columns].unique()].rename_axis(index=None, columns=None)


def against_random(scores: pd.DataFrame, *, resamples: int = 1000, seed: int = 0) -> pd.DataFrame:
    """How much better each explainer is than Random by each metric, image by image: `estimates` of the differences.

    Returns:
        Columns explainer, metric, mean (positive: better), low, high, missing, count.
    """
    oriented = scores.assign(value=scores["value"] * scores["metric"].map(METRICS))
    wide = oriented.pivot(index=["network", "image", "metric"], columns="explainer", values="value")
    better = wide.drop(columns=RANDOM).sub(wide[RANDOM], axis=0)
    order = [name for name in scores["explainer"].unique() if name != RANDOM]
    long = better[order].melt(var_name="explainer", ignore_index=False).reset_index()
    return estimates(long, resamples=resamples, seed=seed)


# Claims

_PAPER = "SaCo"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _interval(row) -> str:
    return f"{_signed(row['mean'])} ({_signed(row['low'])} to {_signed(row['high'])})"


def _row(table: pd.DataFrame, **where) -> pd.Series:
    """The one row with these values."""
    chosen = table.loc[(table[list(where)] == pd.Series(where)).all(axis=1)]
    if len(chosen) != 1:
        raise ValueError(f"expected one row with {where}, but found {len(chosen)}")
    return chosen.iloc[0]


def _weak_relation(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["relations"].query("ranked == 'images' and one == 'SaCo'")
    passed = (t["mean"].abs() < 0.3).tolist()
    detail = ", ".join(f"{row['other']} {_interval(row)}" for _, row in t.iterrows())
    return verdict(passed, t["mean"]), f"SaCo with {detail}"


def _others_agree(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["relations"].query("ranked == 'images'")
    ours, others = (t.loc[(t["one"] == "SaCo") == of, "mean"].mean() for of in (True, False))
    evidence = f"the other four among themselves {_signed(others)} on average, with SaCo {_signed(ours)}"
    return verdict([others > 0.3, others > ours + 0.1], [others, ours]), evidence


def _random_is_zero(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["seeds"]
    z = (t["mean"] / t["error"]).item()
    return verdict([abs(z) <= 4], [z]), f"SaCo of Random {t['mean'].item():+.4f}, {abs(z):.1f} standard errors from 0"


def _random_among_the_real(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["against_random"]
    worse = t[t["metric"] != "SaCo"].groupby("metric", sort=False)["mean"].agg(lambda of: int((of < 0).sum()))
    detail = ", ".join(f"{metric} {count}" for metric, count in worse.items())
    return verdict(worse > 0, t["mean"]), f"of {t['explainer'].nunique()} explainers, worse than Random by {detail}"


def _saco_tells(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["estimates"].query("metric == 'SaCo' and explainer != @RANDOM")
    above = int((t["low"] > 0).sum())
    evidence = f"{above} of {len(t)} explainers have an interval above 0, {int((t['high'] < 0).sum())} below"
    return verdict([above > len(t) / 2], t["mean"]), evidence


def _order_matters(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["estimates"].query("explainer != @RANDOM")
    places = {}
    for metric in ("AUC", "AOPC", "LOdds", "Comp."):
        of = t[t["metric"] == metric].set_index("explainer")["mean"] * METRICS[metric]
        places[metric] = int(of.rank(ascending=False)["IG"])
    number = t["explainer"].nunique()
    passed = [*(places[metric] == 1 for metric in ("AUC", "AOPC", "LOdds")), places["Comp."] == number]
    detail = ", ".join(f"{metric} {place}" for metric, place in places.items())
    return verdict(passed, t["mean"]), f"place of IG among {number}: {detail}"


def _attention_is_better(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["estimates"].query("metric == 'SaCo' and explainer != @RANDOM").set_index("explainer")["mean"]
    of = t.loc[list(ATTENTION)]
    rest = t.drop(list(ATTENTION)).mean()
    evidence = f"mean SaCo of the attention-based {_signed(of.mean())}, of the others {_signed(rest)}; " + ", ".join(
        f"{name} {_signed(value)}" for name, value in of.items()
    )
    return verdict([of.mean() > rest, of.idxmin() == "Raw Attention"], t), evidence


def _effect(step: str):
    """Whether a step of the ablation raises SaCo, at both settings of the other."""

    def test(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
        t = tables["effects"]
        t = t[t["step"] == step]
        passed = (t["low"] > 0).tolist()
        detail = "; ".join(f"{row['given']}: {_interval(row)}" for _, row in t.iterrows())
        return verdict(passed, t["mean"]), detail

    return test


def _gradient_matters_more(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    mean = tables["effects"].groupby("step")["mean"].mean()
    evidence = f"gradient {_signed(mean['gradient'])}, aggregation {_signed(mean['aggregation'])}"
    return verdict([mean["gradient"] > mean["aggregation"]], mean), evidence


def _falls_with_groups(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["estimates"].pivot(index="explainer", columns="groups", values="mean")
    change = t[t.columns.max()] - t[t.columns.min()]
    falls = int((change < 0).sum())
    evidence = f"from K = {t.columns.min()} to {t.columns.max()} SaCo falls for {falls} of {len(t)} explainers"
    return verdict([falls > len(t) / 2], change), evidence


def _who_falls(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["estimates"].pivot(index="explainer", columns="groups", values="mean")
    change = (t[t.columns.max()] - t[t.columns.min()]).drop(RANDOM, errors="ignore")
    steep, steady = ["Partial LRP", "Transformer Attribution", "Transformer-MM"], ["IG", "ATTCAT"]
    passed = [change[name] < change.drop(steep).min() for name in steep]
    passed += [abs(change[name]) <= change.abs().median() for name in steady]
    detail = ", ".join(f"{name} {_signed(change[name])}" for name in steep + steady)
    return verdict(passed, change), f"change of SaCo: {detail}; median {_signed(change.median())}"


def _scale(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["scale"].pivot(index="weight", columns="change", values="largest")
    difference = t.loc["difference"].max()
    evidence = f"largest change of a SaCo by scaling or shifting all scores: {difference:.1e}"
    return verdict([difference < 1e-6], [difference]), evidence


def _ratio(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    t = tables["scale"].pivot(index="weight", columns="change", values="largest").loc["ratio"]
    evidence = ", ".join(f"{change}: {value:.1e}" for change, value in t.items())
    passed = [t["scaled"] > 1e-3, t["shifted"] > 1e-3]
    return verdict(passed, t), f"largest change with the ratio, {evidence}"


RELATIONS = [
    Claim(
        "saco-weak",
        _PAPER,
        "Section 5.1, Figure 2",
        "SaCo's ranking correlates only weakly (0.18 to 0.22) with that of each existing metric.",
        _weak_relation,
    ),
    Claim(
        "saco-others-agree",
        _PAPER,
        "Section 5.1, Figure 2",
        "The existing metrics correlate far more with each other (0.48): they measure overlapping things.",
        _others_agree,
    ),
]

RANDOMNESS = [
    Claim("saco-random-zero", _PAPER, "Section 5.2", "SaCo of Random Attribution is zero.", _random_is_zero),
    Claim(
        "saco-tells",
        _PAPER,
        "Section 5.2, Figure 4",
        "Most explainers have a positive SaCo, so that it tells them from Random.",
        _saco_tells,
    ),
    Claim(
        "saco-random-real",
        _PAPER,
        "Section 5.2, Figure 4",
        "Each existing metric puts Random above some real explainer.",
        _random_among_the_real,
    ),
    Claim(
        "saco-order",
        _PAPER,
        "Section 5.2",
        "Cumulative metrics depend on the order: IG is the best by AUC, AOPC and LOdds, and the worst by Comp.",
        _order_matters,
    ),
    Claim(
        "saco-attention",
        _PAPER,
        "Section 5.3",
        "Attention-based explainers are more faithful than the others, except Raw Attention.",
        _attention_is_better,
    ),
]

ABLATION = [
    Claim(
        "saco-gradient",
        _PAPER,
        "Section 5.4, Table 1",
        "The gradient makes attention more faithful, with and without aggregation over the layers.",
        _effect("gradient"),
    ),
    Claim(
        "saco-aggregation",
        _PAPER,
        "Section 5.4, Table 1",
        "Aggregation over the layers makes attention more faithful, with and without the gradient.",
        _effect("aggregation"),
    ),
    Claim(
        "saco-gradient-more",
        _PAPER,
        "Section 5.4, Table 1",
        "The gradient matters more than aggregation.",
        _gradient_matters_more,
    ),
]

GROUPS = [
    Claim("saco-groups", _PAPER, "Section 5.5, Table 2", "With more groups most scores fall.", _falls_with_groups),
    Claim(
        "saco-groups-who",
        _PAPER,
        "Section 5.5, Table 2",
        "Partial LRP, Transformer Attribution and Transformer-MM fall most; IG and ATTCAT hardly change.",
        _who_falls,
    ),
    Claim(
        "saco-scale",
        _PAPER,
        "Section 5.5",
        "SaCo does not depend on the scale of the scores.",
        _scale,
    ),
    Claim(
        "saco-ratio",
        _PAPER,
        "Section 5.5",
        "With ratios in place of differences it would depend on the scale.",
        _ratio,
    ),
]
