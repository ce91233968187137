"""The kernel of ensembles of decision trees whose nodes are looked up one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.access import load
from glow_mlir.codegen.builder.nests import Index, least, vector_loop
from glow_mlir.codegen.builder.types import i8, i32, i64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.tree_leaves import RowSums
from glow_mlir.codegen.kernels.tree_tests import compared
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.trees import EQUAL, GREATER, LESS, LINKS, UNORDERED, TreeEnsembleOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import shape_of, size_of
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

_TOGETHER = 8
"""How many trees a row, or rows a tree, go down at the same time, so that as many loads are on their way."""

_BLOCK = 2048
"""Rows that go down a tree before they go down the next one: their features take less of the caches than a tree."""

@kernel("trees")
class TreesKernel(Kernel[TreeEnsembleOp]):
    """Each row goes down some trees at a time, without branches, until all of them are in leaves."""

    name = "trees"
    AXES = ("rows",)
    RUN_TIME_SIZES = True

    def accepts(self, op: TreeEnsembleOp) -> bool:
        return size_of(op.roots) > 0 and shape_of(op.nodes)[0] > 0

    def cuts(self, op: TreeEnsembleOp, target: Target) -> Mapping[str, int]:
        return {"rows": shape_of(op.outputs()[0])[0]}

    def emit(self, call: KernelCall[TreeEnsembleOp]) -> None:
        b, descent = call.b, _Descent(call)
        position, end = call.share("rows").of(call.result.extents[0])
        together = _TOGETHER if call.target.vector_bits else 1
        if together > 1:
            stop = position + (end - position) // together * together
            with b.loop(position, stop, _BLOCK) as first:
                descent.block(first, least(b, stop - first, _BLOCK), together)
            position = stop
        with b.loop(position, end) as row:
            descent.row(row, together)


@dataclass(frozen=True)
class _Descent:
    """The code of one instruction."""

    call: KernelCall[TreeEnsembleOp]

    def block(self, first: Index, count: Index, together: int) -> None:
        """Some rows, whose number is a multiple of how many go down a tree `together`: the tree stays in the cache."""
        call, b = self.call, self.call.b
        roots = call.one("roots")
        with b.loop(first, first + count) as row:
            RowSums(call, row).begin()
        with b.loop(0, roots.shape[0]) as tree:
            root = load(b, roots, tree * roots.strides[0], 1, 1)
            with b.loop(first, first + count, together) as row:
                rows = [row + number for number in range(together)]
                for own, leaf in zip(rows, self._leaves(rows, [root] * together), strict=True):
                    RowSums(call, own).add([leaf])
        with b.loop(first, first + count) as row:
            RowSums(call, row).end()

    def row(self, row: Index, together: int) -> None:
        """One row, which goes down some trees `together`."""
        call, b = self.call, self.call.b
        sums, roots = RowSums(call, row), call.one("roots")
        sums.begin()

        def some(tree: Index, count: int) -> None:
            starts = [load(b, roots, (tree + number) * roots.strides[0], 1, 1) for number in range(count)]
            sums.add(self._leaves([row] * count, starts))

        vector_loop(b, roots.shape[0], together, some)
        sums.end()

    def _leaves(self, rows: Sequence[Index], starts: Sequence[Value]) -> list[Value]:
        """The leaves that rows get to, each from a node."""
        b = self.call.b

        def is_inside(*places: Value) -> Value:
            common = places[0]
            for place in places[1:]:
                common = common & place
            return common >= 0

        def step(*places: Value) -> list[Value]:
            return [
                b.select(place >= 0, self._child(row, b.max(place, 0)), place)
                for row, place in zip(rows, places, strict=True)
            ]

        return [-1 - place for place in b.repeat(starts, step, is_inside)]

    def _child(self, row: Index, place: Value) -> Value:
        """Where a row goes from a node."""
        call, b = self.call, self.call.b
        nodes, source = call.one("nodes"), call.one("input")
        across, along = nodes.strides
        node = nodes.pointer.at(b.index(place) * across, i32)
        feature = b.index(node.load(i32))
        value = load(b, source, row * source.strides[0] + feature * source.strides[1], 1, 1)
        holds = self._holds(place, value, self._threshold(node, along, value.type))
        return node.at(b.select(holds, b.index(along), b.index(2 * along)), i32).load(i32)

    def _threshold(self, node: Value, along: int, element: Attribute) -> Value:
        """The threshold of a node."""
        b, first = self.call.b, node.at(LINKS * along, i32)
        if byte_width(element) == 4 or along == 1:
            return first.load(element, align=4)
        pair = [b.cast(word.load(i32), i64, signed=False) for word in (first, first.at(along, i32))]
        return b.bitcast(pair[0] | (pair[1] << 32), element)

    def _holds(self, place: Value, value: Value, threshold: Value) -> Value:
        """Whether the test of a node holds."""
        call, b = self.call, self.call.b
        tests = call.maybe("tests")
        if tests is None:
            return compared(b, integer(call.op.test), value, threshold)
        found = tests.pointer.at(b.index(place) * tests.strides[0], i8).load(i8)
        relation = b.constant(UNORDERED, i8)
        for word, number in (("ogt", GREATER), ("oeq", EQUAL), ("olt", LESS)):
            relation = b.select(b.compare(word, value, threshold), b.constant(number, i8), relation)
        return (found & relation).ne(0)
