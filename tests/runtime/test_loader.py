"""Machine code in memory: as long as somebody has it, and no longer."""

from __future__ import annotations

import ctypes
import gc
import weakref

import pytest

from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import i64, ptr
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.runtime.loader import Library


@pytest.fixture(scope="module")
def code() -> bytes:
    """A function that counts."""
    module = ModuleBuilder(host_target())
    with define_function(module, "count", [ptr]) as (b, (place,)):
        place.store(place.load(i64) + 1)
        b.give_back()
    return compile_text(emit_module(module.module), module.target)


class Owner:
    """Somebody who has a library and knows himself: garbage that only a collection finds."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.call = library.function("count", [ctypes.c_void_p])
        self.myself = self


def test_a_function_keeps_its_code(code: bytes) -> None:
    call = Library(code).function("count", [ctypes.c_void_p])
    gc.collect()
    number = ctypes.c_int64(1)
    call(ctypes.addressof(number))
    assert number.value == 2


def test_code_is_given_back_in_a_cycle_of_garbage(code: bytes) -> None:
    """LLVM's objects depend on each other: in another order than theirs, this ends the process."""
    gone: list[weakref.ref[Library]] = []
    gc.freeze()  # What other tests left is not looked through each time.
    try:
        for _ in range(20):
            owner = Owner(Library(code))
            gone.append(weakref.ref(owner.library))
            del owner
            gc.collect()
    finally:
        gc.unfreeze()
    assert all(reference() is None for reference in gone)


def test_what_is_not_there_is_an_error(code: bytes) -> None:
    with pytest.raises(KeyError, match="other"):
        Library(code).address("other")
