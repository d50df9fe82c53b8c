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
# # Ranking degraded explainers on text
#
# *Does removing words confuse a network that reads?* The paper's Tables 4 (an LSTM) and 7 (a Transformer) say: hardly. On
# SST-2 {cite}`socher2013sst`, sentences from film reviews, and on BoolQ {cite}`clark2019boolq`, questions with a passage,
# plain Fidelity ranks explanations as well as F-Fidelity does.
#
# Neither set is in a package that could be fetched and verified here. This page reads Rotten Tomatoes instead: sentences
# from film reviews too, of the site that SST-2's are from, with the grades that readers gave them {cite}`hutto2014vader`.
# Where you have the paper's files, `data = ["sst2"]` or `["boolq"]` reads them; [](../../book/data) says where to put them.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "quick"  # smoke, quick, long or paper: see notebooks/profiles.yml
data = ["rotten-tomatoes"]  # or sst2, boolq
architectures = ["lstm", "transformer"]
length = 32  # tokens of a text that are read, from its start; BoolQ's passages are longer
words = 8000  # size of the vocabulary
shortest = 20  # tokens of a text that is explained, at least: one of them is 5 %
lstm_dim = 64  # of the LSTM's embedding; the paper does not say
lstm_hidden = 64  # 128 in the paper
dim = 32  # of the Transformer; 512 in the paper
depth = 2  # its layers; 4 for BoolQ in the paper
heads = 4  # 8 for BoolQ
epochs = 3  # of training
tuning_epochs = 1  # of fine-tuning on random masks
rate = 0.005  # peak learning rate; 0.0001 in the paper
tuning_rate = 0.002
decay = 1e-5
schedule = "cycle"
train_limit = None  # training texts; None: all
texts = 400  # test texts to explain, at most
noise_shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
seeds = [0, 1]  # of the noise; the paper has five
size_step = 0.1  # between the explanation sizes, a share of the tokens; 0.05 in the paper
alpha = 0.5
beta = 0.1
draws = 2  # random subsets per text, size and direction; the paper draws 50
integration_steps = 32  # of Integrated Gradients
seed = 0

# %% tags=["hide-input"]
import dataclasses
import html
from functools import partial

import pandas as pd
import torch
from IPython.display import HTML, Markdown

from faithlab import engine, masks, readouts, references
from faithlab.explainers import explain
from faithlab.metrics.robustness import robustness
from faithlab.study import claims, f_fidelity, figures, published, tables, trials
from faithlab.study.results import Run, recorded
from faithlab.zoo import datasets
from faithlab.zoo.sets import TextSet
from faithlab.zoo.training import Recipe, accuracy, trained

figures.theme()
run = Run("f-fidelity/text", globals())

# What a set is called, and the set of the paper whose place it takes.
NAMES = {"rotten-tomatoes": ("Rotten Tomatoes", "SST2"), "sst2": ("SST2", "SST2"), "boolq": ("BoolQ", "BoolQ")}
ARCHITECTURES = {"lstm": "LSTM", "transformer": "Transformer"}

# %% [markdown]
# ## The texts
#
# A text is cut into *tokens*, words and punctuation marks, in lower case. The features are tokens. To remove one is to put
# the mask token in its place, so that a text keeps its length. Texts are filled up with padding at the end; padding is no
# feature, is never removed, and no network sees it.

# %% tags=["hide-input"]
text_options = {"length": length, "words": words}
splits = {name: {split: datasets.load(name, split, **text_options) for split in ("train", "test")} for name in data}
rows = []
chosen = {}  # the test texts to explain
for name, of_split in splits.items():
    test = of_split["test"]
    own = test.present().sum(1)
    chosen[name] = (own >= shortest).nonzero().flatten()[:texts]
    rows.append(
        {
            "set": NAMES[name][0],
            "in the place of": NAMES[name][1],
            "train": len(of_split["train"]),
            "test": len(test),
            "tokens of a text, median": int(own.median()),
            f"cut at {length} tokens, at most": f"{(own == length).double().mean():.0%}",
            f"test texts of at least {shortest} tokens": int((own >= shortest).sum()),
            "explained": len(chosen[name]),
            "unknown tokens": f"{(test.inputs == TextSet.UNKNOWN).sum() / own.sum():.0%}",
        }
    )
tables.prose(pd.DataFrame(rows))

# %% [markdown]
# Texts are short, and shares of a short text are few tokens. Sizes and $\alpha s$ are rounded half up to whole tokens, and
# F-Fidelity's $\beta d$ is rounded down. A text of nine tokens would lose none to F-Fidelity at $\beta = 0.1$. So only texts
# of some length are explained. The networks are trained and fine-tuned on all of them; those too short for $\beta$ are seen
# whole in fine-tuning.

# %% tags=["hide-input"]
lengths = torch.cat([splits[name]["test"].present(chosen[name]).sum(1) for name in data]).unique()
rows = []
for d in sorted({int(lengths.min()), int(lengths.max())}):
    for share in (size_step, 0.5):
        (s,) = masks.counts([share], d)
        of = {
            "Fidelity": masks.removals(s, d),
            "R-Fidelity": masks.removals(s, d, alpha),
            "F-Fidelity": masks.removals(s, d, alpha, beta),
        }
        rows.append(
            {"tokens of the text": d, "size": f"{share:.0%}", "the size in tokens": int(s)}
            | {f"{metric} removes (MoRF)": int(count) for metric, count in of.items()}
        )
tables.prose(pd.DataFrame(rows))

# %% [markdown]
# ## Networks
#
# The LSTM has one layer; the mean of its states is classified. So is the mean of the Transformer's outputs. Both learn
# their embeddings from the training texts alone. The paper leaves open how texts are cut into tokens, how large the
# vocabulary is and what goes into the classifier; {py:mod}`faithlab.zoo.texts` and {py:mod}`faithlab.zoo.models` say what
# is done here. The fine-tuned networks go on from there, on texts that lack up to a share $\beta$ of their tokens at
# random.

# %% tags=["hide-input"]
sizes = {
    "lstm": {"dim": lstm_dim, "hidden": lstm_hidden},
    "transformer": {"dim": dim, "depth": depth, "heads": heads},
}
networks = {}
for name in data:
    for architecture in architectures:
        original = Recipe(
            data=name,
            data_options=text_options,
            model=architecture,
            model_options={"words": words} | sizes[architecture],
            epochs=epochs,
            rate=rate,
            decay=decay,
            schedule=schedule,
            limit=train_limit,
            seed=seed,
        )
        tuned = dataclasses.replace(original, epochs=tuning_epochs, rate=tuning_rate, mask_share=beta, start=original)
        networks[name, architecture] = {"original": trained(original), "fine-tuned": trained(tuned)}
device = next(next(iter(networks.values()))["original"].parameters()).device

at_hand = {  # the texts to explain: token ids, labels, features, and which of them a text has
    name: (
        of_split["test"].model_inputs(chosen[name]).to(device),
        of_split["test"].labels[chosen[name]].to(device),
        of_split["test"].features(),
        of_split["test"].present(chosen[name]).to(device),
    )
    for name, of_split in splits.items()
}


def hits(network, name):
    """Whether a network still reads masked texts rightly."""
    x, y, tokens, _ = at_hand[name]
    masked_by = partial(references.token, identity=TextSet.MASK)
    return engine.scorer(network, x, y, segments=tokens, reference=masked_by, readout=readouts.hit)


masked = torch.tensor([0.0, 0.05, 0.1], dtype=torch.float64)
rows = []
for (name, architecture), pair in networks.items():
    present = at_hand[name][3]
    for network, model in pair.items():
        score = hits(model, name)
        answers = [robustness(score, present.shape, masked, seed=draw, present=present) for draw in range(10)]
        left = torch.stack(answers).mean((0, 1)).tolist()
        rows += [
            (NAMES[name][0], ARCHITECTURES[architecture], network, share, value)
            for share, value in zip(masked.tolist(), left, strict=True)
        ]
masking = pd.DataFrame(rows, columns=["dataset", "architecture", "network", "masked", "accuracy"])
run.save(masking, "robustness")
whole = {
    (NAMES[name][0], ARCHITECTURES[architecture], network): accuracy(model, splits[name]["test"])
    for (name, architecture), pair in networks.items()
    for network, model in pair.items()
}
Markdown(
    "On all whole test texts, short ones too, the networks are right on "
    + ", ".join(
        f"**{value:.1%}** ({name}, {architecture}, {network})" for (name, architecture, network), value in whole.items()
    )
    + ". Always naming the larger class would be right on "
    + ", ".join(
        f"{max(share, 1 - share):.1%} ({NAMES[name][0]})"
        for name, of_split in splits.items()
        for share in [of_split["test"].labels.double().mean().item()]
    )
    + "."
)

# %% [markdown]
# ### Table 8, text
#
# Accuracy with a random share of the tokens masked, in the texts that are explained, over ten masks each. *Published* is
# SST-2, with masked tokens set to zero.

# %% tags=["hide-input"]
paper = published.load("ffidelity_robustness").query("dataset == 'SST2'")
paper = paper.rename(columns={"model": "network", "masked_fraction": "masked"})
shown = pd.concat([paper.assign(texts="SST2 (published)"), masking.assign(texts=masking["dataset"])])
shown = shown.assign(mean=shown["accuracy"], masked=shown["masked"].map("{:.0%} masked".format))
tables.styled(
    tables.side_by_side(
        {"accuracy": shown}, rows=["texts", "architecture", "network"], columns=["masked"], digits=3
    ).droplevel(1, axis=1)
)

# %% [markdown]
# ## Explanations
#
# Integrated Gradients (IG) explains the original network's logit of the true class. A token id has no gradient, so the path
# leads through the embedding: from the mask token's to the token's own. The relevance of a token is the sum over its
# embedding. Padding stays padding on the whole path and gets 0.
#
# One text, as the networks read it. Blue words speak for its class, orange ones against it; the number below a word is its
# relevance, in percent of the largest.

# %% tags=["hide-input"]
attributions = {}
for (name, architecture), pair in networks.items():
    x, y, tokens, _ = at_hand[name]
    attributions[name, architecture] = explain(
        "integrated-gradients-embedding", pair["original"], x, y, tokens, steps=integration_steps
    )


def coloured(text, relevance):
    """Words in a row, shaded by their relevance, which stands below them."""
    percent = (100 * relevance / relevance.abs().max()).round().int().tolist()
    return "".join(
        '<span style="display:inline-block;text-align:center;margin:2px 1px;padding:0 3px;border-radius:3px;background:'
        f'rgba({"0,114,178" if p > 0 else "213,94,0"},{abs(p) / 160:.2f})">{html.escape(word)}<br>'
        f"<small>{f'{p:+d}'.replace('-', '−') if p else '0'}</small></span>"
        for word, p in zip(text, percent, strict=True)
    )


name = data[0]
x, y, tokens, present = at_hand[name]
test = splits[name]["test"]
unmasked = torch.ones_like(present)[:, None]  # padding stays too: a mask in its place would lengthen the text
right = torch.stack([hits(networks[name, of]["original"], name)(unmasked)[:, 0] for of in architectures]).bool()
clear = (x != TextSet.UNKNOWN).all(1)
example = int((right.all(0) & clear).int().argmax())  # the first without unknown tokens that all read rightly, if any
text = [test.vocabulary[i] for i in x[example][present[example]].tolist()]
HTML(
    "".join(
        f"<p><strong>{ARCHITECTURES[architecture]}</strong>: {test.classes[int(y[example])]}, "
        f"read {'rightly' if hit[example] else 'wrongly'}</p>"
        f"<div>{coloured(text, attributions[name, architecture][example][present[example]].cpu())}</div>"
        for architecture, hit in zip(architectures, right, strict=True)
    )
)

# %% [markdown]
# ## Three metrics, one function
#
# As on [the page for images](images): Fidelity removes all of the top $s$ tokens, R-Fidelity a random $\alpha s$ of them,
# F-Fidelity at most $\beta d$ of them and from the fine-tuned network. The paper has no ROAR for text, and neither has this
# page. Each metric judges the explanations, and versions of them in which a share of the tokens have their scores shuffled:
# the less noise, the better.

# %% tags=["hide-input"]
fractions = torch.arange(1, round(1 / size_step), dtype=torch.float64) * size_step
parts = []
for (name, architecture), pair in networks.items():
    present = at_hand[name][3]
    metrics = trials.fidelities(
        hits(pair["original"], name),
        hits(pair["fine-tuned"], name),
        None,
        fractions,
        alpha=alpha,
        beta=beta,
        draws=draws,
        seed=seed,
        present=present,
    )
    attribution = {"IG": attributions[name, architecture]}
    part = trials.degraded_curves(metrics, attribution, noise_shares, fractions, seeds, present=present)
    parts.append(part.assign(dataset=NAMES[name][0], architecture=ARCHITECTURES[architecture]))
curves = pd.concat(parts, ignore_index=True)
run.save(curves, "curves")
noise = curves.groupby("metric")["error"].max()
Markdown(
    f"The largest Monte-Carlo standard error of a point below is {noise['R-Fidelity']:.3f} (R-Fidelity) and "
    f"{noise['F-Fidelity']:.3f} (F-Fidelity); Fidelity is not random."
)

# %% mystnb={"figure": {"caption": "Accuracy that remains when the most relevant tokens are masked (MoRF), for explanations with more and more noise. A metric that works keeps the darkest curve lowest and the order of the others. The scales differ: F-Fidelity removes at most a share \u03b2 of the tokens.", "name": "ff-text-curves"}, "image": {"alt": "Grid of line charts, networks by metrics: share of tokens named against remaining accuracy, one line for each share of noise."}} tags=["hide-input"]
pairs = curves.assign(
    pair=curves["architecture"] if len(data) == 1 else curves["dataset"] + ", " + curves["architecture"]
)
figures.noise_curves(pairs, row="pair", size="size (share of tokens)")

# %% [markdown]
# ## Do the metrics find the true order?
#
# The explanations are ranked by the area under their curve (*macro*) or at each size (*micro*), and the ranks are compared
# with the truth by Spearman's correlation. The ideal is −1 for MoRF against the truth, +1 for LeRF against the truth, −1 for
# MoRF against LeRF. *Micro rank* ranks the metrics themselves at each size, 1 is best. A size at which all explanations
# score the same has no correlation: it is counted as missing, not as zero.
#
# *Published* is the paper's SST-2 and BoolQ, with an LSTM of 128 units or a Transformer of dimension 512. Ours are other
# texts and smaller networks: compare the pattern, not the second digit.

# %% tags=["hide-input"]
parts = [
    trials.correlations(part).assign(dataset=dataset, architecture=architecture)
    for (dataset, architecture), part in curves.groupby(["dataset", "architecture"], sort=False)
]
measured = pd.concat(parts, ignore_index=True)
run.save(measured, "correlations")
kept = recorded("f-fidelity/text", "correlations")

place = {theirs: f"{ours} for {theirs}" if ours != theirs else ours for ours, theirs in (NAMES[name] for name in data)}
paper = published.load("ffidelity_correlations").query("table in (4, 7)").rename(columns={"model": "architecture"})
paper = paper.assign(texts=paper["dataset"].map(place).fillna(paper["dataset"]))
stands = {NAMES[name][0]: place[NAMES[name][1]] for name in data}
sources = {"published": paper} | {
    source: frame.assign(texts=frame["dataset"].map(stands)).dropna(subset=["texts"])
    for source, frame in {"recorded": kept.frame if kept else None, "this build": measured}.items()
    if frame is not None
}


def table_of(level, architecture):
    """What the paper prints for a network beside what was measured."""
    both = {source: f[f["architecture"] == architecture] for source, f in sources.items()}
    return trials.beside_published(level, both, columns=["texts"])


# %% [markdown]
# ### LSTM (Table 4): macro correlation

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
# ### Transformer (Table 7): macro correlation

# %% tags=["hide-input"]
table_of("macro_correlation", "Transformer")

# %% [markdown]
# ### Transformer: micro correlation

# %% tags=["hide-input"]
table_of("micro_correlation", "Transformer")

# %% [markdown]
# ### Transformer: micro rank

# %% tags=["hide-input"]
table_of("micro_rank", "Transformer")

# %% mystnb={"figure": {"caption": "Rank correlation of each metric with the true order at every explanation size, under MoRF, averaged over the seeds of the noise. The dashed line is the ideal. Missing points are sizes without a correlation.", "name": "ff-text-micro"}, "image": {"alt": "Line charts, one per network: explanation size against micro correlation, one line for each metric."}} tags=["hide-input"]
figures.correlations_by_size(pairs, col="pair", size="size (share of tokens)")

# %% [markdown]
# ### Where this run is too small

# %% tags=["hide-input"]
levels = curves.pivot(
    index=["dataset", "architecture", "metric", "direction", "seed", "fraction"], columns="share", values="value"
)
reach = (levels.max(axis=1) - levels.min(axis=1)).groupby(["direction", "metric"]).median()
most = max(len(of) for of in chosen.values())
Markdown(
    f"One of {most} texts is {1 / most:.4f} of accuracy. Between the best and the worst explanation lie, in the median over "
    f"sizes and under MoRF, {reach['MoRF', 'Fidelity']:.3f} of accuracy with Fidelity, {reach['MoRF', 'R-Fidelity']:.3f} with "
    f"R-Fidelity and {reach['MoRF', 'F-Fidelity']:.3f} with F-Fidelity, which masks "
    f"{masks.bound(beta, int(lengths.max()))} tokens at most; under LeRF "
    f"{reach['LeRF', 'Fidelity']:.3f}, {reach['LeRF', 'R-Fidelity']:.3f} and {reach['LeRF', 'F-Fidelity']:.3f}. "
    f"{len(noise_shares)} explanations share that range, so F-Fidelity's micro correlations rest on a few texts each. Macro "
    "correlations pool all sizes, and rest on more."
)

# %% [markdown]
# ## What reproduced

# %% tags=["hide-input"]
verdicts = claims.judge(f_fidelity.TEXT, {"correlations": measured, "robustness": masking})
run.save(verdicts, "claims")
tables.prose(verdicts[["claim", "where", "verdict", "evidence"]])

# %% tags=["hide-input"]
run.finish()
