"""Small programs that use much of the compiler, as text at every stage of the ladder."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from candidates import candidates_of
from cut import however_small
from execute import runnable_targets, sample
from machines import target_named
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.backends.interface import get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.weights import Digest, add_weights, known_digest
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import DeallocOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pipelines import Stage
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.text import digests, module_text, parse_module

TARGET = "avx2" if "avx2" in runnable_targets() else runnable_targets()[0]
"""What the programs are compiled for: the same on most machines."""

SOURCES = Path(__file__).parent / "mutant_programs"


@dataclass(frozen=True)
class Program:
    """A graph in `mutant_programs/NAME.mlir`, whose constants get random weights, and how it is compiled."""

    name: str
    kernels: Sequence[str] = ()
    """Kernels that are used wherever they can be."""
    cache: int = 0
    """Bytes of the cache for which convolutions are cut into lines; 0 for that of the target."""
    threads: int = 1

    def texts(self) -> dict[str, str]:
        """The program at each stage."""
        pipeline = get_backend("cpu").pipeline(TARGET)
        if self.cache:
            pipeline = pipeline.with_options("assign-target", l2_bytes=self.cache)
        module = self._imported()
        found: dict[str, str] = {}

        def keep(stage: Stage, module: ModuleOp, seconds: float) -> None:
            found[stage.name] = module_text(module)
            _KEPT.extend(filter(None, map(known_digest, digests(module))))

        fields = {"threads": self.threads}
        compilation = Compilation(module, target=TARGET, pipeline=pipeline, fields=fields, observers=[keep])
        with _cut(self.threads > 1):
            compilation.run("stacked")
            self._select(module)
            compilation.run()
        return found

    def _imported(self) -> ModuleOp:
        text = (SOURCES / f"{self.name}.mlir").read_text(encoding="utf-8")
        return parse_module(re.sub(r"constant @(\w+) : (tensor<\S+>)$", _weighted, text, flags=re.M), new_context())

    def _select(self, module: ModuleOp) -> None:
        """Write the wanted kernels on the instructions that they execute."""
        storage, machine = Storage(module), target_named(TARGET)
        for function in low_functions(module) if self.kernels else ():
            for op in list(function.block.ops):
                if not isinstance(op, Instruction) or isinstance(op, DeallocOp):
                    continue
                ways = (way for way in candidates_of(op, module, TARGET) if way.kernel.name in self.kernels)
                if (way := next(ways, None)) is not None:
                    way.write(op, storage, machine)


@contextmanager
def _cut(wanted: bool) -> Generator[None]:
    if wanted:
        with however_small():
            yield
    else:
        yield


_KEPT: list[Digest] = []
"""The weights of all programs, which stay in the store."""


def _weighted(match: re.Match[str]) -> str:
    """A constant with random weights of its type."""
    name, type_ = match.groups()
    *sizes, element = type_[len("tensor<") : -1].split("x")
    (op,) = parse_module(f"glow_high.placeholder @x : tensor<{element}> {{input}}", new_context()).body.block.ops
    dtype = numpy_dtype(getattr(op, "tensor_type").element_type)
    digest = add_weights(sample(tuple(map(int, sizes)), dtype.str, len(name)))
    _KEPT.append(digest)
    return f'constant @{name} : {type_} {{weights = "{digest}"}}'


PROGRAMS = (
    Program("residual"),
    Program("lines", cache=2500),
    Program("attention"),
    Program("recurrence"),
    Program("products", kernels=("matmul-strassen", "conv-winograd")),
    Program("elementwise"),
    Program("indexing"),
    Program("small"),
    Program("trees"),
    Program("quantized"),
    Program("control_flow"),
    Program("sizes"),
    Program("residual", threads=2),
    Program("products", kernels=("matmul-strassen", "conv-winograd"), threads=3),
)
"""The programs that mutants are made from."""


@cache
def all_texts() -> tuple[dict[str, str], ...]:
    """Each program at each stage."""
    return tuple(program.texts() for program in PROGRAMS)
