"""The kernel of ensembles of decision trees with shared tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from glow_mlir.codegen.access import computed, load
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, smaller, vector_loop
from glow_mlir.codegen.builder.types import i8, i16, i32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.elements.index_checks import in_range
from glow_mlir.codegen.kernels.trees.sliced_trees import SlicedTrees, leaf_planes
from glow_mlir.codegen.kernels.trees.tree_leaves import RowSums
from glow_mlir.codegen.kernels.trees.tree_tests import RangeLoop, compared
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.trees import BinnedTreeEnsembleOp
from glow_mlir.dialects.glow_low.memory import is_dense
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import element_of, is_empty, shape_of, size_of, sizes_of
from glow_mlir.dialects.target import Target

SHORT = 64
"""The number of rows of a short block; the outcomes of one test for all of them are one integer."""

_PADDING = 64
"""Bytes after the outcomes of a row, since vectors may reach beyond the last one."""


def block_rows(target: Target) -> int:
    """Return the number of rows of a block: the outcomes of one test fill a register."""
    return max(SHORT, target.vector_bits)


@kernel("binned-trees")
class BinnedTreesKernel(Kernel[BinnedTreeEnsembleOp]):
    """
    Tree ensembles in blocks of rows, with one bit per row: the outcomes of a test are a register, which selects the
    bits of the leaf numbers for all rows at once. For a single row, the outcome of each test is a byte, and several
    trees are descended at a time.
    """

    name = "binned-trees"
    AXES = ("rows",)
    RUN_TIME_SIZES = True

    def accepts(self, op: BinnedTreeEnsembleOp) -> bool:
        links = () if op.links is None else (op.links,)
        tables = (op.ranges, op.thresholds, op.tests, op.weights, *links)
        return not any(map(is_empty, tables)) and all(map(is_dense, tables))

    def cuts(self, op: BinnedTreeEnsembleOp, target: Target) -> Mapping[str, int]:
        return {"rows": shape_of(op.outputs()[0])[0]}

    def private(self, op: BinnedTreeEnsembleOp) -> Sequence[int]:
        return range(5)

    def scratch(self, op: BinnedTreeEnsembleOp, target: Target) -> Sequence[Buffer]:
        tests, trees = size_of(op.thresholds), shape_of(op.tests)[0]
        rows = _longest(op, target) if _may_be_many(op, target) else 0
        return [
            ((max(tests * rows // 8, tests) + _PADDING,), i8),
            ((trees if _has_far_leaves(op, target) else 1,), i32),
            ((max(rows, 1),), computed(element_of(op.input))),
            ((max(_planes(op) * rows // 8, 1),), i8),
            ((max(2 * integer(op.size) * rows, 1),), computed(element_of(op.outputs()[0]))),
        ]

    def emit(self, call: KernelCall[BinnedTreeEnsembleOp]) -> None:
        with in_range(call):
            self._emit(call)

    def _emit(self, call: KernelCall[BinnedTreeEnsembleOp]) -> None:
        """Emit the code for operands that have been checked."""
        b = call.b
        position, end = call.share("rows").of(call.result.extents[0])
        if _may_be_many(call.op, call.target):
            longest = _longest(call.op, call.target)
            if longest > SHORT:
                position = _blocks(call, position, end, longest // 2, SlicedTrees(call, longest))
            min_rows = kernel_costs(call.target).single_rows + 1
            position = _blocks(call, position, end, min_rows, SlicedTrees(call, SHORT))
        with b.loop(position, end) as row:
            _one_row(call, row)


def _may_be_many(op: BinnedTreeEnsembleOp, target: Target) -> bool:
    """Whether there may be enough rows for blocks."""
    rows = sizes_of(op.outputs()[0])[0]
    return not isinstance(rows, int) or rows > kernel_costs(target).single_rows


def _longest(op: BinnedTreeEnsembleOp, target: Target) -> int:
    """Return the number of rows of the longest blocks that can occur."""
    rows, longest = sizes_of(op.outputs()[0])[0], block_rows(target)
    return longest if not isinstance(rows, int) or rows > longest // 2 else SHORT


def _planes(op: BinnedTreeEnsembleOp) -> int:
    """Return the number of bit planes of one tree."""
    return op.leaf_bits() if op.links is None else leaf_planes(op) + op.leaf_bits() * shape_of(op.tests)[1]


def _blocks(
    call: KernelCall[BinnedTreeEnsembleOp], position: Index, end: Index, min_rows: int, trees: SlicedTrees
) -> Index:
    """Emit blocks of rows from `position` on, the last with at least `min_rows`; return the position after them."""
    b, rows = call.b, trees.rows
    count = (end - position + (rows - min_rows)) // rows
    stop = position + count * rows
    if isinstance(stop, int):
        if count:
            trees.prepare()
    else:
        with b.when(b.index(position) < stop):
            trees.prepare()
    with b.loop(position, stop, rows) as start:
        trees.block(start, smaller(b, end - start, rows))
    return smaller(b, stop, end)


# ---- one row


def _one_row(call: KernelCall[BinnedTreeEnsembleOp], row: Index) -> None:
    """
    Compute the outcomes of all tests, then the leaves of all trees, and add up their weights.

    Where the weights exceed the near caches, all leaves are found first, so that no step waits for a weight.
    """
    b, sums = call.b, RowSums(call, row)
    _outcomes(call, row)
    sums.begin()
    if not _has_far_leaves(call.op, call.target):
        _tree_groups(call, lambda tree, count: sums.add_next(tree, _some_leaves(call, tree, count)))
        sums.end()
        return
    leaves = call.many("scratch")[1].pointer

    def find(tree: Index, count: int) -> None:
        for number, leaf in enumerate(_some_leaves(call, tree, count)):
            leaves.at(tree + number, i32).store(b.cast(leaf, i32))

    def add(tree: Index, count: int) -> None:
        sums.add_next(tree, [b.index(leaves.at(tree + number, i32).load(i32)) for number in range(count)])

    _tree_groups(call, find)
    _tree_groups(call, add)
    sums.end()


def _tree_groups(call: KernelCall[BinnedTreeEnsembleOp], body: Callable[[Index, int], None]) -> None:
    """Emit loops over groups of trees, the last perhaps smaller; `body` gets the first tree and their number."""
    trees, together = call.one("tests").shape[0], kernel_costs(call.target).trees_together
    rest = trees % together
    with call.b.loop(0, trees - rest, together) as tree:
        body(tree, together)
    if rest:
        body(trees - rest, rest)


def _has_far_leaves(op: BinnedTreeEnsembleOp, target: Target) -> bool:
    """Whether the leaves do not fit in the near caches."""
    return size_of(op.weights) * byte_width(element_of(op.weights)) > kernel_costs(target).near_leaf_bytes


def _outcomes(call: KernelCall[BinnedTreeEnsembleOp], row: Index) -> None:
    """Store a byte for each test, 1 where it holds."""
    b, source, thresholds = call.b, call.one("input"), call.one("thresholds")
    outcomes = call.many("scratch")[0].pointer
    lanes = call.target.vector_width(computed(source.element))

    def test_range(relation: int, feature: Value, begin: Value, end: Value) -> None:
        value = load(b, source, row * source.strides[0] + feature * source.strides[1], 1, 1)

        def some(offset: Index, count: int) -> None:
            index = begin + offset
            holds = compared(b, relation, b.splat(value, count), load(b, thresholds, index, 1, count))
            outcomes.at(index, i8).store(b.cast(holds, i8))

        vector_loop(b, end - begin, lanes, some, rest=1)

    RangeLoop(call).each(test_range)


def _some_leaves(call: KernelCall[BinnedTreeEnsembleOp], tree: Index, count: int) -> list[Value]:
    """Return the leaf of each of `count` trees that the row reaches, as its number within the tree."""
    if call.maybe("links") is not None:
        return _linked_leaves(call, tree, count)
    b, op = call.b, call.op
    nodes = (1 << op.leaf_bits()) - 1
    tests = [call.one("tests").pointer.at((tree + number) * nodes, i16) for number in range(count)]
    reached: list[Index] = [0] * count
    for _ in range(op.leaf_bits()):
        bits = [_outcome(call, own, node) for own, node in zip(tests, reached, strict=True)]
        reached = [bit + (node * 2 + 1) for bit, node in zip(bits, reached, strict=True)]
    return [b.index(node - nodes) for node in reached]


def _linked_leaves(call: KernelCall[BinnedTreeEnsembleOp], tree: Index, count: int) -> list[Value]:
    """Return the same for linked trees: step until all trees have reached a leaf, and ignore further steps."""
    b, nodes = call.b, call.one("tests").shape[1]
    tests = [call.one("tests").pointer.at((tree + number) * nodes, i16) for number in range(count)]
    links = [call.one("links").pointer.at((tree + number) * (2 * nodes), i16) for number in range(count)]

    def step(*reached: Value) -> list[Value]:
        found: list[Value] = []
        for own, lead, node in zip(tests, links, reached, strict=True):
            inner = b.max(node, 0)
            outcome = _outcome(call, own, inner)
            found.append(b.select(node < 0, node, b.index(lead.at(inner * 2 + outcome, i16).load(i16))))
        return found

    def is_inside(*reached: Value) -> Value:
        common = reached[0]
        for node in reached[1:]:
            common = common & node
        return common >= 0

    # The `and` is negative once all nodes are leaves, which are negative.
    return [-1 - node for node in b.repeat([b.index(0)] * count, step, is_inside)]


def _outcome(call: KernelCall[BinnedTreeEnsembleOp], tests: Value, node: Index) -> Value:
    """Return 1 if the test of a node holds, else 0."""
    b = call.b
    number = _unsigned(b, tests.at(node, i16).load(i16))
    return _unsigned(b, call.many("scratch")[0].pointer.at(number, i8).load(i8))


def _unsigned(b: Builder, number: Value) -> Value:
    """Convert a number that is not negative to an index."""
    return b.cast(number, b.index_type, signed=False)
