"""What a backend says that it can select is what it selects: on random instructions, with bodies, on strided views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from breadth import examples
from execute import check_low, sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.backends.interface import get_backend, runnable_targets
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.target import with_fields
from glow_mlir.ir.context import new_context
from glow_mlir.options.declaration import declared
from glow_mlir.options.policy import Policy
from glow_mlir.transforms.devices.assign_target import AssignTargetPass
from glow_mlir.transforms.instructions.select import SelectPass
from glow_mlir.transforms.verification.verify_selected import VerifySelectedPass

SIZES = st.sampled_from([1, 2, 3, 7, 16, 33])
CHANNELS = st.sampled_from([1, 2, 3, 4, 8, 17, 32, 64, 128])

PROLOGUE = """ prologue(@in %s) [affine_map<({dims}) -> (d{last})>] {{
  ^bb0(%e: f32, %factor: f32):
    %scaled = arith.mulf %e, %factor : f32
    glow_low.yield %scaled : f32
  }}"""
EPILOGUE = """ epilogue(@in %t) [affine_map<({dims}) -> ({target})>] {{
  ^bb0(%sum: f32, %other: f32):
    %total = arith.addf %sum, %other : f32
    glow_low.yield %total : f32
  }}"""


def memref(shape: Sequence[int], strides: Sequence[int] | None = None) -> str:
    """The type of a buffer."""
    sizes = "x".join(map(str, shape))
    layout = "" if strides is None else f", strided<[{', '.join(map(str, strides))}]>"
    return f"memref<{sizes}xf32{layout}>"


@dataclass
class Program:
    """The text of a function with one instruction, and what its inputs are bound to."""

    draw: st.DrawFn
    storage: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    arrays: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    names: list[str] = field(default_factory=list[str])

    def buffer(self, name: str, shape: Sequence[int], role: str = "input") -> None:
        """Declare an input, an output or, with a role "constant", a uniform constant, as the buffer of that name."""
        sizes = "x".join(map(str, shape))
        if role == "constant":
            value = f"value = dense<0.0625> : tensor<{sizes}xf32>"
            self.storage.append(f"glow_high.constant @{name} : tensor<{sizes}xf32> {{{value}}}")
        else:
            self.storage.append(f"glow_high.placeholder @{name} : tensor<{sizes}xf32> {{{role}}}")
            self.names.append(f"@{name}")
        if role == "input":
            self.arrays[name] = sample(shape)
        mutable = " {mutable}" if role == "output" else ""
        self.lines.append(f"%{name} = glow_low.weight @{name}{mutable} : {memref(shape)}")
        if role == "output":  # What the instruction does not write.
            self.lines.append(f"glow_low.fill @out %{name} {{value = 0.5 : f32}}")

    def operand(self, name: str, shape: Sequence[int], role: str = "input") -> str:
        """A buffer, or a view with that shape of a larger one: with a pitch, or its last axes turned."""
        way = self.draw(st.sampled_from(["plain", "plain", "pitch", "turned"])) if role != "constant" else "plain"
        if way == "plain" or len(shape) < 2:
            self.buffer(name, shape, role)
            return f"%{name}"
        *outer, rows, columns = shape
        whole = (*outer, rows, columns + 3) if way == "pitch" else (*outer, columns, rows)
        steps = [math.prod(whole[axis + 1 :]) for axis in range(len(whole))]
        if way == "turned":
            steps[-2:] = steps[:-3:-1]
        self.buffer(name, whole, role)
        self.lines.append(f"%{name}_view = glow_low.view %{name} : {memref(whole)} to {memref(shape, steps)}")
        return f"%{name}_view"

    def instruction(self, text: str, first: Sequence[int], result: Sequence[int], properties: str) -> None:
        """Add the instruction, with bodies or without."""
        if self.draw(st.booleans()):
            self.buffer("s", first[-1:])
            dims = ", ".join(f"d{axis}" for axis in range(len(first)))
            text += PROLOGUE.format(dims=dims, last=len(first) - 1)
        if self.draw(st.booleans()):
            places = self.draw(st.sampled_from([range(len(result)), [len(result) - 1], [0]]))
            self.buffer("t", [result[place] for place in places])
            dims = ", ".join(f"d{axis}" for axis in range(len(result)))
            text += EPILOGUE.format(dims=dims, target=", ".join(f"d{place}" for place in places))
        head, _, bodies = text.partition("!")
        self.lines.append(f"{head}{properties}{bodies}")

    @property
    def text(self) -> str:
        """The text of the module's body."""
        body = "\n  ".join(self.lines)
        return "\n".join(self.storage) + f"\nglow_low.func @main({', '.join(self.names)}) {{\n  {body}\n}}"


def conv(p: Program) -> None:
    """A convolution of images without a border."""
    draw = p.draw
    rank = draw(st.integers(1, 2))
    batch, inputs, outputs = draw(st.integers(1, 3)), draw(CHANNELS), draw(CHANNELS)
    kernel = [draw(st.sampled_from([1, 1, 2, 3])) for _ in range(rank)]
    group = draw(st.sampled_from([1, 1, math.gcd(inputs, outputs)]))
    strides, dilations = ([draw(st.integers(1, 2)) for _ in range(rank)] for _ in range(2))
    results = [draw(SIZES) for _ in range(rank)]
    sizes = [
        (r - 1) * s + (k - 1) * d + 1 + draw(st.integers(0, s - 1))
        for r, s, k, d in zip(results, strides, kernel, dilations, strict=True)
    ]
    image, result = (batch, *sizes, inputs), (batch, *results, outputs)
    x, y = p.operand("x", image), p.operand("y", result, "output")
    f = p.operand("f", (outputs, *kernel, inputs // group), draw(st.sampled_from(["constant", "input"])))
    samples = draw(st.sampled_from(["", f", samples = {batch}", ", samples = 1"]))
    properties = f" {{strides = {strides}, dilations = {dilations}, group = {group}{samples}}}"
    p.instruction(f"glow_low.conv @out {y}, @in {x}, @in {f}!", image, result, properties)


def matmul(p: Program) -> None:
    """A product of batches of matrices."""
    draw = p.draw
    batch = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2)))]
    rows, depth, columns = draw(SIZES), draw(CHANNELS), draw(CHANNELS)
    turned = draw(st.booleans())
    constant = draw(st.booleans())
    shape = (columns, depth) if turned else (depth, columns)
    x, y = p.operand("x", (*batch, rows, depth)), p.operand("y", (*batch, rows, columns), "output")
    w = p.operand("w", shape if constant else (*batch, *shape), "constant" if constant else "input")
    samples = draw(st.sampled_from(["", ", samples = 1", f", samples = {math.prod(batch)}"]))
    properties = f" {{transpose_right = {str(turned).lower()}{samples}}}"
    text = f"glow_low.matmul @out {y}, @in {x}, @in {w}!"
    p.instruction(text, (*batch, rows, depth), (*batch, rows, columns), properties)


def pool(p: Program) -> None:
    """A pool of images without a border."""
    draw = p.draw
    batch, channels, sizes = draw(st.integers(1, 2)), draw(CHANNELS), [draw(SIZES) for _ in range(2)]
    kernel = [draw(st.integers(1, min(3, size))) for size in sizes]
    image = (batch, *sizes, channels)
    result = (batch, *(size - k + 1 for size, k in zip(sizes, kernel, strict=True)), channels)
    x, y = p.operand("x", image), p.operand("y", result, "output")
    kind = draw(st.sampled_from(["max_pool", "avg_pool"]))
    p.instruction(f"glow_low.{kind} @out {y}, @in {x}!", image, result, f" {{kernel_shape = {kernel}}}")


def reduction(p: Program) -> None:
    """A reduction along some axes."""
    draw = p.draw
    shape = [draw(SIZES) for _ in range(draw(st.integers(1, 3)))]
    axes = sorted(draw(st.sets(st.integers(0, len(shape) - 1))))
    result = [1 if axis in axes else size for axis, size in enumerate(shape)]
    x, y = p.operand("x", shape), p.operand("y", result, "output")
    kind = draw(st.sampled_from(["reduce_sum", "reduce_mean", "reduce_max"]))
    p.instruction(f"glow_low.{kind} @out {y}, @in {x}!", shape, result, f" {{axes = {axes}}}")


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A function with one instruction."""
    program = Program(draw)
    draw(st.sampled_from([conv, conv, matmul, pool, reduction]))(program)
    return program


def parsed(program: Program) -> tuple[ModuleOp, DerivedInstruction]:
    """The module of a program, verified, and its instruction."""
    module = Parser(new_context(), f"builtin.module {{{program.text}}}").parse_module()
    module.verify()
    *_, instruction = (op for op in module.walk() if isinstance(op, DerivedInstruction))
    return module, instruction


SLOW = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@SLOW
@given(
    program=programs(),
    target=st.sampled_from(sorted(PRESETS)),
    accuracy=st.sampled_from(declared(Policy)["accuracy"].words),
    threads=st.sampled_from([1, 2, 5]),
)
def test_what_can_be_selected_is(program: Program, target: str, accuracy: str, threads: int) -> None:
    """`can_select` and `select` agree, and what is selected fits together."""
    module, instruction = parsed(program)
    threads = threads if PRESETS[target].pointer_bits == 64 else 1
    machine = with_fields(PRESETS[target], {"accuracy": accuracy, "threads": threads})
    expected = get_backend("cpu").can_select(instruction, Storage(module), machine)
    AssignTargetPass(target=f"{target},accuracy={accuracy},threads={threads}").apply(new_context(), module)
    SelectPass().apply(new_context(), module)
    assert ("kernel" in instruction.properties) == expected
    if expected:
        module.verify()
        VerifySelectedPass().apply(new_context(), module)


@settings(SLOW, max_examples=examples(40))
@given(program=programs(), target=st.sampled_from(runnable_targets(get_backend("cpu"))))
def test_what_can_be_selected_computes(program: Program, target: str) -> None:
    """Machine code of what can be selected gives what the interpreter gives."""
    module, instruction = parsed(program)
    if get_backend("cpu").can_select(instruction, Storage(module), get_backend("cpu").target(target)):
        check_low(program.text, program.arrays, target, tolerance=1e-4)
