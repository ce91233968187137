"""Attention: weighted means of values, whose weights are the softmax of products of queries and keys."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.interfaces import Arithmetic
from glow_mlir.dialects.operand_types import FLOATS, TENSOR
from glow_mlir.dialects.properties import flag, flag_prop, float_prop, size, size_prop
from glow_mlir.dialects.shapes import (
    broadcast,
    element_of,
    require,
    require_broadcast_to,
    require_equal,
    shape_of,
    size_of,
    sizes_of,
    tensor,
)
from glow_mlir.dialects.sizes import smallest
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class AttentionOp(HighOp):
    """
    softmax(`scale` · query · keyᵀ + mask) · value, scaled dot-product attention (Vaswani et al. 2017; ONNX Attention).

    `query` is [batch…, M, D], `key` [batch…, N, D], `value` [batch…, N, E]; leading axes, the heads among them, are
    batches and broadcast. `mask` is added to the scores and broadcasts to [batch…, M, N]. With `causal`, query i sees
    no key after i + `past`, where `past` is the number of keys before the first query.

    ```mlir
    %y = glow_high.attention %q, %k, %v, %mask {scale = 0.125} : tensor<1x12x128x64xf32>
    ```
    """

    name = "glow_high.attention"

    query = operand_def(FLOATS.from_rank(2))
    key = operand_def(FLOATS.from_rank(2))
    value = operand_def(FLOATS.from_rank(2))
    mask = opt_operand_def(FLOATS)
    scale = float_prop(1.0)
    causal = flag_prop()
    past = size_prop(0)
    result = result_def(TENSOR)

    def scores_shape(self) -> Sizes:
        """The shape of the scores: batch…, M, N."""
        query, key, value = sizes_of(self.query), sizes_of(self.key), sizes_of(self.value)
        require_equal(query[-1], key[-1], f"queries have {query[-1]} elements, keys {key[-1]}")
        require_equal(key[-2], value[-2], f"there are {key[-2]} keys for {value[-2]} values")
        batch = broadcast(query[:-2], key[:-2], value[:-2], behind=2)
        return (*batch, query[-2], key[-2])

    def access_map(self) -> AccessMap:
        # The keys that a query sees depend on its index.
        row = "*i" if flag(self.causal) else "i"
        return self.accessed(
            f"query[..., {row}, *d], key[..., *j, *d], value[..., *j, e], mask[..., {row}, *j] -> result[...; {row}, e]"
        )

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        element, scores = element_of(self.query), self.scores_shape()
        past = size(self.past)
        require(smallest(past) >= 0, "past must not be negative")
        # Without `causal`, every query sees all keys, those of the past included.
        require(past == 0 or flag(self.causal), "past is where causal attention begins: it needs causal")
        for operand in self.inputs()[1:]:
            require(element_of(operand) == element, "operands have different element types")
        if self.mask is not None:
            mask = sizes_of(self.mask)
            require_broadcast_to(mask, scores, f"a mask of shape {mask} does not broadcast to {scores}")
        return (tensor((*scores[:-1], sizes_of(self.value)[-1]), element),)

    def arithmetic(self) -> Arithmetic:
        (keys, width), depth = shape_of(self.value)[-2:], shape_of(self.query)[-1]
        scores = size_of(self.result) // max(width, 1) * keys
        return Arithmetic(scores * (width + depth), functions=scores)


def seen_keys(queries: int, keys: int, past: int) -> np.ndarray:
    """The keys that each query of causal attention sees, as truth values of shape [queries, keys]."""
    return np.arange(keys) <= np.arange(queries)[:, None] + past


def causal_mask(queries: int, keys: int, past: int, dtype: np.dtype) -> np.ndarray:
    """The mask added to the scores of causal attention: minus infinity for keys that a query does not see, else 0."""
    return np.where(seen_keys(queries, keys, past), 0.0, -np.inf).astype(dtype)
