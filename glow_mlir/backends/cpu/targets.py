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

_SMALL = Target(NAME, l1_bytes=16 << 10, l2_bytes=64 << 10, pointer_bits=32)
"""What is assumed of a small machine: no vectors, no third cache."""

_X86 = replace(_ANY, triple="x86_64-unknown-linux-gnu")

PRESETS: Mapping[str, Target] = {
    "avx2": replace(_X86, cpu="x86-64-v3", features=_X86_64_V3, vector_bits=256),
    "avx512": replace(
        _X86, cpu="x86-64-v4", features=_X86_64_V4, vector_bits=512, vector_registers=32, l2_bytes=1 << 20
    ),
    # AVX-512 with products of tiles, of bytes and of bf16.
    "amx": replace(
        _X86, cpu="x86-64-v4", features=_AMX, vector_bits=512, vector_registers=32, l1_bytes=48 << 10, l2_bytes=2 << 20
    ),
    "sse2": replace(_X86, cpu="x86-64", features="+sse2", vector_bits=128),
    "neon": replace(
        _ANY,
        triple="aarch64-unknown-linux-gnu",
        cpu="generic",
        features="+neon",
        vector_bits=128,
        vector_registers=32,
    ),
    # Microcontrollers and small machines, whose addresses have 32 bits. One without floats of 64 bits calls a library.
    "cortex-m4": replace(
        _SMALL,
        triple="thumbv7em-unknown-none-eabihf",
        cpu="cortex-m4",
        features="+vfp4d16sp",
        vector_registers=32,
    ),
    "riscv32": replace(
        _SMALL, triple="riscv32-unknown-none-elf", cpu="generic-rv32", features="+m,+a,+f,+d,+c", vector_registers=32
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
