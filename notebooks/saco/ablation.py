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
images = 128  # test images to explain
groups = 10  # K of SaCo
resamples = 1000  # of the images, for the intervals
training = "bfloat16"  # precision of training
seed = 0

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from IPython.display import Markdown

from faithlab.explainers import explain
from faithlab.metrics.saco import saco as coefficient
from faithlab.study import claims, figures, published, saco, tables
from faithlab.study.results import Run, recorded

figures.theme()
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
# What is between one layer and all of them costs little more, so it is measured too: the last two layers, the last three,
# and so on.

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
rows = []
for s in subjects:
    score = saco.scorer(s)
    for gradient, name in ((False, "rollout"), (True, "transformer-mm")):
        for layers in range(1, len(s.model.blocks) + 1):
            attribution = explain(name, s.model, s.x, s.target, s.segments, rows=64, layers=layers)
            share = layers / len(s.model.blocks)
            value = coefficient(score, attribution, groups)
            rows.append(saco.tidy(value, network=s.name, gradient=gradient, layers=layers, share=share))
scores = pd.concat(rows, ignore_index=True)
run.save(scores, "scores")
run.save(saco.accuracies(subjects), "networks")
Markdown(saco.introduced(subjects, recipe, recorded("saco/ablation", "networks")))

# %% [markdown]
# ## Table 1
#
# The last layer is Rollout's and Transformer-MM's with one layer, which is Raw Attention, without and with the gradient.
# *Published* is the paper's mean over three networks on ImageNet.

# %% tags=["hide-input"]
ends = scores.assign(aggregation=scores["share"] == 1)
corners = ends[(ends["layers"] == 1) | ends["aggregation"]]
estimates = saco.estimates(corners, by=["aggregation", "gradient"], resamples=resamples, seed=seed)
run.save(estimates, "estimates")
kept = recorded("saco/ablation", "estimates")
printed = published.load("saco_ablation").rename(columns={"cross_layer_aggregation": "aggregation", "saco": "mean"})
words = {
    "aggregation": {False: "last layer", True: "all layers"},
    "gradient": {False: "attention alone", True: "with the gradient"},
}
sources = {
    name: frame.replace(words)[["aggregation", "gradient", "mean"]]
    for name, frame in (("published", printed), ("recorded", kept.frame if kept else None), ("this build", estimates))
    if frame is not None
}
tables.styled(
    tables.side_by_side(sources, rows=["gradient"], columns=["aggregation"], order=["last layer", "attention alone"])
)

# %% [markdown]
# ## What each step adds
#
# Both steps are judged image by image: the difference of two explanations of the same image varies less than either.

# %% tags=["hide-input"]
at = corners.pivot_table(index=["network", "image"], columns=["aggregation", "gradient"], values="value", dropna=False)
steps = {
    ("gradient", "last layer"): at[False, True] - at[False, False],
    ("gradient", "all layers"): at[True, True] - at[True, False],
    ("aggregation", "attention alone"): at[True, False] - at[False, False],
    ("aggregation", "with the gradient"): at[True, True] - at[False, True],
}
differences = pd.concat(
    [d.rename("value").reset_index().assign(step=step, given=given) for (step, given), d in steps.items()],
    ignore_index=True,
)
effects = saco.estimates(differences, by=["step", "given"], resamples=resamples, seed=seed).dropna(subset=["count"])
run.save(effects, "effects")
tables.styled(
    pd.DataFrame(
        {
            "step": effects["step"],
            "given": effects["given"],
            "adds to SaCo": effects["mean"].map("{:+.3f}".format),
            "95 % interval": [
                f"{low:+.3f} to {high:+.3f}" for low, high in zip(effects["low"], effects["high"], strict=True)
            ],
        }
    )
).hide(axis="index")

# %% mystnb={"figure": {"caption": "SaCo when only the last layers are aggregated, from one to all. Points: means over the images; bars: 95 % bootstrap intervals. The ends of both lines are the four numbers of Table 1.", "name": "saco-layers"}, "image": {"alt": "Line chart: number of last layers aggregated against SaCo, one line for attention alone and one with the gradient."}} tags=["hide-input"]
by_layers = saco.estimates(scores, by=["gradient", "layers"], resamples=resamples, seed=seed).dropna(subset=["mean"])
run.save(by_layers, "by_layers")
figure, axes = plt.subplots(figsize=(6.4, 3.6))
for (gradient, of), colour, marker in zip(
    by_layers.groupby("gradient"), sns.color_palette("colorblind"), "os", strict=False
):
    error = [of["mean"] - of["low"], of["high"] - of["mean"]]
    x = of["layers"] + (0.06 if gradient else -0.06)  # so that the bars do not cover each other
    axes.errorbar(x, of["mean"], error, color=colour, marker=marker, capsize=3, label=words["gradient"][gradient])
axes.axhline(0, color="0.3", linewidth=0.8)
axes.set(xlabel="last layers aggregated", ylabel="SaCo", xticks=sorted(by_layers["layers"].unique()))
axes.legend()
figures.show(figure)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(saco.ABLATION, {"effects": effects})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
