"""
Parse long JSON requests in separate processes.

Parsing JSON blocks the interpreter until all objects exist, which take up to 60 times the memory of the text. A
separate process has its own interpreter and limited memory, and returns arrays.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import resource
import signal
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from glow_mlir.errors import ExecutionError, GlowError, InputError
from glow_mlir.runtime.signature import Argument
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import BodyTooLargeError, OverloadError
from glow_mlir.serving.inference_codec import objects_in
from glow_mlir.serving.json_text import is_list, is_object, read_json
from glow_mlir.serving.steps import COPIED, Steps, finished, taken
from glow_mlir.serving.strings import encoded, packed_parts
from glow_mlir.serving.tensors import Bytes, InputReader, reader_of
from glow_mlir.support.child_process import ChildProcess, Children, NoProcessError, read_parts, write_parts
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.portable_errors import portable

DECODER = f"{__name__}:serve"

SHORT = 1 << 15
"""The maximum size of JSON in bytes that is parsed in this process, which takes a few milliseconds."""

AT_ONCE = 2
"""The maximum number of decoder processes."""

FACTOR, BRACKET, QUOTE = 16, 128, 32
"""The maximum memory of JSON as objects and arrays: per byte, and in addition for some bytes."""

NICENESS = 5
"""The niceness of decoders, so that other work comes first."""

CAPACITY = 64 << 20
"""The base memory of a decoder in bytes."""

KEPT = 4 << 20
"""The size of JSON, in bytes, from which its decoder process is ended afterwards, to free its memory."""

SECONDS = 60.0
"""The time limit of a decoder in seconds."""

REST = 1 << 16
"""The maximum size of the JSON of a request without the elements of its inputs, in bytes."""


@dataclass(frozen=True)
class _Decoded:
    """A request without the elements of its inputs; the arrays follow, each with its input's number and dtype."""

    data: Any
    arrays: Sequence[tuple[int, str, int]]


_children = Children(lambda: ChildProcess(DECODER, niceness=NICENESS))


class JsonDecoders:
    """Decode JSON for coroutines of one event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="glow-serve-json")
        self._turns: asyncio.Semaphore | None = None
        self._running: set[asyncio.Future[Any]] = set()

    async def decoded(self, text: Bytes, inputs: Sequence[Argument], most: int, charge: Charge) -> Any:
        """
        Decode JSON of more than `SHORT` bytes for a network with these inputs, whose data becomes one-dimensional
        arrays.

        Raises `InputError` for malformed requests, `BodyTooLargeError` if decoding needs more memory than `most`, and
        `OverloadError`.
        """
        needed = await taken(needed_memory(text))
        if needed > most:
            reason = f"{len(text)} bytes of JSON need up to {needed} bytes of memory, and all requests may use {most}"
            raise BodyTooLargeError(reason)
        if self._turns is None:
            self._turns = asyncio.Semaphore(AT_ONCE)
        async with self._turns:
            await self._charge(charge, needed)
            asked = asyncio.get_running_loop().run_in_executor(self._threads, self._asked, text, tuple(inputs), needed)
            self._running.add(asked)
            try:
                return await asyncio.shield(asked)
            except asyncio.CancelledError:
                with suppress(GlowError):  # A cancelled decoding occupies memory until it ends.
                    await asked
                raise
            finally:
                self._running.discard(asked)
                charge.give_back(needed)

    async def _charge(self, charge: Charge, size: int) -> None:
        """Charge memory, possibly after other decodings release theirs; raises `OverloadError`."""
        while True:
            try:
                charge.add(size)
                return
            except OverloadError:
                if not self._running:
                    raise
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # Let others release theirs.

    def _asked(self, text: Bytes, inputs: Sequence[Argument], memory: int) -> Any:
        """The answer of a decoder process; runs in a thread."""
        try:
            with _children.asked() as child:
                clock = Timer(SECONDS, os.kill, (child.pid, signal.SIGKILL))
                clock.start()
                answer: Any = None
                try:
                    answer = self._answer(child, text, inputs, memory)
                finally:
                    clock.cancel()
                    if answer is None or len(text) >= KEPT:  # The rest of a partial answer may still arrive.
                        child.close()
            if isinstance(answer, Exception):
                raise answer
            return answer
        except NoProcessError as error:
            raise ExecutionError(f"cannot start the process that parses JSON: {error}") from error
        except OSError as error:
            raise BodyTooLargeError(f"the JSON of the request was not parsed: {error}") from error

    def _answer(self, child: ChildProcess, text: Bytes, inputs: Sequence[Argument], memory: int) -> Any:
        """The answer of one decoder, or its error, which is raised; raises `OSError` if the process ends."""
        child.send(pickle.dumps((inputs, memory)), text)
        parts = child.receive(1)
        if not parts:
            raise BodyTooLargeError("parsing the JSON of the request takes too much memory or time")
        found = pickle.loads(parts[0])
        if isinstance(found, Exception):
            return found
        for number, dtype, count in found.arrays:
            array = np.empty(count, np.dtype(dtype))
            child.receive_into(memoryview(array.view(np.uint8).data))
            found.data["inputs"][number]["data"] = array
        return found.data

    def close(self) -> None:
        """Stop decoding."""
        self._threads.shutdown()


def needed_memory(text: Bytes) -> Steps[int]:
    """The maximum memory needed to decode JSON."""
    found = FACTOR * len(text)
    for begin in range(0, len(text), COPIED):
        piece = bytes(text[begin : begin + COPIED])
        found += BRACKET * (piece.count(b"[") + piece.count(b"{")) + QUOTE * piece.count(b'"')
        yield
    return found


def serve(channel: socket.socket) -> None:
    """The main loop of a decoder: parse JSON until the channel closes, or much was parsed."""
    gc.disable()  # JSON has no cycles, and searching for them is slower than parsing.
    while len(parts := read_parts(channel, 2)) == 2:
        (inputs, memory), text = pickle.loads(parts[0]), parts[1]
        _limit_memory(memory + CAPACITY)
        arrays: list[np.ndarray] = []
        try:
            found = _decoded(text, {argument.name: reader_of(argument) for argument in inputs}, arrays)
        except GlowError as error:
            found = portable(error)
        except (MemoryError, SystemError):  # `orjson` raises the latter for lack of memory.
            return
        _limit_memory(None)  # The limit of the next request includes its text.
        write_parts(channel, pickle.dumps(found))
        for array in arrays:
            channel.sendall(array.view(np.uint8).data, socket.MSG_NOSIGNAL)


def _limit_memory(size: int | None) -> None:
    """Limit the additional memory of this process; `None` for no limit."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if size is None:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        return
    status = Path("/proc/self/status").read_text()
    own = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData:"))
    limit = own + size
    resource.setrlimit(resource.RLIMIT_DATA, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def _decoded(text: bytes, readers: dict[str, InputReader], arrays: list[np.ndarray]) -> _Decoded:
    """Decode JSON for a network with these inputs; their elements become arrays. Raises `InputError`."""
    data = read_json(text)
    if not is_object(data):
        raise InputError("the request must be a JSON object")
    positions: list[tuple[int, str, int]] = []
    for number, item in enumerate(objects_in(data, "inputs")):
        reader, shape = readers.get(str(item.get("name"))), item.get("shape")
        if "data" not in item or reader is None or not is_list(shape):
            continue  # Its error is reported when the rest is decoded.
        found = reader.of_list(reader.checked(item.get("datatype"), shape), item.pop("data")).reshape(-1)
        array = _packed(found) if found.dtype == object else found
        arrays.append(array)
        positions.append((number, array.dtype.name if array.dtype.kind in "biuf" else "uint16", len(array)))
    rest = pickle.dumps(data)
    if len(rest) > REST:
        raise InputError(f"the request has more than {REST} bytes besides the elements of its inputs")
    return _Decoded(data, positions)


def _packed(strings: np.ndarray) -> np.ndarray:
    return np.frombuffer(b"".join(finished(packed_parts(encoded(strings)))), np.uint8)
