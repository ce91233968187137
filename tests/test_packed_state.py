"""State that kernels read in panels: packed once after each change, and not by the entry that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.target import TargetAttr
from glow_mlir.driver.compiler import Compilation
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.runtime.machine_code import MachineCode

BACKENDS = ["cpu", "interpreter"]


@dataclass(frozen=True)
class Case:
    """An operator with state as an operand: types of input, state and result, and the operator in text."""

    x: str
    w: str
    y: str
    operator: str

    def text(self, functions: str = "") -> str:
        """A module whose entry `run` applies the operator, and whose entry `train` adds to the state."""
        return f"""
        glow_high.placeholder @x : tensor<{self.x}> {{input}}
        glow_high.placeholder @step : tensor<{self.w}> {{input}}
        glow_high.placeholder @w : tensor<{self.w}> {{state, trainable}}
        glow_high.placeholder @y : tensor<{self.y}> {{output}}
        glow_high.func @run(@x, @w, @y) {{
          %x = glow_high.get @x : tensor<{self.x}>
          %w = glow_high.get @w {{mutable}} : tensor<{self.w}>
          %0 = {self.operator} : tensor<{self.y}>
          glow_high.save %0, @y
        }}
        glow_high.func @train(@step, @w) {{
          %step = glow_high.get @step : tensor<{self.w}>
          %w = glow_high.get @w {{mutable}} : tensor<{self.w}>
          %0 = glow_high.add %w, %step : tensor<{self.w}>
          glow_high.save %0, @w
        }}
        {functions}"""

    def module(self, functions: str = "") -> ModuleOp:
        """The text as a module."""
        return parse_module(self.text(functions), new_context(), "state.mlir")


CASES = {
    "matmul": Case("8x40xf32", "40x70xf32", "8x70xf32", "glow_high.matmul %x, %w"),
    "matmul-transposed": Case("8x40xf32", "70x40xf32", "8x70xf32", "glow_high.matmul %x, %w {transpose_right = true}"),
    "matmul-f64": Case("2x3x9xf64", "9x33xf64", "2x3x33xf64", "glow_high.matmul %x, %w"),
    "conv": Case("1x8x8x12xf32", "20x3x3x12xf32", "1x6x6x20xf32", "glow_high.conv %x, %w"),
    "conv-groups": Case("1x8x8x12xf32", "40x3x3x6xf32", "1x6x6x40xf32", "glow_high.conv %x, %w {group = 2}"),
    "conv-winograd": Case("1x24x24x32xf32", "40x3x3x32xf32", "1x22x22x40xf32", "glow_high.conv %x, %w"),
    "conv-i8": Case("1x8x8x5xi8", "20x3x3x5xi8", "1x6x6x20xi32", "glow_high.conv %x, %w"),
    "matmul-i8": Case("8x41xi8", "41x70xi8", "8x70xi32", "glow_high.matmul %x, %w"),
    "conv-depthwise": Case("1x8x8x12xf32", "12x3x3x1xf32", "1x6x6x12xf32", "glow_high.conv %x, %w {group = 12}"),
}


def sample(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def array_of(type_: str, seed: int = 0) -> np.ndarray:
    """A random array of a type in text, such as `2x3xf32`."""
    *sizes, element = type_.split("x")
    shape = tuple(map(int, sizes))
    if element == "i8":
        return np.random.default_rng(seed).integers(-30, 30, shape, np.int8)
    return sample(shape, {"f32": "f4", "f64": "f8"}[element], seed)


def run(session: InferenceSession, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    return session.run(None, inputs, entry="run")[0]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def packings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of packed state, each as often as it is made."""
    made: list[str] = []
    pack = MachineCode.pack

    def counted(self: MachineCode, name: str, state: Mapping[str, np.ndarray]) -> np.ndarray:
        made.append(name)
        return pack(self, name, state)

    monkeypatch.setattr(MachineCode, "pack", counted)
    return made


@pytest.mark.parametrize("name", CASES)
def test_entry_reads_packed_state_and_packs_nothing(name: str) -> None:
    code = InferenceSession(CASES[name].module(), entry="run").machine_code
    entry, train = code.manifest.entries
    (packing,) = code.manifest.packing
    assert [binding.role for binding in entry.bindings] == ["input", "state", "output", "packed"]
    # Scratch for panels would be an activation.
    _, panels = packing.bindings
    assert entry.activations < np.prod(panels.shape) * np.dtype(panels.dtype).itemsize
    assert [binding.role for binding in packing.bindings] == ["state", "packed"]
    assert (entry.writes, train.writes, packing.writes) == ((), ("w",), ())
    assert [step.kind for step in packing.steps] == ["pack"]


@pytest.mark.parametrize("name", ["matmul", "conv"])
def test_entry_knows_the_address_of_plain_state_and_does_not_use_it(name: str) -> None:
    compilation = Compilation(CASES[name].module(), target="host")
    text = str(compilation.run("allocated"))
    body = text[text.index("glow_low.func @run(") : text.index("glow_low.func @train(")]
    assert "@run(@x, @w, @y, @w." in body
    assert "glow_low.weight @w " not in body
    assert "packing = {" in body


@pytest.mark.parametrize(("name", "threads"), [*((name, 1) for name in CASES), ("matmul", 2)])
def test_results_follow_the_state(name: str, threads: int) -> None:
    """What the backends compute agrees after each way to change state."""
    case = CASES[name]
    cpu = InferenceSession(case.module(), entry="run", threads=threads)
    oracle = InferenceSession(case.module(), entry="run", backend="interpreter")
    x, first, step = array_of(case.x), array_of(case.w, 1), array_of(case.w, 2)

    def check() -> None:
        np.testing.assert_allclose(run(cpu, {"x": x}), run(oracle, {"x": x}), rtol=1e-4, atol=1e-4)

    check()
    for session in (cpu, oracle):
        session.set_state({"w": first})
    check()
    for session in (cpu, oracle):
        for _ in range(2):
            session.run(None, {"step": step}, entry="train")
    check()
    np.testing.assert_allclose(cpu.get_state()["w"], first + 2 * step, rtol=1e-5, atol=1e-5)
    for session in (cpu, oracle):
        session.reset_state(["w"])
    check()
    assert not run(cpu, {"x": x}).any()


def test_state_is_packed_once_after_each_change(packings: list[str]) -> None:
    case = CASES["matmul"]
    session = InferenceSession(case.module(), entry="run")
    x, w = array_of(case.x), array_of(case.w)
    assert packings == []
    for changed in range(1, 4):
        for _ in range(3):
            run(session, {"x": x})
        assert len(packings) == changed
        session.set_state({"w": w})
        session.set_state({"w": w})
    for _ in range(3):
        session.run(None, {"step": w}, entry="train")
    assert len(packings) == 3
    np.testing.assert_allclose(run(session, {"x": x}), x @ (4 * w), rtol=1e-4, atol=1e-4)
    assert len(packings) == 4


def test_state_of_other_names_does_not_matter(packings: list[str]) -> None:
    more = """
    glow_high.placeholder @calls : tensor<1xf32> {state}
    glow_high.func @count(@calls) {
      %calls = glow_high.get @calls {mutable} : tensor<1xf32>
      %0 = glow_high.exp %calls : tensor<1xf32>
      glow_high.save %0, @calls
    }
    """
    session = InferenceSession(CASES["matmul"].module(more), entry="run")
    x = array_of(CASES["matmul"].x)
    run(session, {"x": x})
    session.run(None, {}, entry="count")
    session.set_state({"calls": np.zeros(1, np.float32)})
    session.reset_state(["calls"])
    run(session, {"x": x})
    assert len(packings) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_packed_state_is_hidden_from_callers(backend: str) -> None:
    session = InferenceSession(CASES["matmul"].module(), entry="run", backend=backend)
    assert session.get_entries() == ["run", "train"]
    assert list(session.get_state()) == ["w"]
    assert [argument.name for argument in session.get_inputs()] == ["x"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_entry_that_writes_the_state_packs_what_it_reads(backend: str) -> None:
    case = Case("8x8xf32", "8x8xf32", "8x8xf32", "glow_high.matmul %x, %w")
    both = """
    glow_high.func @both(@x, @w, @y) {
      %x = glow_high.get @x : tensor<8x8xf32>
      %w = glow_high.get @w {mutable} : tensor<8x8xf32>
      %0 = glow_high.matmul %x, %w : tensor<8x8xf32>
      glow_high.save %0, @y
      glow_high.save %0, @w
    }
    """
    session = InferenceSession(case.module(both), entry="both", backend=backend)
    if backend == "cpu":
        _, _, entry = session.machine_code.manifest.entries
        assert [binding.role for binding in entry.bindings] == ["input", "state", "output"]
    x, w = array_of(case.x), array_of(case.w, 1)
    session.set_state({"w": w})
    for power in (x @ w, x @ x @ w):
        np.testing.assert_allclose(session.run(None, {"x": x})[0], power, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(run(session, {"x": x}), x @ x @ x @ w, rtol=1e-3, atol=1e-3)


def test_entries_for_one_machine_share_packed_state() -> None:
    case = CASES["matmul"]
    again = case.text()[case.text().index("glow_high.func @run") : case.text().index("glow_high.func @train")]
    same = again.replace("@run", "@again")
    code = InferenceSession(case.module(same), entry="run").machine_code
    assert len(code.manifest.packing) == 1
    other = same.replace("@y) {", f"@y) attributes {{target = {TargetAttr(get_backend('cpu').target('scalar'))}}} {{")
    session = InferenceSession(case.module(other), entry="run")
    packing = session.machine_code.manifest.packing
    # The functions that pack are for the machines of those that read.
    assert [entry.target for entry in packing] == [session.machine_code.manifest.entries[i].target for i in (0, 2)]
    x, w = array_of(case.x), array_of(case.w)
    session.set_state({"w": w})
    for entry in ("run", "again"):
        np.testing.assert_allclose(session.run(None, {"x": x}, entry=entry)[0], x @ w, rtol=1e-4, atol=1e-4)


def test_packing_entries_come_from_the_cache() -> None:
    case = CASES["conv"]
    x, w = array_of(case.x), array_of(case.w)
    found: list[np.ndarray] = []
    for is_cached in (False, True):
        session = InferenceSession(case.module(), entry="run")
        assert bool(session.compile_seconds) is not is_cached
        session.set_state({"w": w})
        found.append(run(session, {"x": x}))
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_text_with_packed_state_runs(backend: str) -> None:
    case = CASES["matmul"]
    text = str(Compilation(case.module(), target="host").run("allocated"))
    session = InferenceSession(parse_module(text, new_context()), backend=backend, entry="run")
    x, w = array_of(case.x), array_of(case.w)
    session.set_state({"w": w})
    np.testing.assert_allclose(run(session, {"x": x}), x @ w, rtol=1e-4, atol=1e-4)


def test_state_with_an_initial_value_is_packed(packings: list[str]) -> None:
    text = CASES["matmul"].text().replace("trainable", "value = dense<0.5> : tensor<40x70xf32>")
    session = InferenceSession(parse_module(text, new_context()), entry="run")
    x = array_of("8x40xf32")
    np.testing.assert_allclose(run(session, {"x": x}), x @ np.full((40, 70), 0.5, np.float32), rtol=1e-4, atol=1e-4)
    assert len(packings) == 1


def test_weights_of_a_recurrence_are_packed() -> None:
    text = """
    glow_high.placeholder @x : tensor<3x2x20xf32> {input}
    glow_high.placeholder @w : tensor<5x20xf32> {state}
    glow_high.placeholder @y : tensor<3x2x5xf32> {output}
    glow_high.func @run(@x, @w, @y) {
      %x = glow_high.get @x : tensor<3x2x20xf32>
      %w = glow_high.get @w {mutable} : tensor<5x20xf32>
      %h = glow_high.splat {value = 0.5} : tensor<2x5xf32>
      %0, %1, %2 = glow_high.lstm_recurrence %x, %w, %h, %h : tensor<3x2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
      glow_high.save %0, @y
    }
    """
    sessions = [InferenceSession(parse_module(text, new_context()), backend=backend) for backend in BACKENDS]
    assert len(sessions[0].machine_code.manifest.packing) == 1
    x, w = array_of("3x2x20xf32"), array_of("5x20xf32")
    for session in sessions:
        session.set_state({"w": w})
    np.testing.assert_allclose(run(sessions[0], {"x": x}), run(sessions[1], {"x": x}), rtol=1e-4, atol=1e-5)


def test_profile_is_that_of_the_entry() -> None:
    session = InferenceSession(CASES["matmul"].module(), entry="run", profile=True)
    run(session, {"x": array_of(CASES["matmul"].x)})
    assert [step.kind for step in session.machine_entry.entry.steps] == ["matmul"]
    assert (np.diff(session.machine_entry.stamps) > 0).all()


def test_tuned_model_reads_packed_state() -> None:
    case = CASES["matmul"]
    session = InferenceSession(case.module(), entry="run", tune=True)
    x, w = array_of(case.x), array_of(case.w)
    session.set_state({"w": w})
    np.testing.assert_allclose(run(session, {"x": x}), x @ w, rtol=1e-4, atol=1e-4)
    assert len(session.machine_code.manifest.packing) == 1
