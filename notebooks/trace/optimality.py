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
# # How close to the optimum is TRACE?
#
# *A search that claims to find the best explanation had better find it.* With 16 patches an image has 65 536 subsets. All
# of them can be asked. That gives two yardsticks:
#
# - The *complete search* of the paper: the best subset of each size. The subsets need not be nested, so no order can beat
#   their sum. It is a bound.
# - The *optimum* itself, which the paper calls inaccessible. With the answers to all subsets it is a shortest path through
#   them, $2^{16}$ sums in place of $16!$ orders. The paper's Figure 2a squeezes it between search and bound; here it is
#   known, so that both can be measured against it.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, study or paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's ResNet-9, such as {"epochs": 5}: see faithlab.study.networks
images = 2  # recognised test images
patch = 8  # side of a patch in pixels: 16 patches
steps = 5000  # of annealing; as in the paper
restarts = 4  # chains per image, beside the one that the paper has
other_steps = 1000  # when searches are compared with each other
neighbour_steps = 300  # when neighbours are
repeats = 8  # searches per image then
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
training_seeds = [0]  # each is a network of its own
seed = 0  # of the searches

# %% tags=["hide-input"]
import dataclasses
import itertools
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import search, segments, stats
from faithlab.claims import above, below, best, better, counted
from faithlab.metrics import METRICS, evaluate, trajectory
from faithlab.readouts import logit, probability
from faithlab.scores import Scores
from faithlab.study import figures, headlines, networks, profiles, tables
from faithlab.study.results import Run
from faithlab.subject import Remembered
from faithlab.trials import optimum, subjects
from faithlab.zoo import datasets
from faithlab.zoo.training import accuracy, trained

figures.theme()
run = Run("trace/optimality", globals())

# %% [markdown]
# ## The network and its images
#
# The subjects are images that a small network recognises. It is asked about every subset of their patches, removed ones set
# to zero, and both the probability (-p) and the logit (-y) of the class are read off the same answers. From here on every
# search is a matter of look-ups.

# %% tags=["hide-input"]
recipes = [networks.changed(networks.RESNET9, {**training, "seed": s}) for s in training_seeds]
chosen, answers = [], []
for recipe in recipes:
    places = subjects.recognised(recipe, images)
    subject = subjects.subject(recipe, places, name="ResNet-9", precision=precision)
    subject = dataclasses.replace(subject, segments=segments.patches(*subject.x.shape[-2:], patch))
    features, device = segments.count(subject.segments), subject.x.device
    both = Remembered(subject.score((probability, logit)), 2)
    chosen.append(subject)
    answers.append([search.answers(both.of(i), len(places), features, device=device) for i in range(2)])
test = datasets.load(recipes[0].data, "test").take(slice(2000))
Markdown(
    "The network recognises "
    + ", ".join(f"{accuracy(trained(recipe), test):.1%}" for recipe in recipes)
    + f" of the test images. It is asked about {len(chosen[0].x)} of these, {2**features:,} subsets each."
)

# %% [markdown]
# ## The squeezed gap (Figure 2a)
#
# Annealing starts at a random order. Greedy search takes one patch after the other. A gap to the bound needs a scale: it is a
# part of the range between the two bounds, CS-Mo and CS-Le, of the same image.

# %% tags=["hide-input"]
papers = profiles.resolve("trace/optimality", "paper")["steps"]
as_many = "as many as in the paper" if steps == papers else f"where the paper makes {papers:,}"
Markdown(f"Annealing makes {steps:,} proposals here, {as_many}.")

# %% tags=["hide-input"]
SOUGHT = {  # the long table's names: the metric and its objective
    name + suffix: (METRICS[name].given(readout=readout), i)
    for i, (suffix, readout) in enumerate({"": probability, " of logits": logit}.items())
    for name in ("MoRF", "LeRF", "LeRF - MoRF")
}
removed = [k / features for k in range(features + 1)]
found, rows = {}, []
for n, (subject, both) in enumerate(zip(chosen, answers, strict=True)):
    identity = subject.images.to(device)
    start = search.random_orders(identity, features, seed=seed)[:, 0]
    about = {"images": subject.images, "reference": "zero", **subject.labels}
    for name, (metric, i) in SOUGHT.items():
        lookup, how = search.lookup(both[i]), optimum.schedule(metric, steps)
        objective = how["objective"]
        bounds = {of: search.bound(both[i], of) for of in search.OBJECTIVES}
        span = bounds["Le"].sum(1) - bounds["Mo"].sum(1)
        anneal = {**how, "seed": seed, "images": identity}
        orders = {"optimum": search.optimum(both[i], objective), "annealing": search.anneal(lookup, start, **anneal)}
        if objective != "Le-Mo":
            orders[f"annealing, {restarts} chains"] = search.anneal(lookup, start, restarts=restarts, **anneal)
            orders["greedy"] = search.greedy(lookup, len(start), features, objective=objective, device=device)
        ours = {"objective": objective, "seed": seed, "images": identity, "device": device}
        orders["both ends, insertion"] = search.best(lookup, len(start), features, **ours)
        curves = {}
        for explainer, best_order in orders.items():
            found[n, name, explainer] = best_order
            gap = (best_order.value - bounds[objective].sum(1)).abs() / span
            short = (best_order.value - orders["optimum"].value).abs() / span
            curves[explainer] = getattr(trajectory.curves(lookup, best_order.order), name[:4].lower())
            measures = {name: best_order.value, f"gap of {name}": gap, f"close to the optimum of {name}": short < 0.01}
            rows += [Scores.of(of, metric=measure, explainer=explainer, **about) for measure, of in measures.items()]
        if objective == "Le-Mo":
            continue
        # The bound is by size of the prefix: of what is removed for MoRF, of what is kept for LeRF.
        curves["complete search"] = bounds[objective] if objective == "Mo" else bounds[objective].flip(1)
        of_sizes = {"sizes": removed, "metric": f"curve of {name}", **about}
        rows += [Scores.of(of, explainer=explainer, **of_sizes) for explainer, of in curves.items()]

# %% mystnb={"figure": {"caption": "Mean answer of the network as patches are removed. The upper curves keep it high (TRACE-Le), the lower ones bring it down (TRACE-Mo). Where only one curve shows, the others lie beneath it: what annealing finds can hardly be told from the bound. Bands: 95 % intervals over the images, of the bound.", "name": "tr-squeezed"}, "image": {"alt": "Two line charts, probabilities and logits: number of removed patches against the answer; complete search, annealing and greedy search, for LeRF above and for MoRF below."}} tags=["hide-input", "answer"]
curves = Scores.concat(rows)
figure, grid = plt.subplots(1, 2, figsize=(8, 3.4))
styles = (("LeRF", "-"), ("MoRF", "--"))
looks = {"complete search": {"color": "C0", "linewidth": 3.5, "alpha": 0.5}}
looks |= {"annealing": {"color": "C1", "linewidth": 1.6}, "greedy": {"color": "C2", "linewidth": 1.6}}
for axes, (suffix, title) in zip(grid, {"": "probability (-p)", " of logits": "logit (-y)"}.items(), strict=True):
    for (criterion, style), (explainer, look) in itertools.product(styles, looks.items()):
        average = stats.mean if suffix else stats.Statistic(stats.mean, within=(0.0, 1.0))  # of probabilities
        curve = stats.estimate(curves, average, metric=f"curve of {criterion}{suffix}", explainer=explainer)
        draw = partial(figures.band, axes) if explainer == "complete search" else axes.plot
        shown = curve if explainer == "complete search" else curve.value
        draw(range(features + 1), shown, linestyle=style, label=f"{explainer}, {criterion}", **look)
    axes.set(xlabel="removed patches", ylabel=title[:-5], title=title)
figure.legend(*axes.get_legend_handles_labels(), loc="upper center", ncols=3, bbox_to_anchor=(0.5, 0.02))
figures.show(figure)

# %% [markdown]
# The gap to the bound, mean over the images with its 95 % interval. The column *optimum* is how far the bound itself is from
# what any order can reach: what a search lacks is only the difference to that column. The last columns count the images for
# which a search found the optimum, and say how many masked inputs it asked about, mean per image. The paper's greedy
# search has no row for Le-Mo; ours goes [from both ends](../../book/trace/deviations), and then moves one patch after the
# other to its best place.


# %% tags=["hide-input"]
def optimal(name, explainer):
    """Whether a search is at the optimum, of the images of every network."""
    pairs = [(found[n, name, explainer], found[n, name, "optimum"]) for n in range(len(chosen))]
    return torch.cat([(one.value - other.value).abs() < 1e-6 for one, other in pairs])


shown = []
for name, (metric, _) in SOUGHT.items():
    short = optimum.name(metric).replace("TRACE-p", "TRACE-Le-Mo-p").replace("TRACE-y", "TRACE-Le-Mo-y")
    part_of_range = stats.Statistic(stats.mean, within=(0.0, 1.0))  # no order is beyond either bound
    gaps = stats.summary(curves, ["explainer"], part_of_range, metric=f"gap of {name}")
    row = {"search": short} | {cell["explainer"]: tables.share(gap) for cell, gap in gaps}
    for of in ("annealing", "both ends, insertion"):
        asked = torch.cat([found[n, name, of].asked for n in range(len(chosen))]).double().mean()
        row |= {f"{of} at the optimum": int(optimal(name, of).sum()), f"{of} asks": f"{float(asked):,.0f}"}
    shown.append(row)
tables.prose(pd.DataFrame(shown).fillna("–"))

# %% [markdown]
# Where the optimum is not known, independent searches can say where it may lie: {py:func}`faithlab.search.subsets.limit`. How often
# is it right? Five searches by insertion start at random orders. The sentence says whose images it is of.

# %% tags=["hide-input"]
RIGHT, SLACK = "the limit is not below the optimum", "the limit as a part of the optimum"
limits = []
for n, (subject, (table, _)) in enumerate(zip(chosen, answers, strict=True)):
    top = found[n, "LeRF - MoRF", "optimum"].value
    again = torch.cat([subject.images.to(device) + 10_000_000 * (1 + k) for k in range(5)])
    apart = search.random_orders(again, features, seed=seed)[:, 0]
    alone = search.insert(search.lookup(table.repeat(5, 1)), apart, steps=4 * features, seed=seed, images=again)
    limit = search.limit(alone.value.view(5, -1))
    about = {"images": subject.images, "reference": "zero", "explainer": "five searches", **subject.labels}
    limits += [Scores.of((limit >= top - 1e-6).to(torch.uint8), metric=RIGHT, **about)]
    limits += [Scores.of(limit / top, metric=SLACK, **about)]
limits = Scores.concat(limits)
run.save(limits, "limits")
of_best, _, source, _ = headlines.best(run, "limits", limits)
cases = torch.cat([block.values.flatten() for block in of_best.where(metric=RIGHT)])
Markdown(
    f"The limit, which claims 95 %, is not below the optimum on {int(cases.sum())} of {len(cases)} images ({source}), "
    f"{tables.share(stats.estimate(of_best, metric=RIGHT))}, and on average at {tables.share(stats.estimate(of_best, metric=SLACK))} of it. It "
    "is an estimate; the complete search is the bound."
)

# %% [markdown]
# ## Greedy search is exact where the answer is additive
#
# The paper says so, for linear models. Take a network whose answer is the sum of what its patches are worth: here the worth
# is Input × Gradient's, the linear model that touches the network at the image. On it greedy search must find the optimum of
# every image. On the network itself it need not, and mostly does not.

# %% tags=["hide-input"]
exact = {}
for subject in chosen:
    worth = subjects.attributions(subject, {"Input x Gradient": "input-x-gradient"})["Input x Gradient"]

    def additive(keep, images=None, worth=worth):
        return (keep * (worth[:, None] if images is None else worth[images])).sum(-1)

    for criterion, objective in (("MoRF", "Mo"), ("LeRF", "Le")):
        best_order = search.optimum(search.answers(additive, len(worth), features, device=device), objective)
        greedy = search.greedy(additive, len(worth), features, objective=objective, device=device)
        agree = (greedy.value - best_order.value).abs() < 1e-5 * (1 + features) * worth.abs().sum(1)
        exact.setdefault(criterion, []).append(agree.cpu())
exact = {criterion: torch.cat(parts) for criterion, parts in exact.items()}
Markdown(
    "Greedy search finds the optimum of "
    + " and of ".join(
        f"{criterion} for {int(linear.sum())} of {len(linear)} images of the linear model and "
        f"{int(optimal(criterion, 'greedy').sum())} of {len(linear)} of the network"
        for criterion, linear in exact.items()
    )
    + "."
)

# %% [markdown]
# ## Other searches, and time against optimality
#
# The paper names a genetic algorithm and tabu search: they are [beside all others](searches). And it names other
# neighbours than the swap of two patches: one patch moves, a block moves, a block is turned round. A swap of places $i < j$
# changes only the subsets between them. All four do, so that the price of a search is the number of questions that it asks.
# Below every search may ask about as many; the objective is LeRF − MoRF of the probability, and 100 % is the exact optimum.

# %% tags=["hide-input"]
SPENT = [k / 20 for k in range(1, 21)]  # of the questions that annealing with swaps asks
budget = other_steps * 2 * (features + 1) / 3
ours = METRICS["LeRF - MoRF"]
for n, (subject, (table, _)) in enumerate(zip(chosen, answers, strict=True)):
    lookup, identity = search.lookup(table), subject.images.to(device)
    start = search.random_orders(identity, features, seed=seed)[:, 0]
    greedy, top = found[n, "LeRF", "greedy"], found[n, "LeRF - MoRF", "optimum"].value
    ends = search.greedy(lookup, len(start), features, objective="Le-Mo", device=device)
    own = {"seed": seed, "images": identity}
    anneal = partial(search.anneal, lookup, **optimum.schedule(ours, other_steps), **own)
    insert = partial(search.insert, lookup, steps=max(1, other_steps), **own)
    paths = {  # each with the search that it starts from
        "annealing": (anneal(start), None),
        "annealing from greedy-Le": (anneal(greedy.order), greedy),
        "insertion": (insert(start), None),
        "insertion from both ends": (insert(ends.order), ends),
    }
    about = {"images": subject.images, "reference": "zero", **subject.labels}
    for name, (path, first) in paths.items():
        last = path.history.shape[1] - 1
        paid = first.asked.double().mean() if first else 0.0
        each = path.asked.double().mean() / last
        at = [min(last, max(0, int((share * budget - paid) / each))) for share in SPENT]
        part = (path.history / top[:, None])[:, at]
        rows.append(Scores.of(part, sizes=SPENT, metric="part of the optimum by questions", explainer=name, **about))
    for short in (12, 60, 150):  # a search of a large network can afford no more
        brief = {**optimum.schedule(ours, short), **own}
        part = search.anneal(lookup, greedy.order, **brief).value / top
        named = {"metric": f"part of the optimum, {short} proposals", "explainer": "annealing from greedy-Le"}
        rows.append(Scores.of(part, **named, **about))
    # Each repeat is an image with random numbers of its own.
    many = torch.cat([identity + 10_000_000 * repeat for repeat in range(repeats)])
    several, begin = search.lookup(table.repeat(repeats, 1)), search.random_orders(many, features, seed=seed)[:, 0]
    brief = {**optimum.schedule(ours, neighbour_steps), "seed": seed, "images": many}
    for neighbour in search.NEIGHBOURS:
        parts = search.anneal(several, begin, neighbour=neighbour, **brief).value / top.repeat(repeats)
        own = {"metric": "part of the optimum by neighbours", "explainer": neighbour, **about}
        rows += [Scores.of(part, draw=draw, **own) for draw, part in enumerate(parts.split(len(top)))]
scores = Scores.concat(rows)
run.save(scores, "scores")

# %% mystnb={"figure": {"caption": "LeRF \u2212 MoRF of the best order so far, as a part of the exact optimum, mean over the images with its 95 % interval, against the number of masked inputs asked about. The start from the greedy order has paid for that order.", "name": "tr-searches"}, "image": {"alt": "Line chart: masked inputs asked about per image against the part of the optimum reached, one line for each of four searches."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.2, 3.6))
for name, style in zip(paths, ("-", "--", "-.", ":"), strict=True):
    most = stats.Statistic(stats.mean, within=(-1.0, 1.0))  # the reverse of the best order, and that order
    curve = stats.estimate(scores, most, metric="part of the optimum by questions", explainer=name)
    asked = [share * budget for share in SPENT]
    figures.band(axes, asked, curve, linestyle=style, label=name)
axes.set(xlabel="masked inputs asked about, per image", ylabel="part of the optimum")
axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}".replace("-", "−"))
axes.legend()
figures.show(figure)

# %% tags=["hide-input"]
part = stats.Statistic(stats.mean, within=(-1.0, 1.0))  # the reverse of the best order, and that order
brief = {
    short: stats.estimate(scores, part, metric=f"part of the optimum, {short} proposals") for short in (12, 60, 150)
}
Markdown(
    "**How short is a short search?** On a large network only some proposals after the greedy order can be afforded. Here "
    + ", ".join(f"{short} of them reach {tables.share(found_)}" for short, found_ in brief.items())
    + " of the optimum. A share of what such a search reaches is too high by as much."
)

# %% tags=["hide-input"]
neighbours = "part of the optimum by neighbours"
cells = [{"explainer": name} for name in search.NEIGHBOURS]
contrasts = torch.cat([torch.ones(3, 1), -torch.eye(3)], 1)  # the swap, the first, less each of the others
lead = stats.estimate(scores, part, metric=neighbours, cells=cells, contrasts=contrasts)
reached = [tables.share(x) for _, x in stats.summary(scores, ["explainer"], part, metric=neighbours)]
ahead = [
    f"{100 * v:+.2f} %" + f" [{100 * low:+.2f}, {100 * high:+.2f}]" * bool(low == low)  # none where no image differs
    for v, low, high in zip(*lead.shown, strict=True)
]
shown = {"neighbour": [*search.NEIGHBOURS], "part of the optimum": reached, "swap is ahead by": ["", *ahead]}
tables.prose(pd.DataFrame(shown).map(lambda text: text.replace("-", "−")))

# %% [markdown]
# Annealing with other neighbours, as many proposals each, several starts for every image. *Ahead* is by how much the swap is
# better on the same images, with its 95 % interval.

# %% [markdown]
# ## Insertion is deletion (Theorem 3.1)
#
# Insert the patches into an empty image, the most relevant first. The images met on the way are those of LeRF, in reverse.
# So the areas are equal; and inserting the other way round gives MoRF. Each metric asks the network itself here, in float32,
# about annealing's orders and about their reverses.

# %% tags=["hide-input"]
areas = []
for n, subject in enumerate(chosen):
    order = search.heat_map(found[n, "LeRF - MoRF", "annealing"].order)
    for metric in ("Insertion", "LeRF", "MoRF"):
        asked = {"TRACE": order} | ({"TRACE, reversed": -order} if metric == "Insertion" else {})
        areas.append(evaluate({metric: METRICS[metric].given(exact=True)}, subject, asked))
areas = Scores.concat(areas)
run.save(areas, "areas")


def apart(explainer, metric):
    """By how much the area of insertion differs from that of deletion, of every image."""
    pairs = zip(areas.where(metric="Insertion", explainer=explainer), areas.where(metric=metric), strict=True)
    return torch.cat([(insertion.values - deletion.values).abs().flatten() for insertion, deletion in pairs])


pairs = {"LeRF": apart("TRACE", "LeRF"), "MoRF": apart("TRACE, reversed", "MoRF")}
most = max(float(of.max()) for of in pairs.values())
Markdown(
    f"The areas of insertion and deletion, on sums of up to {features + 1} probabilities, "
    + (
        "differ by at most " + ", ".join(f"{of.max():.1e} ({metric})".replace("-", "−") for metric, of in pairs.items())
        if most
        else f"are the same to the last bit, on every image ({' and '.join(pairs)})"
    )
    + "."
)

# %% [markdown]
# ## What reproduced
#
# Each claim is judged on the saved scores. A part of it *holds* where the whole interval, and every network's own estimate, lie
# on the claimed side. The paper prints no numbers of these searches, only curves.

# %% tags=["hide-input"]
single = {optimum.name(metric): of for of, (metric, _) in SOUGHT.items() if "LeRF - MoRF" not in of}
run.claim(
    "tr-near-bound",
    "Section 5.1, Figure 2a",
    "Annealing almost reaches the complete search (here: within 1 % of the range between the two bounds), so that the "
    "optimum is squeezed in between.",
    [below(scores, 0.01, metric=f"gap of {of}", explainer="annealing", name=name) for name, of in single.items()],
)

# %% [markdown]
# **Why?** Is it the search that falls short, or the bound? The optimum is known here, so that the two parts of the gap can be told
# apart: what no order can close, and what annealing leaves.

# %% tags=["hide-input"]
source, known = next(iter(run.beside("scores").items()))
ends, lines, out_of_reach = {"no search can": [], "a better search would": [], "open": []}, [], []
for name, of in single.items():
    about = {"metric": f"gap of {of}"}
    least = stats.estimate(known, part_of_range, explainer="optimum", **about)
    left = stats.paired(known, {"explainer": "annealing"}, {"explainer": "optimum"}, **about)
    own = stats.estimate(known, part_of_range, explainer="annealing", **about)
    so = "no search can" if float(least.low) > 0.01 else "a better search would" if float(least.high) < 0.01 else "open"
    out_of_reach += [name] if float(least) > 0.01 else []
    ends[so] += [] if float(own.high) < 0.01 else [name]  # of those that annealing does not reach
    lines.append(
        f"**{name}**: the optimum is {tables.share(least)} from the bound, and annealing {tables.share(left)} further"
    )
Markdown(
    f"Of the range between the bounds ({source}, {least.images} image{'s' * (least.images > 1)}):\n\n"
    + "\n\n".join(f"{line}." for line in lines)
    + "\n\n"
    + (
        f"*No* search is within 1 % for {headlines.listed(ends['no search can'])}: the bound is too loose. "
        if ends["no search can"]
        else ""
    )
    + (
        f"A better search would be for {headlines.listed(ends['a better search would'])}. "
        if ends["a better search would"]
        else ""
    )
    + (
        f"For {headlines.listed(ends['open'])} the interval of the optimum's own gap holds 1 %: more images would tell whether any search can."
        if ends["open"]
        else ""
    )
    + (f" On these images the optimum itself is farther for {headlines.listed(out_of_reach)}." if out_of_reach else "")
    + ("" if any(ends.values()) else "Annealing is surely within 1 % in all four.")
)

# %% [markdown]
# The bound itself is out of reach. Here the optimum is known, so that what the paper concludes can be tested without the
# bound. What annealing lacks is nothing on most images and something on a few; the mean of such numbers has no honest interval
# with so few images, so that images are counted.

# %% tags=["hide-input"]
close = {of: f"close to the optimum of {of}" for of in single.values()}
run.claim(
    "tr-near-optimum",
    "Section 5.1",
    "Annealing almost achieves the optimum (here: on most images, more than half, within 1 % of the range between the bounds).",
    [above(scores, 0.5, metric=close[of], explainer="annealing", name=name) for name, of in single.items()],
)

# %% tags=["hide-input"]
run.claim(
    "tr-beats-greedy",
    "Section 5.1, Figure 2a",
    "Annealing constantly beats greedy search (here: on average).",
    [
        better(scores, {"explainer": "annealing"}, {"explainer": "greedy"}, less="MoRF" in of, metric=of, name=name)
        for name, of in single.items()
    ],
)

# %% [markdown]
# **Why?** Does annealing lose, or is there nothing to win? Image by image: who is ahead, where greedy search is at the optimum already,
# what the best of several chains does, and how much of the mean is one image. *Recorded* and *this build* say whose images a number is of.

# %% tags=["hide-input"]
source, known = next(iter(run.beside("scores").items()))
chains = next(name for name in known.labels("explainer") if name.endswith(" chains"))
lines, won = [], []
for name, of in single.items():
    value = {
        e: torch.cat([b.values[:, 0] for b in known.where(metric=of, explainer=e)]).double()
        for e in ("annealing", chains, "greedy")
    }
    lead, best_lead = ((value[e] - value["greedy"]) * (-1 if "MoRF" in of else 1) for e in ("annealing", chains))
    at_top = torch.cat([b.values[:, 0] for b in known.where(metric=close[of], explainer="greedy")]).bool()
    won += [name] if at_top.double().mean() > 0.5 and (lead < 0).any() else []
    lines.append(
        f"**{name}**: ahead on {int((lead > 0).sum())} of {len(lead)} images, behind on {int((lead < 0).sum())}, with {chains.split(', ')[1]} on "
        f"{int((best_lead < 0).sum())}; greedy search is within 1 % of the optimum on {int(at_top.sum())}"
        + (
            f"; one image makes {float(lead.max() / lead.clamp(min=0).sum()):.0%} of what is won"
            if (lead > 0).any()
            else ""
        )
        + "."
    )
Markdown(
    f"Annealing against greedy search ({source}):\n\n"
    + "\n\n".join(lines)
    + "\n\n"
    + (
        f"For {' and '.join(won)} greedy search has most images solved, so that little is left to win and a single chain that is stuck "
        "weighs as much: *constantly*, on every image, is not true there, and more chains help more than more images."
        if won
        else "Greedy search leaves something to win on most images."
    )
)

# %% tags=["hide-input"]
run.claim(
    "tr-greedy-exact",
    "Section 4",
    "Greedy search reaches the optimum of TRACE-Mo and TRACE-Le where the features' contributions are additive.",
    [
        counted(f"{criterion}: greedy search is at the optimum", linear, reason="the linear model of every image")
        for criterion, linear in exact.items()
    ],
)


# %% tags=["hide-input"]
def early(sample):
    """The part of the optimum after a tenth of the questions, those for the greedy order included."""
    return sample.mean()[:, SPENT.index(0.1)]


start = {"explainer": "annealing from greedy-Le"}, {"explainer": "annealing"}
run.claim(
    "tr-greedy-start",
    "Section 5.2, appendix F",
    "A start at TRACE-Greedy-Le speeds up annealing: after a tenth of the questions it is ahead.",
    [better(scores, *start, of=early, metric="part of the optimum by questions")],
)

# %% [markdown]
# **Why?** Is a tenth of the questions too late to see it, is annealing the wrong search to start, being hot at first, or is it the wrong
# order, greedy for LeRF alone? The curves of above say when a start is ahead. Insertion, which never leaves what it has for worse,
# starts from both ends there; annealing from the same order is run here: it is all look-ups.

# %% tags=["hide-input"]
by_questions, tried = "part of the optimum by questions", []
for subject, (table, _) in zip(chosen, answers, strict=True):
    looked_up, identity = search.lookup(table), subject.images.to(device)
    from_ends = search.greedy(looked_up, len(table), features, objective="Le-Mo", device=device)
    own = {**optimum.schedule(METRICS["LeRF - MoRF"], other_steps), "seed": seed, "images": identity}
    path = search.anneal(looked_up, from_ends.order, **own)
    last = path.history.shape[1] - 1
    paid, each = from_ends.asked.double().mean(), path.asked.double().mean() / last
    asked_at = [min(last, max(0, int((share * budget - paid) / each))) for share in SPENT]
    part = (path.history / search.optimum(table, "Le-Mo").value[:, None])[:, asked_at]
    about = {"images": subject.images, "sizes": SPENT, "reference": "zero", "metric": by_questions, **subject.labels}
    tried.append(Scores.of(part, explainer="annealing from both ends", **about))
tried = Scores.concat(tried)
run.save(tried, "starts")
ahead_of_random = {  # what starts, and from where against a random start
    "annealing from greedy-Le": start,
    "insertion from both ends": ({"explainer": "insertion from both ends"}, {"explainer": "insertion"}),
    "annealing from both ends": ({"explainer": "annealing from both ends"}, {"explainer": "annealing"}),
}
# A run says what it has: one that is recorded may be older than the third start. What is compared is of one run.
source, known = next(iter(run.beside("scores").items()))
source_of_all, started = next(iter(run.beside("starts").items()))
of_runs = {source: known, source_of_all: (known if source_of_all == source else scores) + started}
moments = {}
for of_run, rows_of in of_runs.items():
    there = {name: p for name, p in ahead_of_random.items() if p[0]["explainer"] in rows_of.labels("explainer")}
    moments[of_run] = {name: stats.paired(rows_of, *pair, metric=by_questions) for name, pair in there.items()}
tenth = {
    name: stats.paired(of_runs[source_of_all], *pair, early, metric=by_questions)
    for name, pair in ahead_of_random.items()
}
left = {
    r: 1 - float(stats.estimate(of, early, metric=by_questions, explainer="annealing")) for r, of in of_runs.items()
}


def counted_images(found):
    """How many images a run has."""
    (images_there,) = {of.images for of in found.values()}
    return f"{images_there} image{'s' * (images_there > 1)}"


Markdown(
    f"Against a random start, after {SPENT[0]:.0%}, {SPENT[1]:.0%} and all of the questions:\n\n"
    + "\n".join(
        f"- {of_run}, {counted_images(found)}: "
        + "; ".join(
            f"{name} {', '.join(f'{100 * float(of.value[0, k]):+.1f} %' for k in (0, 1, -1))}".replace(
                "-", "−"
            ).replace("greedy−Le", "greedy-Le")
            for name, of in found.items()
        )
        + f". After a tenth annealing lacks {left[of_run]:.1%} of the optimum"
        + (", so that there is little to be ahead by." if left[of_run] < 0.1 else ".")
        for of_run, found in moments.items()
    )
    + f"\n\nFrom the run that has all three ({source_of_all}): "
    + (
        "a start does help insertion, also after a tenth: "
        + (
            "annealing from that order is ahead, too, so that the order was the reason."
            if float(tenth["annealing from both ends"].low) > 0
            else "annealing from the same order is not clearly ahead, so that it is annealing, hot at first, that leaves its start."
        )
        if float(tenth["insertion from both ends"].low) > 0
        else "that any start helps is not seen after a tenth, so that the reasons cannot be told apart here."
    )
)

# %% tags=["hide-input"]
run.claim(
    "tr-swap",
    "Section 4, appendix B.4",
    "The swap of two features is the best neighbour set, better than those for the travelling salesman.",
    [best(scores, "explainer", "swap", metric=neighbours)],
)

# %% [markdown]
# **Why?** Too few images, too few searches of each, or too short searches? Each image is searched several times, so that the chance of
# a search can be told from what differs between images; and with more proposals a neighbour set that is slow has time.

# %% tags=["hide-input"]
longer = []
for subject, (table, _) in zip(chosen, answers, strict=True):
    many = torch.cat([subject.images.to(device) + 10_000_000 * repeat for repeat in range(repeats)])
    several, top = search.lookup(table.repeat(repeats, 1)), search.optimum(table, "Le-Mo").value
    begin = search.random_orders(many, features, seed=seed)[:, 0]
    own = {**optimum.schedule(METRICS["LeRF - MoRF"], other_steps), "seed": seed, "images": many}
    about = {"images": subject.images, "reference": "zero", "metric": neighbours, **subject.labels}
    for neighbour in search.NEIGHBOURS:
        parts = search.anneal(several, begin, neighbour=neighbour, **own).value / top.repeat(repeats)
        longer += [
            Scores.of(part, explainer=neighbour, draw=k, **about) for k, part in enumerate(parts.split(len(top)))
        ]
longer = Scores.concat(longer)
run.save(longer, "longer")


def nearest(rows_of):
    """The best of the other neighbour sets, and by how much the swap is ahead of it."""
    leads = {
        e: stats.paired(rows_of, {"explainer": "swap"}, {"explainer": e}, metric=neighbours)
        for e in [*search.NEIGHBOURS][1:]
    }
    return min(leads.items(), key=lambda item: float(item[1]))


(rival, lead), (later_rival, later) = nearest(known), nearest(longer)
runs = [
    known.where(metric=neighbours, explainer=e, training_seed=known.labels("training_seed")[:1])
    for e in ("swap", rival)
]
runs = [torch.stack([b.values[:, 0].double() for b in sorted(of, key=lambda b: b.labels["draw"])]) for of in runs]
difference = runs[0] - runs[1]  # [searches, images]
by_chance = difference.var(0).mean() / len(difference) / difference.mean(0).var()
place = {"more": "{} ahead of", "less": "{} behind", "same": "level ({}) with"}
Markdown(
    f"The swap is {tables.by_sign(lead, **place)} {rival} ({source}), and with {other_steps} proposals {tables.by_sign(later, **place)} {later_rival} "
    f"(this build, {later.images} images). "
    + (
        f"Of the variance of the first difference over {difference.shape[1]} images {min(1.0, float(by_chance)):.0%} is the chance of "
        f"{len(difference)} searches each: "
        + (
            "more searches of the same images would decide more cheaply than more images. "
            if by_chance > 0.5
            else "more images are needed. "
        )
        if by_chance.isfinite()
        else "So few searches of so few images do not tell one chance from the other. "
    )
    + (
        "More proposals make the swap the best, so that short searches are the reason."
        if float(later.low) > 0
        else "More proposals do not make it clearly the best: on so few patches the neighbour sets are nearly equal."
        if abs(float(later)) < 0.02
        else "More proposals do not make it clearly the best."
    )
)

# %% tags=["hide-input"]
run.claim(
    "tr-insertion",
    "Theorem 3.1",
    "Insertion and deletion have the same areas.",
    [
        counted(f"insertion and {metric}", of < 1e-4, reason="float32, sums that differ by less than 0.0001")
        for metric, of in pairs.items()
    ],
)

# %% tags=["hide-input"]
run.finish()
