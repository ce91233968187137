"""Networks for images that attend to their parts, as exporters write them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from written_models import Case, Weight, written


def _patch_weights() -> dict[str, Weight]:
    """The weights of `vision_transformer`."""
    weights: dict[str, Weight] = {"w1": (24, 3, 8, 8), "b1": (24,), "token": (1, 1, 24), "bplaces": (1, 10, 24)}
    weights |= {
        "sn": (24,),
        "bn": (24,),
        "wqkv": (24, 72),
        "bqkv": (72,),
        "wo": (24, 24),
        "wu": (24, 48),
        "wd": (48, 24),
    }
    weights |= {"wc": (5, 24), "bc": (5,), "heads": np.array([0, 0, 3, 4, 6]), "root": np.array(6**-0.5, np.float32)}
    weights |= {"rest": np.array([-1]), "tail": np.array([1, 24]), "joined": np.array([0, 0, 24])}
    weights |= {
        "half": np.array(0.5, np.float32),
        "one": np.array(1, np.float32),
        "root2": np.array(2**0.5, np.float32),
    }
    return weights


def vision_transformer() -> Case:
    """ViT (Dosovitskiy et al. 2020) for any number of images: patches, a class token, one layer."""
    return written(
        "(float[batch, 3, 24, 24] image) => (float[batch, 5] logits)",
        """
        patches = Conv <strides = [8, 8]> (image, w1, b1)
        shape = Shape <start = 0, end = 2> (patches)
        flat_shape = Concat <axis = 0> (shape, rest)
        flat = Reshape (patches, flat_shape)
        rows = Transpose <perm = [0, 2, 1]> (flat)
        count = Shape <start = 0, end = 1> (image)
        wanted = Concat <axis = 0> (count, tail)
        tokens = Expand (token, wanted)
        all = Concat <axis = 1> (tokens, rows)
        x = Add (all, bplaces)
        n = LayerNormalization <axis = -1> (x, sn, bn)
        product = MatMul (n, wqkv)
        qkv = Add (product, bqkv)
        apart = Reshape (qkv, heads)
        by_head = Transpose <perm = [2, 0, 3, 1, 4]> (apart)
        i0 = Constant <value_int = 0> ()
        i1 = Constant <value_int = 1> ()
        i2 = Constant <value_int = 2> ()
        q = Gather <axis = 0> (by_head, i0)
        k = Gather <axis = 0> (by_head, i1)
        v = Gather <axis = 0> (by_head, i2)
        kt = Transpose <perm = [0, 1, 3, 2]> (k)
        qs = Mul (q, root)
        scores = MatMul (qs, kt)
        weights = Softmax <axis = -1> (scores)
        seen = MatMul (weights, v)
        back = Transpose <perm = [0, 2, 1, 3]> (seen)
        one_row = Reshape (back, joined)
        o = MatMul (one_row, wo)
        y = Add (x, o)
        m = LayerNormalization <axis = -1> (y, sn, bn)
        u = MatMul (m, wu)
        scaled = Div (u, root2)
        e = Erf (scaled)
        e1 = Add (e, one)
        ue = Mul (u, e1)
        g = Mul (ue, half)
        d = MatMul (g, wd)
        z = Add (y, d)
        first = Gather <axis = 1> (z, i0)
        logits = Gemm <transB = 1> (first, wc, bc)
        """,
        _patch_weights(),
        sizes={"batch": 2},
    )


def _window_weights() -> dict[str, Weight]:
    """The weights of `shifted_windows`, and which windows see what, by number."""
    area = np.zeros((8, 8))
    for row, rows in enumerate((slice(0, 4), slice(4, 6), slice(6, 8))):
        for column, columns in enumerate((slice(0, 4), slice(4, 6), slice(6, 8))):
            area[rows, columns] = 3 * row + column
    areas = area.reshape(2, 4, 2, 4).transpose(0, 2, 1, 3).reshape(4, 1, 16)
    mask = np.where(areas != areas.transpose(0, 2, 1), -100, 0).astype(np.float32)[None, :, None]
    place = np.stack(np.meshgrid(np.arange(4), np.arange(4), indexing="ij")).reshape(2, 16)
    apart = place[:, :, None] - place[:, None] + 3
    weights: dict[str, Weight] = {"wqkv": (16, 48), "wo": (16, 16), "wr": (64, 24), "sn": (16,), "bn": (16,)}
    weights |= {"btable": (49, 2), "index": (apart[0] * 7 + apart[1]).reshape(-1), "mask": mask}
    weights |= {f"i{n}": np.array([n]) for n in (0, 1, 2)} | {"im2": np.array([-2])} | {"end": np.array([2**63 - 1])}
    weights |= {
        "windows": np.array([1, 2, 4, 2, 4, 16]),
        "rows": np.array([-1, 16, 16]),
        "heads": np.array([4, 16, 3, 2, 8]),
    }
    weights |= {
        "square": np.array([16, 16, -1]),
        "masked": np.array([-1, 4, 2, 16, 16]),
        "merged": np.array([-1, 2, 16, 16]),
    }
    weights |= {
        "back": np.array([1, 2, 2, 4, 4, 16]),
        "image": np.array([1, 8, 8, 16]),
        "root": np.array(8**-0.5, np.float32),
    }
    return weights


def shifted_windows() -> Case:
    """A layer of Swin (Liu et al. 2021): images rolled by Slice and Concat, attention in windows, patches merged."""

    def rolled(x: str, axis: int, at: int) -> str:
        cut = f"i{at}".replace("-", "m")
        return f"""
            {x}l{axis} = Slice ({x}{axis}, {cut}, end, i{axis})
            {x}r{axis} = Slice ({x}{axis}, i0, {cut}, i{axis})
            {x}{axis + 1} = Concat <axis = {axis}> ({x}l{axis}, {x}r{axis})"""

    return written(
        "(float[1, 8, 8, 16] x) => (float[1, 4, 4, 24] y)",
        f"""
        f1 = LayerNormalization <axis = -1> (x, sn, bn)
        {rolled("f", 1, 2)} {rolled("f", 2, 2)}
        cut = Reshape (f3, windows)
        ordered = Transpose <perm = [0, 1, 3, 2, 4, 5]> (cut)
        tokens = Reshape (ordered, rows)
        product = MatMul (tokens, wqkv)
        apart = Reshape (product, heads)
        by_head = Transpose <perm = [2, 0, 3, 1, 4]> (apart)
        q3, k3, v3 = Split <axis = 0> (by_head)
        q = Squeeze (q3, i0)
        k = Squeeze (k3, i0)
        v = Squeeze (v3, i0)
        qs = Mul (q, root)
        kt = Transpose <perm = [0, 1, 3, 2]> (k)
        scores = MatMul (qs, kt)
        offsets = Gather <axis = 0> (btable, index)
        by_place = Reshape (offsets, square)
        first = Transpose <perm = [2, 0, 1]> (by_place)
        bias = Unsqueeze (first, i0)
        biased = Add (scores, bias)
        by_window = Reshape (biased, masked)
        hidden = Add (by_window, mask)
        together = Reshape (hidden, merged)
        attention = Softmax <axis = -1> (together)
        seen = MatMul (attention, v)
        joined = Transpose <perm = [0, 2, 1, 3]> (seen)
        flat = Reshape (joined, rows)
        o = MatMul (flat, wo)
        apart6 = Reshape (o, back)
        moved = Transpose <perm = [0, 1, 3, 2, 4, 5]> (apart6)
        g1 = Reshape (moved, image)
        {rolled("g", 1, -2)} {rolled("g", 2, -2)}
        z = Add (x, g3)
        even = Slice (z, i0, end, i1, i2)
        odd = Slice (z, i1, end, i1, i2)
        p0 = Slice (even, i0, end, i2, i2)
        p1 = Slice (odd, i0, end, i2, i2)
        p2 = Slice (even, i1, end, i2, i2)
        p3 = Slice (odd, i1, end, i2, i2)
        four = Concat <axis = -1> (p0, p1, p2, p3)
        y = MatMul (four, wr)
        """,
        _window_weights(),
    )


TRANSFORMERS: dict[str, Callable[[], Case]] = {
    "vision transformer": vision_transformer,
    "shifted windows": shifted_windows,
}
"""Networks for images that attend to their parts, by name."""
