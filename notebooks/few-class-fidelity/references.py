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
# # What decides the ranking: the baseline, the network or the task?
#
# *Would black pixels, or a plain blur, have ranked the explainers in the same order?* The paper argues for its perturbed images:
# they leave the network undecided, and they are near the data. But it does not show what they change. Here the same maps of the
# same images are judged with five baselines, and the five rankings are compared. Then the paper's own answer is put to the
# test: that the application decides the ranking, and the architecture does not.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
size = 20  # of the vehicle in its image of 32 x 32 pixels
width = 8  # of ResNet-9
epochs = 3  # of training, on both tasks
rate = 0.01  # peak learning rate, vehicles
digit_share = 0.2  # of the image that the digit covers
digit_limit = 8000  # training images of digits
digit_width = 16  # of the network of three layers
digit_rate = 0.005
train_limit = None  # training images of vehicles; None: all
images = 200  # of each task
step = 0.04  # replaced share between two points of a curve
refinements = ["none", "SG"]  # of the paper's four, under every stand-in; under the perturbed one all are asked
noise = 0.1  # of SG, as a share of an image's range
background = 8  # training images for Expected Gradients
integration_steps = 6  # of Integrated Gradients
smooth_samples = 4  # noisy copies per image in SG
precision = "bfloat16"  # of training, where the device computes it natively; else float32
training_seeds = [0]  # each is a network of its own
seed = 0  # of the data, Random, Expected Gradients and noise

# %% tags=["hide-input"]
import itertools
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import stats
from faithlab.metrics import METRICS, evaluate, few_class
from faithlab.metrics.few_class import replacement_curves
from faithlab.scores import Scores
from faithlab.stats import pearson, rank
from faithstudy import plots, published, summaries, tables
from faithstudy import recipes as networks
from faithstudy.claims import above
from faithstudy.claims.verdicts import HOLDS, judge
from faithstudy.data import datasets
from faithstudy.diagnostics import Reason
from faithstudy.run import Run
from faithstudy.trials import baselines, refined, tasks, truth

plots.theme()
run = Run("few-class-fidelity/references", globals())

# %% [markdown]
# ## Two tasks, two architectures, five baselines
#
# The tasks are those of [](perturbations): vehicles in three classes, digits in two. On each there are two architectures, a
# ResNet-9 and a network of three layers, and images that both get right. A removed pixel is replaced by black, by white, by
# the image's mean colour, by a blur of fixed width, or by the perturbed image of the search.

# %% tags=["hide-input"]
architectures = {"ResNet-9": ("resnet9", {"width": width}, "features")}
architectures |= {"three layers": ("cnn3", {"width": digit_width}, "features")}
digits = {"share": digit_share, "size": 28, "seed": seed}
# By task: the data, its options in training and in the test, what a network of its own needs.
own = {"rate": rate, "decay": 1e-5, "limit": train_limit}
problems = {
    "vehicles": ("cifar10-vehicles", {"size": size, "seed": seed}, {}, own),
    "digits": ("colored-mnist-halves", digits | {"limit": digit_limit}, {"limit": 1000}, {"rate": digit_rate}),
}
main = {"vehicles": "ResNet-9", "digits": "three layers"}  # the networks that are asked under every stand-in
measure = {"vehicles": "IoU", "digits": "Dice"}
names = ["black", "white", "mean", "blur", "perturbed"]
chosen, tests, trains = {}, {}, {}
for problem, (data, options, test_options, own) in problems.items():
    tests[problem] = test = datasets.load(data, "test", **options | test_options)
    trains[problem] = datasets.load(data, "train", **options)
    common = {"data": data, "data_options": options, "epochs": epochs, "batch": 64, "precision": precision}
    recipes = networks.each(architectures, training_seeds, classes=len(test.classes), **common, **own)
    places = tasks.recognised(list(recipes.values()), images, test, least=images)
    for (name, s), recipe in recipes.items():
        chosen[problem, name, s] = tasks.task(recipe, places, name=name, data=test)
problem_of = {f"{data} test": problem for problem, (data, *_) in problems.items()}

# %% [markdown]
# ## The same maps under each baseline
#
# *Fidelity* is the paper's equation 1, the mean over the explainers. *Lead* is how far it lies above that of a random order, on the same
# images. In brackets, here and below: 95 % intervals over the images.

# %% tags=["hide-input"]
steps = round(1 / step)
metric = METRICS["Few-class Fidelity"]
areas = {
    f"area under {name}": metric.given(compute=partial(few_class.area, steps=steps, direction=end), direction=end)
    for name, end in (("MIF", "MoRF"), ("LIF", "LeRF"))
}
metrics = {"Few-class Fidelity": metric.given(steps=steps), **areas}
curves = replacement_curves(steps)


def ask(task):
    """Fidelity of every explanation; of the main networks also under the other stand-ins, and the alignment."""
    problem = problem_of[task.dataset]
    test, train = tests[problem], trains[problem]
    task, _ = baselines.perturbed(task, test)
    known = train.model_inputs(tasks.evenly(torch.arange(len(train)), background)).to(task.x.device)
    own = refined.explainers(layer="features", background=known, steps=integration_steps, seed=seed)
    if problem == "digits":  # black is zero and the lowest value of a digit's image, so that IG(zero) would be IG(min)
        del own["IG(zero)"]
    maps = tasks.attributions(task, refined.refined(own, samples=smooth_samples, noise=noise, seed=seed))
    is_main = task.network == main[problem]
    few = refined.refined(own, samples=1, noise=noise, refinements=refinements) if is_main else {}
    some = {key: maps[key] for key in few}
    rest = {key: of for key, of in maps.items() if key not in some}
    found = [evaluate(metrics, task, some)] if some else []
    found += [evaluate({"Few-class Fidelity": metrics["Few-class Fidelity"]}, task, rest)] if rest else []
    if some:
        stand_ins = baselines.plain(baselines.intensities(test, task.images))
        task = baselines.standing_in(task, test, stand_ins)
        found.append(baselines.under(metrics, task, some, list(stand_ins)))
        found.append(baselines.under(curves, task, {"BP": maps["BP"]}, names))
        found.append(truth.aligned(measure[problem], task, some, test.masks[task.images]))
    return Scores.concat(found)


scores = run.table("scores", ask, list(chosen.values()))

# %% tags=["hide-input"]
fidelity = {"metric": "Few-class Fidelity"}
here = {problem: {"dataset": f"{data} test", "network": main[problem]} for problem, (data, *_) in problems.items()}
asked = {
    problem: [e for e in scores.where(metric=measure[problem], **own).labels("explainer") if e != "Random"]
    for problem, own in here.items()
}
each = {  # of a task, a column: the explainers whose mean it is, and those whose mean is taken from it
    f"{problem}: {column}": (problem, *cells)
    for problem in problems
    for column, cells in {
        "fidelity": (asked[problem],),
        "of Random": ("Random",),
        "lead": (asked[problem], "Random"),
    }.items()
}


def of_stand_in(labels):
    """Fidelity of explainers under a stand-in, or how far it lies above that of a random order."""
    problem, *cells = each[labels["column"]]
    own = {"reference": labels["reference"], **fidelity, **here[problem]}
    pair = [{"explainer": cell} for cell in cells]
    return (
        stats.paired(scores, *pair, **own) if len(pair) > 1 else stats.estimate(scores, refined.MEAN, **pair[0], **own)
    )


under = {name: {"reference": name} for name in names}
tables.estimates(under, {column: {"column": column} for column in each}, of_stand_in)

# %% mystnb={"figure": {"caption": "The probability of the class while more and more pixels are replaced in the order of BP, the mean over the images with its 95 % interval: a panel for each task and direction, a line for each baseline. The dashed line is 1/N, where an undecided network ends.", "name": "fc-references-curves"}, "image": {"alt": "Four line charts of replaced share against probability; five lines each, one per baseline, which end at different heights around a dashed line."}} tags=["hide-input"]
figure = plots.curves(
    scores,
    rows=here,
    columns={"most important first": {"metric": "MIF"}, "least important first": {"metric": "LIF"}},
    lines=under,
    x="replaced pixels (share)",
    y="probability",
)
for axes, (problem, way) in zip(figure.axes, itertools.product(problems, curves), strict=True):
    plots.mark(axes, 1 / len(tests[problem].classes), "1/N" if way == [*curves][-1] else "", axis="y")
    axes.set(ylim=(0, 1.02))
figure

# %% [markdown]
# ## Five rankings
#
# Each baseline ranks the same combinations of explainer and refinement. The rank correlation of two rankings is 1 where both
# agree. The last row is the alignment with what is known: the box of the vehicle (IoU), the pixels of the digit (Dice).

# %% mystnb={"figure": {"caption": "Rank correlation (Spearman) between the rankings of the explainers under each two baselines, and with the alignment to the known box or region.", "name": "fc-references-rankings"}, "image": {"alt": "Two heat maps of rank correlations, one per task: five baselines and the alignment measure against each other."}} tags=["hide-input", "answer"]
rows = []
for problem, own in here.items():
    kinds = {name: {**fidelity, "reference": name} for name in names} | {"alignment": {"metric": measure[problem]}}
    for one, other in itertools.combinations(kinds, 2):
        alike = stats.agreement(kinds[one], kinds[other], "explainer", [*asked[problem], "Random"])
        rows.append((problem, one, other, *map(float, stats.estimate(scores, alike, **own).shown)))
rankings = pd.DataFrame(rows, columns=["task", "one", "other", "correlation", "low", "high"])
run.save(rankings, "rankings")
figure, grid = plt.subplots(1, 2, figsize=(7.3, 3.9))
for axes, problem in zip(grid, problems, strict=True):
    square = rankings[rankings["task"] == problem].pivot(index="other", columns="one", values="correlation")
    square = square.reindex(index=[*names[1:], "alignment"], columns=names)
    plots.heat(axes, square)
    axes.set_title(problem)
    axes.tick_params(axis="x", rotation=45)
plots.show(figure)


# %% tags=["hide-input", "headline"]
def alike(one, other, by, **labels):
    """The rank correlation of two kinds of rows, with its interval."""
    return tables.number(stats.estimate(scores, stats.agreement(one, other, "explainer", by), **labels))


of_pairs, of_networks = [], []
label = {
    (problem, name): {"dataset": here[problem]["dataset"], "network": name}
    for problem in problems
    for name in architectures
}
in_both = scores.where(**here["digits"], **fidelity, reference="perturbed").labels("explainer")
for problem, own in here.items():
    ranked = [*asked[problem], "Random"]
    pairs = [[{**fidelity, "reference": name} for name in pair] for pair in itertools.combinations(names, 2)]
    found = {tuple(of["reference"] for of in pair): stats.agreement(*pair, "explainer", ranked) for pair in pairs}
    found = {pair: stats.estimate(scores, of, **own) for pair, of in found.items()}
    ends = [end(found, key=lambda pair: float(found[pair].value.nan_to_num(0))) for end in (min, max)]
    of_pairs.append(
        f"on {problem} ({main[problem]}) {tables.number(found[ends[0]])} ({summaries.listed(ends[0])}) "
        f"to {tables.number(found[ends[1]])} ({summaries.listed(ends[1])})"
    )
    pair = [label[problem, name] for name in architectures]
    of_networks.append(f"{alike(*pair, in_both, **fidelity, reference='perturbed')} on {problem}")
on_problems = [label[problem, next(iter(architectures))] for problem in problems]
Markdown(
    "How far two rankings of the explainers agree, 1 is the same order. **Another stand-in** (two of "
    f"{len(names)}): {summaries.listed(of_pairs)}. **Another network** (two architectures): {summaries.listed(of_networks)}. "
    f"**Another task** ({summaries.listed(list(problems))}, both by {next(iter(architectures))}): "
    f"{alike(*on_problems, in_both, **fidelity, reference='perturbed')}."
)

# %% [markdown]
# ## The paper's equation 1 or the plain difference?
#
# Earlier work takes the area between the two curves, $A_\mathrm{LIF} - A_\mathrm{MIF}$. The equation differs from it in one
# thing: it charges for an area under MIF that is below $1/N$. As long as $A_\mathrm{MIF} \ge 1/N$,
#
# $$
# \mathrm{Fid} = 1 - \frac{1 - A_\mathrm{LIF} + A_\mathrm{MIF} - \frac1N}{1 + \frac{N-1}N}
#  = \frac{A_\mathrm{LIF} - A_\mathrm{MIF} + 1}{2 - \frac1N} ,
# $$
#
# and the two rank any explanations alike.


# %% tags=["hide-input"]
def below(bar):
    """The share of maps whose area is below a bar, and the least and the largest that it can be."""
    return (
        lambda *samples: torch.stack(
            [s.weights @ (s.values[:, 0] < bar).double() / s.weights.sum(1) for s in samples]
        ).mean(0),
        (0.0, 1.0),
    )


def order_of_difference(*samples):
    """The rank correlation of equation 1 with the plain difference of the areas."""
    fid, lif, mif = torch.stack([s.mean() for s in samples], -1).unflatten(-1, (3, -1)).unbind(-2)
    return pearson(rank(fid), rank(lif - mif))


def of_equation(labels):
    """Either of them for a stand-in and problem."""
    problem, column = labels.pop("task"), labels.pop("column")
    kinds = ["Few-class Fidelity", "area under LIF", "area under MIF"]
    function, ends = order_of_difference, (-1.0, 1.0)
    if column == "A_MIF below 1/N":
        kinds, (function, ends) = ["area under MIF"], below(1 / len(tests[problem].classes))
    every = itertools.product(kinds, [*asked[problem], "Random"])
    over = tuple({"metric": kind, "explainer": name} for kind, name in every)
    return stats.estimate(scores, stats.Statistic(function, over, column, within=ends), **here[problem], **labels)


columns = itertools.product(problems, ("A_MIF below 1/N", "correlation of rankings"))
tables.estimates(under, {f"{problem}: {of}": {"task": problem, "column": of} for problem, of in columns}, of_equation)

# %% [markdown]
# Where no area is below $1/N$ the paper's equation 1 is the plain difference in other units.
#
# ## The application, not the architecture?
#
# *The relevance of XAI methods is influenced by the studied application, not by the models architecture*, the paper concludes
# (section 5). Each network ranks the combinations that both tasks have, under its own perturbed images. If the paper is right,
# two architectures on one task agree more than two tasks do.


# %% tags=["hide-input"]
asked_networks = [(problem, name) for problem in problems for name in architectures]
common = scores.where(**here["digits"], **fidelity, reference="perturbed").labels("explainer")
same = [[problem == other for other, _ in asked_networks] for problem, _ in asked_networks]
same, pairs = torch.tensor(same), torch.ones(len(asked_networks), len(asked_networks)).triu(1).bool()


def correlations(means):
    """Rank correlations between networks [..., networks, explainers] -> [..., pairs within a problem], [..., other pairs]."""
    ranks = rank(means)
    found = pearson(ranks[..., :, None, :], ranks[..., None, :, :])
    return found[..., pairs & same], found[..., pairs & ~same]


def more_within(*samples):
    """How much more two networks of one task agree than two of different problems."""
    means = torch.stack([s.mean() for s in samples], -1).unflatten(-1, (len(asked_networks), -1))
    within, across = correlations(means)
    return within.mean(-1) - across.mean(-1)


over = tuple({"explainer": name, **label[key]} for key in asked_networks for name in common)
application = stats.Statistic(more_within, over, "agreement within a task above that between tasks")
asked_here = {**fidelity, "reference": "perturbed"}
rows = []
for one, other in itertools.combinations(asked_networks, 2):
    e = stats.estimate(scores, stats.agreement(label[one], label[other], "explainer", common), **asked_here)
    rows.append((", ".join(one), ", ".join(other), tables.number(e)))
tables.prose(pd.DataFrame(rows, columns=["one", "other", "rank correlation"]))

# %% [markdown]
# The two networks of digits are those of [](digits). There their agreement is another number, of more images, in finer
# steps, with more noisy copies and a noise of SG that is chosen for each network: where the two differ, it is the surer.

# %% tags=["hide-input"]
paper = refined.printed(published.load("fewclass_scores"))
paper = paper[paper["table"].isin([1, 2])]
wide = paper.pivot(index=["table", "model"], columns="name", values="mean").dropna(axis=1)
theirs = [of.mean().item() for of in correlations(torch.tensor(wide.to_numpy(copy=True)))]
more = {"printed": theirs[0] - theirs[1], "name": "within a task above between tasks"}
parts = [above(scores, 0, of=application, **more, **asked_here)]
for number, problem in enumerate(problems, 1):
    alike = stats.agreement(*(label[problem, name] for name in architectures), "explainer", common)
    printed = stats.spearman(*torch.tensor(wide.loc[number].to_numpy(copy=True))).item()
    name = f"{problem}: two architectures agree (rank correlation above 0.6)"
    parts.append(above(scores, 0.6, of=alike, printed=printed, name=name, **asked_here))
run.claim(
    "fc-application",
    "Section 5",
    "The application ranks the explainers, not the architecture: two architectures on one task agree, and more than two problems.",
    parts,
)

# %% [markdown]
# **Why, where two architectures do not agree?** Every second image against the others says how far the images settle
# each network's order, and each explainer or refinement is left out in turn; the one that is missed least is shown, here and in the
# paper's numbers.

# %% tags=["hide-input"]
left, possible = refined.left_out(common), []
for number, (problem, judged) in enumerate(zip(problems, judge(parts)[1:], strict=True), 1):
    if judged.outcome == HOLDS:  # nothing is to be explained
        continue
    pair = [label[problem, name] for name in architectures]
    for of in pair:
        half = stats.estimate(scores, stats.settled("explainer", common, **of), **asked_here)
        asked = f"{problem}: half of them against the others, {of['network']}"
        possible.append(Reason("Too few images?", asked, half, below=0.6))
    without = {name: stats.agreement(*pair, "explainer", of) for name, of in left.items()}
    without = {name: stats.estimate(scores, of, **asked_here) for name, of in without.items()}
    most = max(without, key=lambda name: float(without[name]))
    two = wide.loc[number, refined.left_out(list(wide))[most]].to_numpy(copy=True)
    asked = f"{problem}: agreement without {most}; in print {stats.spearman(*torch.tensor(two)):.2f}"
    possible.append(Reason("Does one alone spoil it?", asked, without[most], above=0.6))
nothing = Markdown("Nothing is to be explained: the two architectures agree on each task.")
run.why("fc-application", *possible) if possible else nothing

# %% tags=["hide-input"]
run.finish()
