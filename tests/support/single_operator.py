"""Modules of one operator of `glow_high`, for tests of its meaning and of its lowering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from execute import inputs_of, module_of
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.interpreter.machine import run_function
from glow_mlir.registry import LOWERINGS
from glow_mlir.storage import Storage
from glow_mlir.transforms.emitter import Emitter
from glow_mlir.transforms.rewriting import erase_dead, high_functions, replace

Operands = Sequence[np.ndarray | None]


def single_operator(operator: type[HighOp], operands: Operands, **properties: Any) -> tuple[ModuleOp, HighOp]:
    """A module that applies `operator` to its inputs, and the operator in it."""
    module = module_of(operator, *operands, **properties)
    (function,) = high_functions(module)
    (op,) = (op for op in function.block.ops if isinstance(op, operator))
    return module, op


def run_operator(module: ModuleOp, operands: Operands) -> list[np.ndarray]:
    """The results of the operator, or of what replaced it."""
    results = run_function(module, inputs_of(*operands))
    return [results[f"out{position}"] for position in range(len(results))]


def lower_operator(module: ModuleOp, op: HighOp) -> None:
    """Replace the operator by its lowering, and verify what comes out."""
    block = op.parent_block()
    assert block is not None
    values: SSAValue | list[SSAValue] = LOWERINGS.all()[type(op)](op, Emitter(op, Storage(module)))
    replace(op, [values] if isinstance(values, SSAValue) else list(values))
    erase_dead(block)
    module.verify()
