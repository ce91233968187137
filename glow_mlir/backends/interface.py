"""What a backend says about itself, and what the passes ask it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from xdsl.ir import Operation

from glow_mlir.errors import OptionError
from glow_mlir.registry import BACKENDS
from glow_mlir.storage import Storage


class Backend(ABC):
    """A target of compilation. Passes get it by name from the registry."""

    name: ClassVar[str]

    @abstractmethod
    def supports(self, op: Operation) -> bool:
        """
        Whether the backend executes this operator or instruction as it is: types, properties, strides, bodies.

        Instructions are asked with views as operands, whose strides and offsets the backend has to cope with.
        """

    def prologue_reads(self, op: Operation) -> int:
        """How often an instruction with a prologue would apply it to each element; 0 where it cannot have one."""
        return 0

    def select(self, op: Operation, storage: Storage, target: str) -> None:
        """
        Choose kernel, tiles, operand packing and scratch for one instruction, and write them on it.

        `target` names the machine, as `glow_mlir.codegen.target` knows it. An instruction that no kernel executes is
        left as it is.
        """


def get_backend(name: str) -> Backend:
    """The backend of that name; raises `OptionError` where there is none."""
    make = BACKENDS.get(name)
    if make is None:
        raise OptionError(f"no backend '{name}'", hint=f"there are {', '.join(sorted(BACKENDS.all()))}")
    return make()
