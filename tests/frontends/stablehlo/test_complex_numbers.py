"""Operations of StableHLO on complex numbers, which are pairs of tensors, against numpy."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from stablehlo_programs import check, type_of

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.stablehlo.files import read_stablehlo
from glow_mlir.frontends.stablehlo.importer import import_stablehlo
from glow_mlir.interpreter.machine import run_function

GENERATOR = np.random.default_rng(0)
LEFT, RIGHT = (GENERATOR.standard_normal((2, 5)) + 1j * GENERATOR.standard_normal((2, 5)) for _ in range(2))


def complex_type(shape: tuple[int, ...]) -> str:
    """The type of complex numbers in text."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}complex<f64>>"


def checked(
    name: str,
    operands: list[np.ndarray],
    expected: np.ndarray,
    properties: str = "",
    absolute: float | None = None,
) -> None:
    """Compare one operation on complex numbers, whose parts are operands and results of the program."""
    parts = [part for array in operands for part in (array.real.copy(), array.imag.copy())]
    lines = [
        f"%c{number} = stablehlo.complex %{2 * number}, %{2 * number + 1} : {complex_type(array.shape)}"
        for number, array in enumerate(operands)
    ]
    types = ", ".join(complex_type(array.shape) for array in operands)
    listed = ", ".join(f"%c{number}" for number in range(len(operands)))
    is_complex = expected.dtype.kind == "c"
    result = complex_type(expected.shape) if is_complex else type_of(expected)
    end = f'%{"y" if is_complex else "r"} = "{name}"({listed}) {properties}: ({types}) -> {result}'
    for kind in ("real", "imag") if is_complex else ("",):
        wanted = getattr(expected, kind).copy() if kind else expected
        last = f'\n%r = "stablehlo.{kind}"(%y) : ({result}) -> {type_of(wanted)}' if kind else ""
        check("\n".join([*lines, end]) + last, parts, [wanted], 1e-12, absolute)


ONE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "stablehlo.abs": np.abs,
    "stablehlo.cosine": np.cos,
    "stablehlo.exponential": np.exp,
    "stablehlo.exponential_minus_one": np.expm1,
    "stablehlo.log": np.log,
    "stablehlo.log_plus_one": np.log1p,
    "stablehlo.negate": np.negative,
    "stablehlo.rsqrt": lambda x: 1 / np.sqrt(x),
    "stablehlo.sign": lambda x: x / np.abs(x),
    "stablehlo.sine": np.sin,
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.tanh": np.tanh,
    "chlo.conj": np.conj,
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_complex_numbers(name: str) -> None:
    checked(name, [LEFT], ONE[name](LEFT))


TWO: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "divide": np.divide,
    "multiply": np.multiply,
    "power": np.power,
    "subtract": np.subtract,
}


@pytest.mark.parametrize("name", TWO)
def test_operations_on_two_complex_numbers(name: str) -> None:
    checked(f"stablehlo.{name}", [LEFT, RIGHT], TWO[name](LEFT, RIGHT))


def test_quotients_of_large_and_small_numbers_do_not_overflow() -> None:
    left, right = (
        np.array([[1e200 + 1e200j, 1e-300 + 0j, 3.0 + 0j]]),
        np.array([[1e200 - 1e190j, 1e-300 + 1e-300j, 2j]]),
    )
    checked("stablehlo.divide", [left, right], np.array([[1 + 1j, 0.5 - 0.5j, -1.5j]]) * np.array([[1 + 1e-10j, 1, 1]]))


@pytest.mark.parametrize("name", ["sqrt", "rsqrt"])
def test_roots_of_the_smallest_and_largest_numbers(name: str) -> None:
    value = np.array([[5e-324 + 0j, -5e-324 + 5e-324j, 5e-324j, 1e-310 - 3e-320j, 1.7e308 + 1.7e308j, -1.7e308 + 1j]])
    scale = np.where(np.arange(value.size) < 4, 2.0**300, 0.25)
    root = np.sqrt(value * scale * scale) / scale
    expected = root if name == "sqrt" else np.conj(root) / np.abs(root) / np.abs(root)
    checked(f"stablehlo.{name}", [value], expected, absolute=0.0)


def test_roots_of_infinities_keep_the_sign_of_zero() -> None:
    parts = [np.array([np.inf, np.inf, -np.inf, -np.inf]), np.array([-0.0, -3.0, 0.0, -3.0])]
    kind = complex_type((4,))
    body = f"""%c = stablehlo.complex %0, %1 : {kind}
%s = stablehlo.sqrt %c : {kind}
%x = stablehlo.real %s : ({kind}) -> tensor<4xf64>
%y = stablehlo.imag %s : ({kind}) -> tensor<4xf64>
%one = stablehlo.constant dense<1.0> : tensor<4xf64>
%p = stablehlo.divide %one, %x : tensor<4xf64>
%q = stablehlo.divide %one, %y : tensor<4xf64>
%r = stablehlo.concatenate %p, %q, dim = 0 : (tensor<4xf64>, tensor<4xf64>) -> tensor<8xf64>"""
    check(body, parts, [np.array([0.0, 0.0, np.inf, np.inf, -np.inf, -np.inf, 0.0, -0.0])])


@pytest.mark.parametrize("direction", ["EQ", "NE"])
def test_complex_numbers_are_equal_if_both_parts_are(direction: str) -> None:
    right = np.where(np.arange(5) % 2 == 0, LEFT, LEFT.conj())
    expected = LEFT == right if direction == "EQ" else LEFT != right
    properties = f"<{{comparison_direction = #stablehlo<comparison_direction {direction}>}}> "
    checked("stablehlo.compare", [LEFT, right], expected, properties)


def test_a_product_of_complex_matrices() -> None:
    numbers = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    properties = f"<{{dot_dimension_numbers = {numbers}}}> "
    checked("stablehlo.dot_general", [LEFT, RIGHT.T.copy()], LEFT @ RIGHT.T, properties)


@pytest.mark.parametrize(("kind", "transform"), [("FFT", np.fft.fftn), ("IFFT", np.fft.ifftn)])
def test_fourier_transforms_over_several_axes(kind: str, transform: Callable[..., np.ndarray]) -> None:
    properties = f"<{{fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: 2, 5>}}> "
    checked("stablehlo.fft", [LEFT], transform(LEFT, axes=(0, 1)), properties)


def test_the_inverse_transform_of_one_half_of_the_frequencies_is_real() -> None:
    properties = "<{fft_type = #stablehlo<fft_type IRFFT>, fft_length = array<i64: 8>}> "
    checked("stablehlo.fft", [LEFT], np.fft.irfft(LEFT, 8), properties)


def test_the_transform_of_real_numbers() -> None:
    values = LEFT.real.copy()
    expected = np.fft.rfft(values)
    fft = "#stablehlo<fft_type RFFT>"
    for kind in ("real", "imag"):
        wanted = getattr(expected, kind).copy()
        body = f"""%y = "stablehlo.fft"(%0) <{{fft_type = {fft}, fft_length = array<i64: 5>}}>
 : ({type_of(values)}) -> {complex_type(expected.shape)}
%r = stablehlo.{kind} %y : ({complex_type(expected.shape)}) -> {type_of(wanted)}"""
        check(body, [values], [wanted], 1e-12)


def test_arguments_and_results_of_complex_numbers_are_two_inputs_and_outputs() -> None:
    text = b"""func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
%c = stablehlo.constant dense<[(0.0, 1.0), (2.0, 0.0)]> : tensor<2xcomplex<f32>>
%y = stablehlo.multiply %x, %c : tensor<2xcomplex<f32>>
return %y : tensor<2xcomplex<f32>>
}"""
    values = {"x.real": np.array([1, 2], np.float32), "x.imag": np.array([3, 4], np.float32)}
    found = run_function(import_stablehlo(read_stablehlo(text)), values)
    np.testing.assert_array_equal(found["result0.real"], [-3, 4])
    np.testing.assert_array_equal(found["result0.imag"], [1, 8])


def test_an_order_of_complex_numbers_is_refused() -> None:
    properties = "<{comparison_direction = #stablehlo<comparison_direction LT>}> "
    with pytest.raises(UnsupportedError, match=re.escape("LT of complex numbers is not supported")):
        checked("stablehlo.compare", [LEFT, RIGHT], LEFT.real < 0, properties)
