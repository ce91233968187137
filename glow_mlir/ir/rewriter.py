"""The rewriter of patterns: xDSL's `PatternRewriter` with constants, names, locations and analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import replace

Result = TypeVar("Result")


class Rewriter(PatternRewriter):
    """
    The rewriter of one walk over a function.

    It provides the constants of the module, emits operators with the names and locations of those they replace, caches
    analyses for the whole walk, and records the operators that the current pattern creates, changes and erases.
    """

    def __init__(self, function: FunctionOp, storage: Storage, present: Iterable[type[Operation]] = ()) -> None:
        super().__init__(function)
        self.function = function
        self.storage = storage
        self.present = set(present)
        """The kinds of operators that the function has, or has had during the walk."""
        self.created: list[Operation] = []
        self.changed: list[Operation] = []
        self.erased: list[Operation] = []
        self._anchor: Operation = function
        self._analyses: dict[Callable[..., Any], Any] = {}

    def begin(self, op: Operation) -> None:
        """Prepare for trying a pattern at `op`."""
        self._anchor = op
        self.has_done_action = False
        if self.created or self.changed or self.erased:
            self.created, self.changed, self.erased = [], [], []

    @property
    def emit(self) -> Emitter:
        """An emitter in front of the matched operator, with its location."""
        return Emitter(self._anchor, self.storage, listener=self)

    def emit_before(self, anchor: Operation, location: LocationAttr | None = None) -> Emitter:
        """An emitter in front of another operator, with its location or the given one."""
        return Emitter(anchor, self.storage, location=location, listener=self)

    def analysis(self, analyse: Callable[[FunctionOp, Storage], Result]) -> Result:
        """The result of an analysis on the function as of its first request in this walk."""
        if analyse not in self._analyses:
            self._analyses[analyse] = analyse(self.function, self.storage)
        return self._analyses[analyse]

    def replace(
        self,
        op: Operation,
        new_ops: Operation | Sequence[Operation],
        new_results: Sequence[SSAValue | None] | None = None,
        safe_erase: bool = True,
    ) -> None:
        """
        Replace `op` by operators, inserted in front of it, or by values; these take its names.

        Operators without a location get that of `op`.
        """
        added = (new_ops,) if isinstance(new_ops, Operation) else new_ops
        emit = Emitter(op, self.storage, listener=self)
        for new in added:
            if isinstance(new.location, UnknownLoc):
                new.location = op.location
            emit.insert(new)
        values = added[-1].results if new_results is None else new_results
        self.changed += (use.operation for result in op.results for use in result.uses)
        replace(op, [value for value in values if value is not None])
        self.handle_operation_removal(op)

    def discard(self) -> None:
        """Erase all operators that the pattern has created so far, to reject the match."""
        for op in reversed(self.created):
            block = op.parent_block()
            assert block is not None
            block.erase_op(op)
        self.created.clear()
        self.has_done_action = bool(self.changed or self.erased)

    def handle_operation_insertion(self, op: Operation) -> None:
        super().handle_operation_insertion(op)
        self.has_done_action = True
        self.created.append(op)
        self.present.add(type(op))

    def handle_operation_modification(self, op: Operation) -> None:
        super().handle_operation_modification(op)
        self.has_done_action = True
        self.changed.append(op)

    def handle_operation_removal(self, op: Operation) -> None:
        super().handle_operation_removal(op)
        self.has_done_action = True
        self.erased.append(op)
