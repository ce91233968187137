"""Accesses to memory, also from regions inside ops; what lies in a region happens at the position of its op."""

from __future__ import annotations

from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from glow_mlir.analysis.accesses import Accesses
from glow_mlir.dialects.glow_low.memory import AllocOp, CopyOp, DeallocOp, FuncOp, ViewOp
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.text import parse_module
from glow_mlir.transforms.memory.eliminate_copies import EliminateCopiesPass
from glow_mlir.transforms.memory.eliminate_dead_stores import eliminate_dead_stores
from glow_mlir.transforms.memory.share_buffers import ShareBuffersPass
from glow_mlir.transforms.memory.shorten_lifetimes import shorten

PROGRAM = """
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<8xf32> {output}
glow_low.func @main(@x, @y) attributes {target = #glow.target<backend = "interpreter">} {
  %x = glow_low.weight @x : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<8xf32>
  %a = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %a, @in %x
  %b = glow_low.alloc : memref<4xf32>
  glow_low.tanh @out %b, @in %a
  %low = glow_low.view %y : memref<8xf32> to memref<4xf32>
  glow_low.copy @out %low, @in %b
  %high = glow_low.view %y : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  glow_low.copy @out %high, @in %a
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}
"""


def program() -> tuple[ModuleOp, FuncOp]:
    module = parse_module(PROGRAM, new_context())
    (function,) = low_functions(module)
    return module, function


def names(function: FuncOp) -> list[str]:
    return [op.name.split(".")[1] for op in function.walk() if op is not function]


def enclose(op: Operation) -> test.TestOp:
    """Put an op into the region of another, as the body of a loop would be."""
    block = op.parent_block()
    assert block is not None
    loop = test.TestOp(regions=[Region(Block())])
    block.insert_op_before(loop, op)
    op.detach()
    loop.regions[0].block.add_op(op)
    return loop


def found(function: FuncOp, kind: type[Operation], number: int = 0) -> Operation:
    return [op for op in function.walk() if isinstance(op, kind)][number]


def test_accesses_are_found_by_root() -> None:
    _, function = program()
    accesses = Accesses.of(function.block)
    a, b = (op for op in function.walk() if isinstance(op, AllocOp))
    assert [(access.op.name, access.reads, access.writes) for access in accesses.to(a.result)] == [
        ("glow_low.relu", False, True),
        ("glow_low.tanh", True, False),
        ("glow_low.copy", True, False),
    ]
    y = found(function, ViewOp).operands[0]
    assert [access.region.offset for access in accesses.to(y)] == [0, 4]
    positions = [access.position for access in accesses.to(b.result)]
    assert positions == sorted(positions)
    assert isinstance(accesses.deallocs[a.result], DeallocOp)


def test_an_access_in_a_region_is_at_the_position_of_the_op() -> None:
    _, function = program()
    copy = found(function, CopyOp, 1)
    loop = enclose(copy)
    accesses = Accesses.of(function.block)
    last = accesses.to(found(function, AllocOp).results[0])[-1]
    assert last.op is copy
    assert last.position == accesses.positions[loop]


def test_an_unknown_op_reads_and_writes() -> None:
    _, function = program()
    a = found(function, AllocOp)
    user = test.TestOp(operands=[a.results[0]])
    function.block.insert_op_after(user, a)
    first = Accesses.of(function.block).to(a.results[0])[0]
    assert (first.op, first.reads, first.writes) == (user, True, True)


def test_passes_see_into_regions() -> None:
    """A buffer that a region reads stays alive, is not overwritten, and what writes it is not dead."""
    module, function = program()
    copy = found(function, CopyOp, 1)
    loop = enclose(copy)
    ShareBuffersPass().apply(new_context(), module)
    assert names(function).count("alloc") == 2
    eliminate_dead_stores(function.block)
    assert {"relu", "tanh"} <= set(names(function))
    shorten(function.block)
    end = next(op for op in function.block.ops if isinstance(op, DeallocOp) and op.buffer is copy.operands[1])
    assert end.prev_op is loop
    EliminateCopiesPass().apply(new_context(), module)
    assert names(function).count("copy") == 1
    assert names(function).count("alloc") == 1


def test_without_regions_both_copies_go() -> None:
    module, function = program()
    EliminateCopiesPass().apply(new_context(), module)
    assert names(function) == ["weight", "weight", "view", "relu", "view", "tanh"]
