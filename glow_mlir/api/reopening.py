"""Copies of sessions, in this process or (pickled) in another, from model, options and state."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np

from glow_mlir.api.model_identity import is_ir
from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass


class Reopened(Protocol):
    """A session with state, made from a recipe."""

    def set_state(self, values: Mapping[str, np.ndarray]) -> None:
        """Overwrite the state of those names."""
        ...


Made = TypeVar("Made", bound=Reopened, covariant=True)


@dataclass(frozen=True)
class Recipe(Generic[Made]):
    """The recipe of a session: the function to call, found by name; the model; and its keywords."""

    make: Callable[..., Made]
    model: Any
    keywords: Mapping[str, Any]

    def again(self, state: Mapping[str, np.ndarray]) -> Made:
        """Create another session with the given state."""
        session = self.make(self.model, **self.keywords)
        if state:
            session.set_state(state)
        return session

    def pickled(self, state: Mapping[str, np.ndarray]) -> tuple[Any, ...]:
        """The result of `__reduce__`; raises `OptionError` for a module in memory."""
        if hasattr(self.model, "walk") and is_ir(self.model):
            hint = "write it to a file and create the session from its path"
            raise OptionError("a session of a module in memory cannot be pickled", hint=hint)
        return _again, (self, state)


def kept_model(model: Any) -> Any:
    """The model for copies of its session: an absolute path, or immutable bytes."""
    if isinstance(model, bytearray | memoryview):
        return bytes(cast("bytearray | memoryview", model))
    if isinstance(model, str | os.PathLike) and "\0" not in os.fspath(cast("str | os.PathLike[str]", model)):
        return Path(cast("str | os.PathLike[str]", model)).absolute()
    return cast("Any", model)


def _again(recipe: Recipe[Made], state: Mapping[str, np.ndarray]) -> Made:
    """Create a session from a pickle."""
    return recipe.again(state)
