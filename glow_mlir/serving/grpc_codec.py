"""Requests and responses of the inference protocol over gRPC: tensors as bytes, or as lists of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.serving.datatypes import STRINGS
from glow_mlir.serving.grpc_messages import message_class
from glow_mlir.serving.inference import InferenceRequest, Outputs, WantedOutput
from glow_mlir.serving.inference_codec import NOTHING, in_shared_memory, place_parameters, wanted_output
from glow_mlir.serving.models import Network
from glow_mlir.serving.shared_memory import Regions
from glow_mlir.serving.tensors import (
    InputReader,
    NetworkTensors,
    tensors_of,
    wire_array,
    wire_bytes,
    wire_datatype,
    wire_list,
)

CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    STRINGS: "bytes_contents",
}
"""Element types → the field that has numbers of it; those that are not here come as bytes alone."""


def read_message(network: Network, message: Any, regions: Regions) -> InferenceRequest:
    """
    What a message asks a network for; arrays are views into its bytes.

    Raises `InputError` for whatever is wrong with it, and `UnsupportedError` for a network that cannot be served.
    """
    tensors = tensors_of(network)
    raw = message.raw_input_contents
    inputs = _inputs(tensors, message, raw, regions)
    request = InferenceRequest(inputs, [], id=message.id)
    if message.outputs:
        _add_outputs(request, message, tensors, regions)
    else:
        request.outputs = [WantedOutput(name, is_binary=True) for name in tensors.outputs]
    if not raw and any(item.HasField("contents") for item in message.inputs):
        # Who gives numbers may not know what to do with bytes.
        for wanted in request.outputs:
            wanted.is_binary = False
    if message.parameters:
        request.add_parameters(values_of(message.parameters))
    return request


def _inputs(tensors: NetworkTensors, message: Any, raw: Any, regions: Regions) -> dict[str, np.ndarray]:
    """All inputs by name; those without contents, and not in shared memory, have the next of the raw ones."""
    found: dict[str, np.ndarray] = {}
    used = 0
    for item in message.inputs:
        reader = tensors.reader(item.name)
        if reader.name in found:
            raise InputError(f"the request has input '{reader.name}' twice")
        sizes = reader.checked(item.datatype, list(item.shape))
        place = regions.place(values_of(item.parameters)) if item.parameters else None
        if place is not None:
            found[reader.name] = in_shared_memory(reader, sizes, regions, place)
        elif not raw:
            found[reader.name] = reader.of_numbers(sizes, _numbers(reader, item))
        elif used == len(raw):
            raise InputError(f"the request ends before the bytes of input '{reader.name}'")
        else:
            data, used = raw[used], used + 1
            found[reader.name] = reader.of_bytes(sizes, data, 0, len(data))
    if used != len(raw):
        raise InputError(f"the request has bytes for {len(raw)} inputs, and {used} that need some")
    tensors.check_complete(found)
    return found


def _numbers(reader: InputReader, item: Any) -> list[Any]:
    """The numbers of an input in the field for its type."""
    field = CONTENTS.get(reader.datatype)
    if field is None:
        raise InputError(f"input '{reader.name}' is {reader.datatype}, which comes as bytes alone")
    return list(getattr(item.contents, field))


def _add_outputs(request: InferenceRequest, message: Any, tensors: NetworkTensors, regions: Regions) -> None:
    """Let a request ask for the outputs that the message names."""
    found: dict[str, WantedOutput] = {}
    for item in message.outputs:
        name = tensors.check_output(item.name)
        if name in found:
            raise InputError(f"the request names output '{name}' twice")
        found[name] = wanted_output(name, values_of(item.parameters), regions, is_binary=True)
        found[name].is_binary = True
    request.outputs, request.names = list(found.values()), list(found)


def values_of(parameters: Any) -> Mapping[str, Any]:
    """Parameters as JSON would have them."""
    if not parameters:
        return NOTHING
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        choice = value.WhichOneof("parameter_choice")
        found[name] = None if choice is None else getattr(value, choice)
    return found


def write_message(network: Network, request: InferenceRequest, outputs: Outputs, regions: Regions) -> Any:
    """
    The response to a request, without what goes into shared memory, which is written.

    Raises `InputError` for outputs that do not fit their places.
    """
    response = message_class("ModelInferResponse")(
        model_name=network.name, model_version=network.version, id=request.id
    )
    datatypes = {wanted.name: wire_datatype(outputs[wanted.name]) for wanted in request.outputs}
    # Clients count outputs to find the bytes of one, so that there are bytes for all or for none.
    is_raw = any(wanted.is_binary or datatypes[wanted.name] not in CONTENTS for wanted in request.outputs)
    for wanted in request.outputs:
        array, datatype = outputs[wanted.name], datatypes[wanted.name]
        item = response.outputs.add(name=wanted.name, datatype=datatype, shape=array.shape)
        if wanted.place is not None:
            placed = wire_array(array)
            regions.write(wanted.place, wanted.name, placed)
            for word, value in place_parameters(wanted.place, placed).items():
                setattr(item.parameters[word], "string_param" if isinstance(value, str) else "int64_param", value)
        elif not is_raw:
            getattr(item.contents, CONTENTS[datatype]).extend(wire_list(array))
        if is_raw:
            response.raw_output_contents.append(wire_bytes(array) if wanted.place is None else b"")
    return response
