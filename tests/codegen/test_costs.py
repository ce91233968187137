"""What was measured of a machine decides about its code, never about what the code computes."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from models import model_named, random_inputs

import glow_mlir
from glow_mlir.backends.cpu.measured import measured
from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.backends.interface import get_backend
from glow_mlir.codegen.builder.types import f32, f64
from glow_mlir.codegen.costs import KernelCosts, kernel_costs
from glow_mlir.codegen.kernels.products.tiles import tile_for
from glow_mlir.dialects.costs import Costs
from glow_mlir.errors import OptionError

OWN = [field.name for field in dataclasses.fields(KernelCosts) if field not in dataclasses.fields(Costs)]
"""What kernels alone ask for."""


def test_tiles_follow_from_registers_and_what_was_measured() -> None:
    sizes = {name: tile_for(target, f32) for name, target in PRESETS.items()}
    assert {name: (tile.rows, tile.vectors, tile.lanes) for name, tile in sizes.items()} == {
        "amx": (6, 4, 16),
        "avx2": (6, 2, 8),
        "avx512": (6, 4, 16),
        "cortex-m0plus": (1, 4, 1),
        "cortex-m3": (1, 4, 1),
        "cortex-m33": (6, 4, 1),
        "cortex-m4": (6, 4, 1),
        "cortex-m55": (2, 2, 4),
        "cortex-m7": (6, 4, 1),
        "cortex-m85": (2, 2, 4),
        "neon": (8, 3, 4),
        "neon-dotprod": (8, 3, 4),
        "neon-i8mm": (8, 3, 4),
        "riscv32": (6, 4, 1),
        "riscv64": (6, 4, 1),
        "rvv-128": (6, 4, 4),
        "rvv-256": (6, 4, 8),
        "scalar": (2, 4, 1),
        "sse2": (6, 2, 4),
        "sse4": (6, 2, 4),
        "sve-128": (8, 3, 4),
        "sve-256": (6, 4, 8),
        "wasm32": (6, 2, 4),
    }


@pytest.mark.parametrize(
    ("text", "rows", "vectors"),
    [
        ("avx512,vector_bits=256", 6, 4),
        ("avx2,vector_registers=8", 2, 2),
        ("avx2,vector_registers=4", 1, 2),
        ("avx2,costs.tile_vectors=3", 4, 3),
        ("avx2,costs.tile_rows=4", 4, 2),
    ],
)
def test_a_tile_fits_its_registers(text: str, rows: int, vectors: int) -> None:
    tile = tile_for(get_backend("cpu").target(text), f64)
    assert (tile.rows, tile.vectors) == (rows, vectors)


def test_no_tile_is_larger_than_its_registers() -> None:
    for bits in (64, 128, 256, 512):
        for registers in range(8, 64):
            target = dataclasses.replace(PRESETS["avx2"], vector_bits=bits, vector_registers=registers)
            tile = tile_for(target, f32)
            assert tile.rows * tile.vectors + tile.vectors + 1 <= registers


@pytest.mark.parametrize("value", [0, -3])
@pytest.mark.parametrize("name", ["independent_vectors", "tile_vectors", "channel_lanes"])
def test_costs_are_at_least_one(name: str, value: int) -> None:
    with pytest.raises(OptionError, match=rf"costs\.{name}={value} is too little"):
        kernel_costs(dataclasses.replace(PRESETS["avx2"], costs=((name, value),)))


@pytest.mark.parametrize("name", KernelCosts.POWERS)
def test_what_lanes_are_counted_by_is_a_power_of_two(name: str) -> None:
    with pytest.raises(OptionError, match=rf"costs\.{name}=3 is no power of two"):
        kernel_costs(dataclasses.replace(PRESETS["avx2"], costs=((name, 3),)))


@cache
def results(model: str, costs: str = "") -> list[np.ndarray]:
    """What a model gives on this machine, with other costs."""
    session = glow_mlir.InferenceSession(model_named(model), target=f"host{costs}", cache=False)
    return session.run(None, random_inputs(model_named(model), np.random.default_rng(0)))


@pytest.mark.parametrize("change", ["least", "twice"])
@pytest.mark.parametrize("model", ["squeezenet", "lstm", "bert_encoder"])
def test_results_do_not_depend_on_costs(model: str, change: str) -> None:
    plain = measured(get_backend("cpu").host())
    values = {name: 1 if change == "least" else 2 * getattr(plain, name) for name in OWN}
    costs = "".join(f",costs.{name}={value}" for name, value in values.items())
    for found, expected in zip(results(model, costs), results(model), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)
