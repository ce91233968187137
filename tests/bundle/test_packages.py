"""Packages of bundles: what the builds of Zephyr and Arduino read is as they specify it, and what they build runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from c_programs import c_compiler, run
from checkout import ROOT
from emulators import GCC, find_emulator, said_by_semihosting
from in_process import Finished, run_tool

import glow_mlir
from glow_mlir.bundle.arduino_library import PRINT_64
from glow_mlir.bundle.packages import PACKAGES
from glow_mlir.tools import glow_compile

EXAMPLES, SUPPORT = ROOT / "examples", ROOT / "tests" / "support"
DIGITS = (str(EXAMPLES / "digits.onnx"), "--bind", "N=1")

NEG = """
glow_high.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
  %y = glow_high.neg %x : tensor<2xi32>
  glow_high.return %y
}
"""

MIXED = """
glow_high.placeholder @x : tensor<?x4xf16, #glow.sizes<[n], n = 1 to 3>> {input, label = "delay"}
glow_high.placeholder @total : tensor<4xf32> {state, value = dense<0.5> : tensor<4xf32>}
glow_high.placeholder @y : tensor<?x4xf16, #glow.sizes<[n], n = 1 to 3>> {output, label = "Serial"}
glow_high.placeholder @z : tensor<4xi64> {output, label = "long"}
glow_high.placeholder @c : tensor<4xi64> {input, label = "loop"}
glow_high.func @main(@x, @c, @total, @y, @z) {
  %x = glow_high.get @x : tensor<?x4xf16, #glow.sizes<[n], n = 1 to 3>>
  %c = glow_high.get @c : tensor<4xi64>
  %old = glow_high.get @total {mutable} : tensor<4xf32>
  %new = glow_high.add %old, %old : tensor<4xf32>
  glow_high.save %new, @total
  %y = glow_high.neg %x : tensor<?x4xf16, #glow.sizes<[n], n = 1 to 3>>
  glow_high.save %y, @y
  %z = glow_high.add %c, %c : tensor<4xi64>
  glow_high.save %z, @z
}
"""
"""State, sizes that are known at run time only, elements that C has no type for, and names that sketches have."""

BOARDS = ("64BIT", "ARCH_POSIX", "ARM64", "CPU_CORTEX_M", "FPU", "FP_HARDABI", "RISCV", "X86")
"""The options of Zephyr that say what a board is, as far as bundles ask."""

REQUIRED = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"}
"""The fields of `library.properties` that Arduino's specification asks for."""

SKETCH_FLAGS = (
    "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -std=gnu++14 -O2 -ffreestanding -fno-exceptions "
    "-fno-rtti -fno-tree-loop-distribute-patterns -Wall -Wextra -Werror -include Arduino.h"
).split()


def compiled(folder: Path, *arguments: str) -> Finished:
    """Run `glow-compile` in a folder."""
    return run_tool(glow_compile.main, arguments, program="glow-compile", directory=folder)


def made(folder: Path, *arguments: str) -> Path:
    """The bundle of the digits example."""
    done = compiled(folder, *DIGITS, "-o", "digits", *arguments)
    assert done.code == 0, done.stderr
    return folder / "digits"


def small(folder: Path, *arguments: str) -> Finished:
    """Make a bundle of that name of a model that takes no time."""
    (folder / "neg.mlir").write_text(NEG)
    return compiled(folder, "neg.mlir", "--name", "digits", *arguments)


def small_paths(folder: Path, *arguments: str) -> set[str]:
    """The files in the folder of that bundle, which can be made."""
    assert small(folder, *arguments).code == 0
    return paths(folder / "digits")


def paths(folder: Path) -> set[str]:
    """The files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


# ---- Zephyr ----------------------------------------------------------------------------------------------------


def configured(folder: Path, bundle: Path, board: set[str]) -> tuple[str, Path]:
    """What Kconfig makes of the example's options on a board: the value of the bundle's, and the file of all."""
    kconfiglib = pytest.importorskip("kconfiglib", reason="pip install kconfiglib")
    lines = [f"config {name}\n\tbool\n\tdefault {'y' if name in board else 'n'}\n" for name in BOARDS]
    stack = "config MAIN_STACK_SIZE\n\tint 'stack'\n"
    own = bundle / "zephyr" / "Kconfig"
    (folder / "Kconfig").write_text("".join([*lines, stack, f'source "{own}"\n']))
    options = kconfiglib.Kconfig(str(folder / "Kconfig"))
    named = {symbol.name for symbol in options.syms.values() if not symbol.nodes and not symbol.is_constant}
    assert named <= {"MODULES", "UNAME_RELEASE"}, "no board has an option of that name"
    options.load_config(str(EXAMPLES / "bundle_zephyr" / "prj.conf"))
    options.write_config(str(folder / ".config"))
    return options.syms["GLOW_BUNDLE_DIGITS"].str_value, folder / ".config"


def test_the_file_of_a_zephyr_module_has_what_zephyr_knows(tmp_path: Path) -> None:
    module = made(tmp_path, "--target", "cortex-m4", "--package", "zephyr")
    known = yaml.safe_load((module / "zephyr" / "module.yml").read_text())
    assert known == {"name": "glow_bundle_digits", "build": {"cmake": "zephyr", "kconfig": "zephyr/Kconfig"}}
    assert (module / known["build"]["cmake"] / "CMakeLists.txt").is_file()
    assert (module / known["build"]["kconfig"]).is_file()
    assert "digits_constants" in (module / "digits.h").read_text()


@pytest.mark.extra
@pytest.mark.parametrize(
    ("target", "board", "value"),
    [
        ("cortex-m4", {"CPU_CORTEX_M", "FPU", "FP_HARDABI"}, "y"),
        ("cortex-m4", {"CPU_CORTEX_M", "FPU"}, "n"),
        ("cortex-m3", {"CPU_CORTEX_M"}, "y"),
        ("cortex-m3", {"CPU_CORTEX_M", "FPU", "FP_HARDABI"}, "n"),
        ("neon", {"ARM64", "64BIT"}, "y"),
        ("riscv32", {"RISCV"}, "y"),
        ("riscv32", {"RISCV", "64BIT"}, "n"),
        ("sse2", {"X86"}, "n"),
    ],
)
def test_boards_of_zephyr_that_cannot_link_a_bundle_cannot_have_it(
    target: str, board: set[str], value: str, tmp_path: Path
) -> None:
    done = small(tmp_path, "--target", target, "--package", "zephyr")
    assert done.code == 0, done.stderr
    assert configured(tmp_path, tmp_path / "digits", board)[0] == value


@pytest.mark.extra
def test_an_application_of_zephyr_calls_the_module(tmp_path: Path) -> None:
    cmake = shutil.which("cmake") or shutil.which("cmake", path=str(Path(sys.executable).parent))
    if cmake is None or shutil.which("make") is None:
        pytest.skip("there is no cmake, or no make that it could use")
    c_compiler()
    module, build = made(tmp_path, "--package", "zephyr"), tmp_path / "build"
    value, configuration = configured(tmp_path, module, {"ARCH_POSIX", "64BIT", "ARM64", "FPU"})
    assert value == "y"
    run(
        *(cmake, "-G", "Unix Makefiles", "-S", EXAMPLES / "bundle_zephyr", "-B", build),
        *(f"-DZephyr_DIR={SUPPORT / 'zephyr'}", f"-DCONFIGURATION={configuration}"),
        f"-DEXTRA_ZEPHYR_MODULES={module}",
    )
    run(cmake, "--build", build)
    assert run(build / "zephyr") == "digit 5\n"


# ---- Arduino ---------------------------------------------------------------------------------------------------


def test_a_library_of_arduino_has_fields_and_folders_of_its_specification(tmp_path: Path) -> None:
    library = made(tmp_path, "--target", "cortex-m4", "--package", "arduino")
    lines = (library / "library.properties").read_text().splitlines()
    fields = dict(line.split("=", 1) for line in lines)
    assert len(fields) == len(lines)
    assert fields.keys() == REQUIRED | {"includes", "precompiled", "ldflags"}
    assert all(fields.values())
    assert re.fullmatch(r"[A-Za-z0-9][\w .-]*", fields["name"], re.ASCII)
    assert re.fullmatch(r"\d+\.\d+\.\d+\+[0-9a-f]{8}", fields["version"])
    assert (fields["precompiled"], fields["ldflags"], fields["includes"]) == ("true", "-ldigits", "digits.h")
    assert fields["category"] == "Data Processing"
    assert paths(library / "src") == {"digits.h", "cortex-m4/libdigits.a"}
    assert paths(library / "examples") == {"Run/Run.ino"}, "a sketch has the name of its folder"
    header = (library / "src" / "digits.h").read_text()
    for line in (library / "keywords.txt").read_text().splitlines():
        name, kind = line.split("\t")
        assert re.search(rf"\b{name}\b", header)
        assert kind in {"KEYWORD1", "KEYWORD2", "LITERAL1"}


def sketch_object(library: Path) -> Path:
    """The example of a library, compiled as Arduino's builder does it; skips the test where nothing compiles it."""
    gcc, sketch = find_emulator(GCC), library / "examples" / "Run" / "Run.ino"
    if gcc is None:
        pytest.skip(f"there is no {GCC}: make emulators")
    paths = (f"-I{SUPPORT / 'arduino'}", f"-I{library / 'src'}")
    run(gcc, *SKETCH_FLAGS, *paths, "-x", "c++", "-c", sketch, "-o", library.parent / "sketch.o")
    return library.parent / "sketch.o"


@pytest.mark.extra
def test_the_example_of_an_arduino_library_prints_what_the_model_computes(tmp_path: Path) -> None:
    library = made(tmp_path, "--target", "cortex-m4", "--package", "arduino")
    sketch, gcc = sketch_object(library), find_emulator(GCC)
    assert gcc is not None
    core, program = SUPPORT / "arduino" / "core.cpp", tmp_path / "program.elf"
    # The builder adds the folder of the processor and the flags that the library has.
    fields = (library / "library.properties").read_text()
    flags = (f"-L{library / 'src' / 'cortex-m4'}", re.findall(r"^ldflags=(.*)$", fields, re.MULTILINE)[0])
    place = ("-nostdlib", "-T", EXAMPLES / "bundle_cortex_m" / "mps2.ld", "-o", program)
    run(gcc, *SKETCH_FLAGS, f"-I{core.parent}", "-x", "c++", core, "-x", "none", sketch, *flags, "-lgcc", *place)
    printed = np.array(said_by_semihosting(program).split(), np.float32)
    session = glow_mlir.InferenceSession(DIGITS[0])
    (expected,) = session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    np.testing.assert_allclose(printed, np.asarray(expected).ravel(), rtol=0, atol=2e-6)


@pytest.mark.extra
def test_examples_of_arduino_libraries_print_all_of_an_integer(tmp_path: Path) -> None:
    """`long` has 32 bits on the boards, and `Serial` of many has no overload for more."""
    kinds = {"a": "i64", "b": "ui64", "c": "ui32", "d": "i32"}
    storage = "\n".join(
        f"glow_high.placeholder @{name} : tensor<1x{kind}> {{input}}\n"
        f"glow_high.placeholder @{name}{name} : tensor<1x{kind}> {{output}}"
        for name, kind in kinds.items()
    )
    moves = "\n".join(
        f"%{name} = glow_high.get @{name} : tensor<1x{kind}>\nglow_high.save %{name}, @{name}{name}"
        for name, kind in kinds.items()
    )
    names = ", ".join(f"@{name}, @{name}{name}" for name in kinds)
    (tmp_path / "moved.mlir").write_text(f"{storage}\nglow_high.func @main({names}) {{\n{moves}\n}}\n")
    done = compiled(tmp_path, "moved.mlir", "--target", "cortex-m4", "--package", "arduino")
    assert done.code == 0, done.stderr
    sketch = (tmp_path / "moved" / "examples" / "Run" / "Run.ino").read_text()
    printed = [line.strip() for line in sketch.splitlines() if re.search(r"\(.*\[at\]", line)]
    assert printed == [
        "print_64(static_cast<uint64_t>(output_aa[at]), true);",
        "print_64(static_cast<uint64_t>(output_bb[at]), false);",
        "Serial.println(static_cast<unsigned long>(output_cc[at]));",
        "Serial.println(static_cast<long>(output_dd[at]));",
    ]
    sketch_object(tmp_path / "moved")


PRINTING = """
#include <cstdint>
#include <cstdio>
struct { void println(const char *text) { std::puts(text); } } Serial;
FUNCTION
int main() {
  print_64(static_cast<uint64_t>(INT64_MIN), true);
  print_64(static_cast<uint64_t>(INT64_MAX), true);
  print_64(static_cast<uint64_t>(INT64_C(-1)), true);
  print_64(0, true);
  print_64(UINT64_MAX, false);
}
"""


@pytest.mark.extra
def test_integers_of_64_bits_are_printed_to_the_digit(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no compiler of C++")
    (tmp_path / "print.cpp").write_text(PRINTING.replace("FUNCTION", "\n".join(PRINT_64)))
    run(compiler, "-std=gnu++14", "-Wall", "-Wextra", "-Werror", tmp_path / "print.cpp", "-o", tmp_path / "print")
    said = subprocess.run([tmp_path / "print"], capture_output=True, check=True, timeout=60).stdout.decode().split()
    assert said == [str(-(1 << 63)), str((1 << 63) - 1), "-1", "0", str((1 << 64) - 1)]


@pytest.mark.extra
def test_examples_of_arduino_libraries_are_programs_whatever_a_model_has(tmp_path: Path) -> None:
    (tmp_path / "mixed.mlir").write_text(MIXED)
    done = compiled(tmp_path, "mixed.mlir", "--target", "cortex-m4", "--package", "arduino", "--instrument")
    assert done.code == 0, done.stderr
    sketch = (tmp_path / "mixed" / "examples" / "Run" / "Run.ino").read_text()
    assert "mixed_initialize(&arguments)" in sketch
    assert "sizes[] = {3}" in sketch
    assert (tmp_path / "mixed" / "src" / "mixed.debug.h").is_file()
    sketch_object(tmp_path / "mixed")


# ---- all -------------------------------------------------------------------------------------------------------


def test_the_tool_names_the_packages_that_there_are() -> None:
    done = compiled(ROOT, "--help")
    assert f"{{{','.join(PACKAGES)}}}" in done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--package", "zephyr", "--target", "wasm32"], "Zephyr has no boards for wasm32-unknown-unknown"),
        (["--package", "zephyr", "--target", "scalar,triple=x86_64-pc-windows-msvc"], "Zephyr has no boards for x86"),
        (["--package", "arduino", "--target", "sse2"], "a library of Arduino is for a processor by its name"),
        (["--package", "arduino", "--constants", "file"], "--package arduino has the constants in the object"),
    ],
)
def test_packages_that_cannot_be_change_nothing(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = compiled(tmp_path, *DIGITS, "-o", "digits", *arguments)
    assert done.code == 1
    assert said in done.stderr.decode()
    assert done.stderr.decode().count("\n") == 1
    assert not os.listdir(tmp_path)


def test_a_package_takes_the_place_of_one_of_another_form(tmp_path: Path) -> None:
    target = ("--target", "cortex-m4")
    cmake = small_paths(tmp_path, *target, "--constants", "object")
    arduino = small_paths(tmp_path, *target, "--package", "arduino")
    assert "digits-config.cmake" in cmake - arduino
    (tmp_path / "digits" / "src" / "own.h").write_text("own")
    assert small_paths(tmp_path, "--target", "cortex-m7", "--package", "arduino") == {
        *(path.replace("cortex-m4", "cortex-m7") for path in arduino),
        "src/own.h",
    }
    assert small_paths(tmp_path, *target, "--constants", "object") == {*cmake, "src/own.h"}
    assert not (tmp_path / "digits" / "examples").exists()


@pytest.mark.parametrize("package", ["zephyr", "arduino"])
def test_files_of_others_are_no_part_of_a_package(package: str, tmp_path: Path) -> None:
    small_paths(tmp_path, "--target", "cortex-m4")
    path = next(path for path in sorted(PACKAGES[package].shared) if path.startswith(("zephyr/", "library")))
    own = tmp_path / "digits" / path
    own.parent.mkdir(exist_ok=True)
    own.write_text("own")
    before = paths(tmp_path)
    done = small(tmp_path, "--target", "cortex-m4", "--package", package)
    assert done.code == 1
    assert f"digits/{path}: error: would be replaced, and is of no bundle 'digits'" in done.stderr.decode()
    assert (paths(tmp_path), own.read_text()) == (before, "own")
    small_paths(tmp_path, "--target", "cortex-m4")
    assert own.read_text() == "own"


def test_a_failure_in_the_folder_of_a_package_leaves_all_as_it_was(tmp_path: Path) -> None:
    small_paths(tmp_path, "--target", "cortex-m4")
    (tmp_path / "digits" / "src" / "cortex-m4" / "libdigits.a").mkdir(parents=True)
    before = paths(tmp_path)
    done = small(tmp_path, "--target", "cortex-m4", "--package", "arduino")
    assert done.code == 1
    assert b"digits: error: cannot be written: Is a directory" in done.stderr
    assert paths(tmp_path) == before
    assert not (tmp_path / "digits" / "examples").exists()
