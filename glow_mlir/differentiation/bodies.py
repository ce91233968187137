"""Operator bodies (scalar ops, and stages of `generic`) as expressions, which can be differentiated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap, AffineSymExpr

from glow_mlir.dialects.affine_maps import terms_of
from glow_mlir.dialects.element_types import is_float, is_integer, number_width
from glow_mlir.dialects.expressions import Number, Tensor, converted, ones_of, windowed_operands
from glow_mlir.dialects.folds import FOLDS
from glow_mlir.dialects.generic_form import GenericForm
from glow_mlir.dialects.index_notation import Access, Sum
from glow_mlir.dialects.scalar_builder import BINARY, FUNCTIONS
from glow_mlir.dialects.stages import RUNNING_FOLDS, IndicesOp, StageOp, YieldOp, element_at
from glow_mlir.dialects.staging import COMPARISONS, postorder
from glow_mlir.errors import UnsupportedError

Part = Tensor | Number

_WORDS: dict[type[Operation], str] = {
    **{kind: word for word, kinds in BINARY.items() for kind in kinds},
    arith.NegfOp: "negate",
    arith.SelectOp: "select",
    math.PowFOp: "power",
    math.IPowIOp: "power",
    math.FmaOp: "fma",
    **{function.operation: word for word, function in FUNCTIONS.items()},
}
"""Op → its word in expressions."""

_CONVERSIONS = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
    arith.FPToSIOp,
    arith.FPToUIOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
)


def expression_of_scalar(op: Operation, arguments: Sequence[Part]) -> Part:
    """
    The expression of a scalar op; a constant is a number.

    Raises `UnsupportedError` for an op that expressions cannot represent.
    """
    if isinstance(op, arith.ConstantOp):
        assert isinstance(op.value, FloatAttr | IntegerAttr)
        return op.value.value.data
    dimensions = frozenset(name for part in arguments if isinstance(part, Tensor) for name in part.dimensions)
    if isinstance(op, arith.CmpfOp | arith.CmpiOp):
        return Tensor(i1, dimensions, _comparison(op), tuple(arguments))
    if isinstance(op, _CONVERSIONS):
        return Tensor(op.results[0].type, dimensions, "convert", tuple(arguments))
    if (word := _WORDS.get(type(op))) is None:
        raise UnsupportedError(f"{op.name} has no derivative")
    return Tensor(_element(op, arguments), dimensions, word, tuple(arguments))


def _comparison(op: arith.CmpfOp | arith.CmpiOp) -> str:
    """The word of a comparison; its predicate also determines the handling of NaN or signs."""
    names = arith.CMPF_COMPARISON_OPERATIONS if isinstance(op, arith.CmpfOp) else arith.CMPI_COMPARISON_OPERATIONS
    predicate = names[op.predicate.value.data]
    word = predicate if predicate in COMPARISONS else predicate[1:]
    if word not in COMPARISONS:
        raise UnsupportedError(f"the comparison '{predicate}' has no derivative")
    return word


def _element(op: Operation, arguments: Sequence[Part]) -> Attribute:
    """The element type of a result, unsigned if the operands are, because ops have only widths."""
    computed = op.results[0].type
    if not is_integer(computed):
        return computed
    given = (part.element for part in arguments if isinstance(part, Tensor))
    fits = (element for element in given if is_integer(element) and number_width(element) == number_width(computed))
    return next(fits, computed)


def expressions_of_block(block: Block, known: Mapping[SSAValue, Part]) -> dict[SSAValue, Part]:
    """The expression of each value in a block of scalar ops and stages, given those of the values it reads."""
    found = dict(known)
    for op in block.ops:
        if isinstance(op, StageOp):
            found |= _expressions_of_stage(op, found)
        elif isinstance(op, IndicesOp):
            name = dimension_name(op.dimension)
            found[op.row] = Tensor(element_at(op.row.type), frozenset({name}), "index")
        elif not isinstance(op, YieldOp):
            found[op.results[0]] = expression_of_scalar(op, [found[operand] for operand in op.operands])
    return found


def accesses_of(form: GenericForm) -> list[Access]:
    """
    The access of each operand of a form, then of its result, by dimension names.

    An operand used only as index has dimensions of its own in place of numbers.
    """
    indices = [str(Access(operand_name(read.operand), _index_axes(read.affine))) for read in form.reads]
    borders = form.borders or ((),) * len(form.maps)
    found = [
        Access(operand_name(number), _axes(affine, indices), borders[number] if number < len(borders) else ())
        for number, affine in enumerate(form.maps)
    ]
    for number in {read.operand for read in form.reads}:
        if form.block.args[number].first_use is None:
            name, axes = found[number].name, found[number].axes
            own = (f"{name}_{place}" if axis.isdigit() else axis for place, axis in enumerate(axes))
            found[number] = Access(name, tuple(own), found[number].borders)
    return found


def operand_name(number: int) -> str:
    """The name of a form's operand."""
    return f"x{number}"


def _axes(affine: AffineMap, indices: Sequence[str]) -> tuple[str, ...]:
    """The axes of a map, with elements in place of its symbols."""
    return tuple(map(partial(_axis, indices=indices), affine.results))


def _axis(expression: AffineExpr, indices: Sequence[str]) -> str:
    if isinstance(expression, AffineDimExpr):
        return dimension_name(expression.position)
    terms = terms_of(expression)
    if terms is not None and terms.is_sum and terms.steps:
        return str(Sum({dimension_name(d): times for d, times in terms.steps.items()}, terms.offset))
    return indices[expression.position] if isinstance(expression, AffineSymExpr) else "1"


def _index_axes(affine: AffineMap) -> tuple[str, ...]:
    """The axes of the map of an index operand, including its numbers."""
    axes = zip(affine.results, _axes(affine, ()), strict=True)
    return tuple(str(e.value) if isinstance(e, AffineConstantExpr) else axis for e, axis in axes)


def dimension_name(number: int) -> str:
    """The name of a dimension of the index space."""
    return f"d{number}"


def expression_of_form(form: GenericForm, operands: Sequence[Tensor]) -> Tensor:
    """The result of a form as an expression of its operands."""
    found = expressions_of_block(form.block, dict(zip(form.block.args, operands, strict=True)))
    last = form.block.last_op
    assert last is not None
    root = found[last.operands[0]]
    assert isinstance(root, Tensor), "the result of a form depends on its operands"
    return converted(root, form.element)


def _expressions_of_stage(stage: StageOp, known: Mapping[SSAValue, Part]) -> dict[SSAValue, Part]:
    """The expressions of the results of a stage: folds and stored rows."""
    block = stage.body.block
    inputs = [known[value] for value in stage.inputs]
    inside = expressions_of_block(block, {**known, **dict(zip(block.args, inputs, strict=True))})
    windows = tuple(part for part in inputs if isinstance(part, Tensor) and part.is_windowed)
    along = frozenset(map(dimension_name, stage.folded))
    found: dict[SSAValue, Part] = {}
    for index, (value, result) in enumerate(zip(stage.yielded, stage.results, strict=True)):
        part = inside[value]
        if index >= len(stage.words):
            found[result] = part
            continue
        bounded = _bounded(part, windows, value.type)
        found[result] = _folded(bounded, stage.words[index], along, element_at(result.type))
    return found


def _bounded(part: Part, windows: Sequence[Tensor], element: Attribute) -> Part:
    """What is folded over windows of some operands, so that it is there where all of these are."""
    if not windows or (isinstance(part, Tensor) and {*windows} == {*windowed_operands(part)}):
        return part
    ones = ones_of(windows, element)
    return ones if not isinstance(part, Tensor) and part == 1 else ones * part


def _folded(part: Part, word: str, along: frozenset[str], element: Attribute) -> Part:
    """A value folded along dimensions; if it lacks some, a sum becomes a product with their sizes."""
    if word in RUNNING_FOLDS:
        raise UnsupportedError(f"'{word}' has no derivative")
    own = part.dimensions if isinstance(part, Tensor) else frozenset[str]()
    if missing := along - own:
        fold = FOLDS.get((word, not is_float(element)))
        if word == "add":
            count = Tensor(element, frozenset(), "size", counted=missing)
            part = Tensor(element, own, "mul", (count, part))
        elif fold is None or not fold.kind.is_idempotent:
            raise UnsupportedError(f"'{word}' of equal elements has no derivative")
    if not along & own:
        return part
    return Tensor(element, own - along, word, (part,), along=along & own)


def substituted(root: Tensor, instead: Mapping[Tensor, Tensor]) -> Tensor:
    """An expression with some parts replaced."""
    made: dict[Tensor, Tensor] = dict(instead)
    for part in postorder(root, made):
        arguments = tuple(made[item] if isinstance(item, Tensor) else item for item in part.arguments)
        same = all(new is old for new, old in zip(arguments, part.arguments, strict=True))
        made[part] = part if same else replace(part, arguments=arguments)
    return made[root]
