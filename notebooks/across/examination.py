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
# asked it of its own metric. This page asks all trials of all metrics, of the same networks and inputs.
#
# A number $T$ says how a metric did: **1** it is always right, **0** it might as well toss a coin, below 0 it is more often
# wrong than right.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, study or paper: see notebooks/profiles.yml
networks = ["resnet9 0"]  # what is examined: models of faithlab.study.kinds, each with its training seed
metric = ""  # a metric of your own, path/to/file.py:function
explainer = ""  # an explainer of your own, path/to/file.py:function
model = ""  # a network of your own in place of these, path/to/file.py:function
data = ""  # its inputs: path/to/inputs.npz, or path/to/file.py:function
peers = []  # metrics of other libraries, such as "captum: infidelity": see faithlab.trials.peers
training = {}  # by model: what differs from its recipe, such as {"resnet9": {"epochs": 5}}: see faithlab.study.networks
tuning = {}  # the same of its fine-tuning on random masks
beta = 0.1  # largest share of the features that fine-tuning removes
images = 12  # test images, series or texts to explain, of each network
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
budget = 700  # forwards for each input and metric, in Gaming
gamed = 4  # inputs of Gaming
seeds = [0]  # of noise, random orders and searches
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32

# %% tags=["hide-input"]
from functools import partial

import numpy as np
import pandas as pd
from IPython.display import Markdown

from faithlab import masks, segments, stats
from faithlab.claims import below, better
from faithlab.metrics import METRICS
from faithlab.stats import sequential
from faithlab.study import figures, headlines, kinds, tables
from faithlab.study.reasons import Reason
from faithlab.study.results import Run, recorded
from faithlab.trials import examination, truth
from faithlab.trials.peers import chosen as other_libraries

figures.theme()
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
    metrics = {yours: examination.yours(metric, "metric"), **metrics}
own = {explainer.rpartition(":")[2]: examination.yours(explainer, "explainer")} if explainer else {}
if model:
    asked = {"yours": [kinds.yours(model, data, run.parameters)]}
else:
    asked = kinds.by_kind([kinds.asked(network, run.parameters) for network in networks])

# %% tags=["hide-input"]
strangers = {
    kind: [examination.stranger(one.subject, randomised_share, seed=seeds[0]) for one in of]
    for kind, of in asked.items()
}
facts = [
    {
        "kind": kind,
        "network": one.kind.about,
        "training seed": one.seed,
        "recognises": tables.share(one.right[0]) if one.right else "not known",
        "fine-tuned": tables.share(one.right[1]) if len(one.right) > 1 else "there is none",
        "explained": len(one.subject.x),
        "features": segments.count(one.subject.segments),
        "stranger": f"{other.drawn} of {other.layers} layers; {other.agreement:.0%}",
        "explainers": ", ".join([*own, *one.explainers]),
    }
    for kind, of in asked.items()
    for one, other in zip(of, strangers[kind], strict=True)
]
run.save(pd.DataFrame(facts), "networks")
tables.prose(pd.DataFrame(facts))

# %% tags=["hide-input"]
cap = int(masks.bound(beta, facts[0]["features"]))
Markdown(
    "*Fine-tuned* is the companion that was used to random masks. *Stranger* is the other network of Own model: how many of "
    "the last layers have their weights drawn anew, and to how many of these inputs it still gives the same class. "
    "Networks of one kind are judged together. "
    "Truth has a network of its own, and says the same in every kind.\n\n"
    f"*Read the rows of F-Fidelity with this in mind:* of {facts[0]['features']} features, its cap {beta:g} lets it remove "
    f"at most {cap} at a time, and it draws {draws} subsets a size where the paper draws 50."
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
# All are defined, and can be called, in {py:mod}`faithlab.trials.examination`.

# %% tags=["hide-input"]
found = examination.examine_kinds(
    metrics,
    {kind: [(one.subject, {**own, **one.explainers}) for one in of] for kind, of in asked.items()},
    truth=[truth.closed_form(2 * images)],
    levels=noise_shares,
    seeds=seeds,
    randomised_share=randomised_share,
    budget=budget,
    gamed=gamed,
    kept=run.kept,
)
scores = examination.joined(found)
trust = pd.concat([of.trust.assign(kind=kind) for kind, of in found.items()], ignore_index=True)
singles = {kind: examination.singles(of.scores, metrics, of.obstacles) for kind, of in found.items()}
each = examination.joined(singles)
run.save(scores, "scores")
run.save(each, "singles")
run.save(trust, "trust")

# %% [markdown]
# ## The matrix: can the mean over images be trusted?
#
# A metric *passed* where the 95 % interval of $T$ lies above 0.8 and *failed* where it lies below 0.5. Else these images do
# not decide, and the cell is *open*: more images would tell. The order of the rows: fewest failed trials first, then most
# passed; rows between two lines are equal in both, and stand in no order. An outline marks the trial of the metric's own
# paper.

# %% mystnb={"figure": {"caption": "Metrics by trials in this build, on the means over the images. T: 1 always right, 0 a coin. Passed: its interval lies above 0.8; failed: below 0.5; open: these images do not decide. Hatched: the trial does not apply. Between two lines: equal.", "name": "ex-matrix"}, "image": {"alt": "Heat map of metrics by seven trials, for each kind of network that this build examines: each cell has a number and says passed, failed, open or does not apply."}} tags=["hide-input", "answer"]
figures.matrix(trust)

# %% mystnb={"markdown_format": "myst"} tags=["hide-input"]
judged = trust[(trust["size"] == "all images") & (trust["verdict"] != examination.NONE)]
level = min(noise_shares[1:], key=lambda r: abs(r - 0.4))
prices = []
for kind, of in found.items():
    features = segments.count(asked[kind][0].subject.segments)
    prices.append(examination.price(of.scores, metrics, features, level=level).assign(kind=kind))
price = pd.concat(prices, ignore_index=True)
run.save(price, "price")
kept = (
    {} if metric or explainer or model else {name: recorded("across/examination", name) for name in ("trust", "price")}
)
best_trust, best_price = (of.frame for of in kept.values()) if all(kept.values()) and kept else (trust, price)
most = kept["trust"].provenance["parameters"]["images"] if best_trust is not trust else images
lines = []
for kind, of in examination.advice(best_trust, best_price).groupby("kind", sort=False):
    clean = "; then ".join(
        ", ".join(f"**{row.metric}** (passes {row.passed})" for row in at_price.itertuples())
        for _, at_price in of.groupby("place")
    )
    failing = "; ".join(f"{row.metric} ({row.failed})" for row in of[of["failed"] != ""].itertuples())
    unknown = ", ".join(of[of["place"].isna() & (of["failed"] == "")]["metric"])
    left = f"Of {unknown} it is not known yet." if unknown else "Each of the others has passed one and failed none."
    lines.append(f"- *{kind}*: {clean or 'none'}. A trial is failed by {failing or 'none'}. {left}")
text = f"**Which one, then?** These fail no trial and pass one that the network itself was put to ({examination.BUILT} has a network "
text += f"of its own), with at most {most} inputs of each network, the cheapest first; metrics before a *then* cannot be told apart "
text += "by their price. Cells that are open may still fail."
if best_trust is not trust:
    text += f" This is said of **the recorded run** ({kept['trust'].profile}), not of this build, whose {images} inputs leave more open."
    text += " Which of them to take is said in [](findings)."
Markdown(text + "\n\n" + "\n".join(lines))

# %% tags=["hide-input", "headline"]
put = best_trust[(best_trust["size"] == "all images") & (best_trust["verdict"] != examination.NONE)]
put = put[(put["trial"] != examination.BUILT) | ~put.duplicated(["metric", "trial"])]  # one result, beside every kind
said = {
    of: put["verdict"].eq(of).groupby(put["metric"], sort=False).sum()
    for of in (examination.PASSED, examination.FAILED)
}
passed, failed, tried = *said.values(), put.groupby("metric", sort=False).size()
first, whole = list(passed[passed == passed.max()].index), list(passed[passed == tried].index)
lowest = put[put["metric"] == first[0]].sort_values("T").iloc[0]
kinds_asked = put["kind"].nunique()
number = f"all {kinds_asked} kinds" if kinds_asked > 1 else "one kind"
of_run = (
    f"recorded run, {kept['trust'].profile} profile" if best_trust is not trust else f"this build, {profile} profile"
)
Markdown(
    f"**{headlines.listed(whole) or 'None'}** of {len(tried)} metrics passes every trial that it is put to, counted over {number} of network. "
    f"{headlines.listed([f'**{name}** (put to {tried[name]} trials, it passes {passed[name]} and fails {failed[name]})' for name in first])} "
    f"passes most; its lowest T is {lowest['T']:.2f} [{lowest['low']:.2f}, {lowest['high']:.2f}], in {lowest['trial']} ({lowest['kind']}). "
    f"{(failed == 0).sum()} fail none, and may yet in what is open ({of_run}: at most {most} inputs of each network)."
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
where = {kind: {k: of[0].subject.labels[k] for k in ("dataset", "network")} for kind, of in asked.items()}
run.claim(
    "ex-single-order",
    "this page",
    "No metric's score of a single input passes Order: T is below 0.8 for each of them, on each kind of network.",
    [
        below(
            each,
            examination.PASS,
            of=examination.SINGLE,
            metric=row.metric,
            variant="Order",
            name=f"{row.metric}, {row.kind}",
            **where[row.kind],
        )
        for row in there.itertuples()
    ],
)

# %% [markdown]
# **Why?** Is some metric near the bar, and is it where explanations are told from chance best? There every step of noise may show. Of each
# kind of network stands the metric with the highest *T* in Order, and what all metrics have in Chance, on the mean. A metric that
# says the same of every input has no interval, and stays open with any number of inputs.

# %% tags=["hide-input"]
one_each = each if best_trust is trust else recorded("across/examination", "singles").frame
evidence = "this build" if best_trust is trust else "recorded"
places_of = {k.name: {"dataset": f"{k.recipe.data} test", "network": k.network} for k in kinds.KINDS.values()} | where
kinds_of = [kind for kind in best_trust["kind"].unique() if kind in places_of]
one_image = best_trust[(best_trust["size"] == "one image") & (best_trust["verdict"] != examination.NONE)]
possible = []
for kind in kinds_of:
    of = one_image[one_image["kind"] == kind].pivot(index="metric", columns="trial", values="T")
    of = of.reindex(columns=["Order", "Chance"]).dropna(how="all")
    t_of = partial(stats.estimate, one_each, examination.SINGLE, **places_of[kind])
    if of["Order"].notna().any():
        top = of["Order"].idxmax()
        told = t_of(metric=top, variant="Order")
        possible.append(Reason("Does one pass Order?", f"{kind}: the highest, {top}", told, above=examination.PASS))
    if of["Chance"].notna().any():
        told = t_of(metric=[*of["Chance"].dropna().index], variant="Chance")
        possible.append(Reason("Is chance easily told?", f"{kind}: all metrics, mean", told, above=examination.PASS))
run.why("ex-single-order", *possible, source=evidence)

# %% [markdown]
# ## What it teaches
#
# **Which trial is the hard one?** For each trial, how many metrics passed and failed it, of those to which it applies.

# %% tags=["hide-input"]
counts = judged.groupby(["kind", "trial"], sort=False)["verdict"].agg(
    lambda v: f"{(v == examination.PASSED).sum()} passed, {(v == examination.FAILED).sum()} failed of {len(v)}"
)
counts.unstack("kind").reindex(index=list(examination.TRIALS), columns=list(found)).fillna("–").rename_axis(
    index=None, columns=None
)

# %% [markdown]
# **Does it hold away from home?** A paper shows that its metric is good by its own trial. Here stand the metrics that are at
# home somewhere, with what was found there and in the other trials.

# %% tags=["hide-input"]
at_home = judged[judged["home"]].drop_duplicates(["kind", "metric"])
away = judged.merge(at_home[["kind", "metric", "trial"]], on=["kind", "metric"], suffixes=("", "_home"))
away = away[away["trial"] != away["trial_home"]].groupby(["kind", "metric"])["verdict"]
home = at_home.set_index(["kind", "metric"])[["trial", "verdict"]].set_axis(["at home in", "there"], axis=1)
for said in (examination.PASSED, examination.FAILED, examination.OPEN):
    home[f"elsewhere {said}"] = away.agg(lambda v, said=said: int((v == said).sum()))
run.save(home, "home")
tables.styled(home.astype(str).rename_axis([None, None]))

# %% [markdown]
# **The least or the most relevant first?** Removing the least relevant features first asks the network about inputs that still
# look like inputs. Does a metric that does so find the noise in an explanation more often? This is our own claim.

# %% tags=["hide-input"]
pairs = [("LeRF", "MoRF"), ("Comp.", "AOPC"), ("Fid-", "Fid+"), ("RFid-", "RFid+"), ("FFid-", "FFid+")]
run.claim(
    "ex-least-first",
    "this page",
    "A metric that removes the least relevant features first orders noisy explanations of a single input better than the "
    "same metric with the most relevant first, on each kind of network.",
    [
        better(
            each, {"metric": one}, {"metric": other}, variant="Order", name=f"{one} > {other}, {kind}", **where[kind]
        )
        for kind in found
        for one, other in pairs
        if {one, other} <= set(there.loc[there["kind"] == kind, "metric"])
    ],
)

# %% [markdown]
# **Why?** How much is there for each of them to show? All noise changes the score of an input by so many of its standard deviations over
# inputs and explainers: the least relevant first, then the most relevant first. In brackets: how many of these scores it does not
# change at all. Where a random order alone loses much, the most relevant first may have little left to show: the last row.


# %% tags=["hide-input"]
def shown_by(name, kind):
    """What all noise costs a score, in its standard deviations, how many scores stay, and the mean score with all noise."""
    of = [b for b in turned if all(b.labels.get(k) == v for k, v in {"metric": name, **places_of[kind]}.items())]
    same = ("explainer", "training_seed", "reference")
    clean = {
        tuple(b.labels.get(k) for k in same): b for b in of if not b.labels.get("variant") and "level" not in b.labels
    }
    noisy = [b for b in of if b.labels.get("variant") == "shuffled" and b.labels.get("level") == 1]
    pairs_of = [(clean[key], b) for b in noisy if (key := tuple(b.labels.get(k) for k in same)) in clean]
    if not pairs_of:
        return None
    lost = np.concatenate([(one.values - other.values).double().mean(1).numpy() for one, other in pairs_of])
    left = np.concatenate([other.values.double().mean(1).numpy() for _, other in pairs_of])
    return np.nanmean(lost) / max(np.nanstd(lost), 1e-12), float((lost == 0).mean()), float(np.nanmean(left))


of_scores = recorded("across/examination", "scores") if best_trust is not trust else None
known = scores if of_scores is None else of_scores.frame
names_of = {name for pair in pairs for name in pair}
turned = examination.turned(known.where(metric=sorted(names_of & set(known.labels("metric")))), METRICS)
effects = {(pair, kind): [shown_by(name, kind) for name in pair] for pair in pairs for kind in kinds_of}


def in_words(of):
    """Both sides of a pair."""
    return " and ".join(f"{r:.2f} ({same:.0%})" for r, same, _ in of).replace("-", "−") if all(of) else "–"


table = {kind: [in_words(effects[pair, kind]) for pair in pairs] for kind in kinds_of}
for kind in kinds_of:
    loss = shown_by("AOPC", kind)
    table[kind].append(f"{loss[2]:.2f}".replace("-", "−") if loss else "–")
tables.prose(pd.DataFrame({"pair": [*(" and ".join(pair) for pair in pairs), "a random order, loss by AOPC"], **table}))

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
        better(each, {"variant": here}, {"variant": other}, metric=name, name=f"{name}, {kind}", **where[kind])
        for kind in found
        for name, (here, other) in own_trials.items()
        if name in set(there.loc[there["kind"] == kind, "metric"])
    ],
)

# %% [markdown]
# **Why?** Is it the home of the metric, or is one of the trials easier for *every* metric? Order asks for small steps of noise, Chance for
# the difference from a random order. If Chance is easier for all others, SaCo's lead there is no merit of its home, and if it is for
# F-Fidelity, too, its home is the harder trial. $T$ is that of single inputs.

# %% tags=["hide-input"]
possible = []
for kind in kinds_of:
    of = one_image[(one_image["kind"] == kind) & one_image["trial"].isin(["Order", "Chance"])].dropna(subset="T")
    both = of.groupby("metric", sort=False)["trial"].nunique()
    names = [*both.index[both == 2]]
    groups = {
        "all others": [n for n in names if n not in own_trials],
        "F-Fidelity": [n for n in names if n.startswith("FFid")],
    }
    for group, of_group in groups.items():
        if of_group:
            pair = {"variant": "Chance"}, {"variant": "Order"}
            told = stats.paired(one_each, *pair, examination.SINGLE, metric=of_group, **places_of[kind])
            asked_of = f"{kind}: T in Chance − in Order, mean"
            possible.append(Reason(f"Is Chance easier for {group}?", asked_of, told, above=0))
run.why("ex-own-trial", *possible, source=evidence)

# %% [markdown]
# ## Every number with its interval
#
# For the means. Below a dash stands why a trial does not apply.

# %% tags=["hide-input"]
rows = trust[trust["size"] == "all images"].assign(mean=lambda f: f["T"], missing=lambda f: f["undefined"])
shown = tables.side_by_side({"": rows}, rows=["kind", "metric"], columns=["trial"], order=examination.TRIALS)
tables.styled(shown.droplevel(1, axis=1))

# %% mystnb={"markdown_format": "myst"} tags=["hide-input"]
reasons = trust[trust["verdict"] == examination.NONE].drop_duplicates(["metric", "trial", "why"])
reasons = reasons.groupby("why", sort=False)["metric"].agg(lambda of: ", ".join(dict.fromkeys(of)))
lines = [f"- *{why}*: {names}." for why, names in reasons.items()] or ["- Every trial applies to every metric."]
if peers:
    lines.append("\nWhat else was found when other libraries were run is told in [](../cost/peers).")
Markdown("Why a trial does not apply:\n\n" + "\n".join(lines))

# %% [markdown]
# **Calibrated?** Some metrics say what chance is: 0, for a random order. Off is how far the mean of random orders lies from
# that, in standard deviations of the metric.

# %% tags=["hide-input"]
off = pd.concat([examination.calibration(of.scores, metrics).assign(kind=kind) for kind, of in found.items()])
run.save(off, "calibration")
Markdown(
    "\n".join(
        f"- *{kind}*: "
        + "; ".join(
            f"**{r.metric}** {r.off:.2f} [{r.low:.2f}, {r.high:.2f}]".replace("-", "−") for r in of.itertuples()
        )
        + "."
        for kind, of in off.groupby("kind", sort=False)
    )
)

# %% [markdown]
# ## Trust against price
#
# A metric that needs fewer images needs fewer forwards. The price is what it takes to tell two explanations apart that
# differ: each explanation from one with 40 % of it shuffled (or the share nearest to that), and from a random order. It is
# estimated from the size of the difference, for four successes in five. On the vertical axis: the *lowest* $T$ of all
# trials, since a chain is as good as its weakest link.

# %% mystnb={"figure": {"caption": "The weakest trial of each metric (vertical) against the forwards that it takes to tell explanations apart (horizontal, logarithmic). Bars: 95 % intervals; where they overlap, nothing is decided. To the upper left is better.", "name": "ex-price"}, "image": {"alt": "Scatter plots, one for each kind of network: forwards needed against the lowest T, a point for each metric, with its name beside the chart."}} tags=["hide-input"]
figures.trust_and_price(trust, price)

# %% tags=["hide-input"]
stored = recorded("across/examination", "scores") if best_price is not price else None
decided = []
for kind, of in found.items():
    of_kind = of.scores if stored is None else stored.frame.where(**where[kind])
    decided.append(examination.until_decided(of_kind, metrics, level=level).assign(kind=kind))
decided = pd.concat(decided, ignore_index=True)
run.save(decided, "until_decided")
# The images are of one run, and so are the forwards for each of them.
spent = decided.merge(best_price[["kind", "metric", "each"]], on=["kind", "metric"]).set_index(["kind", "metric"])
until = 2 * spent["each"] * spent["images"]
until = until.where(spent["each"] > 0, 0.0).where(np.isfinite(spent["images"]))
until = until.map("{:,.0f}".format).where(until.notna(), "not within " + spent["of"].astype(str) + " images")
until += " (" + spent["told"].astype(str) + " of " + spent["pairs"].astype(str)
until += spent["wrong"].map(lambda n: f"; {n} wrongly" if n else "") + ")"
plan = price.sort_values(["kind", "images"]).set_index(["kind", "metric"])
planned = best_price.set_index(["kind", "metric"])["forwards"].reindex(plan.index)
planned = planned.map("{:,.0f}".format).replace("inf", "∞")
needed = plan[["images", "images_low", "images_high"]].apply(np.ceil).map("{:,.0f}".format).replace("inf", "∞")
shows = plan[["shows_10", "shows_100", "shows_1000"]].map("{:.2f}".format).replace("inf", "∞")
needed = needed["images"] + " [" + needed["images_low"] + ", " + needed["images_high"] + "]"
until = until.reindex(plan.index).fillna("–")
plan = pd.concat([plan["each"].map("{:,.0f}".format), needed, planned, until, shows], axis=1)
columns = ["forwards each", "images needed", "forwards planned", "forwards until decided"]
tables.styled(plan.set_axis([*columns, "10 images show", "100 show", "1000 show"], axis=1))

# %% [markdown]
# *10 images show* 0.50: with ten images a difference is seen that is half as large as the one between an explanation and a
# random order. ∞: the metric may tell them apart with no number of images. Metrics that need retrained or fine-tuned
# networks cost those besides.

# %% mystnb={"markdown_format": "myst"} tags=["hide-input"]
from_run = "this build" if stored is None else f"the recorded run ({stored.profile})"
Markdown(
    "*Forwards planned* are what that takes"
    + (f" by {from_run}, while images and forwards each are this build's" if stored is not None else "")
    + ". *Forwards until decided* are what it did take: the scores of a pair, those of "
    f"{from_run}, are looked at after {sequential.FIRST} images and after every quarter more, in random order, until the interval of "
    "their difference excludes zero. It is the rule of {py:func}`faithlab.decide.decide`, and so never takes fewer "
    f"images than its first look, nor more than the {spent['of'].max()} that there are. Shown is the median over the pairs and "
    "networks; in brackets stands how many of them were told apart, and how many the wrong way. Of "
    f"{len(spent)} rows, {int(np.isfinite(spent['images']).sum())} tell more than half of their pairs apart."
)

# %% [markdown]
# ## Do they agree?
#
# For each image a metric ranks the explainers. Metrics that measure the same thing would rank them alike. LeRF and Insertion *are* one
# thing, the same inputs in the other order ([](../trace/optimality)); they have a row each, because both names are in use.

# %% mystnb={"figure": {"caption": "Rank correlation of two metrics over the explainers of an image: the mean over images, and over the kinds of network. Metrics that rank alike stand together (hierarchical clustering, average linkage). A number stands where no interval holds 0; else the two may be strangers.", "name": "ex-agreement"}, "image": {"alt": "Square heat map of correlations between metrics, clustered."}} tags=["hide-input"]
alike = pd.concat([examination.agreement(of.scores, metrics).assign(kind=kind) for kind, of in found.items()])
run.save(alike, "agreement")
figures.agreement(alike)

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
# runs this page with it, and says where the page and its row are. See [](../../book/bring-your-own).

# %% tags=["hide-input"]
said, cards = [], []
for kind, of in found.items():
    if metric:
        mine = judged[(judged["metric"] == yours) & (judged["kind"] == kind)]
        for row in mine.sort_values("T").head(2).itertuples():
            blocks = [b for b in singles[kind] if (b.labels["metric"], b.labels["variant"]) == (yours, row.trial)]
            low = blocks[0].images[blocks[0].values[:, 0].argsort()][:5].tolist() if blocks else []
            said.append(
                f"*{kind}*, the lowest of **{yours}**: {row.trial}, T = {row.T:.2f} [{row.low:.2f}, {row.high:.2f}]"
            )
            said[-1] += f", {row.verdict}" + (f", lowest on the images {low}" if 5 <= len(low) < row.images else "")
    if explainer:
        cards.append(examination.report(of.scores, metrics, next(iter(own))).assign(kind=kind))
        for r in cards[-1].itertuples():
            place = f"{'ahead of' if r.ahead > 0 else 'behind'} {r.rival} by {abs(r.ahead):.3g}"
            said.append(f"*{kind}*, **{r.metric}**: " + (place if r.ahead else f"level with {r.rival}"))
            said[-1] += "" if r.real or not r.ahead else ", which may be noise"
            if r.attainable < 0:
                said[-1] += "; further from the best order than a random one"
            elif r.attainable > 1:
                said[-1] += (
                    f"; {r.attainable:.0%} of the way from a random order to the best that was found: the search is short"
                )
            elif r.attainable == r.attainable:
                within = f"[{r.attainable_low:.0%}, {r.attainable_high:.0%}]"
                said[-1] += f"; {r.attainable:.0%} {within} of the way from a random order to the best that was found"
            if r.certain == r.certain and r.attainable > 0:
                said[-1] += (
                    f", and {tables.at_least(r.certain, 0)} [{r.certain_low:.0%}, {r.certain_high:.0%}] of the way to the best order that there is"
                )
if cards:
    run.save(pd.concat(cards), "report")
Markdown("\n".join(f"- {line}." for line in said) or "This run examined nobody's own metric or explainer.")

# %% tags=["hide-input"]
run.finish()
