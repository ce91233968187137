"""A module under construction: its functions, the kernels they share, its tables of constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.llvm import GlobalOp, TargetFeaturesAttr
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.types import (
    array,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
)
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np

TRIPLE = "llvm.target_triple"
"""The attribute of a module of the `llvm` dialect that holds the target triple."""

_TABLE_ELEMENTS: dict[str, Attribute] = {
    "float32": f32,
    "float64": f64,
    "int8": i8,
    "uint8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
}


@dataclass(frozen=True)
class Signature:
    """
    The parameter types of a function of the module, and its result type, None if it has none.

    With `takes_scalars`, the last parameter is the address of the instruction's scalar parameters.
    """

    inputs: tuple[Attribute, ...]
    result: Attribute | None
    takes_scalars: bool = False


def processor_of(target: Target) -> Mapping[str, Attribute]:
    """Properties that name the processor of a function of the `llvm` dialect; none if no processor is known."""
    found: dict[str, Attribute] = {}
    if target.cpu:
        found["target_cpu"] = StringAttr(target.cpu)
    if target.features:
        features = [StringAttr(feature) for feature in target.features.split(",")]
        found["target_features"] = TargetFeaturesAttr(ArrayAttr(features))
    return found


@dataclass(frozen=True)
class VectorLength:
    """The length of scalable vectors that code requires: `units`, as `llvm.vscale` counts them, exactly or at least."""

    units: int
    exactly: bool


_SVE_UNIT, _RISCV_UNIT = 128, 64


def vector_length(target: Target) -> VectorLength | None:
    """
    The length of vectors that code for a target requires; `None` where any processor with these features will do.

    LLVM has to know the length of SVE vectors: otherwise it splits wider ones into pairs of NEON vectors. RISC-V
    vectors may be longer than requested; the extension `v` has at least 128 bits.
    """
    if "sve" in target.enabled and target.vector_bits > _SVE_UNIT:
        return VectorLength(target.vector_bits // _SVE_UNIT, True)
    if target.architecture.startswith("riscv") and target.vector_bits > 2 * _RISCV_UNIT:
        return VectorLength(target.vector_bits // _RISCV_UNIT, False)
    return None


class ModuleBuilder:
    """
    Builds one module of the `llvm` dialect for one target.

    With `emulated_by`, kernels choose as for the target, but the code is for that machine, which emulates the target.
    """

    def __init__(self, target: Target, emulated_by: Target | None = None) -> None:
        self.target = target
        self.emulated_by = emulated_by
        self.machine = emulated_by or target
        """The machine that runs the code."""
        self.module = ModuleOp([], {TRIPLE: StringAttr(self.machine.triple)})
        self.processor = processor_of(self.machine)
        """Properties that name the processor of each function."""
        self.signatures: dict[str, Signature] = {}
        self._shared: dict[Hashable, str] = {}
        self._tables: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def shared(self, key: Hashable, build: Callable[[str], None], name: str = "") -> str:
        """
        Return the name of the one function for `key`, built by `build(name)` the first time.

        The function is called `name`, or else after the parts of a tuple `key`, so that profiles and assembly are
        readable; a number is added if the name is taken.
        """
        known = self._shared.get(key)
        if known is None:
            parts = cast("tuple[object, ...]", key if isinstance(key, tuple) else (key,))
            words = name or ".".join(str(part) for part in parts)
            base = self._symbol(words)
            known = base if base not in self.signatures else self._symbol(f"{base}.{len(self._shared)}")
            self._shared[key] = known
            build(known)
        return known

    def free_name(self, name: str) -> str:
        """A name like this one that no function has yet."""
        number, found = 1, self._symbol(name)
        while found in self.signatures:
            number += 1
            found = self._symbol(f"{name}.{number}")
        return found

    def _symbol(self, name: str) -> str:
        """The name as a symbol: PTX does not allow dots."""
        plain = re.sub(r"[^A-Za-z0-9_.]+", "_", name)
        return plain.replace(".", "_") if self.target.family == "nvptx" else plain

    def table(self, values: np.ndarray[Any, Any], align: int = 64) -> str:
        """
        Return the name of a private constant array; equal arrays share one.

        Meant for small tables: large ones cost seconds in LLVM and belong in the constants of the program.
        Raises `KeyError` for an element type that LLVM lacks.
        """
        key = (values.dtype.name, values.shape, values.tobytes())
        if key not in self._tables:
            name = self._tables[key] = f"table.{len(self._tables)}"
            element = _TABLE_ELEMENTS[values.dtype.name]
            flat = values.reshape(-1)
            type_: TensorType[Any] = TensorType(element, [flat.size])
            content = DenseIntOrFPElementsAttr.from_list(type_, flat.tolist())
            op = GlobalOp(
                array(element, flat.size),
                name,
                "private",
                constant=True,
                value=content,
                alignment=align,
                unnamed_addr=2,
            )
            self.module.body.block.add_op(op)
        return self._tables[key]
