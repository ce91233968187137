"""glow-mlir: a neural-network compiler after Glow (arXiv 1805.00907), in Python, as two dialects on xDSL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glow_mlir import backend, onnx_backend
    from glow_mlir.api.allocators import (
        OrtAllocatorType,
        OrtArenaCfg,
        OrtMemoryInfo,
        OrtMemType,
        create_and_register_allocator,
        create_and_register_allocator_v2,
        set_global_thread_pool_sizes,
    )
    from glow_mlir.api.bundle_session import load_bundle
    from glow_mlir.api.devices import (
        OrtDevice,
        OrtDeviceMemoryType,
        OrtDeviceVendorId,
        OrtMemoryInfoDeviceType,
        get_device,
    )
    from glow_mlir.api.io_binding import IOBinding
    from glow_mlir.api.messages import (
        set_default_logger_callback,
        set_default_logger_severity,
        set_default_logger_verbosity,
    )
    from glow_mlir.api.model_metadata import ModelMetadata
    from glow_mlir.api.node_assignments import OrtEpAssignedNode, OrtEpAssignedSubgraph
    from glow_mlir.api.ort_value import OrtValue, copy_tensors
    from glow_mlir.api.process import (
        disable_telemetry_events,
        enable_telemetry_events,
        get_build_info,
        get_version_string,
        has_collective_ops,
        set_seed,
    )
    from glow_mlir.api.providers import get_all_providers, get_available_providers
    from glow_mlir.api.run_options import RunOptions
    from glow_mlir.api.session import InferenceSession
    from glow_mlir.api.session_entry import NodeArg
    from glow_mlir.api.session_options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, SessionOptions
    from glow_mlir.errors import ExecutionError as RuntimeException
    from glow_mlir.errors import GlowError, GlowWarning
    from glow_mlir.errors import GlowError as Fail
    from glow_mlir.errors import InputError as InvalidArgument
    from glow_mlir.errors import ModelError as InvalidGraph
    from glow_mlir.errors import ModelError as InvalidProtobuf
    from glow_mlir.errors import ModelError as NoSuchFile
    from glow_mlir.kernels.kernel import kernel
    from glow_mlir.options.quantization import Quantization
    from glow_mlir.runtime.specializations import SpecializationLimits

_HOMES = {
    "ExecutionMode": "glow_mlir.api.session_options:ExecutionMode",
    "ExecutionOrder": "glow_mlir.api.session_options:ExecutionOrder",
    "Fail": "glow_mlir.errors:GlowError",
    "GlowError": "glow_mlir.errors:GlowError",
    "GlowWarning": "glow_mlir.errors:GlowWarning",
    "GraphOptimizationLevel": "glow_mlir.api.session_options:GraphOptimizationLevel",
    "IOBinding": "glow_mlir.api.io_binding:IOBinding",
    "InferenceSession": "glow_mlir.api.session:InferenceSession",
    "InvalidArgument": "glow_mlir.errors:InputError",
    "InvalidGraph": "glow_mlir.errors:ModelError",
    "InvalidProtobuf": "glow_mlir.errors:ModelError",
    "ModelMetadata": "glow_mlir.api.model_metadata:ModelMetadata",
    "NoSuchFile": "glow_mlir.errors:ModelError",
    "NodeArg": "glow_mlir.api.session_entry:NodeArg",
    "OrtAllocatorType": "glow_mlir.api.allocators:OrtAllocatorType",
    "OrtArenaCfg": "glow_mlir.api.allocators:OrtArenaCfg",
    "OrtDevice": "glow_mlir.api.devices:OrtDevice",
    "OrtDeviceMemoryType": "glow_mlir.api.devices:OrtDeviceMemoryType",
    "OrtDeviceVendorId": "glow_mlir.api.devices:OrtDeviceVendorId",
    "OrtEpAssignedNode": "glow_mlir.api.node_assignments:OrtEpAssignedNode",
    "OrtEpAssignedSubgraph": "glow_mlir.api.node_assignments:OrtEpAssignedSubgraph",
    "OrtMemType": "glow_mlir.api.allocators:OrtMemType",
    "OrtMemoryInfo": "glow_mlir.api.allocators:OrtMemoryInfo",
    "OrtMemoryInfoDeviceType": "glow_mlir.api.devices:OrtMemoryInfoDeviceType",
    "OrtValue": "glow_mlir.api.ort_value:OrtValue",
    "Quantization": "glow_mlir.options.quantization:Quantization",
    "RunOptions": "glow_mlir.api.run_options:RunOptions",
    "RuntimeException": "glow_mlir.errors:ExecutionError",
    "SessionOptions": "glow_mlir.api.session_options:SessionOptions",
    "SpecializationLimits": "glow_mlir.runtime.specializations:SpecializationLimits",
    "backend": "glow_mlir.backend",
    "copy_tensors": "glow_mlir.api.ort_value:copy_tensors",
    "create_and_register_allocator": "glow_mlir.api.allocators:create_and_register_allocator",
    "create_and_register_allocator_v2": "glow_mlir.api.allocators:create_and_register_allocator_v2",
    "disable_telemetry_events": "glow_mlir.api.process:disable_telemetry_events",
    "enable_telemetry_events": "glow_mlir.api.process:enable_telemetry_events",
    "get_all_providers": "glow_mlir.api.providers:get_all_providers",
    "get_available_providers": "glow_mlir.api.providers:get_available_providers",
    "get_build_info": "glow_mlir.api.process:get_build_info",
    "get_device": "glow_mlir.api.devices:get_device",
    "get_version_string": "glow_mlir.api.process:get_version_string",
    "has_collective_ops": "glow_mlir.api.process:has_collective_ops",
    "kernel": "glow_mlir.kernels.kernel:kernel",
    "load_bundle": "glow_mlir.api.bundle_session:load_bundle",
    "onnx_backend": "glow_mlir.onnx_backend",
    "set_default_logger_callback": "glow_mlir.api.messages:set_default_logger_callback",
    "set_default_logger_severity": "glow_mlir.api.messages:set_default_logger_severity",
    "set_default_logger_verbosity": "glow_mlir.api.messages:set_default_logger_verbosity",
    "set_global_thread_pool_sizes": "glow_mlir.api.allocators:set_global_thread_pool_sizes",
    "set_seed": "glow_mlir.api.process:set_seed",
}
"""Public name → the module that it is, or that has it."""

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GlowError",
    "GlowWarning",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelMetadata",
    "NoSuchFile",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtValue",
    "Quantization",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "SpecializationLimits",
    "backend",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "kernel",
    "load_bundle",
    "onnx_backend",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]


def __getattr__(name: str) -> Any:
    """The public names, imported when first used, so that importing the package costs nothing."""
    if name in _HOMES:
        from importlib import import_module

        home, _, member = _HOMES[name].partition(":")
        return getattr(import_module(home), member) if member else import_module(home)
    if name == "__version__":
        from importlib.metadata import version

        return version("glow-mlir")
    if name.startswith("__"):
        raise AttributeError(f"module 'glow_mlir' has no attribute '{name}'")
    from glow_mlir.api.refused_names import missing_name

    raise missing_name("glow_mlir", name)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted([*__all__, "__version__"])
