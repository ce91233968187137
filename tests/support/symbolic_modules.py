"""Modules of `glow_high` whose inputs have sizes that are known at run time only: a perceptron, images, sequences."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.storage import PlaceholderOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.dialects.sizes import shape_at

RANGES = {"batch": (1, 8), "found": (0, 64), "length": (1, 6)}
"""Symbol → between which numbers it is."""

VALUES = ({"batch": 1, "length": 1}, {"batch": 3, "length": 5}, {"batch": 8, "length": 6})
"""What symbols are in the runs of a test."""


def t(*sizes: int | str) -> str:
    """The type of a tensor of f32; a size that is a text is a symbol, or a sum of symbols."""
    symbolic = [size for size in sizes if isinstance(size, str)]
    shape = "".join("?x" if isinstance(size, str) else f"{size}x" for size in sizes)
    names = sorted(name for name in RANGES if any(name in size for size in symbolic))
    ranges = "".join(f", {name} = {RANGES[name][0]} to {RANGES[name][1]}" for name in names)
    encoding = f", #glow.sizes<[{', '.join(symbolic)}]{ranges}>" if symbolic else ""
    return f"tensor<{shape}f32{encoding}>"


_ROWS, _WIDE = t("batch", 4), t("batch", 8)
_FOUND = "#glow.sizes<[found], found = 0 to 64>"
_COLUMNS, _PLACES = (t(*sizes).replace("f32", "i64") for sizes in ((2, "found"), ("found", 2)))

PERCEPTRON = f"""
glow_high.constant @w : tensor<4x8xf32> {{value = dense<0.5> : tensor<4x8xf32>}}
glow_high.constant @b : tensor<8xf32> {{value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>}}
glow_high.func @main(%x: {_ROWS}, %z: {_WIDE}) -> ({_WIDE}, {t("batch", 1)}, {t("batch * 2 + 1", 8)}, {t("found")}) {{
  %w = glow_high.get @w : tensor<4x8xf32>
  %b = glow_high.get @b : tensor<8xf32>
  %product = glow_high.matmul %x, %w : {_WIDE}
  %biased = glow_high.add %product, %b : {_WIDE}
  %zeros = glow_high.splat {{value = 0.0}} : tensor<1x8xf32>
  %positive = glow_high.max %biased, %zeros : {_WIDE}
  %relu = glow_high.relu %positive : {_WIDE}
  %low = glow_high.splat {{value = -1.0}} : tensor<f32>
  %high = glow_high.splat {{value = 100.0}} : tensor<f32>
  %clipped = glow_high.clip %relu, %low, %high : {_WIDE}
  %two = glow_high.splat {{value = 2.0}} : tensor<f32>
  %square = glow_high.pow %clipped, %two : {_WIDE}
  %one = glow_high.mul %square, %z : {_WIDE}
  %same = glow_high.mul %square, %z : {_WIDE}
  %nothing = glow_high.sub %one, %same : {_WIDE}
  %sum = glow_high.add %nothing, %one : {_WIDE}
  %total = glow_high.reduce_sum %sum {{axes = [1]}} : {t("batch", 1)}
  %rows = glow_high.concat %sum, %zeros, %one {{axis = 0}} : {t("batch * 2 + 1", 8)}
  %some = glow_high.relu %z : {_WIDE}
  %columns, %count = glow_high.non_zero %some : tensor<2x64xi64>, tensor<i64>
  glow_high.bind_symbol %count {{symbol = {_FOUND}}}
  %first = glow_high.slice %columns {{starts = [0, 0], ends = {_FOUND.replace("[", "[2, ")}}} : {_COLUMNS}
  %places = glow_high.transpose %first {{permutation = [1, 0]}} : {_PLACES}
  %chosen = glow_high.gather_nd %z, %places : {t("found")}
  %doubled = glow_high.add %chosen, %chosen : {t("found")}
  glow_high.return %sum, %total, %rows, %doubled
}}
"""
"""A dense layer with constants, elementwise operators, a sum, rows put together, and elements that data selects."""

_IMAGE, _POOLED = t("batch", 9, 9, 8), t("batch", 8, 3, 3)

IMAGES = f"""
glow_high.constant @w : tensor<8x3x3x4xf32> {{value = dense<0.5> : tensor<8x3x3x4xf32>}}
glow_high.constant @v : tensor<8xf32> {{value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>}}
glow_high.constant @p : tensor<8x8x1x1xf32> {{value = dense<0.25> : tensor<8x8x1x1xf32>}}
glow_high.func @main(%x: {t("batch", 4, 9, 9)}) -> ({_POOLED}, {t("batch", 8, 1, 1)}) {{
  %w = glow_high.get @w : tensor<8x3x3x4xf32>
  %v = glow_high.get @v : tensor<8xf32>
  %p = glow_high.get @p : tensor<8x8x1x1xf32>
  %last = glow_high.transpose %x {{permutation = [0, 2, 3, 1]}} : {t("batch", 9, 9, 4)}
  %conv = glow_high.conv %last, %w {{pads = [1, 1, 1, 1]}} : {_IMAGE}
  %normal = glow_high.batch_normalization %conv, %v, %v, %v, %v : {_IMAGE}
  %relu = glow_high.relu %normal : {_IMAGE}
  %pooled = glow_high.max_pool %relu {{kernel_shape = [3, 3], strides = [3, 3]}} : {t("batch", 3, 3, 8)}
  %first = glow_high.transpose %pooled {{permutation = [0, 3, 1, 2]}} : {_POOLED}
  %point = glow_high.conv %first, %p {{layout = "channels_first"}} : {_POOLED}
  %sigmoid = glow_high.sigmoid %point : {_POOLED}
  %swish = glow_high.mul %point, %sigmoid : {_POOLED}
  %sum = glow_high.add %swish, %first : {_POOLED}
  %mean = glow_high.reduce_mean %sum {{axes = [2, 3]}} : {t("batch", 8, 1, 1)}
  glow_high.return %sum, %mean
}}
"""
"""Convolutions with padding, in both layouts, batch-norm, a pool and an activation written out."""

_TOKENS, _SCORES, _ONE = t("batch", "length", 4), t("batch", "length", "length"), t("batch", "length", 1)

SEQUENCES = f"""
glow_high.constant @q : tensor<4x4xf32> {{value = dense<0.5> : tensor<4x4xf32>}}
glow_high.constant @k : tensor<4x4xf32> {{value = dense<0.25> : tensor<4x4xf32>}}
glow_high.constant @g : tensor<4xf32> {{value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}}
glow_high.func @main(%x: {_TOKENS}) -> {_TOKENS} {{
  %q = glow_high.get @q : tensor<4x4xf32>
  %k = glow_high.get @k : tensor<4x4xf32>
  %g = glow_high.get @g : tensor<4xf32>
  %mean = glow_high.reduce_mean %x {{axes = [2]}} : {_ONE}
  %difference = glow_high.sub %x, %mean : {_TOKENS}
  %two = glow_high.splat {{value = 2.0}} : tensor<f32>
  %squares = glow_high.pow %difference, %two : {_TOKENS}
  %variance = glow_high.reduce_mean %squares {{axes = [2]}} : {_ONE}
  %epsilon = glow_high.splat {{value = 1.0e-05}} : tensor<f32>
  %shifted = glow_high.add %variance, %epsilon : {_ONE}
  %deviation = glow_high.sqrt %shifted : {_ONE}
  %standard = glow_high.div %difference, %deviation : {_TOKENS}
  %scaled = glow_high.mul %standard, %g : {_TOKENS}
  %normal = glow_high.add %scaled, %g : {_TOKENS}
  %queries = glow_high.matmul %normal, %q : {_TOKENS}
  %keys = glow_high.matmul %normal, %k : {_TOKENS}
  %turned = glow_high.transpose %keys {{permutation = [0, 2, 1]}} : {t("batch", 4, "length")}
  %scores = glow_high.matmul %queries, %turned : {_SCORES}
  %half = glow_high.splat {{value = 0.5}} : tensor<f32>
  %smaller = glow_high.mul %scores, %half : {_SCORES}
  %weights = glow_high.softmax %smaller : {_SCORES}
  %means = glow_high.matmul %weights, %keys : {_TOKENS}
  %powers = glow_high.exp %means : {_TOKENS}
  %total = glow_high.reduce_sum %powers {{axes = [2]}} : {_ONE}
  %result = glow_high.div %powers, %total : {_TOKENS}
  glow_high.return %result
}}
"""
"""A normalization, attention and a softmax, all written out, on sequences of a symbolic length."""

SYMBOLIC_MODULES = {"perceptron": PERCEPTRON, "images": IMAGES, "sequences": SEQUENCES}


def at_largest(text: str) -> str:
    """The text of a module of these, with the largest numbers for all symbols; for sizes that are symbols alone."""

    def numbers(found: re.Match[str]) -> str:
        names = iter(found[2].split(", "))
        return f"tensor<{re.sub('[?]', lambda _: str(RANGES[next(names)][1]), found[1])}>"

    return re.sub(r"tensor<([?x0-9f]+), #glow.sizes<\[([a-z, ]+)\][^>]*>>", numbers, text)


def inputs_of(module: ModuleOp, symbols: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Random arrays for the inputs of a module, where symbols have these values."""
    generator = np.random.default_rng(1)
    return {
        op.sym_name.data: generator.normal(size=shape_at(sizes_of(op.tensor_type), symbols)).astype(
            numpy_dtype(op.tensor_type.element_type)
        )
        for op in module.body.block.ops
        if isinstance(op, PlaceholderOp) and op.role == "input"
    }
