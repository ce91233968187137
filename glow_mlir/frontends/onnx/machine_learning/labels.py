"""Labels of a classifier's classes, by class number."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.machine_learning.encoders import array_of_strings, picked
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Value

_INTEGERS, _STRINGS = ("classlabels_int64s", "classlabels_ints"), "classlabels_strings"


def _labels_of(node: Node) -> np.ndarray:
    """All labels in order, integers or strings; raises `ModelError` if there are none."""
    for name in _INTEGERS:
        if node.ints(name, ()):
            return np.array(node.ints(name), np.int64)
    if node.texts(_STRINGS, ()):
        return array_of_strings(node.texts(_STRINGS))
    raise ModelError(f"{node.kind} has no labels", node=node.name, hint=f"{_STRINGS} has one for each class")


def label_count(node: Node) -> int:
    """The number of a classifier's labels; raises `ModelError` if there are none."""
    return len(_labels_of(node))


def labels(node: Node, index: SSAValue) -> Value:
    """The labels of classes, whose numbers `index` are i64."""
    known = _labels_of(node)
    is_plain = known.dtype != object and np.array_equal(known, np.arange(len(known)))
    return index if is_plain else picked(node, known, index)
