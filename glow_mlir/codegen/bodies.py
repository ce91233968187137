"""
Epilogues and prologues as kernels see them: a body and its extra operands.

An extra operand is indexed by the index space of the body: it has an address and, for each axis, a stride in elements.
The stride of the last axis is 0 or 1, so that a vector of columns is one load or one broadcast.
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
    """
    An extra operand of a body: the address of its first element, and its strides over the axes of the index space.
    """

    pointer: Value
    element: Attribute
    strides: Shape

    @property
    def spread(self) -> bool:
        """Whether all columns share one element."""
        return self.strides[-1] == 0

    def read(self, b: Builder, offset: Value | int, step: int, lanes: int, mask: Value | None = None) -> Value:
        """
        Load `lanes` elements from an offset on: consecutive ones (`step` 1) or one for all lanes (0).

        Lanes outside `mask` are not read.
        """
        address = self.pointer.at(offset, self.element)
        if not step:
            return b.splat(address.load(self.element), lanes)
        type_ = vector(self.element, lanes)
        return address.load(type_) if mask is None else b.load_masked(address, type_, mask)

    def moved(self, offset: Value | int) -> ExtraOperand:
        """The extra operand, starting at another element."""
        return ExtraOperand(self.pointer.at(offset, self.element), self.element, self.strides)


@dataclass(frozen=True)
class Epilogue(SharedBody):
    """
    A body applied to each vector of results before it is stored.

    It yields an element of the result, of the type `element` in memory, and one of each of the first `targets` extra
    operands, which are written too. Epilogues with equal `key` share code.
    """

    key: Hashable
    block: Block = field(compare=False)
    element: Attribute
    targets: int = 0
    is_light: bool = field(default=True, compare=False)
    """Whether the body is short enough to be repeated."""
    clips_at: float | None = field(default=None, compare=False)
    """The upper bound if all that the body does is to clip f32 to it and to 0; infinity if it clips only at 0."""

    @property
    def takes_scalars(self) -> bool:
        return has_parameters(self.block)

    def apply(self, b: Builder, value: Value, sources: Sequence[Value]) -> list[Value]:
        """The vectors that the body yields for a vector of results and the vectors of the sources."""
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
        Store the values that the body yields for a vector of results; lanes outside `mask` are not stored.

        `offsets` and `steps` hold the offset, and the stride from lane to lane, of the result and then of each extra
        operand.
        """
        reads = list(zip(extras, offsets[1:], steps[1:], strict=True))[self.targets :]
        sources = [extra.read(b, offset, step, value.lanes, mask) for extra, offset, step in reads]
        results = self.apply(b, value, sources)
        targets = [result.at(offsets[0], self.element)]
        targets += [extra.pointer.at(o, extra.element) for extra, o in zip(extras[: self.targets], offsets[1:])]
        for stored, address in zip(results, targets, strict=True):
            write_masked(b, stored, address, mask)


def epilogue_of(call: KernelCall) -> tuple[Epilogue | None, tuple[ExtraOperand, ...]]:
    """The epilogue of a call's instruction, `None` if it has none, and its extra operands, targets first."""
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
    """Where a kernel stores its results: the result operand, through the instruction's epilogue if it has one."""

    operand: Operand
    epilogue: Epilogue | None
    extras: tuple[ExtraOperand, ...]

    @staticmethod
    def of(call: KernelCall) -> Sink:
        """The sink of a call."""
        return Sink(call.result, *epilogue_of(call))

    @property
    def strides(self) -> list[Shape]:
        """The strides of the result, then of each extra operand, along the axes of the result."""
        return [self.operand.strides, *(extra.strides for extra in self.extras)]

    def store(
        self, b: Builder, offsets: Sequence[Index], steps: Sequence[int], value: Value, mask: Value | None = None
    ) -> None:
        """
        Store consecutive elements; lanes outside `mask` are not stored.

        `offsets` and `steps` hold the offset, and the stride from lane to lane, of the result and then of each extra
        operand.
        """
        if self.epilogue is None:
            store(b, self.operand, offsets[0], value, mask)
        else:
            self.epilogue.store(b, self.operand.pointer, self.extras, offsets, steps, value, mask)


@dataclass(frozen=True)
class Source:
    """An operand that a kernel reads element by element, through the instruction's prologue if it has one."""

    operand: Operand
    prologue: Prologue | None

    @staticmethod
    def of(call: KernelCall, name: str) -> Source:
        """The source for the first operand of a call's instruction, which is called `name`."""
        return Source(call.one(name), prologue_of(call))

    @property
    def strides(self) -> list[Shape]:
        """The strides of the operand, then of each extra operand, along the axes of the operand."""
        extras = () if self.prologue is None else self.prologue.extras
        return [self.operand.strides, *(extra.strides for extra in extras)]

    def load(self, b: Builder, offsets: Sequence[Index], steps: Sequence[int], lanes: int) -> Value:
        """Load consecutive elements in the type in which kernels compute; `offsets` and `steps` as for `Sink.store`."""
        x = load(b, self.operand, offsets[0], steps[0], lanes)
        if self.prologue is None:
            return x
        reads = zip(self.prologue.extras, offsets[1:], steps[1:], strict=True)
        return self.prologue.apply(b, x, [extra.read(b, offset, step, lanes) for extra, offset, step in reads])


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
        """The vector that the body yields for a vector of the operand and the vectors of the extra operands."""
        (result,) = emit_scalar_body(b, self.block, [value, *sources], yielded(self.block), value.lanes)
        return result


def prologue_of(call: KernelCall) -> Prologue | None:
    """The prologue of a call's instruction; `None` if it has none."""
    op = call.op
    body = op.prologue if isinstance(op, DerivedInstruction) else None
    if body is None:
        return None
    return Prologue(shared_structure([body.block]), body.block, extras_of(call.many("prologue_sources"), body))


def extras_of(operands: Sequence[Operand], body: Body) -> tuple[ExtraOperand, ...]:
    """The extra operands of a body."""
    return tuple(
        ExtraOperand(operand.pointer, in_memory(operand.element), strides_over(affine, operand.strides))
        for operand, affine in zip(operands, body.maps, strict=True)
    )


def write_masked(b: Builder, value: Value, address: Value, mask: Value | None) -> None:
    """Store a vector; lanes outside `mask` are not written."""
    if mask is None:
        b.store(value, address)
    else:
        b.store_masked(value, address, mask)
