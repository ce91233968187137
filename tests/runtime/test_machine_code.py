"""Entries of machine code: the status that they return, and machines that cannot run them."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import i32, ptr
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.errors import ExecutionError, InputError, OptionError
from glow_mlir.runtime.aligned_memory import aligned
from glow_mlir.runtime.artifact import Artifact, Binding, Entry, Failure, Manifest
from glow_mlir.runtime.machine_code import MachineCode, small_pages

FAILURES = (Failure("the first is wrong", "node1"), Failure("the second is wrong", "node2"))


@pytest.fixture(scope="module")
def code() -> bytes:
    """An entry that returns the number that it is given as its status."""
    module = ModuleBuilder(host_target())
    with define_function(module, "main", [ptr] * 4, result=i32) as (b, (_, bindings, _, _)):
        b.give_back(bindings.load(ptr).load(i32))
    return compile_text(emit_module(flattened(module.module)), module.target)


def loaded(code: bytes, **needs: object) -> MachineCode:
    """The entry, with what its statuses mean, for a machine with those needs."""
    options = {"triple": host_target().triple, "failures": FAILURES, **needs}
    entry = Entry("main", (Binding("status", "input", "int32", (1,)),), 0, 0, "a machine", **options)  # pyright: ignore[reportArgumentType]
    return MachineCode(Artifact((code,), np.empty(0, np.uint8), Manifest((entry,), 0)))


def test_status_0_is_success(code: bytes) -> None:
    assert loaded(code).entry().run({"status": np.zeros(1, np.int32)}) == {}


@pytest.mark.parametrize("status", [1, 2])
def test_other_statuses_are_errors_with_reason_and_node(code: bytes, status: int) -> None:
    with pytest.raises(ExecutionError) as caught:
        loaded(code).entry().run({"status": np.full(1, status, np.int32)})
    failure = FAILURES[status - 1]
    assert str(caught.value) == f"node '{failure.location}': {failure.reason}"


@pytest.mark.parametrize("status", [-2, 3])
def test_status_that_the_manifest_does_not_have_is_an_error_with_its_number(code: bytes, status: int) -> None:
    with pytest.raises(ExecutionError, match=f"@main returned the status {status}"):
        loaded(code).entry().run({"status": np.full(1, status, np.int32)})


def test_failures_are_in_the_manifest_on_disk(code: bytes) -> None:
    manifest = loaded(code).manifest
    assert Manifest.from_json(manifest.to_json()) == manifest


def test_code_for_another_machine_is_not_linked(code: bytes) -> None:
    with pytest.raises(OptionError, match="target of @main: it lacks the architecture riscv64"):
        loaded(code, triple="riscv64-unknown-linux-gnu").entry()
    with pytest.raises(OptionError, match="target of @main: it lacks the system haiku"):
        loaded(code, triple=f"{host_target().architecture}-unknown-haiku").entry()
    with pytest.raises(OptionError, match="target of @main: it lacks no-such-feature"):
        loaded(code, features=("no-such-feature",)).entry()


def test_entry_that_there_is_not_is_told(code: bytes) -> None:
    with pytest.raises(InputError, match=r"there is no entry 'other' \(hint: the model has main\)"):
        loaded(code).entry("other")


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells otherwise how much memory is touched")
def test_what_is_laid_out_for_large_sizes_takes_what_is_touched() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * mmap.PAGESIZE

    arena = aligned(1 << 28, small_pages)
    before = resident()
    arena[:: 1 << 22] = 1
    assert resident() - before < 1 << 22
    assert arena[: 1 << 23].sum() == 2
    with pytest.raises(MemoryError):
        aligned(1 << 60, small_pages)
