"""Long graphs: stacks stay of reasonable size, and constants are kept, packed and declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, ModuleOp

from glow_mlir.analysis import accesses, written
from glow_mlir.analysis.least_memory import least_memory_order
from glow_mlir.analysis.order_search import Segment
from glow_mlir.analysis.placement import Placement, Request
from glow_mlir.analysis.regions import Region, region_covers
from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.selection.pack_operands import declare_weight, pack_operand
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.constants.layouts import matrix_panels
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import StorageOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import WeightOp
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.driver.pipelines import parse_pipeline
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import high_functions, low_functions
from glow_mlir.ir.text import parse_module
from glow_mlir.rewriting.elementwise_runs import MAX_BUFFERS, MAX_MEMBERS, ElementwiseRun
from glow_mlir.transforms.instructions.stack import stack_block
from glow_mlir.transforms.memory import eliminate_copies
from glow_mlir.transforms.memory.schedule import schedule_block
from glow_mlir.transforms.verification import verify_low
from glow_mlir.transforms.verification.verify_low import VerifyLowPass

PRODUCTS = """
glow_high.constant @c : tensor<2x2xf32> {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}
glow_high.placeholder @"c.panels_1_2x2" : tensor<2x2xf32> {input}
glow_high.placeholder @y : tensor<2x2xf32> {output}
glow_low.func @main(@"c.panels_1_2x2", @y) {
  %x = glow_low.weight @"c.panels_1_2x2" : memref<2x2xf32>
  %y = glow_low.weight @y {mutable} : memref<2x2xf32>
  %c = glow_low.weight @c : memref<2x2xf32>
  %t = glow_low.view %c : memref<2x2xf32> to memref<2x2xf32, strided<[1, 2]>>
  %row = glow_low.view %c : memref<2x2xf32> to memref<1x2xf32>
  glow_low.matmul @out %y, @in %x, @in %c
  glow_low.matmul @out %y, @in %x, @in %c
  glow_low.matmul @out %y, @in %x, @in %t
  glow_low.add @out %y, @in %x, @in %row
}
"""


def chain(length: int) -> ModuleOp:
    lines = [f"%{i + 1} = glow_low.alloc : memref<4xf32>" for i in range(length)]
    lines += [f"glow_low.tanh @out %{i + 1}, @in %{i}" for i in range(length)]
    text = "\n".join(["%0 = glow_low.weight @x : memref<4xf32>", *lines, f"glow_low.copy @out %y, @in %{length}"])
    return parse_module(
        "glow_high.placeholder @x : tensor<4xf32> {input}\nglow_high.placeholder @y : tensor<4xf32> {output}\n"
        f"glow_low.func @main(@x, @y) {{\n%y = glow_low.weight @y {{mutable}} : memref<4xf32>\n{text}\n}}",
        new_context(),
    )


def residual_blocks(count: int) -> ModuleOp:
    """Blocks of two branches that are added."""
    lines = ["%0 = glow_high.get @x : tensor<4x4xf32>"]
    for i in range(count):
        lines += [
            f"%a{i} = glow_high.softmax %{i} {{axis = 0}} : tensor<4x4xf32>",
            f"%b{i} = glow_high.matmul %a{i}, %{i} : tensor<4x4xf32>",
            f"%{i + 1} = glow_high.add %b{i}, %{i} : tensor<4x4xf32>",
        ]
    text = "\n".join([*lines, f"glow_high.save %{count}, @y"])
    return parse_module(
        "glow_high.placeholder @x : tensor<4x4xf32> {input}\nglow_high.placeholder @y : tensor<4x4xf32> {output}\n"
        f"glow_high.func @main(@x, @y) {{\n{text}\n}}",
        new_context(),
    )


def instructions(module: ModuleOp) -> list[DerivedInstruction]:
    return [op for op in low_functions(module)[0].block.ops if isinstance(op, DerivedInstruction)]


def test_long_runs_become_several_stacks() -> None:
    module = chain(3 * MAX_BUFFERS)
    block = low_functions(module)[0].block
    stack_block(block)
    stacks = [op for op in block.ops if isinstance(op, StackOp)]
    sizes = [len(list(op.body.block.ops)) - 1 for op in stacks]
    assert sum(sizes) == 3 * MAX_BUFFERS
    assert 3 <= len(sizes) <= 4
    assert all(len(op.operands) == 2 for op in stacks)


def test_long_runs_over_one_buffer_become_several_stacks() -> None:
    block = low_functions(chain(1))[0].block
    tanh = next(op for op in block.ops if isinstance(op, DerivedInstruction))
    for _ in range(MAX_MEMBERS):
        block.insert_op_before(tanh.clone(), tanh)
    stack_block(block)
    assert len([op for op in block.ops if isinstance(op, StackOp)]) == 2


def test_work_of_stack_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [chain(length) for length in (100, 400)]
    calls: list[DerivedInstruction] = []
    original = DerivedInstruction.uses

    def counted(self: DerivedInstruction) -> object:
        calls.append(self)
        return original(self)

    monkeypatch.setattr(DerivedInstruction, "uses", counted)
    counts: list[int] = []
    for module in modules:
        calls.clear()
        stack_block(low_functions(module)[0].block)
        counts.append(len(calls))
    assert 0 < counts[1] < 5 * counts[0]


def parts(count: int, row: bool) -> ModuleOp:
    """A buffer of rows of four or of columns, each of which becomes the same part of another by way of its own."""
    whole = f"memref<{count}x4xf32>" if row else f"memref<4x{count}xf32>"
    own = "memref<1x4xf32>" if row else "memref<4x1xf32>"
    strides, step = ("[4, 1]", 4) if row else (f"[{count}, 1]", 1)
    view = f"memref<{own[7:10]}xf32, strided<{strides}, offset: {{}}>>"
    lines: list[str] = []
    for i in range(count):
        lines += [f"%{name}{i} = glow_low.view %{name} : {whole} to {view.format(i * step)}" for name in "xy"]
        lines += [f"%{name}{i} = glow_low.alloc : {own}" for name in "ab"]
    lines += [f"glow_low.copy @out %a{i}, @in %x{i}" for i in range(count)]
    lines += [f"glow_low.tanh @out %b{i}, @in %a{i}" for i in range(count)]
    lines += [f"glow_low.copy @out %y{i}, @in %b{i}" for i in range(count)]
    type_, text = f"tensor<{whole[7:]}", "\n".join(lines)
    return parse_module(
        f"glow_high.placeholder @x : {type_} {{input}}\nglow_high.placeholder @y : {type_} {{output}}\n"
        f"glow_low.func @main(@x, @y) {{\n"
        f"%x = glow_low.weight @x : {whole}\n%y = glow_low.weight @y {{mutable}} : {whole}\n{text}\n}}",
        new_context(),
    )


PARTS = "assign-target,eliminate-copies,stack,eliminate-copies,fuse-epilogues,fuse-prologues"


@pytest.mark.parametrize("row", [True, False])
def test_work_on_parts_of_a_buffer_is_linear(row: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is compared with those that it meets, and not with all that are there."""
    steps: list[object] = []

    def counting(original: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object) -> object:
            steps.append(args)
            return original(*args)

        return counted

    for owner, name in (
        (ElementwiseRun, "accepts"),
        (ElementwiseRun, "conflicts"),
        (eliminate_copies, "regions_overlap"),
        (accesses, "regions_overlap"),
    ):
        monkeypatch.setattr(owner, name, counting(getattr(owner, name)))
    counts: list[int] = []
    for count in (40, 160):
        module = parts(count, row)
        steps.clear()
        for item in parse_pipeline(PARTS).passes:
            item.apply(new_context(), module)
        assert len([op for op in low_functions(module)[0].block.ops if isinstance(op, StackOp)]) == count
        counts.append(len(steps))
    assert 0 < counts[1] < 5 * counts[0]


def test_equal_constants_are_one() -> None:
    module = ModuleOp([])
    storage = Storage(module)
    for size in (4, 100):
        first = storage.add_constant("a", np.ones(size, np.float32))
        assert storage.add_constant("b", np.ones(size, np.float32)) is first
        assert storage.add_constant("b", np.ones((size, 1), np.float32)) is not first
        assert Storage(module).add_constant("b", np.ones(size, np.float32)) is first
        module.body.block.erase_op(first)
        again = storage.add_constant("a", np.ones(size, np.float32))
        assert again is not first
        assert again.parent is module.body.block


def test_names_are_found_without_trying_all() -> None:
    storage = Storage(ModuleOp([]))
    tried: list[object] = []

    class Counted(dict[str, StorageOp]):
        def __contains__(self, name: object) -> bool:
            tried.append(name)
            return super().__contains__(name)

    storage.by_name = Counted()
    names = [storage.add_constant("a", np.full(3, i, np.float32)).sym_name.data for i in range(100)]
    assert names == ["a", *(f"a_{i}" for i in range(1, 100))]
    assert len(tried) <= 300


def test_storage_stays_before_the_functions() -> None:
    module = parse_module(PRODUCTS, new_context())
    storage = Storage(module)
    module.body.block.erase_op(storage.add_constant("a", np.ones(3, np.float32)))
    storage.add_constant("a", np.ones(5, np.float32))
    function = low_functions(module)[0]
    function.detach()
    storage.add_constant("a", np.ones(7, np.float32))
    module.body.block.add_op(function)
    storage.add_constant("a", np.ones(9, np.float32))
    assert [isinstance(op, StorageOp) for op in module.body.block.ops] == [True] * 6 + [False]


def test_only_whole_constants_are_packed_each_once() -> None:
    module = parse_module(PRODUCTS, new_context())
    storage = Storage(module)
    first, second, transposed, row = instructions(module)
    form = PackedForm(matrix_panels((2, 2), 1), f32)
    assert pack_operand(first, "right", storage, form)
    assert pack_operand(second, "right", storage, form)
    assert first.operands[2] is second.operands[2]
    weight = first.operands[2].owner
    assert isinstance(weight, WeightOp)
    assert weight.storage_name == "c.panels_1_2x2_1"
    assert not pack_operand(transposed, "right", storage, form)
    assert not pack_operand(row, "right", storage, form)
    assert not pack_operand(first, "left", storage, form)


def test_weights_are_declared_once_at_the_start() -> None:
    module = parse_module(PRODUCTS, new_context())
    storage = Storage(module)
    (first, *_), block = instructions(module), low_functions(module)[0].block
    weights = [op for op in block.ops if isinstance(op, WeightOp)]
    weights[1].detach()
    block.add_op(weights[1])
    assert declare_weight(first, storage, "y") is weights[1].result
    assert block.first_op is weights[1]
    storage.add_constant("new", np.ones(3, np.float32))
    declared = declare_weight(first, storage, "new")
    assert declare_weight(first, storage, "new") is declared
    assert isinstance(declared.owner, WeightOp)
    block.erase_op(declared.owner)
    assert declare_weight(first, storage, "new") is not declared


def test_operands_are_decoded_once_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many instructions there are."""
    decoded: list[object] = []
    unpack = IntegerType.unpack

    def counted(self: IntegerType, buffer: bytes, num: int, /) -> tuple[int, ...]:
        decoded.append(buffer)
        return unpack(self, buffer, num)

    ops = instructions(chain(300))
    assert [name for name, _, _ in ops[0].named_uses()] == ["result", "input"]
    monkeypatch.setattr(IntegerType, "unpack", counted)
    assert all(op.inputs()[0] is op.operands[1] for op in ops)
    assert not decoded


def concatenation(count: int) -> ModuleOp:
    """One instruction that reads `count` inputs."""
    names = [f"@x{i}" for i in range(count)]
    inputs = "\n".join(f"glow_high.placeholder {name} : tensor<1xf32> {{input}}" for name in names)
    weights = "\n".join(f"%{i} = glow_low.weight {name} : memref<1xf32>" for i, name in enumerate(names))
    operands = ", ".join(f"@in %{i}" for i in range(count))
    return parse_module(
        f"{inputs}\nglow_high.placeholder @y : tensor<{count}xf32> {{output}}\n"
        f"glow_low.func @main({', '.join(names)}, @y) {{\n%y = glow_low.weight @y {{mutable}} : memref<{count}xf32>\n"
        f"{weights}\nglow_low.concat @out %y, {operands} {{axis = 0}}\n}}",
        new_context(),
    )


def test_work_of_verify_low_is_linear_in_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands are not compared with those of other allocations."""
    pairs: list[object] = []

    def counted(uses: list[object], size: int) -> Iterator[tuple[object, ...]]:
        for pair in combinations(uses, size):
            pairs.append(pair)
            yield pair

    monkeypatch.setattr(verify_low, "combinations", counted)
    VerifyLowPass().apply(new_context(), concatenation(100))
    assert len(pairs) <= 100


def pieces(count: int) -> ModuleOp:
    """One buffer written in `count` pairs of elements, from the first on, of which each is read once as one part."""
    type_ = f"memref<{2 * count}xf32>"
    lines = [f"%a = glow_low.alloc : {type_}"]
    for name, size, step in (("w", 2, 2), ("r", 1, 2), ("s", 1, 1)):
        view = f"memref<{size}xf32, strided<[1], offset: {{}}>>"
        lines += [f"%{name}{i} = glow_low.view %a : {type_} to {view.format(i * step)}" for i in range(count)]
    lines += [f"glow_low.tanh @out %w{i}, @in %x" for i in range(count)]
    lines += [f"glow_low.tanh @out %y, @in %{name}{i}" for name in "rs" for i in range(count)]
    text = "\n".join([*lines, "glow_low.dealloc @out %a"])
    return parse_module(
        "glow_high.placeholder @x : tensor<2xf32> {input}\nglow_high.placeholder @y : tensor<1xf32> {output}\n"
        "glow_low.func @main(@x, @y) {\n%x = glow_low.weight @x : memref<2xf32>\n"
        f"%y = glow_low.weight @y {{mutable}} : memref<1xf32>\n{text}\n}}",
        new_context(),
    )


def test_work_of_verify_low_is_linear_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read of a buffer is compared with a few of the regions that have been written, and not with all."""
    compared: list[object] = []

    def counted(whole: Region, part: Region) -> bool:
        compared.append(part)
        return region_covers(whole, part)

    modules = [pieces(count) for count in (100, 400)]
    monkeypatch.setattr(written, "region_covers", counted)
    counts: list[int] = []
    for module in modules:
        compared.clear()
        VerifyLowPass().apply(new_context(), module)
        counts.append(len(compared))
    assert 0 < counts[1] < 5 * counts[0]


def test_work_of_allocate_is_linear() -> None:
    work: list[int] = []
    for length in (200, 800):
        placement = Placement([Request(begin, begin + 2 + begin % 3, 64 * (1 + begin % 7)) for begin in range(length)])
        for order in placement.orders():
            placement.first_fit(order)
        work.append(placement.work)
    assert 0 < work[1] < 5 * work[0]


def test_work_of_schedule_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [residual_blocks(count) for count in (20, 80)]
    calls: list[int] = []
    original = Segment.cost

    def counted(self: Segment, position: int, done: int) -> tuple[int, int]:
        calls.append(position)
        return original(self, position, done)

    monkeypatch.setattr(Segment, "cost", counted)
    counts: list[int] = []
    for module in modules:
        calls.clear()
        (function,) = high_functions(module)
        schedule_block(function.block, least_memory_order)
        function.verify()
        counts.append(len(calls))
    assert 0 < counts[1] < 5 * counts[0]


def high_chain(lines: Callable[[int], str], length: int) -> ModuleOp:
    """A graph of `length` links, each made by `lines` from its number i: it defines `%v{i}` from `%v{i - 1}`."""
    body = "\n".join(lines(index) for index in range(1, length + 1))
    return parse_module(
        "glow_high.placeholder @x : tensor<8x8xf32> {input}\nglow_high.placeholder @y : tensor<8x8xf32> {output}\n"
        f"glow_high.func @main(@x, @y) {{\n%v0 = glow_high.get @x : tensor<8x8xf32>\n{body}\n"
        f"glow_high.save %v{length}, @y\n}}",
        new_context(),
    )


T8 = "tensor<8x8xf32>"
LINKS: dict[str, Callable[[int], str]] = {
    "clips": lambda i: (
        f"%s{i} = glow_high.splat {{value = {float(i)}}} : tensor<f32>\n%v{i} = glow_high.min %v{i - 1}, %s{i} : {T8}"
    ),
    "reshapes": lambda i: (
        f"%r{i} = glow_high.reshape %v{i - 1} {{shape = [64]}} : tensor<64xf32>\n"
        f"%v{i} = glow_high.reshape %r{i} {{shape = [8, 8]}} : {T8}"
    ),
    "concats": lambda i: (
        f"%c{i} = glow_high.concat %v{i - 1}, %v0 {{axis = 0}} : tensor<16x8xf32>\n"
        f"%v{i} = glow_high.slice %c{i} {{starts = [8, 0], ends = [16, 8]}} : {T8}"
    ),
    "transposes": lambda i: (
        f"%t{i} = glow_high.transpose %v{i - 1} {{permutation = [1, 0]}} : {T8}\n%v{i} = glow_high.tanh %t{i} : {T8}"
    ),
}
"""What a chain is made of."""

PIPELINE = "canonicalize,shrink-splats,sink-transposes,sink-reshapes,remove-identity-clips"


@pytest.mark.parametrize("name", LINKS)
def test_rewriting_of_chains_is_linear(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times as many operators take about ten times as many new ones, and the result is as short as it can be."""
    built: list[type[HighOp]] = []
    original = HighOp.inferred.__func__

    def counted(cls: type[HighOp], *args: object) -> object:
        built.append(cls)
        return original(cls, *args)

    modules = [high_chain(LINKS[name], length) for length in (100, 1000)]
    monkeypatch.setattr(HighOp, "inferred", classmethod(counted))
    counts: list[int] = []
    for module in modules:
        built.clear()
        for item in parse_pipeline(PIPELINE).passes:
            item.apply(new_context(), module)
        counts.append(len(built))
    assert 0 < counts[1] <= 12 * counts[0]
    left = len(list(high_functions(modules[1])[0].block.ops))
    assert left == {"clips": 4, "transposes": 1002}.get(name, 2)
