"""
AMX on machines without it: its instructions as functions in plain LLVM IR, on registers in memory.

They do what the configuration of the registers says, rows and bytes included, and fail where an instruction would: on
registers that are not configured, or do not fit each other. Each thread has its own registers.
"""

from __future__ import annotations

import re
from dataclasses import replace

import execute
import pytest

from glow_mlir.codegen import build
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.dialects.target import Target
from glow_mlir.runtime import host

_FEATURES = r",?\+(?:amx-[\w-]+{})"
"""How targets and functions say that there are tile registers."""

_BRAIN_PRODUCT = "avx512bf16.dpbf16ps"
"""What code has whose products of bf16 tile registers do not compute, and which needs a machine that has it."""

_CALL = re.compile(r"@llvm\.x86\.(ldtilecfg|tilerelease|tilezero|tileloadd64|tilestored64|tdp\w+)\(")


def emulated(text: str) -> str:
    """A module in LLVM IR text with calls of functions in the place of AMX's instructions."""
    used = {match[1] for match in _CALL.finditer(text)}
    if not used:
        return text
    products = "".join(_product(name) for name in sorted(used) if name.startswith("tdp"))
    return _CALL.sub(r"@amx.\1(", text) + _REGISTERS + products


def compile_emulated(text: str, target: Target) -> bytes:
    """The object file for a module in LLVM IR text, whose tile registers are emulated."""
    foreign = re.compile(_FEATURES.format("" if _BRAIN_PRODUCT in text else "|avx512bf16"))
    plain = replace(target, features=foreign.sub("", target.features).lstrip(","))
    return compile_text(foreign.sub("", emulated(text)), plain)


def emulate_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process compile and run code for tile registers, which are emulated."""
    for module in (build, execute):
        monkeypatch.setattr(module, "compile_text", compile_emulated)
    features = {**host.llvm_features(), **dict.fromkeys(("amx-tile", "amx-int8", "amx-bf16", "avx512bf16"), True)}
    monkeypatch.setattr(host, "llvm_features", lambda: features)


_REGISTERS = """
@amx.owners = internal global [64 x i64] zeroinitializer, align 64
@amx.states = internal global [64 x [8256 x i8]] zeroinitializer, align 64

; The registers of this thread, and behind them their configuration. Threads are known by their control block.
define internal ptr @amx.state() noinline {
  %thread = load i64, ptr addrspace(257) null
  br label %search
search:
  %slot = phi i64 [ 0, %0 ], [ %next, %other ]
  %owner = getelementptr [64 x i64], ptr @amx.owners, i64 0, i64 %slot
  %taken = cmpxchg ptr %owner, i64 0, i64 %thread seq_cst seq_cst
  %before = extractvalue { i64, i1 } %taken, 0
  %free = extractvalue { i64, i1 } %taken, 1
  %same = icmp eq i64 %before, %thread
  %mine = or i1 %free, %same
  br i1 %mine, label %found, label %other
other:
  %next = add i64 %slot, 1
  %full = icmp eq i64 %next, 64
  br i1 %full, label %fail, label %search
fail:
  call void @llvm.trap()
  unreachable
found:
  %state = getelementptr [64 x [8256 x i8]], ptr @amx.states, i64 0, i64 %slot
  ret ptr %state
}

define internal ptr @amx.tile(ptr %state, i8 %number) {
  %wide = zext i8 %number to i64
  %offset = mul i64 %wide, 1024
  %tile = getelementptr i8, ptr %state, i64 %offset
  ret ptr %tile
}

define internal i64 @amx.rows(ptr %state, i8 %number) {
  %wide = zext i8 %number to i64
  %place = add i64 %wide, 8240
  %address = getelementptr i8, ptr %state, i64 %place
  %byte = load i8, ptr %address
  %rows = zext i8 %byte to i64
  %none = icmp eq i8 %byte, 0
  br i1 %none, label %fail, label %done
fail:
  call void @llvm.trap()
  unreachable
done:
  ret i64 %rows
}

define internal i64 @amx.bytes(ptr %state, i8 %number) {
  %wide = zext i8 %number to i64
  %twice = mul i64 %wide, 2
  %place = add i64 %twice, 8208
  %address = getelementptr i8, ptr %state, i64 %place
  %word = load i16, ptr %address
  %bytes = zext i16 %word to i64
  ret i64 %bytes
}

define internal void @amx.same(i64 %a, i64 %b) {
  %equal = icmp eq i64 %a, %b
  br i1 %equal, label %done, label %fail
fail:
  call void @llvm.trap()
  unreachable
done:
  ret void
}

define internal void @amx.ldtilecfg(ptr %given) noinline {
  %state = call ptr @amx.state()
  call void @amx.clear(ptr %state, i64 8192)
  %kept = getelementptr i8, ptr %state, i64 8192
  call void @llvm.memcpy.inline.p0.p0.i64(ptr %kept, ptr %given, i64 64, i1 false)
  ret void
}

define internal void @amx.tilerelease() noinline {
  %state = call ptr @amx.state()
  call void @amx.clear(ptr %state, i64 8256)
  ret void
}

define internal void @amx.clear(ptr %from, i64 %bytes) {
  br label %loop
loop:
  %at = phi i64 [ 0, %0 ], [ %next, %loop ]
  %address = getelementptr i8, ptr %from, i64 %at
  store <16 x i32> zeroinitializer, ptr %address, align 1
  %next = add i64 %at, 64
  %more = icmp ult i64 %next, %bytes
  br i1 %more, label %loop, label %done
done:
  ret void
}

define internal void @amx.tilezero(i8 %number) noinline {
  %state = call ptr @amx.state()
  %rows = call i64 @amx.rows(ptr %state, i8 %number)
  %tile = call ptr @amx.tile(ptr %state, i8 %number)
  call void @amx.clear(ptr %tile, i64 1024)
  ret void
}

; Rows of some bytes, which lie apart by steps.
define internal void @amx.copy(ptr %to, i64 %to.step, ptr %from, i64 %from.step, i64 %rows, i64 %bytes) {
  br label %row
row:
  %r = phi i64 [ 0, %0 ], [ %r.next, %row.end ]
  %to.offset = mul i64 %r, %to.step
  %from.offset = mul i64 %r, %from.step
  %target = getelementptr i8, ptr %to, i64 %to.offset
  %source = getelementptr i8, ptr %from, i64 %from.offset
  br label %dot_group
dot_group:
  %c = phi i64 [ 0, %row ], [ %c.next, %dot_group ]
  %read = getelementptr i8, ptr %source, i64 %c
  %written = getelementptr i8, ptr %target, i64 %c
  %value = load i32, ptr %read, align 1
  store i32 %value, ptr %written, align 1
  %c.next = add i64 %c, 4
  %more = icmp ult i64 %c.next, %bytes
  br i1 %more, label %dot_group, label %row.end
row.end:
  %r.next = add i64 %r, 1
  %again = icmp ult i64 %r.next, %rows
  br i1 %again, label %row, label %done
done:
  ret void
}

define internal void @amx.tileloadd64(i8 %number, ptr %from, i64 %step) noinline {
  %state = call ptr @amx.state()
  %tile = call ptr @amx.tile(ptr %state, i8 %number)
  %rows = call i64 @amx.rows(ptr %state, i8 %number)
  %bytes = call i64 @amx.bytes(ptr %state, i8 %number)
  call void @amx.clear(ptr %tile, i64 1024)
  call void @amx.copy(ptr %tile, i64 64, ptr %from, i64 %step, i64 %rows, i64 %bytes)
  ret void
}

define internal void @amx.tilestored64(i8 %number, ptr %to, i64 %step) noinline {
  %state = call ptr @amx.state()
  %tile = call ptr @amx.tile(ptr %state, i8 %number)
  %rows = call i64 @amx.rows(ptr %state, i8 %number)
  %bytes = call i64 @amx.bytes(ptr %state, i8 %number)
  call void @amx.copy(ptr %to, i64 %step, ptr %tile, i64 64, i64 %rows, i64 %bytes)
  ret void
}

; bf16 as f32; numbers too small to be normal are 0.
define internal <32 x float> @amx.widened(<32 x i16> %bits) {
  %wide = zext <32 x i16> %bits to <32 x i32>
  %shifted = shl <32 x i32> %wide, splat (i32 16)
  %number = bitcast <32 x i32> %shifted to <32 x float>
  %flushed = call <32 x float> @amx.flushed(<32 x float> %number)
  ret <32 x float> %flushed
}

define internal <32 x float> @amx.flushed(<32 x float> %number) {
  %bits = bitcast <32 x float> %number to <32 x i32>
  %exponent = and <32 x i32> %bits, splat (i32 2139095040)
  %small = icmp eq <32 x i32> %exponent, zeroinitializer
  %sign = and <32 x i32> %bits, splat (i32 -2147483648)
  %kept = select <32 x i1> %small, <32 x i32> %sign, <32 x i32> %bits
  %flushed = bitcast <32 x i32> %kept to <32 x float>
  ret <32 x float> %flushed
}

declare <32 x float> @llvm.fma.v32f32(<32 x float>, <32 x float>, <32 x float>)
declare void @llvm.memcpy.inline.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.trap()
"""


def _product(name: str) -> str:
    """The function of a product: of bytes, whose signs the name has, or of bf16."""
    if name == "tdpbf16ps":
        return _PRODUCT.format(name=name, state="<32 x float>", first="zeroinitializer", step=_BF16, end=_BF16_END)
    step = _bytes(*("zext" if letter == "u" else "sext" for letter in name[4:6]))
    return _PRODUCT.format(name=name, state="<16 x i32>", first="%total", step=step, end=_BYTES_END)


def _bytes(left: str, right: str) -> str:
    """The products of the bytes of a dot group, each widened in its way."""
    lines: list[str] = ["  %bytes = bitcast <16 x i32> %right to <64 x i8>", "  %cell = bitcast i32 %left to <4 x i8>"]
    total = "%old"
    for place in range(4):
        mask = ", ".join(f"i32 {4 * lane + place}" for lane in range(16))
        lines += [
            f"  %y{place} = shufflevector <64 x i8> %bytes, <64 x i8> poison, <16 x i32> <{mask}>",
            f"  %wide{place} = {right} <16 x i8> %y{place} to <16 x i32>",
            f"  %byte{place} = extractelement <4 x i8> %cell, i32 {place}",
            f"  %x{place} = {left} i8 %byte{place} to i32",
            f"  %one{place} = insertelement <16 x i32> poison, i32 %x{place}, i32 0",
            f"  %all{place} = shufflevector <16 x i32> %one{place}, <16 x i32> poison, <16 x i32> zeroinitializer",
            f"  %product{place} = mul <16 x i32> %all{place}, %wide{place}",
            f"  %sum{place} = add <16 x i32> {total}, %product{place}",
        ]
        total = f"%sum{place}"
    return "\n".join([*lines, f"  %new = add <16 x i32> {total}, zeroinitializer"])


_BYTES_END = "  store <16 x i32> %new, ptr %sums.row, align 1"

_PAIRS, _EVEN, _ODD = (
    ", ".join(f"i32 {lane}" for lane in lanes) for lanes in ([0, 1] * 16, range(0, 32, 2), range(1, 32, 2))
)

_BF16 = f"""  %ys = bitcast <16 x i32> %right to <32 x i16>
  %pair = bitcast i32 %left to <2 x i16>
  %xs = shufflevector <2 x i16> %pair, <2 x i16> poison, <32 x i32> <{_PAIRS}>
  %x = call <32 x float> @amx.widened(<32 x i16> %xs)
  %y = call <32 x float> @amx.widened(<32 x i16> %ys)
  %sum = call <32 x float> @llvm.fma.v32f32(<32 x float> %x, <32 x float> %y, <32 x float> %old)
  %new = call <32 x float> @amx.flushed(<32 x float> %sum)"""
"""Sums of the products at even and at odd places, each for itself."""

_BF16_END = f"""  %even = shufflevector <32 x float> %new, <32 x float> poison, <16 x i32> <{_EVEN}>
  %odd = shufflevector <32 x float> %new, <32 x float> poison, <16 x i32> <{_ODD}>
  %both = fadd <16 x float> %even, %odd
  %before = load <16 x float>, ptr %sums.row, align 1
  %after = fadd <16 x float> %before, %both
  store <16 x float> %after, ptr %sums.row, align 1"""

_PRODUCT = """
define internal void @amx.{name}(i8 %c, i8 %a, i8 %b) noinline {{
  %state = call ptr @amx.state()
  %sums = call ptr @amx.tile(ptr %state, i8 %c)
  %lefts = call ptr @amx.tile(ptr %state, i8 %a)
  %rights = call ptr @amx.tile(ptr %state, i8 %b)
  %rows = call i64 @amx.rows(ptr %state, i8 %c)
  %left.rows = call i64 @amx.rows(ptr %state, i8 %a)
  %dot_groups = call i64 @amx.rows(ptr %state, i8 %b)
  %left.bytes = call i64 @amx.bytes(ptr %state, i8 %a)
  %right.bytes = call i64 @amx.bytes(ptr %state, i8 %b)
  %columns = call i64 @amx.bytes(ptr %state, i8 %c)
  %dot_group.bytes = mul i64 %dot_groups, 4
  call void @amx.same(i64 %rows, i64 %left.rows)
  call void @amx.same(i64 %left.bytes, i64 %dot_group.bytes)
  call void @amx.same(i64 %columns, i64 %right.bytes)
  br label %row
row:
  %r = phi i64 [ 0, %0 ], [ %r.next, %row.end ]
  %offset = mul i64 %r, 64
  %sums.row = getelementptr i8, ptr %sums, i64 %offset
  %left.row = getelementptr i8, ptr %lefts, i64 %offset
  %total = load <16 x i32>, ptr %sums.row, align 1
  br label %step
step:
  %k = phi i64 [ 0, %row ], [ %k.next, %step ]
  %old = phi {state} [ {first}, %row ], [ %new, %step ]
  %left.address = getelementptr i32, ptr %left.row, i64 %k
  %left = load i32, ptr %left.address, align 1
  %right.address = getelementptr <16 x i32>, ptr %rights, i64 %k
  %right = load <16 x i32>, ptr %right.address, align 1
{step}
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %dot_groups
  br i1 %more, label %step, label %row.end
row.end:
{end}
  %r.next = add i64 %r, 1
  %again = icmp ult i64 %r.next, %rows
  br i1 %again, label %row, label %done
done:
  ret void
}}
"""
