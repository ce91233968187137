"""`instrument-profile`: save the values that may be quantized in extra outputs, for profiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import DataMovement
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp
from glow_mlir.dialects.glow_high.storage import FuncOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import function_of, own_operations
from glow_mlir.quantization.observed import observed_values
from glow_mlir.rewriting.saved_results import save_as_output
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.quantization.convert_precision import PRECISIONS

PREFIX = "profile."
"""Prefix of the names of the extra outputs."""


@dataclass(frozen=True)
class InstrumentProfilePass(ModulePass):
    """
    Save each value that the pass `quantize` looks up in a profile in an output of its own, `profile.<name>` (Glow's
    profiling).

    Histograms are built from these outputs after each call, so that every backend can be profiled. Both passes have the
    same position, in front of the machine-dependent passes of a pipeline: names are those of `observed_values`.
    """

    name = "instrument-profile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for number, (name, value) in enumerate(observed_values(op).items()):
            producer = value.owner
            assert isinstance(producer, Operation)
            function = function_of(producer)
            assert isinstance(function, FuncOp)
            save_as_output(function, storage, value, storage.unique_name(f"profile_{number}"), f"{PREFIX}{name}")
            statistics.count("values saved")


@dataclass(frozen=True)
class Floats:
    """The float types that a value is computed in and stored in."""

    computed: str = "f32"
    stored: str = "f32"

    @staticmethod
    def of(value: SSAValue) -> Floats:
        """The float types of a value that the graph saves as f32."""
        stored = [element_of(use.operation.results[0]) for use in value.uses if isinstance(use.operation, CastOp)]
        op = value.owner
        while isinstance(op, CastOp | QuantizeOp | DequantizeOp | DataMovement):
            stored.append(element_of(op.operands[0]))
            op = op.operands[0].owner
        read = [element_of(operand) for operand in op.operands] if isinstance(op, HighOp) else []
        return Floats(_narrow(read), _narrow(stored))


def _narrow(types: Sequence[Attribute]) -> str:
    """The first narrow float type among `types`, or else f32."""
    return next((name for name, type_ in PRECISIONS.items() if type_ in types), "f32")


def saved_types(module: ModuleOp) -> dict[str, Attribute]:
    """Public name of an output → its element type, or that of the quantized values it is dequantized from."""
    return {
        name: element_of(value.owner.input if isinstance(value.owner, DequantizeOp) else value)
        for name, value in saved_values(module).items()
    }


def saved_floats(module: ModuleOp) -> dict[str, Floats]:
    """Public name of an output → the float types of its value."""
    return {name: Floats.of(value) for name, value in saved_values(module).items()}


def saved_values(module: ModuleOp) -> dict[str, SSAValue]:
    """Public name of an output → the saved value."""
    storage = Storage(module)
    found: dict[str, SSAValue] = {}
    for function in high_functions(module):
        for op in own_operations(function):
            saved = storage.by_name[op.storage_name] if isinstance(op, SaveOp) else None
            if isinstance(op, SaveOp) and isinstance(saved, PlaceholderOp):
                found[saved.public_name] = op.input
    return found
