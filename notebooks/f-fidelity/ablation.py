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
# # What is each part of F-Fidelity good for?
#
# F-Fidelity does two things to Fidelity: it fine-tunes the network on random masks, and it removes only a random part of
# what an explanation names, with a cap. *Which of them helps?* This page is the paper's ablation (Figure 3) and its case
# study of a single image (Figure 2). The paper's ablation is on CIFAR-100, its single image is of Tiny-ImageNet; here both are on
# one data set: CIFAR-10, which stands for these, or CIFAR-100 in the profile `paper`.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's network, such as {"epochs": 5}: see faithstudy.recipes
tuning = {}  # the same of its fine-tuning on random masks
images = 1000  # test images to explain
noise_shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
seeds = [0, 1, 2]  # of the noise
size_step = 0.05  # between the explanation sizes, a share of the pixels; 0.05 in the paper
alpha = 0.5
beta = 0.1
draws = 1  # random subsets per image, size and direction; the paper draws 50
case_draws = 100  # in the case study
smooth_samples = 16  # noisy copies per image in SG-SQ
case = 0  # test image of the case study, counted among those that both networks recognise
roar_limit = None  # training images for ROAR of the case study, explained by Grad-CAM; None: all
roar_epochs = 10
roar_rate = 0.01
roar_fresh = True  # retrain from fresh weights, as the paper does; else from the original's, which needs fewer images
precision = "bfloat16"  # of training and forwards, where the device computes it natively; else float32
training_seeds = [0, 1, 2]  # each is a network of its own
seed = 0  # of the random subsets and of SG-SQ

# %% tags=["hide-input"]
import dataclasses
from functools import partial

import matplotlib.pyplot as plt
import torch
from IPython.display import Markdown

from faithlab import stats
from faithlab.explainers.degrade import degrade
from faithlab.metrics import METRICS
from faithlab.outputs import probability
from faithstudy import plots, tables
from faithstudy import recipes as networks
from faithstudy.claims import above, better, premise
from faithstudy.data import datasets
from faithstudy.diagnostics import Reason
from faithstudy.run import Run
from faithstudy.trials import comparisons, degraded, roar, tasks

plots.theme()
run = Run("f-fidelity/ablation", globals())

# %% tags=["hide-input"]
recipes = networks.pairs(networks.RESNET9, run.parameters)
chosen = [
    partial(tasks.task, r["original"], images, tuned=r["fine-tuned"], name="ResNet-9", precision=precision)
    for r in recipes
]
explainers = {"SG-SQ": ("smoothgrad-squared", {"samples": smooth_samples, "seed": seed})}

# %% [markdown]
# ## Ablation (Figure 3)
#
# Three metrics rank SG-SQ and its noisier and noisier copies: plain *Fidelity*; *Fidelity + fine-tuning*, plain removal on
# the fine-tuned network; and *F-Fidelity*, which also samples what it removes and caps it. *Fidelity + sampling and cap* is
# the other way round: what F-Fidelity removes, asked of the original network. The paper leaves it out; it says whether the
# fine-tuning is needed once no more than a tenth of the pixels goes.

# %% tags=["hide-input"]
sizes = [k * size_step for k in range(1, round(1 / size_step))]
removed = {"alpha": alpha, "cap": beta, "draws": draws, "seed": seed}
TUNED, CAPPED = "Fidelity + fine-tuning", "Fidelity + sampling and cap"
metrics = {}
for way in "+-":
    plain, full = METRICS[f"Fid{way}"].given(sizes=sizes), METRICS[f"FFid{way}"].given(sizes=sizes, **removed)
    metrics[f"Fid{way}"] = plain
    metrics[f"Fid{way}, fine-tuned"] = plain.given(network="fine-tuned", family=TUNED)
    metrics[f"FFid{way}, original"] = full.given(network="original", family=CAPPED)
    metrics[f"FFid{way}"] = full
trial = {"levels": noise_shares, "seeds": seeds}
scores = run.table(
    "scores",
    lambda task: degraded.degraded(metrics, task, tasks.attributions(task, explainers), **trial),
    chosen,
)
measured = degraded.correlations(scores, metrics, **trial)
run.save(measured, "correlations")

# %% mystnb={"figure": {"caption": "Accuracy that is lost when the most relevant pixels are removed, for SG-SQ with more and more noise. A metric that works keeps the darkest curve highest and the order of the others. Bands: 95 % intervals over the images. The scales differ.", "name": "ff-ablation-curves"}, "image": {"alt": "Four line charts, one for each metric: share of pixels named against lost accuracy, one line for each share of noise."}} tags=["hide-input"]
plots.degraded_curves(scores, metrics, size="size (share of pixels)", lost="accuracy")

# %% mystnb={"figure": {"caption": "Agreement of each metric with the true order of the explainers (GT, the ground truth), under MoRF and under LeRF, and of its MoRF with its LeRF; times the ideal (1 is perfect, 0 is chance), with 95 % intervals over the images. Macro: over the area under the curve. Micro: at each size, the mean over sizes and seeds.", "name": "ff-ablation"}, "image": {"alt": "Two dot plots, macro and micro correlation. Under MoRF Fidelity alone lies below zero, against the truth and against LeRF; with fine-tuning, with sampling and cap, or with both it lies far above zero in all three comparisons."}} tags=["hide-input", "answer"]
figure, panels = plt.subplots(1, 2, figsize=(7.3, 2.8), sharey=True)
shares = comparisons.in_one_sign(measured)
for axes, level in zip(panels, ("macro", "micro"), strict=True):
    of = shares[shares["level"] == f"{level}_correlation"].set_index("comparison")
    families = {family: of[of["metric"] == family] for family in of["metric"].unique()}
    colours = [plots.COLOURS.get(family, f"C{k + 2}") for k, family in enumerate(families)]
    plots.forest(axes, [*comparisons.COMPARISONS], families, colours)
    axes.axvline(0, color="0.4", linewidth=0.8)
    axes.set(xlabel="correlation × ideal", title=f"{level} correlation")
plots.key(figure, panels[0])
plots.show(figure, least=30)  # intervals of fewer fill the panels

# %% [markdown]
# The figure as numbers, each a share of the ideal: 1 is the right order, −1 the reverse.

# %% tags=["hide-input"]
bars = comparisons.in_one_sign(measured[measured["level"] != "micro_rank"])
tables.compared(bars, rows=["level", "comparison"], columns=["metric"], order=families)

# %% [markdown]
# ## What reproduced
#
# A correlation of ranks of means depends on the number of images: with more of them the smallest right step is found. So the claim is
# judged by the *mean step* from one share of noise to the next at single sizes, in standard deviations over images: above 0 in the right
# direction, the same for any number of images. The figure of the paper has no numbers to put to this rule. Before anything is judged,
# missing pixels must cost the original network accuracy at all: the explanation whose scores are all shuffled removes pixels at random.
#
# *Fidelity + sampling and cap* asks the original network: what it shares with F-Fidelity is not the fine-tuning's doing.

# %% tags=["hide-input"]
of_parts = run.claim(
    "ff-ablation",
    "Figure 3, appendix D.7",
    "Fine-tuning improves Fidelity, and sampling with a cap improves it further.",
    [
        premise(
            above(
                scores,
                0.05,
                of=stats.area,
                metric="Fid+",
                level=max(noise_shares),
                name="random pixels cost the original network accuracy",
            )
        ),
        *(
            better(
                scores,
                {"metric": after},
                {"metric": before},
                of=stats.mean_step(noise_shares, seeds, micro=True, better=metrics[before].better),
                name=f"{metrics[before].direction}: {what}",
            )
            for way in "+-"
            for before, after, what in (
                (f"Fid{way}", f"Fid{way}, fine-tuned", "fine-tuning improves Fidelity"),
                (f"Fid{way}, fine-tuned", f"FFid{way}", "sampling with a cap improves it further"),
            )
        ),
    ],
)
of_parts

# %% tags=["hide-input", "headline"]
known = of_parts.frame().query("network == 'pooled' and kind == 'better'")
effects = {}  # by what is added, what it does under each direction, largest first
for r in known.sort_values("value", ascending=False).itertuples():
    way, what = r.part.split(": ")
    clear = {"holds": "better", "fails": "worse"}.get(r.outcome, "not clear")
    number = f"{r.value:+.3f} [{r.low:+.3f}, {r.high:+.3f}]".replace("-", "−")
    effects.setdefault(what.split(" improves")[0], []).append((way, clear, number))
Markdown(
    "; ".join(
        f"**{what[0].upper()}{what[1:]}**: " + ", ".join(f"{clear} under {way} ({number})" for way, clear, number in of)
        for what, of in effects.items()
    )
    + ". Each is the change of the mean step from one share of noise to the next at single sizes, in standard deviations over images, first of "
    f"Fidelity by fine-tuning and then by sampling with a cap (SG-SQ, {int(known['images'].max()):,} images). F-Fidelity has {draws} draw(s) here and 50 in the paper, and more draws make its step larger. In the other order "
    "the same additions may do other things: *Why?* below asks what the cap does alone."
)

# %% [markdown]
# **Why?** Fine-tuning and the cap can each be had alone. Does the cap help the order on the original network, and on the fine-tuned
# one? If it costs the order on the fine-tuned one only, a network that is used to missing pixels may hardly mind the few that go:
# then all noise changes F-Fidelity's area less than with the cap alone. And is F-Fidelity's step larger by areas, which
# pool the sizes, than at single ones? Steps are measured as in the claim.

# %% tags=["hide-input"]
possible = []
for way, direction, side in (("+", "MoRF", 1), ("-", "LeRF", -1)):
    plain, tuned, capped, both = ({"metric": name} for name in metrics if f"Fid{way}" in name)
    micro, macro = (stats.mean_step(noise_shares, seeds, micro=m, better=side) for m in (True, False))
    ends = [m | {"level": level} for m in (capped, both) for level in (None, noise_shares[-1])]
    of_noise = stats.estimate(scores, stats.area, cells=ends, contrasts=side * torch.tensor([[1.0, -1.0, -1.0, 1.0]]))
    pooled = stats.estimate(scores, stats.difference(macro, micro), **both)
    alone, tuned_alone = (stats.paired(scores, *pair, micro) for pair in ((capped, plain), (both, tuned)))
    asked = {
        ("Does the cap help the original?", "mean step: the cap alone − Fidelity"): alone,
        ("Does the cap help the tuned one?", "mean step: F-Fidelity − fine-tuning alone"): tuned_alone,
        ("Is less left to tell apart?", "area made worse by all noise: the cap alone − F-Fidelity"): of_noise,
        (
            "Is F-Fidelity's step larger by areas than at single sizes?",
            "mean step: by areas − at single sizes",
        ): pooled,
    }
    possible += [Reason(q, f"{direction}, {what}", found, above=0) for (q, what), found in asked.items()]
run.why("ff-ablation", *possible)

# %% [markdown]
# ## One image (Figure 2)
#
# For a single image a class is right or wrong, nothing between. So the curves follow the *probability* of the class. Each
# line is the Grad-CAM explanation with another share of its scores shuffled. A metric that works keeps the lines apart
# and in order, the darkest highest. As in the paper's figure ROAR is asked, too: its network is the one of
# [](../f-fidelity/images) that was trained again without what Grad-CAM calls relevant. One image is an illustration, not evidence: it
# has no interval.

# %% tags=["hide-input"]
original, tuned = recipes[0].values()
place = tasks.recognised([original, tuned], case + 1)[case:]
one = tasks.task(original, place, tuned=tuned, name="ResNet-9")
explained = {"GradCAM": "gradcam"}
cam = tasks.attributions(one, explained)
again = roar.recipe(original, run.parameters)
one = dataclasses.replace(one, retrained=roar.networks(again, original, explained))
single = {
    name: METRICS[name].given(sizes=sizes, output=probability, **settings)
    for name, settings in {
        "Fid+": {},
        "ROAR+": {},
        "RFid+": {"alpha": alpha, "draws": case_draws, "seed": seed},
        "FFid+": removed | {"draws": case_draws},
    }.items()
}
without_draws = {name: single[name] for name in ("Fid+", "ROAR+")}
of_case = run.table(
    "case",
    lambda: degraded.degraded(single, one, cam, **trial),
    again=lambda: degraded.degraded(without_draws, one, cam, **trial),
)

# %% mystnb={"figure": {"caption": "The image of the case study, and its Grad-CAM map with more and more of its scores shuffled (brighter is more relevant).", "name": "ff-ablation-case"}, "image": {"alt": "A photograph and a column of relevance maps that turn from a smooth blob into noise."}} tags=["hide-input"]
noisy = {f"{r:.0%} noise": degrade(cam["GradCAM"], r, seed=seeds[0], images=one.images) for r in noise_shares}
plots.maps(
    datasets.load(recipes[0]["original"].data, "test").inputs[one.images].permute(0, 2, 3, 1), noisy, across=True
)

# %% mystnb={"figure": {"caption": "Probability of the image's class that is lost when the most relevant pixels are removed, for Grad-CAM with more and more noise. The scales differ. No bands: there is one image.", "name": "ff-ablation-case-curves"}, "image": {"alt": "Four line charts, one per metric: size against lost probability, one line for each share of noise."}} tags=["hide-input"]
plots.degraded_curves(of_case, single, size="size (share of pixels)", lost="probability")

# %% tags=["hide-input"]
run.finish()
