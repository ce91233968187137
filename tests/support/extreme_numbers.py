"""
Every integer operand of every operator and kernel with numbers that lead nowhere, between guard pages.

Whether such an operand is an address is not asked: each counts as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

import kernel_cases
import numpy as np
import operator_cases
import optional_operands
from execute import Case, Given, module_of
from fuzzing import Fuzzer
from mutants import check_module, is_clean
from operator_case import OperatorCase
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulIntegerOp
from glow_mlir.dialects.glow_high.ngrams import TfIdfVectorizerOp
from glow_mlir.errors import ModelError

POOLS = 2
"""The operand of `tf_idf_vectorizer` with n-grams, which are sorted and distinct."""

EVERYWHERE = -1
"""The place of a change that concerns all numbers of an operand."""


@dataclass(frozen=True)
class Change:
    """One number of an operand of a case, or all, is another; the operand is a constant or an input of the call."""

    name: str
    operand: int
    part: int
    """Which array of a variadic operand."""
    place: int
    number: int
    is_constant: bool

    def module_and_inputs(self) -> tuple[ModuleOp, dict[str, np.ndarray]]:
        """The module, and what its inputs are."""
        case = cases()[self.name].cases()[0]
        operands = [_changed(given, self) if at == self.operand else given for at, given in enumerate(case.operands)]
        constants = {*case.constants, self.operand} if self.is_constant else {*case.constants} - {self.operand}
        return module_of(Case(case.operator, *operands, constants=sorted(constants), **case.properties))


def _changed(given: Given, change: Change) -> Given:
    """An operand with the change."""
    if isinstance(given, np.ndarray):
        array = given.copy()
        array.reshape(-1)[slice(None) if change.place == EVERYWHERE else change.place] = change.number
        return array
    assert given is not None
    return [_changed_array(part, change) if at == change.part else part for at, part in enumerate(given)]


def _changed_array(array: np.ndarray, change: Change) -> np.ndarray:
    changed = _changed(array, change)
    assert isinstance(changed, np.ndarray)
    return changed


ROWS_WITH_SUMS = (0, 1, 3)
"""The operands of a product of quantized rows that are their values and the sums of these."""


@cache
def cases() -> Mapping[str, OperatorCase]:
    """The cases of operators, and of kernels where they are others."""
    known = {id(case) for case in operator_cases.CASES.values()}
    others = {f"kernel {name}": case for name, case in kernel_cases.CASES.items() if id(case) not in known}
    return {**operator_cases.CASES, **others, **optional_operands.CASES}


@cache
def changes() -> Sequence[Change]:
    """All changes, in an order of which any part has some of many operators."""
    found = [change for name, case in cases().items() for change in _changes_of(name, case.cases()[0])]
    Random("order").shuffle(found)
    return tuple(found)


def change_of(seed: int) -> Change:
    """The change that a seed stands for."""
    return changes()[seed % len(changes())]


def _changes_of(name: str, case: Case) -> Iterator[Change]:
    sizes = {size for given in case.operands for array in _arrays(given) for size in array.shape}
    for operand, given in enumerate(case.operands):
        for part, array in enumerate(_arrays(given)):
            if array.dtype.kind not in "iu" or not array.size:
                continue
            limits = np.iinfo(array.dtype)
            wanted = {-(1 << 31), (1 << 31) - 1, -1, int(limits.min), int(limits.max), *sizes}
            numbers = sorted(number for number in wanted if limits.min <= number <= limits.max)
            for number in numbers:
                for place in sorted({0, array.size // 2, array.size - 1, EVERYWHERE}):
                    if not _may_change(case, operand, array, place):
                        continue
                    for is_constant in (False, True):
                        yield Change(name, operand, part, place, number, is_constant)


def _may_change(case: Case, operand: int, array: np.ndarray, place: int) -> bool:
    """
    Whether an operator says what a change means: of sorted n-grams, only columns may be any numbers, and rows that meet
    entries of tables have their own sums.
    """
    if case.operator is BlockwiseMatMulIntegerOp and "table" in case.properties:
        return operand not in ROWS_WITH_SUMS
    if case.operator is not TfIdfVectorizerOp or operand != POOLS:
        return True
    return place % array.shape[1] == array.shape[1] - 1 and place != EVERYWHERE


def _arrays(given: Given) -> Sequence[np.ndarray]:
    """The arrays of an operand."""
    if given is None:
        return ()
    return [given] if isinstance(given, np.ndarray) else given


def check(seed: int) -> bool:
    """Whether a change is taken; raises where it is neither refused cleanly nor computed as in the interpreter."""
    change = change_of(seed)

    def run() -> None:
        try:
            module, inputs = change.module_and_inputs()
        except VerifyException as error:
            raise ModelError(str(error)) from error
        check_module(module, bool(seed % 2), inputs)

    return is_clean(run)


STAGES: Mapping[str, Fuzzer] = {"": Fuzzer(check, prepare=changes, show=lambda seed: str(change_of(seed)))}
"""Each change has a seed: there are so many as `changes`."""
