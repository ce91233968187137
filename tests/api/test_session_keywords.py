"""Keywords of `InferenceSession` of a wrong type are one line."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from small_models import adding

from glow_mlir import InferenceSession
from glow_mlir.api.onnxruntime.providers import GLOW
from glow_mlir.api.onnxruntime.session_arguments import FACADE_KEYWORDS
from glow_mlir.errors import GlowError, OptionError

SIGNATURE = {
    name: parameter.default
    for name, parameter in inspect.signature(InferenceSession).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
}


@pytest.mark.parametrize("name", SIGNATURE)
@pytest.mark.parametrize("wrong", [3.5, object(), b"x", 17, "file.json", {1: 2}, ["x"], int])
def test_keywords_of_another_type_are_one_line(name: str, wrong: Any) -> None:
    """Where it is one that the keyword takes, it is taken."""
    given: dict[str, Any] = {"cache": False, name: wrong}
    told = ""
    try:
        InferenceSession(adding(), **given)
    except GlowError as error:
        told = str(error)
    assert "\n" not in told


@pytest.mark.parametrize(
    ("name", "wrong", "expected"),
    [
        ("quantize", "file.json", "quantize cannot be of the type 'str': it is a Quantization"),
        ("keep_precision", 3, "keep_precision cannot be of the type 'int': it is a list of names"),
        ("observers", 3, "observers cannot be of the type 'int': it is a list of functions"),
        ("disable", None, "disable cannot be of the type 'NoneType'"),
        ("limits", 5, "limits cannot be of the type 'int'"),
        ("configuration", 5, "configuration cannot be of the type 'int': it is a path"),
        ("strict", "yes", "strict cannot be of the type 'str': it is a truth value"),
        ("entry", 5, "entry cannot be of the type 'int': it is a text"),
    ],
)
def test_keywords_say_what_they_take(name: str, wrong: Any, expected: str) -> None:
    given: dict[str, Any] = {name: wrong}
    with pytest.raises(OptionError) as caught:
        InferenceSession(adding(), **given)
    assert str(caught.value).startswith(expected)


class Looks:
    """What has the names of each of them, and nothing else."""

    stage_names, number, memory, threshold = ("llvm",), "a", 3, list[int]()


@pytest.mark.parametrize(
    ("name", "expected"), [("pipeline", "a pipeline"), ("quantize", "a Quantization"), ("limits", "limits of")]
)
def test_what_only_looks_like_an_option_is_one_line(name: str, expected: str) -> None:
    given: dict[str, Any] = {"cache": False, name: Looks()}
    with pytest.raises(OptionError, match=f"{name} cannot be of the type 'Looks': it is {expected}"):
        InferenceSession(adding(), **given)


def test_the_signature_says_what_is_declared() -> None:
    """Each keyword that is declared, with its default, or with `None` where nothing said means the default."""
    assert set(SIGNATURE) == set(FACADE_KEYWORDS)
    for name, default in SIGNATURE.items():
        assert default in (None, FACADE_KEYWORDS[name].default), name


@pytest.mark.parametrize("name", ["threads", "ram_bytes"])
def test_zero_is_said(name: str) -> None:
    """It is no flag that is not given."""
    given: dict[str, Any] = {"cache": False, name: 0}
    with pytest.raises(OptionError, match=rf"^{name}=0 contradicts what options or providers say: 4096 "):
        InferenceSession(adding(), providers=[(GLOW, {name: "4096"})], **given)


def test_numbers_of_bytes_may_be_numbers_of_numpy() -> None:
    """The artifact, which names them, is written to the cache."""
    given: dict[str, Any] = {"ram_bytes": np.int64(1 << 20), "flash_bytes": np.int32(1 << 20)}
    options = InferenceSession(adding(), **given).options
    assert [type(value) for value in options.fields.values()] == [int, int]
