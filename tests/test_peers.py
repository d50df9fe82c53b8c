"""What other libraries do, shown on small inputs: where they agree with the engine, and where they do not do as told.

Each test holds for the version that it names; another version is not judged by it.
"""

import warnings
from importlib import metadata

import captum.metrics
import numpy as np
import pytest
import torch
from torch import nn

from faithlab import engine, masks, rng
from faithlab.metrics.fidelity import remaining
from faithlab.task import Task
from faithstudy.trials import examination, other_libraries

VERSIONS = {"quantus": "0.6.0", "captum": "0.9.0", "grad-cam": "1.5.7"}


def needs(name):
    """Skip where a library is not installed in the version that was examined."""
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        found = None
    return pytest.mark.skipif(found != VERSIONS[name], reason=f"shows {name} {VERSIONS[name]}, found {found}")


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 64, 3)).eval()


@pytest.fixture
def grey_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 64, 3)).eval()


GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(4, 3, 8, 8, generator=GENERATOR)
Y = torch.tensor([0, 1, 2, 0])
MAPS = torch.rand(4, 1, 8, 8, generator=GENERATOR)


def in_quantus(metric, network, x=X, maps=MAPS, **options):
    quantus = pytest.importorskip("quantus")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(quantus, metric)(disable_warnings=True, **options)(
            model=network, x_batch=x.numpy(), y_batch=Y.numpy(), a_batch=maps.numpy(), device="cpu"
        )


@needs("quantus")
def test_pixel_flipping_on_grey_images_is_ours(grey_network):
    x = X.mean(1, keepdim=True)
    theirs = in_quantus("PixelFlipping", grey_network, x, features_in_step=4, perturb_baseline=0.0)
    pixels = torch.arange(64).view(8, 8)
    score = engine.scorer(grey_network, x, Y, segments=pixels)
    sizes = torch.arange(4, 65, 4, dtype=torch.float64) / 64
    ours = remaining(score, MAPS.flatten(1), sizes).value
    np.testing.assert_allclose(np.array(theirs), ours.numpy(), atol=1e-5)


@needs("quantus")
def test_pixel_flipping_on_colour_images_removes_single_channels(network):
    with other_libraries.asked(network) as seen:
        in_quantus("PixelFlipping", network, features_in_step=16)
    changed = seen[0] != X
    assert changed.flatten(1).sum(1).tolist() == [16] * 4  # a quarter of 64 pixels was asked for
    assert (changed.any(1).flatten(1).sum(1) < 16).all()  # some pixels lost several channels
    assert len(seen) == 3 * 64 // 16


@needs("quantus")
@pytest.mark.filterwarnings("ignore")
def test_road_of_quantus_fails_on_colour_images_only(network, grey_network):
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 64"):
        in_quantus("ROAD", network, percentages=[50])
    assert 0 <= in_quantus("ROAD", grey_network, X.mean(1, keepdim=True), percentages=[50])[50] <= 1


@needs("quantus")
def test_infidelity_of_quantus_repeats_itself(network):
    with other_libraries.asked(network) as seen:
        once = in_quantus("Infidelity", network, n_perturb_samples=1, perturb_patch_sizes=[4])
    few = len(seen)
    with other_libraries.asked(network) as seen:
        often = in_quantus("Infidelity", network, n_perturb_samples=5, perturb_patch_sizes=[4])
    assert few == 1 + 4
    assert len(seen) == 1 + 5 * 4
    np.testing.assert_allclose(once, often, rtol=1e-6)  # summed in another order


@needs("captum")
def test_infidelity_of_captum_asks_about_clean_images_in_every_chunk(network):
    def remove(inputs):
        removed = inputs * (torch.rand(inputs.shape) < 0.1)
        return removed, inputs - removed

    def ask(limit):
        options = {"target": Y, "n_perturb_samples": 10, "max_examples_per_batch": limit}
        with other_libraries.asked(network) as seen:
            captum.metrics.infidelity(network, remove, X, MAPS.expand_as(X), **options)
        return sum(map(len, seen))

    assert ask(None) == 4 * (10 + 1)
    assert ask(8) == 4 * (10 + 5)  # 2 samples a chunk, 5 chunks


def road(percentiles, maps, network):
    metrics = pytest.importorskip("pytorch_grad_cam.metrics.road")
    targets = pytest.importorskip("pytorch_grad_cam.utils.model_targets")
    wanted = [targets.ClassifierOutputSoftmaxTarget(int(label)) for label in Y]
    with other_libraries.asked(network) as seen:
        metrics.ROADMostRelevantFirstAverage(percentiles)(X, maps[:, 0].numpy(), wanted, network)
    return seen


@needs("grad-cam")
def test_road_of_grad_cam_asks_about_clean_images_for_every_percentile(network):
    seen = road([20, 40, 60], MAPS, network)
    assert sum(map(len, seen)) == 4 * 2 * 3
    assert [bool((part == X).all()) for part in seen] == [True, False] * 3


@needs("grad-cam")
@pytest.mark.filterwarnings("ignore")
def test_road_of_grad_cam_removes_everything_where_the_map_is_flat(network):
    def removed(maps):
        return (road([40], maps, network)[1] != X).any(1).float().mean().item()

    assert removed(MAPS) == pytest.approx(0.6, abs=0.02)  # the upper 60 %
    half_zero = torch.where(MAPS.flatten(1).argsort(1).argsort(1).view_as(MAPS) < 32, 0.0, MAPS)
    assert removed(half_zero) == 1  # as Grad-CAM's maps often are: the threshold is the flat value itself


# The rows of the examination


@pytest.fixture
def task(network):
    cells = torch.arange(8) // 2
    return Task(network, X, Y, cells[:, None] * 4 + cells)


def direct(name, network, maps):
    """The peer called by hand, with random numbers from the same seed."""
    np.random.seed(0)  # noqa: NPY002, the libraries draw from it
    torch.manual_seed(0)
    values = X[0].numel()
    if name.startswith("Quantus"):
        options = {
            "Faithfulness Correlation": {"nr_runs": 100, "subset_size": round(values / 10), "return_aggregate": False},
            "Pixel-Flipping": {"features_in_step": 64 // 16},
            "Monotonicity": {"features_in_step": 64 // 16},
            "Infidelity": {"n_perturb_samples": 1, "perturb_patch_sizes": [2]},
        }[name.removeprefix("Quantus: ")]
        method = name.removeprefix("Quantus: ").replace(" ", "").replace("-", "")
        found = in_quantus(method, network, maps=maps, **options)
        return np.mean(found, axis=1) if method == "PixelFlipping" else found
    if name.startswith("captum"):
        numbers = rng.uniform(0, torch.arange(4), torch.arange(101), 64) < 0.1  # of every image, not of every batch
        parts = iter([numbers[:, :64], numbers[:, 64:100]])  # captum repeats four images 64 times, and 36

        def remove(inputs):
            removed = next(parts).reshape(len(inputs), 1, 8, 8)
            return inputs * removed, inputs * ~removed

        options = {"target": Y, "n_perturb_samples": 100, "max_examples_per_batch": 256, "normalize": True}
        return captum.metrics.infidelity(lambda z: network(z).softmax(1), remove, X, maps.expand_as(X), **options)
    targets = pytest.importorskip("pytorch_grad_cam.utils.model_targets").ClassifierOutputSoftmaxTarget
    metric = pytest.importorskip("pytorch_grad_cam.metrics.road").ROADCombined(percentiles=[20, 40, 60, 80])
    return metric(X, maps[:, 0].numpy(), [targets(int(y)) for y in Y], network)


ASKED = (
    "Quantus: Faithfulness Correlation",
    "Quantus: Pixel-Flipping",
    "Quantus: Monotonicity",
    "Quantus: Infidelity",
    "captum: infidelity",
    "pytorch-grad-cam: ROAD",
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ASKED)
def test_a_peers_row_is_the_peer_called_directly(task, network, name):
    attribution = torch.rand(4, 16, generator=torch.Generator().manual_seed(5))
    maps = attribution.view(4, 1, 4, 4).repeat_interleave(2, 2).repeat_interleave(2, 3)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    mine = other_libraries.PEERS[name](task, attribution)
    assert (np.random.get_state()[1] == before).all(), "nobody else's random numbers moved"  # noqa: NPY002
    theirs = np.asarray(direct(name, network, maps), dtype=np.float64)
    np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-5, atol=1e-6)
    assert len(set(mine.tolist())) > 1 or name == "Quantus: Monotonicity"


@pytest.mark.filterwarnings("ignore")
def test_captums_infidelity_of_an_image_does_not_depend_on_what_is_asked_with_it(task):
    attribution = torch.rand(4, 16, generator=torch.Generator().manual_seed(5))
    infidelity = other_libraries.PEERS["captum: infidelity"]
    alone = infidelity(task.part(torch.arange(2)), attribution[:2])
    torch.testing.assert_close(alone, infidelity(task, attribution)[:2], rtol=1e-5, atol=1e-6)


@needs("quantus")
@pytest.mark.filterwarnings("ignore")
def test_the_area_of_pixel_flipping_needs_an_older_numpy(network):
    with pytest.raises(AttributeError, match="no attribute 'trapz'"):
        in_quantus("PixelFlipping", network, features_in_step=4, return_auc_per_sample=True)


@pytest.mark.filterwarnings("ignore")
def test_what_a_peer_cannot_be_asked_says_why(task):
    why = {name: peer.obstacle(task) for name, peer in other_libraries.PEERS.items()}
    assert {name for name, reason in why.items() if reason is None} == set(ASKED)
    assert why["Quantus: ROAD"].startswith("it crashes, IndexError: ")
    assert "the images beside it" in why["Quantus: Sensitivity-n"]
    assert "neighbours" in why["captum: max-sensitivity"]
    series = Task(network, torch.zeros(2, 5, 3), torch.zeros(2, dtype=torch.int64), torch.arange(5)[:, None])
    assert other_libraries.PEERS["captum: infidelity"].obstacle(series) == "it takes images"
    reasons = examination.reasons(other_libraries.chosen(["captum: infidelity"]), task)
    assert {trial for _, trial in reasons} == {"Gaming", "Stand-in"}
    with pytest.raises(ValueError, match="no peer Nobody's; there are Quantus: "):
        other_libraries.chosen(["Nobody's"])


def test_forwards_of_a_peer_are_counted():
    assert other_libraries.PEERS["captum: infidelity"].forward_passes(36) == pytest.approx(101, abs=3)


# The same on the engine


def test_infidelity_is_captums_on_the_same_subsets(network):
    score = engine.scorer(network, X, Y, segments=torch.arange(X[0].numel()).view(X.shape[1:]))
    relevance, values = MAPS.expand_as(X).flatten(1), X.flatten(1)
    ours = other_libraries.infidelity(score, relevance, values, 20, 30, seed=1)
    sizes = torch.tensor([[relevance.shape[1]], [20]])
    drawn = {"images": torch.arange(len(X)), "draws": torch.arange(30)}
    keep = masks.remove_from_top(masks.order(relevance), *sizes, seed=1, **drawn)[:, :, 0]
    assert ((~keep).sum(-1) == 20).all()

    def remove(inputs):  # captum repeats each image for all of its subsets
        kept = keep.flatten(0, 1).view_as(inputs)
        return inputs * ~kept, inputs * kept

    options = {"target": Y, "n_perturb_samples": 30}
    theirs = captum.metrics.infidelity(lambda z: network(z).softmax(1), remove, X, relevance.view_as(X), **options)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_max_sensitivity_is_the_largest_relative_move_of_the_explanation():
    x = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(1))
    assert other_libraries.max_sensitivity(lambda z: torch.ones(len(z), 8), x, 0.1, 5).tolist() == [0.0] * 3
    asked_ = []
    found = other_libraries.max_sensitivity(lambda z: asked_.append(z) or z.flatten(1), x, 0.1, 5)
    (z,) = asked_
    assert len(z) == 3 * 6
    move = z[3:].view(5, 3, 8) - x.view(3, 8)  # the explanation is the input itself
    assert 0 < move.abs().max() <= 0.1 + 1e-6
    torch.testing.assert_close(found, (move.norm(dim=-1) / x.view(3, 8).norm(dim=-1)).amax(0))
