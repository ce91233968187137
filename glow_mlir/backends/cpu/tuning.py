"""
Selection by measurement: the fastest candidate of an instruction on this machine.

Each distinct instruction with several candidates is compiled separately with each of them (`trial`); they run in turns
(`runtime.race`), and the result is cached on disk (`runtime.answers`).
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
"""The fraction of time by which another candidate must beat the guess; smaller differences may be chance."""

MAX_SPREAD = 128 << 20
"""Bytes of weights beyond which more make no difference, because no cache holds them."""

Race = Callable[[Sequence[Callable[[], object]]], list[float]]
"""Measures the seconds of each function."""


@dataclass
class Tuner:
    """Selects the fastest candidate of an instruction, and caches the result; `storage` is the model's."""

    storage: Storage
    answers: JsonCache = field(default_factory=lambda: JsonCache("tuning"))
    race: Race = field(default_factory=lambda: race)

    def fastest(self, op: Instruction, machine: Target, candidates: Sequence[Candidate]) -> Candidate | None:
        """
        The fastest candidate; the first candidate is the guess of the cost models. `None` without candidates.

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
        """The key of a result: everything that the times depend on."""
        # Neither the time of one thread nor its results depend on these.
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
        """The number of bytes of weights among which an instruction's are: the model's, or in a loop only its own."""
        return self.spread if isinstance(op.parent_op(), FuncOp) else 0

    @cached_property
    def spread(self) -> int:
        """The approximate bytes of the model's constants, as a power of two; at most `MAX_SPREAD`."""
        types = [op.tensor_type for op in self.storage.by_name.values() if isinstance(op, ConstantOp)]
        size = sum(math.prod(shape_of(type_)) * byte_width(type_.element_type) for type_ in types)
        return min(MAX_SPREAD, 1 << size.bit_length())
