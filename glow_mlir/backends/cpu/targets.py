"""The machines that the CPU backend knows by name: an entry of the table adds one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from glow_mlir.dialects.target import Target
from glow_mlir.errors import OptionError
from glow_mlir.runtime import host as this_machine

NAME = "cpu"
"""The name of the backend."""

_X86_64_V3 = "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
_X86_64_V4 = f"{_X86_64_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"

_AMX = f"{_X86_64_V4},+amx-bf16,+amx-int8,+amx-tile,+avx512bf16,+avx512vnni"

_ANY = Target(NAME, l1_bytes=32 << 10, l2_bytes=512 << 10, l3_bytes=32 << 20)
"""What is assumed of a machine whose caches nothing tells."""

_SMALL = Target(NAME, l1_bytes=16 << 10, l2_bytes=64 << 10, pointer_bits=32, relocation="static")
"""What is assumed of a small machine: no vectors, no third cache, code at a fixed address."""

_X86 = replace(_ANY, triple="x86_64-unknown-linux-gnu")

_ARM = replace(_ANY, triple="aarch64-unknown-linux-gnu", cpu="generic", vector_bits=128, vector_registers=32)

_RISCV = replace(_ANY, triple="riscv64-unknown-linux-gnu", cpu="generic-rv64", vector_registers=32)

_GC = "+m,+a,+f,+d,+c"
"""What every application processor of RISC-V has."""

_HARD_FLOAT = replace(_SMALL, triple="thumbv7em-unknown-none-eabihf", vector_registers=32, float_abi="hard")
"""A microcontroller with an FPU of 32 registers for floats of 32 bits; one without 64 calls a library for these."""

PRESETS: Mapping[str, Target] = {
    "avx2": replace(_X86, cpu="x86-64-v3", features=_X86_64_V3, vector_bits=256),
    "avx512": replace(
        _X86, cpu="x86-64-v4", features=_X86_64_V4, vector_bits=512, vector_registers=32, l2_bytes=1 << 20
    ),
    # AVX-512 with products of tiles, of bytes and of bf16.
    "amx": replace(
        _X86, cpu="x86-64-v4", features=_AMX, vector_bits=512, vector_registers=32, l1_bytes=48 << 10, l2_bytes=2 << 20
    ),
    "sse4.2": replace(_X86, cpu="x86-64-v2", features="+popcnt,+sse2,+sse4.1,+sse4.2,+ssse3", vector_bits=128),
    "sse2": replace(_X86, cpu="x86-64", features="+sse2", vector_bits=128),
    "neon": replace(_ARM, features="+neon"),
    "neon-dotprod": replace(_ARM, features="+dotprod,+neon"),
    "neon-i8mm": replace(_ARM, features="+dotprod,+i8mm,+neon"),
    # Vectors whose length the processor decides, for one length.
    "sve-128": replace(_ARM, features="+neon,+sve"),
    "sve-256": replace(_ARM, features="+neon,+sve", vector_bits=256),
    "riscv64": replace(_RISCV, features=_GC),
    "rvv-128": replace(_RISCV, features=f"{_GC},+v,+zvl128b", vector_bits=128),
    "rvv-256": replace(_RISCV, features=f"{_GC},+v,+zvl256b", vector_bits=256),
    "riscv32": replace(
        _SMALL, triple="riscv32-unknown-none-elf", cpu="generic-rv32", features=_GC, vector_registers=32
    ),
    # Floats of a machine without an FPU are library calls.
    "cortex-m0plus": replace(
        _SMALL, triple="thumbv6m-unknown-none-eabi", cpu="cortex-m0plus", vector_registers=4, float_abi="soft"
    ),
    "cortex-m4": replace(_HARD_FLOAT, cpu="cortex-m4", features="+dsp,+vfp4d16sp"),
    "cortex-m7": replace(_HARD_FLOAT, cpu="cortex-m7", features="+dsp,+fp-armv8d16sp,-fp64"),
    "cortex-m55": replace(
        _HARD_FLOAT,
        triple="thumbv8.1m.main-unknown-none-eabihf",
        cpu="cortex-m55",
        features="+dsp,+fp-armv8d16,+fp64,+mve.fp",
        vector_bits=128,
        vector_registers=8,
    ),
    "wasm32": replace(
        _SMALL, triple="wasm32-unknown-unknown", cpu="generic", features="+simd128", vector_bits=128, l3_bytes=8 << 20
    ),
    # What any x86-64 machine can run, without vectors: stands in for a microcontroller in the tests.
    "scalar": replace(_X86, cpu="x86-64"),
}
"""Name → machine."""


def host_target() -> Target:
    """The machine this process runs on, with every feature LLVM detects, and kernels for the widest preset it runs."""
    # The host is asked through llvmlite, which a compile for a named target need not load.
    from glow_mlir.codegen.llvm.host import detect_host

    host = detect_host()
    runnable = [
        preset for preset in PRESETS.values() if not this_machine.lacks_instructions(preset.triple, preset.enabled)
    ]
    preset = max(runnable, key=lambda preset: preset.vector_bits, default=PRESETS["scalar"])
    return replace(
        preset,
        triple=host.triple,
        cpu=host.cpu,
        features=host.features,
        l1_bytes=host.l1_bytes or preset.l1_bytes,
        l2_bytes=host.l2_bytes or preset.l2_bytes,
        l3_bytes=host.l3_bytes or preset.l3_bytes,
    )


def lacks(target: Target) -> str:
    """What this machine lacks to run code for a target, in words; empty where it lacks nothing."""
    return this_machine.lacks(target.triple, target.enabled)


@cache
def check_processor(triple: str, cpu: str, features: str, pointer_bits: int) -> None:
    """
    Raise `OptionError` for a processor that LLVM does not know, or whose pointers have other sizes.

    LLVM is asked only of what is not a named machine, or one with fewer features, nor this one.
    """
    wanted = set(features.split(",")) if features else set[str]()
    for preset in PRESETS.values():
        if (preset.triple, preset.cpu, preset.pointer_bits) == (triple, cpu, pointer_bits):
            if wanted <= set(preset.features.split(",")):
                return
    from glow_mlir.codegen.llvm.host import detect_host
    from glow_mlir.codegen.llvm.processor import ask

    host = detect_host()
    if (host.triple, host.cpu, host.features, 64) == (triple, cpu, features, pointer_bits):
        return
    answer = ask(triple, cpu, features)
    if answer.refusal:
        raise OptionError(f"LLVM compiles for no such machine: {answer.refusal}", hint="triple, cpu, features")
    if answer.pointer_bits != pointer_bits:
        reason = f"pointer_bits={pointer_bits} contradicts the triple '{triple}'"
        raise OptionError(reason, hint=f"its pointers have {answer.pointer_bits} bits")
