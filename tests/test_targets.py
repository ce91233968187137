"""Targets in the IR: what the text says wins, functions of a module have their own, and flags do not contradict it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.backends.cpu.measured import measured
from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.backends.interface import costs_of, get_backend, runnable_targets
from glow_mlir.backends.interpreter.executable import InterpretedModule
from glow_mlir.codegen.llvm.processor import Answer, ask
from glow_mlir.dialects.feature_levels import short_features
from glow_mlir.dialects.target import FIELDS, Target, TargetAttr, named_fields, str_of, with_fields
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pipelines import available_passes
from glow_mlir.errors import ModelError, OptionError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.text import module_text, parse_module
from glow_mlir.options.machine import MIN_REGISTERS
from glow_mlir.tools.glow_compile import main as glow_compile

RELU = """
glow_high.placeholder @x : tensor<64xf32> {input}
glow_high.placeholder @y : tensor<64xf32> {output}
"""

FUNCTION = """
glow_high.func @NAME(@x, @y) {
  %x = glow_high.get @x : tensor<64xf32>
  %1 = glow_high.relu %x : tensor<64xf32>
  glow_high.save %1, @y
}
"""

RUNNABLE = [name for name in runnable_targets(get_backend("cpu")) if name != "host"]


def model(**targets: Target) -> ModuleOp:
    """A module with a function for each target."""
    module = parse_module(RELU + "".join(FUNCTION.replace("NAME", name) for name in targets), new_context(), "two.mlir")
    for function in functions(module):
        function.assigned = TargetAttr(targets[function.sym_name.data])
    return module


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))


def test_functions_for_two_targets_run_and_are_cached() -> None:
    host = get_backend("cpu").host()
    narrow = with_fields(host, {"vector_bits": min(128, host.vector_bits), "threads": 2})
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    for _ in range(2):
        for name in ("plain", "narrow"):
            session = InferenceSession(model(plain=host, narrow=narrow), entry=name)
            (y,) = session.run(None, {"x": x})
            np.testing.assert_array_equal(y, np.maximum(x, 0))
    assert not InferenceSession(model(plain=host, narrow=narrow), entry="plain").compile_seconds
    changed = dataclasses.replace(narrow, l2_bytes=1 << 12)
    assert InferenceSession(model(plain=host, narrow=changed), entry="plain").compile_seconds


@pytest.mark.parametrize("stage", ["optimized", "scheduled", "instructions", "stacked", "selected", "allocated"])
def test_text_of_a_stage_compiles_on_without_flags(stage: str) -> None:
    module = parse_module(RELU + FUNCTION.replace("NAME", "main"), new_context(), "relu.mlir")
    Compilation(module, target=f"{RUNNABLE[0]},threads=2,accuracy=strict").run(until=stage)
    text = module_text(module)
    again = parse_module(text, new_context(), "again.mlir")
    (found,) = Compilation(again).targets().values()
    assert found == with_fields(PRESETS[RUNNABLE[0]], {"threads": 2, "accuracy": "strict"})
    x = np.ones(64, np.float32)
    (y,) = InferenceSession(again, cache=False).run(None, {"x": x})
    np.testing.assert_array_equal(y, x)
    for flags in ({"fields": {"threads": 3}}, {"fields": {"accuracy": "default"}}, {"target": "neon"}):
        with pytest.raises(OptionError, match=r"@main is for .*, not "):
            Compilation(parse_module(text, new_context(), "again.mlir"), **flags).run("allocated")  # pyright: ignore[reportArgumentType]


def test_module_runs_on_the_backend_that_it_says(tmp_path: Path) -> None:
    path = tmp_path / "said.mlir"
    path.write_text(module_text(model(main=Target("interpreter"))))
    for given in (path, model(main=Target("interpreter"))):
        session = InferenceSession(given)
        assert isinstance(session.executable, InterpretedModule)
        (y,) = session.run(None, {"x": np.full(64, -1, np.float32)})
        assert not y.any()
    with pytest.raises(OptionError, match="@main is for backend=interpreter, not cpu"):
        InferenceSession(path, backend="cpu")


def test_functions_for_several_backends_are_refused_in_one_line() -> None:
    mixed = model(main=get_backend("cpu").host(), other=Target("interpreter"))
    reason = "the functions of the module are for several backends: @main for 'cpu', @other for 'interpreter'"
    with pytest.raises(OptionError, match=reason):
        InferenceSession(mixed)
    with pytest.raises(OptionError, match=reason):
        Compilation(mixed).run("optimized")
    assert InferenceSession(mixed, backend="interpreter").get_entries() == ["main", "other"]


def test_interpreter_runs_what_is_for_any_target() -> None:
    session = InferenceSession(model(main=PRESETS["neon"]), backend="interpreter")
    (y,) = session.run(None, {"x": np.full(64, -1, np.float32)})
    assert not y.any()


@pytest.mark.parametrize("text", ["avx2,vector_bits=128,threads=2", "avx2,features=+avx2,-fma,l2_bytes=4096"])
def test_fields_override_those_of_a_name(text: str) -> None:
    name, fields = named_fields(text)
    found = get_backend("cpu").target(text)
    assert found == with_fields(PRESETS[name], fields)
    assert found.fma == ("+fma" in found.features)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("avx2,lanes=8", "a target has no field 'lanes'"),
        ("avx2,vector_bits", "'vector_bits' is no field of the target"),
        ("avx2,vector_bits=wide", "vector_bits='wide' is no whole number"),
        ("avx2,threads=0", "threads=0 is no number of threads"),
        ("avx2,backend=interpreter", "is one of a backend"),
        ("avx2,l1_bytes=1,l1_bytes=2", "the field 'l1_bytes' is given twice"),
        ("avx2,features=+avx2,+", r"the feature '\+' does not start with \+ or \-"),
    ],
)
def test_mistakes_in_the_text_of_a_target_are_told(target: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        get_backend("cpu").target(target)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"cpu": "nonsense"}, "LLVM compiles for no such machine: 'nonsense' is not a recognized processor"),
        ({"cpu": "i386"}, "LLVM compiles for no such machine: LLVM ERROR: 64-bit code requested"),
        ({"features": "+nonsense"}, r"LLVM compiles for no such machine: '\+nonsense' is not a recognized feature"),
        ({"triple": "nonsense-unknown-linux-gnu"}, "LLVM compiles for no such machine: .*nonsense"),
        ({"pointer_bits": 32}, "pointer_bits=32 contradicts the triple 'x86_64-unknown-linux-gnu'"),
    ],
)
def test_machines_that_llvm_does_not_know_are_refused(fields: dict[str, Any], reason: str) -> None:
    machine = dataclasses.replace(PRESETS["avx2"], **fields)
    with pytest.raises(OptionError, match=reason) as caught:
        get_backend("cpu").check_target(machine)
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match=f"the target of @main cannot be: {reason}"):
        InferenceSession(model(main=machine), cache=False)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("cortex-m4,float_abi=soft", "float_abi=soft contradicts the triple 'thumbv7em-unknown-none-eabihf'"),
        ("cortex-m4,triple=thumbv7em-none-eabihf", "the triple 'thumbv7em-none-eabihf' does not say how"),
        ("neon,code_model=medium", "'aarch64' has no code model 'medium'"),
        ("neon,float_abi=hard", "float_abi=hard: floats are passed in one way on 'aarch64'"),
        ("riscv64,features=+m,float_abi=hard", "float_abi=hard needs registers for floats of 64 bits"),
    ],
)
def test_how_code_is_linked_and_called_does_not_contradict_the_rest(target: str, reason: str) -> None:
    machine = get_backend("cpu").target(target)
    with pytest.raises(OptionError, match=reason):
        get_backend("cpu").check_target(machine)


def test_llvm_knows_the_named_machines() -> None:
    for machine in PRESETS.values():
        get_backend("cpu").check_target(machine)
        assert ask(machine.triple, machine.cpu, machine.features) == Answer("", machine.pointer_bits)


def test_code_for_another_system_is_not_run() -> None:
    foreign = "x86_64-apple-darwin" if "linux" in get_backend("cpu").host().triple else "x86_64-unknown-linux-gnu"
    with pytest.raises(OptionError, match="cannot run code for the target of @main: it lacks the "):
        InferenceSession(model(main=dataclasses.replace(PRESETS["sse2"], triple=foreign)), cache=False)


def test_kernels_cope_with_the_fewest_registers() -> None:
    machine = dataclasses.replace(PRESETS["avx2"], vector_registers=MIN_REGISTERS)
    module = model(main=machine)
    for kind in ("tanh", "sin"):
        text = module_text(module).replace("glow_high.relu", f"glow_high.{kind}")
        Compilation(parse_module(text, new_context(), "few.mlir")).run()


def test_a_processor_is_known_by_its_features() -> None:
    named = PRESETS["avx512"]
    assert (named.fma, named.rounding, named.scaling, named.masked) == (True, True, True, True)
    bare = dataclasses.replace(named, features="")
    assert (bare.fma, bare.rounding, bare.scaling, bare.masked) == (False, False, False, False)


def test_assign_target_has_an_option_for_each_field() -> None:
    options = {field.name for field in dataclasses.fields(available_passes()["assign-target"]())}
    assert options == {*FIELDS, "target", "override"}


def test_costs_are_those_of_the_backend_but_for_what_the_target_says() -> None:
    plain, changed = PRESETS["avx2"], get_backend("cpu").target("avx2,costs.operations_per_byte=8,costs.most_taps=3")
    assert costs_of(plain) == measured(plain)
    assert costs_of(changed) == dataclasses.replace(measured(plain), operations_per_byte=8, most_taps=3)
    assert str_of(changed).endswith(", costs = {most_taps = 3, operations_per_byte = 8}")
    with pytest.raises(ModelError, match="the target of @main cannot be: there is no cost 'speed'"):
        Compilation(model(main=dataclasses.replace(plain, costs=(("speed", 1),)))).run("optimized")


def test_only_assign_target_has_options_for_the_machine() -> None:
    own = {name: load() for name, load in available_passes().items() if load.__module__.startswith("glow_mlir")}
    for name, item in own.items():
        options = {field.name for field in dataclasses.fields(item)}
        assert name == "assign-target" or not options & {*FIELDS, "target"}, name


NORMALIZATION = """
glow_high.func @main(%x: tensor<2x8xf32>, %scale: tensor<8xf32>) -> tensor<2x8xf32> {
  %y = glow_high.layer_normalization %x, %scale, none : tensor<2x8xf32>
  glow_high.return %y
}
"""


@pytest.mark.parametrize(
    ("target", "required"),
    [
        ("cortex-m0plus", {"__aeabi_fadd", "__aeabi_fmul"}),
        ("cortex-m3", {"__aeabi_fadd", "__aeabi_fmul"}),
        ("cortex-m4", set[str]()),
        ("cortex-m33", set[str]()),
        ("cortex-m85", set[str]()),
    ],
)
def test_floats_that_a_processor_lacks_are_required_of_a_library(target: str, required: set[str]) -> None:
    module = parse_module(NORMALIZATION, new_context(), "normalization.mlir")
    found = Compilation(module, target=target).artifact().manifest.requirements
    assert {name for name in found if name in ("__aeabi_fadd", "__aeabi_fmul")} == required
    assert all(name.startswith("__aeabi_") for name in found)
    assert bool(found) == bool(required)


V3 = "+popcnt,+sse2,+sse4.1,+sse4.2,+ssse3,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
"""What a processor of the third level has, as LLVM lists it: the second level, too."""


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("", ""),
        (PRESETS["avx2"].features, PRESETS["avx2"].features),
        (V3 + "," + ",".join(f"-off{number}" for number in range(20)), "x86-64-v3"),
        (V3 + ",+aes,+adx," + ",".join(f"-off{number}" for number in range(20)), "x86-64-v3 and 2 more features"),
        (",".join(f"+on{number}" for number in range(40)), "40 features"),
    ],
)
def test_long_lists_of_features_are_said_in_few_words(features: str, expected: str) -> None:
    assert short_features(features) == expected


def test_a_header_counts_features_and_its_manifest_lists_them(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(RELU + FUNCTION.replace("NAME", "main"))
    off = ",".join(f"-{name}" for name in ("adx", "aes", "avx512vp2intersect", "sha", "vaes", "gfni", "pku", "rtm"))
    features = f"{V3},{off}"
    target = f"avx2,features={features}"
    assert glow_compile([str(path), "-o", str(tmp_path / "bundle"), "--target", target]) == 0
    about = (tmp_path / "bundle" / "m.h").read_text().splitlines()[0]
    assert "x86-64-v3 (m.json has them all)" in about
    assert "sse4.1" not in about
    assert features in (tmp_path / "bundle" / "m.json").read_text()
