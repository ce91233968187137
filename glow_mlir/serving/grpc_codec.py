"""Encode and decode gRPC requests and responses: tensors as bytes, or as lists of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.contents import FIELD_TYPES, Contents, written
from glow_mlir.serving.errors import ResponseTooLargeError
from glow_mlir.serving.grpc_messages import message_class
from glow_mlir.serving.inference import InferenceRequest, Outputs, WantedOutput
from glow_mlir.serving.inference_codec import Parts, in_shared_memory, slice_parameters, wanted_output
from glow_mlir.serving.models import Network
from glow_mlir.serving.shared_memory import Regions
from glow_mlir.serving.steps import COPIED, Steps
from glow_mlir.serving.tensors import (
    HEAD_TEXT,
    NetworkTensors,
    contiguous,
    is_short,
    tensors_of,
    wire_array,
    wire_datatype,
    wire_parts,
)
from glow_mlir.serving.tensors import flat_elements as flat
from glow_mlir.serving.wire import Data, RequestParts, TensorPart, sized

MAX_MESSAGE = (1 << 31) - 1
"""The maximum size of a gRPC message in bytes."""

ID, OUTPUT, RAW, CONTENTS, ANSWER = 3, 5, 6, 5, 2
"""Field numbers: id, outputs and raw bytes of a response, contents of an output, and the response in a stream."""


def read_message(
    network: Network, data: Data, message: RequestParts, regions: Regions, charge: Charge
) -> Steps[InferenceRequest]:
    """
    Decode a message to an inference request; arrays may be views of its bytes.

    Raises `InputError` for malformed requests, and `UnsupportedError` for a network that cannot be served.
    """
    tensors = tensors_of(network)
    inputs = yield from _inputs(tensors, data, message, regions, charge)
    request = InferenceRequest(inputs, [], id=message.id)
    if message.outputs:
        _add_outputs(request, message.outputs, tensors, regions)
    else:
        request.outputs = [WantedOutput(name, is_binary=True) for name in tensors.outputs]
    if not message.raw and any(item.contents for item in message.inputs):
        # Clients that send numbers may not support bytes in responses.
        for wanted in request.outputs:
            wanted.is_binary = False
    if message.parameters:
        request.add_parameters(message.parameters)
    return request


def _inputs(
    tensors: NetworkTensors, data: Data, message: RequestParts, regions: Regions, charge: Charge
) -> Steps[dict[str, np.ndarray]]:
    """All inputs by name; inputs without contents or shared memory take the next raw bytes."""
    found: dict[str, np.ndarray] = {}
    raw, used = message.raw, 0
    for item in message.inputs:
        if found:
            yield
        reader = tensors.reader(item.name)
        if reader.name in found:
            raise InputError(f"the request has two inputs '{reader.name}'")
        sizes = reader.checked(item.datatype, item.shape)
        region_slice = regions.region_slice(item.parameters) if item.parameters else None
        if region_slice is not None:
            found[reader.name] = yield from in_shared_memory(reader, sizes, regions, region_slice, charge)
        elif not raw:
            found[reader.name] = yield from reader.of_contents(sizes, Contents(data, item.contents), charge)
        elif used == len(raw):
            raise InputError(f"the request ends before the bytes of input '{reader.name}'")
        else:
            (begin, end), used = raw[used], used + 1
            found[reader.name] = yield from reader.of_bytes(sizes, data, begin, end - begin, charge)
    if used != len(raw):
        raise InputError(f"the request has bytes for {len(raw)} inputs, expected {used}")
    tensors.check_complete(found)
    return found


def _add_outputs(request: InferenceRequest, items: list[TensorPart], tensors: NetworkTensors, regions: Regions) -> None:
    """Add the outputs named by the message to a request."""
    found: dict[str, WantedOutput] = {}
    for item in items:
        name = tensors.check_output(item.name)
        if name in found:
            raise InputError(f"the request names output '{name}' twice")
        found[name] = wanted_output(name, item.parameters, regions, is_binary=True)
        found[name].is_binary = True
    request.outputs, request.names = list(found.values()), list(found)


def values_of(parameters: Any) -> Mapping[str, Any]:
    """Protobuf parameters as JSON values."""
    if not parameters:
        return {}
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        choice = value.WhichOneof("parameter_choice")
        found[name] = None if choice is None else getattr(value, choice)
    return found


def message_steps(
    network: Network,
    request: InferenceRequest,
    outputs: Outputs,
    regions: Regions,
    charge: Charge,
    most: int = MAX_MESSAGE,
) -> Steps[bytes]:
    """
    The response to a request; outputs in shared memory are written there.

    Raises `InputError` for outputs that do not fit their regions, and `ResponseTooLargeError` for more bytes than
    `most`.
    """
    _check_size(sum(outputs[wanted.name].nbytes for wanted in request.outputs if wanted.region_slice is None), most)
    head = _head(network.name, network.version)
    datatypes = {wanted.name: wire_datatype(outputs[wanted.name]) for wanted in request.outputs}
    # Clients find an output's bytes by position, so either all outputs have bytes, or none.
    is_raw = any(wanted.is_binary or datatypes[wanted.name] not in FIELD_TYPES for wanted in request.outputs)
    items: Parts = [head]
    size = 0
    if request.id:
        id = request.id.encode()
        items += [sized(ID, len(id)), id]
    raw: Parts = []
    for wanted in request.outputs:
        array, datatype = outputs[wanted.name], datatypes[wanted.name]
        item = _item(wanted.name, datatype, array.shape)
        contents: Parts = []
        if wanted.region_slice is not None:
            in_regions = yield from wire_array(array, charge)
            yield from regions.write(wanted.region_slice, wanted.name, in_regions)
            item += _parameters(slice_parameters(wanted.region_slice, in_regions))
        elif not is_raw:
            steps = written(datatype, flat((yield from contiguous(array, charge))), most - size, charge)
            contents = list((yield from steps))
        if contents:
            contents.insert(0, sized(CONTENTS, sum(map(len, contents))))
        size += sum(map(len, contents))
        items += [sized(OUTPUT, len(item) + sum(map(len, contents))), item, *contents]
        if is_raw and wanted.region_slice is not None:
            raw.append(sized(RAW, 0))
        elif is_raw:
            parts = [array.tobytes()] if is_short(array) else (yield from wire_parts(array, charge))
            raw += [sized(RAW, sum(map(len, parts))), *parts]
    return (yield from joined([*items, *raw], charge, most))


@lru_cache(1024)
def _head(name: str, version: str) -> bytes:
    """A response without outputs and request id."""
    return message_class("ModelInferResponse")(model_name=name, model_version=version).SerializeToString()


@lru_cache(1024)
def _item(name: str, datatype: str, shape: tuple[int, ...]) -> bytes:
    """An output without its elements."""
    return message_class("InferTensor")(name=name, datatype=datatype, shape=shape).SerializeToString()


def _parameters(parameters: Mapping[str, Any]) -> bytes:
    """The parameters of an output, appended after its other fields."""
    item = message_class("InferTensor")()
    for word, value in parameters.items():
        setattr(item.parameters[word], "string_param" if isinstance(value, str) else "int64_param", value)
    return item.SerializeToString()


def _check_size(size: int, most: int) -> None:
    """Raise `ResponseTooLargeError` for a message of more bytes than `most`."""
    if size > most:
        hint = "send tensors as raw bytes, or use HTTP"
        raise ResponseTooLargeError(f"the response has more than the {most} bytes of a message", hint=hint)


def joined(parts: Parts, charge: Charge, most: int = MAX_MESSAGE) -> Steps[bytes]:
    """Join parts; raises `ResponseTooLargeError`."""
    size = sum(map(len, parts))
    _check_size(size, most + HEAD_TEXT)
    charge.add(size)
    if size <= COPIED:
        return b"".join(parts)
    found = BytesIO()  # Returns its contents without a copy.
    for part in parts:
        for begin in range(0, len(part), COPIED):
            found.write(part[begin : begin + COPIED])
            yield
    return found.getvalue()


def in_stream(response: bytes, charge: Charge) -> Steps[bytes]:
    """Wrap a response for a stream."""
    return joined([sized(ANSWER, len(response)), response], charge)
