"""
The messages of the inference protocol over gRPC; their classes are generated from a table.

Each entry is a message with its fields as `number type name`. A `*` before the type marks a repeated field, `map` a map
from strings, and `|` the members of a oneof. Numbers and names are those of the protocol, which are fixed in clients.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from glow_mlir.serving.packages import package

PACKAGE = "inference"
SERVICE = f"{PACKAGE}.GRPCInferenceService"

_VERSIONED = "1 string name, 2 string version"
_DURATIONS = (
    "1 StatisticDuration success, 2 StatisticDuration fail, 3 StatisticDuration queue, "
    "4 StatisticDuration compute_input, 5 StatisticDuration compute_infer, 6 StatisticDuration compute_output"
)

MESSAGES = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "1 bool live",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "1 bool ready",
    "ModelReadyRequest": _VERSIONED,
    "ModelReadyResponse": "1 bool ready",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "1 string name, 2 string version, 3 *string extensions",
    "ModelMetadataRequest": _VERSIONED,
    "TensorMetadata": "1 string name, 2 string datatype, 3 *int64 shape",
    "ModelMetadataResponse": (
        "1 string name, 2 *string versions, 3 string platform, 4 *TensorMetadata inputs, 5 *TensorMetadata outputs"
    ),
    "InferParameter": (
        "1 |bool bool_param, 2 |int64 int64_param, 3 |string string_param, 4 |double double_param, "
        "5 |uint64 uint64_param"
    ),
    "InferTensorContents": (
        "1 *bool bool_contents, 2 *int32 int_contents, 3 *int64 int64_contents, 4 *uint32 uint_contents, "
        "5 *uint64 uint64_contents, 6 *float fp32_contents, 7 *double fp64_contents, 8 *bytes bytes_contents"
    ),
    "InferTensor": (
        "1 string name, 2 string datatype, 3 *int64 shape, 4 map InferParameter parameters, "
        "5 InferTensorContents contents"
    ),
    "InferRequestedOutput": "1 string name, 2 map InferParameter parameters",
    "ModelInferRequest": (
        "1 string model_name, 2 string model_version, 3 string id, 4 map InferParameter parameters, "
        "5 *InferTensor inputs, 6 *InferRequestedOutput outputs, 7 *bytes raw_input_contents"
    ),
    "ModelInferResponse": (
        "1 string model_name, 2 string model_version, 3 string id, 4 map InferParameter parameters, "
        "5 *InferTensor outputs, 6 *bytes raw_output_contents"
    ),
    "ModelStreamInferResponse": "1 string error_message, 2 ModelInferResponse infer_response",
    "ModelConfigRequest": _VERSIONED,
    "ModelInput": "1 string name, 2 DataType data_type, 4 *int64 dims",
    "ModelOutput": "1 string name, 2 DataType data_type, 3 *int64 dims",
    "ModelConfig": (
        "1 string name, 2 string platform, 4 int32 max_batch_size, 5 *ModelInput input, 6 *ModelOutput output, "
        "17 string backend"
    ),
    "ModelConfigResponse": "1 ModelConfig config",
    "ModelStatisticsRequest": _VERSIONED,
    "StatisticDuration": "1 uint64 count, 2 uint64 ns",
    "InferStatistics": _DURATIONS,
    "ModelStatistics": (
        "1 string name, 2 string version, 3 uint64 last_inference, 4 uint64 inference_count, "
        "5 uint64 execution_count, 6 InferStatistics inference_stats"
    ),
    "ModelStatisticsResponse": "1 *ModelStatistics model_stats",
    "ModelRepositoryParameter": (
        "1 |bool bool_param, 2 |int64 int64_param, 3 |string string_param, 4 |bytes bytes_param"
    ),
    "RepositoryIndexRequest": "1 string repository_name, 2 bool ready",
    "ModelIndex": "1 string name, 2 string version, 3 string state, 4 string reason",
    "RepositoryIndexResponse": "1 *ModelIndex models",
    "RepositoryModelLoadRequest": (
        "1 string repository_name, 2 string model_name, 3 map ModelRepositoryParameter parameters"
    ),
    "RepositoryModelLoadResponse": "",
    "RepositoryModelUnloadRequest": (
        "1 string repository_name, 2 string model_name, 3 map ModelRepositoryParameter parameters"
    ),
    "RepositoryModelUnloadResponse": "",
    "TraceValue": "1 *string value",
    "TraceSettingRequest": "1 map TraceValue settings, 2 string model_name",
    "TraceSettingResponse": "1 map TraceValue settings",
    "LogValue": "1 |bool bool_param, 2 |uint32 uint32_param, 3 |string string_param",
    "LogSettingsRequest": "1 map LogValue settings",
    "LogSettingsResponse": "1 map LogValue settings",
    "RegionStatus": "1 string name, 2 string key, 3 uint64 offset, 4 uint64 byte_size",
    "SystemSharedMemoryStatusRequest": "1 string name",
    "SystemSharedMemoryStatusResponse": "1 map RegionStatus regions",
    "SystemSharedMemoryRegisterRequest": "1 string name, 2 string key, 3 uint64 offset, 4 uint64 byte_size",
    "SystemSharedMemoryRegisterResponse": "",
    "SystemSharedMemoryUnregisterRequest": "1 string name",
    "SystemSharedMemoryUnregisterResponse": "",
    "CudaRegionStatus": "1 string name, 2 uint64 device_id, 3 uint64 byte_size",
    "CudaSharedMemoryStatusRequest": "1 string name",
    "CudaSharedMemoryStatusResponse": "1 map CudaRegionStatus regions",
    "CudaSharedMemoryRegisterRequest": "1 string name, 2 bytes raw_handle, 3 int64 device_id, 4 uint64 byte_size",
    "CudaSharedMemoryRegisterResponse": "",
    "CudaSharedMemoryUnregisterRequest": "1 string name",
    "CudaSharedMemoryUnregisterResponse": "",
}
"""Message → its fields."""

DATA_TYPES = (
    "INVALID", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32",
    "FP64", "STRING", "BF16",
)  # fmt: skip
"""The element types of a configuration, indexed by number."""


@cache
def message_classes() -> dict[str, Any]:
    """The classes of all messages by name; raises `OptionError` if protobuf is not installed."""
    # Use a separate pool, because a client in the same process has its own messages of the same names.
    pool = package("google.protobuf.descriptor_pool").DescriptorPool()
    pool.Add(_file())
    made = package("google.protobuf.message_factory").GetMessageClass
    return {name: made(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES}


def message_class(name: str) -> Any:
    """The class of a message."""
    return message_classes()[name]


def _file() -> Any:
    """The file descriptor of protobuf with all messages of the protocol."""
    descriptors = package("google.protobuf.descriptor_pb2")
    file = descriptors.FileDescriptorProto(name="inference.proto", package=PACKAGE, syntax="proto3")
    kinds = file.enum_type.add(name="DataType")
    for number, word in enumerate(DATA_TYPES):
        kinds.value.add(name=f"TYPE_{word}", number=number)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in filter(None, fields.split(", ")):
            _add_field(descriptors.FieldDescriptorProto, message, text)
    return file


def _add_field(descriptor: Any, message: Any, text: str) -> None:
    """Add a field from the table to a message."""
    number, *marks, kind, name = text.split()
    field = message.field.add(name=name, number=int(number), label=descriptor.LABEL_OPTIONAL)
    if kind.startswith("|"):
        kind = kind[1:]
        if not message.oneof_decl:
            message.oneof_decl.add(name="parameter_choice")
        field.oneof_index = 0
    if kind.startswith("*") or marks:
        kind = kind.removeprefix("*")
        field.label = descriptor.LABEL_REPEATED
    if marks:
        kind = _map_entry(descriptor, message, name, kind)
    if kind == "DataType":
        field.type = descriptor.TYPE_ENUM
    elif kind[0].isupper():
        field.type = descriptor.TYPE_MESSAGE
    else:
        field.type = descriptor.Type.Value(f"TYPE_{kind.upper()}")
        return
    field.type_name = f".{PACKAGE}.{kind}"


def _map_entry(descriptor: Any, message: Any, field: str, kind: str) -> str:
    """The entry type of a map, nested in the message with the map."""
    entry = message.nested_type.add(name=f"{field.title()}Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=descriptor.TYPE_STRING, label=descriptor.LABEL_OPTIONAL)
    entry.field.add(
        name="value",
        number=2,
        type=descriptor.TYPE_MESSAGE,
        label=descriptor.LABEL_OPTIONAL,
        type_name=f".{PACKAGE}.{kind}",
    )
    return f"{message.name}.{entry.name}"
