"""Kernels that users write: a Python function over elements, which becomes `generic` for the operands it is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.element_types import element_type, is_float, is_narrow_float, number_width, signless
from glow_mlir.dialects.glow_high.generic import PARALLEL, REDUCTION, ROW, GenericOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of, tensor
from glow_mlir.dialects.stages import RowType
from glow_mlir.errors import InputError, OptionError
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.ir.registry import IMPORTERS
from glow_mlir.kernels.expressions import Tensor, cast
from glow_mlir.kernels.signature import Access, Signature
from glow_mlir.kernels.staging import Staging, parallel_dimensions
from glow_mlir.support.symbols import Size

MOST_KEPT = 64
"""How many compiled forms of a kernel are kept for calls with arrays; the one that was used last stays longest."""


class Kernel:
    """
    A kernel: a Python function over elements, and what its operands and its result are.

    Called with numpy arrays it is compiled and run; `operator` makes the operator of a module.
    """

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        self.function = function
        self.signature = signature
        self.name = function.__name__
        self.parameters = _parameters(function, signature)
        self._sessions: dict[object, Any] = {}
        update_wrapper(self, function)

    def operator(self, *operands: SSAValue, location: LocationAttr | None = None, **parameters: Any) -> GenericOp:
        """
        The operator that computes the kernel on tensors; it is not inserted anywhere.

        `parameters` are those of the function that have defaults. Raises `InputError` for operands that do not fit, and
        `OptionError` for what the function cannot mean.
        """
        expanded = self._expanded([rank_of(value) for value in operands])
        root = self._traced(expanded, [element_of(value) for value in operands], parameters)
        unknown = sorted(set(expanded.result.axes) ^ root.dimensions)
        if unknown:
            raise self._error(f"it gives a value over {_listed(root.dimensions)}, not {_listed(expanded.result.axes)}")
        parallel = parallel_dimensions(root, expanded.result.axes)
        rest = [name for name in expanded.dimensions() if name not in parallel]
        numbers = {name: number for number, name in enumerate((*parallel, *rest))}
        sizes = self._sizes(expanded, operands)
        maps = [_map(access, numbers, sizes, sizes_of(value)) for access, value in zip(expanded.operands, operands)]
        maps.append(_map(expanded.result, numbers, sizes, [sizes[axis] for axis in expanded.result.axes]))
        kinds = [PARALLEL] * len(parallel) + [ROW if name in expanded.result.axes else REDUCTION for name in rest]
        block = Block(arg_types=[_row(value, affine, kinds) for value, affine in zip(operands, maps)])
        Staging(root, block, numbers, frozenset(parallel), sizes).run()
        try:
            return GenericOp.of(operands, maps, kinds, block, location, root.element)
        except VerifyException as error:
            raise self._error(str(error)) from error

    def module(self, *operands: Attribute, **parameters: Any) -> ModuleOp:
        """A module with one function, which computes the kernel on tensors of these types."""
        builder = ModuleBuilder()
        names = [access.name for access in self.signature.operands]
        if len(names) != len(operands):
            raise self._count(len(operands))
        values = builder.add_inputs(dict(zip(names, operands, strict=True)), {})  # pyright: ignore[reportArgumentType]
        op = self.operator(*values.values(), location=named_location(self.name), **parameters)
        builder.add_output(self.signature.result.name, builder.insert(op).results[0])
        return builder.finish(self.name)

    def onnx_operator(self, name: str, domain: str, since: int = 1) -> None:
        """
        Let the ONNX operator of that name in a domain be the kernel, from an opset version on.

        Attributes give the parameters of their names. Raises `PackageError` where the operator is known already.
        """
        IMPORTERS.add((domain, name, since), self._imported)

    def _imported(self, node: Any) -> SSAValue:
        """What a node of ONNX becomes."""
        given = {name: _attribute(node, name, default) for name, default in self.parameters.items() if node.has(name)}
        return node.insert(self.operator(*node.present(), location=node.location, **given)).results[0]

    def __call__(self, *arrays: np.ndarray, **parameters: Any) -> np.ndarray:
        """What machine code gives for arrays; compiled once for each set of shapes, element types and parameters."""
        from glow_mlir.api.session import InferenceSession

        key = (tuple((array.shape, array.dtype.str) for array in arrays), tuple(sorted(parameters.items())))
        session = self._sessions.pop(key, None)
        if session is None:
            types = [tensor(array.shape, element_type(array.dtype)) for array in arrays]
            session = InferenceSession(self.module(*types, **parameters))
        self._sessions[key] = session
        while len(self._sessions) > MOST_KEPT:
            del self._sessions[next(iter(self._sessions))]
        feeds = {access.name: array for access, array in zip(self.signature.operands, arrays, strict=True)}
        return session.run(None, feeds)[0]

    def _expanded(self, ranks: Sequence[int]) -> Signature:
        """The signature for operands of these ranks."""
        if len(ranks) != len(self.signature.operands):
            raise self._count(len(ranks))
        try:
            return self.signature.expanded(ranks)
        except ValueError as error:
            raise InputError(f"kernel {self.name}: {error}") from error

    def _traced(self, signature: Signature, elements: Sequence[Attribute], parameters: Mapping[str, Any]) -> Tensor:
        """What the function says of operands of these element types; half floats are computed with as f32."""
        if unknown := sorted(set(parameters) - set(self.parameters)):
            known = ", ".join(self.parameters) or "it has none"
            raise self._error(f"there is no parameter '{unknown[0]}'", f"parameters are: {known}")
        tensors: list[Tensor] = []
        for number, (access, element) in enumerate(zip(signature.operands, elements, strict=True)):
            names = frozenset(axis for axis in access.axes if axis != "1")
            given = Tensor(element, names, access.name, operand=number)
            tensors.append(cast(given, "float32") if _is_half(element) else given)
        root = self.function(*tensors, **{**self.parameters, **parameters})
        if not isinstance(root, Tensor):
            raise self._error(f"it gives {type(root).__name__}, and no value of its operands")
        first = elements[0]
        is_rounded = _is_half(first) and is_float(root.element)
        return Tensor(first, root.dimensions, "convert", (root,)) if is_rounded else root

    def _sizes(self, signature: Signature, operands: Sequence[SSAValue]) -> dict[str, Size]:
        """How long each dimension is; leading axes of one element broadcast."""
        sizes: dict[str, Size] = {}
        for access, value in zip(signature.operands, operands, strict=True):
            for axis, size in zip(access.axes, sizes_of(value), strict=True):
                known = sizes.setdefault(axis, size)
                if axis.startswith("...") and known == 1:
                    sizes[axis] = size
                elif known != size and not (axis.startswith("...") and size == 1):
                    raise InputError(f"kernel {self.name}: dimension '{axis}' is {known} and {size} long")
        return sizes

    def _count(self, count: int) -> InputError:
        names = ", ".join(access.name for access in self.signature.operands)
        return InputError(f"kernel {self.name}: it has the operands {names}, got {count}")

    def _error(self, reason: str, hint: str = "") -> OptionError:
        return OptionError(f"kernel {self.name}: {reason}", hint=hint)


def kernel(signature: str) -> Callable[[Callable[..., Any]], Kernel]:
    """
    Make a kernel of a Python function: `signature` says which dimension each axis of its operands and result is.

    The function gets a value for each operand and computes with the functions of `glow_mlir.kernels`. Parameters with
    defaults are numbers. Raises `OptionError` for a signature that is none or does not fit the function.
    """
    parsed = Signature.parse(signature)
    return lambda function: Kernel(function, parsed)


def _parameters(function: Callable[..., Any], signature: Signature) -> dict[str, Any]:
    """The parameters of a function that are no operands, with their defaults."""
    listed = list(inspect.signature(function).parameters.values())
    names = [access.name for access in signature.operands]
    required = [item.name for item in listed if item.default is item.empty]
    if required != names:
        raise OptionError(
            f"kernel {function.__name__}: the function takes {', '.join(required) or 'nothing'}, the signature has "
            f"{', '.join(names)}",
            hint="name operands alike; other parameters need defaults",
        )
    return {item.name: item.default for item in listed[len(names) :]}


def _attribute(node: Any, name: str, default: Any) -> Any:
    """An attribute of a node of ONNX, of the type of a default."""
    return node.int(name) if isinstance(default, int) else node.float(name)


def _is_half(element: Attribute) -> bool:
    return is_narrow_float(element) or (is_float(element) and number_width(element) == 16)


def _map(access: Access, numbers: Mapping[str, int], sizes: Mapping[str, Size], own: Sequence[Size]) -> AffineMap:
    """The map of a tensor from the index space."""
    results: list[AffineExpr] = [
        AffineConstantExpr(0) if axis == "1" or (size == 1 and sizes[axis] != 1) else AffineDimExpr(numbers[axis])
        for axis, size in zip(access.axes, own, strict=True)
    ]
    return AffineMap(len(numbers), 0, tuple(results))


def _row(value: SSAValue, affine: AffineMap, kinds: Sequence[str]) -> Attribute:
    """The type of the argument for an operand."""
    used = [expression.position for expression in affine.results if isinstance(expression, AffineDimExpr)]
    return RowType.over(signless(element_of(value)), [number for number in used if kinds[number] != PARALLEL])


def _listed(names: Sequence[str] | frozenset[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
