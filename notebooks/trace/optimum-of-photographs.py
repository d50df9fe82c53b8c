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
# # How near the optimum of a photograph does a search come?
#
# *On a large network only a short search can be afforded. How much does it miss?* On [small images](optimality) the optimum is known,
# since all subsets of their patches were asked about. Here the same is asked of photographs and a network that others
# trained on ImageNet: with 16 patches that is 65 536 masked photographs each, ten minutes of a core. From their
# answers the best order of all is a shortest path, and every search is a matter of look-ups.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
network = "efficientnet-lite0"  # pretrained on ImageNet
data = "imagenet-foolbox"  # or imagenet-folder
path = None  # of imagenet-folder: the folder that they lie in
images = 6  # recognised photographs
patch = 56  # side of a patch in pixels: 16 patches
subsets = None  # drawn ones, which are asked about; None: all
steps = [12, 60, 150, 1000, 5000]  # proposals of annealing; 5000 in the paper
integration_steps = 8  # of Integrated Gradients
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0  # of the searches, of the random order, and of the subsets

# %% tags=["hide-input"]
import dataclasses

import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import rng, search, segments, stats
from faithlab.metrics import METRICS, trajectory
from faithlab.outputs import probability
from faithlab.scores import Scores
from faithstudy import plots, records, tables
from faithstudy.data import datasets
from faithstudy.display_names import named
from faithstudy.networks import pretrained
from faithstudy.run import Run
from faithstudy.trials import optimum, tasks

plots.theme()
run = Run("trace/optimum-of-photographs", globals())

# %% [markdown]
# ## The photographs, and the network's answers
#
# They are the first that the network recognises. A removed patch is set to zero, the mean colour of the network's own
# preprocessing. The answer is the probability of the class.

# %% tags=["hide-input"]
pictures = datasets.load(data, "test", **({"path": path} if path else {}))
model = pretrained.load(network)
places = tasks.recognised(model, images, pictures, batch_size=16)
task = tasks.task(model, places, data=pictures, dataset=f"{data} test", name=network, precision=precision)
task = dataclasses.replace(task, segments=segments.patches(*task.x.shape[-2:], patch))
features, device = segments.count(task.segments), task.x.device


def ask(part, subsets=subsets):
    """The answers of some photographs to subsets, which are numbered as `faithlab.search.answers` has them."""
    numbers, zero = torch.arange(1 << features), torch.zeros(1, dtype=torch.long)
    if subsets is None:
        (values,) = optimum.all_subsets(part, [probability])
    else:
        numbers = rng.permutations(seed, zero, zero, len(numbers)).flatten()[:subsets].sort().values
        keep = (numbers[:, None] >> torch.arange(features)) & 1 == 1
        values = part.score(probability)(keep.to(device).expand(len(part.x), -1, -1))
    about = {"metric": "answer", "reference": "zero", **part.labels}
    return Scores.of(values, images=part.images, sizes=numbers, **about)


def drawn():
    """The answers of two photographs to some subsets."""
    return ask(task.part(torch.arange(min(2, images))), subsets=24)


# A probability of one masked photograph may move by more than its mean: the record is of bfloat16.
wide = records.BFLOAT16._replace(few=0.15)
answers = run.table("answers", ask, [task], again=drawn, rounding=wide)
rows = {int(image): row for block in answers for image, row in zip(block.images, block.values, strict=True)}
whole = [i for i, image in enumerate(task.images.tolist()) if len(rows.get(image, ())) == 1 << features]
judged = task.part(torch.tensor(whole, dtype=torch.long))
Markdown(f"The answers of {named(network)} to all {1 << features:,} subsets are known for {len(whole)} photographs.")

# %% [markdown]
# ## What searches and explanations reach of the optimum
#
# The score is LeRF − MoRF, that of [TRACE-p](networks). Annealing starts at the greedy order of LeRF, as the paper's does, and keeps
# the best that it has seen. [The search from both ends](searches) refines its order by insertion. Beside them stand three explanations,
# and a random order. A photograph is *near* its optimum where an order reaches 99 % of it.

# %% tags=["hide-input"]
PART, NEAR = "part of the optimum", "within 1 % of the optimum"
EXPLAINERS = {
    "GradCAM": "gradcam",
    "IG": ("integrated-gradients", {"steps": integration_steps}),
    "InputxGradient": "input-x-gradient",
    "Random": ("random", {"seed": seed}),
}
asks, shown = {}, []
if whole:
    table = torch.stack([rows[image] for image in judged.images.tolist()])
    lookup, ours = search.lookup(table), METRICS["LeRF - MoRF"]
    top = search.optimum(table, "Le-Mo").value
    asked = {"count": len(table), "features": features}
    own = {"seed": seed, "images": judged.images.cpu()}
    searched = {"greedy, LeRF": search.greedy(lookup, objective="Le", **asked)}
    for n in steps:
        begin = searched["greedy, LeRF"].order
        searched[f"annealing, {n:,} proposals"] = search.anneal(lookup, begin, **optimum.schedule(ours, n), **own)
    searched["both ends"] = search.greedy(lookup, objective="Le-Mo", **asked)
    searched["both ends, insertion"] = search.best(lookup, objective="Le-Mo", **asked, **own)
    orders = {name: found.order for name, found in searched.items()}
    begun = searched["greedy, LeRF"].asked  # what annealing starts from has been asked, too
    asks = {
        name: float((found.asked + begun * name.startswith("annealing")).double().mean())
        for name, found in searched.items()
    }
    maps = tasks.attributions(judged, EXPLAINERS, batch_size=4)
    orders |= {name: trajectory.trajectory(of).cpu() for name, of in maps.items()}
    for name, order in orders.items():
        curves = trajectory.curves(lookup, order)
        reached = (curves.lerf - curves.morf).sum(1) / top.to(curves.lerf)
        about = {"images": judged.images, "explainer": name, "reference": "zero"} | judged.labels
        shown += [Scores.of(reached, metric=PART, **about), Scores.of(reached > 0.99, metric=NEAR, **about)]
    reached = Scores.concat(shown)
    run.save(reached, "reached")

# %% mystnb={"figure": {"caption": "LeRF \u2212 MoRF of each order as a part of the best order's, mean over the photographs with its 95 % interval. 1 is the optimum, 0 is chance.", "name": "tr-optimum-photographs"}, "image": {"alt": "Dot plot, a row for each search and explanation: the part of the optimum that its order reaches, searches close to 1 above the explanations."}} tags=["hide-input"]
PARTS = stats.Statistic(stats.mean, within=(-1.0, 1.0))
of_all = {"photographs": {"metric": PART, "of": PARTS}}
plots.dots(reached, of_all, label="part of the optimum") if whole else None

# %% tags=["hide-input", "answer"]
said = []
for name in orders if whole else ():
    part, near = (
        stats.estimate(reached, of, metric=m, explainer=name) for of, m in ((PARTS, PART), (stats.mean, NEAR))
    )
    row = {
        "order": name,
        PART: tables.number(part, 3),
        "near the optimum": f"{float(near.value) * near.images:.0f} of {near.images}",
    }
    said.append(row | {"masked photographs": f"{asks[name]:,.0f}" if name in asks else "none"})
tables.prose(pd.DataFrame(said)) if said else Markdown("Without the answers to all subsets nothing can be judged here.")


# %% tags=["hide-input", "headline"]
def reaches(name):
    """What an order reaches, in words."""
    return f"**{tables.share(stats.estimate(reached, PARTS, metric=PART, explainer=name))}**"


if whole:
    few, many = (f"annealing, {n:,} proposals" for n in (min(steps), max(steps)))
    text = (
        f"Of the optimum of {len(whole)} photographs, {few.replace(', ', ' of ')} reaches {reaches(few)}, {many.replace(', ', ' of ')} {reaches(many)}, "
        f"and the search from both ends, refined by insertion, {reaches('both ends, insertion')} with {asks['both ends, insertion'] / asks[many] * 100:.0f} % "
        f"of the questions that annealing of {max(steps):,} proposals asks; annealing starts at a greedy order. A share of what a short search found is too high by what it missed."
    )
Markdown(text if whole else "Without the answers to all subsets nothing can be judged here.")

# %% [markdown]
# *Masked photographs* is how many a search asks about, mean per photograph; a complete search asks about all subsets. Six photographs
# by one network are few: the intervals say how few. With 49 patches, as in [the networks' page](networks), nobody can know the optimum,
# and a search may lack more.

# %%
run.finish()
