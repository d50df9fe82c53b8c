"""Explainers of Few-class Fidelity, and what makes one explainer from another: magnitude, SG, SG^2, XRAI."""

import numpy as np
import pytest
import torch
from torch import nn

import literal
from faithlab import segments
from faithlab.explainers import explain, refine

IMAGE = (12, 12)
PIXELS = segments.pixels(12, 12)
X = torch.rand(4, 3, 12, 12, generator=torch.Generator().manual_seed(0)) * 2 - 1
TARGET = torch.tensor([1, 0, 2, 1])
MEANS = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())  # a model for explainers that do not ask it


class Curved(nn.Module):
    """A network whose gradient moves with its input."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(432, 6), nn.Tanh(), nn.Linear(6, 3))

    def forward(self, x):
        return self.layers(x * 3)


def explained(explainer, some=slice(None), **options):
    identities = torch.tensor([5, 0, 77, 3])[some]
    return explain(explainer, Curved().eval(), X[some], TARGET[some], PIXELS, images=identities, **options)


# The explainers


def test_gradient_is_signed_and_saliency_its_magnitude():
    apart = torch.arange(432).view(3, 12, 12)
    model = Curved().eval()
    one, other = (explain(name, model, X, TARGET, apart) for name in ("gradient", "saliency"))
    assert (one < 0).any()
    torch.testing.assert_close(one.abs(), other)


def test_deconvolution_passes_what_is_positive_and_looks_at_no_activation():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.ReLU(), nn.Linear(5, 3)).eval()
    x, target = torch.randn(2, 1, 4, 4), torch.tensor([2, 0])
    expected = torch.stack([model[3].weight[y].clamp(min=0) @ model[1].weight for y in target])
    torch.testing.assert_close(
        explain("deconvolution", model, x, target, segments.pixels(4, 4)), expected.detach(), atol=1e-6, rtol=1e-5
    )


def test_deconvolution_needs_a_relu():
    with pytest.raises(ValueError, match="replaces the gradient of ReLUs, but the model has none"):
        explained("deconvolution")


@pytest.mark.parametrize("end", ["min", "max"])
def test_integrated_gradients_from_an_extreme_add_up_to_what_the_input_adds_to_it(end):
    model = Curved().eval()
    value = getattr(X.flatten(1), f"a{end}")(1)
    baseline = value.view(-1, 1, 1, 1).expand_as(X)
    with torch.no_grad():
        added = (model(X) - model(baseline)).gather(1, TARGET[:, None])[:, 0]
    found = explained("integrated-gradients", baseline=end, steps=64)
    torch.testing.assert_close(found.sum(1), added, atol=1e-2, rtol=0)


def test_expected_gradients_of_a_linear_model_are_weight_times_distance_to_the_mean_background():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(432, 3)).eval()
    background = torch.rand(7, 3, 12, 12)
    expected = model[1].weight[TARGET] * (X - background.mean(0)).flatten(1)
    found = explain("expected-gradients", model, X, TARGET, torch.arange(432).view(3, 12, 12), background=background)
    torch.testing.assert_close(found, expected.detach(), atol=1e-6, rtol=1e-4)


def test_expected_gradients_add_up_on_average():
    background = torch.rand(400, 3, 12, 12, generator=torch.Generator().manual_seed(1)) * 2 - 1
    model = Curved().eval()
    with torch.no_grad():
        added = (model(X).gather(1, TARGET[:, None]) - model(background)[:, TARGET].T).mean(1)
    found = explained("expected-gradients", background=background).sum(1)
    # A random point of each path: the mean over 400 paths is off by a few percent of the spread.
    torch.testing.assert_close(found, added, atol=0.25, rtol=0)


# Magnitude, SG, SG^2


def test_magnitude_is_the_absolute_value_of_each_element():
    apart = torch.arange(432).view(3, 12, 12)
    model = Curved().eval()
    plain, size = (explain(e, model, X, TARGET, apart) for e in ("gradient", refine.magnitude("gradient")))
    torch.testing.assert_close(size, plain.abs())


@pytest.mark.parametrize(("moment", "power"), [(1, 1), (2, 2)])
def test_without_noise_smoothing_is_the_map_or_its_square(moment, power):
    apart = torch.arange(432).view(3, 12, 12)
    model = Curved().eval()
    plain = explain("gradient", model, X, TARGET, apart)
    smooth = explain(refine.smooth("gradient", moment=moment, noise=0, samples=3), model, X, TARGET, apart)
    torch.testing.assert_close(smooth, plain**power)


def test_smoothing_is_the_mean_over_copies_whose_noise_belongs_to_the_image():
    few = explained(refine.smooth("gradient", samples=2, noise=0.2, seed=4))
    alone = explained(refine.smooth("gradient", samples=2, noise=0.2, seed=4), some=slice(2, 3))
    torch.testing.assert_close(alone, few[2:3])
    assert not torch.allclose(few, explained(refine.smooth("gradient", samples=2, noise=0.2, seed=5)))


def test_every_explainer_meets_the_same_noise():
    seen = []

    def watching(model, x, target, images):
        seen.append(x.clone())
        return x

    for inner in (watching, watching):
        explained(refine.smooth(inner, samples=1, noise=0.1))
    assert torch.equal(seen[0], seen[1])
    spread = (seen[0] - X).flatten(1).std(1) / (X.flatten(1).amax(1) - X.flatten(1).amin(1))
    torch.testing.assert_close(spread, torch.full((4,), 0.1), atol=0.01, rtol=0)


def test_refinements_nest():
    nested = explained(refine.region(refine.magnitude(refine.smooth("integrated-gradients", samples=2))), steps=2)
    assert nested.shape == (4, 144)
    assert nested.isfinite().all()


# XRAI


def unpacked(picture: np.ndarray) -> list[set[int]]:
    found = refine._segments(picture.astype(np.float32).tobytes(), picture.shape)
    return [set(pixels.tolist()) for pixels in np.split(found.pixels, found.ends[:-1])]


def two_halves(side: int = 20) -> torch.Tensor:
    picture = torch.zeros(1, 3, side, side)
    picture[..., side // 2 :] = 1
    return picture


def test_segments_follow_the_image_and_cover_it():
    found = unpacked(two_halves()[0].permute(1, 2, 0).numpy())
    assert set.union(*found) == set(range(400))
    left = {r * 20 + c for r in range(20) for c in range(10)}
    # Widened by at most one pixel: 5 of 224 are 0.4 of 20.
    assert any(left <= segment and len(segment - left) <= 20 for segment in found)


@pytest.mark.parametrize("seed", range(3))
def test_regions_are_averaged_as_the_paper_says(seed):
    generator = np.random.default_rng(seed)
    segments_ = [set(generator.choice(60, generator.integers(3, 25), replace=False).tolist()) for _ in range(9)]
    values = generator.normal(size=60)
    member = np.zeros((9, 60), bool)
    for row, segment in zip(member, segments_, strict=True):
        row[list(segment)] = True
    found = refine._average(values.reshape(6, 10), refine._Segments.of(member))
    smallest = max(1, round(50 * 36 / 224**2))
    np.testing.assert_allclose(
        found.ravel(), literal.averaged_over_regions(values.tolist(), segments_, smallest), atol=1e-12
    )


def test_the_brighter_half_comes_first_and_is_flat():
    x = two_halves()
    noise = torch.rand(1, 1, 20, 20, generator=torch.Generator().manual_seed(0))
    speckled = torch.where(x[:, :1] > 0, noise + 0.2, noise)  # one pixel of the left half may beat one of the right
    assert speckled[..., :10].max() > speckled[..., 10:].min()
    explainer = refine.region(lambda model, x, target, images: speckled)
    maps = explain(explainer, MEANS, x, TARGET[:1], segments.pixels(20, 20)).view(20, 20)
    assert maps[:, 10:].min() > maps[:, :9].max()
    assert len(maps[:, 12:].unique()) < 20


def test_an_image_gets_the_same_regions_in_any_batch():
    whole = explained(refine.region("gradient"))
    torch.testing.assert_close(explained(refine.region("gradient"), some=slice(2, 3)), whole[2:3])


@pytest.mark.parametrize("side", [1, 3, 7])
def test_squares_average_what_the_image_has(side):
    found = explained(refine.squares(refine.magnitude("gradient"), side)).view(-1, *IMAGE)
    maps = explained(refine.magnitude("gradient")).view(-1, *IMAGE)
    reach = side // 2
    for row, column in ((0, 0), (2, 5), (IMAGE[0] - 1, IMAGE[1] - 1)):
        around = maps[:, max(0, row - reach) : row + reach + 1, max(0, column - reach) : column + reach + 1]
        torch.testing.assert_close(found[:, row, column], around.flatten(1).mean(1))
