"""
The one registry: semantics, importers, lowerings, kernels and backends by the operator they belong to.

Each part of an operator is a function that a decorator registers. The modules with those functions are named by
`glow_mlir.dialects.packages` and imported when the first entry of their part is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar, cast

from xdsl.ir import Operation

from glow_mlir.dialects.packages import load_part
from glow_mlir.errors import PackageError

Entry = TypeVar("Entry", bound=Callable[..., Any])


class Part(Generic[Entry]):
    """The registered functions of one part, by key."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._entries: dict[Any, Entry] = {}
        self._load = cache(lambda: list(load_part(name)))

    def add(self, key: Any, entry: Entry) -> Entry:
        """Register `entry`; raises `PackageError` where the key is taken."""
        taken = self._entries.setdefault(key, entry)
        if taken is not entry:
            places = f"in {taken.__module__} and in {entry.__module__}"
            raise PackageError(f"the {self.name} have two entries for {_described(key)}, {places}")
        return entry

    def all(self) -> dict[Any, Entry]:
        """Every entry, of all packages."""
        self._load()
        return self._entries

    def get(self, key: Any) -> Entry | None:
        """The entry for `key`, or `None`."""
        return self.all().get(key)


def _described(key: Any) -> str:
    """A key as errors call it."""
    if isinstance(key, tuple):
        domain, kind, since = cast("tuple[str, str, int]", key)
        return f"{operator_label(domain, kind)} from opset {since} on"
    return key.name if isinstance(key, type) and issubclass(key, Operation) else f"'{key}'"


def operator_label(domain: str, kind: str) -> str:
    """An ONNX operator as errors and tables call it."""
    return f"{domain}.{kind}" if domain else kind


SEMANTICS: Part[Callable[..., Any]] = Part("semantics")
"""Operator class → function `(op, *operands)` on numpy arrays that returns the result, or a tuple of results."""
IMPORTERS: Part[Callable[..., Any]] = Part("importers")
"""(ONNX domain, operator, first opset version) → function `(node)` that returns the results as values."""
LOWERINGS: Part[Callable[..., Any]] = Part("lowerings")
"""Operator class → function `(op, emit)` that emits simpler operators and returns the replacing values."""
KERNELS: Part[Callable[..., Any]] = Part("kernels")
"""Name of a kernel → the kernel."""
BACKENDS: Part[Callable[..., Any]] = Part("backends")
"""Name of a backend → function without arguments that makes it."""


def semantics(operator: type[Operation]) -> Callable[[Entry], Entry]:
    """
    Register the meaning of `operator`: `(op, *operands) -> array or tuple of arrays`, with numpy arrays.

    An absent optional operand is `None`, a variadic one a list. The derived instruction has the same meaning.
    """
    return lambda function: SEMANTICS.add(operator, function)  # pyright: ignore[reportReturnType]


def onnx_operator(name: str, since: int = 1, domain: str = "") -> Callable[[Entry], Entry]:
    """Register the importer of an ONNX operator from opset version `since` on: `(node) -> values`."""
    return lambda function: IMPORTERS.add((domain, name, since), function)  # pyright: ignore[reportReturnType]


def lowering(operator: type[Operation]) -> Callable[[Entry], Entry]:
    """Register how `operator` is replaced by simpler ones: `(op, emit) -> value or values`, see `Emitter`."""
    return lambda function: LOWERINGS.add(operator, function)  # pyright: ignore[reportReturnType]


def kernel(name: str) -> Callable[[Entry], Entry]:
    """Register a kernel of the machine-code backends under `name`."""
    return lambda function: KERNELS.add(name, function)  # pyright: ignore[reportReturnType]


def backend(name: str) -> Callable[[Entry], Entry]:
    """Register a backend under `name`."""
    return lambda function: BACKENDS.add(name, function)  # pyright: ignore[reportReturnType]
