"""The interfaces of networks and of the model repository that servers use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

import numpy as np

from glow_mlir.host.sequences import SequenceStep
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ModelState:
    """How a version of a model stands: `state` is `READY`, `LOADING`, `UNLOADING` or `UNAVAILABLE`."""

    name: str
    version: str
    state: str
    reason: str = ""


READY = "READY"
"""The state of a model that takes requests."""


class Network(Protocol):
    """A version of a model that takes requests from any thread."""

    @property
    def name(self) -> str:
        """The name for clients."""
        ...

    @property
    def version(self) -> str:
        """Its version, a number."""
        ...

    @property
    def inputs(self) -> Sequence[Argument]:
        """The inputs, in order."""
        ...

    @property
    def outputs(self) -> Sequence[Argument]:
        """The outputs, in order."""
        ...

    @property
    def max_batch(self) -> int:
        """How many rows it computes at once; 0 where it does not put requests together."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether it takes requests."""
        ...

    def data(self) -> Mapping[str, Any]:
        """Its name and version, how many requests wait, counts and percentiles, as JSON has them."""
        ...

    def submit(
        self,
        inputs: Mapping[str, np.ndarray],
        *,
        outputs: Sequence[str] | None = None,
        priority: int = 0,
        timeout: float | None = None,
        sequence: SequenceStep | None = None,
    ) -> Future[dict[str, np.ndarray]]:
        """
        Put a request into the queue: the outputs by name, or those of `outputs` alone, are the future's result.

        `timeout` is in seconds from now. Raises what the future may raise too: `InputError`, an error for a full
        queue, and other kinds of `GlowError`.
        """
        ...


class Models(Protocol):
    """The repository of models of a server."""

    def find(self, name: str, version: str = "") -> Network:
        """The network of that name, in its latest version unless one is told; raises `UnknownModelError`."""
        ...

    def names(self) -> Iterable[ModelState]:
        """All models that the repository has, loaded or not."""
        ...

    def load(self, name: str, config: Mapping[str, Any] | None) -> None:
        """Load a model, or load it again, which may take long; raises `UnknownModelError` and other `GlowError`."""
        ...

    def unload(self, name: str) -> None:
        """Unload a model in all its versions; raises `UnknownModelError`."""
        ...
