"""
The registry: semantics, importers, exporters, lowerings and gradients by operator, backends by name, kernels and packed
forms by backend.

Each entry is a function or class registered by a decorator. `glow_mlir.dialects.packages` names the modules with
entries; they are imported when the first entry of their part is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Generic, TypeVar, cast

from xdsl.ir import Operation

from glow_mlir.constants.packed_layout import PackedLayout
from glow_mlir.dialects.packages import part_modules
from glow_mlir.errors import PackageError

Entry = TypeVar("Entry", bound=Callable[..., Any])

Numbers = Mapping[str, int]
"""The parameters of a packed form in `packing` of an instruction."""

LayoutMaker = Callable[[tuple[int, ...], Numbers], PackedLayout]
"""Returns the layout of an operand of a shape with those parameters."""


class Part(Generic[Entry]):
    """The registered functions of one part, by key; for one backend if each has a table."""

    def __init__(self, part: str, backend: str = "") -> None:
        self.name = f"{part.replace('_', ' ')} of '{backend}'" if backend else part
        self._entries: dict[Any, Entry] = {}
        self._modules = cache(lambda: tuple(part_modules(part, backend)))
        self._imported = 0
        """The number of modules that are imported, in their order."""

    def add(self, key: Any, entry: Entry) -> Entry:
        """Register `entry`; raises `PackageError` if the key is taken."""
        taken = self._entries.setdefault(key, entry)
        if taken is not entry:
            positions = f"in {taken.__module__} and in {entry.__module__}"
            raise PackageError(f"the {self.name} have two entries for {_described(key)}, {positions}")
        return entry

    def all(self) -> dict[Any, Entry]:
        """Every entry, of all packages."""
        for _ in self._import_rest():
            pass
        return self._entries

    def get(self, key: Any) -> Entry | None:
        """The entry for `key`, or `None`."""
        return self.all().get(key)

    def first(self, key: Any) -> Entry | None:
        """As `get`, but modules behind the one with the entry are not imported."""
        if key not in self._entries:
            for _ in self._import_rest():
                if key in self._entries:
                    break
        return self._entries.get(key)

    def _import_rest(self) -> Iterator[None]:
        """Import the modules that are not imported yet, one for each step; several threads may do so."""
        modules = self._modules()
        for number in range(self._imported, len(modules)):
            modules[number]()
            self._imported = max(self._imported, number + 1)
            yield


def _described(key: Any) -> str:
    """A key as errors print it."""
    if isinstance(key, tuple):
        domain, kind, since = cast("tuple[str, str, int]", key)
        return f"{operator_label(domain, kind)} from opset {since} on"
    return key.name if isinstance(key, type) and issubclass(key, Operation) else f"'{key}'"


def operator_label(domain: str, kind: str) -> str:
    """An ONNX operator as errors and tables print it."""
    return f"{domain}.{kind}" if domain else kind


SEMANTICS: Part[Callable[..., Any]] = Part("semantics")
"""Operator class → function `(op, *operands)` on numpy arrays that returns the result, or a tuple of results."""
IMPORTERS: Part[Callable[..., Any]] = Part("importers")
"""(ONNX domain, operator, first opset version) → function `(node)` that returns the results as values."""
EXPORTERS: Part[Callable[..., Any]] = Part("exporters")
"""Operator class → function `(writer, op)` that writes ONNX nodes and returns the name of the result, or of each."""
LOWERINGS: Part[Callable[..., Any]] = Part("lowerings")
"""Operator class → function `(op, emit)` that emits simpler operators and returns the replacing values."""
GRADIENTS: Part[Callable[..., Any]] = Part("gradients")
"""Operator class → function `(op, cotangent, emit)` that says how to emit the cotangents of the operands."""
BACKENDS: Part[Callable[..., Any]] = Part("backends")
"""Name of a backend → function without arguments that makes it."""


@cache
def kernels_of(backend: str) -> Part[Callable[..., Any]]:
    """The kernel table of a backend: name of a kernel → factory without arguments."""
    return Part("kernels", backend)


@cache
def packed_forms_of(backend: str) -> Part[LayoutMaker]:
    """The packed forms of a backend's kernels: name of a form → its layout."""
    return Part("packed_forms", backend)


def semantics(operator: type[Operation]) -> Callable[[Entry], Entry]:
    """
    Register the meaning of `operator`: `(op, *operands) -> array or tuple of arrays`, with numpy arrays.

    An absent optional operand is `None`, a variadic one a list. The derived instruction has the same meaning.
    """
    return lambda function: SEMANTICS.add(operator, function)  # pyright: ignore[reportReturnType]


def onnx_operator(name: str, since: int = 1, domain: str = "") -> Callable[[Entry], Entry]:
    """Register the importer of an ONNX operator from opset version `since` on: `(node) -> values`."""
    return lambda function: IMPORTERS.add((domain, name, since), function)  # pyright: ignore[reportReturnType]


def onnx_export(operator: type[Operation]) -> Callable[[Entry], Entry]:
    """Register how `operator` is written as ONNX nodes: `(writer, op) -> name or names`, see `Writer`."""
    return lambda function: EXPORTERS.add(operator, function)  # pyright: ignore[reportReturnType]


def lowering(operator: type[Operation]) -> Callable[[Entry], Entry]:
    """Register how `operator` is replaced by simpler ones: `(op, emit) -> value or values`, see `Emitter`."""
    return lambda function: LOWERINGS.add(operator, function)  # pyright: ignore[reportReturnType]


def gradient(operator: type[Operation]) -> Callable[[Entry], Entry]:
    """
    Register the gradient of `operator`: `(op, cotangent, emit) -> {operand: function}`, see `Contributions`.

    An operator with several results gets a cotangent for each, `None` if nothing depends on it. One with regions has
    the signature `(op, cotangents, wanted, emit) -> {value: cotangent}`, where `wanted` selects among the values it
    reads.
    """
    return lambda function: GRADIENTS.add(operator, function)  # pyright: ignore[reportReturnType]


def kernel(name: str, *, backend: str) -> Callable[[Entry], Entry]:
    """Register a kernel of a backend under `name`."""
    return lambda function: kernels_of(backend).add(name, function)  # pyright: ignore[reportReturnType]


def packed_form(name: str, *, backend: str) -> Callable[[Entry], Entry]:
    """
    Register a packed form of operands of a backend's kernels: `(shape, numbers) -> layout`.

    `shape` is that of the plain operand, `numbers` are the parameters in `packing` of an instruction.
    """
    return lambda function: packed_forms_of(backend).add(name, function)  # pyright: ignore[reportReturnType]


def backend(name: str) -> Callable[[Entry], Entry]:
    """Register a backend under `name`."""
    return lambda function: BACKENDS.add(name, function)  # pyright: ignore[reportReturnType]
