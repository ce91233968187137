"""Text at a late stage is checked as strictly as at an early one, on every way into the compiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.backends.interface import get_backend
from glow_mlir.codegen.build import build_artifact
from glow_mlir.constants.weights import add_weights
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.model_checks import promises
from glow_mlir.driver.pipelines import OPTIMIZE
from glow_mlir.errors import ModelError, ParseFailure
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module, parse_unverified
from glow_mlir.tools import glow_opt, glow_run
from glow_mlir.transforms.devices.assign_target import AssignTargetPass

ALLOCATED = """builtin.module attributes {glow.stage = "allocated"} {
  glow_high.constant @c : tensor<16xf32> {value = dense<1.0> : tensor<16xf32>}
  glow_high.placeholder @x : tensor<16xf32> {input}
  glow_high.placeholder @y : tensor<16xf32> {output}
  glow_low.func @main(@x, @y) attributes {activations = 64, activations_bound = 64, constants = 64} {
    %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<16xf32>
    %y = glow_low.weight @y {mutable, region = "bindings", offset = 1} : memref<16xf32>
    %c = glow_low.weight @c {region = "constants", offset = 0} : memref<16xf32>
    %0 = glow_low.alloc {offset = 0} : memref<16xf32>
    glow_low.copy @out %0, @in %x {kernel = "copy"}
    glow_low.stack @out %y, @in %0, @in %c {maps = [
      affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>
    ], iterators = ["parallel"], kernel = "stack"} {
    ^bb0(%a: f32, %b: f32):
      %1 = arith.addf %a, %b : f32
      glow_low.yield %1 : f32
    }
    glow_low.dealloc @out %0
  }
}
"""
"""A program whose buffers have their places: y = x + 1."""

FAULTS = {
    "alloc {offset = 0}": ("alloc {offset = 64}", "offset 64 is outside the 64 bytes of activations"),
    "activations = 64, ": ("activations = 0, ", "no 0 bytes of activations can be bounded by 64"),
    "activations = 64, activations_bound = 64": ("activations = -64, activations_bound = 0", "-64 is no size"),
    "constants = 64}": ("constants = 0}", "offset 0 is outside the 0 bytes of constants"),
    '"bindings", offset = 1}': ('"bindings", offset = 2}', "@y is not binding 2"),
    '{mutable, region = "bindings", offset = 1}': ('{mutable, region = "bindings", offset = 0}', "@y is not binding 0"),
    '{region = "bindings", offset = 0}': ('{region = "constants", offset = 64}', "@x is a binding, and no constant"),
    "@c : tensor<16xf32> {value = dense<1.0> : tensor<16xf32>}": (
        "@c : tensor<8xf32> {value = dense<1.0> : tensor<8xf32>}",
        "@c is tensor<8xf32>, the weight memref<16xf32>",
    ),
    "@x : tensor<16xf32>": ("@x : tensor<4xf32>", "@x is tensor<4xf32>, the weight memref<16xf32>"),
    "copy @out %0, @in %x": ("copy @out %x, @in %c", "glow_low.copy writes @out target, which is constant"),
    "stack @out %y": ("stack @out %0", "output @y is never written"),
    'kernel = "copy"': ('kernel = "no-kernel"', "there is no kernel 'no-kernel'"),
    "func @main(@x, @y) attributes {": (
        'func @main(@x, @y) attributes {target = #glow.target<backend = "cpu", threads = 1025>, ',
        "the target of @main cannot be: threads=1025 is no number of threads",
    ),
}
"""Text → what it is replaced by, and what is wrong then."""


@pytest.mark.parametrize("right", FAULTS)
def test_fault_is_one_line(right: str) -> None:
    wrong, reason = FAULTS[right]
    assert ALLOCATED.count(right) == 1
    module = parse_module(ALLOCATED.replace(right, wrong), new_context(), "given.mlir")
    with pytest.raises(ModelError) as caught:
        InferenceSession(module, cache=False)
    assert reason in caught.value.reason
    assert caught.value.file.startswith("given.mlir:")
    assert caught.value.hint


def by_session(path: Path) -> None:
    InferenceSession(path, cache=False)


def by_interpreter(path: Path) -> None:
    InferenceSession(path, backend="interpreter")


def by_module(path: Path) -> None:
    InferenceSession(parse_module(path.read_text(), new_context()), cache=False)


def by_compilation(path: Path) -> None:
    Compilation(parse_module(path.read_text(), new_context()), disable=["verify-allocated"]).run()


def by_artifact(path: Path) -> None:
    module = parse_module(path.read_text(), new_context())
    with pytest.raises(ModelError, match="@main has no target"):
        build_artifact(module.clone(), new_context())
    AssignTargetPass().apply(new_context(), module)
    build_artifact(module, new_context())


ENTRIES = (by_session, by_interpreter, by_module, by_compilation, by_artifact)


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_checks(entry: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "given.mlir"
    path.write_text(ALLOCATED)
    entry(path)
    path.write_text(ALLOCATED.replace("alloc {offset = 0}", "alloc {offset = 4096}"))
    with pytest.raises(ModelError, match="outside the 64 bytes"):
        entry(path)


@pytest.mark.parametrize("tool", [glow_opt, glow_run])
def test_every_tool_checks(tool: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "given.mlir"
    path.write_text(ALLOCATED.replace("alloc {offset = 0}", "alloc {offset = 4096}"))
    options = ["--stop-after=llvm"] if tool is glow_opt else []
    assert getattr(tool, "main")([str(path), *options]) == 1
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.startswith(f"{path}:9:5: error: offset 4096 is outside the 64 bytes of activations (hint: ")
    assert captured.err.count("\n") == 1


def test_node_is_named() -> None:
    text = ALLOCATED.replace(
        'copy @out %0, @in %x {kernel = "copy"}', 'copy @out %c, @in %x {kernel = "copy"} loc("first")'
    )
    with pytest.raises(ModelError) as caught:
        Compilation(parse_module(text, new_context())).run()
    assert caught.value.node == "first"


def test_dropped_copy_to_an_output_is_refused() -> None:
    """At every stage: what is in an output that nothing wrote is what its memory had before."""
    lines = ALLOCATED.splitlines(keepends=True)
    text = "".join(line for line in lines if "glow_low.copy" not in line)
    for stage in ("instructions", "stacked", "selected", "allocated"):
        with pytest.raises(ModelError, match="reads @in sources before anything writes it"):
            Compilation(parse_module(text.replace('"allocated"', f'"{stage}"'), new_context())).run()


def test_valid_text_computes() -> None:
    x = np.arange(16, dtype=np.float32)
    (y,) = InferenceSession(parse_module(ALLOCATED, new_context()), cache=False).run(None, {"x": x})
    np.testing.assert_array_equal(y, x + 1)


def test_weights_of_another_type_are_refused() -> None:
    digest = add_weights(np.zeros(8, np.float32))
    text = ALLOCATED.replace("value = dense<1.0> : tensor<16xf32>", f'weights = "{digest}"')
    with pytest.raises(ModelError, match=r"are float32\[8\], not float32\[16\]"):
        InferenceSession(parse_module(text, new_context()), cache=False)
    with pytest.raises(ModelError, match="are not loaded"):
        InferenceSession(parse_module(text.replace(digest, "sha256:0"), new_context()), cache=False)


def test_module_of_the_user_is_verified() -> None:
    module = parse_module(ALLOCATED, new_context())
    (copy,) = (op for op in module.walk() if op.name == "glow_low.copy")
    (view,) = (op for op in module.walk() if op.name == "glow_low.alloc")
    view.detach()
    assert copy.parent is not None
    copy.parent.insert_op_after(view, copy)
    for entry in (lambda: InferenceSession(module, cache=False), lambda: build_artifact(module, new_context())):
        with pytest.raises(ParseFailure, match="used before its definition"):
            entry()


def test_promises_follow_from_the_pipeline() -> None:
    def names(stage: str, instructions: bool = True) -> list[str]:
        return [item.name for item in promises(get_backend("cpu").pipeline(), stage, instructions=instructions)]

    assert names("imported", False) == []
    assert names("scheduled", False) == ["verify-lowered"]
    assert names("") == ["verify-lowered", "verify-low"]
    assert names("stacked") == ["verify-lowered", "verify-low"]
    assert names("selected") == ["verify-lowered", "verify-low", "verify-selected"]
    assert names("allocated") == ["verify-lowered", "verify-low", "verify-selected", "verify-allocated"]
    shared = promises(OPTIMIZE, "allocated", instructions=True)
    assert [item.name for item in shared] == ["verify-low", "verify-allocated"]


def test_text_of_llvm_is_not_lost() -> None:
    module = parse_module(ALLOCATED, new_context())
    Compilation(module).run()
    count = len(module.body.block.ops)
    with pytest.raises(ModelError, match=r"llvm\.\S+ is neither storage nor a function"):
        Compilation(module).run()
    assert len(module.body.block.ops) == count


@pytest.mark.parametrize("name", ["parallel_for", "glow_pool_share"])
def test_entry_is_not_called_as_a_function_of_ours(name: str) -> None:
    with pytest.raises(ModelError, match=f"no entry is called '{name}'"):
        InferenceSession(parse_module(ALLOCATED.replace("@main", f"@{name}"), new_context()), cache=False)


UNCLOSED = 'glow_high.placeholder @x : tensor<4xf32> {label = "a name that goes on and on and on without an end}'


def test_unclosed_string_is_an_error_at_once() -> None:
    with pytest.raises(ParseFailure, match="closing string literal"):
        parse_module(UNCLOSED, new_context())


def test_regions_of_another_dialect_are_told_where_nothing_was_verified() -> None:
    text = """
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %0 = scf.execute_region -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  }
  glow_high.save %0, @y
}
"""
    module = parse_unverified(text, new_context())
    with pytest.raises(ModelError, match=r"<text>:6:3: glow_high.func @main does not hold scf.execute_region"):
        Compilation(module).run()
