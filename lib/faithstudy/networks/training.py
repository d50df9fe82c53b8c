"""Trained networks by their full recipe: the same recipe is trained once, and any change of it is another network.

Some ship with the repository, see `faithstudy.networks.shipped`, and are never trained here. The others are kept in the
cache, by the key of their recipe alone. Code that trains other weights from the same fields needs a new
`Recipe.version`.

Training is resumable: after every epoch the state is written beside the weights, and a killed run goes on from there
to the same weights that an uninterrupted one reaches, because each epoch draws from a generator of its own.
"""

import dataclasses
import hashlib
import io
import json
import logging
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from tqdm import tqdm

from faithlab import engine, masks, rng
from faithlab import segments as segment_maps
from faithstudy.data import cache, datasets
from faithstudy.data.sets import LabelledSet
from faithstudy.networks import degradation, models, origins, shipped

_BLOCKS = 1  # seed of the blocks
_log = logging.getLogger(__name__)


def _constant(steps: int) -> Callable[[int], float]:
    return lambda step: 1.0


def _cycle(steps: int) -> Callable[[int], float]:
    warm = max(1, steps // 5)
    return lambda step: (
        (step + 1) / warm if step < warm else 0.5 + 0.5 * math.cos(math.pi * (step - warm) / max(1, steps - warm))
    )


_OPTIMISERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
_SCHEDULES = {"constant": _constant, "cycle": _cycle}
"""Number of steps -> the factor on the peak learning rate at each step."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Everything that decides a network's weights.

    Attributes:
        data: a data set of `faithstudy.data.datasets`, with its `data_options`.
        model: a network of `faithstudy.networks.models`, with its `model_options`.
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
        orders: ROAR: the name of stored orders of each training example's features, see `keep_orders`. Every time an
            example is seen it lacks the first features of its order, a share drawn uniformly from 0 to 1. None: whole.
        start: the recipe whose weights training starts from (fine-tuning); None: fresh weights.
        precision: "float32" or "bfloat16" (mixed, by autocast, where the device computes it natively: elsewhere it
            would be imitated, nine times slower on a processor with AVX2 than the float32 that is taken there).
        seed: of fresh weights, order, augmentation and masks.
        version: of the code that trains. Raise it in a recipe whose fields now lead to other weights; never change the
            default, which keys leave out.
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
    version: int = 1

    def __post_init__(self) -> None:
        shares = 0 <= self.mask_share <= 1 and 0 <= self.switched <= 1
        if not shares or (self.fold is not None and not 0 <= self.fold[0] < self.fold[1]):
            raise ValueError(f"expected shares between 0 and 1, and a fold (i, k) with 0 <= i < k, but got {self}")
        known = self.optimiser in _OPTIMISERS and self.schedule in _SCHEDULES
        if not known or self.precision not in ("float32", "bfloat16") or self.epochs < 1 or self.batch < 1:
            raise ValueError(f"unknown optimiser, schedule or precision, or no epoch or example a step: {self}")

    @classmethod
    def read(cls, values: Mapping) -> "Recipe":
        """The recipe whose `dataclasses.asdict` was written as JSON.

        Raises:
            TypeError: a field that recipes do not have.
        """
        values = dict(values)
        for name, kind in {"fold": tuple, "orders": _orders_name, "start": cls.read}.items():
            if values.get(name) is not None:
                values[name] = kind(values[name])
        return cls(**values)

    def key(self) -> str:
        """A name for the network: data set, network, and a hash of the fields that differ from their defaults."""
        text = json.dumps(self._choices(), sort_keys=True)
        return f"{self.data}-{self.model}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def _choices(self) -> dict:
        """Return what differs from the defaults: a field that is added later leaves older names alone."""
        plain = vars(Recipe(self.data, self.model, self.epochs))
        chosen = {name: value for name, value in vars(self).items() if name in _REQUIRED or value != plain[name]}
        return chosen | ({"start": self.start._choices()} if self.start else {})


def _orders_name(orders: str | Mapping) -> str:
    """The name of orders, which older files hold with a hash of the code that made them."""
    return orders if isinstance(orders, str) else orders["name"]


_REQUIRED = ("data", "model", "epochs")


def trained(recipe: Recipe, device: torch.device | str | None = None, *, ships: bool = True) -> nn.Module:
    """The network of a recipe in eval mode: the one that ships, else from the cache, else trained and kept there.

    Args:
        recipe: what to train. A training that was killed is resumed.
        device: None: a CUDA device if there is one, else the CPU.
        ships: False: also a network that ships is trained here; what it starts from may still be one that ships.

    Raises:
        ValueError: the file of a network that ships was changed.
        RuntimeError: training diverged (the loss became NaN or infinite); nothing is kept of the diverged epoch.
    """
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    # The caller's random numbers must not depend on whether the weights were there.
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        found = shipped.find(recipe.key()) if ships else None
        state, about = (found.weights(), found.facts | {"shipped": True}) if found else _made(recipe, device)
        network = models.build(recipe.model, **recipe.model_options)
        network.load_state_dict(state)
    _use("network", recipe.key(), about)
    return network.to(device).eval()


def _made(recipe: Recipe, device: torch.device) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The weights that the cache keeps for a recipe, which is trained first where it has none."""
    path = weights(recipe)

    def make() -> None:
        diary = _Diary(recipe, device, path.with_suffix(".checkpoint"))
        precision = recipe.precision if engine.native_precision(device) is torch.bfloat16 else "float32"
        with torch.backends.mkldnn.flags(enabled=torch.backends.mkldnn.enabled and not _overrun(recipe)):
            state = _train(dataclasses.replace(recipe, precision=precision), device, diary).state_dict()
        start = recipe.start and shipped.find(recipe.start.key())
        about = {"recipe": json.dumps(dataclasses.asdict(recipe), default=str), "key": recipe.key()}
        about |= {"start": start.facts["sha256"] if start else "", "device": diary.device, "precision": precision}
        _write(path, {name: value.contiguous() for name, value in state.items()}, about, diary.seconds())
        cache.remove(diary.path)

    return cache.once(path, make, partial(kept, path))


def _overrun(recipe: Recipe) -> bool:
    """Return whether oneDNN would write beyond its memory in training.

    Its backward pass of a 1 x 1 convolution with a stride does where the inputs are channels-last and have fewer
    channels than a block of the processor, 8 with AVX2 and 16 with AVX-512: the process dies, hangs or learns from
    wrong gradients (issue 6035 of oneDNN, seen with torch 2.14).
    """
    with torch.device("meta"):
        network = models.build(recipe.model, **recipe.model_options)
    strided = [m for m in network.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1) != m.stride]
    return any(1 < m.in_channels // m.groups < 16 for m in strided)


def weights(recipe: Recipe) -> Path:
    """The file of the cache that holds the weights of a recipe, whether it is there or not."""
    return cache.folder() / "weights" / f"{recipe.key()}.safetensors"


def kept(path: Path) -> tuple[dict[str, Tensor], dict[str, str]] | None:
    """The tensors of a file of the cache and where they come from; None: it is not there, not whole, or another's."""
    try:
        tensors = load(content := cache.verified(path) or b"")
    except SafetensorError:
        return None
    size = int.from_bytes(content[:8], "little")  # safetensors reads the header of files only
    about = json.loads(content[8 : 8 + size]).get("__metadata__", {}) | {"sha256": hashlib.sha256(content).hexdigest()}
    return (tensors, about) if about.get("file") == path.stem else None


def blocks(count: int, k: int) -> Tensor:
    """The block of each of the first `count` training examples, of k blocks of equal size (up to one): [count] int64.

    Of every k examples in a row each goes into another block, by chance. So an example keeps its block whatever the
    number of examples, and no regular order of the classes makes blocks that lack one.

    Raises:
        ValueError: fewer than two blocks, or more blocks than examples.
    """
    if not 2 <= k <= count:
        raise ValueError(f"expected at least 2 and at most {count} blocks of {count} examples, but got k={k}")
    rows = rng.permutations(_BLOCKS, torch.arange(-(-count // k)), torch.tensor([0]), k)
    return rows.flatten()[:count]


def seen(recipe: Recipe, count: int) -> Tensor:
    """Positions of the training examples that a recipe's network is trained on, of `count` in its data set: int64 [n].

    Raises:
        ValueError: as `blocks`.
    """
    examples = torch.arange(count if recipe.limit is None else min(recipe.limit, count))
    if recipe.fold is None:
        return examples
    left_out, k = recipe.fold
    return examples[blocks(len(examples), k) != left_out]


@torch.inference_mode()
def logits(network: nn.Module, inputs: Tensor, batch_size: int = 256) -> Tensor:
    """A network's logits on clean inputs [N, *S], [N, C] float32, on the network's device."""
    device = next(network.parameters()).device
    return torch.cat([network(part.to(device)).float() for part in inputs.split(batch_size)])


def accuracy(network: nn.Module, data: LabelledSet, batch_size: int = 256) -> float:
    """The fraction of a data set that a network gets right."""
    right = 0
    for part in torch.arange(len(data)).split(batch_size):
        right += int((logits(network, data.model_inputs(part)).argmax(1).cpu() == data.labels[part]).sum())
    return right / len(data)


def accuracy_of(recipe: Recipe, examples: int | None = None) -> float:
    """The fraction of the test split that the network of a recipe gets right.

    Of one that ships that of the whole split stands among its facts, where `accuracy` has put it: it is that, whatever
    `examples` says.

    Args:
        recipe: of the network.
        examples: so many of the split, where it must be looked at; None: all.
    """
    if found := shipped.find(recipe.key()):
        return found.facts["rounding"]["accuracy"][1]
    return accuracy(trained(recipe), datasets.load(recipe.data, "test", **recipe.data_options).take(slice(examples)))


def keep_orders(name: str, make: Callable[[slice], Tensor], count: int, block: int = 2000) -> None:
    """Store an order of the features of each training example, for `Recipe.orders`; what is stored is not made again.

    Args:
        name: must identify everything that the orders follow from.
        make: a slice of the training split -> the order of its examples, [n, F] int64, first to be removed first.
        count: number of examples.
        block: examples made and stored at a time. A killed run goes on after the last whole block.
    """
    for start in range(0, count, block):
        path = _orders_path(name, start)

        def write(path: Path = path, start: int = start) -> None:
            began = time.perf_counter()
            order = make(slice(start, min(start + block, count)))
            about = {"key": name, "device": _device(order.device)}
            _write(path, {"order": order.to("cpu", torch.int32)}, about, time.perf_counter() - began)

        _, about = cache.once(path, write, partial(kept, path))
        if start == 0:
            _use("orders", name, about)


def _orders_path(name: str, start: int) -> Path:
    return cache.folder() / "orders" / f"{name}.{start}.safetensors"


def _stored_orders(name: str, count: int) -> Tensor:
    """The orders of the first `count` training examples, [count, F] int32."""
    parts, found = [], 0
    while found < count:
        if (content := kept(_orders_path(name, found))) is None:
            raise ValueError(f"the orders {name!r} hold {found} examples, not {count}; make them with keep_orders")
        parts.append(content[0]["order"])
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
    most = masks.bound(share, own[:, 0])
    lost = most if exactly else (torch.rand(n, 1, generator=generator) * (most + 1)).long()
    order = masks.order(torch.rand(n, F, generator=generator), present)
    masked = _without_first(x, order, lost, features, absent)
    return masked if channels is None else torch.cat([masked[:, :channels], x[:, channels:]], dim=1)


def _without_first(x: Tensor, order: Tensor, counts: Tensor, features: Tensor, absent: float) -> Tensor:
    """Remove the first features of an order: x [n, *S], order [n, F], counts [n, 1] -> [n, *S]."""
    keep = segment_maps.spread(masks.remove_top(order, counts)[:, 0], features)  # [n, *features.shape]
    keep = keep.view(len(x), *[1] * (x.ndim - 1 - features.ndim), *features.shape)
    return torch.where(keep.to(x.device), x, absent)


class _Diary:
    """The state that training leaves after each epoch, from which a killed run goes on."""

    def __init__(self, recipe: Recipe, device: torch.device, path: Path):
        self.path = path
        self.device = _device(device)
        self._on, self._belongs = device, [recipe.key(), f"torch {torch.__version__}"]
        self._began, self._before = time.perf_counter(), 0.0

    def seconds(self) -> float:
        """Of training so far, with those of killed runs that it goes on from."""
        return self._before + time.perf_counter() - self._began

    def keep(self, epoch: int, **parts) -> None:
        """Write the state of the parts after so many epochs."""
        state = {name: part.state_dict() for name, part in parts.items()}
        state |= {"epoch": epoch, "belongs": self._belongs, "device": self.device, "seconds": self.seconds()}
        with cache.write_with_checksum(self.path) as temporary:
            torch.save(state, temporary)

    def resume(self, **parts) -> int:
        """Put the parts into the state that was kept; returns the epochs that it has, 0 where there is none."""
        self._began = time.perf_counter()  # not with the data, nor with the network that it starts from
        content = cache.verified(self.path)
        state = content and torch.load(io.BytesIO(content), map_location=self._on, weights_only=True)
        if not state or state["belongs"] != self._belongs:
            if self.path.exists():
                _log.warning("%s is damaged or of another torch and is not resumed from", self.path)
            return 0
        for name, part in parts.items():
            part.load_state_dict(state[name])
        self._before, before = state["seconds"], state["device"]
        self.device = before if before.endswith(self.device) else f"{before}, {self.device}"
        _log.warning("resuming %s after epoch %d", self._belongs[0], state["epoch"])
        return state["epoch"]


def _train(recipe: Recipe, device: torch.device, diary: _Diary) -> nn.Module:
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
    factor = _SCHEDULES[recipe.schedule](steps * recipe.epochs)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, factor)
    first = diary.resume(network=network, optimiser=optimiser, schedule=schedule)
    for epoch in range(first, recipe.epochs):
        _epoch(recipe, network, data, orders, optimiser, schedule, epoch, device)
        if epoch + 1 < recipe.epochs:
            diary.keep(epoch + 1, network=network, optimiser=optimiser, schedule=schedule)
    return network.cpu()


def _epoch(recipe, network, data, orders, optimiser, schedule, epoch: int, device: torch.device) -> None:
    generator = torch.Generator().manual_seed(recipe.seed * 1_000_003 + epoch)
    torch.manual_seed(recipe.seed * 1_000_003 + epoch)  # dropout, where a network has it
    network.train()
    features = data.features()
    order = torch.randperm(len(data), generator=generator)
    mixed = torch.autocast(device.type, torch.bfloat16, enabled=recipe.precision == "bfloat16")
    bar = tqdm(order.split(recipe.batch), desc=f"{recipe.key()} epoch {epoch + 1}/{recipe.epochs}", mininterval=5)
    for index in bar:
        x, y = data.model_inputs(index).to(device), data.labels[index].to(device)
        if recipe.augment:
            x = _augment(x, generator)
        if recipe.mask_share:
            own = {"present": data.present(index), "absent": data.ABSENT}
            own |= {"channels": recipe.mask_channels, "exactly": recipe.mask_exactly}
            x = mask_features(x, features, recipe.mask_share, generator, **own)
        if recipe.orders is not None:
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
        bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)


def _augment(x: Tensor, generator: torch.Generator, shift: int = 4) -> Tensor:
    """Shift each image by up to `shift` pixels (zero-padded) and mirror half of them."""
    n, _, height, width = x.shape
    windows = pad(x, [shift] * 4).unfold(2, height, 1).unfold(3, width, 1)  # [n, C, 2s+1, 2s+1, H, W]
    down, right = torch.randint(2 * shift + 1, (2, n), generator=generator)
    x = windows[torch.arange(n), :, down, right]
    mirrored = torch.rand(n, generator=generator) < 0.5
    return torch.where(mirrored.view(-1, 1, 1, 1).to(x.device), x.flip(-1), x)


def _device(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _write(path: Path, tensors: dict[str, Tensor], about: dict[str, str], seconds: float) -> None:
    """Write tensors and where they come from."""
    about |= origins.about() | {"file": path.stem, "torch": torch.__version__, "seconds": f"{seconds:.1f}"}
    with cache.write_with_checksum(path) as temporary:
        save_file(tensors, temporary, metadata=about)


def _use(kind: str, name: str, about: dict[str, str]) -> None:
    """Note for the provenance of a page that these tensors are used."""
    known = {name: about.get(name) or None for name in ("sha256", "commit", "torch", "device", "cpu", "date")}
    known |= {"dirty": about["dirty"] == "true" if about.get("dirty") else None, "seconds": float(about["seconds"])}
    origins.use(kind, name, **known, **({"shipped": True} if about.get("shipped") else {}))
