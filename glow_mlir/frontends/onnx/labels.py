"""Labels of the classes of a classifier, by the number of a class."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.node import Node


def label_count(node: Node) -> int:
    """How many classes a classifier has labels for; raises `ModelError` where it has none."""
    count = len(node.ints("classlabels_int64s", ())) or len(node.texts("classlabels_strings", ()))
    if not count:
        raise ModelError(f"{node.kind} has no labels", node=node.name, hint="classlabels_int64s has one for each class")
    return count


def labels(node: Node, index: SSAValue) -> SSAValue:
    """The labels of the classes with these numbers, of i64; raises `UnsupportedError` for labels that are strings."""
    known = node.ints("classlabels_int64s", ())
    if not known:
        raise node.unsupported("labels that are strings are not supported")
    if known == tuple(range(len(known))):
        return index
    return node.emit(GatherOp, node.constant(np.array(known, np.int64), "labels"), index, axis=0)
