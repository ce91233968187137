"""Names of onnxruntime's Python package that do not exist here, by owner, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from glow_mlir.errors import RefusedNameError

_ONE_DEVICE = "there is one device, the CPU"
_IN_CACHE = "compiled models are in the cache: docs/cache.md"
_NO_LIBRARIES = "providers are backends in Python: docs/add-a-backend.md"
_NO_CAPTURE = "graphs are captured on GPUs; here calls are prepared by io_binding()"
_DENSE = "tensors are dense; sparse constants of models are understood"
_TUNING = "tune=True measures kernels and caches the results: docs/tuning.md"
_NO_PACKAGES = "a model is one file; bundles are made by glow-compile: docs/bundles.md"
_ADAPTERS = "weights of adapters are inputs, or SessionOptions.add_initializer"

REFUSED: Mapping[str, Mapping[str, str]] = {
    "glow_mlir": {
        "AdapterFormat": _ADAPTERS,
        "LoraAdapter": _ADAPTERS,
        "ModelCompiler": "sessions compile and cache the result: docs/cache.md",
        "ModelPackage": _NO_PACKAGES,
        "ModelPackageComponentContext": _NO_PACKAGES,
        "ModelPackageContext": _NO_PACKAGES,
        "ModelPackageOptions": _NO_PACKAGES,
        "ModelPackageWriteMode": _NO_PACKAGES,
        "OrtCompileApiFlags": _IN_CACHE,
        "OrtEpContextData": _IN_CACHE,
        "OrtEpContextDataBuffer": _IN_CACHE,
        "OrtEpDevice": _ONE_DEVICE,
        "OrtExecutionProviderDevicePolicy": _ONE_DEVICE,
        "OrtExternalInitializerInfo": "SessionOptions.add_external_initializers gives constants",
        "OrtHardwareDevice": _ONE_DEVICE,
        "OrtHardwareDeviceType": _ONE_DEVICE,
        "OrtSparseFormat": _DENSE,
        "OrtSyncStream": _ONE_DEVICE,
        "SessionIOBinding": "InferenceSession.io_binding() makes an IOBinding",
        "SparseTensor": _DENSE,
        "get_ep_devices": _ONE_DEVICE,
        "preload_dlls": _ONE_DEVICE,
        "print_debug_info": "glow-run --version and get_build_info print versions",
        "register_execution_provider_library": _NO_LIBRARIES,
        "unregister_execution_provider_library": _NO_LIBRARIES,
    },
    "InferenceSession": {
        "create_ortvalue_from_shape_and_type": "use OrtValue.ortvalue_from_shape_and_type",
        "get_tuning_results": _TUNING,
        "release_captured_graph": _NO_CAPTURE,
        "run_with_ortvaluevector": "use run_with_iobinding",
        "set_ep_dynamic_options": "options are those of the constructor",
        "set_tuning_results": _TUNING,
    },
    "SessionOptions": {
        "add_provider_for_devices": _ONE_DEVICE,
        "clear_ep_context_data_read_func": _IN_CACHE,
        "register_custom_ops_library": "operators are written in Python: docs/add-an-operator.md",
        "set_ep_context_data_read_func": _IN_CACHE,
        "set_load_cancellation_flag": "compile_time_limit=SECONDS or Ctrl-C ends a compilation",
        "set_provider_selection_policy": _ONE_DEVICE,
        "set_provider_selection_policy_delegate": _ONE_DEVICE,
    },
    "RunOptions": {"add_active_adapter": _ADAPTERS},
    "OrtValue": {
        "as_sparse_tensor": _DENSE,
        "ort_value_from_sparse_tensor": _DENSE,
    },
    "IOBinding": {"get_outputs_as_ortvaluevector": "get_outputs() gives them as a list"},
}
"""Owner → name → the reason why it does not exist, or its replacement."""


def missing_name(owner: str, name: str) -> AttributeError:
    """The error for a name that an owner does not have, with the reason if onnxruntime has the name."""
    if (reason := REFUSED.get(owner, {}).get(name)) is not None:
        return RefusedNameError(f"{owner} has no '{name}'", hint=reason)
    return AttributeError(f"'{owner}' has no attribute '{name}'")


class Explained:
    """An object that explains why a name of onnxruntime's class does not exist."""

    __slots__ = ()

    if not TYPE_CHECKING:  # Type checkers should report unknown names.

        def __getattr__(self, name: str) -> Any:
            owner = next((kind.__name__ for kind in type(self).__mro__ if kind.__name__ in REFUSED), "")
            raise missing_name(owner or type(self).__name__, name)
