"""
The `llvm` dialect, completed: xDSL's operations plus the upstream ones that it lacks.

Where xDSL restricts an upstream operation (`fcmp` on scalars only, `select` on an i1 only, a private
`inbounds` on `getelementptr`, no atomic stores, …) the version here takes its place; names, properties and
syntax are upstream's, so that `mlir-opt` reads what we print and we read what it prints.
"""

from __future__ import annotations

from xdsl.dialects import llvm as xdsl_llvm
from xdsl.ir import Dialect, Operation

from glow_mlir.dialects.llvm_ops import atomics, intrinsics, memory, values, vectors

ADDED: tuple[type[Operation], ...] = (
    *values.OPERATIONS,
    *intrinsics.OPERATIONS,
    *vectors.OPERATIONS,
    *memory.OPERATIONS,
    *atomics.OPERATIONS,
)
"""The operations defined here, those that replace one of xDSL's included."""

_added_names = {op.name for op in ADDED}

LLVM = Dialect(
    "llvm",
    sorted(
        [*(op for op in xdsl_llvm.LLVM.operations if op.name not in _added_names), *ADDED],
        key=lambda op: op.name,
    ),
    list(xdsl_llvm.LLVM.attributes),
)
