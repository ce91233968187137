"""Repositories: models in folders, their versions and configurations, and nothing outside of the folder."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from breadth import examples
from checkout import ROOT
from host_networks import threads_left
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import GraphBuilder, linear
from onnx import TensorProto

from glow_mlir.errors import GlowError, InputError, ModelError, OptionError, UnsupportedError
from glow_mlir.host.host import Host
from glow_mlir.serving.errors import NotReadyError, UnknownModelError
from glow_mlir.serving.metrics import metrics
from glow_mlir.serving.models import Models, Network
from glow_mlir.serving.repository import ModelRepository, Named

DIGITS = ROOT / "examples" / "digits.onnx"
X = {"x": np.ones((1, 2), np.float32)}


@pytest.fixture
def host() -> Generator[Host]:
    """A host that leaves nothing behind."""
    with Host() as made:
        yield made
    assert not threads_left()


def save(path: Path, width: int) -> None:
    """A model of two inputs and so many outputs in a file."""
    g = GraphBuilder(0)
    result = g.node("Relu", linear(g, "x", 2, width))
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(g.model({"x": (TensorProto.FLOAT, ("N", 2))}, {result: ("N", width)}), path)


def configure(folder: Path, config: object) -> None:
    """Write the configuration of a model."""
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a model of three versions, and another."""
    found = tmp_path / "repository"
    for version, width in (("1", 3), ("2", 4), ("10", 5)):
        save(found / "net" / version / "model.onnx", width)
    save(found / "other" / "1" / "anything.onnx", 7)
    (found / "net" / "notes").mkdir()
    (found / ".git").mkdir()
    return found


def width(models: ModelRepository, name: str, version: str = "") -> int:
    """How wide the result of a model is."""
    found: Network = models.find(name, version)
    return next(iter(found.submit(X).result(60).values())).shape[1]


def states(models: Models) -> dict[tuple[str, str], str]:
    """How all versions stand."""
    return {(state.name, state.version): state.state for state in models.names()}


def test_the_latest_version_is_served(folder: Path, host: Host) -> None:
    models = ModelRepository(host, [folder])
    assert states(models) == {("net", ""): "UNAVAILABLE", ("other", ""): "UNAVAILABLE"}
    with pytest.raises(UnknownModelError):
        models.find("net")
    assert models.load_all() == []
    assert states(models) == {("net", "10"): "READY", ("other", "1"): "READY"}
    assert (width(models, "net"), width(models, "net", "10"), width(models, "other")) == (5, 5, 7)
    with pytest.raises(UnknownModelError, match=r"no model 'net' of version 2 \(hint: 'net' has version 10\)"):
        models.find("net", "2")
    text = metrics(host)
    assert 'glow_requests_total{model="net",version="10",outcome="succeeded"} 2' in text
    assert 'glow_request_seconds_count{model="other",version="1"} 1' in text


def test_versions_come_and_go(folder: Path, host: Host) -> None:
    configure(folder / "net", {"versions": "all", "batch": 4, "queue": 7})
    models = ModelRepository(host, [folder])
    models.load("net")
    assert [width(models, "net", version) for version in ("1", "2", "10")] == [3, 4, 5]
    assert models.find("net").max_batch == 4
    configure(folder / "net", {"versions": [2]})
    models.load("net")
    assert states(models)["net", "1"] == states(models)["net", "10"] == "UNAVAILABLE"
    assert width(models, "net") == 4
    with pytest.raises(NotReadyError, match="the model 'net' is UNAVAILABLE: unloaded"):
        models.find("net", "1")
    save(folder / "net" / "11" / "model.onnx", 9)
    models.load("net", {"versions": "latest"})
    assert width(models, "net") == 9
    models.unload("net")
    with pytest.raises(NotReadyError):
        models.find("net")
    with pytest.raises(UnknownModelError):
        models.unload("none")


def test_files_are_models_by_themselves(host: Host, tmp_path: Path) -> None:
    models = ModelRepository(host, [DIGITS], {"dimensions": {"N": 1}})
    models.load_all()
    assert models.find("digits").inputs[0].shape == (1, 1, 8, 8)
    with pytest.raises(OptionError, match="there is no such file or folder"):
        ModelRepository(host, [tmp_path / "none"])
    with pytest.raises(OptionError, match="two models have the name 'digits'"):
        ModelRepository(host, [DIGITS, DIGITS])


def test_models_have_the_names_that_are_given(folder: Path, host: Host, tmp_path: Path) -> None:
    save(tmp_path / "single" / "model.onnx", 6)
    places = [Named("a", DIGITS), Named("b", folder / "net"), Named("c", tmp_path / "single")]
    models = ModelRepository(host, places)
    assert models.load_all() == []
    assert states(models) == {("a", "1"): "READY", ("b", "10"): "READY", ("c", "1"): "READY"}
    assert (width(models, "b"), width(models, "c")) == (5, 6)
    configure(tmp_path / "single", {"placement": "../x.json"})
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ModelError, match="links out"):
        models.load("c")


def test_what_is_unloaded_for_memory_is_loaded_beside_who_asks(folder: Path) -> None:
    with Host(memory_bytes=1) as host:
        models = ModelRepository(host, [folder], {"dimensions": {"N": 1}})
        models.load_all()
        with pytest.raises(NotReadyError, match="the model 'net' is loading"):
            models.find("net")
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                assert width(models, "net") == 5
                break
            except NotReadyError:
                time.sleep(0.01)
        assert width(models, "net") == 5


def test_what_cannot_be_loaded_again_is_unavailable(folder: Path) -> None:
    with Host(memory_bytes=1) as host:
        models = ModelRepository(host, [folder], {"dimensions": {"N": 1}, "cache": False})
        models.load_all()
        (folder / "net" / "10" / "model.onnx").write_bytes(b"junk")
        end = time.monotonic() + 60
        while states(models)["net", "10"] == "READY" and time.monotonic() < end:
            with pytest.raises(NotReadyError):
                models.find("net")
            time.sleep(0.01)
        with pytest.raises(NotReadyError, match=r"the model 'net' is UNAVAILABLE: model\.onnx: is not an ONNX model"):
            models.find("net")


WRONG: Mapping[str, tuple[Any, type[GlowError], str]] = {
    "damaged": ("{", OptionError, "config.json: cannot be read"),
    "no object": ([1], OptionError, "config.json: is not a JSON object"),
    "deep": ("[" * 100_000, OptionError, "config.json: cannot be read"),
    "large": (" " * (2 << 20), OptionError, "config.json: is too large"),
    "unknown": ({"bacth": 4}, OptionError, "config.json: unknown option 'bacth'"),
    "wrong": ({"batch": "4"}, GlowError, "batch"),
    "no such version": ({"versions": [3]}, OptionError, r"versions=\[3\] selects no existing version"),
    "policy": ({"versions": {"1": 1}}, OptionError, "selects no existing version"),
    "path out": ({"placement": "../../secret.json"}, ModelError, "links out of the repository"),
    "absolute path": ({"configuration": "/etc/passwd"}, ModelError, "links out of the repository"),
    "no path": ({"placement": 3}, OptionError, "placement must be a path, got 3"),
    "no such path": ({"placement": "none.json"}, ModelError, "is not there"),
    "backend": ({"backend": "none"}, OptionError, "no backend 'none'"),
    "no batch": ({"batch": 4, "dimensions": {"N": 1}}, UnsupportedError, "cannot batch requests"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_configuration_leaves_what_was_loaded(case: str, folder: Path, host: Host) -> None:
    config, kind, reason = WRONG[case]
    (folder.parent / "secret.json").write_text("{}")
    models = ModelRepository(host, [folder])
    models.load("net")
    configure(folder / "net", config)
    with pytest.raises(kind, match=reason) as caught:
        models.load("net")
    assert "\n" not in str(caught.value)
    assert width(models, "net") == 5
    other = ModelRepository(host, [folder])
    errors = other.load_all()
    assert [type(error) for error in errors] == [caught.type]
    assert str(folder) not in next(state.reason for state in other.names() if state.name == "net")


def test_links_that_lead_out_are_refused(folder: Path, host: Host, tmp_path: Path) -> None:
    secret = tmp_path / "secret" / "1" / "model.onnx"
    save(secret, 11)
    (folder / "linked").symlink_to(secret.parents[1])
    (folder / "file" / "1").mkdir(parents=True)
    (folder / "file" / "1" / "model.onnx").symlink_to(secret)
    (folder / "loop").mkdir()
    (folder / "loop" / "1").symlink_to(folder / "loop" / "1")
    (folder / "within" / "1").mkdir(parents=True)
    (folder / "within" / "1" / "model.onnx").symlink_to(folder / "net" / "1" / "model.onnx")
    models = ModelRepository(host, [folder])
    for name, reason in (("linked", "links out"), ("file", "links out"), ("loop", "has no version")):
        with pytest.raises(ModelError, match=reason):
            models.load(name)
    models.load("within")
    assert width(models, "within") == 3
    shutil.copy(secret, folder / "config.json")
    (folder / "net" / "config.json").symlink_to("/etc/passwd")
    with pytest.raises(ModelError, match="links out of the repository"):
        models.load("net")


@pytest.mark.parametrize("config", [{"placement": "a"}, {"configuration": "a"}, {"none": 1}, {"tune": "a"}])
def test_clients_say_nothing_of_files(config: dict[str, Any], folder: Path, host: Host) -> None:
    models = ModelRepository(host, [folder])
    with pytest.raises((InputError, OptionError)):
        models.load("net", config)
    for name in ("../net", "", ".", "net/1", "\0", "a" * 5000, "/etc"):
        with pytest.raises(UnknownModelError):
            models.load(name)


def mutated(text: bytes, rng: random.Random) -> bytes:
    """A text with some bytes changed, left out or put in."""
    found = bytearray(text)
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(found) + 1)
        kind = rng.randrange(3)
        if kind == 0:
            found[place:place] = rng.choice(
                (b"..", b"/", b"{", b"[", b'"', b"\\u0000", b"9" * 30, b"null", b"\xff", b":")
            )
        elif kind == 1:
            del found[place : place + rng.randint(1, 8)]
        elif place < len(found):
            found[place] = rng.randrange(256)
    return bytes(found)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 30))
def test_mutants_of_configurations_are_told_in_a_line(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    folder = tmp_path / "repository"
    if not folder.exists():
        save(folder / "net" / "1" / "model.onnx", 3)
    text = b'{"versions": "latest", "batch": 1, "queue": 9, "replicas": 1, "threads": 1, "placement": "1/model.onnx"}'
    (folder / "net" / "config.json").write_bytes(mutated(text, rng))
    before = sorted(os.listdir(tmp_path)), sorted(os.listdir(folder / "net"))
    with Host() as host:
        errors = ModelRepository(host, [folder]).load_all()
    assert not any("\n" in str(error) for error in errors)
    assert before == (sorted(os.listdir(tmp_path)), sorted(os.listdir(folder / "net")))


@pytest.mark.parametrize(
    "config",
    [
        {"workers": "processes"},
        {"replicas": 64},
        {"backend": "interpreter"},
        {"placement": "x"},
        {"calls": 9},
        {"batch": 1 << 20},
        {"threads": 4},
        {"state": {}},
        {"parameters": {}},
    ],
)
def test_what_a_client_may_not_say_of_a_model(config: dict[str, Any], folder: Path, host: Host) -> None:
    models = ModelRepository(host, [folder])
    models.load("other")
    with pytest.raises(InputError, match=r"of a client|a client's configuration"):
        models.load("other", config)
    assert states(models)["other", "1"] == "READY"


def test_words_of_a_client_go_before_those_of_the_folder(folder: Path, host: Host) -> None:
    configure(folder / "net", {"versions": [1], "batch": 2, "queue": 7})
    models = ModelRepository(host, [folder])
    models.load("net", {"batch": 8, "delay": 0.001})
    assert (models.find("net").max_batch, width(models, "net")) == (8, 3)
    assert models.find("net").options.queue == 7
