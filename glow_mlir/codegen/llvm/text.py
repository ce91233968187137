"""Types, constants and flags of the `llvm` dialect as LLVM IR text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
)
from xdsl.dialects.llvm import (
    FastMathAttr,
    LLVMArrayType,
    LLVMFunctionType,
    LLVMPointerType,
    LLVMStructType,
    LLVMVoidType,
)
from xdsl.ir import Attribute

from glow_mlir.errors import CompilerBugError


class EmissionError(CompilerBugError):
    """A part of an `llvm` dialect module has no translation to LLVM IR: names operation and attribute."""


_FLOAT_NAMES: dict[type[Attribute], str] = {
    Float16Type: "half",
    BFloat16Type: "bfloat",
    Float32Type: "float",
    Float64Type: "double",
    LLVMVoidType: "void",
}

FAST_MATH_ORDER = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")


class TypeText:
    """
    Writes types, and caches their text.

    Types of xDSL are not unique objects and are slow to hash, so the cache goes by identity. It keeps the types alive,
    because a new type could otherwise get the identity of an old one.
    """

    def __init__(self) -> None:
        self._by_identity: dict[int, tuple[Attribute, str]] = {}

    def __call__(self, type_: Attribute) -> str:
        """Return `type_` as LLVM IR text. Raises `EmissionError` for a type that LLVM lacks."""
        known = self._by_identity.get(id(type_))
        if known is not None:
            return known[1]
        text = self._write(type_)
        self._by_identity[id(type_)] = (type_, text)
        return text

    def _write(self, type_: Attribute) -> str:
        match type_:
            case IntegerType():
                return f"i{type_.bitwidth}"
            case VectorType():
                return self._vector(type_)
            case LLVMPointerType():
                space = type_.addr_space.data if isinstance(type_.addr_space, IntAttr) else 0
                return f"ptr addrspace({space})" if space else "ptr"
            case LLVMArrayType():
                return f"[{type_.size.data} x {self(type_.type)}]"
            case LLVMStructType():
                return self._struct(type_)
            case LLVMFunctionType():
                inputs = [self(argument) for argument in type_.inputs]
                return f"{self(type_.output)} ({', '.join([*inputs, '...'] if type_.is_variadic else inputs)})"
            case _:
                if (name := _FLOAT_NAMES.get(type(type_))) is not None:
                    return name
                raise EmissionError(f"the type '{type_}' has no counterpart in LLVM IR")

    def _vector(self, type_: VectorType[Attribute]) -> str:
        if type_.get_num_dims() != 1 or type_.get_num_scalable_dims():
            raise EmissionError(f"the type '{type_}' has no counterpart in LLVM IR: vectors have one fixed dimension")
        return f"<{type_.get_shape()[0]} x {self(type_.element_type)}>"

    def _struct(self, type_: LLVMStructType) -> str:
        if type_.struct_name.data:
            raise EmissionError(f"the named struct '{type_}' is not translated; use a literal one")
        return "{" + ", ".join(self(field) for field in type_.types) + "}"


def _float_bits(value: float) -> int:
    """Return the bits of the nearest f32; beyond its range, infinity."""
    try:
        return int.from_bytes(struct.pack(">f", value), "big")
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def half_bits(value: float) -> int:
    """Return the bits of the nearest f16; beyond its range, infinity."""
    try:
        return int.from_bytes(struct.pack(">e", value), "big")
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def bfloat_bits(value: float) -> int:
    """Return the bits of the nearest bf16, ties to even."""
    bits = _float_bits(value)
    if value != value:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def float_text(value: float, type_: Attribute) -> str:
    """
    Return a float literal of `type_`, always as bits, so that the value is exact.

    Raises `EmissionError` when `type_` is not f16, bf16, f32 or f64.
    """
    match type_:
        case Float64Type():
            return f"0x{int.from_bytes(struct.pack('>d', value), 'big'):016X}"
        case Float32Type():
            # LLVM writes an f32 literal as the f64 of the same value.
            (single,) = struct.unpack(">f", _float_bits(value).to_bytes(4, "big"))
            return f"0x{int.from_bytes(struct.pack('>d', single), 'big'):016X}"
        case Float16Type():
            return f"0xH{half_bits(value):04X}"
        case BFloat16Type():
            return f"0xR{bfloat_bits(value):04X}"
        case _:
            raise EmissionError(f"no literal of type '{type_}' can be written")


def _element_text(value: float | bool, type_: Attribute) -> str:
    """Return one literal of a scalar type."""
    if isinstance(type_, IntegerType):
        return ("true" if value else "false") if type_.bitwidth == 1 else str(int(value))
    return float_text(float(value), type_)


def constant_text(value: Attribute, type_: Attribute, types: TypeText) -> str:
    """
    Return the literal `value` as a constant of `type_`: a number, a dense or string attribute, bytes, the address of a
    symbol (a unit attribute is null), or an array of these.

    Raises `EmissionError` if the attribute does not fit the type.
    """
    match value:
        case IntegerAttr() if isinstance(type_, IntegerType):
            return _element_text(value.value.data, cast("Attribute", type_))
        case FloatAttr():
            return float_text(value.value.data, type_)
        case DenseIntOrFPElementsAttr():
            return _dense_text(cast("Sequence[float]", value.get_values()), type_, types)
        case StringAttr() if isinstance(type_, LLVMArrayType):
            return _text(value.data.encode())
        case BytesAttr() if isinstance(type_, LLVMArrayType):
            return _text(value.data)
        case SymbolRefAttr() if isinstance(type_, LLVMPointerType):
            return f"@{value.string_value()}"
        case UnitAttr() if isinstance(type_, LLVMPointerType):
            return "null"
        case ArrayAttr():
            return _fields_text(cast("Sequence[Attribute]", value.data), type_, types)
        case _:
            raise EmissionError(f"the constant '{value}' is not translated to a value of type '{type_}'")


def _text(data: bytes) -> str:
    """Return bytes as an array constant."""
    return 'c"' + "".join(f"\\{byte:02X}" for byte in data) + '"'


def _fields_text(values: Sequence[Attribute], type_: Attribute, types: TypeText) -> str:
    """Return constants as a struct, or as an array of elements that are not numbers."""
    match type_:
        case LLVMStructType():
            fields, brackets = list(type_.types), "{}"
        case LLVMArrayType():
            fields, brackets = [type_.type] * type_.size.data, "[]"
        case _:
            raise EmissionError(f"several constants are not translated to a value of type '{type_}'")
    if len(fields) != len(values):
        raise EmissionError(f"{len(values)} values do not fill '{type_}'")
    texts = [
        f"{types(field)} {constant_text(value, field, types)}" for value, field in zip(values, fields, strict=True)
    ]
    return f"{brackets[0]}{', '.join(texts)}{brackets[1]}"


def _dense_text(values: Sequence[float], type_: Attribute, types: TypeText) -> str:
    """Return the elements of a dense attribute, in row-major order, as a vector or as nested arrays."""
    match type_:
        case VectorType():
            element = type_.element_type
            prefix = types(element)
            texts = [f"{prefix} {_element_text(value, element)}" for value in values]
            return f"splat ({texts[0]})" if len(set(texts)) == 1 else f"<{', '.join(texts)}>"
        case LLVMArrayType():
            return _array_text(values, type_, types)
        case _:
            raise EmissionError(f"a dense constant is not translated to a value of type '{type_}'")


def _array_text(values: Sequence[float], type_: LLVMArrayType, types: TypeText) -> str:
    """Return the elements of an array constant; a splat attribute gives one value for all."""
    count, element = type_.size.data, type_.type
    prefix = types(element)
    if not isinstance(element, LLVMArrayType):
        if len(values) == 1:
            values = [values[0]] * count
        if len(values) != count:
            raise EmissionError(f"{len(values)} values do not fill an array of {count}")
        return "[" + ", ".join(f"{prefix} {_element_text(value, element)}" for value in values) + "]"
    if len(values) == 1:
        row = _array_text(values, element, types)
        return "[" + ", ".join([f"{prefix} {row}"] * count) + "]"
    size = len(values) // count
    rows = (_array_text(values[i * size : (i + 1) * size], element, types) for i in range(count))
    return "[" + ", ".join(f"{prefix} {row}" for row in rows) + "]"


def fast_math_text(flags: Attribute | None) -> str:
    """Return fast-math flags in LLVM's order, each with a leading space; `fast` if all are set."""
    if flags is None or not isinstance(flags, FastMathAttr) or not flags.data:
        return ""
    names = {flag.value for flag in flags.data}
    if len(names) == len(FAST_MATH_ORDER):
        return " fast"
    return "".join(f" {name}" for name in FAST_MATH_ORDER if name in names)
