"""`sink-transposes`: move transposes towards the outputs, where they meet others and vanish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.transposition import Untransposed, composed, identity, inverse, keeps_order, moved
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import Shape, rank_of, shape_of, size_of
from glow_mlir.ir import statistics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace

LOOK_AHEAD = 16
"""How many operators are visited in search of a transpose that undoes another one."""

WORTH_RAISING = 2
"""How much smaller a tensor has to be for its transpose to go back; so a transpose stays behind the border of a pad."""


@dataclass(frozen=True)
class SinkTransposesPass(ModulePass):
    """
    Move transposes below operators that compute as well on the origins of transposed operands, and merge those that
    meet (Glow's SinkCode for Transpose).

    An operator says by `untransposed` whether and how it does. Where one operand is transposed, the others have to be
    transposed by the same permutation, constant, or such that their transpose is a reshape. A transpose that met none
    goes back above operators that made its tensor larger (Glow's HoistCode): at least twice as large, or where the
    smaller tensor is transposed in the same way for another reader.
    """

    name = "sink-transposes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, TransposeOp):
                    merge_transpose(candidate, storage)
                elif isinstance(candidate, HighOp):
                    sink_below(candidate, storage)
            erase_dead(function.block)
            raise_transposes(function.block, storage)


def merge_transpose(op: TransposeOp, storage: Storage) -> None:
    """Merge a transpose with the one it reads; drop identities; one that moves only unit axes is a reshape."""
    permutation = ints(op.permutation)
    source = op.input
    if isinstance(source.owner, TransposeOp):
        permutation = composed(ints(source.owner.permutation), permutation)
        source = source.owner.input
    emit = Emitter(op, storage)
    if permutation == identity(len(permutation)):
        replace(op, [source])
        statistics.count("identities erased")
    elif keeps_order(shape_of(source), permutation):
        replace(op, [emit(ReshapeOp, source, shape=shape_of(op.result))])
        statistics.count("transposes turned into reshapes")
    elif source is not op.input:
        replace(op, [emit(TransposeOp, source, permutation=permutation)])
        statistics.count("transposes merged")


def concerned(op: HighOp) -> Sequence[SSAValue]:
    """The operands that `untransposed` is about."""
    return op.operands if op.TRANSPOSES_ALL else op.operands[:1]


def sink_below(op: HighOp, storage: Storage) -> None:
    """Rewrite `op` on the origins of its transposed operands, and transpose its results."""
    operands = concerned(op)
    permutation = common_permutation(op, operands, storage)
    form = None if permutation is None else op.untransposed(permutation)
    if permutation is None or form is None:
        return
    if form.before is not None and not meets_inverse(op.results[0], form.permutation, storage):
        return
    emit = Emitter(op, storage)
    origins = [origin(value, permutation, emit) for value in operands]
    if form.before is not None:
        origins = [emit(TransposeOp, value, permutation=form.before) for value in origins]
    new = emit.insert(rebuilt(op, origins, form))
    replace(op, [emit(TransposeOp, result, permutation=form.permutation) for result in new.results])
    statistics.count("transposes sunk")


def rebuilt(op: HighOp, operands: Sequence[SSAValue], form: Untransposed) -> HighOp:
    """`op` with other leading operands, and properties to fit."""
    return type(op).inferred([*operands, *op.operands[len(operands) :]], form.properties, op.location)


def common_permutation(op: HighOp, operands: Sequence[SSAValue], storage: Storage) -> Shape | None:
    """The permutation by which all operands are or can be transposed, and one really is, or `None`."""
    transposes = [(value, value.owner) for value in operands if isinstance(value.owner, TransposeOp)]
    if not transposes:
        return None
    rank = rank_of(op.results[0]) if op.TRANSPOSES_ALL else rank_of(operands[0])
    (found, *others) = {lifted(ints(transpose.permutation), rank) for _, transpose in transposes}
    if others or not all(is_origin_known(value, found, storage) for value in operands):
        return None
    return found


def lifted(permutation: Shape, rank: int) -> Shape:
    """The permutation of a tensor that broadcasting gives new leading axes, up to `rank`."""
    leading = rank - len(permutation)
    return (*identity(leading), *(leading + axis for axis in permutation))


def padded_shape(value: SSAValue, rank: int) -> Shape:
    """The shape with the unit axes in front that broadcasting gives it."""
    return (1,) * (rank - rank_of(value)) + shape_of(value)


def is_origin_known(value: SSAValue, permutation: Shape, storage: Storage) -> bool:
    """Whether `value` is the transpose, by `permutation`, of something that costs nothing to have."""
    if isinstance(value.owner, TransposeOp):
        return lifted(ints(value.owner.permutation), len(permutation)) == permutation
    shape = padded_shape(value, len(permutation))
    return keeps_order(shape, inverse(permutation)) or storage.is_constant(value)


def origin(value: SSAValue, permutation: Shape, emit: Emitter) -> SSAValue:
    """The operand whose transpose by `permutation` is `value`."""
    if isinstance(value.owner, TransposeOp):
        return value.owner.input
    if size_of(value.type) == 1:
        return value
    shape = padded_shape(value, len(permutation))
    array = emit.known(value)
    if array is None:
        return emit(ReshapeOp, value, shape=moved(shape, permutation))
    transposed = np.ascontiguousarray(array.reshape(shape).transpose(inverse(permutation)))
    return emit.constant(transposed, value.name_hint or "constant")


def meets_inverse(value: SSAValue, permutation: Shape, storage: Storage) -> bool:
    """Whether a transpose by `permutation`, put in front of the readers of `value`, would meet its inverse below."""
    pending = [value]
    for _ in range(LOOK_AHEAD):
        if not pending:
            return False
        value = pending.pop()
        for use in value.uses:
            user = use.operation
            if isinstance(user, TransposeOp):
                if keeps_order(moved(shape_of(value), permutation), composed(permutation, ints(user.permutation))):
                    return True
            elif passes_through(user, value, permutation, storage):
                pending.append(user.results[0])
    return False


def passes_through(user: Operation, value: SSAValue, permutation: Shape, storage: Storage) -> bool:
    """Whether a transpose of the operand `value` would become one of the result by the same permutation."""
    if not isinstance(user, HighOp) or len(user.results) != 1 or rank_of(user.results[0]) != len(permutation):
        return False
    operands = concerned(user)
    if value not in operands or rank_of(value) != len(permutation):
        return False
    form = user.untransposed(permutation)
    if form is None or form.before is not None or form.permutation != permutation:
        return False
    return all(other is value or is_origin_known(other, permutation, storage) for other in operands)


def raise_transposes(block: Block, storage: Storage) -> None:
    """Move transposes that are left above operators whose operand is smaller, from the last to the first."""
    for candidate in reversed(list(block.ops)):
        if isinstance(candidate, TransposeOp):
            raise_transpose(candidate, storage)


def raise_transpose(op: TransposeOp, storage: Storage) -> None:
    """Move one transpose to where its tensor is smallest among the operators above it that nothing else reads."""
    chain = operators_above(op, storage)
    sizes = [0 if has_equal(value, op) else size_of(value.type) for _, value in chain]
    if not chain or WORTH_RAISING * min(sizes) > size_of(op.input.type):
        return
    permutation = ints(op.permutation)
    back = inverse(permutation)
    chain = chain[: sizes.index(min(sizes)) + 1]
    owner, source = chain[-1]
    emit = Emitter(owner, storage)
    value = emit(TransposeOp, source, permutation=permutation)
    emit.emitted[-1].location = op.location
    for owner, source in reversed(chain):
        emit = Emitter(owner, storage)
        form = owner.untransposed(back)
        assert form is not None
        operands = [value if other is source else origin(other, back, emit) for other in concerned(owner)]
        value = emit.insert(rebuilt(owner, operands, form)).results[0]
    replace(op, [value])
    for owner, _ in chain:
        Rewriter.erase_op(owner)


def has_equal(value: SSAValue, op: TransposeOp) -> bool:
    """Whether something else reads `value` transposed as `op` transposes."""
    others = (use.operation for use in value.uses if use.operation is not op)
    return any(isinstance(other, TransposeOp) and other.permutation == op.permutation for other in others)


def operators_above(op: TransposeOp, storage: Storage) -> list[tuple[HighOp, SSAValue]]:
    """The operators above `op` that could compute on the transpose of one operand, which comes with each of them."""
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
