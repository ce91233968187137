"""What is left of the models as instructions: no layouts, no normalization, no loops that a producer could do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from breadth import long_ones
from models import LARGE, LIGHT, model_named

from glow_mlir.analysis.accesses import Accesses
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import CopyOp, FuncOp, strides_of
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.rewriting import low_functions

NAMES = (*LIGHT, "mobilenet_v2", "bert_encoder")
SHUFFLES = {"shufflenet": 16}
"""Model → copies that permute axes: the channel shuffles."""


@pytest.fixture(scope="module", params=long_ones(NAMES, LARGE.__contains__))
def model(request: pytest.FixtureRequest) -> tuple[str, FuncOp]:
    """A model's name and its allocated instructions."""
    module = Compilation(import_model(model_named(request.param))).run(until="allocated")
    (function,) = low_functions(module)
    return request.param, function


def kinds(function: FuncOp) -> set[object]:
    """The operators of the derived instructions."""
    return {op.OPERATOR for op in function.block.ops if isinstance(op, DerivedInstruction)}


def order_of_axes(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The axes with several elements, the one with the largest stride first."""
    return sorted((axis for axis, size in enumerate(shape) if size > 1), key=lambda axis: -strides[axis])


def permuting(function: FuncOp) -> Iterator[CopyOp]:
    """The copies between buffers whose axes lie in another order."""
    for op in function.block.ops:
        if isinstance(op, CopyOp):
            shape = shape_of(op.target)
            if order_of_axes(shape, strides_of(op.target)) != order_of_axes(shape, strides_of(op.source)):
                yield op


def test_no_layout_is_changed(model: tuple[str, FuncOp]) -> None:
    """Channel shuffles are data movement, and stay."""
    name, function = model
    assert TransposeOp not in kinds(function)
    assert len(list(permuting(function))) == SHUFFLES.get(name, 0)


def test_no_batch_norm_is_left(model: tuple[str, FuncOp]) -> None:
    """It is in the weights, or in the prologue of what reads it."""
    assert BatchNormalizationOp not in kinds(model[1])


def test_no_stack_stands_behind_its_only_producer(model: tuple[str, FuncOp]) -> None:
    """A stack that alone reads the only result of a convolution or matrix product is its epilogue."""
    function = model[1]
    accesses = Accesses.of(function.block)
    for stack in function.block.ops:
        if not isinstance(stack, StackOp):
            continue
        for source in stack.sources:
            meeting = [a for a in accesses.meeting(source) if a.position <= accesses.positions[stack]]
            writers = [access.op for access in meeting if access.writes and access.op is not stack]
            readers = {access.op for access in accesses.meeting(source) if access.reads}
            for writer in writers:
                heavy = isinstance(writer, DerivedInstruction) and writer.OPERATOR in (ConvOp, MatMulOp)
                several = isinstance(writer, DerivedInstruction) and writer.epilogue and writer.epilogue.targets
                assert several or not heavy or readers != {stack}, (str(writer.location), str(stack.location))
