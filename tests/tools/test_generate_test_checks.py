"""`glow-generate-test-checks`: what it writes holds, and holds for nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from filecheck_runner import FILECHECK_ROOT
from in_process import find_tool, run_tool
from run_lines import parse_pipeline, substitute
from shell import run_pipeline

from glow_mlir.tools.mlir_text.test_checks import RunLine, generate, runs_of

SAMPLE = [
    "transforms/canonicalize.mlir",
    "transforms/allocate.mlir",
    "transforms/stack.mlir",
    "conversion/glow-high-to-glow-low.mlir",
    "dialects/glow_low/stack.mlir",
    "dialects/glow_high/loop.mlir",
]
"""Tests with nested regions, several modules, several prefixes, and functions that passes add or remove."""


def run(found: RunLine, path: Path, folder: Path) -> str:
    """What a RUN line prints, in this process."""
    outcome = run_pipeline(parse_pipeline(substitute(found.command, path, folder / "t")), folder)
    assert outcome.code == 0, outcome.stderr
    return outcome.stdout


def passes(test: Path, prefix: str, output: str) -> bool:
    """Whether FileCheck finds the checks with a prefix in an output."""
    tool = find_tool("filecheck")
    assert tool is not None
    return run_tool(tool, [str(test), f"--check-prefix={prefix}"], stdin=output.encode()).code == 0


@pytest.mark.parametrize("name", SAMPLE)
def test_checks_hold_for_the_output_and_for_no_other(name: str, tmp_path: Path) -> None:
    path = FILECHECK_ROOT / name
    outputs: dict[str, str] = {}

    def runner(found: RunLine) -> str:
        outputs[found.prefixes[0]] = output = run(found, path, tmp_path)
        return output

    test = tmp_path / path.name
    test.write_text(generate(path.read_text(encoding="utf-8"), (), runner), encoding="utf-8")
    assert outputs
    for prefix, output in outputs.items():
        assert passes(test, prefix, output)
        ops = [*re.finditer(r"(?<= |\n)(glow_high|glow_low|arith)\.(?!func|return|yield)\w+", output)]
        for op in {*ops[:1], *ops[len(ops) // 2 :][:1], *ops[-1:]}:
            assert not passes(test, prefix, f"{output[: op.end()]}_else{output[op.end() :]}")


def test_values_are_variables_and_functions_labels(tmp_path: Path) -> None:
    test = tmp_path / "test.mlir"
    test.write_text(
        """\
// RUN: glow-opt %s -p canonicalize | filecheck %s

// An old comment stays, an old check goes.
// CHECK: nothing of this
glow_high.func @f(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = glow_high.add %x, %y : tensor<2xf32>
  %1 = glow_high.mul %0, %x : tensor<2xf32>
  glow_high.return %1
}
""",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "glow_mlir.tools.glow_generate_test_checks", str(test)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (
        printed
        == """\
// RUN: glow-opt %s -p canonicalize | filecheck %s

// An old comment stays, an old check goes.
// CHECK-LABEL: glow_high.func @f(
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT:     %[[V0:.*]] = glow_high.add %[[X]], %[[Y]] : tensor<2xf32>
// CHECK-NEXT:     %[[V1:.*]] = glow_high.mul %[[V0]], %[[X]] : tensor<2xf32>
// CHECK-NEXT:     glow_high.return %[[V1]]
// CHECK-NEXT:   }
glow_high.func @f(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = glow_high.add %x, %y : tensor<2xf32>
  %1 = glow_high.mul %0, %x : tensor<2xf32>
  glow_high.return %1
}
"""
    )
    before = test.read_text(encoding="utf-8")
    subprocess.run([*command, "--in-place"], check=True)
    assert before != test.read_text(encoding="utf-8") == printed


def test_checks_are_the_same_the_second_time(tmp_path: Path) -> None:
    path = FILECHECK_ROOT / SAMPLE[0]
    once = generate(path.read_text(encoding="utf-8"), (), lambda found: run(found, path, tmp_path))
    assert generate(once, (), lambda found: run(found, path, tmp_path)) == once


def test_brackets_of_literals_are_no_patterns(tmp_path: Path) -> None:
    text = "// RUN: x | filecheck %s\n"
    output = "glow_high.constant @c : tensor<1x1xf32> {value = dense<[[1.0]]> : tensor<1x1xf32>}\n"
    test = tmp_path / "test.mlir"
    test.write_text(generate(text, (), lambda _: output), encoding="utf-8")
    assert passes(test, "CHECK", output)
    assert not passes(test, "CHECK", output.replace("[[1.0]]", "[[2.0]]"))


def test_run_lines_are_read_as_lit_reads_them() -> None:
    text = "// RUN: a %s \\\n// RUN:   -x | filecheck %s --check-prefixes=A,B\n// RUN: b | cat\n// RUN: c|filecheck %s"
    assert runs_of(text) == [RunLine(1, "a %s -x", ("A", "B")), RunLine(4, "c", ("CHECK",))]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("module {}\n", [], "has no RUN line that ends in `| filecheck`"),
        ("// RUN: true | filecheck %s\n", ["--check-prefix=OTHER"], "no RUN line checks OTHER (hint: it has CHECK)"),
        ("// RUN: false | filecheck %s\n", [], "test.mlir:1:1: error: the RUN line ends with exit code 1"),
    ],
)
def test_what_cannot_be_generated_is_one_line(text: str, options: list[str], said: str, tmp_path: Path) -> None:
    test = tmp_path / "test.mlir"
    test.write_text(text, encoding="utf-8")
    tool = find_tool("glow-generate-test-checks")
    assert tool is not None
    done = run_tool(tool, [str(test), "--in-place", *options])
    assert done.code == 1
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert test.read_text(encoding="utf-8") == text
