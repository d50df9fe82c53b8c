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
# # What does each metric do to one image?
#
# Every metric of this study does the same three things. It takes something away from an image, asks the network what it
# sees now, and makes one number of the answers. They differ in *what* is taken away, in *which network* is asked, and in
# *how* the number comes out. Here all of them meet the same photograph and the same explanation. A random ranking of the
# pixels stands beside it, as a control: it knows nothing.

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
profile = "study"  # as the book shows it; or quick, smoke, paper: see notebooks/profiles.yml
training = {}  # what differs from the recipe of the study's network, such as {"epochs": 5}: see faithstudy.recipes
tuning = {}  # the same of its fine-tuning on random masks
training_seed = 0  # of both networks
image = 0  # how many of the test images that both networks recognise are passed over
explainer = "gradcam"  # what explains it: see faithlab.explainers
size = 0.3  # of the explanation, in the pictures of R- and F-Fidelity: a share of the pixels
seed = 0  # of the random ranking

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from IPython.display import Markdown
from torch import nn

from faithlab import engine, stats
from faithlab.metrics import METRICS, evaluate, few_class, obstacles, saco
from faithlab.outputs import correct, logit, probability
from faithstudy import plots, recipes, tables
from faithstudy.data import datasets
from faithstudy.run import Run
from faithstudy.trials import baselines, tasks

plots.theme()
run = Run("across/one-image", globals())

# %% [markdown]
# ## One image, one explanation, one control
#
# The image is not chosen for its numbers: it is the first one of the test set that both networks recognise, the original
# and its companion that was fine-tuned on images with missing pixels. A feature is a pixel. The explanation ranks the
# pixels by how much they speak for the class.

# %% tags=["hide-input"]
pair = recipes.pair(recipes.RESNET9, training_seed, training=training, tuning=tuning)
test = datasets.load("cifar10", "test")
places = tasks.recognised(list(pair.values()), image + 1, test, least=image + 1)[-1:]
task = tasks.task(pair["original"], places, tuned=pair["fine-tuned"], name="ResNet-9", data=test)
task, stand_in = baselines.perturbed(task, test)  # for Few-class Fidelity
name = {"gradcam": "Grad-CAM"}.get(explainer, explainer)
rankings = tasks.attributions(task, {name: explainer, "random": ("random", {"seed": seed})})
label, side = test.classes[int(task.target)], task.x.shape[-1]

# %% mystnb={"figure": {"caption": "The image, what the explanation calls relevant (brighter is more relevant), and the control: a random ranking of the pixels.", "name": "one-image-maps"}, "image": {"alt": "Three small pictures: a photograph, a map of relevance with a bright region, and a map of random dots."}} tags=["hide-input"]
maps = [of.view(side, side) for of in rankings.values()]
plots.pictures([[baselines.intensities(test, task.images)[0], *maps]], above=[[label, *rankings]], size=(5.4, 2.1))

# %% [markdown]
# Nothing below is drawn by hand. The metrics of the library run, and this page listens: it keeps the masks that they ask
# about, and the answers. The pictures are what the engine hands to a network for these masks, turned back into colours.


# %% tags=["hide-input"]
def heard(metric, ranking, **options):
    """What a metric asks about a ranking: keep-masks [N, F], the answers [N], and the number that it makes of them."""
    asked, kept = METRICS[metric].given(**options), []
    score = task.score(asked.output, asked.baseline, asked.network, exact=asked.exact)

    def listening(keep, positions=None):
        answers = score(keep, positions)
        kept.append((keep[0], answers[0].double()))
        return answers

    listening.classes = score.classes
    value = asked.measure(listening, task, rankings[ranking]).value[0]
    return *map(torch.cat, zip(*kept, strict=True)), value


def seen(keep, reference):
    """What the engine makes of keep-masks [N, F], [N, C, H, W]: its network gives the inputs back."""
    found = []
    options = {"segments": task.segments, "baseline": task.baselines[reference]}
    output = lambda logits, target: found.append(logits[0]) or logits[..., 0]  # noqa: E731
    engine.scorer(nn.Flatten(), task.x, task.target, output=output, **options)(keep[None])
    return torch.cat(found).view(-1, *task.x.shape[1:])


def colours(seen):
    """The same as pictures."""
    mean, std = (torch.tensor(numbers).to(seen).view(-1, 1, 1) for numbers in (test.mean, test.std))
    return (seen * std + mean).clamp(0, 1)


def strip(rows, above, reference, height, asked=("original",)):
    """Pictures of keep-masks [N, F], a row each. Below: the probability of the class, and whether it is recognised."""
    below = []
    for keep in rows.values():
        found = {of: task.score((probability, correct), reference, of)(keep[None])[0].tolist() for of in asked}
        said = [[f"{of} " * (len(asked) > 1) + f"{p:.2f} {'✓' if h else '✗'}" for p, h in found[of]] for of in asked]
        below.append(["\n".join(of) for of in zip(*said, strict=True)])
    pictures = [list(colours(seen(keep, reference))) for keep in rows.values()]
    return plots.pictures(pictures, above=[above], below=below, beside=list(rows), size=(7.5, height))


# %% tags=["hide-input"]
deleted = {(metric, ranking): heard(metric, ranking) for metric in ("AOPC", "Comp.") for ranking in rankings}
keep, p, _ = deleted["AOPC", name]
again = task.model(seen(keep, "mean")).softmax(1)[:, int(task.target)]
rises = (p.diff() > 0).tolist()
Markdown(
    f"The network says *{label}* with a probability of **{p[0]:.2f}**. Is a picture what the network was asked about? "
    f"Given the pictures of the next section, it answers what the metric was told, to {(again - p).abs().max():.7f}."
)

# %% [markdown]
# ## Deletion: take away more and more
#
# Remove the first tenth of the ranking, then two tenths, and so on to all of it. A good explanation names what matters, so
# the class should be lost soon. From the other end, the class should live long.

# %% mystnb={"figure": {"caption": "What is removed, and what the network says: the probability of the class, and whether it is still recognised (\u2713) or lost (\u2717). First row: the most relevant pixels go first. Second row: the least relevant go first. Third row: the control. Removed pixels get the image's mean colour.", "name": "one-image-deletion"}, "image": {"alt": "Three rows of seven copies of the photograph with more and more pixels replaced by a flat colour. With the most relevant pixels first a region disappears; with the random ranking dots all over the image do. The probability of the class stands below each."}} tags=["hide-input"]
ways = {f"{name}\nmost first": ("AOPC", name), f"{name}\nleast first": ("Comp.", name), "random": ("AOPC", "random")}
steps = [0, 1, 2, 3, 5, 7, 9]
strip({row: deleted[of][0][steps] for row, of in ways.items()}, [f"{10 * k} % removed" for k in steps], "mean", 4.1)

# %% [markdown]
# Move the slider: more is removed, and each point walks along its curve. At its right end the mean loss of the first row is
# **AOPC**, that of the second row **Comp.**

# %% tags=["hide-input"]
alive = {way: task.score(correct, "mean", exact=True)(deleted[of][0][None])[0].bool() for way, of in ways.items()}
shares = {way: (~deleted[of][0]).double().mean(1) for way, of in ways.items()}
plots.removal(
    {
        way.replace("\n", ", "): (colours(seen(deleted[of][0], "mean")), deleted[of][1], alive[way])
        for way, of in ways.items()
    },
    shares["random"],
    across="share of pixels removed",
    down="probability of the class",
    alt="Three rows of eleven copies of the photograph, from whole to wholly removed, as in the figure above.",
)

# %% mystnb={"figure": {"caption": "How the number comes out. A bar is what the probability has lost at a step; AOPC, and Comp. from the other end, are the mean length of the eleven bars. Crosses: the class is lost. AOPC is better when high, Comp. when low.", "name": "one-image-area"}, "image": {"alt": "Three bar charts of the probability lost against the share of pixels removed, with the remaining probability as a line. The title of each says its mean: AOPC of the explanation, Comp. of the explanation, and AOPC of the random ranking."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(7.5, 3.0), sharey=True)
for axes, (way, of) in zip(panels, ways.items(), strict=True):
    (_, p, value), share, kept = deleted[of], shares[way], alive[way]
    axes.bar(share, p[0] - p, 0.085, bottom=p, color=plots.COLOURS["Random"], alpha=0.35, linewidth=0)
    axes.plot(share, p, color="0.35", linewidth=1)
    axes.plot(share[kept], p[kept], "o", color=plots.COLOURS["F-Fidelity"], label=f"still {label}")
    axes.plot(share[~kept], p[~kept], "X", color=plots.COLOURS["Random"], label="class lost")
    axes.set_title(f"{way}\n{of[0]} = {value:.2f}".replace("\n", ", ", way.count("\n")), fontsize="small")
    axes.set_xlabel("share of pixels removed", fontsize="small")
panels[0].set(ylabel="probability of the class", ylim=(0, 1.06))
plots.key(figure, panels[0])
plots.show(figure)

# %% [markdown]
# The others of this family read such pictures in another way. **AUC** counts only ✓ and ✗: the area under the share of
# images that are still recognised. **LOdds** reads the log-odds in place of the probability. **Fid+** counts each ✓ that is
# lost, **Fid−** the same from the other end. **MoRF** and **LeRF** go pixel by pixel and add the probabilities up;
# **LeRF − MoRF** is the area between the two, and **Insertion** is LeRF read backwards. **ROAR** trains the network anew
# without the pixels before it asks. More: [](../../book/saco/idea), [](../../book/trace/idea).

# %% tags=["hide-input"]
Markdown(
    "Look at the first row once more. Each picture shows less of the image than the one before, "
    f"{'and yet' if any(rises) else 'and'} the probability *rises* at **{sum(rises)}** of the {len(rises)} steps. A grey patch is "
    "something to see, too, and the network has never learned what it means. Does it miss the pixels, or is the image "
    "merely strange to it? That is the objection to the whole family. The next metrics are answers to it."
)

# %% [markdown]
# ## R- and F-Fidelity: take away little, at random
#
# **Fid+** removes all of the top pixels. **RFid+** removes a random half of them, fifty times, and counts how often the
# class is lost. **FFid+** does the same but never removes more than a tenth of all pixels, and asks a companion of the
# network that was trained on images with as many missing: such images shall no longer be strange to it.

# %% mystnb={"figure": {"caption": "The same top pixels, three ways to remove them; two random draws of RFid+ and FFid+ each. Above: how many pixels are gone. Below: the probability of the class, by the original network and by its fine-tuned companion. Fid+ and RFid+ ask the original, FFid+ the companion.", "name": "one-image-subsets"}, "image": {"alt": "Two rows of five copies of the photograph, for the explanation and for a random ranking. Fid+ removes all of the top pixels, RFid+ half of them as scattered dots, FFid+ far fewer. The answers of both networks stand below each."}} tags=["hide-input"]
columns = [("Fid+", 0), ("RFid+", 0), ("RFid+", 1), ("FFid+", 0), ("FFid+", 1)]
drawn = {r: torch.stack([heard(m, r, sizes=(size,))[0][k] for m, k in columns]) for r in rankings}
words = [f"{m}: {gone} pixels" for (m, _), gone in zip(columns, (~drawn[name]).sum(1).tolist(), strict=True)]
rows = {f"{ranking}, top {100 * size:.0f} %": keep for ranking, keep in drawn.items()}
strip(rows, words, "zero", 4.2, ("original", "fine-tuned"))

# %% mystnb={"figure": {"caption": "Left: how much is removed. Fid+ removes the whole explanation, RFid+ half of it, FFid+ stops at its cap. From there on it has a plateau: what still changes is where the pixels are removed, no longer how many. Middle and right: what the network that is asked loses, read here as a probability.", "name": "one-image-plateau"}, "image": {"alt": "Three line charts against the explanation size: the share of pixels removed, which for FFid+ is flat from its cap on, and the probability lost for the explanation and for the random ranking, which rises with what is removed and stays low for FFid+."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(7.5, 2.9), sharey=True)
lost = []
for metric, style in {"Fid+": "-", "RFid+": "--", "FFid+": "-."}.items():
    sizes = METRICS[metric].sizes
    removed = [(~heard(metric, name, sizes=(s,), draws=1)[0][0]).double().mean().item() for s in sizes]
    curves = {r: METRICS[metric].given(output=probability)(task, of)[0] for r, of in rankings.items()}
    lost.append(pd.DataFrame({"metric": metric, "size": sizes, "removed": removed, **curves}))
    for axes, curve in zip(panels, (removed, *curves.values()), strict=True):
        axes.plot(sizes, curve, style, color=plots.COLOURS[METRICS[metric].family], label=metric)
for axes, title in zip(panels, ("share of pixels removed", *(f"{r}: probability lost" for r in rankings)), strict=True):
    axes.set_title(title, fontsize="small")
    axes.set_xlabel("explanation size (share)", fontsize="small")
panels[0].legend(fontsize="small")
run.save(pd.concat(lost), "lost")
plots.show(figure)

# %% [markdown]
# The registered metrics count ✓ and ✗: for one image such a curve is all steps, for many it is smooth. Whether the companion
# is less surprised cannot be seen on one image either: [](../f-fidelity/images) asks many. What can be read off a plateau is a
# story of its own: [](../f-fidelity/explanation-size). The idea: [](../../book/f-fidelity/idea).
#
# ## SaCo: one group at a time, and bets on pairs
#
# Cut the ranking into ten groups of pixels. Remove each group *alone*, and note what is lost. The explanation has said how
# relevant each group is. So every two groups are a bet: the one that is said to matter more should cost more.

# %% mystnb={"figure": {"caption": "The image without one of the groups; group 1 is the most relevant.", "name": "one-image-groups"}, "image": {"alt": "Two rows of seven copies of the photograph, the first one whole, the others without one group: a region or a ring for the explanation, dots for the random ranking."}} tags=["hide-input"]
asked = {ranking: heard("SaCo", ranking)[0] for ranking in rankings}
some = [0, 1, 2, 3, 5, 8, 10]
strip({r: keep[some] for r, keep in asked.items()}, ["image", *(f"no group {k}" for k in some[1:])], "mean", 3.1)

# %% mystnb={"figure": {"caption": "Left: the groups. Middle: a point for each; an explanation that is right about them gives points that rise. Right: a cell for each pair, blue where the bet is won, red with a minus where it is lost; the darker, the higher the stake, which is how much more relevant one group is said to be. All stakes together are 1. SaCo is what is won minus what is lost.", "name": "one-image-bets"}, "image": {"alt": "For the explanation and the random ranking: a map of the groups, a scatter plot of a group's loss against its salience, and a triangle of pairs in blue, where the bet is won, and red, where it is lost; the sums stand above."}} tags=["hide-input"]
figure, grid = plt.subplots(2, 3, figsize=(7.6, 5.2), width_ratios=[0.85, 1.1, 1])
bets, groups = [], {}
for (ground, plane, table), (ranking, keep) in zip(grid, asked.items(), strict=True):
    of = groups[ranking] = saco.influences(task.score(probability, "mean", exact=True), rankings[ranking])
    s, d = of.salience[0], of.drop[0]
    i, j = torch.triu_indices(len(s), len(s), offset=1)
    signed = torch.where(d[i] >= d[j], s[i] - s[j], s[j] - s[i]) / (s[i] - s[j]).sum()
    won, gone = signed.clamp(min=0).sum(), signed.clamp(max=0).sum().abs()
    torch.testing.assert_close(won - gone, METRICS["SaCo"](task, rankings[ranking])[0])  # else the page stops here
    bets.append(pd.DataFrame({"explainer": ranking, "group": i + 1, "other": j + 1, "signed": signed}))
    ground.imshow((~keep[1:]).byte().argmax(0).view(side, side), cmap="viridis_r")
    ground.set(xticks=[], yticks=[], title=ranking)
    plane.scatter(s, d, c=range(len(s)), cmap="viridis_r", s=60, edgecolor="0.3")
    for k in range(len(s)):
        plane.annotate(
            k + 1, (s[k], d[k]), (0, -14 if k % 2 else 6), textcoords="offset points", fontsize=9, ha="center"
        )
    plane.margins(0.12)
    plane.set_xlabel("salience (said to matter)", fontsize="small")
    plane.set_ylabel("loss without the group", fontsize="small")
    cells = bets[-1].pivot(index="group", columns="other", values="signed")
    minus = cells.lt(0).replace({True: "−", False: ""})
    sns.heatmap(cells, cmap="RdBu", center=0, cbar=False, square=True, annot=minus, fmt="", ax=table)
    table.grid(False)
    table.tick_params(labelsize=9)
    table.set_title(f"SaCo: {won:.2f} − {gone:.2f} = {won - gone:.2f}".replace("= -", "= −"), fontsize="small")
    table.set_xlabel("said to matter less", fontsize="small")
    table.set_ylabel("said to matter more", fontsize="small")
run.save(pd.concat(bets), "bets")
plots.show(figure)

# %% [markdown]
# The sum of the cells is the library's SaCo to the last digits; the page would stop if it were not.
#
# Move the slider: a step to the right settles one bet more. The two pictures lack one group each. The steps add up to SaCo.

# %% tags=["hide-input"]
plots.bets(
    {ranking: (colours(seen(asked[ranking], "mean")), of, saco.bets(of)) for ranking, of in groups.items()},
    name="one-image-pairs",
    down=f"probability of {label}",
    alt=f"Two rows of copies of the photograph, whole and without each of {len(s)} groups of pixels: of the explanation and of a "
    "random ranking.",
)

# %% [markdown]
# The idea: [](../../book/saco/idea).
#
# ## Few-class Fidelity: until the network is undecided
#
# Which baseline should replace a removed pixel? A flat colour is an image, too, and the network has an opinion on it. Few-class
# Fidelity searches, for each image, a blurred copy on which the network is as undecided as can be, and takes the pixels of
# that. So there are two aims. With the most important pixels replaced, the probability should fall to chance, one in $N$
# classes, *at once*. With the least important replaced, it should stay at one.

# %% mystnb={"figure": {"caption": "The image turns into its perturbed copy, on which the network is undecided. MIF: the most important pixels first; LIF: the least important first.", "name": "one-image-perturbed"}, "image": {"alt": "Two rows of eight pictures: the photograph, its blurred copy, three steps of replacing the most important pixels first and three of the least important first, for the explanation and for the random ranking."}} tags=["hide-input"]
turned = {ranking: heard("Few-class Fidelity", ranking) for ranking in rankings}
end = len(turned[name][0]) // 2  # the answers of MIF come first, then as many of LIF
quarters = [end // 4, end // 2, 3 * end // 4]
words = [f"{way} {100 * k // (end - 1)} %" for way in ("MIF", "LIF") for k in quarters]
some = [0, end - 1, *quarters, *(end + k for k in quarters)]
strip({r: of[0][some] for r, of in turned.items()}, ["image", "perturbed", *words], "perturbed", 2.9)

# %% mystnb={"figure": {"caption": "Both curves and their aims (dotted). Shaded: what is missing. The number is 1 minus the two missing areas, divided by the largest that they can be together.", "name": "one-image-aims"}, "image": {"alt": "Two line charts of the probability against the share of pixels replaced: the curve of the least important first stays high and that of the most important first falls; dotted lines at one and at one in ten are the aims."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.3), sharey=True)
for axes, (ranking, (_, p, value)) in zip(panels, turned.items(), strict=True):
    areas = few_class.areas(task.score(probability, "perturbed"), rankings[ranking])
    for way, curve, area, aim, colour, style in (
        ("LIF", p[end:], areas.lif, 1, plots.COLOURS["F-Fidelity"], "-"),
        ("MIF", p[:end], areas.mif, 1 / areas.classes, plots.COLOURS["R-Fidelity"], "--"),
    ):
        share = torch.linspace(0, 1, end)
        axes.plot(share, curve, style, color=colour, label=f"{way}, area {area.item():.2f}")
        axes.fill_between(share, curve, aim, color=colour, alpha=0.15, linewidth=0)
        axes.axhline(aim, color=colour, linestyle=":")
    axes.set_title(f"{ranking}: Few-class Fidelity = {value:.2f}", fontsize="small")
    axes.set_xlabel("share of pixels replaced", fontsize="small")
    axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
panels[0].set_ylabel("probability of the class", fontsize="small")
plots.show(figure)

# %% tags=["hide-input"]
Markdown(
    f"On its perturbed copy the network gives *{label}* a probability of {turned[name][1][end - 1]:.2f}; chance is "
    f"{1 / areas.classes:.2f}. Over all classes its answer is {stand_in.uncertainty.item():.3f} away from chance on average."
)

# %% [markdown]
# The idea: [](../../book/few-class-fidelity/idea).
#
# ## µFidelity: does the sum say what is lost?
#
# Draw a random set of pixels, without a look at the explanation. Add up what the explanation says of them. Remove them, and
# see what the network's answer loses. Do so a hundred times. If the sums are right, large sums go with large losses: the
# correlation is the number. It is a noisy one: with a hundred sets,
# chance alone makes correlations of up to about 0.2.

# %% mystnb={"figure": {"caption": "A point for each random set of pixels: the sum of its relevance against what the logit of the class loses without it. \u00b5Fidelity is the correlation.", "name": "one-image-sums"}, "image": {"alt": "Two scatter plots of the loss against the sum of relevance, one for the explanation and one for the random ranking; both are clouds with little slope."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.0), sharey=True)
for axes, ranking in zip(panels, rankings, strict=True):
    keep, answers, value = heard("µFidelity", ranking)
    whole = task.score(logit, exact=True)(torch.ones_like(keep[None, :1])).item()
    total = (~keep).double() @ rankings[ranking][0].double()
    torch.testing.assert_close(stats.pearson(total, whole - answers), value)  # else the page stops here
    axes.scatter(total, whole - answers, s=16, color=plots.COLOURS["SaCo"], alpha=0.7, linewidth=0)
    axes.set_title(f"{ranking}: µFidelity = {value:.2f}".replace("= -", "= −"), fontsize="small")
    axes.set_xlabel("sum of the relevance of the set", fontsize="small")
panels[0].set_ylabel("logit lost without the set", fontsize="small")
plots.show(figure)

# %% [markdown]
# ## Those that need more than one image and one network
#
# **ReCo** and **MeGe** compare explanations of the same image by several networks, each trained on another part of the data:
# do those that agree on the class give the same reasons? See [](../../book/reco-mege/idea). **Stability** ($S_\text{avg}$)
# compares an explanation with those of images that differ a little; see [](../reco-mege/normal). None of them removes a
# pixel, and one image with one network has no such number.
#
# ## All of them, on this image

# %% mystnb={"figure": {"caption": "One photograph through six metrics. Left: three of the images that each asks about, made with an explanation, and the probability of the class that is left. Right: the question, and the number that comes out, beside that of a random ranking; for all six higher is better. This is one image: a single image's number is noise, and may prefer the random ranking; the trials Chance and Order (one image) of the examination count how often. RFid+ and FFid+ are read as a probability, at one size.", "name": "one-image-all"}, "image": {"alt": "Six rows, one for each family of metrics: three altered copies of the photograph and beside them the question that is asked and the number that comes out, for the explanation and for a random ranking."}} tags=["hide-input", "answer"]
some = {  # of the images that a metric asks about, and what is changed in them
    "AOPC": {"top 10 %": 1, "top 30 %": 3, "top 50 %": 5},
    "RFid+": (draws := {"draw 1": 0, "draw 2": 1, "draw 3": 2}),
    "FFid+": draws,
    "SaCo": {"group 1": 1, "group 3": 3, "group 10": 10},
    "Few-class Fidelity": {"top 25 %": quarters[0], "top 75 %": quarters[2], "last 75 %": end + quarters[2]},
    "µFidelity": draws,
}
questions = {
    "AOPC": "Take away more and more, the most relevant\nfirst. How fast is the class lost?",
    "RFid+": f"Take away a random half of the top {100 * size:.0f} %.\nWhat is lost, on average?",
    "FFid+": "The same with fewer pixels, and ask a network\nthat is used to missing ones. What is lost?",
    "SaCo": "Take away one group at a time. Does the group\nthat is said to matter more cost more?",
    "Few-class Fidelity": "Put in pixels that leave the network undecided.\nIs it undecided soon, and sure for long?",
    "µFidelity": "Take away random pixels. Does the sum of\ntheir relevance say what is lost?",
}
figure, grid = plt.subplots(len(some), 4, figsize=(7.5, 8.6), width_ratios=[1, 1, 1, 3.5])
for row, (metric, places) in zip(grid, some.items(), strict=True):
    by, title = METRICS[metric], "Deletion" if metric == "AOPC" else METRICS[metric].family or metric
    found = {r: heard(metric, r, **({"sizes": (size,), "output": probability} if by.sizes else {})) for r in rankings}
    keep = found[name][0][list(places.values())]
    answers = task.score(probability, by.baseline, by.network)(keep[None])[0].tolist()
    for axes, picture, what, p in zip(row, colours(seen(keep, by.baseline)), places, answers, strict=False):
        axes.imshow(picture.permute(1, 2, 0))
        axes.set(xticks=[], yticks=[])
        axes.set_xlabel(f"{what}: {p:.2f}", fontsize=9)
    numbers = ", ".join(f"{r} {of[2].item():.2f}" for r, of in found.items()).replace(" -", " −")
    row[3].axis("off")
    row[3].text(0, 1, title, va="top", fontsize=10, fontweight="bold")
    row[3].text(0, 0.78, questions[metric], va="top", fontsize=10)
    row[3].text(0, 0.3, f"{metric}: {numbers}", va="top", fontsize=10, color=plots.COLOURS["F-Fidelity"])
figure.suptitle(f"The whole photograph: {label}, probability {deleted['AOPC', name][1][0]:.2f}", fontsize=10)
plots.show(figure)

# %% [markdown]
# Every registered metric that applies, as it is defined, on this image; a curve over sizes is its mean height. *Chance* is
# the mean over random rankings and *ideal* the number of a perfect explanation, where they are known. *Asks* is how many
# masked images a metric asks about for one explanation.

# %% tags=["hide-input"]
scores = evaluate(METRICS, task, rankings)
run.save(scores, "scores")
listing = []
for metric in scores.labels("metric"):
    m = METRICS[metric]
    of = {r: float(stats.estimate(scores, m.summary, metric=metric, explainer=r)) for r in rankings}
    ahead = m.better * (of[name] - of["random"])
    told = {"metric": metric, "good is": "high" if m.better > 0 else "low", **of}
    told["ahead"] = "equal" if ahead == 0 else name if ahead > 0 else "random"
    listing.append({**told, "chance": m.chance, "ideal": m.ideal, "asks": m.forward_passes(task.segments.numel())})
numbers = pd.DataFrame(listing)
run.save(numbers, "numbers")
digits = dict.fromkeys(rankings, lambda value: f"{value:.3g}".replace("-", "−"))
tables.styled(numbers.set_index("metric").rename_axis(None)).format(digits, precision=0, na_rep="–")

# %% tags=["hide-input"]
count = numbers["ahead"].value_counts()
absent = pd.Series({metric: why for (_, metric), why in obstacles(METRICS, task, {name: 0}).items()})
Markdown(
    f"{name} is ahead of the random ranking in **{count.get(name, 0)}** of {len(numbers)} numbers, behind in "
    f"**{count.get('random', 0)}**, equal in **{count.get('equal', 0)}**. These are not so many votes: some read the same "
    "pictures, and Insertion is LeRF. Not in the table: "
    + "; ".join(f"{', '.join(of.index)} ({why})" for why, of in absent.groupby(absent, sort=False))
    + "."
)

# %% tags=["hide-input", "headline"]
Markdown(
    f"**It takes something away, asks, and makes one number of the answers**: of this photograph (*{label}*) {name} is ahead of a "
    f"random ranking of the pixels in **{count.get(name, 0)} of {len(numbers)}** numbers, behind in {count.get('random', 0)}, equal in "
    f"{count.get('equal', 0)}. One image proves nothing (one ResNet-9, one draw of the random ranking)."
)

# %% [markdown]
# **One image proves nothing.** Another image, another network or another draw of the control gives other numbers, and may
# turn them round: try `image=6`. And no picture says which of the numbers is right. That takes questions with a known answer, many images and
# intervals: [](../across/examination).

# %% tags=["hide-input"]
run.finish()
