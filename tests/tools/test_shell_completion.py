"""Completion by the shells themselves, from the scripts that tools print."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import pyproject
from in_process import find_tool, run_tool

from glow_mlir.support.optional_packages import to_install

TOOLS = sorted(pyproject()["project"]["scripts"])
SHELLS = ("bash", "zsh", "fish")

ASK_BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
$(complete -p "$1" | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""Does what bash does when someone presses Tab behind the words that are given."""


def script(program: str, shell: str) -> bytes:
    tool = find_tool(program)
    assert tool is not None
    done = run_tool(tool, ["--print-completion", shell], program=program)
    assert (done.code, done.stderr) == (0, b"")
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of some kinds, and the scripts of some tools."""
    found = tmp_path_factory.mktemp("completion")
    for name in ("net.onnx", "net.mlir", "profile.json", "samples.npz", "notes.txt"):
        (found / name).touch()
    (found / "folder").mkdir()
    for program in ("glow-opt", "glow-run"):
        (found / f"{program}.bash").write_bytes(script(program, "bash"))
    return found


def completed(folder: Path, *words: str) -> set[str]:
    """What bash offers for the last of the words."""
    command = ["bash", "-c", ASK_BASH, "bash", f"{words[0]}.bash", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_bash_completes_options_and_choices(folder: Path) -> None:
    assert completed(folder, "glow-run", "--quantization-s") == {"--quantization-schema"}
    assert completed(folder, "glow-run", "--check", "") == {"interpreter", "litert", "onnxruntime"}
    assert completed(folder, "glow-run", "net.onnx", "--precision", "b") == {"bf16"}
    assert completed(folder, "glow-opt", "net.mlir", "--stop-after", "s") == {
        "scheduled",
        "stacked",
        "selected",
        "structured",
    }
    assert "cortex-m4" in completed(folder, "glow-run", "--target", "cortex")


def test_bash_completes_passes_as_options_and_in_lists(folder: Path) -> None:
    assert completed(folder, "glow-opt", "--sink-t") == {"--sink-transposes"}
    assert completed(folder, "glow-opt", "-p", "sink-t") == {"sink-transposes"}
    assert completed(folder, "glow-opt", "-p", "cse,stack,fold-co") == {"cse,stack,fold-constants"}


def test_bash_completes_files_by_suffix(folder: Path) -> None:
    assert completed(folder, "glow-run", "") == {"net.onnx", "net.mlir", "folder"}
    assert completed(folder, "glow-run", "net.onnx", "--load-profile", "") == {"profile.json", "folder"}
    assert completed(folder, "glow-run", "net.onnx", "--dump-phases", "") == {"folder"}


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_of_all_tools_are_legal(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    for program in TOOLS:
        path = tmp_path / program
        path.write_bytes(script(program, shell))
        subprocess.run([shell, "-n", str(path)], check=True)


def test_zsh_takes_no_pattern_for_qualifiers_of_files() -> None:
    # In one pair of parentheses without a bar, no file matches, and nothing else is completed either.
    text = script("glow-opt", "zsh").decode()
    assert "_files -g '*.mlir'" in text
    assert "PASS:PASSES" not in text  # A colon ends the name of an argument.


def test_fish_completes_passes_in_lists(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    (tmp_path / "glow-opt.fish").write_bytes(script("glow-opt", "fish"))
    ask = 'source glow-opt.fish; complete -C "glow-opt -p cse,fold-co"; complete -C "glow-opt --stop-after sc"'
    done = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == ["cse,fold-constants", "scheduled"]


def test_without_shtab_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['shtab'] = None\n"
    code += "from glow_mlir.tools.glow_lsp import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--print-completion", "bash"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    reason = "--print-completion needs the package shtab, which is not installed"
    assert done.stderr == f"glow-lsp: error: {reason} (hint: {to_install('tools')})\n"
