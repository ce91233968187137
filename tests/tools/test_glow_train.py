"""`glow-train`: it learns, goes on from where it was stopped or killed, tells its metrics, mistakes in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from checkout import ROOT
from in_process import Finished, run_tool
from time_limits import ignore_interrupts
from training_models import convolutional, perceptron

from glow_mlir import InferenceSession, Quantization
from glow_mlir.api.profiling import profiled
from glow_mlir.tools import glow_train
from glow_mlir.tools.reports.progress import Progress, bar
from glow_mlir.tools.reports.training_report import StepLine

CLASSES, SAMPLES, BATCH = 3, 150, 32
PER_EPOCH = SAMPLES // BATCH

GIVEN = ("m.onnx", "--dataset", "train.npz", "--labels", "labels.npy")

KEPT = ("--checkpoint", "run.safetensors", "--metrics", "run.jsonl")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a cache, in which each model and its options are compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, and samples of three classes that lie apart."""
    monkeypatch.setenv("GLOW_CACHE_DIR", str(cache))
    rng = np.random.default_rng(0)
    classes = rng.integers(0, CLASSES, SAMPLES + 50)
    x = (4 * np.eye(CLASSES, 4)[classes] + 0.5 * rng.standard_normal((SAMPLES + 50, 4))).astype(np.float32)
    onnx.save(perceptron([4, 16, CLASSES], "N"), tmp_path / "m.onnx")
    np.savez(tmp_path / "train.npz", x=x[:SAMPLES])
    np.save(tmp_path / "labels.npy", classes[:SAMPLES])
    np.savez(tmp_path / "held_out.npz", x=x[SAMPLES:], targets=classes[SAMPLES:])
    return tmp_path


def train(folder: Path, *arguments: str, rate: str = "0.02") -> Finished:
    """Run the tool on the samples in that folder."""
    argv = [*GIVEN, "--learning-rate", rate, *arguments]
    return run_tool(glow_train.main, argv, program="glow-train", directory=folder)


def records(folder: Path, name: str = "run.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def losses(folder: Path) -> list[tuple[str, int, float]]:
    """What metrics say that no clock decides."""
    return [(record["kind"], record["step"], record["loss"]) for record in records(folder)]


def weights(path: Path) -> dict[str, bytes]:
    return {tensor.name: tensor.raw_data for tensor in onnx.load(path).graph.initializer}


def test_a_problem_that_can_be_told_apart_is_learned(folder: Path) -> None:
    found = train(folder, "--evaluation", "held_out.npz", "--epochs", "6", "--schedule", "cosine", "--warm-up", "3")
    assert (found.code, found.stderr) == (0, b"")
    lines = found.stdout.decode().splitlines()
    assert len(lines) == 7
    assert re.fullmatch(r"epoch 6/6: loss 0\.\d+, evaluation loss 0\.\d+, accuracy 100 %, [\d,]+ samples/s", lines[5])
    assert lines[6] == f"m.trained.onnx: trained in {6 * PER_EPOCH} steps"
    held_out = np.load(folder / "held_out.npz")
    session = InferenceSession(folder / "m.trained.onnx", dimensions={"N": 50})
    (y,) = session.run(None, {"x": held_out["x"]})
    assert (y.argmax(axis=1) == held_out["targets"]).all()


def test_evaluation_counts_each_sample_once(folder: Path) -> None:
    """The last batch of 50 samples is not full."""
    found = train(folder, "--evaluation", "held_out.npz", *KEPT)
    assert found.code == 0
    held_out = np.load(folder / "held_out.npz")
    (y,) = InferenceSession(folder / "m.trained.onnx", dimensions={"N": 50}).run(None, {"x": held_out["x"]})
    scores = y.astype(np.float64)
    wanted = (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(50), held_out["targets"]]).mean()
    assert records(folder)[-1]["evaluation_loss"] == pytest.approx(wanted, rel=1e-5)
    assert records(folder)[-1]["accuracy"] == (y.argmax(axis=1) == held_out["targets"]).mean()


def test_metrics_have_a_record_for_each_step_and_epoch(folder: Path) -> None:
    train(folder, "--epochs", "2", *KEPT)
    found = records(folder)
    assert [record["kind"] for record in found] == [*["step"] * PER_EPOCH, "epoch"] * 2
    steps = [record for record in found if record["kind"] == "step"]
    assert [record["step"] for record in steps] == list(range(1, 2 * PER_EPOCH + 1))
    assert [record["epoch"] for record in steps] == [1] * PER_EPOCH + [2] * PER_EPOCH
    epoch = found[-1]
    assert epoch["loss"] == pytest.approx(np.mean([record["loss"] for record in steps[PER_EPOCH:]]))
    assert (epoch["evaluation_loss"], epoch["accuracy"]) == (None, None)
    assert epoch["samples_per_second"] > 0
    told = train(folder, "--metrics", "-")
    assert [json.loads(line)["kind"] for line in told.stdout.splitlines()] == [*["step"] * PER_EPOCH, "epoch"]


def test_the_page_is_self_contained(folder: Path) -> None:
    assert train(folder, "--epochs", "3", "--evaluation", "held_out.npz", "--html", "run.html").code == 0
    text = (folder / "run.html").read_text()
    assert not re.search(r"src=|href=|url\(|@import|<script", text)
    assert "prefers-color-scheme: dark" in text
    page = ElementTree.fromstring(text.partition("\n")[2])
    svg = "{http://www.w3.org/2000/svg}"
    charts = page.findall(f".//{svg}svg")
    assert [len(chart.findall(f"{svg}polyline")) for chart in charts] == [3, 1]
    steps = charts[0].findall(f"{svg}polyline")[0].attrib["points"].split()
    assert len(steps) == 3 * PER_EPOCH
    assert len(page.findall(".//tr")) == 4


class Stopped:
    """Ends a run in front of some step, as a signal that comes during the one before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: int, number: int) -> None:
        from glow_mlir.api.training_session import TrainingSession

        original, calls = TrainingSession.step, list[int]()

        def counted(session: TrainingSession, batch: Any) -> float:
            calls.append(1)
            if len(calls) == step:
                os.kill(os.getpid(), number)
            return original(session, batch)

        monkeypatch.setattr(TrainingSession, "step", counted)


@pytest.mark.parametrize("step", [1, PER_EPOCH + 2, 2 * PER_EPOCH])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_goes_on_gives_the_bits_of_a_run_without_break(folder: Path, step: int, number: int) -> None:
    options = ("--epochs", "3", "--evaluation", "held_out.npz", "--schedule", "cosine", *KEPT)
    whole = train(folder, *options, "-o", "whole.onnx")
    wanted = losses(folder)
    (folder / "run.safetensors").unlink()
    with pytest.MonkeyPatch.context() as patch:
        Stopped(patch, step, number)
        stopped = train(folder, *options)
    assert stopped.code == 130
    assert stopped.stderr.decode() == (
        f"glow-train: stopped after step {step} of {3 * PER_EPOCH}, saved in run.safetensors "
        "(hint: the same command with --resume continues)\n"
    )
    assert not (folder / "m.trained.onnx").exists()
    assert losses(folder) == wanted[: len(losses(folder))]
    resumed = train(folder, *options, "--resume")
    assert (resumed.code, resumed.stderr) == (0, b"")
    assert weights(folder / "m.trained.onnx") == weights(folder / "whole.onnx")
    assert losses(folder) == wanted
    assert whole.stdout.splitlines()[-2].split(b" %")[0] == resumed.stdout.splitlines()[-2].split(b" %")[0]


def begun(folder: Path, *arguments: str, steps: int) -> subprocess.Popen[bytes]:
    """A run in a process of its own that has no end, behind some steps."""
    options = ("--epochs", "10000000", "--learning-rate", "0.001", *arguments)
    command = [sys.executable, "-m", "glow_mlir.tools.glow_train", *GIVEN, *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        preexec_fn=ignore_interrupts,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    path, deadline = folder / "run.jsonl", time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b'"kind": "step"') < steps:
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def test_ctrl_c_saves_and_the_same_command_goes_on(folder: Path) -> None:
    """Also in the background of a shell, which ignores SIGINT for what it starts there."""
    process = begun(folder, *KEPT, "-o", "none.onnx", steps=20)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    found = re.fullmatch(r"glow-train: stopped after step (\d+) of \d+, saved in run.safetensors .*\n", stderr.decode())
    assert found is not None
    assert records(folder)[-1]["step"] == int(found[1])
    assert not (folder / "none.onnx").exists()
    second = begun(folder, *KEPT, "--resume", steps=int(found[1]) + 20)
    second.send_signal(signal.SIGTERM)
    assert second.wait(60) == 130
    second.communicate()
    steps = [record["step"] for record in records(folder) if record["kind"] == "step"]
    assert steps == list(range(1, len(steps) + 1))


def test_a_run_that_is_killed_goes_on_from_its_last_checkpoint(folder: Path) -> None:
    options = (*KEPT, "--checkpoint-every", "3")
    process = begun(folder, *options, steps=30)
    process.kill()
    process.communicate()
    with (folder / "run.jsonl").open("a") as file:
        file.write('{"kind": "st')
    killed = max(record["epoch"] for record in map(json.loads, (folder / "run.jsonl").read_text().splitlines()[:-1]))
    epochs = ("--epochs", str(killed + 2))
    found = train(folder, *options, *epochs, "--resume", rate="0.001")
    assert (found.code, found.stderr) == (0, b"")
    resumed = losses(folder)
    assert train(folder, "--metrics", "run.jsonl", "-o", "whole.onnx", *epochs, rate="0.001").code == 0
    assert losses(folder) == resumed
    assert weights(folder / "m.trained.onnx") == weights(folder / "whole.onnx")


def test_a_run_that_is_over_has_nothing_to_do_but_to_write_the_model(folder: Path) -> None:
    assert train(folder, *KEPT).code == 0
    written = (folder / "m.trained.onnx").read_bytes()
    (folder / "m.trained.onnx").unlink()
    found = train(folder, *KEPT, "--resume")
    assert found.stdout.decode() == f"m.trained.onnx: trained in {PER_EPOCH} steps\n"
    assert (folder / "m.trained.onnx").read_bytes() == written


def test_the_first_run_may_say_resume_as_well(folder: Path) -> None:
    found = train(folder, *KEPT, "--resume")
    assert (found.code, found.stderr) == (
        0,
        b"run.safetensors: warning: does not exist yet: training starts from the beginning\n",
    )


def test_only_what_is_trainable_changes(folder: Path) -> None:
    assert train(folder, "--trainable", "*1", "--optimizer", "sgd", "--momentum", "0.9", "--clip-norm", "1").code == 0
    before, after = weights(folder / "m.onnx"), weights(folder / "m.trained.onnx")
    assert {name for name in before if before[name] != after[name]} == {"w1", "b1"}


def test_images_lie_in_folders_of_their_classes(folder: Path) -> None:
    rng = np.random.default_rng(1)
    onnx.save(convolutional(10), folder / "m.onnx")
    for number, name in enumerate(("bright", "dark", "half")):
        for place in ("images", "held_out"):
            (folder / place / name).mkdir(parents=True)
            for image in range(14):
                pixels = rng.integers(0, 40, (8, 8)) + np.array([200, 0, 100])[number]
                np.save(folder / place / name / f"{image}.npy", pixels.astype(np.uint8))
    argv = ["m.onnx", "--dataset", "images", "--learning-rate", "0.02", "--epochs", "8", "--evaluation", "held_out"]
    found = run_tool(glow_train.main, argv, program="glow-train", directory=folder)
    assert (found.code, found.stderr) == (0, b"")
    assert "accuracy 100 %" in found.stdout.decode().splitlines()[-2]
    for path in (folder / "held_out").rglob("*.npy"):
        np.save(path, np.repeat(np.repeat(np.load(path), 3, axis=0), 2, axis=1))  # As photographs, of any size.
    assert (
        b"(hint: --image-size crop or stretch makes it so" in run_tool(glow_train.main, argv, directory=folder).stderr
    )
    found = run_tool(glow_train.main, [*argv, "--image-size", "stretch"], program="glow-train", directory=folder)
    assert (found.code, found.stderr) == (0, b"")
    assert "accuracy 100 %" in found.stdout.decode().splitlines()[-2]
    (folder / "held_out" / "dim").mkdir()
    found = run_tool(glow_train.main, argv, program="glow-train", directory=folder)
    wanted = "held_out/dim: error: the data set has no class of that name (hint: there are bright, dark, half)\n"
    assert found.stderr.decode() == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "none.npz"], "none.npz: error: cannot be read: No such file or directory"),
        (["--labels", "outside.npy"], "outside.npy: error: a target is no class from 0 to 2: 3 (hint: compare"),
        (["--labels", "few.npy"], "few.npy: error: there are different numbers of samples: 150 for x, 10 for targets"),
        (["--labels", "floats.npy"], "floats.npy: error: 'targets' is of int64, not of float32"),
        (["--labels", "pairs.npy"], "pairs.npy: error: samples of shape [2] are not for 'targets' of shape []"),
        (["--dataset", "other.npz"], "other.npz: error: there is no array 'x' (hint: it has z, targets)"),
        (["--dataset", "more.npz"], "more.npz: error: the array 'z' is for no input (hint: inputs of a step are"),
        (["--dataset", "held_out.npz"], "held_out.npz: error: has targets, and so has labels.npy (hint: give one"),
        (
            ["--evaluation", "train.npz"],
            "train.npz: error: there is no array 'targets' (hint: a .npy file may have them",
        ),
        (["--batch-size", "151"], "train.npz: error: there are 150 samples, and a batch has 151 (hint: --batch-size"),
        (["--bind", "N=8", "--batch-size", "9"], "m.onnx: error: the model takes 8 samples at a time, not 9 (hint:"),
        (
            ["--batch-size", "9", "--accumulate", "2"],
            "error: a batch of 9 samples cannot be split into 2 equal parts (--acc",
        ),
        (["--bind", "N=8", "--accumulate", "2", "--batch-size", "8"], "m.onnx: error: the model takes 8 samples at a"),
        (["--bind", "N=1..8"], "glow-train: error: --bind gives 'N' more than one size"),
        (["--loss", "nothing"], "argument --loss: invalid choice: 'nothing'"),
        (["--momentum", "0.9"], "glow-train: error: the optimizer adamw has no --momentum"),
        (["--warm-up", "4"], "glow-train: error: --warm-up has 4 of the 4 steps (hint: take fewer)"),
        (["--trainable", "fc.*"], "error: the model has no initializer 'fc.*' (hint: it has w0, b0, w1, b1)"),
        (["--output-profile", "p.json"], "glow-train: error: --output-profile needs --load-profile"),
        (["--quantization-schema", "symmetric"], "glow-train: error: --quantization-schema needs --load-profile"),
        (["--resume"], "glow-train: error: --resume needs --checkpoint"),
        (["--checkpoint", "there.safetensors"], "there.safetensors: error: is there already (hint: --resume continues"),
        (
            ["--checkpoint", "there.safetensors", "--resume"],
            "there.safetensors: error: is no file of safetensors, or is cut",
        ),
        (["--html", "none/run.html"], "none/run.html: error: cannot be written: there is no such folder"),
        (["--html", "-"], "error: --output-file, --output-profile, --checkpoint, --html need a"),
        (["-o", "m.onnx"], "m.onnx: error: cannot be written: it is read as well"),
        (["--evaluation-labels", "labels.npy"], "error: --evaluation-labels needs --evaluation"),
    ],
)
def test_mistakes_are_one_line(folder: Path, arguments: list[str], message: str) -> None:
    labels = np.load(folder / "labels.npy")
    np.save(folder / "outside.npy", np.where(labels == 2, 3, labels))
    np.save(folder / "few.npy", labels[:10])
    np.save(folder / "floats.npy", labels.astype(np.float32))
    np.save(folder / "pairs.npy", np.zeros((SAMPLES, 2), np.int64))
    np.savez(folder / "other.npz", z=np.zeros((SAMPLES, 4)))
    np.savez(folder / "more.npz", z=np.zeros((SAMPLES, 4)), x=np.zeros((SAMPLES, 4), np.float32))
    (folder / "there.safetensors").write_bytes(b"what is no checkpoint")
    before = {path.name for path in folder.iterdir()}
    argv = dict(zip(GIVEN[1::2], GIVEN[2::2], strict=True)) | dict(zip(arguments[::2], arguments[1::2], strict=False))
    given = [word for pair in argv.items() for word in pair] + arguments[len(arguments) // 2 * 2 :]
    found = run_tool(glow_train.main, ["m.onnx", *given], program="glow-train", directory=folder)
    assert found.code == 1
    assert message in found.stderr.decode()
    assert found.stderr.count(b"\n") == 1
    assert found.stdout == b""
    assert {path.name for path in folder.iterdir()} <= before


def test_a_loss_that_is_no_number_ends_training(folder: Path) -> None:
    options = ("--optimizer", "sgd", "--epochs", "30", *KEPT)
    found = train(folder, *options, rate="1e30")
    assert found.code == 1
    assert re.fullmatch(
        r"glow-train: error: the loss of step \d+, in epoch \d+, is (nan|inf) \(hint: .*\)\n", found.stderr.decode()
    )
    assert not (folder / "m.trained.onnx").exists()


@pytest.mark.parametrize("options", [("--accumulate", "4"), ("--processes", "2", "--accumulate", "2")], ids=" ".join)
def test_batches_in_parts_train_alike(folder: Path, options: tuple[str, ...]) -> None:
    given = ("--evaluation", "held_out.npz", "--epochs", "2", "--batch-size", "32")
    assert train(folder, *given, "--metrics", "whole.jsonl", "-o", "whole.onnx").code == 0
    found = train(folder, *given, *options, "--metrics", "parts.jsonl", "-o", "parts.onnx")
    assert (found.code, found.stderr) == (0, b"")
    whole, parts = (records(folder, f"{name}.jsonl") for name in ("whole", "parts"))
    for left, right in zip(whole, parts, strict=True):
        assert left["loss"] == pytest.approx(right["loss"], rel=1e-4)
        if left["kind"] == "epoch":
            assert left["evaluation_loss"] == pytest.approx(right["evaluation_loss"], rel=1e-4)
            assert left["accuracy"] == right["accuracy"]


def test_numbers_are_rounded_as_those_of_the_quantized_model(folder: Path) -> None:
    x = np.load(folder / "train.npz")["x"]
    profiled(folder / "m.onnx", [{"x": x}], dimensions={"N": len(x)}).write(folder / "m.profile.json")
    rounded = ("--load-profile", "m.profile.json", "--quantization-precision-weights", "int4")
    found = train(folder, "--epochs", "3", *rounded, "--evaluation", "held_out.npz", "--metrics", "run.jsonl")
    assert (found.code, found.stderr) == (0, b"")
    assert found.stdout.decode().splitlines()[-1].startswith("m.trained.profile.json: its profile, to quantize it by")
    options = Quantization(folder / "m.trained.profile.json", weights="int4", bias_correction=False)
    held_out = np.load(folder / "held_out.npz")
    session = InferenceSession(folder / "m.trained.onnx", dimensions={"N": 50}, quantize=options)
    (y,) = session.run(None, {"x": held_out["x"]})
    scores = y.astype(np.float64)
    wanted = (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(50), held_out["targets"]]).mean()
    assert records(folder)[-1]["evaluation_loss"] == pytest.approx(wanted, rel=1e-3)


def test_what_goes_on_is_of_the_same_model_and_metrics(folder: Path) -> None:
    assert train(folder, *KEPT).code == 0
    found = train(folder, *KEPT, "--resume", "--optimizer", "rmsprop")
    assert found.code == 1
    assert "run.safetensors: error: there is no 'b0.squares', 'b1.squares'" in found.stderr.decode()
    (folder / "run.jsonl").write_text('{"kind": "step", "step": 1, "loss": 1.0}\nsomething else\n')
    found = train(folder, *KEPT, "--resume")
    assert found.stderr.decode().startswith("run.jsonl: error: line 2 is not a metrics record (hint: name the file")
    assert (folder / "run.jsonl").read_text().endswith("something else\n")
    (folder / "run.jsonl").unlink()
    (folder / "run.jsonl").mkdir()
    found = train(folder, *KEPT, "--resume")
    assert (found.code, found.stderr) == (1, b"run.jsonl: error: cannot be written: Is a directory\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_metrics_that_cannot_be_written_are_one_line(folder: Path) -> None:
    found = train(folder, "--metrics", "/dev/full")
    assert (found.code, found.stderr) == (1, b"/dev/full: error: cannot be written: No space left on device\n")


def test_a_terminal_shows_how_far_it_is() -> None:
    told: list[str] = []

    class Kept(Progress):
        def say(self, text: str) -> None:
            told.append(text)

    line = StepLine(Kept(), 4, 400, 30)
    line.show({"epoch": 2, "step": 101, "loss": 0.25, "seconds": 30.0, "samples_per_second": 1234.0})
    line.show({"epoch": 2, "step": 102, "loss": 0.2, "seconds": 30.0, "samples_per_second": 1234.0})
    assert told == [f"epoch 2/4 {bar(101 / 400)} loss 0.25, 1 samples/s, 2:29:30 left"]


def test_a_loss_of_scores_warns_of_probabilities(folder: Path) -> None:
    model = onnx.load(folder / "m.onnx")
    model.graph.node.append(onnx.helper.make_node("Softmax", ["y"], ["p"]))
    model.graph.output[0].name = "p"
    onnx.save(model, folder / "m.onnx")
    found = train(folder)
    assert found.code == 0
    assert found.stderr.decode() == (
        "m.onnx: warning: output 'p' is the result of a Softmax, but its loss expects what comes before it "
        "(hint: train the model without the Softmax)\n"
    )


def test_what_goes_on_has_the_same_batches(folder: Path) -> None:
    assert train(folder, *KEPT).code == 0
    for option, name, given, value in (("--seed", "seed", 0, 1), ("--batch-size", "batch size", BATCH, 16)):
        found = train(folder, *KEPT, "--epochs", "2", "--resume", option, str(value))
        reason = f"was written with the {name} {given}, not {value} (hint: use the same setting to continue)"
        assert (found.code, found.stderr.decode()) == (1, f"run.safetensors: error: {reason}\n")
