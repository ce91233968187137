"""Whole networks on other processors: in floats within the bound of docs/floating-point.md, in codes bit for bit."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from embedded_models import NETWORKS, PRECISIONS, compiled, inputs_of
from emulators import MACHINES, Machine, machine_for
from in_process import run_tool

from glow_mlir import InferenceSession
from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.runtime.artifact import WRONG_VECTORS
from glow_mlir.runtime.bundle import read_bundle
from glow_mlir.tools import glow_compile

BOUND = 2e-5
"""The largest difference from the interpreter's results that floats may have, by the largest of them."""

EXACT = {("digits", "int8"), ("mobilenet", "int8")}
"""
Networks whose results are codes, scaled: nothing in them is rounded anew.

In `keywords` and `encoder`, recurrent cells, normalization, attention and softmax stay in floats and codes are made of
what these give, which may lie on either side of the middle between two; products of codes then are floats again.
"""


@pytest.mark.extra
@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_network_gives_the_results_of_the_interpreter(name: str, precision: str, target: str) -> None:
    machine = machine_for(target)
    program, inputs = compiled(name, precision, target), inputs_of(name)
    if PRESETS[target].singles:
        assert program.artifact.manifest.requirements == ()
    ran = machine.run(program.artifact, inputs)
    assert ran.status == 0
    for binding, wanted in program.interpreted(inputs).items():
        found = ran.outputs[binding]
        if (name, precision) in EXACT:
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=0, atol=BOUND * float(np.abs(wanted).max()))


@pytest.mark.extra
@pytest.mark.parametrize(
    ("target", "other", "status"),
    [
        ("sve-256", MACHINES["sve-128"][0], WRONG_VECTORS),
        ("rvv-256", MACHINES["rvv-128"][0], WRONG_VECTORS),
        # NEON's code, which SVE's vectors do not change, and vectors that are longer than those asked for.
        ("sve-128", MACHINES["sve-256"][0], 0),
        ("rvv-128", MACHINES["rvv-256"][0], 0),
    ],
)
def test_code_for_other_vectors_is_refused_or_right(target: str, other: Machine, status: int) -> None:
    if missing := other.missing():
        pytest.skip(missing)
    program, inputs = compiled("encoder", "float", target), inputs_of("encoder")
    ran = other.run(program.artifact, inputs)
    assert ran.status == status
    for binding, wanted in program.interpreted(inputs).items():
        right = np.allclose(ran.outputs[binding], wanted, rtol=0, atol=BOUND * float(np.abs(wanted).max()))
        assert right == (status == 0)


@pytest.mark.extra
@pytest.mark.parametrize("target", ["cortex-m4", "wasm32"])
def test_files_that_glow_compile_writes_run_on_targets(target: str, tmp_path: Path) -> None:
    machine, model, image = machine_for(target), ROOT / "examples" / "digits.onnx", np.eye(8, dtype=np.float32)
    argv = [str(model), "--bind", "N=1", "--target", target, "-o", "out"]
    assert run_tool(glow_compile.main, argv, program="glow-compile", directory=tmp_path).code == 0
    _, _, artifact = read_bundle(tmp_path / "out")
    inputs = {"image": image[None, None]}
    ran = machine.run(artifact, inputs)
    (wanted,) = InferenceSession(model, backend="interpreter", cache=False, dimensions={"N": 1}).run(None, inputs)
    assert ran.status == 0
    np.testing.assert_allclose(ran.outputs["probabilities"], wanted, rtol=0, atol=BOUND)
    if ran.stack_bytes is not None:
        bound = re.search(r"define DIGITS_STACK_SIZE +(\d+)", (tmp_path / "out" / "digits.h").read_text())
        assert bound is not None
        assert 0 < ran.stack_bytes <= int(bound[1])


@pytest.mark.long
def test_codes_are_computed_by_lines() -> None:
    """Between instructions of a chain, codes are seen as what they mean, or as the integers that they are."""
    program, inputs = compiled("mobilenet", "int8", "sse2,l2_bytes=16384"), inputs_of("mobilenet")
    assert any("image_lines" in op.properties for op in program.allocated.walk())
    ran = MACHINES["sse2"][0].run(program.artifact, inputs)
    for binding, wanted in program.interpreted(inputs).items():
        np.testing.assert_array_equal(ran.outputs[binding], wanted)
