"""Random ensembles of decision trees, as ONNX's operators have them: unbalanced, of single leaves, with mixed tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, 1.0, 2.0])
"""Numbers that features have beside random ones."""


@dataclass
class RandomTrees:
    """An ensemble with `trees` trees of at most `depth` tests; `share` of the nodes above that are inner ones."""

    seed: int
    trees: int = 5
    depth: int = 4
    share: float = 0.8
    features: int = 3
    modes: Sequence[str] = MODES
    targets: int = 1
    weights_a_leaf: int = 1
    positive: bool = False
    missing: bool = False
    dtype: Any = np.float32
    first_target: int = 0
    nodes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    leaves: list[tuple[int, int, int, float]] = field(default_factory=list[tuple[int, int, int, float]])

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        for tree in range(self.trees):
            self._count = 0
            self._grow(tree, self.depth)

    def _grow(self, tree: int, depth: int) -> int:
        number, rng = self._count, self.rng
        self._count += 1
        node: dict[str, Any] = {"tree": tree, "id": number, "true": 0, "false": 0, "mode": "LEAF"}
        node |= {"feature": 0, "value": 0.0, "missing": int(self.missing and rng.random() < 0.5)}
        self.nodes.append(node)
        if depth and rng.random() < self.share:
            node["mode"] = f"BRANCH_{rng.choice(self.modes)}"
            node["feature"] = int(rng.integers(self.features))
            node["value"] = float(np.round(rng.normal() * 2) / 2)
            node["true"], node["false"] = self._grow(tree, depth - 1), self._grow(tree, depth - 1)
            return number
        named = rng.permutation(self.targets - self.first_target)[: self.weights_a_leaf] + self.first_target
        for target in named.tolist():
            weight = float(np.float32(rng.normal()))
            self.leaves.append((tree, number, target, abs(weight) if self.positive else weight))
        return number

    def rows(self, count: int) -> np.ndarray:
        """Features of so many rows, special numbers among them."""
        x = self.rng.normal(size=(count, self.features))
        chosen = self.rng.random(x.shape) < 0.3
        return np.where(chosen, self.rng.choice(SPECIAL, x.shape), x).astype(self.dtype)

    def older(self, leaf: str, **more: Any) -> dict[str, Any]:
        """The attributes of TreeEnsembleRegressor (`leaf` is `target`) or TreeEnsembleClassifier (`class`)."""
        names = {"treeids": "tree", "nodeids": "id", "featureids": "feature", "modes": "mode"}
        names |= {"truenodeids": "true", "falsenodeids": "false", "missing_value_tracks_true": "missing"}
        found: dict[str, Any] = {f"nodes_{name}": [node[key] for node in self.nodes] for name, key in names.items()}
        for place, name in enumerate(("treeids", "nodeids", "ids")):
            found[f"{leaf}_{name}"] = [item[place] for item in self.leaves]
        numbers = {"nodes_values": [node["value"] for node in self.nodes]}
        numbers[f"{leaf}_weights"] = [item[3] for item in self.leaves]
        if self.dtype == np.float64:
            arrays = {f"{name}_as_tensor": np.array(values) for name, values in numbers.items()}
            return found | {name: numpy_helper.from_array(array, name) for name, array in arrays.items()} | more
        return found | numbers | more

    def newer(self, **more: Any) -> dict[str, Any]:
        """The attributes of TreeEnsemble."""
        leaves = {item[:2]: place for place, item in enumerate(self.leaves)}
        # A tree that is a leaf is a node that leads there whatever the test says.
        inner = [node for node in self.nodes if node["mode"] != "LEAF" or not node["id"]]
        places = {(node["tree"], node["id"]): place for place, node in enumerate(inner)}
        roots = [places[tree, 0] for tree in range(self.trees)]

        def side(name: str) -> dict[str, list[int]]:
            keys = [(node["tree"], node[name]) for node in inner]
            ids = [leaves[key] if key in leaves else places[key] for key in keys]
            return {f"nodes_{name}nodeids": ids, f"nodes_{name}leafs": [int(key in leaves) for key in keys]}

        words = ["LEQ" if node["mode"] == "LEAF" else node["mode"].removeprefix("BRANCH_") for node in inner]
        modes = np.array([MODES.index(word) for word in words], np.uint8)
        splits = np.array([node["value"] for node in inner], self.dtype)
        weights = np.array([item[3] for item in self.leaves], self.dtype)
        tensors = {"nodes_modes": modes, "nodes_splits": splits, "leaf_weights": weights}
        return {
            **{name: numpy_helper.from_array(array, name) for name, array in tensors.items()},
            **side("true"),
            **side("false"),
            "nodes_featureids": [node["feature"] for node in inner],
            "nodes_missing_value_tracks_true": [node["missing"] for node in inner],
            "leaf_targetids": [item[2] for item in self.leaves],
            "tree_roots": roots,
            "n_targets": self.targets,
            **more,
        }


def tree_model(
    kind: str, attributes: Mapping[str, Any], x: np.ndarray, rows: int | str | None = None
) -> onnx.ModelProto:
    """A model of one of ONNX's operators of trees, for features such as `x`; `rows` may be a name."""
    outputs = ["label", "scores"] if kind == "TreeEnsembleClassifier" else ["y"]
    node = helper.make_node(kind, ["x"], outputs, domain="ai.onnx.ml", **attributes)
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    shape = [len(x) if rows is None else rows, x.shape[1]]
    inputs = [helper.make_tensor_value_info("x", element, shape)]
    graph = helper.make_graph([node], "trees", inputs, [onnx.ValueInfoProto(name=name) for name in outputs])
    version = 5 if kind == "TreeEnsemble" else 3
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def tree_operands(made: RandomTrees, relations: Sequence[int] = ()) -> list[np.ndarray | None]:
    """
    Nodes, tests, roots, weights and targets of `tree_ensemble`, that of LEQ in all nodes unless tests have `relations`.
    """
    inner = [node for node in made.nodes if node["mode"] != "LEAF"]
    places = {(node["tree"], node["id"]): place for place, node in enumerate(inner)}
    leaves = list(dict.fromkeys(item[:2] for item in made.leaves))
    places |= {key: -1 - place for place, key in enumerate(leaves)}
    links = [[node["feature"], *(places[node["tree"], node[side]] for side in ("true", "false"))] for node in inner]
    words = np.array([node["value"] for node in inner], made.dtype)[:, None].view(np.int32)
    nodes = np.concatenate([np.array(links, np.int32), words.reshape(len(inner), -1)], axis=1)
    given: dict[tuple[int, int], list[tuple[int, float]]] = {key: [] for key in leaves}
    for *key, target, weight in made.leaves:
        given[key[0], key[1]].append((target, weight))
    targets = np.array([[target for target, _ in given[key]] for key in leaves], np.int32)
    weights = np.array([[weight for _, weight in given[key]] for key in leaves], made.dtype)
    tests = made.rng.choice(relations, len(inner)).astype(np.uint8) if relations else None
    roots = np.array([places[tree, 0] for tree in range(made.trees)], np.int32)
    return [nodes, tests, roots, weights, targets]


def binned_operands(
    trees: int,
    depth: int,
    ranges: Sequence[tuple[int, int]],
    columns: int = 1,
    size: int | None = None,
    dtype: Any = np.float32,
    linked: int = 0,
) -> list[np.ndarray | None]:
    """
    Ranges, thresholds, tests, links, weights, targets of `binned_tree_ensemble`, of `ranges` of a feature and a count.

    Trees have `size` targets, if that is given, and are complete unless so many nodes are `linked`.
    """
    rng = np.random.default_rng(depth)
    ends, count = np.cumsum([count for _, count in ranges]), sum(count for _, count in ranges)
    thresholds: np.ndarray = np.round(rng.normal(size=count) * 2) / 2
    nodes = linked or 2**depth - 1
    tests = rng.integers(0, count, (trees, nodes)).astype(np.uint16)
    leads = -1 - rng.integers(0, 2**depth, (trees, nodes, 2))
    for node in range(1, linked):
        parent = rng.integers(0, node, trees)
        leads[np.arange(trees), parent, rng.integers(0, 2, trees)] = node
    return [
        np.stack([[feature for feature, _ in ranges], ends], axis=1).astype(np.int32),
        thresholds.astype(dtype),
        tests,
        leads.astype(np.int16) if linked else None,
        rng.normal(size=(trees, columns, 2**depth)).astype(dtype),
        None if size is None else rng.integers(0, size, trees).astype(np.int32),
    ]
