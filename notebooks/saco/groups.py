# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,mystnb,-papermill
#     notebook_metadata_filter: kernelspec,jupytext
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Groups, weights, precision, cost
#
# *How much of a SaCo is the explanation, and how much is how SaCo was computed?* Four choices: the number of groups $K$
# (the paper's Table 2), the weight of a pair (its section 5.5), the number format of the network's answers, and the program.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "cifar10"
networks = ["vit"]  # "vit": the small one of the next lines; else names of timm, see faithlab.zoo.transformers
dim = 64  # width of the small network
depth = 6
heads = 4
patch = 4
epochs = 3  # of training
rate = 0.002  # peak learning rate
decay = 1e-5
batch = 128
augment = True
train_limit = 12000  # training images; None: all
weights = None  # a folder with weights of timm's networks; None: timm's own, for ImageNet
path = None  # a folder with ImageNet photographs, for imagenet-folder
images = 64  # test images to explain
numbers_of_groups = [5, 10, 20]  # K
steps = 16  # of Integrated Gradients
resamples = 1000  # of the images, for the intervals
timed_images = 32  # images of the timing
width = 16  # of the ResNet-9 that is timed beside the Vision Transformer
repeats = 3  # of the timing, in turn; the median is reported
training = "bfloat16"  # precision of training
seed = 0

# %% tags=["hide-input"]
import time

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import engine, references
from faithlab.explainers import explain
from faithlab.metrics.saco import Groups, coefficient, influences
from faithlab.metrics.saco import saco as saco_of
from faithlab.study import claims, figures, published, saco, tables
from faithlab.study.results import Run, recorded
from faithlab.zoo import datasets, models

figures.theme()
run = Run("saco/groups", globals())

# %% tags=["hide-input"]
recipe = saco.small_vit(
    data,
    dim=dim,
    depth=depth,
    heads=heads,
    patch=patch,
    train_limit=train_limit,
    epochs=epochs,
    rate=rate,
    decay=decay,
    batch=batch,
    augment=augment,
    precision=training,
    seed=seed,
)
subjects = saco.subjects(networks, data, images, recipe, weights=weights, path=path)
attributions = {s.name: saco.attribute(s, saco.EXPLAINERS, steps=steps, seed=seed) for s in subjects}
run.save(saco.accuracies(subjects), "networks")
Markdown(saco.introduced(subjects, recipe, recorded("saco/groups", "networks")))

# %% [markdown]
# ## The number of groups
#
# Few groups are large: each holds many pixels, and the order of a few large losses should be easier to get right. Many groups
# ask for more, and ask with smaller differences. *Published* is the paper's Table 2, a mean over ViT-B, ViT-L and DeiT-B on
# ImageNet.

# %% tags=["hide-input"]
found, rows = {}, []
for s in subjects:
    score = saco.scorer(s)
    for name, attribution in attributions[s.name].items():
        for k in numbers_of_groups:
            found[s.name, name, k] = influences(score, attribution, k)
            value = coefficient(found[s.name, name, k])
            rows.append(saco.tidy(value, network=s.name, explainer=name, groups=k))
scores = pd.concat(rows, ignore_index=True)
run.save(scores, "scores")
estimates = saco.estimates(scores, by=["explainer", "groups"], resamples=resamples, seed=seed)
run.save(estimates, "estimates")
kept = recorded("saco/groups", "estimates")
printed = published.load("saco_groups").rename(columns={"saco": "mean"})


def as_table(frame):
    """Estimates with their groups as words, means only."""
    return frame.assign(K=[f"K = {k}" for k in frame["groups"]])[["explainer", "K", "mean", "missing"]]


sources = {
    "published": as_table(printed.assign(missing=0)),
    "recorded": as_table(kept.frame) if kept else None,
    "this build": as_table(estimates),
}
tables.styled(tables.side_by_side(sources, rows=["explainer"], columns=["K"], order=list(saco.EXPLAINERS)))

# %% mystnb={"figure": {"caption": "SaCo of each explainer against the number of groups. Points: means over the images; bars: 95 % bootstrap intervals. The grey line in each panel is Random.", "name": "saco-groups"}, "image": {"alt": "Ten small line charts, one per explainer: number of groups against SaCo, with Random in grey."}} tags=["hide-input"]
figure, grid = plt.subplots(2, 5, figsize=(8.4, 4), sharex=True, sharey=True)
chance = estimates[estimates["explainer"] == saco.RANDOM]
for axes, name in zip(grid.flat, saco.EXPLAINERS, strict=True):
    of = estimates[estimates["explainer"] == name]
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.plot(chance["groups"], chance["mean"], color="0.65")
    error = [of["mean"] - of["low"], of["high"] - of["mean"]]
    axes.errorbar(of["groups"], of["mean"], error, color=figures.COLOURS["SaCo"], marker="o", markersize=4, capsize=2)
    axes.set_xscale("log")
    axes.set_xticks(numbers_of_groups, numbers_of_groups)
    axes.minorticks_off()
    axes.set_title(name, fontsize="small")
for axes in grid[:, 0]:
    axes.set_ylabel("SaCo")
for axes in grid[-1]:
    axes.set_xlabel("groups")
figures.show(figure)

# %% [markdown]
# ## Differences or ratios
#
# A pair of groups counts with the difference of its saliences, $s_i - s_j$. The paper also considers the ratio
# $s_i / s_j$, and rejects it: it "violates the property of scale-invariance". Below every attribution is multiplied by a
# number, and shifted so that it lies in [0, 1], as maps often are for display. A metric of faithfulness should not care:
# the explanation says the same.

# %% tags=["hide-input"]
K = 10 if 10 in numbers_of_groups else numbers_of_groups[0]


def changes(ratio):
    """The largest change of a coefficient when all scores are scaled, and when they are brought into [0, 1]."""
    largest, undefined = {"scaled": 0.0, "shifted": 0.0}, 0
    for s in subjects:
        for name, attribution in attributions[s.name].items():
            salience, drop = found[s.name, name, K]
            plain = coefficient(Groups(salience, drop), ratio=ratio)
            low, high = attribution.double().amin(1, keepdim=True), attribution.double().amax(1, keepdim=True)
            size = attribution.shape[1] / K
            versions = {"scaled": salience * 1000, "shifted": (salience - low * size) / (high - low)}
            for change, version in versions.items():
                difference = (coefficient(Groups(version, drop), ratio=ratio) - plain).abs()
                undefined += int(difference.isnan().sum())
                largest[change] = max(largest[change], difference.nan_to_num(0).max().item())
    return [("ratio" if ratio else "difference", change, value, undefined) for change, value in largest.items()]


scale = pd.DataFrame(changes(False) + changes(True), columns=["weight", "change", "largest", "undefined"])
run.save(scale, "scale")
shown = scale.pivot(index="weight", columns="change", values="largest").rename(
    columns={"scaled": "× 1000", "shifted": "brought into [0, 1]"}
)
tables.styled(shown.map("{:.1e}".format).rename_axis(index=None, columns="largest change of a coefficient"))

# %% tags=["hide-input"]
at = scale.set_index(["weight", "change"])["largest"]
by_ratio = pd.concat(
    [
        saco.tidy(coefficient(found[s.name, name, K], ratio=True), network=s.name, explainer=name)
        for s in subjects
        for name in attributions[s.name]
    ],
    ignore_index=True,
)
ratio_estimates = saco.estimates(by_ratio, by=["explainer"], resamples=resamples, seed=seed)
run.save(ratio_estimates, "ratio")
Markdown(
    "The paper's word is *scale*, but a ratio does not mind a scale: the factor cancels "
    f"(largest change {at['ratio', 'scaled']:.0e}). What it minds is a shift: bringing the same attribution into [0, 1] changes "
    f"a coefficient by up to {at['ratio', 'shifted']:.2f}, where differences change by {at['difference', 'shifted']:.0e}. And it "
    "minds signs: an attribution with negative scores has groups whose salience is near zero or negative, and ratios of "
    "any size and sign. The conclusion stands, with another reason."
)

# %% [markdown]
# ## Precision
#
# SaCo takes the sign of the difference of two losses. Where they are nearly equal, rounding decides. So every SaCo in this
# book is computed in float32; this is what bfloat16, the fast format, would have done to it.

# %% tags=["hide-input"]
rows = []
for s in subjects:
    rough = saco.scorer(s, precision=torch.bfloat16)
    for name, attribution in attributions[s.name].items():
        shift = (coefficient(influences(rough, attribution, K)) - coefficient(found[s.name, name, K])).cpu()
        rows.append(
            (
                s.name,
                name,
                shift.nanmean().item(),
                shift.abs().nan_to_num(0).max().item(),
                (shift.abs() > 1e-6).double().mean().item(),
            )
        )
precision = pd.DataFrame(rows, columns=["network", "explainer", "mean shift", "largest shift", "images changed"])
run.save(precision, "precision")
per_explainer = precision.groupby("explainer", sort=False)[["mean shift", "largest shift", "images changed"]].mean()
tables.styled(
    pd.DataFrame(
        {
            "mean shift": per_explainer["mean shift"].map("{:+.4f}".format),
            "largest shift": per_explainer["largest shift"].map("{:.3f}".format),
            "images changed": per_explainer["images changed"].map("{:.0%}".format),
        }
    ).rename_axis(None)
)

# %% tags=["hide-input"]
worst = precision["mean shift"].abs().max()
Markdown(
    f"In bfloat16 {precision['images changed'].mean():.0%} of the coefficients change, a single one by up to "
    f"{precision['largest shift'].max():.2f}, the mean over {images} images by up to {worst:.3f}. For comparison, the widest "
    f"of the intervals above is {(estimates['high'] - estimates['low']).max():.2f} wide."
)

# %% [markdown]
# ## Cost
#
# A SaCo is $K + 1$ forwards for an image. The plain loop takes one image and one group at a time, as Algorithm 1 is written.
# The engine is given all images and groups at once, in float32 as this book does it, and in the fastest format that the
# processor computes natively. *Bare forwards* are the same number of forwards in full batches and nothing else: what a
# processor takes for these is most of what can be had in that format. All run in turn, on the same threads; the weights do not matter for the time.

# %% tags=["hide-input"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
native = engine.native_precision(device)
timed = datasets.load("cifar10", "test").take(slice(timed_images))
x = timed.model_inputs().to(device)
pixels = timed.features().to(device)
torch.manual_seed(seed)
built = {
    "ResNet-9": models.build("resnet9", width=width),
    "Vision Transformer": models.build("vit", dim=dim, depth=depth, heads=heads, patch=patch),
}


def seconds(work):
    """Wall time of a function call, the device's queue included."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


@torch.inference_mode()
def in_a_loop(network, target, attribution):
    """Algorithm 1, one image and one group at a time."""
    coefficients = []
    for image, label, scores_of in zip(x, target.tolist(), attribution, strict=True):
        order = scores_of.argsort(descending=True)
        mean = image.mean(dim=(1, 2), keepdim=True)
        whole = network(image[None]).softmax(1)[0, label]
        salience, drop = [], []
        for i in range(K):
            group = order[i * len(order) // K : (i + 1) * len(order) // K]
            removed = torch.zeros(len(order), dtype=torch.bool, device=device)
            removed[group] = True
            masked = torch.where(removed.view(image.shape[1:]), mean, image)
            salience.append(scores_of[group].sum().item())
            drop.append((whole - network(masked[None]).softmax(1)[0, label]).item())
        signed = total = 0.0
        for i in range(K - 1):
            for j in range(i + 1, K):
                weight = salience[i] - salience[j]
                signed += weight if drop[i] >= drop[j] else -weight
                total += abs(weight)
        coefficients.append(signed / total)
    return coefficients


def scorer(network, target, precision):
    """The engine's score, which is made once for a network and its images."""
    return engine.scorer(network, x, target, segments=pixels, reference=references.mean, precision=precision)


@torch.inference_mode()
def bare(runner, precision, count):
    """So many forwards in full batches."""
    full = x.to(precision).contiguous(memory_format=torch.channels_last)
    for start in range(0, count, len(full)):
        runner(full[: count - start])


short = str(native).removeprefix("torch.")


def timed_on(network):
    """Seconds of everything, in turn, and the largest difference between the loop's coefficients and the engine's."""
    with torch.inference_mode():
        target = network(x).argmax(1)
    attribution = explain("saliency", network, x, target, pixels)
    count = timed_images * (K + 1)
    exact, fast = engine.prepare(network, x, torch.float32), engine.prepare(network, x, native)
    score_exact, score_fast = scorer(network, target, torch.float32), scorer(network, target, native)
    work = {
        "plain loop, float32": lambda: in_a_loop(network, target, attribution),
        "engine, float32": lambda: saco_of(score_exact, attribution, K),
        "bare forwards, float32": lambda: bare(exact, torch.float32, count),
        f"engine, {short}": lambda: saco_of(score_fast, attribution, K),
        f"bare forwards, {short}": lambda: bare(fast, native, count),
    }
    difference = torch.tensor(work["plain loop, float32"]()) - work["engine, float32"]().cpu()  # and a warm-up
    for name in (f"engine, {short}", f"bare forwards, {short}"):
        work[name]()
    taken = [(what, repeat, seconds(job)) for repeat in range(repeats) for what, job in work.items()]
    return taken, difference.abs().max().item()


rows, agree = [], {}
for name, network in built.items():
    taken, agree[name] = timed_on(network.to(device).eval())
    rows += [(name, *entry) for entry in taken]
times = pd.DataFrame(rows, columns=["network", "what", "repeat", "seconds"])
run.save(times, "times")
median = times.groupby(["network", "what"], sort=False)["seconds"].median().unstack(0)
paired = times.pivot(index=["network", "repeat"], columns="what", values="seconds")
speedup = paired.rdiv(paired["plain loop, float32"], axis=0).groupby("network").median().T
table = pd.concat(
    {"milliseconds per image": 1000 * median / timed_images, "times as fast as the loop": speedup.loc[median.index]},
    axis=1,
)
cost = median.T.melt(var_name="what", value_name="seconds", ignore_index=False).reset_index()
run.save(cost.assign(speedup=[speedup.loc[row["what"], row["network"]] for _, row in cost.iterrows()]), "cost")
tables.styled(table.map("{:.2f}".format).rename_axis(index=None, columns=[None, None]))

# %% tags=["hide-input"]
fastest = f"engine, {short}"
lines = []
for name in built:
    like, over = speedup.loc["engine, float32", name], speedup.loc[fastest, name]
    bound = speedup.loc[f"bare forwards, {short}", name]
    lines.append(
        f"**{name}**: the engine is {like:.1f} times as fast as the loop in the same format, {over:.1f} times in {short}, where "
        f"it takes {bound / over:.2f} times as long as bare forwards (a number below 1 is the noise of the clock)."
    )
Markdown(
    " ".join(lines)
    + f" The loop and the engine compute the same coefficients up to {max(agree.values()):.0e}; they differ where rounding turns "
    "the sign of two losses that are nearly equal."
)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(saco.GROUPS, {"estimates": estimates, "scale": scale})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
