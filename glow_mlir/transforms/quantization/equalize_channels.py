"""`equalize-channels`: balance channel ranges between two products by factors in the weights of both."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.deferred import Scaled, Stored
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.shapes import Shape, element_of, size_of
from glow_mlir.ir import statistics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.rewriting.linear_operators import Linear, linear_operator
from glow_mlir.support.dataclass import dataclass

MAX_SWEEPS = 20
"""Maximum number of sweeps over all pairs: a product in the middle of a chain is in two of them."""


@dataclass(frozen=True)
class EqualizeChannelsPass(ModulePass):
    """
    Scale each output channel of a product's weights and bias down, and the matching input channel of the next product
    up, so that both have the same largest magnitude (cross-layer equalization, Nagel et al., arXiv 1906.04721, §4.1).

    Only operators that commute with positive factors, such as ReLU, may stand between the two, and scaled values have
    no other readers. Factors are powers of two: results are bit-identical within the range of normal numbers. A
    per-tensor scale then suits all channels better. Names of values and the digest of the graph are kept.
    """

    name = "equalize-channels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            pairs = [pair for inner in own_operations(function) for pair in _pairs(inner, storage)]
            for _ in range(MAX_SWEEPS):
                if not sum(_equalized(first, second, storage) for first, second in pairs):
                    break
                statistics.count("sweeps")


def _pairs(op: Operation, storage: Storage) -> Iterator[tuple[HighOp, HighOp]]:
    """The pair whose second product is `op`, if there is one."""
    second = _product(op, storage)
    if second is None:
        return
    value = second.form.data
    while value.has_one_use() and isinstance(value.owner, HighOp) and value.owner.scales_channels():
        value = value.owner.operands[0]
    if value.has_one_use() and isinstance(value.owner, HighOp) and _product(value.owner, storage) is not None:
        yield value.owner, second.op


def _product(op: Operation, storage: Storage) -> Linear | None:
    """`op` as an f32 product whose weights and bias are constants without other readers; else `None`."""
    linear = linear_operator(op)
    if linear is None or element_of(linear.op.results[0]) != f32 or size_of(linear.form.weights) == 1:
        return None
    owned = [linear.form.weights, *([] if linear.form.bias is None else [linear.form.bias])]
    return linear if all(storage.is_constant(value) and value.has_one_use() for value in owned) else None


def _equalized(first: HighOp, second: HighOp, storage: Storage) -> bool:
    """Equalize the channels between two products; return whether that changed anything."""
    before, behind = linear_operator(first), linear_operator(second)
    assert before is not None
    assert behind is not None
    given = _magnitudes(before.form.weights, before, before.form.outputs, storage)
    taken = _magnitudes(behind.form.weights, behind, behind.form.inputs, storage)
    if given.size != taken.size:
        return False
    usable = (given > 0) & (taken > 0) & np.isfinite(given) & np.isfinite(taken)
    ratios = np.where(usable, given, 1.0) / np.where(usable, taken, 1.0)
    factors = np.exp2(np.rint(np.log2(ratios) / 2))
    if (factors == 1).all():
        return False
    _scale(before, 1 / factors, before.form.outputs, storage)
    _scale(behind, factors, behind.form.inputs, storage)
    if before.form.bias is not None:
        bias = storage.value_of(before.form.bias)
        assert bias is not None
        _replace(first, 2, Stored((bias / factors).astype(bias.dtype)), storage)
    return True


def _magnitudes(weights: SSAValue, linear: Linear, side: Shape, storage: Storage) -> np.ndarray:
    """The largest weight magnitude of each output or input, in f64."""
    array = storage.value_of(weights)
    assert array is not None
    axes = tuple(axis for axis, size in enumerate(side) if size == 1)
    return np.abs(array.reshape(linear.form.view)).max(axis=axes, initial=0.0).astype(np.float64).reshape(-1)


def _scale(linear: Linear, factors: np.ndarray, side: Shape, storage: Storage) -> None:
    """Multiply the weights of each output or input by a factor."""
    known = storage.value_of(linear.form.weights)
    assert known is not None
    scaled: Scaled = linear.scaled(Stored(known), [(factors, side)], known.dtype)
    _replace(linear.op, 1, Stored(scaled.array()), storage)


def _replace(op: HighOp, index: int, constant: Stored, storage: Storage) -> None:
    """Replace a constant operand by a new constant with its name hint and location."""
    old = op.operands[index]
    owner = old.owner
    assert isinstance(owner, Operation)
    emit = Emitter(owner, storage, location=owner.location)
    op.operands[index] = emit.constant(constant, old.name_hint or "weights")
    op.operands[index].name_hint = old.name_hint
    owner.detach()
    owner.erase()
