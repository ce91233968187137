"""The dialects that stand in the place of xDSL's have all that those have, except operations that are replaced."""

from __future__ import annotations

import pytest
from xdsl.dialects import get_all_dialects
from xdsl.dialects import llvm as xdsl_llvm
from xdsl.ir import Operation

from glow_mlir.dialects.llvm_ops import memory
from glow_mlir.ir.context import COMPLETED


@pytest.mark.parametrize("name", sorted(COMPLETED))
def test_nothing_is_lost_of_xdsls_dialect(name: str) -> None:
    ours, theirs = COMPLETED[name](), get_all_dialects()[name]()
    assert ours.name == theirs.name == name
    assert list(ours.attributes) == list(theirs.attributes)
    assert {op.name for op in theirs.operations} <= {op.name for op in ours.operations}
    remaining = {field: value for field, value in vars(theirs).items() if field != "_operations"}
    assert {field: vars(ours)[field] for field in remaining} == remaining


@pytest.mark.parametrize("op", [memory.LoadOp, memory.StoreOp])
def test_passes_of_xdsl_know_loads_and_stores(op: type[Operation]) -> None:
    assert issubclass(op, {theirs.name: theirs for theirs in xdsl_llvm.LLVM.operations}[op.name])
