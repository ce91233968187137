"""`merge-matmuls`: compute products of one matrix with several constant ones as one product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_high.data_movement import SliceOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import rank_of, shape_of
from glow_mlir.storage import Storage
from glow_mlir.transforms.emitter import Emitter
from glow_mlir.transforms.rewriting import erase_dead, fuse_locations, high_functions, replace


@dataclass(frozen=True)
class MergeMatmulsPass(ModulePass):
    """
    Merge matrix products with the same left operand and constant right ones, as the queries, keys and values of
    attention are, into a product with their columns side by side and a slice for each (Glow's MergeMatMulOnLHS).

    It pays where narrow matrices fill panels of `panel` columns together that they would leave half empty alone: a
    group is merged if that saves at least a quarter of the panels. Wide products gain nothing, and the rows of their
    slices, which are views, lie farther apart (docs/glow-passes.md). With `panel` = 0 all groups are merged.
    """

    name = "merge-matmuls"

    panel: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            groups: dict[SSAValue, list[MatMulOp]] = {}
            for candidate in function.block.ops:
                if isinstance(candidate, MatMulOp) and has_constant_matrix(candidate, storage):
                    groups.setdefault(candidate.left, []).append(candidate)
            for products in groups.values():
                if len(products) > 1 and self._pays([shape_of(product.result)[-1] for product in products]):
                    merge(products, storage)
            erase_dead(function.block)

    def _pays(self, columns: Sequence[int]) -> bool:
        """Whether matrices of so many columns fill fewer panels together."""
        if not self.panel:
            return True
        apart = sum(-(-count // self.panel) for count in columns)
        return 4 * -(-sum(columns) // self.panel) <= 3 * apart


def has_constant_matrix(op: MatMulOp, storage: Storage) -> bool:
    """Whether a product has one constant matrix on the right, and a constant bias or none; nothing transposed."""
    constants = [op.right] if op.bias is None else [op.right, op.bias]
    if rank_of(op.right) != 2 or flag(op.transpose_left) or flag(op.transpose_right):
        return False
    return all(storage.value_of(value) is not None for value in constants)


def merge(products: Sequence[MatMulOp], storage: Storage) -> None:
    """Replace products of one matrix by slices of one product, in front of the first of them."""
    first = products[0]
    weights = [storage.value_of(product.right) for product in products]
    biases = [None if product.bias is None else storage.value_of(product.bias) for product in products]
    columns = np.concatenate([array for array in weights if array is not None], axis=1)
    emit = Emitter(first, storage)
    hint = first.right.name_hint or "weights"
    bias = None
    if any(array is not None for array in biases):
        vectors = [
            np.zeros(shape_of(product.right)[1], columns.dtype) if array is None else array
            for product, array in zip(products, biases, strict=True)
        ]
        bias = emit.constant(np.concatenate(vectors), f"{hint}_bias")
    whole = emit(MatMulOp, first.left, emit.constant(columns, hint), bias)
    emit.emitted[-1].location = fuse_locations(product.location for product in products)
    outer = shape_of(whole)[:-1]
    start, parts = 0, list[SSAValue]()
    for product in products:
        end = start + shape_of(product.result)[-1]
        part = emit(SliceOp, whole, starts=(*(0 for _ in outer), start), ends=(*outer, end))
        emit.emitted[-1].location = product.location
        part.name_hint = product.result.name_hint
        parts.append(part)
        start = end
    for product, part in zip(products, parts, strict=True):
        replace(product, [part])
