"""Models of one operator equal the reference kernels of LiteRT: integers to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tflite_operator_cases import SingleOperator, single_operators

from glow_mlir import InferenceSession
from glow_mlir.frontends.tflite.file import TfliteFile
from glow_mlir.frontends.tflite.importer import import_tflite

pytestmark = pytest.mark.extra

CALLS = 5


def reference(model: bytes) -> Any:
    """An interpreter with the reference kernels."""
    interpreter: Any = pytest.importorskip("ai_edge_litert.interpreter")
    kernels = interpreter.OpResolverType.BUILTIN_REF
    found = interpreter.Interpreter(model_content=model, experimental_op_resolver_type=kernels)
    found.allocate_tensors()
    return found


def check(case: SingleOperator, generator: np.random.Generator) -> None:
    """Compare a model's results for some inputs."""
    session = InferenceSession(import_tflite(TfliteFile.of(memoryview(case.data))), threads=1)
    theirs, names = reference(case.data), [item.name for item in session.get_inputs()]
    (output,) = theirs.get_output_details()
    for _ in range(CALLS):
        arrays = case.arrays(generator)
        for detail, array in zip(theirs.get_input_details(), arrays, strict=True):
            theirs.set_tensor(detail["index"], array)
        theirs.invoke()
        wanted = theirs.get_tensor(output["index"])
        (found,) = session.run(None, dict(zip(names, arrays, strict=True)))
        if wanted.dtype.kind == "f":
            scale = max(float(np.abs(wanted).max()), 1e-6)
            np.testing.assert_allclose(found / scale, wanted / scale, rtol=0, atol=3e-6, err_msg=case.name)
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=case.name)


@pytest.mark.parametrize("seed", range(3))
def test_single_operators_equal_the_reference(seed: int) -> None:
    generator = np.random.default_rng(seed)
    cases = list(single_operators(seed))
    assert len(cases) > 90
    for case in cases:
        check(case, generator)
