"""What each release has written is read by this version, to the same results, or refused by a line that says why."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_release import training_session

import glow_mlir
from glow_mlir.errors import GlowError
from glow_mlir.host.host import Host
from glow_mlir.serving.repository import ModelRepository

RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if (path / "model.onnx").is_file())

REFUSAL = re.compile(r"version|format")
"""What a line says that refuses a file."""


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what a release wrote, in which a test runs."""
    folder = tmp_path / "release"
    shutil.copytree(request.param, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GLOW_CACHE_DIR", str(folder / "cache"))
    return folder


def check_read(read: Callable[[], object]) -> None:
    """Read something, which may be refused by a line that says of which version it is."""
    refusal = ""
    try:
        read()
    except GlowError as error:
        refusal = str(error)
    assert not refusal or ("\n" not in refusal and REFUSAL.search(refusal)), refusal


def given(release: Path) -> np.ndarray:
    return np.load(release / "inputs.npz")["x"]


def check(release: Path, session: Any) -> None:
    """The outputs are those that the release had."""
    (found,) = session.run(None, {"x": given(release)})
    np.testing.assert_allclose(found, np.load(release / "outputs.npy"), rtol=1e-5, atol=1e-6)


def test_there_are_releases() -> None:
    assert RELEASES
    assert sum(path.stat().st_size for path in Path(__file__).parent.rglob("*") if path.is_file()) < 200_000


def test_modules_and_weights(release: Path) -> None:
    check_read(lambda: check(release, glow_mlir.InferenceSession(release / "module.mlir")))


def test_bundles(release: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("the bundle is for x86-64")
    check_read(lambda: check(release, glow_mlir.load_bundle(release / "bundle")))


def test_caches(release: Path) -> None:
    """What another version compiled is made anew, also where it is damaged by then."""
    check(release, glow_mlir.InferenceSession(release / "model.onnx"))
    for path in (release / "cache").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-7])
    check(release, glow_mlir.InferenceSession(release / "model.onnx"))


def test_checkpoints(release: Path) -> None:
    pytest.importorskip("safetensors")

    def read() -> None:
        session = training_session(release)
        session.load(str(release / "checkpoint.safetensors"))
        found = session.predict({"x": given(release)})["y"]
        np.testing.assert_allclose(found, np.load(release / "trained.npy"), rtol=1e-5, atol=1e-6)
        assert session.steps == 1

    check_read(read)


def test_repositories(release: Path) -> None:
    for version in ("1", "2"):
        (release / "net" / version).mkdir()
        shutil.copy(release / "model.onnx", release / "net" / version)
    (release / "models").mkdir()
    (release / "net").rename(release / "models" / "net")

    def read() -> None:
        with Host() as host:
            errors = ModelRepository(host, [release / "models"]).load_all()
            if errors:
                raise errors[0]
            assert host.names == [("net", "1"), ("net", "2")]
            check(release, _Hosted(host))

    check_read(read)


class _Hosted:
    """A network of a host in the place of a session."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def run(self, outputs: None, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        return list(self._host.run("net", inputs).values())


COMMANDS = {
    "profile": ("glow_run", "model.onnx", "--load-profile", "profile.json"),
    "configuration": ("glow_run", "model.onnx", "--load-configuration", "configuration.json"),
    "placement": ("glow_run", "model.onnx", "--devices", "cpu,cpu", "--placement", "placement.json"),
    "seconds": (
        *("glow_run", "model.onnx", "--devices", "cpu,cpu", "--partition", "pipeline"),
        *("--placement-profile", "seconds.json"),
    ),
    "simulation": ("glow_simulate", "simulation.json"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_files_that_tools_take(case: str, release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, *arguments = COMMANDS[case]
    code = import_module(f"glow_mlir.tools.{name}").main(arguments)
    said = capsys.readouterr().err
    assert code == 0 or (code == 1 and said.count("\n") == 1 and REFUSAL.search(said)), said


REFUSED = {
    "profile": ("profile.json", '"version": 2'),
    "configuration": ("configuration.json", '"version": 1'),
    "bundle": ("bundle/model.json", '"abi": '),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_version_that_nobody_knows_is_refused_in_a_line(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "release"
    shutil.copytree(RELEASES[-1], folder)
    monkeypatch.chdir(folder)
    name, text = REFUSED[case]
    content = (folder / name).read_text()
    assert text in content
    (folder / name).write_text(content.replace(text, text + "9", 1))
    if case == "bundle":
        with pytest.raises(GlowError, match="has version 9"):
            glow_mlir.load_bundle(folder / "bundle")
        return
    tool, *arguments = COMMANDS[case]
    assert import_module(f"glow_mlir.tools.{tool}").main(arguments) == 1
    said = capsys.readouterr().err
    assert re.search(r"of version \d9, not \d", said)
    assert said.count("\n") == 1
