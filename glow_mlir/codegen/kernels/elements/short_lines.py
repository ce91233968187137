"""Loops over many short lines with operands that all lines share, such as a bias of a few channels, as one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.access import load_as
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index, chunks, linear, nest
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.narrow import loaded
from glow_mlir.codegen.selection.kernel import Operand
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

MAX_SHORT = 64
"""Longer lines have whole vectors enough."""

MIN_LINES = 256
"""Fewer lines do not make up for the tables."""

Body = Callable[[list[Index], list[Value], int], None]
"""The offsets of all operands, those that are read, and the lanes → nothing: computes and stores."""


@dataclass(frozen=True)
class ShortLines:
    """
    The last two axes of a loop nest, flat: vectors run over the ends of lines.

    Operands that all lines share are repeated on the stack to as many elements as lines and vectors have in common.
    """

    b: Builder
    operands: Sequence[Operand]
    strides: Sequence[Shape]
    lines: int
    length: int
    width: int
    """The lanes of a vector."""

    @staticmethod
    def suit(
        extents: Extents, strides: Sequence[Shape], targets: int, lanes: int, vectors: int, target: Target
    ) -> bool:
        """
        Whether there are such lines: results and operands without gaps, and operands that all lines share.

        The parts of vectors that a line would take have to be several, or their operations a long chain, of which
        `vectors` are computed at once.
        """
        if len(extents) < 2 or lanes == 1 or target.is_cortex_m or target.policy.optimize == "size":
            return False
        *_, lines, length = extents
        if not (isinstance(lines, int) and isinstance(length, int)) or lines < MIN_LINES:
            return False
        if not 1 < length < MAX_SHORT or length % lanes == 0:
            return False
        pieces = len(chunks(length, lanes))
        if pieces * lanes < 2 * length or (pieces == 1 and vectors == 1):
            return False
        kinds = [stride[-2:] for stride in strides]
        return all(kind == (length, 1) for kind in kinds[:targets]) and all(
            kind in ((length, 1), (0, 1), (0, 0)) for kind in kinds[targets:]
        )

    @property
    def period(self) -> int:
        """The elements after which lines and vectors begin together again, or a multiple of them."""
        return self.length * self.width

    def emit(self, outer: Extents, rest: int, targets: int, body: Body) -> None:
        """Emit the loops; `rest` is the width of vectors behind the last whole one."""
        shared = [number for number, stride in enumerate(self.strides) if stride[-2:] == (0, 1)]
        tables = {number: self.b.stack(self._element(number), self.period) for number in shared}

        def line(indices: list[Index]) -> None:
            bases = [linear(indices, stride[:-2]) for stride in self.strides]
            for number, table in tables.items():
                self._repeat(number, bases[number], table)

            def step(i: Index, phase: Index, lanes: int) -> None:
                offsets = [base + i * stride[-1] for base, stride in zip(bases, self.strides, strict=True)]
                inputs = [
                    tables[number].at(phase, self._element(number)).load(vector(self._element(number), lanes))
                    if number in tables
                    else load_as(
                        self.b, operand, self._element(number), offsets[number], self.strides[number][-1], lanes
                    )
                    for number, operand in enumerate(self.operands)
                    if number >= targets
                ]
                body(offsets, inputs, lanes)

            self._flat(step, rest)

        nest(self.b, outer, line)

    def _element(self, number: int) -> Attribute:
        return loaded(self.operands[number].element)

    def _repeat(self, number: int, base: Index, table: Value) -> None:
        """Write the elements of an operand that all lines share one behind the other."""
        b, operand, element = self.b, self.operands[number], self._element(number)
        with b.loop(0, self.period, self.length) as start, b.loop(0, self.length) as i:
            table.at(start + i, element).store(operand.pointer.at(i + base, element).load(element))

    def _flat(self, step: Callable[[Index, Index, int], None], rest: int) -> None:
        b, count = self.b, self.lines * self.length
        whole = count // self.width * self.width
        with b.loop(0, whole, self.width, carried=[b.index(0)]) as loop:
            (phase,) = loop.values
            step(loop.index, phase, self.width)
            following = phase + self.width
            loop.set(b.select(following.eq(self.period), 0, following))
        for start, stop, lanes in chunks(count - whole, rest):
            with b.loop(start, stop, lanes) as i:
                step(i + whole, i + whole % self.period, lanes)
