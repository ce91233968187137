"""Functions of a module under construction: the promises of each, and the builder of its body."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.dialects.llvm import FuncOp, LinkageAttr, LLVMFunctionType
from xdsl.ir import Attribute, Block, Region, SSAValue

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.modules import ModuleBuilder, Signature, vector_length
from glow_mlir.codegen.builder.types import i64, index_type, integer_of_width, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import MAX_KEPT

PASSES_ATTRIBUTE = "glow-passes"


@dataclass(frozen=True)
class Param:
    """A parameter, and the caller's promises about a pointer; `align` is in bytes, 0 for no promise."""

    type: Attribute
    noalias: bool = False
    readonly: bool = False
    align: int = 0

    def attributes(self) -> DictionaryAttr:
        """Return the promises as the dialect writes them."""
        return _promises(self.noalias, self.readonly, self.align)


@cache
def _promises(noalias: bool, readonly: bool, align: int) -> DictionaryAttr:
    promises: dict[str, Attribute] = {}
    if noalias:
        promises["llvm.noalias"] = UnitAttr()
    if readonly:
        promises["llvm.readonly"] = UnitAttr()
    if align:
        promises["llvm.align"] = IntegerAttr(align, i64)
    return DictionaryAttr(promises)


@contextmanager
def define_function(
    module: ModuleBuilder,
    name: str,
    parameters: Sequence[Attribute | Param],
    result: Attribute | None = None,
    *,
    internal: bool = False,
    inline: bool | None = None,
    cold: bool = False,
    passes: str = "",
    takes_scalars: bool = False,
    launch: Mapping[str, str] | None = None,
    names: Sequence[str] = (),
) -> Generator[tuple[Builder, list[Value]]]:
    """
    Build the function `name`; yields its builder and its arguments.

    `internal` hides it from other modules; `inline` False keeps it out of its callers; `cold` says that calls
    are rare, so that LLVM moves them out of the hot path. `passes` names the list of LLVM passes to run over it
    (`codegen.llvm.objects.PASS_LISTS`), none by default. With `takes_scalars`, it has the scalar parameters of the
    instruction that calls it, which `Builder.scalar` returns; calls pass them on. With `launch`, the host of a device
    launches it, and it has these string attributes. `names` are the names of its parameters in text. Raises
    `ValueError` if the name is taken.
    """
    if name in module.signatures:
        raise ValueError(f"the module has a function '{name}' already")
    params = [_parameter(module, param) for param in parameters]
    module.signatures[name] = Signature(tuple(param.type for param in params), result, takes_scalars)
    if takes_scalars:
        params.append(Param(ptr, readonly=True))
    entry = Block(arg_types=[param.type for param in params])
    for argument, called in zip(entry.args, names, strict=False):
        argument.name_hint = called if SSAValue.is_valid_name(called) else None
    builder = Builder(module, entry)
    arguments = [Value(builder, argument) for argument in entry.args]
    if takes_scalars:
        builder.scalars = arguments.pop()
    yield builder, arguments
    builder.finish()
    further: list[Attribute] = [StringAttr("cold")] if cold else []
    if module.target.policy.optimize == "size":
        further += [StringAttr("minsize"), StringAttr("optsize")]
    length = vector_length(module.target)
    if internal and length is not None and length.exactly:
        # MLIR packs both bounds into one number. Functions that others call check the length first.
        bounds = length.units << 32 | length.units
        further.append(ArrayAttr([StringAttr("vscale_range"), StringAttr(str(bounds))]))
    if passes:
        further.append(ArrayAttr([StringAttr(PASSES_ATTRIBUTE), StringAttr(passes)]))
    further += [ArrayAttr([StringAttr(key), StringAttr(value)]) for key, value in (launch or {}).items()]
    op = _function_op(module, name, params, result, Region(entry), internal, inline, further)
    if launch is not None:
        op.attributes[_LAUNCHED[module.target.family]] = UnitAttr()
    module.module.body.block.add_op(op)


_LAUNCHED = {"nvptx": "nvvm.kernel", "amdgpu": "rocdl.kernel", "spirv": "spir.kernel"}
"""Family of processors → the attribute of functions that the host launches."""


def _parameter(module: ModuleBuilder, given: Attribute | Param) -> Param:
    """A parameter with a type of the target."""
    param = given if isinstance(given, Param) else Param(given)
    return replace(param, type=integer_of_width(module.target.pointer_bits)) if param.type is index_type else param


def _function_op(
    module: ModuleBuilder,
    name: str,
    params: Sequence[Param],
    result: Attribute | None,
    region: Region,
    internal: bool,
    inline: bool | None,
    further: Sequence[Attribute],
) -> FuncOp:
    properties: dict[str, Attribute | None] = {"no_unwind": UnitAttr(), **module.processor}
    if any(param.attributes().data for param in params):
        properties["arg_attrs"] = ArrayAttr([param.attributes() for param in params])
    if internal and module.machine.family in _LAUNCHED:
        properties["always_inline"] = UnitAttr()
    elif inline is False:
        properties["no_inline"] = UnitAttr()
    if further:
        properties["passthrough"] = ArrayAttr(further)
    return FuncOp(
        name,
        _function_type(tuple([param.type for param in params]), result),
        linkage=_linkage("internal" if internal else "external"),
        body=region,
        other_props=properties,
    )


_linkage = cache(LinkageAttr)


@lru_cache(MAX_KEPT)
def _function_type(parameters: tuple[Attribute, ...], result: Attribute | None) -> LLVMFunctionType:
    return LLVMFunctionType(parameters, result)
