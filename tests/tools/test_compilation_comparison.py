"""`glow-run --compare`: two compilations side by side, as text, as JSON and on a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checkout import ROOT
from in_process import Finished, run_tool

from glow_mlir.tools.glow_run import main

DIGITS = ROOT / "examples" / "digits.onnx"
FAST = ("--iterations", "2", "--warmup", "0")


MODULE = """
glow_high.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = glow_high.relu %x : tensor<4xf32>
  glow_high.return %y
}
"""


def compared(folder: Path, *arguments: object) -> Finished:
    """What `glow-run` says of the digits example."""
    environment = {"GLOW_CACHE_DIR": str(folder / "cache")}
    words = [str(DIGITS), *map(str, arguments)]
    return run_tool(main, words, program="glow-run", environment=environment, directory=folder)


def cells(text: str, name: str) -> list[str]:
    """The cells of the row with that name."""
    (row,) = (line.split() for line in text.splitlines() if line.split()[:1] == [name])
    return row[1:]


def test_options_are_compared_by_stages_passes_memory_time_and_results(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    given = ("--bind", "N=1", "--compare=--precision bf16", "--dump-html", page, "--json", "report.json", *FAST)
    finished = compared(tmp_path, *given)
    assert finished.code == 0, finished.stderr
    text = finished.stdout.decode()
    assert cells(text, "imported")[0] == cells(text, "imported")[1]
    assert cells(text, "convert-precision")[0] == "0"
    assert int(cells(text, "convert-precision")[1]) > 0
    one, other, ratio = cells(text, "arena")
    assert float(ratio) == pytest.approx(int(other.replace(",", "")) / int(one.replace(",", "")), abs=0.006)
    assert "shortest run, ms" in text
    difference = float(text.splitlines()[-1].split()[-1])
    assert 0 < difference < 0.05
    rows = json.loads((tmp_path / "report.json").read_text())["comparison"]
    data = json.loads(page.read_text().split('<script id="data" type="application/json">')[1].split("</script>")[0])
    assert [shown["label"] for shown in data["compilations"]] == ["one", "other"]
    assert [row[:1] for row in data["comparison"]] == [row[:1] for row in rows]


def test_same_compilation_differs_in_time_alone(tmp_path: Path) -> None:
    text = compared(tmp_path, "--bind", "N=1", f"--compare={DIGITS}", *FAST).stdout.decode()
    for name in ("imported", "allocated", "arena", "constants", "fold-constants"):
        one, other = cells(text, name)
        assert one == other
    assert text.splitlines()[-1].split()[-1] == "0"


def test_interpreter_has_no_kernels_to_compare(tmp_path: Path) -> None:
    text = compared(tmp_path, "--bind", "N=1", "--compare=--backend interpreter", *FAST).stdout.decode()
    assert "instructions by kernel" not in text
    assert "arena" not in text
    assert float(text.splitlines()[-1].split()[-1]) < 1e-5


def test_free_sizes_are_those_of_the_run(tmp_path: Path) -> None:
    finished = compared(tmp_path, "--compare=--accuracy strict", *FAST)
    assert finished.code == 0
    (line,) = finished.stderr.decode().splitlines()
    assert line.startswith("glow-run: warning: unknown size: 'N' of input 'image' is taken to be 1")


def test_files_are_those_of_the_first_compilation(tmp_path: Path) -> None:
    files = ("--compilation-log", "log.txt", "--dump-phases", "phases")
    assert compared(tmp_path, "--bind", "N=1", "--compare=--precision bf16", *files, *FAST).code == 0
    assert "convert-precision" not in (tmp_path / "log.txt").read_text()
    assert "xbf16>" not in (tmp_path / "phases" / "08-allocated.mlir").read_text()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("", "glow-run: error: --compare is empty (hint: a model, or options as in"),
        ("--nope", "glow-run: error: unrecognized arguments: --nope"),
        ("nowhere.onnx", "nowhere.onnx: error: cannot be read: No such file or directory"),
        ("--json other.json", "glow-run: error: --compare takes no --json: both sides share reports"),
        ("--precision bf16 --seed 3", "glow-run: error: --compare takes no --seed: both sides share inputs"),
        ("--dump-phases there", "glow-run: error: --compare takes no --dump-phases: both sides share files of a"),
        ("--compare x", "glow-run: error: --compare takes no --compare: both sides share files of a compilation"),
        ("--precision 'bf16", "glow-run: error: --compare '--precision 'bf16': no closing quotation"),
    ],
)
def test_mistake_is_one_line(tmp_path: Path, other: str, message: str) -> None:
    finished = compared(tmp_path, "--bind", "N=1", f"--compare={other}", *FAST)
    assert finished.code == 1
    (line,) = finished.stderr.decode().splitlines()
    assert line.startswith(message)
    assert finished.stdout == b"", "nothing is compiled for a comparison that cannot be made"


def test_model_on_stdin_is_compared_with_itself_under_other_options() -> None:
    words = ["-", "--compare=--precision bf16", *FAST]
    finished = run_tool(main, words, program="glow-run", stdin=MODULE.encode())
    assert finished.code == 0, finished.stderr
    assert finished.stdout.decode().splitlines()[-1].split() == ["result", "float32[4]", "float32[4]", "0"]
