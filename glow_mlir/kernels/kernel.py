"""Kernels that users write: a Python function over elements, which becomes `generic` for the operands it is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.element_types import element_type, is_bool
from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.generic_form import generic_form, operand_tensors, rounded
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.index_notation import Signature
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of, tensor
from glow_mlir.errors import GlowError, InputError, OptionError
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.ir.registry import IMPORTERS

MAX_KEPT = 64
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
        if not (self.name.isascii() and self.name.isidentifier()):
            raise self._error("its name is none that C code can call", "define it by def, in letters of ASCII")
        self.parameters = _parameters(function, signature)
        self._sessions: dict[object, Any] = {}
        update_wrapper(self, function)

    def operator(self, *operands: SSAValue, location: LocationAttr | None = None, **parameters: Any) -> GenericOp:
        """
        The operator that computes the kernel on tensors; it is not inserted anywhere.

        `parameters` are those of the function that have defaults. Raises `InputError` for operands that do not fit, and
        `OptionError` for what the function cannot mean.
        """
        signature = self._expanded([rank_of(value) for value in operands])
        elements, shapes = [element_of(value) for value in operands], [sizes_of(value) for value in operands]
        root = self._traced(signature, elements, parameters)
        try:
            return GenericOp.of(operands, generic_form(signature, root, elements, shapes), location)
        except (ValueError, VerifyException) as error:
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
        names = [attribute.name for attribute in node.proto.attribute]
        given = {name: _attribute(node, name, self.parameters.get(name, 0.0)) for name in names}
        try:
            return node.insert(self.operator(*node.present(), location=node.location, **given)).results[0]
        except GlowError as error:
            error.node = error.node or node.name
            raise

    def __call__(self, *arrays: np.ndarray, **parameters: Any) -> np.ndarray:
        """What machine code gives for arrays; compiled once for each set of shapes, element types and parameters."""
        from glow_mlir.api.model_session import ModelSession

        for array in arrays:
            if not isinstance(array, np.ndarray | np.generic):  # pyright: ignore[reportUnnecessaryIsInstance]
                hint = "numpy.asarray(…, numpy.float32) makes one of it"
                raise InputError(f"kernel {self.name}: an operand is {type(array).__name__}, no array", hint=hint)
        given = tuple((name, value.__class__, value) for name, value in sorted(parameters.items()))
        key = (tuple((array.shape, array.dtype) for array in arrays), given)
        session = self._sessions.pop(key, None)
        if session is None:
            types = [tensor(array.shape, self._element(array.dtype)) for array in arrays]
            session = ModelSession.of(self.module(*types, **parameters))
        self._sessions[key] = session
        while len(self._sessions) > MAX_KEPT:
            del self._sessions[next(iter(self._sessions))]
        feeds = {access.name: array for access, array in zip(self.signature.operands, arrays, strict=True)}
        return session.run(feeds)[self.signature.result.name]

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
        tensors = operand_tensors(signature, elements)
        root = self.function(*tensors, **{**self.parameters, **parameters})
        if not isinstance(root, Tensor):
            raise self._error(f"it gives {type(root).__name__}, and no value of its operands")
        if is_bool(root.element):
            raise self._error("it gives truth values", 'convert them: cast(x > 0, "int8")')
        return rounded(root, elements[0])

    def _element(self, dtype: np.dtype) -> Attribute:
        """The element type of an array."""
        try:
            return element_type(dtype)
        except KeyError:
            raise InputError(f"kernel {self.name}: there are no tensors of {dtype}", hint="convert the array") from None

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
