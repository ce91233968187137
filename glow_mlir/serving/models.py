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
    """The state of a version of a model: `READY`, `LOADING`, `UNLOADING` or `UNAVAILABLE`."""

    name: str
    version: str
    state: str
    reason: str = ""


READY = "READY"
"""The state of a model that accepts requests."""


class Network(Protocol):
    """A version of a model that accepts requests from any thread."""

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
        """The maximum number of rows per call; 0 if requests are not batched."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether it accepts requests."""
        ...

    def data(self) -> Mapping[str, Any]:
        """Name, version, queue length, counts and percentiles as JSON data."""
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
        Queue a request; the future returns all outputs by name, or the named ones.

        `timeout` is in seconds from now. Raises errors that the future may raise as well: `InputError`, an error for a
        full queue, and other kinds of `GlowError`.
        """
        ...


class Models(Protocol):
    """The repository of models of a server."""

    def find(self, name: str, version: str = "") -> Network:
        """A network, in its latest version by default; raises `UnknownModelError`."""
        ...

    def names(self) -> Iterable[ModelState]:
        """All models of the repository, loaded or not."""
        ...

    def load(self, name: str, config: Mapping[str, Any] | None) -> None:
        """Load or reload a model, which may take long; raises `UnknownModelError` and other `GlowError`."""
        ...

    def unload(self, name: str) -> None:
        """Unload a model in all its versions; raises `UnknownModelError`."""
        ...
