"""
Work on requests in short steps, between which the event loop looks after others.

What takes time with the size of a request is a generator that yields once in a while, after a millisecond or so. A
small request is through before the first of them.
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
"""Seconds of work after which others have their turn."""

PIECE = 1 << 16
"""Elements, or bytes, of a step in which Python or numpy works on each of them."""

COPIED = 1 << 20
"""Bytes of a step that copies."""


def finished(steps: Steps[Result]) -> Result:
    """The result of work, all at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


async def taken(steps: Steps[Result]) -> Result:
    """The result of work, step by step, with turns for other tasks; a wait is closed if the work is cancelled."""
    try:
        next(steps)
    except StopIteration as found:  # As of most requests.
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
    """A coroutine that was begun; what it still waits for, if `is_done` is not set, is awaited once."""

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
                except BaseException as error:  # Such as that it is cancelled: it is told.
                    waited = self._coroutine.throw(error)
                else:
                    waited = self._coroutine.send(sent)
            except StopIteration as end:
                return end.value


def copied(target: memoryview, source: memoryview) -> Steps[None]:
    """Copy bytes into a place of the same size."""
    for begin in range(0, len(source), COPIED):
        target[begin : begin + COPIED] = source[begin : begin + COPIED]
        yield


def are_finite(array: np.ndarray) -> Steps[bool]:
    """Whether an array of floats, of one axis, has finite ones alone."""
    for begin in range(0, len(array), COPIED):
        if not np.isfinite(array[begin : begin + COPIED]).all():
            return False
        if begin + COPIED < len(array):
            yield
    return True
