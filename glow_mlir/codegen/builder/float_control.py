"""The word that controls a thread's arithmetic of floats: how it rounds, and whether denormal numbers count as zero."""

from __future__ import annotations

from collections.abc import Callable

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i32, i64
from glow_mlir.codegen.builder.value import Value

MXCSR = 0x1F80
"""The word with which x86 rounds to nearest, keeps denormal numbers, and raises no exceptions."""

FPCR = 0
"""As `MXCSR`, of AArch64."""


def with_denormals(b: Builder, compute: Callable[[], Value]) -> Value:
    """Return what `compute` gives, with the word that processes begin with; the caller's word is restored."""
    around = _AROUND.get(b.target.triple.split("-")[0])
    return compute() if around is None else around(b, compute)


def _x86(b: Builder, compute: Callable[[], Value]) -> Value:
    given, own = b.stack(i32, 1), b.stack(i32, 1)
    b.perform_intrinsic("llvm.x86.sse.stmxcsr", [given])
    own.store(b.constant(MXCSR, i32))
    b.perform_intrinsic("llvm.x86.sse.ldmxcsr", [own])
    found = compute()
    b.perform_intrinsic("llvm.x86.sse.ldmxcsr", [given])
    return found


def _aarch64(b: Builder, compute: Callable[[], Value]) -> Value:
    given = b.intrinsic("llvm.aarch64.get.fpcr", [], i64)
    b.perform_intrinsic("llvm.aarch64.set.fpcr", [b.constant(FPCR, i64)])
    found = compute()
    b.perform_intrinsic("llvm.aarch64.set.fpcr", [given])
    return found


_AROUND = {"x86_64": _x86, "aarch64": _aarch64}
"""Architecture → the code around a computation. LLVM's operations for it save registers of the 8087 too."""
