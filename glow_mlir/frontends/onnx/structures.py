"""Structures of values: decompose a value into tensors, and rebuild it from other tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import SSAValue

from glow_mlir.frontends.onnx.values import OptionalValue, Strings, TensorSequence, Value

Leaves = tuple[list[SSAValue], Callable[[Sequence[SSAValue]], Value]]
"""The tensors of a value, and a function that builds a value of the same structure from other tensors."""


def leaves_of(value: Value) -> Leaves:
    """Decompose a value into its tensors, in order, and a function that rebuilds its structure."""
    match value:
        case Strings():
            return [value.numbers], lambda found: Strings(found[0])
        case TensorSequence():
            inner = [leaves_of(item) for item in value.items]
            return [leaf for leaves, _ in inner for leaf in leaves], lambda found: TensorSequence(
                tuple(rebuilt(inner, found)), value.element
            )
        case OptionalValue():
            inner = [] if value.value is None else [leaves_of(value.value)]
            return [leaf for leaves, _ in inner for leaf in leaves], lambda found: OptionalValue(
                next(iter(rebuilt(inner, found)), None), value.element
            )
        case SSAValue():
            return [value], lambda found: found[0]
        case _:
            return [value.rows], lambda found: type(value)(value.keys, found[0])


def rebuilt(inner: Iterable[Leaves], found: Sequence[SSAValue]) -> list[Value]:
    """Rebuild decomposed values from the tensors `found`."""
    made: list[Value] = []
    for leaves, make in inner:
        made.append(make(found[: len(leaves)]))
        found = found[len(leaves) :]
    return made


def structure_of(value: Value) -> object:
    """A key that is equal for values of the same structure."""
    match value:
        case TensorSequence():
            return ("sequence", *map(structure_of, value.items))
        case OptionalValue():
            return ("optional", None if value.value is None else structure_of(value.value))
        case SSAValue():
            return "tensor"
        case Strings():
            return "strings"
        case _:
            return ("maps", value.keys)
