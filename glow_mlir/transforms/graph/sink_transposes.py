"""`sink-transposes`: move transposes towards the outputs, where they merge and cancel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from glow_mlir.backends.interface import costs_of
from glow_mlir.constants.deferred import Reshaped, Transposed
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import PadOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.storage import FunctionOp, GetOp
from glow_mlir.dialects.glow_high.transposition import Untransposed, composed, identity, inverse, keeps_order, moved
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import Shape, has_one_element, rank_of, shape_of, size_of, sizes_of
from glow_mlir.dialects.sizes import largest, static
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.exchanged_factors import exchanged_factors
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes

LOOK_AHEAD = 16
"""Maximum number of operators visited in search of an inverse transpose."""

WORTH_RAISING = 2
"""The size ratio required to move a transpose back up; keeps transposes behind the border of a pad."""


class CancelTransposes(Pattern):
    """Remove a transpose that, alone or with the one it reads, is the identity."""

    @rooted
    def match_and_rewrite(self, op: TransposeOp, rewriter: Rewriter, /) -> None:
        source, permutation = transposed_source(op)
        if permutation == identity(len(permutation)):
            rewriter.replace(op, (), [source])


class TransposeToReshape(Pattern):
    """Replace a transpose that, with the one it reads, moves only unit axes by a reshape."""

    @rooted
    def match_and_rewrite(self, op: TransposeOp, rewriter: Rewriter, /) -> None:
        source, permutation = transposed_source(op)
        if keeps_order(sizes_of(source), permutation):
            rewriter.replace(op, ReshapeOp.make(source, shape=shape_of(op.result)))


class MergeTransposes(Pattern):
    """Merge two transposes into one."""

    @rooted
    def match_and_rewrite(self, op: TransposeOp, rewriter: Rewriter, /) -> None:
        source, permutation = transposed_source(op)
        if source is not op.input:
            rewriter.replace(op, TransposeOp.make(source, permutation=permutation))


class SinkTranspose(Pattern):
    """Apply an operator to the origins of transposed operands, and transpose its results."""

    @rooted
    def match_and_rewrite(self, op: HighOp, rewriter: Rewriter, /) -> None:
        operands, storage = concerned(op), rewriter.storage
        permutation = common_permutation(op, operands, storage)
        form = None if permutation is None else op.untransposed(permutation)
        if permutation is None or form is None:
            return
        if form.before is not None and not meets_inverse(op.results[0], form.permutation, storage):
            return
        emit = rewriter.emit
        origins = [origin(value, permutation, emit) for value in operands]
        if form.before is not None:
            origins = [emit(TransposeOp, value, permutation=form.before) for value in origins]
        new = emit.insert(rebuilt(op, origins, form))
        rewriter.replace(op, (), [emit(TransposeOp, result, permutation=form.permutation) for result in new.results])


class RaiseTranspose(Pattern):
    """Move a transpose up to the smallest tensor among the operators above it without other readers."""

    @rooted
    def match_and_rewrite(self, op: TransposeOp, rewriter: Rewriter, /) -> None:
        chain = operators_above(op, rewriter.storage)
        sizes = [0 if is_free(op, value, rewriter.storage) else size_of(value.type) for _, value in chain]
        if not chain:
            return
        ratio = 1 if saves_copy(op, chain, rewriter.function) else WORTH_RAISING
        if ratio * min(sizes) > size_of(op.input.type):
            return
        permutation = ints(op.permutation)
        back = inverse(permutation)
        chain = chain[: sizes.index(min(sizes)) + 1]
        owner, source = chain[-1]
        value = rewriter.emit_before(owner, op.location)(TransposeOp, source, permutation=permutation)
        for owner, source in reversed(chain):
            emit = rewriter.emit_before(owner)
            form = owner.untransposed(back)
            assert form is not None
            operands = [value if other is source else origin(other, back, emit) for other in concerned(owner)]
            value = emit.insert(rebuilt(owner, operands, form)).results[0]
        rewriter.replace(op, (), [value])
        for owner, _ in chain:
            rewriter.erase(owner)


@dataclass(frozen=True)
class SinkTransposesPass(PatternPass):
    """
    Move transposes below operators that can compute on the origins of transposed operands, and merge those that meet
    (Glow's SinkCode for Transpose).

    Operators define by `untransposed` whether and how they can. If one operand is transposed, the others must be
    transposed by the same permutation, be constant, or have a transpose that is a reshape. A transpose that did not
    cancel moves back above operators that enlarged its tensor (Glow's HoistCode): at least twice, or where another
    reader transposes the smaller tensor in the same way, and above pads of what is given: it writes their interior. So
    does one that can exchange the factors of a product.
    """

    name = "sink-transposes"
    WALKS = (
        Walk((CancelTransposes(), TransposeToReshape(), MergeTransposes(), SinkTranspose())),
        Walk((RaiseTranspose(),), backward=True),
    )


def saves_copy(op: TransposeOp, chain: Sequence[tuple[HighOp, SSAValue]], function: FunctionOp) -> bool:
    """
    Whether a transpose above some pads writes into their interior, so that no other copy is needed.

    That is so for values that nothing computes: else what computes them writes them there. Few channels are read as
    planes.
    """
    if function.assigned is None:
        return False
    _, source = chain[-1]
    is_given = not isinstance(source.owner, HighOp) or isinstance(source.owner, GetOp)
    is_few = largest(sizes_of(op.result)[-1]) <= costs_of(function.target).plane_channels
    return is_given and not is_few and all(isinstance(owner, PadOp) for owner, _ in chain)


def transposed_source(op: TransposeOp) -> tuple[SSAValue, Shape]:
    """The source of a transpose, through another transpose in front of it, and the combined permutation."""
    permutation, inner = ints(op.permutation), op.input.owner
    if isinstance(inner, TransposeOp):
        return inner.input, composed(ints(inner.permutation), permutation)
    return op.input, permutation


def concerned(op: HighOp) -> Sequence[SSAValue]:
    """The operands that `untransposed` permutes."""
    return op.operands if op.TRANSPOSES_ALL else op.operands[:1]


def rebuilt(op: HighOp, operands: Sequence[SSAValue], form: Untransposed) -> HighOp:
    """`op` with other leading operands and the properties of `form`."""
    return type(op).inferred([*operands, *op.operands[len(operands) :]], form.properties, op.location)


def common_permutation(op: HighOp, operands: Sequence[SSAValue], storage: Storage) -> Shape | None:
    """The permutation of all operands that are or can be transposed, at least one of them really; else `None`."""
    transposes = [(value, value.owner) for value in operands if isinstance(value.owner, TransposeOp)]
    if not transposes:
        return None
    rank = rank_of(op.results[0]) if op.TRANSPOSES_ALL else rank_of(operands[0])
    (found, *others) = {lifted(ints(transpose.permutation), rank) for _, transpose in transposes}
    if others or not all(is_origin_known(value, found, storage) for value in operands):
        return None
    return found


def lifted(permutation: Shape, rank: int) -> Shape:
    """The permutation extended by new leading axes, up to `rank`, as broadcasting adds them."""
    leading = rank - len(permutation)
    return (*identity(leading), *(leading + axis for axis in permutation))


def padded_sizes(value: SSAValue, rank: int) -> Sizes:
    """The sizes extended by unit axes in front, as broadcasting adds them."""
    return (1,) * (rank - rank_of(value)) + sizes_of(value)


def is_origin_known(value: SSAValue, permutation: Shape, storage: Storage) -> bool:
    """Whether `value` is the transpose, by `permutation`, of a value that is free to obtain."""
    if isinstance(value.owner, TransposeOp):
        return lifted(ints(value.owner.permutation), len(permutation)) == permutation
    sizes = padded_sizes(value, len(permutation))
    return keeps_order(sizes, inverse(permutation)) or storage.is_constant(value)


def origin(value: SSAValue, permutation: Shape, emit: Emitter) -> SSAValue:
    """The operand whose transpose by `permutation` is `value`."""
    if isinstance(value.owner, TransposeOp):
        return value.owner.input
    if has_one_element(value):
        return value
    shape = static(padded_sizes(value, len(permutation)))
    array = emit.storage.deferred(value)
    if array is None:
        return emit(ReshapeOp, value, shape=moved(shape, permutation))
    transposed = Transposed(Reshaped(array, shape), inverse(permutation))
    return emit.constant(transposed, value.name_hint or "constant")


def meets_inverse(value: SSAValue, permutation: Shape, storage: Storage) -> bool:
    """Whether a transpose by `permutation` moved in front of the readers of `value` would cancel with one below."""
    pending = [value]
    for _ in range(LOOK_AHEAD):
        if not pending:
            return False
        value = pending.pop()
        for use in value.uses:
            user = use.operation
            if isinstance(user, TransposeOp):
                if keeps_order(moved(sizes_of(value), permutation), composed(permutation, ints(user.permutation))):
                    return True
            elif passes_through(user, value, permutation, storage):
                pending.append(user.results[0])
    return False


def passes_through(user: Operation, value: SSAValue, permutation: Shape, storage: Storage) -> bool:
    """Whether a transpose of the operand `value` can become one of the result by the same permutation."""
    if not isinstance(user, HighOp) or len(user.results) != 1 or rank_of(user.results[0]) != len(permutation):
        return False
    operands = concerned(user)
    if value not in operands or rank_of(value) != len(permutation):
        return False
    form = user.untransposed(permutation)
    if form is None or form.before is not None or form.permutation != permutation:
        return False
    return all(other is value or is_origin_known(other, permutation, storage) for other in operands)


def is_free(op: TransposeOp, value: SSAValue, storage: Storage) -> bool:
    """Whether the transpose of `value` exists, or is a product that needs no transpose."""
    return has_equal(value, op) or exchanged_factors(op, value, storage) is not None


def has_equal(value: SSAValue, op: TransposeOp) -> bool:
    """Whether another reader of `value` transposes it like `op`."""
    others = (use.operation for use in value.uses if use.operation is not op)
    return any(isinstance(other, TransposeOp) and other.permutation == op.permutation for other in others)


def operators_above(op: TransposeOp, storage: Storage) -> list[tuple[HighOp, SSAValue]]:
    """The operators above `op` that can compute on the transpose of one operand, each with this operand."""
    back = inverse(ints(op.permutation))
    chain: list[tuple[HighOp, SSAValue]] = []
    value = op.input
    while value.has_one_use() and isinstance(value.owner, HighOp):
        owner = value.owner
        unknown = [operand for operand in concerned(owner) if not is_origin_known(operand, back, storage)]
        sources = list(dict.fromkeys(unknown))
        if len(sources) != 1 or not passes_through(owner, sources[0], back, storage):
            break
        value = sources[0]
        chain.append((owner, value))
    return chain
