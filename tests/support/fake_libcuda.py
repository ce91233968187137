"""A `libcuda` that is not there: what the driver's C API is called with, done by the emulation."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Mapping
from itertools import count
from typing import Any

from glow_mlir.backends.cuda.driver import Grid
from glow_mlir.backends.cuda.emulation import EmulatedDriver, EmulatedStream
from glow_mlir.errors import OutOfMemoryError

INVALID_IMAGE, OUT_OF_MEMORY, NOT_FOUND, ILLEGAL_STATE = 200, 2, 500, 401


def _put(pointer: Any, value: int) -> int:
    """Write a number to where the driver's caller wants it; gives the result of success."""
    pointer._obj.value = value
    return 0


class FakeLibCuda:
    """
    The functions of the driver for one device, with as many bytes as there is `room`.

    Modules are known by their PTX: `modules` has what the emulation runs instead. Everything made is a number.
    """

    def __init__(self, modules: Mapping[bytes, bytes], room: int = 1 << 30) -> None:
        self.calls: Counter[str] = Counter()
        self.launches: list[tuple[str, Grid]] = []
        self.modules = modules
        self._driver = EmulatedDriver()
        self._made: dict[int, Any] = {}
        self._numbers = count(1)
        self._room = room
        self._sizes: dict[int, int] = {}

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("cu"):
            self.calls[name] += 1
        return super().__getattribute__(name)

    def _keep(self, pointer: Any, made: Any) -> int:
        number = next(self._numbers)
        self._made[number] = made
        return _put(pointer, number)

    def _of(self, handle: Any) -> Any:
        return self._made[handle.value]

    def cuInit(self, flags: Any) -> int:
        return 0

    def cuGetErrorString(self, result: Any, text: Any) -> int:
        text._obj.value = {OUT_OF_MEMORY: b"out of memory", NOT_FOUND: b"named symbol not found"}.get(result.value)
        return 0

    def cuDeviceGetCount(self, number: Any) -> int:
        return _put(number, 1)

    def cuDeviceGet(self, device: Any, number: Any) -> int:
        return _put(device, number.value)

    def cuDeviceGetName(self, name: Any, size: Any, device: Any) -> int:
        name.value = b"Fake A100"
        return 0

    def cuDeviceGetAttribute(self, value: Any, number: Any, device: Any) -> int:
        return _put(value, {75: 8, 76: 0}[number.value])

    def cuDeviceTotalMem_v2(self, size: Any, device: Any) -> int:
        return _put(size, self._room)

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:
        return _put(context, 77)

    def cuCtxSetCurrent(self, context: Any) -> int:
        return 0 if context.value == 77 else 201

    def cuMemAlloc_v2(self, pointer: Any, size: Any) -> int:
        if sum(self._sizes.values()) + size.value > self._room:
            return OUT_OF_MEMORY
        try:
            address = self._driver.allocate(size.value)
        except OutOfMemoryError:
            return OUT_OF_MEMORY
        self._sizes[address] = size.value
        return _put(pointer, address)

    def cuMemFree_v2(self, pointer: Any) -> int:
        del self._sizes[pointer.value]
        self._driver.free(pointer.value)
        return 0

    def cuMemHostAlloc(self, pointer: Any, size: Any, flags: Any) -> int:
        return _put(pointer, self._driver.allocate(size.value))

    def cuMemFreeHost(self, pointer: Any) -> int:
        self._driver.free(pointer.value)
        return 0

    def cuPointerGetAttribute(self, number: Any, attribute: Any, address: Any) -> int:
        assert attribute.value == 9
        return _put(number, 0)

    def cuStreamSynchronize(self, stream: Any) -> int:
        return 0 if stream.value in self._made else 400

    def cuStreamCreate(self, stream: Any, flags: Any) -> int:
        return self._keep(stream, EmulatedStream())

    def cuMemcpyHtoDAsync_v2(self, place: Any, source: Any, size: Any, stream: Any) -> int:
        self._driver.upload(place.value, source.value, size.value, self._of(stream))
        return 0

    def cuMemcpyDtoHAsync_v2(self, place: Any, source: Any, size: Any, stream: Any) -> int:
        self._driver.download(place.value, source.value, size.value, self._of(stream))
        return 0

    def cuMemsetD8Async(self, place: Any, value: Any, size: Any, stream: Any) -> int:
        assert value.value == 0
        self._driver.clear(place.value, size.value, self._of(stream))
        return 0

    def cuEventCreate(self, event: Any, flags: Any) -> int:
        return self._keep(event, None)

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        assert self._of(event) is None
        return 0

    def cuEventQuery(self, event: Any) -> int:
        return 0

    def cuEventSynchronize(self, event: Any) -> int:
        return 0

    def cuEventDestroy_v2(self, event: Any) -> int:
        del self._made[event.value]
        return 0

    def cuModuleLoadDataEx(self, module: Any, image: Any, number: Any, options: Any, values: Any) -> int:
        code = self.modules.get(image.value)
        if code is None:
            ctypes.memmove(values[0], b"ptxas fatal: unknown\0", 21)
            return INVALID_IMAGE
        return self._keep(module, self._driver.load(code))

    def cuModuleGetFunction(self, function: Any, module: Any, name: Any) -> int:
        text = name.value.decode()
        try:
            self._of(module).library.address(text)
        except KeyError:
            return NOT_FOUND
        return self._keep(function, self._driver.function(self._of(module), text))

    def cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        *sizes, shared, stream, parameters, extra = rest
        blocks, _, _, threads, _, _ = (size.value for size in sizes)
        assert shared.value == 0
        assert extra is None
        values = [ctypes.c_uint64.from_address(pointer).value for pointer in parameters]
        kept = self._of(function)
        self.launches.append((kept.name, Grid(blocks, threads)))
        self._driver.launch(kept, Grid(blocks, threads), values, self._of(stream))
        return 0

    def cuStreamBeginCapture_v2(self, stream: Any, mode: Any) -> int:
        if self._of(stream).kept is not None:
            return ILLEGAL_STATE
        self._driver.capture(self._of(stream))
        return 0

    def cuStreamEndCapture(self, stream: Any, graph: Any) -> int:
        return self._keep(graph, self._driver.captured(self._of(stream)))

    def cuGraphInstantiateWithFlags(self, executable: Any, graph: Any, flags: Any) -> int:
        return self._keep(executable, self._of(graph))

    def cuGraphDestroy(self, graph: Any) -> int:
        del self._made[graph.value]
        return 0

    def cuGraphLaunch(self, graph: Any, stream: Any) -> int:
        self._driver.launch_graph(self._of(graph), self._of(stream))
        return 0

    def cuGraphExecDestroy(self, graph: Any) -> int:
        del self._made[graph.value]
        return 0
