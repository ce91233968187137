"""Products of integers in machine code: the very sums of the interpreter, on every target that this machine can run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from assembly import assembly_of
from breadth import share
from execute import Case, check_all, runnable_targets
from machines import dot_product_targets
from xdsl.ir import Attribute

from glow_mlir.backends.cpu.targets import PRESETS, lacks
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.products import dot_products
from glow_mlir.codegen.kernels.products.dot_products import DOT_INSTRUCTIONS, DotInstruction, Parts
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.target import Target

RANDOM = np.random.default_rng(7)
BYTES = (np.uint8, np.int8)
FOREIGN = [found for found in DOT_INSTRUCTIONS if type(found) is DotInstruction]
TARGETS = [*runnable_targets(), *dot_product_targets()]


def integers(shape: Sequence[int], kind: type[np.generic]) -> np.ndarray:
    """Integers of the whole range of a type, with both ends among them."""
    info = np.iinfo(np.dtype(kind).name)
    found = RANDOM.integers(info.min, info.max, shape, kind, endpoint=True)
    ends = found.reshape(-1)[:2]
    ends[...] = (info.min, info.max)[: ends.size]
    return found


def both(operator: type[HighOp], *operands: np.ndarray | None, **properties: Any) -> list[Case]:
    """A product with a right operand that is a constant, and with one that is known at run time only."""
    return [Case(operator, *operands, constants=constants, **properties) for constants in ((1,), ())]


@pytest.mark.parametrize("target", TARGETS)
def test_matrix_products_are_exact(target: str) -> None:
    """All signs, rows, columns and depths that are no multiples of tiles and dot groups; batches; a bias."""
    cases: list[Case] = []
    for left in BYTES:
        for rows, depth, columns in [(1, 1, 1), (3, 7, 5), (13, 66, 70), (7, 129, 100)]:
            bias = integers((columns,), np.int32)
            cases += both(MatMulOp, integers((rows, depth), left), integers((depth, columns), np.int8), bias)
            turned = integers((columns, depth), np.int8)
            cases += both(MatMulOp, integers((rows, depth), left), turned, transpose_right=True)
        cases += both(MatMulOp, integers((2, 3, 5, 9), left), integers((3, 9, 33), np.int8))
        cases += both(MatMulOp, integers((2, 5, 9), left), integers((9, 17), np.uint8))
    for kind in (np.int16, np.uint16, np.int32, np.int64, np.uint32):
        cases += both(MatMulOp, integers((2, 5, 19), kind), integers((19, 37), kind))
    check_all(share(cases, target), target, 0.0)


@pytest.mark.parametrize("target", TARGETS)
def test_convolutions_are_exact(target: str) -> None:
    """
    One to three axes, strides, dilations, groups, one filter a channel; channels that are no multiples of dot groups.
    """
    cases: list[Case] = []
    for left in BYTES:
        for right in BYTES:
            cases += both(ConvOp, integers((2, 9, 10, 6), left), integers((5, 3, 2, 6), right))
        image = integers((1, 11, 12, 8), left)
        bias = integers((70,), np.int32)
        cases += both(ConvOp, image, integers((70, 3, 3, 8), np.int8), bias, strides=[2, 2])
        cases += both(ConvOp, image, integers((16, 3, 3, 2), np.int8), group=4, dilations=[2, 1])
        cases += both(ConvOp, image, integers((8, 3, 3, 1), np.int8), group=8)
        cases += both(ConvOp, image, integers((9, 1, 1, 8), np.int8))
        cases += both(ConvOp, integers((1, 23, 23, 3), left), integers((20, 7, 7, 3), np.int8), strides=[2, 2])
        cases += both(ConvOp, integers((2, 19, 5), left), integers((3, 4, 5), np.int8))
        cases += both(ConvOp, integers((1, 4, 5, 6, 3), left), integers((7, 2, 2, 2, 3), np.int8))
        cases += both(ConvOp, integers((1, 9, 9, 70), left), integers((70, 3, 3, 1), np.int8), group=70, strides=[2, 1])
    check_all(share(cases, target), target, 0.0)


@pytest.mark.parametrize("target", TARGETS)
def test_one_filter_a_channel_is_exact(target: str) -> None:
    """Filters with as many lines as dot groups, more and fewer, of one line or column; tiles that images cut."""
    bias = integers((33,), np.int32)

    def case(x: np.ndarray, kernel: Sequence[int], **properties: Any) -> Case:
        return Case(ConvOp, x, integers((33, *kernel, 1), np.int8), bias, constants=(1,), group=33, **properties)

    image = integers((1, 12, 17, 33), np.int8)
    cases = [
        case(image, (5, 5)),
        case(image, (3, 3), strides=[2, 2]),
        case(image, (4, 2), dilations=[2, 3]),
        case(image, (9, 1)),
        case(image, (1, 9), strides=[1, 2]),
        case(integers((1, 12, 5, 33), np.uint8), (3, 3)),
        case(integers((1, 40, 33), np.int8), (7,)),
        case(integers((1, 4, 5, 5, 33), np.int8), (2, 3, 3)),
    ]
    check_all(share(cases, target), target, 0.0)


@pytest.mark.parametrize("target", TARGETS)
def test_the_largest_products_fit_their_sums(target: str) -> None:
    """Bytes at the ends of their ranges, whose pairs would not fit 16 bits."""
    cases: list[Case] = []
    for left, ends in ((np.uint8, (255, 0)), (np.int8, (127, -128))):
        for end in ends:
            for weight in (-128, 127):
                x, w = np.full((7, 4100), end, left), np.full((4100, 70), weight, np.int8)
                cases.append(Case(MatMulOp, x, w, constants=(1,)))
    check_all(share(cases, target), target, 0.0)


@dataclass(frozen=True)
class Emulated(DotInstruction):
    """What an instruction does that no machine need have, in plain operations."""

    def is_available(self, target: Target) -> bool:
        return target.vector_bits in self.widths

    def emit(self, b: Builder, total: Value, left: Parts, right: Parts) -> Value:
        for place in range(4):
            mask = range(place, 4 * total.lanes, 4)
            x, y = (b.shuffle(value, value, mask) for value in (*left, *right))
            total = total + b.cast(x, i32, signed=self.is_left_signed) * b.cast(y, i32)
        return total


@pytest.mark.parametrize("instruction", FOREIGN, ids=lambda instruction: instruction.name)
def test_every_instruction_for_products_of_bytes_gives_the_same_sums(
    instruction: DotInstruction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those too that no machine at hand has: what they do is emulated."""
    found = instruction
    emulated = Emulated(found.name, found.features, (64, 128, 256, 512), found.intrinsic, found.is_left_signed)
    monkeypatch.setattr(dot_products, "DOT_INSTRUCTIONS", (emulated,))
    cases: list[Case] = []
    for left in BYTES:
        cases += both(MatMulOp, integers((7, 67), left), integers((67, 75), np.int8), integers((75,), np.int32))
        cases += both(MatMulOp, integers((2, 7, 6), left), integers((2, 9, 6), np.int8), transpose_right=True)
        cases += both(ConvOp, integers((1, 9, 9, 3), left), integers((20, 3, 3, 3), np.int8))
        cases += both(ConvOp, integers((1, 9, 9, 8), left), integers((6, 2, 2, 4), np.int8), group=2)
    check_all(share(cases, found.name), runnable_targets()[-1], 0.0)


def _halves(b: Builder, words: Value) -> tuple[Value, Value]:
    """The two words of 16 bits in one of 32, with their signs."""
    return b.ashr(b.shl(words, 16), 16), b.ashr(words, 16)


def _signed_bytes(b: Builder, dot_group: Value) -> Value:
    low, high = b.ashr(b.shl(dot_group, 24), 24), b.ashr(b.shl(dot_group, 8), 24)
    return (low & 0xFFFF) | b.shl(high, 16)


def _unsigned_bytes(_: Builder, dot_group: Value) -> Value:
    return dot_group & 0x00FF00FF


def _add_two_products(b: Builder, x: Value, y: Value, total: Value) -> Value:
    (x0, x1), (y0, y1) = _halves(b, x), _halves(b, y)
    return total + x0 * y0 + x1 * y1


def _add_all_products(b: Builder, *operands: Value) -> Value:
    *_, total, x, y = operands
    return total + b.reduce(b.cast(x, i32) * b.cast(y, i32), b.add)


def _sum_pairs(b: Builder, x: Value, y: Value) -> Value:
    products = b.cast(x, i32) * b.cast(y, i32)
    even, odd = (b.shuffle(products, products, range(first, products.lanes, 2)) for first in (0, 1))
    return even + odd


EMULATIONS: Mapping[str, Callable[..., Value]] = {
    "llvm.arm.sxtb16": _signed_bytes,
    "llvm.arm.uxtb16": _unsigned_bytes,
    "llvm.arm.smlad": _add_two_products,
    "llvm.arm.mve.vmldava.v16i8": _add_all_products,
    "llvm.wasm.dot": _sum_pairs,
}
"""Intrinsic of another architecture → what it does, in plain operations."""


@pytest.mark.parametrize(("name", "target"), [("smlad", "scalar"), ("vmladava", "avx2"), ("i32x4.dot", "sse2")])
def test_instructions_of_small_machines_give_the_same_sums(
    name: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Runs of the depth that fill dot groups, do not, and are shorter than one; packing at compile time and at run time.
    """
    if lacks(PRESETS[target]):
        pytest.skip(f"this machine cannot run code for {target}")
    (found,) = (instruction for instruction in DOT_INSTRUCTIONS if instruction.name == name)
    there = dataclasses.replace(found, features=frozenset(), widths=(PRESETS[target].vector_bits,))
    monkeypatch.setattr(dot_products, "DOT_INSTRUCTIONS", (there,))
    monkeypatch.setattr(dot_products, "_DOT_PRODUCTS", {})  # What this machine has is known from other tests.
    real = Builder.intrinsic

    def intrinsic(b: Builder, name: str, operands: Sequence[Value], result: Attribute) -> Value:
        emulated = EMULATIONS.get(name)
        return real(b, name, operands, result) if emulated is None else emulated(b, *operands)

    monkeypatch.setattr(Builder, "intrinsic", intrinsic)
    cases = [
        *both(MatMulOp, integers((3, 35), np.uint8), integers((35, 5), np.int8), integers((5,), np.int32)),
        Case(MatMulOp, integers((3, 35), np.int8), integers((35, 5), np.int8), constants=(1,)),
        Case(MatMulOp, integers((3, 6), np.int8), integers((5, 6), np.int8), transpose_right=True),
        Case(ConvOp, integers((1, 3, 4, 3), np.int8), integers((5, 2, 3, 3), np.int8), constants=(1,)),
        Case(ConvOp, integers((1, 3, 4, 36), np.uint8), integers((6, 2, 2, 18), np.int8), group=2),
    ]
    check_all(share(cases, target), target, 0.0)


@pytest.mark.parametrize(
    ("target", "instruction"), [("cortex-m7", "smlad"), ("cortex-m55", "vmlava"), ("wasm32", "i32x4.dot_i16x8_s")]
)
def test_products_of_bytes_are_dot_products_on_small_machines(target: str, instruction: str) -> None:
    # So many weights that they are fetched ahead.
    x, w = integers((8, 512), np.int8), integers((512, 256), np.int8)
    assert instruction in assembly_of(Case(MatMulOp, x, w, constants=(1,)), target)


@pytest.mark.parametrize("features", ["+dotprod", "+dotprod,+i8mm"])
def test_products_of_bytes_are_dot_products_on_arm(features: str) -> None:
    for left in BYTES:
        x, w = integers((24, 64), left), integers((64, 64), np.int8)
        text = assembly_of(Case(MatMulOp, x, w, constants=(1,)), f"neon,features=+neon,{features}")
        is_mixed = "i8mm" in features and left is np.uint8
        assert ("usdot" if is_mixed else "sdot") in text
        assert "smull" not in text
