"""Channels last costs nothing: which transposes models have left after optimization and lowering."""

from __future__ import annotations

import pytest
from breadth import long_ones
from models import BUILT, LARGE, LIGHT, model_named

from glow_mlir.dialects.glow_high.data_movement import PadOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.storage import GetOp
from glow_mlir.dialects.properties import ints
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.rewriting import high_functions

TO_CHANNELS_LAST = (0, 2, 3, 1)
SHUFFLE = (0, 1, 2, 4, 3)
HEADS = (0, 2, 1, 3)

EXPECTED: dict[str, dict[tuple[int, ...], int]] = {
    **{name: {TO_CHANNELS_LAST: 1} for name in (*LIGHT, "mobilenet_v2", "resnet18")},
    "shufflenet": {TO_CHANNELS_LAST: 1, SHUFFLE: 16},
    "bert_encoder": {HEADS: 8},
    "lstm": {},
    "gru": {},
}
"""Model → how many transposes of each permutation it keeps."""


@pytest.mark.parametrize("name", long_ones([*LIGHT, *BUILT], LARGE.__contains__))
def test_transposes_that_stay(name: str) -> None:
    """Images arrive with channels first; ShuffleNet shuffles channels; attention splits and merges heads."""
    compilation = Compilation(import_model(model_named(name)))
    compilation.run(until="lowered")
    (function,) = high_functions(compilation.module)
    found: dict[tuple[int, ...], int] = {}
    for op in function.block.ops:
        if isinstance(op, TransposeOp):
            permutation = ints(op.permutation)
            found[permutation] = found.get(permutation, 0) + 1
            assert stands_where_it_must(op, permutation), op
    assert found == EXPECTED[name]


def stands_where_it_must(op: TransposeOp, permutation: tuple[int, ...]) -> bool:
    """Whether a transpose is behind an input, perhaps padded, or beside the reshapes of a shuffle or of heads."""
    source = op.input.owner
    if permutation == TO_CHANNELS_LAST:
        return isinstance(source.input.owner if isinstance(source, PadOp) else source, GetOp)
    behind = all(isinstance(use.operation, ReshapeOp) for use in op.result.uses)
    before = isinstance(source, ReshapeOp)
    return (behind and before) if permutation == SHUFFLE else (behind or before)
