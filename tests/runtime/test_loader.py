"""Machine code in memory: as long as somebody has it, and no longer."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref

import pytest

from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import i64, ptr
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.runtime.loader import Library


@pytest.fixture(scope="module")
def code() -> bytes:
    """A function that counts."""
    module = ModuleBuilder(host_target())
    with define_function(module, "count", [ptr]) as (b, (place,)):
        place.store(place.load(i64) + 1)
        b.give_back()
    return compile_text(emit_module(flattened(module.module)), module.target)


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


FAR = """
import ctypes
import mmap, sys
from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.runtime.loader import Library

stores = "\\n".join(f"  store volatile i32 {number}, ptr %place" for number in range(8000))
text = f'''
@table = private constant [4 x i32] [i32 11, i32 22, i32 33, i32 44]
define i32 @at(i64 %index, ptr %place) {{
{stores}
  %address = getelementptr i32, ptr @table, i64 %index
  %value = load i32, ptr %address
  ret i32 %value
}}'''
code = compile_text(text, host_target())
few = 1 << 14
assert len(code) > 2 * few
Library(code)
kept = [mmap.mmap(-1, few) for _ in range(20_000)]
hole = mmap.mmap(-1, few)
kept += [mmap.mmap(-1, few >> 1) for _ in range(400)]
hole.close()
far = mmap.mmap(-1, 5 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)
place = (ctypes.c_int32 * 1)()
before = set(open("/proc/self/maps"))
library = Library(code)
at = library.function("at", (ctypes.c_int64, ctypes.c_void_p), ctypes.c_int32)
assert at(2, ctypes.addressof(place)) == 33
new = [line.split() for line in set(open("/proc/self/maps")) - before]
ends = [int(end, 16) for words in new if words[1] in ("r-xp", "r--p") for end in words[0].split("-")]
assert max(ends) - min(ends) < 1 << 20, new
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems map elsewhere")
def test_code_lies_beside_its_constants_whatever_else_is_mapped() -> None:
    """All gaps are too small for the code, and only one, far away, holds the constants."""
    done = subprocess.run([sys.executable, "-c", FAR], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
