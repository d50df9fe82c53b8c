"""Metrics of other libraries, put to the trials as they are: Quantus, captum and pytorch-grad-cam.

A peer runs the network itself, in float32, with its library's own settings, references and random numbers (which start
from the same seed for every explanation). It takes pictures and maps of them, so that every pixel of a feature gets the
feature's relevance. What a library cannot be asked, because it crashes, or because its number of one image is made of
other images too, is said in place of a number; `notebooks/cost/peers` shows what was found of each.
"""

import dataclasses
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from faithlab import masks, rng, segments, stats, validation
from faithlab.engine import Score
from faithlab.metrics import Metric
from faithlab.task import Task


@dataclass(frozen=True)
class Peer(Metric):
    """A metric of another library.

    Attributes:
        compute: (model, x [B, C, H, W], target [B], maps [B, 1, H, W]) -> B numbers.
        refuses: why it cannot be asked of an explanation of one image; empty: it can.
    """

    refuses: str = ""

    def obstacle(self, task: Task, explainer: str | None = None) -> str | None:
        """Why it does not apply; it is tried on one input, because a library may crash."""
        if self.refuses:
            return self.refuses
        if task.x.ndim != 4:
            return "it takes images"
        tried = _TRIED.setdefault(task.model, {})
        if self.source not in tried:
            count = segments.count(task.segments)
            one = dataclasses.replace(task, x=task.x[:1], target=task.target[:1], images=None, present=None)
            try:
                self.measure(None, one, torch.rand(1, count, generator=torch.Generator().manual_seed(0)))
                tried[self.source] = None
            except ImportError as error:
                tried[self.source] = f"{error.name} is not installed"
            except Exception as error:
                tried[self.source] = f"it crashes, {type(error).__name__}: {' '.join(str(error).split())}"
        return tried[self.source]

    def measure(self, score: Callable | None, task: Task, attribution: Tensor) -> stats.MonteCarlo:
        """Its values [B]; the score is not asked."""
        validation.attribution(attribution)
        map_of = segments.spread(attribution.float().to(task.x.device), task.segments.to(task.x.device))
        maps = map_of.view(len(task.x), 1, *task.x.shape[2:])
        with _from_seed(0), torch.inference_mode(False):
            answers = self.compute(task.model.eval(), task.x.clone(), task.target, maps)
        value = torch.as_tensor(np.asarray(answers, dtype=np.float64))
        if value.shape != (len(task.x),):
            raise ValueError(f"it gave {tuple(value.shape)} for {len(task.x)} images")
        return stats.MonteCarlo(value, None)

    def forward_passes(self, features: int) -> int:
        """Inputs that it asks a small network about for one explanation of an image of 32 x 32."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 3)).eval()
        x = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        side = max(1, round(features**0.5))
        cells = torch.arange(32) * side // 32
        one = Task(model, x, torch.zeros(1, dtype=torch.int64), cells[:, None] * side + cells)
        with asked(model) as seen:
            self.measure(None, one, torch.rand(1, side * side, generator=torch.Generator().manual_seed(0)))
        return sum(map(len, seen))


_TRIED: weakref.WeakKeyDictionary[nn.Module, dict[str, str | None]] = weakref.WeakKeyDictionary()


@contextmanager
def asked(network: nn.Module) -> Iterator[list[Tensor]]:
    """The inputs that a network is asked about meanwhile, [n, ...] for each call."""
    seen: list[Tensor] = []
    hook = network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach().clone()))
    try:
        yield seen
    finally:
        hook.remove()


@contextmanager
def _from_seed(seed: int) -> Iterator[None]:
    """Random numbers of NumPy and torch that start from a seed, and those of everybody else as they were."""
    state = np.random.get_state()  # noqa: NPY002, the libraries draw from it
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002


def _quantus(name: str, **options: Any) -> Callable[..., Any]:
    """A metric of Quantus with some of its options."""

    def ask(model: nn.Module, x: Tensor, target: Tensor, maps: Tensor) -> Any:
        import quantus

        own = {key: value(x) if callable(value) else value for key, value in options.items()}
        metric = getattr(quantus, name)(disable_warnings=True, **own)
        batches = {"x_batch": x, "y_batch": target, "a_batch": maps}
        batches = {key: of.detach().cpu().numpy() for key, of in batches.items()}
        return metric(model=model, **batches, device=str(x.device), batch_size=64)

    return ask


def captum_infidelity(model: nn.Module, x: Tensor, target: Tensor, maps: Tensor) -> Tensor:
    """Infidelity (Yeh et al., 2019) of captum, a tenth of the pixels removed at random, 100 times, scaled at best."""
    import captum.metrics

    places, done = torch.arange(len(x), device=x.device), 0

    def remove(inputs: Tensor) -> tuple[Tensor, Tensor]:
        # Each image, repeated, has random numbers of its own: they do not depend on how many others are asked with it.
        nonlocal done
        each = torch.arange(done, done + len(inputs) // len(x), device=x.device)
        done += len(each)
        kept = rng.uniform(0, places, each, x[0, 0].numel()).view(-1, 1, *x.shape[2:]) >= 0.1
        return inputs * ~kept, inputs * kept

    many = max(len(x), min(256, 100 * len(x)))  # captum warns of other numbers
    options = {"target": target, "n_perturb_samples": 100, "max_examples_per_batch": many, "normalize": True}
    spread = maps.expand_as(x).contiguous()
    return captum.metrics.infidelity(lambda z: model(z).softmax(1), remove, x, spread, **options).detach().cpu()


def grad_cam_road(model: nn.Module, x: Tensor, target: Tensor, maps: Tensor) -> Any:
    """ROAD (Rong et al., 2022) of pytorch-grad-cam: least relevant first less most relevant first, halved."""
    from pytorch_grad_cam.metrics.road import ROADCombined
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputSoftmaxTarget

    wanted = [ClassifierOutputSoftmaxTarget(int(label)) for label in target]
    return ROADCombined(percentiles=[20, 40, 60, 80])(x, maps[:, 0].cpu().numpy(), wanted, model)


def _pixels(share: float) -> Callable[[Tensor], int]:
    """A share of the values of an input."""
    return lambda x: max(1, round(share * x[0].numel()))


def _divisor(x: Tensor) -> int:
    """A sixteenth of the pixels, or a little less: Quantus wants a number that divides them."""
    pixels = x[0, 0].numel()
    return max(step for step in range(1, max(1, pixels // 16) + 1) if pixels % step == 0)


_BATCH = "its number of an image is made of the images beside it, too"

PEERS: Mapping[str, Peer] = {
    "Quantus: Faithfulness Correlation": Peer(
        _quantus("FaithfulnessCorrelation", nr_runs=100, subset_size=_pixels(0.1), return_aggregate=False),
        source="Quantus, FaithfulnessCorrelation",
    ),
    "Quantus: Pixel-Flipping": Peer(
        # Its own area, return_auc_per_sample, crashes with NumPy 2.4: np.trapz is gone.
        lambda *given: np.mean(_quantus("PixelFlipping", features_in_step=_divisor)(*given), axis=1),
        source="Quantus, PixelFlipping, the mean of its curve",
        better=-1,
    ),
    "Quantus: Monotonicity": Peer(
        _quantus("Monotonicity", features_in_step=_divisor), source="Quantus, Monotonicity", ideal=1.0
    ),
    "Quantus: Infidelity": Peer(
        _quantus("Infidelity", n_perturb_samples=1, perturb_patch_sizes=lambda x: [x.shape[-1] // 4]),
        source="Quantus, Infidelity",
        better=-1,
        ideal=0.0,
    ),
    "Quantus: ROAD": Peer(_quantus("ROAD", percentages=[20, 40, 60, 80]), source="Quantus, ROAD", better=-1),
    "Quantus: Sensitivity-n": Peer(
        _quantus("SensitivityN"), source="Quantus, SensitivityN", refuses=f"{_BATCH}: a correlation over the batch"
    ),
    "Quantus: Sufficiency": Peer(
        _quantus("Sufficiency"), source="Quantus, Sufficiency", refuses=f"{_BATCH}: those with alike explanations"
    ),
    "captum: infidelity": Peer(captum_infidelity, source="captum, infidelity", better=-1, ideal=0.0),
    "captum: max-sensitivity": Peer(
        captum_infidelity, source="captum, sensitivity_max", refuses="it needs explanations of an input's neighbours"
    ),
    "pytorch-grad-cam: ROAD": Peer(grad_cam_road, source="pytorch-grad-cam, ROADCombined"),
}
"""By library and name."""

NOT_ASKED = {
    "Gaming": "a library asks the network itself: its questions are not known",
    "Stand-in": "it has a reference of its own",
}
"""Trials that cannot be put to a peer."""


def chosen(names: list[str]) -> dict[str, Peer]:
    """Peers by name.

    Raises:
        ValueError: there is no such peer.
    """
    if unknown := [name for name in names if name not in PEERS]:
        raise ValueError(f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return {name: PEERS[name] for name in names}


# The same on the engine, where the book has no metric of its own: to time it beside theirs.


def infidelity(score: Score, relevance: Tensor, x: Tensor, size: int, runs: int, seed: int = 0) -> Tensor:
    """The mean squared difference of what random subsets cost and their relevance times their values, [B].

    Yeh, Hsieh, Suggala, Inouye, Ravikumar, 2019.

    Args:
        score: from `faithlab.engine.scorer`.
        relevance: [B, F].
        x: [B, F], the values.
        size: features in a subset.
        runs: subsets.
        seed: of them.
    """
    sizes = torch.tensor([relevance.shape[1], size])
    drawn = {"images": torch.arange(len(relevance), device=relevance.device), "draws": torch.arange(runs)}
    keep = masks.remove_from_top(masks.order(relevance), sizes[:1], sizes[1:], seed=seed, **drawn)[:, :, 0]
    loss = score(torch.ones_like(keep[:, :1])) - score(keep)
    return ((torch.einsum("bnf,bf->bn", (~keep).float(), relevance * x) - loss) ** 2).mean(1)


def max_sensitivity(
    explained: Callable[[Tensor], Tensor], x: Tensor, radius: float, runs: int, seed: int = 0
) -> Tensor:
    """How far, relative to its length, an explanation moves at most when each value moves by up to a radius, [B].

    Yeh, Hsieh, Suggala, Inouye, Ravikumar, 2019.

    Args:
        explained: the explanations [n, F] of inputs [n, ...], which are those of x and then of its copies, in turn.
        x: [B, ...].
        radius: of the moves.
        runs: copies of each input.
        seed: of the moves.
    """
    moves = torch.rand(runs * len(x), *x.shape[1:], generator=torch.Generator().manual_seed(seed))
    around = x.repeat(runs, *[1] * (x.ndim - 1)) + radius * (2 * moves - 1).to(x)
    clean, *others = explained(torch.cat([x, around])).split(len(x))
    return ((torch.stack(others) - clean).norm(dim=-1) / clean.norm(dim=-1)).amax(0)
