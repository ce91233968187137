"""`glow-profile` and `glow-run --load-profile` in process: data sets of every form, and a line for every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from in_process import Finished, run_tool

from glow_mlir.tools import glow_profile, glow_run

DIGITS = str(ROOT / "examples" / "digits.onnx")
INTERPRETED = ("--backend", "interpreter")


def profile(folder: Path, *arguments: object, bind: int = 2) -> Finished:
    """Run the tool on the digits example in that folder."""
    argv = [DIGITS, "--bind", f"N={bind}", *INTERPRETED, *map(str, arguments)]
    return run_tool(glow_profile.main, argv, program="glow-profile", directory=folder)


def total(folder: Path, value: str = "image:0") -> int:
    """How many numbers of a value the profile in a folder has counted."""
    return sum(json.loads((folder / "digits.profile.json").read_text())["values"][value]["counts"])


def images(count: int) -> np.ndarray:
    return np.random.default_rng(0).random((count, 1, 8, 8), np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with six images in `samples.npz`."""
    np.savez(tmp_path / "samples.npz", image=images(6))
    return tmp_path


def test_samples_are_runs_of_the_batch(folder: Path) -> None:
    finished = profile(folder, "--dataset", "samples.npz")
    assert (finished.code, finished.stderr) == (0, b"")
    assert finished.stdout == b"digits.profile.json: 9 values in 3 runs\n"
    assert total(folder) == 6 * 64


def test_an_axis_of_runs_is_taken_as_such(folder: Path) -> None:
    np.savez(folder / "runs.npz", image=images(6).reshape(3, 2, 1, 8, 8))
    assert b"in 3 runs" in profile(folder, "--dataset", "runs.npz").stdout
    assert total(folder) == 6 * 64


def test_what_does_not_fill_a_run_is_left_out_with_a_warning(folder: Path) -> None:
    finished = profile(folder, "--dataset", "samples.npz", bind=4)
    assert b"in 1 run\n" in finished.stdout
    assert finished.stderr == b"samples.npz: warning: the last 2 of 6 samples do not fill a run of 4\n"


@pytest.mark.parametrize("kind", ["npz", "npy", "pgm"])
def test_folders_of_files_of_one_kind(tmp_path: Path, kind: str) -> None:
    (data := tmp_path / "data").mkdir()
    (data / ".hidden").write_text("x")
    for number, image in enumerate(images(4)):
        if kind == "npz":
            np.savez(data / f"{number}.npz", image=np.stack([image, image]))
        elif kind == "npy":
            np.save(data / f"{number}.npy", np.stack([image, image]))
        else:
            pixels = (image[0] * 255).astype(np.uint8)
            (data / f"{number}.pgm").write_bytes(b"P5 8 8 255\n" + pixels.tobytes())
    finished = profile(tmp_path, "--dataset", "data")
    runs = 2 if kind == "pgm" else 4
    assert finished.stdout == f"digits.profile.json: 9 values in {runs} runs\n".encode()


def test_profiles_merge_exactly(folder: Path) -> None:
    np.savez(folder / "first.npz", image=images(6)[:2])
    np.savez(folder / "rest.npz", image=images(6)[2:])
    profile(folder, "--dataset", "samples.npz", "-o", "whole.json")
    profile(folder, "--dataset", "first.npz", "-o", "first.json", "--bins", "2048")
    profile(folder, "--dataset", "rest.npz", "--merge", "first.json", "-o", "merged.json")
    whole, merged = (json.loads((folder / name).read_text()) for name in ("whole.json", "merged.json"))
    assert whole == merged


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "none.npz"], "none.npz: error: cannot be read: No such file or directory"),
        (["--dataset", "empty"], "empty: error: there is no file in it (hint: a data set is"),
        (["--dataset", "mixed"], "mixed: error: has files of different kinds"),
        (["--dataset", "single.npy"], "single.npy: error: is no data set"),
        (["--dataset", "other.npz"], "other.npz: error: has arrays for x, and the inputs are image"),
        (
            ["--dataset", "shape.npz"],
            "shape.npz: error: samples of shape [6, 9] do not fit the input 'image' of shape [2, 1, 8, 8]",
        ),
        (["--dataset", "few.npz"], "few.npz: error: has 1 samples, and a run takes 2"),
        (["--dataset", "samples.npz", "--bins", "1"], "error: a histogram cannot have 1 bins"),
        (["--dataset", "samples.npz", "--merge", "samples.npz"], "samples.npz: error: is no profile, or is damaged"),
        (
            ["--dataset", "samples.npz", "-o", "samples.npz"],
            "samples.npz: error: cannot be written: it is read as well",
        ),
        ([], "error: the following arguments are required: --dataset"),
    ],
)
def test_mistakes_are_one_line(folder: Path, arguments: list[str], message: str) -> None:
    (folder / "empty").mkdir()
    (folder / "mixed").mkdir()
    for name in ("mixed/a.npy", "mixed/b.png", "single.npy"):
        (folder / name).write_bytes(b"")
    np.savez(folder / "other.npz", x=images(2))
    np.savez(folder / "shape.npz", image=np.zeros((6, 9), np.float32))
    np.savez(folder / "few.npz", image=images(1))
    finished = profile(folder, *arguments)
    assert finished.code == 1
    assert finished.stdout == b""
    assert message in finished.stderr.decode()
    assert finished.stderr.count(b"\n") == 1
    assert not (folder / "digits.profile.json").exists()


def run(folder: Path, *arguments: str) -> Finished:
    """Run `glow-run` on the digits example by its profile."""
    argv = [DIGITS, "--bind", "N=1", *INTERPRETED, "--load-profile", "digits.profile.json", *arguments]
    return run_tool(glow_run.main, argv, program="glow-run", directory=folder)


def test_glow_run_quantizes_by_the_profile(folder: Path) -> None:
    profile(folder, "--dataset", "samples.npz")
    np.save(folder / "image.npy", images(1))
    found: list[np.ndarray] = []
    for options in (["--quantization-precision", "int16"], ["--quantization-schema", "symmetric"]):
        finished = run(folder, "--input", "image.npy", "--outputs", "y.npz", *options)
        assert (finished.code, finished.stderr) == (0, b"")
        found.append(np.load(folder / "y.npz")["probabilities"])
    assert 0 < np.abs(found[0] - found[1]).max() < 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--assert-all-nodes-quantized"], "error: 1 operator cannot be quantized: softmax ('softmax')"),
        (["--keep-original-precision-for-nodes", "conv9"], "error: no node to keep in floats is called 'conv9'"),
        (
            ["--check", "interpreter"],
            "error: --check compares with the model as it is, and --load-profile rounds its numbers",
        ),
        (["--quantization-schema", "none"], "argument --quantization-schema: invalid choice"),
    ],
)
def test_mistakes_of_quantization_are_one_line(folder: Path, arguments: list[str], message: str) -> None:
    profile(folder, "--dataset", "samples.npz")
    finished = run(folder, *arguments)
    assert finished.code == 1
    assert message in finished.stderr.decode()
    assert finished.stderr.count(b"\n") == 1


def test_options_without_a_profile_mean_nothing(folder: Path) -> None:
    finished = run_tool(glow_run.main, [DIGITS, "--quantization-schema", "symmetric"], directory=folder)
    assert b"--quantization-schema needs --load-profile" in finished.stderr


def test_a_profile_of_another_graph_is_refused(folder: Path) -> None:
    profile(folder, "--dataset", "samples.npz")
    path = folder / "digits.profile.json"
    path.write_text(path.read_text().replace('"graph": "sha256:', '"graph": "sha256:0'))
    finished = run(folder)
    assert finished.code == 1
    assert finished.stderr.startswith(b"digits.profile.json: error: is the profile of another graph")
