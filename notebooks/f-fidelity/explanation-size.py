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
# # How large is an explanation?
#
# An attribution gives every pixel a score, but it does not say where the explanation ends. F-Fidelity promises an
# answer: the curve of $\mathrm{FFid}^+(s)$ over the explanation size $s$ changes direction where the explanation ends.
# This page checks the law behind the promise on a classifier that can be solved on paper, and then reads sizes off
# networks whose true explanation is known: colored MNIST, where the digit covers a chosen share of the image (the
# paper's Figure 4).

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
digit_shares = [0.1, 0.15, 0.2, 0.25, 0.3]  # of the image that the digit covers
betas = [0.025, 0.05, 0.1, 0.15, 0.2]  # caps on the removed share, all with the first alpha
alphas = [0.5, 0.3, 0.4, 0.75, 1.0]  # the others with the middle cap
middle_beta = 0.1
size = 28  # of the images, in pixels
train_limit = 8000  # training images
epochs = 3
tuning_epochs = 2
images = 80  # test images
draws = 4  # random subsets per image, setting and size
step = 0.03  # between the sizes of a curve, as a share of the image
longest = 0.6  # the largest size
grid = 0.01  # resolution of the size that is read
resamples = 200
explainers = ["input-x-gradient", "gradcam"]
tier_classifiers = 30  # random classifiers that are solved on paper
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import dataclasses

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import draws as counter
from faithlab import engine, masks, readouts, segments
from faithlab.explainers import explain
from faithlab.metrics import tiers
from faithlab.metrics.fidelity import fidelity
from faithlab.metrics.size import Setting, explanation_size, removed
from faithlab.study import claims, f_fidelity, figures, tables
from faithlab.study.results import Run
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe, accuracy, trained

figures.theme()
run = Run("f-fidelity/explanation-size", globals())
sizes = torch.arange(1, round(longest / step) + 1, dtype=torch.float64) * step
candidates = torch.arange(2, round(longest / grid) + 1, dtype=torch.float64) * grid
settings = [Setting(alphas[0], beta) for beta in betas] + [Setting(alpha, middle_beta) for alpha in alphas[1:]]

# %% [markdown]
# ## The law, on a classifier solved on paper
#
# Let $c$ of the $d$ features carry the explanation. At size $s$, F-Fidelity removes $m(s) = \min(\alpha s, \beta d)$ of
# the top $s$ features at random. A perfect ranking puts $\min(s, c)$ explanation features among these, so the number that
# is removed from the explanation is hypergeometric with mean
#
# $$
# \mathbb{E}[\text{removed}] = m(s) \cdot \frac{\min(s, c)}{s} .
# $$
#
# It rises to $\min(c, \beta d / \alpha)$, stays flat to $\max(c, \beta d / \alpha)$, and falls from there (Theorem 1).
# The knee at $\beta d / \alpha$ moves with the setting. The knee at $c$ does not: it is the explanation size.
#
# To check this law we draw random classifiers whose answer depends only on how many features of each *influence tier*
# are kept. For them $\mathrm{FFid}^+$ is a finite sum over the multivariate hypergeometric distribution. The Monte-Carlo
# metric must agree with it to sampling error.

# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(seed)


def uniform(low, high):
    """A random number for the next classifier."""
    return low + (high - low) * torch.rand(1, generator=generator).item()


def random_tiers(features=60):
    """Sizes of two or three influence tiers, most influential first, and a response that grows with what is kept."""
    first = int(uniform(6, 20))
    sizes_ = [first, features - first] if uniform(0, 1) < 0.5 else [first, 15, features - first - 15]
    power, weight = uniform(0.5, 2.5), uniform(0.0, 0.1)

    def response(kept):
        top = 1 - kept[..., 0] / sizes_[0]
        return 0.95 - 0.8 * top**power - weight * (1 - kept[..., 1] / sizes_[1])

    return sizes_, response


rows = []
for classifier in range(tier_classifiers):
    tier_sizes, response = random_tiers()
    setting = Setting(uniform(0.3, 1.0), uniform(0.05, 0.3))
    tier = torch.repeat_interleave(torch.arange(len(tier_sizes)), torch.tensor(tier_sizes)).expand(64, -1)
    estimate = fidelity(
        tiers.scorer(tier, response), -tier.float(), sizes, **setting._asdict(), draws=50, seed=classifier
    ).mean()
    exact = tiers.expected_fidelity(tier_sizes, response, sizes, **setting._asdict())
    rows.append(
        pd.DataFrame(
            {
                "classifier": classifier,
                "tiers": str(tier_sizes),
                **setting._asdict(),
                "size": sizes,
                "exact": exact,
                "measured": estimate.value,
                "error": estimate.error,
            }
        )
    )
theorem = pd.concat(rows, ignore_index=True)
run.save(theorem, "theorem")
z = ((theorem["measured"] - theorem["exact"]) / theorem["error"])[theorem["error"] > 1e-9]
Markdown(
    f"Over {tier_classifiers} random classifiers and {len(theorem)} points the Monte-Carlo metric misses the closed form "
    f"by {(theorem['measured'] - theorem['exact']).abs().max():.4f} at most. At the {len(z)} points where something is "
    f"random the miss is {z.std():.2f} standard errors in the root mean square, and {z.abs().max():.1f} at the worst."
)

# %% mystnb={"figure": {"caption": "Three random tier classifiers: the closed form (line) and the Monte-Carlo metric with two standard errors (points). The dashed lines are the size of the first tier and the knee that the setting makes.", "name": "ff-size-theorem"}, "image": {"alt": "Three line charts of FFid+ against explanation size; measured points lie on the exact curves, which rise, stay flat and fall between the dashed lines."}} tags=["hide-input"]
figure, grid_axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
for axes, (_, part) in zip(grid_axes, theorem.groupby("classifier"), strict=False):
    axes.plot(part["size"], part["exact"], color=figures.COLOURS["F-Fidelity"])
    axes.errorbar(
        part["size"], part["measured"], 2 * part["error"], fmt="o", markersize=3.5, color=figures.COLOURS["R-Fidelity"]
    )
    first = part.iloc[0]
    tier_sizes = [int(n) for n in first["tiers"].strip("[]").split(",")]
    figures.mark(axes, tier_sizes[0] / sum(tier_sizes), "$c$")
    if (knee := first["cap"] / first["alpha"]) < longest:
        figures.mark(axes, knee, r"$\beta/\alpha$", height=0.12)
    axes.set(xlabel="explanation size (share)", title=f"tiers {first['tiers']}")
grid_axes[0].set_ylabel("FFid+")
figures.show(figure)

# %% [markdown]
# ## Networks with a known explanation
#
# In colored MNIST the digit is everything: the background is black, and black is what removed pixels become. Each digit
# is scaled until it covers exactly the wanted share of the image. For every share a network with three convolutional
# layers is trained, and fine-tuned on random masks up to the largest $\beta$ of the sweep, so that every cap of the
# sweep is in its distribution and all curves of a share come from one network.

# %% tags=["hide-input"]
networks, tests = {}, {}
rows = []
for share in digit_shares:
    made = {"share": share, "size": size, "seed": seed}
    original = Recipe(
        data="colored-mnist",
        data_options=made | {"limit": train_limit},
        model="cnn3",
        epochs=epochs,
        batch=64,
        rate=5e-3,
        seed=seed,
    )
    tuned = dataclasses.replace(original, epochs=tuning_epochs, rate=2e-3, mask_share=max(betas), start=original)
    networks[share] = trained(tuned)
    test = datasets.load("colored-mnist", "test", **made, limit=max(images, 1000))
    rows.append((share, accuracy(trained(original), test), accuracy(networks[share], test)))
    tests[share] = test.take(slice(images))
accuracies = pd.DataFrame(rows, columns=["share", "original", "fine-tuned"])
run.save(accuracies, "accuracies")
tables.styled(
    accuracies.set_index("share").map("{:.1%}".format).rename(index="{:.2f}".format).rename_axis("digit share")
)

# %% mystnb={"figure": {"caption": "Colored MNIST: the same digits covering different shares of the image. The pixels of the digit are the true explanation.", "name": "ff-size-digits"}, "image": {"alt": "Rows of coloured handwritten digits on black, one row for each share of the image that the digit covers."}} tags=["hide-input"]
figure, grid_axes = plt.subplots(len(digit_shares), 8, figsize=(6.4, 0.85 * len(digit_shares)), squeeze=False)
for row, share in zip(grid_axes, digit_shares, strict=True):
    for axes, picture in zip(row, tests[share].inputs, strict=False):
        axes.imshow(picture.permute(1, 2, 0))
        axes.axis("off")
    row[0].set_title(f"{share:.0%}", loc="left", fontsize="small", pad=2)
figures.show(figure)

# %% [markdown]
# ## Curves with plateaus
#
# The *oracle* attribution is the digit's mask, with the pixels of the digit in random order, as are those of the
# background. The measured metric is the paper's: the share of images whose class is lost.

# %% tags=["hide-input"]
pixels = segments.pixels(size, size)
rows, found = [], []
for share, network in networks.items():
    x, y = tests[share].model_inputs(), tests[share].labels
    device = next(network.parameters()).device
    x, y = x.to(device), y.to(device)
    fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
    # Half a random number keeps every pixel of the digit above every pixel of the background.
    in_random_order = counter.uniform(seed, torch.arange(len(x)), torch.tensor([0]), pixels.numel())[:, 0].to(x) / 2
    attributions = {"oracle": tests[share].masks.flatten(1).to(device) + in_random_order}
    for name in explainers:
        attributions[name] = explain(name, network, x, y, pixels).abs()
    score = engine.scorer(network, x, y, segments=pixels, readout=readouts.hit, precision=fast)
    for name, attribution in attributions.items():
        estimates = [
            fidelity(score, attribution, sizes, **setting._asdict(), draws=draws, seed=seed) for setting in settings
        ]
        curves = torch.stack([estimate.value for estimate in estimates], dim=1)  # [images, settings, sizes]
        read = explanation_size(
            curves, sizes, settings, pixels.numel(), candidates=candidates, resamples=resamples, seed=seed
        )
        # Of the pixels ranked first, as many as the digit has, how many are the digit's?
        first = masks.order(attribution)[:, : int(masks.counts([share], pixels.numel()))].cpu()
        overlap = tests[share].masks.flatten(1).gather(1, first).double().mean().item()
        found.append((share, name, read.fraction, read.low, read.high, overlap))
        rows.extend(
            pd.DataFrame(
                {
                    "share": share,
                    "attribution": name,
                    **setting._asdict(),
                    "size": sizes,
                    "ffid": estimate.mean().value.cpu(),
                    "error": estimate.mean().error.cpu(),
                }
            )
            for setting, estimate in zip(settings, estimates, strict=True)
        )
measured = pd.concat(rows, ignore_index=True)
found = pd.DataFrame(found, columns=["share", "attribution", "size", "low", "high", "overlap"])
run.save(measured, "curves")
run.save(found, "sizes")
Markdown(
    f"Each of the {len(measured)} points is the mean over {images} images and {draws} draws; the largest Monte-Carlo "
    f"standard error is {measured['error'].max():.3f}."
)

# %% mystnb={"figure": {"caption": "FFid+ with the oracle attribution, one panel for each true digit share (dashed line), one curve for each cap beta. The knee that the cap makes moves from curve to curve; the knee at the dashed line stays.", "name": "ff-size-plateaus"}, "image": {"alt": "Five line charts of FFid+ against explanation size for five values of beta; all curves start to fall, or stop rising, at the dashed line of the true share."}} tags=["hide-input"]
oracle = measured[(measured["attribution"] == "oracle") & (measured["alpha"] == alphas[0])]
grid_ = sns.relplot(
    oracle,
    x="size",
    y="ffid",
    hue="cap",
    style="cap",
    palette="viridis",
    markers=True,
    dashes=False,
    col="share",
    col_wrap=3,
    kind="line",
    errorbar=None,
    height=2.5,
    aspect=1.2,
)
for share, axes in grid_.axes_dict.items():
    figures.mark(axes, share, "digit")
grid_.set_titles("digit share {col_name:.2f}").set_axis_labels("explanation size (share of pixels)", "FFid+")
grid_.legend.set_title("cap β")
plt.close(grid_.figure)
grid_.figure

# %% [markdown]
# ## Reading the size
#
# Under the law above every curve is one function $h$ of a single number, the expected count of digit pixels that are
# removed, provided the right $c$ is used to compute that number. `explanation_size` tries every $c$ and keeps the one under
# which all curves fall best on one increasing $h$. The interval comes from resampling the images.

# %% mystnb={"figure": {"caption": "The oracle's curves for one digit share, drawn against the expected number of digit pixels removed: with the size too small, right, and too large. Only the right size makes them one curve.", "name": "ff-size-collapse"}, "image": {"alt": "Three scatter plots of FFid+ against the expected number of removed digit pixels; points scatter for wrong sizes and collapse onto one rising curve for the right one."}} tags=["hide-input"]
middle = digit_shares[len(digit_shares) // 2]
part = measured[(measured["attribution"] == "oracle") & (measured["share"] == middle)]
figure, grid_axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True)
for axes, tried in zip(grid_axes, (0.6 * middle, middle, 1.5 * middle), strict=True):
    for (alpha, cap), curve in part.groupby(["alpha", "cap"]):
        counts = masks.counts(curve["size"].to_numpy(copy=True), pixels.numel())
        tried_pixels = int(masks.counts([tried], pixels.numel()))
        gone = removed(counts, masks.removals(counts, pixels.numel(), alpha, cap), tried_pixels)
        axes.plot(gone, curve["ffid"], "o", markersize=3.5, label=f"α {alpha:g}, β {cap:g}")
    axes.set(
        title=f"size {tried:.2f}" + (" (true)" if tried == middle else ""),
        xlabel="digit pixels removed",
    )
grid_axes[0].set_ylabel("FFid+")
grid_axes[-1].legend(fontsize="x-small", bbox_to_anchor=(1, 1), loc="upper left")
figures.show(figure)

# %% mystnb={"figure": {"caption": "The size that is read off the curves against the true share of the digit, with 95 % bootstrap intervals. The band is 15 % around the truth.", "name": "ff-size-read"}, "image": {"alt": "Scatter plot of read against true explanation sizes: the oracle lies on the diagonal, real explainers scatter around it."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.6, 4.6))
line = torch.tensor([0.0, 1.15 * max(digit_shares)])
axes.fill_between(line, 0.85 * line, 1.15 * line, color="0.9", label="15 % around the truth")
axes.plot(line, line, color=figures.COLOURS["truth"], linestyle="--", linewidth=1)
for shift, (name, part) in zip((0, -0.004, 0.004, 0.008), found.groupby("attribution", sort=False), strict=False):
    # An interval that a discrete estimate lies outside of would give a bar of negative length.
    bars = [(part["size"] - part["low"]).clip(lower=0), (part["high"] - part["size"]).clip(lower=0)]
    axes.errorbar(part["share"] + shift, part["size"], bars, fmt="o", capsize=3, label=name)
axes.set(xlabel="true size (share of the image)", ylabel="read size (share of the image)", xlim=(0, line[1].item()))
axes.legend()
figures.show(figure)

# %% tags=["hide-input"]
report = found.assign(
    **{
        "off by": (found["size"] - found["share"]) / found["share"],
        "size (interval)": [
            "missing" if pd.isna(size_) else f"{size_:.2f} ({low:.2f} – {high:.2f})"
            for size_, low, high in found[["size", "low", "high"]].to_numpy()
        ],
    }
)
shown = report.assign(**{"off by": report["off by"].map("{:+.0%}".format).str.replace("-", "−")})
table = shown.pivot(index="share", columns="attribution", values=["size (interval)", "off by"])
table = table.swaplevel(axis=1).reindex(
    columns=[(a, q) for a in found["attribution"].unique() for q in ("size (interval)", "off by")]
)
table.columns.names = [None, None]
tables.styled(table.rename(index="{:.2f}".format).rename_axis("digit share"))

# %% tags=["hide-input"]
within = report["off by"].abs() <= 0.15  # a missing size is not within
lines = [
    f"With the oracle **{within[report['attribution'] == 'oracle'].sum()} of {len(digit_shares)}** sizes are within 15 % "
    "of the true share."
]
for name in explainers:
    of_name = report["attribution"] == name
    mean = report[of_name]["off by"].mean()
    lines.append(
        f"With *{name}* (absolute values) {within[of_name].sum()} of {len(digit_shares)} are; on average the size is "
        f"{abs(mean):.0%} too {'small' if mean < 0 else 'large'}, and of the pixels that it "
        f"ranks first, as many as the digit has, {report[of_name]['overlap'].mean():.0%} are the digit's."
    )
Markdown(" ".join(lines))

# %% [markdown]
# Two things take a real explainer away from the law. Where few of its first pixels are the digit's, pixels of the background
# mix in before the digit is used up, and the knee is blurred. Where nearly all are, it still puts the pixels of the digit in
# an order of its own, so that the digit is not one tier but many; Theorem 1 promises the size of the *first* tier only.

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(f_fidelity.SIZE, {"sizes": found, "theorem": theorem})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
