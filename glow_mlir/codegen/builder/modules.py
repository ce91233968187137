"""A module under construction: its functions, the kernels they share, its tables of constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.llvm import (
    CallingConventionAttr,
    CallOp,
    FuncOp,
    GlobalOp,
    LinkageAttr,
    LLVMFunctionType,
    TailCallKind,
    TailCallKindAttr,
)
from xdsl.ir import Attribute, Block, Region

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import (
    NO_FAST_MATH,
    array,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    index_type,
    integer_of_width,
)
from glow_mlir.codegen.builder.value import Value
from glow_mlir.dialects.target import Target

if TYPE_CHECKING:
    import numpy as np

PASSES_ATTRIBUTE = "glow-passes"

TRIPLE = "llvm.target_triple"
"""The attribute of a module of the `llvm` dialect that says for what machine it is."""

_TABLE_ELEMENTS: dict[str, Attribute] = {
    "float32": f32,
    "float64": f64,
    "int8": i8,
    "uint8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
}
_NO_BUNDLES = DenseArrayBase.from_list(i32, [])
_C = CallingConventionAttr("ccc")
_NO_TAIL = TailCallKindAttr(TailCallKind.NONE)


@dataclass(frozen=True)
class Param:
    """A parameter and what the caller promises of a pointer; `align` in bytes, 0 for no promise."""

    type: Attribute
    noalias: bool = False
    readonly: bool = False
    align: int = 0

    def attributes(self) -> DictionaryAttr:
        """Return the promises as the dialect writes them."""
        promises: dict[str, Attribute] = {}
        if self.noalias:
            promises["llvm.noalias"] = UnitAttr()
        if self.readonly:
            promises["llvm.readonly"] = UnitAttr()
        if self.align:
            promises["llvm.align"] = IntegerAttr(self.align, i64)
        return DictionaryAttr(promises)


@dataclass(frozen=True)
class Signature:
    """The parameter types and the result type, None for none, of a function of the module."""

    inputs: tuple[Attribute, ...]
    result: Attribute | None


class ModuleBuilder:
    """Builds one module of the `llvm` dialect for one target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.module = ModuleOp([], {TRIPLE: StringAttr(target.triple)})
        self.signatures: dict[str, Signature] = {}
        self._shared: dict[Hashable, str] = {}
        self._tables: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    @contextmanager
    def function(
        self,
        name: str,
        parameters: Sequence[Attribute | Param],
        result: Attribute | None = None,
        *,
        internal: bool = False,
        inline: bool | None = None,
        cold: bool = False,
        passes: str = "",
    ) -> Generator[tuple[Builder, list[Value]]]:
        """
        Build the function `name`; yields its builder and its arguments.

        `internal` hides it from other modules; `inline` False keeps it out of its callers; `cold` says that calls
        are rare, so that LLVM moves them out of the way of what is not. `passes` names the list of LLVM passes to
        run over it (`codegen.llvm.objects.PASS_LISTS`), none by default. Raises `ValueError` when the name is
        taken.
        """
        if name in self.signatures:
            raise ValueError(f"the module has a function '{name}' already")
        params = [self._parameter(param) for param in parameters]
        self.signatures[name] = Signature(tuple(param.type for param in params), result)
        entry = Block(arg_types=[param.type for param in params])
        region = Region(entry)
        builder = Builder(self, self.target, region, entry)
        yield builder, [Value(builder, argument) for argument in entry.args]
        builder.finish()
        further: list[Attribute] = [StringAttr("cold")] if cold else []
        if passes:
            further.append(ArrayAttr([StringAttr(PASSES_ATTRIBUTE), StringAttr(passes)]))
        self.module.body.block.add_op(self._function_op(name, params, result, region, internal, inline, further))

    def _parameter(self, given: Attribute | Param) -> Param:
        """A parameter whose type is of the target."""
        param = given if isinstance(given, Param) else Param(given)
        return replace(param, type=integer_of_width(self.target.pointer_bits)) if param.type is index_type else param

    def _function_op(
        self,
        name: str,
        params: Sequence[Param],
        result: Attribute | None,
        region: Region,
        internal: bool,
        inline: bool | None,
        further: Sequence[Attribute],
    ) -> FuncOp:
        properties: dict[str, Attribute | None] = {"no_unwind": UnitAttr()}
        if any(param.attributes().data for param in params):
            properties["arg_attrs"] = ArrayAttr([param.attributes() for param in params])
        if inline is False:
            properties["no_inline"] = UnitAttr()
        if further:
            properties["passthrough"] = ArrayAttr(further)
        return FuncOp(
            name,
            LLVMFunctionType([param.type for param in params], result),
            linkage=LinkageAttr("internal" if internal else "external"),
            body=region,
            other_props=properties,
        )

    def shared(self, key: Hashable, build: Callable[[str], None], name: str = "") -> str:
        """
        Return the name of the one function for `key`, built by `build(name)` the first time.

        The function is called `name`, or else by the parts of a tuple `key`, so that profiles and assembly can be
        read; a number is added where that is taken.
        """
        known = self._shared.get(key)
        if known is None:
            parts = cast("tuple[object, ...]", key if isinstance(key, tuple) else (key,))
            words = name or ".".join(str(part) for part in parts)
            base = re.sub(r"[^A-Za-z0-9_.]+", "_", words)
            known = base if base not in self.signatures else f"{base}.{len(self._shared)}"
            self._shared[key] = known
            build(known)
        return known

    def table(self, values: np.ndarray[Any, Any], align: int = 64) -> str:
        """
        Return the name of a private constant array; equal arrays share one.

        Meant for small tables: large ones cost seconds in LLVM and belong in the constants of the program.
        Raises `KeyError` for an element type without counterpart.
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

    def emit_call(self, builder: Builder, name: str, operands: Sequence[Value], signature: Signature) -> Value | None:
        """Append a call to `builder`; what `Builder.call` does once it knows the operands."""
        op = CallOp.create(
            operands=[operand.ssa for operand in operands],
            result_types=[] if signature.result is None else [signature.result],
            properties={
                "callee": SymbolRefAttr(name),
                "CConv": _C,
                "TailCallKind": _NO_TAIL,
                "op_bundle_sizes": _NO_BUNDLES,
                "operandSegmentSizes": DenseArrayBase.from_list(i32, [len(operands), 0]),
                **NO_FAST_MATH,
            },
        )
        builder.block.add_op(op)
        return Value(builder, op.results[0]) if op.results else None
