"""A segment map says which elements form a feature; spreading and pooling go between the two."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from faithlab import segments


def test_pixels_count_row_by_row():
    assert segments.pixels(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_patches_count_row_by_row():
    assert segments.patches(4, 6, 2).tolist() == [
        [0, 0, 1, 1, 2, 2],
        [0, 0, 1, 1, 2, 2],
        [3, 3, 4, 4, 5, 5],
        [3, 3, 4, 4, 5, 5],
    ]


def test_patches_of_one_are_pixels():
    assert torch.equal(segments.patches(4, 6, 1), segments.pixels(4, 6))


def test_series_and_texts_have_their_own_maps():
    assert segments.time_steps(3).tolist() == [[0], [1], [2]]
    assert segments.values(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert segments.tokens(3).tolist() == [0, 1, 2]


MAPS = {
    "pixels": (segments.pixels(4, 6), (3, 4, 6), 24),
    "patches": (segments.patches(4, 6, 2), (3, 4, 6), 6),
    "superpixels": (torch.tensor([[0, 0, 2, 2], [1, 0, 2, 1]]), (1, 2, 4), 3),
    "channels apart": (torch.arange(12).view(3, 2, 2), (3, 2, 2), 12),
    "shuffled": (torch.tensor([[3, 1], [0, 2]]), (2, 2, 2), 4),
    "time steps": (segments.time_steps(5), (5, 2), 5),
    "values": (segments.values(5, 2), (5, 2), 10),
    "tokens": (segments.tokens(7), (7,), 7),
}
maps = pytest.mark.parametrize(("segmentation", "shape", "features"), MAPS.values(), ids=MAPS.keys())


@maps
def test_count(segmentation, shape, features):
    assert segments.count(segmentation) == features


@maps
def test_spread_gives_each_element_its_features_value(segmentation, shape, features):
    values = torch.rand(2, 3, features)
    spread = segments.spread(values, segmentation)
    assert spread.shape == (2, 3, *segmentation.shape)
    for index in torch.cartesian_prod(*map(torch.arange, segmentation.shape)).view(-1, segmentation.ndim).tolist():
        assert torch.equal(spread[:, :, *index], values[..., segmentation[tuple(index)]])


@maps
def test_pool_sums_each_features_elements(segmentation, shape, features):
    elements = torch.rand(2, *shape, dtype=torch.float64)
    owner = segmentation.expand(shape)
    expected = torch.stack([elements[:, owner == f].sum(-1) for f in range(features)], -1)
    torch.testing.assert_close(segments.pool(elements, segmentation), expected)


@given(st.lists(st.integers(0, 4), min_size=6, max_size=6), st.integers(0, 2**31))
def test_pooling_what_was_spread_multiplies_by_the_features_sizes(owners, seed):
    segmentation = torch.tensor(owners).unique(return_inverse=True)[1].view(2, 3)
    features = segments.count(segmentation)
    values = torch.rand(1, features, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    sizes = segmentation.flatten().bincount()
    torch.testing.assert_close(segments.pool(segments.spread(values, segmentation), segmentation), values * sizes)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.float16, torch.bfloat16])
def test_pooled_sums_do_not_overflow(dtype):
    elements = torch.full((1, 2000), 100, dtype=dtype)
    assert segments.pool(elements, torch.zeros(2000, dtype=torch.int64)).item() == 200_000


def test_a_map_for_each_input_is_refused_where_its_size_fits_the_channels():
    own = torch.stack([segments.patches(4, 4, 2), segments.patches(4, 4, 2).T, segments.patches(4, 4, 2).flip(0)])
    with pytest.raises(ValueError, match="expected one map for all inputs, but got one for each of 3"):
        segments.count_of(own, torch.rand(3, 3, 4, 4))
    for alike in (own[:1].expand(3, -1, -1), torch.arange(48).view(3, 4, 4)):  # one map; channels apart
        assert segments.count_of(alike, torch.rand(3, 3, 4, 4)) == segments.count(alike)
    assert segments.count_of(segments.tokens(4), torch.rand(4, 4)) == 4


@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 3, 4), (4,), (2, 2, 3, 4)])
def test_a_map_that_fits_no_input_is_refused(shape):
    with pytest.raises(ValueError, match="do not broadcast to the shape of one input"):
        segments.count_of(torch.arange(torch.Size(shape).numel()).view(shape), torch.rand(7, 3, 5))


def test_values_of_another_map_are_not_spread():
    for features in (3, 7):
        with pytest.raises(RuntimeError):
            segments.spread(torch.rand(2, features), segments.patches(4, 6, 2))
