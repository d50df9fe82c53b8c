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
from faithstudy import plots, recipes, records, tables
from faithstudy.data import datasets
from faithstudy.networks import models
from faithstudy.networks.training import trained
from faithstudy.run import Run
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


def of_each_variant():
    """Inputs per second of every variant and batch."""
    rows = []
    for _ in range(repeats + 1):
        for variant, (runner, _, layout) in variants.items():
            runner.to(memory_format=layout)  # the first two share one network
            rows += [(variant, batch, probe / cost.seconds(floor(variant, batch, probe))) for batch in batches]
    rows = rows[len(variants) * len(batches) :]  # the first round warms up
    found = pd.DataFrame(rows, columns=["variant", "batch", "inputs per second"])
    return found.groupby(["variant", "batch"], sort=False)["inputs per second"].median().reset_index()


rates = run.table("rates", of_each_variant, again="time")
best = rates.loc[rates["inputs per second"].idxmax()]
fast = rates["variant"].iloc[-1].removeprefix("+ ")  # the engine's own form
drawn = rates[rates["variant"] != "+ float32"]  # which changes nothing: a second time the variant before it
fastest = best["variant"] if best["variant"] in set(drawn["variant"]) else drawn["variant"].iloc[-1]
Markdown(
    f"The best is *{fastest.removeprefix('+ ')}* at {best['batch']} inputs per forward: "
    f"{best['inputs per second']:,.0f} inputs per second. This is the floor below, where it is timed anew, in turns with all that is compared with it. "
    f"All times of this page were taken on one machine ({run.machine})."
)

# %% mystnb={"figure": {"caption": "Bare forwards of ResNet-9 on 32 \u00d7 32 images: inputs per second against inputs per forward. Each line adds one step to the one before it.", "name": "cost-rates"}, "image": {"alt": "Line chart of inputs per second against inputs per forward a line for each variant of the network."}} tags=["hide-input", "answer"]
figure, axes = plt.subplots(figsize=(3.9, 3.2))  # a phone's width
look = {"hue": "variant", "style": "variant", "markers": True, "dashes": False, "legend": "full"}
sns.lineplot(drawn, x="batch", y="inputs per second", **look, ax=axes)
axes.set_xscale("log", base=2)
axes.set(xlabel="inputs per forward", xticks=batches, xticklabels=batches, ylim=(0, None))
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


def in_turn():
    """The seconds of all that is compared, in turn."""
    network.to(memory_format=torch.contiguous_format)
    jobs = {
        "bare forwards (floor)": floor(best["variant"], int(best["batch"]), needed),
        "the engine": partial(on_the_engine, network, native),
        "the engine, in float32": partial(on_the_engine, network, torch.float32),
        "a loop over images, in float32": partial(in_a_loop, loop_images),
    }
    found = cost.in_turn(jobs, repeats)
    of_loop = found["what"].str.startswith("a loop")
    found.loc[of_loop, "seconds"] *= images / loop_images  # as long as all images would take
    return found


times = run.table("times", in_turn, again="time")
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
    f"long as the engine**, which computes in {fast}"
    + (f"; with both in float32, {like:.1f} times" if fast != "float32" else "")
    + ". What the engine takes "
    "beyond the floor are masks, random subsets, sorting and bookkeeping; no implementation can gain more than what the loop takes "
    f"beyond it. The loop was timed on {loop_images} of the images and scaled; it does the same for each."
)

# %% tags=["hide-input", "headline"]
above = cost.Ratio.over_turns(paired["the engine"] / paired["bare forwards (floor)"])
slower = cost.Ratio.over_turns(paired["a loop over images, in float32"] / paired["the engine"])
Markdown(
    f"**Its forwards**: F-Fidelity of {images} CIFAR-10 images is {needed:,} forwards of a ResNet-9 of width {width}; the "
    f"engine, in {fast}, takes **{above}** times as long as these forwards alone, and a plain loop over images, "
    f"{'also ' * (fast == 'float32')}in float32, **{slower}** times as long as the engine (intervals over {len(paired)} turns)."
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
own = {"ResNet-9": network, "three convolutions": models.build("strided", width=small_width).to(device).eval()}
FLOOR, ENGINE, MASKS, EMPTY = "bare forwards", "the engine", "masks alone", "a network that answers at once"


def of_the_parts():
    """The seconds of the masks, of a network that answers at once, and of both networks."""
    jobs = {("both", MASKS): partial(asked, lambda keep: torch.zeros(keep.shape[:2], device=device))}
    jobs["both", EMPTY] = partial(on_the_engine, AtOnce(), native)
    filled = x[torch.arange(int(best["batch"])) % images].to(native).contiguous(memory_format=torch.channels_last)
    for name, model in own.items():
        jobs[name, FLOOR] = partial(cost.forwards, engine.prepare(model, x, native), filled, needed)
        jobs[name, ENGINE] = partial(on_the_engine, model, native)
    return cost.in_turn(jobs, repeats, ["network", "what"], warm=False)


taken = run.table("small", of_the_parts, again="time")
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
# on the ResNet-9 that the study explains. *Shift* is how far the label's probability is from that in float32, over test images.

# %% tags=["hide-input"]
failed, columns = (
    {},
    {
        "start-up, seconds": "{:.1f}",
        "inputs per second": "{:,.0f}",
        "mean shift": "{:.4f}",
        "largest shift": "{:.4f}",
    },
)


def of_each_form():
    """Start-up, speed and answers of a trained network as it is, in the engine's form, compiled and quantised."""
    known = trained(recipes.pair(recipes.RESNET9, seed, training=training)["original"])
    batch = int(best["batch"])
    some = datasets.load("cifar10", "test").take(slice(4 * batch))
    shown, labels = some.model_inputs().to(device), some.labels.to(device)
    plain, eager, compiled = (
        f"{how}, {str(p).removeprefix('torch.')}"
        for how, p in (("eager", torch.float32), ("eager", native), ("compiled", native))
    )
    precisions = {plain: torch.float32, eager: native, compiled: native, "int8": torch.float32}
    forms = {form: engine.prepare(known, x, precisions[form]) for form in (plain, eager)}

    def forwards(form, count=batch):
        part = shown[:batch].to(precisions[form]).contiguous(memory_format=torch.channels_last)
        cost.forwards(forms[form], part, count)

    def compile_it():  # nothing is kept from before; the first forward does it
        from torch._inductor import config, utils  # to load the compiler is part of the start

        with config.patch(freezing=True), utils.fresh_cache():
            forms[compiled] = torch.compile(forms[eager])
            forwards(compiled)

    def quantise_it():  # by what PyTorch itself has for it, on the processor alone
        from torch.ao.quantization import get_default_qconfig_mapping, quantize_fx

        calibrating = datasets.load("cifar10", "train").take(slice(4 * batch)).model_inputs()
        kinds = get_default_qconfig_mapping(torch.backends.quantized.engine)
        watched = quantize_fx.prepare_fx(copy.deepcopy(known).cpu(), kinds, (calibrating[:1],))
        cost.forwards(watched, calibrating, len(calibrating))
        forms["int8"] = quantize_fx.convert_fx(watched).to(device)
        forwards("int8")

    start = {plain: 0.0, eager: 0.0}
    for name, make in {compiled: compile_it, "int8": quantise_it}.items():
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
    turns = cost.in_turn({form: partial(forwards, form, each) for form in forms}, repeats + 1, ["form"])
    rate = each / turns.groupby("form")["seconds"].median()
    with torch.inference_mode():
        parts = {
            form: [
                part.to(precisions[form]).contiguous(memory_format=torch.channels_last) for part in shown.split(batch)
            ]
            for form in forms
        }
        answers = {form: torch.cat([runner(part).float() for part in parts[form]]) for form, runner in forms.items()}
    right = {form: outputs.probability(of, labels) for form, of in answers.items()}
    shifts = {form: (of - right[plain]).abs() for form, of in right.items()}
    rows = [(start[f], rate[f], float(shifts[f].mean()), float(shifts[f].max())) for f in forms]
    return pd.DataFrame(rows, columns=list(columns), index=pd.Index(forms, name="form"))


formed = run.table("compiling", of_each_form, again="time").set_index("form")
tables.styled(formed.apply(lambda column: column.map(columns[column.name].format)).rename_axis(None))

# %% tags=["hide-input"]
text = [f"*{form.capitalize()}* is not to be had on this machine: {why.rstrip('.')}." for form, why in failed.items()]
speed = {form.split(",")[0]: row for form, row in formed.iterrows()}  # of eager ones, the engine's, which is the last
if "compiled" in speed:
    eager, compiled = (1 / speed[form]["inputs per second"] for form in ("eager", "compiled"))  # seconds a forward
    longest = max(records.all_provenance(), key=lambda record: record["seconds"])
    start_up = speed["compiled"]["start-up, seconds"]
    even = f"after {start_up / (eager - compiled):,.0f} forwards" if eager > compiled else "never"
    text.append(
        f"A compiled forward takes {compiled / eager:.2f} times as long as an eager one. Compiling breaks even **{even}**. "
        f"The job above asks {needed:,}; the longest recorded page, {longest['notebook']}, took {longest['seconds']:,.0f} s: at most "
        f"{longest['seconds'] / eager:,.0f} forwards of this network."
    )
if "int8" in speed:
    faster = speed["int8"]["inputs per second"] / speed["eager"]["inputs per second"]
    text.append(f"Here int8 is {faster:.2f} times as fast as the engine's form.")
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
