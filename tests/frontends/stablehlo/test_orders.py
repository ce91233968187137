"""Sorts of StableHLO by keys and by any comparator, and the largest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from stablehlo_programs import check, region, scalar_of, signature_of

from glow_mlir.frontends.stablehlo.files import read_stablehlo
from glow_mlir.frontends.stablehlo.importer import import_stablehlo
from glow_mlir.ir.text import module_text


def sorted_body(operands: Sequence[np.ndarray], axis: int, comparator: str) -> str:
    pairs = [operand for operand in operands for _ in range(2)]
    names = ", ".join(f"%{number}" for number in range(len(operands)))
    results = f"%r:{len(operands)}" if len(operands) > 1 else "%r"
    return (
        f'{results} = "stablehlo.sort"({names}) <{{dimension = {axis} : i64, is_stable = true}}> '
        f"{region(pairs, comparator)} : {signature_of(operands, operands)}"
    )


def compare(word: str, direction: str, kind: str, one: str, other: str, type_: str) -> str:
    return f"%{word} = stablehlo.compare {direction}, %{one}, %{other}, {kind} : ({type_}, {type_}) -> tensor<i1>\n"


def ordered(
    operands: Sequence[np.ndarray], axis: int, key: Callable[[tuple[np.generic, ...]], object]
) -> list[np.ndarray]:
    """The operands sorted by Python, line by line."""
    found = [operand.copy() for operand in operands]
    moved, lines = ([np.moveaxis(item, axis, -1) for item in items] for items in (operands, found))
    for position in np.ndindex(moved[0].shape[:-1]):
        rows = sorted(zip(*(item[position] for item in moved), strict=True), key=key)  # pyright: ignore
        for number, line in enumerate(lines):
            line[position] = [row[number] for row in rows]
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, np.bool_])
@pytest.mark.parametrize("axis", [0, 1])
def test_sorts_by_one_key(dtype: type, axis: int) -> None:
    x = np.random.default_rng(0).integers(0, 4, (5, 7)).astype(dtype)
    y = np.arange(35, dtype=np.int32).reshape(5, 7)
    kind = {"f": "FLOAT", "i": "SIGNED"}.get(np.dtype(dtype).kind, "UNSIGNED")
    for direction, sign in (("LT", 1), ("GT", -1)):
        body = compare("z", direction, kind, "a", "b", scalar_of(x)) + "stablehlo.return %z : tensor<i1>"
        check(sorted_body([x, y], axis, body), [x, y], ordered([x, y], axis, lambda row: sign * int(row[0])))


def test_sorts_by_two_keys_of_functions_of_elements() -> None:
    x = np.random.default_rng(0).integers(-4, 4, (3, 40)).astype(np.int32)
    y = np.random.default_rng(1).integers(-9, 9, (3, 40)).astype(np.float32)
    body = "%e = stablehlo.abs %a : tensor<i32>\n%f = stablehlo.abs %b : tensor<i32>\n"
    body += compare("less", "LT", "SIGNED", "e", "f", "tensor<i32>")
    body += compare("same", "EQ", "SIGNED", "e", "f", "tensor<i32>")
    body += compare("second", "GT", "TOTALORDER", "c", "d", "tensor<f32>")
    body += "%g = stablehlo.and %same, %second : tensor<i1>\n%h = stablehlo.or %less, %g : tensor<i1>\n"
    body += "stablehlo.return %h : tensor<i1>"
    expected = ordered([x, y], 1, lambda row: (abs(int(row[0])), -float(row[1])))
    check(sorted_body([x, y], 1, body), [x, y], expected)


def test_conversions_to_other_types_are_other_keys() -> None:
    x = np.random.default_rng(0).integers(-1000, 1000, 40).astype(np.int32)
    lines = [
        f"%{name}{width} = stablehlo.convert %{name} : (tensor<i32>) -> tensor<i{width}>"
        for width in (8, 16)
        for name in "ab"
    ]
    body = "\n".join(lines) + "\n" + compare("z", "LT", "SIGNED", "a16", "b16", "tensor<i16>")
    check(sorted_body([x], 0, body + "stablehlo.return %z : tensor<i1>"), [x], [np.sort(x)])


def test_floats_in_their_total_order() -> None:
    x = np.array([1, np.nan, -0.0, 0.0, np.inf, -np.nan, -np.inf, -1, np.nan, 0.0, -0.0], np.float32)
    body = compare("z", "LT", "TOTALORDER", "a", "b", "tensor<f32>") + "stablehlo.return %z : tensor<i1>"
    bits = x.view(np.int32)
    expected = x[np.argsort(np.where(bits < 0, bits ^ 0x7FFFFFFF, bits), kind="stable")]
    check(sorted_body([x], 0, body) + "\n%s = stablehlo.abs %r : tensor<11xf32>", [x], [expected])
    signs = "%r = stablehlo.bitcast_convert %s : (tensor<11xf32>) -> tensor<11xi32>"
    check(sorted_body([x], 0, body).replace("%r", "%s") + f"\n{signs}", [x], [expected.view(np.int32)])


@pytest.mark.parametrize("length", [2, 3, 8, 13, 33])
def test_sorts_by_any_comparator_are_stable(length: int) -> None:
    x = np.random.default_rng(length).integers(0, 50, (2, length)).astype(np.int32)
    y = np.arange(2 * length, dtype=np.float32).reshape(2, length)
    body = "%m = stablehlo.constant dense<7> : tensor<i32>\n%o = stablehlo.constant dense<0> : tensor<i32>\n"
    body += "%e = stablehlo.remainder %a, %m : tensor<i32>\n%f = stablehlo.remainder %b, %m : tensor<i32>\n"
    body += "%g = stablehlo.subtract %e, %f : tensor<i32>\n"
    body += compare("z", "LT", "SIGNED", "g", "o", "tensor<i32>") + "stablehlo.return %z : tensor<i1>"
    check(sorted_body([x, y], 1, body), [x, y], ordered([x, y], 1, lambda row: int(row[0]) % 7))


def test_sorts_as_jax_writes_them_are_one_operator() -> None:
    x = np.ones(9, np.float32)
    body = "%o = stablehlo.constant dense<0.0> : tensor<f32>\n%n = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
    for one, own in (("a", "e"), ("b", "f")):
        body += compare(f"{own}0", "EQ", "FLOAT", one, "o", "tensor<f32>")
        body += f"%{own}1 = stablehlo.select %{own}0, %o, %{one} : tensor<i1>, tensor<f32>\n"
        body += compare(f"{own}2", "NE", "FLOAT", one, one, "tensor<f32>")
        body += f"%{own} = stablehlo.select %{own}2, %n, %{own}1 : tensor<i1>, tensor<f32>\n"
    body += compare("z", "LT", "TOTALORDER", "e", "f", "tensor<f32>") + "stablehlo.return %z : tensor<i1>"
    text = f"func.func @main(%0: tensor<9xf32>) -> tensor<9xf32> {{\n{sorted_body([x], 0, body)}\n"
    module = import_stablehlo(read_stablehlo(f"{text}func.return %r : tensor<9xf32>\n}}".encode()))
    lines = [line for line in module_text(module).splitlines() if " = glow_high." in line]
    assert sum("glow_high.top_k" in line for line in lines) == 1
    assert not [line for line in lines if "gather" in line or "select" in line or "bit" in line]


def test_the_largest_elements_come_in_their_total_order() -> None:
    x = np.array([[1, np.nan, -0.0, 0.0, 3], [-np.inf, 2, 2, -np.nan, 5]], np.float32)
    expected = [np.array([[np.nan, 3, 1, 0], [5, 2, 2, -np.inf]], np.float32)]
    expected += [np.array([[1, 4, 0, 3], [4, 1, 2, 0]], np.int32)]
    check("%r:2 = chlo.top_k(%0, k = 4) : tensor<2x5xf32> -> (tensor<2x4xf32>, tensor<2x4xi32>)", [x], expected)
