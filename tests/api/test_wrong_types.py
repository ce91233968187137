"""What is given to methods and functions of the API with a wrong type is told in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_models import adding

import glow_mlir
from glow_mlir import InferenceSession, OrtDevice, OrtValue, Quantization, RunOptions, SessionOptions, copy_tensors
from glow_mlir.errors import GlowError, OptionError

X = np.ones((2, 3), np.float32)
WRONG: Any = ["y"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"profile": 3}, "profile cannot be of the type 'int': it is a path"),
        ({"profile": None}, "profile cannot be of the type 'NoneType': it is a path"),
        ({"schema": ["symmetric"]}, "schema cannot be of the type 'list': it is a text"),
        ({"precision": 8}, "precision cannot be of the type 'int': it is a text"),
        ({"bias": None}, "bias cannot be of the type 'NoneType': it is a text"),
        ({"calibration": 3}, "calibration cannot be of the type 'int': it is a text"),
        ({"per_channel": "no"}, "per_channel cannot be of the type 'str': it is a truth value"),
        ({"keep": 3}, "keep cannot be of the type 'int': it is a list of names"),
        ({"keep": [3]}, "keep cannot be of the type 'list': it is a list of names"),
        ({"calibrations": ["kl"]}, "calibrations cannot be of the type 'list': it is words by names"),
        ({"calibrations": {"x": 3}}, "calibrations cannot be of the type 'dict': it is words by names"),
    ],
)
def test_quantization_says_what_it_takes(given: dict[str, Any], expected: str) -> None:
    told: dict[str, Any] = {"profile": "profile.json", **given}
    with pytest.raises(OptionError) as caught:
        Quantization(**told)
    assert str(caught.value).startswith(expected)


def test_a_quantization_needs_a_profile() -> None:
    with pytest.raises(OptionError, match=r"^Quantization\(\) needs a profile \(hint: Quantization\('model"):
        Quantization()


def test_numpy_flags_and_paths_are_taken() -> None:
    flag: Any = np.bool_(False)
    assert not Quantization("profile.json", per_channel=flag, calibrations={"x": "kl"}).per_channel


CALLS: dict[str, Callable[[], Any]] = {
    "session_entry": lambda: InferenceSession(adding()).session_entry(WRONG),
    "names of outputs": lambda: InferenceSession(adding()).run([WRONG], {"x": X}),
    "bound input": lambda: InferenceSession(adding()).io_binding().bind_cpu_input(WRONG, X),
    "bound output": lambda: InferenceSession(adding()).io_binding().bind_output(WRONG),
    "dimension": lambda: SessionOptions().add_free_dimension_override_by_name(WRONG, 3),
    "denotation": lambda: SessionOptions().add_free_dimension_override_by_denotation(WRONG, 3),
    "initializer": lambda: SessionOptions().add_initializer(WRONG, OrtValue(X)),
    "file of constants": lambda: SessionOptions().add_external_initializers_from_files_in_memory([WRONG], [b"1"], [1]),
    "key of a session": lambda: SessionOptions().get_session_config_entry(WRONG),
    "key of a call": lambda: RunOptions().get_run_config_entry(WRONG),
    "copied tensors": lambda: copy_tensors(WRONG, WRONG),
    "no tensors": lambda: copy_tensors(WRONG[0], WRONG[0]),
    "nothing copied": lambda: copy_tensors(glow_mlir, glow_mlir),  # pyright: ignore[reportArgumentType]
    "bundle": lambda: glow_mlir.load_bundle(WRONG),
    "vendor": lambda: OrtDevice.make("cpu", 0, WRONG),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_types_are_one_line(name: str) -> None:
    with pytest.raises(GlowError) as caught:
        CALLS[name]()
    assert "\n" not in str(caught.value)
