"""
What functions are compiled for: the machine, the policy of the compilation, its limits, and how its code is linked.

A field added here is an option of the pass `assign-target`, a field of `--target NAME,FIELD=VALUE` and of the text of
targets, a part of the keys of artifacts, and a row of docs/options.md. With a `flag` tools have it as well, and
sessions as a keyword.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Flag, Numbers, Options, PowersOfTwo, Range, Words, option
from glow_mlir.support.kinds import ANYTHING

MOST_BYTES = 1 << 47
"""No tensor or buffer reaches further: it is all that a process can address, and sums of a few are far from 2^63."""

MOST_THREADS = 1 << 16
"""For how many threads the work of an inference may be cut, on any backend."""

THREADS = "number of threads"
"""What fewer, or more, are none of."""

LEAST_REGISTERS = 4
"""With fewer, no kernel could keep the values of one operation."""

_BYTES = Range(0, MOST_BYTES)
_FEATURE = re.compile(r"[+-]\w[\w.-]*", re.ASCII)
"""A feature that is on or off, as LLVM writes it."""


class Features:
    """Features that are each on or off, once, with commas between."""

    def check(self, name: str, value: str) -> None:
        """Raise `OptionError` for other texts."""
        items = value.split(",") if value else []
        for item in items:
            if not _FEATURE.fullmatch(item):
                hint = f"+{item} or -{item}" if _FEATURE.fullmatch(f"+{item}") else "such as +avx2,-fma, without blanks"
                raise OptionError(f"the feature '{item}' is neither on nor off", hint=hint)
        names = [item[1:] for item in items]
        for position, feature in enumerate(names):
            if feature in names[:position]:
                raise OptionError(f"the feature '{feature}' is given twice", hint="once, on or off")

    def __str__(self) -> str:
        return "such as `+avx2,-fma`"


@dataclass(frozen=True)
class Machine(Options):
    """A processor as LLVM names it, the backend that compiles for it, and what passes and kernels have to know."""

    GROUP = "machine"

    backend: str = option(help="what compiles for the machine")
    triple: str = option("", "architecture, vendor, system and environment, as LLVM writes them")
    cpu: str = option("", "the processor, as LLVM calls it")
    features: str = option("", "LLVM's features: a processor is known by them, never by its name", domain=Features())
    vector_bits: int = option(
        0, "the width of vectors, 0 for none at all", domain=PowersOfTwo(64, 1 << 16, "width of vectors", or_zero=True)
    )
    vector_registers: int = option(16, "how many vectors there are", domain=Range(LEAST_REGISTERS, 1 << 16))
    line_bytes: int = option(64, "a line of the caches", domain=PowersOfTwo(8, MOST_BYTES))
    page_bytes: int = option(4096, "a page of memory", domain=PowersOfTwo(8, MOST_BYTES))
    l1_bytes: int = option(0, "the first cache of data, 0 for none", domain=_BYTES)
    l2_bytes: int = option(0, "the second cache, 0 for none", domain=_BYTES)
    l3_bytes: int = option(0, "the third cache, 0 for none", domain=_BYTES)
    pointer_bits: int = option(64, "the size of pointers", domain=Numbers((32, 64), "size of a pointer"))


@dataclass(frozen=True)
class Policy(Options):
    """What a function is made for, on any machine."""

    GROUP = "policy"

    threads: int = option(
        1,
        "threads of an inference",
        domain=Range(1, MOST_THREADS, THREADS),
        kind=ANYTHING,
        flag=Flag("--threads", "N", also="0 for all cores", unsaid="those of the module, else 1"),
    )
    accuracy: str = option(
        "default",
        "strict: no kernel whose rounding errors are larger than those of plain sums",
        domain=Words(("default", "strict")),
        flag=Flag("--accuracy"),
    )
    requantization: str = option(
        "float",
        "how codes change their scale: by products of floats, or of integers",
        domain=Words(("float", "integer")),
    )
    optimize: str = option(
        "speed",
        "what code is made for: few instructions executed, or little code, constants and memory",
        domain=Words(("speed", "size")),
        flag=Flag("--optimize", unsaid="speed"),
    )


@dataclass(frozen=True)
class Limits(Options):
    """What a function may take of memory; 0 is no limit."""

    GROUP = "limit"

    ram_bytes: int = option(
        0,
        "what activations, inputs, outputs and state may take, such as 256K or 1M: layers that need more are computed "
        "by lines, several layers together",
        domain=_BYTES,
        flag=Flag("--ram-limit", "BYTES"),
    )
    flash_bytes: int = option(
        0,
        "what machine code and constants may take, likewise",
        domain=_BYTES,
        flag=Flag("--flash-limit", "BYTES"),
    )


@dataclass(frozen=True)
class Linking(Options):
    """How machine code is linked and called."""

    GROUP = "linking"

    relocation: str = option(
        "pic",
        "whether code runs at any address, or at the one that a linker gives it",
        domain=Words(("pic", "static")),
    )
    code_model: str = option(
        "small",
        "how far apart code and data may be, as compilers name it",
        domain=Words(("small", "medium", "large")),
    )
    float_abi: str = option(
        "", "how floats are passed to functions, by default as the triple has it", domain=Words(("", "hard", "soft"))
    )
