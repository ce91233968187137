"""Inputs without a rank: a model is compiled for those of calls, or for those that options say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import model_of, node, refusal, value

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import GlowError, InputError, OptionError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.tools.glow_run import main as glow_run


def unranked(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    """A model with one input, of any rank."""
    return model_of(nodes or [node("Softmax", axis=-1)], [value("x", shape=None)])


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_a_session_takes_any_rank(backend: str) -> None:
    session = InferenceSession(unranked(node("Exp")), backend=backend, cache=False, warm="specialised")
    assert session.get_inputs()[0].shape == [...]
    assert str(session).startswith("<InferenceSession main(x: float32[...])")
    for shape in ((2, 3), (4,), (), (1, 0, 2), (2, 3)):
        given = np.full(shape, 0.5, np.float32)
        (result,) = session.run(None, {"x": given})
        np.testing.assert_allclose(result, np.exp(given), rtol=1e-6)
    assert [dict(item.sizes) for item in session.specializations] == [
        {"x.rank": 1, "x.0": 4},
        {"x.rank": 0},
        {"x.rank": 3, "x.0": 1, "x.1": 0, "x.2": 2},
        {"x.rank": 2, "x.0": 2, "x.1": 3},
    ]


def test_a_later_session_finds_what_was_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "model.onnx"
    onnx.save(unranked(), path)
    for is_new in (True, False):
        session = InferenceSession(path)
        (result,) = session.run(None, {"x": np.zeros((1, 4), np.float32)})
        np.testing.assert_array_equal(result, [[0.25] * 4])
        assert bool(session.specializations[0].compile_seconds) is is_new


@pytest.mark.parametrize(
    ("dimensions", "shape"),
    [
        ({"x.0": 2, "x.1": 3}, [2, 3]),
        ({"x.rank": 0}, []),
        ({"x.rank": 2, "x.1": 3}, [None, 3]),
        ({"x.0": (1, 8), "x.1": 3}, [None, 3]),
    ],
)
def test_options_say_the_rank(dimensions: dict[str, Any], shape: list[Any]) -> None:
    session = InferenceSession(unranked(node("Exp")), dimensions=dimensions, cache=False)
    assert session.get_inputs()[0].shape == shape
    given = np.full([size if isinstance(size, int) else 2 for size in shape], 0.5, np.float32)
    (result,) = session.run(None, {"x": given})
    np.testing.assert_allclose(result, np.exp(given), rtol=1e-6)
    with pytest.raises(InputError, match="input 'x' must be"):
        session.run(None, {"x": np.zeros((1, 1, 1), np.float32)})


def test_a_module_is_imported_for_one_rank() -> None:
    module = import_model(unranked(node("Exp")), {"x.0": 2})
    np.testing.assert_allclose(run_function(module, {"x": np.zeros(2, np.float32)})["y"], [1, 1])
    told = "1 dimension has no size: 'x.rank' of input 'x' (hint: bind it, or the sizes of all axes, for example x.0=1"
    assert told in refusal(unranked(), UnsupportedError)


@pytest.mark.parametrize(
    ("dimensions", "expected"),
    [
        ({"x.rank": -1}, "input 'x' cannot have -1 axes"),
        ({"x.rank": 99}, "input 'x' cannot have 99 axes"),
        ({"x.rank": (1, 2)}, "input 'x' cannot have (1, 2) axes"),
        ({"x.1": 3}, "the model has no free dimension 'x.1'"),
        ({"x.rank": 1, "x.1": 3}, "the model has no free dimension 'x.1'"),
    ],
)
def test_what_is_no_rank_is_refused(dimensions: dict[str, Any], expected: str) -> None:
    assert expected in refusal(unranked(), OptionError, dimensions=dimensions)
    with pytest.raises(GlowError) as caught:
        InferenceSession(unranked(), dimensions=dimensions, cache=False)
    assert expected in str(caught.value)


def test_a_rank_that_a_model_says_is_none_to_give() -> None:
    model = model_of([node("Exp")], [value("x", shape=(None, None))])
    assert "the model has no free dimension 'x.rank'" in refusal(model, OptionError, dimensions={"x.rank": 2})


def test_shapes_of_inputs_that_nodes_do_not_take_are_told_at_the_call() -> None:
    session = InferenceSession(unranked(node("Transpose", perm=[1, 0])), cache=False)
    with pytest.raises(GlowError, match="Transpose"):
        session.run(None, {"x": np.zeros(3, np.float32)})
    assert session.run(None, {"x": np.zeros((3, 1), np.float32)})[0].shape == (1, 3)


def test_tools_take_the_rank_of_a_file_or_of_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, array = str(tmp_path / "model.onnx"), str(tmp_path / "x.npy")
    onnx.save(unranked(), model)
    np.save(array, np.zeros((2, 3), np.float32))
    assert glow_run([model, "--input", array, "--check", "interpreter", "--no-cache"]) == 0
    assert glow_run([model, "--bind", "x.0=2", "--bind", "x.1=3", "--check", "interpreter", "--no-cache"]) == 0
    assert glow_run([model, "--input", array, "--dump-phases", str(tmp_path / "phases")]) == 0
    capsys.readouterr()
    assert glow_run([model, "--no-cache"]) == 1
    assert "input 'x' has unknown rank (hint: --bind x.0=SIZE" in capsys.readouterr().err
