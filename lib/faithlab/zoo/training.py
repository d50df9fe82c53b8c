"""Trained networks by their full recipe: the same recipe is trained once, and any change of it is another network.

Training is resumable: after every epoch the state is written beside the weights, and a killed run goes on from there
to the same weights that an uninterrupted one reaches, because each epoch draws from a generator of its own.
"""

import dataclasses
import hashlib
import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from tqdm import tqdm

from faithlab import draws, masks
from faithlab import segments as segment_maps
from faithlab.zoo import cache, datasets, degradation, models
from faithlab.zoo.sets import LabelledSet

_FORMAT = 2  # raise it when training itself changes, so that old weights are not taken for new ones
_BLOCKS = 1  # seed of the blocks
_OPTIMISERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Everything that decides a network's weights.

    Attributes:
        data: a data set of `faithlab.zoo.datasets`, with its `data_options`.
        model: a network of `faithlab.zoo.models`, with its `model_options`.
        epochs: passes over the training split.
        rate: peak learning rate of the optimiser.
        decay: its weight decay.
        optimiser: "adam", or "adamw", whose decay does not pass through the gradient's scale.
        schedule: "constant", or "cycle": linear warm-up over the first fifth, then cosine to zero.
        batch: examples per step.
        limit: only the first so many training examples; None: all.
        fold: (i, k): block i of k of these examples is left out, see `blocks`; None: no block is.
        switched: share of the training labels that are switched to another class, see `degradation.switched`.
        augment: images only: random shifts by up to 4 pixels, and mirroring.
        mask_share: beta of F-Fidelity's eq. 5: in each example a uniformly drawn number of features (pixels, time
            steps, tokens), 0 up to this fraction of them, is removed; 0: none.
        mask_channels: only the first so many channels are masked, as in the public code of F-Fidelity, whose masks
            reach one; None: all.
        mask_exactly: every example loses that fraction, as in the public code of F-Fidelity, not up to it.
        orders: ROAR: the name of stored orders of each training example's features, see `keep_orders`; every time an
            example is seen it lacks the first features of its order, a share drawn uniformly from 0 to 1. None: whole.
        start: the recipe whose weights training starts from (fine-tuning); None: fresh weights.
        precision: "float32" or "bfloat16" (mixed, by autocast).
        seed: of fresh weights, order, augmentation and masks.
    """

    data: str
    model: str
    epochs: int
    data_options: dict = dataclasses.field(default_factory=dict)
    model_options: dict = dataclasses.field(default_factory=dict)
    rate: float = 1e-3
    decay: float = 1e-4
    schedule: Literal["constant", "cycle"] = "cycle"
    optimiser: Literal["adam", "adamw"] = "adam"
    batch: int = 128
    limit: int | None = None
    fold: tuple[int, int] | None = None
    switched: float = 0.0
    augment: bool = False
    mask_share: float = 0.0
    mask_channels: int | None = None
    mask_exactly: bool = False
    orders: str | None = None
    start: "Recipe | None" = None
    precision: Literal["float32", "bfloat16"] = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.mask_share <= 1:
            raise ValueError(f"expected mask_share between 0 and 1, but got {self.mask_share}")
        if not 0 <= self.switched <= 1:
            raise ValueError(f"expected a share of switched labels between 0 and 1, but got {self.switched}")
        if self.fold is not None and not 0 <= self.fold[0] < self.fold[1]:
            raise ValueError(f"expected a fold (i, k) with 0 <= i < k, but got {tuple(self.fold)}")
        if self.epochs < 1 or self.batch < 1:
            raise ValueError(f"expected at least one epoch and one image a step, but got {self.epochs}, {self.batch}")
        if self.precision not in ("float32", "bfloat16") or self.schedule not in ("constant", "cycle"):
            raise ValueError(f"unknown precision {self.precision!r} or schedule {self.schedule!r}")
        if self.optimiser not in _OPTIMISERS:
            raise ValueError(f"unknown optimiser {self.optimiser!r}; there are {', '.join(_OPTIMISERS)}")

    def key(self) -> str:
        """A name for the weights: data set, network, and a hash of the whole recipe."""
        text = json.dumps([_FORMAT, self._choices(), self._architecture()], sort_keys=True)
        return f"{self.data}-{self.model}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def _choices(self) -> dict:
        """What differs from the defaults: a field that is added later leaves the names of older weights alone."""
        chosen = {
            f.name: getattr(self, f.name) for f in dataclasses.fields(self) if getattr(self, f.name) != _default(f)
        }
        return chosen | ({"start": self.start._choices()} if self.start else {})

    def _architecture(self) -> str:
        """The network's layers, so that a change of its code is a change of the recipe."""
        with torch.device("meta"):
            return str(models.build(self.model, **self.model_options))


def _default(field: dataclasses.Field):
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def trained(recipe: Recipe, device: torch.device | str | None = None) -> nn.Module:
    """The network of a recipe in eval mode: from the cache, else trained (or its training resumed) and kept.

    Args:
        recipe: what to train.
        device: None: a CUDA device if there is one, else the CPU.

    Raises:
        RuntimeError: training diverged (the loss became NaN or infinite); nothing is kept of the diverged epoch.
    """
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    path = cache.folder() / "weights" / f"{recipe.key()}.safetensors"
    # The caller's random numbers must not depend on whether the weights were there.
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        with cache.lock(path):
            if not _whole(path):
                network = _train(recipe, device, path.with_suffix(".checkpoint"))
                about = {"recipe": json.dumps(dataclasses.asdict(recipe)), "torch": torch.__version__}
                with cache.write_atomically(path) as temporary:
                    save_file(_contiguous(network.state_dict()), temporary, metadata=about)
                path.with_suffix(".checkpoint").unlink(missing_ok=True)
        network = models.build(recipe.model, **recipe.model_options)
        network.load_state_dict(load_file(path))
    return network.to(device).eval()


def blocks(count: int, k: int) -> Tensor:
    """The block of each of the first `count` training examples, of k blocks of equal size (up to one): [count] int64.

    Of every k examples in a row each goes into another block, by chance. So an example keeps its block whatever the
    number of examples, and no regular order of the classes makes blocks that lack one.

    Raises:
        ValueError: fewer than two blocks, or more blocks than examples.
    """
    if not 2 <= k <= count:
        raise ValueError(f"expected at least 2 and at most {count} blocks of {count} examples, but got k={k}")
    rows = draws.permutations(_BLOCKS, torch.arange(-(-count // k)), torch.zeros(1), k)
    return rows.flatten()[:count]


def seen(recipe: Recipe, count: int) -> Tensor:
    """Which training examples a recipe's network is trained on, of the `count` of its data set: positions, int64 [n].

    Raises:
        ValueError: as `blocks`.
    """
    examples = torch.arange(count if recipe.limit is None else min(recipe.limit, count))
    if recipe.fold is None:
        return examples
    left_out, k = recipe.fold
    return examples[blocks(len(examples), k) != left_out]


@torch.inference_mode()
def logits(network: nn.Module, inputs: Tensor, rows: int = 256) -> Tensor:
    """A network's logits on clean inputs [N, *S], [N, C] float32, on the network's device."""
    device = next(network.parameters()).device
    return torch.cat([network(part.to(device)).float() for part in inputs.split(rows)])


def accuracy(network: nn.Module, data: LabelledSet, rows: int = 256) -> float:
    """The fraction of a data set that a network gets right."""
    right = 0
    for part in torch.arange(len(data)).split(rows):
        right += int((logits(network, data.model_inputs(part)).argmax(1).cpu() == data.labels[part]).sum())
    return right / len(data)


def keep_orders(name: str, make: Callable[[slice], Tensor], count: int, block: int = 2000) -> None:
    """Store an order of the features of each training example, for `Recipe.orders`; what is stored is not made again.

    Args:
        name: must identify everything the orders follow from.
        make: a slice of the training split -> the order of its examples, [n, F] int64, first to be removed first.
        count: number of examples.
        block: examples made and stored at a time. A killed run goes on after the last whole block.
    """
    for start in range(0, count, block):
        path = _orders_path(name, start)
        with cache.lock(path):
            if not _whole(path):
                order = make(slice(start, min(start + block, count))).cpu()
                with cache.write_atomically(path) as temporary:
                    save_file({"order": order.to(torch.int32)}, temporary)


def _orders_path(name: str, start: int) -> Path:
    return cache.folder() / "orders" / f"{name}.{start}.safetensors"


def _stored_orders(name: str, count: int) -> Tensor:
    """The orders of the first `count` training examples, [count, F] int32."""
    parts, found = [], 0
    while found < count:
        path = _orders_path(name, found)
        if not _whole(path):
            raise ValueError(f"the orders {name!r} hold {found} examples, not {count}; make them with keep_orders")
        parts.append(load_file(path)["order"])
        found += len(parts[-1])
    return torch.cat(parts)[:count]


def mask_features(
    x: Tensor,
    features: Tensor,
    share: float,
    generator: torch.Generator,
    *,
    present: Tensor | None = None,
    absent: float = 0,
    channels: int | None = None,
    exactly: bool = False,
) -> Tensor:
    """Remove a random subset of each example's features (F-Fidelity, eq. 5).

    Args:
        x: [n, *S].
        features: segment map, see `faithlab.segments`; F features.
        share: beta; each example loses a uniformly drawn number of features, 0 .. floor(beta * F).
        generator: on the CPU.
        present: [n, F] bool, which features an example has, and which `share` refers to; None: all.
        absent: the value that a removed feature gets.
        channels: images only: mask the first so many channels; None: all.
        exactly: each example loses floor(beta * F) features.

    Returns:
        [n, *S].
    """
    n, F = len(x), segment_maps.count(features)
    own = torch.full((n, 1), F) if present is None else present.sum(1, keepdim=True)
    most = (share * own + 1e-9).floor()
    lost = most.long() if exactly else (torch.rand(n, 1, generator=generator) * (most + 1)).long()
    order = masks.order(torch.rand(n, F, generator=generator), present)
    masked = _without_first(x, order, lost, features, absent)
    return masked if channels is None else torch.cat([masked[:, :channels], x[:, channels:]], dim=1)


def _without_first(x: Tensor, order: Tensor, counts: Tensor, features: Tensor, absent: float) -> Tensor:
    """Remove the first features of an order: x [n, *S], order [n, F], counts [n, 1] -> [n, *S]."""
    keep = segment_maps.spread(masks.remove_top(order, counts)[:, 0], features)  # [n, *features.shape]
    keep = keep.view(len(x), *[1] * (x.ndim - 1 - features.ndim), *features.shape)
    return torch.where(keep.to(x.device), x, absent)


def _train(recipe: Recipe, device: torch.device, checkpoint: Path) -> nn.Module:
    data = datasets.load(recipe.data, "train", **recipe.data_options)
    if recipe.switched:
        labels = degradation.switched(data.labels, len(data.classes), recipe.switched)
        data = dataclasses.replace(data, labels=labels)
    data = data.take(seen(recipe, len(data)))
    if len(data) and bool((data.labels == data.labels[0]).all()):
        raise ValueError(
            f"all {len(data)} training examples of {recipe.key()} are of class {data.classes[data.labels[0]]!r}; "
            "there is nothing to learn: raise its limit, or leave out a smaller block"
        )
    torch.manual_seed(recipe.seed)
    network = models.build(recipe.model, **recipe.model_options)
    if recipe.start is not None:
        network.load_state_dict(trained(recipe.start, "cpu").state_dict())
    network = network.to(device, memory_format=torch.channels_last)
    if recipe.precision == "bfloat16" and device.type == "cpu":
        # The fused kernel of attention is three times slower there than the unfused one, forward and backward.
        for layer in network.modules():
            if hasattr(layer, "fused_attn"):
                layer.fused_attn = False
    orders = None if recipe.orders is None else _stored_orders(recipe.orders, len(data))
    optimiser = _OPTIMISERS[recipe.optimiser](network.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    steps = math.ceil(len(data) / recipe.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, _rate(recipe.schedule, steps * recipe.epochs))
    first = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=device, weights_only=True)
        for part, name in ((network, "network"), (optimiser, "optimiser"), (schedule, "schedule")):
            part.load_state_dict(state[name])
        first = state["epoch"]
        _log.warning("resuming %s after epoch %d of %d", recipe.key(), first, recipe.epochs)
    for epoch in range(first, recipe.epochs):
        _epoch(recipe, network, data, orders, optimiser, schedule, epoch, device)
        if epoch + 1 < recipe.epochs:
            state = {
                "network": network.state_dict(),
                "optimiser": optimiser.state_dict(),
                "schedule": schedule.state_dict(),
                "epoch": epoch + 1,
            }
            with cache.write_atomically(checkpoint) as temporary:
                torch.save(state, temporary)
    return network.cpu()


def _epoch(recipe, network, data, orders, optimiser, schedule, epoch: int, device: torch.device) -> None:
    generator = torch.Generator().manual_seed(recipe.seed * 1_000_003 + epoch)
    torch.manual_seed(recipe.seed * 1_000_003 + epoch)  # dropout, where a network has it
    network.train()
    features = data.features()
    order = torch.randperm(len(data), generator=generator)
    progress = tqdm(order.split(recipe.batch), desc=f"{recipe.key()} epoch {epoch + 1}/{recipe.epochs}", mininterval=5)
    mixed = torch.autocast(device.type, torch.bfloat16, enabled=recipe.precision == "bfloat16")
    for index in progress:
        x, y = data.model_inputs(index).to(device), data.labels[index].to(device)
        if recipe.augment:
            x = _augment(x, generator)
        if recipe.mask_share:
            options = {"present": data.present(index), "absent": data.ABSENT, "channels": recipe.mask_channels}
            options["exactly"] = recipe.mask_exactly
            x = mask_features(x, features, recipe.mask_share, generator, **options)
        if orders is not None:
            own = features.max() + 1 if data.present(index) is None else data.present(index).sum(1, keepdim=True)
            lost = (torch.rand(len(x), 1, generator=generator) * (own + 1)).long()  # 0 .. all, equally likely
            x = _without_first(x, orders[index].long(), lost, features, data.ABSENT)
        if x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        with mixed:
            loss = cross_entropy(network(x).float(), y)
        if not bool(loss.isfinite()):
            raise RuntimeError(
                f"training of {recipe.key()} diverged in epoch {epoch + 1} (loss {loss.item()}); lower its rate "
                f"({recipe.rate}); the last good epoch is kept and training resumes from there"
            )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        progress.set_postfix(loss=f"{loss.item():.3f}", refresh=False)


def _augment(x: Tensor, generator: torch.Generator, shift: int = 4) -> Tensor:
    """Shift each image by up to `shift` pixels (zero-padded) and mirror half of them."""
    n, _, height, width = x.shape
    windows = pad(x, [shift] * 4).unfold(2, height, 1).unfold(3, width, 1)  # [n, C, 2s+1, 2s+1, H, W]
    down, right = torch.randint(2 * shift + 1, (2, n), generator=generator)
    x = windows[torch.arange(n), :, down, right]
    mirrored = torch.rand(n, generator=generator) < 0.5
    return torch.where(mirrored.view(-1, 1, 1, 1).to(x.device), x.flip(-1), x)


def _rate(schedule: str, steps: int):
    """The factor on the peak learning rate at each step."""
    if schedule == "constant":
        return lambda step: 1.0
    warm = max(1, steps // 5)
    return lambda step: (
        (step + 1) / warm if step < warm else 0.5 + 0.5 * math.cos(math.pi * (step - warm) / max(1, steps - warm))
    )


def _whole(path: Path) -> bool:
    """Whether weights are in the cache and readable; damaged ones are reported, and made again."""
    try:
        with safe_open(path, "pt"):
            return True
    except FileNotFoundError:
        return False
    except SafetensorError as error:
        _log.warning("%s is damaged (%s) and will be trained again", path, error)
        return False


def _contiguous(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.contiguous() for name, value in state.items()}
