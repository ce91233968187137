"""Kernels of signals, images and tables give the same bits however they are cut into parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cut import check_parts, however_small
from execute import Case, compile_module, module_of, sample

from glow_mlir.dialects.glow_high.convolution import Col2ImOp
from glow_mlir.dialects.glow_high.embedding import SparseLengthsSumOp
from glow_mlir.dialects.glow_high.linear_attention import LinearAttentionOp
from glow_mlir.dialects.glow_high.ngrams import TfIdfVectorizerOp
from glow_mlir.dialects.glow_high.pooling import MaxPoolWithIndicesOp
from glow_mlir.dialects.glow_high.sampling import DeformColumnsOp, GridSampleOp, RoiAlignOp

GENERATOR = np.random.default_rng(0)
HEADS: dict[str, Any] = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
ROIS = np.array([[0, 0, 5, 5], [1, 1, 3, 4], [2, 0, 7, 7]], np.float32)

CASES = {
    "places in lines": Case(GridSampleOp, sample((2, 4, 6, 3)), sample((2, 5, 37, 2))),
    "places in one line": Case(GridSampleOp, sample((1, 4, 6, 3)), sample((1, 1, 150, 2))),
    "windows": Case(DeformColumnsOp, sample((1, 6, 6, 4)), sample((1, 4, 4, 18)), kernel_shape=(3, 3)),
    "cells": Case(RoiAlignOp, sample((1, 8, 8, 5)), ROIS, np.zeros(3, np.int64), output_shape=(2, 3)),
    "pixels": Case(MaxPoolWithIndicesOp, sample((1, 7, 8, 20)), kernel_shape=(2, 2)),
    "planes": Case(Col2ImOp, sample((2, 12, 20)), image_shape=(5, 6), block_shape=(2, 2)),
    "heads": Case(LinearAttentionOp, *(sample((2, 4, 12)) for _ in range(3)), **HEADS),
    "rows": Case(TfIdfVectorizerOp, GENERATOR.integers(0, 3, (5, 9)), None, [np.array([[0, 2], [2, 0]])], size=3),
    "segments": Case(
        SparseLengthsSumOp, sample((9, 20)), GENERATOR.integers(0, 9, 20), np.array([3, 0, 7, 1, 5, 4], np.int32)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_parts(name: str) -> None:
    module, inputs = module_of(CASES[name])
    assert check_parts(module, inputs) > 0


def test_what_fails_in_a_part_is_told() -> None:
    module, inputs = module_of(CASES["segments"])
    with however_small():
        program = compile_module(module, threads=2)
    program.run(inputs)
    inputs["in1"][-1] = 9
    with pytest.raises(AssertionError):
        program.run(inputs)
