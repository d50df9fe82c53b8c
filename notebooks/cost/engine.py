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
# # What does a metric cost?
#
# A faithfulness metric is forwards of the network, and little else. Their number is fixed by the definition: F-Fidelity
# over $n$ images, $K$ sizes, $N$ draws and two directions needs $2nKN$ of them. So there is a floor: the time of these
# forwards alone, in the fastest form in which the machine runs the network. This page measures how far above the floor
# the engine is, and how far above it a plain loop over images is.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
width = 16  # of ResNet-9
images = 12
steps = 19  # explanation sizes
draws = 50
small_width = 16  # of the small network, three convolutions
loop_images = 2  # images of the loop, whose time grows in proportion to their number
repeats = 2  # of everything, in turn; of seconds the median is reported, of ratios the geometric mean
batches = [64, 128, 256]  # inputs per forward that are tried for the floor
other_forms = ["compiled", "int8"]  # of the network, which are tried: int8, compiled; to compile takes half a minute
training = {}  # of the network that is compiled and quantised, where it differs: see faithstudy.recipes
seed = 0

# %% tags=["hide-input"]
import copy
import warnings
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, outputs, segments
from faithlab.explainers import explain
from faithlab.masks import BUDGET
from faithlab.metrics.fidelity import remaining
from faithstudy import plots, recipes, summaries, tables
from faithstudy.data import datasets
from faithstudy.networks import models
from faithstudy.networks.training import trained
from faithstudy.run import Run, recorded_runs
from faithstudy.trials import cost

plots.theme()
run = Run("cost/engine", globals())

# %% [markdown]
# ## The floor
#
# The weights do not matter for the time, so the network is a fresh ResNet-9. The images are CIFAR-10. Each variant adds
# one step: images last in memory order (channels-last), BatchNorm folded into the convolutions, bfloat16 where the
# processor computes it natively.

# %% tags=["hide-input"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(seed)
network = models.build("resnet9", width=width).to(device).eval()
chosen = datasets.load("cifar10", "test").take(slice(images))
x, y = chosen.model_inputs().to(device), chosen.labels.to(device)
native = engine.native_precision(device)


variants = {
    "float32": (network, torch.float32, torch.contiguous_format),
    "+ channels-last": (network, torch.float32, torch.channels_last),
    "+ BatchNorm folded": (engine.prepare(network, x, torch.float32), torch.float32, torch.channels_last),
    f"+ {str(native).removeprefix('torch.')}": (engine.prepare(network, x, native), native, torch.channels_last),
}


def floor(variant, batch, count):
    """So many inputs through a variant of the network, in batches."""
    runner, precision, layout = variants[variant]
    part = x[torch.arange(batch) % images].to(precision).contiguous(memory_format=layout)
    return partial(cost.forwards, runner, part, count)


needed = 2 * images * steps * draws
probe = min(needed, 1024)
rows = []
for _ in range(repeats + 1):
    for variant, (runner, _, layout) in variants.items():
        runner.to(memory_format=layout)  # the first two share one network
        rows += [(variant, batch, probe / cost.seconds(floor(variant, batch, probe))) for batch in batches]
rows = rows[len(variants) * len(batches) :]  # the first round warms up
rates = pd.DataFrame(rows, columns=["variant", "batch", "inputs per second"])
rates = rates.groupby(["variant", "batch"], sort=False)["inputs per second"].median().reset_index()
run.save(rates, "rates")
best = rates.loc[rates["inputs per second"].idxmax()]
drawn = [name for name in variants if name != "+ float32"]  # which changes nothing: a second time the variant before it
Markdown(
    f"The best is *{(best['variant'] if best['variant'] in drawn else drawn[-1]).removeprefix('+ ')}* at {best['batch']} inputs per forward: "
    f"{best['inputs per second']:,.0f} inputs per second. This is the floor below, where it is timed anew, in turns with all that is compared with it."
)

# %% mystnb={"figure": {"caption": "Bare forwards of ResNet-9 on 32 \u00d7 32 images: inputs per second against inputs per forward. Each line adds one step to the one before it. Of the recorded run where there is one.", "name": "cost-rates"}, "image": {"alt": "Line chart of inputs per second against inputs per forward a line for each variant of the network."}} tags=["hide-input", "answer"]
known, settings, _, _ = summaries.best(run, "rates", rates)
figure, axes = plt.subplots(figsize=(3.9, 3.2))  # a phone's width
sns.lineplot(
    known[known["variant"] != "+ float32"],
    x="batch",
    y="inputs per second",
    hue="variant",
    style="variant",
    markers=True,
    dashes=False,
    ax=axes,
)
axes.set_xscale("log", base=2)
tried = settings["batches"]
axes.set(xlabel="inputs per forward", xticks=tried, xticklabels=tried, ylim=(0, None))
axes.get_legend().remove()
plots.key(figure, axes)
plots.show(figure)

# %% [markdown]
# ## F-Fidelity on the engine, and in a plain loop
#
# The engine is given all images at once. The plain loop is how such metrics are usually written: one image after the
# other, one size after the other, the $N$ draws as a batch, float32. Both compute the same numbers up to their random
# subsets. They run in turn with the bare forwards, on the same threads.

# %% tags=["hide-input"]
pixels = segments.pixels(*x.shape[-2:])
attribution = explain("saliency", network, x, y, pixels)
fractions = torch.arange(1, steps + 1, dtype=torch.float64) / (steps + 1)
options = {"alpha": 0.5, "cap": 0.1, "draws": draws, "seed": seed}


def asked(score):
    """F-Fidelity, both directions, of a score."""
    for direction in ("MoRF", "LeRF"):
        remaining(score, attribution, fractions, direction=direction, **options)


def on_the_engine(model, precision):
    """F-Fidelity of all images."""
    asked(engine.scorer(model, x, y, segments=pixels, output=outputs.correct, precision=precision))


@torch.inference_mode()
def in_a_loop(count):
    """The same for the first `count` images, one at a time, as published code does it."""
    features = pixels.numel()
    for image, target, scores in zip(x[:count], y[:count], attribution[:count], strict=True):
        order = scores.argsort(descending=True)
        for size in (round(share * features) for share in fractions.tolist()):
            for removable in (order[:size], order[size:]):
                taken = min(round(0.5 * len(removable)), int(0.1 * features))
                masks = torch.ones(draws, features, device=device)
                for mask in masks:
                    mask[removable[torch.randperm(len(removable), device=device)[:taken]]] = 0
                logits = network(image * masks.view(draws, 1, *x.shape[-2:]))
                (logits.argmax(1) == target).float().mean()


network.to(memory_format=torch.contiguous_format)
jobs = {
    "bare forwards (floor)": floor(best["variant"], int(best["batch"]), needed),
    "the engine": partial(on_the_engine, network, native),
    "the engine, in float32": partial(on_the_engine, network, torch.float32),
    "a loop over images, in float32": partial(in_a_loop, loop_images),
}
times = pd.DataFrame(cost.in_turn(jobs, repeats), columns=["what", "repeat", "seconds"])
times.loc[times["what"].str.startswith("a loop"), "seconds"] *= images / loop_images  # as long as all images would take
run.save(times, "times")
summary = times.groupby("what", sort=False)["seconds"].median().to_frame("seconds")
# Ratios of neighbours in time, so that a machine whose speed drifts does not tilt them.
paired = times.pivot(index="repeat", columns="what", values="seconds")
over_floor = paired.div(paired["bare forwards (floor)"], axis=0).apply(lambda of: cost.Ratio.over_turns(of).value)
summary["times the floor"] = over_floor[summary.index]
summary["inputs per second"] = needed / summary["seconds"]
run.save(summary.reset_index(), "summary")
tables.styled(
    summary.assign(
        **{
            "seconds": summary["seconds"].map("{:.1f}".format),
            "times the floor": summary["times the floor"].map("{:.2f}".format),
            "inputs per second": summary["inputs per second"].map("{:,.0f}".format),
        }
    ).rename_axis(None)
)

# %% tags=["hide-input"]
loop, like = (
    cost.Ratio.over_turns(paired["a loop over images, in float32"] / paired[own]).value
    for own in ("the engine", "the engine, in float32")
)
Markdown(
    f"{needed:,} masked inputs: {images} images, {steps} sizes, {draws} draws, two directions. The plain loop takes **{loop:.1f} times as "
    f"long as the engine**, which computes in {str(native).removeprefix('torch.')}"
    + (f"; with both in float32, {like:.1f} times" if native is not torch.float32 else "")
    + ". What the engine takes "
    "beyond the floor are masks, random subsets, sorting and bookkeeping; no implementation can gain more than what the loop takes "
    f"beyond it on this processor. The loop was timed on {loop_images} of the images and scaled; it does the same for each."
)

# %% tags=["hide-input", "headline"]
known, settings, source, on = summaries.best(run, "times", times)
turns = known.pivot(index="repeat", columns="what", values="seconds")
above = cost.Ratio.over_turns(turns["the engine"] / turns["bare forwards (floor)"])
slower = cost.Ratio.over_turns(turns["a loop over images, in float32"] / turns["the engine"])
count = 2 * settings["images"] * settings["steps"] * settings["draws"]
computed = summaries.best(run, "rates", rates).table["variant"].iloc[-1].removeprefix("+ ")  # the engine's own form
Markdown(
    f"**Its forwards**: F-Fidelity of {settings['images']} CIFAR-10 images is {count:,} forwards of a ResNet-9 of width {settings['width']}; the "
    f"engine, in {computed}, takes **{above}** times as long as these forwards alone, and a plain loop over images, "
    f"{'also ' * (computed == 'float32')}in float32, **{slower}** times as long as the engine ({source}, {on}; intervals over {len(turns)} turn{'s' * (len(turns) > 1)})."
)

# %% [markdown]
# ## Where the rest goes, and a small network
#
# What the engine does besides forwards depends on the masks, not on the network. So it weighs most where a forward is cheap. The small
# network has three convolutions of stride 2. To see where the time goes, the same masks are made and thrown away, and then put to a
# network that answers at once.

# %% tags=["hide-input"]


class AtOnce(torch.nn.Module):
    """Ten values of the input as logits."""

    def forward(self, x):
        return x.flatten(1)[:, :10]


torch.manual_seed(seed)
small = models.build("strided", width=small_width).to(device).eval()
batch = int(best["batch"])
own = {"ResNet-9": network, "three convolutions": small}
filled = x[torch.arange(batch) % images].to(native).contiguous(memory_format=torch.channels_last)
FLOOR, ENGINE, MASKS, EMPTY = "bare forwards", "the engine", "masks alone", "a network that answers at once"
jobs = {("both", MASKS): partial(asked, lambda keep: torch.zeros(keep.shape[:2], device=device))}
jobs["both", EMPTY] = partial(on_the_engine, AtOnce(), native)
for name, model in own.items():
    jobs[name, FLOOR] = partial(cost.forwards, engine.prepare(model, x, native), filled, needed)
    jobs[name, ENGINE] = partial(on_the_engine, model, native)
taken = pd.DataFrame([(*what, turn, time) for what, turn, time in cost.in_turn(jobs, repeats, warm=False)])
taken.columns = ["network", "what", "repeat", "seconds"]
run.save(taken, "small")
seconds = taken.groupby(["network", "what"])["seconds"].median()
spent = {
    name: {
        "the engine": seconds[name, ENGINE],
        "forwards": seconds[name, FLOOR],
        "masks": seconds["both", MASKS],
        "masked inputs": seconds["both", EMPTY] - seconds["both", MASKS],
    }
    for name in own
}
spent = pd.DataFrame(spent).T
spent["the rest"] = spent["the engine"] - spent[["forwards", "masks", "masked inputs"]].sum(axis=1)
in_turns = taken.pivot(index="repeat", columns=["network", "what"], values="seconds")
over = {name: cost.Ratio.over_turns(in_turns[name, ENGINE] / in_turns[name, FLOOR]) for name in own}
shown_spent = spent.map("{:.2f} s".format)
shown_spent.insert(1, "times its floor", [str(ratio) for ratio in over.values()])
tables.styled(shown_spent)

# %% [markdown]
# The masks of both networks are the same, so that they weigh most where a forward is cheap. *The rest* is what the engine takes beyond
# the parts that were measured alone. It is a difference, and may be below zero.

# %% [markdown]
# ## Would compiling help?
#
# All of this is eager PyTorch. `torch.compile` translates a network: with the weights frozen into the code, what stands
# between two convolutions becomes one step. It takes its time before the first forward, and again for each network,
# precision and number of inputs per forward. Convolutions of 8-bit integers (int8), calibrated on training images, are
# another way to be faster, with other answers. How far off these are depends on what a network has learnt, so both are tried
# on the ResNet-9 that the study explains, but not in the profile `quick`, where the table is that of the recorded run. *Shift* is how
# far the label's probability is from that in float32, over test images.

# %% tags=["hide-input"]
known = trained(recipes.pair(recipes.RESNET9, seed, training=training)["original"])
batch = int(best["batch"])
some = datasets.load("cifar10", "test").take(slice(4 * batch))
shown, labels = some.model_inputs().to(device), some.labels.to(device)
if "int8" in other_forms:  # which is calibrated on them
    calibrating = datasets.load("cifar10", "train").take(slice(4 * batch)).model_inputs()
PLAIN, EAGER, COMPILED = (
    f"{how}, {str(p).removeprefix('torch.')}"
    for how, p in (("eager", torch.float32), ("eager", native), ("compiled", native))
)
forms = {
    PLAIN: (engine.prepare(known, x, torch.float32), torch.float32),
    EAGER: (engine.prepare(known, x, native), native),
}


def forwards(form, count=batch):
    """So many inputs through the network in a form, in full forwards."""
    runner, precision = forms[form]
    cost.forwards(runner, shown[:batch].to(precision).contiguous(memory_format=torch.channels_last), count)


def compile_it():
    """Translate the engine's network, nothing kept from before. The first forward does it."""
    from torch._inductor import config, utils  # to load the compiler is part of the start

    with config.patch(freezing=True), utils.fresh_cache():
        forms[COMPILED] = torch.compile(forms[EAGER][0]), native
        forwards(COMPILED)


def quantise_it():
    """Calibrate and quantise the network by what PyTorch itself has for it, on the processor alone."""
    from torch.ao.quantization import get_default_qconfig_mapping, quantize_fx

    kinds = get_default_qconfig_mapping(torch.backends.quantized.engine)
    watched = quantize_fx.prepare_fx(copy.deepcopy(known).cpu(), kinds, (calibrating[:1],))
    cost.forwards(watched, calibrating, len(calibrating))
    forms["int8"] = quantize_fx.convert_fx(watched).to(device), torch.float32
    forwards("int8")


start, failed = {PLAIN: 0.0, EAGER: 0.0}, {}
for name, make in {COMPILED: compile_it, "int8": quantise_it}.items():
    if name.split(",")[0] not in other_forms:
        continue
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what PyTorch will do away with
            start[name] = cost.seconds(make)
    except Exception as error:  # no compiler for C++, no integers on this device: the page says so
        forms.pop(name, None)
        failed[name] = next(iter(str(error).strip().splitlines()), type(error).__name__)

each = -(-probe // batch) * batch
turns = cost.in_turn({form: partial(forwards, form, each) for form in forms}, repeats + 1)
turns = pd.DataFrame(turns, columns=["form", "repeat", "seconds"])
turns = turns.pivot(index="repeat", columns="form", values="seconds") / each  # of a forward of one input
with torch.inference_mode():
    answers = {
        form: torch.cat(
            [runner(part.to(p).contiguous(memory_format=torch.channels_last)).float() for part in shown.split(batch)]
        )
        for form, (runner, p) in forms.items()
    }
shifts = {
    form: (outputs.probability(a, labels) - outputs.probability(answers[PLAIN], labels)).abs()
    for form, a in answers.items()
}
columns = {
    "start-up, seconds": "{:.1f}",
    "inputs per second": "{:,.0f}",
    "mean shift": "{:.4f}",
    "largest shift": "{:.4f}",
}
rows = [(start[f], 1 / turns[f].median(), float(shifts[f].mean()), float(shifts[f].max())) for f in forms]
compiling = pd.DataFrame(rows, columns=list(columns), index=pd.Index(forms, name="form"))
run.save(compiling, "compiling")
formed, _, source, on = summaries.best(run, "compiling", compiling.reset_index())
formed = formed.set_index("form")
shown_forms = formed.apply(lambda column: column.map(columns[column.name].format)).rename_axis(None)
tables.noted(tables.styled(shown_forms), f"{source}, {on}")

# %% tags=["hide-input"]
text = [f"*{form.capitalize()}* is not to be had on this machine: {why.rstrip('.')}." for form, why in failed.items()]
by_form = {
    str(form).split(",")[0]: row for form, row in formed.iterrows()
}  # of eager ones, the engine's, which is the last
if {"compiled", "eager"} <= set(by_form):
    eager, compiled = (1 / by_form[form]["inputs per second"] for form in ("eager", "compiled"))  # seconds a forward
    kept = max(recorded_runs(), key=lambda record: record["seconds"], default={"seconds": 0, "notebook": "none"})
    even = (
        f"after {by_form['compiled']['start-up, seconds'] / (eager - compiled):,.0f} forwards"
        if eager > compiled
        else "never"
    )
    text.append(
        f"A compiled forward takes {compiled / eager:.2f} times as long as an eager one ({source}). Compiling breaks even **{even}**. "
        f"The job above asks {needed:,}; the longest recorded page, {kept['notebook']}, took {kept['seconds']:,.0f} s: at most "
        f"{kept['seconds'] / eager:,.0f} forwards of this network."
    )
if "int8" in forms:
    text.append(
        f"Here int8 is {cost.Ratio.over_turns(turns[EAGER] / turns['int8']).value:.2f} times as fast as the engine's form."
    )
Markdown(" ".join(text))

# %% [markdown]
# **Why the engine does not compile by itself.** It does not know how many forwards will be asked: a metric of a few images would wait
# for nothing. The last batch of a job has another size, and each network and precision another code, so that the start is paid more
# than once. It needs a C++ compiler on the machine (on a GPU, Triton), and nobody has to have one for a metric. And what runs must be
# what was compared with the model: the engine compares each network that it prepares with the user's own, and takes back what
# differs. Whoever has a longer job of one network can give `torch.compile(engine.prepare(network, x))` to the engine, which runs and
# compares it as any other. int8 answers otherwise than the network, by the shifts above, and stays out of the engine.

# %% [markdown]
# ## What it does not cost
#
# A score call holds one block of masked inputs and one forward's activations, however many images, sizes and draws there
# are. The test suite holds a job of the paper's images and sizes to a limit, and shows that more draws do not need more.

# %% tags=["hide-input"]
Markdown(f"A metric holds masks of at most {BUDGET / 2**20:.0f} MiB (or one per image) at a time.")

# %% tags=["hide-input"]
run.finish()
