"""
The `llvm` dialect, completed: xDSL's operations plus the upstream ones that it lacks.

Where xDSL restricts an upstream operation (`fcmp` on scalars only, `select` on an i1 only, a private
`inbounds` on `getelementptr`, no atomic stores, …) the version here takes its place; names, properties and
syntax are upstream's, so that `mlir-opt` reads what we print and we read what it prints.
"""

from __future__ import annotations

from xdsl.dialects import llvm as xdsl_llvm
from xdsl.ir import Operation

from glow_mlir.dialects.completion import completed
from glow_mlir.dialects.llvm_ops import atomics, intrinsics, memory, values, vectors

ADDED: tuple[type[Operation], ...] = (
    *values.OPERATIONS,
    *intrinsics.OPERATIONS,
    *vectors.OPERATIONS,
    *memory.OPERATIONS,
    *atomics.OPERATIONS,
)
"""The operations defined here, those that replace one of xDSL's included."""

LLVM = completed(xdsl_llvm.LLVM, ADDED)
