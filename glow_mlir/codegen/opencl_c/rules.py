"""
One rule for each operation of the `llvm` dialect that is an expression: its text in OpenCL C, for each piece.

Integers are unsigned, and become signed where an operation reads them as signed. A lane of a vector of truth values is
0 or -1 in an integer of any width; a scalar truth value is a `bool`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import BFloat16Type, Float16Type, IntegerAttr
from xdsl.dialects.llvm import FCmpPredicateFlag, ICmpPredicateFlag
from xdsl.ir import Operation, SSAValue

from glow_mlir.codegen.builder.types import TypeInfo
from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.codegen.opencl_c.literals import integer_literal
from glow_mlir.codegen.opencl_c.scope import (
    LANES,
    Pieces,
    Scope,
    converted,
    is_mask,
    is_pointer,
    is_vector,
    lanes_of,
    resized_mask,
    same_bits,
)
from glow_mlir.codegen.opencl_c.types import (
    element_name,
    info,
    of_lanes,
    piece_sizes,
    signed_name,
    unsigned_name,
)

Rule = Callable[[Scope, Operation], Pieces]

_PART_BITS = 128
"""Bits of a vector that are passed to a built-in function at once."""

_NARROW = 32
"""Scalars of fewer bits are computed as `int`."""


def predicate_of(op: Operation) -> str:
    """The predicate of a comparison."""
    number = op.properties["predicate"]
    assert isinstance(number, IntegerAttr)
    flag = ICmpPredicateFlag if op.name == "llvm.icmp" else FCmpPredicateFlag
    return flag.from_int(number.value.data).value.removeprefix("_")


def _typed(value: SSAValue) -> list[tuple[str, int]]:
    """The type of each piece of a value, and its lanes."""
    name = element_name(info(value.type).element)
    return [(of_lanes(name, size), size) for size in piece_sizes(lanes_of(value))]


def _computed(op: Operation, value: SSAValue) -> TypeInfo:
    """
    The properties of a type that is computed with.

    Raises `EmissionError` for 16-bit floats, which are held as bits.
    """
    found = info(value.type)
    if isinstance(found.element, Float16Type | BFloat16Type):
        raise EmissionError(f"'{op.name}' of floats of 16 bits is not translated")
    return found


def by_piece(template: str) -> Rule:
    """A rule that writes each piece from those of the operands, which have the type of the result."""

    def rule(scope: Scope, op: Operation) -> Pieces:
        result = op.results[0]
        found = _computed(op, result)
        texts = [template.format(*parts) for parts in zip(*map(scope.pieces, op.operands), strict=True)]
        if is_vector(result) or found.is_float or not 1 < found.bits < _NARROW:
            return texts
        return [f"({element_name(found.element)})({text})" for text in texts]

    return rule


def _infix(symbol: str) -> Rule:
    return by_piece(f"{{}} {symbol} {{}}")


def _logical(symbol: str) -> Rule:
    """A rule for bits of integers, or truth values."""
    plain = _infix(symbol)

    def rule(scope: Scope, op: Operation) -> Pieces:
        if not is_mask(op.results[0]):
            return plain(scope, op)
        bits = max(scope.mask_bits[operand] for operand in op.operands)
        scope.mask_bits[op.results[0]] = bits
        a, b = (resized_mask(scope, operand, bits) for operand in op.operands)
        return [f"{x} {symbol} {y}" for x, y in zip(a, b, strict=True)]

    return rule


def signed(text: str, bits: int, lanes: int) -> str:
    """An unsigned integer, or a vector of them, reinterpreted as signed."""
    return f"as_{of_lanes(signed_name(bits), lanes)}({text})"


def unsigned(text: str, bits: int, lanes: int) -> str:
    """The inverse of `signed`."""
    return f"as_{of_lanes(unsigned_name(bits), lanes)}({text})"


def _on_signed(symbol: str) -> Rule:
    """A rule for an operation on integers that reads them as signed."""

    def rule(scope: Scope, op: Operation) -> Pieces:
        bits, result = info(op.results[0].type).bits, op.results[0]
        found: list[str] = []
        for a, b, (type_, size) in zip(*map(scope.pieces, op.operands), _typed(result), strict=True):
            text = f"{signed(a, bits, size)} {symbol} {signed(b, bits, size)}"
            found.append(f"({type_})({text})" if size == 1 else same_bits(text, type_))
        return found

    return rule


def _product(scope: Scope, op: Operation) -> Pieces:
    """Write an integer product; that of two 16-bit integers would overflow as `int`."""
    if is_vector(op.results[0]) or info(op.results[0].type).bits != 16:
        return _infix("*")(scope, op)
    (a,), (b,) = (scope.pieces(operand) for operand in op.operands)
    return [f"(ushort)((uint){a} * {b})"]


def _call(name: str) -> Rule:
    """A rule for a built-in function of values of one type."""

    def rule(scope: Scope, op: Operation) -> Pieces:
        found = _computed(op, op.results[0])
        sizes = piece_sizes(lanes_of(op.results[0]))
        name_of_type = element_name(found.element)
        return [
            in_parts(name, parts, name_of_type, found.bits, size)
            for *parts, size in zip(*map(scope.pieces, op.operands), sizes, strict=True)
        ]

    return rule


def in_parts(function: str, arguments: Sequence[str], name: str, bits: int, lanes: int) -> str:
    """
    A call of a built-in function on vectors, in parts of 128 bits that are put together.

    Drivers fail on vectors wider than those of their processor: PoCL 3.0 on roots of eight `double`.
    """
    part = max(1, _PART_BITS // bits)
    if lanes <= part:
        return f"{function}({', '.join(arguments)})"
    calls = [
        f"{function}({', '.join(f'{text}.s{LANES[first : first + part]}' for text in arguments)})"
        for first in range(0, lanes, part)
    ]
    return f"({of_lanes(name, lanes)})({', '.join(calls)})"


def _on_bits(template: str) -> Rule:
    """A rule for an operation on the bits of floats; the first operand of the template is their sign bit."""

    def rule(scope: Scope, op: Operation) -> Pieces:
        bits, result = info(op.results[0].type).bits, op.results[0]
        sign = integer_literal(1 << (bits - 1), bits)
        found: list[str] = []
        for *texts, (type_, size) in zip(*map(scope.pieces, op.operands), _typed(result), strict=True):
            found.append(same_bits(template.format(sign, *(unsigned(text, bits, size) for text in texts)), type_))
        return found

    return rule


_SIGNED = {"slt": "<", "sle": "<=", "sgt": ">", "sge": ">="}
_UNSIGNED = {"eq": "==", "ne": "!=", "ult": "<", "ule": "<=", "ugt": ">", "uge": ">="}
_OF_MASKS = {"eq": "~({} ^ {})", "ne": "{} ^ {}"}
_ORDERED = {"oeq": "==", "ogt": ">", "oge": ">=", "olt": "<", "ole": "<=", "une": "!="}
_OPPOSITE = {"ugt": "<=", "uge": "<", "ult": ">=", "ule": ">"}


def _icmp(scope: Scope, op: Operation) -> Pieces:
    predicate, first = predicate_of(op), op.operands[0]
    if is_mask(first):
        return _compared_masks(scope, op)
    bits = info(first.type).bits
    if is_vector(first):
        scope.mask_bits[op.results[0]] = bits
    found: list[str] = []
    sizes = piece_sizes(lanes_of(first))
    for a, b, size in zip(*map(scope.pieces, op.operands), sizes, strict=True):
        if predicate in _SIGNED:
            text = f"{signed(a, bits, size)} {_SIGNED[predicate]} {signed(b, bits, size)}"
        else:
            text = f"{a} {_UNSIGNED[predicate]} {b}"
        found.append(_lanes_that_hold(text, first, size))
    return found


def _lanes_that_hold(text: str, compared: SSAValue, size: int) -> str:
    """A comparison of pieces as truth values: C gives 1 for a piece of one lane, where vectors have all bits set."""
    return f"-({text})" if size == 1 and is_vector(compared) else text


def _compared_masks(scope: Scope, op: Operation) -> Pieces:
    """Write whether truth values are equal, or differ."""
    if (predicate := predicate_of(op)) not in _OF_MASKS:
        raise EmissionError(f"the comparison '{predicate}' of vectors of truth values is not translated")
    bits = max(scope.mask_bits[operand] for operand in op.operands)
    scope.mask_bits[op.results[0]] = bits
    a, b = (resized_mask(scope, operand, bits) for operand in op.operands)
    return [_OF_MASKS[predicate].format(x, y) for x, y in zip(a, b, strict=True)]


def _fcmp(scope: Scope, op: Operation) -> Pieces:
    predicate, first = predicate_of(op), op.operands[0]
    bits = _computed(op, first).bits
    if is_vector(first):
        scope.mask_bits[op.results[0]] = bits
    sizes = piece_sizes(lanes_of(first))
    return [
        _lanes_that_hold(_compared(predicate, a, b, "!" if size == 1 else "~"), first, size)
        for a, b, size in zip(*map(scope.pieces, op.operands), sizes, strict=True)
    ]


def _compared(predicate: str, a: str, b: str, inverse: str) -> str:
    """A comparison of floats; in C, all but `!=` are false if one is NaN."""
    if predicate in _ORDERED:
        return f"{a} {_ORDERED[predicate]} {b}"
    if predicate in _OPPOSITE:
        return f"{inverse}({a} {_OPPOSITE[predicate]} {b})"
    match predicate:
        case "ord":
            return f"({a} == {a}) & ({b} == {b})"
        case "uno":
            return f"({a} != {a}) | ({b} != {b})"
        case "one":
            return f"({a} < {b}) | ({a} > {b})"
        case "ueq":
            return f"{inverse}(({a} < {b}) | ({a} > {b}))"
        case _:
            raise EmissionError(f"the comparison '{predicate}' is not translated")


def _select(scope: Scope, op: Operation) -> Pieces:
    condition, result = op.operands[0], op.results[0]
    if is_mask(result):
        return _selected_mask(scope, op)
    a, b = (scope.pieces(operand) for operand in op.operands[1:])
    if not is_vector(condition):
        (chosen,) = scope.pieces(condition)
        return [f"{chosen} ? {x} : {y}" for x, y in zip(a, b, strict=True)]
    masks = resized_mask(scope, condition, info(result.type).bits)
    return [f"{mask} ? {x} : {y}" for mask, x, y in zip(masks, a, b, strict=True)]


def _selected_mask(scope: Scope, op: Operation) -> Pieces:
    """Select one of two vectors of truth values."""
    condition, *values = op.operands
    bits = max(scope.mask_bits[value] for value in values)
    scope.mask_bits[op.results[0]] = bits
    a, b = (resized_mask(scope, value, bits) for value in values)
    if not is_vector(condition):
        (chosen,) = scope.pieces(condition)
        return [f"{chosen} ? {x} : {y}" for x, y in zip(a, b, strict=True)]
    masks = resized_mask(scope, condition, bits)
    return [f"({mask} & {x}) | (~{mask} & {y})" for mask, x, y in zip(masks, a, b, strict=True)]


def _convert(reads_signed: bool, gives_signed: bool) -> Rule:
    """A rule for a conversion between numbers."""

    def rule(scope: Scope, op: Operation) -> Pieces:
        value, result = op.operands[0], op.results[0]
        source, target = info(value.type), info(result.type)
        if source.bits == 1:
            return _from_truth(scope, value, result, reads_signed and not target.is_float)
        if target.bits == 1:
            return _to_truth(scope, value, result)
        for number in (value, result):
            _computed(op, number)
        name = element_name(target.element)
        found: list[str] = []
        for text, size in zip(scope.pieces(value), piece_sizes(lanes_of(value)), strict=True):
            text = signed(text, source.bits, size) if reads_signed and not source.is_float else text
            if gives_signed:
                text = converted(text, signed_name(target.bits), size)
                found.append(f"({name}){text}" if size == 1 else unsigned(text, target.bits, size))
            else:
                found.append(converted(text, name, size))
        return found

    return rule


def _from_truth(scope: Scope, value: SSAValue, result: SSAValue, all_bits: bool) -> Pieces:
    """Truth values as numbers: 0 and 1, or 0 and all bits."""
    target = info(result.type)
    name = element_name(target.element)
    if not is_vector(value):
        (text,) = scope.pieces(value)
        return [f"({name})-(char){text}" if all_bits else f"({name}){text}"]
    found: list[str] = []
    masks = resized_mask(scope, value, target.bits)
    for text, size in zip(masks, piece_sizes(lanes_of(value)), strict=True):
        bits = unsigned(text, target.bits, size)
        if target.is_float:
            one = of_lanes(name, size)
            found.append(f"{same_bits(f'{bits} & as_{of_lanes(unsigned_name(target.bits), size)}(({one})(1))', one)}")
        else:
            found.append(bits if all_bits else f"{bits} & ({of_lanes(name, size)})(1)")
    return found


def _to_truth(scope: Scope, value: SSAValue, result: SSAValue) -> Pieces:
    """The lowest bits of integers as truth values."""
    bits = info(value.type).bits
    if not is_vector(value):
        (text,) = scope.pieces(value)
        return [f"({text} & 1) != 0"]
    scope.mask_bits[result] = bits
    sizes = piece_sizes(lanes_of(value))
    return [
        f"-({signed(text, bits, size)} & ({of_lanes(signed_name(bits), size)})(1))"
        for text, size in zip(scope.pieces(value), sizes, strict=True)
    ]


def _smaller(symbol: str, is_signed: bool) -> Rule:
    """A rule for the one of two integers that comes before the other."""

    def rule(scope: Scope, op: Operation) -> Pieces:
        bits = info(op.results[0].type).bits
        found: list[str] = []
        sizes = piece_sizes(lanes_of(op.results[0]))
        for a, b, size in zip(*map(scope.pieces, op.operands), sizes, strict=True):
            x, y = (signed(a, bits, size), signed(b, bits, size)) if is_signed else (a, b)
            found.append(f"({x} {symbol} {y}) ? {a} : {b}")
        return found

    return rule


def _address(scope: Scope, op: Operation) -> Pieces:
    (text,) = scope.pieces(op.operands[0])
    return [f"({unsigned_name(info(op.results[0].type).bits)}){text}"]


def _same(scope: Scope, op: Operation) -> Pieces:
    value = op.operands[0]
    if is_mask(value):
        scope.mask_bits[op.results[0]] = scope.mask_bits[value]
    return scope.pieces(value)


def _pointer(scope: Scope, op: Operation) -> Pieces:
    assert is_pointer(op.results[0])
    (text,) = scope.pieces(op.operands[0])
    return [f"({scope.spaces[op.results[0]]} uchar *){text}"]


def _each(names: str, make: Callable[[str], Rule], prefix: str = "llvm.") -> dict[str, Rule]:
    """Return one rule for each of the names."""
    return {f"{prefix}{name}": make(name) for name in names.split()}


_INTRINSIC = "llvm.intr."

EXPRESSIONS: Mapping[str, Rule] = {
    **{f"llvm.{name}": _infix(symbol) for name, symbol in {"add": "+", "sub": "-", "shl": "<<", "lshr": ">>"}.items()},
    **{f"llvm.{name}": _infix(symbol) for name, symbol in {"udiv": "/", "urem": "%"}.items()},
    **{f"llvm.{name}": _infix(symbol) for name, symbol in {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}.items()},
    **{f"llvm.{name}": _logical(symbol) for name, symbol in {"and": "&", "or": "|", "xor": "^"}.items()},
    "llvm.mul": _product,
    "llvm.frem": _call("fmod"),
    "llvm.sdiv": _on_signed("/"),
    "llvm.srem": _on_signed("%"),
    "llvm.ashr": _on_signed(">>"),
    "llvm.fneg": by_piece("-({})"),
    "llvm.icmp": _icmp,
    "llvm.fcmp": _fcmp,
    "llvm.select": _select,
    "llvm.freeze": _same,
    "llvm.zext": _convert(False, False),
    "llvm.sext": _convert(True, True),
    "llvm.trunc": _convert(False, False),
    "llvm.sitofp": _convert(True, False),
    "llvm.uitofp": _convert(False, False),
    "llvm.fptosi": _convert(False, True),
    "llvm.fptoui": _convert(False, False),
    "llvm.fpext": _convert(False, False),
    "llvm.fptrunc": _convert(False, False),
    "llvm.ptrtoint": _address,
    "llvm.inttoptr": _pointer,
    # Compilers make one instruction of an expression, and calls for each lane of the function.
    **_each("fma fmuladd", lambda _: by_piece("{} * {} + {}"), _INTRINSIC),
    **_each("ceil floor sqrt trunc round rint", _call, _INTRINSIC),
    **_each("roundeven nearbyint", lambda _: _call("rint"), _INTRINSIC),
    "llvm.intr.fabs": _on_bits("{1} & ~{0}"),
    "llvm.intr.copysign": _on_bits("({1} & ~{0}) | ({2} & {0})"),
    "llvm.intr.smax": _smaller(">", True),
    "llvm.intr.smin": _smaller("<", True),
    "llvm.intr.umax": _smaller(">", False),
    "llvm.intr.umin": _smaller("<", False),
    "llvm.intr.ctpop": _call("popcount"),
}
"""Operation → its rule, for operations that neither access memory nor move lanes."""


def saturated(is_signed: bool) -> Rule:
    """
    A rule for floats as integers, rounded towards zero and clamped to their range; NaN gives 0, unlike in some drivers.
    """

    def rule(scope: Scope, op: Operation) -> Pieces:
        value, target = op.operands[0], info(op.results[0].type)
        name = signed_name(target.bits) if is_signed else unsigned_name(target.bits)
        bits = max(target.bits, info(value.type).bits)
        found: list[str] = []
        for text, size in zip(scope.pieces(value), piece_sizes(lanes_of(value)), strict=True):
            function = f"convert_{of_lanes(name, min(size, max(1, _PART_BITS // bits)))}_sat"
            number, type_ = scope.fresh(), of_lanes(element_name(info(value.type).element), size)
            scope.line(f"{type_} {number} = {text} == {text} ? {text} : ({type_})(0);")
            found.append(unsigned(in_parts(function, [number], name, bits, size), target.bits, size))
        return found

    return rule


def leading_zeros(scope: Scope, op: Operation) -> Pieces:
    """The number of leading zero bits; the second operand does not matter."""
    found, value = info(op.results[0].type), op.operands[0]
    sizes = piece_sizes(lanes_of(value))
    return [
        in_parts("clz", [text], element_name(found.element), found.bits, size)
        for text, size in zip(scope.pieces(value), sizes, strict=True)
    ]


def fenced(scope: Scope, op: Operation) -> Pieces:
    """A value that compilers do not combine with its users: a variable is not part of an expression."""
    return scope.pieces(op.operands[0])


def any_lane(scope: Scope, op: Operation) -> Pieces:
    """Whether a lane of a vector of truth values is set."""
    parts = list(scope.pieces(op.operands[0]))
    scalars: list[str] = []
    for text, size in zip(parts, piece_sizes(lanes_of(op.operands[0])), strict=True):
        name = signed_name(scope.mask_bits[op.operands[0]])
        while size > 1:
            half, size = scope.fresh(), size // 2
            scope.line(f"{of_lanes(name, size)} {half} = {text}.lo | {text}.hi;")
            text = half
        scalars.append(text)
    return [f"({' | '.join(scalars)}) != 0"]


BY_INTRINSIC: Mapping[str, Rule] = {
    "llvm.ctpop": EXPRESSIONS["llvm.intr.ctpop"],
    "llvm.ctlz": leading_zeros,
    "llvm.fptosi.sat": saturated(is_signed=True),
    "llvm.fptoui.sat": saturated(is_signed=False),
    "llvm.vector.reduce.or": any_lane,
    "llvm.arithmetic.fence": fenced,
    "llvm.maxnum": _call("fmax"),
    "llvm.minnum": _call("fmin"),
}
"""Intrinsic without an operation, without the suffix for its type → its rule."""
