"""Which operators PyTorch decomposes before graphs are imported, and which remain whole."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch._C import DispatchKey
from torch._decomp import core_aten_decompositions
from torch._decomp import decompositions as of_pytorch
from torch._ops import OperatorBase
from torch._refs.linalg import vector_norm

from glow_mlir.torch import attention_operator, fast_paths

aten = torch.ops.aten

WHOLE: tuple[str, ...] = (
    "_log_softmax_backward_data",
    "_safe_softmax",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_softmax_backward_data",
    "_to_copy",
    "diagonal_copy",
    "_upsample_bicubic2d_aa",
    "_upsample_bilinear2d_aa",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "col2im",
    "hardsigmoid",
    "hardswish",
    "im2col",
    "linspace",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "native_batch_norm_backward",
    "native_group_norm_backward",
    "native_layer_norm_backward",
    "nll_loss2d_backward",
    "nll_loss_backward",
    "reflection_pad1d",
    "reflection_pad1d_backward",
    "reflection_pad2d",
    "reflection_pad2d_backward",
    "reflection_pad3d",
    "reflection_pad3d_backward",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "select_scatter",
    "scaled_dot_product_attention",
    "silu",
    "softplus",
    "squeeze_copy",
    "threshold_backward",
    "unbind",
    "unfold",
    "unfold_copy",
    "unsqueeze_copy",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_linear1d",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_trilinear3d",
)
"""Operators of `aten` that correspond to one or few of our operators, where PyTorch would emit several."""


_in_wide_floats: Callable[..., Any] = getattr(of_pytorch, "pw_cast_for_opmath")
"""Decorates a decomposition that computes narrow floats in f32."""


def attention_backward(
    gradient: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    result: torch.Tensor,
    sums: torch.Tensor,
    dropout: float,
    causal: bool,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """The gradients of attention by an operator that reads no results of forward, so none are saved for it."""
    if dropout:
        return NotImplemented
    return attention_operator.attention_backward(gradient, query, key, value, causal, attn_mask, scale)


def weight_norm_backward(
    gradient: torch.Tensor, directions: torch.Tensor, magnitudes: torch.Tensor, norms: torch.Tensor, axis: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of directions and magnitudes; a weight is their product divided by the norms of the directions."""
    others = [other for other in range(directions.dim()) if other != axis % directions.dim()]
    wide = directions.to(norms.dtype)
    along = (gradient * wide).sum(others, keepdim=True) / norms
    across = (gradient - wide * (along / norms)) * (magnitudes / norms)
    return across.to(directions.dtype), along.to(magnitudes.dtype)


@_in_wide_floats
def smooth_l1_loss_backward(
    gradient: torch.Tensor, x: torch.Tensor, target: torch.Tensor, reduction: int, beta: float
) -> torch.Tensor:
    """The gradient of the loss, NaN where a difference is NaN; PyTorch's decomposition hides these."""
    difference = x - target
    norm = gradient / x.numel() if reduction == MEAN else gradient
    is_large = difference.abs() >= beta
    return torch.where(is_large, norm * difference.sign(), norm * difference / beta)


@_in_wide_floats
def logit_backward(gradient: torch.Tensor, x: torch.Tensor, eps: float | None = None) -> torch.Tensor:
    """The gradient of `logit`, infinite at both ends of its domain whatever the sign of a zero."""
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    slope = torch.where((x == 0) | (x == 1), torch.inf, 1 / (x * (1 - x)))
    return torch.where((x < low) | (x > high), torch.nan if eps is None else 0.0, gradient * slope)


def foreach_norm(
    tensors: Sequence[torch.Tensor], order: float = 2, dtype: torch.dtype | None = None
) -> list[torch.Tensor]:
    """The norm of each tensor."""
    return [vector_norm(tensor, order, dtype=dtype) for tensor in tensors]


def foreach_multiplied(tensors: Sequence[torch.Tensor], factor: torch.Tensor) -> list[torch.Tensor]:
    """Each tensor times a number in a tensor."""
    return [tensor * factor for tensor in tensors]


def repeat_interleave(repeats: torch.Tensor, *, output_size: int | None = None) -> torch.Tensor:
    """The operator with a given size of the result, the sum of the repetitions."""
    if output_size is not None:
        return NotImplemented
    return aten.repeat_interleave.Tensor(repeats, output_size=repeats.sum().item())


MEAN = 1
"""The number of a loss's reduction to its mean."""

RESAMPLINGS = tuple(name for name in WHOLE if "upsample" in name)
"""Operators that PyTorch decomposes into indexed elements before it looks at any table."""


@contextmanager
def whole_resamplings() -> Generator[None]:
    """
    Keep resamplings whole while a graph of fixed sizes is traced.

    With sizes known only at run time, PyTorch has to decompose them.
    """
    keys = DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd
    packets = [getattr(aten, name) for name in RESAMPLINGS]
    operators = [getattr(packet, overload) for packet in packets for overload in ("default", "vec")]
    kept = [dict(operator.py_kernels) for operator in operators]
    for operator in operators:
        for key in keys:
            operator.py_kernels.pop(key, None)
        operator._dispatch_cache.clear()
    try:
        yield
    finally:
        for operator, kernels in zip(operators, kept, strict=True):
            operator.py_kernels.clear()
            operator.py_kernels.update(kernels)
            operator._dispatch_cache.clear()


OWN: dict[OperatorBase, Callable[..., Any]] = {
    aten._native_multi_head_attention.default: fast_paths.multi_head_attention,
    aten._transformer_encoder_layer_fwd.default: fast_paths.transformer_encoder_layer,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention_backward,
    aten._weight_norm_interface_backward.default: weight_norm_backward,
    aten._foreach_mul.Tensor: foreach_multiplied,
    aten._foreach_norm.Scalar: foreach_norm,
    aten.logit_backward.default: logit_backward,
    aten.repeat_interleave.Tensor: repeat_interleave,
    aten.smooth_l1_loss_backward.default: smooth_l1_loss_backward,
}
"""Operators with a decomposition of our own."""


@cache
def decompositions() -> dict[OperatorBase, Callable[..., Any]]:
    """The table of decompositions: core ATen, except the operators that remain whole."""
    table: dict[OperatorBase, Callable[..., Any]] = dict(core_aten_decompositions())
    for name in WHOLE:
        packet = getattr(aten, name)
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    table.setdefault(aten.linalg_vector_norm.default, vector_norm)  # PyTorch 2.13 leaves it whole.
    return table | OWN
