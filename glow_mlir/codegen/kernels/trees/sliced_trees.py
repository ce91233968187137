"""Decision trees with shared tests for a block of rows, with one bit per row."""

from __future__ import annotations

from xdsl.ir import Attribute

from glow_mlir.codegen.access import computed, load, store
from glow_mlir.codegen.builder.nests import Index, smaller
from glow_mlir.codegen.builder.types import i1, i8, i16, i32, i64, integer_of_width, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.trees.leaf_table import LeafTable
from glow_mlir.codegen.kernels.trees.tree_leaves import STARTS, folded, may_have_empty_targets
from glow_mlir.codegen.kernels.trees.tree_tests import RangeLoop, compared
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.dialects.glow_high.trees import BinnedTreeEnsembleOp
from glow_mlir.dialects.properties import integer, text
from glow_mlir.support.dataclass import dataclass

_BYTE = 8

_WORD = 8
"""Bytes of an i64."""


def leaf_planes(op: BinnedTreeEnsembleOp) -> int:
    """Return the number of bit planes of the leaves of a linked tree."""
    return op.leaf_bits() << op.leaf_bits()


@dataclass(frozen=True)
class SlicedTrees:
    """
    Emits the code of one instruction for blocks of `rows` rows.

    The outcomes of a test are `rows` bits in memory. The outcomes of the nodes, from the bottom of a tree to its root,
    select the bits of the numbers of the leaves that rows reach.
    """

    call: KernelCall[BinnedTreeEnsembleOp]
    rows: int

    @property
    def _bytes(self) -> int:
        """The size of the outcomes of a test in bytes."""
        return self.rows // _BYTE

    @property
    def _bits(self) -> Attribute:
        """The type of the outcomes of a test."""
        return i64 if self.rows == i64.width.data else vector(i32, self.rows // i32.width.data)

    @property
    def _lanes(self) -> int:
        """The number of rows that are compared, and whose leaves are looked up, at a time."""
        call = self.call
        widths = [call.target.vector_width(computed(call.one(name).element)) for name in ("input", "weights")]
        return max(_BYTE, min(widths))

    def prepare(self) -> None:
        """Write the planes of leaves if trees have links; they are the same for all rows."""
        call, b, bits = self.call, self.call.b, self.call.op.leaf_bits()
        if call.maybe("links") is None:
            return
        with b.loop(0, 1 << bits) as leaf:
            own = self._planes.at((-1 - leaf) * (bits * self._bytes), i8)
            for level in range(bits):
                is_set = b.cast(b.cast(leaf, i32), i32) & (1 << (bits - 1 - level))
                plane = b.select(is_set.ne(0), b.constant(-1, i64), b.constant(0, i64))
                for offset in range(0, self._bytes, _WORD):
                    own.at(level * self._bytes + offset, i8).store(plane)

    def block(self, first: Index, count: Index) -> None:
        """Compute all trees for `count` rows from `first` on."""
        self._outcomes(first, count)
        self._begin()
        call, b = self.call, self.call.b
        trees, together = call.one("tests").shape[0], kernel_costs(call.target).trees_together
        # Groups of trees are summed as for a single row, so that results are the same.
        with b.loop(0, trees, together) as group:
            with b.loop(group, smaller(b, group + together, trees)) as tree:
                self._tree(tree)
            if call.maybe("targets") is None:
                self._add_group()
        self._end(first, count)

    # ---- tests

    def _outcomes(self, first: Index, count: Index) -> None:
        """Compute the outcomes of all tests."""
        call, b = self.call, self.call.b
        source, thresholds = call.one("input"), call.one("thresholds")
        outcomes, _, column, *_ = (buffer.pointer for buffer in call.many("scratch"))
        type_, lanes = computed(source.element), self._lanes

        def test_range(relation: int, feature: Value, begin: Value, end: Value) -> None:
            start = first * source.strides[0] + feature * source.strides[1]
            with b.loop(0, count) as row:
                column.at(row, type_).store(load(b, source, start + row * source.strides[0], 1, 1))
            with b.loop(begin, end) as test:
                threshold = b.splat(load(b, thresholds, test, 1, 1), lanes)
                address = outcomes.at(test * self._bytes, i8)
                for row in range(0, self.rows, lanes):
                    holds = compared(b, relation, column.at(row, type_).load(vector(type_, lanes)), threshold)
                    address.at(row // _BYTE, i8).store(b.bitcast(holds, integer_of_width(lanes)))

        RangeLoop(call).each(test_range)

    # ---- trees

    def _tree(self, tree: Value) -> None:
        """Add the weights of a tree for all rows."""
        call, b, depth = self.call, self.call.b, self.call.op.leaf_bits()
        tests = call.one("tests").pointer.at(tree * call.one("tests").shape[1], i16)
        if call.maybe("links") is not None:
            self._linked(tree, tests)
        else:
            for level, bits in enumerate(self._chosen(tests, 0, depth)):
                self._planes.at(level * self._bytes, i8).store(bits)
        targets = call.maybe("targets")
        if targets is None:
            with b.loop(0, call.one("weights").shape[1]) as column:
                self._leaves(tree, column, column)
        else:
            self._leaves(tree, 0, b.index(load(b, targets, tree * targets.strides[0], 1, 1)))

    def _chosen(self, tests: Value, node: int, levels: int) -> list[Value]:
        """Return the bits of the leaf numbers, one register for each of `levels` levels from a node on."""
        outcome = self._outcome(tests, node)
        if levels == 1:
            return [outcome]
        fails, holds = (self._chosen(tests, 2 * node + side, levels - 1) for side in (1, 2))
        return [outcome, *((outcome & (yes ^ no)) ^ no for no, yes in zip(fails, holds, strict=True))]

    @property
    def _planes(self) -> Value:
        """
        The address of the planes with the bits of the leaf numbers, those of the root first.

        With links, the planes of the other nodes follow, and the planes of leaves precede it in reverse order.
        """
        call = self.call
        found = call.many("scratch")[3].pointer
        return found if call.maybe("links") is None else found.at(leaf_planes(call.op) * self._bytes, i8)

    def _linked(self, tree: Value, tests: Value) -> None:
        """Compute the planes of each node, from the last to the root: its outcome selects the planes of a successor."""
        call, b, count = self.call, self.call.b, self.call.one("tests").shape[1]
        links, size = call.one("links").pointer.at(tree * (2 * count), i16), self.call.op.leaf_bits() * self._bytes
        with b.loop(0, count) as step:
            node = b.index(count - 1) - step
            outcome, link = self._outcome(tests, node), links.at(node * 2, i16)
            no, yes = (self._planes.at(b.index(link.at(side, i16).load(i16)) * size, i8) for side in range(2))
            own = self._planes.at(node * size, i8)
            for offset in range(0, size, self._bytes):
                fails, holds = (planes.at(offset, i8).load(self._bits) for planes in (no, yes))
                own.at(offset, i8).store((outcome & (holds ^ fails)) ^ fails)

    def _outcome(self, tests: Value, node: Index) -> Value:
        """Load the outcomes of the test of a node."""
        call, b = self.call, self.call.b
        number = b.cast(tests.at(node, i16).load(i16), b.index_type, signed=False)
        return call.many("scratch")[0].pointer.at(number * self._bytes, i8).load(self._bits)

    # ---- leaves

    def _leaves(self, tree: Value, column: Index, target: Index) -> None:
        """Add the weights, in a column, of the leaves whose numbers are in the planes."""
        call, b, depth = self.call, self.call.b, self.call.op.leaf_bits()
        planes, sums = self._planes, call.many("scratch")[4].pointer
        weights = call.one("weights")
        type_, lanes = computed(weights.element), self._lanes
        leaves = weights.pointer.at((tree * weights.shape[1] + column) * (1 << depth), type_)
        table = LeafTable.of(b, leaves, type_, depth, lanes)
        is_group = call.maybe("targets") is None
        totals = sums.at((target + (integer(call.op.size) if is_group else 0)) * self.rows, type_)
        with b.loop(0, self.rows // lanes) as group:
            address = planes.at(group * (lanes // _BYTE), i8)
            masks = [address.at(level * self._bytes, i8).load(integer_of_width(lanes)) for level in range(depth)]
            found = table.at(b, [b.bitcast(mask, i1) for mask in masks])
            total = totals.at(group * lanes, type_)
            total.store(folded(call, total.load(found.type), found))

    # ---- sums

    def _begin(self) -> None:
        """Initialize all sums."""
        call, b = self.call, self.call.b
        type_, lanes = computed(call.result.element), self._lanes
        sums = call.many("scratch")[4].pointer
        start = b.constant(STARTS[text(call.op.aggregate)], vector(type_, lanes))
        with b.loop(0, 2 * integer(call.op.size) * self.rows, lanes) as index:
            sums.at(index, type_).store(start)

    def _add_group(self) -> None:
        """Add the sums of a group of trees, stored after the total sums, to these; reset them for the next group."""
        call, b = self.call, self.call.b
        type_, lanes = computed(call.result.element), self._lanes
        sums, size = call.many("scratch")[4].pointer, integer(call.op.size) * self.rows
        start = b.constant(STARTS[text(call.op.aggregate)], vector(type_, lanes))
        with b.loop(0, size, lanes) as index:
            total, group = sums.at(index, type_), sums.at(index + size, type_)
            total.store(folded(call, total.load(start.type), group.load(start.type)))
            group.store(start)

    def _end(self, first: Index, count: Index) -> None:
        """Write the sums to the result; 0 for targets without trees."""
        call, b, result = self.call, self.call.b, self.call.result
        sums = call.many("scratch")[4].pointer
        with b.loop(0, integer(call.op.size)) as target, b.loop(0, count) as row:
            total = sums.at(target * self.rows + row, computed(result.element)).load(computed(result.element))
            if may_have_empty_targets(call):
                total = b.select(total.eq(STARTS[text(call.op.aggregate)]), 0.0, total)
            store(b, result, (row + first) * result.strides[0] + target * result.strides[1], total)
