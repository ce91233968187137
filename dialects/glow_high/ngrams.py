"""Counts of sequences of numbers."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, result_def, var_operand_def

from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.operand_types import F32, INDICES, TENSOR
from glow_mlir.dialects.properties import int_prop, integer, text, text_prop
from glow_mlir.dialects.shapes import rank_of, require, shape_of, sizes_of, tensor
from glow_mlir.xdsl_patches.definitions import op_definition

CRITERIA = ("TF", "IDF", "TFIDF")
"""The result of a count: the count itself, the weight if the n-gram occurs at all, or count times weight."""


@op_definition
class TfIdfVectorizerOp(HighOp):
    """
    How often n-grams occur in each row of `input` [N, C], as [N, size] (ONNX TfIdfVectorizer).

    A single row [C] gives [size]. Each of the `pools` [P, n + 1] has n-grams of a different length, sorted and
    distinct, each followed by the column in which it is counted. `weights` is [size], by default 1. The numbers of an
    n-gram are adjacent, or separated by equal gaps of up to `max_skip_count` other numbers. `mode` is one of
    `CRITERIA`. It fails if the column of a counted n-gram is not below `size`.
    """

    name = "glow_high.tf_idf_vectorizer"
    NOTATION: ClassVar[str] = "input[..., *c] -> result[..., *j]"
    irdl_options = SEGMENTS
    FAILURE: ClassVar[str] = "a column is out of range"

    input = operand_def(INDICES)
    weights = opt_operand_def(F32.of_rank(1))
    pools = var_operand_def(INDICES.of_rank(2))
    size = int_prop()
    max_skip_count = int_prop(0)
    mode = text_prop("TF")
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, size = sizes_of(self.input), integer(self.size)
        require(rank_of(self.input) in (1, 2), f"sequences are [C] or [N, C], not of shape {shape}")
        require(text(self.mode) in CRITERIA, f"'{text(self.mode)}' is none of {', '.join(CRITERIA)}")
        require(integer(self.max_skip_count) >= 0 and size > 0, "size must be positive, max_skip_count not negative")
        require(all(shape_of(pool)[1] > 1 for pool in self.pools), "an n-gram is one number or more, and a column")
        require(self.weights is None or shape_of(self.weights) == (size,), f"weights must have {size} elements")
        return (tensor((*shape[:-1], size), f32),)
