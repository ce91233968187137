"""
A sample has the same bits whatever the number of the others, in any code for it: with the accuracy strict in all that
is multiplied and summed, by default in plain products of matrices and in folds.
"""

from __future__ import annotations

import numpy as np
import pytest
from batch_cases import CASES, MAX_SAMPLES
from breadth import long_ones

from glow_mlir import InferenceSession

USUAL = {"Gemm 64x10", "MatMul of float16", "MatMulNBits", "network", "Conv of codes", "LSTM 16"}
"""Forms whose sums would have another order for few rows, which each run looks at with the accuracy strict."""

BY_DEFAULT = {"Gemm 64x10", "MatMul 33x40"}
"""Those that each run looks at with the default accuracy."""

STRICT_ONLY = ("LSTM", "GRU", "RNN", "MatMulNBits", "Conv", "network")
"""What has algorithms, or orders of sums, that are faster for some numbers of rows."""

RUNS = [
    *(("strict", name) for name in CASES),
    *(("default", name) for name in CASES if not name.startswith(STRICT_ONLY)),
]

FIXED = (1, 5)
"""Numbers of samples for which there is code of its own as well."""


def is_long(run: tuple[str, str]) -> bool:
    """Whether a short run has no time for a form."""
    accuracy, name = run
    return name not in (USUAL if accuracy == "strict" else BY_DEFAULT)


@pytest.mark.parametrize("run", long_ones(RUNS, is_long), ids=" ".join)
def test_the_number_of_samples_changes_no_bit(run: tuple[str, str]) -> None:
    accuracy, name = run
    case = CASES[name]
    model, x = case.model(), case.samples()
    session = InferenceSession(model, dimensions={"N": (1, MAX_SAMPLES)}, accuracy=accuracy, cache=False)
    (whole,) = session.run(None, {"x": x})
    for count in range(1, MAX_SAMPLES + 1):
        some = range(count)
        inputs, wanted = {"x": x.take(some, case.axis)}, whole.take(some, case.result_axis)
        (found,) = session.run(None, inputs)
        np.testing.assert_array_equal(found, wanted, err_msg=f"{count} samples")
        if count in FIXED:
            fixed = InferenceSession(model, dimensions={"N": count}, accuracy=accuracy, cache=False)
            np.testing.assert_array_equal(fixed.run(None, inputs)[0], wanted, err_msg=f"code for {count} samples")
