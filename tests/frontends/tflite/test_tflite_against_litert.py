"""Models of one operator equal the reference kernels of LiteRT: integers to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_operator_cases import SingleOperator, single_operators
from tflite_reference import MAX_ERROR, reference

from glow_mlir import InferenceSession
from glow_mlir.frontends.tflite.file import TfliteFile
from glow_mlir.frontends.tflite.importer import import_tflite

pytestmark = pytest.mark.extra

CALLS = 4

PART = 20
"""Of the cases of the first seed, one in so many is compared where time is short."""

UNITS = {"UNIDIRECTIONAL_SEQUENCE_LSTM": 1}
"""Operator → the distance of quantized values that is allowed: its tables are those of TensorFlow Lite Micro."""


def check(case: SingleOperator, generator: np.random.Generator) -> None:
    """Compare a model's results for some inputs, with its state if it has any."""
    kind = case.name.split()[0]
    session = InferenceSession(import_tflite(TfliteFile.of(memoryview(case.data))), threads=1)
    theirs, names = reference(case.data, kind), [item.name for item in session.get_inputs()]
    for _ in range(CALLS):
        arrays = case.arrays(generator)
        for detail, array in zip(theirs.get_input_details(), arrays, strict=True):
            theirs.set_tensor(detail["index"], array)
        theirs.invoke()
        results = session.run(None, dict(zip(names, arrays, strict=True)))
        for detail, found in zip(theirs.get_output_details(), results, strict=True):
            compare(found, theirs.get_tensor(detail["index"]), case.name, UNITS.get(kind, 0))


def compare(found: np.ndarray, wanted: np.ndarray, name: str, units: int) -> None:
    """Raise unless integers are equal, but for some units, and floats as good as equal."""
    assert found.dtype == wanted.dtype, name
    if wanted.dtype.kind == "f":
        limit = np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-6).astype(np.float64)
        np.testing.assert_allclose(found / limit, wanted / limit, rtol=0, atol=MAX_ERROR, err_msg=name)
    elif units:
        assert np.abs(found.astype(np.int64) - wanted).max(initial=0) <= units, name
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=name)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
def test_single_operators_equal_the_reference(seed: int) -> None:
    generator = np.random.default_rng(seed)
    cases = list(single_operators(seed))
    assert len(cases) > 400
    for case in cases if seed else cases[::PART]:
        check(case, generator)
