"""ONNX's tests of tier 1 on a device of OpenCL: what the CPU backend passes, passes there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import onnx.backend.test
import pytest
from onnx_suite import MISSES, expected_failures, functions_of, suite_tests, tier_of

from glow_mlir import InferenceSession, SpecializationLimits, onnx_backend

pytestmark = [pytest.mark.extra, pytest.mark.long]

TESTS = [name for name in suite_tests() if tier_of(name) == "1" and name not in expected_failures()]


class OnDevice(onnx_backend.GlowBackend):
    """The backend of `glow_mlir.onnx_backend`, with sessions on the first device."""

    @classmethod
    def prepare(cls, model: Any, device: str | None = "CPU", **kwargs: Any) -> onnx_backend.GlowBackendRep:
        one = SpecializationLimits(number=1)
        session = InferenceSession(model, backend="opencl", cache=False, limits=one, **kwargs)
        return onnx_backend.GlowBackendRep(session)


@cache
def cases_on_device() -> Mapping[str, Callable[[None], None]]:
    """The tests by name."""
    return functions_of(onnx.backend.test.BackendTest(OnDevice, __name__))


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_case(name: str) -> None:
    cases_on_device()[name](None)


def test_few_are_expected_to_fail() -> None:
    missed = [name for name in expected_failures() if tier_of(name) == "1"]
    assert len(missed) < len(TESTS) // 100
    assert all(expected_failures()[name][0] in MISSES.values() for name in missed)
