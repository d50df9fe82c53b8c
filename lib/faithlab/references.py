"""What stands in for a removed feature. Each takes inputs [B, *S] and returns values that broadcast to them."""

from collections.abc import Callable

import torch
from torch import Tensor
from torchvision.transforms.v2.functional import gaussian_blur


def zero(x: Tensor) -> Tensor:
    """Zero, the reference of F-Fidelity; on normalised images this is the data set's mean colour."""
    return x.new_zeros(())


def mean(x: Tensor) -> Tensor:
    """Each image's own mean per channel, the reference of SaCo: [B, C, H, W] -> [B, C, 1, 1]."""
    return x.mean(dim=(-2, -1), keepdim=True)


def blur(x: Tensor, sigma: float) -> Tensor:
    """Each image blurred by a Gaussian of `sigma` pixels (its window holds three sigmas each side): [B, C, H, W]."""
    window = min(2 * int(3 * sigma + 0.5) + 1, 2 * min(x.shape[-2:]) - 1)
    return gaussian_blur(x, [window, window], [sigma, sigma])


def token(x: Tensor, identity: int) -> Tensor:
    """One token, the mask or padding token of a vocabulary, for texts x [B, T] of token ids."""
    return torch.full((), identity, dtype=x.dtype, device=x.device)


def given(images: Tensor) -> Callable[[Tensor], Tensor]:
    """A reference of its own for each input, made beforehand, such as those of `faithlab.perturbed`: [B, *S].

    Returns:
        A reference for exactly these inputs, in this order.

    Raises:
        ValueError: (from the reference) inputs of another shape or number.
    """

    def reference(x: Tensor) -> Tensor:
        if x.shape != images.shape:
            raise ValueError(
                f"the reference was made for inputs {tuple(images.shape)}, but got inputs {tuple(x.shape)}; take the "
                "same images from both"
            )
        return images.to(x)

    return reference
