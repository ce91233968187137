"""
ONNX's backend suite on both backends: its tests of all categories, what each gives here, and what is expected of it.

A test passes, or the compiler refuses its model with one clean error, or the results of machine code, of the
interpreter or of both miss the tolerances of the suite. Both run what one import made of the model, differentiated.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx.backend.test
from checkout import ROOT
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession, SpecializationLimits, onnx_backend
from glow_mlir.backends.interpreter.executable import InterpretedModule
from glow_mlir.driver.pipelines import DIFFERENTIATED, Stage
from glow_mlir.errors import CompilerBugError, GlowError
from glow_mlir.frontends.onnx.hosted_model import HostedModel
from glow_mlir.ir.python_values import python_values_of
from glow_mlir.runtime.python_values import with_python_values

FOLDER = ROOT / "tests" / "onnx_backend"
TIERS_FILE = FOLDER / "tiers.json"
FAILURES_FILE = FOLDER / "expected_failures.json"

PASSED, REFUSED, RAW = "passed", "refused", "raw"
"""What a test may give besides a miss; `RAW` is whatever is no clean error, and expected of none."""

MISSED, MISSED_BY_CODE, MISSED_BY_INTERPRETER = "missed", "missed by machine code", "missed by the interpreter"
"""Results that differ from the suite's, of both backends or one."""

MISSES = {(True, True): MISSED, (True, False): MISSED_BY_CODE, (False, True): MISSED_BY_INTERPRETER}
"""Whether machine code missed, and whether the interpreter did → what the test gave."""

TIERS = {"1": "must pass", "2": "wanted", "3": "out of scope"}

CATEGORIES = {
    "NodeModel": "node",
    "SimpleModel": "simple",
    "RealModel": "light",
    "PyTorchConvertedModel": "pytorch",
    "PyTorchOperatorModel": "pytorch",
}
"""The suite's names of its categories → ours."""

Outcome = tuple[str, str]
"""What a test gave, and the error in words without names, if there is one."""


class MissError(Exception):
    """Results that differ from those that the suite expects; `verdict` says whose."""

    def __init__(self, verdict: str, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict


class BothBackends(onnx_backend.GlowBackend):
    """The backend of `glow_mlir.onnx_backend`, and the interpreter beside it; each test compiles its own model."""

    @classmethod
    def prepare(cls, model: Any, device: str | None = "CPU", **kwargs: Any) -> onnx_backend.GlowBackendRep:
        graphs: list[ModuleOp] = []

        def keep(stage: Stage, module: ModuleOp, seconds: float) -> None:
            if stage.name == DIFFERENTIATED.name:
                graphs[:] = [module.clone()]

        # With one specialization at a time, the one that was imported last is the one that runs.
        one = SpecializationLimits(number=1)
        return RanByBoth(InferenceSession(model, cache=False, observers=[keep], limits=one, **kwargs), graphs, model)


class RanByBoth(onnx_backend.GlowBackendRep):
    """A model that runs twice: its results are those of machine code, and behind them those of the interpreter."""

    def __init__(self, session: InferenceSession, graphs: Sequence[ModuleOp], model: Any) -> None:
        super().__init__(session)
        self._graphs = graphs
        self._model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[np.ndarray, ...]:
        by_code = super().run(inputs)
        named = dict(zip([arg.name for arg in self.session.get_inputs()], inputs, strict=True))
        if isinstance(self.session.compiled.loaded, HostedModel):
            again = InferenceSession(self._model, cache=False, backend="interpreter")
            return (*by_code, *again.run(None, named))
        graph = self._graphs[-1]
        found = with_python_values(InterpretedModule(graph), python_values_of(graph)).entry().run(named)
        return (*by_code, *(found[arg.name] for arg in self.session.get_outputs()))


class Suite(onnx.backend.test.BackendTest):
    """The suite, which compares the results of both backends, and tells misses from assertions in the compiler."""

    _is_comparing = False
    """Whether the results of one backend are compared."""

    @classmethod
    def assert_similar_outputs(cls, ref_outputs: Any, outputs: Any, *args: Any, **kwargs: Any) -> None:
        """Compare the results of `RanByBoth`, or what sequences among them consist of; raises `MissError`."""
        if cls._is_comparing:
            # The suite takes tensors in sequences for sequences of rows, which scalars are not.
            if isinstance(outputs, np.ndarray):
                super().assert_similar_outputs([ref_outputs], [cast("Any", outputs)], *args, **kwargs)
            else:
                super().assert_similar_outputs(ref_outputs, outputs, *args, **kwargs)
            return
        half = len(outputs) // 2
        reasons = [cls._difference(ref_outputs, found, *args, **kwargs) for found in (outputs[:half], outputs[half:])]
        by_code, by_interpreter = (reason is not None for reason in reasons)
        if by_code or by_interpreter:
            raise MissError(MISSES[by_code, by_interpreter], reasons[0] or reasons[1] or "")

    @classmethod
    def _difference(cls, *args: Any, **kwargs: Any) -> str | None:
        cls._is_comparing = True
        try:
            super().assert_similar_outputs(*args, **kwargs)
        except AssertionError as error:
            return str(error)
        finally:
            cls._is_comparing = False
        return None


@cache
def suite_tests() -> Mapping[str, Callable[[None], None]]:
    """The tests for CPUs by category and name, such as `node/test_abs`; the suite computes them, in some seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Some expectations overflow on purpose.
        return functions_of(Suite(BothBackends, __name__))


def functions_of(suite: onnx.backend.test.BackendTest) -> dict[str, Callable[[None], None]]:
    """The tests for CPUs of a suite by category and name."""
    return {
        f"{CATEGORIES[category]}/{name.removesuffix('_cpu')}": item.func
        for category, items in suite._test_items.items()  # pyright: ignore[reportPrivateUsage]
        for name, item in sorted(items.items())
        if name.endswith("_cpu")
    }


def outcome_of(name: str) -> Outcome:
    """Run a test; lets through whatever is neither a clean error nor a miss."""
    try:
        suite_tests()[name](None)
    except CompilerBugError:
        raise
    except GlowError as error:
        return REFUSED, f"{type(error).__name__}: {without_names(error.reason)}"
    except MissError as miss:
        return miss.verdict, str(miss)
    return PASSED, ""


def without_names(reason: str) -> str:
    """The reason of an error with `…` in place of all that is quoted."""
    return "'…'".join(reason.split("'")[::2])


@cache
def tiers() -> dict[str, str]:
    """The tier of each test that is listed; all others are of tier 1."""
    listed: dict[str, dict[str, list[str]]] = json.loads(TIERS_FILE.read_text(encoding="utf-8"))
    return {name: tier for tier, kinds in listed.items() for names in kinds.values() for name in names}


def tier_of(name: str) -> str:
    """The tier of a test, a key of `TIERS`."""
    return tiers().get(name, "1")


@cache
def expected_failures() -> dict[str, Outcome]:
    """What tests give that do not pass, by name. Of a miss, the table says why it is one."""
    listed: dict[str, dict[str, list[str]]] = json.loads(FAILURES_FILE.read_text(encoding="utf-8"))
    rows = ((verdict, reason, names) for verdict, reasons in listed.items() for reason, names in reasons.items())
    return {name: (verdict, reason) for verdict, reason, names in rows for name in names}


def write_expected_failures(outcomes: Mapping[str, Outcome], path: Path = FAILURES_FILE) -> None:
    """
    Write the table of expected failures; a miss that is known keeps its words, a new one has those of numpy.

    Tests that did not run keep what the table says of them.
    """
    before = expected_failures()
    table: dict[str, dict[str, list[str]]] = {verdict: {} for verdict in (REFUSED, *MISSES.values())}
    for name, (verdict, reason) in sorted({**before, **outcomes}.items()):
        if verdict in table:
            known = before.get(name, ("", ""))
            is_known_miss = verdict in MISSES.values() and known[0] in MISSES.values()
            table[verdict].setdefault(known[1] if is_known_miss else reason.strip(), []).append(name)
    ordered = {verdict: dict(sorted(reasons.items())) for verdict, reasons in table.items() if reasons}
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def counts_by_tier(outcomes: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each tier, of pairs of tests and what they gave: how many passed, and how many gave anything else."""
    found = [(tier_of(name), verdict) for name, verdict in outcomes]
    lines: list[str] = []
    for tier, meaning in TIERS.items():
        verdicts = [verdict for other, verdict in found if other == tier]
        given = [verdict for verdict in (REFUSED, *MISSES.values(), RAW) if verdict in verdicts]
        counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (PASSED, *given))
        lines.append(f"tier {tier} ({meaning}): {len(verdicts)} tests, {counted}")
    return lines
