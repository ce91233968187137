"""Programs of StableHLO of one function, and their results in the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glow_mlir.dialects.element_types import element_type
from glow_mlir.frontends.stablehlo.files import read_stablehlo
from glow_mlir.frontends.stablehlo.importer import import_stablehlo
from glow_mlir.interpreter.machine import run_function


def type_of(array: np.ndarray) -> str:
    """The type of an array in text."""
    return f"tensor<{''.join(f'{size}x' for size in array.shape)}{element_type(array.dtype)}>"


def scalar_of(array: np.ndarray) -> str:
    """The type of one of its elements in text."""
    return f"tensor<{element_type(array.dtype)}>"


def program(body: str, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> bytes:
    """A function whose arguments are `%0` and so on, and whose results are those of the operation `%r` of the body."""
    arguments = ", ".join(f"%{number}: {type_of(array)}" for number, array in enumerate(operands))
    types = ", ".join(map(type_of, results))
    names = ["%r"] if len(results) == 1 else [f"%r#{number}" for number in range(len(results))]
    end = f"func.return {', '.join(names)} : {types}"
    return f"func.func @main({arguments}) -> ({types}) {{\n{body}\n{end}\n}}".encode()


def signature_of(operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> str:
    """The type of an operation in text."""
    return f"({', '.join(map(type_of, operands))}) -> ({', '.join(map(type_of, results))})"


def results_of(body: str, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the interpreter gives for a function of that body; `results` have its shapes and types."""
    module = import_stablehlo(read_stablehlo(program(body, operands, results)))
    found = run_function(module, {f"arg{number}": array for number, array in enumerate(operands)})
    return [found[f"result{number}"] for number in range(len(results))]


def check(
    body: str,
    operands: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    tolerance: float = 0.0,
    absolute: float | None = None,
) -> None:
    """Raise `AssertionError` unless a function of that body gives these results, up to a relative or absolute error."""
    smallest = tolerance if absolute is None else absolute
    for found, wanted in zip(results_of(body, operands, expected), expected, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=smallest)


def region(arguments: Sequence[np.ndarray], body: str) -> str:
    """A region of scalars `%a`, `%b` and so on of the element types of these arrays."""
    names = ", ".join(f"%{chr(97 + number)}: {scalar_of(array)}" for number, array in enumerate(arguments))
    return f"({{\n^bb0({names}):\n{body}\n}})"
