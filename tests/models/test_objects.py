"""Objects of whole models need nothing from outside."""

from __future__ import annotations

import pytest
from models import BUILT, model_named

from glow_mlir.codegen.build import build_artifact
from glow_mlir.codegen.llvm.symbols import undefined_symbols
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model

ALLOWED: frozenset[str] = frozenset()
"""Symbols that an object may leave to the linker: none."""


@pytest.mark.parametrize("target", ["host", "scalar"])
@pytest.mark.parametrize("name", ["inception_v1", "squeezenet", *BUILT])
def test_object_has_no_undefined_symbols(name: str, target: str) -> None:
    """No libc, no libm, no compiler run-time library."""
    compilation = Compilation(import_model(model_named(name)), target=target)
    compilation.run(until="allocated")
    artifact = build_artifact(compilation.module, compilation.context)
    assert set(undefined_symbols(artifact.code[0])) <= ALLOWED
