"""
From expressions to stages: decides the parallel dimensions, the computation of each stage, and the rows that are kept.

Folds over the same space that do not depend on each other form a stage. Values that a later stage reads again are
recomputed, unless that takes a function such as `exp`: then they are kept as rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from xdsl.dialects import math as math_dialect
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.expressions import Number, Tensor, windowed_operands
from glow_mlir.dialects.scalar_builder import FALLING, FUNCTIONS, Scalar, ScalarBuilder
from glow_mlir.dialects.stages import RUNNING_FOLDS, IndicesOp, RowType, StageOp, YieldOp
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size


def postorder(root: Tensor, known: Collection[Tensor] = ()) -> Iterator[Tensor]:
    """The parts of an expression down to those in `known`, each once, before the parts that depend on it."""
    seen = set(known)
    waiting: list[tuple[Tensor, bool]] = [(root, False)]
    while waiting:
        part, is_ready = waiting.pop()
        if is_ready:
            yield part
        elif part not in seen:
            seen.add(part)
            waiting.append((part, True))
            waiting += [(inner, False) for inner in reversed(part.parts)]


def parallel_dimensions(root: Tensor, axes: Sequence[str], sizes: Mapping[str, Size]) -> list[str]:
    """
    The axes of a result that all folds have and none folds, in order.

    A fold that does not depend on an axis is computed once for the whole axis, so that the axis is not parallel; nor is
    an axis whose indices are counted at run time, or used as values.
    """
    parts = list(postorder(root))
    counted = {name for part in parts for name in part.counted if not isinstance(sizes[name], int)}
    counted |= {name for part in parts if part.word == "index" for name in part.dimensions}
    folds = [part for part in parts if part.along]
    return [
        axis for axis in axes if axis not in counted and all(axis in part.dimensions - part.along for part in folds)
    ]


@dataclass
class Staging:
    """
    Fills the body of a `generic` with the stages of an expression.

    `numbers` has the dimension of the index space for each name, `sizes` its size, `parallel` the names of parallel
    ones. The arguments of the block are the operands.
    """

    root: Tensor
    block: Block
    numbers: Mapping[str, int]
    parallel: frozenset[str]
    sizes: Mapping[str, Size]
    may_keep: bool = True
    """Whether rows may be kept for later stages."""
    made: dict[Tensor, SSAValue] = field(default_factory=dict[Tensor, SSAValue])
    """The rows and scalars made so far."""

    def run(self) -> None:
        """Add the stages and the yield of the body."""
        for part in postorder(self.root):
            if part.operand is not None:
                self.made[part] = self.block.args[part.operand]
            if part.word == "size":
                self.made[part] = self._count(part)
            if part.word == "index":
                row = RowType.over(part.element, [self.numbers[name] for name in part.dimensions])
                self.made[part] = _added(self.block, IndicesOp.create(result_types=[row])).results[0]
        left: list[Tensor] = [part for part in postorder(self.root) if part.along]
        while left:
            # A row is kept by the smallest stage that reads it.
            first = min([part for part in left if self._is_ready(part)], key=lambda part: len(self._space(part)))
            self._fold([first, *(part for part in left if part is not first and self._joins(part, first))])
            left = [part for part in left if part not in self.made]
        result = self._scalar(self.root) if not self.rows(self.root) else self._row(self.root)
        self.block.add_op(YieldOp.create(operands=[result]))

    def _count(self, part: Tensor) -> SSAValue:
        """The number of indices of some dimensions: a constant, or counted if it is known at run time only."""
        count = math.prod(size for name in part.counted if isinstance(size := self.sizes[name], int))
        over = sorted(self.numbers[name] for name in part.counted if not isinstance(self.sizes[name], int))
        if not over:
            return ScalarBuilder(lambda op: _added(self.block, op)).constant(count, part.element).value
        body = Block()
        each = ScalarBuilder(lambda op: _added(body, op)).constant(count, part.element)
        body.add_op(YieldOp.create(operands=[each.value]))
        stage = StageOp.of([], over, over, ["add"], body)
        self.block.add_op(stage)
        return stage.results[0]

    def rows(self, part: Tensor) -> frozenset[str]:
        """The dimensions of a part that are not parallel."""
        return part.dimensions - self.parallel

    def _is_ready(self, fold: Tensor) -> bool:
        """Whether all folds that a fold depends on are made."""
        return all(part in self.made for part in postorder(fold.parts[0]) if part.along)

    def _joins(self, fold: Tensor, first: Tensor) -> bool:
        """Whether a fold can be in the stage of another one."""
        is_alike = fold.along == first.along and self._space(fold) == self._space(first)
        is_running = fold.word in RUNNING_FOLDS or first.word in RUNNING_FOLDS
        skips, others = (set(windowed_operands(part.parts[0])) for part in (fold, first))
        return is_alike and skips == others and not is_running and self._is_ready(fold)

    def _space(self, part: Tensor) -> frozenset[str]:
        """The dimensions over which the stage of a fold runs."""
        return self.rows(part) | part.along

    def _fold(self, folds: Sequence[Tensor]) -> None:
        """The stage of some folds, which keeps what later stages need."""
        space = self._space(folds[0])
        is_running = folds[0].word in RUNNING_FOLDS
        kept = [
            part
            for part in self._kept
            if not is_running and self.rows(part) == space and part not in self.made and _in(part, folds)
        ]
        stage = self._stage([part.parts[0] for part in folds], kept, space, folds)
        self.made |= dict(zip((*folds, *kept), stage.results, strict=True))

    def _row(self, part: Tensor) -> SSAValue:
        """The row of an expression that is not a fold; an operand is copied."""
        if part in self.made and part.operand is None:
            return self.made[part]
        return self._stage([], [part], self.rows(part), ()).results[0]

    @cached_property
    def _kept(self) -> list[Tensor]:
        """The rows that take a function and that more than one stage reads."""
        if not self.may_keep:
            return []
        counts: dict[Tensor, int] = {}
        for root in [part.parts[0] for part in postorder(self.root) if part.along] + [self.root]:
            for part in self._inline(root):
                counts[part] = counts.get(part, 0) + 1
        dear = [part for part, count in counts.items() if count > 1 and self.rows(part) and _is_dear(part)]
        inner = {below for part in dear for below in self._inline(part) if below is not part}
        return [part for part in dear if part not in inner]

    def _inline(self, root: Tensor) -> Iterator[Tensor]:
        """The parts of an expression down to folds and operands."""
        seen: set[Tensor] = set()
        waiting = [root]
        while waiting:
            part = waiting.pop()
            if part not in seen and not part.along and part.operand is None and part.word != "index":
                seen.add(part)
                yield part
                waiting += part.parts

    def _stage(
        self, folded: Sequence[Tensor], kept: Sequence[Tensor], space: frozenset[str], folds: Sequence[Tensor]
    ) -> StageOp:
        """Add the stage that folds some values and keeps others."""
        yielded = [*folded, *kept]
        leaves = list(dict.fromkeys(leaf for part in yielded for leaf in self._leaves(part)))
        # An operand that broadcasts along all row dimensions has one element.
        rows = {leaf: self.made[leaf] for leaf in leaves if leaf in self.made}
        rows = {leaf: value for leaf, value in rows.items() if isinstance(value.type, RowType)}
        scalars = {leaf: self._scalar(leaf) for leaf in leaves if leaf not in rows}
        body = Block(arg_types=[signless(leaf.element) for leaf in rows])
        known = scalars | dict(zip(rows, body.args, strict=True))
        builder = ScalarBuilder(lambda op: _added(body, op))
        body.add_op(YieldOp.create(operands=_computed(yielded, known, builder)))
        over = sorted(self.numbers[name] for name in space)
        along = sorted(self.numbers[name] for fold in folds[:1] for name in fold.along)
        stage = StageOp.of(list(rows.values()), over, along, [fold.word for fold in folds], body)
        self.block.add_op(stage)
        return stage

    def _leaves(self, root: Tensor) -> Iterator[Tensor]:
        """The inputs of the stage of an expression: existing rows, and values without row dimensions."""
        waiting = [root]
        while waiting:
            part = waiting.pop()
            if part in self.made or not self.rows(part):
                yield part
            else:
                waiting += reversed(part.parts)

    def _scalar(self, part: Tensor) -> SSAValue:
        """A value without row dimensions, computed once for a whole row."""
        builder = ScalarBuilder(lambda op: _added(self.block, op))
        for inner in postorder(part):
            if inner not in self.made and not self.rows(inner):
                known = {below: self.made[below] for below in inner.parts}
                (self.made[inner],) = _computed([inner], known, builder)
        return self.made[part]


def _in(part: Tensor, folds: Sequence[Tensor]) -> bool:
    """Whether one of the folds reads a part."""
    return any(part in set(postorder(fold)) for fold in folds)


def _is_dear(part: Tensor) -> bool:
    """Whether an operation is expensive enough to keep its result in a row."""
    return part.word == "power" or (part.word in FUNCTIONS and not FUNCTIONS[part.word].is_exact)


def _added(block: Block, op: Operation) -> Operation:
    block.add_op(op)
    return op


def _computed(roots: Sequence[Tensor], known: Mapping[Tensor, SSAValue], builder: ScalarBuilder) -> list[SSAValue]:
    """Build the ops of expressions, down to the values in `known`; shared parts are computed once."""
    values: dict[Tensor, Scalar] = {part: builder.wrap(value, part.element) for part, value in known.items()}
    for part in (part for root in roots for part in postorder(root, known)):
        if part not in values:
            arguments = [values[item] if isinstance(item, Tensor) else item for item in part.arguments]
            values[part] = _built(part.word, arguments, part.element, builder)
            if _is_falling(part):
                _mark_falling(values[part].value.owner)
    return [values[root].value for root in roots]


def _is_falling(part: Tensor) -> bool:
    """Whether a value is the exponential of elements minus their maximum."""
    if part.word != "exp" or part.parts[0].word != "sub":
        return False
    x, peak = part.parts[0].arguments
    return isinstance(peak, Tensor) and peak.word in ("maximumf", "maxnumf") and peak.parts[0] is x


def _mark_falling(op: Operation | Block) -> None:
    """Mark an exponential: its operand is at most 0, and denormal results may be 0."""
    assert isinstance(op, math_dialect.ExpOp)
    op.fastmath = FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])
    op.attributes[FALLING] = UnitAttr()


def _built(word: str, arguments: Sequence[Scalar | Number], element: Attribute, builder: ScalarBuilder) -> Scalar:
    """One operation on scalars and numbers."""
    if word == "select":
        condition, yes, no = arguments
        assert isinstance(condition, Scalar)
        return builder.select(condition, yes, no)
    if word == "one":
        return builder.constant(next(item for item in arguments if not isinstance(item, Scalar)), element)
    like = next(argument for argument in arguments if isinstance(argument, Scalar))
    scalars = [builder.lift(argument, like) for argument in arguments]
    if word == "convert":
        return builder.convert(like, element)
    if word == "negate":
        return builder.negate(like)
    if word == "power":
        return builder.power(*scalars)
    if word == "fma":
        return builder.fma(*scalars)
    if word in FUNCTIONS:
        return builder.unary(word, like)
    if word in COMPARISONS:
        return builder.compare(word, *scalars)
    return builder.binary(word, *scalars)


COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
"""The words of comparisons."""
