"""
The models of texts of a server: generators, each of which computes in a thread of its own, and embedders.

Requests of an event loop wait for them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import Any, NamedTuple

from glow_mlir.errors import InputError, OptionError
from glow_mlir.generation.embedder import Embedder
from glow_mlir.generation.generation import Generation, Piece
from glow_mlir.generation.generator import Generator
from glow_mlir.serving.errors import UnknownModelError


class RunningGenerator:
    """A generator whose engine runs in a thread."""

    def __init__(self, name: str, generator: Generator) -> None:
        self.name, self.generator = name, generator
        self.created, self.context = int(time.time()), generator.engine.limits.context
        self._over = Event()
        self._thread = Thread(
            target=generator.engine.work, args=(self._over.is_set,), name=f"glow-generate-{name}", daemon=True
        )
        self._thread.start()

    def data(self) -> dict[str, Any]:
        """The name, and the numbers of requests, steps and tokens."""
        engine = self.generator.engine
        requests = {"running": engine.running, "waiting": engine.waiting}
        return {"name": self.name, **requests, **vars(engine.statistics)}

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


class ServedEmbedder:
    """An embedder, which computes in the threads of those who wait."""

    def __init__(self, name: str, embedder: Embedder) -> None:
        self.name, self.embedder = name, embedder
        self.created, self.context = int(time.time()), embedder.context

    def close(self) -> None:
        """Do nothing: it has no thread."""


class Served(NamedTuple):
    """A model, and the name of the adapter that is added to it, or `None`."""

    model: RunningGenerator | ServedEmbedder
    adapter: str | None


class Generators:
    """
    The generators and embedders of a server by name; adapters of a generator are models of their own names.

    Raises `OptionError` if an adapter has the name of another model.
    """

    def __init__(self, models: Mapping[str, Generator | Embedder]) -> None:
        adapters = [name for model in models.values() if isinstance(model, Generator) for name in model.adapters]
        names = Counter([*models, *adapters])
        if twice := [name for name, count in names.items() if count > 1]:
            raise OptionError(f"two models have the name '{twice[0]}'", hint="NAME=PATH gives another one")
        self._running = {name: _served(name, model) for name, model in models.items()}
        self._models = {name: Served(model, None) for name, model in self._running.items()}
        for model in self._running.values():
            if isinstance(model, RunningGenerator):
                self._models |= {name: Served(model, name) for name in model.generator.adapters}

    def names(self) -> list[str]:
        """Their names."""
        return list(self._models)

    def find(self, name: str) -> Served:
        """A model; raises `UnknownModelError`."""
        if name not in self._models:
            known = ", ".join(self._models) or "none"
            raise UnknownModelError(f"the model '{name}' does not exist", hint=f"models are {known}")
        return self._models[name]

    def data(self) -> list[dict[str, Any]]:
        """The state of each, for JSON: requests that run and wait, and numbers of tokens since the start."""
        return [running.data() for running in self._running.values() if isinstance(running, RunningGenerator)]

    def generator(self, name: str) -> tuple[Generator, str | None]:
        """A generator, and the adapter of that name; raises `InputError` for an embedder."""
        model, adapter = self.find(name)
        if isinstance(model, RunningGenerator):
            return model.generator, adapter
        raise InputError(f"the model '{name}' generates no text", hint="it embeds or ranks texts")

    def embedder(self, name: str, *, is_ranker: bool) -> ServedEmbedder:
        """An embedder, or a ranker; raises `InputError` for another model."""
        found, _ = self.find(name)
        if isinstance(found, ServedEmbedder) and found.embedder.is_ranker == is_ranker:
            return found
        raise InputError(f"the model '{name}' {'ranks no texts' if is_ranker else 'makes no embeddings'}")

    def close(self) -> None:
        """End their threads."""
        for running in self._running.values():
            running.close()


def _served(name: str, model: Generator | Embedder) -> RunningGenerator | ServedEmbedder:
    return RunningGenerator(name, model) if isinstance(model, Generator) else ServedEmbedder(name, model)
