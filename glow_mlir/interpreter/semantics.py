"""Semantics of one operator, or its instruction: its expression, its form, or its registered semantics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, Operation

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.scalar_body import is_elementwise, scalar_body
from glow_mlir.dialects.shapes import Shape, element_of, sizes_of, split_axes
from glow_mlir.errors import CompilerBugError
from glow_mlir.interpreter.forms import run_form
from glow_mlir.interpreter.index_space import as_stored, signless_array
from glow_mlir.interpreter.scalar import ScalarProgram, round_float
from glow_mlir.ir.registry import SEMANTICS
from glow_mlir.support.dtypes import is_float_dtype
from glow_mlir.support.identity import MAX_KEPT, number_of
from glow_mlir.support.symbols import Sizes


def apply_semantics(op: Operation, operands: Sequence[Any]) -> tuple[np.ndarray, ...]:
    """
    The results of an operator, or of its instruction, on arrays.

    `operands` are the read operands in order, grouped as in the definition: `None` for an absent optional one, a list
    for a variadic one. Operators defined by an expression need no semantics of their own; raises `CompilerBugError` for
    any other without.
    """
    if is_elementwise(op):
        return (elementwise_function(op)([operand for operand in operands if operand is not None]),)
    operator = cast(type[Operation], getattr(op, "OPERATOR", type(op)))
    function = SEMANTICS.get(operator)
    if function is None and issubclass(operator, Expressed):
        return (_exact(cast(Expressed, op), [operand for operand in operands if operand is not None]),)
    if function is None:
        raise CompilerBugError(f"{op.name} has no semantics")
    with np.errstate(all="ignore"):
        results = function(op, *operands)
    return cast("tuple[np.ndarray, ...]", results if isinstance(results, tuple) else (results,))


def elementwise_function(op: Operation) -> Callable[[Sequence[np.ndarray]], np.ndarray]:
    """
    The function that an elementwise operator computes, of operands of any shapes that broadcast.

    The operator may change or be erased afterwards.
    """
    program, dtype = _program_of(op), _result_dtype(op)

    def function(arrays: Sequence[np.ndarray]) -> np.ndarray:
        value = program.run([signless_array(array) for array in arrays])
        return as_stored(value, dtype, np.broadcast_shapes(*[np.shape(array) for array in arrays]))

    return function


def _exact(op: Expressed, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Evaluate an expression, on floats in f64, and round once."""
    views = op.views()
    form = op.generic_form(is_exact=True)
    is_wide = not form.moves
    wide = [array.astype(np.float64) if is_wide and is_float_dtype(array.dtype) else array for array in arrays]
    read = [(wide[number], sizes_of(value)) for number, value in zip(op.read_operands(), op.read_values(), strict=True)]
    seen = [_viewed(array, sizes, view) for (array, sizes), view in zip(read, views, strict=True)]
    result = _merged(run_form(form, seen, op), sizes_of(_result_type(op)), form.result_sizes(views))
    return round_float(result, _result_dtype(op)) if result.dtype == np.float64 else result


def _viewed(array: np.ndarray, sizes: Sizes, view: Sizes) -> np.ndarray:
    """Reshape an operand of these sizes to its view with some axes split."""
    if array.ndim == len(view):
        return array
    pieces = zip(array.shape, split_axes(sizes, view), strict=True)
    return array.reshape([size for own, group in pieces for size in (cast(Shape, group) if len(group) > 1 else (own,))])


def _merged(array: np.ndarray, sizes: Sizes, view: Sizes) -> np.ndarray:
    """Reshape a result from a view of one of these sizes, with its axes merged."""
    if array.ndim == len(sizes):
        return array
    left = iter(array.shape)
    return array.reshape([math.prod(next(left) for _ in group) for group in split_axes(sizes, view)])


_PROGRAMS: dict[tuple[object, ...], ScalarProgram] = {}
"""Kind, types of operands and results, and properties of an elementwise operator → its body."""


def _program_of(op: Operation) -> ScalarProgram:
    """The body of an elementwise operator; cached for operators that differ only in operands."""
    types = [number_of(value.type) for value in (*op.operands, *op.results)]
    form = type(op), *types, *op.properties, *map(number_of, op.properties.values())
    if form not in _PROGRAMS:
        if len(_PROGRAMS) >= MAX_KEPT:
            _PROGRAMS.clear()
        _PROGRAMS[form] = ScalarProgram.of(*scalar_body(op))
    return _PROGRAMS[form]


def _result_dtype(op: Operation) -> np.dtype:
    return numpy_dtype(element_of(_result_type(op)))


def _result_type(op: Operation) -> Attribute:
    if op.results:
        return op.results[0].type
    infer = cast(Callable[..., Any], getattr(type(op), "infer_types"))
    return infer(op)[0]
