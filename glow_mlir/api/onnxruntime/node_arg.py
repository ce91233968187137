"""Inputs and outputs in onnxruntime's terms."""

from __future__ import annotations

from typing import Any

from glow_mlir.runtime.signature import Argument
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import onnx_word


@dataclass(frozen=True)
class NodeArg:
    """
    An input or output of a session: `name`, `shape`, and `type` in onnxruntime's terms (`tensor(float)`).

    `shape` has numbers, the model's names of free dimensions, or `None` for unnamed ones. If an output is unknown
    before a call, `shape` is `[...]`, which stands for any number of axes, or `type` is empty.
    """

    name: str
    # Any: sessions with all sizes bound have only numbers.
    shape: list[Any]
    type: str


def node_arg(argument: Argument) -> NodeArg:
    """An argument in onnxruntime's words."""
    type_ = argument.type or (f"tensor({onnx_word(argument.dtype)})" if argument.dtype else "")
    return NodeArg(argument.name, [...] if argument.shape is None else list(argument.named_shape), type_)
