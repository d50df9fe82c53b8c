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
# # Does the number of groups change SaCo?
#
# *SaCo cuts the pixels into $K$ groups, and $K$ is a choice.* The paper's Table 2 has ten explainers with 5, 10 and 20 groups. Which fall,
# and is their order the paper's, with the sign of an explanation or without? [](settings) asks the same of choices that
# stand in no table: options of the explainers, the weight of a pair, the number format.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
data = "cifar10"
networks = ["vit"]  # "vit": the small one of the study; else names of timm, see faithstudy.networks.transformers
training = {}  # what differs from the recipe of the small network, such as {"epochs": 5}: see faithstudy.recipes
training_seeds = [0, 1, 2]  # each is a network of its own
weights = None  # a folder with weights of timm's networks; None: timm's own, for ImageNet
path = None  # a folder with ImageNet photographs, for imagenet-folder
images = 1000  # test images to explain
numbers_of_groups = [5, 10, 20]  # K
steps = 50  # of Integrated Gradients
seed = 0  # of the random attribution

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import Markdown

from faithlab import stats
from faithlab.metrics import METRICS, evaluate
from faithstudy import plots, published, summaries, tables
from faithstudy.claims import best, better, most, within
from faithstudy.diagnostics import Reason
from faithstudy.recipes import introduced, vits
from faithstudy.run import Run
from faithstudy.trials import tasks, transformers
from faithstudy.trials.chance import RANDOM

plots.theme()
run = Run("saco/groups", globals())

# %% [markdown]
# We evaluate a Vision Transformer on test images. Every explanation and every SaCo is about the
# class that the network predicts, right or wrong. A removed group of pixels becomes the image's mean colour.

# %% tags=["hide-input"]
chosen, counted_here = transformers.tasks(networks, data, images, vits(run.parameters), weights=weights, path=path)
recognised = run.table("recognised", lambda: counted_here)
Markdown(introduced(recognised, images))

# %% [markdown]
# ## The number of groups
#
# Few groups are large: each holds many pixels, and the order of a few large losses should be easier to get right. Many groups
# ask for more, and ask with smaller differences. *Published* is the paper's Table 2, a mean over ViT-B, ViT-L and DeiT-B on
# ImageNet. In brackets: 95 % intervals over the images.
#
# Integrated Gradients and Conservative LRP are sums over the colours of contributions with a sign. The paper does not say
# whether it takes their magnitude, and the two differ: $|\text{IG}|$ and $|\text{Conservative LRP}|$ stand below.

# %% tags=["hide-input"]
explainers = transformers.EXPLAINERS | {"IG": ("integrated-gradients", {"steps": steps})}
K = 10 if 10 in numbers_of_groups else numbers_of_groups[0]
of = {k: METRICS["SaCo"].given(groups=k) for k in numbers_of_groups}
metrics = {f"SaCo, K = {k}": metric for k, metric in of.items()}
named, at = list(metrics), f"SaCo, K = {K}"

# The other numbers of groups have a table of their own.
others = {name: metric for name, metric in metrics.items() if name != at}


def ask(task):
    """SaCo of all explanations at each number of groups, and of the magnitudes at K."""
    maps = tasks.attributions(task, explainers | {RANDOM: ("random", {"seed": seed})})
    return evaluate(metrics, task, maps) + evaluate({at: of[K]}, task, transformers.magnitudes(maps))


def ask_magnitudes(task):
    """SaCo of the magnitudes at the other numbers of groups."""
    maps = tasks.attributions(task, {name: explainers[name] for name in transformers.SIGNED})
    return evaluate(others, task, transformers.magnitudes(maps))


scores = run.table("scores", ask, chosen)
magnitudes = run.table("magnitudes", ask_magnitudes, chosen)
both = scores + magnitudes

# %% tags=["hide-input"]
estimates = tables.summary(scores, ["explainer", "metric"], metric=named)
run.save(estimates, "estimates")
table2 = published.load("saco_groups").rename(columns={"saco": "mean"})
table2 = table2.assign(metric=[f"SaCo, K = {k}" for k in table2["groups"]])
sources = {"published": table2[table2["metric"].isin(named)], "measured": estimates}
tables.compared(sources, rows=["explainer"], columns=["metric"], order=[*explainers, *named])

# %% mystnb={"figure": {"caption": "SaCo of each explainer against the number of groups. Points: means over the images; bars: 95 % intervals. Dashed: the paper's Table 2. The grey line in each panel is Random.", "name": "saco-groups"}, "image": {"alt": "Ten small line charts, one per explainer: number of groups against SaCo, with Random in grey and the paper's numbers dashed."}} tags=["hide-input", "answer"]
figure, grid = plt.subplots(-(-len(explainers) // 2), 2, figsize=(3.7, 7.5), sharex=True, sharey=True)  # as a phone
ours, theirs = (f.set_index(["explainer", "metric"]).sort_index() for f in (estimates, table2))
for axes, name in zip(grid.flat, explainers, strict=True):
    own = ours.loc[name].loc[named]
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.plot(numbers_of_groups, ours.loc[RANDOM].loc[named, "mean"], color="0.65")
    axes.plot(numbers_of_groups, theirs.loc[name]["mean"].reindex(named), color="0.4", linestyle="--", linewidth=1)
    error, colour = [own["mean"] - own["low"], own["high"] - own["mean"]], plots.COLOURS["SaCo"]
    axes.errorbar(numbers_of_groups, own["mean"], error, color=colour, marker="o", markersize=4, capsize=2)
    axes.set_xscale("log")
    axes.set_xticks(numbers_of_groups, numbers_of_groups)
    axes.minorticks_off()
    axes.set_title(name.replace(" ", "\n"), fontsize="small")
figure.supxlabel("groups", fontsize="medium")
figure.supylabel("SaCo", fontsize="medium")
plots.show(figure)

# %% [markdown]
# How SaCo falls from few groups to many is judged image by image. *Most* is more than half of the ten. "Hardly" is within
# 0.05: the paper says "relatively consistent" of IG and ATTCAT, whose printed numbers rise by 0.02 and 0.04.

# %% tags=["hide-input"]
few, many = named[0], named[-1]
falls = stats.difference(*(stats.Statistic(stats.mean, ({"metric": name},)) for name in (few, many)), f"{few} - {many}")
fall = table2.pivot(index="explainer", columns="metric", values="mean").reindex(columns=[few, many])
printed = (fall[few] - fall[many]).to_dict()
pair = {"metric": few}, {"metric": many}
parts = [better(scores, *pair, explainer=name, printed=fall.loc[name].to_list()) for name in explainers]
falling = most(parts, "explainers whose SaCo falls")
run.claim("saco-groups", "Section 5.5, Table 2", "With more groups the SaCo of most explainers falls.", [falling])

# %% tags=["hide-input"]
steep, steady = ["Partial LRP", "Transformer Attribution", "Transformer-MM"], ["IG", "ATTCAT"]
rest = [name for name in explainers if name not in steep]
hardly = {"margin": 0.05, "reason": "the paper calls a change of 0.044 relatively consistent", "of": falls}
learned = transformers.learned(recognised, chosen[0])
parts = [learned]
for name in steep:
    more = {"name": f"{name} falls more than the rest", "printed": printed}
    parts.append(best(scores, "explainer", name, rivals=rest, of=falls, **more))
for name in steady:
    same = {"name": f"{name} hardly changes", "printed": [printed[name]]}
    parts.append(within(scores, {"explainer": name}, **same, **hardly))
run.claim(
    "saco-groups-who",
    "Section 5.5, Table 2",
    "With more groups the SaCo of Partial LRP, Transformer Attribution and Transformer-MM falls most; that of IG and ATTCAT hardly "
    "changes.",
    parts,
)

# %% [markdown]
# **Why?** Is the order of the falls another one than in print, or does one explainer spoil it? The table names the one without
# which they agree most. Does it fall more than in print? And does the missing sign of Integrated Gradients decide about its own
# part, for which a fall may be at most 0.05 either way?


# %% tags=["hide-input"]
def fall_alike(called):
    """The rank correlation of how explainers fall here and in print."""
    theirs = stats.rank(torch.tensor([printed[name] for name in called], dtype=torch.float64))

    def correlation(*samples):
        means = torch.stack([sample.mean() for sample in samples], -1)
        here = stats.rank(means[..., : len(called)] - means[..., len(called) :])
        return stats.pearson(here, theirs.expand_as(here))

    over = tuple({"explainer": name, "metric": metric} for metric in (few, many) for name in called)
    return stats.Statistic(correlation, over, "rank correlation", steps=True, bounds=(-1.0, 1.0))


alike = stats.estimate(scores, fall_alike([*explainers]))
without = {name: stats.estimate(scores, fall_alike([e for e in explainers if e != name])) for name in explainers}
spoils = max(without, key=lambda name: float(without[name]))
own_fall = stats.estimate(scores, falls, explainer=spoils)
by_sign = stats.paired(both, {"explainer": "IG"}, {"explainer": "|IG|"}, falls)
fall_of = {name: stats.estimate(both, falls, explainer=name) for name in ("IG", "|IG|")}
in_print = {name: f"in print {of:.3f}".replace("-", "−") for name, of in printed.items()}
run.why(
    "saco-groups-who",
    Reason("Is the order of the falls near the printed one?", "rank correlation with it", alike, above=0.6),
    Reason("Is the order of the falls near the printed one?", f"the same without {spoils}", without[spoils], above=0.6),
    Reason(f"Does {spoils} fall more than in print?", in_print[spoils], own_fall, above=round(printed[spoils], 3)),
    Reason("Does IG hardly change?", f"fall of IG, a signed sum; {in_print['IG']}", fall_of["IG"], within=0.05),
    Reason("Does IG hardly change?", "fall of |IG|, a magnitude", fall_of["|IG|"], within=0.05),
    Reason("Is it the sign of IG?", "fall of IG − fall of |IG|", by_sign, above=0),
)

# %% [markdown]
# ## With a sign, or without
#
# Six explainers stand above Integrated Gradients in the paper's Table 2 at $K = 10$. Do they here, with a sign and without?

# %% tags=["hide-input"]
paper = table2[table2["groups"] == K].set_index("explainer")["mean"]
ahead = [name for name in explainers if paper[name] > paper["IG"]]


def behind(gradients):
    """Every explainer that the paper puts above Integrated Gradients is above it here."""
    parts, rival = [learned], {"explainer": gradients}
    for name in ahead:
        about = {"name": f"{name} is above {gradients}", "printed": [float(paper[name]), float(paper["IG"])]}
        parts.append(better(scores, {"explainer": name}, rival, metric=at, **about))
    return parts


run.claim(
    "saco-ig-signed",
    "Table 2, K = 10",
    "Integrated Gradients, as the signed sum over the colours, is less faithful than the six explainers above it in Table 2.",
    behind("IG"),
)

# %% tags=["hide-input"]
run.claim(
    "saco-ig-magnitude",
    "Table 2, K = 10",
    "Integrated Gradients, as a magnitude, is less faithful than the six explainers above it in Table 2.",
    behind("|IG|"),
)

# %% [markdown]
# **Why?** First with the sign: is it that, or are the six lower than in print, or Integrated Gradients higher? Conservative LRP is
# the other sum with a sign. Then the same of the magnitude. Whether it is the network, [a larger one](larger-vit) says in part; the data,
# only the paper's own would tell: the profile `paper` asks them.

# %% tags=["hide-input"]
in_print, theirs = paper.round(3), round(float(paper[ahead].mean()), 3)


def why(rival):
    """Reasons for one reading: is it ahead of the six because it is high here, or because they are low?"""
    leads = {e: stats.paired(scores, {"explainer": rival}, {"explainer": e}, metric=at) for e in ahead}
    last, lead = max(leads.items(), key=lambda item: float(item[1]))
    level, six = (stats.estimate(scores, metric=at, explainer=e) for e in (rival, ahead))
    asked = f"{rival}; in print {in_print['IG']}"
    return [
        Reason("Is it ahead of the lowest of them?", f"{rival} − {last}", lead, above=0),
        Reason("Is it higher than in print?", asked, level, above=in_print["IG"]),
        Reason(f"Are the {len(ahead)} lower than in print?", f"their mean; in print {theirs}", six, below=theirs),
    ]


worth = stats.paired(scores, {"explainer": "IG"}, {"explainer": "|IG|"}, metric=at)
other, conservative = "Conservative LRP", stats.estimate(scores, metric=at, explainer="Conservative LRP")
run.why(
    "saco-ig-signed",
    Reason("Does the sign raise IG?", "IG, the signed sum − |IG|, the magnitude", worth, above=0),
    *why("IG"),
    Reason(
        "Is the other signed sum higher, too?",
        f"{other}; in print {in_print[other]}",
        conservative,
        above=in_print[other],
    ),
)

# %% tags=["hide-input"]
run.why("saco-ig-magnitude", *why("|IG|"))

# %% [markdown]
# ## The order of the explainers
#
# Do the ten stand in the order of the paper's Table 2? The rank correlation between their mean SaCo here and the ten printed
# numbers, at each $K$ and in three readings: all with the sign that they have, Integrated Gradients and Conservative LRP as
# magnitudes, and without these two. 1 is the paper's order, 0 none of it. In brackets: 95 % intervals over the images; the printed
# numbers are fixed.

# %% tags=["hide-input"]
readings = {
    "with signs": {name: name for name in explainers},
    "as magnitudes": {name: f"|{name}|" if name in transformers.SIGNED else name for name in explainers},
    "without the two": {name: name for name in explainers if name not in transformers.SIGNED},
}


def like_the_paper(k, called):
    """The rank correlation of the explainers' means with the printed numbers, by the names that they have here."""
    numbers = {here: printed_means.loc[k, name] for name, here in called.items()}
    return stats.like_numbers("explainer", numbers, metric=f"SaCo, K = {k}")


printed_means = table2.pivot(index="groups", columns="explainer", values="mean")
agreement = pd.DataFrame(
    {"groups": f"K = {k}", "reading": reading} | tables.interval(stats.estimate(both, like_the_paper(k, called)))
    for k in printed_means.index.intersection(numbers_of_groups)
    for reading, called in readings.items()
)
run.save(agreement, "agreement")
tables.compared(agreement, rows=["groups"], columns=["reading"], order=[*agreement["groups"], *readings])

# %% tags=["hide-input", "headline"]
change_of = {name: stats.paired(scores, *pair, explainer=name) for name in explainers}
down, up = (
    sum(bool(of) for of in ends) for ends in zip(*((e.low > 0, e.high < 0) for e in change_of.values()), strict=True)
)
mean_fall = stats.estimate(
    scores,
    cells=[{"explainer": name, "metric": metric} for metric in (few, many) for name in explainers],
    contrasts=torch.tensor([[1.0] * len(explainers) + [-1.0] * len(explainers)]) / len(explainers),
)
agrees = [
    f"{tables.number(stats.estimate(scores, like_the_paper(K, of)))} {reading}" for reading, of in readings.items()
]
agrees[-1] = agrees[-1].replace(
    "the two", f"{summaries.listed(transformers.SIGNED)}, whose signs the paper leaves open"
)
Markdown(
    f"**{'Yes' if down + up else 'Not clearly'}.** From {numbers_of_groups[0]} to {numbers_of_groups[-1]} groups the "
    f"SaCo of {down} of {len(explainers)} explainers clearly falls and of {up} clearly rises, "
    f"a mean fall of {tables.number(mean_fall)}. Their order agrees with the paper's Table 2 at K = {K} by {summaries.listed(agrees)}, "
    f"a rank correlation over {mean_fall.images:,} images."
)

# %% tags=["hide-input"]
run.finish()
