"""What targets say that their processors can do, LLVM makes instructions of: no call of a library, and no loop."""

from __future__ import annotations

import re

import pytest

from glow_mlir.backends.cpu.targets import PRESETS, host_target
from glow_mlir.codegen.builder.modules import vector_length
from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.llvm.objects import assembly_text
from glow_mlir.dialects.target import Target
from glow_mlir.runtime import host

CALL = re.compile(r"^\s+(?:callq?|bl|b|tail|j|jmp|call)\s+[a-z_]\w*(?:@PLT)?$", re.MULTILINE)
BRANCH = re.compile(r"^\.LBB\d+_[1-9]", re.MULTILINE)

ROUNDING = ("floor", "ceil", "trunc", "roundeven")


def functions(target: Target) -> list[str]:
    """A function for each thing that a target can do, on its vectors if it has any."""
    lanes = target.vector_width(f32)
    number, short = (f"<{lanes} x float>", f"v{lanes}f32") if lanes > 1 else ("float", "f32")
    integer, short_integer = (f"<{lanes} x i32>", f"v{lanes}i32") if lanes > 1 else ("i32", "i32")
    load = f"%a = load {number}, ptr %p, align 4\n"
    found: list[str] = []
    length = vector_length(target)
    vectors = f" vscale_range({length.units},{length.units})" if length is not None and length.exactly else ""

    def define(name: str, body: str, declaration: str, result: str = number) -> None:
        found.append(
            f"define void @test.{name}(ptr %p, ptr %q, i32 %n) nounwind{vectors} {{\n{load}{body}"
            f"store {result} %r, ptr %q, align 4\nret void\n}}\ndeclare {declaration}\n"
        )

    if target.fma:
        define(
            "fma",
            f"%r = call {number} @llvm.fma.{short}({number} %a, {number} %a, {number} %a)\n",
            f"{number} @llvm.fma.{short}({number}, {number}, {number})",
        )
    for name in ROUNDING if target.rounding else ():
        define(
            name,
            f"%r = call {number} @llvm.{name}.{short}({number} %a)\n",
            f"{number} @llvm.{name}.{short}({number})",
        )
    if target.maxima:
        define(
            "maximum",
            "%x = load float, ptr %p, align 4\n%y = load float, ptr %q, align 4\n"
            "%r = call float @llvm.maxnum.f32(float %x, float %y)\n",
            "float @llvm.maxnum.f32(float, float)",
            "float",
        )
    if target.rounding_conversion:
        define(
            "convert",
            f"%r = call {integer} @llvm.lrint.{short_integer}.{short}({number} %a)\n",
            f"{integer} @llvm.lrint.{short_integer}.{short}({number})",
            integer,
        )
    if target.masked:
        count = f"%i = insertelement {integer} poison, i32 %n, i32 0\n"
        spread = f"%s = shufflevector {integer} %i, {integer} poison, {integer} zeroinitializer\n"
        steps = ", ".join(f"i32 {lane}" for lane in range(lanes))
        mask = f"%m = icmp ult {integer} <{steps}>, %s\n"
        define(
            "masked",
            f"{count}{spread}{mask}%r = call {number} @llvm.masked.load.{short}.p0"
            f"(ptr %q, i32 4, <{lanes} x i1> %m, {number} %a)\n",
            f"{number} @llvm.masked.load.{short}.p0(ptr, i32, <{lanes} x i1>, {number})",
        )
    return found


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_capabilities_are_instructions(name: str) -> None:
    target = PRESETS[name]
    text = "".join(functions(target))
    assembly = assembly_text(text, target) if text else ""
    assert CALL.findall(assembly) == []
    assert BRANCH.findall(assembly) == []


def test_few_machines_lack_a_fused_multiply_add() -> None:
    assert [name for name, target in PRESETS.items() if not target.fma] == [
        *("scalar", "sse2", "sse4", "cortex-m0plus", "cortex-m3", "wasm32")
    ]


def test_the_length_of_scalable_vectors_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "llvm_triple", lambda: PRESETS["neon"].triple)
    monkeypatch.setattr(host, "llvm_features", lambda: dict.fromkeys(PRESETS["sve-256"].enabled, True))
    assert host_target().vector_bits == PRESETS["sve-128"].vector_bits
