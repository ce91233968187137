"""Walks over functions with nested regions: their order, what they leave out, and changes on the way."""

from __future__ import annotations

from xdsl.ir import Operation

from glow_mlir.analysis.liveness import lifetimes
from glow_mlir.dialects.glow_low.loop import LoopOp
from glow_mlir.dialects.glow_low.memory import DeallocOp, FuncOp
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.text import parse_module
from glow_mlir.ir.traversal import (
    blocks,
    blocks_inside_out,
    function_of,
    operations,
    operations_backward,
    own_operations,
    own_operations_backward,
    spans,
    subtree,
    within,
)

TEXT = """
glow_low.func @main() {
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.fill @out %0 {value = 0.0 : f32}
  glow_low.loop %i = 2 {
    %1 = glow_low.alloc : memref<4xf32>
    glow_low.stack @out %1, @in %0
        {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
    ^bb0(%a: f32):
      glow_low.yield %a : f32
    }
    glow_low.loop %j = 3 {
      glow_low.relu @out %0, @in %1
    }
    glow_low.dealloc @out %1
  }
  glow_low.dealloc @out %0
}
"""

ALL = ["alloc", "fill", "loop", "alloc", "stack", "loop", "relu", "dealloc", "dealloc"]
OWN = ["alloc", "fill", "loop", "dealloc"]


def function() -> FuncOp:
    (found,) = low_functions(parse_module(TEXT, new_context()))
    return found


def short(op: Operation) -> str:
    return op.name.partition(".")[2]


def test_operations_come_in_the_order_of_the_program() -> None:
    found = function()
    assert [short(op) for op in operations(found)] == ALL
    assert [short(op) for op in own_operations(found)] == OWN


def test_backward_walks_are_the_reverse() -> None:
    found = function()
    assert list(operations_backward(found)) == list(operations(found))[::-1]
    assert list(own_operations_backward(found)) == list(own_operations(found))[::-1]


def test_bodies_of_scalar_operations_are_left_out() -> None:
    found = function()
    (stack,) = (op for op in operations(found) if isinstance(op, StackOp))
    assert list(subtree(stack)) == [stack]
    assert len(blocks(found)) == 3


def test_blocks_stand_in_front_of_those_inside() -> None:
    found = function()
    outer, inner = (op for op in operations(found) if isinstance(op, LoopOp))
    assert blocks(found) == [found.block, outer.block, inner.block]
    assert blocks_inside_out(found) == [inner.block, outer.block, found.block]


def test_an_operation_may_be_erased_while_it_is_visited() -> None:
    found = function()
    for walk in (operations_backward(found), operations(found)):
        for op in walk:
            if short(op) in ("relu", "stack", "fill", "dealloc"):
                op.detach()
                op.erase()
    assert [short(op) for op in operations(found)] == ["alloc", "loop", "alloc", "loop"]


def test_parents_are_found_from_any_depth() -> None:
    found = function()
    outer, inner = (op for op in operations(found) if isinstance(op, LoopOp))
    (relu,) = own_operations(inner.block)
    assert within(found.block, relu) is outer
    assert within(outer.block, relu) is inner
    assert within(inner.block, outer) is None
    assert function_of(relu) is found


def test_spans_nest_as_regions_do() -> None:
    found = function()
    outer, inner = (op for op in operations(found) if isinstance(op, LoopOp))
    numbers = spans(found)
    assert numbers[outer] == (2, 8)
    assert numbers[inner] == (5, 7)
    assert [numbers[op].begin for op in operations(found)] == list(range(len(ALL)))


def test_memory_without_an_end_lives_through_a_loop_that_ends_its_block() -> None:
    found = function()
    for op in list(own_operations(found)):
        if isinstance(op, DeallocOp):
            found.block.erase_op(op)
    outer, inner = lifetimes(found)
    assert (outer.begin, outer.end) == (0, 8)
    assert outer.overlaps(inner)


def test_memory_that_a_loop_uses_lives_in_all_its_trips() -> None:
    outer, inner = lifetimes(function())
    assert (outer.begin, outer.end) == (0, 8)
    assert (inner.begin, inner.end) == (3, 7)
    assert outer.overlaps(inner)
