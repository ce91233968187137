"""
The machine that functions are compiled for, and how their code is linked.

A field added here is an option of the pass `assign-target`, a field of `--target NAME,FIELD=VALUE` and of the text of
targets, a part of the keys of artifacts, and a row of docs/options.md.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Options, Range, Words, option, short_number
from glow_mlir.options.policy import MAX_BYTES
from glow_mlir.support.dataclass import dataclass

MIN_REGISTERS = 4
"""The minimum number of vector registers: with fewer, no kernel could hold the values of one operation."""

_BYTES = Range(0, MAX_BYTES)

_FEATURE = re.compile(r"[+-]\w[\w.-]*", re.ASCII)
"""A feature that is on or off, as LLVM writes it."""


class PowersOfTwo(NamedTuple):
    """Powers of two from `least` to `most`, and 0 as well if `or_zero`; others are no `noun`."""

    least: int
    most: int
    noun: str = ""
    or_zero: bool = False

    def check(self, name: str, value: int) -> None:
        Range(0 if self.or_zero else self.least, self.most).check(name, value)
        if value.bit_count() > 1 or 0 < value < self.least:
            hint = f"a power of two from {self.least} on{', or 0 for none' * self.or_zero}" if self.noun else ""
            raise OptionError(f"{name}={value} is no {self.noun or 'power of two'}", hint=hint)

    def __str__(self) -> str:
        return f"{'0, or ' * self.or_zero}a power of two, {short_number(self.least)} to {short_number(self.most)}"


class Numbers(NamedTuple):
    """Some whole numbers; others are no `noun`."""

    numbers: tuple[int, ...]
    noun: str

    def check(self, name: str, value: int) -> None:
        if value not in self.numbers:
            raise OptionError(f"{name}={value} is no {self.noun}", hint=f"it is {self}")

    def __str__(self) -> str:
        return " or ".join(map(str, self.numbers))


class Features:
    """Features that are each on or off, given once, and separated by commas."""

    def check(self, name: str, value: str) -> None:
        """Raise `OptionError` for any other text."""
        items = value.split(",") if value else []
        for item in items:
            if not _FEATURE.fullmatch(item):
                hint = f"+{item} or -{item}" if _FEATURE.fullmatch(f"+{item}") else "such as +avx2,-fma, without blanks"
                raise OptionError(f"the feature '{item}' does not start with + or -", hint=hint)
        names = [item[1:] for item in items]
        for position, feature in enumerate(names):
            if feature in names[:position]:
                raise OptionError(f"the feature '{feature}' is given twice", hint="once, on or off")

    def __str__(self) -> str:
        return "such as `+avx2,-fma`"


@dataclass(frozen=True)
class Machine(Options):
    """A processor as LLVM names it, the backend that compiles for it, and properties that passes and kernels need."""

    GROUP = "machine"

    backend: str = option(help="the backend that compiles for the machine")
    triple: str = option("", "architecture, vendor, system and environment, as LLVM writes them")
    cpu: str = option("", "the processor, as LLVM calls it")
    features: str = option(
        "", "LLVM's features, which determine the processor's abilities; its name does not", domain=Features()
    )
    vector_bits: int = option(
        0, "bits of a vector, 0 without vectors", domain=PowersOfTwo(64, 1 << 16, "width of vectors", or_zero=True)
    )
    vector_registers: int = option(16, "number of vector registers", domain=Range(MIN_REGISTERS, 1 << 16))
    line_bytes: int = option(64, "bytes of a cache line", domain=PowersOfTwo(8, MAX_BYTES))
    alignment: int = option(
        64,
        "alignment of regions and buffers, in bytes: a cache line where there are caches",
        domain=PowersOfTwo(8, MAX_BYTES),
    )
    page_bytes: int = option(4096, "bytes of a memory page", domain=PowersOfTwo(8, MAX_BYTES))
    l1_bytes: int = option(0, "bytes of the first data cache, 0 for none", domain=_BYTES)
    l2_bytes: int = option(0, "bytes of the second cache, 0 for none", domain=_BYTES)
    l3_bytes: int = option(0, "bytes of the third cache, 0 for none", domain=_BYTES)
    pointer_bits: int = option(64, "bits of a pointer", domain=Numbers((32, 64), "size of a pointer"))


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
        "", "how floats are passed to functions, by default as the triple implies", domain=Words(("", "hard", "soft"))
    )
