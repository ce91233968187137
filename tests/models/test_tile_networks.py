"""Whole networks of codes whose products tile registers compute, which are emulated: bit for bit as the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from execute import compile_module
from machines import tile_targets
from models import random_inputs
from quantized_models import quantized_model
from tile_emulation import emulate_tiles

from glow_mlir.codegen.kernels import tile_products
from glow_mlir.codegen.kernels.gemm import TILE_PRODUCTS
from glow_mlir.codegen.selection.kernel import tiles_of
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import operations

FEWEST = {"residual": 6, "encoder": 6}
"""Network → how many of its products have runs of whole cells."""


@pytest.mark.parametrize("scheme", ["qdq-u8", "qoperator-i8"])
@pytest.mark.parametrize("network", FEWEST)
def test_networks_are_exact(network: str, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emulate_tiles(monkeypatch)

    def pays(*_: object) -> bool:
        return True

    monkeypatch.setattr(tile_products, "_pays", pays)
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
