"""`glow-run` in process: every option, and a line for every mistake."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cache_users import NEEDS_OWNERS
from checkout import ROOT
from in_process import Finished, run_tool
from onnx import TensorProto, helper, numpy_helper

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.dialects.glow_high.pooling import MaxPoolOp
from glow_mlir.ir.registry import SEMANTICS
from glow_mlir.tools.glow_run import main

DIGITS = str(ROOT / "examples" / "digits.onnx")
IMAGE = (1, 1, 8, 8)

Runner = Callable[..., str]


def finished(folder: Path, *arguments: object, stdin: str = "") -> Finished:
    """Run the tool in that folder, with a cache of its own."""
    environment = {"GLOW_CACHE_DIR": str(folder / "cache")}
    argv = [str(argument) for argument in arguments]
    return run_tool(main, argv, stdin=stdin.encode(), environment=environment, directory=folder)


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """Runs the tool, which has to succeed without a word on stderr; returns its stdout."""

    def execute(*arguments: object, stdin: str = "") -> str:
        result = finished(tmp_path, *arguments, stdin=stdin)
        assert result.stderr == b""
        assert result.code == 0
        return result.stdout.decode()

    return execute


@pytest.fixture
def digits(run: Runner) -> Runner:
    """Runs the tool on the digits example for one image."""

    def execute(*arguments: object) -> str:
        return run(DIGITS, "--bind", "N=1", *arguments)

    return execute


@pytest.fixture
def two_inputs(tmp_path: Path) -> Path:
    """A model `sum = relu(a) + b` on vectors of three floats."""
    nodes = [
        helper.make_node("Relu", ["a"], ["r"], name="first"),
        helper.make_node("Add", ["r", "b"], ["sum"], name="last"),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "ab"]
    outputs = [helper.make_tensor_value_info("sum", TensorProto.FLOAT, [3])]
    graph = helper.make_graph(nodes, "graph", inputs, outputs)
    path = tmp_path / "two.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(IMAGE, np.float32)


def expected(array: np.ndarray) -> np.ndarray:
    (result,) = InferenceSession(DIGITS, dimensions={"N": 1}, cache=False).run(None, {"image": array})
    return result


def written(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


# ---- inputs and outputs ----


def test_summary_lists_outputs_and_the_best_of_vectors(digits: Runner) -> None:
    title, header, row, best = digits().splitlines()
    assert title == "outputs"
    assert header.split() == ["output", "type", "min", "max", "mean", "not", "finite"]
    assert row.split()[:3] == ["probabilities", "float32[1,", "10]"]
    assert best.startswith("top 5 of probabilities: ")
    assert best.count(": ") == 6


def test_batch_lists_the_best_of_each_row(run: Runner) -> None:
    lines = run(DIGITS, "--bind", "N=2").splitlines()
    assert [line.split(":")[0] for line in lines[-2:]] == ["top 5 of probabilities[0]", "top 5 of probabilities[1]"]


@pytest.mark.parametrize("name", ["image=x.npy", "x.npy"])
def test_array_from_a_file_is_the_input(digits: Runner, tmp_path: Path, name: str) -> None:
    np.save(tmp_path / "x.npy", image())
    digits("--input", name, "--outputs", "y.npz")
    np.testing.assert_array_equal(written(tmp_path / "y.npz")["probabilities"], expected(image()))


def test_archive_gives_inputs_by_name(run: Runner, tmp_path: Path, two_inputs: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.array([-1, 2, 3], np.float32), b=np.array([10, 20, 30], np.float32))
    run(two_inputs, "--inputs", "x.npz", "--outputs", "y.npz")
    np.testing.assert_array_equal(written(tmp_path / "y.npz")["sum"], [10, 22, 33])


def test_outputs_of_bfloat16_are_inputs_again(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(NEGATION)
    run("m.mlir", "--seed", "1", "--outputs", "y.npz")
    first = written(tmp_path / "y.npz")["x"]
    run("m.mlir", "--inputs", "y.npz", "--outputs", "z.npz")
    again = written(tmp_path / "z.npz")["x"]
    assert first.dtype == np.dtype("V2")
    np.testing.assert_array_equal(again.view(np.uint16), first.view(np.uint16) ^ 0x8000)


NEGATION = """
glow_high.placeholder @x : tensor<3xbf16> {input}
glow_high.placeholder @y : tensor<3xbf16> {output, label = "x"}
glow_high.func @main(@x, @y) {
  %0 = glow_high.get @x : tensor<3xbf16>
  %1 = glow_high.neg %0 : tensor<3xbf16>
  glow_high.save %1, @y
}
"""


def test_outputs_may_have_any_name(run: Runner, tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["file"]), helper.make_node("Abs", ["x"], ["a/b:0"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("file", "a/b:0")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    run("m.onnx", "--outputs", "y.npz")
    assert set(written(tmp_path / "y.npz")) == {"file", "a/b:0"}


def test_random_inputs_depend_on_the_seed_alone(digits: Runner, tmp_path: Path) -> None:
    for number, seed in enumerate(("1", "1", "2")):
        digits("--seed", seed, "--outputs", f"{number}.npz")
    first, same, other = (written(tmp_path / f"{number}.npz")["probabilities"] for number in range(3))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_seed_draws_the_inputs_that_no_file_gives(run: Runner, tmp_path: Path, two_inputs: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([-1, -2, -3], np.float32))
    run(two_inputs, "--input", "a=a.npy", "--seed", 3, "--outputs", "y.npz")
    drawn = np.random.default_rng(3).standard_normal(3).astype(np.float32)
    np.testing.assert_array_equal(written(tmp_path / "y.npz")["sum"], drawn)


def test_image_is_scaled_and_normalized(digits: Runner, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8), np.uint8)
    (tmp_path / "x.pgm").write_bytes(b"P5\n# made here\n8 8\n255\n" + pixels.tobytes())
    np.save(tmp_path / "x.npy", pixels)
    for file in ("x.pgm", "x.npy"):
        digits("--image", f"image={file}", "--mean", "0.5", "--stddev", "0.25", "--outputs", "y.npz")
        wanted = ((pixels / 255 - 0.5) / 0.25).astype(np.float32).reshape(IMAGE)
        np.testing.assert_array_equal(written(tmp_path / "y.npz")["probabilities"], expected(wanted))


def test_images_of_one_name_are_a_batch(run: Runner, tmp_path: Path) -> None:
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.full((8, 8), ord(name), np.uint8))
    run(DIGITS, "--bind", "N=2", "--image", "a.npy", "--image", "b.npy", "--image-mode", "0to255", "--outputs", "y.npz")
    results = written(tmp_path / "y.npz")["probabilities"]
    for name, result in zip("ab", results, strict=True):
        np.testing.assert_allclose(result, expected(np.full(IMAGE, ord(name), np.float32))[0], rtol=1e-5, atol=1e-7)


# ---- compilation ----


def test_backends_and_targets_agree(digits: Runner, tmp_path: Path) -> None:
    for options in (["--backend", "interpreter"], ["--target", "scalar"], ["--backend", "cpu"]):
        digits(*options, "--outputs", f"{options[-1]}.npz")
    results = [written(tmp_path / f"{name}.npz")["probabilities"] for name in ("interpreter", "scalar", "cpu")]
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-4, atol=1e-6)


def test_compiled_model_is_kept_unless_forbidden(digits: Runner, tmp_path: Path) -> None:
    digits("--no-cache")
    assert not (tmp_path / "cache").exists()
    first = digits()
    assert len(list((tmp_path / "cache").glob("v[0-9]*/*"))) == 1
    assert digits() == first


def test_dumped_phases_run_on_and_share_their_weights(digits: Runner, run: Runner, tmp_path: Path) -> None:
    whole = digits("--dump-phases", "phases", "--outputs", "y.npz")
    files = sorted(path.name for path in (tmp_path / "phases").iterdir() if path.suffix != ".weights")
    names = "imported differentiated optimized lowered scheduled instructions stacked selected allocated".split()
    stages = [f"{number:02}-{name}.mlir" for number, name in enumerate(names)]
    assert files == [*stages, "09-structured.mlir", "10-llvm.ll", "10-llvm.mlir", "10-llvm.s"]
    assert [path.name for path in (tmp_path / "phases").glob("*.weights") if not path.is_symlink()] == ["model.weights"]
    assert 'loc("conv1"' in (tmp_path / "phases" / stages[0]).read_text()
    assert "define i32 @main(" in (tmp_path / "phases" / "10-llvm.ll").read_text()
    assert "main:" in (tmp_path / "phases" / "10-llvm.s").read_text()
    for stage in stages:
        assert run(f"phases/{stage}") == whole
    for stage in (stages[0], stages[-1]):
        run(f"phases/{stage}", "--backend", "interpreter", "--outputs", "z.npz")
        wanted, found = (written(tmp_path / name)["probabilities"] for name in ("y.npz", "z.npz"))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_statistics_tell_sizes_counts_and_times(digits: Runner, tmp_path: Path) -> None:
    digits("--stats", "stats.json")
    stats = json.loads((tmp_path / "stats.json").read_text())
    assert 0 < stats["arena_lower_bound"] <= stats["arena_bytes"]
    assert stats["arena_efficiency"] == stats["arena_lower_bound"] / stats["arena_bytes"]
    assert stats["constant_bytes"] > 0
    assert stats["code_bytes"] > 0
    assert stats["instructions"]["conv"] == 2
    assert {"import", "lowered", "allocated", "code"} <= set(stats["compile_seconds"])
    assert json.loads(digits("--stats", "-")).keys() == stats.keys()


def test_module_comes_from_stdin(run: Runner) -> None:
    text = """
    glow_high.placeholder @x : tensor<2xf32> {input}
    glow_high.placeholder @y : tensor<2xf32> {output}
    glow_high.func @main(@x, @y) {
      %x = glow_high.get @x : tensor<2xf32>
      %y = glow_high.neg %x : tensor<2xf32>
      glow_high.save %y, @y
    }
    """
    assert "y       float32[2]" in run("-", stdin=text)


# ---- check ----


@pytest.mark.parametrize("reference", ["interpreter", "onnxruntime"])
def test_right_model_passes_the_check(digits: Runner, reference: str) -> None:
    report = digits("--check", reference, "--no-cache")
    assert [line.split()[0] for line in report.splitlines()[6:10]] == ["conv1", "relu1", "conv2", "relu2"]
    named = "the interpreter" if reference == "interpreter" else reference
    assert report.splitlines()[-1] == f"check: 8 layers and 1 output agree with {named}"
    assert "WRONG" not in report


def test_first_wrong_layer_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(op: MaxPoolOp, x: np.ndarray) -> np.ndarray:
        return x[:, :, ::2, ::2] if op.layout.data == "NCHW" else x[:, ::2, ::2]

    monkeypatch.setitem(SEMANTICS.all(), MaxPoolOp, broken)
    arguments = [DIGITS, "--bind", "N=1", "--backend", "interpreter", "--check", "onnxruntime", "--json", "r.json"]
    result = finished(tmp_path, *arguments)
    assert (result.code, result.stderr) == (1, b"")
    lines = result.stdout.decode().splitlines()
    assert lines[-1] == "check: first wrong layer: 'pool' (MaxPool), of 4 wrong among 8"
    rows = {line.split()[0]: line for line in lines if line.endswith(("ok", "WRONG"))}
    wrong = [name for name, line in rows.items() if line.endswith("WRONG")]
    assert wrong == ["pool", "flatten", "classifier", "softmax", "probabilities"]
    report = json.loads((tmp_path / "r.json").read_text())["check"]
    assert (report["ok"], report["first_wrong"]) == (False, "pool")


def test_tolerance_decides(tmp_path: Path) -> None:
    arguments = [DIGITS, "--bind", "N=1", "--check", "interpreter"]
    assert finished(tmp_path, *arguments, "--rtol", 0, "--atol", 0).code == 1
    assert finished(tmp_path, *arguments, "--rtol", 0, "--atol", "1e-2").code == 0


@pytest.mark.parametrize(("stage", "layers"), [("03-lowered", "layers"), ("08-allocated", "0 layers")])
def test_module_is_checked_as_far_as_it_has_tensors(digits: Runner, run: Runner, stage: str, layers: str) -> None:
    digits("--dump-phases", "phases")
    last = run(f"phases/{stage}.mlir", "--check", "interpreter").splitlines()[-1]
    assert f"{layers} and 1 output agree with the interpreter" in last


# ---- measurement ----


def test_latency_is_told_in_the_words_of_trtexec(digits: Runner, tmp_path: Path) -> None:
    lines = digits("--iterations", 5, "--warmup", 0, "--json", "r.json").splitlines()[-3:]
    assert lines[0].startswith("Throughput: ")
    assert lines[0].endswith(" qps")
    words = [part.split(" = ")[0] for part in lines[1].removeprefix("Latency: ").split(", ")]
    assert words == ["min", "max", "mean", "median", "percentile(90%)", "percentile(95%)", "percentile(99%)"]
    assert lines[2].endswith(", 5 iterations")
    performance = json.loads((tmp_path / "r.json").read_text())["performance"]
    assert performance["iterations"] == 5
    assert list(performance["latency_ms"]) == words
    times = performance["latency_ms"]
    assert times["min"] <= times["median"] <= times["percentile(99%)"] <= times["max"]


def test_duration_is_used_up(digits: Runner) -> None:
    report = json.loads(digits("--duration", "0.05", "--warmup", "0", "--json", "-"))["performance"]
    assert report["walltime_seconds"] >= 0.05


def test_profile_explains_the_time_by_instruction_and_kind(digits: Runner) -> None:
    report = json.loads(digits("--profile", "--iterations", 20, "--warmup", 5, "--json", "-"))
    profile: dict[str, Any] = report["profile"]
    assert profile["runs"] == 20
    assert [row["nodes"] for row in profile["instructions"]][:2] == ["conv1", "conv1"]
    for rows in (profile["instructions"], profile["kinds"]):
        assert sum(row["percent"] for row in rows) == pytest.approx(100)
    total = sum(row["median_us"] for row in profile["instructions"])
    assert total == pytest.approx(sum(row["median_us"] for row in profile["kinds"]))
    assert 0 < total < 1e3 * report["performance"]["latency_ms"]["max"]
    assert profile["kinds"][0]["instruction"] == "conv"
    tables = digits("--profile", "--iterations", 2, "--warmup", 0)
    assert "profile, median of 2 runs" in tables
    assert "profile by kind" in tables


def test_trace_nests_operators_in_requests(digits: Runner, tmp_path: Path) -> None:
    digits("--trace", "trace.json", "--iterations", 3, "--warmup", 0)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    requests = [event for event in events if event.get("cat") == "request"]
    operators = [event for event in events if event.get("cat") == "operator"]
    assert len(requests) == 3
    each, rest = divmod(len(operators), 3)
    assert each >= 6
    assert rest == 0
    for number, event in enumerate(operators):
        around = requests[number // each]
        assert around["ts"] <= event["ts"] + 0.002
        assert event["ts"] + event["dur"] <= around["ts"] + around["dur"] + 0.002


# ---- what the compiler did ----


def test_passes_are_left_out(digits: Runner, tmp_path: Path) -> None:
    digits("--stats", "whole.json")
    digits("--stats", "ablated.json", "--disable-passes", "fuse-epilogues,fuse-prologues")
    kinds = [json.loads((tmp_path / f"{name}.json").read_text())["instructions"] for name in ("whole", "ablated")]
    assert kinds[1]["stack"] > kinds[0].get("stack", 0)


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_compilation_log_follows_a_node(digits: Runner, tmp_path: Path, backend: str) -> None:
    text = digits("--compilation-log", "-", "--log-nodes", "relu?", "--backend", backend)
    assert text.startswith("node 'relu1'\n   0 before all passes\n       found    glow_high.relu")
    assert "node 'relu2'" in text
    assert "node 'conv1'" not in text
    assert ("created  glow_low.stack" in text) is (backend == "cpu")
    digits("--compilation-log", "log.json", "--backend", backend)
    nodes = json.loads((tmp_path / "log.json").read_text())["nodes"]
    assert {"conv1", "relu1", "softmax"} <= set(nodes)
    assert nodes["relu1"][0] == {
        "run": 0,
        "pass_name": "",
        "what": "found",
        "op": "glow_high.relu",
        "types": ["tensor<1x16x8x8xf32>"],
        "detail": "",
        "pattern": "",
        "count": 1,
    }


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_values_of_all_instructions_are_written(digits: Runner, tmp_path: Path, backend: str) -> None:
    text = digits("--dump-values", "values", "--backend", backend, "--outputs", "out.npz")
    assert "debug." not in text
    index = json.loads((tmp_path / "values" / "index.json").read_text())
    assert [entry["number"] for entry in index] == list(range(len(index)))
    assert {"conv1", "relu1", "softmax"} <= {node for entry in index for node in entry["nodes"].split("+")}
    for entry in index:
        array = np.load(tmp_path / "values" / entry["file"])
        assert (array.dtype.name, list(array.shape)) == (entry["type"], entry["shape"])
        assert entry["max"] == array.max()
    (outputs,) = np.load(tmp_path / "out.npz").values()
    np.testing.assert_array_equal(np.load(tmp_path / "values" / index[-1]["file"]), outputs)


def test_values_are_chosen_by_node_and_kind(digits: Runner, tmp_path: Path) -> None:
    digits("--dump-values", "values", "--values-of", "conv[12]", "--disable-passes", "cse")
    digits("--dump-values", "values", "--values-of", "softmax")
    names = {path.name.split("-", 1)[1] for path in (tmp_path / "values").glob("*.npy")}
    for start in ("conv-conv1", "conv-conv2", "softmax-softmax"):
        assert any(name.startswith(start) for name in names)
    assert not any(name.startswith("max_pool") for name in names)


def test_pictures_are_drawn(digits: Runner, tmp_path: Path) -> None:
    digits("--dump-dot", "graph.dot", "--dump-html", "page.html")
    assert "softmax" in (tmp_path / "graph.dot").read_text()
    assert 'graph [label="digits.onnx: optimized"' in (tmp_path / "graph.dot").read_text()
    digits("--dump-dot", "graph.dot", "--dot-stage", "stacked")
    assert '[label="buffer ' in (tmp_path / "graph.dot").read_text()
    page = (tmp_path / "page.html").read_text()
    data = json.loads(page.split('<script id="data" type="application/json">')[1].split("</script>")[0])
    (shown,) = data["compilations"]
    assert list(shown["graphs"]) == ["imported", "optimized", "allocated"]
    assert shown["memory"]["size"] > 0
    digits("--dump-html", "page.html", "--backend", "interpreter")
    assert '"memory":null' in (tmp_path / "page.html").read_text()


# ---- mistakes ----

MISTAKES: list[tuple[list[str], str]] = [
    ([], "glow-run: error: the following arguments are required: model"),
    (
        ["{digits}", "--bind", "N=1.5"],
        "expected NAME=SIZE, NAME=LEAST..MOST, NAME=LEAST.. or NAME=EXPRESSION, got 'N=1.5'",
    ),
    (["{digits}", "--bind", "N=1", "--bind", "M=1"], "digits.onnx: error: the model has no free dimension 'M'"),
    (["nowhere.onnx"], "nowhere.onnx: error: cannot be read: No such file or directory"),
    (["nowhere.mlir"], "nowhere.mlir: error: cannot be read: No such file or directory"),
    (["damaged.onnx"], "damaged.onnx: error: is not an ONNX model"),
    (["lines.onnx"], r"lines.onnx: error: output 'y\n\x1b[1m' is computed by no node (hint: "),
    (["empty.mlir"], "empty.mlir: error: the module has no function"),
    (["{digits}", "--bind", "N=1", "--backend", "gpu"], "no backend 'gpu'"),
    (["{digits}", "--bind", "N=1", "--target", "nowhere"], "no target is called 'nowhere'"),
    (["two.onnx", "--input", "a=three.npy"], "glow-run: error: input 'b' is missing (hint: it is float32[3])"),
    (["two.onnx", "--input", "c=three.npy"], "there is no input 'c' (hint: inputs are a, b)"),
    (["two.onnx", "--image", "c=square.npy"], "there is no input 'c' (hint: inputs are a, b)"),
    (["two.onnx", "--input", "three.npy"], "needs a model with one input, and this one has 2: a, b"),
    (["two.onnx", "--input", "a=double.npy", "--seed", "0"], "input 'a' must be float32[3], not float64[3]"),
    (["two.onnx", "--input", "a=square.npy", "--seed", "0"], "input 'a' must be float32[3], not uint8[8, 8]"),
    (["two.onnx", "--input", "a=nowhere.npy"], "nowhere.npy: error: cannot be read: No such file or directory"),
    (["two.onnx", "--input", "a=damaged.onnx"], "damaged.onnx: error: is no .npy or .npz file of numbers"),
    (["two.onnx", "--input", "a=huge.npy"], "huge.npy: error: declares an array that does not fit into memory"),
    (["two.onnx", "--input", "a=objects.npy"], "objects.npy: error: is no .npy or .npz file of numbers"),
    (["two.onnx", "--input", "a=pair.npz"], "pair.npz: error: has several arrays"),
    (["two.onnx", "--inputs", "three.npy"], "three.npy: error: has one array without a name"),
    (["two.onnx", "--inputs", "pair.npz", "--input", "a=three.npy"], "input 'a' is given twice"),
    (["two.onnx", "--input", "a="], "'a=' names no file"),
    (["two.onnx", "--image", "a=square.npy"], "an image needs an input of 4 axes, and this one has 1"),
    (
        ["{digits}", "--bind", "N=1", "--image", "three.npy"],
        "three.npy: error: an image is uint8[height, width, channels]",
    ),
    (
        ["{digits}", "--bind", "N=1", "--image", "large.pgm"],
        "the image has 9 × 9 × 1 pixels and channels, not 8 × 8 × 1",
    ),
    (["{digits}", "--bind", "N=1", "--image", "cut.pgm"], "cut.pgm: error: is cut off"),
    (["{digits}", "--bind", "N=1", "--image", "damaged.ppm"], "damaged.ppm: error: is no binary PGM or PPM file"),
    (["{digits}", "--bind", "N=1", "--image", "nowhere.png"], "nowhere.png: error: cannot be read: No such file"),
    (["{digits}", "--bind", "N=1", "--image", "square.npy", "--mean", "1,2"], "--mean has 2 numbers for 1 channel"),
    (["{digits}", "--bind", "N=1", "--image", "square.npy", "--stddev", "0"], "a standard deviation cannot be 0"),
    (["{digits}", "--bind", "N=1", "--mean", "1"], "--mean needs --image"),
    (["{digits}", "--bind", "N=1", "--atol", "1"], "--atol needs --check"),
    (["{digits}", "--bind", "N=1", "--rtol", "-1"], "expected a finite number from 0 on, got '-1'"),
    (["{digits}", "--bind", "N=1", "--iterations", "0"], "expected a whole number from 1 to 1000000000, got '0'"),
    *(
        (["{digits}", "--bind", "N=1", option, value], f"argument {option}: expected ")
        for option in ("--rtol", "--atol", "--duration", "--warmup", "--iterations", "--threads", "--seed", "--mean")
        for value in ("nan", "inf", "-inf", "1e400", "1e", "--1")
    ),
    *(
        (["{digits}", "--bind", "N=1", option, value], f"argument {option}: expected ")
        for option, value in (("--duration", "1e9"), ("--warmup", "1e9"), ("--iterations", "9" * 30), ("--seed", "-1"))
    ),
    (["{digits}", "--backend", "interpreter", "--profile"], "--profile needs machine code (hint: --backend cpu)"),
    (["{digits}", "--backend", "interpreter", "--target", "avx2"], "no target is called 'avx2'"),
    (["{digits}", "--json", "-", "--stats", "-"], "only one of --json, --stats, --compilation-log can go"),
    (["{digits}", "--trace", "-"], "--trace, --outputs, --dump-dot, --dump-html, --quantization-report need a file"),
    (["module.mlir", "--check", "onnxruntime"], "onnxruntime runs ONNX models"),
    (["module.mlir", "--bind", "N=1"], "an MLIR module has no free dimensions"),
    (["two.onnx", "--disable-passes", "unstack"], "there is no pass 'unstack' in pipeline 'cpu'"),
    (["two.onnx", "--disable-passes", "select"], "the pass 'select' cannot be left out"),
    (["two.onnx", "--dot-stage", "x"], "--dot-stage needs --dump-dot"),
    (["two.onnx", "--dump-dot", "d", "--dot-stage", "x"], "no stage 'x' (hint: stages are imported, "),
    (["two.onnx", "--dump-dot", "d", "--dot-stage", "llvm"], "the stage 'llvm' has no graph"),
    (["two.onnx", "--dump-html", "-"], "--quantization-report need a file"),
    (["two.onnx", "--log-nodes", "x"], "--log-nodes needs --compilation-log"),
    (["two.onnx", "--values-of", "x"], "--values-of needs --dump-values"),
    (["two.onnx", "--dump-values", "v", "--values-of", "x", "--seed", "0"], "no instruction has a node or kind that"),
    (
        ["two.onnx", "--dump-values", "three.npy", "--seed", "0"],
        "three.npy: error: cannot be made a folder: File exists",
    ),
    (["two.onnx", "--dump-values", "v", "--iterations", "2"], "--dump-values changes what would be measured"),
    (["two.onnx", "--dump-phases", "three.npy"], "three.npy: error: cannot be made a folder: File exists"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistake_is_one_line_and_exit_code_1(
    tmp_path: Path, two_inputs: Path, arguments: list[str], message: str
) -> None:
    np.save(tmp_path / "three.npy", np.zeros(3, np.float32))
    np.save(tmp_path / "double.npy", np.zeros(3))
    np.save(tmp_path / "square.npy", np.zeros((8, 8), np.uint8))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    with (tmp_path / "huge.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (2**58,)})
        file.write(bytes(64))
    np.savez(tmp_path / "pair.npz", a=np.zeros(3, np.float32))
    for name, data in (("damaged.onnx", b"x"), ("damaged.ppm", b"P3 1 1 255 0"), ("cut.pgm", b"P5 8 8 255 x")):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "large.pgm").write_bytes(b"P5 9 9 255 " + bytes(81))
    graph = helper.make_graph([], "graph", [], [onnx.ValueInfoProto(name="y\n\x1b[1m")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "lines.onnx")
    (tmp_path / "module.mlir").write_text("builtin.module {}")
    (tmp_path / "empty.mlir").write_text("builtin.module {}")
    result = finished(tmp_path, *(argument.format(digits=DIGITS) for argument in arguments))
    assert (result.code, result.stdout) == (1, b"")
    line, end = result.stderr.decode().split("\n")
    assert message in line
    assert " error: " in line
    assert not end


@pytest.mark.parametrize(
    "option", ["--outputs", "--json", "--stats", "--trace", "--compilation-log", "--dump-dot", "--dump-html"]
)
def test_file_that_cannot_be_written_is_named(tmp_path: Path, option: str) -> None:
    result = finished(tmp_path, DIGITS, "--bind", "N=1", "--warmup", 0, option, "nowhere/file")
    assert result.code == 1
    assert result.stderr.decode() == "nowhere/file: error: cannot be written: No such file or directory\n"


@pytest.mark.parametrize(
    ("package", "arguments", "message"),
    [
        ("PIL.Image", ["--image", "x.png"], "x.png: error: reading this kind of image takes Pillow"),
        (
            "onnxruntime",
            ["--check", "onnxruntime"],
            "glow-run: error: --check onnxruntime needs onnxruntime, which is",
        ),
    ],
)
def test_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, arguments: list[str], message: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "x.png").touch()
    result = finished(tmp_path, DIGITS, "--bind", "N=1", *arguments)
    assert (result.code, result.stdout) == (1, b"")
    assert message in result.stderr.decode()
    assert result.stderr.count(b"\n") == 1


def test_traceback_comes_only_on_demand(tmp_path: Path) -> None:
    assert b"Traceback" not in finished(tmp_path, "nowhere.onnx").stderr
    assert b"Traceback" in finished(tmp_path, "nowhere.onnx", "--debug").stderr


@NEEDS_OWNERS
def test_cache_that_is_not_trusted_is_one_line_on_stderr(tmp_path: Path) -> None:
    """The model runs all the same."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    known = finished(tmp_path, DIGITS, "--bind", "N=1", "--no-cache")
    result = finished(tmp_path, DIGITS, "--bind", "N=1")
    assert (result.code, result.stdout) == (0, known.stdout)
    assert known.stderr == b""
    folder = tmp_path / "cache"
    assert result.stderr.decode() == (
        f"{folder}: warning: not used for the cache: others may write to it (mode 0777) "
        f"(hint: chmod go-w '{folder}', or name another folder in GLOW_CACHE_DIR)\n"
    )
    assert not list(folder.iterdir())


def test_help_has_examples_and_exit_codes(run: Runner) -> None:
    text = run("--help")
    assert "examples:" in text
    assert "exit codes:" in text


def test_model_is_compiled_again_when_its_weights_in_another_file_change(run: Runner, tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
        [numpy_helper.from_array(np.zeros(3, np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    run("m.onnx", "--outputs", "1.npz")
    np.full(3, 10, np.float32).tofile(tmp_path / "m.bin")
    run("m.onnx", "--outputs", "2.npz")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("v[0-9]*/*/code.0.o")}
    assert len(kept) == 2, "each of the weights has machine code of its own"
    run("m.onnx")
    assert kept == {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("v[0-9]*/*/code.0.o")}
    run("m.onnx", "--check", "onnxruntime")
    first, second = (written(tmp_path / f"{number}.npz")["y"] for number in (1, 2))
    np.testing.assert_allclose(second - first, 10, rtol=1e-5)
