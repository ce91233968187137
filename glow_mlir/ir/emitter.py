"""Emission of `glow_high` operators in front of another op, with its location, for lowerings and patterns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.builder import BuilderListener
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.constants.deferred import Deferred
from glow_mlir.constants.storage import Storage, constant_op, scalar_attribute
from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp, Operand
from glow_mlir.dialects.glow_high.storage import GetOp, SplatOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.support.symbols import Sizes


class Emitter:
    """
    Emits operators in front of `anchor` with its location, or another given one.

    A `listener`, such as the rewriter of a pattern, is notified of every operator.
    """

    def __init__(
        self,
        anchor: Operation,
        storage: Storage,
        *,
        location: LocationAttr | None = None,
        listener: BuilderListener | None = None,
    ) -> None:
        self.anchor = anchor
        self.storage = storage
        self.location = location or anchor.location
        self.listener = listener

    def at(self, location: LocationAttr) -> Emitter:
        """An emitter at the same position for operators with that location."""
        return Emitter(self.anchor, self.storage, location=location, listener=self.listener)

    def __call__(self, operator: type[HighOp], *operands: Operand, **properties: AttributeValue | None) -> SSAValue:
        """Emit an operator and return its first result."""
        return self.all(operator, *operands, **properties)[0]

    def all(
        self, operator: type[HighOp], *operands: Operand, **properties: AttributeValue | None
    ) -> tuple[SSAValue, ...]:
        """Emit an operator and return all its results."""
        return tuple(self.insert(operator.make(*operands, location=self.location, **properties)).results)

    def insert(self, op: Operation) -> Operation:
        """Insert any op in front of the anchor, unchanged; unnamed results get the name of the anchor's."""
        block = self.anchor.parent_block()
        assert block is not None
        block.insert_op_before(op, self.anchor)
        hint = self.anchor.results[0].name_hint if self.anchor.results else None
        for result in op.results:
            result.name_hint = result.name_hint or hint
        if self.listener is not None:
            self.listener.handle_operation_insertion(op)
        return op

    def splat(self, value: float, like: SSAValue | Attribute, shape: Sizes = ()) -> SSAValue:
        """A splat of `value` in the element type of `like`, by default a scalar."""
        element = element_of(like) if isinstance(like, SSAValue) else like
        number = numpy_dtype(element).type(value)
        return self(SplatOp, value=scalar_attribute(number, element), shape=shape)

    def constant(self, array: np.ndarray | Sequence[int] | Deferred, name: str) -> SSAValue:
        """A constant of the module, named like `name`."""
        known = array if isinstance(array, Deferred) else np.asarray(array)
        op = constant_op(self.storage, known, name, self.location)
        return self.insert(op).results[0]

    def stored(self, array: np.ndarray | Deferred, name: str) -> SSAValue:
        """Like `constant`, but never a splat: kernels that read packed operands need storage for a single element."""
        return self.insert(GetOp.of(self.storage.add_constant(name, array, self.location), self.location)).results[0]

    def known(self, value: SSAValue) -> np.ndarray | None:
        """The value of a constant or splat, or `None`."""
        return self.storage.value_of(value)
