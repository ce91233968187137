"""What users of other tools do is there, and runs, or is refused with a reason."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import run_snippets
from checkout import ROOT

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
        "TensorFlow Lite",
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


@pytest.mark.parametrize("here", [here for _, here in ROWS if here.startswith("refused")])
def test_what_is_refused_has_a_reason(here: str) -> None:
    assert len(here.removeprefix("refused:").split()) > 4 or "as above" in here or "as for" in here


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
    page, rows = tmp_path / "rows.md", blocks_of_rows()
    assert len(rows) >= LEAST // 2
    page.write_text("\n\n".join([TEXT, *rows]) + "\n", encoding="utf-8")
    finished = subprocess.run([sys.executable, run_snippets.__file__, str(page)], capture_output=True, check=False)
    assert not finished.returncode, finished.stderr.decode()
