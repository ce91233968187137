"""`IOBinding`: inputs and outputs bound to memory, so that calls need no preparation."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from glow_mlir.api.device_tensors import at_address
from glow_mlir.api.onnxruntime.devices import CPU, device_of
from glow_mlir.api.onnxruntime.ort_value import OrtValue, element_dtype, sizes_of
from glow_mlir.api.onnxruntime.refused_names import Explained
from glow_mlir.errors import InputError
from glow_mlir.runtime.device_array import DeviceArray, OutputTarget, Tensor
from glow_mlir.runtime.devices import Device
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.array_addresses import array_at
from glow_mlir.support.dtypes import is_plain

if TYPE_CHECKING:
    from glow_mlir.api.onnxruntime.session_facade import SessionFacade


class IOBinding(Explained):
    """
    The caller's memory for the inputs and outputs of one entry of a session; `run_with_iobinding` calls the entry on
    it.

    Bound memory is not copied: each call reads the present contents of its inputs, and writes its outputs in place. A
    copy is made only for tensors on another device than the model's, inputs in another layout, outputs of
    data-dependent size whose layout differs from that of the code, and outputs that overlap other bound memory. Outputs
    bound without memory are new tensors for each call. An object serves one thread at a time.
    """

    def __init__(self, session: SessionFacade, entry: str | None = None) -> None:
        """Create an empty binding of an entry, by default the session's."""
        self.session = session
        self.entry = session.session_entry(entry)
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OutputTarget | None] = {}
        self._call: Callable[[], dict[str, Tensor]] | None = None
        self._results: dict[str, Tensor] = {}

    def __repr__(self) -> str:
        """The bound arrays."""
        return f"<IOBinding of {self.entry.name}: {', '.join(self._inputs)} -> {', '.join(self._outputs)}>"

    @property
    def _iobinding(self) -> Self:
        """The binding itself, for programs that bypass onnxruntime's Python class."""
        return self

    # ---- inputs ----

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """
        Read an input from an array; raises `InputError` if it does not fit.

        Numbers and lists are copied now.
        """
        found = self.entry.check_input(name, arr_on_cpu)
        # Memory of another library's tensor; calls follow its changes, even if they need a copy.
        is_kept = is_plain(arr_on_cpu) or isinstance(found, DeviceArray)
        self._inputs[name] = found if is_kept else np.asarray(arr_on_cpu)
        self._call = None

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Read an input from a tensor; raises `InputError` if it does not fit."""
        self.bind_cpu_input(name, _of(ortvalue).tensor)

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """
        Read an input from memory at an address, which must hold C-contiguous elements while it is bound.

        Raises `InputError` for a type or shape that does not fit, and `OptionError` for a missing device, or one
        without addresses.
        """
        self.bind_input_on(name, device_of(device_type, device_id), element_type, shape, buffer_ptr)

    def bind_input_on(
        self, name: str, device: Device | None, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """As `bind_input`, from memory of a device or the CPU."""
        self.bind_cpu_input(name, _memory(device, element_type, shape, buffer_ptr))

    def synchronize_inputs(self) -> None:
        """Do nothing: inputs are always ready."""

    def clear_binding_inputs(self) -> None:
        """Unbind all inputs."""
        self._inputs.clear()
        self._call = None

    # ---- outputs ----

    def bind_output(
        self,
        name: str,
        device_type: str = CPU,
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """
        Write an output to memory at an address, or without one to a new tensor for each call.

        Raises `InputError` for a type or shape that does not fit, and `OptionError` for a missing device, or one
        without addresses.
        """
        self.bind_output_on(name, device_of(device_type, device_id), element_type, shape, buffer_ptr)

    def bind_output_on(
        self,
        name: str,
        device: Device | None,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """As `bind_output`, to memory of a device or the CPU."""
        if buffer_ptr is None:
            self._bind(name, device)
            return
        if element_type is None or shape is None:
            raise InputError(f"the buffer of output '{name}' needs a type and a shape", hint="element_type, shape")
        self._bind(name, _memory(device, element_type, shape, buffer_ptr))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Write an output to a tensor; raises `InputError` if it does not fit or is read-only."""
        self._bind(name, _of(ortvalue).tensor)

    def synchronize_outputs(self) -> None:
        """Do nothing: outputs are ready after a call."""

    def clear_binding_outputs(self) -> None:
        """Unbind all outputs."""
        self._outputs.clear()
        self._results = {}
        self._call = None

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last call in binding order, in the memory of the call."""
        return [OrtValue.of_tensor(self._results[name]) for name in self._outputs if name in self._results]

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The outputs of the last call in binding order, copied to new arrays."""
        found = (self._results[name] for name in self._outputs if name in self._results)
        return [value.copy() if isinstance(value, np.ndarray) else value.numpy() for value in found]

    # ---- the call ----

    def call(self) -> None:
        """Call the entry; raises its errors, and `InputError` if an input is missing, or no output is bound."""
        if self._call is None:
            if not self._outputs:
                raise InputError("no output is bound", hint="bind_output('NAME')")
            targets = {name: array for name, array in self._outputs.items() if array is not None}
            self._call = self.entry.bound(self._inputs, targets)
        self._results = self._call()

    def _bind(self, name: str, target: OutputTarget | None) -> None:
        """Write an output to a tensor, or to new ones, of a device or the host."""
        self.entry.check_output(name, target if isinstance(target, np.ndarray | DeviceArray) else None)
        self._outputs[name] = target
        self._call = None


def _of(value: object) -> OrtValue:
    """An `OrtValue`; raises `InputError` for anything else."""
    if not isinstance(value, OrtValue):
        hint = "OrtValue.ortvalue_from_numpy makes one of an array"
        raise InputError(f"a '{type(value).__name__}' is no OrtValue", hint=hint)
    return value


def _memory(device: Device | None, element_type: Any, shape: Sequence[int], address: object) -> Tensor:
    """
    The tensor at an address of a device, or of the CPU.

    Raises `InputError` for an invalid address, element type or shape.
    """
    found, sizes, dtype = whole_number(address), sizes_of(shape), element_dtype(element_type)
    size = math.prod(sizes) * dtype.itemsize
    if found is None or found < 0 or (found == 0 and size) or found + size > sys.maxsize:
        reason = f"{address!r} is no address of {size:,} bytes of memory"
        raise InputError(reason, hint="data_ptr() of a tensor, or array.ctypes.data")
    return array_at(found, dtype, sizes) if device is None else at_address(device, found, dtype, sizes)
