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
from glow_mlir.errors import GlowError, OptionError
from glow_mlir.frontends.stablehlo.files import read_stablehlo
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

    def free_dimensions(self) -> list[str]:
        """The labels of its free dimensions: none."""
        return []

    def signature(self, dimensions: Mapping[str, GivenDimension]) -> Signature:
        """Inputs and outputs."""
        function: FuncOp = entry_of(self.program, self.entry)
        names = self._names
        inputs = zip(names[0], function.function_type.inputs, strict=True)
        outputs = zip(names[1], function.function_type.outputs, strict=True)
        return Signature(
            tuple(part for number, item in enumerate(inputs) if number not in self.constants for part in _parts(*item)),
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
        The module of `glow_high`, whose function is called `name`.

        Raises `GlowError` for a damaged program, and for operations that are not supported.
        """
        if dimensions or values:
            raise OptionError("a StableHLO program has no free dimensions", hint="its sizes are those of its text")
        given = Given(self.constants, self.resources, *self._names)
        try:
            return import_stablehlo(self.program, self.entry, given, name=name)
        except GlowError as error:
            error.file = error.file or (str(self) if isinstance(self.source, Path) else "")
            raise


def _parts(name: str, type_: Attribute) -> list[Argument]:
    return [
        Argument(part, name_of(numpy_dtype(tensor_type.element_type)), tuple(tensor_type.get_shape()))
        for part, tensor_type in border(name, type_)
    ]
