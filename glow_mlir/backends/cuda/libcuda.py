"""NVIDIA's driver through its C API (CUDA Driver API); only the driver itself has to be installed."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from glow_mlir.backends.cuda.driver import Driver, Grid, Properties
from glow_mlir.errors import ExecutionError, OutOfMemoryError
from glow_mlir.support.dlpack import CUDA

LIBRARY = "libcuda.so.1"

OUT_OF_MEMORY, NOT_READY = 2, 600
"""Results of the driver (CUresult)."""

CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
"""Attributes of a device (CUdevice_attribute)."""

DEVICE_ORDINAL = 9
"""The attribute for the device number of an address (CUpointer_attribute)."""

NON_BLOCKING = 1
"""A stream that does not synchronize with the default stream (CUstream_flags)."""

WITHOUT_TIMING = 2
"""An event without timing, which is cheaper (CUevent_flags)."""

CAPTURE_OF_THREAD = 1
"""Capture does not restrict calls of other threads (CUstreamCaptureMode)."""

ERROR_LOG, ERROR_LOG_BYTES = 5, 6
"""The option for the error log of the driver's assembler (CUjit_option)."""

LOG_BYTES = 4096


class LibCuda(Driver):
    """
    The driver of this machine; `library` provides its functions, by default the system's.

    Raises `OSError` if it is missing, and `ExecutionError` if it cannot be initialized.
    """

    DLPACK = CUDA

    def __init__(self, library: Any = None) -> None:
        self._library = ctypes.CDLL(LIBRARY) if library is None else library
        self._call("cuInit", c_uint(0))

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function; raises `ExecutionError` or `OutOfMemoryError` if it fails."""
        result = int(getattr(self._library, name)(*arguments))
        if result:
            self._fail(name, result)

    def _fail(self, name: str, result: int, reason: str = "") -> None:
        text = c_char_p()
        self._library.cuGetErrorString(c_int(result), byref(text))
        why = reason or (text.value.decode() if text.value else f"error {result}")
        if result == OUT_OF_MEMORY:
            raise OutOfMemoryError(f"the device has too little memory: {why}")
        raise ExecutionError(f"the CUDA driver fails in {name}: {' '.join(why.split())}")

    def _made(self, name: str, kind: Any, *arguments: Any) -> Any:
        """The value that a function writes through its first argument."""
        found = kind()
        self._call(name, byref(found), *arguments)
        return found.value

    def count(self) -> int:
        return int(self._made("cuDeviceGetCount", c_int))

    def properties(self, device: int) -> Properties:
        handle = self._device(device)
        name = (c_char * 256)()
        self._call("cuDeviceGetName", name, c_int(len(name)), handle)
        major, minor = (
            self._made("cuDeviceGetAttribute", c_int, c_int(number), handle)
            for number in (CAPABILITY_MAJOR, CAPABILITY_MINOR)
        )
        nbytes = self._made("cuDeviceTotalMem_v2", c_size_t, handle)
        return Properties(name.value.decode(), 10 * major + minor, nbytes)

    def _device(self, number: int) -> Any:
        return c_int(self._made("cuDeviceGet", c_int, c_int(number)))

    def open(self, device: int) -> Any:
        return c_void_p(self._made("cuDevicePrimaryCtxRetain", c_void_p, self._device(device)))

    def use(self, context: Any) -> None:
        self._call("cuCtxSetCurrent", context)

    def allocate(self, nbytes: int) -> int:
        return int(self._made("cuMemAlloc_v2", c_uint64, c_size_t(nbytes)))

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", c_uint64(address))

    def allocate_pinned(self, nbytes: int) -> int:
        return int(self._made("cuMemHostAlloc", c_void_p, c_size_t(nbytes), c_uint(0)))

    def free_pinned(self, address: int) -> None:
        self._call("cuMemFreeHost", c_void_p(address))

    def stream(self) -> Any:
        return c_void_p(self._made("cuStreamCreate", c_void_p, c_uint(NON_BLOCKING)))

    def device_at(self, address: int) -> int:
        return int(self._made("cuPointerGetAttribute", c_int, c_int(DEVICE_ORDINAL), c_uint64(address)))

    def stream_address(self, stream: Any) -> int:
        return int(stream.value)

    def synchronize(self, stream: int) -> None:
        self._call("cuStreamSynchronize", c_void_p(stream))

    def upload(self, address: int, source: int, nbytes: int, stream: Any) -> None:
        self._call("cuMemcpyHtoDAsync_v2", c_uint64(address), c_void_p(source), c_size_t(nbytes), stream)

    def download(self, host_address: int, address: int, nbytes: int, stream: Any) -> None:
        self._call("cuMemcpyDtoHAsync_v2", c_void_p(host_address), c_uint64(address), c_size_t(nbytes), stream)

    def clear(self, address: int, nbytes: int, stream: Any) -> None:
        self._call("cuMemsetD8Async", c_uint64(address), ctypes.c_ubyte(0), c_size_t(nbytes), stream)

    def record(self, stream: Any) -> Any:
        event = c_void_p(self._made("cuEventCreate", c_void_p, c_uint(WITHOUT_TIMING)))
        self._call("cuEventRecord", event, stream)
        return event

    def forget(self, event: Any) -> None:
        self._call("cuEventDestroy_v2", event)

    def is_done(self, event: Any) -> bool:
        result = int(self._library.cuEventQuery(event))
        if result not in (0, NOT_READY):
            self._fail("cuEventQuery", result)
        return result == 0

    def wait(self, event: Any) -> None:
        self._call("cuEventSynchronize", event)

    def load(self, code: bytes) -> Any:
        module, log = c_void_p(), (c_char * LOG_BYTES)()
        options = (c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        text = c_char_p(code)
        result = int(self._library.cuModuleLoadDataEx(byref(module), text, c_uint(2), options, values))
        if result:
            self._fail("cuModuleLoadDataEx", result, log.value.decode(errors="replace"))
        return module

    def function(self, module: Any, name: str) -> Any:
        return c_void_p(self._made("cuModuleGetFunction", c_void_p, module, c_char_p(name.encode())))

    def launch(self, function: Any, grid: Grid, values: Sequence[int], stream: Any) -> None:
        held = [c_uint64(value) for value in values]
        parameters = (c_void_p * len(held))(*map(ctypes.addressof, held))
        sizes = [c_uint(size) for size in (grid.blocks, 1, 1, grid.threads, 1, 1)]
        self._call("cuLaunchKernel", function, *sizes, c_uint(0), stream, parameters, None)

    def capture(self, stream: Any) -> None:
        self._call("cuStreamBeginCapture_v2", stream, c_int(CAPTURE_OF_THREAD))

    def captured(self, stream: Any) -> Any:
        graph = c_void_p()
        self._call("cuStreamEndCapture", stream, byref(graph))
        found = self._made("cuGraphInstantiateWithFlags", c_void_p, graph, c_uint64(0))
        self._call("cuGraphDestroy", graph)
        return c_void_p(found)

    def launch_graph(self, graph: Any, stream: Any) -> None:
        self._call("cuGraphLaunch", graph, stream)

    def forget_graph(self, graph: Any) -> None:
        self._call("cuGraphExecDestroy", graph)
