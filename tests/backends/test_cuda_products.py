"""Products by blocks of threads, emulated for each generation, and what their PTX has in its inner loop."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import ptx
import pytest
from execute import Case, assert_same, module_of, sample
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.parser import Parser

from glow_mlir.backends.cuda.executable import CudaEntry
from glow_mlir.backends.interface import get_backend
from glow_mlir.codegen.selection.kernel import Kernel
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.runtime.artifact import Artifact

FILTERS: dict[str, Any] = {"constants": [1], "strides": (1, 1), "dilations": (1, 1)}

CASES = {
    "one block": Case(MatMulOp, sample((8, 16)), sample((16, 24))),
    "borders": Case(MatMulOp, sample((100, 70)), sample((70, 130))),
    "odd sizes": Case(MatMulOp, sample((67, 33)), sample((33, 65))),
    "batches": Case(MatMulOp, sample((3, 50, 64)), sample((3, 64, 72))),
    "one matrix for all": Case(MatMulOp, sample((2, 3, 50, 64)), sample((64, 72))),
    "transposed": Case(MatMulOp, sample((64, 50)), sample((72, 64)), transpose_left=True, transpose_right=True),
    "one row": Case(MatMulOp, sample((1, 256)), sample((256, 100))),
    "split depth": Case(MatMulOp, sample((50, 1200)) / 32, sample((1200, 70)), sample((70,))),
    "split codes": Case(MatMulOp, sample((2, 20, 1024), "u1"), sample((2, 1024, 33), "i1")),
    "bias": Case(MatMulOp, sample((40, 64)), sample((64, 72)), sample((72,))),
    "convolution": Case(ConvOp, sample((2, 9, 9, 32)), sample((40, 3, 3, 32)), **FILTERS),
    "few channels": Case(ConvOp, sample((1, 12, 12, 3)), sample((16, 3, 3, 3)), sample((16,)), **FILTERS),
    "steps": Case(
        ConvOp, sample((1, 17, 13, 16)), sample((24, 3, 2, 16)), constants=[1], strides=(2, 3), dilations=(2, 1)
    ),
    "codes": Case(MatMulOp, sample((50, 64), "i1"), sample((64, 72), "i1")),
    "codes of two signs": Case(MatMulOp, sample((50, 96), "u1"), sample((96, 72), "i1")),
    "odd codes": Case(MatMulOp, sample((35, 37), "u1"), sample((37, 41), "u1")),
    "f16": Case(MatMulOp, sample((70, 96), "f2"), sample((96, 72), "f2"), to=f32),
    "bf16": Case(MatMulOp, sample((70, 96), "bfloat16"), sample((96, 72), "bfloat16"), to=f32),
    "images of codes": Case(ConvOp, sample((1, 9, 9, 32), "u1"), sample((40, 3, 3, 32), "i1"), **FILTERS),
}

GENERATIONS = ("sm_75", "sm_80")
"""The generations whose matrix instructions differ."""

INSTRUCTIONS = {
    ("codes", "sm_75"): "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
    ("codes", "sm_80"): "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
    ("codes of two signs", "sm_90"): "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32",
    ("f16", "sm_75"): "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
    ("f16", "sm_100"): "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    ("bf16", "sm_80"): "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
}


def compiled(module: ModuleOp, target: str) -> Artifact:
    """A module for a target; its product has to be that of blocks."""
    compilation = Compilation(module, backend="cuda", target=target)
    compilation.run(until="selected")
    assert "block-product" in str(module)
    return compilation.artifact()


def emulated(artifact: Artifact) -> CudaEntry:
    """The only entry, on an emulated device."""
    entry = get_backend("cuda").load(artifact, 1).entry()
    assert isinstance(entry, CudaEntry)
    return entry


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("name", CASES)
def test_products(name: str, generation: str) -> None:
    module, inputs = module_of(CASES[name])
    expected = run_function(module.clone(), inputs)
    entry = emulated(compiled(module, f"emulated-{generation}"))
    for _ in range(2):
        assert_same(expected, entry.run(inputs), 1e-5)


@pytest.mark.extra
@pytest.mark.parametrize(("name", "generation"), INSTRUCTIONS)
def test_matrix_instructions(name: str, generation: str, tmp_path: Path) -> None:
    """They are in the loop, beside copies of 16 bytes."""
    ptx.ptxas()
    text = compiled(module_of(CASES[name])[0], generation).code[0].decode()
    (kernel,) = ptx.assembled(text, generation, tmp_path)
    assert kernel.spilled == 0
    assert kernel.occupancy(generation) >= 0.25
    loops = [block for block in re.split(r"\n(?=\$L__BB)", text) if INSTRUCTIONS[name, generation] in block]
    assert loops
    assert any("bra" in block for block in loops)
    wide = "ld.global.v4" if generation == "sm_75" else "cp.async.cg.shared.global"
    assert wide in text


TF32 = """
glow_high.placeholder @x : tensor<64x64xf32> {input}
glow_high.placeholder @w : tensor<64x64xf32> {input}
glow_high.placeholder @y : tensor<64x64xf32> {output}
glow_low.func @main(@x, @w, @y) attributes {target = #glow.target<backend = "cuda", TARGET>} {
  %x = glow_low.weight @x : memref<64x64xf32>
  %w = glow_low.weight @w : memref<64x64xf32>
  %y = glow_low.weight @y {mutable} : memref<64x64xf32>
  glow_low.matmul @out %y, @in %x, @in %w {samples = 1, kernel = "block-product", tiles = {tf32 = 1}}
}
"""


@pytest.mark.extra
def test_global_bytes_of_a_stage(tmp_path: Path) -> None:
    """A stage brings 64 bytes of each of 64 rows and 64 columns, once: 2 / 64 bytes a multiply-add of bytes."""
    ptx.ptxas()
    text = compiled(module_of(CASES["images of codes"])[0], "sm_80").code[0].decode()
    (loop,) = (block for block in re.split(r"\n(?=\$L__BB)", text) if "mma.sync" in block)
    assert loop.count("cp.async.cg.shared.global") * 16 * 128 == (64 + 64) * 64
    assert "ld.global" not in loop
    products = loop.count("mma.sync") * 16 * 8 * 32 * 4  # Of four warps.
    assert products == 64 * 64 * 64


def test_tf32_is_chosen_by_its_tile() -> None:
    target = 'triple = "nvptx64-nvidia-emulated", cpu = "sm_80", features = "+ptx70", vector_bits = 128'
    text = f'builtin.module attributes {{glow.stage = "selected"}} {{{TF32.replace("TARGET", target)}}}'
    module = Parser(new_context(), text).parse_module()
    inputs = {"x": sample((64, 64)), "w": sample((64, 64), seed=1)}
    expected = run_function(module.clone(), inputs)
    found = emulated(Compilation(module).artifact()).run(inputs)
    error = float(np.abs(found["y"] - expected["y"]).max() / np.abs(expected["y"]).max())
    assert 1e-5 < error < 2e-3


def test_the_depth_is_split_where_there_are_few_tiles() -> None:
    module, _ = module_of(CASES["split depth"])
    program = emulated(compiled(module, "emulated-sm_80")).program
    (tiles, sums), _ = zip(*program.launches(), strict=True)
    assert "splits = 16" in str(module)
    assert (tiles.parts, tiles.threads) == (2 * 16, 128)
    assert (sums.parts, sums.threads) == (50 * 18, 1)


def test_blocks_are_in_front_of_the_kernels_of_cpus() -> None:
    kernels: dict[str, Kernel] = get_backend("cuda").kernels
    assert next(iter(kernels)) == "block-product"
    assert "conv-winograd" not in kernels
