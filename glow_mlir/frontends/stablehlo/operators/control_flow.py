"""Calls, branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Block, Region, SSAValue

from glow_mlir.dialects.glow_high.control_flow import IfOp, YieldOp
from glow_mlir.dialects.glow_high.elementwise_binary import LessOp
from glow_mlir.dialects.glow_high.loop import Trips
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.stablehlo.node import (
    MAX_CALLS,
    MAX_INLINED,
    ComplexValue,
    StablehloNode,
    TupleValue,
    Value,
    parts_of,
    stablehlo_operator,
)

Branch = Callable[[], Sequence[Value]]
"""Emits the operators of a branch, and gives its results."""


@stablehlo_operator("func.call")
def call(node: StablehloNode) -> Sequence[Value]:
    """A call of a function, which is inlined."""
    return _called(node, "callee")


def _called(node: StablehloNode, attribute: str) -> Sequence[Value]:
    """The results of the function that an attribute names; raises `ModelError` for one that calls itself."""
    callee, program = node.properties.get(attribute), node.program
    name = callee.string_value() if isinstance(callee, SymbolRefAttr) else ""
    if name not in program.functions:
        raise ModelError(f"{node.kind}: the program has no function '{name}'", node=node.name)
    if name in program.calls:
        raise ModelError(f"{node.kind}: the function '{name}' calls itself", node=node.name)
    program.inlined += 1
    if len(program.calls) >= MAX_CALLS or program.inlined > MAX_INLINED:
        limits = f"deeper than {MAX_CALLS}, or more than {MAX_INLINED}"
        raise ModelError(f"{node.kind}: calls that are {limits}, are not supported", node=node.name)
    program.calls.append(name)
    try:
        return program.run(program.functions[name].body.block, [node.value(position) for position in range(node.count)])
    finally:
        program.calls.pop()


@stablehlo_operator("composite")
def composite(node: StablehloNode) -> Sequence[Value]:
    """An operation that is no part of StableHLO, by the function that says what it does."""
    return _called(node, "decomposition")


@stablehlo_operator("optimization_barrier")
def optimization_barrier(node: StablehloNode) -> Sequence[Value]:
    """The operands as they are."""
    return [node.value(position) for position in range(node.count)]


def leaves(values: Sequence[Value]) -> list[SSAValue]:
    """Values with the parts of complex numbers and of tuples one after the other."""
    return [part for value in values for part in parts_of(value)]


def rebuilt(like: Sequence[Value], parts: Sequence[SSAValue]) -> list[Value]:
    """Values that are complex, or tuples, where those of `like` are, from their parts."""
    rest = iter(parts)
    return [_rebuilt(value, rest) for value in like]


def _rebuilt(like: Value, rest: Iterator[SSAValue]) -> Value:
    """The value of the next parts."""
    if isinstance(like, TupleValue):
        return TupleValue(tuple(_rebuilt(item, rest) for item in like.items))
    return ComplexValue(next(rest), next(rest)) if isinstance(like, ComplexValue) else next(rest)


@stablehlo_operator("if")
def if_(node: StablehloNode) -> Sequence[Value]:
    """A branch of two."""
    return _branch(node, node.input(), 0, 1)


@stablehlo_operator("case")
def case(node: StablehloNode) -> Sequence[Value]:
    """One of several branches, chosen by a number; the last one where the number has no branch."""
    return _cases(node, 0)


def _cases(node: StablehloNode, first: int) -> Sequence[Value]:
    """The results of the branches from number `first` on."""
    last = len(node.op.regions) - 1
    if first == last:
        return node.region(last, [])
    index = node.input()
    one = node.splat(1, index)
    # A number below 0 takes the last branch, so that the first one is for 0 alone.
    is_before = node.emit(LessOp, index, node.splat(first + 1, index))
    if not first:
        is_negative = node.emit(LessOp, index, node.splat(0, index))
        negative_or_zero = node.emit(LessOp, index, one)
        return _branch_of(
            node,
            is_negative,
            lambda: node.region(last, []),
            lambda: _branch_of(node, negative_or_zero, lambda: node.region(0, []), lambda: _cases(node, 1)),
        )
    return _branch_of(node, is_before, lambda: node.region(first, []), lambda: _cases(node, first + 1))


def _branch(node: StablehloNode, condition: SSAValue, yes: int, no: int) -> Sequence[Value]:
    return _branch_of(node, condition, lambda: node.region(yes, []), lambda: node.region(no, []))


def _branch_of(node: StablehloNode, condition: SSAValue, yes: Branch, no: Branch) -> Sequence[Value]:
    """The results of the first branch where the condition holds, else of the second; a known one leaves no branch."""
    known = node.fold(condition)
    if known is not None:
        return yes() if known.item() else no()
    blocks, ends = [Block(), Block()], list[list[Value]]()
    for block, branch in zip(blocks, (yes, no), strict=True):
        with node.builder.inside(block):
            ends.append(list(branch()))
            block.add_op(YieldOp.of(leaves(ends[-1]), node.location))
    types = [value.type for value in leaves(ends[0])]
    branch = IfOp.of(condition, types, map(Region, blocks), node.location)
    return rebuilt(ends[0], list(node.insert(branch).results))


@stablehlo_operator("while")
def while_(node: StablehloNode) -> Sequence[Value]:
    """A loop while a condition holds; `count-trips` finds those that count."""
    initial = [node.value(position) for position in range(node.count)]
    (condition,) = leaves(node.region(0, initial))
    body = Body(node, leaves(initial), ())
    with node.builder.inside(body.block):
        following = node.region(1, rebuilt(initial, body.carried))
        (again,) = leaves(node.region(0, following))
    return rebuilt(initial, body.emit(Trips(None, condition), leaves(following), (), again))
