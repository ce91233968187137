"""Kernels as functions of arrays: code that a test emits itself, compiled and loaded, and what it should give."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Block

from glow_mlir.backends.cpu.targets import PRESETS, host_target, lacks
from glow_mlir.codegen.bodies import Epilogue
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, i64, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.products.convolution import ConvShape
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import symbols, undefined_symbols
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.dialects.glow_low.body import YieldOp
from glow_mlir.dialects.target import Target
from glow_mlir.runtime.loader import Library

Array = np.ndarray[Any, Any]
HOST = host_target()
TARGETS = [name for name, target in PRESETS.items() if not lacks(target)]
"""The named targets whose code runs on this machine."""

GUARD = 7.0
"""What `guarded` puts where nothing is to be written."""


def aligned(array: Array) -> Array:
    """Return a copy that starts at a multiple of 64 bytes, as packed weights must."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def compiled(
    target: Target, pointers: int, numbers: int, body: Callable[[Builder, list[Value]], None], verify: bool = False
) -> Callable[..., None]:
    """Return `body` as a function of arrays and integers."""
    module = ModuleBuilder(target)
    with define_function(module, "f", [*[ptr] * pointers, *[i64] * numbers]) as (b, arguments):
        body(b, arguments)
    if verify:
        module.module.verify()
    data = compile_text(emit_module(flattened(module.module)), target)
    assert undefined_symbols(data) == ()
    assert [symbol.name for symbol in symbols(data) if symbol.exported] == ["f"]
    call = Library(data).function("f", [*[ctypes.c_void_p] * pointers, *[ctypes.c_int64] * numbers])

    def run(*arguments: Any) -> None:
        arrays, rest = arguments[:pointers], arguments[pointers:]
        call(*(array.ctypes.data for array in arrays), *rest)

    return run


def guarded(size: int, kind: Any) -> Array:
    """An array of `size` elements and some more behind it that must survive."""
    return np.full(size + 64, GUARD, dtype=kind)


def convolution(x: Array, filters: Array, shape: ConvShape) -> Array:
    """Return the convolution of `[B, *S, C]` with `[O, *K, C / groups]` in f64."""
    outputs = [size for size in shape.outputs if isinstance(size, int)]
    groups = shape.groups
    result = np.zeros((x.shape[0], *outputs, filters.shape[0]))
    for place in np.ndindex(*shape.kernel):
        window = tuple(
            slice(p * d, p * d + s * (o - 1) + 1, s)
            for p, d, s, o in zip(place, shape.dilations, shape.strides, outputs, strict=True)
        )
        read = x[(slice(None), *window)].astype(np.float64).reshape(x.shape[0], *outputs, groups, -1)
        taken = filters[(slice(None), *place)].astype(np.float64).reshape(groups, -1, read.shape[-1])
        result += np.einsum("...gc,goc->...go", read, taken).reshape(result.shape)
    return result


def sum_and_relu(steps: int) -> Epilogue:
    """Add two sources, and some zeros; yields ReLU of the sum, and the sum. A light body for no steps."""
    block = Block(arg_types=[f32, f32, f32])
    zero = arith.ConstantOp(FloatAttr(0.0, f32))
    block.add_op(zero)
    total = block.args[0]
    for operand in (*block.args[1:], *[zero.result] * steps):
        added = arith.AddfOp(total, operand)
        block.add_op(added)
        total = added.result
    largest = arith.MaximumfOp(total, zero.result)
    block.add_ops([largest, YieldOp.create(operands=[largest.result, total])])
    return Epilogue(f"sum {steps}", block, f32, targets=1, is_light=steps == 0)
