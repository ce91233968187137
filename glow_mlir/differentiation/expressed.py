"""Gradients of operators defined by expressions: `generic`, and named operators with such a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects import expressions as ex
from glow_mlir.dialects.expressions import Number, Tensor
from glow_mlir.dialects.generic_form import generic_form, is_half, operand_tensor, rounded
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.glow_high.normalization import AlongAxis, LogSoftmaxOp, SoftmaxOp
from glow_mlir.dialects.glow_high.reductions import ReduceL2Op, ReduceLogSumExpOp, Reduction
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.dialects.staging import postorder
from glow_mlir.differentiation.adjoints import adjoints
from glow_mlir.differentiation.bodies import accesses_of, dimension_name, expression_of_form, substituted
from glow_mlir.differentiation.contributions import Contributions, by_operand, expanded_to, reshaped, transposed
from glow_mlir.differentiation.derivative_values import tensor_of
from glow_mlir.differentiation.indexed_reads import IndexedAccess
from glow_mlir.differentiation.windows import Known, Transposed, emitted, folded, separated
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes

Extents = Mapping[str, Size]
"""Dimensions → how long they are."""

NO_EXTENTS: Extents = {}

Formula = Callable[[Tensor, Tensor, Tensor, Sequence[str]], Tensor]
"""Computes a contribution from an operand, a result and its cotangent, along dimensions."""


def expressed(op: Expressed | GenericOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    By reverse mode on the expression: each contribution is a `generic` of operands, result and cotangent.

    Raises `UnsupportedError` for a part without a derivative.
    """
    found = Reversed.of(op, cotangent, emit)
    return by_operand(op, [partial(found.contribution, number) for number in range(len(op.inputs()))])


@dataclass(frozen=True)
class Reversed:
    """What a cotangent of a form of `generic` is for each of its reads."""

    op: Expressed | GenericOp
    known: Known
    """Its reads, result and cotangent, and folds of windows."""
    reads: Sequence[Tensor]
    cotangents: Sequence[Tensor | Number]
    """The cotangent of each read."""
    written: frozenset[str]
    """The dimensions of the result."""
    sizes: Mapping[str, Size]
    """How long each dimension is."""
    emit: Emitter

    @staticmethod
    def of(op: Expressed | GenericOp, cotangent: SSAValue, emit: Emitter) -> Reversed:
        """The cotangents for an operator and a cotangent of its result."""
        form, views = op.generic_form(), op.views()
        if any(form.borders):
            raise UnsupportedError(f"{op.name} has no derivative where what is beside its operand counts")
        *reads, written = accesses_of(form)
        sources = [reshaped(value, view, emit) for value, view in zip(op.read_values(), views, strict=True)]
        sizes = {dimension_name(number): size for number, size in enumerate(form.space(views))}
        y, g = (reshaped(value, form.result_sizes(views), emit) for value in (op.results[0], cotangent))
        operands = [
            operand_tensor(element_of(value), access, position)
            for position, (value, access) in enumerate(zip(sources, reads, strict=True))
        ]
        root = expression_of_form(form, operands)
        result = operand_tensor(root.element, replace(written, name="result"), len(operands))
        given = operand_tensor(root.element, replace(written, name="cotangent"), len(operands) + 1)
        values = (*sources, y, g)
        known: Known = dict(zip((*operands, result, given), zip(values, (*reads, written, written)), strict=True))
        names: Mapping[Tensor, Tensor] = {}
        if form.is_windowed:
            known, names = folded(root, known, lambda part, values: _generic(part, values, emit, sizes))
        found = adjoints(root, given, {**names, root: result})
        shares = [tensor_of(found.get(operand, 0), operand) for operand in operands]
        cotangents = [substituted(share, names) if isinstance(share, Tensor) else share for share in shares]
        return Reversed(op, known, operands, cotangents, frozenset(written.axes), sizes, emit)

    def contribution(self, number: int) -> SSAValue | None:
        """What an operand gets from all of its reads."""
        positions = (position for position, own in enumerate(self.op.read_operands()) if own == number)
        shares = [share for share in map(self._of_read, positions) if share is not None]
        return reduce(partial(self.emit, AddOp), shares) if shares else None

    def _of_read(self, position: int) -> SSAValue | None:
        """What an operand gets from one of its reads."""
        value, like = self.cotangents[position], self.reads[position]
        if not isinstance(value, Tensor):
            return None
        _, access = self.known[like]
        if access.indices:
            total = self._scattered(value, like)
        elif access.is_windowed:
            total = self._of_windows(value, like)
        else:
            total = computed(value, self.known, like, self.emit, self.sizes if self._is_windowed else NO_EXTENTS)
        return reshaped(total, sizes_of(self.op.read_values()[position]), self.emit)

    @property
    def _is_windowed(self) -> bool:
        return any(read.is_windowed for read in self.reads)

    def _of_windows(self, value: Tensor, like: Tensor) -> SSAValue:
        def compute(part: Tensor, axes: Sequence[str]) -> SSAValue:
            own = tuple(self.sizes[name] for name in axes)
            return computed_over(part, self.known, part.element, axes, own, self.emit, self.sizes)

        origin = self.known[like][0]
        windows = Transposed(like, self.known, self.written, self.sizes, self.emit, compute)
        total, values = windows.of(value)
        own = {**self.sizes, **dict(zip(windows.axes, sizes_of(origin), strict=True))}
        return computed_over(total, values, like.element, windows.axes, sizes_of(origin), self.emit, own)

    def _scattered(self, value: Tensor, like: Tensor) -> SSAValue:
        accesses = (self.known[read] for read in self.reads)
        by_name = {access.name: source for source, access in accesses}
        origin, access = self.known[like]
        read = IndexedAccess(access, by_name, self.sizes, self.emit)
        over = tuple(self.sizes[name] for name in read.dimensions)
        updates = computed_over(value, self.known, like.element, read.dimensions, over, self.emit)
        return read.scattered(updates, origin)


def computed(value: Tensor, known: Known, like: Tensor, emit: Emitter, extents: Extents = NO_EXTENTS) -> SSAValue:
    """
    Emit an expression as `generic`, with the sizes of an operand.

    It is constant along dimensions that it lacks; it has no dimensions other than the operand's.
    """
    origin, access = known[like]
    return computed_over(value, known, like.element, access.axes, sizes_of(origin), emit, extents)


def computed_over(
    value: Tensor,
    known: Known,
    element: Attribute,
    axes: Sequence[str],
    sizes: Sizes,
    emit: Emitter,
    extents: Extents = NO_EXTENTS,
) -> SSAValue:
    """
    Emit an expression as elements of a type over axes of these sizes; along those that it lacks, it is the same.

    `extents` has how long dimensions are that may be in sums alone.
    """
    root = rounded(value, element) if value.element != element else value
    own = [axis for axis in axes if axis in root.dimensions]
    if root in known and not known[root][1].indices and set(own) == set(known[root][1].axes):
        origin, access = known[root]
        narrow = transposed(origin, [access.axes.index(axis) for axis in own], emit)
    else:
        if any(part.is_windowed for part in postorder(root)):
            root, known = separated(root, known, lambda part, values: _generic(part, values, emit, extents))
        else:
            root, known = _with_statistics(root, known, emit)
        found = emitted(root, known, own, emit) if extents else None
        narrow = _generic(root, known, emit, extents, own) if found is None else found
    kept = tuple(size if axis in root.dimensions else 1 for axis, size in zip(axes, sizes, strict=True))
    return expanded_to(reshaped(narrow, kept, emit), sizes, emit)


def _generic(
    root: Tensor, known: Known, emit: Emitter, extents: Extents = NO_EXTENTS, axes: Sequence[str] | None = None
) -> SSAValue:
    """Emit an expression as `generic`, whose result has its dimensions in an order, by default that of their names."""
    parts = list(postorder(root))
    used = [part for part in parts if part.operand is not None]
    present = {name for part in used for name in part.dimensions}
    for name in sorted({name for part in parts for name in part.counted} - present):
        used.append(next(part for part in known if name in part.dimensions))  # It determines the size of the dimension.
    read = {index.name for part in used for index in known[part][1].indices}
    taken = set(used)
    used += [part for part in known if known[part][1].name in read and part not in taken]
    numbered = {part: replace(part, operand=position) for position, part in enumerate(used)}
    sources = [known[part][0] for part in used]
    accesses = tuple(known[part][1] for part in used)
    plain = {axis for access in accesses for axis in access.axes}
    named = dict.fromkeys(name for access in accesses for name in access.names)
    alone = {name: extents[name] for name in named if name in extents and name not in plain}
    order = sorted(root.dimensions) if axes is None else axes
    signature = Signature(accesses, Access("gradient", tuple(order)), alone)
    elements, shapes = [element_of(source) for source in sources], [sizes_of(source) for source in sources]
    form = generic_form(signature, substituted(root, numbered), elements, shapes)
    return emit.insert(GenericOp.of(sources, form, emit.location)).results[0]


def _with_statistics(root: Tensor, known: Known, emit: Emitter) -> tuple[Tensor, Known]:
    """
    An expression in which folds over dimensions other than the result's are replaced by operands.

    In a normalization these are row statistics, used when the gradient of a vector is summed over all rows: computed in
    the same `generic`, they would merge all rows into one.
    """
    with_folds: set[Tensor] = set()
    found: dict[Tensor, None] = {}
    for part in postorder(root):
        if part.along or any(inner in with_folds for inner in part.parts):
            with_folds.add(part)
        for inner in part.parts:
            is_broadcast = inner in with_folds and inner.dimensions < part.dimensions
            if is_broadcast and not inner.dimensions <= root.dimensions:
                found[inner] = None
    values, leaves = dict(known), dict[Tensor, Tensor]()
    for part in found:
        axes = tuple(sorted(part.dimensions))
        leaves[part] = Tensor(part.element, part.dimensions, "statistic", operand=len(values))
        values[leaves[part]] = _generic(part, known, emit), Access(f"statistic{len(values)}", axes)
    return substituted(root, leaves), values


def by_formula(op: AlongAxis | Reduction, cotangent: SSAValue, emit: Emitter, formula: Formula) -> Contributions:
    """The contribution of a formula of operand, result, cotangent, and the folded dimensions."""
    signature = op.notation()
    (read,), written = signature.operands, signature.result
    values = (op.input, read), (op.results[0], written), (cotangent, written)
    known = {
        operand_tensor(element_of(value), replace(access, name=name), position): (value, access)
        for position, (name, (value, access)) in enumerate(zip("xyg", values, strict=True))
    }
    x, y, g = known
    return {"input": lambda: computed(formula(_wide(x), _wide(y), _wide(g), op.folded()), known, x, emit)}


def _wide(part: Tensor) -> Tensor:
    """An operand, converted to f32 from half floats, because expressions are computed in f32."""
    return ex.converted(part, f32) if is_half(part.element) else part


@gradient(SoftmaxOp)
def softmax(op: SoftmaxOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """y·(g - Σ g·y); the subtraction from the operand that avoids overflow has no influence."""
    return by_formula(op, cotangent, emit, lambda x, y, g, axis: y * (g - ex.reduce_sum(g * y, axis)))


@gradient(LogSoftmaxOp)
def log_softmax(op: LogSoftmaxOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """g - exp(y)·Σ g."""
    return by_formula(op, cotangent, emit, lambda x, y, g, axis: g - ex.exp(y) * ex.reduce_sum(g, axis))


@gradient(ReduceL2Op)
def norm(op: ReduceL2Op, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """x·g divided by the norm, 0 where the norm is 0 (`torch.linalg.vector_norm`)."""

    def formula(x: Tensor, y: Tensor, g: Tensor, axes: Sequence[str]) -> Tensor:
        is_zero = ex.equal(y, 0.0)
        return x * ex.where(is_zero, 0.0, g / ex.where(is_zero, 1.0, y))

    return by_formula(op, cotangent, emit, formula)


@gradient(ReduceLogSumExpOp)
def log_sum_exp(op: ReduceLogSumExpOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """g·exp(x - y); the subtraction from the operand has no influence."""
    return by_formula(op, cotangent, emit, lambda x, y, g, axes: ex.exp(x - y) * g)
