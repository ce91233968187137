"""Sums that are clipped as numbers, unless there may be a NaN among them."""

from __future__ import annotations

import numpy as np
import pytest
from emulators import machine_for
from execute import assert_same, check_low, sample
from xdsl.parser import Parser

from glow_mlir.codegen.scalar_body import clipping_of
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context

RELU6 = "%0 = arith.constant 0.0 : f32 %1 = arith.maximumf %s, %0 : f32 %2 = arith.constant 6.0 : f32 \
%3 = arith.minimumf %1, %2 : f32 glow_low.yield %3 : f32"
RELU = "%0 = arith.constant 0.0 : f32 %1 = arith.maximumf %s, %0 : f32 glow_low.yield %1 : f32"
TURNED = "%0 = arith.constant 1.5 : f32 %1 = arith.minimumf %s, %0 : f32 %2 = arith.constant -0.0 : f32 \
%3 = arith.maximumf %1, %2 : f32 glow_low.yield %3 : f32"
BODIES = (RELU6, RELU, TURNED)
INSTRUCTIONS = ("conv @out %y{n}, @in %x, @in %f {{}}", "conv @out %y{n}, @in %x, @in %g {{group = 8}}")


def text() -> str:
    """A module with a pointwise and a depthwise convolution for each body."""
    results = [f"y{number}" for number in range(len(BODIES) * len(INSTRUCTIONS))]
    named = {"x": "2x4x7x8", "f": "8x1x1x8", "g": "8x2x2x1", **{name: "2x4x7x8" for name in results}}
    named |= {name: "2x3x6x8" for name in results[1::2]}
    lines = [
        f"glow_high.placeholder @{name} : tensor<{shape}xf32> {{{'output' if name in results else 'input'}}}"
        for name, shape in named.items()
    ]
    lines.append(f"glow_low.func @main({', '.join(f'@{name}' for name in named)}) {{")
    for name, shape in named.items():
        mutable = " {mutable}" if name in results else ""
        lines.append(f"%{name} = glow_low.weight @{name}{mutable} : memref<{shape}xf32>")
    for number in range(len(results)):
        instruction = INSTRUCTIONS[number % len(INSTRUCTIONS)].format(n=number)
        lines.append(f"glow_low.{instruction} epilogue() [] {{ ^bb0(%s: f32): {BODIES[number // 2]} }}")
    return "\n".join([*lines, "}"])


def inputs() -> dict[str, np.ndarray]:
    """Inputs that give numbers, NaN of both signs, infinities that meet, and zeros of both signs."""
    x = 4 * sample((2, 4, 7, 8))
    x[0, 1, 2], x[0, 1, 3, 1], x[1, 0, 0, 5] = np.nan, -np.nan, np.inf
    x[1, 3, 5, :2], x[1, 2, :3] = (np.inf, -np.inf), -0.0
    return {"x": x, "f": sample((8, 1, 1, 8)), "g": sample((8, 2, 2, 1))}


def test_nan_stays_nan() -> None:
    check_low(text(), inputs(), "scalar,costs.branched_operations=1")


@pytest.mark.extra
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7"])
def test_nan_stays_nan_on_microcontrollers(target: str) -> None:
    machine = machine_for(target)
    source = f'builtin.module attributes {{glow.stage = "stacked"}} {{{text()}}}'
    module = Parser(new_context(), source).parse_module()
    wanted = run_function(module.clone(), inputs())
    ran = machine.run(Compilation(module, target=target).artifact(), inputs())
    assert ran.status == 0
    assert_same(wanted, ran.outputs)


def test_only_bodies_that_clip_at_zero_are_known() -> None:
    module = Parser(new_context(), f"builtin.module {{{text()}}}").parse_module()
    found = [op.epilogue for op in module.walk() if isinstance(op, DerivedInstruction)]
    assert [clipping_of(body.block) for body in found if body] == [6.0, 6.0, np.inf, np.inf, 1.5, 1.5]
    for changed in ("arith.constant 0.0", "arith.constant 1.0"), ("maximumf %s, %0", "addf %s, %0"):
        other = Parser(new_context(), f"builtin.module {{{text().replace(*changed)}}}").parse_module()
        bodies = [op.epilogue for op in other.walk() if isinstance(op, DerivedInstruction)]
        assert [clipping_of(body.block) for body in bodies[:2] if body] == [None, None]
