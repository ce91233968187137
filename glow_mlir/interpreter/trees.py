"""Semantics of ensembles of decision trees: all rows descend all trees together, one level per step."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.trees import (
    EQUAL,
    GREATER,
    LESS,
    LINKS,
    UNORDERED,
    BinnedTreeEnsembleOp,
    Ensemble,
    TreeEnsembleOp,
)
from glow_mlir.dialects.properties import integer, ints, text
from glow_mlir.dialects.shapes import element_of
from glow_mlir.errors import ExecutionError
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import semantics

_FOLDS = {"sum": (np.add, 0.0), "min": (np.minimum, np.inf), "max": (np.maximum, -np.inf)}
"""Aggregate → the function, and its initial value."""


@semantics(TreeEnsembleOp)
def tree_ensemble(
    op: TreeEnsembleOp,
    x: np.ndarray,
    nodes: np.ndarray,
    tests: np.ndarray | None,
    roots: np.ndarray,
    weights: np.ndarray,
    targets: np.ndarray | None,
) -> np.ndarray:
    """Look up nodes until all rows are in leaves."""
    count = len(nodes)
    features, links = nodes[:, 0], nodes[:, 1:LINKS]
    thresholds = np.ascontiguousarray(nodes[:, LINKS:]).view(x.dtype)[:, 0]
    sets = np.full(count, integer(op.test)) if tests is None else tests
    _check(op, features, 0, x.shape[1])
    _check(op, links, np.where(links < 0, -len(weights), np.arange(1, count + 1)[:, None]), count)
    _check(op, roots, -len(weights), count)
    current = np.broadcast_to(roots, (len(x), len(roots))).copy()
    rows, trees = np.nonzero(current >= 0)
    while len(rows):
        here = current[rows, trees]
        holds = _holds(x[rows, features[here]], thresholds[here], sets[here])
        current[rows, trees] = np.where(holds, links[here, 0], links[here, 1])
        is_inside = current[rows, trees] >= 0
        rows, trees = rows[is_inside], trees[is_inside]
    leaves = -1 - current
    if targets is not None:
        _check(op, targets, -1, integer(op.size))
    named = None if targets is None else targets[leaves]
    return _aggregated(op, weights[leaves], named)


@semantics(BinnedTreeEnsembleOp)
def binned_tree_ensemble(
    op: BinnedTreeEnsembleOp,
    x: np.ndarray,
    ranges: np.ndarray,
    thresholds: np.ndarray,
    tests: np.ndarray,
    links: np.ndarray | None,
    weights: np.ndarray,
    targets: np.ndarray | None,
) -> np.ndarray:
    """Evaluate each test once, and then the path through each tree."""
    count, trees, nodes = len(thresholds), len(tests), int(tests.shape[1])
    lengths = np.diff(ranges[:, 1], prepend=0)
    _check(op, ranges[:, 0], 0, x.shape[1])
    _check(op, lengths, 0, count + 1)
    _check(op, ranges[-1:, 1], count, count + 1)
    _check(op, tests, 0, count)
    numbers = np.arange(nodes)[:, None]
    if links is None:
        children = 2 * numbers + np.array([1, 2])
        links = np.broadcast_to(np.where(children < nodes, children, nodes - 1 - children), (trees, nodes, 2))
    _check(op, links, np.where(links < 0, -weights.shape[2], numbers + 1), nodes)
    sets = np.repeat(np.repeat(np.array(ints(op.relations), np.int64), ints(op.counts)), lengths)
    outcomes = _holds(x[:, np.repeat(ranges[:, 0], lengths)], thresholds, sets).astype(np.int64)
    every = np.arange(trees)
    current = np.zeros((len(x), trees), np.int64)
    while np.any(current >= 0):
        inner = np.maximum(current, 0)
        current = np.where(
            current < 0,
            current,
            links[every, inner, np.take_along_axis(outcomes, tests[every, inner].astype(np.int64), 1)],
        )
    given = weights[every[:, None], np.arange(weights.shape[1]), (-1 - current)[..., None]]
    if targets is not None:
        _check(op, targets, 0, integer(op.size))
    named = None if targets is None else np.broadcast_to(targets[:, None], given.shape)
    return _aggregated(op, given, named)


def _check(op: Ensemble, numbers: np.ndarray, least: np.ndarray | int, count: int) -> None:
    """Raise `ExecutionError` for a number outside [`least`, `count`)."""
    if not np.all((numbers >= least) & (numbers < count)):
        raise ExecutionError(op.FAILURE, node=location_name(op.location))


def _holds(values: np.ndarray, thresholds: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Whether values satisfy one of the relations to thresholds of each set."""
    greater = np.where(values > thresholds, GREATER, UNORDERED)
    relation = np.where(values < thresholds, LESS, np.where(values == thresholds, EQUAL, greater))
    return (sets & relation) != 0


def _aggregated(op: Ensemble, given: np.ndarray, named: np.ndarray | None) -> np.ndarray:
    """Aggregate the weights `given` [rows, trees, K] by target: the one `named` for each, or one per column."""
    size, (fold, start) = integer(op.size), _FOLDS[text(op.aggregate)]
    wide = given.astype(np.float64)
    if named is None:
        found, seen = fold.reduce(wide, axis=1, initial=start), np.full(size, given.shape[1] > 0)
    else:
        found, seen = np.full((len(given), size), start), np.zeros((len(given), size), bool)
        rows = np.broadcast_to(np.arange(len(given))[:, None, None], named.shape)
        counts = named >= 0
        fold.at(found, (rows[counts], named[counts]), wide[counts])
        seen[rows[counts], named[counts]] = True
    return np.where(seen, found, 0.0).astype(numpy_dtype(element_of(op.outputs()[0])))
