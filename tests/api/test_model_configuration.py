"""Options that a model carries in its notes, as `ORT_LOAD_CONFIG_FROM_MODEL` asks for them in onnxruntime."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from small_models import adding

from glow_mlir import GraphOptimizationLevel, InferenceSession, SessionOptions
from glow_mlir.errors import GlowWarning, ModelError, OptionError

CONFIGURATION = '{"session_options": {"intra_op_num_threads": 2, "graph_optimization_level": 1, "execution_mode": 0}}'


def carrying(text: str) -> onnx.ModelProto:
    model = onnx.load_model_from_string(adding())
    onnx.helper.set_model_props(model, {"ort_config": text})
    return model


def test_options_of_the_model_count_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORT_LOAD_CONFIG_FROM_MODEL", raising=False)
    model = carrying(CONFIGURATION)
    assert InferenceSession(model).get_session_options().intra_op_num_threads == 0
    found = InferenceSession(model, read_config_from_model=1)
    assert found.get_session_options().intra_op_num_threads == found.options.threads == 2
    assert found.get_session_options().graph_optimization_level is GraphOptimizationLevel.ORT_ENABLE_BASIC
    own = SessionOptions()
    own.intra_op_num_threads = 1
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    assert InferenceSession(model, own).options.threads == 1
    assert InferenceSession(model).options.threads == 2
    assert InferenceSession(model, read_config_from_model=False).get_session_options().intra_op_num_threads == 0
    assert InferenceSession(adding()).get_session_options().given == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"session_options": 3}', "[" * 100_000])
def test_a_note_that_is_no_configuration_is_one_line(text: str) -> None:
    with pytest.raises(ModelError, match=r"^its note 'ort_config' is no configuration \(hint: "):
        InferenceSession(carrying(text), read_config_from_model=True)


@pytest.mark.parametrize("value", ['"two"', "-1", "1.5", "null", "[]"])
def test_an_option_that_makes_no_sense_is_one_line(value: str) -> None:
    text = f'{{"session_options": {{"intra_op_num_threads": {value}}}}}'
    with pytest.raises(ModelError, match=r"says intra_op_num_threads=.*, which is invalid"):
        InferenceSession(carrying(text), read_config_from_model=True)
    with pytest.raises(ModelError, match="says execution_mode="):
        InferenceSession(carrying(text.replace("intra_op_num_threads", "execution_mode")), read_config_from_model=True)


def test_an_unknown_option_is_told_of() -> None:
    with pytest.warns(GlowWarning, match="unknown option 'speed'"):
        InferenceSession(carrying('{"session_options": {"speed": 9}}'), read_config_from_model=True)


def test_the_keyword_is_a_truth_value() -> None:
    wrong: Any = "yes"
    with pytest.raises(OptionError, match="read_config_from_model cannot be of the type 'str'"):
        InferenceSession(adding(), read_config_from_model=wrong)
