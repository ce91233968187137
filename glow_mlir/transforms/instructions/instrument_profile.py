"""`instrument-profile`: save the values that may become codes in extra outputs, for profiles."""

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
"""What the names of the extra outputs begin with."""


@dataclass(frozen=True)
class InstrumentProfilePass(ModulePass):
    """
    Save each value that the pass `quantize` asks a profile about in an output of its own, `profile.<name>` (Glow's
    profiling).

    Histograms are taken of these outputs, call by call, so that every backend can be profiled. Both passes stand at the
    same place in front of a pipeline's passes that depend on the machine: names are those of `observed_values`.
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
    """The types of floats that a value is computed on, and that those which read it find it in."""

    computed: str = "f32"
    stored: str = "f32"

    @staticmethod
    def of(value: SSAValue) -> Floats:
        """Those of a value that the graph saves as f32."""
        stored = [element_of(use.operation.results[0]) for use in value.uses if isinstance(use.operation, CastOp)]
        op = value.owner
        while isinstance(op, CastOp | QuantizeOp | DequantizeOp | DataMovement):
            stored.append(element_of(op.operands[0]))
            op = op.operands[0].owner
        read = [element_of(operand) for operand in op.operands] if isinstance(op, HighOp) else []
        return Floats(_narrow(read), _narrow(stored))


def _narrow(types: Sequence[Attribute]) -> str:
    """The narrower floats among some types, or else f32."""
    return next((name for name, type_ in PRECISIONS.items() if type_ in types), "f32")


def saved_types(module: ModuleOp) -> dict[str, Attribute]:
    """What callers name an output → the element type of the codes that it is made of, or else its own."""
    return {
        name: element_of(value.owner.input if isinstance(value.owner, DequantizeOp) else value)
        for name, value in saved_values(module).items()
    }


def saved_floats(module: ModuleOp) -> dict[str, Floats]:
    """What callers name an output → the floats of its value."""
    return {name: Floats.of(value) for name, value in saved_values(module).items()}


def saved_values(module: ModuleOp) -> dict[str, SSAValue]:
    """What callers name an output → the value that it is."""
    storage = Storage(module)
    found: dict[str, SSAValue] = {}
    for function in high_functions(module):
        for op in own_operations(function):
            saved = storage.by_name[op.storage_name] if isinstance(op, SaveOp) else None
            if isinstance(op, SaveOp) and isinstance(saved, PlaceholderOp):
                found[saved.public_name] = op.input
    return found
