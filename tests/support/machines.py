"""Machines by name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from glow_mlir.backends.cpu.backend import CpuBackend
from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.llvm.symbols import is_arithmetic, undefined_symbols
from glow_mlir.dialects.target import Target

AS_SMALL = " as a small machine"
"""How the names of machines end of which only that is used what the smallest have."""


@dataclass(frozen=True)
class SmallTarget(Target):
    """
    A machine that is taken for one without an FPU and without arithmetic on integers of 64 bits.

    What is built for such machines from what they have runs on this one.
    """

    @cached_property
    def singles(self) -> bool:
        return False

    @cached_property
    def doubles(self) -> bool:
        return False

    @cached_property
    def halves(self) -> bool:
        return False

    @cached_property
    def wide_integers(self) -> bool:
        return False

    @cached_property
    def wide_products(self) -> bool:
        return False


def target_named(text: str) -> Target:
    """What the CPU backend calls a target, or that `AS_SMALL`."""
    target = CpuBackend().target(text.removesuffix(AS_SMALL))
    if not text.endswith(AS_SMALL):
        return target
    return SmallTarget(**{field.name: getattr(target, field.name) for field in fields(target)})


def brain_product_targets() -> list[str]:
    """Targets with instructions for products of bf16, in all their widths, whose code this machine can run."""
    wide = PRESETS["avx512"].features
    return _runnable(
        [f"avx512,vector_bits={bits},features={wide},+avx512bf16" for bits in (512, 256, 128)],
    )


def dot_product_targets() -> list[str]:
    """Targets with instructions for products of bytes, in all their widths, whose code this machine can run."""
    wide, narrow = (PRESETS[name].features for name in ("avx512", "avx2"))
    texts = [
        f"avx512,features={wide},+avx512vnni",
        f"avx512,vector_bits=256,features={wide},+avx512vnni",
        f"avx512,vector_bits=128,features={wide},+avx512vnni",
        f"avx2,features={narrow},+avxvnni",
    ]
    return _runnable(texts)


def _runnable(texts: list[str]) -> list[str]:
    """Those targets whose code this machine can run."""
    backend = CpuBackend()
    return [text for text in texts if not backend.lacks(backend.target(text))]


def tile_targets() -> list[str]:
    """Targets with tile registers, and vectors of each width, that this machine can run where those are emulated."""
    backend, tiles = CpuBackend(), "+amx-bf16,+amx-int8,+amx-tile"
    further = {"avx2": "", "avx512": ",+avx512bf16"}
    return [
        f"{name},features={PRESETS[name].features},{tiles}{features}"
        for name, features in further.items()
        if not backend.lacks(PRESETS[name])
    ]


def stray_symbols(data: bytes, target: Target) -> list[str]:
    """What an object leaves to a linker, but for the arithmetic of floats where a machine has no FPU."""
    return [name for name in undefined_symbols(data) if target.singles or not is_arithmetic(name)]
