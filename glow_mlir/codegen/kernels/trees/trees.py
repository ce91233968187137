"""The kernel of ensembles of decision trees that are descended node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.access import load
from glow_mlir.codegen.builder.nests import Index, smaller, vector_loop
from glow_mlir.codegen.builder.types import i8, i32, i64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.elements.index_checks import in_range
from glow_mlir.codegen.kernels.trees.tree_leaves import RowSums
from glow_mlir.codegen.kernels.trees.tree_tests import compared
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.trees import EQUAL, GREATER, LESS, LINKS, UNORDERED, TreeEnsembleOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import shape_of, size_of
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@kernel("trees")
class TreesKernel(Kernel[TreeEnsembleOp]):
    """
    Descent of one tree by several rows at a time, and of all trees by each remaining row, without branches.

    On machines without vectors, which execute in order, each row descends one tree after the other.
    """

    name = "trees"
    AXES = ("rows",)
    RUN_TIME_SIZES = True

    def accepts(self, op: TreeEnsembleOp) -> bool:
        return size_of(op.roots) > 0 and shape_of(op.nodes)[0] > 0

    def cuts(self, op: TreeEnsembleOp, target: Target) -> Mapping[str, int]:
        return {"rows": shape_of(op.outputs()[0])[0]}

    def private(self, op: TreeEnsembleOp) -> Sequence[int]:
        return range(3)

    def scratch(self, op: TreeEnsembleOp, target: Target) -> Sequence[Buffer]:
        lists: Buffer = ((size_of(op.roots) + 1,), i32)
        return [lists] * 3 if _is_wide(target) else []

    def emit(self, call: KernelCall[TreeEnsembleOp]) -> None:
        with in_range(call):
            self._emit(call)

    def _emit(self, call: KernelCall[TreeEnsembleOp]) -> None:
        """Emit the code for operands that have been checked."""
        b, descent = call.b, _Descent(call)
        position, end = call.share("rows").of(call.result.extents[0])
        if not _is_wide(call.target):
            with b.loop(position, end) as row:
                descent.alone(row)
            return
        costs = kernel_costs(call.target)
        stop = position + (end - position) // costs.rows_together * costs.rows_together
        with b.loop(position, stop, costs.rows_a_tree) as first:
            descent.block(first, smaller(b, stop - first, costs.rows_a_tree))
        with b.loop(stop, end) as row:
            descent.row(row)


def _is_wide(target: Target) -> bool:
    """Whether a target executes out of order, as targets with vectors do."""
    return target.vector_bits > 0


@dataclass(frozen=True)
class _Descent:
    """Emits the code of one instruction."""

    call: KernelCall[TreeEnsembleOp]

    def block(self, first: Index, count: Index) -> None:
        """Compute a block of rows, a multiple of those that descend together; each tree stays in the cache."""
        call, b, together = self.call, self.call.b, kernel_costs(self.call.target).rows_together
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

    def row(self, row: Index) -> None:
        """
        Compute one row: it descends one level in all trees in which it has not reached a leaf, then the next level.

        So as many loads as possible are in flight. The remaining nodes, and the trees that own them, are compacted in
        their lists.
        """
        call, b = self.call, self.call.b
        sums, roots = RowSums(call, row), call.one("roots")
        nodes, owners, reached = (buffer.pointer for buffer in call.many("scratch"))
        sums.begin()

        def keep(node: Value, owner: Value, count: Value) -> Value:
            nodes.at(count, i32).store(node)
            owners.at(count, i32).store(owner)
            reached.at(b.index(owner), i32).store(node)
            return count + b.cast(node >= 0, b.index_type, signed=False)

        with b.loop(0, roots.shape[0], carried=[b.index(0)]) as loop:
            root = load(b, roots, loop.index * roots.strides[0], 1, 1)
            loop.set(keep(root, b.cast(loop.index, i32), loop.values[0]))

        def level(count: Value) -> Sequence[Value]:
            with b.loop(0, count, carried=[b.index(0)]) as loop:
                node, owner = (part.at(loop.index, i32).load(i32) for part in (nodes, owners))
                loop.set(keep(self._child(row, node), owner, loop.values[0]))
            return loop.results

        def is_inside(count: Value) -> Value:
            return count > 0

        b.repeat(loop.results, level, is_inside)

        def some(first: Index, count: int) -> None:
            sums.add([-1 - reached.at(first + number, i32).load(i32) for number in range(count)])

        vector_loop(b, roots.shape[0], kernel_costs(call.target).rows_together, some)
        sums.end()

    def alone(self, row: Index) -> None:
        """Compute one row, one tree after the other."""
        call, b = self.call, self.call.b
        sums, roots = RowSums(call, row), call.one("roots")
        sums.begin()
        with b.loop(0, roots.shape[0]) as tree:
            sums.add(self._leaves([row], [load(b, roots, tree * roots.strides[0], 1, 1)]))
        sums.end()

    def _leaves(self, rows: Sequence[Index], starts: Sequence[Value]) -> list[Value]:
        """Return the leaf that each row reaches from its node."""
        b = self.call.b

        def is_inside(*reached: Value) -> Value:
            common = reached[0]
            for node in reached[1:]:
                common = common & node
            return common >= 0

        def step(*reached: Value) -> list[Value]:
            return [
                b.select(node >= 0, self._child(row, b.max(node, 0)), node)
                for row, node in zip(rows, reached, strict=True)
            ]

        return [-1 - node for node in b.repeat(starts, step, is_inside)]

    def _child(self, row: Index, number: Value) -> Value:
        """Return the node that follows a node for a row."""
        call, b = self.call, self.call.b
        nodes, source = call.one("nodes"), call.one("input")
        across, along = nodes.strides
        node = nodes.pointer.at(b.index(number) * across, i32)
        feature = b.index(node.load(i32))
        value = load(b, source, row * source.strides[0] + feature * source.strides[1], 1, 1)
        holds = self._holds(number, value, self._threshold(node, along, value.type))
        return node.at(b.select(holds, b.index(along), b.index(2 * along)), i32).load(i32)

    def _threshold(self, node: Value, along: int, element: Attribute) -> Value:
        """Load the threshold of a node."""
        b, first = self.call.b, node.at(LINKS * along, i32)
        if byte_width(element) == 4 or along == 1:
            return first.load(element, align=4)
        pair = [b.cast(word.load(i32), i64, signed=False) for word in (first, first.at(along, i32))]
        return b.bitcast(pair[0] | (pair[1] << 32), element)

    def _holds(self, node: Value, value: Value, threshold: Value) -> Value:
        """Whether the test of a node holds."""
        call, b = self.call, self.call.b
        tests = call.maybe("tests")
        if tests is None:
            return compared(b, integer(call.op.test), value, threshold)
        found = tests.pointer.at(b.index(node) * tests.strides[0], i8).load(i8)
        relation = b.constant(UNORDERED, i8)
        for word, number in (("ogt", GREATER), ("oeq", EQUAL), ("olt", LESS)):
            relation = b.select(b.compare(word, value, threshold), b.constant(number, i8), relation)
        return (found & relation).ne(0)
