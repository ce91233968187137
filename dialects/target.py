"""The machine that a function is compiled for: a value for passes and kernels, and the attribute that holds it."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from glow_mlir.dialects.element_types import bit_width
from glow_mlir.dialects.feature_levels import enabled_features, short_features
from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Declared, declared
from glow_mlir.options.machine import Linking, Machine
from glow_mlir.options.policy import Limits, Policy
from glow_mlir.support.dataclass import dataclass

_FAMILIES: Mapping[str, str] = {
    "x86_64": "x86",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "arm": "arm",
    "thumb": "arm",
    "riscv": "riscv",
    "wasm": "wasm",
    "nvptx": "nvptx",
    "amdgcn": "amdgpu",
    "spirv": "spirv",
    "spir": "spir",
}
"""Prefix of an architecture, longer ones first → its family in `_CAPABILITIES`."""

_DEVICES = ("nvptx", "amdgpu", "spirv")
"""The families of graphics processors, and of code that their drivers compile."""

_ALWAYS = frozenset({""})
"""Instead of features: all processors of a family have the capability."""

_FPV5 = frozenset({"fp-armv8d16sp", "fp-armv8d16", "fp-armv8"})
"""Arm's floating-point units that round."""

_FPV4 = _FPV5 | {"vfp4d16sp", "vfp4d16", "vfp4"}
"""Those, and the ones before them that multiply and add with one rounding."""

BYTE_TABLES: Mapping[tuple[str, int], tuple[str, str]] = {
    ("x86", 128): ("ssse3", "llvm.x86.ssse3.pshuf.b.128"),
    ("x86", 256): ("avx2", "llvm.x86.avx2.pshuf.b"),
    ("x86", 512): ("avx512bw", "llvm.x86.avx512.pshuf.b.512"),
    ("aarch64", 128): ("neon", "llvm.aarch64.neon.tbl1.v16i8"),
}
"""
Family and bits of a vector → the feature and LLVM's intrinsic that replaces bytes up to 15 by those that they number,
in each 128 bits, of a table of 16.
"""

_CAPABILITIES: Mapping[str, Mapping[str, frozenset[str]]] = {
    "fma": {
        "x86": frozenset({"fma"}),
        "aarch64": frozenset({"neon"}),
        "riscv": frozenset({"f", "d"}),
        "arm": _FPV4,
        **dict.fromkeys(_DEVICES, _ALWAYS),
        "spir": frozenset({"fma"}),
    },
    "rounding": {
        "x86": frozenset({"sse4.1", "avx", "avx2", "avx512f"}),
        "aarch64": frozenset({"neon"}),
        "arm": _FPV5,
        "wasm": frozenset({"simd128"}),
        **dict.fromkeys(_DEVICES, _ALWAYS),
    },
    "maxima": {"arm": _FPV5, "nvptx": _ALWAYS},
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
        "spir": _ALWAYS,
        "riscv": frozenset({"f", "d"}),
        "arm": _FPV4,
        **dict.fromkeys(_DEVICES, _ALWAYS),
    },
    "doubles": {
        "x86": _ALWAYS,
        "aarch64": _ALWAYS,
        "wasm": _ALWAYS,
        "spir": frozenset({"fp64"}),
        "riscv": frozenset({"d"}),
        "arm": frozenset({"vfp4d16", "vfp4", "fp-armv8d16", "fp-armv8"}),
        **dict.fromkeys(_DEVICES, _ALWAYS),
    },
    "halves": {
        "x86": frozenset({"f16c", "avx512f"}),
        "aarch64": _ALWAYS,
        "riscv": frozenset({"zfh", "zfhmin"}),
        "arm": _FPV4 | {"fp16"},
        **dict.fromkeys(_DEVICES, _ALWAYS),
    },
    "wide_integers": {"wasm": _ALWAYS},
}
"""
Capability of a processor → family of architectures → features, any one of which provides it.

A family that is absent does not have it.
"""


@dataclass(frozen=True)
class Target(Machine):
    """
    A machine, with the policy, limits and linking of the code compiled for it.

    `glow_mlir.options` declares the fields of each. Another machine may have the same policy and limits. `costs` has,
    in order of name, the names and values of `Costs` that differ from those measured by the backend for such a machine.

    Raises `OptionError` for a value that a field cannot have.
    """

    policy: Policy = field(default_factory=Policy)
    limits: Limits = field(default_factory=Limits)
    linking: Linking = field(default_factory=Linking)
    costs: tuple[tuple[str, int], ...] = ()

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
        """The family of the architecture: x86, aarch64, arm, riscv, wasm, nvptx, amdgpu, spirv, spir, or empty."""
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
        """Whether it is an Arm microcontroller: with Thumb instructions and without Linux."""
        return self.architecture.startswith("thumb") and "linux" not in self.triple

    @cached_property
    def enabled(self) -> frozenset[str]:
        """The features that are on."""
        return enabled_features(self.features)

    @property
    def is_strict(self) -> bool:
        """Whether sums have the same order for any number of rows, and each operation rounds as in the model."""
        return self.policy.accuracy == "strict"

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

    @property
    def byte_tables(self) -> str:
        """LLVM's intrinsic that looks up the bytes of a vector in tables of 16; empty if there is none."""
        feature, name = BYTE_TABLES.get((self.family, self.vector_bits), ("", ""))
        return name if feature in self.enabled else ""

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
        """Whether instructions give both halves of products of integers of 64 bits, as integers of 128."""
        return self.pointer_bits == 64 and self.family != "spir"

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

        A missing capability is built from other instructions; code never calls a library for it.
        """
        provided = _CAPABILITIES[capability].get(self.family, frozenset())
        return provided == _ALWAYS or not self.enabled.isdisjoint(provided)


PARTS: Mapping[str, type[Policy | Limits | Linking]] = {"policy": Policy, "limits": Limits, "linking": Linking}
"""Part of a target, other than its machine → its class."""

FIELDS: Mapping[str, Declared] = {
    name: item for part in (Machine, *PARTS.values()) for name, item in declared(part).items()
}
"""Field of a `Target` with one value, fields of its parts included → its declaration."""

_PART_OF: Mapping[str, str] = {name: part for part, kind in PARTS.items() for name in declared(kind)}
"""Field → the part of a target that has it, unless that is the machine."""

COST = "costs."
"""The prefix of a cost where fields are given by name."""


def field_of(target: Target, name: str) -> str | int:
    """The value of a field of a target, or of one of its parts."""
    part = _PART_OF.get(name)
    return getattr(target if part is None else getattr(target, part), name)


def with_fields(target: Target, fields: Mapping[str, str | int]) -> Target:
    """The target with some fields changed; raises `OptionError` for an unknown field or an invalid value."""
    costs = dict(target.costs)
    plain: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, value in fields.items():
        if name.startswith(COST) and isinstance(value, int):
            costs[name.removeprefix(COST)] = value
        elif name not in FIELDS:
            hint = f"it has {', '.join(FIELDS)}, and numbers called {COST}…"
            raise OptionError(f"a target has no field '{name}'", hint=hint)
        elif type(value) is not (kind := FIELDS[name].type):
            raise OptionError(f"{name}={value!r} is no {'text' if kind is str else 'whole number'}")
        else:
            (parts[_PART_OF[name]] if name in _PART_OF else plain)[name] = value
    for part, changed in parts.items():
        plain[part] = dataclasses.replace(getattr(target, part), **changed)
    return dataclasses.replace(target, **plain, costs=tuple(sorted(costs.items()))) if fields else target


def named_fields(text: str) -> tuple[str, dict[str, str | int]]:
    """
    Name and fields in a text such as `avx2,vector_bits=128,features=+avx2,+fma`.

    Raises `OptionError` for anything else, and for a numeric field whose value is not a number.
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
        is_number = (key in FIELDS and FIELDS[key].type is int) or key.startswith(COST)
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
            costs = given.pop("costs", ())
            return with_fields(Target(given.pop("backend"), costs=costs), given)
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
    given[name] = parser.parse_str_literal() if FIELDS[name].type is str else parser.parse_integer()


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
    values = {name: field_of(target, name) for name in FIELDS}
    fields = [f"{name} = {_literal(value)}" for name, value in values.items() if value != FIELDS[name].default]
    if target.costs:
        fields.append(f"costs = {{{', '.join(f'{name} = {cost}' for name, cost in target.costs)}}}")
    return ", ".join(fields)


def _literal(value: str | int) -> str:
    return json.dumps(value) if isinstance(value, str) else str(value)
