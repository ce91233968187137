"""The generators of a server: each computes in a thread of its own, for requests of an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from glow_mlir.generation.generation import Generation, Piece
from glow_mlir.generation.generator import Generator
from glow_mlir.serving.errors import UnknownModelError


class RunningGenerator:
    """A generator whose engine runs in a thread."""

    def __init__(self, name: str, generator: Generator) -> None:
        self.name, self.generator = name, generator
        self.created = int(time.time())
        self._over = Event()
        self._thread = Thread(
            target=generator.engine.work, args=(self._over.is_set,), name=f"glow-generate-{name}", daemon=True
        )
        self._thread.start()

    def data(self) -> dict[str, Any]:
        """The name, and the numbers of requests, steps and tokens."""
        engine = self.generator.engine
        found = engine.statistics
        return {
            "name": self.name,
            "running": engine.running,
            "waiting": engine.waiting,
            "steps": found.steps,
            "prompt_tokens": found.prompt_tokens,
            "reused_tokens": found.reused_tokens,
            "chosen_tokens": found.chosen_tokens,
            "drafted_tokens": found.drafted_tokens,
            "accepted_tokens": found.taken_drafts,
        }

    def close(self) -> None:
        """End the thread and all requests, behind the step that is being computed."""
        self._over.set()
        self.generator.engine.cancel_all()
        self._thread.join()
        self.generator.engine.cancel_all()


async def pieces(generation: Generation) -> AsyncGenerator[Piece]:
    """
    The pieces of a generation that is computed in another thread; raises its error.

    A generator that is closed before the end cancels it.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def listener() -> None:
        # A loop that is closed has nobody who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(changed.set)

    generation.request.listener = listener
    try:
        while True:
            is_finished = generation.is_finished
            piece = generation.take()
            if piece is not None:
                yield piece
            if is_finished:
                break
            await changed.wait()
            changed.clear()
    finally:
        if not generation.is_finished:
            generation.close()
    if generation.request.error is not None:
        raise generation.request.error


class Generators:
    """The generators of a server by name."""

    def __init__(self, generators: Mapping[str, Generator]) -> None:
        self._running = {name: RunningGenerator(name, generator) for name, generator in generators.items()}

    def names(self) -> list[str]:
        """Their names."""
        return list(self._running)

    def find(self, name: str) -> RunningGenerator:
        """A generator; raises `UnknownModelError`."""
        if name not in self._running:
            known = ", ".join(self._running) or "none"
            raise UnknownModelError(f"the model '{name}' does not exist", hint=f"models are {known}")
        return self._running[name]

    def data(self) -> list[dict[str, Any]]:
        """The state of each, for JSON: requests that run and wait, and numbers of tokens since the start."""
        return [running.data() for running in self._running.values()]

    def close(self) -> None:
        """End their threads."""
        for running in self._running.values():
            running.close()
