"""A score that remembers: a subset that was asked about before needs no forward."""

import torch
from torch import Tensor

from faithlab import rng
from faithlab.engine import Score


class Remembered:
    """A score that remembers its answers.

    Subsets are told apart by 64-bit sums of random words (two differ in vain once in 2^64), each in the slot of a table
    that its last bits name; a newer subset takes an older one's slot.

    Args:
        score: see `faithlab.engine.scorer`.
        capacity: slots, a power of 2; each takes 12 bytes.

    Attributes:
        asked: pairs that were asked about.
        forwards: pairs that were passed on to the score.
    """

    def __init__(self, score: Score, capacity: int = 1 << 22):
        self.score, self.capacity = score, capacity
        self.asked = self.forwards = 0
        self._keys = self._values = self._words = None

    def __call__(self, keep: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return the scores of pairs, keep [R, F] and images [R] -> [R] float32, or of masks of all, [B, M, F]."""
        if positions is None:
            pairs = torch.arange(len(keep), device=keep.device).repeat_interleave(keep.shape[1])
            return self(keep.flatten(0, 1), pairs).view(keep.shape[:2])
        key = self._key(keep, positions)
        self.asked += len(key)
        slot = key & (self.capacity - 1)
        found = self._values[slot]
        known = (self._keys[slot] == key) & ~found.isnan()
        new, inverse = key[~known].unique(return_inverse=True)
        if len(new):
            # The first pair of each new key stands for all of them.
            first = torch.full_like(new, len(key)).scatter_reduce_(
                0, inverse, (~known).nonzero()[:, 0], "amin", include_self=True
            )
            self.forwards += len(first)
            fresh = self.score(keep[first], positions[first]).to(found)
            found[~known] = fresh[inverse]
            slot = new & (self.capacity - 1)
            # Of two new keys with one slot only the one that stayed may leave its value. NaN: nothing yet, so that an
            # interrupt between these lines leaves no value under another's key.
            self._values[slot] = torch.nan
            self._keys[slot] = new
            stayed = self._keys[slot] == new
            self._values[slot[stayed]] = fresh[stayed]
        return found

    def _key(self, keep: Tensor, positions: Tensor) -> Tensor:
        if self._words is None:
            here = torch.zeros(1, dtype=torch.int64, device=keep.device)
            self._words = rng.bits(0, here, here, keep.shape[1] + 1)[0, 0]
            self._keys = torch.zeros(self.capacity, dtype=torch.int64, device=keep.device)
            # No answer yet is a key of 0, which only one subset in 2^64 has.
            self._values = torch.zeros(self.capacity, dtype=torch.float32, device=keep.device)
        return (keep * self._words[:-1]).sum(-1) + (positions.to(keep.device) + 1) * self._words[-1]
