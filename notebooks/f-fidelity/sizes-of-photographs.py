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
# # How large is the explanation of a photograph of ImageNet?
#
# [Digits](explanation-size), and [vehicles, phrases and spans](sizes-beyond-digits), are inputs made so that one knows where their explanation ends, and
# small networks were trained to look there. Here is what an explainer is used for in practice: a large network that others
# trained, photographs of 224 pixels, and the sentences of SST-2, on which the paper measures F-Fidelity. Does
# the explanation of such an input have an end that its *size* finds?
#
# The control is the same photographs made smaller, on a grey ground. The network knows them still, and what explains them is
# the smaller picture and nothing else: for a grey patch grey is put. If even that end is not found, and not found again in each half of the
# inputs, this page can say nothing of the others. Whether it is stands below, with the sizes.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
network = "efficientnet-lite0"  # see faithstudy.networks.pretrained
photographs = 20  # of the 20 that every installation has
folder = "~/imagenet-sample-images"  # where more photographs are, with the WordNet id of the class in their names; None: no more
more_photographs = 200  # of that folder
patch = 16  # side of a patch in pixels, the feature that is removed
square = 7  # side of a smaller photograph, in patches
sentences = 400  # of SST-2; 0: its data are not needed
phrase = 12  # tokens that are left of a sentence where the explanation is known
betas = [0.05, 0.1, 0.15, 0.2]  # caps on the removed share, all with the first alpha
alphas = [0.5, 1.0]  # the others with the middle cap
step = 0.0625  # between the sizes of a curve
longest = 0.5625  # the largest size
draws = 1  # random subsets per photograph, setting and size
sentence_draws = 4  # of sentences
smooth_samples = 8  # noisy copies for SG-SQ
integration_steps = 16  # of Integrated Gradients
ones = 6  # inputs of each kind that are read by themselves
one_by = ["truth", "Grad-CAM", "Integrated Gradients"]  # their rankings
one_draws = 30  # random subsets of one photograph, for each setting and size; of fewer than 20 no size is named
shown_draws = 40  # of a photograph that is shown
precision = "bfloat16"  # of forwards of photographs, where the device computes it natively; else float32
seed = 0  # of places and random subsets

# %% tags=["hide-input"]
import dataclasses
import functools
from functools import partial

import pandas as pd
import torch
from IPython.display import Markdown
from torch.nn import functional

from faithlab import segments
from faithlab.metrics import evaluate
from faithlab.metrics.size import LEAST_ROWS, Setting, curves, holds, read, sweep
from faithlab.outputs import correct, probability
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy import plots, recipes, summaries, tables
from faithstudy.data import datasets
from faithstudy.networks import pretrained
from faithstudy.run import Run
from faithstudy.trials import sizes, tasks

plots.theme()
run = Run("f-fidelity/sizes-of-photographs", globals())

# %% [markdown]
# ## The inputs
#
# Only inputs that the network recognises are asked about: there must be something to lose. The network of the photographs is asked as
# it is. Nobody trained it on missing patches, so that what it loses is in part the surprise at them, wherever they are: there
# is no knowing how much, which is why the control is needed. Strictly, what is called FFid+ of this network here is RFid+ with
# F-Fidelity's cap: FFid+ asks a network that was fine-tuned. The LSTM is fine-tuned on random masks, as on the other pages.
#
# The ranking *centre* goes from the middle of the picture outwards. It knows nothing of the network; but what a photograph shows is
# often in the middle.


# %% tags=["hide-input"]
model = pretrained.load(network)
settings = [Setting(alphas[0], beta) for beta in betas]
settings += [Setting(alpha, betas[len(betas) // 2]) for alpha in alphas[1:]]
fractions = torch.arange(1, round(longest / step) + 1, dtype=torch.float64) * step


def smaller(x, images):
    """Photographs made smaller, each at a place of its own on a ground of the mean colour, and which patches they cover."""
    across = x.shape[-1] // patch
    low, side = torch.zeros_like(x), square * patch
    known = torch.zeros(len(x), across, across, dtype=torch.bool)
    places = sizes.run((across - square + 1) ** 2, 1, images, seed).long().argmax(1)
    of = functional.interpolate(x, (side, side), mode="bilinear", antialias=True)
    for i, place in enumerate(places.tolist()):
        row, column = divmod(place, across - square + 1)
        low[i, :, patch * row : patch * row + side, patch * column : patch * column + side] = of[i]
        known[i, row : row + square, column : column + square] = True
    return low, known.flatten(1)


def pictured(kind, data, most, places):
    """The first photographs that the network recognises, as they are or smaller, as a case for sizes."""
    known, x = None, data.model_inputs(places)
    if kind.startswith("smaller"):
        x, known = smaller(x, places)
    about = {"dataset": kind, "network": network, "images": places, "tuned": model}
    about["precision"] = tasks.dtype(precision)
    grid = segments.patches(*x.shape[-2:], patch)
    task = Task(model, x, data.labels[places], grid, **about)
    whole = torch.ones(len(x), 1, segments.count(grid), dtype=torch.bool)
    right = task.score(correct)(whole)[:, 0].bool().nonzero().flatten()[:most]
    known = None if known is None else known[right]
    explainers = {
        "SG-SQ": ("smoothgrad-squared", {"samples": smooth_samples, "seed": seed}),
        "Integrated Gradients": ("integrated-gradients", {"steps": integration_steps}),
        "Grad-CAM": "gradcam",
        "centre": sizes.centre,
    }
    found = task.part(right)
    return sizes.Case(found, known, data.classes, tuple(settings), fractions, draws, explainers, grid, seed)


def written(kind, blank, **how):
    """Sentences that a network fine-tuned on random masks recognises, as a case for sizes."""
    of = {"data": "sst2", "data_options": recipes.LSTM.data_options}
    tuned = recipes.pair(recipes.LSTM, 0, beta=max(betas) + blank, training=of)["fine-tuned"]
    embedded = {"Integrated Gradients": ("integrated-gradients-embedding", {"steps": integration_steps})}
    embedded |= {"Input × Gradient": "input-x-gradient-embedding"}
    how |= {"network": "LSTM", "explainers": embedded, "draws": sentence_draws, "seed": seed}
    return sizes.case(kind, tuned, sentences, settings, fractions, **how)


@functools.cache
def case_of(kind):
    """Inputs of a kind."""
    if "of the folder" in kind:
        more = datasets.load("imagenet-folder", "test", path=folder, limit=2 * more_photographs, seed=seed)
        return pictured(kind, more, more_photographs, torch.arange(len(more)))
    if "photographs" in kind:
        return pictured(kind, datasets.load("imagenet-foolbox", "test"), photographs, torch.arange(20))
    return written(kind, 1 - phrase / 32, left=phrase) if "phrases" in kind else written(kind, 0.0)


kinds = ["photographs", "smaller photographs"]
kinds += ["photographs of the folder", "smaller photographs of the folder"] if folder else []
kinds += ["SST-2", "phrases of SST-2"] if sentences else []


def task_of(kind):
    """The same, as they are measured."""
    return case_of(kind).task


def measure(task):
    """FFid+ of all rankings of inputs of one kind."""
    c = case_of(task.dataset).of(task)
    return c.ask(c.rankings(batch_size=16))


def first_of_both():
    """The same of the first photographs, as they are and smaller."""
    return Scores.concat(measure(task_of(kind).part(torch.arange(min(2, len(task_of(kind).x))))) for kind in kinds[:2])


scores = run.table("scores", measure, [partial(task_of, kind) for kind in kinds], again=first_of_both)

# %% [markdown]
# The curves of all inputs of a kind are read together. *Truth* is the known explanation, in random order within and without; *random* and
# *centre* know nothing. A size that is one can be found again: where one is named, the ranking is read twice more, from every other
# input and from the rest.


# %% tags=["hide-input"]
def features_of(kind):
    """How many features there are."""
    return segments.count(task_of(kinds[0]).segments) if "photographs" in kind else 32


def read_together(kind, ranking):
    """What is read of all inputs of a kind."""
    of = curves(scores, settings, dataset=kind, explainer=ranking)
    return read(of, fractions, settings, features_of(kind), seed=seed)


def read_all():
    """What is read of each ranking."""
    cases, names = zip(
        *((case_of(kind), scores.where(dataset=kind).labels("explainer")) for kind in kinds), strict=True
    )
    return sizes.tabulated(cases, names, scores).drop(columns=["of", "read"])


def read_known():
    """The same of the known explanations, without the words of a refusal, which have a p-value that rounding changes."""
    found = [(kind, read_together(kind, "truth")) for kind in scores.where(explainer="truth").labels("dataset")]
    numbers = ({"size": of.fraction, "low": of.low, "high": of.high} for _, of in found)
    return pd.DataFrame({"data": k, "ranking": "truth"} | of for (k, _), of in zip(found, numbers, strict=True))


table = run.table("sizes", read_all, again=read_known)
table = table.fillna({"refusal": ""})
of_kind = table.groupby("data", sort=False).agg({"inputs": "first", "truth": "max"}).reset_index()
of_kind["network"] = [scores.where(dataset=kind).labels("network")[0] for kind in of_kind["data"]]
of_kind["features"] = of_kind["data"].map(features_of)
of_kind["that explain"] = of_kind["truth"].map("{:.0%}".format).replace("nan%", "unknown")
tables.prose(of_kind[["data", "network", "inputs", "features", "that explain"]])

# %% [markdown]
# ## See one
#
# Two photographs: a smaller one on its ground, with its known explanation in random order, and one as it is, with Grad-CAM. Of each
# kind the two that lose most, in the mean over all settings and sizes, are read, and the first that has a size is shown; where
# there are too few draws to name any, the one that loses most.

# %% tags=["hide-input"]
by_caps, columns = settings[: len(betas)], [f"{s:g}" for s in fractions.tolist()]
one_of = {"smaller photographs": "truth", "photographs": "Grad-CAM"}  # the ranking that is shown, by kind


def most_lost(kind, count):
    """The inputs of a kind that lose most."""
    c, block = case_of(kind), scores.where(dataset=kind, explainer=one_of[kind], metric=settings[0].metric).blocks[0]
    first = block.images[c.lost(scores, one_of[kind]).argsort(descending=True, stable=True)]
    places = [c.task.images.tolist().index(image) for image in first.tolist() if image in c.task.images]
    return c.of(c.task.part(torch.tensor(places[:count])))


def measure_shown(kinds, count, draws):
    """What photographs of some kinds lose, each by itself: a row for each cap and draw, a column for each size."""
    tables_of = []
    for c, kind in ((most_lost(kind, count), kind) for kind in kinds):
        ranking = c.rankings(batch_size=16)[one_of[kind]]
        for at, image in enumerate(c.task.images.tolist()):
            copies = c.task.part(torch.full((draws,), at))
            copies = dataclasses.replace(copies, images=torch.arange(draws))
            asked = sweep(by_caps, fractions, draws=1, seed=seed)
            asked = {name: metric.given(output=probability) for name, metric in asked.items()}
            for block in evaluate(asked, copies, {"one": ranking[[at]].expand(draws, -1)}):
                rows = pd.DataFrame(block.values.numpy(), columns=columns).round(5)
                rows.insert(0, "draw", range(draws))
                tables_of.append(pd.DataFrame({"data": kind, "image": image, "cap": block.labels["metric"]} | {**rows}))
    return pd.concat(tables_of, ignore_index=True)


shown = run.table(
    "shown", partial(measure_shown, [*one_of], 2, shown_draws), again=partial(measure_shown, kinds[1:2], 1, 2)
)


def pictured_one(kind):
    """Of the photographs of a kind one that has a size, if one has: its size, the known one, how it was chosen, its figure."""
    rows, c = shown[shown["data"] == kind], most_lost(kind, 2)
    images = rows["image"].unique().tolist()

    def read_one(at):
        own = rows[rows["image"] == images[at]]
        of = [torch.tensor(own.loc[own["cap"] == s.metric, columns].to_numpy()) for s in by_caps]
        return read(torch.stack(of, 1), fractions, by_caps, features_of(kind))

    at, size, how = sizes.first_named(torch.zeros(len(images)), read_one, len(images))
    c = c.of(c.task.part(torch.tensor([c.task.images.tolist().index(images[at])])))
    x = c.task.x[0].cpu()
    x, known = (x - x.amin()) / (x.amax() - x.amin()), None if c.known is None else float(c.known.double().mean())
    ranking = c.rankings(batch_size=16)[one_of[kind]][0]
    return size, known, how, plots.explanation_size(size, x.permute(1, 2, 0), ranking, c.task.segments, truth=known)


def said_of(which, size, known, how):
    """What was read of the photograph that is shown, or why nothing was."""
    if size.rows < LEAST_ROWS:
        return f"{which} that loses most was not read: {size.rows} draws are too few, at least {LEAST_ROWS} are needed."
    which += f" ({how})"
    if size.refusal:
        return f"{which} has no size: {size.refusal}."
    text = f"{which} has the size {size.fraction:.2f}, with the interval [{size.low:.2f}, {size.high:.2f}]"
    if known is None:
        return f"{text}."
    return f"{text}, which {'holds' if holds(size.low, size.high, known) else 'misses'} the known {known:.2f}."


(*of_known, known_figure), (*of_real, real_figure) = map(pictured_one, one_of)
Markdown(f"{said_of('The smaller photograph', *of_known)} {said_of('The one as it is', *of_real)}")

# %% mystnb={"figure": {"caption": "A photograph made smaller, and its known explanation in random order: the curves, and what the size keeps, if it has one.", "name": "ff-photographs-known"}, "image": {"alt": "A small photograph on a grey ground, the square that it covers, and curves of FFid+ over size for several caps."}} tags=["hide-input", "answer"]
known_figure

# %% mystnb={"figure": {"caption": "A photograph as it is, with Grad-CAM: the curves, and what the size keeps, if it has one.", "name": "ff-photographs-gradcam"}, "image": {"alt": "A photograph, a heat map, and curves of FFid+ over size for several caps."}} tags=["hide-input"]
real_figure

# %% [markdown]
# ## Is there a size, of many together?

# %% tags=["hide-input"]
told = table.assign(
    reading=[
        r.refusal.replace("images, or draws of one,", "inputs") or f"{r.size:.2f} [{r.low:.2f}, {r.high:.2f}]"
        for r in table.itertuples()
    ],
    known=table["truth"].map(lambda share: "" if pd.isna(share) else f"{share:.2f}"),
    again=[
        ("in neither half", "in one half", "in both halves")[int(r.halves)] if not r.refusal else ""
        for r in table.itertuples()
    ],
)
tables.prose(told[["data", "ranking", "inputs", "known", "reading", "again"]].rename(columns={"again": "found again"}))

# %% tags=["hide-input"]
controls = ["truth", "random", "centre"]


def said(of):
    """How many rankings of explainers have a size, and how many known explanations, of what had inputs enough."""
    of = of[of["inputs"] >= LEAST_ROWS]
    if of.empty:
        return f"none has the {LEAST_ROWS} inputs that a reading takes"
    real, true = of[of["truth"].isna() & ~of["ranking"].isin(controls)], of[of["ranking"] == "truth"]
    held = int(holds(true["low"], true["high"], true["truth"]).sum())
    middle = of[of["ranking"] == "centre"]
    text = f"the known explanation has a named size in {true['size'].count()} of {len(true)} kinds of data that could be read (its interval holds "
    text += f"the true one in {held}), and {real['size'].count()} of {len(real)} rankings by explainers have one where nobody "
    text += f"knows the explanation, {int((real['halves'] == 2).sum())} of them in both halves again"
    if len(middle):
        text += f". The order from the centre outwards has one in {middle['size'].count()} of {len(middle)} kinds"
    return text


def concluded(of):
    """What follows for the inputs that nobody knows, from the control: whether its end is found in both halves again."""
    true = of[of["ranking"] == "truth"].set_index("data")
    seen, lost = (list(true.index[(true["halves"] == 2) == yes]) for yes in (True, False))
    if not seen:
        return (
            "The known end is not found in both halves again in any kind of data. So **this page can say nothing of the other "
            "rankings**, neither that they have a size nor that they have none."
        )
    text = f"The known end is found in both halves again in {', '.join(seen)}: what is refused there, is refused for its ranking"
    return text + (f". In {', '.join(lost)} it is not, and there this page can say nothing." if lost else ".")


lines = [f"- Of {table['inputs'].max()} inputs of a kind at most: {said(table)}.", f"- {concluded(table)}"]
if table["inputs"].max() < 100:
    lines.append("- So few inputs show a size to nobody: ask for more.")
Markdown("\n".join(lines))

# %% tags=["hide-input", "headline"]
true_ones = table[table["ranking"] == "truth"]
unknown = table[~table["data"].isin(true_ones["data"]) & ~table["ranking"].isin(controls)]
true_ones = true_ones[true_ones["inputs"] >= LEAST_ROWS]
enough_inputs = unknown[unknown["inputs"] >= LEAST_ROWS]
again = true_ones[true_ones["halves"] == 2]
# Smaller photographs are the control of photographs, phrases that of sentences.
found_again = [data for data in enough_inputs["data"] if any(known.endswith(data) for known in again["data"])]
judged = enough_inputs[enough_inputs["data"].isin(found_again)]
sized = int(judged["size"].count())
held = [f"{r.size:.2f} [{r.low:.2f}, {r.high:.2f}] where {r.truth:.2f} is true ({r.data})" for r in again.itertuples()]
left_out = {
    f"have fewer than the {LEAST_ROWS} inputs that a reading takes": len(unknown) - len(enough_inputs),
    "are of inputs whose known end is not found, either": len(enough_inputs) - len(judged),
}
left_out = summaries.listed([f"{count} {why}" for why, count in left_out.items() if count])
lead = "These inputs cannot say" if not len(judged) else "Some have an end" if sized else "No end is seen"
Markdown(
    f"**{lead}**: of {len(judged)} rankings by explainers {sized or 'none'} ha{'ve' if sized > 1 else 's'} a size, on inputs where the end "
    f"of a known explanation is found, in both halves of them again ({'; '.join(held) or 'there are none'})"
    + f". {len(unknown) - len(judged)} more rankings cannot be judged: {left_out}" * bool(left_out)
    + f" ({table['inputs'].min()} to {table['inputs'].max()} inputs of a kind)."
)

# %% [markdown]
# The curves behind it: the known explanation, or else the ranking that costs the
# network most at any size. Kinds of which there are too few to be read are left out, unless there are no others.

# %% mystnb={"figure": {"caption": "FFid+ over size for a sweep of caps. Points: mean over the inputs, with two standard errors; lines: the best fit. Triangles: the knee that each cap makes. Dashed: the known size. Vertical line and band: the size, where one is named.", "name": "ff-photographs-curves"}, "image": {"alt": "Panels of curves of FFid+ over size, a curve for each cap, one panel for each kind of input."}} tags=["hide-input"]
panels, known = {}, {}  # by name: what is read, and the known size
for data, of in table[~table["ranking"].isin(controls[1:])].groupby("data", sort=False):
    row = of.loc[of["ranking"].eq("truth").idxmax() if of["truth"].notna().any() else of["largest_loss"].idxmax()]
    name = f"{data}, {row['ranking']}"
    panels[name] = read_together(data, row["ranking"])
    known |= {} if pd.isna(row["truth"]) else {name: row["truth"]}
panels = {name: of for name, of in panels.items() if of.rows >= LEAST_ROWS} or panels
plots.plateaus(panels, truth=known)

# %% [markdown]
# The same over what the best knee says is removed of its block: where one block is all that matters, the settings fall onto one curve.

# %% mystnb={"figure": {"caption": "The curves of the figure above, all settings, over the share of the block that is removed, by the best knee, be it named or refused. Points of one curve: one law, and the same block, for all caps.", "name": "ff-photographs-collapse"}, "image": {"alt": "Panels of points: FFid+ over the share of the block that is removed, a sign for each setting, one panel for each kind of input."}} tags=["hide-input"]
plots.plateaus(panels, collapse=True)

# %% [markdown]
# Move through the caps yourself:

# %% tags=["hide-input"]
plots.movable(panels)

# %% [markdown]
# ## One by one
#
# Each input is read by itself, from the probability that its network loses, with an interval over random subsets. Of readings
# without any end one in twenty would name a size by chance. These were read before the reader knew relevance that decays before it
# ends, and are not measured again, which takes hours; today's reader may name fewer.


# %% tags=["hide-input"]
def read_singly():
    """What is read of the first inputs of each kind, each by itself."""
    rows = []
    for c in map(case_of, kinds):
        c = c.of(c.task.part(torch.arange(min(ones, len(c.task.x)))))
        own = c.rankings(batch_size=16)
        for name in (name for name in one_by if name in own):
            for at, image in enumerate(c.task.images.tolist()):
                of = c.read_one(own[name], at, one_draws)
                row = {"data": c.task.dataset, "ranking": name, "image": image}
                rows.append(row | {"size": of.fraction, "low": of.low, "high": of.high, "refusal": of.refusal})
    return pd.DataFrame(rows)


each = run.table("each", read_singly, again="hours")
spread = []
for (data, name), part in each.groupby(["data", "ranking"], sort=False):
    named = part["size"].dropna()
    between = f"{named.min():.2f} to {named.max():.2f}, median {named.median():.2f}" if len(named) > 1 else ""
    between = between or "".join(f"{size:.2f}" for size in named)
    spread.append((data, name, f"{len(named)} of {len(part)}", between))
tables.prose(pd.DataFrame(spread, columns=["data", "ranking", "have a size", "sizes"]))

# %% [markdown]
# ## What holds
#
# [Theorem 1](theorem) says how each curve of a known explanation moves: it rises up to the smaller one of its size and the knee that the cap
# makes, and falls from the larger one on. It assumes features of equal influence and a network that takes missing ones in its
# stride, and this network was never asked for either. Each part is the change over a stretch, the mean over the settings
# that have it. A kind of photographs of which there are too few to read a size from is left out, unless there are no others. Phrases and
# our own LSTM are asked [with the other data](sizes-beyond-digits).


# %% tags=["hide-input"]
of_others = table[(table["ranking"] == "truth") & table["data"].str.contains("photographs")]
enough = of_others[of_others["inputs"] >= (LEAST_ROWS if of_others["inputs"].max() >= LEAST_ROWS else 0)]
run.claim(
    "ff-theorem-photographs",
    "Theorem 1",
    "On photographs and a large network that others trained, too, capped RFid+ of a known explanation rises before both knees and falls "
    "after them, each more than that of a random ranking.",
    [part for r in enough.itertuples() for part in sizes.follows_the_law(scores, r.data, r.truth, settings, fractions)],
)

# %% tags=["hide-input"]
run.finish()
