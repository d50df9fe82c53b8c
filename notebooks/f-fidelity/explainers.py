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
# # Which of two real explainers is better?
#
# *Which explains better, Grad-CAM or a saliency map?* So far the explainers were one explanation with more and more
# noise. Here F-Fidelity compares two real ones, as the paper does in appendix D.10. Grad-CAM points at regions, the
# saliency map at single pixels. The paper does this on Tiny-ImageNet (Table 11) and on ImageNet (Table 12); here it is
# done on small images (CIFAR-10, or Tiny-ImageNet in the profile `paper`) and on photographs of ImageNet.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's network, such as {"epochs": 5}: see faithstudy.recipes
tuning = {}  # the same of its fine-tuning on random masks
images = 2000  # test images to explain
photographs_judged = 20  # of the 20 that every installation has, drawn at random
folder = "~/imagenet-sample-images"  # where more photographs are, with the WordNet id of the class in their names; None: no more
folder_limit = None  # so many of that folder, drawn at random, are what the network is fine-tuned on; 5000 in the paper
more_photographs = 500  # of these, as many as in the paper: recognised ones, from all classes alike
network = "efficientnet-lite0"  # pretrained on ImageNet; resnet18 in the paper
photographs_epochs = 6  # of fine-tuning on random masks, on the same photographs
photographs_rate = 0.0001
size_step = 0.1  # between the explanation sizes, a share of the pixels; 0.05 in the paper
alpha = 0.5
beta = 0.1
draws = 1  # random subsets per image, size and direction; the paper draws 50, but images decide
photographs_draws = 4  # the same for the 20 photographs
attained_images = 16  # of the small images: so many beside the best order of their patches
attained_patch = 8  # side of these patches in pixels: 16 patches of 32 x 32, of which all 65 536 subsets are asked
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
training_seeds = [0]  # each is a network of its own
seed = 0  # of the photographs, their network's fine-tuning and the random subsets

# %% tags=["hide-input"]
import dataclasses
import itertools
from functools import partial

import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import baselines, segments, stats
from faithlab.explainers import explain
from faithlab.metrics import METRICS, evaluate
from faithlab.scores import Scores
from faithstudy import plots, published, tables
from faithstudy import recipes as networks
from faithstudy.claims import better
from faithstudy.data import datasets
from faithstudy.diagnostics import Reason
from faithstudy.networks import pretrained
from faithstudy.networks.training import Recipe, accuracy_of, logits, trained
from faithstudy.run import Run
from faithstudy.trials import optimum, sizes, tasks

plots.theme()
run = Run("f-fidelity/explainers", globals())

# %% [markdown]
# ## Small images
#
# As on [the page before](../f-fidelity/images): ResNet-9, and the same network fine-tuned on random masks.

# %% tags=["hide-input"]
recipes = networks.pairs(networks.RESNET9, run.parameters)
small = [
    partial(tasks.task, r["original"], images, tuned=r["fine-tuned"], name="ResNet-9", precision=precision)
    for r in recipes
]
data = recipes[0]["original"].data
Markdown(
    f"The original network recognises {accuracy_of(recipes[0]['original']):.1%} of the test images of "
    f"{published.SETS.get(data, data)}, the fine-tuned one {accuracy_of(recipes[0]['fine-tuned']):.1%}."
)

# %% [markdown]
# ## Photographs
#
# The second network was trained on ImageNet by others. As in the paper's appendix D.10 it is fine-tuned on random masks
# of the *same* photographs on which the explainers are compared. That network is fit for this comparison only.
#
# Every installation has 20 photographs. A folder of yours gives more: the network is fine-tuned on all of them, and those that
# it recognises are a setting of their own.

# %% tags=["hide-input"]
original = pretrained.load(network)
shipped = datasets.load("imagenet-foolbox", "test")


def photographed(data, every, picked, **options):
    """Some photographs of a set, and the network fine-tuned on random masks of the whole set."""
    tuning_on_photographs = Recipe(
        data=data,
        data_options=options,
        model="pretrained",
        model_options={"weights": network},
        epochs=photographs_epochs,
        rate=photographs_rate,
        batch=32,
        decay=1e-5,
        schedule="constant",
        mask_share=beta,
        precision=precision,
        seed=seed,
    )
    about = {"name": network, "dataset": f"{data} test", "data": every}
    task = tasks.task(original, picked, tuned=tuning_on_photographs, precision=precision, **about)
    return dataclasses.replace(task, training_seed=seed)


def of_installation():
    """Some of the photographs that every installation has."""
    drawn = torch.randperm(len(shipped), generator=torch.Generator().manual_seed(seed))[:photographs_judged]
    return photographed("imagenet-foolbox", shipped, drawn.sort().values)


def of_folder():
    """Photographs of the folder that the network recognises."""
    options = {"path": folder, "limit": folder_limit}
    every = datasets.load("imagenet-folder", "test", **options)
    known = tasks.evenly(tasks.recognised(original, len(every), every), more_photographs)
    return photographed("imagenet-folder", every, known, **options)


settings = {"small images": f"{data} test", "photographs": "imagenet-foolbox test"}
settings |= {"photographs of a folder": "imagenet-folder test"} if folder else {}
chosen = [*small, of_installation, *([of_folder] if folder else [])]

# %% [markdown]
# ## Two scores for an explanation
#
# FFid+ is the accuracy that is lost when a part of the most relevant pixels is removed: the higher, the better. FFid− is
# the accuracy that is lost when a part of the other pixels is removed: the lower, the better. At most a tenth of the pixels
# is removed, from the network that was fine-tuned on such images. An image that the fine-tuned network gets wrong as a
# whole, and right when pixels are gone, has a negative score.
#
# Both explainers explain the true class to the original network. Three more say what a better score may come from. *Random*
# orders the pixels at random. *Centre* calls the middle of every image relevant, whatever it shows. *Blurred* is the
# saliency map, smoothed until it points at regions as Grad-CAM does, with a Gaussian of an eighth of the image's side.


# %% tags=["hide-input"]
def blurred(model, x, target, images):
    """The saliency map, smoothed."""
    values = explain("saliency", model, x, target, torch.arange(x[0, 0].numel()).view(x.shape[-2:]), images=images)
    return baselines.blur(values.view(len(x), 1, *x.shape[-2:]), x.shape[-1] / 8)


judged = {"GradCAM": "gradcam", "Saliency": "saliency"}
controls = {"Random": ("random", {"seed": seed}), "Centre": sizes.centre, "Blurred": blurred}
metrics = {
    name: METRICS[name].given(
        sizes=[k * size_step for k in range(1, round(1 / size_step))], alpha=alpha, cap=beta, seed=seed
    )
    for name in ("FFid+", "FFid-")
}


def measure(task):
    """Scores of explanations."""
    number = photographs_draws if task.dataset == settings["photographs"] else draws
    found = tasks.attributions(task, judged | controls)
    return evaluate({name: m.given(draws=number) for name, m in metrics.items()}, task, found)


scores = run.table("scores", measure, chosen)
each = {
    name: stats.estimate(scores, stats.area, dataset=of, metric="FFid+", explainer="GradCAM").images
    for name, of in settings.items()
}
Markdown("Images: " + "; ".join(f"{count:,} {name}" for name, count in each.items()) + ".")

# %% mystnb={"figure": {"caption": "Accuracy lost when a random part of the pixels that an explainer calls relevant is removed (FFid+, higher is better), and when a part of the others is (FFid\u2212, lower is better), against the explanation size. Bands: 95 % intervals over the images. The scales differ.", "name": "ff-explainers-curves"}, "image": {"alt": "Line charts, settings by scores: explanation size against lost accuracy, one line each for Grad-CAM, the saliency map and three controls."}} tags=["hide-input", "answer"]
plots.curves(
    scores,
    rows={name: {"dataset": of} for name, of in settings.items()},
    columns={name.replace("-", "−"): {"metric": name} for name in metrics},
    lines={name: {"explainer": name} for name in judged | controls},
    x="size (share of pixels)",
    y="lost accuracy",
)

# %% [markdown]
# ## Published and measured
#
# The scores are averaged over the explanation sizes. *Published* are the paper's averages: Tiny-ImageNet with ResNet-9 under
# *small images*, 500 photographs of ImageNet with ResNet-18 under *photographs*, or those of a folder. But in the profile
# `paper` our data and networks are others, so only the order of the two explainers is to be compared. In brackets: 95 % intervals over the images.

# %% tags=["hide-input"]
averages = tables.summary(scores, ["dataset", "metric", "explainer"], of=stats.area)
names = {of: name for name, of in settings.items()}
averages = averages.rename(columns={"metric": "measure"}).assign(setting=averages["dataset"].map(names))
run.save(averages, "averages")
paper = published.load("ffidelity_explainers").rename(columns={"value": "mean"})
paper["setting"] = paper["table"].map({11: "small images", 12: list(settings)[-1]})
sources = {"published": paper, "measured": averages}
order = [*judged, *controls, *settings]
tables.compared(sources, rows=["measure", "explainer"], columns=["setting"], order=order, digits=3)

# %% [markdown]
# An image that is hard for one explainer is often hard for the other. So the two are compared image by image, below, and so
# is Grad-CAM with the controls:

# %% tags=["hide-input"]
pairs = [("GradCAM", other) for other in order if other in judged | controls and other != "GradCAM"]
pairs += [("Blurred", "Saliency"), ("Centre", "Saliency")]
rows = [
    {"setting": setting, "measure": metric, "pair": f"{one} − {other}"}
    | tables.interval(
        stats.paired(scores, {"explainer": one}, {"explainer": other}, stats.area, dataset=of, metric=metric)
    )
    for setting, of in settings.items()
    for metric in metrics
    for one, other in pairs
]
differences = pd.DataFrame(rows)
run.save(differences, "differences")
tables.compared(differences, rows=["pair"], columns=["setting", "measure"], digits=3)

# %% [markdown]
# ## How much of it could be had?
#
# That one explainer is ahead of another does not say whether both are good. F-Fidelity draws what it removes, and its best order is
# not known. Of LeRF − MoRF it is: where the features are a few large patches, all their subsets can be asked of the network, and the
# best of all orders follows exactly. The [attainable share](../trace/explainers) of an explainer is its LeRF − MoRF as a part
# of what the best order of the same image has: 1 is the best that there is (*Best-p* in the table), 0 is chance. Removed patches are set to
# zero, and the original network is asked, about the first images. All subsets of one image are 65 536 forwards.


# %% tags=["hide-input"]
le_mo = {"LeRF - MoRF": METRICS["LeRF - MoRF"]}


def in_patches(task, count):
    """The first images, with patches as features."""
    return dataclasses.replace(
        task.part(torch.arange(min(count, len(task.x)))), segments=segments.patches(*task.x.shape[-2:], attained_patch)
    )


def explanations():
    """LeRF − MoRF of the explanations of four images, without the best orders, which take minutes."""
    first = in_patches(small[0](), min(4, attained_images))
    return evaluate(le_mo, first, tasks.attributions(first, judged | controls))


def best_orders(task):
    """LeRF − MoRF of the explanations of the first images, and of the best order of their patches."""
    first = in_patches(task, attained_images)
    found = tasks.attributions(first, judged | controls)
    return optimum.optimum(le_mo, first, found, exact=segments.count(first.segments))


attained = run.table("attained", lambda: Scores.concat(best_orders(task()) for task in small), again=explanations)
share = tables.measures(attained, ["explainer"], optimum.MEASURES)
share.loc[share["images"] == 1, ["low", "high"]] = float("nan")
shown = tables.compared(share, rows=["explainer"], columns=["measure"])
tables.noted(shown, f"images: {share['images'].max()}")

# %% [markdown]
# ## A few cases each
#
# The first images, five at most, that the original network gets right and whose scores are not all zero, with both explanations
# (brighter is more relevant), and their scores. An image that is recognised whatever is removed of it has scores of zero.


# %% tags=["hide-input"]
def cases(setting, model, every, count=5):
    """Images of a set, and the scores of each."""
    of = scores.where(dataset=settings[setting], explainer=[*judged], training_seed=seed)
    found = {
        f"{b.labels['explainer']}, {b.labels['metric']}".replace("-", "−"): pd.Series(
            stats.auc(b.values.double(), torch.tensor(b.sizes, dtype=torch.float64)).numpy(), b.images.tolist()
        )
        for b in of
    }
    frame = pd.DataFrame(found)
    moved = torch.tensor(frame.index[(frame != 0).any(axis=1)][:64].tolist(), dtype=torch.int64)
    if not len(moved):
        return moved, Markdown(f"None of the {len(frame)} loses anything by either.")
    right = logits(model, every.model_inputs(moved)).argmax(1).cpu() == every.labels[moved]
    shown = moved[right][:count] if right.any() else moved[:1]
    labels = [every.classes[label] for label in every.labels[shown].tolist()]
    table = frame.loc[shown.tolist()].round(3).T
    table = table.set_axis(pd.MultiIndex.from_arrays([range(1, len(shown) + 1), labels]), axis=1)
    return shown, tables.styled(table.map("{:.3f}".format).replace("-", "−", regex=True))


def maps(setting, model, every, shown):
    """Images of a set and both explanations."""
    task = tasks.task(model, shown, data=every, dataset=settings[setting], name=setting)
    return plots.maps(every.inputs[shown].permute(0, 2, 3, 1), tasks.attributions(task, judged))


of_small = "small images", trained(recipes[0]["original"]), datasets.load(data, "test")
of_large = "photographs", original.to(next(of_small[1].parameters()).device), shipped
few_small, table_small = cases(*of_small)
few_large, table_large = cases(*of_large)

# %% mystnb={"figure": {"caption": "Small images: the cases of the table below.", "name": "ff-explainers-small"}, "image": {"alt": "Three rows of small pictures, a column for each case: photographs, their Grad-CAM maps and their saliency maps."}} tags=["hide-input"]
maps(*of_small, few_small) if len(few_small) else None

# %% tags=["hide-input"]
table_small

# %% mystnb={"figure": {"caption": "Photographs: the cases of the table below.", "name": "ff-explainers-large"}, "image": {"alt": "Three rows of pictures, a column for each case: photographs of ImageNet, their Grad-CAM maps and their saliency maps."}} tags=["hide-input"]
maps(*of_large, few_large) if len(few_large) else None

# %% tags=["hide-input"]
table_large

# %% [markdown]
# ## What reproduced
#
# A part holds where the whole interval of the paired difference, and every network's own, lie on the claimed side. The paper's
# sentence is about Grad-CAM and the saliency map. What it does not ask is whether the score sees the *class*: where *Centre* or
# *Blurred* comes as close to Grad-CAM as the table above shows, most of the difference is that between regions and single pixels.
# Where a folder gives more photographs, the claim is about these, and the 20 only stand beside them.

# %% tags=["hide-input"]
run.claim(
    "ff-gradcam-beats-saliency",
    "Appendix D.10, Tables 11 and 12",
    "Grad-CAM explains better than the saliency map: higher FFid+, lower FFid−, on small images and photographs.",
    [
        better(
            scores,
            {"explainer": "GradCAM"},
            {"explainer": "Saliency"},
            of=stats.area,
            less=metric == "FFid-",
            metric=metric,
            dataset=settings[setting],
            name=f"{setting}, {metric}",
            printed=paper.query("setting == @setting and measure == @metric")
            .set_index("explainer")
            .loc[["GradCAM", "Saliency"], "mean"]
            .tolist(),
        )
        for setting in ("small images", list(settings)[-1])
        for metric in metrics
    ],
)

# %% [markdown]
# **Why?** Does Grad-CAM know more of the network, or does it only point at regions? Smoothing adds nothing that the saliency map knows:
# what it gains by that is due to regions, and what Grad-CAM is still ahead of the smoothed map is not. *Centre*, a disc in the
# middle of every image, looks at nothing: where Grad-CAM is not ahead of it, or where it is ahead of the saliency map as well, the claim
# says nothing of what Grad-CAM knows. Better is a higher FFid+, and a lower FFid−.

# %% tags=["hide-input"]
possible = []
for setting, metric in itertools.product(("small images", list(settings)[-1]), metrics):
    pairs_of = {
        "Does smoothing help the map?": ("Blurred", "Saliency"),
        "Is Grad-CAM ahead then?": ("GradCAM", "Blurred"),
        "Is it ahead of a disc in the middle?": ("GradCAM", "Centre"),
        "Is the disc ahead of the map, too?": ("Centre", "Saliency"),
    }
    for question, pair in pairs_of.items():
        one, other = ({"explainer": name} for name in pair[:: metrics[metric].better])
        lead = stats.paired(scores, one, other, stats.area, metric=metric, dataset=settings[setting])
        asked = f"{setting}, {metric.replace('-', '−')}: by how much {' is better than '.join(pair)}"
        possible.append(Reason(question, asked, lead, above=0))
run.why("ff-gradcam-beats-saliency", *possible)

# %% tags=["hide-input"]
run.finish()
