"""Configurations in files: what was written is read, sessions compute by it, and a line for each mistake."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT

from glow_mlir import InferenceSession, Quantization
from glow_mlir.api.profiling import profiled
from glow_mlir.errors import InputError, OptionError
from glow_mlir.options.declaration import parameters
from glow_mlir.quantization.configuration import Configuration, read_configuration

DIGITS = ROOT / "examples" / "digits.onnx"


def full(profile: Path) -> Configuration:
    """A configuration in which each option has another value than its default."""
    quantize = Quantization(
        profile,
        schema="symmetric",
        precision="int16",
        bias="int8",
        calibration="kl",
        per_channel=False,
        keep=("conv1", "soft*"),
        assert_all=True,
        calibrations={"relu1:0": "mse"},
        bias_correction=False,
    )
    return Configuration(quantize, "bf16", ("classifier",))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    written = full(tmp_path / "p.json")
    written.write(tmp_path / "inner" / "c.json")
    assert json.loads((tmp_path / "inner" / "c.json").read_text())["quantize"]["profile"] == os.path.join(
        "..", "p.json"
    )
    found = read_configuration(tmp_path / "inner" / "c.json")
    assert found.quantize is not None
    assert parameters(found.quantize) == {
        **parameters(full(tmp_path / "p.json").session_options()["quantize"]),
        "profile": str(tmp_path / "inner" / ".." / "p.json"),
    }
    assert (found.precision, found.keep_precision) == ("bf16", ("classifier",))
    Configuration(precision="f16").write(tmp_path / "c.json")
    assert read_configuration(tmp_path / "c.json") == Configuration(precision="f16")


def test_sessions_compute_by_a_file(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((4, 1, 8, 8), np.float32)
    profiled(DIGITS, [{"image": images}], dimensions={"N": 4}, backend="interpreter").write(tmp_path / "p.json")
    chosen = Configuration(Quantization(tmp_path / "p.json", keep=["conv*"]), "bf16", ("conv2",))
    chosen.write(tmp_path / "c.json")

    def run(**options: object) -> np.ndarray:
        session = InferenceSession(DIGITS, dimensions={"N": 4}, backend="interpreter", **options)  # pyright: ignore[reportArgumentType]
        return session.run(None, {"image": images})[0]

    found = run(configuration=tmp_path / "c.json")
    np.testing.assert_array_equal(found, run(**chosen.session_options()))
    others = [run(), run(quantize=chosen.quantize), run(quantize=chosen.quantize, precision="bf16")]
    assert not any(np.array_equal(found, other) for other in others)


@pytest.mark.parametrize(
    "options",
    [{"precision": "bf16"}, {"keep_precision": ["conv1"]}, {"quantize": Quantization("p")}, {"weights": "int8"}],
)
def test_precisions_are_said_once(tmp_path: Path, options: dict[str, object]) -> None:
    Configuration().write(tmp_path / "c.json")
    with pytest.raises(OptionError, match="a configuration already sets the precision of all nodes"):
        InferenceSession(DIGITS, configuration=tmp_path / "c.json", **options)  # pyright: ignore[reportArgumentType]


def test_nothing_is_kept_from_a_precision_that_there_is_not() -> None:
    with pytest.raises(OptionError, match="keep_precision needs precision or weights"):
        InferenceSession(DIGITS, dimensions={"N": 1}, backend="interpreter", keep_precision=["typo"])


def test_no_precision_is_that_of_the_model() -> None:
    inputs = {"image": np.random.default_rng(0).random((1, 1, 8, 8), np.float32)}
    found = [
        InferenceSession(DIGITS, dimensions={"N": 1}, backend="interpreter", precision=word, weights=word)
        for word in (None, "f32")
    ]
    np.testing.assert_array_equal(found[0].run(None, inputs)[0], found[1].run(None, inputs)[0])


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    full(tmp_path / "p.json").write(path := tmp_path / "c.json")
    whole = json.loads(path.read_text())
    quantize = whole["quantize"]
    damaged: list[object] = [
        3,
        {**whole, "format": "other"},
        {**whole, "precision": 1},
        {**whole, "keep_precision": "conv1"},
        {**whole, "quantize": {**quantize, "schema": "odd"}},
        {**whole, "quantize": {**quantize, "more": 1}},
        {**whole, "quantize": {**quantize, "per_channel": "yes"}},
        {**whole, "quantize": {**quantize, "calibrations": {"x": "odd"}}},
        {**whole, "quantize": 3},
    ]
    for data in damaged:
        path.write_text(json.dumps(data))
        with pytest.raises(InputError, match="is no configuration, or is damaged"):
            read_configuration(path)
    path.write_text(json.dumps({**whole, "version": 9}))
    with pytest.raises(InputError, match="is a configuration of version 9, not 1"):
        read_configuration(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_configuration(tmp_path / "none.json")


def test_options_that_a_file_does_not_say_have_their_defaults(tmp_path: Path) -> None:
    Configuration(Quantization(tmp_path / "p.json")).write(tmp_path / "c.json")
    data = json.loads((tmp_path / "c.json").read_text())
    del data["quantize"]["weights"]
    (tmp_path / "c.json").write_text(json.dumps(data))
    found = read_configuration(tmp_path / "c.json").quantize
    assert found is not None
    assert found.weights == "same"
