"""Sessions and bindings of onnxruntime's native module, for programs that bypass its Python classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from glow_mlir.api.onnxruntime.devices import OrtDevice, device_of
from glow_mlir.api.onnxruntime.io_binding import IOBinding
from glow_mlir.api.onnxruntime.ort_value import OrtValue

if TYPE_CHECKING:
    from glow_mlir.api.onnxruntime.run_options import RunOptions
    from glow_mlir.api.onnxruntime.session_facade import SessionFacade


class OrtValueVector(list[OrtValue]):
    """A list of tensors."""


class NativeSession:
    """A session with the argument order of onnxruntime's native module."""

    def __init__(self, session: SessionFacade) -> None:
        self.session = session

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[np.ndarray]:
        """`run` of the session."""
        return self.session.run(output_names, input_feed, run_options)

    def run_with_ort_values(
        self, input_feed: Mapping[str, OrtValue], output_names: Sequence[str], run_options: RunOptions | None = None
    ) -> OrtValueVector:
        """`run_with_ort_values` of the session, inputs first."""
        return OrtValueVector(self.session.run_with_ort_values(output_names, input_feed, run_options))

    def run_with_iobinding(self, iobinding: SessionIOBinding, run_options: RunOptions | None = None) -> None:
        """`run_with_iobinding` of the session."""
        self.session.run_with_iobinding(iobinding.binding, run_options)


class SessionIOBinding:
    """A binding that takes a device as one object, where `IOBinding` takes its type and number."""

    def __init__(self, session: NativeSession) -> None:
        self.binding = IOBinding(session.session)

    def bind_input(self, name: str, source: Any, *memory: Any) -> None:
        """Read an input from an array, or from a device, element type, shape and address."""
        if not memory:
            self.binding.bind_cpu_input(name, source)
            return
        self.binding.bind_input_on(name, device_of(source), *memory)

    def bind_output(self, name: str, device: OrtDevice, *memory: Any) -> None:
        """Write an output to new arrays, or to memory given by element type, shape and address."""
        self.binding.bind_output_on(name, device_of(device), *memory)

    def get_outputs(self) -> OrtValueVector:
        """The outputs of the last call."""
        return OrtValueVector(self.binding.get_outputs())

    def __getattr__(self, name: str) -> Any:
        """The properties that both classes share."""
        if name == "binding":  # Asked for by `copy` before it is set.
            raise AttributeError(f"'SessionIOBinding' has no attribute '{name}'")
        return getattr(self.binding, name)
