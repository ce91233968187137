"""
The matrix instructions of NVIDIA's tensor cores (`mma`), and their semantics for the emulation.

A warp multiplies a matrix of some rows with one of 8 columns, along some 32-bit words of the depth. Thread `4 g + t`
has the words `t` and `t + 4` of the left rows `g` and `g + 8` and of the right column `g`, and the accumulators of
these rows and the columns `2 t` and `2 t + 1` (PTX ISA, matrix fragments of `mma`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.types import bf16, f16, f32, i8, i32, i64, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.half import is_half, loaded_as, to_accumulators
from glow_mlir.dialects.element_types import bit_width, is_unsigned, signless
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

WARP = 32
"""Threads of a warp."""

COLUMNS = 8
"""Columns of the right matrix."""

WORD_BITS = 32


@dataclass(frozen=True)
class MatrixInstruction:
    """
    One instruction: the elements of both sides, with their signs, the type of accumulators, rows, and words of the
    depth.

    It exists from a `generation` on.
    """

    name: str
    left: Attribute
    right: Attribute
    total: Attribute
    rows: int
    words: int
    generation: int
    takes_pairs: bool = False
    """Whether words are passed as vectors of their elements."""

    @property
    def elements(self) -> int:
        """The number of elements in a word."""
        return max(1, WORD_BITS // bit_width(self.left))

    @property
    def left_words(self) -> int:
        """The number of words of the left matrix in each thread."""
        return self.rows // 8 * (self.words // 4)

    @property
    def right_words(self) -> int:
        """The number of words of the right matrix in each thread."""
        return self.words // 4

    @property
    def accumulators(self) -> int:
        """The number of accumulators in each thread."""
        return self.rows // 8 * 2


def _of_bytes(left: Attribute, right: Attribute) -> Sequence[MatrixInstruction]:
    """The instructions for bytes, with and without signs."""
    words = ["u8" if is_unsigned(side) else "s8" for side in (left, right)]
    types = words[0] if words[0] == words[1] else ".".join(words)
    return (
        MatrixInstruction(f"llvm.nvvm.mma.m16n8k32.row.col.{types}", left, right, i32, 16, 8, 80),
        MatrixInstruction(f"llvm.nvvm.mma.m8n8k16.row.col.{types}", left, right, i32, 8, 4, 75),
    )


FLOATS: Sequence[MatrixInstruction] = (
    MatrixInstruction("llvm.nvvm.mma.m16n8k16.row.col.f32.f32", f16, f16, f32, 16, 8, 80, takes_pairs=True),
    MatrixInstruction("llvm.nvvm.mma.m16n8k8.row.col.f32.f32", f16, f16, f32, 16, 4, 75, takes_pairs=True),
    MatrixInstruction("llvm.nvvm.mma.m16n8k16.row.col.bf16", bf16, bf16, f32, 16, 8, 80),
)

TF32 = MatrixInstruction("llvm.nvvm.mma.m16n8k8.row.col.tf32", f32, f32, f32, 16, 8, 80)
"""The instruction for f32 whose products use 10 bits of each mantissa."""


def generation_of(target: Target) -> int:
    """The generation of a device of NVIDIA's, such as 80 for the processor `sm_80`."""
    return int(target.cpu.removeprefix("sm_").rstrip("af"))


def matrix_instruction(left: Attribute, right: Attribute, generation: int) -> MatrixInstruction | None:
    """The widest instruction of a generation for products of elements of these types; `None` if there is none."""
    of_bytes = _of_bytes(left, right) if signless(left) == i8 == signless(right) else ()
    found = (item for item in (*FLOATS, *of_bytes) if (item.left, item.right) == (left, right))
    return next((item for item in found if item.generation <= generation), None)


def multiply_add(
    b: Builder,
    instruction: MatrixInstruction,
    accumulators: tuple[Value, int],
    left: tuple[Value, int],
    right: tuple[Value, int],
) -> None:
    """
    Emulate an instruction on a processor: for each fragment there are an address and the number of elements from thread
    to thread.
    """

    def define(name: str) -> None:
        with define_function(b.module, name, [ptr, i64, ptr, i64, ptr, i64], internal=True, inline=False) as (c, given):
            _emit_reference(c, instruction, given)

    readable = "emulated_" + instruction.name.removeprefix("llvm.nvvm.")
    name = b.module.shared(("mma", instruction), define, readable)
    b.call(name, [item for pair in (accumulators, left, right) for item in pair])


def _emit_reference(b: Builder, instruction: MatrixInstruction, given: Sequence[Value]) -> None:
    accumulators, accumulator_step, left, left_step, right, right_step = given
    rows = instruction.rows // 8
    with b.loop(0, instruction.rows) as row, b.loop(0, COLUMNS) as column:
        group, half = row % 8, row // 8
        thread = group * 4 + column // 2
        address = accumulators.at(thread * b.index(accumulator_step) + half * 2 + column % 2, instruction.total)
        total = address.load(instruction.total)
        for word in range(instruction.words):
            part, at = word // 4, word % 4
            first = left.at((group * 4 + at) * b.index(left_step) + half + part * rows, i32)
            other = right.at((column * 4 + at) * b.index(right_step) + part, i32)
            factors = _elements(b, first.load(i32), instruction.left), _elements(b, other.load(i32), instruction.right)
            for x, y in zip(*factors, strict=True):
                total = b.fma(x, y, total) if instruction.total == f32 else total + x * y
        address.store(total)


def _elements(b: Builder, word: Value, element: Attribute) -> list[Value]:
    """The elements of a word, in the type of accumulators."""
    if element == f32:
        return [b.bitcast(word & TF32_BITS, f32)]
    parts = b.bitcast(word, loaded_as(element))
    wide = to_accumulators(b, parts, element, f32 if is_half(element) else i32)
    return [b.extract(wide, lane) for lane in range(wide.lanes)]


TF32_BITS = -1 << 13
"""The bits of an f32 that products of tf32 use."""
