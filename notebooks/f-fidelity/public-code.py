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
# # The paper and its public code
#
# In a dozen places the authors' code does something else than their paper says. *Which of them matter?* Each that can be switched on
# is switched on here, alone, and the same degraded explanations of the same images are ranked again; at the end all are on
# together. The list itself, with what we do and why, is on [](../../book/f-fidelity/deviations).

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = "cifar10"
width = 16  # of ResNet-9; the paper uses 64
epochs = 3  # of training
tuning_epochs = 1  # of fine-tuning on random masks
rate = 0.01  # peak learning rate
tuning_rate = 0.001
decay = 1e-5
schedule = "cycle"
train_limit = None  # training images; None: all
images = 120  # test images to explain; too few to rank the differences, see the profile long
noise_shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
seeds = [0]  # of the noise
size_step = 0.1  # between the explanation sizes, a share of the pixels; 0.05 in the paper
alpha = 0.5
beta = 0.1
draws = 1  # random subsets per image, size and direction; the paper draws 50. More images say more than more draws
smooth_samples = 16  # noisy copies per image in SG-SQ
integration_steps = 8  # of Integrated Gradients under SG-SQ; captum's default is 50
roar_limit = 5000  # training images for ROAR, each explained by each explainer; None: all
roar_epochs = 3
roar_rate = 0.003
roar_fresh = False  # retrain from fresh weights, as the paper does; else from the original's, which needs fewer images
roar_samples = 8  # noisy copies per training image in SG-SQ
resamples = 1000  # of the images, for the intervals
precision = "bfloat16"  # of training and forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import dataclasses

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown
from torch.nn.functional import dropout

from faithlab import engine, masks, readouts, stats
from faithlab.explainers import explain
from faithlab.explainers.degrade import degrade
from faithlab.explainers.refine import smooth
from faithlab.metrics.fidelity import remaining
from faithlab.study import figures, networks, tables
from faithlab.study.results import Run, recorded
from faithlab.study.trials import IDEAL
from faithlab.trials import roar
from faithlab.zoo import datasets
from faithlab.zoo.training import accuracy, trained

figures.theme()
run = Run("f-fidelity/public-code", globals())

# %% [markdown]
# ## Networks and explanations
#
# *Fine-tuning* differs twice. The code's mask indexes a flat three-channel picture with the number of a pixel, so that only the
# first channel is masked. And it always removes exactly $\lfloor \beta d \rfloor$ pixels, where the paper draws a number up to it.
#
# *ROAR* differs once, and for good. The number of pixels to remove is a share of the *first dimension* of the explanation: a map
# of three channels loses at most 2 of its 3072 values, a map of one channel nothing, a map without channels 31 of 1024. Its "retrained" network is trained on
# whole images.
#
# *SG-SQ* differs in kind. The code squares noisy *Integrated Gradients*: 10 copies, with noise of standard deviation 1 after
# normalisation, here a quarter of an image's range. The paper's text speaks of gradients.

# %% tags=["hide-input"]
recipes = networks.pair(
    data,
    "resnet9",
    {"width": width},
    epochs=epochs,
    tuning_epochs=tuning_epochs,
    rate=rate,
    tuning_rate=tuning_rate,
    decay=decay,
    schedule=schedule,
    train_limit=train_limit,
    beta=beta,
    precision=precision,
    seed=seed,
)
tuned = recipes["fine-tuned"]
recipes["first channel"] = dataclasses.replace(tuned, mask_channels=1)
recipes["exact number"] = dataclasses.replace(tuned, mask_exactly=True)
recipes["both"] = dataclasses.replace(tuned, mask_channels=1, mask_exactly=True)
start = None if roar_fresh else recipes["original"]
recipes["ROAR of the code"] = dataclasses.replace(
    recipes["original"], epochs=roar_epochs, rate=roar_rate, limit=roar_limit, start=start
)
models = {name: trained(recipe) for name, recipe in recipes.items()}
device = next(models["original"].parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32
everything = datasets.load(data, "test")
test = everything.take(slice(images))
x, y = test.model_inputs().to(device), test.labels.to(device)
pixels = test.features()

gradients = {"SG-SQ": ("smoothgrad-squared", {"samples": smooth_samples, "seed": seed}), "GradCAM": ("gradcam", {})}
of_integrals = smooth("integrated-gradients", moment=2, samples=10, noise=0.25, seed=seed)
integrals = gradients | {"SG-SQ": (of_integrals, {"steps": integration_steps})}


def maps(network, explainers=gradients):
    """Every explainer's explanations of a network."""
    return {
        label: explain(explainer, models[network], x, y, pixels, **options)
        for label, (explainer, options) in explainers.items()
    }


explained = {
    "original": maps("original"),
    "fine-tuned": maps("fine-tuned"),
    "over IG": maps("original", integrals),
    "as in the code": maps("both", integrals),
}
for label, (explainer, options) in gradients.items():
    options = options | ({"samples": roar_samples} if "samples" in options else {})
    models[f"ROAR {label}"] = roar.retrained(recipes["ROAR of the code"], recipes["original"], explainer, **options)
score = {
    name: engine.scorer(network, x, y, segments=pixels, readout=readouts.hit, precision=fast)
    for name, network in models.items()
}

# %% [markdown]
# ## One difference at a time
#
# | name | the paper | the public code |
# |---|---|---|
# | sizes | the top 5, 10, … % (MoRF), all but the top 5, 10, … % (LeRF) | the top 6, 11, … % (MoRF), the *bottom* 6, 11, … % (LeRF) |
# | up to 100 % | sizes end at 95 % | they end at 100 % |
# | subset | $\alpha s$ features | each with probability $\alpha$ |
# | first channel | fine-tuning masks pixels | one of their three channels |
# | exact number | fine-tuning removes 0 to $\lfloor \beta d \rfloor$ | always $\lfloor \beta d \rfloor$ |
# | explained network | the original, as for the other metrics | the fine-tuned one |
# | SG-SQ over IG | squared noisy gradients | squared noisy Integrated Gradients |
# | random top | the top $s$ by attribution, capped | drawn at random, not capped: the example offered for use as a metric |
# | ROAR | trained on images that lack 0 to 100 % of their pixels | on whole images |
#
# Every variant meets the same images, noise and random subsets. What differs between two rows differs because of the row.

# %% tags=["hide-input"]
sizes = torch.arange(1, round(1 / size_step), dtype=torch.float64) * size_step
longer = torch.cat([sizes, torch.ones(1, dtype=torch.float64)])
code_morf = (sizes + 0.01).clamp(max=1)
capped = {"alpha": alpha, "cap": beta, "draws": draws, "seed": seed}
drawn = {"subset": masks.remove_each_from_top}
# The network asked, the explanations judged, sizes under MoRF and under LeRF, the rest of the definition.
variants = {
    "paper": ("fine-tuned", "original", sizes, sizes, capped),
    "sizes": ("fine-tuned", "original", code_morf, 1 - code_morf, capped),
    "up to 100 %": ("fine-tuned", "original", longer, longer, capped),
    "subset": ("fine-tuned", "original", sizes, sizes, capped | drawn),
    "first channel": ("first channel", "original", sizes, sizes, capped),
    "exact number": ("exact number", "original", sizes, sizes, capped),
    "explained network": ("fine-tuned", "fine-tuned", sizes, sizes, capped),
    "SG-SQ over IG": ("fine-tuned", "over IG", sizes, sizes, capped),
    "random top": ("fine-tuned", None, sizes, sizes, capped | {"cap": None}),
    "all but random top": (
        "both",
        "as in the code",
        (longer + 0.01).clamp(max=1),
        (0.99 - longer).clamp(min=0),
        capped | drawn,
    ),
    "ROAR, paper": ("ROAR {}", "original", sizes, sizes, {}),
    "ROAR, code": ("ROAR of the code", "original", sizes, sizes, {}),
}
REFERENCE = {name: "ROAR, paper" if name.startswith("ROAR") else "paper" for name in variants}


def noisy(judged, label, level, noise_seed):
    """Explanations with a share of noise; for the advertised example a top of its own every time."""
    if judged is None:
        return explain("random", models["original"], x, y, pixels, seed=seed + 1 + level)
    return degrade(explained[judged][label], noise_shares[level], seed=noise_seed)


def hits(variant, label, direction):
    """Whether each image is still recognised, [shares of noise, images, sizes], the mean over draws and seeds."""
    network, judged, of_morf, of_lerf, options = variants[variant]
    at = of_morf if direction == "MoRF" else of_lerf
    asked = score[network.format(label)]
    levels = [
        [
            remaining(asked, noisy(judged, label, level, s), at, direction=direction, **options).value
            for s in (seeds if share else seeds[:1])
        ]
        for level, share in enumerate(noise_shares)
    ]
    return torch.stack([torch.stack(of_level).mean(0) for of_level in levels]).cpu()


answers = {
    (variant, label): {direction: hits(variant, label, direction) for direction in ("MoRF", "LeRF")}
    for variant in variants
    for label in gradients
}

# %% [markdown]
# ## How much each moves
#
# The macro correlation ranks the six shares of noise by the area under their curve, the micro correlation at each size. Intervals
# (95 %) are over the images, for this one network: the same resampled images for all rows, so that the interval of a change
# is that of a paired difference. *Share of the ideal* is the mean of the three correlations, each times its ideal of −1, +1, −1.

# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(seed)
weights = (
    torch.cat([torch.ones(1, images, dtype=torch.float64), stats.bootstrap(images, resamples, generator)]) / images
)
truth = -torch.tensor(noise_shares, dtype=torch.float64)


def correlations(variant, label):
    """Macro and micro correlations of every resample, the first of which is the sample itself: {level: [R, 3]}."""
    at = variants[variant][2]
    curves = {d: torch.einsum("ri,lik->rkl", weights, a).round(decimals=9) for d, a in answers[variant, label].items()}
    areas = {d: stats.auc(c.movedim(1, -1), at).round(decimals=9) for d, c in curves.items()}
    found = {}
    for level, of in {"macro": areas, "micro": curves}.items():
        ideal = truth.expand_as(of["MoRF"])
        pairs = [(of["MoRF"], ideal), (of["LeRF"], ideal), (of["MoRF"], of["LeRF"])]
        found[level] = torch.stack([stats.spearman(*pair) for pair in pairs], dim=1)  # [R, 3] or [R, 3, sizes]
    return {"macro": found["macro"], "micro": found["micro"].nanmean(-1)}


def reached(found):
    """The share of the ideal; a correlation that does not exist has found no order and counts as 0."""
    return (found * torch.tensor(list(IDEAL.values()), dtype=torch.float64)).nan_to_num(0).mean(1)


def interval(values):
    """The sample's value and the 95 % interval of its resamples."""
    low, high = values[1:].nanquantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return {"value": values[0].item(), "low": low, "high": high}


found = {key: correlations(*key) for key in answers}
measured = pd.DataFrame(
    {"difference": variant, "explainer": label, "level": level, "comparison": comparison}
    | interval(quantity)
    | {f"change_{name}": value for name, value in interval(quantity - base).items()}
    for (variant, label), levels in found.items()
    for level, of_level in levels.items()
    for comparison, quantity, base in [
        *zip(IDEAL, of_level.T, found[REFERENCE[variant], label][level].T, strict=True),
        ("share of the ideal", reached(of_level), reached(found[REFERENCE[variant], label][level])),
    ]
)
run.save(measured, "changes")
# Recognised sizes of each image: enough to compute every number of this page again.
run.save(
    pd.DataFrame(
        {"difference": variant, "explainer": label, "direction": direction, "share": share, "image": range(images)}
        | {"area": stats.auc(of_share, variants[variant][2]).tolist()}
        for (variant, label), directions in answers.items()
        for direction, of_direction in directions.items()
        for share, of_share in zip(noise_shares, of_direction, strict=True)
    ).explode(["image", "area"]),
    "scores",
)


# %% tags=["hide-input"]
def shown(frame, of=""):
    """Value and interval as text."""
    value, low, high = (frame[f"{of}{name}"].map("{:+.2f}".format) for name in ("value", "low", "high"))
    text = (value + " [" + low + ", " + high + "]").str.replace("-", "−")
    return text.where(frame[f"{of}value"].notna(), "none")


macro = measured[measured["level"] == "macro"]
columns = [*IDEAL, "share of the ideal"]
table = macro.assign(text=shown(macro)).pivot(index=["explainer", "difference"], columns="comparison", values="text")
tables.styled(table.loc[[(label, name) for label in gradients for name in variants], columns])

# %% mystnb={"figure": {"caption": "How much of the ideal order each difference costs (left of zero) or adds, in macro and in micro correlations, with 95 % intervals over the images. A difference whose interval holds zero cannot be told from none on these images.", "name": "ff-public-code-change"}, "image": {"alt": "Two dot plots with intervals, macro and micro correlations: for each difference between paper and code the change in the share of the ideal, one colour for each explainer."}} tags=["hide-input"]
change = measured[(measured["comparison"] == "share of the ideal") & ~measured["difference"].isin(REFERENCE.values())]
effect = change.groupby("difference")["change_value"].apply(lambda values: values.abs().max()).sort_values()
figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.6), sharey=True)
for axes, level in zip(panels, ("macro", "micro"), strict=True):
    for offset, (label, of_label) in zip(
        (-0.15, 0.15), change[change["level"] == level].groupby("explainer"), strict=True
    ):
        rows = of_label.set_index("difference").loc[effect.index]
        reach = rows[["change_low", "change_high"]].sub(rows["change_value"], axis=0).abs().T.to_numpy()
        places = [place + offset for place in range(len(rows))]
        axes.errorbar(rows["change_value"], places, xerr=reach, fmt="o" if offset < 0 else "s", capsize=2, label=label)
    axes.axvline(0, color="0.4", linewidth=0.8)
    axes.set(
        yticks=range(len(effect)), yticklabels=effect.index, xlabel="change of the share of the ideal", title=level
    )
panels[1].legend(title=None)
figure.supxlabel("change of the share of the ideal", fontsize="medium")
figures.show(figure)

# %% tags=["hide-input"]
certain = change[(change["level"] == "macro") & ((change["change_low"] > 0) | (change["change_high"] < 0))]
widest = ((macro["high"] - macro["low"]) / 2)[macro["difference"] != "random top"].groupby(macro["comparison"]).max()
ranked = certain.assign(size=certain["change_value"].abs()).sort_values("size", ascending=False)
listed = "; ".join(
    f"{row['difference']} with {row['explainer']} {row['change_value']:+.2f} [{row['change_low']:+.2f}, {row['change_high']:+.2f}]"
    for row in ranked.to_dict("records")
).replace("-", "−")
Markdown(
    f"On {images} images "
    + (f"these differences change the macro correlations, largest first: {listed}. " if len(ranked) else "")
    + ("The others" if len(ranked) else "None of the differences")
    + f" cannot be told from none{'' if len(ranked) else ' by the macro correlations'}. "
    "Half the width of the widest interval of a macro correlation is "
    + ", ".join(f"{widest[comparison]:.2f} ({comparison})" for comparison in IDEAL)
    + "."
)

# %% [markdown]
# ## In accuracy
#
# A rank can stay where it is while the number below it moves. The same comparison in the unit of the curves: the accuracy that
# remains for the explanation without noise, averaged over the sizes, and its change against the paper's definition.


# %% tags=["hide-input"]
def mean_accuracy(variant, label, direction):
    """Of every resample, [R]."""
    return weights @ answers[variant, label][direction][0].mean(-1)


accuracies = pd.DataFrame(
    {"difference": variant, "explainer": label, "direction": direction}
    | interval(quantity)
    | {f"change_{name}": value for name, value in interval(quantity - base).items()}
    for variant, label in answers
    for direction in ("MoRF", "LeRF")
    for quantity, base in [
        (mean_accuracy(variant, label, direction), mean_accuracy(REFERENCE[variant], label, direction))
    ]
)
run.save(accuracies, "accuracies")
moved = accuracies[~accuracies["difference"].isin(REFERENCE.values())]
table = moved.assign(text=shown(moved, "change_")).pivot(
    index="difference", columns=["explainer", "direction"], values="text"
)
tables.styled(table.loc[[name for name in variants if name in table.index]])

# %% [markdown]
# ## What cannot be switched on alone
#
# - **One image at a time.** The code's batches hold the draws of one image. It changes the time and no number, see [](../cost/engine).
# - **Checkpoints.** The code keeps the epoch of training, fine-tuning and ROAR that recognises most *test* images, the images that
#   are then explained. Our training never looks at them and keeps the last epoch, so that there is nothing to switch.
# - **From curves to correlations.** The code that turns curves into the numbers of the tables is not published.
# - **Dropout in the example.** The example offered for use as a metric never leaves training mode, so that half of the
#   last hidden layer is dropped at random in every answer. Our network has no such layer. Dropped before its last layer:

# %% tags=["hide-input"]
before = accuracy(models["fine-tuned"], test)
*_, last = (layer for layer in models["fine-tuned"].modules() if isinstance(layer, torch.nn.Linear))
torch.manual_seed(seed)
hook = last.register_forward_pre_hook(lambda layer, inputs: (dropout(inputs[0], 0.5, training=True),))
after = accuracy(models["fine-tuned"], test)
hook.remove()
Markdown(f"the fine-tuned network recognises {after:.1%} of these whole images instead of {before:.1%}.")

# %% [markdown]
# ## The recorded run

# %% tags=["hide-input"]
kept = recorded("f-fidelity/public-code", "changes")
if kept:
    of_record = kept.frame[kept.frame["comparison"] == "share of the ideal"]
    table = of_record.assign(text=shown(of_record, "change_")).pivot(
        index="difference", columns=["explainer", "level"], values="text"
    )
    table = tables.styled(table.loc[[name for name in variants if REFERENCE[name] != name]])
table if kept else Markdown(
    "There is none yet: `make notebook NAME=f-fidelity/public-code PROFILE=long` makes one, in hours of two cores."
)

# %% tags=["hide-input"]
run.finish()
