"""Regions that are one operation, as folds."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import numpy as np
from xdsl.ir import Attribute, Block, SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float, numpy_dtype
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.stablehlo.node import StablehloNode

FOLDS: Mapping[str, str] = {
    "stablehlo.add": "add",
    "stablehlo.multiply": "mul",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.and": "and",
    "stablehlo.or": "or",
    "stablehlo.xor": "xor",
}
"""The operation of a region → the fold of numbers by it."""

FOLDS_OF_TRUTH: Mapping[str, str] = {
    **FOLDS,
    "stablehlo.add": "or",
    "stablehlo.multiply": "and",
    "stablehlo.maximum": "or",
    "stablehlo.minimum": "and",
}
"""The same for truth values."""


def fold_of(block: Block, element: Attribute) -> str:
    """The fold of elements of a type by a region; an empty string for one that is not a single operation."""
    found = (FOLDS_OF_TRUTH if is_bool(element) else FOLDS).get(single_operation(block), "")
    return "" if is_float(element) and found in ("and", "or", "xor") else found


def single_operation(block: Block) -> str:
    """The name of the only operation of a region, which is on its two arguments; else an empty string."""
    operations = list(block.ops)
    if len(operations) != 2 or len(block.args) != 2:
        return ""
    one, end = operations
    is_pair = set(one.operands) == set(block.args) and list(end.operands) == list(one.results)
    return one.name if is_pair else ""


def neutral_number(fold: str, element: Attribute) -> float:
    """The number that changes nothing in a fold."""
    if fold in ("max", "min"):
        return limit_of(element, is_lowest=fold == "max")
    if fold == "and":
        limits = (0, 1) if is_bool(element) else (limit_of(element, True), limit_of(element, False))
        return -1 if limits[0] < 0 else limits[1]
    return 1 if fold == "mul" else 0


def starts_neutral(node: StablehloNode, start: SSAValue, fold: str) -> bool:
    """Whether a fold starts from the number that changes nothing."""
    known = node.fold(start)
    return known is not None and bool((known == neutral_number(fold, element_of(start))).all())


def limit_of(element: Attribute, is_lowest: bool) -> float:
    """The lowest or the highest number of an element type: an infinity of floats."""
    if is_float(element):
        return -inf if is_lowest else inf
    if is_bool(element):
        return 0 if is_lowest else 1
    limits = np.iinfo(numpy_dtype(element))
    return int(limits.min if is_lowest else limits.max)
