"""Reverse mode on expressions: the contribution of each part to the cotangents of its operands."""

from __future__ import annotations

from collections.abc import Mapping

from glow_mlir.dialects import expressions as ex
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.folds import FOLDS
from glow_mlir.dialects.staging import postorder
from glow_mlir.differentiation.derivative_values import Choice, Value, choice, plus, tensor_of, times
from glow_mlir.differentiation.derivatives import PARTIALS
from glow_mlir.errors import UnsupportedError


def derivative(root: Tensor, operand: Tensor, names: Mapping[Tensor, Tensor]) -> Value:
    """
    The derivative of an expression without folds with respect to an operand, element by element (forward mode).

    Arguments not chosen by `select` have no influence. `names` maps parts to shorter equivalent expressions.
    """
    made: dict[Tensor, Value] = {}
    for part in postorder(root):
        made[part] = 1 if part is operand else _tangent(part, made, names)
    return made[root]


def _tangent(part: Tensor, made: Mapping[Tensor, Value], names: Mapping[Tensor, Tensor]) -> Value:
    """The derivative of a part, from the derivatives of its arguments."""
    tangents = [made[item] if isinstance(item, Tensor) else 0 for item in part.arguments]
    if part.word == "select":
        condition = part.arguments[0]
        assert isinstance(condition, Tensor)
        return choice(condition, tangents[1], tangents[2])
    if not is_float(part.element) or all(_is_zero(tangent) for tangent in tangents):
        return 0
    if part.word == "convert":
        return _converted(tangents[0], part)
    total: Value = 0
    for tangent, partial in zip(tangents, partials(part, names), strict=True):
        total = plus(total, times(tangent, partial))
    return total


def _is_zero(value: Value) -> bool:
    return not isinstance(value, Tensor | Choice) and value == 0


def _converted(value: Value, like: Tensor) -> Value:
    """A derivative converted to the element type of another expression."""
    return ex.converted(value, like.element) if isinstance(value, Tensor) else value


def partials(part: Tensor, names: Mapping[Tensor, Tensor]) -> tuple[Value, ...]:
    """The derivatives of an operation with respect to its arguments; raises `UnsupportedError` if it has none."""
    rule = PARTIALS.get(part.word)
    if rule is None:
        raise UnsupportedError(f"'{part.word}' has no derivative")
    arguments = [names.get(item, item) if isinstance(item, Tensor) else item for item in part.arguments]
    return rule(names.get(part, part), *arguments)


def adjoints(root: Tensor, cotangent: Tensor, names: Mapping[Tensor, Tensor]) -> dict[Tensor, Value]:
    """
    The cotangents of an expression's operands for a given cotangent of the expression (reverse mode).

    A result that lacks a dimension of its operand is constant along it. `names` maps parts to shorter equivalent
    expressions.
    """
    totals: dict[Tensor, Value] = {root: cotangent}
    found: dict[Tensor, Value] = {}
    for part in reversed(list(postorder(root))):
        total = totals.get(part, 0)
        if _is_zero(total) or not is_float(part.element):
            continue
        if part.operand is not None:
            found[part] = total
            continue
        for argument, share in zip(part.arguments, _shares(part, total, names), strict=True):
            if isinstance(argument, Tensor) and is_float(argument.element):
                gathered = _gathered(share, part, argument)
                totals[argument] = plus(totals.get(argument, 0), gathered)
    return found


def _shares(part: Tensor, total: Value, names: Mapping[Tensor, Tensor]) -> tuple[Value, ...]:
    """The cotangent of each argument of a part, over the dimensions of the part, or of a fold's argument."""
    if part.along:
        return (_of_fold(part, total, names),)
    if part.word == "convert":
        (argument,) = part.parts
        return (_converted(total, argument),)
    if part.word == "select":
        condition = part.arguments[0]
        assert isinstance(condition, Tensor)
        return 0, choice(condition, total, 0), choice(condition, 0, total)
    if part.word in ("size", "one"):
        return (0,) * len(part.arguments)
    return tuple(times(total, partial) for partial in partials(part, names))


def _of_fold(part: Tensor, total: Value, names: Mapping[Tensor, Tensor]) -> Value:
    """The cotangent of a fold's argument; raises `UnsupportedError` if the fold has none."""
    (x,) = (names.get(item, item) for item in part.parts)
    fold, cotangent = FOLDS.get((part.word, False)), tensor_of(total, part)
    if fold is None or fold.kind.adjoint is None or not isinstance(cotangent, Tensor):
        raise UnsupportedError(f"'{part.word}' has no derivative")
    return fold.kind.adjoint(cotangent, x, names.get(part, part), sorted(part.along))


def _gathered(share: Value, part: Tensor, argument: Tensor) -> Value:
    """A cotangent of an argument, summed along the dimensions that only the part has."""
    extra = (part.dimensions | part.along) - argument.dimensions
    if not extra or _is_zero(share):
        return share
    value = tensor_of(share, argument)
    windows = ex.windowed_operands(part)
    if isinstance(value, Tensor) and {*windows} - {*ex.windowed_operands(value)}:
        value = value * ex.ones_of(windows, value.element)  # Where a window has no element, there is nothing to sum.
    present = extra & value.dimensions if isinstance(value, Tensor) else frozenset[str]()
    summed = ex.reduce_sum(value, sorted(present)) if isinstance(value, Tensor) else value
    missing = extra - present
    return times(ex.size_along(part, sorted(missing)), summed) if missing else summed
