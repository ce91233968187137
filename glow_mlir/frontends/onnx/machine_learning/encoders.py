"""The operators of ai.onnx.ml that encode categories: labels, one-hot vectors, and maps for callers."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import EqualOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import IsNanOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.machine_learning.categories import looked_up, positions_of
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Maps, Strings, Value, takes_values
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.dtypes import is_float_dtype

ML = "ai.onnx.ml"


def operand_of(node: Node) -> SSAValue | Strings:
    """The operand, which is a tensor of numbers or strings; raises `ModelError` for anything else."""
    value = node.operand()
    if not isinstance(value, SSAValue | Strings):
        raise ModelError(f"{node.kind}: its operand is not a tensor", node=node.name)
    return value


def array_of_strings(words: tuple[str, ...]) -> np.ndarray:
    """Strings as an array."""
    found = np.empty(len(words), object)
    found[:] = words
    return found


def picked(node: Node, values: np.ndarray, positions: SSAValue) -> Value:
    """Gather elements of a vector of numbers or strings at positions."""
    is_strings = values.dtype == object
    table = node.constant(node.strings.numbers(values) if is_strings else values, "values")
    found = node.emit(GatherOp, table, positions, axis=0)
    return Strings(found) if is_strings else found


# ---- LabelEncoder and CategoryMapper


def encoded(
    node: Node, value: SSAValue | Strings, categories: np.ndarray, values: np.ndarray, nan_equals: bool = False
) -> Value:
    """Map each element to the number or string of its category, else to the last one; see `looked_up`."""
    is_strings = values.dtype == object
    results = node.strings.numbers(values) if is_strings else values
    found = looked_up(node, value, categories, results, nan_equals)
    return Strings(found) if is_strings else found


@onnx_operator("LabelEncoder", domain=ML)
@takes_values
def label_encoder_of_classes(node: Node) -> Value:
    """Map strings to their positions in a list of classes, or positions to strings."""
    classes = array_of_strings(node.texts("classes_strings"))
    value = operand_of(node)
    if isinstance(value, Strings):
        indices = np.append(np.arange(len(classes)), node.int("default_int64", -1))
        return encoded(node, value, classes, indices)
    named = np.append(classes, node.text("default_string", "_Unused"))
    return encoded(node, value, np.arange(len(classes)), named)


@onnx_operator("LabelEncoder", since=2, domain=ML)
@takes_values
def label_encoder(node: Node) -> Value:
    """Map each key to its value, anything else to the default; NaN matches no key."""
    return _encoded(node, nan_equals=False)


@onnx_operator("LabelEncoder", since=4, domain=ML)
@takes_values
def label_encoder_of_tensors(node: Node) -> Value:
    """The form whose keys, values and default may be tensors; NaN matches the key NaN."""
    return _encoded(node, nan_equals=True)


def _encoded(node: Node, nan_equals: bool) -> Value:
    value = operand_of(node)
    keys, values = _listed(node, "keys"), _listed(node, "values")
    if len(keys) != len(values):
        raise ModelError(f"LabelEncoder: there are {len(keys)} keys and {len(values)} values", node=node.name)
    _check_strings(node, value, keys)
    if isinstance(value, SSAValue):
        keys = keys.astype(numpy_dtype(node.element()))
    default = _default(node, values)
    return encoded(node, value, keys, np.append(values, default), nan_equals)


def _check_strings(node: Node, value: SSAValue | Strings, keys: np.ndarray) -> None:
    """Raise `ModelError` if strings are looked up among numbers, or numbers among strings."""
    if isinstance(value, Strings) != (keys.dtype == object):
        kinds = ("strings", "numbers") if isinstance(value, Strings) else ("numbers", "strings")
        raise ModelError(f"{node.kind}: {kinds[0]} are looked up among {kinds[1]}", node=node.name)


def _listed(node: Node, role: str) -> np.ndarray:
    """The keys or values, from the attribute of any type."""
    if node.has(f"{role}_tensor"):
        return node.tensor(f"{role}_tensor").reshape(-1)
    if node.has(f"{role}_strings"):
        return array_of_strings(node.texts(f"{role}_strings"))
    if node.has(f"{role}_int64s"):
        return np.array(node.ints(f"{role}_int64s"), np.int64)
    if node.has(f"{role}_floats"):
        return np.array(node.floats(f"{role}_floats"), np.float32)
    hint = f"{role}_int64s, {role}_floats, {role}_strings or {role}_tensor"
    raise ModelError(f"LabelEncoder has no {role}", node=node.name, hint=hint)


def _default(node: Node, values: np.ndarray) -> np.ndarray:
    """The value for elements that match no key, as an array of one element."""
    if node.has("default_tensor"):
        return node.tensor("default_tensor").reshape(-1)[:1].astype(values.dtype)
    if values.dtype == object:
        return array_of_strings((node.text("default_string", "_Unused"),))
    if values.dtype.kind in "iu":
        return np.array([node.int("default_int64", -1)], values.dtype)
    return np.array([node.float("default_float", -0.0)], values.dtype)


@onnx_operator("CategoryMapper", domain=ML)
@takes_values
def category_mapper(node: Node) -> Value:
    """Map strings to the integers they are paired with, or integers to strings."""
    # If pairs share a string or integer, the last one counts.
    words = array_of_strings(node.texts("cats_strings"))[::-1]
    numbers = np.array(node.ints("cats_int64s"), np.int64)[::-1]
    if len(words) != len(numbers):
        raise ModelError(f"CategoryMapper: {len(words)} strings, and {len(numbers)} integers", node=node.name)
    value = operand_of(node)
    if isinstance(value, Strings):
        found = np.append(numbers, node.int("default_int64", -1))
        return encoded(node, value, words, found)
    named = np.append(words, node.text("default_string", "_Unused"))
    return encoded(node, value, numbers, named)


# ---- OneHotEncoder and ZipMap


@onnx_operator("OneHotEncoder", domain=ML)
@takes_values
def one_hot_encoder(node: Node) -> SSAValue:
    """
    Encode categories as one-hot f32 vectors along a new last axis.

    Without `zeros`, a value that is not a category is an error at run time. If a category is repeated, the last one
    counts.
    """
    given = operand_of(node)
    is_strings = isinstance(given, Strings)
    value = node.cast(given, i64) if isinstance(given, SSAValue) else given
    if is_strings:
        categories = array_of_strings(node.texts("cats_strings", ()))
    else:
        categories = np.array(node.ints("cats_int64s", ()), np.int64)
    count = len(categories)
    if not count:
        raise ModelError("OneHotEncoder: it has no categories of the type of its operand", node=node.name)
    positions = positions_of(node, value, categories[::-1])
    if isinstance(given, SSAValue) and is_float_dtype(numpy_dtype(node.element())):
        positions = node.emit(WhereOp, node.emit(IsNanOp, given), node.splat(count, i64), positions)
    backwards = node.constant(np.append(np.arange(count)[::-1], count), "places")
    indices = node.emit(GatherOp, backwards, positions, axis=0)
    if not node.flag("zeros", True):
        indices = node.emit(GatherOp, node.constant(np.arange(count)), indices, axis=0)  # Fails beyond the categories.
    indices = node.emit(ReshapeOp, indices, shape=(*sizes_of(indices), 1))
    return node.cast(node.emit(EqualOp, indices, node.constant(np.arange(count))), f32)


@onnx_operator("ZipMap", domain=ML)
def zip_map(node: Node) -> Maps:
    """A map for each row, from sorted labels to the row's elements."""
    keys: tuple[Any, ...] = node.texts("classlabels_strings", ()) or node.ints("classlabels_int64s", ())
    rows = node.input()
    if rank_of(rows) == 1:
        rows = node.emit(ReshapeOp, rows, shape=(1, *sizes_of(rows)))
    if rank_of(rows) != 2 or sizes_of(rows)[1] != len(keys):
        raise ModelError(f"ZipMap: {len(keys)} labels for {sizes_of(node.input())}", node=node.name)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    if order != list(range(len(keys))):
        rows = node.emit(GatherOp, rows, node.constant(np.array(order, np.int64)), axis=1)
        keys = tuple(keys[position] for position in order)
    return Maps(keys, rows)
