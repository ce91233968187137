"""The machine that code is generated for: what kernels ask of it, and the named ones."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute

from glow_mlir.errors import OptionError

_FLOAT_BITS: dict[type[Attribute], int] = {
    Float16Type: 16,
    BFloat16Type: 16,
    Float32Type: 32,
    Float64Type: 64,
}


@dataclass(frozen=True)
class Target:
    """
    A processor as LLVM names it, and what a kernel has to know of it.

    `vector_bits` is the width of the vectors to use, 0 for none at all. `rounding` says whether floats can be
    rounded to integral values by an instruction, `scaling` whether they can be multiplied by a power of two (AVX-512's
    `vscalef`), `masked` whether masked loads and stores are instructions: what a target lacks is built from other
    instructions, never called from a library. `threads` says for how many the work of one inference is cut; no result
    may depend on it.
    """

    name: str
    triple: str
    cpu: str
    features: str = ""
    vector_bits: int = 0
    vector_registers: int = 16
    fma: bool = False
    rounding: bool = False
    scaling: bool = False
    masked: bool = False
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 32 << 20
    pointer_bits: int = 64
    threads: int = 1

    def vector_width(self, element: Attribute) -> int:
        """
        Return how many elements of a scalar type one vector holds, at least 1.

        A bool counts as the byte it is in memory.
        """
        return max(1, self.vector_bits // element_bits(element))

    @property
    def is_x86(self) -> bool:
        """Whether x86 intrinsics may be used."""
        return self.triple.startswith("x86_64")


def element_bits(element: Attribute) -> int:
    """Return how many bits a scalar type takes in memory. Raises `OptionError` for other types."""
    if isinstance(element, IntegerType):
        return max(8, element.bitwidth)
    if (bits := _FLOAT_BITS.get(type(element))) is not None:
        return bits
    raise OptionError(f"'{element}' is not a scalar element type")


_LINUX_X86 = "x86_64-unknown-linux-gnu"

PRESETS = {
    "avx2": Target(
        *("avx2", _LINUX_X86, "x86-64-v3"),
        vector_bits=256,
        fma=True,
        rounding=True,
        masked=True,
    ),
    "avx512": Target(
        *("avx512", _LINUX_X86, "x86-64-v4"),
        vector_bits=512,
        vector_registers=32,
        fma=True,
        rounding=True,
        scaling=True,
        masked=True,
        l2_bytes=1 << 20,
    ),
    "neon": Target(
        *("neon", "aarch64-unknown-linux-gnu", "generic", "+neon"),
        vector_bits=128,
        vector_registers=32,
        fma=True,
        rounding=True,
    ),
    # What any x86-64 machine can run, without vectors: stands in for a microcontroller in the tests.
    "scalar": Target("scalar", _LINUX_X86, "x86-64"),
}


def host_target() -> Target:
    """Return the machine this process runs on, with every feature LLVM detects."""
    # The host is asked through llvmlite, which a compile for a named target need not load.
    from glow_mlir.codegen.llvm.host import detect_host

    host = detect_host()
    preset = _host_preset(host.triple, host.enabled)
    return dataclasses.replace(
        preset,
        name="host",
        triple=host.triple,
        cpu=host.cpu,
        features=host.features,
        l1_bytes=host.l1_bytes or preset.l1_bytes,
        l2_bytes=host.l2_bytes or preset.l2_bytes,
        l3_bytes=host.l3_bytes or preset.l3_bytes,
    )


def _host_preset(triple: str, enabled: frozenset[str]) -> Target:
    """Return the preset whose kernels suit a machine with these features."""
    if triple.startswith("aarch64"):
        return PRESETS["neon"]
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= enabled:
        return PRESETS["avx512"]
    if {"avx2", "fma"} <= enabled:
        return PRESETS["avx2"]
    rounding = "sse4.1" in enabled
    return dataclasses.replace(PRESETS["scalar"], vector_bits=128, rounding=rounding)


def target_named(name: str) -> Target:
    """
    Return the target called `name`: `host` or a preset.

    Raises `OptionError` listing the names there are.
    """
    if name == "host":
        return host_target()
    if (preset := PRESETS.get(name)) is None:
        raise OptionError(f"no target is called '{name}'", hint=f"there are host, {', '.join(sorted(PRESETS))}")
    return preset
