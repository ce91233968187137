"""Requests and responses of the inference protocol over HTTP: JSON, with tensors in it or as bytes behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.serving.inference import InferenceRequest, Outputs, WantedOutput, flag, natural
from glow_mlir.serving.json_text import is_list, is_object, read_json, write_json
from glow_mlir.serving.models import Network
from glow_mlir.serving.shared_memory import Place, Regions
from glow_mlir.serving.tensors import (
    Bytes,
    InputReader,
    NetworkTensors,
    tensors_of,
    wire_array,
    wire_bytes,
    wire_datatype,
    wire_numbers,
)

HEADER_LENGTH = b"inference-header-content-length"
"""The header that says how many bytes of a body are JSON, where tensors follow as bytes."""

PLACE = "shared_memory_region"

NOTHING: Mapping[str, Any] = {}


class Body(NamedTuple):
    """A response: its parts, one behind the other, and how many bytes of it are JSON; 0 where all are."""

    parts: list[bytes]
    header_length: int


def read_request(
    network: Network, body: bytes | bytearray, header_length: int | None, regions: Regions
) -> InferenceRequest:
    """
    What a body asks a network for, of which so many bytes are JSON, or all; arrays are views into the body.

    Raises `InputError` for whatever is wrong with it, and `UnsupportedError` for a network that cannot be served.
    """
    tensors = tensors_of(network)
    if header_length is None:
        data, rest = read_json(body), len(body)
    else:
        if not 0 < header_length <= len(body):
            reason = f"{header_length} bytes of the request are to be JSON, and it has {len(body)}"
            raise InputError(reason, hint="Inference-Header-Content-Length says how many")
        data, rest = read_json(memoryview(body)[:header_length]), header_length
    if not is_object(data):
        raise InputError("the request is no JSON object")
    parameters = read_parameters(data, "the request")
    inputs, end = _InputsReader(tensors, body, regions).read(_objects(data, "inputs"), rest)
    if end != len(body):
        raise InputError(f"{len(body) - end} bytes of the request belong to no input")
    request = InferenceRequest(inputs, [])
    _add_outputs(request, data, tensors, regions, flag(parameters, "binary_data_output") if parameters else False)
    if (name := data.get("id", "")) is not None:
        if type(name) is not str:
            raise InputError("the id of the request is no string")
        request.id = name
    if parameters:
        request.add_parameters(parameters)
    return request


class _InputsReader:
    """The inputs of a request, whose bytes follow each other in its body."""

    def __init__(self, tensors: NetworkTensors, body: Bytes, regions: Regions) -> None:
        self.tensors = tensors
        self.body = body
        self.regions = regions

    def read(self, items: Sequence[dict[str, Any]], begin: int) -> tuple[dict[str, np.ndarray], int]:
        """All inputs by name, and where their bytes end, which start at `begin`."""
        found: dict[str, np.ndarray] = {}
        for item in items:
            reader = self.tensors.reader(item.get("name"))
            if reader.name in found:
                raise InputError(f"the request has input '{reader.name}' twice")
            shape = item.get("shape")
            if not is_list(shape):
                raise InputError(f"the shape of input '{reader.name}' is no list")
            sizes = reader.checked(item.get("datatype"), shape)
            parameters = read_parameters(item, "an input")
            if "binary_data_size" in parameters:
                size = natural(parameters, "binary_data_size")
                if "data" in item or PLACE in parameters:
                    raise InputError(f"input '{reader.name}' has its data twice")
                found[reader.name] = reader.of_bytes(sizes, self.body, begin, size)
                begin += size
            else:
                found[reader.name] = self._other(reader, sizes, item, parameters)
        self.tensors.check_complete(found)
        return found, begin

    def _other(
        self, reader: InputReader, sizes: tuple[int, ...], item: Mapping[str, Any], parameters: Mapping[str, Any]
    ) -> np.ndarray:
        """An input in shared memory, or as numbers."""
        place = self.regions.place(parameters) if parameters else None
        if place is None:
            return reader.of_list(sizes, item.get("data"))
        if "data" in item:
            raise InputError(f"input '{reader.name}' has its data twice")
        return in_shared_memory(reader, sizes, self.regions, place)


def in_shared_memory(reader: InputReader, sizes: tuple[int, ...], regions: Regions, place: Place) -> np.ndarray:
    """An input of those sizes in a place of shared memory."""
    reader.check_size(sizes, place.size)
    return reader.of_bytes(sizes, regions.read(place), 0, place.size)


def _add_outputs(
    request: InferenceRequest, data: Mapping[str, Any], tensors: NetworkTensors, regions: Regions, is_binary: bool
) -> None:
    """Let a request ask for outputs that it names, or for all of them."""
    if "outputs" not in data:
        request.outputs = [WantedOutput(name, is_binary) for name in tensors.outputs]
        return
    found: dict[str, WantedOutput] = {}
    for item in _objects(data, "outputs"):
        name = tensors.check_output(item.get("name"))
        if name in found:
            raise InputError(f"the request names output '{name}' twice")
        found[name] = wanted_output(name, read_parameters(item, "an output"), regions, is_binary=is_binary)
    request.outputs, request.names = list(found.values()), list(found)


def wanted_output(name: str, parameters: Mapping[str, Any], regions: Regions, *, is_binary: bool) -> WantedOutput:
    """An output that a client names, as its parameters say; raises `InputError`."""
    if not parameters:
        return WantedOutput(name, is_binary)
    if parameters.get("classification"):
        raise InputError(f"output '{name}' is asked for as classes, which this server does not give")
    return WantedOutput(name, flag(parameters, "binary_data", default=is_binary), regions.place(parameters))


def _objects(data: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A member that is a list of JSON objects; raises `InputError` where it is something else."""
    items = data.get(name)
    if not is_list(items) or not all(is_object(item) for item in items):
        raise InputError(f"the request has no '{name}' that are a list of JSON objects")
    return items


def read_parameters(data: Mapping[str, Any], what: str) -> Mapping[str, Any]:
    """The parameters of a part of a request; raises `InputError` where they are no JSON object."""
    found = data.get("parameters")
    if found is None:
        return NOTHING
    if not is_object(found):
        raise InputError(f"the parameters of {what} are no JSON object")
    return found


def write_response(network: Network, request: InferenceRequest, outputs: Outputs, regions: Regions) -> Body:
    """
    The response to a request, without what goes into shared memory, which is written.

    Raises `InputError` for outputs that do not fit their places, or of which JSON has no numbers.
    """
    items: list[dict[str, Any]] = []
    parts = [b""]
    for wanted in request.outputs:
        array = outputs[wanted.name]
        item: dict[str, Any] = {"name": wanted.name, "datatype": wire_datatype(array), "shape": array.shape}
        if wanted.place is not None:
            placed = wire_array(array)
            regions.write(wanted.place, wanted.name, placed)
            item["parameters"] = place_parameters(wanted.place, placed)
        elif wanted.is_binary:
            parts.append(wire_bytes(array))
            item["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            item["data"] = wire_numbers(wanted.name, array)
        items.append(item)
    head = {"model_name": network.name, "model_version": network.version, "outputs": items}
    if request.id:
        head["id"] = request.id
    parts[0] = write_json(head)
    return Body(parts, len(parts[0]) if len(parts) > 1 else 0)


def place_parameters(place: Place, array: np.ndarray) -> dict[str, Any]:
    """What a response says of an output that is in shared memory."""
    return {
        PLACE: place.region,
        "shared_memory_offset": place.offset,
        "shared_memory_byte_size": array.nbytes,
    }
