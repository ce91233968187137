"""`glow-tune` in process: fronts, configurations that `glow-run` takes, searches that go on, mistakes in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from checkout import ROOT
from in_process import Finished, run_tool
from onnx import TensorProto, helper, numpy_helper

from glow_mlir import InferenceSession
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
    """
    A folder with a profile, 60 images with labels, a cache of its own, and times that no machine decides.

    Images are of no digits, and their labels what the model says.
    """
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(Trials, "_measured", measured)
    images = np.random.default_rng(0).uniform(size=(60, 1, 8, 8)).astype(np.float32)
    profiled(DIGITS, [{"image": images[:20]}], dimensions={"N": 20}, backend="interpreter").write(tmp_path / "p.json")
    session = InferenceSession(DIGITS, dimensions={"N": 60}, backend="interpreter")
    np.savez(tmp_path / "images.npz", image=images)
    np.save(tmp_path / "labels.npy", session.run(None, {"image": images})[0].argmax(axis=1))
    return tmp_path


def tune(folder: Path, *arguments: str, profile: str = "p.json") -> Finished:
    """Run the tool on the digits example in that folder."""
    argv = [DIGITS, *INTERPRETED, "--load-profile", profile, "--dataset", "images.npz", *arguments]
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
        (["--labels", "many.npy"], "error: there are 70 labels for 60 samples"),
        (["--html", "-"], "error: --output-file, --html need a file"),
        (["-o", "-"], "error: --output-file, --html need a file"),
        (["--labels", "images.npy"], "images.npy: error: has labels of shape [2, 2] and type float32"),
        (["--precisions", "int4"], "argument --precisions: expected int8, bf16 or f16, or int8 and one of these"),
        (["--precisions", "bf16,f16"], "argument --precisions: expected int8"),
        (["--max-loss", "-1"], "argument --max-loss"),
        (["-o", "p.json"], "p.json: error: cannot be written: it is read as well"),
        (["--load-profile", "p.json"], "argument --load-profile: is given twice"),
    ],
)
def test_mistakes_are_one_line(folder: Path, arguments: list[str], message: str) -> None:
    np.save(folder / "few.npy", np.arange(10))
    np.save(folder / "many.npy", np.arange(70))
    np.save(folder / "images.npy", np.zeros((2, 2), np.float32))
    found = tune(folder, *arguments)
    assert found.code == 1
    assert message in found.stderr.decode()
    assert found.stderr.count(b"\n") == 1
    assert found.stdout == b""


def test_a_profile_that_is_not_there_is_one_line(folder: Path) -> None:
    found = tune(folder, profile="none.json")
    assert (found.code, found.stdout) == (1, b"")
    assert "none.json: error: cannot be read" in found.stderr.decode()


def test_json_has_stdout_for_itself(folder: Path) -> None:
    found = tune(folder, "--precisions", "int8", "--json", "-")
    assert (found.code, found.stderr) == (0, b"")
    assert json.loads(found.stdout)["measure"] == "amplitude"
    assert (folder / "digits.precision.json").exists()


def classifier(last: onnx.NodeProto, type_: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Two products, and `last` behind them, which reads `l`, and the constant `mask`, whose last element is -inf."""
    random = np.random.default_rng(0)
    weights = {"a": random.standard_normal((16, 32)), "b": random.standard_normal((32, 8))}
    constants = weights | {"mask": np.array([0.0] * 7 + [-np.inf])}
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "b"], ["l"], name="second"),
        last,
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])]
    outputs = [helper.make_tensor_value_info("y", type_, None)]
    stored = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()]
    return helper.make_model(
        helper.make_graph(nodes, "graph", inputs, outputs, stored), opset_imports=[helper.make_opsetid("", 17)]
    )


def tune_model(folder: Path, model: onnx.ModelProto, *arguments: str, equalize: bool = False) -> Finished:
    """Run the tool on a model whose input is `x`, of 16 random numbers for each sample."""
    onnx.save(model, folder / "m.onnx")
    samples = np.random.default_rng(1).standard_normal((20, 16)).astype(np.float32)
    np.savez(folder / "x.npz", x=samples)
    runs = [{"x": samples[begin : begin + 4]} for begin in range(0, 20, 4)]
    profiled(model, runs, backend="interpreter", equalize=equalize).write(folder / "m.json")
    argv = ["m.onnx", "--load-profile", "m.json", "--dataset", "x.npz", "--backend", "interpreter", "--json", "-"]
    return run_tool(glow_tune.main, [*argv, *arguments], program="glow-tune", directory=folder)


def tuned(folder: Path, model: onnx.ModelProto, *arguments: str, equalize: bool = False) -> dict[str, Any]:
    """What the tool says of such a model in JSON."""
    found = tune_model(folder, model, *arguments, equalize=equalize)
    assert (found.code, found.stderr) == (0, b"")
    return json.loads(found.stdout)


@pytest.mark.filterwarnings("error")
def test_equal_infinities_and_nan_lose_nothing(folder: Path) -> None:
    masked = tuned(folder, classifier(helper.make_node("Add", ["l", "mask"], ["y"])), "--precisions", "int8")
    assert all(0 <= trial["loss"] < 0.1 for trial in masked["trials"])
    assert any(trial["loss"] > 0 for trial in masked["trials"])


@pytest.mark.filterwarnings("error")
def test_infinity_in_the_place_of_a_number_is_a_loss_without_bound(folder: Path) -> None:
    """Some logarithms are of small numbers, which become 0 or negative in codes."""
    last = helper.make_node("Log", ["l"], ["y"])
    found = tuned(folder, classifier(last), "--precisions", "int8", "--html", "t.html", "--max-loss", "90")
    assert any(trial["loss"] is None for trial in found["trials"])
    assert found["best"]["loss"] is not None
    assert "inf" not in re.findall(r'cy="(\w+)', (folder / "t.html").read_text())


def test_integers_lose_what_differs(folder: Path) -> None:
    last = helper.make_node("ArgMax", ["s"], ["y"], axis=1, keepdims=0)
    model = classifier(last, TensorProto.INT64)
    # Of numbers close to each other, the largest is another one in codes.
    model.graph.node.insert(3, helper.make_node("Sin", ["l"], ["s"]))
    found = tuned(folder, model, "--precisions", "int8", "--max-loss", "0")
    assert found["measure"] == "elements"
    losses = {trial["loss"] for trial in found["trials"]}
    assert max(losses) > 0
    assert all(loss * 20 == pytest.approx(round(loss * 20)) for loss in losses)


def test_profile_of_equalized_channels_is_that_of_the_model(folder: Path) -> None:
    random = np.random.default_rng(2)
    model = classifier(helper.make_node("Identity", ["l"], ["y"]))
    weights = numpy_helper.to_array(model.graph.initializer[0]) * np.exp(random.normal(0, 2, 32)).astype(np.float32)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, "a"))
    assert tuned(folder, model, "--precisions", "int8", equalize=True)["nodes"] == ["first", "second"]


def test_model_without_products_leaves_nothing_to_choose(folder: Path) -> None:
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            "graph",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 16])],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    found = tune_model(folder, model)
    assert (found.code, found.stdout) == (1, b"")
    assert found.stderr == b"m.onnx: error: there is nothing to choose: no product can become narrower\n"
    assert not (folder / "m.precision.json").exists()


def test_glow_run_takes_one_of_them(folder: Path) -> None:
    for options, message in {
        ("--precision", "bf16"): b"--load-configuration says itself what --precision says",
        ("--load-profile", "p.json"): b"--load-configuration says itself what --load-profile says",
        (
            "--check",
            "interpreter",
        ): b"--check compares with the model as it is, and --load-configuration rounds its numbers",
        ("--weights", "int8"): b"--load-configuration says itself what --weights says",
    }.items():
        found = run_tool(
            glow_run.main, [DIGITS, *INTERPRETED, "--load-configuration", "c.json", *options], directory=folder
        )
        assert (found.code, found.stdout) == (1, b"")
        assert message in found.stderr
