"""
One rule per operation of the `llvm` dialect: how its instruction reads in LLVM IR.

A rule lists the properties it translates; a property outside the list stops the emission, so that nothing is
lost silently. Terminators are rules as well; the values that they pass to the arguments of the next block
become phi instructions (`emit.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, cast

from xdsl.dialects.builtin import DenseArrayBase, IntAttr, IntegerAttr, IntegerType, StringAttr, SymbolRefAttr
from xdsl.dialects.llvm import (
    GEP_USE_SSA_VAL,
    CallingConventionAttr,
    FCmpPredicateFlag,
    ICmpPredicateFlag,
    LLVMFunctionType,
    LLVMPointerType,
    OverflowAttr,
    TailCallKindAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.codegen.llvm.attributes import quoted
from glow_mlir.codegen.llvm.text import EmissionError, fast_math_text
from glow_mlir.dialects.llvm_ops.access import ORDERING_NAMES
from glow_mlir.dialects.llvm_ops.atomics import ATOMIC_BINARY
from glow_mlir.dialects.llvm_ops.memory import GEP_FLAGS, gep_flag_names
from glow_mlir.support.identity import kept_by_identity


class Scope(Protocol):
    """The parts of the emitter that rules use."""

    names: dict[SSAValue, str]
    """The text of each value: `%v3`, a literal or `@symbol`."""

    def type(self, type_: Attribute, /) -> str:
        """Return a type as text."""
        ...

    def label(self, block: Block, /) -> str:
        """Return the label of a block, without `%`."""
        ...

    def edge(self, op: Operation, index: int, /) -> str:
        """
        Return the label that successor `index` of `op` jumps to; differs from the block's for a split edge.
        """
        ...

    def metadata(self, content: str, /) -> str:
        """Return the name of a metadata node of the module."""
        ...


Emit = Callable[[Scope, Operation], str]


class Rule(NamedTuple):
    """How one operation is written, and the properties that this covers."""

    emit: Emit
    properties: frozenset[str]


FAST = frozenset({"fastmathFlags"})
NONE: frozenset[str] = frozenset()


def typed(scope: Scope, value: SSAValue) -> str:
    """Return a value with its type, as most operands are written."""
    return f"{scope.type(value.type)} {scope.names[value]}"


def integer(op: Operation, name: str) -> int:
    """Return the value of an integer property. Raises `EmissionError` if it is absent or no integer."""
    value = op.properties.get(name)
    if not isinstance(value, IntegerAttr):
        raise EmissionError(f"'{op.name}' lacks the integer property '{name}'")
    return value.value.data


def _numbers(op: Operation, name: str) -> Sequence[int]:
    """Return the elements of an array property; an absent one has none."""
    value = op.properties.get(name)
    return () if value is None else _elements(value)


@kept_by_identity
def _elements(array: Attribute) -> Sequence[int]:
    return cast("DenseArrayBase[IntegerType]", array).get_values() if isinstance(array, DenseArrayBase) else ()


def _result(scope: Scope, op: Operation) -> str:
    """Return `%name = ` for an operation with a result, else nothing."""
    return f"{scope.names[op.results[0]]} = " if op.results else ""


def _binary(keyword: str, flags: Callable[[Operation], str] = lambda _: "") -> Emit:
    """`%r = add nsw i32 %a, %b`: two operands of one type."""

    def emit(scope: Scope, op: Operation) -> str:
        lhs, rhs = op.operands
        names = scope.names
        return f"{names[op.results[0]]} = {keyword}{flags(op)} {scope.type(lhs.type)} {names[lhs]}, {names[rhs]}"

    return emit


def _fast(op: Operation) -> str:
    return fast_math_text(op.properties.get("fastmathFlags"))


def _overflow(op: Operation) -> str:
    match op.properties.get("overflowFlags"):
        case None:
            return ""
        case IntegerAttr() as flags:
            bits = flags.value.data
        case OverflowAttr() as flags:
            bits = flags.to_int()
        case other:
            raise EmissionError(f"'{op.name}': the overflow flags '{other}' are not translated")
    return (" nuw" if bits & 2 else "") + (" nsw" if bits & 1 else "")


def _exact(op: Operation) -> str:
    return " exact" if "isExact" in op.properties else ""


def _disjoint(op: Operation) -> str:
    return " disjoint" if "isDisjoint" in op.properties else ""


def _nonneg(op: Operation) -> str:
    return " nneg" if "nonNeg" in op.properties else ""


def _cast(keyword: str, flags: Callable[[Operation], str] = lambda _: "") -> Emit:
    """`%r = zext i8 %a to i32`."""

    def emit(scope: Scope, op: Operation) -> str:
        (result,) = op.results
        converted = f"{typed(scope, op.operands[0])} to {scope.type(result.type)}"
        return f"{scope.names[result]} = {keyword}{flags(op)} {converted}"

    return emit


def _intrinsic(name: str, immediates: Callable[[Operation], Sequence[str]] = lambda _: ()) -> Emit:
    """
    `%r = call float @llvm.fma(float %a, …)`: LLVM adds the suffixes for types, and the declaration.

    `immediates` are trailing operands that the dialect keeps as properties.
    """

    def emit(scope: Scope, op: Operation) -> str:
        arguments = [typed(scope, operand) for operand in op.operands]
        arguments.extend(immediates(op))
        returned = scope.type(op.results[0].type) if op.results else "void"
        return f"{_result(scope, op)}call{_fast(op)} {returned} @{name}({', '.join(arguments)})"

    return emit


def _boolean(name: str) -> Callable[[Operation], Sequence[str]]:
    """An immediate i1 kept as the property `name`."""
    return lambda op: ["i1 true" if integer(op, name) else "i1 false"]


def _icmp(scope: Scope, op: Operation) -> str:
    predicate = ICmpPredicateFlag.from_int(integer(op, "predicate")).value
    return _binary(f"icmp {predicate}")(scope, op)


def _fcmp(scope: Scope, op: Operation) -> str:
    predicate = FCmpPredicateFlag.from_int(integer(op, "predicate")).value.removeprefix("_")
    return _binary(f"fcmp{_fast(op)} {predicate}")(scope, op)


def _fneg(scope: Scope, op: Operation) -> str:
    return f"{_result(scope, op)}fneg{_fast(op)} {typed(scope, op.operands[0])}"


def _list_of_operands(keyword: str, flags: Callable[[Operation], str] = lambda _: "") -> Emit:
    """`%r = select <8 x i1> %m, <8 x float> %a, <8 x float> %b`: every operand with its type."""

    def emit(scope: Scope, op: Operation) -> str:
        operands = ", ".join(typed(scope, operand) for operand in op.operands)
        return f"{_result(scope, op)}{keyword}{flags(op)} {operands}"

    return emit


def _shufflevector(scope: Scope, op: Operation) -> str:
    mask = _numbers(op, "mask")
    lanes = ", ".join("i32 poison" if lane == -1 else f"i32 {lane}" for lane in mask)
    operands = ", ".join(typed(scope, operand) for operand in op.operands)
    return f"{_result(scope, op)}shufflevector {operands}, <{len(mask)} x i32> <{lanes}>"


def _aggregate(keyword: str, order: Sequence[int]) -> Emit:
    """
    `extractvalue` and `insertvalue`; the dialect lists the operands of the latter in the same order as LLVM.
    """

    def emit(scope: Scope, op: Operation) -> str:
        operands = ", ".join(typed(scope, op.operands[i]) for i in order)
        position = _numbers(op, "position")
        return f"{_result(scope, op)}{keyword} {operands}, {', '.join(str(index) for index in position)}"

    return emit


def _gep(scope: Scope, op: Operation) -> str:
    # xDSL's own operation keeps `inbounds` apart from the flags.
    flags = integer(op, "noWrapFlags") | (GEP_FLAGS["inbounds"] if "inbounds" in op.properties else 0)
    names = "".join(f" {name}" for name in gep_flag_names(flags))
    dynamic = iter(op.operands[1:])
    constants = _numbers(op, "rawConstantIndices")
    indices = ", ".join(
        typed(scope, next(dynamic)) if index == GEP_USE_SSA_VAL else f"i32 {index}" for index in constants
    )
    element = scope.type(op.properties["elem_type"])
    return f"{_result(scope, op)}getelementptr{names} {element}, {typed(scope, op.operands[0])}, {indices}"


def _alignment(op: Operation) -> str:
    alignment = op.properties.get("alignment")
    return f", align {alignment.value.data}" if isinstance(alignment, IntegerAttr) else ""


def _alloca(scope: Scope, op: Operation) -> str:
    element = scope.type(op.properties["elem_type"])
    pointer = op.results[0].type
    space = pointer.addr_space if isinstance(pointer, LLVMPointerType) else None
    suffix = f", addrspace({space.data})" if isinstance(space, IntAttr) else ""
    return f"{_result(scope, op)}alloca {element}, {typed(scope, op.operands[0])}{_alignment(op)}{suffix}"


def _ordering(op: Operation, name: str = "ordering") -> str:
    """Return an ordering with a leading space; nothing when the access is not atomic."""
    number = integer(op, name) if name in op.properties else 0
    return f" {ORDERING_NAMES[number]}" if number else ""


def _syncscope(op: Operation) -> str:
    scope = op.properties.get("syncscope")
    return f" syncscope({quoted(scope.data)})" if isinstance(scope, StringAttr) else ""


def _volatile(op: Operation) -> str:
    return " volatile" if "volatile_" in op.properties else ""


def _access_metadata(scope: Scope, op: Operation) -> str:
    text = f", !invariant.load {scope.metadata('')}" if "invariant" in op.properties else ""
    return text + (f", !nontemporal {scope.metadata('i32 1')}" if "nontemporal" in op.properties else "")


def _access(scope: Scope, op: Operation, keyword: str, operands: str) -> str:
    """A load or a store with its flags in LLVM's order."""
    ordering = _ordering(op)
    tail = f"{_syncscope(op)}{ordering}{_alignment(op)}{_access_metadata(scope, op)}"
    return f"{keyword}{' atomic' if ordering else ''}{_volatile(op)} {operands}{tail}"


def _load(scope: Scope, op: Operation) -> str:
    (result,) = op.results
    operands = f"{scope.type(result.type)}, {typed(scope, op.operands[0])}"
    return f"{scope.names[result]} = {_access(scope, op, 'load', operands)}"


def _store(scope: Scope, op: Operation) -> str:
    value, ptr = op.operands
    return _access(scope, op, "store", f"{typed(scope, value)}, {typed(scope, ptr)}")


def _masked(name: str, pointer: int, pass_thru: bool) -> Emit:
    """A masked access: its alignment is an attribute of the pointer operand."""

    def emit(scope: Scope, op: Operation) -> str:
        arguments = [typed(scope, operand) for operand in op.operands]
        address = op.operands[pointer]
        aligned = f"{scope.type(address.type)} align {integer(op, 'alignment')} {scope.names[address]}"
        arguments[pointer] = aligned
        returned = scope.type(op.results[0].type) if op.results else "void"
        if pass_thru and len(arguments) == 2:
            arguments.append(f"{returned} poison")
        call = f"{_result(scope, op)}call {returned} @{name}({', '.join(arguments)})"
        return call + (f", !nontemporal {scope.metadata('i32 1')}" if "nontemporal" in op.properties else "")

    return emit


def _prefetch_hints(op: Operation) -> Sequence[str]:
    return [f"i32 {integer(op, name)}" for name in ("rw", "hint", "cache")]


def _block_transfer(op: Operation) -> Sequence[str]:
    length = [f"i64 {integer(op, 'len')}"] if "len" in op.properties else []
    return [*length, *_boolean("isVolatile")(op)]


def _atomicrmw(scope: Scope, op: Operation) -> str:
    ptr, value = op.operands
    name = ATOMIC_BINARY[integer(op, "bin_op")].removeprefix("_")
    return (
        f"{_result(scope, op)}atomicrmw{_volatile(op)} {name} {typed(scope, ptr)}, {typed(scope, value)}"
        f"{_syncscope(op)}{_ordering(op)}{_alignment(op)}"
    )


def _cmpxchg(scope: Scope, op: Operation) -> str:
    operands = ", ".join(typed(scope, operand) for operand in op.operands)
    weak = " weak" if "weak" in op.properties else ""
    orderings = _ordering(op, "success_ordering") + _ordering(op, "failure_ordering")
    tail = f"{_syncscope(op)}{orderings}{_alignment(op)}"
    return f"{_result(scope, op)}cmpxchg{weak}{_volatile(op)} {operands}{tail}"


def _fence(_: Scope, op: Operation) -> str:
    return f"fence{_syncscope(op)}{_ordering(op)}"


def _reject_bundles(op: Operation) -> None:
    """Reject operand bundles, which would be lost."""
    if _numbers(op, "op_bundle_sizes"):
        sizes = op.properties["op_bundle_sizes"]
        raise EmissionError(f"'{op.name}': the property 'op_bundle_sizes = {sizes}' is not translated")


def _call_intrinsic(scope: Scope, op: Operation) -> str:
    _reject_bundles(op)
    name = op.properties["intrin"]
    if not isinstance(name, StringAttr):
        raise EmissionError(f"'{op.name}': the intrinsic '{name}' is not a name")
    return _intrinsic(name.data)(scope, op)


def _convention(op: Operation) -> str:
    convention = op.properties.get("CConv")
    name = convention.cconv_name if isinstance(convention, CallingConventionAttr) else "ccc"
    return "" if name == "ccc" else f" {name}"


def _call(scope: Scope, op: Operation) -> str:
    _reject_bundles(op)
    tail = op.properties.get("TailCallKind")
    kind = tail.data.value if isinstance(tail, TailCallKindAttr) else "none"
    callee = op.properties.get("callee")
    if isinstance(callee, SymbolRefAttr):
        target, arguments = f"@{callee.string_value()}", op.operands
    else:
        target, arguments = scope.names[op.operands[0]], op.operands[1:]
    returned = scope.type(op.results[0].type) if op.results else "void"
    signature = op.properties.get("var_callee_type")
    if isinstance(signature, LLVMFunctionType):
        returned = scope.type(signature)
    prefix = "" if kind == "none" else f"{kind} "
    passed = ", ".join(typed(scope, argument) for argument in arguments)
    return f"{_result(scope, op)}{prefix}call{_fast(op)}{_convention(op)} {returned} {target}({passed})"


INTEL = 1
"""The number of Intel's assembly syntax, instead of AT&T's."""


def _inline_asm(scope: Scope, op: Operation) -> str:
    text, constraints = op.properties["asm_string"], op.properties["constraints"]
    if not isinstance(text, StringAttr) or not isinstance(constraints, StringAttr):
        raise EmissionError(f"'{op.name}': assembly and constraints are no strings")
    tail, notation = op.properties.get("tail_call_kind"), op.properties.get("asm_dialect")
    kind = tail.data.value if isinstance(tail, TailCallKindAttr) else "none"
    words = [
        *(() if kind == "none" else (kind,)),
        "call",
        scope.type(op.results[0].type) if op.results else "void",
        "asm",
        *(("sideeffect",) if "has_side_effects" in op.properties else ()),
        *(("alignstack",) if "is_align_stack" in op.properties else ()),
        *(("inteldialect",) if isinstance(notation, IntegerAttr) and notation.value.data == INTEL else ()),
    ]
    passed = ", ".join(typed(scope, operand) for operand in op.operands)
    return f"{_result(scope, op)}{' '.join(words)} {quoted(text.data)}, {quoted(constraints.data)}({passed})"


def _br(scope: Scope, op: Operation) -> str:
    return f"br label %{scope.edge(op, 0)}"


def _cond_br(scope: Scope, op: Operation) -> str:
    condition = scope.names[op.operands[0]]
    return f"br i1 {condition}, label %{scope.edge(op, 0)}, label %{scope.edge(op, 1)}"


def _return(scope: Scope, op: Operation) -> str:
    return f"ret {typed(scope, op.operands[0])}" if op.operands else "ret void"


def _unreachable(_scope: Scope, _op: Operation) -> str:
    return "unreachable"


def _rules(names: str, make: Callable[[str], Emit], properties: Iterable[str] = ()) -> dict[str, Rule]:
    """Return one rule for each operation `llvm.<name>`, made from the name."""
    return {f"llvm.{name}": Rule(make(name), frozenset(properties)) for name in names.split()}


_ACCESS = ("alignment", "ordering", "syncscope", "volatile_", "nontemporal")
_FLOAT_INTRINSICS = """
    fabs ceil floor sqrt exp exp2 log log2 sin cos pow copysign maxnum minnum fma fmuladd
    roundeven round rint nearbyint trunc maximum minimum
    vector.reduce.fadd vector.reduce.fmul vector.reduce.fmax vector.reduce.fmin
    vector.reduce.fmaximum vector.reduce.fminimum"""
_INTEGER_INTRINSICS = """
    smax smin umax umin sadd.sat uadd.sat ssub.sat usub.sat ctpop bitreverse bswap fshl fshr
    vector.reduce.add vector.reduce.mul vector.reduce.and vector.reduce.or vector.reduce.xor
    vector.reduce.smax vector.reduce.smin vector.reduce.umax vector.reduce.umin stacksave stackrestore"""


def _intrinsics(names: str, properties: Iterable[str] = ()) -> dict[str, Rule]:
    """Return one rule for each `llvm.intr.<name>` that is just a call of the intrinsic `llvm.<name>`."""
    return {f"llvm.intr.{name}": Rule(_intrinsic(f"llvm.{name}"), frozenset(properties)) for name in names.split()}


def _single(name: str, emit: Emit, *properties: str) -> dict[str, Rule]:
    return {f"llvm.{name}": Rule(emit, frozenset(properties))}


RULES: dict[str, Rule] = {
    **_rules("add sub mul shl", lambda name: _binary(name, _overflow), ["overflowFlags"]),
    **_rules("udiv sdiv lshr ashr", lambda name: _binary(name, _exact), ["isExact"]),
    **_rules("urem srem and xor", _binary),
    **_rules("or", lambda name: _binary(name, _disjoint), ["isDisjoint"]),
    **_rules("fadd fsub fmul fdiv frem", lambda name: _binary(name, _fast), FAST),
    **_rules("trunc", lambda name: _cast(name, _overflow), ["overflowFlags"]),
    **_rules("zext uitofp", lambda name: _cast(name, _nonneg), ["nonNeg"]),
    **_rules("sext sitofp fptosi fptoui fpext fptrunc bitcast ptrtoint inttoptr addrspacecast", _cast),
    **_rules("extractelement freeze", _list_of_operands),
    **_rules("select", lambda name: _list_of_operands(name, _fast), FAST),
    **_rules("insertelement", _list_of_operands),
    **_intrinsics(_FLOAT_INTRINSICS, FAST),
    **_intrinsics(_INTEGER_INTRINSICS),
    **_single("intr.abs", _intrinsic("llvm.abs", _boolean("is_int_min_poison")), "is_int_min_poison"),
    **_single("intr.ctlz", _intrinsic("llvm.ctlz", _boolean("is_zero_poison")), "is_zero_poison"),
    **_single("intr.cttz", _intrinsic("llvm.cttz", _boolean("is_zero_poison")), "is_zero_poison"),
    **_single("intr.prefetch", _intrinsic("llvm.prefetch", _prefetch_hints), "rw", "hint", "cache"),
    **_single("intr.memcpy", _intrinsic("llvm.memcpy", _block_transfer), "isVolatile"),
    **_single("intr.memcpy.inline", _intrinsic("llvm.memcpy.inline", _block_transfer), "isVolatile", "len"),
    **_single("intr.memset", _intrinsic("llvm.memset", _block_transfer), "isVolatile"),
    **_single("intr.memset.inline", _intrinsic("llvm.memset.inline", _block_transfer), "isVolatile", "len"),
    **_single("intr.masked.load", _masked("llvm.masked.load", 0, True), "alignment", "nontemporal"),
    **_single("intr.masked.store", _masked("llvm.masked.store", 1, False), "alignment"),
    **_single("intr.masked.gather", _masked("llvm.masked.gather", 0, True), "alignment"),
    **_single("intr.masked.scatter", _masked("llvm.masked.scatter", 1, False), "alignment"),
    **_single("icmp", _icmp, "predicate"),
    **_single("fcmp", _fcmp, "predicate", "fastmathFlags"),
    **_single("fneg", _fneg, "fastmathFlags"),
    **_single("shufflevector", _shufflevector, "mask"),
    **_single("extractvalue", _aggregate("extractvalue", (0,)), "position"),
    **_single("insertvalue", _aggregate("insertvalue", (0, 1)), "position"),
    **_single("getelementptr", _gep, "noWrapFlags", "inbounds", "rawConstantIndices", "elem_type"),
    **_single("alloca", _alloca, "alignment", "elem_type"),
    **_single("load", _load, *_ACCESS, "invariant"),
    **_single("store", _store, *_ACCESS),
    **_single("atomicrmw", _atomicrmw, "bin_op", "ordering", "syncscope", "alignment", "volatile_"),
    **_single(
        "cmpxchg",
        _cmpxchg,
        "success_ordering",
        "failure_ordering",
        "syncscope",
        "alignment",
        "weak",
        "volatile_",
    ),
    **_single("fence", _fence, "ordering", "syncscope"),
    **_single("call_intrinsic", _call_intrinsic, "fastmathFlags", "intrin", "op_bundle_sizes", "operandSegmentSizes"),
    **_single(
        "call",
        _call,
        *("callee", "var_callee_type", "fastmathFlags", "CConv", "TailCallKind"),
        *("op_bundle_sizes", "operandSegmentSizes"),
    ),
    **_single(
        "inline_asm",
        _inline_asm,
        *("asm_string", "constraints", "asm_dialect", "has_side_effects", "is_align_stack", "tail_call_kind"),
    ),
    **_single("br", _br),
    **_single("cond_br", _cond_br, "operandSegmentSizes"),
    **_single("return", _return),
    **_single("unreachable", _unreachable),
}
