"""The OpenCL backend where nothing of OpenCL is installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from checkout import ROOT

from glow_mlir import InferenceSession
from glow_mlir.backends.interface import get_backend
from glow_mlir.backends.opencl import library, targets
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import OptionError
from glow_mlir.frontends.onnx.importer import import_model

DIGITS = ROOT / "examples" / "digits.onnx"

CACHES = (library.opencl, library.devices, targets.target_of)


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let there be no PyOpenCL."""

    def missing(name: str) -> None:
        raise ImportError(name)

    for cached in CACHES:
        cached.cache_clear()
    monkeypatch.setattr(library, "import_module", missing)
    yield
    for cached in CACHES:
        cached.cache_clear()


@pytest.mark.usefixtures("nothing_installed")
def test_a_session_says_what_to_install() -> None:
    with pytest.raises(OptionError, match=r"needs PyOpenCL.*pip install 'glow-mlir\[opencl\]'"):
        InferenceSession(DIGITS, backend="opencl", dimensions={"N": 1}, cache=False)


@pytest.mark.usefixtures("nothing_installed")
def test_code_for_any_device_is_made_without() -> None:
    backend = get_backend("opencl")
    assert list(backend.targets()) == [targets.GENERIC]
    assert "PyOpenCL" in backend.lacks(backend.target(targets.GENERIC))
    module = import_model(DIGITS, {"N": 1})
    artifact = Compilation(module, backend="opencl", target=targets.GENERIC).artifact()
    assert b"__kernel" in artifact.code[0]
    (entry,) = artifact.manifest.entries
    assert entry.program is not None
    assert entry.program.functions()


def test_the_target_is_a_device() -> None:
    with pytest.raises(OptionError, match=r"'x86_64-unknown-linux-gnu' is no device of OpenCL"):
        backend = get_backend("opencl")
        backend.check_target(backend.target("generic,triple=x86_64-unknown-linux-gnu"))
