"""
Copies and pickles of sessions of random models: the results of the session, to the bit, and its options.

`damaged` changes what `__reduce__` gives, of which another process would make the session: the model, its options and
the state. It is refused in one clean line, or is a session. What else a pickle may say is a program
(SECURITY.md).
"""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx.printer
from bundle_cases import settled
from fuzzing import Fuzzer
from onnx_mutants import check_line
from onnxruntime_cases import results_of
from small_models import counter

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import CompilerBugError, GlowError, GlowWarning

VALUES: Sequence[Any] = (None, 0, -1, 1.5, "", "x", b"", b"\x08\x01", (), [1], {"x": 1}, True, np.ones(3, np.int8))


def check_copies(seed: int) -> None:
    """Compare a copy of a session, or what comes out of its pickle, with it."""
    case, random = settled(seed), Random(seed)
    sizes = {name: most for name, (_, most) in case.dimensions.items()}
    accuracy = random.choice(["default", "strict"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GlowWarning)
        model: Any = random.choice([case.model, case.model.SerializeToString()])
        session = InferenceSession(
            model, cache=False, dimensions=sizes, threads=random.randint(1, 2), accuracy=accuracy
        )
        ways: Sequence[Callable[[Any], Any]] = (
            copy.copy,
            copy.deepcopy,
            lambda one: pickle.loads(pickle.dumps(one, random.randint(2, 5))),
        )
        other = random.choice(ways)(session)
    assert other is not session
    assert other.options == session.options
    assert other.get_inputs() == session.get_inputs()
    for found, wanted in zip(*(results_of(one, case.calls[0]) for one in (other, session)), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)


@cache
def reduced() -> Sequence[Any]:
    """What sessions of a few kinds give to pickle: of a model with and one without state."""
    path = Path(tempfile.mkdtemp()) / "counter.mlir"
    path.write_text(counter(), encoding="utf-8")
    stateful = InferenceSession(path, cache=False, threads=1)
    stateful.run(None, {"x": np.ones(4, np.float32)})
    case = settled(0)
    sizes = {name: most for name, (_, most) in case.dimensions.items()}
    plain = InferenceSession(case.model.SerializeToString(), cache=False, dimensions=sizes)
    return [session.__reduce__() for session in (stateful, plain)]


def check_damaged(seed: int) -> bool:
    """Whether what a pickle holds makes a session after a part of it has changed."""
    random = Random(seed)
    again, (recipe, state) = random.choice(reduced())
    form = random.randrange(3)
    if form == 0:
        recipe = replace(recipe, model=_damaged_model(recipe.model, random))
    elif form == 1:
        name = random.choice(sorted(recipe.keywords))
        recipe = replace(recipe, keywords={**recipe.keywords, name: random.choice(VALUES)})
    else:
        state = _damaged_state(state, random)
    data = pickle.dumps((recipe, state))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again(*pickle.loads(data))
    except CompilerBugError:
        raise
    except GlowError as error:
        check_line(error)
        return False
    return True


# Any: a model as `InferenceSession` takes it.
def _damaged_model(model: Any, random: Random) -> Any:
    if not isinstance(model, bytes) or random.random() < 0.2:
        return random.choice(VALUES)
    data = bytearray(model)
    for _ in range(random.choice([1, 4])):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data[: random.randrange(len(data) + 1)] if random.random() < 0.3 else data)


def _damaged_state(state: Mapping[str, np.ndarray], random: Random) -> Any:
    found: dict[Any, Any] = dict(state)
    form = random.randrange(4)
    if form == 0:
        return random.choice(VALUES)
    if form == 1:
        found[random.choice(["nothing", "", "x", 3])] = np.zeros(4, np.float32)
    for name in list(found)[:1]:
        if form == 2:
            found[name] = random.choice(VALUES)
        else:
            shape, kind = random.choice([(5,), (), (4, 1), (0,)]), random.choice(["int8", "float64", "bool", "U3", "O"])
            found[name] = np.zeros(shape, kind)
    return found


def shown(seed: int) -> str:
    """The model of a seed as text."""
    return onnx.printer.to_text(settled(seed).model)


STAGES: Mapping[str, Fuzzer] = {
    "copies": Fuzzer(check_copies, prepare=lambda: check_copies(0), show=shown),
    "damaged": Fuzzer(check_damaged, prepare=reduced),
}
"""The fuzzers of copies and pickles."""
