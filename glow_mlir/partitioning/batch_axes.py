"""Batch analysis: the layout of samples in the values of a function whose samples are independent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.independence import Runs, laid_along
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.entries import placeholders_of
from glow_mlir.ir.locations import location_name, source_location
from glow_mlir.ir.traversal import own_operations
from glow_mlir.partitioning.extraction import values_read
from glow_mlir.support.dataclass import dataclass

Operands = tuple[Runs | None, ...]
"""For each operand its sample layout, or `None` if it is read whole."""

HINT = "partition='latency' or 'pipeline' splits a model otherwise"


@dataclass(frozen=True)
class BatchAxes:
    """
    The batch of a function: the number of samples, and their layout in values that depend on them.

    `operands` has the operators that compute each sample independently. Operands with a layout that are not in `values`
    do not depend on the batch, but have a slice per sample.
    """

    samples: int
    values: dict[SSAValue, Runs]
    operands: dict[HighOp, Operands]


def batch_axes(function: FuncOp, storage: Storage) -> BatchAxes | None:
    """
    Find the batch of a function; `None` for a function without inputs.

    Raises `UnsupportedError` for a batch of one, an operator that mixes samples, or state or control flow that depends
    on them.
    """
    bound = [op for op in placeholders_of(function) if op.role in ("input", "output")]
    if not any(op.role == "input" for op in bound):
        return None
    samples = _samples(function, bound)
    found = BatchAxes(samples, {}, {})
    for op in own_operations(function):
        if isinstance(op, GetOp):
            if _is_input(storage, op) and shape_of(op.result)[:1] == (samples,):
                found.values[op.result] = Runs(0)
        elif any(value in found.values for value in values_read(op)):
            _follow(op, found, storage)
    return found


def _samples(function: FuncOp, bound: Sequence[PlaceholderOp]) -> int:
    """The first size above one of an input that most inputs and outputs share; the first input wins ties."""
    sizes = {op: size for op in bound for size in shape_of(op.tensor_type)[:1] if size > 1}
    counts = Counter(sizes.values())
    candidates = [size for op, size in sizes.items() if op.role == "input"]
    if not candidates:
        raise UnsupportedError(
            f"@{function.sym_name.data} has a batch of one sample, which devices cannot share",
            file=source_location(function),
            hint=f"a larger first size of the inputs, as --bind gives one; {HINT}",
        )
    return max(candidates, key=lambda size: counts[size])


def _is_input(storage: Storage, op: GetOp) -> bool:
    read = storage.by_name[op.storage_name]
    return isinstance(read, PlaceholderOp) and read.role == "input"


def _follow(op: Operation, found: BatchAxes, storage: Storage) -> None:
    """Propagate sample layouts to the results of an operation."""
    if isinstance(op, SaveOp):
        saved = storage.by_name[op.storage_name]
        if isinstance(saved, PlaceholderOp) and saved.role == "state":
            raise _refused(op, f"state @{op.storage_name} depends on the samples of the batch, and is on one device")
    elif not isinstance(op, HighOp):
        raise _refused(op, f"{op.name} depends on the samples of the batch, and devices cannot share it")
    else:
        flow = samples_through(op, [found.values.get(value) for value in op.operands], found.samples)
        if flow is None:
            raise _refused(op, f"{op.name} mixes the {found.samples} samples of the batch, so devices cannot share it")
        found.operands[op], results = flow
        found.values.update(zip(op.results, results, strict=True))


def _refused(op: Operation, reason: str) -> UnsupportedError:
    return UnsupportedError(reason, file=source_location(op), node=location_name(op.location), hint=HINT)


def samples_through(
    op: HighOp, operands: Sequence[Runs | None], samples: int
) -> tuple[Operands, tuple[Runs, ...]] | None:
    """
    The layouts of operands and results of an operator, given those of its operands.

    `None` if it does not compute each sample independently.
    """
    lies = {own._replace(axis=0) for own in operands if own is not None}
    if len(lies) == 1:
        (runs,) = lies
        shapes, results = ([shape_of(value) for value in values] for values in (op.operands, op.results))
        for axis in op.access_map().independent():
            if (read := laid_along(axis, operands, shapes, results, samples)) is not None:
                return read, tuple(runs._replace(axis=result_axis) for result_axis in axis.results)
    result = op.runs(operands, samples)
    return None if result is None else (tuple(operands), (result,) * len(op.results))
