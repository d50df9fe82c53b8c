"""What stands in for a removed feature."""

import math
from functools import partial

import pytest
import scipy.ndimage
import torch
from hypothesis import given
from hypothesis import strategies as st

from faithlab import baselines, engine, segments

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
        ((4, 4), None, "BF"),
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


@pytest.mark.parametrize(
    ("shape", "layout", "features"),
    [((4, 4), "BF", segments.tokens(4)), ((4, 4, 4), "BTC", segments.time_steps(4))],
    ids=["table", "series"],
)
def test_the_engine_puts_an_inputs_own_mean_where_a_feature_is_removed(shape, layout, features):
    # As many inputs as features: means that belong to the wrong input would fit, too.
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    target = torch.zeros(len(x), dtype=torch.int64)
    score = engine.scorer(Weighted(), x, target, segments=features, baseline=baselines.mean)
    keep = ~torch.eye(4, dtype=torch.bool).expand(4, 4, 4)
    expected = torch.empty(4, 4)
    for image in range(4):
        for feature in range(4):
            masked = x[image].clone()
            masked[feature] = literal_mean(x, layout)[image, feature]
            expected[image, feature] = Weighted()(masked[None]).softmax(1)[0, 0]
    torch.testing.assert_close(score(keep), expected)


@pytest.mark.parametrize(
    ("x", "layout", "message"),
    [
        (torch.randint(9, (2, 5)), None, r"token ids have no mean, use baselines\.token"),
        (torch.randint(9, (2, 5), dtype=torch.uint8), None, r"token ids have no mean, use baselines\.token"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), None, "these are uint8 images: make them floating"),
        (torch.rand(4), None, r"layout of inputs \(4,\) is not known"),
        (torch.rand(1, 1, 1, 1, 1, 1), None, r"layout of inputs .* is not known"),
        (IMAGES, "BTC", r"layout of 4 different letters that begins with B, .* but got 'BTC'"),
        (IMAGES, "CBHW", "begins with B"),
        (IMAGES, "BCHH", "4 different letters"),
        (torch.rand(2, 3), "BC", "leaves nothing to take the mean over"),
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


@pytest.mark.parametrize("x", [IMAGES[0], torch.rand(2, 3, 4, 5, 6), torch.randint(255, (1, 3, 4, 4))])
def test_a_blur_of_what_is_no_image_is_an_error(x):
    with pytest.raises(ValueError, match=r"blur is for floating-point images \[B, C, H, W\], but got torch"):
        baselines.blur(x, 1.0)


@pytest.mark.parametrize("sigma", [0, -1.0, math.nan, math.inf])
def test_a_blur_of_no_width_is_an_error(sigma):
    with pytest.raises(ValueError, match=f"a positive sigma in pixels, but got {sigma}"):
        baselines.blur(IMAGES, sigma)


# Tokens and stand-ins made beforehand


def test_token_is_one_token_of_the_texts_type():
    texts = torch.randint(100, (2, 5))
    assert baselines.token(texts, 7).expand_as(texts).tolist() == [[7] * 5] * 2
    assert baselines.token(texts, 7).dtype == texts.dtype


@pytest.mark.parametrize(
    ("x", "identity", "message"),
    [
        (IMAGES, 1, "stands in for token ids, integers, but the inputs are torch.float32"),
        (torch.tensor([[True, False]]), 1, "the inputs are torch.bool"),
        (torch.tensor([[3, 4]]), -1, "the id of a token, an integer from 0, but got -1"),
        (torch.tensor([[3, 4]]), 1.5, "but got 1.5"),
        (torch.tensor([[3, 4]]), True, "but got True"),
        (torch.tensor([[3, 4]]), "[MASK]", r"but got '\[MASK\]'"),
        (torch.tensor([[3, 4]], dtype=torch.uint8), 300, "but got 300"),
    ],
)
def test_what_is_no_token_is_an_error(x, identity, message):
    with pytest.raises(ValueError, match=message):
        baselines.token(x, identity)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (IMAGES.numpy(), "a stand-in for each input, .* but got ndarray"),
        (torch.zeros(()), r"but got shape \(\)"),
        (IMAGES * torch.nan, "the stand-ins hold NaN"),
    ],
)
def test_stand_ins_that_are_none_are_an_error(images, message):
    with pytest.raises(ValueError, match=message):
        baselines.given(images)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (IMAGES[:1], r"made for inputs \(2, 3, 12, 10\), but got inputs \(1, 3, 12, 10\)"),
        (IMAGES.mT, "take the same images from both"),
        (IMAGES.long(), "made of torch.float32, but the inputs are torch.int64"),
    ],
)
def test_stand_ins_of_other_inputs_are_an_error(x, message):
    with pytest.raises(ValueError, match=message):
        baselines.given(IMAGES)(x)
