"""How much of the models' data movement is left: what no view can say, and what comes from outside."""

from __future__ import annotations

import pytest
from breadth import long_ones
from models import model_named

from glow_mlir.dialects.glow_high import data_movement as data
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import CopyOp, WeightOp, root_of
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model

MOVEMENT = (data.ConcatOp, data.SliceOp, data.TransposeOp, data.PadOp, data.ExpandOp)


def left(name: str) -> list[Instruction]:
    """
    The instructions of a model that only move elements, but for copies from its inputs, and of the lines that
    `tile-lines` keeps from one block to the next.
    """
    module = Compilation(import_model(model_named(name)), disable=("tile-lines",)).run(until="stacked")
    found: list[Instruction] = []
    for op in module.walk():
        if isinstance(op, CopyOp) and not isinstance(root_of(op.source).owner, WeightOp):
            found.append(op)
        if isinstance(op, DerivedInstruction) and op.OPERATOR in MOVEMENT:
            found.append(op)
    return found


NETWORKS = ("densenet121", "inception_v1", "inception_v2", "squeezenet", "resnet50", "mobilenet_v2", "bert_encoder")
LARGE = ("densenet121", "inception_v2", "resnet50")


@pytest.mark.parametrize("name", long_ones(NETWORKS, LARGE.__contains__))
def test_everything_is_written_and_read_in_place(name: str) -> None:
    """Concats, pads, slices and the transposes of attention cost nothing."""
    assert left(name) == []


def test_shuffles_move_each_channel_once() -> None:
    """A channel shuffle has no strided view: one copy for each of the 16 units, straight into the padded image."""
    shuffles = left("shufflenet")
    assert len(shuffles) == 16
    assert all(isinstance(op, CopyOp) and len(op.operands[0].type.get_shape()) == 5 for op in shuffles)  # pyright: ignore
