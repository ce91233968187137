"""`instrument-profile`: save the values that may become codes in extra outputs, for profiles."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.quantization import DequantizeOp
from glow_mlir.dialects.glow_high.storage import FuncOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import function_of, own_operations
from glow_mlir.quantization.observed import observed_values
from glow_mlir.transforms.save_results import save_as_output

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


def saved_types(module: ModuleOp) -> dict[str, Attribute]:
    """What callers name an output → the element type of the codes that it is made of, or else its own."""
    storage = Storage(module)
    found: dict[str, Attribute] = {}
    for function in high_functions(module):
        for op in own_operations(function):
            saved = storage.by_name[op.storage_name] if isinstance(op, SaveOp) else None
            if isinstance(op, SaveOp) and isinstance(saved, PlaceholderOp):
                owner = op.input.owner
                found[saved.public_name] = element_of(owner.input if isinstance(owner, DequantizeOp) else op.input)
    return found
