"""Profiles: files that are read as they were written, told from others, and merged without loss."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from checkout import ROOT

from glow_mlir import InferenceSession, Quantization
from glow_mlir.api.profiling import Profiler, profiled
from glow_mlir.errors import GlowError, InputError, OptionError
from glow_mlir.quantization.profile import Profile, read_profile
from glow_mlir.support.activity import warning_to

DIGITS = ROOT / "examples" / "digits.onnx"


def samples(count: int, batch: int = 1, seed: int = 0) -> list[dict[str, np.ndarray]]:
    """Inputs of some runs of the digits example."""
    images = np.random.default_rng(seed).random((count, batch, 1, 8, 8), np.float32)
    return [{"image": image} for image in images]


def text_of(profile: Profile, folder: Path) -> str:
    """What a profile is as a file."""
    profile.write(folder / "p.json")
    return (folder / "p.json").read_text()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    profile = profiled(DIGITS, samples(3), dimensions={"N": 1}, bins=64)
    text = text_of(profile, tmp_path)
    assert text_of(read_profile(tmp_path / "p.json"), tmp_path) == text
    assert {"image:0", "relu1:0", "relu2:0"} <= profile.histograms.keys()
    assert profile.histograms["image:0"].total == 3 * 64


def test_the_machine_and_the_interpreter_see_the_same_graph() -> None:
    found = [profiled(DIGITS, samples(2), dimensions={"N": 1}, backend=name) for name in ("cpu", "interpreter")]
    assert found[0].graph == found[1].graph
    assert found[0].histograms.keys() == found[1].histograms.keys()
    for name, histogram in found[0].histograms.items():
        other = found[1].histograms[name]
        np.testing.assert_allclose([histogram.low, histogram.high], [other.low, other.high], rtol=1e-5, atol=1e-6)


def test_batches_of_any_size_are_of_one_graph_and_merge(tmp_path: Path) -> None:
    whole = profiled(DIGITS, samples(1, 6), dimensions={"N": 6}, backend="interpreter")
    single = [{"image": image[None]} for image in samples(1, 6)[0]["image"]]
    parts = [profiled(DIGITS, part, dimensions={"N": 1}, backend="interpreter") for part in (single[:2], single[2:])]
    parts[0].merge(parts[1])
    assert parts[0].graph == whole.graph
    assert parts[0].histograms["image:0"].to_json() == whole.histograms["image:0"].to_json()
    assert {name: h.total for name, h in parts[0].histograms.items()} == {
        name: h.total for name, h in whole.histograms.items()
    }


def test_outputs_of_the_model_are_its_own() -> None:
    profiler = Profiler(DIGITS, dimensions={"N": 1}, backend="interpreter")
    assert profiler.run(samples(1)[0]).keys() == {"probabilities"}


def test_profiles_of_different_graphs_or_bins_do_not_merge() -> None:
    with pytest.raises(OptionError, match="different graphs"):
        Profile("a").merge(Profile("b"))
    with pytest.raises(OptionError, match="8 and 16 bins"):
        Profile("a", 8).merge(Profile("a", 16))
    with pytest.raises(OptionError, match="different weights"):
        Profile("a", weights="x").merge(Profile("a", weights="y"))


def test_other_weights_are_told_of(tmp_path: Path) -> None:
    """They are no reason to refuse a profile: numbers may be nearly the same."""
    profiled(DIGITS, samples(2), dimensions={"N": 1}, backend="interpreter").write(tmp_path / "p.json")
    other = onnx.load(DIGITS)
    (weights,) = (tensor for tensor in other.graph.initializer if tensor.name == "conv2.weight")
    weights.raw_data = (onnx.numpy_helper.to_array(weights) * np.float32(1.5)).tobytes()
    for model, batch, count in ((DIGITS, 1, 0), (DIGITS, 3, 0), (other.SerializeToString(), 1, 1)):
        told: list[GlowError] = []
        with warning_to(told.append):
            quantize = Quantization(tmp_path / "p.json")
            InferenceSession(model, dimensions={"N": batch}, backend="interpreter", quantize=quantize)
        assert ["other weights" in str(warning) for warning in told] == [True] * count


def test_numbers_that_are_not_finite_are_no_range() -> None:
    profile = Profile("a", 8)
    profile.add({"x": np.array([np.nan, 1.0, -np.inf, 3.0], np.float32), "y": np.full(3, np.nan, np.float32)})
    assert profile.histograms.keys() == {"x"}
    assert (profile.histograms["x"].low, profile.histograms["x"].high) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"format": "other"}, "is no profile"),
        ({"version": 99}, "is a profile of version 99, not 2"),
        ({"bins": 1}, "is no profile"),
        ({"bins": "many"}, "is no profile"),
        ({"graph": None}, "is no profile"),
        ({"values": [1]}, "is no profile"),
        ({"values": {"x": {"min": 0}}}, "is no profile"),
    ],
)
def test_damage_is_told_in_one_line(tmp_path: Path, damage: dict[str, object], message: str) -> None:
    profile = Profile("a", 8)
    profile.add({"x": np.ones(2, np.float32)})
    path = tmp_path / "p.json"
    path.write_text(json.dumps(json.loads(text_of(profile, tmp_path)) | damage))
    with pytest.raises(InputError, match=message) as failure:
        read_profile(path)
    assert failure.value.file == str(path)


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_profile(tmp_path / "none.json")
    (tmp_path / "cut.json").write_bytes(b'{"format": "glow-profile", \xff')
    with pytest.raises(InputError, match="is no profile"):
        read_profile(tmp_path / "cut.json")
    with pytest.raises(GlowError, match="cannot be written"):
        Profile("a").write(tmp_path / "no" / "folder.json")
