"""The machine that a function is compiled for: a value that passes and kernels ask, and the attribute that holds it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from glow_mlir.dialects.costs import check_range
from glow_mlir.dialects.element_types import bit_width
from glow_mlir.dialects.feature_levels import enabled_features, short_features
from glow_mlir.dialects.shapes import MOST_BYTES
from glow_mlir.errors import OptionError

ACCURACIES = ("default", "strict")
"""What the sums of a function may round: docs/floating-point.md says what each guarantees."""

REQUANTIZATIONS = ("float", "integer")
"""How codes change their scale: docs/quantization.md says what each computes."""

OPTIMIZATIONS = ("speed", "size")
"""What a function is made for: few instructions executed, or little code and memory."""

RELOCATIONS = ("pic", "static")
"""Whether code runs at any address, or at the one that a linker gives it."""

CODE_MODELS = ("small", "medium", "large")
"""How far apart code and data may be, as compilers name it."""

FLOAT_ABIS = ("", "hard", "soft")
"""How floats are passed to functions; where nothing is said, as the triple has it."""

POINTER_BITS = (32, 64)
"""The sizes of pointers that there is code for."""

LEAST_VECTOR = 64
"""Bits of the narrowest vectors."""

RANGES: Mapping[str, tuple[int, int]] = {
    "vector_bits": (0, 1 << 16),
    "vector_registers": (4, 1 << 16),
    "line_bytes": (8, MOST_BYTES),
    "page_bytes": (8, MOST_BYTES),
    "l1_bytes": (0, MOST_BYTES),
    "l2_bytes": (0, MOST_BYTES),
    "l3_bytes": (0, MOST_BYTES),
    "ram_bytes": (0, MOST_BYTES),
    "flash_bytes": (0, MOST_BYTES),
}
"""
Field → the least and the largest number it may have.

With fewer registers, no kernel could keep the values of one operation; no instruction set has wider vectors.
"""

MOST_THREADS = 1 << 16
"""For how many threads the work of an inference may be cut, on any backend."""

WORDS: Mapping[str, tuple[str, ...]] = {
    "accuracy": ACCURACIES,
    "requantization": REQUANTIZATIONS,
    "optimize": OPTIMIZATIONS,
    "relocation": RELOCATIONS,
    "code_model": CODE_MODELS,
    "float_abi": FLOAT_ABIS,
}
"""Field → the words it may be."""

_FEATURE = re.compile(r"[+-]\w[\w.-]*", re.ASCII)
"""A feature that is on or off, as LLVM writes it."""

_FAMILIES: Mapping[str, str] = {
    "x86_64": "x86",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "arm": "arm",
    "thumb": "arm",
    "riscv": "riscv",
    "wasm": "wasm",
}
"""How an architecture begins, the longer first → the family that `_CAPABILITIES` knows."""

_ALWAYS = frozenset({""})
"""In the place of features: all processors of a family can do it."""

_FPV5 = frozenset({"fp-armv8d16sp", "fp-armv8d16", "fp-armv8"})
"""Arm's floating-point units that round."""

_FPV4 = _FPV5 | {"vfp4d16sp", "vfp4d16", "vfp4"}
"""Those, and the ones before them that multiply and add with one rounding."""

_CAPABILITIES: Mapping[str, Mapping[str, frozenset[str]]] = {
    "fma": {
        "x86": frozenset({"fma"}),
        "aarch64": frozenset({"neon"}),
        "riscv": frozenset({"f", "d"}),
        "arm": _FPV4,
    },
    "rounding": {
        "x86": frozenset({"sse4.1", "avx", "avx2", "avx512f"}),
        "aarch64": frozenset({"neon"}),
        "arm": _FPV5,
        "wasm": frozenset({"simd128"}),
    },
    "maxima": {"arm": _FPV5},
    # LLVM calls a library for that of Arm's small processors and of WebAssembly.
    "rounding_conversion": {
        "x86": frozenset({"sse2", "avx2"}),
        "aarch64": frozenset({"neon"}),
        "riscv": frozenset({"d"}),
    },
    "scaling": {"x86": frozenset({"avx512vl"})},
    "masked": {
        "x86": frozenset({"avx2", "avx512f"}),
        "aarch64": frozenset({"sve"}),
        "arm": frozenset({"mve", "mve.fp"}),
        "riscv": frozenset({"v"}),
    },
    "singles": {
        "x86": _ALWAYS,
        "aarch64": _ALWAYS,
        "wasm": _ALWAYS,
        "riscv": frozenset({"f", "d"}),
        "arm": _FPV4,
    },
    "doubles": {
        "x86": _ALWAYS,
        "aarch64": _ALWAYS,
        "wasm": _ALWAYS,
        "riscv": frozenset({"d"}),
        "arm": frozenset({"vfp4d16", "vfp4", "fp-armv8d16", "fp-armv8"}),
    },
    "halves": {
        "x86": frozenset({"f16c", "avx512f"}),
        "aarch64": _ALWAYS,
        "riscv": frozenset({"zfh", "zfhmin"}),
        "arm": _FPV4 | {"fp16"},
    },
    "wide_integers": {"wasm": _ALWAYS},
}
"""
Capability of a processor → family of architectures → features, any one of which provides it.

A family that is not there cannot do it.
"""


@dataclass(frozen=True)
class Target:
    """
    A processor as LLVM names it, the backend that compiles for it, and what passes and kernels have to know of it.

    `features` are LLVM's, such as `+avx2,+fma`: a processor is known by them, never by its name. `vector_bits` is the
    width of the vectors to use, 0 for none at all, and `vector_registers` how many of them there are. `line_bytes` is
    what a line of the caches has, `page_bytes` a page of memory, `l1_bytes` to `l3_bytes` the caches of data, 0 where
    there is none. `threads` says for how many the work of one
    inference is cut; no result may depend on it. `accuracy` is one of `ACCURACIES`, `requantization`
    one of `REQUANTIZATIONS`, `optimize` one of `OPTIMIZATIONS`. `ram_bytes` and `flash_bytes` are what a function may
    take of memory that is written, and of memory that is only read, 0 for no limit. `relocation`, `code_model` and
    `float_abi` say how its machine code is linked and called. `costs` has names and values of `Costs` that differ from
    what the backend has measured of such a machine, sorted.

    Raises `OptionError` for a value that a field cannot have.
    """

    backend: str
    triple: str = ""
    cpu: str = ""
    features: str = ""
    vector_bits: int = 0
    vector_registers: int = 16
    line_bytes: int = 64
    page_bytes: int = 4096
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0
    pointer_bits: int = 64
    threads: int = 1
    accuracy: str = "default"
    requantization: str = "float"
    optimize: str = "speed"
    ram_bytes: int = 0
    flash_bytes: int = 0
    relocation: str = "pic"
    code_model: str = "small"
    float_abi: str = ""
    costs: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        for name, kind in FIELDS.items():
            if type(value := getattr(self, name)) is not kind:
                raise OptionError(f"{name}={value!r} is no {'text' if kind is str else 'whole number'}")
        for name, (least, most) in RANGES.items():
            check_range(name, getattr(self, name), least, most)
        if not 1 <= self.threads <= MOST_THREADS:
            raise threads_error(self.threads)
        for name, words in WORDS.items():
            if (word := getattr(self, name)) not in words:
                hint = f"there are {', '.join(filter(None, words))}"
                raise OptionError(f"no {name.replace('_', ' ')} '{word}'", hint=hint)
        if self.pointer_bits not in POINTER_BITS:
            hint = f"it is {' or '.join(map(str, POINTER_BITS))}"
            raise OptionError(f"pointer_bits={self.pointer_bits} is no size of a pointer", hint=hint)
        _check_powers(self)
        _check_features(self.features)

    def vector_width(self, element: Attribute) -> int:
        """
        How many elements of a scalar type one vector holds, at least 1.

        A bool counts as the byte it is in memory.
        """
        return max(1, self.vector_bits // bit_width(element))

    @property
    def architecture(self) -> str:
        """The first part of the triple."""
        return self.triple.split("-", maxsplit=1)[0]

    @cached_property
    def family(self) -> str:
        """The family that the architecture belongs to: x86, aarch64, arm, riscv, wasm, or empty for any other."""
        return next((of for start, of in _FAMILIES.items() if self.architecture.startswith(start)), "")

    @property
    def machine(self) -> str:
        """The processor in few words: triple, name, and features as `short_features` gives them."""
        return ", ".join(filter(None, (self.triple, self.cpu, short_features(self.features))))

    @property
    def is_x86(self) -> bool:
        """Whether x86 intrinsics may be used."""
        return self.architecture == "x86_64"

    @property
    def is_cortex_m(self) -> bool:
        """Whether it is a microcontroller of Arm's: their instructions are Thumb's, and there is no Linux."""
        return self.architecture.startswith("thumb") and "linux" not in self.triple

    @cached_property
    def enabled(self) -> frozenset[str]:
        """The features that are on."""
        return enabled_features(self.features)

    @cached_property
    def fma(self) -> bool:
        """Whether an instruction multiplies and adds with one rounding."""
        return self._can("fma")

    @cached_property
    def rounding(self) -> bool:
        """Whether an instruction rounds floats to integral values."""
        return self._can("rounding")

    @cached_property
    def maxima(self) -> bool:
        """Whether an instruction gives the larger of two floats, scalars that are no NaN."""
        return self._can("maxima")

    @cached_property
    def rounding_conversion(self) -> bool:
        """Whether an instruction converts floats to the nearest integers, in vectors as well."""
        return self._can("rounding_conversion")

    @cached_property
    def scaling(self) -> bool:
        """Whether an instruction multiplies floats by powers of two (AVX-512's `vscalef`)."""
        return self._can("scaling")

    @cached_property
    def masked(self) -> bool:
        """Whether masked loads and stores are instructions."""
        return self._can("masked")

    @cached_property
    def singles(self) -> bool:
        """Whether instructions compute with floats of 32 bits."""
        return self._can("singles")

    @cached_property
    def doubles(self) -> bool:
        """Whether instructions compute with floats of 64 bits."""
        return self._can("doubles")

    @cached_property
    def halves(self) -> bool:
        """Whether instructions convert between floats of 16 bits (f16) and 32."""
        return self._can("halves")

    @cached_property
    def wide_integers(self) -> bool:
        """Whether instructions divide integers of 64 bits, multiply them, and convert them to floats and back."""
        return self.pointer_bits == 64 or self._can("wide_integers")

    @cached_property
    def wide_products(self) -> bool:
        """Whether instructions give both halves of products of integers of 64 bits."""
        return self.pointer_bits == 64

    def computes(self, bits: int) -> bool:
        """Whether instructions compute with floats of so many bits, 32 or 64."""
        return self.doubles if bits == 64 else self.singles

    def rounds(self, bits: int) -> bool:
        """Whether an instruction rounds floats of so many bits to integral values."""
        return self.rounding and (bits < 64 or self.doubles)

    def fuses(self, bits: int) -> bool:
        """Whether an instruction multiplies and adds floats of so many bits with one rounding."""
        return self.fma and (bits < 64 or self.doubles)

    def _can(self, capability: str) -> bool:
        """
        Whether an instruction does it.

        What a processor cannot do is built from other instructions, never called from a library.
        """
        provided = _CAPABILITIES[capability].get(self.family, frozenset())
        return provided == _ALWAYS or not self.enabled.isdisjoint(provided)


FIELDS: Mapping[str, type[str | int]] = {
    field.name: str if field.type == "str" else int for field in dataclasses.fields(Target) if field.name != "costs"
}
"""Field of a `Target` with one value → its type."""

COST = "costs."
"""How the name of a cost begins where fields are given by name."""


def _check_powers(target: Target) -> None:
    """Raise `OptionError` for a size that is a power of two on every machine, and is none here."""
    if target.vector_bits.bit_count() > 1 or 0 < target.vector_bits < LEAST_VECTOR:
        hint = f"a power of two from {LEAST_VECTOR} on, or 0 for none"
        raise OptionError(f"vector_bits={target.vector_bits} is no width of vectors", hint=hint)
    for name in ("line_bytes", "page_bytes"):
        if (size := getattr(target, name)).bit_count() > 1:
            raise OptionError(f"{name}={size} is no power of two")


def _check_features(text: str) -> None:
    """Raise `OptionError` for features that are not each on or off, once, with commas between."""
    items = text.split(",") if text else []
    for item in items:
        if not _FEATURE.fullmatch(item):
            hint = f"+{item} or -{item}" if _FEATURE.fullmatch(f"+{item}") else "such as +avx2,-fma, without blanks"
            raise OptionError(f"the feature '{item}' is neither on nor off", hint=hint)
    names = [item[1:] for item in items]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise OptionError(f"the feature '{name}' is given twice", hint="once, on or off")


def threads_error(threads: int, most: int = MOST_THREADS) -> OptionError:
    """The error for a number of threads that no function can be for."""
    return OptionError(f"threads={threads} is no number of threads", hint=f"1 to {most}")


def with_fields(target: Target, fields: Mapping[str, str | int]) -> Target:
    """A target with other values for some of its fields; raises `OptionError` for one that it cannot have."""
    costs = dict(target.costs)
    plain: dict[str, Any] = {}
    for name, value in fields.items():
        if name.startswith(COST) and isinstance(value, int):
            costs[name.removeprefix(COST)] = value
        elif name in FIELDS:
            plain[name] = value
        else:
            hint = f"it has {', '.join(FIELDS)}, and numbers called {COST}…"
            raise OptionError(f"a target has no field '{name}'", hint=hint)
    return dataclasses.replace(target, **plain, costs=tuple(sorted(costs.items()))) if fields else target


def named_fields(text: str) -> tuple[str, dict[str, str | int]]:
    """
    Name and fields in a text such as `avx2,vector_bits=128,features=+avx2,+fma`.

    Raises `OptionError` for what is neither, and for a field of numbers with something else.
    """
    name, *parts = text.split(",")
    found: dict[str, str | int] = {}
    last = ""
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals and last == "features" and part[:1] in ("+", "-"):
            found[last] = f"{found[last]},{part}"
            continue
        if not equals:
            raise OptionError(f"'{part}' is no field of the target '{text}'", hint="name,field=value,…")
        if key == "backend":
            raise OptionError(f"the target '{text}' is one of a backend", hint="the backend is an option of its own")
        if key in found:
            raise OptionError(f"the field '{key}' is given twice in the target '{text}'")
        last = key
        is_number = FIELDS.get(key) is int or key.startswith(COST)
        found[key] = int(value) if is_number and value.isdecimal() else value
    return name, found


@irdl_attr_definition
class TargetAttr(Data[Target]):
    """
    The target of a function. Fields that have their defaults are not printed.

    ```mlir
    #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", features = "+avx2,+fma", …>
    ```
    """

    name = "glow.target"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Target:
        with parser.in_angle_brackets():
            given: dict[str, Any] = {}
            parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_field(parser, given))
        if "backend" not in given:
            parser.raise_error("a target names its backend")
        try:
            return Target(**given)
        except OptionError as error:
            parser.raise_error(str(error))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str_of(self.data))


def _parse_field(parser: AttrParser, given: dict[str, Any]) -> None:
    """Parse one `name = value` of a target."""
    name = parser.parse_identifier()
    if name not in FIELDS and name != "costs":
        parser.raise_error(f"a target has no field '{name}'; it has {', '.join(FIELDS)}, costs")
    if name in given:
        parser.raise_error(f"the field '{name}' is given twice")
    parser.parse_punctuation("=")
    if name == "costs":
        given[name] = _parse_costs(parser)
        return
    given[name] = parser.parse_str_literal() if FIELDS[name] is str else parser.parse_integer()


def _parse_costs(parser: AttrParser) -> tuple[tuple[str, int], ...]:
    """`{name = number, …}`."""

    def cost() -> tuple[str, int]:
        name = parser.parse_identifier()
        parser.parse_punctuation("=")
        return name, parser.parse_integer()

    found = parser.parse_comma_separated_list(parser.Delimiter.BRACES, cost)
    if len(found) > len(dict(found)):
        parser.raise_error("a cost is given twice")
    return tuple(sorted(found))


def str_of(target: Target) -> str:
    """The fields of a target that do not have their defaults, as its attribute prints them."""
    plain = Target(target.backend)
    shown = [name for name in FIELDS if name == "backend" or getattr(target, name) != getattr(plain, name)]
    fields = [f"{name} = {_literal(getattr(target, name))}" for name in shown]
    if target.costs:
        fields.append(f"costs = {{{', '.join(f'{name} = {cost}' for name, cost in target.costs)}}}")
    return ", ".join(fields)


def _literal(value: str | int) -> str:
    return json.dumps(value) if isinstance(value, str) else str(value)
