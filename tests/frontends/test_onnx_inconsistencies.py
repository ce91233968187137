"""What a model says wrongly, and runs in spite of: a warning as in onnxruntime, an error where a user is strict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import declared, model_of, node, refusal, value, weight

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.api.onnxruntime.session_options import SessionOptions
from glow_mlir.errors import GlowWarning, ModelError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.tools.glow_import import main as glow_import


def branching(shape: Sequence[int | str]) -> onnx.ModelProto:
    """A model with branches, of which one says of what shape its result is."""
    branches = {
        "then_branch": helper.make_graph([node("Neg", "x", "n")], "then", [], [value("n", shape=shape)]),
        "else_branch": helper.make_graph([node("Abs", "x", "e")], "else", [], [value("e", shape=None)]),
    }
    inputs = [value("x"), value("flag", TensorProto.BOOL, ())]
    return model_of([node("If", "flag", "y", "if", **branches)], inputs)


RELU = node("Relu", name="act")
CHAIN = [node("Relu", "x", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")]
UNLISTED = model_of([node("Add", "x w")], initializers=[weight("w", 1, 2)], ir_version=3, opset=7)
DOUBTFUL: dict[str, tuple[onnx.ModelProto, str]] = {
    "output of another size": (
        declared([RELU], value("y", shape=(3,))),
        "output 'y' is declared with shape (3), but has shape (2,); the result of its node is used (hint: ",
    ),
    "output of another rank": (
        declared([RELU], value("y", shape=("N", 2))),
        "output 'y' is declared with shape (?, 2), but has shape (2,); the result of its node is used (hint: ",
    ),
    "value of another size": (
        declared(CHAIN, value("y"), value("a", shape=(5,))),
        "value 'a' is declared with shape (5), but has shape (2,); the result of its node is used (hint: ",
    ),
    "values of other sizes": (
        declared(CHAIN, value("y"), value("a", shape=(5,)), value("b", shape=(7,))),
        "value 'a' is declared with shape (5), but has shape (2,); the result of its node is used (1 more are ",
    ),
    "result of a branch": (
        branching((3,)),
        "output 'n' is declared with shape (3), but has shape (2,); the result of its node is used (hint: ",
    ),
    "initializer that an old model does not list": (
        UNLISTED,
        "1 initializer is not an input, as IR version 3 requires: 'w'; it is treated as a constant (hint: ",
    ),
    "output of a negative extent": (
        declared([RELU], value("y", shape=(-5,))),
        "output 'y' is declared with an extent of -5; it is treated as free",
    ),
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_a_doubtful_model_runs_with_a_warning_and_is_refused_by_the_strict(case: str, tmp_path: Path) -> None:
    model, expected = DOUBTFUL[case]
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.warns(GlowWarning) as told:
        module = import_model(tmp_path / "model.onnx")
    (line,) = [str(item.message) for item in told]
    assert line.startswith(f"{tmp_path / 'model.onnx'}: ")
    assert expected in line
    assert told[0].filename == __file__
    inputs = {"x": np.array([1, -2], np.float32)} | ({"flag": np.array(False)} if "branch" in case else {})
    wanted = {"result of a branch": [1, 2], "initializer that an old model does not list": [2, 0]}
    np.testing.assert_array_equal(run_function(module, inputs)["y"], wanted.get(case, [1, 0]))
    reason, _, hint = refusal(model, ModelError, strict=True).partition(" (hint: ")
    assert expected.partition(";")[0] in reason
    assert "; with strict=False " in hint


def test_minus_one_is_a_free_dimension() -> None:
    """Many files mean that by it; the strict hear that the standard does not."""
    model = model_of([RELU], [value("x", shape=(-1,))], [])
    model.graph.output.append(value("y", shape=(-1,)))
    session = InferenceSession(model, cache=False)
    assert session.get_inputs()[0].shape == [None]
    assert session.run(None, {"x": np.ones(3, np.float32)})[0].shape == (3,)
    assert "input 'x' is declared with an extent of -1" in refusal(
        model, ModelError, dimensions={"x.0": 2}, strict=True
    )


@pytest.mark.parametrize("name", ["?", "None", "unk", "unknown", "*", " ", "-1", "NULL"])
def test_names_that_say_unknown_are_no_names(name: str) -> None:
    """
    Exporters write them for any size that they do not know, and onnxruntime holds no two of them to be equal.

    A session says the word, as onnxruntime does.
    """
    model = model_of([node("MatMul", "x w")], [value(operand, shape=(name, name)) for operand in "xw"])
    with pytest.warns(GlowWarning) as told:
        session = InferenceSession(model, cache=False)
    assert [given.shape for given in session.get_inputs()] == [[name, name], [name, name]]
    given = {"x": np.ones((2, 3), np.float32), "w": np.ones((3, 4), np.float32)}
    expected = f"4 dimensions of inputs are called '{name}'"
    assert session.run(None, given)[0].shape == (2, 4)
    (line,) = [str(item.message) for item in told]
    assert line.startswith(f"{expected}; they are treated as independent (hint: ")
    assert expected in refusal(model, ModelError, dimensions={f"{x}.{n}": 2 for x in "xw" for n in (0, 1)}, strict=True)


@pytest.mark.parametrize(("bounds", "is_told"), [((1, 8), False), ((4, 8), True), (3, False), (4, True)])
def test_sizes_that_a_user_chose_count_too(bounds: int | tuple[int, int], is_told: bool) -> None:
    model = model_of([RELU], [value("x", shape=("N",))], [])
    model.graph.output.append(value("y", shape=(3,)))
    if is_told:
        with pytest.warns(GlowWarning, match="'y' is declared with shape \\(3\\), but has shape \\("):
            import_model(model, {"N": bounds})
    else:
        import_model(model, {"N": bounds})


def test_each_call_of_a_strict_session_refuses_wrong_shapes_that_it_computes_in_python() -> None:
    strings = onnx.TensorProto.STRING
    split = onnx.helper.make_node("StringSplit", ["x"], ["y", "n"], delimiter=",")
    model = model_of([split], [value("x", strings, (2,))], [])
    model.graph.output.append(value("y", strings, (2, 3)))
    session = InferenceSession(model, cache=False, strict=True)
    for _ in range(2):
        with pytest.raises(ModelError, match="'y' is declared with shape \\(2, 3\\), but has shape \\(2, 2\\)"):
            session.run(None, {"x": np.array(["a,b", "c"], object)})
    (found,) = session.run(None, {"x": np.array(["a,b,c", "d"], object)})
    assert found.tolist() == [["a", "b", "c"], ["d", "", ""]]


def test_outputs_are_as_large_as_their_nodes_make_them() -> None:
    model = declared([RELU], value("y", shape=(3,)))
    with pytest.warns(GlowWarning, match="'y' is declared with shape"):
        session = InferenceSession(model, cache=False)
    assert session.run(None, {"x": np.ones(2, np.float32)})[0].shape == (2,)
    settings = SessionOptions()
    settings.add_session_config_entry("session.strict_shape_type_inference", "1")
    for given, strict in ((None, True), (settings, False)):
        with pytest.raises(ModelError, match="'y' is declared with shape"):
            InferenceSession(model, given, strict=strict)


def test_messages_of_a_session_take_the_place_of_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    model = declared([RELU], value("y", shape=(3,)))
    for level, count in ((2, 1), (3, 0)):
        settings = SessionOptions()
        settings.log_severity_level = level
        InferenceSession(model, settings, cache=False)
        assert capsys.readouterr().err.count("warning: output 'y' is declared") == count


def test_tools_warn_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "model.onnx", str(tmp_path / "model.mlir")
    onnx.save(declared([RELU], value("y", shape=(3,))), path)
    assert glow_import([str(path), "-o", out]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path}: warning: output 'y' is declared with shape (3), but has shape (2,)")
    assert glow_import([str(path), "-o", out, "--strict"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path}: error: output 'y' is declared with shape (3), but has shape (2,)")


def test_initializers_of_all_old_versions_are_lifted() -> None:
    """Also sparse ones, and in graphs inside of nodes."""
    for version, opset in ((1, 0), (2, 0), (3, 7)):
        model = model_of([node("Add", "x w", axis=0, broadcast=0) if version < 3 else node("Add", "x w")])
        model.ir_version = version
        model.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
        del model.opset_import[:]
        if opset:
            model.opset_import.append(helper.make_opsetid("", opset))
        with pytest.warns(GlowWarning, match=f"1 initializer is not an input, as IR version {version} requires"):
            module = import_model(model)
        np.testing.assert_array_equal(run_function(module, {"x": np.zeros(2, np.float32)})["y"], [1, 1])
