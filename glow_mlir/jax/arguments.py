"""Which arguments of a function are static, and how arguments by name become arguments by position."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from glow_mlir.errors import InputError, OptionError
from glow_mlir.support.dataclass import dataclass

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def jit_of(function: Any) -> Any:
    """
    The static and donated arguments of a function of `jax.jit`, if it tells them.

    A bound method does not: it passes on what the function says that has one argument more.
    """
    return None if is_bound(function) else getattr(function, "_jit_info", None)


def is_bound(function: Any) -> bool:
    """Whether a function is a bound method."""
    return inspect.ismethod(function)


@dataclass(frozen=True)
class Split:
    """Arguments of a call: those that are arrays, by position and by name, and the static ones."""

    positional: tuple[Any, ...]
    named: Mapping[str, Any]
    static: Mapping[str, Any]
    whole: tuple[tuple[Any, ...], Mapping[str, Any]]
    """All arguments by position and by name, static ones too."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of a function, as far as it tells them, and the names of static ones."""

    signature: inspect.Signature | None
    static: frozenset[str]

    @staticmethod
    def of(function: Callable[..., Any], static: Sequence[str] = (), donated: Sequence[str] = ()) -> Parameters:
        """
        Those of a function; arguments that it is jitted for are static too.

        Raises `OptionError` for names of arguments that it does not have.
        """
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            signature = None
        names = list(signature.parameters) if signature is not None else []
        is_open = signature is None or any(item.kind in _ANY_NUMBER for item in signature.parameters.values())
        for name in (*static, *donated):
            if name not in names and not is_open:
                raise OptionError(f"the function has no argument '{name}'", hint=f"it has {', '.join(names) or 'none'}")
        jitted = jit_of(function)
        numbers: list[str] = [names[number] for number in getattr(jitted, "static_argnums", ()) if number < len(names)]
        return Parameters(signature, frozenset([*static, *getattr(jitted, "static_argnames", ()), *numbers]))

    def split(self, positional: Sequence[Any], named: Mapping[str, Any], leading: int = 0) -> Split:
        """
        The arguments of a call that leaves out the first `leading` ones.

        Arguments by name that the function takes by position are among those. Raises `InputError` for arguments that
        the function does not take.
        """
        signature = self.signature
        if signature is None or not (named or self.static):
            static = {name: value for name, value in named.items() if name in self.static}
            others = {name: value for name, value in named.items() if name not in static}
            return Split(tuple(positional), others, static, (tuple(positional), named))
        try:
            bound = signature.bind_partial(*[None] * leading, *positional, **named)
        except TypeError as error:
            raise InputError(f"the function does not take these arguments: {error}") from None
        names = [name for name, item in signature.parameters.items() if item.kind in _BY_POSITION]
        whole, rest = bound.args[leading:], bound.kwargs
        ahead = dict(zip(names[leading:], whole, strict=False))
        static = {name: value for name, value in {**ahead, **rest}.items() if name in self.static}
        behind = whole[len(names) - leading :]
        by_position = (*[value for name, value in ahead.items() if name not in static], *behind)
        return Split(
            by_position, {name: value for name, value in rest.items() if name not in static}, static, (whole, rest)
        )

    def dynamic(self) -> list[inspect.Parameter]:
        """The parameters that are not static, in order; none where the function does not tell them."""
        found = self.signature.parameters.values() if self.signature is not None else ()
        return [item for item in found if item.name not in self.static]
