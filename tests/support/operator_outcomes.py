"""What becomes of the operators of PyTorch's own database: of each entry, its element types, and its samples."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from operator_samples import OutsideError, run_sample
from torch.testing._internal.common_methods_invocations import op_db

from glow_mlir.errors import CompilerBugError, GlowError, UnsupportedError

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool)
"""The element types of samples."""

WITH_GRADIENTS = (torch.float32, torch.float64)
"""Those of samples whose gradients are compared, too."""


@dataclass(frozen=True)
class Extent:
    """How much of the database is run."""

    backend: str = "interpreter"
    most: int | None = None
    """Samples at most of each operator and element type."""
    seconds: float | None = None
    """How long these may take at most; what is left of them is not run."""
    gradients: tuple[torch.dtype, ...] = WITH_GRADIENTS
    """Element types whose gradients are compared."""
    is_reference: bool = False
    """Whether there are more samples, with infinities, NaN and other extremes."""


@dataclass
class Outcome:
    """What became of the samples of an operator in an element type."""

    passed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Why samples were refused."""
    failed: Counter[str] = field(default_factory=Counter)
    """What is wrong with samples whose results differ, or that end in another error."""
    outside: Counter[str] = field(default_factory=Counter)
    """Operators beside core ATen into which samples are taken apart, and which are not supported."""
    untraced: int = 0
    """Samples of which PyTorch itself makes no graph."""


def outcome(op: Any, dtype: torch.dtype, gradients: bool, extent: Extent) -> Outcome:
    """What becomes of the samples of an operator in an element type."""
    found = Outcome()
    options = {"backend": extent.backend, "cache": False}
    make = op.reference_inputs if extent.is_reference else op.sample_inputs
    begin = time.monotonic()
    try:
        for sample in islice(make("cpu", dtype, requires_grad=gradients), extent.most):
            if extent.seconds is not None and time.monotonic() - begin > extent.seconds:
                break
            run_one(op, sample, options, gradients, found)
    except Exception as error:
        found.failed[f"samples: {type(error).__name__} {error}"[:200]] += 1
    return found


def run_one(op: Any, sample: Any, options: dict[str, Any], gradients: bool, found: Outcome) -> None:
    """Count what becomes of a sample."""
    torch.manual_seed(0)
    try:
        wrong = run_sample(op, sample, options, gradients)
    except Exception as error:
        note(found, error)
    else:
        if wrong:
            found.failed[wrong] += 1
        else:
            found.passed += 1


def note(found: Outcome, error: Exception) -> None:
    """Count what a sample ended with."""
    if isinstance(error, OutsideError):
        found.outside[str(error)] += 1
    elif isinstance(error, UnsupportedError) and not isinstance(error, CompilerBugError):
        found.refused[f"{error.reason}"[:200]] += 1
    elif isinstance(error, GlowError) or "glow_mlir" in "".join(traceback.format_tb(error.__traceback__)):
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "glow" in frame.filename]
        where = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in frames[-1:]]
        found.failed[f"{type(error).__name__} {error} at {where}"[:200]] += 1
    else:
        found.untraced += 1


def entries(names: Sequence[str] = ()) -> list[Any]:
    """The operators of the database, or those of these names."""
    return [op for op in op_db if not names or op.name in names or op.formatted_name in names]


def name_of(op: Any) -> str:
    """The name of an entry."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def outcomes(op: Any, extent: Extent) -> dict[str, Outcome]:
    """What becomes of an operator in each element type, and of its gradients."""
    runs = [(dtype, False) for dtype in DTYPES if op.supports_dtype(dtype, "cpu")]
    if op.supports_autograd:
        backward = op.supported_backward_dtypes("cpu")
        runs += [(dtype, True) for dtype in extent.gradients if dtype in backward]
    return {
        f"{str(dtype).removeprefix('torch.')}{' gradient' if gradients else ''}": outcome(op, dtype, gradients, extent)
        for dtype, gradients in runs
    }


VERDICTS = ("failed", "refused", "outside", "passed")
"""What may become of samples, the worst first."""


def verdict(found: Mapping[str, Outcome]) -> str:
    """The worst that became of samples of an entry; `untraced` where PyTorch made no graph of any."""
    words = (word for word in VERDICTS if any(getattr(item, word) for item in found.values()))
    return next(words, "untraced")


def reasons(found: Mapping[str, Outcome], words: Sequence[str] = VERDICTS[:-1]) -> Iterator[str]:
    """A line for each reason why samples did not pass."""
    for what, item in found.items():
        for word in words:
            for reason, times in getattr(item, word).items():
                yield f"{what}: {word} {times}: {reason}"
