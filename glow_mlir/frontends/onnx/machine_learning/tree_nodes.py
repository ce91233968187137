"""The nodes of decision tree ensembles, as arrays: from attributes of ONNX's operators to operands of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.glow_high.trees import EQUAL, LESS, UNORDERED, TreeEnsembleOp, threshold_words
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Trees:
    """
    The arrays of an ensemble, as in `TreeEnsembleOp` except for the order of nodes.

    `links` [M, 2] are the children of each node, `tests` the relations for which its test holds, and `weights` and
    `targets` [L, K] belong to leaves.
    """

    features: np.ndarray
    thresholds: np.ndarray
    tests: np.ndarray
    links: np.ndarray
    roots: np.ndarray
    weights: np.ndarray
    targets: np.ndarray


def emit_trees(node: Node, x: SSAValue, trees: Trees, size: int, aggregate: str) -> SSAValue:
    """Emit the ensemble: sums, minima or maxima of the weights of leaves, for `size` targets."""
    trees = _ordered(node, trees)
    _check_features(node, trees, node.sizes()[-1])
    if trees.weights.shape[1] == size and np.array_equal(trees.targets, _all_targets(trees, size)):
        targets = None
    else:
        _check_targets(node, trees, size)
        targets = node.constant(trees.targets.astype(np.int32), "targets")
    words = threshold_words(element_type(trees.thresholds.dtype))
    bits = trees.thresholds[:, None].view(np.int32).reshape(-1, words)
    nodes = np.concatenate([trees.features[:, None], trees.links, bits], axis=1).astype(np.int32)
    is_uniform = bool(np.all(trees.tests == trees.tests[0]))
    return node.emit(
        TreeEnsembleOp,
        x,
        node.constant(nodes, "nodes"),
        None if is_uniform else node.constant(trees.tests.astype(np.uint8), "tests"),
        node.constant(trees.roots.astype(np.int32), "roots"),
        node.constant(trees.weights, "leaves"),
        targets,
        size=size,
        aggregate=aggregate,
        test=int(trees.tests[0]) if is_uniform else LESS | EQUAL,
    )


def _all_targets(trees: Trees, size: int) -> np.ndarray:
    return np.broadcast_to(np.arange(size), trees.targets.shape)


def _check_features(node: Node, trees: Trees, columns: object) -> None:
    """Raise `ModelError` for a feature that the input does not have."""
    most = int(trees.features.max())
    if trees.features.min() < 0 or (isinstance(columns, int) and most >= columns):
        raise ModelError(f"{node.kind}: feature {most} of {columns} does not exist", node=node.name)


def _check_targets(node: Node, trees: Trees, size: int) -> None:
    """Raise `ModelError` for a target out of range."""
    if trees.targets.size and not -1 <= trees.targets.min() <= trees.targets.max() < size:
        raise ModelError(f"{node.kind}: a leaf is for target {trees.targets.max()} of {size}", node=node.name)


# ---- the order of nodes


def _ordered(node: Node, trees: Trees) -> Trees:
    """
    Sort the reachable nodes: children come after their parents, and the larger subtree comes first.

    Shared subtrees are not duplicated. There is at least one node. Raises `ModelError` for a cycle, even an unreachable
    one, because the choice of a root could depend on it.
    """
    if not len(trees.features):
        leaf = np.full((1, 2), -1)
        zero = np.zeros(1, np.int64)
        return replace(trees, features=zero, thresholds=np.zeros(1, trees.thresholds.dtype), tests=zero, links=leaf)
    _check_circles(node, trees)
    levels = _levels(trees)
    order = _depth_first(trees, levels)
    if order is None:
        order = np.concatenate(levels)
    positions = np.full(len(trees.features), -1)
    positions[order] = np.arange(len(order))
    links, roots = trees.links[order], trees.roots
    return replace(
        trees,
        features=trees.features[order],
        thresholds=trees.thresholds[order],
        tests=trees.tests[order],
        links=np.where(links < 0, links, positions[np.maximum(links, 0)]),
        roots=np.where(roots < 0, roots, positions[np.maximum(roots, 0)]),
    )


def _check_circles(node: Node, trees: Trees) -> None:
    """Raise `ModelError` if nodes form a cycle."""
    leading = np.bincount(trees.links[trees.links >= 0], minlength=len(trees.links))
    frontier, left = np.flatnonzero(leading == 0), len(trees.links)
    while len(frontier):
        left -= len(frontier)
        children = trees.links[frontier].reshape(-1)
        children = children[children >= 0]
        np.subtract.at(leading, children, 1)
        frontier = np.unique(children[leading[children] == 0])
    if left:
        hint = "a child does not name the node as its parent"
        raise ModelError(f"{node.kind}: nodes form a cycle", node=node.name, hint=hint)


def _levels(trees: Trees) -> list[np.ndarray]:
    """The nodes grouped by the length of the longest path from a root."""
    level = np.full(len(trees.features), -1)
    frontier, depth = np.unique(trees.roots[trees.roots >= 0]), 0
    while len(frontier):
        level[frontier] = depth
        children = trees.links[frontier].reshape(-1)
        frontier, depth = np.unique(children[children >= 0]), depth + 1
    if not level.max(initial=-1) + 1:  # All trees are leaves: keep one unreachable node.
        return [np.zeros(1, np.int64)]
    order = np.argsort(level, kind="stable")
    counts = np.bincount(level[level >= 0])
    return np.split(order[len(order) - counts.sum() :], np.cumsum(counts)[:-1])


def _depth_first(trees: Trees, levels: Sequence[np.ndarray]) -> np.ndarray | None:
    """The nodes in depth-first order, tree by tree, larger subtrees first; `None` if subtrees are shared."""
    reached = np.concatenate(levels)
    children = trees.links[reached].reshape(-1)
    children = children[children >= 0]
    roots = np.unique(trees.roots[trees.roots >= 0])
    if len(np.unique(children)) < len(children) or np.isin(roots, children).any():
        return None
    sizes = np.zeros(len(trees.features) + 1, np.int64)  # The last one is for leaves.
    for nodes in reversed(levels):
        sizes[nodes] = 1 + sizes[np.maximum(trees.links[nodes], -1)].sum(axis=1)
    positions = np.zeros(len(trees.features), np.int64)
    positions[roots] = np.cumsum(sizes[roots]) - sizes[roots]
    for nodes in levels:
        links = np.maximum(trees.links[nodes], -1)
        lengths = sizes[links]
        is_first = lengths[:, 0] >= lengths[:, 1]
        for side, goes_first in enumerate((is_first, ~is_first)):
            there = links[:, side] >= 0
            skipped = np.where(goes_first, 0, lengths[:, 1 - side])
            positions[links[there, side]] = (positions[nodes] + 1 + skipped)[there]
    return reached[np.argsort(positions[reached])]


# ---- tests of membership


def without_sets(trees: Trees, members: Sequence[np.ndarray | None]) -> Trees:
    """
    Replace each test for membership in a set by a chain of tests for its members, with a shared subtree.

    `members` has the set of each node, `None` for nodes with other tests.
    """
    if all(found is None for found in members):
        return trees
    counts = np.array([1 if found is None else max(1, len(found)) for found in members])
    first = np.cumsum(counts) - counts
    source = np.repeat(np.arange(len(counts)), counts)
    links = np.where(trees.links < 0, trees.links, first[np.maximum(trees.links, 0)])[source]
    thresholds, tests = trees.thresholds[source], trees.tests[source]
    for number, found in enumerate(members):
        if found is None:
            continue
        begin, count = first[number], counts[number]
        tests[begin : begin + count] = trees.tests[number] & UNORDERED
        if len(found):
            thresholds[begin : begin + count] = found
            tests[begin : begin + count] |= EQUAL
        links[begin : begin + count - 1, 1] = np.arange(begin + 1, begin + count)
    roots = np.where(trees.roots < 0, trees.roots, first[np.maximum(trees.roots, 0)])
    return replace(trees, features=trees.features[source], thresholds=thresholds, tests=tests, links=links, roots=roots)
