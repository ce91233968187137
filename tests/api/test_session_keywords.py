"""Keywords of `InferenceSession` of a wrong type are one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from onnx import parser
from small_models import adding

from glow_mlir import Host, InferenceSession, TrainingSession
from glow_mlir.api.onnxruntime.providers import GLOW
from glow_mlir.api.onnxruntime.session_arguments import FACADE_KEYWORDS
from glow_mlir.backends.cuda import devices
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


def test_an_unknown_keyword_has_a_hint() -> None:
    """It is a `TypeError`, as Python has it, and an error of ours."""
    cases: dict[str, tuple[Callable[..., object], str, str]] = {
        "thread": (InferenceSession, "InferenceSession", "threads"),
        "num_threads": (InferenceSession, "InferenceSession", "threads"),
        "bakend": (InferenceSession, "InferenceSession", "backend"),
        "device": (InferenceSession, "InferenceSession", "devices"),
        "lr": (TrainingSession, "TrainingSession", "optimizer=glow_mlir.training.AdamW(learning_rate=…)"),
        "optimiser": (TrainingSession, "TrainingSession", "optimizer"),
    }
    for name, (kind, owner, hint) in cases.items():
        with pytest.raises(TypeError) as caught:
            kind(adding(), **{name: 2})
        assert isinstance(caught.value, OptionError)
        assert str(caught.value).startswith(f"{owner} has no keyword '{name}' (hint: {hint}"), caught.value
    with pytest.raises(TypeError, match=r"Host has no keyword 'memory' \(hint: memory_bytes\)"):
        Host(memory=3)  # pyright: ignore[reportCallIssue]


DIGITS = ROOT / "examples" / "digits.onnx"


@pytest.fixture
def without_cuda(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A machine without a device of CUDA, in this process and those that it starts."""
    monkeypatch.setattr(devices, "driver", lambda: None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    devices.real_device.cache_clear()
    yield
    devices.real_device.cache_clear()


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
    with pytest.raises(OptionError, match=rf"^{name}=0 conflicts with options or providers: 4096 "):
        InferenceSession(adding(), providers=[(GLOW, {name: "4096"})], **given)


def test_numbers_of_bytes_may_be_numbers_of_numpy() -> None:
    """The artifact, which names them, is written to the cache."""
    given: dict[str, Any] = {"ram_bytes": np.int64(1 << 20), "flash_bytes": np.int32(1 << 20)}
    options = InferenceSession(adding(), **given).options
    assert [type(value) for value in options.fields.values()] == [int, int]


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"devices": "cuda"}, "there is no .*device"),
        ({"backend": "cuda"}, "there is no .*device"),
        ({"backend": "cuda", "target": "sm_80"}, "there is no .*device"),
        ({"devices": "cpu,cuda:1"}, "there is no .*device"),
        ({"devices": "nothing"}, "no backend 'nothing'"),
        ({"target": "avx9"}, "no target is called 'avx9'"),
        (
            {"devices": "cuda", "target": "emulated-sm_80"},
            "'emulated-sm_80' is one target, but each device has its own",
        ),
    ],
    ids=str,
)
@pytest.mark.usefixtures("without_cuda")
def test_machines_that_are_not_here_are_told_when_a_session_is_made(
    given: dict[str, Any], message: str, cache: bool
) -> None:
    """Also of a model with free sizes, for which nothing is compiled yet."""
    for _ in range(2):  # The second time from the cache.
        with pytest.raises(OptionError, match=message):
            InferenceSession(DIGITS, cache=cache, **given)


def test_machines_that_are_emulated_are_here() -> None:
    assert InferenceSession(DIGITS, devices="cuda,target=emulated-sm_80,cpu").is_deferred
    assert InferenceSession(DIGITS, backend="cuda", target="emulated-sm_80").is_deferred


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"accuracy": "strictt"}, "no accuracy 'strictt'"),
        ({"optimize": "sped"}, "no optimize 'sped'"),
        ({"ram_bytes": -1}, "ram"),
        ({"threads": -3}, "threads=-3"),
    ],
)
def test_unknown_values_fail_before_the_first_call(said: dict[str, Any], reason: str) -> None:
    """Also where a call decides the sizes, before which nothing is compiled."""
    graph = "graph (float[N] x) => (float[N] y) { y = Relu (x) }"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {graph}')
    with pytest.raises(OptionError, match=reason):
        InferenceSession(model, cache=False, **said)
