"""ONNX's decision tree ensembles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import SigmoidOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    DivOp,
    GreaterOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, NegOp
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp, ReduceSumOp
from glow_mlir.dialects.glow_high.trees import tests_of
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.machine_learning.labels import label_count, labels
from glow_mlir.frontends.onnx.machine_learning.post_transforms import transformed
from glow_mlir.frontends.onnx.machine_learning.tree_nodes import Trees, emit_trees, without_sets
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Value
from glow_mlir.ir.registry import onnx_operator

_DOMAIN = "ai.onnx.ml"

_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
"""TreeEnsemble's tests, by number."""

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
"""TreeEnsemble's aggregate functions, by number."""

_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""TreeEnsemble's post-transforms, by number."""


@onnx_operator("TreeEnsemble", since=5, domain=_DOMAIN)
def tree_ensemble(node: Node) -> SSAValue:
    """Children are nodes or leaves, each leaf with one weight; membership tests have their sets in one list."""
    modes = _array(node, "nodes_modes").astype(np.int64)
    x, thresholds = _comparable(node, _array(node, "nodes_splits"))
    weights = _array(node, "leaf_weights")
    is_true_leaf, is_false_leaf = _ints(node, "nodes_trueleafs"), _ints(node, "nodes_falseleafs")
    yes, no = _ints(node, "nodes_truenodeids"), _ints(node, "nodes_falsenodeids")
    features, targets = _ints(node, "nodes_featureids"), _ints(node, "leaf_targetids")
    count = len(modes)
    _same_length(node, count, features, thresholds, is_true_leaf, is_false_leaf, yes, no)
    _same_length(node, len(weights), targets)
    if count and not 0 <= modes.min() <= modes.max() < len(_MODES):
        raise ModelError("TreeEnsemble: unknown mode of a node", node=node.name)
    links = np.stack([_linked(node, *side, count, len(weights)) for side in ((yes, is_true_leaf), (no, is_false_leaf))])
    trees = Trees(
        features,
        thresholds,
        _tests(node, [*_MODES[:-1], "LEQ"], modes),  # Members are compared one by one.
        links.T,
        _linked(node, _ints(node, "tree_roots"), np.zeros(len(node.ints("tree_roots")), np.int64), count, 0),
        weights.astype(thresholds.dtype)[:, None],
        targets[:, None],
    )
    trees = without_sets(trees, _members(node, modes == _MODES.index("MEMBER"), thresholds.dtype))
    size = node.int("n_targets", 1)
    aggregate = _word(node, "aggregate_function", _AGGREGATES, 1)
    sums = _aggregated(node, x, trees, size, aggregate)
    found = transformed(node, sums, _word(node, "post_transform", _TRANSFORMS, 0))
    return node.cast(found, node.element())


def _word(node: Node, name: str, words: Sequence[str], default: int) -> str:
    """The word whose number is an attribute; raises `ModelError` for an unknown number."""
    number = node.int(name, default)
    if not 0 <= number < len(words):
        raise ModelError(f"{node.kind}: {name} is {number}", node=node.name, hint=f"there are {', '.join(words)}")
    return words[number]


def _members(node: Node, is_set: np.ndarray, dtype: np.dtype[np.floating]) -> list[np.ndarray | None]:
    """The set of each node with a membership test, else `None`; in the attribute's list, a NaN ends each set."""
    if not is_set.any():
        return [None] * len(is_set)
    values = _array(node, "membership_values").astype(dtype)
    ends = np.flatnonzero(np.isnan(values))
    if len(ends) != is_set.sum():
        reason = f"TreeEnsemble: {is_set.sum()} nodes test for membership in {len(ends)} sets"
        raise ModelError(reason, node=node.name, hint="a NaN ends each set of membership_values")
    sets = iter(np.split(values, ends + 1))
    return [next(sets)[:-1] if found else None for found in is_set]


def _linked(node: Node, ids: np.ndarray, is_leaf: np.ndarray, nodes: int, leaves: int) -> np.ndarray:
    """Links to nodes by index, and to leaves by `-1 - index`; raises `ModelError` for a missing one."""
    if np.any(ids < 0) or np.any(ids >= np.where(is_leaf != 0, leaves, nodes)):
        raise ModelError(f"{node.kind}: a node has a missing child", node=node.name)
    return np.where(is_leaf != 0, -1 - ids, ids)


# ---- the older operators


@onnx_operator("TreeEnsembleRegressor", domain=_DOMAIN)
def tree_ensemble_regressor(node: Node) -> SSAValue:
    """For a single target, only the post-transform PROBIT is applied, as in onnxruntime."""
    x, trees = _older(node, "target")
    size = node.int("n_targets", 1)
    sums = _aggregated(node, x, trees, size, node.text("aggregate_function", "SUM"))
    base = _base_values(node, trees.weights.dtype)
    if len(base):
        if len(base) != size:
            raise ModelError(f"{node.kind}: {len(base)} base values for {size} targets", node=node.name)
        sums = node.emit(AddOp, sums, node.constant(base, "base_values"))
    word = node.text("post_transform", "NONE")
    return node.cast(transformed(node, sums, word if size > 1 or word == "PROBIT" else "NONE"), f32)


@onnx_operator("TreeEnsembleClassifier", domain=_DOMAIN)
def tree_ensemble_classifier(node: Node) -> tuple[Value, SSAValue]:
    """Two classes have special rules, which the standard does not specify: they are onnxruntime's."""
    x, trees = _older(node, "class")
    size, base = label_count(node), _base_values(node, trees.weights.dtype)
    if len(base) > (2 if size == 2 else size) or (size != 2 and len(base) not in (0, size)):
        raise ModelError(f"{node.kind}: {len(base)} base values for {size} classes", node=node.name)
    sums = _aggregated(node, x, trees, size, "SUM")
    if size == 2:
        index, scores = _two_classes(node, sums, trees, base)
    else:
        index, scores = _classes(node, x, sums, trees, base)
    return labels(node, index), node.cast(scores, f32)


def _classes(node: Node, x: SSAValue, sums: SSAValue, trees: Trees, base: np.ndarray) -> tuple[SSAValue, SSAValue]:
    """The first class with the largest sum, among classes named by the row's leaves; and the scores."""
    size = sizes_of(sums)[1]
    assert isinstance(size, int)
    candidates = sums
    if len(base):
        candidates = sums = node.emit(AddOp, sums, node.constant(base, "base_values"))
    elif np.any(trees.weights < 0) and trees.weights.shape[1] < size:
        ones = Trees(**{**vars(trees), "weights": np.ones_like(trees.weights)})
        named = emit_trees(node, x, ones, size, "max")
        zero = node.splat(0.0, sums)
        candidates = node.emit(WhereOp, node.emit(GreaterOp, named, zero), sums, node.splat(-np.inf, sums))
    index = node.emit(ArgMaxOp, candidates, axis=1, keepdims=False)
    return node.cast(index, i64), transformed(node, sums, node.text("post_transform", "NONE"))


def _two_classes(node: Node, sums: SSAValue, trees: Trees, base: np.ndarray) -> tuple[SSAValue, SSAValue]:
    """
    Classify by the sum of the second class if leaves name it, else by that of the first; and the scores.

    The second class is chosen if that sum is above 0, or above 0.5 if all weights are for one class and not negative.
    If there is one sum only, both scores are computed from it.
    """
    named = set(np.unique(trees.targets).tolist()) - {-1}
    is_binary, is_positive = len(named) == 1, not np.any(trees.weights < 0)
    first, second = _column(node, sums, 0), _column(node, sums, 1)
    word = node.text("post_transform", "NONE")
    has_first, has_second = 0 in named, 1 in named
    offsets = [node.splat(value, sums) for value in base]
    if len(base) == 2 and has_second:
        second = node.emit(AddOp, first, offsets[1])
        first = node.emit(NegOp, second)
    elif base.size:
        first = node.emit(AddOp, first, offsets[0])
    deciding = second if has_second else first
    limit = node.splat(0.5 if is_binary and is_positive else 0.0, sums)
    index = node.emit(CastOp, node.emit(GreaterOp, deciding, limit), to=i64)
    index = node.emit(ReduceSumOp, index, axes=[1], keepdims=False)
    if has_second or len(base) == 2:
        zero = node.emit(SubOp, first, first)
        pair = [first if has_first or not has_second else zero, second if has_second else zero]
        return index, transformed(node, node.emit(ConcatOp, pair, axis=1), word)
    return index, node.emit(ConcatOp, _of_one_sum(node, first, word, is_binary and is_positive), axis=1)


def _of_one_sum(node: Node, total: SSAValue, word: str, is_positive: bool) -> list[SSAValue]:
    """The scores of two classes from a single sum, the score of the second class."""
    if word == "PROBIT":
        return [transformed(node, total, word), total]
    if word == "LOGISTIC":
        return [node.emit(SigmoidOp, node.emit(NegOp, total)), node.emit(SigmoidOp, total)]
    opposite = node.emit(SubOp, node.splat(1.0, total), total) if is_positive else node.emit(NegOp, total)
    return [opposite, total]


def _column(node: Node, value: SSAValue, column: int) -> SSAValue:
    """One column of a matrix, as a matrix."""
    rows = sizes_of(value)[0]
    return node.emit(SliceOp, value, starts=(0, column), ends=(rows, column + 1), steps=(1, 1))


def _older(node: Node, leaf: str) -> tuple[SSAValue, Trees]:
    """
    The features and trees of the older operators, in which nodes are numbered within a tree and leaves are nodes.

    `leaf` is the prefix of the attributes of leaves: "target" or "class".
    """
    ids = _ints(node, "nodes_treeids"), _ints(node, "nodes_nodeids")
    modes, features = node.array_of("nodes_modes"), _ints(node, "nodes_featureids")
    yes, no = _ints(node, "nodes_truenodeids"), _ints(node, "nodes_falsenodeids")
    x, thresholds = _comparable(node, _numbers(node, "nodes_values"))
    count = len(modes)
    _same_length(node, count, *ids, features, thresholds, yes, no)
    if not count:
        raise ModelError(f"{node.kind} has no trees", node=node.name)
    number = _numbering(node, *ids)
    words, mode_indices = np.unique(modes, return_inverse=True)
    names = [word.decode(errors="backslashreplace").removeprefix("BRANCH_") for word in words.tolist()]
    is_leaf = np.array([name == "LEAF" for name in names])[mode_indices]
    inner, leaves = np.flatnonzero(~is_leaf), np.flatnonzero(is_leaf)
    positions = np.empty(count, np.int64)
    positions[inner], positions[leaves] = np.arange(len(inner)), -1 - np.arange(len(leaves))
    children = [number.of(ids[0][inner], side[inner]) for side in (yes, no)]
    weights, targets = _leaf_weights(node, leaf, number, positions, len(leaves), thresholds.dtype)
    trees = Trees(
        features[inner],
        thresholds[inner],
        _tests(node, names, mode_indices[inner], inner),
        positions[np.stack(children, axis=1)],
        positions[_roots(ids[0], children)],
        weights,
        targets,
    )
    return x, trees


def _roots(trees: np.ndarray, children: Sequence[np.ndarray]) -> np.ndarray:
    """The root of each tree: the only node without a parent, or else the first node."""
    is_child = np.zeros(len(trees), bool)
    for side in children:
        is_child[side] = True
    _, first, number = np.unique(trees, return_index=True, return_inverse=True)
    free = np.flatnonzero(~is_child)
    is_single = np.bincount(number[free], minlength=len(first)) == 1
    first[number[free]] = np.where(is_single[number[free]], free, first[number[free]])
    return np.sort(first)


class _Numbering:
    """Tree and number of a node within it → its position in the list."""

    def __init__(self, node: Node, trees: np.ndarray, numbers: np.ndarray) -> None:
        self._node = node
        self._span = int(numbers.max()) + 1
        keys = trees * self._span + numbers
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def of(self, trees: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The positions of nodes; raises `ModelError` if one is missing."""
        keys = trees * self._span + numbers
        found = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        if np.any(self._keys[found] != keys) or np.any(numbers < 0) or np.any(numbers >= self._span):
            raise ModelError(f"{self._node.kind}: a node has a missing child", node=self._node.name)
        return self._order[found]

    def is_unique(self) -> bool:
        """Whether the numbers within each tree are unique."""
        return bool(np.all(self._keys[1:] != self._keys[:-1]))


def _numbering(node: Node, trees: np.ndarray, numbers: np.ndarray) -> _Numbering:
    """The numbering of nodes; raises `ModelError` if numbers within a tree are not unique."""
    found = _Numbering(node, trees, numbers)
    if np.any(numbers < 0) or np.any(trees < 0) or not found.is_unique():
        raise ModelError(f"{node.kind}: nodes of a tree need distinct numbers", node=node.name)
    return found


def _leaf_weights(
    node: Node, leaf: str, number: _Numbering, positions: np.ndarray, count: int, dtype: np.dtype[np.floating]
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and targets of the leaves, [count, K], where K is the largest number of weights of a leaf."""
    weights, targets = _numbers(node, f"{leaf}_weights").astype(dtype), _ints(node, f"{leaf}_ids")
    ids = _ints(node, f"{leaf}_treeids"), _ints(node, f"{leaf}_nodeids")
    _same_length(node, len(weights), targets, *ids)
    if np.any(targets < 0):
        raise ModelError(f"{node.kind}: a weight is for {leaf} {targets.min()}", node=node.name)
    leaves = -1 - positions[number.of(*ids)]
    is_leaf = leaves >= 0  # Weights of inner nodes are ignored.
    weights, targets, leaves = weights[is_leaf], targets[is_leaf], leaves[is_leaf]
    order = np.lexsort([targets, leaves])
    leaves = leaves[order]
    counts = np.bincount(leaves, minlength=count)
    columns = np.arange(len(leaves)) - (np.cumsum(counts) - counts)[leaves]
    shape = count, max(1, int(counts.max(initial=0)))
    found, named = np.zeros(shape, dtype), np.full(shape, -1)
    found[leaves, columns], named[leaves, columns] = weights[order], targets[order]
    return found, named


# ---- attributes and sums


def _tests(node: Node, words: Sequence[str], mode_indices: np.ndarray, picked: np.ndarray | None = None) -> np.ndarray:
    """The relations for which the tests of nodes hold; `mode_indices` are indices into `words`."""
    missing = _ints(node, "nodes_missing_value_tracks_true")
    if picked is not None and len(missing) > picked.max(initial=-1):
        missing = missing[picked]
    if len(missing) not in (0, len(mode_indices)):
        raise ModelError(f"{node.kind}: nodes_missing_value_tracks_true is not as long as nodes_modes", node=node.name)
    sets = np.zeros((2, len(words)), np.int64)
    for code, word in enumerate(words):
        if np.any(mode_indices == code):
            if word not in _MODES[:-1]:
                raise node.unsupported(f"there is no test '{word}'")
            sets[:, code] = [tests_of(word, tracks_true) for tracks_true in (False, True)]
    return sets[(missing != 0).astype(np.int64) if len(missing) else 0, mode_indices]


def _comparable(node: Node, thresholds: np.ndarray) -> tuple[SSAValue, np.ndarray]:
    """Features and thresholds, converted to the type of comparisons: f64 if either is f64, else f32."""
    is_wide = thresholds.dtype == np.float64 or node.element() == f64
    x = node.cast(node.input(), f64 if is_wide else f32)
    return x, thresholds.astype(np.float64 if is_wide else np.float32)


def _ints(node: Node, name: str) -> np.ndarray:
    return node.array_of(name).astype(np.int64)


def _array(node: Node, name: str) -> np.ndarray:
    """A tensor attribute as a list."""
    return node.tensor(name).reshape(-1)


def _numbers(node: Node, name: str) -> np.ndarray:
    """A list of floats, or the tensor attribute in its place."""
    if node.has(f"{name}_as_tensor"):
        return _array(node, f"{name}_as_tensor")
    return node.array_of(name).astype(np.float32)


def _base_values(node: Node, dtype: np.dtype[np.floating]) -> np.ndarray:
    return _numbers(node, "base_values").astype(dtype)


def _same_length(node: Node, count: int, *arrays: np.ndarray) -> None:
    """Raise `ModelError` if lists that belong together differ in length."""
    if any(len(array) != count for array in arrays):
        raise ModelError(f"{node.kind}: attributes of nodes and leaves differ in length", node=node.name)


def _aggregated(node: Node, x: SSAValue, trees: Trees, size: int, word: str) -> SSAValue:
    """The aggregated weights for each target."""
    if word not in _AGGREGATES or size < 1 or not len(trees.roots):
        found = f"{len(trees.roots)} trees, {size} targets, and the aggregate_function {word}"
        raise ModelError(f"{node.kind} has {found}", node=node.name, hint=f"there are {', '.join(_AGGREGATES)}")
    found = emit_trees(node, x, trees, size, "sum" if word == "AVERAGE" else word.lower())
    return node.emit(DivOp, found, node.splat(len(trees.roots), found)) if word == "AVERAGE" else found
