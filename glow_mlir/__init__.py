"""glow-mlir: a neural-network compiler after Glow (arXiv 1805.00907), in Python, as two dialects on xDSL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glow_mlir import backend as backend
    from glow_mlir import errors as _errors
    from glow_mlir import jax as jax
    from glow_mlir import onnx_backend as onnx_backend
    from glow_mlir import torch as torch
    from glow_mlir import training as training
    from glow_mlir.api.onnxruntime.allocators import OrtAllocatorType as OrtAllocatorType
    from glow_mlir.api.onnxruntime.allocators import OrtArenaCfg as OrtArenaCfg
    from glow_mlir.api.onnxruntime.allocators import OrtMemoryInfo as OrtMemoryInfo
    from glow_mlir.api.onnxruntime.allocators import OrtMemType as OrtMemType
    from glow_mlir.api.onnxruntime.allocators import create_and_register_allocator as create_and_register_allocator
    from glow_mlir.api.onnxruntime.allocators import (
        create_and_register_allocator_v2 as create_and_register_allocator_v2,
    )
    from glow_mlir.api.onnxruntime.allocators import set_global_thread_pool_sizes as set_global_thread_pool_sizes
    from glow_mlir.api.onnxruntime.bundle_session import load_bundle as load_bundle
    from glow_mlir.api.onnxruntime.devices import OrtDevice as OrtDevice
    from glow_mlir.api.onnxruntime.devices import OrtDeviceMemoryType as OrtDeviceMemoryType
    from glow_mlir.api.onnxruntime.devices import OrtDeviceVendorId as OrtDeviceVendorId
    from glow_mlir.api.onnxruntime.devices import OrtMemoryInfoDeviceType as OrtMemoryInfoDeviceType
    from glow_mlir.api.onnxruntime.devices import get_device as get_device
    from glow_mlir.api.onnxruntime.inference_session import InferenceSession as InferenceSession
    from glow_mlir.api.onnxruntime.io_binding import IOBinding as IOBinding
    from glow_mlir.api.onnxruntime.messages import set_default_logger_callback as set_default_logger_callback
    from glow_mlir.api.onnxruntime.messages import set_default_logger_severity as set_default_logger_severity
    from glow_mlir.api.onnxruntime.messages import set_default_logger_verbosity as set_default_logger_verbosity
    from glow_mlir.api.onnxruntime.model_metadata import ModelMetadata as ModelMetadata
    from glow_mlir.api.onnxruntime.node_arg import NodeArg as NodeArg
    from glow_mlir.api.onnxruntime.node_assignments import OrtEpAssignedNode as OrtEpAssignedNode
    from glow_mlir.api.onnxruntime.node_assignments import OrtEpAssignedSubgraph as OrtEpAssignedSubgraph
    from glow_mlir.api.onnxruntime.ort_value import OrtValue as OrtValue
    from glow_mlir.api.onnxruntime.ort_value import copy_tensors as copy_tensors
    from glow_mlir.api.onnxruntime.process import disable_telemetry_events as disable_telemetry_events
    from glow_mlir.api.onnxruntime.process import enable_telemetry_events as enable_telemetry_events
    from glow_mlir.api.onnxruntime.process import get_build_info as get_build_info
    from glow_mlir.api.onnxruntime.process import get_version_string as get_version_string
    from glow_mlir.api.onnxruntime.process import has_collective_ops as has_collective_ops
    from glow_mlir.api.onnxruntime.process import set_seed as set_seed
    from glow_mlir.api.onnxruntime.providers import get_all_providers as get_all_providers
    from glow_mlir.api.onnxruntime.providers import get_available_providers as get_available_providers
    from glow_mlir.api.onnxruntime.run_options import RunOptions as RunOptions
    from glow_mlir.api.onnxruntime.session_options import ExecutionMode as ExecutionMode
    from glow_mlir.api.onnxruntime.session_options import ExecutionOrder as ExecutionOrder
    from glow_mlir.api.onnxruntime.session_options import GraphOptimizationLevel as GraphOptimizationLevel
    from glow_mlir.api.onnxruntime.session_options import SessionOptions as SessionOptions
    from glow_mlir.api.training_session import TrainingSession as TrainingSession
    from glow_mlir.errors import GlowError as GlowError
    from glow_mlir.errors import GlowWarning as GlowWarning
    from glow_mlir.generation.embedder import Embedder as Embedder
    from glow_mlir.generation.generator import Generator as Generator
    from glow_mlir.generation.transcriber import Transcriber as Transcriber
    from glow_mlir.host.host import Host as Host
    from glow_mlir.jax.front_door import from_jax as from_jax
    from glow_mlir.jax.front_door import from_keras as from_keras
    from glow_mlir.kernels.kernel import kernel as kernel
    from glow_mlir.options.quantization import Quantization as Quantization
    from glow_mlir.runtime.specializations import SpecializationLimits as SpecializationLimits
    from glow_mlir.torch.front_door import from_torch as from_torch

    Fail = _errors.GlowError
    InvalidArgument = _errors.InputError
    InvalidGraph = InvalidProtobuf = NoSuchFile = _errors.ModelError
    RuntimeException = _errors.ExecutionError

_HOMES = {
    "Embedder": "glow_mlir.generation.embedder",
    "ExecutionMode": "glow_mlir.api.onnxruntime.session_options",
    "ExecutionOrder": "glow_mlir.api.onnxruntime.session_options",
    "Fail": "glow_mlir.errors:GlowError",
    "Generator": "glow_mlir.generation.generator",
    "GlowError": "glow_mlir.errors",
    "GlowWarning": "glow_mlir.errors",
    "GraphOptimizationLevel": "glow_mlir.api.onnxruntime.session_options",
    "Host": "glow_mlir.host.host",
    "IOBinding": "glow_mlir.api.onnxruntime.io_binding",
    "InferenceSession": "glow_mlir.api.onnxruntime.inference_session",
    "InvalidArgument": "glow_mlir.errors:InputError",
    "InvalidGraph": "glow_mlir.errors:ModelError",
    "InvalidProtobuf": "glow_mlir.errors:ModelError",
    "ModelMetadata": "glow_mlir.api.onnxruntime.model_metadata",
    "NoSuchFile": "glow_mlir.errors:ModelError",
    "NodeArg": "glow_mlir.api.onnxruntime.node_arg",
    "OrtAllocatorType": "glow_mlir.api.onnxruntime.allocators",
    "OrtArenaCfg": "glow_mlir.api.onnxruntime.allocators",
    "OrtDevice": "glow_mlir.api.onnxruntime.devices",
    "OrtDeviceMemoryType": "glow_mlir.api.onnxruntime.devices",
    "OrtDeviceVendorId": "glow_mlir.api.onnxruntime.devices",
    "OrtEpAssignedNode": "glow_mlir.api.onnxruntime.node_assignments",
    "OrtEpAssignedSubgraph": "glow_mlir.api.onnxruntime.node_assignments",
    "OrtMemType": "glow_mlir.api.onnxruntime.allocators",
    "OrtMemoryInfo": "glow_mlir.api.onnxruntime.allocators",
    "OrtMemoryInfoDeviceType": "glow_mlir.api.onnxruntime.devices",
    "OrtValue": "glow_mlir.api.onnxruntime.ort_value",
    "Quantization": "glow_mlir.options.quantization",
    "RunOptions": "glow_mlir.api.onnxruntime.run_options",
    "RuntimeException": "glow_mlir.errors:ExecutionError",
    "SessionOptions": "glow_mlir.api.onnxruntime.session_options",
    "SpecializationLimits": "glow_mlir.runtime.specializations",
    "TrainingSession": "glow_mlir.api.training_session",
    "Transcriber": "glow_mlir.generation.transcriber",
    "backend": "glow_mlir.backend",
    "copy_tensors": "glow_mlir.api.onnxruntime.ort_value",
    "create_and_register_allocator": "glow_mlir.api.onnxruntime.allocators",
    "create_and_register_allocator_v2": "glow_mlir.api.onnxruntime.allocators",
    "disable_telemetry_events": "glow_mlir.api.onnxruntime.process",
    "enable_telemetry_events": "glow_mlir.api.onnxruntime.process",
    "from_jax": "glow_mlir.jax.front_door",
    "from_keras": "glow_mlir.jax.front_door",
    "from_torch": "glow_mlir.torch.front_door",
    "get_all_providers": "glow_mlir.api.onnxruntime.providers",
    "get_available_providers": "glow_mlir.api.onnxruntime.providers",
    "get_build_info": "glow_mlir.api.onnxruntime.process",
    "get_device": "glow_mlir.api.onnxruntime.devices",
    "get_version_string": "glow_mlir.api.onnxruntime.process",
    "has_collective_ops": "glow_mlir.api.onnxruntime.process",
    "jax": "glow_mlir.jax",
    "kernel": "glow_mlir.kernels.kernel",
    "load_bundle": "glow_mlir.api.onnxruntime.bundle_session",
    "onnx_backend": "glow_mlir.onnx_backend",
    "set_default_logger_callback": "glow_mlir.api.onnxruntime.messages",
    "set_default_logger_severity": "glow_mlir.api.onnxruntime.messages",
    "set_default_logger_verbosity": "glow_mlir.api.onnxruntime.messages",
    "set_global_thread_pool_sizes": "glow_mlir.api.onnxruntime.allocators",
    "set_seed": "glow_mlir.api.onnxruntime.process",
    "torch": "glow_mlir.torch",
    "training": "glow_mlir.training",
}
"""Public name → the module that it is, or that has it, and its name there where that is another one."""


def __getattr__(name: str) -> Any:
    """The public names, imported when first used, so that importing the package costs nothing."""
    if name == "__all__":
        return list(_HOMES)
    if name in _HOMES:
        from importlib import import_module

        from glow_mlir.support.collector import without_collector

        home, _, member = _HOMES[name].partition(":")
        with without_collector():
            module = import_module(home)
        return module if home == f"{__name__}.{name}" else getattr(module, member or name)
    if name == "__version__":
        from importlib.metadata import version

        return version("glow-mlir")
    if name.startswith("__"):
        raise AttributeError(f"module 'glow_mlir' has no attribute '{name}'")
    from glow_mlir.api.onnxruntime.refused_names import missing_name

    raise missing_name("glow_mlir", name)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted([*_HOMES, "__version__"])
