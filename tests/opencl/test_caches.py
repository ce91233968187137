"""Tables of keys and values of sequences, on devices of OpenCL."""

from __future__ import annotations

import numpy as np
import pytest
from execute import Case, module_of
from opencl_devices import opencl_device

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.cache import ExtendCacheOp

pytestmark = pytest.mark.extra


@pytest.mark.parametrize(("length", "element"), [(3, np.float32), (9, np.float16)])
def test_tables_are_those_of_the_interpreter(length: int, element: type[np.floating]) -> None:
    opencl_device()
    rng = np.random.default_rng(0)
    past, rows = (rng.standard_normal((3, 2, count, 4)).astype(element) for count in (5, 3))
    case = Case(ExtendCacheOp, past, rows, np.array([-2, 2, 7]), np.array([1, 12, 8]), length=length)
    module, inputs = module_of(case)
    (wanted,), (found,) = (
        InferenceSession(module, backend=backend).run(None, inputs) for backend in ("interpreter", "opencl")
    )
    np.testing.assert_array_equal(found, wanted)
