"""Every elementwise operator on every element type that it takes, against the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from breadth import share
from execute import Case, check, check_all, check_low, runnable_targets, sample

from glow_mlir.constants.storage import scalar_attribute
from glow_mlir.dialects.element_types import ELEMENT_TYPES, is_scalar
from glow_mlir.dialects.glow_high.dialect import GLOW_HIGH
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp, WhereOp
from glow_mlir.dialects.glow_high.storage import SplatOp

OPERATORS = {op.name.split(".")[1]: op for op in GLOW_HIGH.operations if issubclass(op, Elementwise)}
COMPUTED = [element for element in ELEMENT_TYPES.values() if is_scalar(element)]
"""Types that operators compute with; tests/codegen/test_narrow_types.py has the others."""
OF_INTEGERS = frozenset(["quantize", "dequantize", "rescale", "integer_rescale"])
"""Operators with quantized operands or results; tests/codegen/test_quantization.py has them."""
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "bit_cast": [{"to": element} for element in COMPUTED],
    "bit_shift": [{"direction": "left"}, {"direction": "right"}],
    "gelu": [{}, {"approximate": "tanh"}],
    "mod": [{}, {"fmod": True}],
    "storage_cast": [{"to": element} for element in COMPUTED],
    "cast": [{"to": element} for element in COMPUTED],
}
"""Operator → properties to try."""
TYPES = ["f4", "f8", "f2", "i8", "i1", "u4", "u1", "?"]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.5, -2.5, 1e4, -1e4, 1e-5, 65519.0, 65520.0, 6e-8]


def elements(dtype: str, seed: int) -> np.ndarray:
    """Random elements and all that is special about the type, in random order."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    x = sample((3, 37), dtype, seed)
    flat = x.reshape(-1)
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            flat[: len(SPECIAL)] = generator.permutation(SPECIAL).astype(kind)
    elif kind.kind in "iu":
        info = np.iinfo(kind)
        special = [0, 1, int(info.max), int(info.min), 2, 3]
        flat[:12] = [special[i] for i in (*generator.permutation(6), *generator.permutation(6))]
    return x


def cases_of(name: str, dtypes: Sequence[str]) -> list[Case]:
    """The operator on all element types of `dtypes` that it takes."""
    operator = OPERATORS[name]
    cases: list[Case] = []
    for dtype in dtypes:
        operands = [elements(dtype, seed) for seed in range(len(operator.get_irdl_definition().operands))]
        if operator is WhereOp:
            operands[0] = elements("?", 0)
        cases += [Case(operator, *operands, **properties) for properties in VARIANTS.get(name, [{}])]
    return [case for case in cases if case.is_valid()]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str):
    cases = cases_of(name, TYPES)
    assert bool(cases) != (name in OF_INTEGERS)
    check_all(share(cases, name) if cases else [])


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("name", ["bit_cast", "cast", "exp", "mod", "round", "sigmoid", "pow", "div", "bit_shift"])
def test_targets(name: str, target: str):
    check_all(cases_of(name, ("f4", "f2", "i4", "u1")), target)


@pytest.mark.parametrize(("left", "right"), [((3, 1, 19), (5, 1)), ((), (2, 33)), ((4, 1), (1, 4)), ((0, 3), (3,))])
def test_broadcasts(left: tuple[int, ...], right: tuple[int, ...]):
    check(AddOp, sample(left), sample(right, seed=1))


@pytest.mark.parametrize(
    ("value", "dtype"), [(0.3, "f4"), (0.3, "f2"), (-3, "i1"), (200, "u1"), (1, "?"), (1e300, "f8")]
)
def test_fill(value: float, dtype: str):
    number = np.dtype(dtype).type(value)
    check(SplatOp, value=scalar_attribute(number, ELEMENT_TYPES[np.dtype(dtype).name]), shape=(3, 37))


def test_constants_are_read_from_their_region():
    check(MulOp, sample((3, 37)), sample((37,), seed=1), constants=(1,))


def test_strided_operands():
    check_low(
        """
        glow_high.placeholder @x : tensor<9x40xf32> {input}
        glow_high.placeholder @y : tensor<9x50xf32> {state}
        glow_low.func @main(@x, @y) {
          %x = glow_low.weight @x : memref<9x40xf32>
          %y = glow_low.weight @y {mutable} : memref<9x50xf32>
          %a = glow_low.view %x : memref<9x40xf32> to memref<9x33xf32, strided<[40, 1], offset: 7>>
          %b = glow_low.view %y : memref<9x50xf32> to memref<9x33xf32, strided<[50, 1], offset: 3>>
          glow_low.stack @out %b, @in %a {
            maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
            iterators = ["parallel", "parallel"]
          } {
          ^bb0(%0: f32):
            %1 = arith.mulf %0, %0 : f32
            glow_low.yield %1 : f32
          }
        }
        """,
        {"x": sample((9, 40)), "y": sample((9, 50))},
    )


def test_a_stack_works_in_place():
    """What another result needs is read before the first is written over it."""
    check_low(
        """
        glow_high.placeholder @x : tensor<9x40xf32> {input}
        glow_high.placeholder @y : tensor<9x40xf32> {state}
        glow_high.placeholder @z : tensor<9x40xf32> {output}
        glow_low.func @main(@x, @y, @z) {
          %x = glow_low.weight @x : memref<9x40xf32>
          %y = glow_low.weight @y {mutable} : memref<9x40xf32>
          %z = glow_low.weight @z {mutable} : memref<9x40xf32>
          glow_low.stack @out %y, @out %z, @in %y, @in %x {
            maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>,
                    affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
            iterators = ["parallel", "parallel"]
          } {
          ^bb0(%a: f32, %b: f32):
            %0 = arith.addf %a, %b : f32
            glow_low.yield %0, %a : f32, f32
          }
        }
        """,
        {"x": sample((9, 40)), "y": sample((9, 40), seed=1)},
    )
