"""`glow-opt` beyond what RUN lines can say: bugs in passes, weights, files, streams, colours."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from checkout import run_python
from in_process import Finished, run_tool
from pretended import as_ours
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.constants.weights import add_weights, weights, write_weights
from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.glow_high.storage import ConstantOp
from glow_mlir.dialects.shapes import tensor
from glow_mlir.driver import pipelines
from glow_mlir.driver.pipelines import parse_pipeline
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text, read_module, weights_path
from glow_mlir.tools.command_line import error_line, report
from glow_mlir.tools.glow_opt import main
from glow_mlir.transforms.devices.assign_target import AssignTargetPass

TEXT = "glow_high.placeholder @x : tensor<4xf32> {input}\n"


def glow_opt(*arguments: str, stdin: str = "", directory: Path | None = None) -> Finished:
    """Run the tool in process."""
    return run_tool(main, arguments, program="glow-opt", stdin=stdin.encode(), directory=directory)


@as_ours
def fail_by_key(module: ModuleOp) -> None:
    raise KeyError("nothing here")


@as_ours
def fail_by_verification(module: ModuleOp) -> None:
    raise VerifyException("made something invalid")


def leave_invalid(module: ModuleOp) -> None:
    for op in module.body.block.ops:
        op.properties.pop("input", None)


@pytest.fixture
def broken_pass(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[ModuleOp], None]], None]:
    """Register a pass `broken` that does what it is told."""

    def register(body: Callable[[ModuleOp], None]) -> None:
        @dataclass(frozen=True)
        class BrokenPass(ModulePass):
            name = "broken"

            @as_ours
            def apply(self, ctx: Context, op: ModuleOp) -> None:
                body(op)

        BrokenPass.__module__ = "glow_mlir.transforms.broken"
        known = pipelines.available_passes
        monkeypatch.setattr(pipelines, "available_passes", lambda: {**known(), "broken": lambda: BrokenPass})

    return register


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (fail_by_key, "KeyError: 'nothing here'"),
        (fail_by_verification, "VerifyException: made something invalid"),
        (leave_invalid, "it gives invalid IR: <stdin>:1:1: glow_high.placeholder: a placeholder is exactly one"),
    ],
)
def test_a_bug_in_a_pass_writes_a_reproducer_and_says_so(
    broken_pass: Callable[[Callable[[ModuleOp], None]], None],
    body: Callable[[ModuleOp], None],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
    broken_pass(body)
    finished = glow_opt("-p", "cse,broken,canonicalize", "-o", "out.mlir", stdin=TEXT, directory=tmp_path)
    assert finished.code == 2
    assert finished.stdout == b""
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    (reproducer,) = tmp_path.glob("cache/reproducers-*/*")
    line = finished.stderr.decode()
    assert line.count("\n") == 1
    assert f"error: pass 'broken' failed, a bug of ours: {reason}" in line
    assert str(reproducer) in line
    assert "--pass-pipeline 'builtin.module(cse,broken)'" in reproducer.read_text()

    again = glow_opt(str(reproducer), "--run-reproducer", directory=tmp_path)
    assert again.code == 2
    assert reason.partition(":")[0] in again.stderr.decode()


def test_a_reproducer_brings_its_weights(
    broken_pass: Callable[[Callable[[ModuleOp], None]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
    write_module_with_weights(tmp_path / "x.mlir", np.arange(100, dtype=np.float32))
    broken_pass(fail_by_key)
    assert glow_opt("x.mlir", "-p", "broken", directory=tmp_path).code == 2
    assert {path.suffix for path in tmp_path.glob("cache/*/glow-reproducer-*")} == {".mlir", ".weights"}


def test_a_traceback_comes_only_with_debug(broken_pass: Callable[[Callable[[ModuleOp], None]], None]) -> None:
    broken_pass(fail_by_key)
    reproducer = ("--mlir-pass-pipeline-crash-reproducer", "/dev/null")
    assert b"Traceback" not in glow_opt("-p", "broken", *reproducer, stdin=TEXT).stderr
    assert b"in fail_by_key" in glow_opt("-p", "broken", *reproducer, "--debug", stdin=TEXT).stderr


def write_module_with_weights(path: Path, array: np.ndarray) -> str:
    """Write a module with one constant, and its weight file; the digest."""
    digest = add_weights(array)
    module = ModuleOp([ConstantOp.of("c", tensor(array.shape, element_type(array.dtype)), digest)])
    path.write_text(module_text(module))
    write_weights(weights_path(path), [digest])
    return digest


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool"])
def test_weights_travel_from_file_to_file(dtype: str, tmp_path: Path) -> None:
    array = (np.arange(60) % 2).reshape(3, 20).astype(dtype)
    digest = write_module_with_weights(tmp_path / "x.mlir", array)
    assert glow_opt("x.mlir", "-p", "cse", "-o", "y.mlir", directory=tmp_path).code == 0
    (tmp_path / "x.weights").unlink()
    again = glow_opt("y.mlir", "-o", "z.mlir", directory=tmp_path)
    assert again.code == 0, again.stderr.decode()
    read_module(tmp_path / "z.mlir", new_context())
    np.testing.assert_array_equal(weights(digest), array)
    assert (tmp_path / "z.weights").read_bytes() == (tmp_path / "y.weights").read_bytes()


def test_a_damaged_weight_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.mlir").write_text(TEXT)
    (tmp_path / "x.weights").write_bytes(b"\xff" * 20)
    finished = glow_opt("x.mlir", directory=tmp_path)
    assert finished.code == 1
    assert finished.stderr.startswith(b"x.weights: error: the weight file cannot be read")


def test_an_error_leaves_the_old_output_alone(tmp_path: Path) -> None:
    (tmp_path / "out.mlir").write_text("old")
    assert glow_opt("-o", "out.mlir", "-p", "verify-selected,no-such", stdin=TEXT, directory=tmp_path).code == 1
    assert glow_opt("-o", "out.mlir", stdin="nonsense", directory=tmp_path).code == 1
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_an_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    finished = glow_opt("-o", "no/such/folder.mlir", stdin=TEXT, directory=tmp_path)
    assert finished.code == 1
    assert finished.stderr == b"no/such/folder.mlir: error: cannot be written: No such file or directory\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--compilation-log", "no/such.txt"], "no/such.txt: error: cannot be written: No such file or directory"),
        (["--log-nodes", "x"], "glow-opt: error: --log-nodes needs --compilation-log"),
        (
            ["-p", "cse", "--mlir-print-ir-after-all", "--mlir-print-ir-tree-dir", "old"],
            "old: error: cannot be made a folder: File exists",
        ),
    ],
)
def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "old").write_text("old")
    finished = glow_opt("-o", "out.mlir", *options, stdin=TEXT, directory=tmp_path)
    assert (finished.code, finished.stderr.decode()) == (1, f"{message}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_an_input_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.mlir").write_bytes(b"\xff\xfd\x00")
    finished = glow_opt("x.mlir", directory=tmp_path)
    assert (finished.code, finished.stderr) == (1, b"x.mlir: error: is no text in UTF-8\n")


def test_devices_are_written_to_and_stay_devices() -> None:
    assert glow_opt("-o", "/dev/null", stdin=TEXT).code == 0
    assert Path("/dev/null").is_char_device()


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_no_long_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    elements = ", ".join(["1.0"] * 16 + ["2.0"])
    text = f"glow_high.constant @c : tensor<17xf32> {{value = dense<[{elements}]> : tensor<17xf32>}}\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    assert main([]) == 0
    assert "dense_resource<__elided__>" in terminal.getvalue()
    assert b"dense<[1.0" in glow_opt(stdin=text).stdout


def test_colours_are_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    from glow_mlir.errors import GlowError

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    error = GlowError("reason", node="conv1", hint="do this")
    assert error_line("tool", error, io.StringIO()) == "tool: error: node 'conv1': reason (hint: do this)"
    assert "\033[" in error_line("tool", error, Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033[" not in error_line("tool", error, Terminal())


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for option, expected in (("--version", "glow-opt "), ("--help", "examples:\n  glow-opt model.mlir")):
        with pytest.raises(SystemExit) as stop:
            main([option])
        assert not stop.value.code
        assert expected in capsys.readouterr().out


def test_our_dialects_do_not_clash_with_an_installed_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    from xdsl.universe import XDSL_UNIVERSE, Universe

    from glow_mlir.ir.universe import GLOW_UNIVERSE

    both = Universe(
        all_dialects={**XDSL_UNIVERSE.all_dialects, **GLOW_UNIVERSE.all_dialects},
        all_passes={**XDSL_UNIVERSE.all_passes, **GLOW_UNIVERSE.all_passes},
        all_targets=XDSL_UNIVERSE.all_targets,
    )
    monkeypatch.setattr(Universe, "get_multiverse", staticmethod(lambda: both))
    assert glow_opt("-p", "cse", stdin=TEXT).code == 0


def test_help_imports_nothing_heavy() -> None:
    code = "from glow_mlir.tools.glow_opt import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
    heavy = ("numpy", "onnx", "llvmlite", "glow_mlir.dialects.glow_high")
    last = run_python(f"{code}import sys\nprint([name for name in {heavy!r} if name in sys.modules])").splitlines()[-1]
    assert last == "[]"


def test_the_completed_llvm_dialect_is_ours() -> None:
    text = "llvm.func @f(%x: f32) -> i32 {\n  %0 = llvm.fptosi %x : f32 to i32\n  llvm.return %0 : i32\n}\n"
    finished = glow_opt(stdin=text)
    assert finished.code == 0, finished.stderr.decode()
    assert b"llvm.fptosi" in finished.stdout


def test_model_that_no_memory_holds_is_no_bug_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert report("tool", MemoryError("Unable to allocate\n2 TiB")) == 1
    expected = "tool: error: the model does not fit into memory: Unable to allocate 2 TiB (hint: check the sizes"
    assert capsys.readouterr().err.startswith(expected)


def test_targets_are_listed() -> None:
    found = glow_opt("--target", "list")
    assert (found.code, found.stderr) == (0, b"")
    _, _, table = found.stdout.decode().partition("targets of the backend 'cpu', beside host:\n")
    own, _, _ = table.partition("targets of")  # Example packages may have registered theirs in this process.
    assert [line.split()[0] for line in own.splitlines()[1:] if line.strip()] == list(PRESETS)


def test_passes_can_name_every_target() -> None:
    for name in PRESETS:
        (found,) = parse_pipeline(f"assign-target{{target={name}}}").passes
        assert isinstance(found, AssignTargetPass)
        assert found.target == name


TWICE = """
glow_high.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = glow_high.add %x, %x : tensor<2xf32>
  glow_high.return %y
}
"""


def test_passes_are_options_of_their_own_in_their_order() -> None:
    found = glow_opt("--assign-target=target=cortex-m4", "--canonicalize", "--dump-pass-pipeline", stdin=TWICE)
    assert found.code == 0
    assert found.stderr == b'builtin.module(assign-target{target="cortex-m4"},canonicalize)\n'
    assert b"thumbv7em" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cse", "-p", "cse"], "passes are given by -p and as --cse"),
        (["--canonicalise"], "unrecognized arguments: --canonicalise (hint: --canonicalize?"),
        (["--stap-after=llvm"], "unrecognized arguments: --stap-after=llvm (hint: --stop-after?"),
        (["-t", "llvm"], "is not of the llvm dialect, which LLVM IR is made from (hint: --stop-after=llvm -t llvm)"),
    ],
)
def test_what_options_may_have_meant_is_told(arguments: list[str], said: str) -> None:
    found = glow_opt(*arguments, stdin=TWICE)
    assert found.code == 1
    assert said in found.stderr.decode()
    assert found.stderr.count(b"\n") == 1


def test_modules_are_printed_as_llvm_ir() -> None:
    found = glow_opt("--stop-after=llvm", "-t", "llvm", stdin=TWICE)
    assert (found.code, found.stderr) == (0, b"")
    assert b"define i32 @main(ptr" in found.stdout


def test_dialects_are_listed() -> None:
    assert {b"glow_high", b"glow_low", b"llvm"} <= set(glow_opt("--show-dialects").stdout.split())


def test_a_model_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\x08\xff")
    found = glow_opt(str(tmp_path / "model.onnx"))
    assert b"is not text of a module, but an ONNX model (hint: glow-run FILE takes it as it is" in found.stderr


def test_passes_are_inserted_into_pipelines() -> None:
    inserted = ("--insert-before=stack:cse,dce", "--insert-after=stack:cse")
    found = glow_opt("--stop-after=stacked", *inserted, "--dump-pass-pipeline", stdin=TWICE)
    assert found.code == 0
    assert b",cse,dce,stack,cse," in found.stderr
    for text, said in (("stack", "expected PASS:PASSES, got 'stack'"), ("nothing:cse", "there is no pass 'nothing'")):
        found = glow_opt(f"--insert-after={text}", stdin=TWICE)
        assert found.code == 1
        assert said in found.stderr.decode()


def test_text_on_stdout_says_that_it_has_no_weights(tmp_path: Path) -> None:
    write_module_with_weights(tmp_path / "x.mlir", np.arange(100, dtype=np.float32))
    found = glow_opt("x.mlir", directory=tmp_path)
    assert found.code == 0
    said = "the text on stdout is without the weights of 1 constant (hint: -o FILE writes them beside it)"
    assert found.stderr.decode() == f"glow-opt: warning: {said}\n"
