"""Attributes of functions, parameters and results: tables from the dialect's names to LLVM's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.dialects.llvm import FramePointerKindAttr, TargetFeaturesAttr
from xdsl.ir import Attribute, TypeAttribute

from glow_mlir.codegen.llvm.text import EmissionError, TypeText

ENUM_ATTRIBUTES = {
    "no_inline": "noinline",
    "always_inline": "alwaysinline",
    "inline_hint": "inlinehint",
    "no_unwind": "nounwind",
    "will_return": "willreturn",
    "optimize_none": "optnone",
    "convergent": "convergent",
}
STRING_ATTRIBUTES = {
    "target_cpu": "target-cpu",
    "tune_cpu": "tune-cpu",
    "prefer_vector_width": "prefer-vector-width",
    "reciprocal_estimates": "reciprocal-estimates",
    "denormal_fp_math": "denormal-fp-math",
    "denormal_fp_math_f32": "denormal-fp-math-f32",
    "fp_contract": "fp-contract",
    "frame_pointer": "frame-pointer",
    "target_features": "target-features",
    "no_infs_fp_math": "no-infs-fp-math",
    "no_nans_fp_math": "no-nans-fp-math",
    "no_signed_zeros_fp_math": "no-signed-zeros-fp-math",
}
PASSTHROUGH_ENUMS = frozenset(
    """alwaysinline builtin cold convergent hot inlinehint minsize mustprogress naked nobuiltin nocallback
    nofree noimplicitfloat noinline nonlazybind norecurse noredzone noreturn nosync nounwind optforfuzzing
    optnone optsize speculatable strictfp willreturn""".split()
)
"""
The attributes without a value that `passthrough` may name; every other name must look like a string
attribute.
"""

UNIT_PARAMETERS = {
    "llvm.noalias": "noalias",
    "llvm.nocapture": "captures(none)",
    "llvm.readonly": "readonly",
    "llvm.writeonly": "writeonly",
    "llvm.readnone": "readnone",
    "llvm.nonnull": "nonnull",
    "llvm.noundef": "noundef",
    "llvm.nofree": "nofree",
    "llvm.signext": "signext",
    "llvm.zeroext": "zeroext",
    "llvm.inreg": "inreg",
    "llvm.returned": "returned",
    "llvm.nest": "nest",
}
SIZED_PARAMETERS = {
    "llvm.align": "align {}",
    "llvm.dereferenceable": "dereferenceable({})",
    "llvm.dereferenceable_or_null": "dereferenceable_or_null({})",
}
TYPED_PARAMETERS = {
    "llvm.byval": "byval({})",
    "llvm.byref": "byref({})",
    "llvm.sret": "sret({})",
    "llvm.inalloca": "inalloca({})",
    "llvm.preallocated": "preallocated({})",
}
"""The attributes of pointers that give the type of the memory that is passed."""


_UNUSUAL = re.compile(rb'[^ -~]|["\\]')


def quoted(text: str) -> str:
    """Return a string literal of LLVM IR, everything unusual escaped."""
    plain = _UNUSUAL.sub(lambda found: b"\\%02X" % ord(found[0]), text.encode())
    return f'"{plain.decode()}"'


def parameter_text(attributes: DictionaryAttr, types: TypeText, where: str) -> str:
    """
    Return the attributes of one parameter or result, each with a leading space.

    Raises `EmissionError` naming `where` for an attribute outside the tables.
    """
    words: list[str] = []
    for name, value in sorted(attributes.data.items()):
        if name in UNIT_PARAMETERS and isinstance(value, UnitAttr):
            words.append(UNIT_PARAMETERS[name])
        elif name in SIZED_PARAMETERS and isinstance(value, IntegerAttr):
            words.append(SIZED_PARAMETERS[name].format(value.value.data))
        elif name in TYPED_PARAMETERS and isinstance(value, TypeAttribute):
            words.append(TYPED_PARAMETERS[name].format(types(value)))
        else:
            raise EmissionError(f"{where}: the parameter attribute '{name} = {value}' is not translated")
    return "".join(f" {word}" for word in words)


def _string_value(value: Attribute) -> str | None:
    """Return the text of a string attribute of LLVM for an attribute of the dialect, or None if it has none."""
    match value:
        case StringAttr():
            return value.data
        case TargetFeaturesAttr():
            return ",".join(feature.data for feature in value.features)
        case FramePointerKindAttr():
            return value.data.value
        case IntegerAttr() if value.type == BoolAttr.from_bool(True).type:
            return "true" if value.value.data else "false"
        case _:
            return None


def _passthrough_text(value: Attribute, where: str) -> str:
    """Return one entry of `passthrough`: a name, or a pair of name and value."""
    match value:
        case StringAttr() if value.data in PASSTHROUGH_ENUMS:
            return value.data
        case StringAttr() if "-" in value.data:
            return quoted(value.data)
        case ArrayAttr(data=(StringAttr(data="vscale_range"), StringAttr(data=bounds))) if bounds.isdecimal():
            lower, upper = divmod(int(bounds), 1 << 32)
            return f"vscale_range({lower},{upper})"
        case ArrayAttr(data=(StringAttr() as name, StringAttr() as content)):
            return f"{quoted(name.data)}={quoted(content.data)}"
        case _:
            raise EmissionError(f"{where}: the passthrough attribute '{value}' is not translated")


def function_attributes(attributes: Mapping[str, Attribute], where: str) -> str:
    """
    Return the contents of the attribute group of a function, sorted; empty if there is none.

    `attributes` holds only names from the tables above, and `passthrough`. Raises `EmissionError` naming
    `where` and the attribute when a value has no translation.
    """
    words: list[str] = []
    for name, value in attributes.items():
        if name == "passthrough":
            if not isinstance(value, ArrayAttr):
                raise EmissionError(f"{where}: 'passthrough' is not an array")
            entries = cast("ArrayAttr[Attribute]", value)
            words.extend(_passthrough_text(entry, where) for entry in entries)
        elif name in ENUM_ATTRIBUTES:
            words.append(ENUM_ATTRIBUTES[name])
        elif (content := _string_value(value)) is not None:
            words.append(f"{quoted(STRING_ATTRIBUTES[name])}={quoted(content)}")
        else:
            raise EmissionError(f"{where}: the attribute '{name} = {value}' is not translated")
    # Attributes without quotes come first, as LLVM prints them; the order carries no meaning but must not
    # vary.
    return " ".join(sorted(words, key=lambda word: (word.startswith('"'), word)))
