"""HTTP requests and responses of the inference protocol: JSON, with tensors inside it or as bytes after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.inference import InferenceRequest, Outputs, WantedOutput, check_text, flag, natural
from glow_mlir.serving.json_text import is_list, is_object, read_json, write_json
from glow_mlir.serving.models import Network
from glow_mlir.serving.shared_memory import Regions, RegionSlice
from glow_mlir.serving.steps import Steps, finished
from glow_mlir.serving.tensors import (
    Bytes,
    InputReader,
    NetworkTensors,
    contiguous,
    is_short,
    short_numbers,
    tensors_of,
    wire_array,
    wire_datatype,
    wire_numbers,
    wire_parts,
)

HEADER_LENGTH = b"inference-header-content-length"
"""The header for the size of the JSON part of a body, if tensors follow as bytes."""

PLACE = "shared_memory_region"

JSON_PIECE = 1 << 13
"""The number of elements written as JSON per step."""

NOTHING: Mapping[str, Any] = {}


Parts = list[bytes | memoryview]
"""The chunks of a response, in order."""


class Body(NamedTuple):
    """A response: its parts in order, and the size of its JSON; 0 if it is all JSON."""

    parts: Parts
    header_length: int


def text_of(body: Bytes, header_length: int | None) -> Bytes:
    """The JSON part of a body, of the given size, or all; raises `InputError` if the body is shorter."""
    if header_length is None:
        return body
    if not 0 < header_length <= len(body):
        reason = f"{header_length} bytes of JSON expected, got {len(body)}"
        raise InputError(reason, hint="Inference-Header-Content-Length gives the number")
    return memoryview(body)[:header_length]


def read_request(network: Network, body: Bytes, header_length: int | None, regions: Regions) -> InferenceRequest:
    """Decode a body to an inference request, all at once; see `request_steps`."""
    text = text_of(body, header_length)
    return finished(request_steps(network, read_json(text), body, len(text), regions, Charge()))


def request_steps(
    network: Network, data: object, body: Bytes, rest: int, regions: Regions, charge: Charge
) -> Steps[InferenceRequest]:
    """
    Decode a request whose JSON is `data`, and whose binary data starts at `rest`; arrays may be views of the body.

    Raises `InputError` for malformed requests, and `UnsupportedError` for a network that cannot be served.
    """
    tensors = tensors_of(network)
    if not is_object(data):
        raise InputError("the request must be a JSON object")
    parameters = read_parameters(data, "the request")
    inputs, end = yield from _InputsReader(tensors, body, regions, charge).read(objects_in(data, "inputs"), rest)
    if end != len(body):
        raise InputError(f"{len(body) - end} bytes of the request remain after the last input")
    request = InferenceRequest(inputs, [])
    _add_outputs(request, data, tensors, regions, flag(parameters, "binary_data_output") if parameters else False)
    if (name := data.get("id", "")) is not None:
        if type(name) is not str:
            raise InputError("the id of the request must be a string")
        check_text("the id of the request", name)
        request.id = name
    if parameters:
        request.add_parameters(parameters)
    return request


class _InputsReader:
    """Reads the inputs of a request; binary data of consecutive inputs is contiguous."""

    def __init__(self, tensors: NetworkTensors, body: Bytes, regions: Regions, charge: Charge) -> None:
        self.tensors = tensors
        self.body = body
        self.regions = regions
        self.charge = charge

    def read(self, items: Sequence[dict[str, Any]], begin: int) -> Steps[tuple[dict[str, np.ndarray], int]]:
        """All inputs by name, and the end of their binary data, which starts at `begin`."""
        found: dict[str, np.ndarray] = {}
        for item in items:
            reader = self.tensors.reader(item.get("name"))
            if reader.name in found:
                raise InputError(f"the request has two inputs '{reader.name}'")
            shape = item.get("shape")
            if not is_list(shape):
                raise InputError(f"the shape of input '{reader.name}' must be a list")
            sizes = reader.checked(item.get("datatype"), shape)
            parameters = read_parameters(item, "an input")
            if "binary_data_size" in parameters:
                size = natural(parameters, "binary_data_size")
                if "data" in item or PLACE in parameters:
                    raise InputError(f"input '{reader.name}' has data in two places")
                found[reader.name] = yield from reader.of_bytes(sizes, self.body, begin, size, self.charge)
                begin += size
            else:
                found[reader.name] = yield from self._other(reader, sizes, item, parameters)
        self.tensors.check_complete(found)
        return found, begin

    def _other(
        self, reader: InputReader, sizes: tuple[int, ...], item: Mapping[str, Any], parameters: Mapping[str, Any]
    ) -> Steps[np.ndarray]:
        """An input in shared memory, or given as numbers."""
        region_slice, data = self.regions.region_slice(parameters) if parameters else None, item.get("data")
        if region_slice is not None:
            if "data" in item:
                raise InputError(f"input '{reader.name}' has data in two places")
            return (yield from in_shared_memory(reader, sizes, self.regions, region_slice, self.charge))
        if isinstance(data, np.ndarray):
            return (yield from reader.of_decoded(sizes, cast("np.ndarray", data), self.charge))
        return reader.of_list(sizes, data)


def in_shared_memory(
    reader: InputReader, sizes: tuple[int, ...], regions: Regions, region_slice: RegionSlice, charge: Charge
) -> Steps[np.ndarray]:
    """An input of these sizes in a region slice of shared memory."""
    reader.check_size(sizes, region_slice.size)
    charge.add(region_slice.size)
    data = yield from regions.read(region_slice)
    return (yield from reader.of_bytes(sizes, data.data, 0, region_slice.size, charge))


def _add_outputs(
    request: InferenceRequest, data: Mapping[str, Any], tensors: NetworkTensors, regions: Regions, is_binary: bool
) -> None:
    """Add the named outputs, or all, to a request."""
    if "outputs" not in data:
        request.outputs = [WantedOutput(name, is_binary) for name in tensors.outputs]
        return
    found: dict[str, WantedOutput] = {}
    for item in objects_in(data, "outputs"):
        name = tensors.check_output(item.get("name"))
        if name in found:
            raise InputError(f"the request names output '{name}' twice")
        found[name] = wanted_output(name, read_parameters(item, "an output"), regions, is_binary=is_binary)
    request.outputs, request.names = list(found.values()), list(found)


def wanted_output(name: str, parameters: Mapping[str, Any], regions: Regions, *, is_binary: bool) -> WantedOutput:
    """The output requested by name and parameters; raises `InputError`."""
    if not parameters:
        return WantedOutput(name, is_binary)
    if parameters.get("classification"):
        raise InputError(f"output '{name}' is requested as classifications, which are not supported")
    return WantedOutput(name, flag(parameters, "binary_data", default=is_binary), regions.region_slice(parameters))


def objects_in(data: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A member that is a list of JSON objects; raises `InputError` for anything else."""
    items = data.get(name)
    if not is_list(items) or not all(is_object(item) for item in items):
        raise InputError(f"'{name}' of the request must be a list of JSON objects")
    return items


def read_parameters(data: Mapping[str, Any], what: str) -> Mapping[str, Any]:
    """The parameters of a part of a request; raises `InputError` for any other type than a JSON object."""
    found = data.get("parameters")
    if found is None:
        return NOTHING
    if not is_object(found):
        raise InputError(f"the parameters of {what} must be a JSON object")
    return found


def write_response(network: Network, request: InferenceRequest, outputs: Outputs, regions: Regions) -> Body:
    """The response to a request, all at once; see `response_steps`."""
    return finished(response_steps(network, request, outputs, regions, Charge()))


def response_steps(
    network: Network, request: InferenceRequest, outputs: Outputs, regions: Regions, charge: Charge
) -> Steps[Body]:
    """
    The response to a request; outputs in shared memory are written there.

    Raises `InputError` for outputs that do not fit their regions, or that JSON cannot represent.
    """
    items: list[dict[str, Any]] = []
    parts: Parts = []
    size, is_binary = 0, False
    for wanted in request.outputs:
        array = outputs[wanted.name]
        item: dict[str, Any] = {"name": wanted.name, "datatype": wire_datatype(array), "shape": array.shape}
        if wanted.region_slice is not None:
            in_regions = yield from wire_array(array, charge)
            yield from regions.write(wanted.region_slice, wanted.name, in_regions)
            item["parameters"] = slice_parameters(wanted.region_slice, in_regions)
        elif wanted.is_binary:
            own = [array.tobytes()] if is_short(array) else (yield from wire_parts(array, charge))
            item["parameters"] = {"binary_data_size": sum(map(len, own))}
            parts += own
            is_binary = True
        else:
            size += array.size
            charge.add(array.nbytes)
            if is_short(array):
                item["data"] = short_numbers(wanted.name, array)
            else:
                item["data"] = yield from wire_numbers(wanted.name, (yield from contiguous(array, charge)))
        items.append(item)
    head: dict[str, Any] = {"model_name": network.name, "model_version": network.version, "outputs": items}
    if request.id:
        head["id"] = request.id
    texts = [write_json(head)] if size <= JSON_PIECE else (yield from _texts(head, charge))
    return Body([*texts, *parts], sum(map(len, texts)) if is_binary else 0)


def _texts(head: dict[str, Any], charge: Charge) -> Steps[list[bytes]]:
    """A response as JSON in parts, for many elements."""
    found: list[bytes] = []
    for member, value in head.items():
        found += [b"," if found else b"{", write_json(member), b":"]
        if member != "outputs":
            found.append(write_json(value))
            continue
        for number, item in enumerate(value):
            data = item.pop("data", None)
            text = write_json(item)
            found += [b"," if number else b"[", text]
            if data is not None:
                found[-1] = text[:-1] + b',"data":['
                for begin in range(0, len(data), JSON_PIECE):
                    piece = write_json(data[begin : begin + JSON_PIECE])[1:-1]
                    charge.add(len(piece))
                    found += [b",", piece] if begin else [piece]
                    yield
                found.append(b"]}")
        found.append(b"]")
    return [*found, b"}"]


def slice_parameters(region_slice: RegionSlice, array: np.ndarray) -> dict[str, Any]:
    """The description of an output in shared memory."""
    return {
        PLACE: region_slice.region.name,
        "shared_memory_offset": region_slice.offset,
        "shared_memory_byte_size": array.nbytes,
    }
