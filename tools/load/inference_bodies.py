"""Encode requests of the inference protocol: model metadata, tensors, and the bytes to send."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from glow_mlir.errors import GlowError, InputError
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.contents import FIELD_TYPES, written
from glow_mlir.serving.datatypes import STRINGS, WORDS
from glow_mlir.serving.grpc_codec import MAX_MESSAGE
from glow_mlir.serving.grpc_messages import SERVICE, message_class
from glow_mlir.serving.json_text import is_list, is_object, write_json
from glow_mlir.serving.steps import finished
from glow_mlir.serving.tensors import flat_elements, wire_bytes, wire_datatype, wire_numbers
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype
from glow_mlir.tools.inputs.run_inputs import random_array

NAMES = {word: name for name, word in WORDS.items() if word != STRINGS}
"""Datatype of the protocol → name of the dtype."""

INFER, METADATA = f"/{SERVICE}/ModelInfer", f"/{SERVICE}/ModelMetadata"


@dataclass(frozen=True)
class ModelInput:
    """An input of a model in the server's metadata; a size of -1 is free."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.datatype}[{', '.join('?' if size < 0 else str(size) for size in self.shape)}]"


@dataclass(frozen=True)
class GivenInputs:
    """The inputs that the user gives: arrays, shapes, and sizes of axes, by input name."""

    arrays: Mapping[str, np.ndarray]
    shapes: Mapping[str, tuple[int, ...]]
    sizes: Mapping[str, Mapping[int, int]]
    seed: int = 0

    def tensors(self, inputs: Sequence[ModelInput]) -> dict[str, np.ndarray]:
        """
        A tensor for each input, random where none is given; free sizes default to 1.

        If the server describes no inputs, return the given arrays. Raises `InputError`.
        """
        known = {item.name for item in inputs}
        for name in (*self.arrays, *self.shapes, *self.sizes):
            if name not in known and (inputs or name not in self.arrays):
                raise InputError(f"the model has no input '{name}'", hint=f"inputs are {', '.join(sorted(known))}")
        if not inputs and not self.arrays:
            raise InputError(
                "the server does not say what the model takes", hint="--input NAME=FILE.npy for each input"
            )
        generator = np.random.default_rng(self.seed)
        found = {} if inputs else dict(self.arrays)
        for item in inputs:
            found[item.name] = self._tensor(item, generator)
        return found

    def _tensor(self, item: ModelInput, generator: np.random.Generator) -> np.ndarray:
        """A tensor for an input."""
        if item.name in self.arrays:
            return self.arrays[item.name]
        if item.datatype not in NAMES:
            what = "strings" if item.datatype == STRINGS else f"of the type '{item.datatype}'"
            raise InputError(f"input '{item.name}' is {what}, for which there are no random numbers")
        try:
            return random_array(self._shape(item), named_dtype(NAMES[item.datatype]), generator)
        except (ValueError, MemoryError):
            raise InputError(f"there is no memory for input '{item.name}' of the shape {self._shape(item)}") from None

    def _shape(self, item: ModelInput) -> list[int]:
        """The shape of a tensor for an input."""
        if item.name in self.shapes:
            given = self.shapes[item.name]
            if len(given) != len(item.shape) or any(
                wanted not in (-1, size) for wanted, size in zip(item.shape, given, strict=True)
            ):
                raise InputError(
                    f"--shape {item.name}={','.join(map(str, given))} does not fit: the model takes {item}"
                )
            return list(given)
        shape = list(item.shape)
        for axis, size in self.sizes.get(item.name, {}).items():
            if axis >= len(shape) or shape[axis] not in (-1, size):
                raise InputError(f"--bind {item.name}.{axis}={size} does not fit: the model takes {item}")
            shape[axis] = size
        return [1 if size < 0 else size for size in shape]


def described(text: bytes) -> tuple[ModelInput, ...]:
    """The inputs in a server's JSON metadata; raises `GlowError` for invalid metadata."""
    try:
        data = json.loads(text)
        items: Any = data.get("inputs", ()) or [] if is_object(data) else None
        if not is_list(items):
            raise TypeError
        return tuple(
            ModelInput(str(item["name"]), str(item["datatype"]), tuple(int(size) for size in item["shape"]))
            for item in items
        )
    except (ValueError, KeyError, TypeError):
        raise GlowError("the server's answer is not model metadata of the inference protocol") from None


def described_message(data: bytes) -> tuple[ModelInput, ...]:
    """The inputs in a server's gRPC metadata message."""
    found = message_class("ModelMetadataResponse").FromString(data)
    return tuple(ModelInput(item.name, item.datatype, tuple(item.shape)) for item in found.inputs)


def model_path(model: str, version: str) -> str:
    """The HTTP path of a model."""
    path = f"/v2/models/{quote(model, safe='')}"
    return f"{path}/versions/{quote(version, safe='')}" if version else path


def http_get(host: str, path: str, headers: Mapping[str, str]) -> bytes:
    """An HTTP GET request for a path."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def http_inference(
    host: str, path: str, headers: Mapping[str, str], tensors: Mapping[str, np.ndarray], *, is_binary: bool
) -> bytes:
    """An HTTP inference request, with tensors as bytes after the JSON or as numbers inside it."""
    items: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name, array in tensors.items():
        item: dict[str, Any] = {"name": name, "datatype": wire_datatype(array), "shape": list(array.shape)}
        if is_binary:
            parts.append(wire_bytes(array))
            item["parameters"] = {"binary_data_size": array.nbytes}
        else:
            item["data"] = finished(wire_numbers(name, array))
        items.append(item)
    body: dict[str, Any] = {"inputs": items}
    sent_headers = {**headers, "Content-Type": "application/json"}
    if is_binary:
        body["parameters"] = {"binary_data_output": True}
    text = write_json(body)
    if is_binary:
        sent_headers |= {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(text))}
    length = len(text) + sum(map(len, parts))
    lines = [
        f"POST {path}/infer HTTP/1.1",
        f"Host: {host}",
        *(f"{name}: {value}" for name, value in sent_headers.items()),
    ]
    head = "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode("latin-1")
    return b"".join([head, text, *parts])


def grpc_inference(model: str, version: str, tensors: Mapping[str, np.ndarray], *, is_binary: bool) -> bytes:
    """A gRPC inference request, with tensors as bytes or as numbers; raises `InputError`."""
    message = message_class("ModelInferRequest")(model_name=model, model_version=version)
    for name, array in tensors.items():
        datatype = wire_datatype(array)
        item = message.inputs.add(name=name, datatype=datatype, shape=array.shape)
        if is_binary:
            message.raw_input_contents.append(wire_bytes(array))
        elif datatype in FIELD_TYPES:
            parts = finished(written(datatype, flat_elements(array), MAX_MESSAGE, Charge()))
            item.contents.MergeFromString(b"".join(parts))
        else:
            raise InputError(f"input '{name}' is {datatype}, which must be sent as bytes", hint="--tensors binary")
    return message.SerializeToString()


def grpc_metadata(model: str, version: str) -> bytes:
    """A gRPC request for the metadata of a model."""
    return message_class("ModelMetadataRequest")(name=model, version=version).SerializeToString()
