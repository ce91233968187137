"""The OpenCL backend where nothing of OpenCL is installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest
from checkout import ROOT
from onnx import TensorProto, helper
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.backends.interface import get_backend
from glow_mlir.backends.opencl import library, targets
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import OptionError, UnsupportedOperatorsError
from glow_mlir.frontends.onnx.importer import import_model

DIGITS = ROOT / "examples" / "digits.onnx"

NO_DOUBLES = f"{targets.GENERIC},features=+fma"

CACHES = (library.opencl, library.devices, targets.target_of)


def unary(operator: str, element: int) -> ModuleOp:
    """An operator of one tensor."""
    given, result = (helper.make_tensor_value_info(name, element, [3, 40]) for name in "xy")
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "one", [given], [result])
    return import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let there be no PyOpenCL."""
    for cached in CACHES:
        cached.cache_clear()
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    yield
    for cached in CACHES:
        cached.cache_clear()


@pytest.mark.usefixtures("nothing_installed")
def test_a_session_says_what_to_install() -> None:
    with pytest.raises(OptionError, match=r"needs PyOpenCL.*pip install 'pyopencl>="):
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


@pytest.mark.parametrize("operator", ["Acos", "Sin", "Softmax"])
def test_a_device_without_floats_of_64_bits_computes_in_32(operator: str) -> None:
    code = Compilation(unary(operator, TensorProto.FLOAT), backend="opencl", target=NO_DOUBLES).artifact().code[0]
    assert not re.search(rb"\bdouble", code)


def test_floats_of_64_bits_are_refused_where_there_are_none() -> None:
    with pytest.raises(UnsupportedOperatorsError, match=r"backend 'opencl': glow_high.abs : tensor<3x40xf64>"):
        Compilation(unary("Abs", TensorProto.DOUBLE), backend="opencl", target=NO_DOUBLES).artifact()


def test_the_target_is_a_device() -> None:
    backend = get_backend("opencl")
    target = backend.target("generic,triple=x86_64-unknown-linux-gnu")
    with pytest.raises(OptionError, match=r"'x86_64-unknown-linux-gnu' is no device of OpenCL"):
        backend.check_target(target)
