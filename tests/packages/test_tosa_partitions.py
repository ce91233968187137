"""Models on an NPU of TOSA and the CPU: most of the work is the NPU's, and results are the CPU's."""

from __future__ import annotations

import pytest
from partition_models import SMALL
from partitioned_runs import check
from tosa_cases import NAME, need_tools, offer_tosa

pytestmark = pytest.mark.extra

SAME_CODES = "host,requantization=integer"
"""The CPU, with codes that change their scale as those of TOSA do."""


@pytest.fixture(autouse=True, scope="module")
def backend() -> None:
    """The backend, and Arm's programs."""
    patch = pytest.MonkeyPatch()
    offer_tosa(patch)
    need_tools(patch)


@pytest.mark.parametrize("family", SMALL)
@pytest.mark.parametrize("devices", [f"{NAME},cpu", f"cpu,{NAME}"])
def test_model_in_stages_on_npu_and_cpu(family: str, devices: str) -> None:
    check(family, devices, "pipeline", is_full=False, target=SAME_CODES)


@pytest.mark.parametrize("family", SMALL)
def test_npu_has_nearly_all(family: str) -> None:
    npu, cpu = check(family, f"{NAME},cpu", "preferred", is_full=False, target=SAME_CODES)
    assert npu.multiply_adds >= 0.95 * (npu.multiply_adds + cpu.multiply_adds)
    assert npu.operators >= 0.8 * (npu.operators + cpu.operators)
    assert not npu.refused
