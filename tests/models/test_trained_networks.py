"""A deep network that was trained is about as accurate on pictures that were held back in each narrow form."""

from __future__ import annotations

import pytest
from quantize_digits import Trial

from glow_mlir import Quantization
from glow_mlir.options.quantization import SCHEMAS
from glow_mlir.quantization.schemas import POWER_OF_TWO

pytestmark = pytest.mark.extra
"""The images are those of scikit-learn."""

BOUNDS = {schema: 0.005 for schema in SCHEMAS} | {POWER_OF_TWO: 0.01}
"""Schema → the share of pictures by which codes of 8 bits may be worse than floats."""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """The residual network of 20 layers, and half of the pictures that were held back."""
    return Trial("residual_digits", tmp_path_factory.mktemp("profiles"), limit=2000)


@pytest.fixture(scope="module")
def floats(trial: Trial) -> float:
    """The accuracy of the network as it was trained."""
    return trial.accuracy()


def test_network_has_learned(floats: float) -> None:
    assert floats > 0.96


@pytest.mark.parametrize("schema", SCHEMAS)
def test_codes_are_about_as_accurate(trial: Trial, floats: float, schema: str) -> None:
    assert trial.accuracy(Quantization(trial.profile, schema)) >= floats - BOUNDS[schema]


def test_narrow_floats_are_as_accurate(trial: Trial, floats: float) -> None:
    assert abs(trial.accuracy(precision="bf16") - floats) <= 0.001
