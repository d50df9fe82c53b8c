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
# # What does a search for the best order cost?
#
# [TRACE](../../book/trace/idea) asks a network millions of questions. The plain search takes one image after the other, in
# float32, and asks about all subsets of an order again at every proposal: *one by one*, as the sums are written, or *plain*, in
# one forward. The engine asks only about those that changed, for all images at once, in the precision that the processor is
# fast in, and remembers a subset that was asked before. Of a probability (*p*) it stops asking when a proposal cannot be taken
# any more. A logit (*y*) has no highest value, so that everything is asked. The *floor* makes as many bare forwards as the
# engine, with nothing else done.
#
# The cheapest forward is one that is not needed: [](../trace/searches) compares what searches find in as many forwards.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
strided_width = 8  # of the network, three convolutions of stride 2
epochs = 3  # of its training
train_limit = None  # of its training images; None: all
training = {}  # what differs from the recipe of the study's ResNet-9, such as {"epochs": 5}: see faithstudy.recipes
images = 8  # recognised test images, searched at once
patch = 4  # side of a patch in pixels: 64 patches
steps = {"strided": 100, "resnet9": 10}  # of annealing, through the paper's temperatures
plain_images = 2  # of the plain search
plain_steps = {"strided": 50, "resnet9": 5}
batch_size = 128  # inputs per forward
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
training_seed = 0
seed = 0  # of the proposals

# %% tags=["hide-input"]
import dataclasses
import time

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import engine, masks, rng, search, segments
from faithlab.metrics import METRICS
from faithlab.outputs import logit, probability
from faithstudy import plots, summaries, tables
from faithstudy import recipes as networks
from faithstudy.display_names import named
from faithstudy.networks.training import Recipe
from faithstudy.run import Run
from faithstudy.trials import optimum, tasks

plots.theme()
run = Run("cost/search", globals())

# %% [markdown]
# ## The plain search
#
# Annealing of LeRF − MoRF as one would write it. It makes the same proposals as the engine's.


# %% tags=["hide-input"]
@torch.inference_mode()
def plain_annealing(task, order, count, schedule, together=None):
    """The best LeRF - MoRF of each image, [n] float64: a forward for each proposal, or for `together` masked images."""
    features, best = order.shape[1], []
    cells = task.segments.to(order.device)
    for i in range(len(order)):

        def value(order, i=i):
            place = masks.place(order[None])[0]
            k = torch.arange(features + 1, device=order.device)[:, None]
            keep = torch.cat([place >= k, place < features - k])  # MoRF, LeRF: [2 (F + 1), F]
            masked = task.x[i] * keep[:, cells][:, None]
            parts = masked.split(together or len(masked))
            answers = torch.cat([task.model(part).softmax(1)[:, task.target[i]] for part in parts])
            return (answers[features + 1 :].sum() - answers[: features + 1].sum()).item()

        here = order[i].clone()
        gain = highest = value(here)
        for step in range(count):
            u = rng.uniform(seed, task.images[i : i + 1], torch.tensor([step]), 4)[0, 0]
            a = int(u[0] * features)
            b = (a + 1 + int(u[1] * (features - 1))) % features
            proposed = here.clone()
            proposed[[a, b]] = here[[b, a]]
            after = value(proposed)
            if after >= gain + u[3].log().item() * schedule["temperature"] * schedule["cooling"] ** step:
                here, gain = proposed, after
            highest = max(highest, gain)
        best.append(highest)
    return torch.tensor(best, dtype=torch.float64)


# %% [markdown]
# ## Proposals per second
#
# With one thread the seconds are the processor's, so that others who use it are not counted. Those of several threads would
# count the waiting of one for the other, and a GPU's are not there: then they are the clock's. On the engine the first step
# warms up. Its proposals run through the temperatures of the paper, which matter: the colder, the sooner is a proposal given up.

# %% tags=["hide-input"]
P = METRICS["LeRF - MoRF"]
brief = {"epochs": epochs, "rate": 0.01, "decay": 1e-5, "limit": train_limit, "augment": True}
brief |= {"precision": precision, "seed": training_seed}
recipes = {
    "strided": Recipe(data="cifar10", model="strided", model_options={"width": strided_width}, **brief),
    "resnet9": networks.changed(networks.RESNET9, {**training, "seed": training_seed}),
}
alike = {}


def of_both_searches(name, recipe):
    """The proposals per second of each search on a network, and of bare forwards."""
    task = tasks.task(recipe, tasks.recognised(recipe, images), precision=precision)
    task = dataclasses.replace(task, segments=segments.patches(*task.x.shape[-2:], patch))
    device, count, identity = task.x.device, len(task.x), task.images.to(task.x.device)
    features = segments.count(task.segments)
    alone = device.type != "cuda" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    start = search.greedy(task.score(), count, features, objective="Le", device=device).order
    schedule = optimum.schedule(P, steps[name])
    rates = []
    one_by_one = ("one by one", 1, 1, max(1, plain_steps[name] // 5))
    for label, together, some, proposals in (one_by_one, ("plain", None, plain_images, plain_steps[name])):
        began = clock()
        found = plain_annealing(task, start[:some], proposals, schedule, together)
        asked = (proposals + 1) * len(found)  # the first order is evaluated, too
        rates.append((name, label, "p", len(found), 2 * (features + 1), asked / (clock() - began)))
    same = {**schedule, "steps": plain_steps[name], "seed": seed, "images": identity[:plain_images]}
    exact = dataclasses.replace(task.part(torch.arange(plain_images)), precision=torch.float32).score()
    alike[name] = (search.anneal(exact, start[:plain_images], **same).value.cpu() - found).abs().max().item()
    runner = engine.prepare(task.model, task.x, task.precision)
    inputs = task.x[torch.arange(batch_size) % count].to(task.precision)
    for output in (probability, logit):
        asked = {"segments": task.segments, "precision": task.precision, "batch_size": batch_size}
        score = search.Remembered(engine.scorer(task.model, task.x, task.target, output=output, **asked))
        anneal = {**optimum.schedule(P.given(output=output), steps[name]), "seed": seed, "images": identity}
        first = search.anneal(score, start, **{**anneal, "steps": 1})
        forwards, began = score.forwards, clock()
        search.anneal(score, start, **anneal, resume=first)
        seconds, proposals, forwards = clock() - began, (steps[name] - 1) * count, score.forwards - forwards
        rates.append((name, "engine", optimum.SUFFIX[output], count, forwards / proposals, proposals / seconds))
        batches = min(-(-forwards // batch_size), 100)  # enough to know their rate
        with torch.inference_mode():
            runner(inputs)
            began = clock()
            for _ in range(batches):
                answer = runner(inputs)
            answer.sum().item()  # waits for the device
        seconds = (clock() - began) / (batches * batch_size) * forwards
        rates.append((name, "floor", optimum.SUFFIX[output], count, forwards / proposals, proposals / seconds))
    return rates


def measure():
    """The rates of both networks."""
    rates = [row for name, recipe in recipes.items() for row in of_both_searches(name, recipe)]
    columns = ["network", "search", "output", "images", "forwards_per_proposal", "proposals_per_second"]
    found = pd.DataFrame(rates, columns=columns)
    plain = found[found["search"] == "plain"].set_index("network")["proposals_per_second"]
    return found.assign(times_plain=found["proposals_per_second"] / found["network"].map(plain))


speed = run.table("speed", measure, again="time")
formats = {"forwards_per_proposal": "{:.0f}", "proposals_per_second": "{:,.0f}", "times_plain": "{:.1f}"}
shown = speed.drop(columns="images").assign(**{name: speed[name].map(of.format) for name, of in formats.items()})
tables.prose(shown.rename(columns=lambda name: name.replace("_", " ")))

# %% mystnb={"figure": {"caption": "Proposals per second of the search as it is written (one by one, and plain) and of the engine, for each network (p: of a probability, y: of a logit), each with how many times the plain one it is. The line is the floor: as many bare forwards and nothing else. Further right is cheaper.", "name": "cost-search"}, "image": {"alt": "Dots on a logarithmic axis, a panel for each network: proposals per second of four searches, the engine's beside a line for its floor."}} tags=["hide-input", "answer"]
figure, panels = plt.subplots(len(recipes), 1, figsize=(3.5, 0.7 + 1.8 * len(recipes)), sharex=True)  # a phone's width
for axes, (name, of) in zip(panels, speed.groupby("network", sort=False), strict=True):
    done, floor = of[of["search"] != "floor"], of[of["search"] == "floor"]
    rows = [f"engine ({r.output})" if r.search == "engine" else r.search for r in done.itertuples()]
    axes.scatter(done["proposals_per_second"], rows, color=["C0" if "engine" in row else "0.5" for row in rows])
    marks = [f"engine ({output})" for output in floor["output"]]
    axes.scatter(floor["proposals_per_second"], marks, marker="|", s=160, color="C3")
    said = {"textcoords": "offset points", "ha": "center", "fontsize": "x-small"}
    for row, label in zip(done.itertuples(), rows, strict=True):
        axes.annotate(f"{row.times_plain:.2g} ×", (row.proposals_per_second, label), (0, 6), **said)
    axes.annotate("floor", (floor["proposals_per_second"].iloc[0], marks[0]), (5, -3), **said | {"ha": "left"})
    axes.set(xscale="log", ylim=(len(rows) - 0.6, -0.8))
    axes.set_title(name, fontsize="small")
    axes.tick_params(labelsize="small")
axes.set_xlim(0.5 * speed["proposals_per_second"].min(), 8 * speed["proposals_per_second"].max())
axes.set_xlabel("proposals per second", fontsize="small")
plots.show(figure)

# %% [markdown]
# How much the engine gains depends on the network and on the processor: two thirds of the forwards fall away anywhere, the rest
# is layout, precision, full batches, memory, and how soon a proposal is hopeless. In a longer search there is more to remember,
# and more proposals are hopeless. Times are of one machine and one run; they have no interval.


# %% tags=["hide-input", "answer"]
def described(speed):
    """For each network: times the floor, and proposals in the time of one of the plain searches; p and y."""
    at = speed.set_index(["network", "search", "output"])["proposals_per_second"]
    lines = []
    for name in dict.fromkeys(speed["network"]):
        asked, floor, plain, single = (at[name, search] for search in ("engine", "floor", "plain", "one by one"))
        lines.append(
            f"- {named(name)}: {floor['p'] / asked['p']:.2f} times its floor for probabilities, {floor['y'] / asked['y']:.2f} times for "
            f"logits; **{asked['p'] / plain['p']:.1f}** and **{asked['y'] / plain['p']:.1f}** proposals in the time of one of the "
            f"plain search, {asked['p'] / single['p']:.0f} and {asked['y'] / single['p']:.0f} in that of one that asks one by one"
        )
    return "\n".join(lines)


computed = str(tasks.dtype(precision, "cuda" if torch.cuda.is_available() else "cpu")).removeprefix("torch.")
Markdown(
    f"In {computed} the engine takes\n\n{described(speed)}\n"
    "\nIn float32 both searches find the same: their best values differ by at most "
    + ", ".join(f"{of:.0e} ({named(name)})".replace("-", "−", 1) for name, of in alike.items())
    + "."
)

# %% tags=["hide-input", "headline"]
at = speed.set_index(["network", "search", "output"])["proposals_per_second"]
forms = [(name, output) for name in dict.fromkeys(speed["network"]) for output in "py"]
above = pd.Series({of: at[of[0], "floor", of[1]] / at[of[0], "engine", of[1]] for of in forms})
times_plain = pd.Series({of: at[of[0], "engine", of[1]] / at[of[0], "plain", "p"] for of in forms})
asked = speed[speed["search"] == "engine"]["forwards_per_proposal"]
whose = {"strided": "a network of three convolutions"}
Markdown(
    f"**{above.min():.2f} to {above.max():.2f} times the forwards that it needs**, which are {asked.min():.0f} to {asked.max():.0f} a "
    f"proposal: the engine tries {times_plain.min():.1f} to {times_plain.max():.1f} orders in the time in which a plain search tries one "
    f"({summaries.listed([whose.get(name, named(name)) for name in dict.fromkeys(speed['network'])])}, {images} images, on {run.machine}; of a probability and of a logit; one "
    "run, no interval)."
)

# %% tags=["hide-input"]
run.finish()
