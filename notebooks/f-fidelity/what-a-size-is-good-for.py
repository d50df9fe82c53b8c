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
# # Does a size say how good an explanation is?
#
# The size of an explanation is the number of features after which nothing more of it comes, the knee of F-Fidelity's curves that
# does not move with their cap ([in pictures](../../book/plateaus)). [Some rankings have one](sizes-beyond-digits), most have none. What is a size good for? Two things come to mind. A larger one might
# mean a worse explanation, because more features are needed. And it might be what people read off a deletion curve: where it
# flattens. Both are asked here where the right explanation is known by construction, so that it is known which ranking is worse, and
# where a curve should flatten.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
box = 20  # side of the vehicles in their images of 32 x 32 pixels
width = 8  # of the network that sorts vehicles
epochs = 3  # of its training
tuning_epochs = 1  # of its fine-tuning on random masks
train_limit = None  # training images of vehicles, and reviews; None: all
vehicles = 400  # images of vehicles
texts = 280  # sentences
phrase = 12  # tokens that are left of a sentence where the explanation is known
series = 60  # time series
span = 30  # steps that are left of a series where the explanation is known
betas = [0.05, 0.1, 0.15, 0.2]  # caps on the removed share, all with the first alpha
alphas = [0.5, 0.3, 1.0]  # the others with the middle cap
step = 0.03125  # between the sizes of a curve: one token of 32
longest = 0.6  # the largest size
image_draws = 1  # random subsets per image, setting and size
draws = 4  # of sentences and series
levels = [0.2, 0.5]  # of the true order, the share that is shuffled
searched = ["vehicles", "phrases", "spans"]  # the data for which TRACE searches an order
search_steps = 300  # of its annealing
smooth_samples = 16  # noisy copies for SG-SQ
integration_steps = 32  # of Integrated Gradients
precision = "bfloat16"  # of forwards of images, where the device computes it natively; else float32
seed = 0  # of places, searches and random subsets

# %% tags=["hide-input"]
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import segments, stats
from faithlab.explainers.degrade import degrade
from faithlab.metrics import METRICS, evaluate, fidelity
from faithlab.metrics.size import Setting, readings
from faithlab.outputs import probability
from faithlab.scores import Scores
from faithstudy import plots, recipes, summaries, tables
from faithstudy.data import datasets
from faithstudy.networks.training import Recipe
from faithstudy.run import Run
from faithstudy.trials import baselines, sizes

plots.theme()
run = Run("f-fidelity/what-a-size-is-good-for", globals())

# %% [markdown]
# ## Inputs whose explanation is known
#
# Three of [the six kinds of data](sizes-beyond-digits), with the same networks and inputs: **vehicles**, each in a square on a
# photograph of something else; **phrases**, sentences of which all is blank but a run of tokens; **spans**, series of which all is
# blank but a run of steps. Whole **sentences** are asked as well, but only for how soon their curves are flat.
#
# *Truth* is the known explanation, in random order within and without. It is made worse by a known amount: a share of the features
# have their places shuffled. TRACE is the order that annealing finds, where it is asked; the others are explainers, and *random*
# knows nothing.


# %% tags=["hide-input"]
def tuned(recipe, blank=0.0, **training):
    """A network that is used to as many missing features as the caps remove, and to blanks."""
    return recipes.pair(recipe, 0, beta=max(betas) + blank, training=training)["fine-tuned"]


sorting = Recipe("cifar10-vehicles", "resnet9", epochs, rate=0.01, decay=1e-5, batch=64, precision=precision)
of_vehicles = {
    "model_options": {"width": width, "classes": 3},
    "limit": train_limit,
    "data_options": {"size": box, "seed": 0},
}
brief = {"epochs": tuning_epochs, "rate": 0.004}
moving = {"data": "basic-motions", "model_options": {"classes": 4, "channels": 6}}

ig, sg = {"steps": integration_steps}, {"samples": smooth_samples, "seed": seed}
gradients = {"SG-SQ": ("smoothgrad-squared", sg), "Integrated Gradients": ("integrated-gradients", ig)}
embedded = {"Integrated Gradients": ("integrated-gradients-embedding", ig)}
embedded |= {"Input × Gradient": "input-x-gradient-embedding"}
pictures = {"network": "ResNet-9", "draws": image_draws, "explainers": gradients | {"Grad-CAM": "gradcam"}}
pictures |= {"groups": segments.patches(32, 32, 8), "precision": precision}  # TRACE moves a group as one
words = {"network": "LSTM", "draws": draws, "explainers": embedded}
steps = {"network": "LSTM", "draws": draws, "explainers": gradients, "groups": segments.time_steps(100) // 5}

pasted = recipes.pair(sorting, 0, beta=max(betas), training=of_vehicles, tuning=brief)["fine-tuned"]
asked = [  # kind, network, how many, and how
    (f"vehicles of {(box / 32) ** 2:.0%}", pasted, vehicles, pictures | {"among": 2 * vehicles}),
    ("phrases", tuned(recipes.LSTM, 1 - phrase / 32, limit=train_limit), texts, words | {"left": phrase}),
    ("spans", tuned(recipes.BILSTM, 1 - span / 100, **moving), series, steps | {"left": span}),
    ("sentences", tuned(recipes.LSTM, limit=train_limit), texts, words),
]
settings = [Setting(alphas[0], beta) for beta in betas]
settings += [Setting(alpha, betas[len(betas) // 2]) for alpha in alphas[1:]]
fractions = torch.arange(1, round(longest / step) + 1, dtype=torch.float64) * step
cases = [sizes.case(name, of, most, settings, fractions, **how, seed=seed) for name, of, most, how in asked]

about = {"output": probability, "sizes": [k / 16 for k in range(17)]}
ends = {
    way: METRICS["Fid+"].given(compute=partial(fidelity.remaining, direction=way), direction=way, **about)
    for way in ("MoRF", "LeRF")
}
# Few-class Fidelity's curves: the same, but what is removed becomes an image of which the network cannot say what it is.
few_class = {name: ends[way].given(baseline="perturbed") for name, way in (("MIF", "MoRF"), ("LIF", "LeRF"))}
known = [c for c in cases if c.known is not None]
case_of = {c.task.dataset: c for c in cases}


def measure(task, steps=search_steps):
    """The curves of all rankings of inputs of one kind."""
    c = case_of[task.dataset].of(task)
    own = c.rankings(steps * (task.dataset.split(" of ")[0] in searched))
    if c.known is not None:
        of = {"seed": seed, "images": task.images}
        own |= {f"truth, {level:.0%} shuffled": degrade(own["truth"], level, **of) for level in levels}
    found = c.ask(own, ends)
    if task.dataset != cases[0].task.dataset:
        return found
    undecided, _ = baselines.perturbed(task, datasets.load(pasted.data, "test", **pasted.data_options))
    return found + evaluate(few_class, undecided, own)


def first_of_each():
    """The same of the first inputs of each kind, without the orders that are searched."""
    return Scores.concat(measure(c.task.part(torch.arange(min(4, len(c.task.x)))), steps=0) for c in cases)


scores = run.table("scores", measure, [c.task for c in cases], again=first_of_each)

# %% [markdown]
# ## Sizes and bends
#
# A size is named where a gain curve with a sharp knee explains the curves of FFid+ best, [as there](explanation-size). What is
# refused stands at its best knee. The percentage beside a ranking is the share of the features ranked first, as many as the explanation
# has, that are its own.
#
# Deletion curves have a bend, too, and people read sizes off it. We take the size by which nine
# tenths of the whole change have happened, divided by 0.9: where a curve that changes evenly would end. One curve is the answer when
# the features ranked first are removed (MoRF), the other when only they are left (LeRF). Few-class Fidelity has such curves, too, MIF
# and LIF: what is removed becomes an image that its search made for this network to be undecided about. They are asked of
# the vehicles. If removal did nothing but take away what
# explains, and all of it mattered equally, all would stand at the known explanation's size.


# %% tags=["hide-input"]
most = 0.9  # of the change


def flattens(sample):
    """The statistic: where a mean curve would end, by the size at which it has made nine tenths of its whole change."""
    curve = sample.mean()
    done = (curve - curve[:, :1]) / (curve[:, -1:] - curve[:, :1])
    after = (done >= most).double().argmax(1, keepdim=True).clamp(min=1)
    low, high = done.gather(1, after - 1), done.gather(1, after)
    first, last = sample.sizes[after - 1], sample.sizes[after]
    return ((first + ((most - low) / (high - low)).clamp(0, 1) * (last - first)) / most).clamp(max=1)[:, 0]


def bend(data, ranking, way):
    """Where a deletion curve flattens, with its interval."""
    statistic = stats.Statistic(flattens, ({"metric": way},), steps=True)
    return tuple(map(float, stats.estimate(scores, statistic, dataset=data, explainer=ranking).pooled))


ranked = {c.task.dataset: scores.where(dataset=c.task.dataset, metric="MoRF").labels("explainer") for c in cases}
read = [(c, name, c.read(scores, name)) for c in known for name in ranked[c.task.dataset]]
table = pd.DataFrame([c.row(scores, name, of) for c, name, of in read])
bends = table.merge(pd.DataFrame({"curve": [*ends, *few_class]}), how="cross")
bends = bends[bends["curve"].isin(ends) | (bends["data"] == cases[0].task.dataset)].reset_index(drop=True)
at = pd.DataFrame([bend(r.data, r.ranking, r.curve) for r in bends.itertuples()])
bends[["bend", "bend_low", "bend_high"]] = at
run.save(bends, "bends")
sizes_of = bends.drop_duplicates(["data", "ranking"])

# %% mystnb={"figure": {"caption": "Rankings of inputs whose explanation is known, those above that put most of it first (percent). Diamonds: sizes, with 95 % intervals over the inputs; open ones are refused, and stand at their best knee. Triangles: where deletion curves flatten, removed in order of relevance (MoRF, pointing down), and only the first left (LeRF, pointing up); three-pointed stars: the same with Few-class Fidelity's image in place of what is removed (MIF, pointing down, and LIF), for vehicles. Dashed: the known size.", "name": "ff-beyond-bends"}, "image": {"alt": "Three panels, a row for each ranking. The size of the unshuffled truth stands near the dashed line, where it is named; of most other rankings it is refused. Every ranking has bends, the random one too."}} tags=["hide-input", "answer"]
kinds = bends.groupby("data", sort=False)
figure, grid = plt.subplots(len(kinds), 1, figsize=(7.2, 2.3 * len(kinds)), sharex=True)
looks = {"MoRF": ("v", "C1"), "LeRF": ("^", "C2"), "MIF": ("1", "C3"), "LIF": ("2", "C4"), "size": ("D", "C0")}
for axes, (data, of) in zip(grid, kinds, strict=True):
    of = of.sort_values("overlap", ascending=False, kind="stable")
    order = {name: f"{name}: {share:.0%}" for name, share in zip(of["ranking"], of["overlap"], strict=True)}
    places = {name: place for place, name in enumerate(order)}
    for r in of.itertuples():
        marker, colour = looks[r.curve]
        reach = [[max(0, r.bend - r.bend_low)], [max(0, r.bend_high - r.bend)]]
        axes.errorbar(r.bend, places[r.ranking], xerr=reach, fmt=marker, color=colour, capsize=2, markersize=5)
        reach = None if r.refusal else [[r.size - r.low], [r.high - r.size]]
        face = "none" if r.refusal else "C0"
        axes.errorbar(r.best_knee, places[r.ranking], xerr=reach, fmt="D", color="C0", markerfacecolor=face, zorder=1)
    axes.set_yticks(range(len(order)), order.values(), fontsize="small")
    axes.set(title=data, ylim=(len(order) - 0.5, -0.5), xlim=(0, 1))
    axes.axvline(of["truth"].iloc[0], color="C7", linestyle="--", linewidth=1.2)
signs = {says: {"marker": m, "color": c} for says, (m, c) in looks.items()}
signs |= {"best knee, refused": {"marker": "D", "color": "C0", "markerfacecolor": "none"}}
handles = [plt.Line2D([], [], linestyle="", label=says, **look) for says, look in signs.items()]
figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize="small")
figure.supxlabel("share of the features", fontsize="small")
plots.show(figure, least=30)

# %% [markdown]
# The same as numbers. Where no size stands, it is refused.

# %% tags=["hide-input"]
of_bends = {"bend": "mean", "bend_low": "low", "bend_high": "high"}
flat = bends.drop(columns=["low", "high"]).rename(columns=of_bends)
flat["asked"] = flat["curve"] + ", flat at"
asked = pd.concat([sizes_of.dropna(subset="size").rename(columns={"size": "mean"}).assign(asked="size"), flat])
asked["data"] = asked["data"] + asked["truth"].map(", known: {:.2f}".format)
tables.compared(asked, rows=["data", "ranking"], columns=["asked"], order=[*sizes_of["ranking"].unique()])

# %% [markdown]
# ## Does a larger size mean a worse explanation?
#
# In the figure the better rankings stand above. If a size said how good a ranking is, the diamonds would move to the right, row by row.
# The surest comparison is that of one explanation with itself, shuffled: how far does its best knee move, be it named or not?


# %% tags=["hide-input"]
def moved(c, ranking):
    """How far the best knee of a ranking is from that of the truth."""
    J, features = len(c.settings), segments.count(c.task.segments)

    def apart(*of):
        knees = (torch.stack([s.values for s in half], 1) for half in (of[:J], of[J:]))
        worse, best = (readings(k, of[0].weights, fractions, c.settings, features) for k in knees)
        return worse - best

    over = tuple({"metric": s.metric, "explainer": name} for name in (ranking, "truth") for s in c.settings)
    statistic = stats.Statistic(apart, over, "knee moved", steps=True)
    return [*map(float, stats.estimate(scores, statistic, dataset=c.task.dataset).pooled)]


worse = table[table["ranking"].str.contains("shuffled")].reset_index(drop=True)
worse[["moved", "moved_low", "moved_high"]] = [moved(c, name) for c, name, _ in read if "shuffled" in name]
run.save(worse, "shuffled")
true = sizes_of[sizes_of["ranking"] == "truth"]
up, down = (worse["moved_low"] > 0).sum(), (worse["moved_high"] < 0).sum()
known_moves = worse.dropna(subset="moved").itertuples()
moves = [f"{r.data}, {r.ranking}: {r.moved:+.2f} [{r.moved_low:+.2f}, {r.moved_high:+.2f}]" for r in known_moves]
text = f"The best knee of the shuffled truth is surely at a larger size in {up} of {len(worse)} comparisons, surely at a smaller one in "
text += f"{down} ({'; '.join(moves)}). ".replace("-", "−")
text += (
    f"Named is the size of {worse['size'].count()} of {len(worse)} shuffled rankings, and of {true['size'].count()} of "
)
text += f"{len(true)} unshuffled ones. "
if 2 * max(up, down) > len(worse):
    text += f"**So here a {'larger' if up > down else 'smaller'} size is the sign of a worse ranking** of the same explanation."
elif true["size"].count():
    reach = (worse["moved_high"] - worse["moved_low"]) / 2
    text += "**So nothing here says that a size tells which ranking is worse.** A move "
    text += f"of less than {reach.min():.2f} to {reach.max():.2f} would not have been seen."
sized = sizes_of[sizes_of["size"].notna() & ~sizes_of["ranking"].str.startswith("truth")]
pairs = sized.merge(sized, on="data", suffixes=("", "_other")).query("overlap < overlap_other")
text += f" **Between explainers** {len(pairs) or 'no'} pair{'s' * (len(pairs) != 1)} ha{'s' if len(pairs) == 1 else 've'} a size each on the same data"
if len(pairs):
    text += (
        f"; the one that finds less of the truth has the larger size in {(pairs['size'] > pairs['size_other']).sum()}"
    )
text += "."
Markdown(text)

# %% tags=["hide-input", "headline"]
of_named = worse[worse["size"].notna() & worse["moved"].notna()]
moves = [
    f"{round(r.moved, 2) + 0.0:+.2f} [{r.moved_low:+.2f}, {r.moved_high:+.2f}] ({r.data}, {r.ranking})"
    for r in of_named.itertuples()
]
more, less = (of_named["moved_low"] > 0).sum(), (of_named["moved_high"] < 0).sum()
answer = "No move is seen" if 2 * max(more, less) <= len(of_named) else "Here it does"
answer = answer if len(of_named) else "No size is named that could say so"
Markdown(
    f"**{answer}**: of {len(worse)} known explanations that were shuffled {len(of_named) or 'none'} still ha{'s' if len(of_named) == 1 else 've'} a "
    "size that is named"
    + f"; beside the unshuffled one's it moved by {summaries.listed(moves)} of the features".replace("-", "−")
    * bool(moves)
    + (". The others say nothing: their knees are refused" if len(of_named) < len(worse) else "")
    + " ("
    + summaries.listed([f"{of['inputs'].max()} {data}" for data, of in worse.groupby("data", sort=False)])
    + "; ResNet-9 and LSTMs, one of each)."
)

# %% [markdown]
# ## Is it the size at which deletion curves flatten?

# %% tags=["hide-input"]
lines = []
# Where every resample has the same bend there is no interval.
surely = bends.assign(**{end: bends[end].fillna(bends["bend"]) for end in ("bend_low", "bend_high")})
for way, part in surely.groupby("curve", sort=False):
    own, named = part[part["ranking"] == "truth"], part[part["size"].notna()]
    early, late = (own["bend_high"] < own["truth"]).sum(), (own["bend_low"] > own["truth"]).sum()
    sooner, later = (named["bend_high"] < named["low"]).sum(), (named["bend_low"] > named["high"]).sum()
    line = f"- **{way}**: the curve of the known explanation is flat surely before its true size in {early} of {len(own)} kinds of "
    line += f"data, surely after it in {late}. Of {len(named)} rankings with a size it is flat surely before the size in {sooner}, "
    lines.append(line + f"surely beyond it in {later}.")
tokens = [f"{name} {32 * most * bend('sentences', name, 'MoRF')[0]:.1f}" for name in ranked["sentences"]]
lines.append(
    f"- **Sentences** of 32 tokens have made nine tenths of their loss with so many tokens: {', '.join(tokens)}."
)
Markdown("\n".join(lines))

# %% [markdown]
# Every curve flattens somewhere, also that of a random ranking, so that a bend is no evidence of an end: it says how soon *this* ranking
# has done its work on a network that loses what it is not used to lose. On the known explanation a bend can be compared
# with the truth; on others there is nothing to compare it with.
#
# ## What to take home

# %% tags=["hide-input"]
graded = 2 * max(up, down) > len(worse)
Markdown(
    (
        "- A size tells something of how right a ranking is: see the comparisons of the shuffled truth above."
        if graded
        else "- Nothing here makes a size a grade: shuffled, the known explanation's best knee surely moves in "
        f"{up + down} of {len(worse)} comparisons. Where an interval above is wide that says little, and where no size is named even less."
    )
    + """
- A bend is never refused. That of a known explanation may stand near its size, but every other ranking has one, too. Report a bend
  as what it is, the share of features after which most of the loss has happened, and not as a size."""
)

# %% tags=["hide-input"]
run.finish()
