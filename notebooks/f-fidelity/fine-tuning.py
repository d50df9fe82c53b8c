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
# # Does fine-tuning change what the network looks at?
#
# F-Fidelity judges explanations of one network by asking another, its fine-tuned copy. That is fair only if both look at
# the same things. The paper shows Grad-CAM pictures of both, for a ResNet and a Vision Transformer on Tiny-ImageNet (Table 9).
# We show them too, and measure how alike the explanations are, for several explainers; CIFAR-10 stands for Tiny-ImageNet, but in
# the profile `paper`.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
training = {}  # by network, resnet9 and vit: what differs from its recipe in faithstudy.recipes
tuning = {}  # the same of its fine-tuning on random masks
images = 1000  # test images to explain
beta = 0.1
explainers = ["gradcam", "layercam", "smoothgrad-squared", "saliency", "input-x-gradient"]
transformer_explainers = ["gradcam-vit"]  # the same of the Vision Transformer
precision = "bfloat16"  # of training, where the device computes it natively; else float32
training_seeds = [0, 1, 2]  # each is a network of its own

# %% tags=["hide-input"]
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import stats
from faithlab.scores import Scores
from faithstudy import plots, published, tables
from faithstudy import recipes as networks
from faithstudy.claims import above, better, premise
from faithstudy.data import datasets
from faithstudy.networks.training import accuracy_of, logits, trained
from faithstudy.run import Run
from faithstudy.trials import tasks

plots.theme()
run = Run("f-fidelity/fine-tuning", globals())

# %% [markdown]
# ## Networks
#
# Explained are the original network and its copy that was fine-tuned on random masks. How alike are two explanations that
# have nothing to do with each other? Two more say that. *Trained apart* is a network that shares the task with the original,
# and no weights. *Another image* is the original network itself, explained on the next image: what every picture has in
# common, such as an object in its middle. The pictures and the accuracies are of the first training. The Vision Transformer is asked in the same way, with the Grad-CAM of transformers.

# %% tags=["hide-input"]


def pairs(recipe):
    """The original and the fine-tuned network, for each training seed."""
    own = {"training": training.get(recipe.model, {}), "tuning": tuning.get(recipe.model, {})}
    return networks.pairs(recipe, run.parameters | own)


recipes, transformers = pairs(networks.RESNET9), pairs(networks.VIT)
# The next of them was trained apart, in a circle; of one or two, the last one has another, or a pair would stand there twice.
next_seeds = [*training_seeds[1:], training_seeds[0] if len(training_seeds) > 2 else max(training_seeds) + 1]
TUNED, APART, NEXT = "fine-tuned", "trained apart", "another image"
VIT = "ViT "  # before the names of its networks
kinds = {"ResNet-9": (recipes, explainers, ""), "ViT": (transformers, transformer_explainers, VIT)}


def pair_of(kind, k, images):
    """The first images with a network, and its fine-tuned copy."""
    recipe = kinds[kind][0][k]
    return tasks.task(recipe["original"], images, tuned=recipe["fine-tuned"], name=kind)


def apart(kind, k):
    """The recipe of the network that is trained apart."""
    return replace(kinds[kind][0][k]["original"], seed=next_seeds[k])


def alike(task, next_image=True):
    """How alike the explanations of a network are to others of the same images."""
    _, chosen_names, before = kinds[task.network]
    names = {name: name for name in chosen_names}
    others = {TUNED: task.tuned, APART: trained(apart(task.network, training_seeds.index(task.training_seed)))}
    own = tasks.attributions(task, names)
    compared = {of: tasks.attributions(replace(task, model=model), names) for of, model in others.items()}
    if next_image:
        compared[NEXT] = {name: of.roll(1, 0) for name, of in own.items()}
    parts = [
        Scores.of(
            stats.spearman(own[name], of[name]),
            images=task.images,
            **task.labels | {"network": before + network},
            explainer=name,
            metric="rank correlation",
        )
        for network, of in compared.items()
        for name in names
    ]
    hits = logits(task.model, task.x).argmax(1) == task.target
    labels = task.labels | {"network": f"{before}original", "metric": "accuracy"}
    return Scores.concat([*parts, Scores.of(hits, images=task.images, **labels)])


chosen = [partial(pair_of, kind, k, images) for kind in kinds for k in range(len(training_seeds))]
# Another image is the one before, which of the first one is the last: it is not measured again.
scores = run.table("scores", alike, chosen, again=lambda: alike(pair_of("ResNet-9", 0, 8), next_image=False))
data, test = recipes[0]["original"].data, datasets.load(recipes[0]["original"].data, "test")
recognised = {
    f"{before}{name} recognises": f"{accuracy_of(recipe):.1%}"
    for kind, (of, _, before) in kinds.items()
    for name, recipe in (of[0] | {APART: apart(kind, 0)}).items()
}
tables.prose(pd.DataFrame([{"images": published.SETS.get(data, data)} | recognised]))

# %% [markdown]
# ## Pictures (Table 9)

# %% mystnb={"figure": {"caption": "Test images, and Grad-CAM of the original network and of the fine-tuned one for the true class: a ResNet, and below it a Vision Transformer (ViT).", "name": "ff-fine-tuning-maps"}, "image": {"alt": "Five rows of pictures: photographs, Grad-CAM maps of the original and of the fine-tuned ResNet, Grad-CAM maps of the original and of the fine-tuned Vision Transformer."}} tags=["hide-input"]
looked = {kind: pair_of(kind, 0, min(images, 64)) for kind in kinds}
models = {
    f"{kinds[kind][2]}{name}": (of, m)
    for kind, of in looked.items()
    for name, m in (("original", of.model), (TUNED, of.tuned))
}
hits = torch.stack([logits(model, of.x).argmax(1) == of.target for of, model in models.values()])
known = hits.all(0).nonzero().flatten()[:8].cpu()
known = known if len(known) else torch.arange(1)
maps = {}
for name, (of, model) in models.items():
    first = kinds[of.network][1][0]
    maps[name] = tasks.attributions(replace(of.part(known), model=model), {first: first})[first]
plots.maps(test.inputs[known].permute(0, 2, 3, 1), maps)

# %% [markdown]
# ## Numbers
#
# For each image, Spearman's correlation over its pixels between the explanation of the original network and the other
# explanation. Mean over the images; in brackets 95 % intervals, for the networks at hand. An explanation without any order,
# such as a Grad-CAM map that is zero everywhere, has no correlation: *missing* counts them, by all trainings together (of three and 1,000 images there are 3,000). The row *Grad-CAM, ViT* is the Vision
# Transformer's, all others are the ResNet's.

# %% tags=["hide-input"]
rows = [
    {
        "explainer": cell["explainer"],
        "compared with": cell["network"].removeprefix(VIT),
        **tables.interval(e),
        "missing": sum(e.missing),
    }
    for cell, e in stats.summary(scores, ["explainer", "network"], metric="rank correlation")
]
found = pd.DataFrame(rows)
run.save(found, "alike")
called = {"gradcam": "Grad-CAM", "layercam": "LayerCAM", "smoothgrad-squared": "SG-SQ", "saliency": "saliency"}
called |= {"input-x-gradient": "Input × Gradient", "gradcam-vit": "Grad-CAM, ViT"}
shown = [called.get(name, name) for name in (*explainers, *transformer_explainers)]
found = found.replace({"explainer": called})
tables.compared(found, rows=["explainer"], columns=["compared with"], order=shown)

# %% mystnb={"figure": {"caption": "Rank correlation between explanations of the original network and other explanations, mean over the images with 95 % intervals.", "name": "ff-fine-tuning-alike"}, "image": {"alt": "Dot plot of rank correlations by explainer. For each of them the fine-tuned network explains most like the original, a network trained apart less so, and another image least; the last row is of the Vision Transformer."}} tags=["hide-input", "answer"]
figure, axes = plt.subplots(figsize=(7.2, 0.9 + 0.4 * len(shown)))
against = {name: found[found["compared with"] == name].set_index("explainer") for name in (TUNED, APART, NEXT)}
plots.forest(axes, shown, against)
axes.axvline(0, color="0.4", linewidth=0.8)
axes.set(xlabel="rank correlation", xlim=(None, 1.02))
plots.key(figure, axes, title="compared with")
plots.show(figure, least=30)  # intervals of fewer fill the panels

# %% tags=["hide-input", "headline"]
known, trainings = found.dropna(subset="mean"), len(training_seeds)
of_tuned, of_apart = (known[known["compared with"] == name].sort_values("mean") for name in (TUNED, APART))
half_kept = 0.7  # as the claim below has it: at least half of the order is shared
surely = int((of_tuned["low"] > half_kept).sum())
said = [
    f"{r.mean:.2f} [{r.low:.2f}, {r.high:.2f}]".replace("-", "−") + f" ({r.explainer})" for r in of_tuned.itertuples()
]
between = [f"{of_apart['mean'].min():.2f}", f"{of_apart['mean'].max():.2f}"]
verdict = "Little" if surely == len(of_tuned) > 0 else "That depends on the explainer" if surely else "It may"
Markdown(
    f"**{verdict}**: the maps of the original and of the fine-tuned network surely share at least half of their order (a rank correlation "
    f"above {half_kept:g}) for {surely or 'none'} of {len(of_tuned)} explainers (Grad-CAM of each network is one). "
    + (
        f"The correlation is {' to '.join(dict.fromkeys([said[-1], said[0]]))}"
        if said
        else "Of none there is a correlation"
    )
    + f"; of networks trained apart it is {' to '.join(dict.fromkeys(between)).replace('-', '−')}, surely above {half_kept:g} for {int((of_apart['low'] > half_kept).sum()) or 'none'}"
    * bool(len(of_apart))
    + f" ({known['images'].max():,} images, a ResNet-9 and a ViT{f', {trainings} trainings of each' * (trainings > 1)})."
)

# %% [markdown]
# ## What reproduced
#
# The paper shows Grad-CAM maps, and says that they "highlight similar regions of importance, with only minor variations". So
# the claim is judged for Grad-CAM (on a ResNet and, in parts of its own, on a Vision Transformer: the two halves of Table 9).
# The maps of the two networks share at least half of their order: a rank correlation of 0.7, whose square, the share of the
# variance of the one map's ranks that the other's explain, is about a half; the bar is ours. And they are more alike than those
# of networks or images that have nothing to do with each other. For explainers that point at single pixels the table above says what the paper does not ask.

# %% tags=["hide-input"]
ten = len(test.classes) <= 10
bar, how_many = (0.5, "recognises most images") if ten else (0.3, "recognises three in ten images")  # of many classes
half = "0.7 squared is about a half: of the variance of the one map's ranks the other's explain as much"
parts = []
for before, name, whose in (
    ("", explainers[0], "the network"),
    (VIT, transformer_explainers[0], "the Vision Transformer"),
):
    cam = {"explainer": name, "metric": "rank correlation"}
    tuned, whole = {"network": before + TUNED}, {"network": f"{before}original", "metric": "accuracy"}
    said = "Vision Transformer: " if before else ""
    shared = above(scores, 0.7, **tuned, **cam, name=f"{said}the maps share at least half of their order")
    parts.append(premise(above(scores, bar, **whole, name=f"{whose} {how_many}")))
    parts.append(replace(shared, reason=half))
    for other in (APART, NEXT):
        of = "a network trained apart" if other == APART else other
        parts.append(better(scores, tuned, {"network": before + other}, **cam, name=f"{said}more alike than of {of}"))
run.claim(
    "ff-kept-explanations",
    "Table 9, appendix D.4",
    "Fine-tuning leaves the explanations of Grad-CAM as they were.",
    parts,
)

# %% tags=["hide-input"]
run.finish()
