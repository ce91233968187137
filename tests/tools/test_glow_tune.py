"""`glow-tune` in process: fronts, configurations that `glow-run` takes, searches that go on, mistakes in one line."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from checkout import ROOT
from in_process import Finished, run_tool
from train_digits import load

from glow_mlir.api.precision_trials import Trials
from glow_mlir.api.profiling import profiled
from glow_mlir.quantization.search import Choice, Loss, Speed
from glow_mlir.tools import glow_run, glow_tune

DIGITS = str(ROOT / "examples" / "digits.onnx")
INTERPRETED = ("--bind", "N=20", "--backend", "interpreter")
NODES = ["conv1", "conv2", "pool+classifier"]


def measured(trials: Trials, choice: Choice) -> Speed:
    """The speed of a choice where each node takes half the time in codes."""
    seconds = sum(1.0 if precision == "int8" else 2.0 for precision in choice.precisions)
    return Speed(2.0 * len(choice.precisions) / seconds, seconds)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a profile, 60 images with labels, a cache of its own, and times that no machine decides."""
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(Trials, "_measured", measured)
    train, _, images, labels = load()
    profiled(DIGITS, [{"image": train[:20]}], dimensions={"N": 20}, backend="interpreter").write(tmp_path / "p.json")
    np.savez(tmp_path / "images.npz", image=images[:60])
    np.save(tmp_path / "labels.npy", labels[:60])
    return tmp_path


def tune(folder: Path, *arguments: str) -> Finished:
    """Run the tool on the digits example in that folder."""
    argv = [DIGITS, *INTERPRETED, "--load-profile", "p.json", "--dataset", "images.npz", *arguments]
    return run_tool(glow_tune.main, argv, program="glow-tune", directory=folder)


def test_choice_is_written_and_loaded(folder: Path) -> None:
    found = tune(folder, "--labels", "labels.npy", "--json", "t.json", "--html", "t.html", "--precisions", "int8")
    assert (found.code, found.stderr) == (0, b"")
    assert b"digits.precision.json: 3 int8; 2.00 times as fast as f32, loss 0 % of accuracy" in found.stdout
    data = json.loads((folder / "t.json").read_text())
    assert data["nodes"] == NODES
    assert data["best"]["precisions"] == ["int8"] * 3
    front = [point["precisions"] for point in data["front"]]
    assert (front[0], front[-1]) == (["int8"] * 3, ["f32"] * 3)
    page = ElementTree.fromstring((folder / "t.html").read_text().partition("\n")[2])
    assert len(page.findall(".//{http://www.w3.org/2000/svg}circle")) >= 2
    assert "conv2" in ElementTree.tostring(page, encoding="unicode")
    np.save(folder / "x.npy", np.load(folder / "images.npz")["image"][:20])
    argv = [DIGITS, *INTERPRETED, "--input", "x.npy", "--load-configuration", "digits.precision.json"]
    ran = run_tool(glow_run.main, [*argv, "--quantization-report", "--json", "r.json"], directory=folder)
    assert (ran.code, ran.stderr) == (0, b"")
    values = {row["name"]: row for row in json.loads((folder / "r.json").read_text())["quantization"]}
    assert values["relu1:0"]["type"].startswith("<u8:f32")


def test_less_is_narrow_where_less_may_be_lost(folder: Path) -> None:
    counts, percent = list[int](), 5.0
    for share in (0.9, 0.0, 0.0):
        tune(folder, "--max-loss", str(percent), "--precisions", "int8", "--json", "t.json", "-o", "c.json")
        best = json.loads((folder / "t.json").read_text())["best"]
        assert best["loss"] <= percent / 100
        counts.append(best["precisions"].count("int8"))
        percent = 100 * share * best["loss"]
    assert counts[0] == 3
    assert 0 < counts[1] < 3
    assert counts[2] == 0
    assert json.loads((folder / "c.json").read_text())["quantize"] is None


def test_search_that_was_interrupted_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Choice] = []
    limits = [6, 1000]
    compared = Trials._compared  # pyright: ignore[reportPrivateUsage]

    def counted(trials: Trials, choice: Choice) -> Loss:
        if len(tried) == limits[0]:
            raise KeyboardInterrupt
        tried.append(choice)
        return compared(trials, choice)

    monkeypatch.setattr(Trials, "_compared", counted)
    assert tune(folder, "--precisions", "int8").code == 130
    assert not (folder / "digits.precision.json").exists()
    limits.pop(0)
    tried.clear()
    found = tune(folder, "--precisions", "int8", "--json", "t.json")
    trials = json.loads((folder / "t.json").read_text())["trials"]
    assert len(tried) == len(trials) - 6
    tried.clear()
    assert tune(folder, "--precisions", "int8").stdout == found.stdout
    assert not tried
    np.savez(folder / "images.npz", image=np.load(folder / "images.npz")["image"] * np.float32(0.9))
    tune(folder, "--precisions", "int8")
    assert len(tried) >= len(trials) - 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--labels", "few.npy"], "error: there are 10 labels for 60 samples"),
        (["--labels", "images.npy"], "images.npy: error: has labels of shape [2, 2] and type float32"),
        (["--precisions", "int4"], "argument --precisions: expected int8, bf16 or f16, or int8 and one of these"),
        (["--precisions", "bf16,f16"], "argument --precisions: expected int8"),
        (["--max-loss", "-1"], "argument --max-loss"),
        (["-o", "p.json"], "p.json: error: cannot be written: it is read as well"),
        (["--load-profile", "none.json"], "none.json: error: cannot be read"),
    ],
)
def test_mistakes_are_one_line(folder: Path, arguments: list[str], message: str) -> None:
    np.save(folder / "few.npy", np.arange(10))
    np.save(folder / "images.npy", np.zeros((2, 2), np.float32))
    found = tune(folder, *arguments)
    assert found.code == 1
    assert message in found.stderr.decode()
    assert found.stderr.count(b"\n") == 1
    assert found.stdout == b""


def test_glow_run_takes_one_of_them(folder: Path) -> None:
    for options, message in {
        ("--precision", "bf16"): b"--load-configuration says itself what --precision says",
        ("--load-profile", "p.json"): b"--load-configuration says itself what --load-profile says",
        ("--check", "interpreter"): b"--check compares with floats, and --load-configuration rounds them to codes",
    }.items():
        found = run_tool(
            glow_run.main, [DIGITS, *INTERPRETED, "--load-configuration", "c.json", *options], directory=folder
        )
        assert (found.code, found.stdout) == (1, b"")
        assert message in found.stderr
