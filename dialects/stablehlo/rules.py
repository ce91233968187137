"""
What holds for the operations of `stablehlo` and `chlo` beside the number and kinds of operands, properties and results.

`RULES` says which rules apply to an operation. Sizes that are not known (`?`) agree with all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, ComplexType, DenseArrayBase, IntegerAttr, IntegerType, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.quant import UniformQuantizedType
from glow_mlir.dialects.shapes import declared_shape
from glow_mlir.dialects.stablehlo import shapes
from glow_mlir.dialects.stablehlo.shapes import Shape, agree, check_dimensions, shape_of

Rule = Callable[[Operation], None]
"""Verifies an operation; raises `VerifyException`."""


def element_of(value: SSAValue) -> Attribute:
    """The type of the elements of a tensor; another type itself."""
    return cast("TensorType[Any]", value.type).element_type if isinstance(value.type, TensorType) else value.type


def element_name(value: SSAValue) -> str:
    """The type of the elements of a tensor as text; that of all quantized ones is the same."""
    element = element_of(value)
    return "quantized" if isinstance(element, UniformQuantizedType) else str(element)


def _values(op: Operation) -> list[SSAValue]:
    return [*op.operands, *op.results]


def _differ(values: Iterable[SSAValue]) -> str:
    return ", ".join(dict.fromkeys(str(value.type) for value in values))


# ---- types ----------------------------------------------------------------------------------------------------


def same_types(op: Operation) -> None:
    """Operands and results have the same type, as far as sizes are known."""
    elements = {element_name(value) for value in _values(op)}
    if len(elements) > 1:
        raise VerifyException(f"operands and results differ in type: {_differ(_values(op))}")
    same_shape(op)


def same_elements(op: Operation) -> None:
    """Operands and results have elements of the same type."""
    if len({element_name(value) for value in _values(op)}) > 1:
        raise VerifyException(f"operands and results differ in the type of elements: {_differ(_values(op))}")


def elements_of(*operands: int) -> Rule:
    """The results have elements of the type of these operands."""

    def rule(op: Operation) -> None:
        values = [*(op.operands[at] for at in operands), *op.results]
        if len({element_name(value) for value in values}) > 1:
            raise VerifyException(f"operands and results differ in the type of elements: {_differ(values)}")

    return rule


def of_parts(op: Operation) -> None:
    """The result has the elements of the operand, or those of the parts of complex numbers."""
    element = element_of(op.operands[0])
    expected = cast("ComplexType[Any]", element).element_type if isinstance(element, ComplexType) else element
    if not isinstance(element, UniformQuantizedType) and element_of(op.results[0]) != expected:
        raise VerifyException(f"the result has elements of {expected}, not {op.results[0].type}")


def tuple_of_operands(op: Operation) -> None:
    """The result is a tuple of the types of the operands."""
    type_, types = op.results[0].type, tuple(value.type for value in op.operands)
    if not isinstance(type_, TupleType) or type_.types.data != types:
        raise VerifyException(f"the result is no tuple of {', '.join(map(str, types))}, but {type_}")


def item_of_tuple(op: Operation) -> None:
    """The result has the type of an item of a tuple."""
    type_, index = op.operands[0].type, cast("IntegerAttr[Any]", op.properties["index"]).value.data
    types = type_.types.data if isinstance(type_, TupleType) else ()
    if not 0 <= index < len(types):
        raise VerifyException(f"{type_} has no item {index}")
    if op.results[0].type != types[index]:
        raise VerifyException(f"the item is of type {types[index]}, not {op.results[0].type}")


def limits(op: Operation) -> None:
    """The limits are scalars or have the shape of the operand, whose type the result has."""
    for value in (op.operands[0], op.operands[2]):
        shape, whole = shape_of(value), shape_of(op.operands[1])
        if shape and whole is not None and not agree(shape, whole):
            raise VerifyException(f"a limit has type {value.type}, the operand {op.operands[1].type}")
    if not _alike(op.operands[1], op.results[0]):
        raise VerifyException(f"the result has type {op.results[0].type}, the operand {op.operands[1].type}")


def same_shape(op: Operation) -> None:
    """Operands and results have the same shape, as far as sizes are known."""
    found = [shape for value in _values(op) if (shape := shape_of(value)) is not None]
    if any(not agree(found[0], other) for other in found[1:]):
        raise VerifyException(f"operands and results differ in shape: {_differ(_values(op))}")


def some_operands(op: Operation) -> None:
    """There is an operand."""
    if not op.operands:
        raise VerifyException("it has no operands")


def boolean_result(op: Operation) -> None:
    """The result is of i1."""
    if str(element_of(op.results[0])) != "i1":
        raise VerifyException(f"the result is of i1, not {op.results[0].type}")


def boolean_choice(op: Operation) -> None:
    """The first operand is of i1, a scalar or of the shape of the result."""
    chosen, result = shape_of(op.operands[0]), shape_of(op.results[0])
    if str(element_of(op.operands[0])) != "i1":
        raise VerifyException(f"the choice is of i1, not {op.operands[0].type}")
    if chosen and result is not None and not agree(chosen, result):
        raise VerifyException(f"the choice has type {op.operands[0].type}, the result {op.results[0].type}")


def _alike(left: SSAValue, right: SSAValue) -> bool:
    """Whether two values have the same type, as far as sizes are known."""
    shape, other = shape_of(left), shape_of(right)
    is_same = shape is None or other is None or agree(shape, other)
    return is_same and element_name(left) == element_name(right)


def pairs(op: Operation) -> None:
    """Each result has the type of the operand at its position."""
    for operand, result in zip(op.operands, op.results, strict=False):
        if not _alike(operand, result):
            raise VerifyException(f"a result has type {result.type}, its operand {operand.type}")


def as_many_results(op: Operation) -> None:
    """There are as many results as operands."""
    if len(op.results) != len(op.operands):
        raise VerifyException(f"there are {len(op.results)} results for {len(op.operands)} operands")


def _width(element: Attribute) -> int:
    """The number of bits of an integer; 0 for others."""
    return cast("IntegerType[Any, Any]", element).width.data if isinstance(element, IntegerType) else 0


_KINDS: Mapping[str, Callable[[Attribute], bool]] = {
    "floats": lambda element: isinstance(element, AnyFloat),
    "integers": lambda element: _width(element) > 1,
    "truth values": lambda element: _width(element) == 1,
    "complex numbers": lambda element: isinstance(element, ComplexType),
}


def takes(*kinds: str) -> Rule:
    """The elements of the first operand are of one of these kinds; quantized elements are of all."""

    def rule(op: Operation) -> None:
        element = element_of(op.operands[0])
        is_known = any(check(element) for check in _KINDS.values())
        if is_known and not any(_KINDS[kind](element) for kind in kinds):
            raise VerifyException(f"takes {' or '.join(kinds)}, not {op.operands[0].type}")

    return rule


def constant_type(op: Operation) -> None:
    """The value has the shape of the result."""
    value: Any = op.properties["value"]
    shape, expected = declared_shape(value.get_type()), shape_of(op.results[0])
    if expected is not None and shape != expected:
        raise VerifyException(f"a value of type {value.get_type()} is no {op.results[0].type}")


# ---- lists of dimensions ----------------------------------------------------------------------------------------


def numbers(op: Operation, name: str) -> tuple[int, ...] | None:
    """The numbers of a property; `None` where it is absent."""
    found = op.properties.get(name)
    if isinstance(found, DenseArrayBase):
        return tuple(cast("DenseArrayBase[Any]", found).get_values())
    return (cast("IntegerAttr[Any]", found).value.data,) if isinstance(found, IntegerAttr) else None


def per_dimension(*names: str) -> Rule:
    """Properties that are lists have one item for each dimension of the first operand."""

    def rule(op: Operation) -> None:
        shape = shape_of(op.operands[0])
        for name in names:
            found = numbers(op, name)
            if found is not None and shape is not None and len(found) != len(shape):
                raise VerifyException(f"'{name}' has {len(found)} items for {len(shape)} dimensions")

    return rule


def within(*names: str, is_of_result: bool = False) -> Rule:
    """Properties are different dimensions of the first operand, or of the first result."""

    def rule(op: Operation) -> None:
        shape = shape_of((op.results if is_of_result else op.operands)[0])
        for name in names:
            check_dimensions(name, numbers(op, name) or (), shape)

    return rule


def positive(*names: str, least: int = 1) -> Rule:
    """The numbers of properties are not below `least`."""

    def rule(op: Operation) -> None:
        for name in names:
            for number in numbers(op, name) or ():
                if number < least:
                    raise VerifyException(f"'{name}' has {number}, which is below {least}")

    return rule


def indices(first: int) -> Rule:
    """The operands from `first` on are scalars of integers, one for each dimension of the first operand."""

    def rule(op: Operation) -> None:
        shape = shape_of(op.operands[0])
        found = op.operands[first:]
        if shape is not None and len(found) != len(shape):
            raise VerifyException(f"there are {len(found)} indices for {len(shape)} dimensions")
        for value in found:
            if shape_of(value) != () or not isinstance(element_of(value), IntegerType):
                raise VerifyException(f"an index is a scalar of integers, not {value.type}")

    return rule


# ---- shapes that follow -----------------------------------------------------------------------------------------


def follows(infer: Callable[[Operation], Shape | None]) -> Rule:
    """The first result has the shape that follows; `infer` raises `VerifyException` where none does."""

    def rule(op: Operation) -> None:
        expected, found = infer(op), shape_of(op.results[0])
        if expected is not None and found is not None and not agree(expected, found):
            words = "x".join("?" if size < 0 else str(size) for size in expected) or "that of a scalar"
            raise VerifyException(f"the result has type {op.results[0].type}, but the shape {words} follows")

    return rule


def same_count(op: Operation) -> None:
    """The result has as many elements as the operand."""
    shape, other = shape_of(op.operands[0]), shape_of(op.results[0])
    if shape is None or other is None or min((*shape, *other), default=0) < 0:
        return
    if math.prod(shape) != math.prod(other):
        raise VerifyException(f"{op.operands[0].type} and {op.results[0].type} differ in the number of elements")


# ---- regions ----------------------------------------------------------------------------------------------------


def body(count: int, results: str = "results") -> Rule:
    """
    The last region has `count` arguments for each input, and returns a value for each result.

    It returns one of i1 where `results` is "truth".
    """

    def rule(op: Operation) -> None:
        inputs = len(op.results) if len(op.results) else 1
        block = _only_block(op, len(op.regions) - 1)
        if len(block.args) != count * inputs:
            raise VerifyException(f"the body has {len(block.args)} arguments, not {count * inputs}")
        _check_return(op, len(op.regions) - 1, 1 if results == "truth" else inputs)

    return rule


def loop(op: Operation) -> None:
    """Condition and body take the values of the loop; they return a truth value, and the values."""
    for at, count in enumerate((1, len(op.operands))):
        block = _only_block(op, at)
        pairs_ = zip(block.args, op.operands, strict=False)
        if len(block.args) != len(op.operands) or not all(_alike(*pair) for pair in pairs_):
            raise VerifyException(f"region {at} does not take the {len(op.operands)} values of the loop")
        _check_return(op, at, count)


def branches(op: Operation) -> None:
    """Each region takes nothing, and returns the results."""
    for at in range(len(op.regions)):
        if _only_block(op, at).args:
            raise VerifyException(f"region {at} has arguments")
        _check_return(op, at, len(op.results))


def _only_block(op: Operation, at: int) -> Any:
    if len(op.regions[at].blocks) != 1:
        raise VerifyException(f"region {at} has {len(op.regions[at].blocks)} blocks, not 1")
    return op.regions[at].block


def _check_return(op: Operation, at: int, count: int) -> None:
    ending = op.regions[at].block.last_op
    if ending is None or ending.name != "stablehlo.return":
        raise VerifyException(f"region {at} does not end with stablehlo.return")
    if len(ending.operands) != count:
        raise VerifyException(f"region {at} returns {len(ending.operands)} values, not {count}")


BROADCASTS = (
    "add and atan2 complex divide maximum minimum multiply next_after or polygamma power remainder shift_left"
    " shift_right_arithmetic shift_right_logical subtract xor zeta"
)
"""The operations on two tensors that broadcast, `chlo.broadcast_…`."""

# ---- the rules of each operation --------------------------------------------------------------------------------

_FLOATS = takes("floats")
_REAL = takes("floats", "complex numbers")
_BITS = takes("integers", "truth values")
_BROADCAST_SHAPE = follows(shapes.broadcast_pair)


def _of(names: str, *rules: Rule) -> dict[str, tuple[Rule, ...]]:
    return dict.fromkeys([f"stablehlo.{name}" for name in names.split()], rules)


def _of_chlo(names: str, *rules: Rule) -> dict[str, tuple[Rule, ...]]:
    return dict.fromkeys([f"chlo.{name}" for name in names.split()], rules)


RULES: Mapping[str, tuple[Rule, ...]] = {
    **_of("cbrt cosine exponential exponential_minus_one log log_plus_one logistic", same_types, _REAL),
    **_of("rsqrt sine sqrt tan tanh atan2", same_types, _REAL),
    **_of("ceil floor round_nearest_afz round_nearest_even reduce_precision", same_types, _FLOATS),
    **_of("add divide maximum minimum multiply negate power remainder sign subtract", same_types),
    **_of("and or xor not", same_types, _BITS),
    **_of(
        "count_leading_zeros popcnt shift_left shift_right_arithmetic shift_right_logical",
        same_types,
        takes("integers"),
    ),
    **_of("convert uniform_dequantize uniform_quantize complex", same_shape),
    **_of("abs imag real", same_shape, of_parts),
    **_of("clamp", same_elements, limits),
    **_of("bitcast_convert", follows(shapes.bitcast_convert)),
    **_of("tuple", tuple_of_operands),
    **_of("get_tuple_element", item_of_tuple),
    **_of("dynamic_reshape", elements_of(0), same_count),
    **_of("dynamic_pad real_dynamic_slice", elements_of(0)),
    **_of("is_finite", same_shape, boolean_result, _FLOATS),
    **_of("compare", same_shape, boolean_result),
    **_of("select", boolean_choice),
    **_of("constant", constant_type),
    **_of("iota dynamic_iota", within("iota_dimension", is_of_result=True)),
    **_of("reshape", same_elements, same_count),
    **_of("broadcast", same_elements, positive("broadcast_sizes", least=0), follows(shapes.broadcast)),
    **_of(
        "broadcast_in_dim dynamic_broadcast_in_dim",
        elements_of(0),
        per_dimension("broadcast_dimensions"),
        within("broadcast_dimensions", is_of_result=True),
        shapes.check_broadcast,
    ),
    **_of(
        "transpose",
        same_elements,
        per_dimension("permutation"),
        within("permutation"),
        follows(shapes.transpose),
    ),
    **_of("reverse", same_types, within("dimensions")),
    **_of("concatenate", some_operands, same_elements, within("dimension"), follows(shapes.concatenate)),
    **_of(
        "slice",
        same_elements,
        per_dimension("start_indices", "limit_indices", "strides"),
        positive("strides"),
        follows(shapes.slice_),
    ),
    **_of("dynamic_slice", elements_of(0), per_dimension("slice_sizes"), indices(1), follows(shapes.dynamic_slice)),
    **_of("dynamic_update_slice", elements_of(0, 1), indices(2), shapes.check_update),
    **_of(
        "pad",
        same_elements,
        per_dimension("edge_padding_low", "edge_padding_high", "interior_padding"),
        positive("interior_padding", least=0),
        follows(shapes.pad),
    ),
    **_of("gather", elements_of(0), per_dimension("slice_sizes"), follows(shapes.gather)),
    **_of("dynamic_gather torch_index_select", elements_of(0)),
    **_of("scatter", some_operands, pairs, shapes.check_scatter, body(2)),
    **_of("get_dimension_size", within("dimension")),
    **_of("set_dimension_size", within("dimension")),
    **_of("dot", follows(shapes.dot)),
    **_of("dot_general", follows(shapes.dot_general)),
    **_of("convolution", follows(shapes.convolution)),
    **_of("cholesky", same_types, _REAL, shapes.check_square),
    **_of("triangular_solve", same_elements, _REAL, shapes.check_square, follows(shapes.triangular_solve)),
    **_of(
        "batch_norm_inference batch_norm_training batch_norm_grad",
        _FLOATS,
        within("feature_index"),
        shapes.check_features,
    ),
    **_of("fft", follows(shapes.fft)),
    **_of("map", same_shape),
    **_of("rng_bit_generator", pairs),
    **_of("collective_permute collective_broadcast cross-replica-sum", same_types),
    **_of("reduce", some_operands, within("dimensions"), follows(shapes.reduce), body(2)),
    **_of(
        "reduce_window",
        some_operands,
        per_dimension("window_dimensions", "window_strides", "base_dilations", "window_dilations"),
        positive("window_dimensions", "window_strides", "base_dilations", "window_dilations"),
        follows(shapes.reduce_window),
        body(2),
    ),
    **_of(
        "select_and_scatter",
        per_dimension("window_dimensions", "window_strides"),
        positive("window_dimensions", "window_strides"),
        body(2),
    ),
    **_of("sort", some_operands, as_many_results, pairs, within("dimension"), body(2, "truth")),
    **_of("while", as_many_results, pairs, loop),
    **_of("if case", branches),
    **_of("optimization_barrier", as_many_results, pairs),
    **_of_chlo("acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf erf_inv erfc", same_types, _REAL),
    **_of_chlo("conj lgamma sinh square tan _asin_acos_kernel", same_types, _REAL),
    **_of_chlo("is_inf is_neg_inf is_pos_inf", same_shape, boolean_result, _FLOATS),
    **_of_chlo("mulhi next_after polygamma zeta", same_types),
    **_of_chlo("constant", constant_type),
    **_of_chlo("constant_like", same_shape),
    **_of_chlo(" ".join(f"broadcast_{name}" for name in BROADCASTS.split()), same_elements, _BROADCAST_SHAPE),
    **_of_chlo("broadcast_compare", boolean_result, _BROADCAST_SHAPE),
    **_of_chlo("broadcast_complex", _BROADCAST_SHAPE),
    **_of_chlo("top_k", positive("k", least=0), shapes.check_top_k),
}
"""Operation → what holds for it."""
