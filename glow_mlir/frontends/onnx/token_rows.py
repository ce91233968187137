"""
Whether the rows of a graph, one a token, are apart from each other, as calls with tokens of several sequences need it.

Each value that depends on tokens has an axis along which they lie. Operators must compute each of its elements from the
same element of their operands; access maps say which do. Attention and what is written to pages may relate tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.independence import Runs, laid_along, reshaped_runs
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.pages import WritePagesOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, SaveOp, SplatOp
from glow_mlir.dialects.properties import integer, sizes
from glow_mlir.dialects.shapes import Shape, rank_of, sizes_of
from glow_mlir.dialects.sizes import RunTimeSizeError, shape_at
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.traversal import own_operations, subtree
from glow_mlir.support.symbols import symbols_of

COUNT = 8209
"""The number of tokens at which shapes are compared: a prime, which is a factor of no other size."""


def check_rows(module: ModuleOp, given: Sequence[str], chosen: str, result: str) -> None:
    """
    Raise `UnsupportedError` unless rows of the output `result` depend on nothing but their own token and on pages.

    The inputs `given` [rows] have an element a token. The input `chosen` [outputs] are numbers of rows, by which one
    gather takes those that are wanted. Both sizes are known at run time only; `outputs` may be 1 as well.
    """
    for op in module.walk():
        if isinstance(op, FuncOp):
            _Rows(given, chosen, result).follow(op)


class _Rows:
    """The axes of tokens of the values of a function."""

    def __init__(self, given: Sequence[str], chosen: str, result: str) -> None:
        self.given, self.chosen, self.result = given, chosen, result
        self.layouts: dict[SSAValue, Runs] = {}
        self.counts: set[SSAValue] = set()
        """Values that are computed from the number of tokens, which is that of a call and not of a sequence."""
        self.numbers: set[SSAValue] = set()
        """The numbers of the rows that are wanted."""
        self.is_one = False
        """Whether one row is wanted, which operators behind the gather cannot relate to others."""

    def follow(self, function: FuncOp) -> None:
        """Follow all operations of a function."""
        for op in own_operations(function):
            read = [value for item in subtree(op) for value in item.operands]
            if isinstance(op, GetOp):
                self._get(op)
            elif isinstance(op, SaveOp):
                if op.storage_name == self.result and not self.is_one and self.layouts.get(op.input) != Runs(0):
                    raise _refused(op, "has no row for each token")
            elif not any(value in self.layouts for value in read):
                if self._is_count(op) or any(value in self.counts for value in read):
                    self.counts.update(op.results)
            elif not isinstance(op, HighOp) or isinstance(op, ControlFlowOp):
                raise _refused(op, "depends on data of tokens")
            elif any(value in self.counts for value in read):
                raise _refused(op, "computes with the number of tokens")
            elif not isinstance(op, WritePagesOp):
                layout = self._through(op)
                self.layouts.update(dict.fromkeys(op.results, layout) if isinstance(layout, Runs) else layout)

    def _get(self, op: GetOp) -> None:
        if op.storage_name in self.given:
            self.layouts[op.result] = Runs(0)
        elif op.storage_name == self.chosen:
            self.numbers.add(op.result)

    def _is_count(self, op: Operation) -> bool:
        return isinstance(op, ShapeOp) and bool({"rows", "outputs"} & {s.name for s in symbols_of(sizes(op.sizes))})

    def _through(self, op: HighOp) -> Runs | dict[SSAValue, Runs]:
        """The layouts of the results of an operator of rows."""
        layouts = [self.layouts.get(value) for value in op.operands]
        if isinstance(op, GatherOp) and op.indices in self.numbers:
            axis = integer(op.axis) % rank_of(op.input)
            if layouts[0] == Runs(axis):
                self.is_one = sizes_of(op.indices) == (1,)
                return {} if self.is_one else Runs(axis)
            raise _refused(op, "takes rows along another axis than that of tokens")
        if len({own._replace(axis=0) for own in layouts if own is not None}) == 1:
            try:
                operands, results = ([_shape(value) for value in values] for values in (op.operands, op.results))
            except RunTimeSizeError:
                raise _refused(op, "has a size that depends on data") from None
            if isinstance(op, ReshapeOp) and layouts[0] is not None:
                found = reshaped_runs(layouts[0], operands[0], results[0], COUNT)
                if found is not None:
                    return found
            for along in op.access_map().independent():
                read = laid_along(along, layouts, operands, results, COUNT)
                if read is not None:
                    self._check_same(op, read)
                    (runs, *_) = (own for own in layouts if own is not None)
                    axes = zip(op.results, along.results, strict=True)
                    return {value: runs._replace(axis=axis) for value, axis in axes}
        raise _refused(op, "relates tokens to each other")

    def _check_same(self, op: HighOp, read: Sequence[Runs | None]) -> None:
        """Refuse operands that differ between rows of a call, and depend on no token."""
        for value, layout in zip(op.operands, read, strict=True):
            if layout is not None and value not in self.layouts and not isinstance(value.owner, SplatOp):
                raise _refused(op, "adds something that depends on the place of a token in the call")


def _shape(value: SSAValue) -> Shape:
    """The sizes of a tensor in a call with so many tokens."""
    shape = sizes_of(value)
    named = {symbol.name for symbol in symbols_of(shape)}
    return shape_at(shape, {name: COUNT if name in ("rows", "outputs") else 1 for name in named & _LABELS})


_LABELS = frozenset(("rows", "outputs", "sequences", "pages"))


def _refused(op: Operation, reason: str) -> UnsupportedError:
    hint = "only GroupQueryAttention may relate tokens"
    return UnsupportedError(f"{op.name.rpartition('.')[2]} {reason}", node=location_name(op.location), hint=hint)
