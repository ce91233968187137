"""
Selection by measurement: the fastest of the candidates of an instruction, as this machine runs them.

Each distinct instruction with several candidates is compiled by itself with each of them (`trial`), they run in turns
(`runtime.race`), and the answer is remembered on disk (`runtime.answers`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property

from glow_mlir.backends.cpu.targets import lacks
from glow_mlir.backends.cpu.trial import Trial, identity
from glow_mlir.codegen.selection.candidate import Candidate
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.storage import ConstantOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import FuncOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.dialects.target import Target
from glow_mlir.errors import OptionError
from glow_mlir.ir import statistics
from glow_mlir.runtime.cache import cache_key
from glow_mlir.runtime.cores import usable_cores
from glow_mlir.runtime.host import host_name
from glow_mlir.runtime.json_cache import JsonCache
from glow_mlir.runtime.race import race
from glow_mlir.runtime.sources import source_stamp
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.distributions import versions

GAIN = 0.02
"""By which part of its time another candidate has to beat the guess: what is less may be chance."""

MAX_SPREAD = 128 << 20
"""Bytes of weights from which on more of them make no difference: no cache holds them."""

Race = Callable[[Sequence[Callable[[], object]]], list[float]]
"""The seconds that each of some functions takes."""


@dataclass
class Tuner:
    """Takes the fastest candidate of an instruction, and remembers it; `storage` is that of the model."""

    storage: Storage
    answers: JsonCache = field(default_factory=lambda: JsonCache("tuning"))
    race: Race = field(default_factory=lambda: race)

    def fastest(self, op: Instruction, machine: Target, candidates: Sequence[Candidate]) -> Candidate | None:
        """
        The fastest of the candidates, the first of which is the guess of the cost models; `None` of none.

        Raises `OptionError` for a machine whose code this one cannot run.
        """
        if missing := lacks(machine):
            raise OptionError(
                f"kernels for such a target cannot be measured here: this machine lacks {missing}",
                hint="compile without tuning, or on such a machine",
            )
        if len(candidates) < 2:
            return next(iter(candidates), None)
        key = self._key(op, machine, candidates)
        named = {str(candidate): candidate for candidate in candidates}
        known = self.answers.load(key) or {}
        if (chosen := named.get(str(known.get("chosen")))) is not None:
            return chosen
        statistics.count("instructions measured")
        seconds = self.race(Trial(op, self.storage).runs(candidates, machine, self._spread(op)))
        best = min(range(len(candidates)), key=seconds.__getitem__)
        if seconds[best] > (1 - GAIN) * seconds[0]:
            best = 0
        times = {name: round(time * 1e6, 1) for name, time in zip(named, seconds, strict=True)}
        self.answers.store(key, {"chosen": str(candidates[best]), "microseconds": times, "instruction": str(op)})
        return candidates[best]

    def _key(self, op: Instruction, machine: Target, candidates: Sequence[Candidate]) -> str:
        """The key of an answer: all that the times depend on."""
        # How long one thread takes does not depend on them, nor do its results.
        cores = usable_cores() if machine.policy.threads > 1 else 1
        return cache_key(
            identity(op, self.storage),
            f"cores {cores}",
            " ".join(map(str, candidates)),
            f"{machine} {host_name()}",
            f"{self._spread(op)}",
            str(versions(("llvmlite",))),
            source_stamp(),
        )

    def _spread(self, op: Instruction) -> int:
        """Among how many bytes of weights those of an instruction are: of the model, or, in a loop, of no others."""
        return self.spread if isinstance(op.parent_op(), FuncOp) else 0

    @cached_property
    def spread(self) -> int:
        """About how many bytes of constants the model has, as a power of two; `MAX_SPREAD` for all that have more."""
        types = [op.tensor_type for op in self.storage.by_name.values() if isinstance(op, ConstantOp)]
        size = sum(math.prod(shape_of(type_)) * byte_width(type_.element_type) for type_ in types)
        return min(MAX_SPREAD, 1 << size.bit_length())
