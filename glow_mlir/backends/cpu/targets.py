"""The named machines of the CPU backend, in a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from glow_mlir.dialects.feature_levels import FEATURE_LEVELS
from glow_mlir.dialects.target import Target
from glow_mlir.errors import OptionError
from glow_mlir.options.machine import Linking
from glow_mlir.runtime import host as this_machine

NAME = "cpu"
"""The name of the backend."""

_AMX = f"{FEATURE_LEVELS['x86-64-v4']},+amx-bf16,+amx-int8,+amx-tile,+avx512bf16,+avx512vnni"

_ANY = Target(NAME, l1_bytes=32 << 10, l2_bytes=512 << 10, l3_bytes=32 << 20)
"""The assumed cache sizes of a machine that does not report them."""

_SMALL = Target(NAME, l1_bytes=16 << 10, l2_bytes=64 << 10, pointer_bits=32, linking=Linking("static"))
"""The assumptions for a small machine: no vectors, no third cache, code at a fixed address."""

_X86 = replace(_ANY, triple="x86_64-unknown-linux-gnu")
_V4 = replace(_X86, cpu="x86-64-v4", features=FEATURE_LEVELS["x86-64-v4"], vector_bits=512, vector_registers=32)

_ARM = replace(_ANY, triple="aarch64-unknown-linux-gnu", cpu="generic", vector_bits=128, vector_registers=32)

_SVE = "+neon,+sve"
"""Vectors whose length is determined by the processor."""

_RISCV = replace(_ANY, triple="riscv64-unknown-linux-gnu", cpu="generic-rv64", vector_registers=32)

_GC = "+m,+a,+f,+d,+c"
"""The features of every RISC-V application processor."""

_WITHOUT_CACHES = 8
"""The memory alignment on machines without cache lines: that of the largest elements."""

_HARD_FLOAT = replace(
    _SMALL, triple="thumbv7em-unknown-none-eabihf", vector_registers=32, linking=Linking("static", float_abi="hard")
)
"""A microcontroller with an FPU of 32 single-precision registers; without 64-bit floats, which a library computes."""


_SOFT_FLOAT = replace(
    _SMALL, triple="thumbv6m-unknown-none-eabi", vector_registers=4, linking=Linking("static", float_abi="soft")
)
"""A microcontroller without an FPU; a library computes floats."""

_HELIUM = replace(
    _HARD_FLOAT,
    triple="thumbv8.1m.main-unknown-none-eabihf",
    features="+dsp,+fp-armv8d16,+fp64,+mve.fp",
    vector_bits=128,
    vector_registers=8,
)
"""A microcontroller with 128-bit vectors and 64-bit floats."""

_CODE_MODELS = {"aarch64": ("small", "large")}
"""Architecture family → its code models, if not all exist."""

_PARTS = ("architecture", "vendor", "system", "environment")
"""The parts of a triple."""


class Machine(NamedTuple):
    """A named machine: its description, and its properties for passes and kernels."""

    about: str
    target: Target


MACHINES: Mapping[str, Machine] = {
    # Stands in for a microcontroller in the tests.
    "scalar": Machine("any x86-64, without vectors", replace(_X86, cpu="x86-64")),
    "sse2": Machine("any x86-64", replace(_X86, cpu="x86-64", features="+sse2", vector_bits=128)),
    "sse4": Machine("x86-64-v2", replace(_X86, cpu="x86-64-v2", features=FEATURE_LEVELS["x86-64-v2"], vector_bits=128)),
    "avx2": Machine("x86-64-v3", replace(_X86, cpu="x86-64-v3", features=FEATURE_LEVELS["x86-64-v3"], vector_bits=256)),
    "avx512": Machine("x86-64-v4", replace(_V4, l2_bytes=1 << 20)),
    "amx": Machine(
        "x86-64-v4 with products of tiles, of bytes and of bf16",
        replace(_V4, features=_AMX, l1_bytes=48 << 10, l2_bytes=2 << 20),
    ),
    "neon": Machine("any AArch64", replace(_ARM, features="+neon")),
    "neon-dotprod": Machine("AArch64 with dot products of bytes", replace(_ARM, features="+dotprod,+neon")),
    "neon-i8mm": Machine(
        "AArch64 with dot products of bytes of either sign", replace(_ARM, features="+dotprod,+i8mm,+neon")
    ),
    "sve-128": Machine("AArch64 with SVE of any length", replace(_ARM, features=_SVE)),
    "sve-256": Machine("AArch64 with SVE of 256 bits", replace(_ARM, features=_SVE, vector_bits=256)),
    "riscv64": Machine("RV64GC", replace(_RISCV, features=_GC)),
    "rvv-128": Machine("RV64GCV", replace(_RISCV, features=f"{_GC},+v", vector_bits=128)),
    "rvv-256": Machine(
        "RV64GCV with vectors of 256 bits or more",
        replace(_RISCV, features=f"{_GC},+v,+zvl256b", vector_bits=256),
    ),
    "riscv32": Machine(
        "RV32GC",
        replace(_SMALL, triple="riscv32-unknown-none-elf", cpu="generic-rv32", features=_GC, vector_registers=32),
    ),
    "cortex-m0plus": Machine(
        "Cortex-M0+, whose floats a library computes",
        replace(_SOFT_FLOAT, cpu="cortex-m0plus", alignment=_WITHOUT_CACHES),
    ),
    "cortex-m3": Machine(
        "Cortex-M3, whose floats a library computes",
        replace(_SOFT_FLOAT, triple="thumbv7m-unknown-none-eabi", cpu="cortex-m3", alignment=_WITHOUT_CACHES),
    ),
    "cortex-m4": Machine(
        "Cortex-M4 with floats of 32 bits",
        replace(_HARD_FLOAT, cpu="cortex-m4", features="+dsp,+vfp4d16sp", alignment=_WITHOUT_CACHES),
    ),
    "cortex-m7": Machine(
        "Cortex-M7 with floats of 32 bits",
        replace(_HARD_FLOAT, cpu="cortex-m7", features="+dsp,+fp-armv8d16sp,-fp64"),
    ),
    "cortex-m33": Machine(
        "Cortex-M33 with DSP and floats of 32 bits",
        replace(
            _HARD_FLOAT,
            triple="thumbv8m.main-unknown-none-eabihf",
            cpu="cortex-m33",
            alignment=_WITHOUT_CACHES,
            features="+dsp,+fp-armv8d16sp,-fp64",
        ),
    ),
    "cortex-m55": Machine("Cortex-M55 with Helium for floats", replace(_HELIUM, cpu="cortex-m55")),
    "cortex-m85": Machine("Cortex-M85 with Helium for floats", replace(_HELIUM, cpu="cortex-m85")),
    "wasm32": Machine(
        "WebAssembly with vectors",
        replace(
            _SMALL,
            triple="wasm32-unknown-unknown",
            cpu="generic",
            features="+simd128",
            vector_bits=128,
            l3_bytes=8 << 20,
        ),
    ),
}
"""Name → machine. A processor does not determine the memory size: `ram_bytes` and `flash_bytes` have no limits."""

PRESETS: Mapping[str, Target] = {name: machine.target for name, machine in MACHINES.items()}
"""Name → target of passes and kernels."""


def host_target() -> Target:
    """The machine this process runs on, with every feature LLVM detects, and kernels for the widest preset it runs."""
    # The host is asked through llvmlite, which a compile for a named target need not load.
    from glow_mlir.codegen.builder.modules import vector_length
    from glow_mlir.codegen.llvm.host import detect_host

    host = detect_host()
    runnable = [
        preset
        for preset in PRESETS.values()
        # No feature tells the length of scalable vectors.
        if vector_length(preset) is None and not this_machine.lacks_instructions(preset.triple, preset.enabled)
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
    """The requirements of code for a target that this machine lacks, as text; empty if it lacks none."""
    return this_machine.lacks(target.triple, target.enabled)


def check_linking(target: Target) -> None:
    """
    Raise `OptionError` if the float ABI contradicts the triple, or if the float ABI or the code model cannot be chosen.

    Arm's triples specify the float ABI in their fourth part: for triples of three parts, LLVM ignores the option and
    generates objects that do not link.
    """
    if target.linking.code_model not in (models := _CODE_MODELS.get(target.family, (target.linking.code_model,))):
        hint = f"there are {' and '.join(models)}"
        raise OptionError(f"'{target.architecture}' has no code model '{target.linking.code_model}'", hint=hint)
    wanted, parts = target.linking.float_abi, target.triple.split("-")
    if target.family == "arm":
        if len(parts) < len(_PARTS):
            hint = f"{'-'.join(_PARTS)}, such as thumbv7em-unknown-none-eabihf"
            raise OptionError(f"the triple '{target.triple}' does not say how floats are passed", hint=hint)
        if wanted and (wanted == "hard") != parts[-1].endswith("hf"):
            other = parts[-1].removesuffix("hf") + ("hf" if wanted == "hard" else "")
            reason = f"float_abi={wanted} contradicts the triple '{target.triple}'"
            raise OptionError(reason, hint=f"triple={'-'.join((*parts[:-1], other))}")
    elif wanted and target.family != "riscv":
        raise OptionError(f"float_abi={wanted}: floats are passed in one way on '{target.architecture}'")
    elif wanted == "hard" and not target.doubles:
        raise OptionError("float_abi=hard needs registers for floats of 64 bits", hint="the feature +d")


@cache
def check_processor(triple: str, cpu: str, features: str, pointer_bits: int) -> None:
    """
    Raise `OptionError` for a processor that LLVM does not know, or whose pointers have another size.

    LLVM is queried only for machines that are neither this one nor a named one, possibly with fewer features.
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
