"""
Instructions of host programs: the work enqueued for devices, and the events that queues wait for.

A queue executes its work in order, concurrently with other queues. Its name is that of its device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, IntegerAttr, LocationAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import base, operand_def, prop_def, traits_def, var_operand_def
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_high.base import with_operand_accessors
from glow_mlir.dialects.glow_high.call import function_named, read_by, written_by
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.glow_low.base import BUFFER, Instruction, Qualifier
from glow_mlir.dialects.properties import symbol_reference, word
from glow_mlir.dialects.shapes import element_of, require, sizes_of
from glow_mlir.xdsl_patches.definitions import op_definition


class QueuedOp(Instruction):
    """An instruction of the host that the queue of a device executes."""

    NEEDS_KERNEL: ClassVar[bool] = False

    queue = prop_def(StringAttr)

    @property
    def queue_name(self) -> str:
        """The name of the queue."""
        return self.queue.data


@with_operand_accessors
@op_definition
class CallOp(QueuedOp):
    """
    Call a partition on buffers that its device can access: those it writes, then those it reads, each in the order of
    its bindings. State stays on the device.

    ```mlir
    glow_low.call @out %features, @in %image {callee = @encoder, queue = "opencl:0"}
    ```
    """

    name = "glow_low.call"
    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {"targets": Qualifier.OUT, "sources": Qualifier.IN}

    targets = var_operand_def(BUFFER)
    sources = var_operand_def(BUFFER)
    callee = prop_def(FlatSymbolRefAttrConstr)

    @classmethod
    def to(
        cls,
        callee: str,
        targets: Sequence[SSAValue],
        sources: Sequence[SSAValue],
        queue: str,
        location: LocationAttr | None = None,
    ) -> CallOp:
        """A call of the partition of a name."""
        properties = {"callee": symbol_reference(word(callee)), "queue": word(queue)}
        return cls.of(targets, sources, properties=properties, location=location)

    @property
    def callee_name(self) -> str:
        """The name of the partition."""
        return self.callee.string_value()

    def function(self, module: ModuleOp) -> FunctionOp | None:
        """The partition, where the module has one of that name."""
        return function_named(module, self.callee_name)

    def verify_(self) -> None:
        caller = self.parent_op()
        module = None if caller is None else caller.parent_op()
        if not isinstance(module, ModuleOp):
            return
        callee = self.function(module)
        require(callee is not None, f"there is no function @{self.callee_name}")
        assert callee is not None
        storage = callee.storage()
        for noun, names, values in (
            ("writes", written_by(callee), self.targets),
            ("reads", read_by(callee), self.sources),
        ):
            wanted = [(sizes_of(storage[name].type), element_of(storage[name].type)) for name in names]
            given = [(sizes_of(value), element_of(value)) for value in values]
            require(
                wanted == given, f"@{self.callee_name} {noun} {', '.join(f'@{name}' for name in names) or 'nothing'}"
            )
        device = callee.device
        require(device is None or device.data == self.queue_name, f"@{self.callee_name} is for another device")


@with_operand_accessors
@op_definition
class TransferOp(QueuedOp):
    """
    Copy a buffer to the memory of another device, or of the host, by a queue of either.

    ```mlir
    glow_low.transfer @out %there, @in %here {queue = "opencl:0"}
    ```
    """

    name = "glow_low.transfer"
    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {"target": Qualifier.OUT, "source": Qualifier.IN}

    target = operand_def(BUFFER)
    source = operand_def(BUFFER)

    @classmethod
    def between(
        cls, target: SSAValue, source: SSAValue, queue: str, location: LocationAttr | None = None
    ) -> TransferOp:
        """The transfer from one buffer to another."""
        return cls.of(target, source, properties={"queue": word(queue)}, location=location)

    def verify_(self) -> None:
        require(sizes_of(self.target) == sizes_of(self.source), "a transfer's buffers have different shapes")
        require(element_of(self.target) == element_of(self.source), "a transfer's buffers have different element types")


class QueueEffect(MemoryEffect):
    """An effect that keeps events and the ops around them in order."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.WRITE)}


class EventOp(QueuedOp):
    """An instruction on an event, which has a number in its function."""

    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {}

    event = prop_def(base(IntegerAttr))

    traits = traits_def(QueueEffect())

    @property
    def number(self) -> int:
        """The number of the event."""
        return self.event.value.data

    def verify_(self) -> None:
        require(self.event.type == i64 and self.number >= 0, "events are numbered by an i64 from 0 on")


@op_definition
class RecordEventOp(EventOp):
    """
    Record an event that completes when its queue has executed all earlier work.

    ```mlir
    glow_low.record_event {queue = "opencl:0", event = 0}
    ```
    """

    name = "glow_low.record_event"

    @classmethod
    def numbered(cls, event: int, queue: str, location: LocationAttr | None = None) -> RecordEventOp:
        """The event of that number, of a queue."""
        return cls.of(properties={"queue": word(queue), "event": to_attribute(event)}, location=location)


@op_definition
class WaitEventOp(EventOp):
    """
    Let a queue wait until an event of another queue has completed.

    ```mlir
    glow_low.wait_event {queue = "cpu:0", event = 0}
    ```
    """

    name = "glow_low.wait_event"

    @classmethod
    def numbered(cls, event: int, queue: str, location: LocationAttr | None = None) -> WaitEventOp:
        """A queue waits for the event of that number."""
        return cls.of(properties={"queue": word(queue), "event": to_attribute(event)}, location=location)
