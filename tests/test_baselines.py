"""What stands in for a removed feature."""

import math
from functools import partial

import pytest
import scipy.ndimage
import torch
from hypothesis import given
from hypothesis import strategies as st

from faithlab import baselines, engine, segments
from faithlab.task import Task

IMAGES = torch.rand(2, 3, 12, 10, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "reference",
    [baselines.zero, baselines.mean, partial(baselines.blur, sigma=1.5), baselines.given(IMAGES + 1)],
    ids=["zero", "mean", "blur", "given"],
)
def test_a_reference_is_one_number_or_has_the_inputs_dimensions_and_leaves_them_alone(reference):
    before = IMAGES.clone()
    stand_in = reference(IMAGES)
    assert stand_in.ndim in (0, IMAGES.ndim)
    assert torch.broadcast_shapes(stand_in.shape, IMAGES.shape) == IMAGES.shape
    assert stand_in.dtype == IMAGES.dtype
    assert torch.equal(IMAGES, before)


def test_zero_is_zero():
    assert baselines.zero(IMAGES).item() == 0


# The mean


def literal_mean(x, layout):
    """The mean of one input's numbers of one channel, number by number, put at each of them."""
    sums = {}
    kept = [place for place, letter in enumerate(layout) if letter in "BC"]
    for where in torch.cartesian_prod(*(torch.arange(size) for size in x.shape)).tolist():
        sums.setdefault(tuple(where[place] for place in kept), []).append(x[tuple(where)].item())
    expected = torch.empty_like(x)
    for where in torch.cartesian_prod(*(torch.arange(size) for size in x.shape)).tolist():
        numbers = sums[tuple(where[place] for place in kept)]
        expected[tuple(where)] = math.fsum(numbers) / len(numbers)
    return expected


# Sizes that are equal where a wrong layout would then still broadcast.
@pytest.mark.parametrize(
    ("shape", "layout", "own"),
    [
        ((4, 4), "BT", "BT"),
        ((4, 4, 4), None, "BTC"),
        ((3, 5, 2), None, "BTC"),
        ((4, 4, 4), "BCT", "BCT"),
        ((3, 4, 4), "BHW", "BHW"),
        ((3, 3, 3, 3), None, "BCHW"),
        ((2, 4, 5, 3), "BHWC", "BHWC"),
        ((2, 3, 2, 4, 5), None, "BCTHW"),
        ((2, 3, 2, 4, 5), "BTCHW", "BTCHW"),
    ],
)
def test_mean_is_each_inputs_own_per_channel_in_every_layout(shape, layout, own):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    means = baselines.mean(x, layout)
    assert means.shape == tuple(size if letter in "BC" else 1 for size, letter in zip(shape, own, strict=True))
    torch.testing.assert_close(means.expand_as(x), literal_mean(x, own))


class Weighted(torch.nn.Module):
    def forward(self, x):
        seen = x.flatten(1) @ torch.linspace(-1, 1, x[0].numel(), dtype=x.dtype)
        return torch.stack([seen, -seen], 1)


def test_mean_of_a_table_is_each_features_own_over_the_inputs():
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(1)) * torch.tensor([1.0, 10, 100, 1000])
    torch.testing.assert_close(baselines.mean(x), x.mean(0, keepdim=True))


# The channels are the dimension over which the map does not vary, whatever the sizes.
@pytest.mark.parametrize(
    ("shape", "features", "layout"),
    [
        ((4, 4), segments.tokens(4), "BF"),
        ((4, 4, 4), segments.time_steps(4), "BTC"),
        ((4, 4, 4), segments.time_steps(4).T, "BCT"),
        ((4, 1, 4), segments.tokens(4), "BCT"),
        ((4, 4, 4), segments.time_steps(4).expand(4, 4), "BTC"),
        ((4, 4, 4, 4), segments.patches(4, 4, 2), "BCHW"),
        ((4, 4, 4, 4), segments.patches(4, 4, 2)[..., None], "BHWC"),
        ((4, 3, 4, 4), torch.arange(4).repeat_interleave(4).view(4, 4), "BCHW"),  # rows of pixels
        ((4, 2, 3, 4, 4), segments.pixels(4, 4), "BCTHW"),
    ],
)
def test_the_engine_puts_the_mean_of_the_maps_layout_where_a_feature_is_removed(shape, features, layout, recwarn):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    expected = baselines.mean(x, layout)
    torch.testing.assert_close(engine.stand_in_of(baselines.mean, x, features), expected)
    task = Task(Weighted(), x, torch.zeros(4, dtype=torch.int64), features)
    keep = torch.rand(4, 3, segments.count(features), generator=torch.Generator().manual_seed(3)) < 0.5
    kept = segments.spread(keep, features)
    kept = kept.view(4, 3, *[1] * (x.ndim - 1 - features.ndim), *features.shape)
    masked = torch.where(kept, x[:, None], expected[:, None]).flatten(0, 1)
    found = Weighted()(masked).softmax(1)[:, 0].view(4, 3).float()
    torch.testing.assert_close(task.score(baseline="mean")(keep), found)
    part = task.part(torch.tensor([2, 0]))
    torch.testing.assert_close(part.score(baseline="mean")(keep[[2, 0]]), found[[2, 0]])
    assert not recwarn.list


def test_a_map_of_every_value_tells_no_layout():
    with pytest.warns(UserWarning, match=r"of inputs \(2, 5, 3\) .* taken for BTC"):
        engine.stand_in_of(baselines.mean, torch.rand(2, 5, 3), segments.values(5, 3))


@pytest.mark.parametrize(
    ("x", "layout", "message"),
    [
        (torch.rand(4), None, "laid out as B, have no mean"),
        (torch.rand(1, 1, 1, 1, 1, 1), None, "a layout of different letters, B first"),
        (IMAGES, "CBHW", "B first"),
        (IMAGES, "BCHH", "different letters"),
        (torch.rand(2, 3), "BC", r"laid out as BC, have no mean; give lambda x: data\.mean\(0\)"),
        (torch.rand(1, 3), None, "laid out as BF, have no mean"),
    ],
)
def test_a_mean_that_has_no_meaning_is_an_error(x, layout, message):
    with pytest.raises(ValueError, match=message):
        baselines.mean(x, layout)


# The blur


def literal_blur(x, sigma):
    """One two-dimensional convolution with the whole window, in float64."""
    reach = min(int(3 * sigma + 0.5), min(x.shape[-2:]) - 1)
    line = [math.exp(-0.5 * (i / sigma) ** 2) for i in range(-reach, reach + 1)]
    window = torch.tensor([[a * b for b in line] for a in line], dtype=torch.float64)
    padded = torch.nn.functional.pad(x.double(), (reach,) * 4, mode="reflect")
    window = (window / window.sum()).expand(x.shape[1], 1, -1, -1)
    return torch.nn.functional.conv2d(padded, window, groups=x.shape[1])


@given(
    shape=st.tuples(*(st.integers(1, 4) for _ in range(2)), *(st.integers(1, 20) for _ in range(2))),
    sigma=st.floats(0.2, 8),
    layout=st.sampled_from([torch.contiguous_format, torch.channels_last]),
)
def test_blur_is_a_convolution_with_a_gaussian(shape, sigma, layout):
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0)).to(memory_format=layout)
    torch.testing.assert_close(baselines.blur(x, sigma).double(), literal_blur(x, sigma), atol=2e-6, rtol=0)


def test_blur_is_a_convolution_with_a_wide_gaussian():
    x = torch.rand(1, 2, 60, 50, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(baselines.blur(x, 28).double(), literal_blur(x, 28), atol=2e-6, rtol=0)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_blur_is_scipys_gaussian(sigma):
    # The image mirrored without its edge pixel; scipy's window is int(truncate * sigma + 0.5) wide on each side.
    expected = scipy.ndimage.gaussian_filter(IMAGES.numpy(), sigma, mode="mirror", truncate=3, axes=(2, 3))
    torch.testing.assert_close(baselines.blur(IMAGES, sigma), torch.from_numpy(expected), atol=1e-5, rtol=0)


def test_blur_keeps_a_flat_image_and_works_where_the_window_exceeds_the_image():
    torch.testing.assert_close(baselines.blur(torch.full((1, 1, 4, 6), 0.3), 5.0), torch.full((1, 1, 4, 6), 0.3))


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16])
def test_blur_of_half_precision_is_rounded_once(precision):
    x = IMAGES.to(precision)
    assert torch.equal(baselines.blur(x, 1.5), baselines.blur(x.float(), 1.5).to(precision))


# Tokens and stand-ins made beforehand


def test_token_is_one_token_of_the_texts_type():
    texts = torch.randint(100, (2, 5))
    assert baselines.token(texts, 7).expand_as(texts).tolist() == [[7] * 5] * 2
    assert baselines.token(texts, 7).dtype == texts.dtype
    with pytest.raises(TypeError, match="as an integer"):
        baselines.token(texts, 1.5)


def test_stand_ins_of_another_kind_than_the_inputs_are_not_rounded():
    ids = torch.tensor([[3, 4]])
    with pytest.raises(ValueError, match=r"torch\.int64, but it gives torch\.float32"):
        engine.stand_in_of(baselines.given(torch.tensor([[0.5, 1.5]])), ids, segments.tokens(2))
