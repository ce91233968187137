"""Access maps: what the notation says of ranks, and that operators read and compute what their maps say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from breadth import share
from execute import Case, assert_same
from operator_case import OperatorCase
from operator_cases import CASES
from operator_parts import FORMS, flat, like, of_share, operator_of, results
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block
from xdsl.irdl import operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_high.access import UNKNOWN, access_map, is_free, is_starred, plain, result_sizes
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.independence import IndependentAxis
from glow_mlir.dialects.glow_high.indexing import GatherElementsOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.glow_high.transposition import inverse
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.shapes import shape_of

ELEMENTWISE = [name for name, case in CASES.items() if issubclass(case.operator, Elementwise)]
"""Operators whose maps are of one rule."""

ROWS = {name: CASES[name] for name in CASES if name not in ELEMENTWISE or name in share(ELEMENTWISE, "maps")} | FORMS

PRODUCT = "left[..., i, *k], right[..., *k, j], bias[j] -> result[...; i, j]"


def test_leading_axes_are_aligned_behind() -> None:
    found = access_map(PRODUCT, (("left", 4), ("right", 3)), (("result", 4),))
    assert found.operands == (("...0", "...1", "i", "*k"), ("...1", "*k", "j"))
    assert found.results == (("...0", "...1", "i", "j"),)
    assert found.tiled == 2


def test_axes_follow_from_names() -> None:
    found = access_map(PRODUCT, (("left", 3), ("right", 2), ("bias", 1)), (("result", 3),))
    assert found.independent() == (
        IndependentAxis((0, None, None), (0,)),
        IndependentAxis((1, None, None), (1,)),
        IndependentAxis((None, 1, 0), (2,)),
    )
    tiles = found.parallel(("left", "right", "bias"))
    assert (tiles.count, tiles.operands) == (1, {"left": [0]})


def test_what_has_too_few_axes_broadcasts_and_what_is_left_out_is_read_whole() -> None:
    found = access_map("x[..., i, j], m[..., i, *j] -> y[..., i, j]", (("x", 2), ("m", 1), ("z", 2)), (("y", 2),))
    assert found.operands == (("i", "j"), ("*j",), ("*", "*"))
    assert [axis.results for axis in found.independent()] == [(0,)]


def test_what_is_anywhere_read_whole_or_twice_is_not_independent() -> None:
    assert not access_map("x[i, *j], w[*i] -> y[i, *j]", (("x", 2), ("w", 1)), (("y", 2),)).independent()
    assert not access_map("x[i, i] -> y[i]", (("x", 2),), (("y", 1),)).independent()
    assert not access_map("x[i] -> y[i], count[*]", (("x", 1),), (("y", 1), ("count", 1))).independent()


def test_tiles_have_leading_axes_that_all_values_of_a_name_share() -> None:
    found = access_map("x[i, j] -> y[i, j], z[i, *k]", (("x", 2),), (("y", 2), ("z", 2)))
    assert found.parallel(("x",)).count == 1
    behind = access_map("x[*t, n] -> y[*t, n]", (("x", 2),), (("y", 2),))
    assert behind.parallel(("x",)).count == 0


@pytest.mark.parametrize(
    "notation", ["x[i]", "x[i j] -> y[i]]", "x[i], x[j] -> y[i]", "x[..., *] -> y[...]", "x[2] -> y[]"]
)
def test_what_is_no_notation(notation: str) -> None:
    with pytest.raises(ValueError, match="the notation"):
        access_map(notation, (("x", 1),), (("y", 1),))


def test_ranks_have_to_fit() -> None:
    with pytest.raises(ValueError, match=r"\[i\] has 1 axes, got 2"):
        access_map("x[i] -> y[i]", (("x", 2),), (("y", 1),))


def test_results_are_as_long_as_the_operands_that_have_their_dimensions() -> None:
    found = access_map(PRODUCT, (("left", 4), ("right", 3)), (("result", UNKNOWN),))
    assert result_sizes(found, [(2, 1, 3, 4), (7, 4, 5)]) == [(2, 7, 3, 5)]
    with pytest.raises(VerifyException, match=r"dimension '\*k' is 4 and 6 long"):
        result_sizes(found, [(2, 1, 3, 4), (7, 6, 5)])
    moved = access_map("x[i, *j] -> y[j, i]", (("x", 2),), (("y", UNKNOWN),))
    assert result_sizes(moved, [(2, 3)]) == [(3, 2)]
    with pytest.raises(VerifyException, match="no operand says how long k is"):
        result_sizes(access_map("x[i] -> y[i, k]", (("x", 1),), (("y", 2),)), [(2,)])
    with pytest.raises(ValueError, match="does not say how many axes a result has"):
        access_map("x[i, *] -> y[i, *]", (("x", 3),), (("y", UNKNOWN),))


@pytest.mark.parametrize("name", ROWS)
def test_maps_fit_the_types_of_results(name: str) -> None:
    """A dimension without a star is as long in results as in operands."""
    own, op, arrays = own_of(ROWS[name])
    found, sizes = op.access_map(), dict[str, int]()
    for axes, shape in zip(found.operands, (array.shape for array in arrays), strict=True):
        for dimension, size in zip(axes, shape, strict=True):
            sizes[dimension] = max(size, sizes.get(dimension, 0))
    for axes, result in zip(found.results, op.results, strict=True):
        for dimension, size in zip(axes, shape_of(result), strict=True):
            if not is_starred(dimension) and dimension in sizes and own.operator is not GatherElementsOp:
                assert size == sizes[dimension] or (is_free(dimension) and sizes[dimension] == 1)


def test_no_operator_lacks_a_map() -> None:
    members: dict[str, Any] = {"name": "glow_high.strange", "input": operand_def(TENSOR), "result": result_def(TENSOR)}
    with pytest.raises(TypeError, match="StrangeOp has neither a NOTATION nor an access_map"):
        type("StrangeOp", (HighOp,), members)


def own_of(case: OperatorCase) -> tuple[Case, HighOp, Sequence[np.ndarray]]:
    """The case of an operator alone, the operator, and its operands."""
    own, *_ = case.cases()
    return own, operator_of(own), flat(own.operands)


@pytest.mark.parametrize("name", ROWS)
def test_indices_are_computed_by_themselves(name: str) -> None:
    """Along an independent axis, halves of operands give halves of results."""
    own, op, arrays = own_of(ROWS[name])
    expected = results(ROWS[name].cases()[0])
    for axis in op.access_map().independent():
        size = expected[0].shape[axis.results[0]]
        middle = (size + 1) // 2
        for begin, end in ((0, middle), (middle, size)):
            if begin == end:
                continue
            given = [
                array if at is None or array.shape[at] == 1 else np.take(array, range(begin, end), at)
                for array, at in zip(arrays, axis.operands, strict=True)
            ]
            properties = of_share(op, axis.results[0], end - begin, size)
            actual = results(Case(own.operator, *like(own.operands, given), **properties))
            for exact, found, at in zip(expected, actual, axis.results, strict=True):
                assert_same({"": np.take(exact, range(begin, end), at)}, {"": found}, ROWS[name].tolerance)


@pytest.mark.parametrize("name", ROWS)
def test_other_indices_are_not_read(name: str) -> None:
    """Along a dimension that an operand has without a star, results at other indices do not change with an index."""
    own, op, arrays = own_of(ROWS[name])
    expected, found = results(ROWS[name].cases()[0]), op.access_map()
    for number, (array, axes) in enumerate(zip(arrays, found.operands, strict=True)):
        for at, dimension in enumerate(axes):
            if is_starred(dimension) or array.shape[at] < 2 or axes.count(dimension) > 1:
                continue
            changed = np.moveaxis(array.copy(), at, 0)
            changed[0] = changed[1]
            given = [*arrays[:number], np.moveaxis(changed, 0, at), *arrays[number + 1 :]]
            actual = results(Case(own.operator, *like(own.operands, given), **of_share(op, 0, 1, 1)))
            for before, after, result in zip(expected, actual, found.results, strict=True):
                names = [plain(name) for name in result]
                if dimension in names:
                    others = range(1, before.shape[names.index(dimension)])
                    wanted, seen = (np.take(each, others, names.index(dimension)) for each in (before, after))
                    np.testing.assert_array_equal(seen, wanted)


def swaps(rank: int) -> Iterator[tuple[int, ...]]:
    """Permutations that make all others: neighbours trade places; and two that move all axes."""
    axes = tuple(range(rank))
    for first in range(rank - 1):
        yield (*axes[:first], first + 1, first, *axes[first + 2 :])
    if rank > 2:
        yield (*axes[1:], 0)
        yield (0, *axes[2:], 1)


@pytest.mark.parametrize("name", ROWS)
def test_transposed_operands_give_transposed_results(name: str) -> None:
    """The form on the origins of transposed operands gives the same as the operator on these."""
    own, op, arrays = own_of(ROWS[name])
    if op.regions or not arrays:
        return
    expected = results(ROWS[name].cases()[0])
    rank = expected[0].ndim if op.TRANSPOSES_ALL else arrays[0].ndim
    for permutation in swaps(rank):
        if (form := op.untransposed(permutation)) is None:
            continue
        count = len(arrays) if op.TRANSPOSES_ALL else 1
        origins = [
            array.reshape((1,) * (rank - array.ndim) + array.shape).transpose(inverse(permutation))
            for array in arrays[:count]
        ]
        if form.before is not None:
            origins = [array.transpose(form.before) for array in origins]
        properties: dict[str, Any] = dict(form.properties)
        properties.pop("operandSegmentSizes", None)
        given = like(own.operands, [*origins, *arrays[count:]])
        for exact, found in zip(expected, results(Case(own.operator, *given, **properties)), strict=True):
            assert_same({"": exact}, {"": found.transpose(form.permutation)}, ROWS[name].tolerance)


def test_axes_that_are_treated_alike_trade_places() -> None:
    """Leading axes of matrices may, where the other operand has none; rows and columns may not."""
    x, w = (Block(arg_types=[TensorType(f32, shape)]).args[0] for shape in ((2, 3, 4, 5), (5, 6)))
    product = MatMulOp.make(x, w)
    assert product.untransposed((1, 0, 2, 3)) is not None
    assert product.untransposed((0, 2, 1, 3)) is None
    both = MatMulOp.make(x, Block(arg_types=[TensorType(f32, (2, 3, 5, 6))]).args[0])
    assert both.untransposed((1, 0, 2, 3)) is None


def computed(own: Case, op: HighOp, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The first result of the operator of a case on other operands."""
    return results(Case(own.operator, *like(own.operands, arrays), **of_share(op, 0, 1, 1)))[0]


@pytest.mark.parametrize("name", ROWS)
def test_all_rows_are_computed_as_each(name: str) -> None:
    """What an operator computes of two rows at once is what it computes of each, whichever operands are rows."""
    own, op, arrays = own_of(ROWS[name])
    for rows in {len(arrays), 1} - {0}:
        is_row = [number < rows for number in range(len(arrays))]
        if (properties := op.over_rows(is_row, 2)) is None:
            continue
        others = [np.flip(array) if of_row else array for array, of_row in zip(arrays, is_row, strict=True)]
        expected = np.stack([computed(own, op, arrays), computed(own, op, others)])
        pairs = zip(arrays, others, is_row, strict=True)
        given = [np.stack([one, other]) if of_row else one for one, other, of_row in pairs]
        whole: dict[str, Any] = dict(properties)
        whole.pop("operandSegmentSizes", None)
        (found, *_) = results(Case(own.operator, *like(own.operands, given), **whole))
        assert_same({"": expected}, {"": found}, ROWS[name].tolerance)


def test_axes_of_rows_count_from_the_front() -> None:
    x = Block(arg_types=[TensorType(f32, (3, 4))]).args[0]
    assert SoftmaxOp.make(x, axis=0).over_rows([True], 5) == {"axis": to_attribute(1)}
    assert SoftmaxOp.make(x, axis=-1).over_rows([True], 5) == {"axis": to_attribute(-1)}
    assert ConvOp.make(*(Block(arg_types=[TensorType(f32, (1, 4, 4))]).args * 2)).over_rows([True, False], 5) is None
