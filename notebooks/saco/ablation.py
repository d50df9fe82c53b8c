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
# # What makes attention faithful?
#
# *Attention maps are there for the taking. Are they explanations?* The paper's section 5.4 and Table 1 take them apart: the
# last layer alone or all layers, without or with the gradient of the class. Its finding: both steps help, the gradient more.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
data = "cifar10"
networks = ["vit"]  # "vit": the small one of the study; else names of timm, see faithstudy.networks.transformers
training = {}  # what differs from the recipe of the small network, such as {"epochs": 5}: see faithstudy.recipes
training_seeds = [0, 1, 2]  # each is a network of its own
weights = None  # a folder with weights of timm's networks; None: timm's own, for ImageNet
path = None  # a folder with ImageNet photographs, for imagenet-folder
images = 1000  # test images to explain
groups = 10  # K of SaCo

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from IPython.display import Markdown

from faithlab import stats
from faithlab.metrics import METRICS, evaluate
from faithlab.scores import Scores
from faithstudy import plots, published, tables
from faithstudy.claims import agrees, better
from faithstudy.diagnostics import Reason
from faithstudy.recipes import introduced, vits
from faithstudy.run import Run
from faithstudy.trials import tasks, transformers

plots.theme()
run = Run("saco/ablation", globals())

# %% [markdown]
# ## Four explainers, two switches
#
# With $A_l$ the attention of layer $l$ (mean over the heads) and $\nabla A_l$ the gradient of the class's logit with respect
# to it:
#
# | | last layer | all layers |
# |---|---|---|
# | **attention alone** | $A_L$ (Raw Attention) | $\prod_l (I + A_l)$ (Rollout) |
# | **with the gradient** | $(\nabla A_L \odot A_L)^+$ | $\prod_l \bigl(I + (\nabla A_l \odot A_l)^+\bigr)$ (Transformer-MM) |
#
# The last layer is Rollout's and Transformer-MM's with one layer, which is Raw Attention, without and with the gradient.
# What is between one layer and all of them costs little more, so it is measured too: the last two layers, the last three,
# and so on.

# %% tags=["hide-input"]
chosen, counted_here = transformers.tasks(networks, data, images, vits(run.parameters), weights=weights, path=path)
recognised = run.table("recognised", lambda: counted_here)
Markdown(introduced(recognised, images))

# %% tags=["hide-input"]
corners = {  # whether over all layers, whether with the gradient
    (False, False): "Raw Attention",
    (True, False): "Rollout",
    (False, True): "gradient, last layer",
    (True, True): "Transformer-MM",
}
ways = {False: "rollout", True: "transformer-mm"}
saco = {"SaCo": METRICS["SaCo"].given(groups=groups)}


def ask(task):
    """SaCo of the four corners, and of what lies between one layer and all."""
    deep = len(task.model.blocks)
    ends = {name: (ways[gradient], {"layers": deep if every else 1}) for (every, gradient), name in corners.items()}
    found = [evaluate(saco, task, tasks.attributions(task, ends))]
    for layers in range(2, deep):
        between = {corners[True, gradient]: (way, {"layers": layers}) for gradient, way in ways.items()}
        maps = tasks.attributions(task, between)
        found.append(evaluate(saco, task, maps, variant="last layers only", level=layers))
    return Scores.concat(found)


scores = run.table("scores", ask, chosen)

# %% [markdown]
# ## Table 1
#
# *Published* is the paper's mean over three networks on ImageNet. In brackets: 95 % intervals over the images.

# %% tags=["hide-input"]
words = {False: "last layer", True: "all layers"}, {False: "attention alone", True: "with the gradient"}
estimates = tables.summary(scores, ["explainer"], variant=None)
of_corner = {name: {"aggregation": words[0][a], "gradient": words[1][g]} for (a, g), name in corners.items()}
estimates = estimates.assign(**pd.DataFrame([of_corner[name] for name in estimates["explainer"]]))
run.save(estimates, "estimates")
printed = published.load("saco_ablation").rename(columns={"cross_layer_aggregation": "aggregation", "saco": "mean"})
printed = printed.replace({"aggregation": words[0], "gradient": words[1]})
sources = {"published": printed, "measured": estimates}
order = [*words[0].values(), *words[1].values()]
tables.compared(sources, rows=["gradient"], columns=["aggregation"], order=order)

# %% [markdown]
# ## What each step adds
#
# Both steps are judged image by image: the difference of two explanations of the same image varies less than either.

# %% tags=["hide-input"]
cells = [{"explainer": name} for name in corners.values()]  # Raw Attention, Rollout, gradient, Transformer-MM
steps = {
    ("gradient", "last layer"): [-1, 0, 1, 0],
    ("gradient", "all layers"): [0, -1, 0, 1],
    ("aggregation", "attention alone"): [-1, 1, 0, 0],
    ("aggregation", "with the gradient"): [0, 0, -1, 1],
}
added = stats.estimate(scores, metric="SaCo", variant=None, cells=cells, contrasts=list(steps.values()))
effects = pd.DataFrame(
    [(*key, *map(float, of)) for key, of in zip(steps, zip(*added.pooled, strict=True), strict=True)]
)
effects.columns = ["step", "given", "mean", "low", "high"]
run.save(effects, "effects")
tables.compared({"adds to SaCo": effects}, rows=["step", "given"], columns=[], digits=3)

# %% [markdown]
# The paper says it in percent of what SaCo is without the step: the ratio of the two means, less one. Its interval resamples
# the images for both means at once. Of a mean near zero no such percentage can be told: then the interval is wide.


# %% tags=["hide-input"]
def gain(with_it, without, less=1):
    """By how much of its own size a step raises SaCo: the ratio of two means of the same images, less 1, or more."""
    over = {"explainer": with_it}, {"explainer": without}
    return stats.Statistic(lambda a, b: a.mean() / b.mean() - less, over, "relative gain")


paper = {
    name: float(published.load("saco_ablation").set_index(["cross_layer_aggregation", "gradient"])["saco"][key])
    for key, name in corners.items()
}
pairs = {key: [list(corners.values())[of.index(sign)] for sign in (1, -1)] for key, of in steps.items()}
rows = [(*key, *map(float, stats.estimate(scores, gain(*pair), variant=None).pooled)) for key, pair in pairs.items()]
gains = pd.DataFrame(rows, columns=["step", "given", "mean", "low", "high"])
run.save(gains, "gains")
percent = gains.assign(**100 * gains[["mean", "low", "high"]])
in_print = gains[["step", "given"]].assign(mean=[100 * (paper[x] / paper[y] - 1) for x, y in pairs.values()])
sources = {"published, %": in_print, "measured, %": percent}
tables.compared(sources, rows=["step", "given"], columns=[], digits=0)

# %% mystnb={"figure": {"caption": "SaCo when only the last layers are aggregated, from one to all. Points: means over the images; bars: 95 % intervals. The ends of both lines are the four numbers of Table 1.", "name": "saco-layers"}, "image": {"alt": "Line chart for each network: number of last layers aggregated against SaCo, one line for attention alone and one with the gradient."}} tags=["hide-input", "answer"]
figure, grid = plt.subplots(1, len(chosen), figsize=(3.4 + 3 * len(chosen), 3.6), squeeze=False, sharey=True)
rows = []
for axes, task in zip(grid[0], chosen, strict=True):
    deep = len(task.model.blocks)
    own = {"network": task.network, "training_seed": task.training_seed}
    for (gradient, label), colour, marker in zip(words[1].items(), sns.color_palette("colorblind"), "os", strict=False):
        middle = {"explainer": corners[True, gradient], "variant": "last layers only"}
        cells = [{"explainer": corners[False, gradient], "variant": None}]
        cells += [{**middle, "level": layers} for layers in range(2, deep)]
        cells += [{"explainer": corners[True, gradient], "variant": None}]
        value, low, high = stats.estimate(scores, cells=cells, **own).pooled
        rows += [
            (*own.values(), label, k + 1, *map(float, of)) for k, of in enumerate(zip(value, low, high, strict=True))
        ]
        at = [k + 1 + (0.06 if gradient else -0.06) for k in range(deep)]  # so that the bars do not cover each other
        axes.errorbar(at, value, [value - low, high - value], color=colour, marker=marker, capsize=3, label=label)
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.set(
        title=f"{task.network}, seed {task.training_seed}",
        xlabel="last layers aggregated",
        xticks=range(1, deep + 1),
    )
grid[0, 0].set_ylabel("SaCo")
plots.key(figure, grid[0, 0])
by_layers = pd.DataFrame(rows, columns=["network", "training_seed", "gradient", "layers", "mean", "low", "high"])
run.save(by_layers, "by_layers")
plots.show(figure)

# %% [markdown]
# ## What reproduced
#
# Every step is a part of its own, judged on the same images. *More* compares the two means of two steps each; of the four
# numbers all but two cancel in it: what remains is the last layer with the gradient against all layers without it.

# %% tags=["hide-input"]
learned = transformers.learned(recognised, chosen[0])


def step(x, y, name):
    """One step of Table 1: SaCo with it is above SaCo without it."""
    numbers = [paper[x], paper[y]]
    return better(scores, {"explainer": x}, {"explainer": y}, variant=None, name=name, printed=numbers)


run.claim(
    "saco-gradient",
    "Section 5.4, Table 1",
    "The gradient makes attention more faithful, with and without aggregation over the layers.",
    [
        learned,
        step("gradient, last layer", "Raw Attention", "in the last layer"),
        step("Transformer-MM", "Rollout", "over all layers"),
    ],
)

# %% tags=["hide-input"]
run.claim(
    "saco-aggregation",
    "Section 5.4, Table 1",
    "Aggregation over the layers makes attention more faithful, with and without the gradient.",
    [
        learned,
        step("Rollout", "Raw Attention", "attention alone"),
        step("Transformer-MM", "gradient, last layer", "with the gradient"),
    ],
)

# %% tags=["hide-input"]
run.claim(
    "saco-gradient-more",
    "Section 5.4, Table 1",
    "For the faithfulness of attention the gradient matters more than aggregation over the layers.",
    [learned, step("gradient, last layer", "Rollout", "the gradient alone against aggregation alone")],
)

# %% [markdown]
# The text adds how much: "approximately 106%" in the last layer, "an 86% increase" over all layers. Another network on other
# images will not have the same percentages. *About* is within a quarter of SaCo without the gradient.

# %% tags=["hide-input"]
about = {
    "margin": 0.25,
    "reason": "a quarter of SaCo without the gradient: 'approximately' is the paper's word",
    "variant": None,
}
of_gradient = {given: pair for (what, given), pair in pairs.items() if what == "gradient"}
told = {given: paper[x] / paper[y] - 1 for given, (x, y) in of_gradient.items()}
run.claim(
    "saco-gradient-percent",
    "Section 5.4, Table 1",
    "The gradient raises the SaCo of attention by about 106 % in the last layer, and by about 86 % over all layers.",
    [
        learned,
        *(agrees(scores, by, of=gain(*of_gradient[given]), name=given, **about) for given, by in told.items()),
    ],
)

# %% [markdown]
# **Why?** A percentage has two parts, what the gradient adds and what it is divided by, SaCo without it. Each is set beside the
# printed one. Where SaCo without the gradient is not clearly above zero, no percentage can be told.

# %% tags=["hide-input"]
possible = []
for given, (x, y) in of_gradient.items():
    adds, base = stats.paired(scores, {"explainer": x}, {"explainer": y}, variant=None), paper[x] - paper[y]
    divisor = stats.estimate(scores, explainer=y, variant=None)
    apart = stats.estimate(scores, gain(x, y, 1 + told[given]), variant=None)
    asked_of = f"{given}: its gain here less the printed {100 * told[given]:.0f} %, in points"
    possible += [
        Reason("Is it about as printed?", asked_of, apart, within=about["margin"], said=tables.points),
        Reason(
            "Does the gradient add more than in print?",
            f"{given}: what it adds; in print {base:.3f}",
            adds,
            above=round(base, 3),
        ),
        Reason(
            "Is SaCo without it lower than in print?",
            f"{given}: SaCo without it; in print {paper[y]:.3f}",
            divisor,
            below=round(paper[y], 3),
        ),
    ]
run.why("saco-gradient-percent", *possible)

# %% tags=["hide-input"]
run.finish()
