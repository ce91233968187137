"""Quantized models: as accurate as their floats, whatever the graph, and cached by all that decides what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breadth import share
from checkout import ROOT
from models import random_inputs
from random_networks import network
from train_digits import load

from glow_mlir import InferenceSession, Quantization
from glow_mlir.api.profiling import profiled
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import OptionError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.options.quantization import CALIBRATIONS, PRECISIONS, SCHEMAS

DIGITS = ROOT / "examples" / "digits.onnx"
BOUNDS = {schema: 0.005 for schema in SCHEMAS} | {"symmetric-with-power2-scale": 0.01}
"""Schema → the share of images by which accuracy may be worse than that of floats."""

NEEDS_IMAGES = pytest.mark.extra
"""The images are those of scikit-learn."""

SEEDS = range(12)
"""Seeds of random networks."""


@pytest.fixture(scope="module")
def noise() -> np.ndarray:
    """Images of noise."""
    return np.random.default_rng(0).random((256, 1, 8, 8), np.float32)


@pytest.fixture(scope="module")
def profile(noise: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of the digits example, on images of noise."""
    path = tmp_path_factory.mktemp("profiles") / "noise.json"
    profiled(DIGITS, [{"image": noise}], dimensions={"N": len(noise)}, backend="interpreter").write(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a profile of the digits example, on images that it was trained with."""
    folder = tmp_path_factory.mktemp("profiles")
    train, _, _, _ = load()
    inputs = [{"image": train[:256]}]
    profiled(DIGITS, inputs, dimensions={"N": 256}, backend="interpreter").write(folder / "digits.json")
    return folder


def probabilities(images: np.ndarray, quantize: Quantization | None, backend: str = "interpreter") -> np.ndarray:
    """What the digits example says of images."""
    session = InferenceSession(DIGITS, dimensions={"N": len(images)}, backend=backend, quantize=quantize, cache=False)
    return session.run(None, {"image": images})[0]


def accuracy(quantize: Quantization | None) -> float:
    """The share of the images held back that the digits example tells."""
    _, _, images, labels = load()
    return float((probabilities(images, quantize).argmax(1) == labels).mean())


@NEEDS_IMAGES
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_digits_are_as_well_told(folder: Path, schema: str, calibration: str) -> None:
    quantize = Quantization(folder / "digits.json", schema=schema, calibration=calibration)
    assert accuracy(quantize) >= accuracy(None) - BOUNDS[schema]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_machine_code_says_what_the_interpreter_says(
    noise: np.ndarray, profile: Path, schema: str, precision: str
) -> None:
    quantize = Quantization(profile, schema=schema, precision=precision)
    machine, interpreted = (probabilities(noise, quantize, backend) for backend in ("cpu", "interpreter"))
    if precision == "int8":  # Their sums are integers.
        np.testing.assert_allclose(machine, interpreted, atol=1e-5)
        return
    # Between codes of 16 bits are floats, whose sums depend on the machine: a result may be the next code.
    machine, interpreted = np.log(machine), np.log(interpreted)
    step = np.ptp(interpreted) / (2**15 - 1)
    np.testing.assert_allclose(machine - machine[:, :1], interpreted - interpreted[:, :1], atol=step)


@NEEDS_IMAGES
@pytest.mark.parametrize(("option", "value"), [("bias", "int8"), ("per_channel", False), ("keep", ["conv1"])])
def test_digits_are_as_well_told_with_options(folder: Path, option: str, value: Any) -> None:
    assert accuracy(Quantization(folder / "digits.json", **{option: value})) >= accuracy(None) - 0.005


def test_sixteen_bits_are_nearly_floats(noise: np.ndarray, profile: Path) -> None:
    wide, floats = (probabilities(noise, options) for options in (Quantization(profile, precision="int16"), None))
    assert 0 < np.abs(wide - floats).max() < 1e-3


@pytest.mark.parametrize("seed", share(SEEDS, "codes of sixteen bits"))
def test_codes_of_sixteen_bits_change_little_in_any_network(tmp_path: Path, seed: int) -> None:
    """With hardly any rounding, a wrong place, scale or group would show."""
    model = network(seed)
    inputs = random_inputs(model, np.random.default_rng(seed))
    profiled(model, [inputs], backend="interpreter").write(tmp_path / "p.json")
    floats = InferenceSession(model, backend="interpreter").run(None, inputs)
    for schema in SCHEMAS:
        options = Quantization(tmp_path / "p.json", schema=schema, precision="int16")
        found = InferenceSession(model, backend="interpreter", quantize=options).run(None, inputs)
        for expected, actual in zip(floats, found, strict=True):
            np.testing.assert_allclose(actual, expected, atol=5e-3 * max(1.0, float(np.abs(expected).max())), rtol=0)


@pytest.mark.parametrize("seed", share(SEEDS, "operators on codes"))
def test_operators_on_codes_give_what_those_on_numbers_give(tmp_path: Path, seed: int) -> None:
    model = network(seed)
    inputs = random_inputs(model, np.random.default_rng(seed))
    profiled(model, [inputs], backend="interpreter").write(tmp_path / "p.json")
    options = Quantization(tmp_path / "p.json")
    numbers, codes = (
        InferenceSession(model, backend="interpreter", quantize=options, disable=disable).run(None, inputs)
        for disable in (["fold-quantization"], [])
    )
    for expected, actual in zip(numbers, codes, strict=True):
        # Sums in another order may fall on the other side of the middle between two codes.
        far = np.abs(actual.astype(np.float64) - expected) > 0.02 * max(1.0, float(np.abs(expected).max()))
        assert far.mean() <= 0.02


def test_another_profile_under_the_same_name_is_another_model(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
    (path := tmp_path / "p.json").write_text(profile.read_text())

    def is_compiled(quantize: Quantization | None) -> bool:
        return bool(InferenceSession(DIGITS, dimensions={"N": 1}, quantize=quantize).compile_seconds)

    assert is_compiled(None)
    assert is_compiled(Quantization(path))
    assert not is_compiled(Quantization(path))
    assert is_compiled(Quantization(path, schema="symmetric"))
    path.write_text(profile.read_text() + " ")
    assert is_compiled(Quantization(path))
    assert not is_compiled(None)


def test_a_module_past_its_place_is_not_quantized(profile: Path) -> None:
    module = import_model(DIGITS, {"N": 1})
    Compilation(module, "interpreter").run("optimized")
    quantize = Quantization(profile)
    with pytest.raises(OptionError, match="a module at stage 'optimized' cannot be quantized"):
        InferenceSession(module, backend="interpreter", quantize=quantize)


def test_a_module_of_ours_is_quantized_as_onnx_is(noise: np.ndarray, profile: Path) -> None:
    quantize = Quantization(profile)
    module = import_model(DIGITS, {"N": len(noise)})
    found = InferenceSession(module, backend="interpreter", quantize=quantize).run(None, {"image": noise})
    np.testing.assert_array_equal(found[0], probabilities(noise, quantize))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": "odd"}, "no schema 'odd'"),
        ({"precision": "int4"}, "no precision 'int4'"),
        ({"bias": "int16"}, "no bias 'int16'"),
        ({"calibration": "none"}, "no calibration 'none'"),
        ({"keep": "conv1"}, "keep='conv1' is no list of nodes"),
    ],
)
def test_words_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Quantization("p.json", **options)
