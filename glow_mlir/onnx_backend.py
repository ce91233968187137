"""The backend interface of the onnx package: `prepare`, `run_model`, `run_node` and `supports_device`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

from glow_mlir.api.session import InferenceSession


def _sequence(inputs: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", inputs) if isinstance(inputs, list | tuple) else [inputs]


class GlowBackendRep(BackendRep):
    """A prepared model."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[np.ndarray, ...]:
        """Run on a sequence of arrays in the order of the inputs, a mapping by name, or a single array."""
        names = [arg.name for arg in self.session.get_inputs()]
        if isinstance(inputs, Mapping):
            return tuple(self.session.run(None, cast("Mapping[str, Any]", inputs)))
        return tuple(self.session.run(None, dict(zip(names, _sequence(inputs), strict=True))))


class GlowBackend(Backend):
    """glow-mlir behind the interface of `onnx.backend.base.Backend`."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto | str | Path, device: str = "CPU", **kwargs: Any) -> GlowBackendRep:
        """Compile a model, given as a proto or as a path; keyword arguments go to `InferenceSession`."""
        return GlowBackendRep(InferenceSession(model, **kwargs))

    @classmethod
    def run_model(cls, model: onnx.ModelProto | str | Path, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
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
        return Device(device).type == DeviceType.CPU


prepare = GlowBackend.prepare
run_model = GlowBackend.run_model
run_node = GlowBackend.run_node
supports_device = GlowBackend.supports_device
