"""Whole networks on other processors: in floats within the bound of docs/floating-point.md, in codes bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from embedded_models import NETWORKS, PRECISIONS, compiled, inputs_of
from emulators import MACHINES, Machine, machine_for

from glow_mlir.runtime.artifact import WRONG_VECTORS

BOUND = 2e-5
"""The largest difference from the interpreter's results that floats may have, by the largest of them."""

EXACT = {("digits", "int8"), ("mobilenet", "int8")}
"""Networks whose results are codes, scaled: nothing in them is rounded anew."""


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_network_gives_the_results_of_the_interpreter(name: str, precision: str, target: str) -> None:
    machine = machine_for(target)
    program, inputs = compiled(name, precision, target), inputs_of(name)
    assert program.artifact.manifest.requirements == ()
    ran = machine.run(program.artifact, inputs)
    assert ran.status == 0
    for binding, wanted in program.interpreted(inputs).items():
        found = ran.outputs[binding]
        if (name, precision) in EXACT:
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=0, atol=BOUND * float(np.abs(wanted).max()))


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


def test_codes_are_computed_by_lines() -> None:
    """Between instructions of a chain, codes are seen as what they mean, or as the integers that they are."""
    program, inputs = compiled("mobilenet", "int8", "sse2,l2_bytes=16384"), inputs_of("mobilenet")
    assert any("image_lines" in op.properties for op in program.allocated.walk())
    ran = MACHINES["sse2"][0].run(program.artifact, inputs)
    for binding, wanted in program.interpreted(inputs).items():
        np.testing.assert_array_equal(ran.outputs[binding], wanted)
