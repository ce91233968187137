"""
Work on requests in short steps, between which the event loop runs other tasks.

Work whose time depends on the size of a request is a generator that yields about every millisecond. A small request is
done before the first yield.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from time import perf_counter
from typing import Any, Generic, TypeVar, cast

import numpy as np

Result = TypeVar("Result")
Steps = Generator[None, None, Result]
"""Work in steps, and its result."""

STINT = 0.002
"""Seconds of work before other tasks run."""

PIECE = 1 << 16
"""Elements or bytes per step, if Python or numpy processes each."""

COPIED = 1 << 20
"""Bytes per step of copying."""


def finished(steps: Steps[Result]) -> Result:
    """Do the work all at once; return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


async def taken(steps: Steps[Result]) -> Result:
    """Do the work step by step, letting other tasks run in between; if it is cancelled, the generator is closed."""
    try:
        next(steps)
    except StopIteration as found:  # The usual case.
        return found.value
    end = perf_counter() + STINT
    try:
        while True:
            try:
                next(steps)
            except StopIteration as found:
                return found.value
            if perf_counter() > end:
                await asyncio.sleep(0)
                end = perf_counter() + STINT
    finally:
        steps.close()


class Begun(Generic[Result]):
    """A started coroutine; unless `is_done` is set, it must be awaited once."""

    def __init__(self, coroutine: Coroutine[Any, Any, Result]) -> None:
        self.is_done = False
        self._coroutine = coroutine
        try:
            self._waited = coroutine.send(None)
        except StopIteration as end:
            self.is_done, self.result = True, cast("Result", end.value)

    def __await__(self) -> Generator[Any, Any, Result]:
        waited = self._waited
        while True:
            try:
                try:
                    sent = yield waited
                except BaseException as error:  # For example cancellation: pass it on.
                    waited = self._coroutine.throw(error)
                else:
                    waited = self._coroutine.send(sent)
            except StopIteration as end:
                return end.value


def copied(target: memoryview, source: memoryview) -> Steps[None]:
    """Copy bytes to memory of the same size."""
    for begin in range(0, len(source), COPIED):
        target[begin : begin + COPIED] = source[begin : begin + COPIED]
        yield


def are_finite(array: np.ndarray) -> Steps[bool]:
    """Whether all elements of a one-dimensional float array are finite."""
    for begin in range(0, len(array), COPIED):
        if not np.isfinite(array[begin : begin + COPIED]).all():
            return False
        if begin + COPIED < len(array):
            yield
    return True
