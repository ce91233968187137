"""Random models against onnxruntime: codes, sizes with bounds, sizes that data decides, loops inside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import onnx.printer
from drawn_models import Case
from fuzzing import Fuzzer
from onnxruntime_cases import check_case
from random_bounds import bounded_case
from random_codes import quantized_case
from random_counts import counted_case
from random_loops import nested_case

KINDS: Mapping[str, Callable[[int], Case]] = {
    "codes": quantized_case,
    "bounds": bounded_case,
    "counts": counted_case,
    "loops": nested_case,
}
"""Kind → the model of a seed, with its calls."""


def check_model(kind: str, seed: int) -> int:
    """What `check_case` returns of the model of a seed, with options that the seed decides as well."""
    rng = np.random.default_rng([seed, 1])
    accuracy = "strict" if rng.random() < 0.2 else "default"
    return check_case(KINDS[kind](seed), accuracy=accuracy, threads=int(rng.integers(1, 3)))


def shown(kind: str, seed: int) -> str:
    """The model of a seed as text, and the shapes that it is called with."""
    case = KINDS[kind](seed)
    calls = [", ".join(f"{name}: {list(array.shape)}" for name, array in call.items()) for call in case.calls]
    return "\n".join([onnx.printer.to_text(case.model), *calls])


def prepared() -> None:
    """Load what cases need, which takes longer than most of them."""
    check_model("bounds", 0)


STAGES: Mapping[str, Fuzzer] = {
    kind: Fuzzer(partial(check_model, kind), prepare=prepared, show=partial(shown, kind)) for kind in KINDS
}
"""A fuzzer for each kind of models."""
