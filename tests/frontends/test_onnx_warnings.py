"""Warnings of import: each is told once and with its file, and the strict refuse what they are of."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import integers, model_of, node, value, weight

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowWarning, ModelError, UnsupportedError

X, S = np.ones(3, np.float32), [np.ones(2, np.float32)]
SEQUENCE = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, (2,))
FIRST = helper.make_node("Constant", [], ["i"], value_int=0)


def hosted(*nodes: onnx.NodeProto, **fields: Any) -> onnx.ModelProto:
    """A model of a sequence, of which it gives the first, and of what nodes make of `x`."""
    first = [FIRST, node("SequenceAt", "s i", "first")]
    return model_of([*first, *nodes], [SEQUENCE, value("x", shape=("N",))], ["first", "y"], **fields)


def on_strings(*nodes: onnx.NodeProto, size: int | str = "N", **fields: Any) -> onnx.ModelProto:
    """A model that Python computes alone."""
    return model_of(list(nodes), [value("x", TensorProto.STRING, (size,))], opset=20, **fields)


def free(size: int) -> onnx.ModelProto:
    """A model of sequences whose input declares a size that is none."""
    return model_of(
        [node("SequenceInsert", "s x", "t"), node("SequenceLength", "t")], [SEQUENCE, value("x", shape=(size,))]
    )


def ran(model: onnx.ModelProto | Path, *calls: dict[str, Any], strict: bool = False) -> None:
    """Let a session answer some calls."""
    session = InferenceSession(model, cache=False, strict=strict, backend="interpreter")
    for call in calls:
        session.run(None, call)


LOWER = node("StringNormalizer", "x", "y", case_change_action="LOWER")
LIFTED = "initializer is not an input, as IR version 3 requires: "
TANH = node("ScaledTanh", "x", "y", "tanh", alpha=1.0, beta=1.0)

TOLD: dict[str, tuple[Callable[[], onnx.ModelProto], list[str]]] = {
    "an early operator": (lambda: hosted(TANH), ["node 'tanh': ScaledTanh: it is in no opset"]),
    "a part of another size": (
        lambda: other_size(hosted(node("Relu"))),
        ["output 'first' is declared with shape (9), but has shape (2,)"],
    ),
    "an initializer beside constants": (
        lambda: hosted(node("Add", "x w"), initializers=[weight("w", 1)], ir_version=3),
        [f"1 {LIFTED}'w'"],
    ),
    "a size that is none": (lambda: free(-5), ["input 'x' is declared with an extent of -5"]),
    "strings of a size that is none": (
        lambda: on_strings(LOWER, size=-5),
        ["input 'x' is declared with an extent of -5"],
    ),
    "strings of another size than Python gives": (
        lambda: other_size(on_strings(LOWER), TensorProto.STRING),
        ["output 'y' is declared with shape (9), but has shape (1,)"],
    ),
    "strings of another size than machine code gives": (
        lambda: other_size(on_strings(node("Identity"), size=1), TensorProto.STRING),
        ["output 'y' is declared with shape (9), but has shape (1,)"],
    ),
    "an initializer that Python reads": (
        lambda: on_strings(
            node("StringConcat", "x w"),
            initializers=[numpy_helper.from_array(np.array(["q"], object), "w")],
            ir_version=3,
        ),
        [f"1 {LIFTED}'w'"],
    ),
}


def other_size(model: onnx.ModelProto, kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
    model.graph.output[0].CopyFrom(value(model.graph.output[0].name, kind, (9,)))
    return model


@pytest.mark.parametrize("case", TOLD)
def test_models_in_parts_tell_once_and_with_their_file(case: str, tmp_path: Path) -> None:
    """Whatever sequences they are called with, and of whatever sizes."""
    make, expected = TOLD[case]
    model, file = make(), tmp_path / "model.onnx"
    onnx.save(model, file)
    given = {"x": X, "s": S} if len(model.graph.input) > 1 else {"x": np.array(["A"], object)}
    calls = [{name: item * times if name == "s" else item for name, item in given.items()} for times in (1, 2)]
    with pytest.warns(GlowWarning) as found:
        ran(file, *calls)
    assert [str(item.message).partition(";")[0] for item in found] == [f"{file}: {line}" for line in expected]
    with pytest.raises(ModelError) as refused:
        ran(file, given, strict=True)
    assert str(refused.value).startswith(f"{file}: {expected[0]} (hint: ")
    assert not refused.value.others


def test_errors_of_parts_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    for wrong, kind in ((node("Foo", "x", "y"), UnsupportedError), (node("Gather", "x i i", "y"), ModelError)):
        onnx.save(hosted(wrong), file)
        with pytest.raises(kind, match=f"^{file}: "):
            ran(file, {"x": X, "s": S})


def test_faults_of_a_model_as_a_whole_are_told_before_calls_of_any_size() -> None:
    swapped = [node("Neg", "a", "y", "late"), node("Relu", "x", "a", "early")]
    model = model_of(swapped, [value("x", shape=("N",))], initializers=[integers("w", 1)], ir_version=3)
    with pytest.warns(GlowWarning) as found:
        session = InferenceSession(model, cache=False, backend="interpreter")
    assert len(found) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", GlowWarning)
        for size in (2, 3):
            session.run(None, {"x": np.ones(size, np.float32)})
    with pytest.raises(ModelError, match="1 initializer is not an input"):
        InferenceSession(model, cache=False, strict=True)


def test_faults_of_one_kind_in_other_words_are_counted_apart() -> None:
    """The first is told, and of how many nodes that is true."""
    kinds = {"a": 3, "b": 3, "c": 9, "d": 7}
    given: dict[str, Any] = {"domain": "ai.onnx.ml", "targets": 1}
    nodes = [node("LinearRegressor", "x", name, coefficients=[1.0] * count, **given) for name, count in kinds.items()]
    model = model_of(nodes, [value("x", shape=(1, 2))], list(kinds))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    with pytest.warns(GlowWarning) as found:
        ran(model)
    (line,) = [str(item.message).partition(" (hint")[0] for item in found]
    expected = "3 coefficients for 1 times 2 features; the first 2 are taken"
    assert line == f"node 'a': LinearRegressor: {expected} (2 nodes, 2 more nodes have a fault of this kind)"
