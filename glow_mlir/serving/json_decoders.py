"""
JSON of requests that is long, read by processes of their own.

Who parses JSON holds the interpreter until all of it is there as objects, which take 30 times as much memory. Another
process has an interpreter and memory of its own, of which there is a limit, and sends back arrays.
"""

from __future__ import annotations

import asyncio
import pickle
import resource
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.errors import ExecutionError, GlowError, InputError
from glow_mlir.runtime.signature import Argument
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import BodyTooLargeError
from glow_mlir.serving.inference_codec import objects_in
from glow_mlir.serving.json_text import is_list, is_object, read_json
from glow_mlir.serving.steps import finished
from glow_mlir.serving.strings import encoded, packed_parts
from glow_mlir.serving.tensors import Bytes, InputReader, reader_of
from glow_mlir.support.child_process import ChildProcess, Children, NoProcessError, read_parts, write_parts
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.portable_errors import portable

DECODER = f"{__name__}:serve"

SHORT = 1 << 15
"""Bytes of JSON up to which it is read where it comes, which takes a few milliseconds."""

AT_ONCE = 2
"""Decoders at once."""

FACTOR = 32
"""How many times as much memory as its text JSON takes at most, as objects and as arrays."""

ROOM = 64 << 20
"""Bytes that a decoder takes besides."""

KEPT = 4 << 20
"""Bytes of JSON from which on a decoder ends behind it, which gives all memory back."""

REST = 1 << 16
"""Bytes of what a request says beside the elements of its inputs."""


@dataclass(frozen=True)
class _Decoded:
    """A request without the elements of its inputs, and where these follow: the number of the input, and its dtype."""

    data: Any
    arrays: Sequence[tuple[int, str, int]]


_children = Children(lambda: ChildProcess(DECODER))


class JsonDecoders:
    """Reads JSON for the coroutines of one event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="glow-serve-json")
        self._turns: asyncio.Semaphore | None = None

    async def decoded(self, text: Bytes, inputs: Sequence[Argument], most: int, charge: Charge) -> Any:
        """
        What the JSON of a request says, in which data of inputs are arrays of one axis, for a network with those.

        Raises `InputError` for whatever is wrong with it, `BodyTooLargeError` where that takes more memory than `most`,
        and `OverloadError`.
        """
        if len(text) <= SHORT:
            return read_json(text)
        needed = len(text) * FACTOR
        if needed > most:
            reason = f"{len(text)} bytes of JSON take up to {needed} in memory, more than the {most} of all requests"
            raise BodyTooLargeError(reason)
        if self._turns is None:
            self._turns = asyncio.Semaphore(AT_ONCE)
        async with self._turns:
            charge.add(needed)
            asked = asyncio.get_running_loop().run_in_executor(self._threads, self._asked, text, tuple(inputs))
            try:
                return await asyncio.shield(asked)
            except asyncio.CancelledError:
                with suppress(GlowError):  # What is read for nobody takes memory until its end.
                    await asked
                raise
            finally:
                charge.give_back(needed)

    def _asked(self, text: Bytes, inputs: Sequence[Argument]) -> Any:
        """What a process answers; in a thread."""
        try:
            with _children.asked() as child:
                child.send(pickle.dumps(inputs), text)
                parts = child.receive(1)
                if not parts:
                    child.close()
                    raise BodyTooLargeError("the JSON of the request takes too much memory to be read")
                found = pickle.loads(parts[0])
                if isinstance(found, Exception):
                    raise found
                for number, dtype, count in found.arrays:
                    array = np.empty(count, np.dtype(dtype))
                    child.receive_into(memoryview(array.view(np.uint8).data))
                    found.data["inputs"][number]["data"] = array
                return found.data
        except NoProcessError as error:
            raise ExecutionError(f"the system starts no process that reads JSON: {error}") from error
        except OSError as error:
            raise BodyTooLargeError(f"the JSON of the request was not read: {error}") from error

    def close(self) -> None:
        """Read nothing any more."""
        self._threads.shutdown()


def serve(channel: socket.socket) -> None:
    """What a decoder does: read JSON until nobody asks any more, or much was read."""
    while len(parts := read_parts(channel, 2)) == 2:
        inputs, text = parts
        _limit_memory(len(text) * FACTOR + ROOM)
        arrays: list[np.ndarray] = []
        try:
            found = _decoded(text, {argument.name: reader_of(argument) for argument in pickle.loads(inputs)}, arrays)
        except GlowError as error:
            found = portable(error)
        except (MemoryError, SystemError):  # `orjson` tells of no memory by the second.
            return
        write_parts(channel, pickle.dumps(found))
        for array in arrays:
            channel.sendall(array.view(np.uint8).data, socket.MSG_NOSIGNAL)
        if len(text) >= KEPT:
            return


def _limit_memory(size: int) -> None:
    """Let this process take so many bytes more than it has now."""
    status = Path("/proc/self/status").read_text()
    own = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData:"))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = own + size
    resource.setrlimit(resource.RLIMIT_DATA, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def _decoded(text: bytes, readers: dict[str, InputReader], arrays: list[np.ndarray]) -> _Decoded:
    """What JSON says of a network with those inputs, whose elements become arrays; raises `InputError`."""
    data = read_json(text)
    if not is_object(data):
        raise InputError("the request is no JSON object")
    places: list[tuple[int, str, int]] = []
    for number, item in enumerate(objects_in(data, "inputs")):
        reader, shape = readers.get(str(item.get("name"))), item.get("shape")
        if "data" not in item or reader is None or not is_list(shape):
            continue  # What is wrong with it is told of where the rest is read.
        found = reader.of_list(reader.checked(item.get("datatype"), shape), item.pop("data")).reshape(-1)
        array = _packed(found) if found.dtype == object else found
        arrays.append(array)
        places.append((number, array.dtype.name if array.dtype.kind in "biuf" else "uint16", len(array)))
    rest = pickle.dumps(data)
    if len(rest) > REST:
        raise InputError(f"the request says more than {REST} bytes beside the elements of its inputs")
    return _Decoded(data, places)


def _packed(strings: np.ndarray) -> np.ndarray:
    return np.frombuffer(b"".join(finished(packed_parts(encoded(strings)))), np.uint8)
