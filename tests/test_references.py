"""What stands in for a removed feature."""

import pytest
import scipy.ndimage
import torch

from faithlab import references

IMAGES = torch.rand(2, 3, 12, 10, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "reference", [references.zero, references.mean, lambda x: references.blur(x, 1.5)], ids=["zero", "mean", "blur"]
)
def test_a_reference_broadcasts_to_the_inputs_and_leaves_them_alone(reference):
    before = IMAGES.clone()
    stand_in = reference(IMAGES)
    assert torch.broadcast_shapes(stand_in.shape, IMAGES.shape) == IMAGES.shape
    assert stand_in.dtype == IMAGES.dtype
    assert torch.equal(IMAGES, before)


def test_zero_is_zero():
    assert references.zero(IMAGES).item() == 0


def test_mean_is_each_images_own_per_channel():
    means = references.mean(IMAGES)
    for image in range(2):
        for channel in range(3):
            assert means[image, channel].item() == pytest.approx(IMAGES[image, channel].double().mean().item())


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_blur_is_scipys_gaussian(sigma):
    # The image mirrored without its edge pixel; scipy's window is int(truncate * sigma + 0.5) wide on each side.
    expected = scipy.ndimage.gaussian_filter(IMAGES.numpy(), sigma, mode="mirror", truncate=3, axes=(2, 3))
    torch.testing.assert_close(references.blur(IMAGES, sigma), torch.from_numpy(expected), atol=1e-5, rtol=0)


def test_blur_keeps_a_flat_image_and_works_where_the_window_exceeds_the_image():
    torch.testing.assert_close(references.blur(torch.full((1, 1, 4, 6), 0.3), 5.0), torch.full((1, 1, 4, 6), 0.3))


def test_token_is_one_token_of_the_texts_type():
    texts = torch.randint(100, (2, 5))
    assert references.token(texts, 7).expand_as(texts).tolist() == [[7] * 5] * 2
    assert references.token(texts, 7).dtype == texts.dtype
