"""PyTorch's operators that create tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_float, numpy_dtype
from glow_mlir.dialects.expressions import converted, where
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.frontends.builder.slices import iota
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import Operand, Scalar, TorchNode
from glow_mlir.frontends.torch.traced_graph import CONSTANT, SIZE
from glow_mlir.support.symbols import Size, SymbolicSize, numbers_in


@torch_operator("full.default", "full_like.default", "fill.Scalar", "fill.Tensor")
def full(node: TorchNode, _: Any, value: Operand = 0, **__: Any) -> SSAValue:
    """A tensor filled with one number."""
    if isinstance(value, SSAValue | SymbolicSize):
        return node.expanded(node.tensor(value))
    return node.splat(value, node.element, node.sizes)


@torch_operator("new_full.default")
def new_full(node: TorchNode, _: SSAValue, __: Any, value: Operand, **___: Any) -> SSAValue:
    """A tensor filled with one number."""
    return full(node, None, value)


@torch_operator("scalar_tensor.default")
def scalar_tensor(node: TorchNode, value: Operand, **_: Any) -> SSAValue:
    """A number as a tensor without axes."""
    return node.tensor(value)


@torch_operator(
    "zeros.default",
    "zeros_like.default",
    "new_zeros.default",
    "empty.memory_format",
    "empty_like.default",
    "new_empty.default",
    "empty_strided.default",
    "new_empty_strided.default",
    "empty_permuted.default",
    "_efficientzerotensor.default",
)
def zeros(node: TorchNode, *_: Any, **__: Any) -> SSAValue:
    """Zeros; also for tensors that PyTorch leaves uninitialized."""
    return node.splat(0, node.element, node.sizes)


@torch_operator("ones.default", "ones_like.default", "new_ones.default")
def ones(node: TorchNode, *_: Any, **__: Any) -> SSAValue:
    """Ones."""
    return node.splat(1, node.element, node.sizes)


@torch_operator("arange.start_step", "arange.start", "arange.default")
def arange(node: TorchNode, *bounds: Scalar, **_: Any) -> SSAValue:
    """Numbers from `start` in steps of `step`, which are converted to the result's type first."""
    start: Scalar = bounds[0] if len(bounds) > 1 else 0
    step: Scalar = bounds[2] if len(bounds) > 2 else 1
    (count,) = node.sizes
    if isinstance(count, int) and not isinstance(start, SymbolicSize) and not isinstance(step, SymbolicSize):
        wide = np.float64 if is_float(node.element) else np.int64
        numbers = np.arange(count, dtype=wide) * wide(step) + wide(start)
        return node.constant(numbers.astype(numpy_dtype(node.element)))
    positions = node.cast(iota(node, count), node.element)
    return node.emit(AddOp, node.emit(MulOp, positions, node.tensor(step)), node.tensor(start))


@torch_operator("prims.iota.default")
def prims_iota(node: TorchNode, _: Size, *, start: Size, step: Size, **__: Any) -> SSAValue:
    """Integers from `start` in steps of `step`."""
    return arange(node, start, 0, step)


@torch_operator("linspace.default", "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor")
def linspace(node: TorchNode, start: Operand, end: Operand, _: Size, **__: Any) -> SSAValue:
    """Evenly spaced numbers from `start` to `end`, which are converted to the result's type first."""
    (count,) = node.sizes
    first, last = (converted(node.of(bound), f64) for bound in (start, end))
    if count == 1:
        return node.expanded(node.tensor(start))
    position, steps = node.of(iota(node, count), f64), node.of(count, f64) - 1.0
    step = (last - first) / steps
    found = where(position * 2.0 < steps, first + step * position, last - step * (steps - position))
    return node.expanded(node.cast(node.value(found), node.element))


def _triangle(positions: Callable[..., Any]) -> Callable[..., SSAValue]:
    """Row and column indices of a triangle of a matrix."""

    def run(node: TorchNode, rows: int, columns: int, offset: int = 0, **_: Any) -> SSAValue:
        found = np.stack(positions(rows, offset, columns))
        return node.constant(found.astype(numpy_dtype(node.element)))

    return run


torch_operator("tril_indices.default")(_triangle(np.tril_indices))
torch_operator("triu_indices.default")(_triangle(np.triu_indices))


@torch_operator(CONSTANT)
def constant(node: TorchNode, content: str) -> SSAValue:
    """A constant, from its bytes in hexadecimal."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    numbers = np.frombuffer(bytes.fromhex(content), numpy_dtype(node.element))
    return node.constant(numbers.reshape(tuple(numbers_in(node.sizes))))


@torch_operator(SIZE)
def size_as_tensor(node: TorchNode, size: Size) -> SSAValue:
    """A size as an integer."""
    return node.tensor(size)
