"""What a backend says about itself, and what the passes ask it."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from xdsl.ir import Operation

from glow_mlir.constants.storage import Storage
from glow_mlir.driver.pipelines import OPTIMIZE, Pipeline, memory_pipeline
from glow_mlir.errors import OptionError
from glow_mlir.ir.registry import BACKENDS, Unpack, kernels_of, packed_forms_of

ACCURACIES = ("default", "strict")
"""What `Backend.select` is told of accuracy."""


def check_accuracy(name: str) -> None:
    """Raise `OptionError` for an accuracy that there is not."""
    if name not in ACCURACIES:
        raise OptionError(f"no accuracy '{name}'", hint=f"there are {', '.join(ACCURACIES)}")


@dataclass(frozen=True)
class Setting:
    """What decides, besides an instruction, which kernel it gets: the model, the machine's name, and the accuracy."""

    storage: Storage
    target: str = "host"
    accuracy: str = "default"

    def __post_init__(self) -> None:
        check_accuracy(self.accuracy)


class Backend(ABC):
    """A target of compilation. Passes get it by name from the registry."""

    name: ClassVar[str]
    MOST_THREADS: ClassVar[int] = sys.maxsize
    """For how many threads an inference may be cut."""
    TABLES: ClassVar[tuple[str, ...]] = ()
    """The backends in whose tables its kernels and packed forms are, the preferred first; by default its own alone."""

    @cached_property
    def kernels(self) -> dict[str, Any]:
        """Name → kernel, in the order in which they are preferred."""
        makers: dict[str, Any] = {}
        for table in self.TABLES or (self.name,):
            makers |= {name: make for name, make in kernels_of(table).all().items() if name not in makers}
        return {name: make() for name, make in makers.items()}

    @cached_property
    def packed_forms(self) -> dict[str, Unpack]:
        """Name of a form in which its kernels have constants → how to undo it."""
        forms: dict[str, Unpack] = {}
        for table in self.TABLES or (self.name,):
            forms = {**packed_forms_of(table).all(), **forms}
        return forms

    def check_target(self, target: str) -> None:
        """Raise `OptionError` for a machine that the backend does not know by that name."""

    @abstractmethod
    def supports(self, op: Operation) -> bool:
        """Whether the backend executes this operator of `glow_high` as it is, so that it need not be lowered."""

    def can_select(self, op: Operation, setting: Setting) -> bool:
        """
        Whether `select` finds a way to execute this instruction as it is: types, properties, strides, bodies.

        Passes ask before they keep a change of an instruction. Its operands may be views, whose strides and offsets the
        backend has to cope with.
        """
        return self.supports(op)

    def supports_strided_inner(self, op: Operation, setting: Setting) -> bool:
        """Whether an instruction is as fast where elements along the innermost axis of an operand lie apart."""
        return False

    def prologue_reads(self, op: Operation, setting: Setting) -> int:
        """How often an instruction with a prologue would apply it to each element; 0 where it cannot have one."""
        return 0

    def supports_row_tiling(self, op: Operation, setting: Setting) -> bool:
        """
        Whether an instruction computes some lines of an image as it would among all: as fast, and the same bits, if it
        says of how many lines the image is (`image_lines`).
        """
        return False

    def cache_bytes(self, target: str) -> int:
        """What the cache holds in which neighbouring instructions should meet; 0 where that does not matter."""
        return 0

    def pipeline(self, target: str = "host", profile: bool = False) -> Pipeline:
        """
        The way from an imported graph to what the backend runs.

        This one ends with places in memory. A backend adds its own passes by name (`Pipeline.before`, `after`,
        `replace`, `without`) and its own stages (`Pipeline.then`). With `profile`, its code keeps the time of each
        instruction.
        """
        return memory_pipeline(self.name, target)

    def select(self, op: Operation, setting: Setting, threads: int = 1, tune: bool = False) -> None:
        """
        Choose kernel, tiles, operand packing, scratch and parts for one instruction, and write them on it.

        The setting names the machine as `glow_mlir.codegen.target` knows it. An instruction that no kernel executes is
        left as it is. With the `accuracy` strict, sums keep the bound of docs/floating-point.md for plain ones. For
        several `threads`, an instruction is cut into parts where that pays. With `tune` the choice is measured, on this
        machine; raises `OptionError` for a target whose code it cannot run.
        """

    def check_selected(self, op: Operation, target: str, threads: int) -> None:
        """
        Raise `ModelError` where what `select` writes on an instruction does not fit together, or not to the target and
        the `threads` that its function is for.
        """


def get_backend(name: str) -> Backend:
    """The backend of that name; raises `OptionError` where there is none."""
    make = BACKENDS.get(name)
    if make is None:
        raise OptionError(f"no backend '{name}'", hint=f"there are {', '.join(sorted(BACKENDS.all()))}")
    return make()


def named_pipelines(target: str = "host") -> dict[str, Pipeline]:
    """All pipelines by name: `optimize`, which all backends share, and that of each backend under its name."""
    backends = (get_backend(name).pipeline(target) for name in sorted(BACKENDS.all()))
    return {pipeline.name: pipeline for pipeline in (OPTIMIZE, *backends)}


def named_pipeline(name: str, target: str = "host") -> Pipeline:
    """The pipeline of that name; raises `OptionError` where there is none."""
    if name == OPTIMIZE.name:
        return OPTIMIZE
    if BACKENDS.get(name) is None:
        names = ", ".join((OPTIMIZE.name, *sorted(BACKENDS.all())))
        raise OptionError(f"no pipeline '{name}'", hint=f"there are {names}")
    return get_backend(name).pipeline(target)
