"""`decompose-data-movement`: replace data movement by copies between views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from glow_mlir.analysis.accesses import Accesses
from glow_mlir.constants.storage import Storage, constant_array, scalar_attribute
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, PadOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.storage import ConstantOp, FunctionOp, SplatOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.instructions import instruction_of
from glow_mlir.dialects.glow_low.loop import part_of
from glow_mlir.dialects.glow_low.memory import (
    Buffer,
    CopyOp,
    FillOp,
    WeightOp,
    buffer_type,
    offset_of,
    root_of,
    strides_of,
)
from glow_mlir.dialects.properties import integer, ints, text
from glow_mlir.dialects.shapes import Shape, element_of, is_empty, normalize_axis, rank_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.ir.patterns import Kinds, Pattern, PatternPass, Walk
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes


@dataclass(frozen=True)
class Part:
    """A buffer, or a slice of one whose view is not built yet."""

    of: SSAValue
    type_: Buffer

    @staticmethod
    def at(of: SSAValue, start: Sequence[int], shape: Sizes, strides: Sequence[int] | None = None) -> Part:
        """The slice of `of` from an index on, with other strides if given."""
        own = strides_of(of)
        offset = offset_of(of) + sum(position * stride for position, stride in zip(start, own, strict=False))
        return Part(of, buffer_type(shape, element_of(of), tuple(own if strides is None else strides), offset))

    @staticmethod
    def whole(of: SSAValue) -> Part:
        """The whole buffer."""
        return Part.at(of, (), sizes_of(of))


@dataclass(frozen=True)
class Decomposition:
    """The decomposition of one instruction into copies."""

    op: Any
    """A `DerivedInstruction`, with the operands and properties of its operator."""
    rewriter: Rewriter

    def insert(self, op: Operation) -> None:
        """Insert an op in front of the instruction."""
        self.rewriter.emit.insert(op)

    def view(self, part: Part) -> SSAValue:
        """The buffer or view of `part`."""
        if part.type_ == part.of.type:
            return part.of
        view = part_of(part.of, part.type_, self.op.location)
        self.insert(view)
        return view.result

    def copy(self, target: Part, source: Part) -> None:
        """Copy one part to another, unless they are empty."""
        if not is_empty(target.type_):
            self.insert(CopyOp.of(self.view(target), self.view(source), location=self.op.location))


def _concat(it: Decomposition) -> bool:
    result = it.op.result
    axis = normalize_axis(integer(it.op.axis), rank_of(result))
    lengths = static(tuple(sizes_of(part)[axis] for part in it.op.parts))
    position = [0] * rank_of(result)
    for part, length in zip(it.op.parts, lengths, strict=True):
        it.copy(Part.at(result, position, sizes_of(part)), Part.whole(part))
        position[axis] += length
    return True


def _slice(it: Decomposition) -> bool:
    ranges, source = it.op.ranges(), it.op.input
    if any(taken.step < 0 for taken in ranges):
        return False
    strides = [taken.step * stride for taken, stride in zip(ranges, strides_of(source), strict=True)]
    part = Part.at(source, [taken.start for taken in ranges], sizes_of(it.op.result), strides)
    it.copy(Part.whole(it.op.result), part)
    return True


def _transpose(it: Decomposition) -> bool:
    source, own = it.op.input, strides_of(it.op.input)
    strides = [own[axis] for axis in ints(it.op.permutation)]
    it.copy(Part.whole(it.op.result), Part.at(source, (), sizes_of(it.op.result), strides))
    return True


def _expand(it: Decomposition) -> bool:
    source, shape = it.op.input, shape_of(it.op.result)
    own = [0 if size == 1 else stride for size, stride in zip(shape_of(source), strides_of(source), strict=True)]
    it.copy(Part.whole(it.op.result), Part.at(source, (), shape, [*[0] * (len(shape) - len(own)), *own]))
    return True


def _pad(it: Decomposition) -> bool:
    value = _fill_value(it) if text(it.op.mode) == "constant" else None
    if value is None:
        return False
    result, widths = it.op.result, it.op.widths()
    sides = list(border(sizes_of(result), widths))
    it.copy(Part.at(result, [before for before, _ in widths], sizes_of(it.op.input)), Part.whole(it.op.input))
    sides = [it.view(Part.at(result, start, shape)) for start, shape in sides]
    if sides:
        it.insert(FillOp.of(sides, properties={"value": value}, location=it.op.location))
    return True


def _fill_value(it: Decomposition) -> Attribute | None:
    """The fill value of a pad, if known."""
    element = element_of(it.op.result)
    if it.op.value is None:
        return scalar_attribute(0.0 if is_float(element) else 0, element)
    root = root_of(it.op.value)
    if isinstance(root.owner, WeightOp):
        constant = it.rewriter.storage.by_name[root.owner.storage_name]
        if isinstance(constant, ConstantOp):
            return scalar_attribute(constant_array(constant).reshape(-1)[offset_of(it.op.value)], element)
        return None
    writers = [access.op for access in it.rewriter.analysis(_accesses).to(root) if access.writes]
    if len(writers) == 1 and isinstance(writers[0], DerivedInstruction) and writers[0].OPERATOR is SplatOp:
        return writers[0].properties["value"]
    return None


def border(sizes: Sizes, widths: Sequence[tuple[int, int]]) -> Iterator[tuple[Shape, Sizes]]:
    """
    Start and sizes of the boxes that form the border of a pad: at most two per axis, disjoint.

    Raises `RunTimeSizeError` if a padded axis has a size that is known only at run time.
    """
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        inner = [(w, size - w - v) for (w, v), size in zip(widths[:axis], sizes, strict=False)]
        outer = [(0, size) for size in sizes[axis + 1 :]]
        (length,) = static(sizes[axis : axis + 1])
        for start, count in ((0, before), (length - after, after)):
            parts = [*inner, (start, count), *outer]
            if all(size != 0 for _, size in parts):
                yield tuple(position for position, _ in parts), tuple(size for _, size in parts)


def _accesses(function: FunctionOp, storage: Storage) -> Accesses:
    return Accesses.of(function.block)


@dataclass(frozen=True)
class DecomposeInstruction(Pattern):
    """Decompose an instruction that moves elements into copies; `decompose` emits them, or returns false."""

    name: str
    operator: type[HighOp]
    decompose: Callable[[Decomposition], bool]

    @property
    def roots(self) -> Kinds:
        return (instruction_of(self.operator),)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        assert isinstance(rewriter, Rewriter)
        if isinstance(op, DerivedInstruction) and is_plain(op) and self.decompose(Decomposition(op, rewriter)):
            rewriter.erase(op)


def is_plain(op: DerivedInstruction) -> bool:
    """Whether an instruction has neither kernel nor body yet."""
    return not (op.kernel or op.bodies)


PATTERNS = (
    DecomposeInstruction("decompose-concat", ConcatOp, _concat),
    DecomposeInstruction("decompose-expand", ExpandOp, _expand),
    DecomposeInstruction("decompose-pad", PadOp, _pad),
    DecomposeInstruction("decompose-slice", SliceOp, _slice),
    DecomposeInstruction("decompose-transpose", TransposeOp, _transpose),
)


@dataclass(frozen=True)
class DecomposeDataMovementPass(PatternPass):
    """
    Replace concats, slices, transposes, expands and constant pads by copies between views.

    A concat copies each operand to its slice of the result; a slice, transpose or expand copies from a view of its
    source; a pad copies to the interior of its result and fills the border (Glow's InsertTensor and ExtractTensor).
    Instructions that strides cannot express stay: slices that run backwards, pads that mirror or repeat, and pads with
    a run-time value. Instructions with a kernel or a body stay too.
    """

    name = "decompose-data-movement"
    WALKS = (Walk(PATTERNS),)
