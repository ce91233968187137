"""
Epilogues and prologues as kernels see them: a body, and extra operands, its further operands.

A extra operand is an operand over the index space of the body: an address, and by how many elements each axis moves it.
The last axis moves it by one element or not at all, so that a vector of columns is one load or one broadcast.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field

from xdsl.ir import Attribute, Block

from glow_mlir.analysis.cost import operations
from glow_mlir.codegen.access import load, store
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.shared_function import SharedBody
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.math.narrow import in_memory
from glow_mlir.codegen.scalar_body import clipping_of, emit_scalar_body
from glow_mlir.codegen.selection.kernel import KernelCall, Operand
from glow_mlir.dialects.affine_maps import strides_over
from glow_mlir.dialects.glow_low.body import Body, yielded
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.scalar_parameters import has_parameters, shared_structure
from glow_mlir.dialects.shapes import Shape
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ExtraOperand:
    """A further operand of a body: its first element, and its strides over the axes of the index space."""

    pointer: Value
    element: Attribute
    strides: Shape

    @property
    def spread(self) -> bool:
        """Whether all columns have the same element."""
        return self.strides[-1] == 0

    def read(self, b: Builder, offset: Value | int, step: int, lanes: int, mask: Value | None = None) -> Value:
        """
        `lanes` elements from an offset on, that follow each other (`step` 1) or are the same (0).

        Those outside `mask` do not exist.
        """
        address = self.pointer.at(offset, self.element)
        if not step:
            return b.splat(address.load(self.element), lanes)
        type_ = vector(self.element, lanes)
        return address.load(type_) if mask is None else b.load_masked(address, type_, mask)

    def moved(self, offset: Value | int) -> ExtraOperand:
        """The extra operand from another element on."""
        return ExtraOperand(self.pointer.at(offset, self.element), self.element, self.strides)


@dataclass(frozen=True)
class Epilogue(SharedBody):
    """
    A body applied to each vector of results before it is stored.

    It yields elements of the type `element`, as memory holds them, and those of `targets` extra operands. Epilogues
    with equal
    `key` share code.
    """

    key: Hashable
    block: Block = field(compare=False)
    element: Attribute
    targets: int = 0
    is_light: bool = field(default=True, compare=False)
    """Whether the body is short enough to be repeated."""
    clips_at: float | None = field(default=None, compare=False)
    """The number at which, as at 0, the body clips f32, if that is all it does; infinity where it is at 0 alone."""

    @property
    def takes_scalars(self) -> bool:
        return has_parameters(self.block)

    def apply(self, b: Builder, value: Value, sources: Sequence[Value]) -> list[Value]:
        """What the body yields for a vector of results and the vectors of the sources."""
        return emit_scalar_body(b, self.block, [value, *sources], yielded(self.block), value.lanes)

    def store(
        self,
        b: Builder,
        result: Value,
        extras: Sequence[ExtraOperand],
        offsets: Sequence[Value | int],
        steps: Sequence[int],
        value: Value,
        mask: Value | None = None,
    ) -> None:
        """
        Store what the body yields for a vector of results, of which the lanes outside `mask` do not exist.

        `offsets` and `steps` have place and stride from lane to lane, of the result and then of each extra operand.
        """
        places = list(zip(extras, offsets[1:], steps[1:], strict=True))[self.targets :]
        sources = [extra.read(b, offset, step, value.lanes, mask) for extra, offset, step in places]
        results = self.apply(b, value, sources)
        targets = [result.at(offsets[0], self.element)]
        targets += [extra.pointer.at(o, extra.element) for extra, o in zip(extras[: self.targets], offsets[1:])]
        for stored, address in zip(results, targets, strict=True):
            write_masked(b, stored, address, mask)


def epilogue_of(call: KernelCall) -> tuple[Epilogue | None, tuple[ExtraOperand, ...]]:
    """The epilogue of the instruction of a call, and its extra operands, targets first; `None` where it has none."""
    op = call.op
    body = op.epilogue if isinstance(op, DerivedInstruction) else None
    if body is None:
        return None, ()
    element = in_memory(call.result.element)
    operands = [*call.many("epilogue_targets"), *call.many("epilogue_sources")]
    costs = kernel_costs(call.target)
    is_light = operations(body.block, costs) <= costs.light_operations
    found = Epilogue(
        shared_structure([body.block]), body.block, element, len(body.targets), is_light, clipping_of(body.block)
    )
    return found, extras_of(operands, body)


@dataclass(frozen=True)
class Sink:
    """Where a kernel stores what it computes: the result, through the epilogue of the instruction if it has one."""

    operand: Operand
    epilogue: Epilogue | None
    extras: tuple[ExtraOperand, ...]

    @staticmethod
    def of(call: KernelCall) -> Sink:
        """Where the kernel of a call stores."""
        return Sink(call.result, *epilogue_of(call))

    @property
    def strides(self) -> list[Shape]:
        """By how many elements the axes of the result move it, and then each extra operand."""
        return [self.operand.strides, *(extra.strides for extra in self.extras)]

    def store(
        self, b: Builder, offsets: Sequence[Index], steps: Sequence[int], value: Value, mask: Value | None = None
    ) -> None:
        """
        Store neighbouring elements, of which the lanes outside `mask` do not exist.

        `offsets` and `steps` have place and stride from lane to lane, of the result and then of each extra operand.
        """
        if self.epilogue is None:
            store(b, self.operand, offsets[0], value, mask)
        else:
            self.epilogue.store(b, self.operand.pointer, self.extras, offsets, steps, value, mask)


@dataclass(frozen=True)
class Source:
    """What a kernel reads element by element: an operand, through the prologue of the instruction if it has one."""

    operand: Operand
    prologue: Prologue | None

    @staticmethod
    def of(call: KernelCall, name: str) -> Source:
        """The first operand of the instruction of a call, which has that name."""
        return Source(call.one(name), prologue_of(call))

    @property
    def strides(self) -> list[Shape]:
        """By how many elements the axes of the operand move it, and then each extra operand."""
        extras = () if self.prologue is None else self.prologue.extras
        return [self.operand.strides, *(extra.strides for extra in extras)]

    def load(self, b: Builder, offsets: Sequence[Index], steps: Sequence[int], lanes: int) -> Value:
        """Neighbouring elements in the type that kernels compute in; `offsets` and `steps` as for `Sink.store`."""
        x = load(b, self.operand, offsets[0], steps[0], lanes)
        if self.prologue is None:
            return x
        places = zip(self.prologue.extras, offsets[1:], steps[1:], strict=True)
        return self.prologue.apply(b, x, [extra.read(b, offset, step, lanes) for extra, offset, step in places])


@dataclass(frozen=True)
class Prologue(SharedBody):
    """
    A body applied to each vector of an operand when it is loaded, and its extra operands.

    Prologues with equal `key` share code.
    """

    key: Hashable
    block: Block = field(compare=False)
    extras: tuple[ExtraOperand, ...] = field(compare=False)

    @property
    def takes_scalars(self) -> bool:
        return has_parameters(self.block)

    def apply(self, b: Builder, value: Value, sources: Sequence[Value]) -> Value:
        """What the body yields for a vector of the operand and the vectors of the extra operands."""
        (result,) = emit_scalar_body(b, self.block, [value, *sources], yielded(self.block), value.lanes)
        return result


def prologue_of(call: KernelCall) -> Prologue | None:
    """The prologue of the instruction of a call; `None` where it has none."""
    op = call.op
    body = op.prologue if isinstance(op, DerivedInstruction) else None
    if body is None:
        return None
    return Prologue(shared_structure([body.block]), body.block, extras_of(call.many("prologue_sources"), body))


def extras_of(operands: Sequence[Operand], body: Body) -> tuple[ExtraOperand, ...]:
    """The further operands of a body."""
    return tuple(
        ExtraOperand(operand.pointer, in_memory(operand.element), strides_over(affine, operand.strides))
        for operand, affine in zip(operands, body.maps, strict=True)
    )


def write_masked(b: Builder, value: Value, address: Value, mask: Value | None) -> None:
    """Store a vector, of which the lanes outside `mask` do not exist."""
    if mask is None:
        b.store(value, address)
    else:
        b.store_masked(value, address, mask)
