"""
Machines that are not here: what runs compiled models on other processors, with tools of PyPI or Debian.

Where a tool is missing there is no machine, and a test that needs it is skipped with the reason. `ziglang` links, and
compiles the one C program of `programs/`; `make emulators` unpacks QEMU into `.emulators/`.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import shutil
import struct
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT

from glow_mlir.runtime import machine_code
from glow_mlir.runtime.artifact import Artifact, Binding, Entry
from glow_mlir.support.dtypes import named_dtype

Arrays = Mapping[str, np.ndarray]

PROGRAMS = ROOT / "tests" / "support" / "programs"
EMULATORS = ROOT / ".emulators" / "bin"

GCC = "arm-none-eabi-gcc"

LIMIT = 300.0
"""Seconds after which a program that does not end is taken for one that never will."""


@dataclass
class Called:
    """What one call of an entry gave: its status, all that it was bound to, and what it took, where that is told."""

    status: int
    bound: list[bytes]
    instructions: int | None = None
    stack_bytes: int | None = None


@dataclass
class Ran:
    """The same, with the outputs as arrays."""

    status: int
    outputs: dict[str, np.ndarray]
    instructions: int | None
    stack_bytes: int | None


class Machine(ABC):
    """Something that runs compiled models."""

    @abstractmethod
    def missing(self) -> str:
        """What has to be installed for it; empty where nothing has to be."""

    @abstractmethod
    def call(self, artifact: Artifact, entry: Entry, bound: Sequence[np.ndarray]) -> Called:
        """Call an entry of an artifact once, on arrays of bytes."""

    def run(self, artifact: Artifact, inputs: Arrays) -> Ran:
        """Call the only entry of an artifact once."""
        entry = only_entry(artifact)
        called = self.call(artifact, entry, contents(entry, inputs))
        outputs = outputs_of(entry, called.bound)
        return Ran(called.status, outputs, called.instructions, called.stack_bytes)


def find_emulator(name: str) -> str | None:
    """The path of an emulator: what `make emulators` unpacked, or that of the system."""
    return shutil.which(name, path=str(EMULATORS)) or shutil.which(name)


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _missing_package(*packages: str) -> str:
    """What to install of packages of PyPI."""
    absent = [package for package in packages if not _has(package)]
    return f"pip install {' '.join(absent)}" if absent else ""


def zig(*arguments: str | Path) -> None:
    """Run a tool of `ziglang`: its C compiler, or one of LLVM's linkers."""
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# ---- what goes in and comes out --------------------------------------------------------------------------------


def contents(entry: Entry, inputs: Arrays) -> list[np.ndarray]:
    """
    The bytes of all bindings of an entry, before it is called: inputs as they are, zeros for what it writes.

    Behind them is the word by which a call may be ended, where the entry reads one.
    """
    word = [np.zeros(4, np.uint8)] if entry.cancellable else []
    return [_content(binding, inputs) for binding in entry.bindings] + word


def _content(binding: Binding, inputs: Arrays) -> np.ndarray:
    if binding.name in inputs:
        return np.ascontiguousarray(inputs[binding.name]).reshape(-1).view(np.uint8)
    return np.zeros(binding.nbytes, np.uint8)


def outputs_of(entry: Entry, found: Sequence[bytes]) -> dict[str, np.ndarray]:
    """The arrays of the outputs among all bindings."""
    return {
        binding.name: np.frombuffer(data, named_dtype(binding.dtype)).reshape(binding.shape)
        for binding, data in zip(entry.bindings, found, strict=False)
        if binding.role == "output"
    }


def only_entry(artifact: Artifact) -> Entry:
    """The entry of an artifact that has one."""
    (entry,) = artifact.manifest.entries
    return entry


# ---- this machine ----------------------------------------------------------------------------------------------


class Native(Machine):
    """This machine itself."""

    def missing(self) -> str:
        return ""

    def call(self, artifact: Artifact, entry: Entry, bound: Sequence[np.ndarray]) -> Called:
        arrays = [np.array(array) for array in bound]
        machine_code.load(artifact, 1).load(entry.name).call(arrays)
        return Called(0, [array.tobytes() for array in arrays])


# ---- QEMU ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Qemu(Machine):
    """A program of QEMU's that runs `programs/run.c` with a model linked to it."""

    emulator: str
    arguments: tuple[str, ...]
    compiler: tuple[str, ...]
    """What tells the C compiler for whom it compiles."""
    linker: tuple[str, ...] = ()
    gcc: tuple[str, ...] = ()
    """What tells GCC the same, whose library has what some objects require."""
    instructions_per_tick: float = 0

    def missing(self) -> str:
        tool = "" if find_emulator(self.emulator) else f"'make emulators' for {self.emulator}"
        return tool or _missing_package("ziglang")

    def call(self, artifact: Artifact, entry: Entry, bound: Sequence[np.ndarray]) -> Called:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "model.o").write_bytes(artifact.code[entry.code])
            parts = [_run_program(self.compiler), folder / "model.o"]
            parts += [_library(self.gcc)] if artifact.manifest.requirements else []
            called = [] if entry.name == "main" else [f"--defsym=main={entry.name}"]
            zig("ld.lld", "-static", *self.linker, *called, "-o", folder / "program", *parts)
            (folder / "run.in").write_bytes(_message(artifact, entry, bound))
            traced = self.emulate(folder)
            data = (folder / "run.out").read_bytes()
        status, ticks, stack = struct.unpack_from("<iII", data)
        begins = np.cumsum([12, *(array.nbytes for array in bound)])
        found = [data[begin:end] for begin, end in itertools.pairwise(begins.tolist())]
        return Called(status, found, traced or round(self.instructions_per_tick * ticks) or None, stack)

    def emulate(self, folder: Path) -> int:
        """Run the program of a folder there; the executed instructions of the model, or 0 where nobody counts them."""
        done = subprocess.run(
            self.command(),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, f"{self.emulator} ended with {done.returncode}: {done.stderr[-500:]}"
        return 0

    def command(self, *more: str) -> list[str]:
        """What runs the program of the current folder."""
        found = find_emulator(self.emulator)
        assert found is not None
        return [found, *more, *self.arguments, "program"]


def _message(artifact: Artifact, entry: Entry, bound: Sequence[np.ndarray]) -> bytes:
    """What `programs/run.c` reads."""
    numbers = [artifact.constants.nbytes, entry.activations, len(bound), *(array.nbytes for array in bound)]
    arrays = (artifact.constants, *bound)
    return struct.pack(f"<{len(numbers)}I", *numbers) + b"".join(array.tobytes() for array in arrays)


@cache
def _run_program(compiler: tuple[str, ...]) -> Path:
    """The object of `programs/run.c` for a processor, compiled once."""
    made = Path(tempfile.mkdtemp()) / "run.o"
    flags = ("-O2", "-ffreestanding", "-fno-stack-protector", "-fno-sanitize=all", "-Wall", "-Wextra", "-Werror")
    zig("cc", *compiler, *flags, "-c", PROGRAMS / "run.c", "-o", made)
    return made


@cache
def _library(options: tuple[str, ...]) -> Path:
    """GCC's library for a Cortex-M; skips the test where there is none."""
    gcc = find_emulator(GCC)
    if gcc is None:
        pytest.skip(f"'make emulators' for the library of {GCC}")
    told = subprocess.run([gcc, *options, "-print-libgcc-file-name"], capture_output=True, text=True, check=True)
    return Path(told.stdout.strip())


_QUIET = ("-nographic", "-monitor", "none", "-serial", "none")


def _hosting(more: str = "") -> tuple[str, ...]:
    """A program's semihosting, and before it what QEMU takes to run the program."""
    return ("-semihosting-config", f"enable=on,target=native{more}", "-kernel")


def said_by_semihosting(program: Path, board: str = "mps2-an386") -> str:
    """What a program for a Cortex-M prints by semihosting; skips the test where there is no QEMU."""
    emulator = find_emulator("qemu-system-arm")
    if emulator is None:
        pytest.skip("there is no qemu-system-arm: make emulators")
    # QEMU's own words, as of modules that it cannot load, are no words of the program.
    said = program.with_suffix(".said")
    channel = ("-chardev", f"file,id=said,path={said}", *_hosting(",chardev=said"))
    command = [emulator, "-M", board, *_QUIET, *channel, program]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, f"QEMU ended with {done.returncode}: {done.stderr[-500:]}"
    return said.read_text()


# ---- WebAssembly -----------------------------------------------------------------------------------------------


class Wasm(Machine):
    """`wasmtime`, in this process; what it calls fuel are executed instructions, but for those that do nothing."""

    FUEL = 1 << 40

    def missing(self) -> str:
        return _missing_package("wasmtime", "ziglang")

    def call(self, artifact: Artifact, entry: Entry, bound: Sequence[np.ndarray]) -> Called:
        import wasmtime

        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "model.o").write_bytes(artifact.code[entry.code])
            exports = (f"--export={entry.name}", "--export=__heap_base")
            zig("wasm-ld", "--no-entry", *exports, "-o", folder / "model.wasm", folder / "model.o")
            config = wasmtime.Config()
            config.consume_fuel = True
            engine = wasmtime.Engine(config)
            module = wasmtime.Module.from_file(engine, str(folder / "model.wasm"))
        store = wasmtime.Store(engine)
        store.set_fuel(self.FUEL)
        exported = wasmtime.Instance(store, module, []).exports(store)
        memory, base = exported["memory"], exported["__heap_base"]
        assert isinstance(memory, wasmtime.Memory)
        assert isinstance(base, wasmtime.Global)
        room = Room(int(base.value(store)), 4)
        placed = room.place(artifact, entry, bound)
        memory.grow(store, -(-max(0, room.end - memory.data_len(store)) // (1 << 16)))
        for begin, data in placed.blocks:
            memory.write(store, data, begin)
        function = exported[entry.name]
        assert isinstance(function, wasmtime.Func)
        status = function(store, placed.constants, placed.pointers, placed.activations, 0)
        executed = self.FUEL - store.get_fuel()
        found = [
            bytes(memory.read(store, begin, begin + array.nbytes))
            for begin, array in zip(placed.bindings, bound, strict=True)
        ]
        return Called(status, found, executed)


@dataclass
class Placed:
    """Where everything is that an entry is called with, and what has to be there before."""

    constants: int
    pointers: int
    activations: int
    bindings: list[int]
    blocks: list[tuple[int, bytes]]


@dataclass
class Room:
    """Memory of a machine, of which pieces are taken from `begin` on; pointers have so many bytes."""

    begin: int
    pointer_bytes: int
    end: int = field(init=False)

    def __post_init__(self) -> None:
        self.end = self.begin

    def take(self, size: int) -> int:
        """The address of so many bytes, a multiple of 64."""
        begin = -(-self.end // 64) * 64
        self.end = begin + size
        return begin

    def place(self, artifact: Artifact, entry: Entry, arrays: Sequence[np.ndarray]) -> Placed:
        """Find places for what an entry is called with."""
        constants, activations = self.take(artifact.constants.nbytes), self.take(entry.activations)
        bindings = [self.take(array.nbytes) for array in arrays]
        pointers = self.take(self.pointer_bytes * len(bindings))
        packed = b"".join(begin.to_bytes(self.pointer_bytes, "little") for begin in bindings)
        content = [(begin, array.tobytes()) for begin, array in zip(bindings, arrays, strict=True)]
        blocks = [(constants, artifact.constants.tobytes()), *content, (pointers, packed)]
        return Placed(constants, pointers, activations, bindings, blocks)


# ---- Unicorn ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unicorn(Machine):
    """A processor of Unicorn's, in this process: AArch64, or a Cortex-M."""

    cpu: str
    """What Unicorn calls it: a constant of `unicorn.arm64_const` or `unicorn.arm_const`."""

    CODE, RETURN, ROOM, STACK = 0x10000, 0x8000, 0x20000000, 0x60000000
    STACK_BYTES = 1 << 20
    MAX_CODE = 4 << 20

    @property
    def is_thumb(self) -> bool:
        """Whether it is a Cortex-M."""
        return not self.cpu.startswith("ARM64")

    def missing(self) -> str:
        return _missing_package("unicorn", "ziglang")

    def call(self, artifact: Artifact, entry: Entry, bound: Sequence[np.ndarray]) -> Called:
        if artifact.manifest.requirements:
            pytest.skip(f"'make emulators' for the library of {GCC}, of which code takes functions")
        room = Room(self.ROOM, 4 if self.is_thumb else 8)
        placed = room.place(artifact, entry, bound)
        engine, names = self._engine()
        for begin, size in (
            (self.CODE, self.MAX_CODE),
            (self.RETURN, 4096),
            (self.ROOM, -(-(room.end - self.ROOM) // 4096) * 4096),
            (self.STACK - self.STACK_BYTES, self.STACK_BYTES),
        ):
            engine.mem_map(begin, size)
        start, segments = self._linked(artifact.code[entry.code], entry.name)
        for begin, data in (*segments, *placed.blocks):
            engine.mem_write(begin, data)
        back = self.RETURN | self.is_thumb
        values = (placed.constants, placed.pointers, placed.activations, 0, self.STACK - 256, back)
        for register, value in zip(names, values, strict=True):
            engine.reg_write(register, value)
        engine.emu_start(start | self.is_thumb, self.RETURN)
        status = int(engine.reg_read(names[0])) & 0xFFFFFFFF
        read = zip(placed.bindings, bound, strict=True)
        found = [bytes(engine.mem_read(begin, array.nbytes)) if array.nbytes else b"" for begin, array in read]
        return Called(status - (status >> 31 << 32), found)

    def _engine(self) -> tuple[Any, list[int]]:
        """The processor, and its registers for four arguments, the stack and the way back."""
        unicorn: Any = importlib.import_module("unicorn")
        if self.is_thumb:
            known: Any = importlib.import_module("unicorn.arm_const")
            engine: Any = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
            names = ["ARM_REG_R0", "ARM_REG_R1", "ARM_REG_R2", "ARM_REG_R3", "ARM_REG_SP", "ARM_REG_LR"]
        else:
            known = importlib.import_module("unicorn.arm64_const")
            engine = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
            names = ["ARM64_REG_X0", "ARM64_REG_X1", "ARM64_REG_X2", "ARM64_REG_X3", "ARM64_REG_SP", "ARM64_REG_LR"]
        engine.ctl_set_cpu_model(getattr(known, f"UC_CPU_{self.cpu}"))
        return engine, [getattr(known, f"UC_{name}") for name in names]

    def _linked(self, code: bytes, name: str) -> tuple[int, list[tuple[int, bytes]]]:
        """An object that is linked to the address of code: where the entry is, and what has to be in memory."""
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "model.o").write_bytes(code)
            place = (f"--image-base={self.CODE}", "-static", "--no-rosegment", f"--entry={name}")
            zig("ld.lld", *place, "-o", folder / "program", folder / "model.o")
            data = (folder / "program").read_bytes()
        return _segments(data)


def _segments(data: bytes) -> tuple[int, list[tuple[int, bytes]]]:
    """The entry of an ELF file, and the addresses and contents of what it loads."""
    is_wide = data[4] == 2
    entry, table = struct.unpack_from("<QQ" if is_wide else "<II", data, 24)
    size, count = struct.unpack_from("<HH", data, 54 if is_wide else 42)
    found: list[tuple[int, bytes]] = []
    for number in range(count):
        fields = struct.unpack_from("<IIQQQQQQ" if is_wide else "<IIIIIIII", data, table + number * size)
        if fields[0] == 1:
            offset, address, length = (
                (fields[2], fields[3], fields[5]) if is_wide else (fields[1], fields[2], fields[4])
            )
            found.append((address, data[offset : offset + length]))
    return entry & ~1, found


# ---- the machines ----------------------------------------------------------------------------------------------


def _linux(processor: str, *arguments: str) -> Qemu:
    """A process under Linux on another processor."""
    return Qemu(f"qemu-{processor}", arguments, ("-target", f"{processor}-linux-none"))


def cortex_m(
    board: str,
    cpu: str,
    ram: int,
    stack_top: int,
    fpu: str = "auto",
    stack: int = 0x20000,
    room: int = 12 << 20,
    *,
    megahertz: int = 25,
    code: int = 0,
    float_abi: str = "hard",
) -> Qemu:
    """
    A board of QEMU's that counts instructions, and reads files by semihosting; sizes are in bytes.

    An instruction is a nanosecond, and the clock ticks as fast as that of the board.
    """
    arguments = ("-M", board, *_QUIET, "-icount", "shift=0", *_hosting())
    places = {"CODE_BEGIN": code, "RAM_BEGIN": ram, "STACK_TOP": stack_top, "STACK_BYTES": stack}
    return Qemu(
        "qemu-system-arm",
        arguments,
        ("-target", f"thumb-freestanding-eabi{'hf' if float_abi == 'hard' else ''}", f"-mcpu={cpu}", f"-DROOM={room}"),
        (*(f"--defsym={name}={value}" for name, value in places.items()), f"-T{PROGRAMS / 'cortex_m.ld'}"),
        ("-mthumb", f"-mcpu={cpu.replace('_', '-')}", f"-mfpu={fpu}", f"-mfloat-abi={float_abi}"),
        instructions_per_tick=1000 / megahertz,
    )


_HELIUM = cortex_m("mps3-an547", "cortex_m55", 0x60000000, 0x20080000, megahertz=32)

_AARCH64 = (Unicorn("ARM64_MAX"), _linux("aarch64"))

MACHINES: Mapping[str, tuple[Machine, ...]] = {
    "sse2": (Native(),),
    "neon": _AARCH64,
    "neon-dotprod": _AARCH64[::-1],
    "neon-i8mm": (_linux("aarch64", "-cpu", "max"),),
    "sve-128": (_linux("aarch64", "-cpu", "max,sve128=on"),),
    "sve-256": (_linux("aarch64", "-cpu", "max,sve128=on,sve256=on"),),
    "riscv64": (_linux("riscv64"),),
    "rvv-128": (_linux("riscv64", "-cpu", "rv64,v=true,vlen=128"),),
    "rvv-256": (_linux("riscv64", "-cpu", "rv64,v=true,vlen=256"),),
    "riscv32": (_linux("riscv32"),),
    # QEMU's boards with a Cortex-M0 have 16 KB, and a Cortex-M3 has its instructions.
    "cortex-m0plus": (cortex_m("mps2-an385", "cortex_m0plus", 0x21000000, 0x20400000, float_abi="soft"),),
    "cortex-m3": (cortex_m("mps2-an385", "cortex_m3", 0x21000000, 0x20400000, float_abi="soft"),),
    "cortex-m4": (
        cortex_m("mps2-an386", "cortex_m4", 0x21000000, 0x20400000, "fpv4-sp-d16"),
        Unicorn("ARM_CORTEX_M4"),
    ),
    "cortex-m7": (
        cortex_m("mps2-an500", "cortex_m7", 0x60000000, 0x20400000, "fpv5-sp-d16"),
        Unicorn("ARM_CORTEX_M7"),
    ),
    "cortex-m33": (cortex_m("mps2-an505", "cortex_m33", 0x80000000, 0x38200000, megahertz=20, code=0x10000000),),
    "cortex-m55": (_HELIUM,),
    # QEMU has none, and a Cortex-M55 has its instructions.
    "cortex-m85": (_HELIUM,),
    "wasm32": (Wasm(),),
}
"""Target → the machines that run its code, the best first."""


def machine_for(target: str) -> Machine:
    """What runs code for a target; skips the test with the reason where nothing is there."""
    machines = MACHINES[target]
    for machine in machines:
        if not machine.missing():
            return machine
    pytest.skip(f"nothing here runs code for {target}: {' or '.join(machine.missing() for machine in machines)}")
