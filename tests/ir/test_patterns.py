"""Walks try patterns where they are rooted, once each, in order, and in branches and loops as well."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.activations import ReluOp, TanhOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, ExpOp, NegOp
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.glow_low.memory import CopyOp
from glow_mlir.ir.context import new_context
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.patterns import Kinds, Pattern, Walk, following, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.statistics import counting
from glow_mlir.ir.text import parse_module

TEXT = """
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %a = glow_high.relu %x : tensor<4xf32> loc("first")
  %b = glow_high.tanh %a : tensor<4xf32> loc("second")
  %c = glow_high.relu %b : tensor<4xf32> loc("third")
  glow_high.save %c, @y
}
"""

Rewrite = Callable[[Operation, Rewriter], None]


class Given(Pattern):
    """A pattern for a test, which notes where it is tried."""

    def __init__(self, name: str, roots: Kinds, rewrite: Rewrite = lambda op, rewriter: None) -> None:
        self.name = name
        self.kinds = roots
        self.rewrite = rewrite
        self.tried: list[str | None] = []

    @property
    def roots(self) -> Kinds:
        return self.kinds

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        assert isinstance(rewriter, Rewriter)
        self.tried.append(op.results[0].name_hint if op.results else op.name)
        self.rewrite(op, rewriter)


class ReluToAbs(Pattern):
    """Another function, so that one sees where it was applied."""

    @rooted
    def match_and_rewrite(self, op: ReluOp, rewriter: Rewriter, /) -> None:
        rewriter.replace(op, AbsOp.make(op.input))


def abs_instead(op: Operation, rewriter: Rewriter) -> None:
    rewriter.replace(op, AbsOp.make(op.operands[0]))


def run(*patterns: Pattern, backward: bool = False, recursive: bool = False) -> FunctionOp:
    module = parse_module(TEXT, new_context())
    (function,) = functions(module)
    Walk(patterns, backward, recursive).run(function, Storage(module))
    module.verify()
    return function


def kinds(function: FunctionOp) -> list[str]:
    return [op.name.split(".")[1] for op in function.block.ops][1:-1]


def test_name_and_roots_follow_from_the_class() -> None:
    assert (ReluToAbs().name, ReluToAbs().roots) == ("relu-to-abs", (ReluOp,))


@pytest.mark.parametrize(("backward", "order"), [(False, ["a", "c"]), (True, ["c", "a"])])
def test_patterns_are_tried_at_their_roots_in_the_order_of_the_walk(backward: bool, order: list[str]) -> None:
    pattern = Given("note", (ReluOp,))
    run(pattern, backward=backward)
    assert pattern.tried == order


def test_what_replaces_keeps_name_and_location() -> None:
    function = run(ReluToAbs())
    found = [op for op in function.block.ops if isinstance(op, AbsOp)]
    assert [(op.result.name_hint, location_name(op.location)) for op in found] == [("a", "first"), ("c", "third")]


def test_later_patterns_are_tried_only_while_the_operator_is_there() -> None:
    first, second = Given("replace", (ReluOp,), abs_instead), Given("note", (ReluOp,))
    run(first, second)
    assert (first.tried, second.tried) == (["a", "c"], [])


def test_what_was_erased_is_not_visited() -> None:
    def erase_next(op: Operation, rewriter: Rewriter) -> None:
        user = next(iter(op.results[0].uses)).operation
        if isinstance(user, TanhOp):
            rewriter.replace(user, (), [op.results[0]])

    tanh = Given("note", (TanhOp,))
    assert kinds(run(Given("erase", (ReluOp,), erase_next), tanh)) == ["relu", "relu"]
    assert tanh.tried == []


def test_what_patterns_create_is_visited_where_the_walk_is_recursive() -> None:
    for recursive, expected in ((False, ["neg", "tanh", "neg"]), (True, ["exp", "tanh", "exp"])):
        first = Given("to-neg", (ReluOp,), lambda op, rewriter: rewriter.replace(op, NegOp.make(op.operands[0])))
        second = Given("to-exp", (NegOp,), lambda op, rewriter: rewriter.replace(op, ExpOp.make(op.operands[0])))
        assert kinds(run(first, second, recursive=recursive)) == expected


def test_what_a_pattern_discards_has_not_happened() -> None:
    def emit_and_discard(op: Operation, rewriter: Rewriter) -> None:
        rewriter.emit(NegOp, rewriter.emit(AbsOp, op.operands[0]))
        rewriter.discard()

    with counting() as counted:
        function = run(Given("give-up", (ReluOp,), emit_and_discard))
    assert kinds(function) == ["relu", "tanh", "relu"]
    assert not counted


def test_patterns_are_counted_and_told_by_name() -> None:
    with counting() as counted, following() as applications:
        run(ReluToAbs())
    assert counted == {"relu-to-abs": 2}
    first, second = applications
    assert [op.name for op in (*first.created, *first.erased, *first.changed)] == [
        "glow_high.abs",
        "glow_high.relu",
        "glow_high.tanh",
    ]
    assert second.pattern == "relu-to-abs"


def test_analyses_are_made_once_a_walk() -> None:
    made: list[str] = []

    def names(function: FunctionOp, storage: Storage) -> list[str]:
        made.append(function.name)
        return [op.name for op in function.block.ops]

    seen: list[list[str]] = []
    pattern = Given("ask", (ReluOp,), lambda op, rewriter: seen.append(rewriter.analysis(names)))
    run(pattern)
    assert (len(made), len(seen)) == (1, 2)
    assert seen[0] is seen[1]


def test_operators_of_other_kinds_cost_no_try() -> None:
    """The work of a walk grows with the operators at which its patterns are rooted."""
    length = 300
    lines = [f"%{i + 1} = glow_high.tanh %{i} : tensor<4xf32>" for i in range(length)]
    text = "\n".join(lines)
    text = (
        "glow_high.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {\n"
        f"{text}\n%r = glow_high.relu %{length} : tensor<4xf32>\nglow_high.return %r\n}}"
    )
    module = parse_module(text, new_context())
    tanh, relu = Given("tanh", (TanhOp,)), Given("relu", (ReluOp,))
    Walk((relu, tanh)).run(functions(module)[0], Storage(module))
    assert (len(relu.tried), len(tanh.tried)) == (1, length)


NESTED = """
glow_low.func @main(@in %x: memref<4xf32>, @in %flag: memref<i1>, @out %y: memref<4xf32>) {
  glow_low.if @in %flag {
    glow_low.copy @out %y, @in %x
  } else {
    glow_low.loop %i = 9 while @in %flag {
      glow_low.copy @out %y, @in %x
    }
  }
}
"""


def test_branches_and_loops_are_walked() -> None:
    module = parse_module(NESTED, new_context())
    pattern = Given("note", (CopyOp,))
    Walk((pattern,)).run(functions(module)[0], Storage(module))
    assert pattern.tried == ["glow_low.copy"] * 2
