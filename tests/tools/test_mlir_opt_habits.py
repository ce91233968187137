"""What users of mlir-opt type: nested pipelines, its options, files of the wrong shape, passes from a file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import Finished, run_tool

from glow_mlir.driver.nested_pipelines import ANCHORS, flattened
from glow_mlir.errors import OptionError
from glow_mlir.tools import glow_opt, glow_run

TEXT = "glow_high.placeholder @x : tensor<4xf32> {input}\n"


def opt(*arguments: str, stdin: str = TEXT, directory: Path | None = None) -> Finished:
    """Run glow-opt in process."""
    return run_tool(glow_opt.main, arguments, program="glow-opt", stdin=stdin.encode(), directory=directory)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("builtin.module(canonicalize,func.func(cse))", "canonicalize,cse"),
        ("builtin.module( glow_high.func(cse), any(canonicalize) )", "cse,canonicalize"),
        ("builtin.module(builtin.module(cse))", "cse"),
        ('func.func(assign-target{target="avx2,costs.a(b)=8"},cse)', 'assign-target{target="avx2,costs.a(b)=8"},cse'),
        ("cse", "cse"),
        ("", ""),
    ],
)
def test_nested_pipelines_run_in_their_order(text: str, passes: str) -> None:
    dumped = opt("-p", text, "--dump-pass-pipeline", stdin="")
    if "costs" not in text:
        assert (dumped.code, dumped.stderr.decode()) == (0, f"builtin.module({passes})\n")
    assert flattened(text).replace(" ", "") == passes


NESTED = st.recursive(
    st.sampled_from(["a", "b-c{x=1}", 'd{y="(z"}']).map(lambda name: ([name], name)),
    lambda inner: st.tuples(st.sampled_from(sorted(ANCHORS)), st.lists(inner, min_size=1, max_size=3)).map(
        lambda pair: ([n for names, _ in pair[1] for n in names], f"{pair[0]}({','.join(t for _, t in pair[1])})")
    ),
    max_leaves=8,
)


@given(NESTED)
def test_what_passes_run_on_changes_nothing(case: tuple[list[str], str]) -> None:
    names, text = case
    assert flattened(text) == ",".join(names)
    for broken in (text + ")", "any(" + text):
        with pytest.raises(OptionError):
            flattened(broken)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("builtin.module(cse", "')' is missing (column 19)"),
        ("cse)", "')' closes nothing (column 4)"),
        ("cse,scf.for(cse)", "no pass runs on 'scf.for' (column 5) (hint: passes run on builtin.module"),
        ("cannonicalize", "there is no pass 'cannonicalize'; is it 'canonicalize'?"),
    ],
)
def test_a_wrong_pipeline_is_told_with_its_place(text: str, message: str) -> None:
    finished = opt("-p", text)
    assert finished.code == 1
    assert message in finished.stderr.decode()


@pytest.mark.parametrize(
    "options",
    [
        ["--mlir-print-ir-after-all"],
        ["--mlir-print-ir-before=cse", "--mlir-print-ir-module-scope", "--mlir-disable-threading"],
        ["--mlir-timing", "--mlir-timing-display=list"],
        ["--mlir-timing", "--mlir-timing-display=tree"],
        ["--mlir-pass-statistics", "--mlir-pass-statistics-display=list"],
        ["--mlir-print-ir-after-change", "--mlir-print-ir-after-failure"],
        ["--mlir-print-debuginfo", "--mlir-print-op-generic", "--allow-unregistered-dialect"],
        ["--verify-each=false", "--mlir-elide-elementsattrs-if-larger=4"],
    ],
)
def test_options_of_mlir_opt_are_taken(options: list[str]) -> None:
    finished = opt("-p", "cse,canonicalize,cse", *options)
    assert (finished.code, b"error" in finished.stderr) == (0, False)
    assert b"@x" in finished.stdout or b'"x"' in finished.stdout


def test_a_list_of_times_has_each_pass_once() -> None:
    lines = (
        opt("-p", "cse,canonicalize,cse", "--mlir-timing", "--mlir-timing-display=list").stderr.decode().splitlines()
    )
    assert len([line for line in lines if line.endswith("  cse")]) == 1


EXPECTED = '// expected-error@+1 {{not registered}}\n"glow_high.nothing"() : () -> ()\n// -----\n'


@pytest.mark.parametrize(
    ("options", "stdin"),
    [
        (["-split-input-file", "-verify-diagnostics"], EXPECTED),
        (["-verify-diagnostics"], EXPECTED),
        (["-canonicalize", "-cse"], TEXT),
        (["-pcse"], TEXT),
        (["-pass-pipeline=builtin.module(cse)"], TEXT),
        (["-assign-target=target=avx2", "-o-"], TEXT),
        (["-mlir-print-ir-after-all", "-mlir-print-op-generic", "-print-between-passes"], TEXT),
        (["-tmlir", "-stop-after=optimized"], TEXT),
    ],
)
def test_one_dash_is_enough(options: list[str], stdin: str) -> None:
    """As the RUN lines of LLVM's own tests have it."""
    twice = [
        f"-{text}" if text[:2] not in ("-p", "-t", "-o") or "=" in text or "-b" in text else text for text in options
    ]
    once, both = opt(*options, stdin=stdin), opt(*twice, stdin=stdin)
    assert (once.code, once.stdout) == (0, both.stdout), once.stderr.decode()
    assert both.code == 0


@pytest.mark.parametrize("option", ["-verify-diagnosticss", "-canonicalise", "-mlir-timingg"])
def test_a_wrong_word_behind_one_dash_has_a_hint(option: str) -> None:
    line = opt(option).stderr.decode()
    assert line.startswith(f"glow-opt: error: unrecognized arguments: -{option} (hint: -{option[:3]}")


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ("assign-target{tarmet=avx2}", "assign-target: no option 'tarmet' (hint: target)"),
        ("cse{x=1}", "cse: no option 'x' (hint: cse has no options)"),
    ],
)
def test_an_option_that_a_pass_has_not_is_told_with_the_nearest(passes: str, message: str) -> None:
    assert opt("-p", passes).stderr.decode() == f"glow-opt: error: pass pipeline '{passes}': {message}\n"


@pytest.mark.parametrize(
    "option", ["--debug-only=x", "--inline", "--emit-bytecode", "--load-dialect-plugin=x.so", "--output-split-marker=x"]
)
def test_options_that_cannot_be_say_what_is_instead(option: str) -> None:
    line = opt(option).stderr.decode()
    assert line.startswith(f"glow-opt: error: there is no {option.partition('=')[0]} (hint: ")


PLUGIN = """\
from dataclasses import dataclass
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class RenamePass(ModulePass):
    name = "rename"
    to: str = "y"

    def apply(self, ctx, op):
        from xdsl.dialects.builtin import StringAttr
        next(iter(op.body.block.ops)).properties["sym_name"] = StringAttr(self.to)
"""


@pytest.mark.parametrize("options", [["-p", "rename{to=z}"], ["--rename=to=z"]])
def test_passes_come_from_a_file(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    for load in (["--load-pass-plugin=mine.py"], ["--load-pass-plugin", "mine.py"]):
        finished = opt(*load, *options, directory=tmp_path)
        assert (finished.code, b"@z" in finished.stdout) == (0, True), finished.stderr.decode()
    assert b"there is no pass 'rename'" in opt("-p", "rename").stderr  # It was of those processes alone.


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.py", "x = 1\n", "mine.py: error: has no pass (hint: a pass is a class derived from"),
        ("mine.py", "import os\n1 / 0\n", "mine.py:2:1: error: cannot be loaded: ZeroDivisionError"),
        ("mine.py", "import sys\nsys.exit(0)\n", "mine.py:2:1: error: cannot be loaded: SystemExit: 0"),
        ("mine.py", "def f(:\n", "mine.py: error: cannot be loaded: SyntaxError"),
        ("mine.so", "", "mine.so: error: is no file of Python"),
    ],
)
def test_a_file_without_passes_is_one_line(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    finished = opt(f"--load-pass-plugin={tmp_path / name}", "-p", "cse")
    assert (finished.code, finished.stderr.count(b"\n")) == (1, 1)
    assert message in finished.stderr.decode()
    assert b"no.py: error: cannot be read" in opt("--load-pass-plugin=no.py").stderr


def test_a_plugin_stands_in_for_no_module_of_its_name(tmp_path: Path) -> None:
    import json

    (tmp_path / "json.py").write_text(PLUGIN)
    assert opt("--load-pass-plugin=json.py", "--rename", directory=tmp_path).code == 0
    assert sys.modules["json"] is json


def test_a_plugin_takes_no_name_that_a_pass_has(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN.replace('"rename"', '"cse"'))
    finished = opt("--load-pass-plugin=mine.py", "--cse", directory=tmp_path)
    hint = "(hint: give the pass in this file another name)"
    assert (finished.code, finished.stderr.decode()) == (1, f"mine.py: error: there is a pass 'cse' already {hint}\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-p", "cse", "-p", "canonicalize"], "passes are given by several -p (hint: -p a,b runs a, then b)"),
        (["-pcse", "--passes=canonicalize"], "passes are given by several -p"),
        (["-pcse", "--canonicalize"], "passes are given by -p and as --canonicalize"),
        (["--assign-target=target=avx2", "-p", "cse"], "passes are given by -p and as --assign-target (hint"),
        (["--load-pass-plug=mine.py"], "unrecognized arguments: --load-pass-plug=mine.py (hint: --load-pass-plugin?"),
        (
            ["--cse", "--mlir-print-ir-tree-dir=dumps"],
            "--mlir-print-ir-tree-dir says where dumps go, but not of what (hint: one of --mlir-print-ir-before, ",
        ),
    ],
)
def test_nothing_that_is_asked_for_is_left_out_silently(options: list[str], message: str, tmp_path: Path) -> None:
    finished = opt(*options, directory=tmp_path)
    assert (finished.code, finished.stdout) == (1, b"")
    assert finished.stderr.decode().startswith(f"glow-opt: error: {message}")


MODULES = {
    "builtin.module {\n  builtin.module {\n    glow_high.func @f() {\n    }\n  }\n}\n": "<stdin>:2:3: error: "
    "builtin.module: functions of glow_high and glow_low stand in the outermost module alone (hint: take the module",
    "func.func @f() {\n  func.return\n}\n": "<stdin>:1:1: error: func.func is neither storage nor a function of them",
}


@pytest.mark.parametrize("text", MODULES)
def test_modules_of_another_shape_are_told(text: str) -> None:
    finished = opt("--stop-after=optimized", stdin=text)
    assert (finished.code, finished.stderr.count(b"\n")) == (1, 1)
    assert finished.stderr.decode().startswith(MODULES[text])


@pytest.mark.parametrize("text", ["", "\n\n", "// nothing\n"])
def test_an_empty_text_is_an_empty_module(text: str, tmp_path: Path) -> None:
    assert opt("-p", "cse", stdin=text) == Finished(0, b"builtin.module {\n}\n", b"")
    (tmp_path / "x.mlir").write_text(text)
    (tmp_path / "x.onnx").write_bytes(b"")
    line = run_tool(glow_run.main, ["x.mlir"], directory=tmp_path).stderr.decode()
    assert line == "x.mlir: error: the module has no function of glow_high or glow_low (hint: it is empty)\n"
    assert b"x.onnx: error: is empty" in run_tool(glow_run.main, ["x.onnx"], directory=tmp_path).stderr
