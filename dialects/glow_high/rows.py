"""
Operators on many rows at once instead of one row at a time, which moves work out of loops over rows.

The form follows from access maps: if operands that are rows get another leading axis, the result gets it too, all other
axes are unchanged, and properties that name axes are adjusted. `hoist-from-loops` and `sink-from-loops` use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseArrayBase, TensorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.transposition import changed, identity, matches
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.shapes import element_of, sizes_of, tensor
from glow_mlir.support.symbols import Size

if TYPE_CHECKING:
    from glow_mlir.dialects.glow_high.base import HighOp


def over_rows(op: HighOp, is_row: Sequence[bool], count: Size) -> Mapping[str, Attribute] | None:
    """The properties with which an operator computes on all of `count` rows; `None` if there is no such form."""
    if op.regions or not any(is_row) or not op.LIST_PROPERTIES.keys().isdisjoint(op.properties):
        return None
    properties = changed(op, **(_behind_rows(op) if is_row[0] else {}))
    pairs = zip(op.operands, is_row, strict=True)
    types = [_rows(value, count) if of_row else value.type for value, of_row in pairs]
    try:
        wide = type(op).inferred(Block(arg_types=types).args, properties)
    except VerifyException:
        return None
    fits = _has_rows(op.access_map(), wide.access_map(), is_row)
    wide.drop_all_references()
    return properties if fits and list(wide.result_types) == [_rows(value, count) for value in op.results] else None


def _behind_rows(op: HighOp) -> dict[str, AttributeValue]:
    """The properties of `op` that name axes of its first operand, shifted by a new leading axis."""
    found: dict[str, AttributeValue] = {}
    for name in op.AXIS_PROPERTIES:
        value = op.properties[name]
        if value.name == DenseArrayBase.name:
            found[name] = [axis + 1 if axis >= 0 else axis for axis in ints(value)]
        else:
            axis = integer(value)
            found[name] = axis + 1 if axis >= 0 else axis
    return found


def _rows(value: SSAValue, count: Size) -> TensorType[Attribute]:
    """The type of `count` stacked copies of a value."""
    return tensor((count, *sizes_of(value)), element_of(value))


def _has_rows(before: AccessMap, after: AccessMap, is_row: Sequence[bool]) -> bool:
    """Whether `after` is `before` with a leading axis of rows and results whose indices are independent."""
    leading = [axis for axis in after.independent() if set(axis.results) == {0}]
    if [axis.operands for axis in leading] != [tuple(0 if of_row else None for of_row in is_row)]:
        return False
    names: dict[str, str] = {}
    rows = (*is_row, *(True for _ in before.results))
    pairs = zip((*before.operands, *before.results), (*after.operands, *after.results), rows, strict=True)
    return all(matches(own, axes[of_row:], identity(len(own)), names) for own, axes, of_row in pairs)
