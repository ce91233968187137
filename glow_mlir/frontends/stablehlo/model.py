"""A StableHLO program as a model of sessions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.errors import GlowError
from glow_mlir.frontends.builder.inputs import check_dimensions, input_shapes
from glow_mlir.frontends.stablehlo.files import read_stablehlo
from glow_mlir.frontends.stablehlo.free_dimensions import Labels, labels_of
from glow_mlir.frontends.stablehlo.importer import Given, border, entry_of, import_stablehlo, input_names, output_names
from glow_mlir.runtime.cache import ContentIndex
from glow_mlir.runtime.signature import Argument, Signature
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import name_of
from glow_mlir.support.symbols import GivenDimension


@dataclass(frozen=True)
class StablehloModel:
    """
    A program; `glow_mlir.InferenceSession` takes it.

    `source` is its text or bytecode, or the path of a file of these, which must not change while it is used. Arguments
    of its function `entry` with these numbers are `constants`. `resources` are the constants that the text leaves out,
    in its order; `inputs` and `outputs` are names that it does not have itself.
    """

    source: Path | bytes
    constants: Mapping[int, np.ndarray] = field(default_factory=dict[int, np.ndarray])
    entry: str = "main"
    resources: tuple[np.ndarray, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Its file, or what it is."""
        return str(self.source) if isinstance(self.source, Path) else "a StableHLO program"

    @cached_property
    def program(self) -> ModuleOp:
        """Its operations."""
        return read_stablehlo(self.source)

    def told(self, program: ModuleOp) -> None:
        """Take the operations of the text from who has them, so that it need not be read."""
        vars(self)["program"] = program

    def __reduce__(self) -> tuple[type[StablehloModel], tuple[object, ...]]:
        """Read the text again in another process."""
        return StablehloModel, (self.source, self.constants, self.entry, self.resources, self.inputs, self.outputs)

    @cached_property
    def identity(self) -> str:
        """A digest of its text and its constants."""
        digest = hashlib.sha256()
        digest.update(ContentIndex().digest(self.source).encode() if isinstance(self.source, Path) else self.source)
        for number, array in (*sorted(self.constants.items()), *enumerate(self.resources)):
            digest.update(f"{number} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        digest.update(repr((self.entry, sorted(self.constants), self.inputs, self.outputs)).encode())
        return f"stablehlo {digest.hexdigest()}"

    @property
    def _names(self) -> tuple[Sequence[str], Sequence[str]]:
        """The names of arguments and results."""
        function = entry_of(self.program, self.entry)
        return self.inputs or input_names(function), self.outputs or output_names(function)

    def _labels(self) -> dict[str, Labels]:
        """The sizes of arguments that are inputs, where free dimensions are labels."""
        names = self._names[0]
        labels = zip(names, labels_of(entry_of(self.program, self.entry), names), strict=True)
        return {name: own for number, (name, own) in enumerate(labels) if number not in self.constants}

    def free_dimensions(self) -> list[str]:
        """The labels of its free dimensions, see `labels_of`."""
        return list(dict.fromkeys(size for own in self._labels().values() for size in own if isinstance(size, str)))

    def signature(self, dimensions: Mapping[str, GivenDimension]) -> Signature:
        """
        Inputs and outputs; `dimensions` has sizes of free dimensions.

        Raises `OptionError` for those that it does not have.
        """
        function: FuncOp = entry_of(self.program, self.entry)
        names, labels = self._names, self._labels()
        check_dimensions(labels, dimensions, ())
        inputs = zip(names[0], function.function_type.inputs, strict=True)
        outputs = zip(names[1], function.function_type.outputs, strict=True)
        return Signature(
            tuple(
                part.sized(dimensions)
                for name, type_ in inputs
                if name in labels
                for part in _parts(name, type_, labels[name])
            ),
            tuple(part for item in outputs for part in _parts(*item)),
            {},
        )

    def module(
        self,
        dimensions: Mapping[str, GivenDimension],
        by_content: bool = True,
        values: Mapping[str, np.ndarray] | None = None,
        name: str = "main",
    ) -> ModuleOp:
        """
        The module of `glow_high`, whose function is called `name`; inputs in `values` become constants.

        Raises `GlowError` for missing dimensions, a damaged program, and operations that are not supported.
        """
        shapes = input_shapes(self._labels(), dimensions, ())
        given = Given(self.constants, self.resources, *self._names, shapes, values or {})
        try:
            return import_stablehlo(self.program, self.entry, given, name=name)
        except GlowError as error:
            error.file = error.file or (str(self) if isinstance(self.source, Path) else "")
            raise


def _parts(name: str, type_: Attribute, labels: Labels | None = None) -> list[Argument]:
    """The inputs or outputs for an argument or result; free dimensions without a label go by name and axis."""
    found: list[Argument] = []
    for part, own in border(name, type_):
        sizes = labels or [size if size >= 0 else f"{name}.{axis}" for axis, size in enumerate(own.get_shape())]
        found.append(Argument(part, name_of(numpy_dtype(own.element_type)), tuple(sizes)))
    return found
