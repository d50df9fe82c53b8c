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
# # Does the engine answer for your network?
#
# The engine runs a copy of a network that was made fast: BatchNorm is folded into the layer before it, weights are laid out
# for the processor, and the precision may be lower. Before it is used, the copy is compared with the network itself, on the
# inputs that it is given, whole and masked. Where answers differ by more than rounding, the change is taken back, and a
# warning says so.
#
# This page makes the comparison for one network of each family that torchvision and timm list. The weights are random: what
# is tested is the computation.

# %% [markdown]
# ## Parameters
#
# Your own network is checked the same way: `faithlab.prepare.prepare(model, x)` tells what this table tells.

# %% tags=["parameters"]
profile = "study"  # the recorded run; quick, smoke or paper: see notebooks/profiles.yml
# Library, name there, side of the image.
networks = ["torchvision alexnet 64", "torchvision convnext_tiny 32", "torchvision densenet121 32", "torchvision efficientnet_b0 32", "torchvision googlenet 32", "torchvision inception_v3 75", "torchvision mnasnet0_5 32", "torchvision mobilenet_v2 32", "torchvision mobilenet_v3_small 32", "torchvision regnet_y_400mf 32", "torchvision resnet18 32", "torchvision resnext50_32x4d 32", "torchvision shufflenet_v2_x0_5 32", "torchvision squeezenet1_1 32", "torchvision swin_t 32", "torchvision swin_v2_t 32", "torchvision vgg11_bn 32", "timm resnet10t 32", "timm resnetv2_18 32", "timm regnetx_002 32", "timm efficientnet_lite0 32", "timm mobilenetv3_small_050 32", "timm mobilenetv4_conv_small_035 32", "timm mnasnet_small 32", "timm ghostnet_050 32", "timm convnext_atto 32", "timm convmixer_768_32 32", "timm cspresnet50 32", "timm dla46_c 32", "timm dpn48b 32", "timm ese_vovnet19b_dw 32", "timm hrnet_w18_small 32", "timm inception_next_atto 32", "timm nf_resnet26 32", "timm rexnetr_100 32", "timm repvgg_a0 32", "timm repghostnet_050 32", "timm fastvit_t8 64", "timm fasternet_t0 32", "timm efficientformerv2_s0 64", "timm efficientvit_b0 32", "timm efficientvit_m0 64", "timm edgenext_xx_small 64", "timm mobilevit_xxs 64", "timm mobilevitv2_050 64", "timm poolformer_s12 32", "timm pvt_v2_b0 32", "timm pit_ti_224 64", "timm coat_lite_tiny 64", "timm xcit_nano_12_p16_224 64", "timm vit_tiny_patch16_224 32", "timm mixer_s32_224 64"]  # fmt: skip
images = 3
masks = 4  # per image, one of which keeps everything
seed = 0

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import timm
import torch
import torchvision
from IPython.display import Markdown
from torch import nn

from faithlab import engine, prepare, segments
from faithstudy import plots, tables
from faithstudy.run import Run

plots.theme()
run = Run("cost/models", globals())

# %% [markdown]
# ## The check
#
# Each BatchNorm gets random scales and shifts and the statistics of random images, each head random weights, so that a wrong
# fold would be seen. Then the engine scores masked images, and the network itself is asked about the same images masked by
# hand, one at a time, in eval mode. The difference is reported as a part of the spread of the logits (largest distance of
# a logit from its row's mean); the rounding of float32 is about $10^{-7}$ per operation. *Depends* is by how much of the
# spread the logits vary with the mask of one image: where this is not far above the difference, nothing is compared.

# %% tags=["hide-input"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CLASSES = 10


def built(library, name, side):
    """A network with random weights whose BatchNorms do something, in eval mode."""
    torch.manual_seed(seed)
    if library == "torchvision":
        options = {"image_size": side} if name.startswith("vit") else {}
        options |= {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        network = torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **options)
    else:
        try:
            network = timm.create_model(name, num_classes=CLASSES, img_size=side)
        except TypeError:  # convolutional networks take any side
            network = timm.create_model(name, num_classes=CLASSES)
    norms = [module for module in network.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    network.eval()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Linear) and not module.weight.any():
                nn.init.normal_(module.weight, std=0.1)
        for norm in norms:
            norm.weight.uniform_(0.5, 1.5)
            norm.bias.normal_(std=0.3)
            norm.train().momentum = 1.0  # the statistics of the images below; the rest stays in eval mode
        network(torch.randn(8, 3, side, side))
        for norm in norms:
            norm.running_mean += 0.2 * norm.running_var.sqrt() * torch.randn_like(norm.running_mean)
            norm.running_var *= torch.empty_like(norm.running_var).uniform_(0.7, 1.4)
    return network.to(device).eval(), len(norms)


@torch.no_grad()
def compared(entry):
    """The engine's answers beside the network's own."""
    library, name, side = entry.split()
    side = int(side)
    network, norms = built(library, name, side)
    x = torch.randn(images, 3, side, side, generator=torch.Generator().manual_seed(seed)).to(device)
    patches = segments.patches(side, side, side // 4) if side % 4 == 0 else segments.pixels(side, side)
    count = segments.count(patches)
    keep = torch.rand(images, masks, count, generator=torch.Generator().manual_seed(seed)).to(device) < 0.6
    keep[:, 0] = True
    target = torch.zeros(images, dtype=torch.int64, device=device)
    mixture = torch.randn(CLASSES, generator=torch.Generator().manual_seed(seed)).to(device)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        score = engine.scorer(network, x, target, segments=patches, output=lambda logits, target: logits @ mixture)
        prepared = prepare.prepare(network, x)  # as the scorer does
    shown = segments.spread(keep, patches)[:, :, None]
    asked = [[network(torch.where(show, image, 0)[None])[0] for show in of] for of, image in zip(shown, x, strict=True)]
    own = torch.stack([torch.stack(rows) for rows in asked])
    spread, mixed = (own - own.mean(-1, keepdim=True)).abs().max(), own @ mixture
    return {
        "library": library,
        "network": name,
        "side": side,
        "weights": sum(parameter.numel() for parameter in network.parameters()),
        "difference": ((score(keep) - mixed).abs().max() / spread).item(),
        "depends": (mixed.std(1).max() / spread).item(),
        "batchnorms": norms,
        "folded": len(prepared.folded),
        "said": "; ".join(dict.fromkeys(str(w.message) for w in said if "faithlab" in w.filename)) or "–",
    }


def again():
    """Some of the networks once more, without the differences, which are rounding and another on each processor."""
    return pd.DataFrame([compared(entry) for entry in networks[::13]]).drop(columns="difference")


found = run.table("models", lambda: pd.DataFrame([compared(entry) for entry in networks]), again=again)
worst = found.loc[found["difference"].idxmax()]
largest = f"{worst['difference']:.0e}".replace("-", "−")
Markdown(
    f"{len(found)} networks. The largest difference between the engine and a network is **{largest}** of the "
    f"spread of its logits ({worst['library']}'s {worst['network']}). {(found['folded'] > 0).sum()} of the "
    f"{(found['batchnorms'] > 0).sum()} networks with BatchNorm run with some or all of it folded."
)

# %% tags=["hide-input", "headline"]
tells = (found["depends"] / found["difference"].clip(lower=torch.finfo(torch.float32).eps)).min()
rounded = float(f"{worst['difference']:.0e}")
at_most = f"{rounded:.10f}".rstrip("0").rstrip(".")  # one digit, without a power of ten
Markdown(
    f"**{'For' if tells >= 100 else 'Not for all of'} {len(found)} networks of torchvision and timm, one of a family**: the largest difference between the "
    f"engine's answers and a network's own is **{at_most}** of the spread of its logits ({worst['library']}'s {worst['network']}); masks change the "
    f"answers of each about {float(f'{tells:.0e}'):,.0f} times as much as the engine does, or more ({images} images, {masks} masks of each, "
    "random weights, no interval). Yours is compared in the same way before it is used."
)

# %% mystnb={"figure": {"caption": "Largest difference between the engine and the network itself, as a part of the spread of the logits, and how much of the spread the answers vary with the mask. One pair of points for each network.", "name": "cost-models"}, "image": {"alt": "Dot plot with a logarithmic axis: for each network the difference between engine and network, mostly near one in a million, and far to its right how much the answers depend on the mask."}} tags=["hide-input", "answer"]
figure, axes = plt.subplots(figsize=(3.6, 1 + 0.19 * len(found)))  # as narrow as a phone
floor = torch.finfo(torch.float32).eps / 8  # where a difference is none
long = found.melt(["network"], ["difference", "depends"], var_name="what", value_name="part of the spread")
long["what"] = long["what"].map(
    {"difference": "engine and network differ by", "depends": "the mask changes answers by"}
)
long["part of the spread"] = long["part of the spread"].clip(lower=floor)
sns.scatterplot(long, x="part of the spread", y="network", hue="what", style="what", ax=axes)
axes.set_xscale("log")
axes.set(ylabel=None, ylim=(len(found) - 0.4, -0.6))
axes.xaxis.label.set_fontsize("small")
axes.tick_params(labelsize="small")
axes.get_legend().remove()
plots.key(figure, axes)
plots.show(figure)

# %% tags=["hide-input"]
tables.prose(
    found.assign(
        difference=found["difference"].map("{:.0e}".format).str.replace("-", "−"),
        depends=found["depends"].map("{:.1g}".format),
        folded=(found["folded"].astype(str) + " of " + found["batchnorms"].astype(str)).replace(
            "0 of 0", "none to fold"
        ),
    )[["library", "network", "difference", "depends", "folded", "said"]]
)

# %% [markdown]
# *Folded* counts the BatchNorms that became part of the layer before them. A BatchNorm that stays costs time, never
# accuracy: timm's `BatchNormAct2d`, which has an activation inside, and one that comes first in its block, or after a sum.

# %% tags=["hide-input"]
run.finish()
