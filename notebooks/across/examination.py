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
# every metric of this study takes seven *trials*. A trial is a question to which the right answer is known, or taken as known: an explanation
# with noise in it is worse than the same one without, whatever the network does. Each paper brought a trial or two, and
# asked it of its own metric. This page asks all trials of all metrics, of the same networks and inputs.
#
# A number $T$ says how a metric did: **1** it is always right, **0** it might as well toss a coin, below 0 it is more often
# wrong than right.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
networks = [
    "resnet9 0",
    "resnet9 1",
    "resnet9 2",
    "vit 0",
    "bilstm 0",
    "lstm 0",
]  # what is examined: models of faithstudy.architectures, each with its training seed
metric = ""  # a metric of your own, path/to/file.py:function
explainer = ""  # an explainer of your own, path/to/file.py:function
model = ""  # a network of your own in place of these, path/to/file.py:function
data = ""  # its inputs: path/to/inputs.npz, or path/to/file.py:function
peers = [
    "Quantus: Faithfulness Correlation",
    "Quantus: Pixel-Flipping",
    "Quantus: Monotonicity",
    "Quantus: Infidelity",
    "Quantus: ROAD",
    "Quantus: Sensitivity-n",
    "Quantus: Sufficiency",
    "captum: infidelity",
    "captum: max-sensitivity",
    "pytorch-grad-cam: ROAD",
]  # metrics of other libraries, such as "captum: infidelity": see faithstudy.trials.other_libraries
training = {}  # by model: what differs from its recipe, such as {"resnet9": {"epochs": 5}}: see faithstudy.recipes
tuning = {}  # the same of its fine-tuning on random masks
beta = 0.1  # largest share of the features that fine-tuning removes
images = 100  # test images, series or texts to explain, of each network
side = 6  # an image is cut into side x side features
explainers = {
    "resnet9": ["gradcam", "integrated-gradients", "saliency", "excitation-backprop"],
    "vit": ["gradcam-vit", "integrated-gradients", "raw-attention", "transformer-attribution"],
    "bilstm": ["occlusion", "integrated-gradients", "input-x-gradient", "saliency"],
    "lstm": ["occlusion", "integrated-gradients-embedding", "input-x-gradient-embedding"],
    "yours": ["integrated-gradients", "input-x-gradient", "saliency"],
}  # by model
steps = 8  # of Integrated Gradients
noise_shares = [0.0, 0.25, 0.5, 0.75, 1.0]  # of Order
randomised_share = 0.3  # of the layers, at least, in Own model
size_step = 0.1  # between the sizes of metrics that have several
draws = 2  # random subsets of R- and F-Fidelity; the paper draws 50
budget = 2000  # forwards for each input and metric, in Gaming
gamed = 40  # inputs of Gaming
seeds = [0]  # of noise, random orders and searches
precision = "bfloat16"  # of forwards of images, where the device computes it natively; else float32

# %% tags=["hide-input"]
import functools
import itertools
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import Markdown, display
from scipy.cluster import hierarchy

from faithlab import masks, stats
from faithlab.metrics import METRICS
from faithstudy import architectures, plots, records, summaries, tables
from faithstudy.claims import below, better
from faithstudy.diagnostics import Reason
from faithstudy.run import Run
from faithstudy.trials import checks, concordance, examination, own_model, prices, readings, recommendations, truth
from faithstudy.trials.other_libraries import chosen as other_libraries

plots.theme()
run = Run("across/examination", globals())

# %% [markdown]
# ## What is examined
#
# Every registered metric, those of your own files among them, and where the page was run with them, metrics of other
# libraries as they are. Metrics that look at several sizes of an explanation look at fewer here, and those that draw random
# subsets draw few: the same for all trials, so that the comparison is fair, but a metric with more draws is less noisy and
# costs more.

# %% tags=["hide-input"]
sizes = [round(k * size_step, 6) for k in range(1, round(1 / size_step))]
metrics = {name: m.given(sizes=sizes) if m.sizes else m for name, m in METRICS.items()}
metrics = {n: m.given(draws=draws) if m.family in ("R-Fidelity", "F-Fidelity") else m for n, m in metrics.items()}
metrics |= other_libraries(peers)
yours = metric.rpartition(":")[2]
if metric:
    metrics = {yours: checks.yours(metric, "metric"), **metrics}
own = {explainer.rpartition(":")[2]: checks.yours(explainer, "explainer")} if explainer else {}
where = {k.name: {"dataset": f"{k.recipe.data} test", "network": k.network} for k in architectures.KINDS.values()}


@functools.cache
def asked():
    """The networks by kind. Some of them do not ship, and are trained."""
    if model:
        return {"yours": [architectures.yours(model, data, run.parameters)]}
    return architectures.by_kind([architectures.asked(network, run.parameters) for network in networks])


def described():
    """A row for each network: what it is, what it recognises, and its stranger."""
    rows = []
    for one in itertools.chain(*asked().values()):
        other = own_model.stranger(one.task, randomised_share, seed=seeds[0])
        rows.append({**one.row, "stranger": str(other), "explainers": ", ".join([*own, *one.explainers])})
    return pd.DataFrame(rows)


if model:
    where["yours"] = {of: asked()["yours"][0].task.labels[of] for of in ("dataset", "network")}
facts = run.table("networks", described, again="training")
kinds = list(facts["kind"].unique())
tables.prose(facts)

# %% [markdown]
# *Fine-tuned* is the companion that was used to random masks. *Stranger* is the other network of Own model: how many of the last layers
# have their weights drawn anew, and to how many of these inputs it still gives the same class. Networks of one kind are judged together.
# Truth has a network of its own, and says the same in every kind.

# %% tags=["hide-input"]
count = facts["features"][0]
Markdown(
    f"*Read the rows of F-Fidelity with this in mind:* of {count} features, its cap {beta:g} lets it remove at most "
    f"{int(masks.bound(beta, count))} at a time, and it draws {draws} subsets a size where the paper draws 50."
)

# %% [markdown]
# How F-Fidelity does where the features are single pixels is a page of its own: [](../f-fidelity/images). The seven trials:
#
# | Trial | The right answer, known before |
# |---|---|
# | **Order** | Of one explanation with some of its scores shuffled, less shuffling is better {cite:p}`zheng2025ffidelity` |
# | **Chance** | An explanation is better than a random order {cite:p}`wu2024saco` |
# | **Truth** | Where it is known which features decide, the order that puts more of them first is better |
# | **Own model** | The explanation of this network is better than that of a stranger: the network with the weights of its last layers drawn anew, until it has forgotten what it knew |
# | **Gaming** | The order that the metric itself likes best beats the explanations under *other* metrics, too {cite:p}`wang2024trace` |
# | **Stand-in** | Removed features are zero, the mean colour, or blurred: the explainers keep their order {cite:p}`marchadour2025fewclass` |
# | **Repeat** | Another half of the images, and other random draws: the explainers keep their order |
#
# Chance and Own model take for granted that the explanations are good ones: one may be [worse than chance](../saco/random), and then the
# metric that says so is right. [Numbers that never ask the network](controls) pass some of the trials, too.
#
# All are defined, and can be called, in {py:mod}`faithstudy.trials.examination`.

# %% tags=["hide-input"]
FIRST, QUICKEST = "resnet9 0", "series, LSTM"  # of which a build measures some numbers again
given = {"levels": noise_shares, "seeds": seeds}


@functools.cache
def found():
    """What each kind of network is found to be."""
    pairs = {kind: [(one.task, {**own, **one.explainers}) for one in of] for kind, of in asked().items()}
    asking = {"budget": budget, "gamed": gamed, "kept": run.kept, "randomised_share": randomised_share}
    return examination.examine_kinds(metrics, pairs, truth=[truth.closed_form(2 * images)], **given, **asking)


def some_again():
    """Order and Chance of the first four images and the least noise, and Truth."""
    few = {"levels": noise_shares[:2], "seeds": seeds, "truth": truth.closed_form(2 * images)}
    one = architectures.asked(FIRST, run.parameters | {"images": 4})
    return examination.sampled(metrics, one.task, one.explainers, **few)


def evidence(kind, rows=None):
    """Scores of a kind of network, the metrics, and why some were not put to a trial, which their rows of `trust` say."""
    rows = trust if rows is None else rows
    own_scores = scores.where(**where[kind]) + scores.where(network="closed form")
    return own_scores, metrics, examination.obstacles_in(rows[rows["kind"] == kind])


def by_kind(table, *only):
    """A table of each kind of network, or of only some, one below the other."""
    return pd.concat([table(kind).assign(kind=kind) for kind in only or kinds], ignore_index=True)


def judged_again(kind):
    """The trials of a kind of network, by the recorded scores."""
    return examination.trust(*evidence(kind, records.recorded(run.name, "trust").frame))


def singles(*only):
    """T of each input."""
    return examination.joined({kind: examination.singles(*evidence(kind)) for kind in only or kinds})


scores = run.table(
    "scores", lambda: examination.joined({kind: of.scores for kind, of in found().items()}), again=some_again
)
trust = run.table(
    "trust", lambda: by_kind(lambda kind: found()[kind].trust), again=partial(by_kind, judged_again, QUICKEST)
)
each = run.table("singles", singles, again=partial(singles, QUICKEST))

# %% [markdown]
# ## The matrix: can the mean over images be trusted?
#
# A metric *passed* where the 95 % interval of $T$ lies above 0.8 and *failed* where it lies below 0.5. Else these images do
# not decide, and the cell is *open*: more images would tell; so it is where a network was asked about fewer than six. The interval is over
# the images alone, and $T$ of three or four explainers takes few values, so that it may have no width. *Truth* has one network for all
# kinds. The order of the rows: fewest failed trials first, then most
# passed; rows between two lines are equal in both, and stand in no order. An outline marks the trial of the metric's own
# paper.

# %% mystnb={"figure": {"caption": "Metrics by trials, on the means over the inputs. T: 1 always right, 0 a coin. Passed: its interval lies above 0.8; failed: below 0.5; open: these inputs do not decide. Hatched: the trial does not apply. Between two lines: equal.", "name": "ex-matrix"}, "image": {"alt": "Heat map of metrics by seven trials, for each kind of network: each cell has a number and says passed, failed, open or does not apply."}} tags=["hide-input", "answer"]
plots.matrix(trust)

# %% [markdown]
# **Which one, then?** These metrics fail no trial and pass Truth, which has a network of its own, and one with a right answer that the
# network itself was put to (Stand-in and Repeat only ask the same twice), the
# cheapest first; those before a *then* cannot be told apart by their price. Cells that are open may still fail. What the other metrics
# fail, and which one to take, stands in [](findings).

# %% tags=["hide-input"]
features = facts.groupby("kind")["features"].first()


def nearest(shares):
    """The share of noise that stands for an explanation with 40 % of it shuffled."""
    return min(shares[1:], key=lambda share: abs(share - 0.4))


def priced(kind):
    """What it costs to tell two explanations apart, on a kind of network."""
    return prices.price(*evidence(kind)[:2], features[kind], level=nearest(noise_shares))


price = run.table("price", partial(by_kind, priced), again=partial(by_kind, priced, QUICKEST))
of_run = f"{len(facts)} network{'s' * (len(facts) > 1)}, at most {facts['explained'].max()} inputs of each"
lines = []
for kind, of in recommendations.advice(trust, price).groupby("kind", sort=False):
    told = (", ".join(f"**{r.metric}** (passes {r.passed})" for r in at.itertuples()) for _, at in of.groupby("place"))
    unknown = ", ".join(of[of["place"].isna() & (of["failed"] == "")]["metric"])
    lines.append(f"- *{kind}*: {'; then '.join(told) or 'none'}. Not known yet of: {unknown or 'none'}")
Markdown("\n".join([*lines, f"\n({of_run}.)"]))

# %% tags=["hide-input", "headline"]
put = examination.applied(trust)
put = put[
    (put["trial"] != recommendations.BUILT) | ~put.duplicated(["metric", "trial"])
]  # one result, beside every kind
judged_as = [concordance.PASSED, concordance.FAILED, concordance.OPEN]
count = pd.crosstab(put["metric"], put["verdict"]).reindex(put["metric"].unique(), columns=judged_as, fill_value=0)
first = count[count["passed"] == count["passed"].max()]
lowest = put[put["metric"] == first.index[0]].sort_values("T").iloc[0]
most = [f"**{r.Index}** (of {sum(r[1:])} trials it passes {r.passed}, fails {r.failed})" for r in first.itertuples()]
Markdown(
    f"**{summaries.listed([*count[count['passed'] == count.sum(axis=1)].index]) or 'None'}** of {len(count)} metrics "
    f"passes every trial that it is put to, over {put['kind'].nunique()} kinds of network. {summaries.listed(most)} passes "
    f"most; its lowest T is {lowest['T']:.2f} [{lowest['low']:.2f}, {lowest['high']:.2f}], in "
    f"{lowest['trial']} ({lowest['kind']}). {(count['failed'] == 0).sum()} fail none, and may yet in what is open ({of_run})."
)

# %% [markdown]
# ## The same, for the number of a single image
#
# Often there is one image, and one number. A mean over images hides how often that number is wrong.

# %% mystnb={"figure": {"caption": "The same trials, on the scores of single images; T is the mean over images. A metric that draws nothing repeats itself on the same image, so that Repeat does not apply.", "name": "ex-matrix-single"}, "image": {"alt": "Heat map of metrics by seven trials, for single images."}} tags=["hide-input"]
plots.matrix(trust, "one image")

# %% [markdown]
# The scores of a single image would have to be in the right order nearly always, to be read as if they were. This is our own
# claim, not a paper's:

# %% tags=["hide-input"]
there = examination.applied(trust, "one image").query("trial == 'Order'")
run.claim(
    "ex-single-order",
    "this page",
    "No metric's score of a single input passes Order: T is below 0.8 for each of them, on each kind of network.",
    [
        below(each, concordance.PASS, of=concordance.SINGLE, metric=m, variant="Order", name=f"{m}, {k}", **where[k])
        for m, k in zip(there["metric"], there["kind"], strict=True)
    ],
)

# %% [markdown]
# **Why?** Is some metric near the bar, and is it where explanations are told from chance best? There every step of noise may show. Of each
# kind of network stands the metric with the highest *T* in Order, and what all metrics have in Chance, on the mean. A metric that
# says the same of every input has no interval, and stays open with any number of inputs.

# %% tags=["hide-input"]
one_image = examination.applied(trust, "one image").dropna(subset="T")
one_image = one_image[one_image["trial"].isin(["Order", "Chance"])].groupby("kind", sort=False)
one_image = dict(list(one_image))
possible = []
for kind, of_kind in one_image.items():
    t_of = partial(stats.estimate, each, concordance.SINGLE, **where[kind])
    of = {trial: part.set_index("metric")["T"].sort_index() for trial, part in of_kind.groupby("trial")}
    if "Order" in of:
        top = of["Order"].idxmax()
        told = t_of(metric=top, variant="Order")
        possible.append(Reason("Does one pass Order?", f"{kind}: the highest, {top}", told, above=concordance.PASS))
    if "Chance" in of:
        told = t_of(metric=[*of["Chance"].index], variant="Chance")
        possible.append(Reason("Is chance easily told?", f"{kind}: all metrics, mean", told, above=concordance.PASS))
run.why("ex-single-order", *possible)

# %% [markdown]
# ## What it teaches
#
# **Which trial is the hard one?** For each trial, how many metrics passed and failed it, of those to which it applies.

# %% tags=["hide-input"]
judged = examination.applied(trust)
counts = judged.groupby(["kind", "trial"], sort=False)["verdict"].agg(
    lambda v: f"{(v == concordance.PASSED).sum()} passed, {(v == concordance.FAILED).sum()} failed of {len(v)}"
)
counts = counts.unstack("kind").reindex(index=list(examination.TRIALS), columns=kinds).fillna("–")
counts.rename_axis(index=None, columns=None)

# %% [markdown]
# **Does it hold away from home?** A paper shows that its metric is good by its own trial. Here stand the metrics that are at
# home somewhere, with what was found there and in the other trials.

# %% tags=["hide-input"]
keys = ["kind", "metric"]
at_home = judged[judged["home"]].drop_duplicates(keys)
away = judged.merge(at_home[[*keys, "trial"]], on=keys, suffixes=("", "_home")).query("trial != trial_home")
away = pd.crosstab([away["kind"], away["metric"]], away["verdict"]).reindex(columns=judged_as, fill_value=0)
home = at_home.set_index(keys)[["trial", "verdict"]].set_axis(["at home in", "there"], axis=1)
home = home.join(away.add_prefix("elsewhere "))
run.save(home, "home")
tables.styled(home.astype(str).rename_axis([None, None]))

# %% [markdown]
# **The least or the most relevant first?** Removing the least relevant features first asks the network about inputs that still
# look like inputs. Does a metric that does so find the noise in an explanation more often? This is our own claim.

# %% tags=["hide-input"]
asked_of = {kind: set(of["metric"]) for kind, of in there.groupby("kind", sort=False)}
pairs = [("LeRF", "MoRF"), ("Comp.", "AOPC"), ("Fid-", "Fid+"), ("RFid-", "RFid+"), ("FFid-", "FFid+")]
run.claim(
    "ex-least-first",
    "this page",
    "A metric that removes the least relevant features first orders noisy explanations of a single input better than the "
    "same metric with the most relevant first, on each kind of network.",
    [
        better(each, {"metric": a}, {"metric": b}, name=f"{a} > {b}, {kind}", variant="Order", **where[kind])
        for kind, names in asked_of.items()
        for a, b in pairs
        if {a, b} <= names
    ],
)

# %% [markdown]
# **Its own trial?** SaCo was shown to be good by Chance, F-Fidelity by Order. On a single input, is each better at home than
# in the other's trial? Where it is, its paper's own trial says more of it than others would. Our own claim, too.

# %% tags=["hide-input"]
own_trials = {"SaCo": ("Chance", "Order"), "FFid+": ("Order", "Chance"), "FFid-": ("Order", "Chance")}
run.claim(
    "ex-own-trial",
    "this page",
    "SaCo does better in Chance than in Order, and F-Fidelity in Order than in Chance: each at home.",
    [
        better(
            each, {"variant": here}, {"variant": other}, metric=name, less=False, name=f"{name}, {kind}", **where[kind]
        )
        for kind, names in asked_of.items()
        for name, (here, other) in own_trials.items()
        if name in names
    ],
)

# %% [markdown]
# **Why?** Is it the home of the metric, or is one of the trials easier for *every* metric? Order asks for small steps of noise, Chance for
# the difference from a random order. If Chance is easier for all others, SaCo's lead there is no merit of its home, and if it is for
# F-Fidelity, too, its home is the harder trial. $T$ is that of single inputs.

# %% tags=["hide-input"]
possible, pair = [], ({"variant": "Chance"}, {"variant": "Order"})
for kind, of_kind in one_image.items():
    both = of_kind.groupby("metric", sort=False)["trial"].nunique()
    names = both.index[both == 2]
    groups = {"all others": names[~names.isin([*own_trials])], "F-Fidelity": names[names.str.startswith("FFid")]}
    for group, of in groups.items():
        if len(of):
            told = stats.paired(each, *pair, concordance.SINGLE, metric=[*of], **where[kind])
            asked_in = f"{kind}: T in Chance − in Order, mean"
            possible.append(Reason(f"Is Chance easier for {group}?", asked_in, told, above=0))
run.why("ex-own-trial", *possible)

# %% [markdown]
# ## Every number with its interval
#
# For the means. Below a dash stands why a trial does not apply. What else was found when metrics of other libraries were run is told in
# [](../cost/peers).

# %% tags=["hide-input"]
rows = trust[trust["size"] == "all images"].assign(mean=lambda f: f["T"], missing=lambda f: f["undefined"])
tables.compared(rows, rows=["kind", "metric"], columns=["trial"], order=examination.TRIALS)

# %% mystnb={"markdown_format": "myst"} tags=["hide-input"]
reasons = trust[trust["verdict"] == concordance.NONE].drop_duplicates(["metric", "trial", "why"])
reasons = reasons.groupby("why", sort=False)["metric"].agg(lambda of: ", ".join(dict.fromkeys(of)))
Markdown("Why a trial does not apply:\n\n" + "\n".join(f"- *{why}*: {names}." for why, names in reasons.items()))

# %% [markdown]
# ## Trust against price
#
# A metric that needs fewer images needs fewer forwards. The price is what it takes to tell two explanations apart that
# differ: each explanation from one with 40 % of it shuffled (or the share nearest to that), and from a random order. It is
# estimated from the size of the difference, for four successes in five. On the left: the *lowest* $T$ of all
# trials, since a chain is as good as its weakest link.

# %% mystnb={"figure": {"caption": "Left: T of the weakest trial of each metric, which is named behind it; right: the forwards that it takes to tell two explanations apart (logarithmic). Bars: 95 % intervals; where they overlap, nothing is decided. Better are metrics further up that need fewer forwards.", "name": "ex-price"}, "image": {"alt": "Dot plots, a row for each metric and a pair of panels for each kind of network: the lowest T with its interval on the left, the forwards needed on the right."}} tags=["hide-input"]
of_all = trust[(trust["size"] == "all images") & trust["verdict"].isin([*plots.VERDICTS])].sort_values("T")
weakest = of_all.drop_duplicates(["kind", "metric"])[["kind", "metric", "T", "low", "high", "trial"]]
priced = price[(price["images"] < np.inf) & (price["forwards"] > 0)].drop(columns=["low", "high"])
priced = priced.merge(weakest, on=["kind", "metric"]).sort_values(["T", "forwards"], ascending=False)
priced.index = priced["metric"] + " (" + priced["trial"] + ")"
ends = priced[["images_low", "images_high"]].mul(2 * priced["each"], axis=0).clip(upper=30 * priced["forwards"], axis=0)
sides = {"T of the weakest trial": priced[["T", "low", "high"]], "forwards to tell two apart": ends}
sides["forwards to tell two apart"].insert(0, "mean", priced["forwards"])
there = [kind for kind in price["kind"].unique() if kind in set(priced["kind"])]
deep = [(priced["kind"] == kind).sum() + 3 for kind in there]
figure, grid = plt.subplots(
    len(there), 2, figsize=(7.3, 0.22 * sum(deep)), height_ratios=deep, sharey="row", squeeze=False
)
for row, kind in zip(grid, there, strict=True):
    for axes, (label, of) in zip(row, sides.items(), strict=True):
        of = of[priced["kind"] == kind].set_axis(["mean", "low", "high"], axis=1)
        plots.forest(axes, [*of.index], {"": of})
        axes.set_xlabel(label, fontsize="small")
    plots.mark(row[0], 0.5, "← failed", height=0.1)
    row[0].set(title=kind, xlim=(-1.05, 1.05))
    row[1].set_xscale("log")
plots.show(figure)

# %% tags=["hide-input"]
whole = "{:,.0f}".format
planned = price.sort_values(["kind", "images"]).set_index(keys)
needed = np.ceil(planned[["images", "images_low", "images_high"]]).map(whole)
needed = needed["images"] + " [" + needed["images_low"] + ", " + needed["images_high"] + "]"
shows = planned[["shows_10", "shows_100", "shows_1000"]].map("{:.2f}".format)
plan = pd.concat([planned["each"].map(whole), needed, planned["forwards"].map(whole), shows], axis=1)
plan = plan.replace({r".*\bnan\b.*": "–", r"\binf\b": "∞"}, regex=True)
columns = ["forwards each", "images needed", "forwards needed"]
tables.styled(plan.set_axis([*columns, "10 images show", "100 show", "1000 show"], axis=1))

# %% [markdown]
# *10 images show* 0.50: with ten images a difference is seen that is half as large as the one between an explanation and a
# random order. ∞: the metric may tell them apart with no number of images. Metrics that need retrained or fine-tuned
# networks cost those besides. {py:func}`faithlab.decide.decide` stops as soon as two explanations are told apart, but its first look
# has a price, too, so that it may take more than is needed here.

# %% [markdown]
# ## Do they agree?
#
# For each image a metric ranks the explainers. Metrics that measure the same thing would rank them alike. LeRF and Insertion *are* one
# thing, the same inputs in the other order ([](../trace/optimality)); they have a row each, because both names are in use.

# %% mystnb={"figure": {"caption": "Rank correlation of two metrics over the explainers of an image: the mean over images, and over the kinds of network. Metrics that rank alike stand together (hierarchical clustering, average linkage); columns are in the order of the rows. A dot stands where no interval holds 0; else the two may be strangers.", "name": "ex-agreement"}, "image": {"alt": "Square heat map of correlations between metrics, clustered."}} tags=["hide-input"]
agree = partial(by_kind, lambda kind: readings.agreement(*evidence(kind)[:2]))
alike = run.table("agreement", agree, again=partial(agree, QUICKEST))
sure = alike.assign(sure=(alike["low"] > 0) | (alike["high"] < 0)).groupby(["metric", "other"], sort=False)
pairs = sure.agg({"correlation": "mean", "sure": "all"}).reset_index()
pairs = pd.concat([pairs, pairs.rename(columns={"metric": "other", "other": "metric"})])
square, sure = (pairs.pivot(index="metric", columns="other", values=of) for of in ("correlation", "sure"))
links = hierarchy.linkage(square.fillna(0).to_numpy() + np.eye(len(square)), "average")
order = square.index[hierarchy.leaves_list(links)]
figure, axes = plt.subplots(figsize=(1.9 + 0.31 * len(order), 1 + 0.31 * len(order)))
look = {"annot": sure.loc[order, order].eq(True).replace({True: "·", False: ""}), "fmt": "", "cmap": "RdBu"}
look |= {"vmin": -1, "vmax": 1, "cbar_kws": {"label": "rank correlation"}, "xticklabels": False, "ax": axes}
sns.heatmap(square.loc[order, order], **look)
axes.set(xlabel="", ylabel="", facecolor="0.93")  # the diagonal, and what has no correlation
axes.grid(False)
plots.show(figure)

# %% [markdown]
# ## Examine yours
#
# A metric is a function of a score and an attribution, an explainer one of a model and inputs, a model one that makes a
# network. Each is in a file of yours, and they may be given together:
#
# ```bash
# make examine METRIC=path/to/file.py:function
# make examine EXPLAINER=path/to/file.py:function
# make examine MODEL=path/to/file.py:function DATA=path/to/inputs.npz
# ```
#
# measures this page with it, on few inputs unless you name a profile, and says where the page and its row are. See
# [](../../book/bring-your-own). Of a metric stand here the two trials with its lowest *T* on each kind of network, with the images that it judges worst:

# %% tags=["hide-input"]
lines = []
lowest = judged[judged["metric"] == yours].sort_values("T").groupby("kind", sort=False).head(2)
for row in lowest.itertuples():
    place = {"network": "closed form"} if row.trial == recommendations.BUILT else where[row.kind]
    blocks = list(each.where(metric=yours, variant=row.trial, **place))
    worst = [b.images[b.values[:, 0].argsort()][:5].tolist() for b in blocks[:1]]
    text = f"- *{row.kind}*: {row.trial}, T = {row.T:.2f} [{row.low:.2f}, {row.high:.2f}], {row.verdict}"
    lines.append(text + (f", lowest on the images {worst[0]}." if worst and 5 <= len(worst[0]) < row.images else "."))
Markdown(
    "\n".join(lines) or "No metric or explainer of a reader's own was examined here." * (not (metric or explainer))
)

# %% [markdown]
# Of an explainer, where one is given, stands what each metric says: its *score*, higher is better; how far it is *ahead* of its best rival; and how far it has
# come from a random order (0) to the best order that was found (1), *attainable*, where more than 1 says that the search was short.

# %% tags=["hide-input"]
if explainer:
    cards = by_kind(lambda kind: readings.report(*evidence(kind)[:2], next(iter(own))))
    run.save(cards, "report")
    measures = ("score", "ahead", "attainable")
    ends = [{of: "mean", f"{of}_low": "low", f"{of}_high": "high"} for of in measures]
    tidy = pd.concat(cards.rename(columns=of).assign(said=name) for name, of in zip(measures, ends, strict=True))
    display(tables.compared(tidy, rows=["kind", "metric", "rival"], columns=["said"]))

# %% tags=["hide-input"]
run.finish()
