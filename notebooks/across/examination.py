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
# # Which metric passes which trial?
#
# A faithfulness metric says how good an explanation is, and nobody knows the true answer. So who checks the metric? Here
# every metric of this study takes seven *trials*. A trial is a question to which the right answer is known: an explanation
# with noise in it is worse than the same one without, whatever the network does. Each paper brought a trial or two, and
# asked it of its own metric. This page asks all trials of all metrics, on one network and the same images.
#
# A number $T$ says how a metric did: **1** it is always right, **0** it might as well toss a coin, below 0 it is more often
# wrong than right.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, study or paper: see notebooks/profiles.yml
metric = ""  # a metric of your own, path/to/file.py:function
explainer = ""  # an explainer of your own, path/to/file.py:function
training = {}  # what differs from the recipe of the study's network, such as {"epochs": 5}: see faithlab.study.networks
tuning = {}  # the same of its fine-tuning on random masks
beta = 0.1  # largest share of the features that fine-tuning removes
images = 20  # test images to explain
side = 6  # an image is cut into side x side features
explainers = ["gradcam", "integrated-gradients", "saliency", "excitation-backprop"]
steps = 8  # of Integrated Gradients
noise_shares = [0.0, 0.25, 0.5, 0.75, 1.0]  # of Order
randomised_share = 0.3  # of the layers, in Own model
size_step = 0.1  # between the sizes of metrics that have several
draws = 2  # random subsets of R- and F-Fidelity; the paper draws 50
budget = 700  # forwards for each image and metric, in Gaming
gamed = 8  # images of Gaming
seeds = [0]  # of noise, random orders and searches
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
training_seeds = [0]  # each is a network of its own

# %% tags=["hide-input"]
import dataclasses
import functools

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown
from scipy.cluster import hierarchy

from faithlab import masks, references
from faithlab.claims import below
from faithlab.metrics import METRICS
from faithlab.scores import Scores
from faithlab.study import figures, networks, tables
from faithlab.study.results import Run
from faithlab.trials import examination, subjects, truth
from faithlab.trials.references import perturbed
from faithlab.zoo import datasets
from faithlab.zoo.training import accuracy

figures.theme()
run = Run("across/examination", globals())

# %% [markdown]
# ## What is examined
#
# Every registered metric, those of your own files among them. Those that look at several sizes of an explanation look at
# fewer here, and those that draw random subsets draw few: the same for all trials, so that the comparison is fair, but a
# metric with more draws is less noisy and costs more.

# %% tags=["hide-input"]
sizes = [round(k * size_step, 6) for k in range(1, round(1 / size_step))]
metrics = {name: m.given(sizes=sizes) if m.sizes else m for name, m in METRICS.items()}
metrics = {n: m.given(draws=draws) if m.family in ("R-Fidelity", "F-Fidelity") else m for n, m in metrics.items()}
yours = metric.rpartition(":")[2]
if metric:
    metrics = {yours: examination.yours(metric, "metric"), **metrics}
chosen = {name: (name, {"steps": steps}) if name == "integrated-gradients" else name for name in explainers}
if explainer:
    chosen = {explainer.rpartition(":")[2]: examination.yours(explainer, "explainer"), **chosen}

cells = torch.arange(32) * side // 32
grid = cells[:, None] * side + cells  # which feature each pixel belongs to
test = datasets.load("cifar10", "test")
asked = []
for pair in networks.pairs(networks.RESNET9, run.parameters):
    options = {"tuned": pair["fine-tuned"], "name": "ResNet-9", "precision": precision, "features": grid}
    subject = subjects.subject(pair["original"], images, about="prediction", **options)
    subject, _ = perturbed(subject, test)
    blurred = {"blur": functools.partial(references.blur, sigma=4.0)}
    asked.append(dataclasses.replace(subject, references={**subject.references, **blurred}))
known = truth.closed_form(2 * images)

# %% tags=["hide-input"]
right = [(accuracy(subject.model, test), accuracy(subject.tuned, test)) for subject in asked]
cap = int(masks.bound(beta, side**2))
Markdown(
    "The network is a ResNet-9 that recognises "
    + ", ".join(f"**{own:.1%}**" for own, _ in right)
    + f" of the test images of CIFAR-10, its companion, fine-tuned on random masks, {', '.join(f'{tuned:.1%}' for _, tuned in right)}. "
    + f"Each image is cut into {side} x {side} squares, the {side**2} features; {images} images are explained. Own model "
    + f"randomises the last {randomised_share:.0%} of the layers.\n\n"
    + f"*Read the rows of F-Fidelity with this in mind:* of {side**2} squares, its cap {beta:g} lets it remove at most {cap} at a "
    + f"time, and it draws {draws} subsets a size where the paper draws 50."
)

# %% [markdown]
# How F-Fidelity does where the features are single pixels is a page of its own: [](../f-fidelity/images). The seven trials:
#
# | Trial | The right answer, known before |
# |---|---|
# | **Order** | Of one explanation with some of its scores shuffled, less shuffling is better {cite:p}`zheng2025ffidelity` |
# | **Chance** | An explanation is better than a random order {cite:p}`wu2024saco` |
# | **Truth** | Where it is known which features decide, the order that puts more of them first is better |
# | **Own model** | The explanation of this network is better than that of the network with its last layers randomised |
# | **Gaming** | The order that the metric itself likes best beats the explanations under *other* metrics, too {cite:p}`wang2024trace` |
# | **Stand-in** | Removed features are zero, the mean colour, or blurred: the explainers keep their order {cite:p}`marchadour2025fewclass` |
# | **Repeat** | Another half of the images, and other random draws: the explainers keep their order |
#
# All are defined, and can be called, in {py:mod}`faithlab.trials.examination`.

# %% tags=["hide-input"]
options = {
    "levels": noise_shares,
    "seeds": seeds,
    "randomised_share": randomised_share,
    "budget": budget,
    "gamed": gamed,
}
found = [examination.examine(metrics, subject, chosen, truth=[known], **options) for subject in asked[:1]]
found += [examination.examine(metrics, subject, chosen, **options) for subject in asked[1:]]
why, scores = found[0].obstacles, Scores.concat(part.scores for part in found)
trust = found[0].trust if len(found) == 1 else examination.trust(scores, metrics, why)
each = examination.singles(scores, metrics, why)
run.save(scores, "scores")
run.save(each, "singles")
run.save(trust, "trust")

# %% [markdown]
# ## The matrix: can the mean over images be trusted?
#
# A metric *passed* where the 95 % interval of $T$ lies above 0.8 and *failed* where it lies below 0.5. Else these images do
# not decide, and the cell is *open*: more images would tell. The order of the rows: fewest failed trials first, then most
# passed. An outline marks the trial of the metric's own paper.

# %% mystnb={"figure": {"caption": "Metrics by trials, on the means over the images. T: 1 always right, 0 a coin. Passed: its interval lies above 0.8; failed: below 0.5; open: these images do not decide. Hatched: the trial does not apply.", "name": "ex-matrix"}, "image": {"alt": "Heat map of metrics by seven trials: each cell has a number and says passed, failed, open or does not apply."}} tags=["hide-input", "answer"]
figures.matrix(trust)

# %% tags=["hide-input"]
judged = trust[(trust["size"] == "all images") & (trust["verdict"] != examination.NONE)]
failed, passed = (
    judged[judged["verdict"] == said].groupby("metric")["trial"].agg(", ".join)
    for said in (examination.FAILED, examination.PASSED)
)
price = examination.price(scores, metrics, side * side, level=min(noise_shares[1:], key=lambda r: abs(r - 0.4)))
run.save(price, "price")
forwards = price.set_index("metric")["forwards"]
clean = [name for name in forwards.sort_values().index if name not in failed]
Markdown(
    f"**Which one, then?** With {images} images of CIFAR-10, on a ResNet-9, no failure is seen of these, the cheapest first: "
    + ("; ".join(f"**{name}** (passes {passed.get(name, 'none yet')})" for name in clean) or "none")
    + ". Cells that are open may still fail. The others fail: "
    + ("; ".join(f"{name} ({trials})" for name, trials in failed.items()) or "none")
    + "."
)

# %% [markdown]
# ## The same, for the number of a single image
#
# Often there is one image, and one number. A mean over images hides how often that number is wrong.

# %% mystnb={"figure": {"caption": "The same trials, on the scores of single images; T is the mean over images. A metric that draws nothing repeats itself on the same image, so that Repeat does not apply.", "name": "ex-matrix-single"}, "image": {"alt": "Heat map of metrics by seven trials, for single images."}} tags=["hide-input"]
figures.matrix(trust, "one image")

# %% [markdown]
# The scores of a single image would have to be in the right order nearly always, to be read as if they were. This is our own
# claim, not a paper's:

# %% tags=["hide-input"]
there = trust[(trust["size"] == "one image") & (trust["trial"] == "Order") & (trust["verdict"] != examination.NONE)]
run.claim(
    "ex-single-order",
    "this page",
    "No metric's score of a single image passes Order: T is below 0.8 for each of them.",
    [below(each, examination.PASS, metric=name, variant="Order", name=name) for name in there["metric"]],
)

# %% [markdown]
# ## Every number with its interval
#
# For the means. Below a dash stands why a trial does not apply.

# %% tags=["hide-input"]
rows = trust[trust["size"] == "all images"].assign(mean=lambda f: f["T"], missing=lambda f: f["undefined"])
shown = tables.side_by_side({"": rows}, rows=["metric"], columns=["trial"], order=examination.TRIALS)
tables.styled(shown.droplevel(1, axis=1))

# %% tags=["hide-input"]
reasons = trust[trust["verdict"] == examination.NONE].drop_duplicates(["metric", "trial", "why"])
reasons = reasons.groupby("why", sort=False)["metric"].agg(lambda of: ", ".join(dict.fromkeys(of))).reset_index()
tables.prose(
    reasons.rename(columns={"metric": "Metrics", "why": "Why a trial does not apply"})[
        ["Metrics", "Why a trial does not apply"]
    ]
)

# %% [markdown]
# **Calibrated?** Some metrics say what chance is: 0, for a random order. Off is how far the mean of random orders lies from
# that, in standard deviations of the metric.

# %% tags=["hide-input"]
off = examination.calibration(scores, metrics)
run.save(off, "calibration")
Markdown(
    "; ".join(f"**{r.metric}** {r.off:.2f} [{r.low:.2f}, {r.high:.2f}]".replace("-", "−") for r in off.itertuples())
    + "."
)

# %% [markdown]
# ## Trust against price
#
# A metric that needs fewer images needs fewer forwards. The price is what it takes to tell two explanations apart that
# differ: each explanation from one with 40 % of it shuffled (or the share nearest to that), and from a random order. It is
# estimated from the size of the difference, for four successes in five. On the vertical axis: the *lowest* $T$ of all
# trials, since a chain is as good as its weakest link.

# %% mystnb={"figure": {"caption": "The weakest trial of each metric (vertical) against the forwards that it takes to tell explanations apart (horizontal, logarithmic). Bars: 95 % intervals. To the upper left is better.", "name": "ex-price"}, "image": {"alt": "Scatter plot: forwards needed against the lowest T, a labelled point for each metric."}} tags=["hide-input"]
weakest = judged.sort_values("T").drop_duplicates("metric").set_index("metric")
figure, axes = plt.subplots(figsize=(7.6, 4.8))
told = price.set_index("metric").replace(float("inf"), float("nan")).dropna(subset=["images"])
for k, (name, p) in enumerate(told.sort_values("forwards").iterrows()):
    at, T = p["forwards"], weakest.loc[name]
    ends = [[at * (1 - p["images_low"] / p["images"])], [at * (p["images_high"] / p["images"] - 1)]]
    ends = None if ends[1][0] != ends[1][0] else ends  # no end: the other may be any number
    colour = sns.color_palette("colorblind")[k % 10]
    error = {"xerr": ends, "yerr": [[T["T"] - T["low"]], [T["high"] - T["T"]]], "elinewidth": 0.7, "alpha": 0.8}
    axes.errorbar(at, T["T"], fmt="osD^vP*X<>"[k % 10], color=colour, label=f"{name} ({T['trial']})", **error)
axes.set(
    xscale="log", xlabel="forwards to tell two explanations apart", ylabel="T of the weakest trial", ylim=(-1.05, 1.05)
)
figures.mark(axes, examination.FAIL, "failed below", axis="y")
axes.legend(bbox_to_anchor=(1.0, 1.0), loc="upper left", fontsize="x-small", title="metric (its weakest trial)")
figures.show(figure)

# %% tags=["hide-input"]
plan = price.set_index("metric")[["each", "images", "images_low", "images_high", "shows_10", "shows_100", "shows_1000"]]
names = ["forwards each", "images", "from", "to", "10 images show", "100 show", "1000 show"]
tables.styled(plan.sort_values("images").set_axis(names, axis=1).map("{:.3g}".format))

# %% [markdown]
# *10 images show* 0.5: with ten images a difference is seen that is half as large as the one between an explanation and a
# random order. Metrics that need retrained or fine-tuned networks cost those besides.
#
# ## Do they agree?
#
# For each image a metric ranks the explainers. Metrics that measure the same thing would rank them alike.

# %% mystnb={"figure": {"caption": "Rank correlation of two metrics over the explainers of an image, the mean over images. Metrics that rank alike stand together (hierarchical clustering, average linkage).", "name": "ex-agreement"}, "image": {"alt": "Square heat map of correlations between metrics, clustered."}} tags=["hide-input"]
alike = examination.agreement(scores, metrics)
run.save(alike, "agreement")
both = pd.concat([alike, alike.rename(columns={"metric": "other", "other": "metric"})])
square = both.pivot(index="metric", columns="other", values="correlation").rename_axis(index=None, columns=None)
filled = square.fillna(0.0).to_numpy(copy=True)
filled[range(len(filled)), range(len(filled))] = 1.0
order = square.index[hierarchy.leaves_list(hierarchy.linkage(filled, "average"))]
figure, axes = plt.subplots(figsize=(7.4, 6.2))
sns.heatmap(
    square.loc[order, order], vmin=-1, vmax=1, cmap="RdBu", annot=True, fmt=".1f", annot_kws={"size": 7}, ax=axes
)
axes.tick_params(labelsize="small")
figures.show(figure)

# %% [markdown]
# ## Examine yours
#
# A metric is a function of a score and an attribution, an explainer one of a model and inputs. Either is a file of yours:
#
# ```bash
# make examine METRIC=path/to/file.py:function
# make examine EXPLAINER=path/to/file.py:function
# ```
#
# runs this page with it, and says where the page and its row are. See [](../../book/fork).

# %% tags=["hide-input"]
said = []
if metric:
    single = each.where(metric=yours)
    for row in judged[judged["metric"] == yours].sort_values("T").head(2).itertuples():
        block = single.where(variant=row.trial).blocks[0] if row.trial in single.labels("variant") else None
        low = [] if block is None else block.images[block.values[:, 0].argsort()][:5].tolist()
        said.append(f"The weakest of **{yours}**: {row.trial}, T = {row.T:.2f} [{row.low:.2f}, {row.high:.2f}]")
        said[-1] += f", lowest on the images {low}" if low else ""
if explainer:
    card = examination.report(scores, metrics, next(iter(chosen)))
    run.save(card, "report")
    for r in card.itertuples():
        said.append(f"**{r.metric}**: {'ahead of' if r.ahead > 0 else 'behind'} {r.rival} by {abs(r.ahead):.3g}")
        said[-1] += "" if r.real else ", which may be noise"
        said[-1] += f"; {r.attainable:.0%} of the way to the best order" if r.attainable == r.attainable else ""
Markdown("\n".join(f"- {line}." for line in said) or "This run examined nobody's own metric or explainer.")

# %% tags=["hide-input"]
run.finish()
