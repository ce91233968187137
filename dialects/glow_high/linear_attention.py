"""Attention whose past is a matrix of fixed size that each token updates."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.operand_types import FLOATS, TENSOR
from glow_mlir.dialects.properties import float_prop, int_prop, integer, text, text_prop
from glow_mlir.dialects.shapes import element_of, require, sizes_of, tensor
from glow_mlir.dialects.sizes import static
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.definitions import op_definition

UPDATE_RULES = ("linear", "gated", "delta", "gated_delta")
"""How a token updates the state."""


@op_definition
class LinearAttentionOp(HighOp):
    """
    Attention with a recurrent state S [B, H, K, V], for each of T tokens in turn (ONNX LinearAttention).

    `query` is [B, T, Q * K], `key` [B, T, H * K], `value` [B, T, H * V], with the numbers of heads Q and H, a multiple
    of each other. S begins as `past_state`, or as zeros. With `gated` rules, rows of S are multiplied by exp(`decay`)
    first, which is [B, T, H] or [B, T, H * K]. Then the outer product of key and value is added to S, or, with `delta`
    rules, that of key and `beta` * (value - Sᵀ key), where `beta` is [B, T, H] or [B, T, 1]. The first result,
    [B, T, Q * V], is `scale` * Sᵀ query; the second is the last S. Floats of 16 bits are computed, and S is kept, in
    f32.

    ```mlir
    %y, %s = glow_high.linear_attention %q, %k, %v {q_num_heads = 8, kv_num_heads = 2, update_rule = "linear"} : …
    ```
    """

    name = "glow_high.linear_attention"
    NOTATION: ClassVar[str] = (
        "query[n, *], key[n, *], value[n, *], past_state[n, *], decay[n, *], beta[n, *]"
        " -> result[n, *], present_state[n, *]"
    )
    irdl_options = SEGMENTS

    query = operand_def(FLOATS.of_rank(3))
    key = operand_def(FLOATS.of_rank(3))
    value = operand_def(FLOATS.of_rank(3))
    past_state = opt_operand_def(FLOATS.of_rank(4))
    decay = opt_operand_def(FLOATS.of_rank(3))
    beta = opt_operand_def(FLOATS.of_rank(3))
    q_num_heads = int_prop()
    kv_num_heads = int_prop()
    scale = float_prop(1.0)
    update_rule = text_prop("gated_delta")
    result = result_def(TENSOR)
    present_state = result_def(TENSOR)

    def sizes(self) -> tuple[int, int, int, int]:
        """The numbers of query heads and key heads, and the sizes of a key and of a value."""
        queries, heads = integer(self.q_num_heads), integer(self.kv_num_heads)
        require(
            heads > 0 and queries > 0 and queries % heads == 0, f"{queries} heads of queries share no {heads} of keys"
        )
        query, key, value = static(tuple(sizes_of(operand)[-1] for operand in (self.query, self.key, self.value)))
        require(
            query % queries == 0 and value % heads == 0,
            f"{query} and {value} elements have no {queries} and {heads} heads",
        )
        require(key * queries == query * heads, f"keys of {key} elements do not fit queries of {query}")
        return queries, heads, query // queries, value // heads

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        queries, heads, depth, width = self.sizes()
        rule, element = text(self.update_rule), element_of(self.query)
        require(rule in UPDATE_RULES, f"'{rule}' is none of {', '.join(UPDATE_RULES)}")
        leading = sizes_of(self.query)[:2]
        for operand in (self.key, self.value):
            require(sizes_of(operand)[:2] == leading, "queries, keys and values are of different tokens")
            require(element_of(operand) == element, "queries, keys and values have different element types")
        self._check_factor("decay", rule.startswith("gated"), ((*leading, heads), (*leading, heads * depth)))
        self._check_factor("beta", rule.endswith("delta"), ((*leading, heads), (*leading, 1)))
        state = (leading[0], heads, depth, width)
        given = self.past_state
        require(given is None or sizes_of(given) == state, f"a state has shape {state}")
        kept = element if given is None else element_of(given)
        return (tensor((*leading, queries * width), element), tensor(state, kept))

    def _check_factor(self, name: str, needed: bool, shapes: tuple[Sizes, ...]) -> None:
        value = getattr(self, name)
        require(
            (value is not None) == needed,
            f"the rule '{text(self.update_rule)}' {'needs' if needed else 'has no'} {name}",
        )
        require(value is None or sizes_of(value) in shapes, f"{name} has shape {shapes[0]} or {shapes[1]}")
