"""Sessions of models with free dimensions that nobody has bounded: a second size waits for nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from beside_calls import at_work, settle
from checkout import ROOT
from models import bert_encoder
from onnx import TensorProto, helper, numpy_helper
from quantized_models import quantized_model

from glow_mlir import InferenceSession, SpecializationLimits
from glow_mlir.errors import OptionError
from glow_mlir.runtime.machine_code import MachineCode
from glow_mlir.runtime.specialization import Specialization

AT_ONCE = SpecializationLimits(threshold=1)

SPECIALISED = "specialised"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GLOW_CACHE_DIR", str(folder))
    return folder


def encoder() -> onnx.ModelProto:
    """Tokens and a mask of any batch and length."""
    return bert_encoder(layers=1, width=32, heads=2, length=100, vocabulary=50, is_free=True)


def tokens(batch: int, length: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(batch * length)
    return {"ids": generator.integers(0, 50, (batch, length)), "mask": np.ones((batch, length), np.int64)}


def images(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a free batch."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    del found.graph.value_info[:]
    for value in (*found.graph.input, *found.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    return found


def code_of(item: Specialization) -> tuple[bytes, ...]:
    """The object files of machine code."""
    assert isinstance(item.executable, MachineCode)
    return item.executable._code  # pyright: ignore[reportPrivateUsage]


def sizes_of(session: InferenceSession) -> list[Mapping[str, Any]]:
    return [item.sizes for item in session.specializations]


def test_code_for_a_range_serves_until_code_for_the_sizes_takes_over() -> None:
    """This is the same, byte by byte, and constant by constant, as what a call waits for."""
    session = InferenceSession(encoder(), limits=AT_ONCE)
    specialised = InferenceSession(encoder(), warm=SPECIALISED, cache=False)
    session.run(None, tokens(1, 7))
    settle()
    assert sizes_of(session) == [{"batch": (1, 64), "length": (1, 64)}, {"batch": 1, "length": 7}]
    compiled = session.specializations[0].compile_seconds
    assert compiled
    (found,), (wanted,) = (any_one.run(None, tokens(3, 20)) for any_one in (session, specialised))
    assert sizes_of(session)[-1] == {"batch": (1, 64), "length": (1, 64)}
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    settle()
    (found,) = session.run(None, tokens(3, 20))
    np.testing.assert_array_equal(found, wanted)
    assert sizes_of(session)[-1] == {"batch": 3, "length": 20}
    (one, two) = (any_one.specializations[-1] for any_one in (session, specialised))
    assert one.is_background
    assert not two.is_background
    assert code_of(one) == code_of(two)
    assert isinstance(one.executable, MachineCode)
    assert isinstance(two.executable, MachineCode)
    np.testing.assert_array_equal(one.executable.constants, two.executable.constants)


def test_a_later_session_starts_with_code_for_the_range(tmp_path: Path) -> None:
    """A size that nothing was compiled for runs without the compiler, and what there is for a size serves it."""
    path = tmp_path / "model.onnx"
    onnx.save(encoder(), path)
    InferenceSession(path).run(None, tokens(1, 7))
    session = InferenceSession(path)
    session.run(None, tokens(1, 7))
    settle()
    script = f"""
import sys
import numpy as np
from glow_mlir import InferenceSession

session = InferenceSession({str(path)!r})
for shape in ((1, 7), (2, 9)):
    session.run(None, {{name: np.ones(shape, np.int64) for name in ("ids", "mask")}})
assert [item.sizes for item in session.specializations] == [
    {{"batch": 1, "length": 7}}, {{"batch": (1, 64), "length": (1, 64)}}
], session.specializations
assert not any(item.compile_seconds for item in session.specializations)
assert not {{"onnx", "xdsl"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True, cwd=ROOT)


@pytest.mark.parametrize("network", ["residual", "mobile", "joined"])
def test_codes_have_the_same_bits(network: str) -> None:
    """Sums of products of codes are integers, whatever the code that adds them up."""
    model = images(quantized_model(network, "qdq-u8"))
    (shape,) = (tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in model.graph.input)
    given = np.random.default_rng(0).normal(size=(3, *shape[1:])).astype(np.float32)
    session = InferenceSession(model, cache=False)
    (name,) = (item.name for item in session.get_inputs())
    session.run(None, {name: given[:1]})
    settle()
    (found,) = session.run(None, {name: given})
    (wanted,) = InferenceSession(model, cache=False, warm=SPECIALISED).run(None, {name: given})
    np.testing.assert_array_equal(found, wanted)


def test_integers_have_the_same_bits() -> None:
    value = helper.make_tensor_value_info("x", TensorProto.INT32, ["rows", "width"])
    arrays = {"w": np.arange(1, 4, dtype=np.int32) * 1_000_003, "axis": np.array([1])}
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("ReduceSum", ["square", "axis"], ["sum"], keepdims=1),
        helper.make_node("Mul", ["sum", "w"], ["y"]),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.INT32, None)
    model = helper.make_model(
        helper.make_graph(
            nodes, "squares", [value], [y], [numpy_helper.from_array(array, name) for name, array in arrays.items()]
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    session = InferenceSession(model, cache=False)
    session.run(None, {"x": np.ones((1, 5), np.int32)})
    settle()
    given = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, (37, 61)).astype(np.int32)
    (found,) = session.run(None, {"x": given})
    with np.errstate(over="ignore"):
        wanted = np.sum(given * given, axis=1, keepdims=True, dtype=np.int32) * np.arange(1, 4, dtype=np.int32)
        np.testing.assert_array_equal(found, wanted * np.int32(1_000_003))
    assert sizes_of(session)[-1] == {"rows": (1, 64), "width": (1, 64)}


def test_images_may_have_any_size() -> None:
    """Windows without padding say how small they are at least, and smaller ones have code of their own."""
    generator = np.random.default_rng(0)
    arrays = {"w": generator.normal(size=(8, 3, 5, 5)), "depthwise": generator.normal(size=(8, 1, 3, 3))}
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["stem"], strides=[2, 2]),
        helper.make_node("Relu", ["stem"], ["positive"]),
        helper.make_node("MaxPool", ["positive"], ["pool"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        helper.make_node("Conv", ["pool", "depthwise"], ["block"], group=8, pads=[1] * 4),
        helper.make_node("Add", ["pool", "block"], ["sum"]),
        helper.make_node("GlobalAveragePool", ["sum"], ["y"]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, "height", "width"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "images", [image], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session, specialised = (InferenceSession(model, cache=False, warm=warm) for warm in (None, SPECIALISED))
    range_ = {"batch": (1, 64), "height": (16, 128), "width": (32, 256)}
    for shape, wanted in (
        ((1, 24, 33), {"batch": 1, "height": 24, "width": 33}),
        ((2, 17, 40), range_),
        ((1, 128, 256), range_),
        ((5, 31, 32), range_),
        ((1, 5, 5), {"batch": 1, "height": 5, "width": 5}),
    ):
        given = generator.normal(size=(shape[0], 3, *shape[1:])).astype(np.float32)
        (found,), (expected,) = (any_one.run(None, {"image": given}) for any_one in (session, specialised))
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
        assert sizes_of(session)[-1] == wanted
        settle()


def test_sizes_that_meet_only_by_chance_stay_what_they_are() -> None:
    """Rows of two inputs may be broadcast: nothing is compiled for them that would refuse it."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [axis, "W"]) for name, axis in ("xN", "zM")]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Add", ["x", "z"], ["y"])], "sum", values, [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = InferenceSession(model, cache=False)
    generator = np.random.default_rng(0)
    for one, two, width in ((3, 3, 4), (1, 3, 4), (3, 1, 5), (3, 3, 6)):
        x, z = (generator.normal(size=(rows, width)).astype(np.float32) for rows in (one, two))
        (found,) = session.run(None, {"x": x, "z": z})
        np.testing.assert_array_equal(found, x + z)
        settle()
    assert {"N": 3, "M": 3, "W": (4, 64)} in sizes_of(session)


@pytest.mark.parametrize("options", [{"warm": SPECIALISED}, {"backend": "interpreter"}, {"profile": True}])
def test_nothing_is_compiled_beside_the_calls_where_it_is_not_wanted(options: dict[str, Any]) -> None:
    session = InferenceSession(encoder(), cache=False, **options)
    for length in (3, 4):
        session.run(None, tokens(1, length))
        assert not at_work()
    assert sizes_of(session) == [{"batch": 1, "length": 3}, {"batch": 1, "length": 4}]


def test_what_else_a_session_may_be_is_one_line() -> None:
    with pytest.raises(OptionError, match=r"^no warm 'cold' \(hint: there are specialised\)"):
        InferenceSession(encoder(), warm="cold")


_BEGUN = """
import os, sys, time
import numpy as np
sys.path.insert(0, {support!r})
from test_any_size import encoder, tokens
from beside_calls import at_work, settle
from glow_mlir import InferenceSession

session = InferenceSession(encoder())
session.run(None, tokens(1, 7))
assert at_work()
time.sleep({pause})
"""
"""A process in which something is compiled beside the calls, for so long."""


def begun(pause: float, rest: str) -> list[str]:
    text = _BEGUN.format(support=str(ROOT / "tests" / "support"), pause=pause)
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n{text}{rest}"]


@pytest.mark.parametrize("pause", [0.0, 0.1, 0.3, 0.6])
def test_a_process_that_ends_does_not_wait_for_what_is_compiled(pause: float) -> None:
    rest = "print(time.time(), flush=True)"
    done = subprocess.run(begun(pause, rest), timeout=120, capture_output=True, text=True, check=True, cwd=ROOT)
    assert not done.stderr
    assert time.time() - float(done.stdout) < 2


@pytest.mark.parametrize("pause", [0.0, 0.3, 0.6])
def test_a_process_that_is_killed_leaves_a_cache_that_others_use(pause: float, cache: Path) -> None:
    killed = subprocess.run(begun(pause, "os.kill(os.getpid(), 9)"), timeout=120, check=False, cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    session = InferenceSession(encoder())
    session.run(None, tokens(1, 7))
    assert not session.specializations[0].compile_seconds
    settle()
    session.run(None, tokens(2, 9))
    assert sizes_of(session)[-1] == {"batch": (1, 64), "length": (1, 64)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_a_child_has_what_was_compiled_and_goes_on_without_the_rest(pause: float) -> None:
    rest = """
child = os.fork()
if child == 0:
    for length in (7, 9, 9):
        session.run(None, tokens(1, length))
    settle()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
settle()
session.run(None, tokens(2, 9))
assert session.specializations[-1].sizes == {"batch": (1, 64), "length": (1, 64)}
"""
    done = subprocess.run(begun(pause, rest), timeout=120, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def single(kind: str, shapes: tuple[list[int | str], list[int | str] | None], **attributes: Any) -> bytes:
    """A model of one operator."""
    node = helper.make_node(kind, ["x"], ["y"], **attributes)
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip("xy", shapes, strict=True)
    )
    graph = helper.make_graph([node], "single", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10).SerializeToString()


def test_outputs_of_code_for_a_range_are_arrays_of_their_own() -> None:
    session = InferenceSession(single("Transpose", (["N", 24], [24, "N"])), limits=SpecializationLimits(threshold=99))
    session.run(None, {"x": np.ones((3, 24), np.float32)})
    settle()
    for size in (7, 15, 40, 63):
        (first,) = session.run(None, {"x": np.full((size, 24), 1, np.float32)})
        (second,) = session.run(None, {"x": np.full((size, 24), 2, np.float32)})
        assert first.flags.c_contiguous
        assert not np.shares_memory(first, second)
        np.testing.assert_array_equal(first, np.ones((24, size), np.float32))
    assert session.specializations[-1].is_range


def test_axes_that_may_have_size_one_keep_the_rank_that_they_have() -> None:
    """Squeeze without axes leaves out those that have size one in a call."""
    session = InferenceSession(single("Squeeze", (["N", 1, 3], None)))
    for size in (1, 2, 3, 1, 5):
        found = session.run(None, {"x": np.ones((size, 1, 3), np.float32)})[0]
        assert found.shape == ((3,) if size == 1 else (size, 3))
        settle()


FORKS = """
    import gc, os, sys, time
    import numpy as np
    from glow_mlir import InferenceSession
    session = InferenceSession(sys.argv[1])
    session.run(None, {"x": np.ones((3, 24), np.float32)})
    for trial in range(6 if sys.argv[2:] else 0):
        time.sleep(0.03)
        child = os.fork()
        if not child:
            collects = gc.isenabled()
            session.run(None, {"x": np.ones((5 + trial, 24), np.float32)})
            os._exit(not collects)
        assert not os.waitpid(child, 0)[1]
    os._exit(0)
"""


def test_a_fork_waits_for_imports_beside_the_calls(tmp_path: Path) -> None:
    """A child would wait for the lock of a module for ever, that a thread which it does not have holds."""
    path = tmp_path / "model.onnx"
    path.write_bytes(single("Softmax", (["N", 24], ["N", 24])))
    for arguments in ([], ["forks"]):
        command = [sys.executable, "-c", textwrap.dedent(FORKS), str(path), *arguments]
        subprocess.run(command, check=True, timeout=100)
