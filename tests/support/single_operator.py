"""Modules of one operator of `glow_high`, for tests of its meaning and of its lowering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import tensor
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import LOWERINGS
from glow_mlir.ir.rewriting import erase_dead, replace
from glow_mlir.transforms.devices.assign_target import AssignTargetPass
from glow_mlir.transforms.lowerings.expressions import lowered

Operands = Sequence[np.ndarray | None]


def single_operator(operator: type[HighOp], operands: Operands, **properties: Any) -> tuple[ModuleOp, HighOp]:
    """A module that applies `operator` to its inputs `x0`, `x1`, …, and the operator in it."""
    module = ModuleOp([])
    storage = Storage(module)
    function = FuncOp.named("main", [])
    names: list[str] = []
    values: list[SSAValue | None] = []

    def declare(name: str, type_: TensorType[Attribute], role: str) -> PlaceholderOp:
        names.append(name)
        placeholder = PlaceholderOp.bound(name, type_, role)
        storage.add(placeholder)
        return placeholder

    for position, array in enumerate(operands):
        if array is None:
            values.append(None)
            continue
        type_ = tensor(array.shape, element_type(array.dtype))
        get = GetOp.of(declare(f"x{position}", type_, "input"))
        function.block.add_op(get)
        values.append(get.result)
    op = operator.make(*values, **properties)
    function.block.add_op(op)
    for position, (result, type_) in enumerate(zip(op.results, op.infer_types(), strict=True)):
        declare(f"y{position}", type_, "output")
        function.block.add_op(SaveOp.to(result, f"y{position}"))
    function.bindings = FuncOp.named("main", names).bindings
    module.body.block.add_op(function)
    module.verify()
    return module, op


def run_operator(module: ModuleOp, operands: Operands) -> list[np.ndarray]:
    """The results of the operator, or of what replaced it."""
    inputs = {f"x{position}": array for position, array in enumerate(operands) if array is not None}
    results = run_function(module, inputs)
    return [results[f"y{position}"] for position in range(len(results))]


def lower_operator(module: ModuleOp, op: HighOp) -> None:
    """Replace the operator by its lowering for a machine with AVX2, and verify what comes out."""
    AssignTargetPass(target="avx2").apply(Context(), module)
    block = op.parent_block()
    assert block is not None
    lowering = LOWERINGS.all().get(type(op), lowered)
    values: SSAValue | list[SSAValue] = lowering(op, Emitter(op, Storage(module)))
    replace(op, [values] if isinstance(values, SSAValue) else list(values))
    erase_dead(block)
    module.verify()
