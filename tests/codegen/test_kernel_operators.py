"""Kernels are asked about the operators that are their type argument, and about nothing else."""

from __future__ import annotations

from typing import TypeVar

import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.backends.cpu.backend import CpuBackend
from glow_mlir.codegen.kernels.expressions.generic import GenericKernel
from glow_mlir.codegen.kernels.expressions.windows import WindowsKernel
from glow_mlir.codegen.kernels.tiled import tiled
from glow_mlir.codegen.selection.acceptance import executes
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, kind_of
from glow_mlir.dialects.glow_high.activations import ReluOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, ExpOp
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.glow_high.reductions import ReduceL1Op
from glow_mlir.dialects.shapes import tensor

Chosen = TypeVar("Chosen", bound=Operation)


class Strange(Exception):
    """A kernel was asked about what it is not for."""


class Picky(Kernel[AbsOp | ExpOp]):
    """A kernel for two operators, which nobody may ask about others."""

    name = "picky"

    def accepts(self, op: AbsOp | ExpOp) -> bool:
        kind = kind_of(op)
        if kind not in (AbsOp, ExpOp):
            raise Strange
        return kind is AbsOp

    def emit(self, call: KernelCall[AbsOp | ExpOp]) -> None:
        raise NotImplementedError


class Shared(Kernel[Chosen]):
    """What kernels for different operators have in common."""

    def emit(self, call: KernelCall[Chosen]) -> None:
        raise NotImplementedError


class Inherited(Shared[ReluOp]):
    """A kernel that says its operators by the class in between."""

    name = "inherited"


class Nameless(Kernel):
    """A kernel that says nothing of its operators, and so is asked about none."""

    name = "nameless"

    def emit(self, call: KernelCall) -> None:
        raise NotImplementedError


class Extended(Inherited):
    """A kernel for the operators of the one that it extends."""

    name = "extended"


@pytest.fixture
def operand() -> SSAValue:
    (found,) = Block(arg_types=[tensor((2, 3), f32)]).args
    return found


@pytest.mark.parametrize(
    ("kernel", "operators"),
    [
        (Picky, (AbsOp, ExpOp)),
        (Shared, ()),
        (Nameless, ()),
        (Inherited, (ReluOp,)),
        (Extended, (ReluOp,)),
        (GenericKernel, (GenericOp, Expressed)),
        (WindowsKernel, (GenericOp, Expressed)),
    ],
)
def test_operators_are_the_type_argument(kernel: type[Kernel], operators: tuple[type[Operation], ...]) -> None:
    assert kernel.operators == operators


def test_kernel_is_asked_about_its_operators_alone(operand: SSAValue) -> None:
    assert executes(Picky(), AbsOp.make(operand))
    assert not executes(Picky(), ExpOp.make(operand))
    assert not executes(Picky(), ReluOp.make(operand))


def test_backend_asks_kernels_for_an_operator_alone(operand: SSAValue, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = CpuBackend()
    monkeypatch.setattr(CpuBackend, "kernels", {"picky": Picky()})
    assert backend.supports(AbsOp.make(operand))
    assert not backend.supports(ExpOp.make(operand))
    assert not backend.supports(ReluOp.make(operand))


def test_base_of_operators_stands_for_all_of_them(operand: SSAValue) -> None:
    reduced = ReduceL1Op.make(operand, axes=[0])
    assert GenericKernel().is_for(reduced)
    assert not GenericKernel().is_for(AbsOp.make(operand))


def test_all_of_the_operators_are_accepted_unless_the_kernel_says_otherwise(operand: SSAValue) -> None:
    assert executes(Inherited(), ReluOp.make(operand))
    assert not executes(Nameless(), ReluOp.make(operand))


def test_kernel_that_runs_another_one_tile_by_tile_is_for_the_same_operators(operand: SSAValue) -> None:
    by_tiles = tiled(Picky())
    assert by_tiles.operators == (AbsOp, ExpOp)
    assert by_tiles.is_for(ExpOp.make(operand))
    assert not by_tiles.is_for(ReluOp.make(operand))


def test_kernels_of_the_processor_say_their_operators() -> None:
    assert not [name for name, kernel in CpuBackend().kernels.items() if not kernel.operators]
