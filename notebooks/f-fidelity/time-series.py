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
# # Ranking degraded explainers on time series
#
# *Does what holds for images hold for sensors and speech?* The paper asks it in its Tables 3 (an LSTM) and 6 (a CNN), on
# two sets of time series: PAM, activities from body-worn sensors, and Boiler, faults of a heating boiler.
#
# Neither is in a package that could be fetched and verified here. The page uses the nearest ones that are: BasicMotions,
# activities from a smart watch, in the place of PAM, and JapaneseVowels, speakers from their speech, in the place of
# Boiler. Where you have the paper's files, `data = ["pam", "boiler"]` reads them; [](../../book/data) says where to put
# them.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = ["basic-motions", "japanese-vowels"]  # or pam, boiler
architectures = ["bilstm", "cnn1d"]
units = ["step", "value"]  # what is removed: all channels of a time step, or one of them
width = 32  # of both networks; 128 in the paper
layers = 2  # of the LSTM; 3 in the paper
epochs = 30  # of training
tuning_epochs = 15  # of fine-tuning on random masks
roar_epochs = 30
rate = 0.01  # peak learning rate; 0.001 in the paper
tuning_rate = 0.003
decay = 0.01
schedule = "cycle"
batch = 16
series = 96  # test series to explain, at most
noise_shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
seeds = [0, 1]  # of the noise; the paper has five
size_step = 0.1  # between the explanation sizes, a share of the features; 0.05 in the paper
alpha = 0.5
beta = 0.1
draws = 4  # random subsets per series, size and direction; the paper draws 50
integration_steps = 32  # of Integrated Gradients
precision = "bfloat16"  # of forwards, where the device computes it natively; else float32
seed = 0

# %% tags=["hide-input"]
import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown

from faithlab import engine, masks, readouts, segments
from faithlab.explainers import explain
from faithlab.metrics.robustness import advise, robustness
from faithlab.study import claims, f_fidelity, figures, published, tables, trials
from faithlab.study.results import Run, recorded
from faithlab.trials import roar
from faithlab.zoo import datasets
from faithlab.zoo.training import Recipe, accuracy, trained

figures.theme()
run = Run("f-fidelity/time-series", globals())

# What a set is called, and the set of the paper whose place it takes.
NAMES = {
    "basic-motions": ("BasicMotions", "PAM"),
    "japanese-vowels": ("JapaneseVowels", "Boiler"),
    "pam": ("PAM", "PAM"),
    "boiler": ("Boiler", "Boiler"),
}
ARCHITECTURES = {"bilstm": "LSTM", "cnn1d": "CNN"}

# %% [markdown]
# ## The series
#
# All series are standardised per channel by the training split, so that a removed value, a zero, is the channel's mean.
# Series of one set can differ in length. They are filled up with zeros at the end; those steps are no features: they are
# never removed, and all shares refer to the steps that a series has. The networks are not told where a series ends.

# %% tags=["hide-input"]
splits = {name: {split: datasets.load(name, split) for split in ("train", "test")} for name in data}
chosen = {}  # test series to explain: evenly spaced, because the sets are sorted by class
rows = []
for name, of_split in splits.items():
    test = of_split["test"]
    places = np.linspace(0, len(test) - 1, min(series, len(test))).round().astype(int)
    chosen[name] = torch.from_numpy(places)
    _, T, C = test.inputs.shape
    lengths = (~test.inputs.isnan().any(-1)).sum(1)
    rows.append(
        {
            "set": NAMES[name][0],
            "in the place of": NAMES[name][1],
            "train": len(of_split["train"]),
            "test": len(test),
            "explained": len(places),
            "channels": C,
            "steps": f"{lengths.min()}–{lengths.max()}" if lengths.min() < T else f"{T}",
            "classes": len(test.classes),
            "F-Fidelity removes at most": "–".join(
                f"{masks.bound(beta, int(n))}" for n in (lengths.min(), lengths.max())
            )
            + " steps"
            if lengths.min() < T
            else f"{masks.bound(beta, T)} steps",
        }
    )
tables.prose(pd.DataFrame(rows))

# %% [markdown]
# ## Networks
#
# The paper's LSTM is the one of TimeX {cite}`queen2023timex`: bidirectional layers, their states averaged over time. Its CNN
# is not described; here it is TimeX's too, three convolutions. Both are trained with AdamW.
#
# **What is one feature?** The paper's section 5.2 puts noise on "the importance of each timestamp", so a feature is a time
# *step*, all channels together. Its appendix D.2 masks "feature values": one *value*, one channel of one step. This page
# does both. Tables 3 and 6 are set beside steps, Table 8 beside values. Each has its own fine-tuned network, used to missing
# steps or to missing values.

# %% tags=["hide-input"]
recipes, networks = {}, {}
for name in data:
    for architecture in architectures:
        options = {"classes": len(splits[name]["test"].classes), "channels": splits[name]["test"].inputs.shape[2]}
        options |= {"width": width} | ({"layers": layers} if architecture == "bilstm" else {})
        original = Recipe(
            data=name,
            model=architecture,
            model_options=options,
            epochs=epochs,
            rate=rate,
            decay=decay,
            optimiser="adamw",
            schedule=schedule,
            batch=batch,
            seed=seed,
        )
        recipes[name, architecture] = original
        networks[name, architecture, "original"] = trained(original)
        for unit in units:
            tuned = dataclasses.replace(
                original,
                data_options={"unit": unit},
                epochs=tuning_epochs,
                rate=tuning_rate,
                mask_share=beta,
                start=original,
            )
            networks[name, architecture, unit] = trained(tuned)
device = next(next(iter(networks.values())).parameters()).device
fast = engine.native_precision(device) if precision == "bfloat16" else torch.float32


def at_hand(name, unit):
    """The chosen test series of a set: inputs, labels, features, and which of them a series has."""
    test = datasets.load(name, "test", unit=unit)
    present = test.present(chosen[name])
    return (
        test.model_inputs(chosen[name]).to(device),
        test.labels[chosen[name]].to(device),
        test.features(),
        None if present is None else present.to(device),
    )


def hits(network, x, y, features):
    """Whether a network still recognises masked series."""
    return engine.scorer(network, x, y, segments=features, readout=readouts.hit, precision=fast)


masked = torch.tensor([0.0, 0.05, 0.1, 0.2, 0.3, 0.5], dtype=torch.float64)
rows, advice = [], []
for name, architecture in recipes:
    for unit in units:
        x, y, features, present = at_hand(name, unit)
        for network in ("original", "fine-tuned"):
            score = hits(networks[name, architecture, unit if network == "fine-tuned" else network], x, y, features)
            shape = (len(x), segments.count(features))
            # Few series: several masks of each.
            answers = [robustness(score, shape, masked, seed=draw, present=present) for draw in range(draws)]
            answers = torch.stack(answers).mean(0)  # [B, K]
            about = (NAMES[name][0], ARCHITECTURES[architecture], unit, network)
            rows += [(*about, *at) for at in zip(masked.tolist(), answers.mean(0).tolist(), strict=True)]
            advice.append((*about, *advise(answers, masked, alpha=alpha, beta=beta)))
masking = pd.DataFrame(rows, columns=["dataset", "architecture", "unit", "network", "masked", "accuracy"])
run.save(masking, "masking")
advice = pd.DataFrame(
    advice, columns=["dataset", "architecture", "unit", "network", "metric", "bearable", "needed", "reason"]
)
run.save(advice, "advice")
table8 = masking[(masking["masked"] <= 0.1) & (masking["unit"] == ("value" if "value" in units else units[0]))]
table8 = table8.drop(columns="unit")
run.save(table8, "robustness")
whole = {
    (NAMES[name][0], ARCHITECTURES[architecture]): accuracy(networks[name, architecture, "original"], of_split["test"])
    for name, of_split in splits.items()
    for architecture in architectures
}
Markdown(
    "On whole test series the original networks are right on "
    + ", ".join(f"**{value:.1%}** ({architecture}, {name})" for (name, architecture), value in whole.items())
    + "."
)

# %% [markdown]
# ### Table 8, time series
#
# Accuracy with a random share of the values, or of the steps, set to zero. *Published* is Boiler, with values masked.

# %% tags=["hide-input"]
paper = published.load("ffidelity_robustness").query("dataset == 'Boiler'")
paper = paper.rename(columns={"model": "network", "masked_fraction": "masked", "accuracy": "mean"})
shown = pd.concat(
    [
        paper.assign(series="Boiler (published)"),
        masking[masking["masked"] <= 0.1].assign(series=lambda t: t["dataset"] + ", " + t["unit"] + "s"),
    ]
)
shown = shown.assign(mean=shown["mean"].fillna(shown["accuracy"]), masked=shown["masked"].map("{:.0%} masked".format))
tables.styled(
    tables.side_by_side({"accuracy": shown}, rows=["series", "architecture", "network"], columns=["masked"]).droplevel(
        1, axis=1
    )
)

# %% [markdown]
# ## Explanations
#
# Integrated Gradients (IG) explains the original network's logit of the true class, from a baseline of zeros. The relevance
# of a step is the sum of its values'. Every metric judges these explanations, and versions of them in which a share of the
# features have their scores shuffled: the less noise, the better.

# %% tags=["hide-input"]
ig = {"steps": integration_steps}
attributions = {}
for name, architecture in recipes:
    for unit in units:
        x, y, features, _ = at_hand(name, unit)
        original = networks[name, architecture, "original"]
        attributions[name, architecture, unit] = explain("integrated-gradients", original, x, y, features, **ig)

# %% mystnb={"figure": {"caption": "One test series: a line for each channel, in standard deviations. The shade under the lines is the relevance of each time step to the true class by Integrated Gradients, the darker the more; steps that speak against the class are white.", "name": "ff-series-example"}, "image": {"alt": "Two line charts of the same multichannel series with vertical shaded bands, one chart for each network."}} tags=["hide-input"]
name, unit = data[0], units[0]
x, y, *_ = at_hand(name, unit)
example = len(x) - 1  # of the last class
length = int((~splits[name]["test"].inputs[chosen[name][example]].isnan().any(-1)).sum())
lines = x[example, :length].cpu()
figure, grid = plt.subplots(len(architectures), 1, figsize=(8.4, 2.3 * len(architectures)), sharex=True, squeeze=False)
for axes, architecture in zip(grid[:, 0], architectures, strict=True):
    relevance = attributions[name, architecture, unit][example].cpu()
    relevance = relevance.view(-1, lines.shape[1]).sum(1) if unit == "value" else relevance
    relevance = relevance[:length].clamp(min=0)
    low, high = lines.min() - 0.5, lines.max() + 0.5
    shade = axes.imshow(
        (relevance / relevance.max())[None],
        extent=(-0.5, length - 0.5, low, high),
        aspect="auto",
        cmap="Greys",
        vmax=1.6,  # the lines stay readable on the darkest shade
        interpolation="none",
    )
    for channel, values in enumerate(lines.T):
        colour, dashes = sns.color_palette("colorblind")[channel % 4], ("-", "--", ":", "-.")[channel // 4 % 4]
        axes.plot(values, color=colour, linestyle=dashes, linewidth=1.2, label=f"{channel + 1}")
    axes.grid(False)
    axes.set(
        xlim=(-0.5, length - 0.5),
        ylim=(low, high),
        ylabel="value (sd)",
        title=f"{ARCHITECTURES[architecture]}: {splits[name]['test'].classes[int(y[example])]}",
    )
grid[-1, 0].set_xlabel("time step")
grid[0, 0].legend(title="channel", loc="center left", bbox_to_anchor=(1.01, 0.5))
figures.show(figure)

# %% [markdown]
# ## Four metrics, one function
#
# As on [the page for images](images): Fidelity removes all of the top $s$ features, ROAR does so on a network retrained
# without what IG calls relevant, R-Fidelity removes a random $\alpha s$ of them, F-Fidelity at most $\beta d$ of them and
# from the fine-tuned network.

# %% tags=["hide-input"]
fractions = torch.arange(1, round(1 / size_step), dtype=torch.float64) * size_step
parts, agree = [], []
for (name, architecture), original in recipes.items():
    for unit in units:
        x, y, features, present = at_hand(name, unit)
        retraining = dataclasses.replace(original, data_options={"unit": unit}, epochs=roar_epochs)
        metrics = trials.fidelities(
            hits(networks[name, architecture, "original"], x, y, features),
            hits(networks[name, architecture, unit], x, y, features),
            hits(roar.retrained(retraining, original, "integrated-gradients", **ig), x, y, features),
            fractions,
            alpha=alpha,
            beta=beta,
            draws=draws,
            seed=seed,
            present=present,
        )
        attribution = {"IG": attributions[name, architecture, unit]}
        part = trials.degraded_curves(metrics, attribution, noise_shares, fractions, seeds, present=present)
        parts.append(part.assign(dataset=NAMES[name][0], architecture=ARCHITECTURES[architecture], unit=unit))
    agree.append(engine.agreement(networks[name, architecture, "original"], x, y, fast)["argmax"])
curves = pd.concat(parts, ignore_index=True)
run.save(curves, "curves")
noise = curves.groupby("metric")["error"].max()
Markdown(
    f"Forwards ran in {str(fast).removeprefix('torch.')}: the predicted class is the float32 one on at least "
    f"{min(agree):.1%} of the whole series. The largest Monte-Carlo standard error of a point below is "
    f"{noise['R-Fidelity']:.3f} (R-Fidelity) and {noise['F-Fidelity']:.3f} (F-Fidelity); Fidelity and ROAR are not random."
)

# %% mystnb={"figure": {"caption": "Accuracy that remains when the most relevant features, time steps unless the page was run with values only, are removed (MoRF), for explanations with more and more noise. A metric that works keeps the darkest curve lowest and the order of the others. The scales differ: F-Fidelity removes at most a tenth of the steps.", "name": "ff-series-curves"}, "image": {"alt": "Grid of line charts, pairs of data set and network by metrics: share of features named against remaining accuracy, one line for each share of noise."}} tags=["hide-input"]
first = curves[curves["unit"] == units[0]]
first = first.assign(pair=first["dataset"] + ", " + first["architecture"])
figure = figures.noise_curves(first, row="pair", size=f"size (share of {units[0]}s)")
for axes in figure.axes:  # long names of rows: beside them
    pair, metric = axes.get_title().split(": ")
    axes.set_title(metric)
    if axes.get_ylabel():
        axes.set_ylabel(pair.replace(", ", "\n") + "\naccuracy left")
figures.show(figure)

# %% [markdown]
# ## Do the metrics find the true order?
#
# The explanations are ranked by the area under their curve (*macro*) or at each size (*micro*), and the ranks are compared
# with the truth by Spearman's correlation. The ideal is −1 for MoRF against the truth, +1 for LeRF against the truth, −1 for
# MoRF against LeRF. *Micro rank* ranks the metrics themselves at each size, 1 is best. A size at which all explanations
# score the same has no correlation: it is counted as missing, not as zero.
#
# *Published* is the paper's PAM and Boiler, with LSTM or CNN of width 128. Ours are other data and smaller networks:
# compare the pattern, not the second digit. The paper's dash for a missing correlation is "–" here.

# %% tags=["hide-input"]
parts = [
    trials.correlations(part).assign(dataset=dataset, architecture=architecture, unit=unit)
    for (dataset, architecture, unit), part in curves.groupby(["dataset", "architecture", "unit"], sort=False)
]
measured = pd.concat(parts, ignore_index=True)
run.save(measured, "correlations")
kept = recorded("f-fidelity/time-series", "correlations")

place = {theirs: f"{ours} for {theirs}" if ours != theirs else ours for ours, theirs in (NAMES[name] for name in data)}
paper = published.load("ffidelity_correlations").query("table in (3, 6)").rename(columns={"model": "architecture"})
paper = paper.assign(series=paper["dataset"].map(place)).dropna(subset=["series"])
stands = {NAMES[name][0]: place[NAMES[name][1]] for name in data}
ours = {
    source: frame.assign(series=frame["dataset"].map(stands)).dropna(subset=["series"])
    for source, frame in {"recorded": kept.frame if kept else None, "this build": measured}.items()
    if frame is not None
}


def table_of(level, architecture):
    """What the paper prints for a network beside what was measured, when whole steps are removed."""
    mine = {source: frame[frame["unit"] == units[0]] for source, frame in ours.items()}
    both = {source: f[f["architecture"] == architecture] for source, f in {"published": paper, **mine}.items()}
    return trials.beside_published(level, both, columns=["series"])


# %% [markdown]
# ### LSTM (Table 3): macro correlation

# %% tags=["hide-input"]
table_of("macro_correlation", "LSTM")

# %% [markdown]
# ### LSTM: micro correlation

# %% tags=["hide-input"]
table_of("micro_correlation", "LSTM")

# %% [markdown]
# ### LSTM: micro rank

# %% tags=["hide-input"]
table_of("micro_rank", "LSTM")

# %% [markdown]
# ### CNN (Table 6): macro correlation

# %% tags=["hide-input"]
table_of("macro_correlation", "CNN")

# %% [markdown]
# ### CNN: micro correlation

# %% tags=["hide-input"]
table_of("micro_correlation", "CNN")

# %% [markdown]
# ### CNN: micro rank

# %% tags=["hide-input"]
table_of("micro_rank", "CNN")

# %% [markdown]
# ### Steps or values?
#
# The same macro correlations, of this build, for both readings of what a feature is.

# %% tags=["hide-input"]
macro = measured[measured["level"] == "macro_correlation"]
by_unit = {f"{unit}s": macro[macro["unit"] == unit] for unit in units}
tables.styled(
    tables.side_by_side(
        by_unit, rows=["comparison", "metric"], columns=["dataset", "architecture"], order=list(trials.ORDER)
    )
)

# %% [markdown]
# ## Did the guideline foresee it?
#
# The paper advises (section 5.4) to test how a network bears random masks: if it bears them, plain removal will do. The
# first columns are that test, [](../../book/f-fidelity/guideline), on the original networks: the largest tested share of
# features that a network can lose at random within 5 % of accuracy, and the metric that this warrants for sizes up to a half.
# The others say how well each metric then did: the mean of the three macro correlations, as a part of the ideal (1 is
# perfect, −1 the reversed order).

# %% tags=["hide-input"]
macro = measured[measured["level"] == "macro_correlation"]
keys = ["dataset", "architecture", "unit"]
reached = macro.assign(reached=macro["mean"] * macro["comparison"].map(trials.IDEAL))
reached = reached.groupby([*keys, "metric"], sort=False)["reached"].mean().unstack()[list(trials.ORDER)]
foreseen = advice[advice["network"] == "original"].set_index(keys)[["bearable", "metric"]]
foreseen = foreseen.rename(columns={"bearable": "bears the loss of", "metric": "warranted"})
foreseen["bears the loss of"] = foreseen["bears the loss of"].map("{:.0%}".format)
summary = foreseen.join(reached.map(lambda part: "none" if pd.isna(part) else f"{part:.2f}".replace("-", "−")))
tables.prose(summary.reset_index().rename(columns={"unit": "feature"}))

# %% [markdown]
# ### Where this run is too small

# %% tags=["hide-input"]
levels = curves[curves["unit"] == units[0]].pivot(
    index=["dataset", "architecture", "metric", "direction", "seed", "fraction"], columns="share", values="value"
)
distinct = levels.round(9).nunique(axis=1)
tied, same = (distinct < levels.shape[1]).groupby("metric").mean(), (distinct == 1).groupby("metric").mean()
reach = (levels.max(axis=1) - levels.min(axis=1)).groupby(["direction", "metric"]).median()
grain = ", ".join(f"{1 / len(places):.3f} of accuracy with {NAMES[name][0]}" for name, places in chosen.items())
Markdown(
    f"One test series is {grain}. {levels.shape[1]} explanations that differ by less are tied. That happens to at least two "
    "of them, at the sizes, seeds and directions above, with "
    + ", ".join(f"{metric} in {tied[metric]:.0%}" for metric in trials.ORDER)
    + " of the cases; all of them score the same with "
    + ", ".join(f"{metric} in {same[metric]:.0%}" for metric in trials.ORDER)
    + ". Metrics that average over random subsets take more values, and tie less for that reason too. Between the best and "
    f"the worst explanation lie, in the median and under LeRF, {reach['LeRF', 'Fidelity']:.3f} with Fidelity and "
    f"{reach['LeRF', 'F-Fidelity']:.3f} with F-Fidelity, which removes so much less; under MoRF "
    f"{reach['MoRF', 'Fidelity']:.3f} and {reach['MoRF', 'F-Fidelity']:.3f}. Micro correlations rest on differences of that "
    "size; macro correlations pool all sizes and draws, and rest on more."
)

# %% [markdown]
# ## What reproduced
#
# Judged on time steps, except for the last claim, which is about values.

# %% tags=["hide-input"]
verdicts = claims.judge(f_fidelity.SERIES, {"correlations": measured, "robustness": table8})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
