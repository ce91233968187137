"""Replace initializers and external files of ONNX models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from glow_mlir.errors import GlowError, InputError, ModelError
from glow_mlir.frontends.onnx.importer import Model, ModelSource, open_model
from glow_mlir.frontends.onnx.models.tensors import Tensors, is_inside
from glow_mlir.frontends.onnx.models.traversal import all_tensors

MAX_BYTES = (1 << 31) - 1
"""The maximum size of a protobuf message."""


def with_constants(
    source: ModelSource | Model, constants: Mapping[str, np.ndarray], files: Mapping[str, bytes]
) -> Model:
    """
    The whole model, with `constants` in place of its initializers, and `files` in place of its external files.

    Raises `InputError` for an unknown constant or one of another type, and `ModelError` if the model cannot be read, or
    is too large for one message.
    """
    opened = open_model(source, in_memory=True)
    try:
        return replace(opened, proto=_filled(opened, constants, files), tensors=Tensors())
    except GlowError as error:
        error.file = error.file or opened.file
        raise


def _filled(opened: Model, constants: Mapping[str, np.ndarray], files: Mapping[str, bytes]) -> onnx.ModelProto:
    """A copy of a model with replaced constants, and with the content of all files."""
    model = onnx.ModelProto()
    model.CopyFrom(opened.proto)
    contents = opened.tensors.with_files(files)
    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    for name, array in constants.items():
        if name not in initializers:
            listed = ", ".join(list(initializers)[:10]) or "none"
            raise InputError(f"the model has no constant '{name}'", hint=f"it has {listed}")
        _replace(initializers[name], array)
    for tensor in all_tensors(model):
        if is_inside(tensor) or uses_external_data(tensor):
            _fill(tensor, contents)
    if model.ByteSize() > MAX_BYTES:
        raise ModelError("the model and its constants are larger than 2 GB", hint="write the constants to its files")
    return model


def _replace(tensor: onnx.TensorProto, array: np.ndarray) -> None:
    """Replace the content of a constant; raises `InputError` if type or shape differ."""
    dtype, shape = helper.tensor_dtype_to_np_dtype(tensor.data_type), tuple(tensor.dims)
    if (array.dtype, array.shape) != (dtype, shape):
        wanted, given = f"{dtype.name}{list(shape)}", f"{array.dtype.name}{list(array.shape)}"
        raise InputError(f"the constant '{tensor.name}' must be {wanted}, not {given}", hint="convert the array")
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _fill(tensor: onnx.TensorProto, contents: Tensors) -> None:
    """Copy the content of a constant from its file into the model."""
    array = contents.array(tensor, f"constant '{tensor.name}'")
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
