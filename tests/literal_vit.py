"""A Vision Transformer once more, for one image, in plain NumPy from the equations; nothing imported from faithlab.

`forward` takes attention maps, tokens or divisors of LayerNorm in place of its own, so that derivatives by them are
differences of two forwards. `relevance` hands the relevance of a logit back, operation by operation, as Chefer,
Gur and Wolf (CVPR 2021) write it.
"""

import math

import numpy as np


class Literal:
    """A network of timm's VisionTransformer with a class token, by its state dict."""

    plain = False  # the rules of the rivals in Chefer, Gur and Wolf's code: sums are not scaled, products halved

    def __init__(self, state, patch: int, heads: int, depth: int):
        self.w = {name: tensor.double().numpy() for name, tensor in state.items()}
        self.patch, self.heads, self.depth = patch, heads, depth

    # Forward

    def patches(self, image):
        """[C, H, W] -> [patches, C * p * p], row by row."""
        _, height, width = image.shape
        p = self.patch
        cut = [
            image[:, top : top + p, left : left + p].ravel()
            for top in range(0, height, p)
            for left in range(0, width, p)
        ]
        return np.array(cut)

    def embed(self, image):
        kernel = self.w["patch_embed.proj.weight"]
        tokens = self.patches(image) @ kernel.reshape(len(kernel), -1).T + self.w["patch_embed.proj.bias"]
        return np.concatenate([self.w["cls_token"][0], tokens])

    def norm(self, name, x, deviations=None):
        d = np.sqrt(x.var(-1, keepdims=True) + 1e-6)
        if deviations is not None:
            if name in deviations:
                d = deviations[name]
            deviations[name] = d
        return (x - x.mean(-1, keepdims=True)) / d * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def linear(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def split(self, qkv):
        """[T, 3 * D] -> q, k, v, each a list over heads of [T, d]."""
        return [np.split(part, self.heads, axis=1) for part in np.split(qkv, 3, axis=1)]

    def forward(self, image, attention=None, tokens=None, deviations=None):
        """The logits; what happened on the way is kept in `self.seen`.

        attention: {layer: [heads, T, T]} and tokens: {layer: [T, D]} replace the network's own.
        deviations: a dict, filled where empty and used where filled.
        """
        s = self.seen = {}
        s["embedded"] = self.embed(image)
        x = s["embedded"] + self.w["pos_embed"][0]
        for layer in range(self.depth):
            b = f"blocks.{layer}"
            if tokens and layer in tokens:
                x = tokens[layer]
            s["tokens", layer] = x
            s["n1", layer] = self.norm(f"{b}.norm1", x, deviations)
            q, k, v = self.split(self.linear(f"{b}.attn.qkv", s["n1", layer]))
            s["qkv", layer] = q, k, v
            logits = [qh @ kh.T / math.sqrt(qh.shape[1]) for qh, kh in zip(q, k, strict=True)]
            maps = np.array([np.exp(z - z.max(-1, keepdims=True)) for z in logits])
            maps /= maps.sum(-1, keepdims=True)
            if attention and layer in attention:
                maps = attention[layer]
            s["attention", layer] = maps
            s["mixed", layer] = np.concatenate([a @ vh for a, vh in zip(maps, v, strict=True)], axis=1)
            s["attended", layer] = self.linear(f"{b}.attn.proj", s["mixed", layer])
            x = s["middle", layer] = x + s["attended", layer]
            s["n2", layer] = self.norm(f"{b}.norm2", x, deviations)
            hidden = self.linear(f"{b}.mlp.fc1", s["n2", layer])
            s["active", layer] = hidden * np.vectorize(lambda t: (1 + math.erf(t / math.sqrt(2))) / 2)(hidden)
            s["mlp", layer] = self.linear(f"{b}.mlp.fc2", s["active", layer])
            x = x + s["mlp", layer]
        s["last"] = self.norm("norm", x, deviations)
        return self.linear("head", s["last"][0])

    def slope(self, of, at, image, target, step=1e-5):
        """The derivative of the target's logit by an array that `forward` takes, entry by entry."""
        derivative = np.zeros_like(at)
        for place in np.ndindex(at.shape):
            up, down = at.copy(), at.copy()
            up[place] += step
            down[place] -= step
            derivative[place] = (of(up)[target] - of(down)[target]) / (2 * step)
        return derivative

    # Relevance

    def through_linear(self, name, x, relevance):
        """Only positive products x_j w_ij take part, and the bias does not."""
        weight = self.w[f"{name}.weight"]
        received = np.zeros_like(x)
        for t in range(len(x)):
            for i in range(len(weight)):
                products = np.maximum(x[t] * weight[i], 0)
                if products.sum() > 0:
                    received[t] += products / products.sum() * relevance[t, i]
        return received

    def normalised(self, a, b, relevance):
        """Both sides' relevance scaled to their parts of the whole."""
        if self.plain:
            return [a, b]
        total = abs(a.sum()) + abs(b.sum())
        return [part * (abs(part.sum()) / total * relevance.sum() / part.sum()) for part in (a, b)]

    def through_sum(self, a, b, relevance):
        z = a + b
        return self.normalised(a / z * relevance, b / z * relevance, relevance)

    def through_products(self, pairs, relevance):
        """Of matrix products a @ b, one per head; normalised over all heads together."""
        received = []
        for (a, b), r in zip(pairs, relevance, strict=True):
            ratio = r / (a @ b)
            received.append((a * (ratio @ b.T), b * (a.T @ ratio)))
            if self.plain:
                received[-1] = tuple(side / 2 for side in received[-1])
        left, right = (np.array([of[side] for of in received]) for side in (0, 1))
        return self.normalised(left, right, np.array(relevance))

    def relevance(self, image, target):
        """Relevance, 1 at the target's logit: {("attention" | "tokens", layer): array, "pixels": [patches, C p p]}."""
        s, found = self.seen, {}
        one = np.zeros((1, len(self.w["head.bias"])))
        one[0, target] = 1
        r = np.zeros_like(s["last"])
        r[:1] = self.through_linear("head", s["last"][:1], one)
        for layer in reversed(range(self.depth)):
            b = f"blocks.{layer}"
            skip, r = self.through_sum(s["middle", layer], s["mlp", layer], r)
            r = self.through_linear(f"{b}.mlp.fc2", s["active", layer], r)
            r = skip + self.through_linear(f"{b}.mlp.fc1", s["n2", layer], r)
            skip, r = self.through_sum(s["tokens", layer], s["attended", layer], r)
            r = np.split(self.through_linear(f"{b}.attn.proj", s["mixed", layer], r), self.heads, axis=1)
            q, k, v = s["qkv", layer]
            maps = s["attention", layer]
            of_maps, of_v = self.through_products(list(zip(maps, v, strict=True)), r)
            found["attention", layer] = of_maps
            of_q, of_k = self.through_products([(qh, kh.T) for qh, kh in zip(q, k, strict=True)], of_maps)
            of_qkv = np.concatenate([*of_q, *np.swapaxes(of_k, 1, 2), *of_v], axis=1)
            r = skip + self.through_linear(f"{b}.attn.qkv", s["n1", layer], of_qkv)
            found["tokens", layer] = r
        r, _ = self.through_sum(s["embedded"], np.array(self.w["pos_embed"][0]), r)
        found["pixels"] = self.through_pixels(image, r[1:])
        return found

    def through_pixels(self, image, relevance):
        """The zB rule: pixels between the image's lowest and highest value."""
        x, kernel = self.patches(image), self.w["patch_embed.proj.weight"]
        kernel = kernel.reshape(len(kernel), -1)
        low, high = image.min(), image.max()
        received = np.zeros_like(x)
        for t in range(len(x)):
            for i in range(len(kernel)):
                parts = x[t] * kernel[i] - low * np.maximum(kernel[i], 0) - high * np.minimum(kernel[i], 0)
                received[t] += parts / parts.sum() * relevance[t, i]
        return received
