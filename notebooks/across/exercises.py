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
# # What would you expect?
#
# Four exercises. Guess first, then open the solution, which is computed from the code above it. Each input has 64 features, of which
# 16 decide; each of these adds the same to the logit, and the other 48 nothing ({py:func}`faithstudy.trials.truth.closed_form`).
#
# ## 1. A random order
#
# SaCo is 1 for a perfect explanation, −1 for a perfectly wrong one, and its chance value is 0. What is its mean for a *random*
# attribution of these inputs? Does it matter into how many groups SaCo cuts the features?
#
# No data is needed, no trained network, and no waiting: change a parameter and run a cell again.

# %% tags=["parameters"]
profile = "study"  # as the book shows it; or quick, smoke, paper: see notebooks/profiles.yml
images = 256  # inputs of each exercise
groups = [2, 8, 32]  # of SaCo, in the first
forwards = 256  # to be spent, in the second; at most as many as images
caps = [0.05, 0.1, 0.2]  # of F-Fidelity, in the third
seed = 1  # of random orders; the inputs are drawn with 0

# %% tags=["hide-input"]
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import stats
from faithlab.explainers import explain
from faithlab.metrics import METRICS, evaluate, tiers
from faithstudy import plots, tables
from faithstudy.run import Run
from faithstudy.trials import truth

plots.theme()
run = Run("across/exercises", globals())
task, regions = truth.closed_form(images)


def solution(text):
    """A text that the reader opens."""
    return Markdown(f":::{{dropdown}} Solution\n{text}\n:::")


# %%
random = explain("random", task.model, task.x, task.target, task.segments, seed=seed)
of_groups = {f"K = {k}": METRICS["SaCo"].given(groups=k) for k in groups}
scores = evaluate(of_groups, task, {"random": random})
run.save(scores, "random")
means = {name: stats.estimate(scores.where(metric=name)) for name in of_groups}

# %% mystnb={"markdown_format": "myst"} tags=["hide-input"]
solution(
    f"The means are {'; '.join(f'{name}: {tables.number(of, 3)}' for name, of in means.items())}. Where a mean lies above 0 it is ties: two groups with as many deciding "
    "features change the answer alike, and SaCo counts a tie as consistent; in small groups such pairs are many. So compare SaCo with that of random "
    "orders of the *same* inputs, as the trial Chance does, and not with the chance value on paper."
)

# %% [markdown]
# ## 2. More draws, or more inputs?
#
# RFid+ removes random subsets of the top features. You can spend a number of forwards. Do you draw 16 subsets for each of a few
# inputs, or one for each of many? Which of the intervals is the shortest?

# %%
half = truth.partial_oracle(regions, 0.5, task.images, seed=seed)  # knows half of the features that decide
spent = {}
for draws in (16, 4, 1):
    part = task.part(torch.arange(forwards // draws))
    metric = METRICS["RFid+"].given(sizes=[0.25], draws=draws, seed=seed)
    table = evaluate({"RFid+": metric}, part, {"oracle": half[: len(part.x)]})
    spent[f"{len(part.x)} inputs x {draws}"] = stats.estimate(table)

# %% mystnb={"markdown_format": "myst"} tags=["hide-input"]
widths = {name: float(of.pooled.high - of.pooled.low) / 2 for name, of in spent.items()}
run.save(pd.DataFrame({"spent": widths.keys(), "half width": widths.values()}), "widths")
pairs_of = {name: name.split(" inputs x ") for name in spent}  # as they are saved
in_words = {name: f"{n} inputs with {k} draw{'s' * (k != '1')} each" for name, (n, k) in pairs_of.items()}
solution(
    f"Each spends {forwards} forwards, besides those for the whole inputs: "
    f"{'; '.join(f'{in_words[name]}: {tables.number(of, 3)}' for name, of in spent.items())}. The shortest interval, "
    f"±{min(widths.values()):.3f}, is that of {in_words[min(widths, key=widths.get)]}. Inputs differ more from each other than draws of one input "
    "do, so that one draw and more inputs is nearly always the better buy: [](../cost/forwards)."
)

# %% [markdown]
# ## 3. Where is the knee?
#
# FFid+ of a perfect explanation rises with the size, stays, and falls. A quarter of the features decides. With
# $\alpha = 0.5$ and a larger and larger cap $\beta$: where does the curve begin to stay, and where does it begin to fall?

# %%
sizes = torch.arange(1, 65, dtype=torch.float64) / 64
curves = {
    cap: tiers.expected_fidelity([16, 48], lambda kept: kept[..., 0] / 16, sizes, alpha=0.5, cap=cap) for cap in caps
}
flat = {cap: sizes[curve > curve.max() - 0.01] for cap, curve in curves.items()}

# %% mystnb={"markdown_format": "myst"} tags=["hide-input"]
run.save(pd.DataFrame({"size": sizes} | {f"cap {cap:g}": curve for cap, curve in curves.items()}), "knees")
solution(
    "These sizes, of whole features, are within a hundredth of the maximum of their curve: "
    + "; ".join(
        f"β = {cap:g}: {of.min() * len(sizes):.0f} to {of.max() * len(sizes):.0f} of {len(sizes)} features, sizes {of.min():.2f} to {of.max():.2f}"
        for cap, of in flat.items()
    )
    + ". One knee is at β/α, which you move; the other at 0.25, which you do not: it is the explanation's size. Where β/α is beyond it, "
    "the two change places. Sizes, and what is removed of them, are whole features: so a flat part begins and ends up to some "
    "features beside the knees. More of this, to move with a slider: [](../../book/plateaus)."
)

# %% [markdown]
# ## 4. One input
#
# One oracle knows all features that decide, another three quarters of them. For how many *single* inputs does each metric give the first
# the better score? And for how many does it give both the same?

# %%
oracles = {f"knows {q:.0%}": truth.partial_oracle(regions, q, task.images, seed=seed) for q in (1.0, 0.75)}
asked = {name: METRICS[name] for name in ("MoRF", "SaCo", "Fid+", "FFid+")}
asked = {name: m.given(sizes=[0.1, 0.2, 0.3]) if m.sizes else m for name, m in asked.items()}
asked = {name: m.given(draws=2, seed=seed) if m.takes("draws") else m for name, m in asked.items()}
pairs = evaluate(asked, task, oracles)
run.save(pairs, "pairs")

# %% mystnb={"markdown_format": "myst"} tags=["hide-input"]
rows = []
for name, metric in asked.items():
    better, worse = (next(iter(pairs.where(metric=name, explainer=e))).values.mean(1) for e in oracles)
    sign = (metric.better * (better - worse)).sign()
    shares = (f"{(sign == way).double().mean():.0%}" for way in (1, -1, 0))
    rows.append(f"| {name} | {' | '.join(shares)} |")
solution(
    "| metric | right | wrong | the same |\n|---|--:|--:|--:|\n"
    + "\n".join(rows)
    + "\n\nA metric that reads off a probability sees every feature that is missing. One that counts hits and misses sees only whether the "
    "class changes, and one that draws random subsets adds its noise: both need many inputs. That holds for trained networks too: "
    "[](rivals)."
)

# %% tags=["hide-input"]
run.finish()
