"""Sessions know entries, arrays by name and state, and nothing of onnxruntime's interface, a facade over them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from checkout import run_python
from small_models import adding, counter, two_inputs

from glow_mlir import InferenceSession
from glow_mlir.api.model_session import ModelSession
from glow_mlir.errors import InputError, OptionError, UnsupportedError

ONES = np.ones(4, np.float32)


@pytest.fixture
def counting(tmp_path: Path) -> ModelSession:
    """A session of a model whose state is the sum of its inputs."""
    path = tmp_path / "counter.mlir"
    path.write_text(counter(), encoding="utf-8")
    return ModelSession.of(path, cache=False)


def test_outputs_come_by_name() -> None:
    session = ModelSession.of(two_inputs(), cache=False)
    found = session.run({"a": ONES * 3, "b": ONES})
    assert list(found) == [output.name for output in session.first.outputs]
    np.testing.assert_array_equal(found["sum"], ONES * 4)
    np.testing.assert_array_equal(found["difference"], ONES * 2)


def test_arguments_have_names_types_and_shapes() -> None:
    session = ModelSession.of(adding(["N", None]), cache=False)
    ((x,), (y,)) = session.first.inputs, session.first.outputs
    assert (x.name, x.dtype, x.shape) == ("x", "float32", ("N", "x.1"))
    assert y.name == "y"
    assert repr(session) == f"<ModelSession {session.first}>"


def test_entries_share_state(counting: ModelSession) -> None:
    assert counting.entries == ["main"]
    assert counting.entry("main") is counting.entry() is counting.first
    for count in (1, 2):
        np.testing.assert_array_equal(counting.run({"x": ONES}, entry="main")["y"], ONES * count)
    np.testing.assert_array_equal(counting.get_state()["s"], ONES * 2)
    counting.set_state({"s": ONES * 7})
    np.testing.assert_array_equal(counting.run({"x": ONES})["y"], ONES * 8)
    counting.reset_state()
    np.testing.assert_array_equal(counting.get_state()["s"], ONES * 0)


def test_mistakes_are_told_in_one_line(counting: ModelSession) -> None:
    with pytest.raises(InputError, match="input 'x' is missing"):
        counting.run({})
    with pytest.raises(InputError, match="there is no entry 'train'"):
        counting.run({"x": ONES}, entry="train")
    with pytest.raises(InputError, match="state 's' is not an array"):
        counting.set_state({"s": [[1.0], 2.0]})
    with pytest.raises(OptionError, match="a session has no keyword 'providers'"):
        ModelSession.of(adding(), providers=["CPUExecutionProvider"])
    with pytest.raises(OptionError, match="threads=-1"):
        ModelSession.of(adding(), threads=-1)
    with pytest.raises(OptionError, match="cache cannot be of the type 'str'"):
        ModelSession.of(adding(), cache="no")


def test_keywords_are_those_of_the_facade() -> None:
    session = ModelSession.of(adding(["N", 3]), cache=False, dimensions={"N": 2}, optimize="size")
    assert not session.is_deferred
    assert (
        session.options == InferenceSession(adding(["N", 3]), cache=False, dimensions={"N": 2}, optimize="size").options
    )
    with pytest.raises(UnsupportedError, match="N"):
        ModelSession.of(adding(["N", 3]), cache=False).require_sizes()


def test_facade_has_the_session(counting: ModelSession) -> None:
    facade = InferenceSession(two_inputs(), cache=False)
    assert isinstance(facade.compiled, ModelSession)
    assert facade.compiled.first is facade.session_entry()
    assert facade.options is facade.compiled.options
    assert facade.machine_code is facade.compiled.machine_code


def test_sessions_load_nothing_of_the_facade() -> None:
    code = "import sys, glow_mlir.api.model_session\nprint(*(name for name in sys.modules if 'onnxruntime' in name))"
    assert not run_python(code).split()
