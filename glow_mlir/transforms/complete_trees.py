"""`complete-trees`: decision trees that are not deep become complete ones, which share their tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.trees import LINKS, CompleteTreeEnsembleOp, TreeEnsembleOp
from glow_mlir.dialects.properties import integer, text
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass

MOST_LEVELS = 8
"""The deepest trees: code has a piece for each node of one."""

MOST_LEAVES = 1 << 21
"""Leaves of complete trees beyond which the trees as they are take less of the caches."""

MOST_TESTS = 1 << 16
"""Different tests that a ui16 tells apart."""


class CompleteTrees(Pattern):
    """Trees of which the deepest has few levels, and which have few different tests."""

    @rooted
    def match_and_rewrite(self, op: TreeEnsembleOp, rewriter: Rewriter, /) -> None:
        if not rewriter.function.target.vector_bits:  # Without vectors, tests that a row does not meet cost time.
            return
        trees = _Trees.of(op, rewriter.emit)
        levels = None if trees is None else trees.levels()
        if trees is None or levels is None:
            return
        *inner, leaves = levels
        tests = trees.tests(rewriter.function.target.vector_width(element_of(op.input)))
        targets = trees.targets_by_tree(leaves)
        if len(tests.thresholds) <= MOST_TESTS and (trees.targets is None or targets is not None):
            rewriter.replace(op, (), [_complete(op, rewriter.emit, trees, inner, leaves, tests, targets)])


@dataclass(frozen=True)
class CompleteTreesPass(PatternPass):
    """
    Let decision trees that are not deep be complete ones, of which many rows find the leaves at once.

    Each leaf that is not at the bottom becomes a subtree whose leaves are alike, and nodes with the same test share it.
    It does so for machines with vectors, where no tree has more than 8 levels, and the leaves of each name one target,
    or all.
    """

    name = "complete-trees"

    def walks(self) -> tuple[Walk, ...]:
        return (Walk((CompleteTrees(),)),)


@dataclass(frozen=True)
class _Tests:
    """
    Different tests, sorted: their thresholds, and ranges of those of one feature.

    `places` has the test of each node.
    """

    ranges: np.ndarray
    thresholds: np.ndarray
    places: np.ndarray
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
        """Those of an operator; `None` where they are no constants."""
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

    def levels(self) -> list[np.ndarray] | None:
        """
        The nodes of each level, [R, 2^level], a leaf taking the place of both of its children; the last are all leaves.

        `None` where there are too many levels or leaves, or a node leads nowhere.
        """
        levels = [self.roots[:, None]]
        while len(levels) == 1 or np.any(levels[-1] >= 0):
            places = levels[-1]
            if len(levels) > MOST_LEVELS or 2 * places.size > MOST_LEAVES:
                return None
            if np.any(places >= len(self.nodes)) or np.any(-1 - places >= len(self.weights)):
                return None
            links = self.nodes[np.maximum(places, 0), LINKS - 1 : 0 : -1]  # Where the test fails comes first.
            levels.append(np.where(places[..., None] < 0, places[..., None], links).reshape(len(places), -1))
        return None if np.any(-1 - levels[-1] >= len(self.weights)) else levels

    def tests(self, lanes: int) -> _Tests:
        """The different tests of nodes; those of a feature that has not few fill vectors."""
        features = self.nodes[:, 0].astype(np.int64)
        thresholds = np.ascontiguousarray(self.nodes[:, LINKS:]).view(self.dtype)[:, 0]
        order = np.lexsort([thresholds.view(np.int32 if thresholds.itemsize == 4 else np.int64), features, self.sets])
        sets, features, thresholds = self.sets[order], features[order], thresholds[order]
        is_new_range = _changes(sets, features)
        is_new = is_new_range | _changes(thresholds.view(np.int32 if thresholds.itemsize == 4 else np.int64))
        number = np.cumsum(is_new) - 1  # Of each node, without padding.
        first = np.flatnonzero(is_new)
        starts = np.flatnonzero(is_new_range[first])
        counts = np.diff(starts, append=len(first))
        padded = np.where(2 * counts >= lanes, -(-counts // lanes) * lanes, counts)
        ends = np.cumsum(padded)
        moved = np.repeat(ends - padded - starts, counts)
        kept = np.repeat(thresholds[first][starts + counts - 1], padded)
        kept[np.arange(len(first)) + moved] = thresholds[first]
        places = np.empty(len(order), np.int64)
        places[order] = (np.arange(len(first)) + moved)[number]
        relations, ranges = np.unique(sets[first][starts], return_counts=True)
        columns = features[first][starts]
        return _Tests(
            np.stack([columns, ends], axis=1).astype(np.int32), kept, places, relations.tolist(), ranges.tolist()
        )

    def targets_by_tree(self, leaves: np.ndarray) -> np.ndarray | None:
        """The target that all leaves of a tree name, of each; `None` where they name several."""
        if self.targets is None or self.targets.shape[1] > 1:
            return None
        named = self.targets[-1 - leaves, 0]
        is_same = np.all(named == named[:, :1]) and np.all(named >= 0)
        return np.ascontiguousarray(named[:, 0], np.int32) if is_same else None


def _changes(*keys: np.ndarray) -> np.ndarray:
    """Where one of several keys is not as before, and at the first place."""
    found = np.zeros(len(keys[0]), bool)
    found[:1] = True
    for key in keys:
        found[1:] |= key[1:] != key[:-1]
    return found


def _complete(
    op: TreeEnsembleOp,
    emit: Emitter,
    trees: _Trees,
    inner: Sequence[np.ndarray],
    leaves: np.ndarray,
    tests: _Tests,
    targets: np.ndarray | None,
) -> SSAValue:
    """The operator on complete trees; the test of what stands for a leaf is any."""
    numbers = [np.where(places < 0, 0, tests.places[np.maximum(places, 0)]) for places in inner]
    return emit(
        CompleteTreeEnsembleOp,
        op.input,
        emit.constant(tests.ranges, "ranges"),
        emit.constant(tests.thresholds, "thresholds"),
        emit.constant(np.concatenate(numbers, axis=1).astype(np.uint16), "tests"),
        emit.constant(np.ascontiguousarray(trees.weights[-1 - leaves].transpose(0, 2, 1)), "leaves"),
        None if targets is None else emit.constant(targets, "targets"),
        relations=tests.relations,
        counts=tests.counts,
        size=integer(op.size),
        aggregate=text(op.aggregate),
    )
