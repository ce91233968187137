"""The backend interface of the onnx package: `prepare`, `run_model`, `run_node` and `supports_device`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.api.onnxruntime.node_arg import NodeArg
from glow_mlir.api.onnxruntime.session_arguments import FACADE_KEYWORDS, OF_ONNXRUNTIME
from glow_mlir.api.onnxruntime.session_options import SessionOptions
from glow_mlir.errors import InputError, OptionError


def _sequence(inputs: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", inputs) if isinstance(inputs, list | tuple) else [inputs]


class GlowBackendRep(BackendRep):
    """A prepared model."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[np.ndarray, ...]:
        """Run on a sequence of values in the order of the inputs, a mapping by name, or a single value."""
        given = self.session.get_inputs()
        names = [arg.name for arg in given]
        if isinstance(inputs, Mapping) and not _is_map(given, cast("Mapping[Any, Any]", inputs)):
            return tuple(self.session.run(None, cast("Mapping[str, Any]", inputs)))
        arrays = _sequence(inputs)
        if len(arrays) != len(names):
            given = f"is {len(arrays)} array" if len(arrays) == 1 else f"are {len(arrays)} arrays"
            wanted = f"{len(names)} input{'' if len(names) == 1 else 's'}"
            raise InputError(f"there {given} for {wanted}", hint=f"inputs are {', '.join(names) or 'none'}")
        return tuple(self.session.run(None, dict(zip(names, arrays, strict=True))))


def _is_map(inputs: Sequence[NodeArg], given: Mapping[Any, Any]) -> bool:
    """Whether a dictionary is the value of the one input, which is a map, and does not name it."""
    if len(inputs) != 1 or not inputs[0].type.startswith("map("):
        return False
    return list(given) != [inputs[0].name] or not isinstance(given[inputs[0].name], Mapping)


Prepared = onnx.ModelProto | str | Path | bytes | InferenceSession | GlowBackendRep
"""What may be given as a model: one, or a session that has it."""


class GlowBackend(Backend):
    """glow-mlir behind the interface of `onnx.backend.base.Backend`."""

    @classmethod
    def prepare(cls, model: Prepared, device: str | None = "CPU", **kwargs: Any) -> GlowBackendRep:
        """
        Compile a model, given as a proto, a path, or its bytes, or take a session that has one.

        Keyword arguments go to `InferenceSession`, or are options of `SessionOptions`. Raises `OptionError` for other
        ones, and for a device other than the CPU.
        """
        if device is not None and not cls.supports_device(device):
            raise OptionError(f"there is no device '{device}' here", hint="models run on the 'CPU'")
        if isinstance(model, GlowBackendRep):
            return model
        if isinstance(model, InferenceSession):
            return GlowBackendRep(model)
        return GlowBackendRep(InferenceSession(model, **_keywords(kwargs)))

    @classmethod
    def run_model(cls, model: Prepared, inputs: Any, device: str | None = "CPU", **kwargs: Any) -> Any:
        """Compile a model and run it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> Any:
        """Run a single node on a sequence of arrays; `outputs_info` holds dtype and shape of each output."""
        arrays = _sequence(inputs)
        names = [name for name in node.input if name]
        graph_inputs = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape)
            )
            for name, array in zip(names, arrays, strict=True)
        ]
        graph_outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", graph_inputs, graph_outputs)
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, version)])
        return cls.run_model(model, list(arrays), device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether `device` is a CPU."""
        try:
            return Device(device).type == DeviceType.CPU
        except (AttributeError, ValueError):  # The onnx package does not know it.
            return False


def _keywords(given: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of `InferenceSession`, the options of `SessionOptions` in one; raises `OptionError` for other names."""
    options = {item.name for item in SessionOptions.settings()}
    found = {name: value for name, value in given.items() if name not in options}
    known = {*OF_ONNXRUNTIME, *FACADE_KEYWORDS}
    for name in found:
        if name not in known:
            raise OptionError(
                f"there is no option '{name}'", hint="keywords of InferenceSession, options of SessionOptions"
            )
    if len(found) < len(given):
        settings = copy(found.get("sess_options") or SessionOptions())
        for name in options & given.keys():
            setattr(settings, name, given[name])
        found["sess_options"] = settings
    return found


prepare = GlowBackend.prepare
run_model = GlowBackend.run_model
run_node = GlowBackend.run_node
supports_device = GlowBackend.supports_device
