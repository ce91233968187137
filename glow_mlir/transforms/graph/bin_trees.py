"""`bin-trees`: share tests among decision trees with few leaves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.constants.index_ranges import failure_of
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.trees import LINKS, BinnedTreeEnsembleOp, TreeEnsembleOp
from glow_mlir.dialects.properties import integer, text
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass

MAX_LEVELS = 8
"""Maximum depth of complete trees: code is emitted per node."""

MAX_GROWTH = 4
"""Maximum growth in nodes for completing a tree; beyond it, linked nodes are cheaper."""

MAX_NODES = 128
"""Maximum number of leaves per tree: beyond it, the test results of many rows fill the caches."""

MAX_LEAVES = 1 << 21
"""Maximum number of leaves of all trees: beyond it, the original trees use less cache."""

FEW = 8
"""Trees of at most this many nodes are always completed."""

MAX_TESTS = 1 << 16
"""Number of distinct tests that a ui16 can number."""


class BinTrees(Pattern):
    """Bin trees that have few leaves each, and few distinct tests."""

    @rooted
    def match_and_rewrite(self, op: TreeEnsembleOp, rewriter: Rewriter, /) -> None:
        target = rewriter.function.target
        if not target.vector_bits or failure_of(op):  # Without vectors, evaluating all tests costs time.
            return
        trees = _Trees.of(op, rewriter.emit)
        form = None if trees is None else trees.complete() or trees.linked()
        if trees is None or form is None:
            return
        tests = trees.tests(target.vector_width(element_of(op.input)))
        targets = trees.targets_by_tree(form.leaves)
        if len(tests.thresholds) <= MAX_TESTS and (trees.targets is None or targets is not None):
            rewriter.replace(op, (), [_binned(op, rewriter.emit, trees, form, tests, targets)])


@dataclass(frozen=True)
class BinTreesPass(PatternPass):
    """
    Share equal tests among the nodes of decision trees, and pad the trees to equal numbers of nodes and leaves.

    Leaves are then found for many rows at once. Shallow trees become complete: a leaf above the bottom becomes a
    subtree of equal leaves. Requires a machine with vectors, at most 128 leaves and 8 levels per tree, and leaves that
    all name one target per tree, or all targets.
    """

    name = "bin-trees"

    def walks(self) -> tuple[Walk, ...]:
        return (Walk((BinTrees(),)),)


@dataclass(frozen=True)
class _Form:
    """
    Padded trees: `nodes` [R, I] and `leaves` [R, 2^B] are indices into the lists of the ensemble.

    A node that stands for a leaf is −1. `links` are those of `binned_tree_ensemble`.
    """

    nodes: np.ndarray
    leaves: np.ndarray
    links: np.ndarray | None


@dataclass(frozen=True)
class _Tests:
    """
    Distinct tests, sorted: their thresholds, and the range of each feature.

    `test_numbers` maps nodes to tests.
    """

    ranges: np.ndarray
    thresholds: np.ndarray
    test_numbers: np.ndarray
    relations: Sequence[int]
    counts: Sequence[int]


@dataclass(frozen=True)
class _Trees:
    """The constants of an ensemble."""

    nodes: np.ndarray
    sets: np.ndarray
    roots: np.ndarray
    weights: np.ndarray
    targets: np.ndarray | None
    dtype: np.dtype[np.floating]

    @staticmethod
    def of(op: TreeEnsembleOp, emit: Emitter) -> _Trees | None:
        """The constants of an operator; `None` if an operand is not constant."""
        nodes, roots, weights = (emit.known(value) for value in (op.nodes, op.roots, op.weights))
        sets = None if op.tests is None else emit.known(op.tests)
        targets = None if op.targets is None else emit.known(op.targets)
        if nodes is None or roots is None or weights is None or (op.tests is not None and sets is None):
            return None
        if op.targets is not None and targets is None:
            return None
        if sets is None:
            sets = np.full(len(nodes), integer(op.test), np.uint8)
        return _Trees(nodes, sets, roots, weights, targets, numpy_dtype(element_of(op.input)))

    def complete(self) -> _Form | None:
        """Complete trees, with a leaf in place of its missing children; `None` if they are too large."""
        levels = [self.roots[:, None]]
        while len(levels) == 1 or np.any(levels[-1] >= 0):
            test_numbers = levels[-1]
            if len(levels) > MAX_LEVELS or 2 * test_numbers.size > MAX_LEAVES:
                return None
            links = self.nodes[
                np.maximum(test_numbers, 0), LINKS - 1 : 0 : -1
            ]  # The child of a failed test comes first.
            levels.append(
                np.where(test_numbers[..., None] < 0, test_numbers[..., None], links).reshape(len(test_numbers), -1)
            )
        nodes = np.maximum(np.concatenate(levels[:-1], axis=1), -1)
        if nodes.shape[1] > MAX_GROWTH * max(np.count_nonzero(nodes >= 0, axis=1).max(), FEW):
            return None
        return _Form(nodes, -1 - levels[-1], None)

    def linked(self) -> _Form | None:
        """Trees with links, each in a contiguous range of nodes; `None` if they are too large or share nodes."""
        inner = np.flatnonzero(self.roots >= 0)
        roots, count = self.roots[inner], len(self.nodes)
        if not len(inner) or roots[0] or np.any(np.diff(roots) <= 0):
            return None
        sizes = np.diff(roots, append=count)
        most, trees = int(sizes.max()), len(self.roots)
        if most >= MAX_NODES or most * trees > MAX_GROWTH * max(count, FEW * trees):
            return None
        own = np.repeat(np.arange(len(roots)), sizes)  # The tree of each inner node.
        position = np.arange(count) - roots[own]
        links = self.nodes[:, LINKS - 1 : 0 : -1]  # The child of a failed test comes first.
        moved, is_leaf = links - roots[own][:, None], links < 0
        if np.any(~is_leaf & ((moved <= position[:, None]) | (moved >= sizes[own][:, None]))):
            return None
        # Leaves are numbered in the order of their parents.
        number = np.cumsum(is_leaf.reshape(-1)).reshape(is_leaf.shape) - 1
        number -= (number[roots, 0] + ~is_leaf[roots, 0])[own][:, None]
        nodes, found = np.full((trees, most), -1), np.full((trees, most, 2), -1, np.int16)
        nodes[inner[own], position] = np.arange(count)
        found[inner[own], position] = np.where(is_leaf, -1 - number, moved)
        leaves = np.zeros((trees, 1 << most.bit_length()), np.int64)
        leaves[:, 0] = -1 - np.minimum(self.roots, -1)
        leaves[np.broadcast_to(inner[own][:, None], links.shape)[is_leaf], number[is_leaf]] = -1 - links[is_leaf]
        return _Form(nodes, leaves, found)

    def tests(self, lanes: int) -> _Tests:
        """The distinct tests of nodes; tests of a frequent feature are padded to full vectors."""
        features = self.nodes[:, 0].astype(np.int64)
        thresholds = np.ascontiguousarray(self.nodes[:, LINKS:]).view(self.dtype)[:, 0]
        order = np.lexsort([thresholds.view(np.int32 if thresholds.itemsize == 4 else np.int64), features, self.sets])
        sets, features, thresholds = self.sets[order], features[order], thresholds[order]
        is_new_range = _changes(sets, features)
        is_new = is_new_range | _changes(thresholds.view(np.int32 if thresholds.itemsize == 4 else np.int64))
        number = np.cumsum(is_new) - 1  # Per node, without padding.
        first = np.flatnonzero(is_new)
        starts = np.flatnonzero(is_new_range[first])
        counts = np.diff(starts, append=len(first))
        padded = np.where(2 * counts >= lanes, -(-counts // lanes) * lanes, counts)
        ends = np.cumsum(padded)
        moved = np.repeat(ends - padded - starts, counts)
        kept = np.repeat(thresholds[first][starts + counts - 1], padded)
        kept[np.arange(len(first)) + moved] = thresholds[first]
        test_numbers = np.empty(len(order), np.int64)
        test_numbers[order] = (np.arange(len(first)) + moved)[number]
        relations, ranges = np.unique(sets[first][starts], return_counts=True)
        columns = features[first][starts]
        return _Tests(
            np.stack([columns, ends], axis=1).astype(np.int32), kept, test_numbers, relations.tolist(), ranges.tolist()
        )

    def targets_by_tree(self, leaves: np.ndarray) -> np.ndarray | None:
        """The target of all leaves of each tree; `None` if the leaves of a tree name several."""
        if self.targets is None or self.targets.shape[1] > 1:
            return None
        named = self.targets[leaves, 0]
        is_same = np.all(named == named[:, :1]) and np.all(named >= 0)
        return np.ascontiguousarray(named[:, 0], np.int32) if is_same else None


def _changes(*keys: np.ndarray) -> np.ndarray:
    """A mask of the positions where one of the sorted keys changes, the first included."""
    found = np.zeros(len(keys[0]), bool)
    found[:1] = True
    for key in keys:
        found[1:] |= key[1:] != key[:-1]
    return found


def _binned(
    op: TreeEnsembleOp, emit: Emitter, trees: _Trees, form: _Form, tests: _Tests, targets: np.ndarray | None
) -> SSAValue:
    """The operator on binned trees; nodes that stand for a leaf get an arbitrary test."""
    numbers = np.where(form.nodes < 0, 0, tests.test_numbers[np.maximum(form.nodes, 0)])
    return emit(
        BinnedTreeEnsembleOp,
        op.input,
        emit.constant(tests.ranges, "ranges"),
        emit.constant(tests.thresholds, "thresholds"),
        emit.constant(numbers.astype(np.uint16), "tests"),
        None if form.links is None else emit.constant(form.links, "links"),
        emit.constant(np.ascontiguousarray(trees.weights[form.leaves].transpose(0, 2, 1)), "leaves"),
        None if targets is None else emit.constant(targets, "targets"),
        relations=tests.relations,
        counts=tests.counts,
        size=integer(op.size),
        aggregate=text(op.aggregate),
    )
