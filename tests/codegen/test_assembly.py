"""
Machine code for targets that may not run here: vectors as wide as the registers, and inner loops that stay in these.

Inner loops of products and of passes over memory touch no stack at all. Mathematical functions take several vectors at
once, whose operations wait for each other, and depthwise convolutions as many pixels as measured best: there a few
values in memory cost less than the latencies they hide, and `FEW` bounds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from assembly import Loop, assembly_of, innermost_loops
from execute import Case, sample

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.dialects.glow_high import activations, elementwise_binary, elementwise_math, normalization, reductions
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.recurrence import GruRecurrenceOp, LstmRecurrenceOp, RnnRecurrenceOp

FEW = 1 / 7
"""Largest part of an inner loop of a mathematical function that accesses the stack."""


@dataclass(frozen=True)
class Example:
    """An operator, the kernel and tiles that are to execute it if not the usual ones, and what of the stack it uses."""

    case: Callable[[], Case]
    kernel: str = ""
    tiles: Mapping[str, int] = field(default_factory=dict[str, int])
    few: tuple[str, ...] = ()
    """Names of functions whose inner loops may access the stack a little."""


def product(rows: int, depth: int, columns: int) -> Callable[[], Case]:
    """A product with a constant matrix and a bias."""
    shapes = [(1, rows, depth), (depth, columns), (columns,)]
    return lambda: Case(MatMulOp, *(sample(shape) for shape in shapes), constants=(1, 2))


def conv(size: int, channels: int, filters: int, kernel: int, group: int = 1, stride: int = 1) -> Callable[[], Case]:
    """A convolution with constant filters and a bias."""

    def case() -> Case:
        weights = sample((filters, kernel, kernel, channels // group))
        operands = (sample((1, size, size, channels)), weights, sample((filters,)))
        return Case(ConvOp, *operands, constants=(1, 2), group=group, strides=[stride, stride])

    return case


def recurrence(operator: type, gates: int, batch: int, states: int) -> Callable[[], Case]:
    """A recurrence over three steps with 64 units."""
    shapes = [(3, batch, gates * 64), (64, gates * 64), *[(batch, 64)] * states]
    return lambda: Case(operator, *(sample(shape) for shape in shapes))


def of(operator: type, *shapes: tuple[int, ...], **properties: Any) -> Callable[[], Case]:
    """An operator on inputs of these shapes."""
    return lambda: Case(operator, *(np.zeros(shape, np.float32) for shape in shapes), **properties)


def winograd(height: int, width: int, stride: int = 1) -> Example:
    """Winograd's algorithm with tiles of that form."""
    case = conv(17 if stride > 1 else 16, 64, 64, 3, stride=stride)
    return Example(case, "conv-winograd", {"height": height, "width": width})


MANY = PRESETS["avx512"].l3_bytes // 4
"""Elements of a result that is stored past the caches."""

EXAMPLES = {
    "matmul": Example(product(64, 96, 160), "matmul"),
    "row times matrix": Example(product(1, 96, 160)),
    "strassen": Example(product(256, 256, 768), "matmul-strassen"),
    "pointwise strassen": Example(conv(16, 256, 768, 1), "conv-strassen"),
    "conv": Example(conv(16, 64, 64, 3), "conv"),
    "winograd 4x4": winograd(4, 4),
    "winograd 2x2": winograd(2, 2),
    "winograd 2x4": winograd(2, 4),
    "winograd 4x2": winograd(4, 2),
    "winograd 2x2, stride 2": winograd(2, 2, stride=2),
    "winograd 2x4, stride 2": winograd(2, 4, stride=2),
    "depthwise": Example(conv(20, 64, 64, 3, group=64), few=("depthwise",)),
    "depthwise, stride 2": Example(conv(21, 64, 64, 3, group=64, stride=2), few=("depthwise",)),
    "attention": Example(of(AttentionOp, (40, 64), (43, 64), (43, 64)), few=("attention",)),
    "lstm": Example(recurrence(LstmRecurrenceOp, 4, 1, 2), few=("lstm",)),
    "lstm, batch of four": Example(recurrence(LstmRecurrenceOp, 4, 4, 2), few=("lstm",)),
    "gru": Example(recurrence(GruRecurrenceOp, 3, 1, 1), few=("gru",)),
    "rnn": Example(recurrence(RnnRecurrenceOp, 1, 1, 1), few=("rnn",)),
    "softmax": Example(of(normalization.SoftmaxOp, (40, 200), axis=-1), few=("softmax",)),
    "layer normalization": Example(of(normalization.LayerNormalizationOp, (40, 200), (200,), (200,))),
    "sum": Example(of(reductions.ReduceSumOp, (40, 200), axes=(1,))),
    "exp": Example(of(elementwise_math.ExpOp, (4000,)), few=("stack",)),
    "erf": Example(of(elementwise_math.ErfOp, (4000,)), few=("stack",)),
    "tanh": Example(of(activations.TanhOp, (4000,)), few=("stack",)),
    "gelu": Example(of(activations.GeluOp, (4000,)), few=("stack",)),
    "sin": Example(of(elementwise_math.SinOp, (4000,)), few=("stack",)),
    "add, streamed": Example(of(elementwise_binary.AddOp, (MANY,), (MANY,))),
}

TARGETS = ("avx2", "avx512", "neon")


@cache
def loops_of(name: str, target: str) -> list[Loop]:
    """The innermost loops of an example that calculate with floats, without functions that are rarely called."""
    example = EXAMPLES[name]
    text = assembly_of(example.case(), target, example.kernel, **example.tiles)
    loops = [loop for loop in innermost_loops(text) if loop.arithmetic and not loop.cold]
    assert loops, "no loop calculates"
    return loops


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_inner_loops(name: str, target: str) -> None:
    loops = loops_of(name, target)
    for function in {loop.function for loop in loops}:
        # What is left over at the end may be single floats.
        widest = max(loop.bits for loop in loops if loop.function == function)
        assert widest == PRESETS[target].vector_bits, f"{function} calculates with {widest} bits"
    for loop in loops:
        most = FEW * len(loop.lines) if loop.function.startswith(EXAMPLES[name].few) else 0
        assert len(loop.spills) <= most, f"{loop.function} accesses the stack: {loop.spills}"


@pytest.mark.parametrize("name", ["matmul", "row times matrix", "conv", "exp", "tanh", "gru", "softmax"])
def test_inner_loops_without_vectors(name: str) -> None:
    for loop in loops_of(name, "scalar"):
        assert loop.scalar == loop.arithmetic, f"{loop.function} calculates with vectors"
        assert not loop.spills, f"{loop.function} accesses the stack: {loop.spills}"


@pytest.mark.parametrize(("machine", "register"), [("avx2", "%ymm"), ("avx512", "%zmm")])
def test_streams_are_as_wide(machine: str, register: str) -> None:
    stores = [line for loop in loops_of("add, streamed", machine) for line in loop.lines if line.startswith("vmovnt")]
    assert stores
    assert all(register in line for line in stores)


def test_a_spill_is_seen() -> None:
    """A value that is stored at a fixed place is one; an element of an array is not, nor what is around the loop."""
    (loop,) = innermost_loops(SPILLING)
    assert loop.function == "f"
    assert loop.bits == 256
    assert not loop.scalar
    assert loop.spills == ["vmovups\t%ymm0, 32(%rsp)"]
    assert loop.arithmetic == ["vaddps\t(%rdi), %ymm0, %ymm0"]


def test_a_function_that_is_rarely_called_is_known() -> None:
    section = '\t.section\t.text.unlikely.,"ax",@progbits\n'
    loops = innermost_loops(f"{section}{SPILLING}\t.text\n{SPILLING}")
    assert [loop.cold for loop in loops] == [True, False]


SPILLING = """
\t.type\tf,@function
f:
\tmovss\t(%rsp), %xmm1
.LBB0_1:
\txorl\t%eax, %eax
.LBB0_2:
\tvaddps\t(%rdi), %ymm0, %ymm0
\tvmovups\t%ymm0, 32(%rsp)
\tvmovups\t%ymm0, 32(%rsp,%rax,4)
\tdecq\t%rax
\tjne\t.LBB0_2
\tdecq\t%rbx
\tjne\t.LBB0_1
\tretq
"""
