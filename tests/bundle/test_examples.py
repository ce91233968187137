"""The example programs: built as their makefiles say, and run here, or on a microcontroller that is emulated."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from c_programs import built, c_compiler, run
from checkout import ROOT
from emulators import said_by_semihosting, zig
from in_process import run_tool

from glow_mlir.tools import glow_compile, glow_profile

pytestmark = pytest.mark.extra
"""They are built by compilers of C."""

EXAMPLES = ROOT / "examples"
MODEL = str(EXAMPLES / "digits.onnx")
GCC = "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -ffreestanding"
ZIG = "-target thumb-freestanding-eabihf -mcpu=cortex_m4+vfp4d16sp -fno-sanitize=all"
FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra")


def compiled(folder: Path, *arguments: object) -> None:
    """Run `glow-compile` on the digits example; the bundle is in the folder `bundle`."""
    argv = [MODEL, "--bind", "N=1", "-o", "bundle", *map(str, arguments)]
    done = run_tool(glow_compile.main, argv, program="glow-compile", directory=folder)
    assert done.code == 0, done.stderr


def profiled(folder: Path) -> str:
    """A profile of the digits example on a few images."""
    np.savez(folder / "samples.npz", image=np.random.default_rng(0).random((8, 1, 8, 8), np.float32))
    argv = [MODEL, "--bind", "N=1", "--dataset", "samples.npz", "-o", "digits.profile.json"]
    done = run_tool(glow_profile.main, argv, program="glow-profile", directory=folder)
    assert done.code == 0, done.stderr
    return "digits.profile.json"


def test_the_host_program_reads_a_digit(tmp_path: Path) -> None:
    compiled(tmp_path)
    bundle = tmp_path / "bundle"
    program = built(tmp_path / "program", [EXAMPLES / "bundle_host" / "main.c", bundle / "digits.o"], f"-I{bundle}")
    assert run(program, bundle / "digits.weights.bin") == "digit 5\n"


@pytest.mark.parametrize("form", ["object", "archive", "shared"])
def test_cmake_finds_the_bundle_in_each_form(form: str, tmp_path: Path) -> None:
    cmake = shutil.which("cmake") or shutil.which("cmake", path=str(Path(sys.executable).parent))
    if cmake is None or shutil.which("make") is None:
        pytest.skip("there is no cmake, or no make that it could use")
    c_compiler()
    shutil.copytree(EXAMPLES / "bundle_host", tmp_path / "program")
    compiled(tmp_path, "--emit", form)
    bundle, build = tmp_path / "bundle", tmp_path / "build"
    run(cmake, "-G", "Unix Makefiles", "-S", tmp_path / "program", "-B", build, f"-Ddigits_DIR={bundle}")
    run(cmake, "--build", build)
    assert run(build / "program", bundle / "digits.weights.bin") == "digit 5\n"


@pytest.mark.parametrize("numbers", ["float", "int8"])
def test_the_microcontroller_program_reads_a_digit(numbers: str, tmp_path: Path) -> None:
    options = ["--load-profile", profiled(tmp_path)] if numbers == "int8" else []
    compiled(tmp_path, "--target", "cortex-m4", "--constants", "object", *options)
    program = linked(tmp_path, tmp_path / "bundle")
    assert said_by_semihosting(program) == "digit 5\n"


def linked(folder: Path, bundle: Path) -> Path:
    """The program for the microcontroller, by the compiler that its makefile names, or else by ziglang's."""
    example, program, main = EXAMPLES / "bundle_cortex_m", folder / "program.elf", folder / "main.o"
    place = ("-T", example / "mps2.ld", "-o", program)
    if (gcc := shutil.which("arm-none-eabi-gcc")) is not None:
        own = (*GCC.split(), "-nostdlib", f"-I{bundle}")
        run(gcc, *FLAGS, *own, *place, example / "main.c", bundle / "digits.o")
    elif find_spec("ziglang") is not None:
        zig("cc", *FLAGS, *ZIG.split(), f"-I{bundle}", "-c", example / "main.c", "-o", main)
        zig("ld.lld", *place, main, bundle / "digits.o")
    else:
        pytest.skip("there is neither arm-none-eabi-gcc nor ziglang")
    return program
