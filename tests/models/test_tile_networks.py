"""Whole networks whose products tile registers compute, which are emulated: those of codes bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from execute import compile_module
from machines import tile_targets
from models import random_inputs
from quantized_models import NETWORKS, quantized_model
from tile_emulation import emulate_tiles

from glow_mlir import InferenceSession
from glow_mlir.codegen.kernels.products import tile_products
from glow_mlir.codegen.kernels.products.gemm import TILE_PRODUCTS
from glow_mlir.codegen.selection.kernel import tiles_of
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import operations

FEWEST = {"residual": 6, "encoder": 6}
"""Network → how many of its products have runs of whole cells."""


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tile registers are emulated, and compute all products that they can."""
    emulate_tiles(monkeypatch)

    def pays(*_: object) -> bool:
        return True

    monkeypatch.setattr(tile_products, "_pays", pays)


@pytest.mark.parametrize("scheme", ["qdq-u8", "qoperator-i8"])
@pytest.mark.parametrize("network", FEWEST)
@pytest.mark.usefixtures("always")
def test_networks_of_codes_are_exact(network: str, scheme: str) -> None:
    model = quantized_model(network, scheme)
    inputs = random_inputs(model, np.random.default_rng(6))
    target = tile_targets()[-1]
    module = import_model(model)
    compilation = Compilation(module, target=target)
    compilation.run(until="stacked")
    (expected,) = run_function(module.clone(), inputs).values()
    compilation.run(until="allocated")
    (function,) = low_functions(module)
    assert sum(tiles_of(op).get(TILE_PRODUCTS, 0) for op in operations(function)) >= FEWEST[network]
    (found,) = compile_module(module).run(inputs).values()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("target", [target for target in tile_targets() if "avx512bf16" in target])
@pytest.mark.parametrize("network", FEWEST)
@pytest.mark.usefixtures("always")
def test_networks_of_bf16_are_close(network: str, target: str) -> None:
    """What the interpreter computes with the same roundings, up to the order of sums."""
    model = NETWORKS[network]()
    inputs = random_inputs(model, np.random.default_rng(6))
    (expected,) = InferenceSession(model, backend="interpreter", precision="bf16").run(None, inputs)
    session = InferenceSession(model, target=target, precision="bf16", cache=False)
    (found,) = session.run(None, inputs)
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2 * np.abs(expected).max())
    (plain,) = InferenceSession(model, backend="interpreter").run(None, inputs)
    assert np.abs(found - plain).max() > 1e-5
