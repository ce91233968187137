"""A decoder like GPT-2 whose keys and values grow from call to call, with free sizes, as exporters write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from models import GraphBuilder, layer_norm, linear
from onnx import TensorProto, numpy_helper

PAST, TOKENS, TOTAL = "past", "tokens", "past + tokens"
"""Free dimensions: how many tokens there were, how many are new, and both together."""


LOWEST = float(np.finfo(np.float32).min)
"""What hides a key."""


class _Writer:
    """The parts of a decoder that its forms have in common."""

    def __init__(self, seed: int, width: int, heads: int) -> None:
        self.g = GraphBuilder(seed)
        self.width, self.heads, self.depth = width, heads, width // heads

    def numbers(self, *items: int) -> str:
        """A constant vector of i64."""
        return self.g.weight(np.array(items, np.int64))

    def scalar(self, value: float) -> str:
        """A constant without axes, of i64 or f32."""
        name = f"w{len(self.g.initializers)}"
        array = np.array(value, np.int64 if isinstance(value, int) else np.float32)
        self.g.initializers.append(numpy_helper.from_array(array, name))
        return name

    def size(self, value: str, axis: int) -> str:
        """The size of a value along an axis, as a scalar."""
        return self.g.node("Gather", self.g.node("Shape", value), self.scalar(axis), axis=0)

    def vector(self, *scalars: str) -> str:
        """Scalars as a vector."""
        zero = self.numbers(0)
        parts = [self.g.node("Unsqueeze", scalar, zero) for scalar in scalars]
        return parts[0] if len(parts) == 1 else self.g.node("Concat", *parts, axis=0)

    def places(self, start: str, end: str) -> str:
        """The numbers from one scalar up to another."""
        return self.g.node("Range", start, end, self.scalar(1))

    def split(self, value: str) -> str:
        """[1, tokens, width] as [1, heads, tokens, depth]."""
        parts = self.g.node("Reshape", value, self.numbers(0, 0, self.heads, self.depth))
        return self.g.node("Transpose", parts, perm=[0, 2, 1, 3])


def _written_out(w: _Writer, mask: str, q: str, k: str, v: str) -> str:
    """Attention in single operators; the mask is added."""
    g = w.g
    scores = g.node("MatMul", q, g.node("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.node("Add", g.node("Div", scores, w.scalar(float(np.sqrt(w.depth)))), mask)
    seen = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
    return g.node("Reshape", g.node("Transpose", seen, perm=[0, 2, 1, 3]), w.numbers(0, 0, w.width))


def _by_comparison(w: _Writer, past: str, total: str) -> str:
    """The mask of numbers compared: a key is seen from its place on."""
    g = w.g
    queries = g.node("Unsqueeze", w.places(past, total), w.numbers(1))
    keys = g.node("Unsqueeze", w.places(w.scalar(0), total), w.numbers(0))
    hidden = g.node("Greater", keys, queries)
    lowest = w.scalar(LOWEST)
    return g.node("Where", hidden, lowest, w.scalar(0.0))


def _by_triangle(w: _Writer, past: str, total: str) -> str:
    """The mask made of a triangle of the largest numbers, of as many rows as there are tokens."""
    g = w.g
    shape = w.vector(g.node("Sub", total, past), total)
    value = numpy_helper.from_array(np.array([LOWEST], np.float32))
    full = g.node("ConstantOfShape", shape, value=value)
    return g.node("Trilu", full, g.node("Add", past, w.scalar(1)), upper=1)


def _by_table(w: _Writer, past: str, total: str) -> str:
    """The mask cut out of a table for the largest sizes, as GPT-2 of Hugging Face does."""
    g, most = w.g, 64
    table = g.weight(np.tril(np.ones((1, 1, most, most), np.bool_)))
    rows = g.node("Slice", table, w.vector(past), w.vector(total), w.numbers(2), w.numbers(1))
    seen = g.node("Slice", rows, w.numbers(0), w.vector(total), w.numbers(3), w.numbers(1))
    return g.node("Where", seen, w.scalar(0.0), w.scalar(LOWEST))


MASKS: Mapping[str, Callable[[_Writer, str, str], str]] = {
    "comparison": _by_comparison,
    "triangle": _by_triangle,
    "table": _by_table,
}
"""How a decoder of single operators makes its mask."""

FORMS = (*MASKS, "operator")
"""All forms of the decoder: by its mask, or with the operator Attention."""


def growing_decoder(
    form: str,
    seed: int = 0,
    layers: int = 2,
    width: int = 32,
    heads: int = 2,
    vocabulary: int = 50,
    most: int = 64,
) -> onnx.ModelProto:
    """Tokens, and the keys and values of those before, in; logits, and keys and values with the new ones, out."""
    w = _Writer(seed, width, heads)
    g = w.g
    tokens, past = w.size("ids", 1), w.size("keys0", 2)
    total = g.node("Add", past, tokens)
    table, rows = (g.weight((g.rng.standard_normal((n, width)) * 0.1).astype(np.float32)) for n in (vocabulary, most))
    x = g.node("Add", g.node("Gather", table, "ids"), g.node("Gather", rows, w.places(past, total)))
    mask = "" if form == "operator" else MASKS[form](w, past, total)
    inputs: dict[str, tuple[int, Sequence[int | str]]] = {"ids": (TensorProto.INT64, [1, TOKENS])}
    outputs: dict[str, Sequence[int | str]] = {}
    kept = {name: [1, heads, size, w.depth] for name, size in (("past", PAST), ("total", TOTAL))}
    for layer in range(layers):
        before = layer_norm(g, x, width)
        q, k, v = (w.split(linear(g, before, width, width)) for _ in range(3))
        old = [f"keys{layer}", f"values{layer}"]
        inputs |= {name: (TensorProto.FLOAT, kept["past"]) for name in old}
        if form == "operator":
            seen = g.node("Attention", q, k, v, "", *old, outputs=3, is_causal=1)
            k, v = f"{seen}:1", f"{seen}:2"
            seen = g.node("Reshape", g.node("Transpose", seen, perm=[0, 2, 1, 3]), w.numbers(0, 0, width))
        else:
            k, v = (g.node("Concat", name, new, axis=2) for name, new in zip(old, (k, v), strict=True))
            seen = _written_out(w, mask, q, k, v)
        outputs |= {k: kept["total"], v: kept["total"]}
        x = g.node("Add", x, linear(g, seen, width, width))
        hidden = linear(g, layer_norm(g, x, width), width, 4 * width)
        x = g.node("Add", x, linear(g, g.node("Mul", hidden, g.node("Sigmoid", hidden)), 4 * width, width))
    logits = linear(g, layer_norm(g, x, width), width, vocabulary)
    return g.model(inputs, {logits: [1, TOKENS, vocabulary], **outputs}, opset=23 if form == "operator" else 17)
