"""How accesses are aligned that go on from aligned addresses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import Param, define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, index_type, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.raise_alignments import RaiseAlignmentsPass
from glow_mlir.dialects.llvm_ops.memory import LoadOp

Body = Callable[[Builder, Value, Value], None]


def looped(step: int) -> Body:
    """A load at each turn of a loop."""

    def body(b: Builder, pointer: Value, index: Value) -> None:
        with b.loop(0, index, step) as turn:
            pointer.at(turn, f32).load(vector(f32, 4))

    return body


CASES: dict[str, tuple[Body, int]] = {
    "at the beginning": (lambda b, p, i: _load(p), 16),
    "four elements further": (lambda b, p, i: _load(p.at(4, f32)), 16),
    "two elements further": (lambda b, p, i: _load(p.at(2, f32)), 8),
    "an element further": (lambda b, p, i: _load(p.at(1, f32)), 4),
    "anywhere": (lambda b, p, i: _load(p.at(i, f32)), 4),
    "at a multiple": (lambda b, p, i: _load(p.at(i * 12 + 8, f32)), 16),
    "at a shift": (lambda b, p, i: _load(p.at(b.shl(i, 1), f32)), 8),
    "at one of two": (lambda b, p, i: _load(b.select(i.eq(0), p.at(4, f32), p.at(2, f32))), 8),
    "in a loop of four": (looped(4), 16),
    "in a loop of six": (looped(6), 8),
    "in a loop of one": (looped(1), 4),
}


def _load(pointer: Value) -> None:
    pointer.load(vector(f32, 4))


@pytest.mark.parametrize("name", CASES)
def test_alignment(name: str) -> None:
    body, wanted = CASES[name]
    module = ModuleBuilder(PRESETS["avx2"])
    with define_function(module, "f", [Param(ptr, align=64), index_type]) as (b, (pointer, index)):
        body(b, pointer, index)
    RaiseAlignmentsPass().apply(Context(), module.module)
    (load,) = (op for op in module.module.walk() if isinstance(op, LoadOp))
    said = load.properties["alignment"]
    assert isinstance(said, IntegerAttr)
    assert said.value.data == wanted


def test_nothing_is_promised_of_plain_pointers() -> None:
    module = ModuleBuilder(PRESETS["avx2"])
    with define_function(module, "f", [ptr]) as (_, (pointer,)):
        _load(pointer)
    RaiseAlignmentsPass().apply(Context(), module.module)
    (load,) = (op for op in module.module.walk() if isinstance(op, LoadOp))
    assert "alignment = 4" in str(load)
