"""What becomes of each option, provider and name of onnxruntime's: honoured, without effect, or refused in one line."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from enum import EnumType
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from iris_classifier import flowers, iris_classifier
from onnx import numpy_helper
from small_models import adding, with_weight

import glow_mlir
from glow_mlir import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    InferenceSession,
    OrtValue,
    RunOptions,
    SessionOptions,
)
from glow_mlir.api.onnxruntime import messages
from glow_mlir.api.onnxruntime.refused_names import REFUSED
from glow_mlir.api.onnxruntime.session_options import LEFT_OUT
from glow_mlir.api.onnxruntime.settings import Effect, Settings
from glow_mlir.driver.pipelines import ESSENTIAL, OPTIMIZED
from glow_mlir.errors import GlowError, GlowWarning, InputError, ModelError, OptionError

onnxruntime: Any = import_module("onnxruntime")
"""It has annotations, but gaps in them."""

OWNERS: dict[str, tuple[Any, Any]] = {
    "glow_mlir": (glow_mlir, onnxruntime),
    **{
        name: (getattr(glow_mlir, name), getattr(onnxruntime, name))
        for name in (
            "InferenceSession",
            "SessionOptions",
            "RunOptions",
            "OrtValue",
            "IOBinding",
            "OrtDevice",
            "ModelMetadata",
            "NodeArg",
            "GraphOptimizationLevel",
            "ExecutionMode",
            "ExecutionOrder",
        )
    },
}
"""Owner → what it is here and there."""

NO_API = frozenset({"capi", "contextlib", "cuda_version", "import_capi_exception", "onnxruntime_validation"}) | {
    "package_name",
    "version",
    "backend",
    "datasets",
    "quantization",
    "tools",
    "transformers",
}
"""What lies in the module besides: modules, and what it tells itself."""


@pytest.mark.parametrize("owner", OWNERS)
def test_nothing_of_onnxruntime_is_missing_without_a_reason(owner: str) -> None:
    ours, theirs = OWNERS[owner]
    if isinstance(ours, EnumType):
        ours = next(iter(ours))
    public = {name for name in dir(theirs) if not name.startswith("_")} - (NO_API if owner == "glow_mlir" else set())
    refused = REFUSED.get(owner, {})
    fields: set[str] = set(getattr(ours, "__dataclass_fields__", ()))
    missing = {name for name in public if not hasattr(ours, name) and name not in fields}
    assert missing == set(refused)


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner in REFUSED for name in REFUSED[owner]])
def test_what_is_refused_says_why(owner: str, name: str) -> None:
    makers: dict[str, Any] = {
        "glow_mlir": lambda: glow_mlir,
        "InferenceSession": lambda: InferenceSession.__new__(InferenceSession),
        "IOBinding": lambda: glow_mlir.IOBinding.__new__(glow_mlir.IOBinding),
        "OrtValue": lambda: OrtValue(np.zeros(1)),
        "OrtDevice": glow_mlir.OrtDevice,
        "SessionOptions": SessionOptions,
        "RunOptions": RunOptions,
    }
    thing = makers[owner]()
    assert not hasattr(thing, name)
    with pytest.raises(GlowError) as caught:
        getattr(thing, name)
    assert str(caught.value) == f"{owner} has no '{name}' (hint: {REFUSED[owner][name]})"


def test_unknown_names_are_plain_errors() -> None:
    options: Any = SessionOptions()
    with pytest.raises(AttributeError, match="no attribute 'threads'"):
        options.threads = 2
    with pytest.raises(AttributeError, match="has no attribute 'Session'"):
        getattr(glow_mlir, "Session")


def test_defaults_are_those_of_onnxruntime() -> None:
    for kind in ("SessionOptions", "RunOptions"):
        ours, theirs = (getattr(engine, kind)() for engine in (glow_mlir, onnxruntime))
        settings: type[Settings] = getattr(glow_mlir, kind)
        for item in (item for item in settings.settings() if item.effect is not Effect.OURS):
            one, other = getattr(ours, item.name), getattr(theirs, item.name)
            assert getattr(one, "name", one) == getattr(other, "name", other), item.name


# ---- honoured --------------------------------------------------------------------------------------------------


def options(**values: Any) -> SessionOptions:
    made = SessionOptions()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def test_threads() -> None:
    model = adding((1000, 300))
    assert InferenceSession(model, options(intra_op_num_threads=2)).machine_entry.entry.threads == 2
    assert InferenceSession(model, SessionOptions()).machine_entry.entry.threads == 1
    with pytest.raises(OptionError, match="threads=3 conflicts"):
        InferenceSession(model, options(intra_op_num_threads=2), threads=3)


@pytest.mark.parametrize("level", GraphOptimizationLevel)
def test_levels_of_optimization_leave_passes_out(level: GraphOptimizationLevel, tmp_path: Path) -> None:
    path = tmp_path / "optimized.onnx"
    model = iris_classifier()
    model.graph.node.insert(0, onnx.helper.make_node("Identity", ["float_input"], ["same"]))
    model.graph.node[1].input[0] = "same"
    told = options(graph_optimization_level=level, optimized_model_filepath=path)
    session = InferenceSession(model, told)
    nodes = 4 if level is GraphOptimizationLevel.ORT_DISABLE_ALL else 3
    assert len(onnx.load(path).graph.node) == nodes
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"float_input": flowers()})
    np.testing.assert_allclose(session.run(None, {"float_input": flowers()})[1], expected[1], rtol=1e-6)


def test_levels_name_passes_of_the_graph() -> None:
    names = {spec.name for spec in OPTIMIZED.specs}
    assert set(LEFT_OUT) == set(GraphOptimizationLevel)
    everything = set(LEFT_OUT[GraphOptimizationLevel.ORT_DISABLE_ALL])
    assert everything == names - ESSENTIAL - {"remove-unused-storage"}
    assert all(set(left_out) <= everything for left_out in LEFT_OUT.values())


def test_dimensions_by_what_they_stand_for() -> None:
    model = onnx.load_model_from_string(adding(("N", 3)))
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    told = SessionOptions()
    told.add_free_dimension_override_by_denotation("DATA_BATCH", 4)
    assert InferenceSession(model, told).get_inputs()[0].shape == [4, 3]
    with pytest.raises(OptionError, match=r"'N' is 5 and 4"):
        InferenceSession(model, told, dimensions={"N": 5})
    told.add_free_dimension_override_by_denotation("DATA_CHANNEL", 4)
    with pytest.raises(OptionError, match=r"no input has a dimension 'DATA_CHANNEL' .hint: there are DATA_BATCH"):
        InferenceSession(model, told)


def test_constants_that_do_not_fit_are_refused() -> None:
    for name, array, expected in (
        ("v", np.zeros(3, np.float32), "no constant 'v' .hint: it has w"),
        ("w", np.zeros(4, np.float32), r"must be float32\[3\], not float32\[4\]"),
        ("w", np.zeros(3), r"not float64\[3\]"),
    ):
        told = SessionOptions()
        told.add_initializer(name, OrtValue(array))
        with pytest.raises(InputError, match=expected):
            InferenceSession(with_weight(1), told)


def test_constants_leave_the_model_as_it_is() -> None:
    model, told = with_weight(1), SessionOptions()
    told.add_external_initializers(["w"], [OrtValue(np.full(3, 5, np.float32))])
    x = {"x": np.zeros(3, np.float32)}
    assert InferenceSession(model, told).run(None, x)[0].tolist() == [5, 5, 5]
    assert InferenceSession(model).run(None, x)[0].tolist() == [1, 1, 1]


def test_faults_of_a_model_are_told_beside_constants_from_options(tmp_path: Path) -> None:
    model, told = with_weight(1), SessionOptions()
    model.graph.ClearField("name")
    onnx.save(model, tmp_path / "m.onnx")
    told.add_external_initializers(["w"], [OrtValue(np.full(3, 5, np.float32))])
    with pytest.warns(GlowWarning, match=f"^{tmp_path / 'm.onnx'}: a graph has no name; it is called 'graph'"):
        session = InferenceSession(tmp_path / "m.onnx", told)
    assert session.run(None, {"x": np.zeros(3, np.float32)})[0][0] == 5
    assert numpy_helper.to_array(session.model.graph.initializer[0])[0] == 5
    with pytest.raises(ModelError, match="a graph has no name"):
        InferenceSession(tmp_path / "m.onnx", told, strict=True)


def test_profiles_have_each_instruction_of_each_call(tmp_path: Path) -> None:
    told = options(enable_profiling=True, profile_file_prefix=str(tmp_path / "mine"))
    session = InferenceSession(iris_classifier(), told)
    start = session.get_profiling_start_time_ns()
    assert start > 0
    binding = session.io_binding()
    binding.bind_cpu_input("float_input", flowers())
    binding.bind_output("label")
    for _ in range(3):
        session.run(None, {"float_input": flowers()})
        session.run_with_iobinding(binding)
    path = Path(session.end_profiling())
    assert path.name.startswith("mine_")
    events = json.loads(path.read_text())
    steps = len(session.machine_entry.entry.steps)
    assert sum(event["name"] == "model_run" for event in events) == 6
    assert sum(event["cat"] == "Node" for event in events) == 6 * steps
    assert all(event["dur"] >= 0 for event in events)
    assert [json.loads(line.rstrip(",")) for line in path.read_text().splitlines()[1:-1]] == events
    assert (session.end_profiling(), session.get_profiling_start_time_ns()) == ("", 0)


def test_profiles_need_a_backend_that_keeps_times() -> None:
    with pytest.raises(OptionError, match="'interpreter' does not support profiling"):
        InferenceSession(adding(), options(enable_profiling=True), backend="interpreter")


def test_a_profile_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    told = options(enable_profiling=True, profile_file_prefix=str(tmp_path / "nowhere" / "p"))
    session = InferenceSession(adding(), told)
    session.run(None, {"x": np.ones((2, 3), np.float32)})
    with pytest.raises(OptionError, match="cannot be written"):
        session.end_profiling()
    (tmp_path / "nowhere").mkdir()
    events = json.loads(Path(session.end_profiling()).read_text())
    assert sum(event["name"] == "model_run" for event in events) == 1


def test_no_profile_takes_the_place_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sessions that end in the same millisecond."""
    monkeypatch.setattr("glow_mlir.api.onnxruntime.call_profile.time.time", lambda: 1e9)
    sessions = [
        InferenceSession(adding(), options(enable_profiling=True, profile_file_prefix=str(tmp_path / "p")))
        for _ in range(3)
    ]
    with ThreadPoolExecutor(3) as pool:
        names = set(pool.map(InferenceSession.end_profiling, sessions))
    assert {str(path) for path in tmp_path.glob("p_*.json")} == names
    assert len(names) == 3


def test_a_session_keeps_the_options_that_it_began_with() -> None:
    """The same object often serves for several sessions, with changes in between; so it does in onnxruntime."""
    told = options(intra_op_num_threads=1)
    session = InferenceSession(adding(), told)
    told.intra_op_num_threads = 2
    told.add_free_dimension_override_by_name("N", 7)
    session.get_session_options().intra_op_num_threads = 3
    assert session.get_session_options().intra_op_num_threads == 1
    for other in (copy.copy(session), pickle.loads(pickle.dumps(session))):
        assert (other.options, other.get_inputs()) == (session.options, session.get_inputs())


def test_copies_of_options_change_for_themselves() -> None:
    told = options(intra_op_num_threads=1)
    other = copy.copy(told)
    other.intra_op_num_threads = 2
    other.add_session_config_entry("session.inter_op.allow_spinning", "1")
    other.add_free_dimension_override_by_name("N", 7)
    other.add_provider("CPUExecutionProvider")
    assert (told.intra_op_num_threads, told.entries, told.dimensions, told.providers) == (1, {}, {}, [])


def test_messages_go_to_stderr_as_far_as_options_ask(capsys: pytest.CaptureFixture[str]) -> None:
    for level, expected in ((1, "mine: compiling for N=2"), (2, "")):
        session = InferenceSession(adding(("N", 3)), options(log_severity_level=level, logid="mine"), cache=False)
        session.run(None, {"x": np.ones((2, 3), np.float32)})
        written = capsys.readouterr()
        assert (expected in written.err) == bool(expected) or not expected
        assert written.out == ""
    assert "compiling" not in written.err


def test_messages_of_a_call_and_of_the_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_DEFAULT", [])
    session, told = InferenceSession(adding(("N", 3)), cache=False), RunOptions()
    told.log_severity_level = 0
    session.run(None, {"x": np.ones((2, 3), np.float32)}, told)
    assert "glow_mlir: compiling for N=2" in capsys.readouterr().err
    glow_mlir.set_default_logger_severity(0)
    InferenceSession(adding(("N", 3)), cache=False).run(None, {"x": np.ones((4, 3), np.float32)})
    assert "compiling for N=4" in capsys.readouterr().err
    with pytest.raises(OptionError, match="no severity"):
        glow_mlir.set_default_logger_severity(9)


def test_a_callback_takes_messages(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_DEFAULT", [])
    monkeypatch.setattr(messages, "_CALLBACK", [])
    taken, raised = list[Any](), list[Any]()
    monkeypatch.setattr(threading, "excepthook", raised.append)

    def take(*message: Any) -> None:
        taken.append(message)

    def fail(*message: Any) -> None:
        raise ZeroDivisionError

    glow_mlir.set_default_logger_callback(take, severity=0)
    session = InferenceSession(adding(("N", 3)), cache=False)
    session.run(None, {"x": np.ones((2, 3), np.float32)})
    assert (1, "glow_mlir", "glow_mlir", "", "compiling for N=2") in taken
    for _ in range(2):  # The second one compiles nothing.
        taken.clear()
        InferenceSession(adding())
        assert (1, "glow_mlir", "glow_mlir", "", "a session begins of a model in memory") in taken
    glow_mlir.set_default_logger_callback(fail, severity=0)
    InferenceSession(adding(("N", 3)), cache=False).run(None, {"x": np.ones((3, 3), np.float32)})
    assert raised
    assert capsys.readouterr().err == ""
    glow_mlir.set_default_logger_callback(None)
    wrong: Any = "not a function"
    for callback, severity in ((wrong, 0), (print, 5), (print, -1)):
        with pytest.raises(RuntimeError):
            glow_mlir.set_default_logger_callback(callback, severity)


# ---- refused ---------------------------------------------------------------------------------------------------

VALUES: tuple[tuple[str, Any, str], ...] = (
    ("execution_mode", 1, "makes no sense"),
    ("enable_profiling", "yes", "makes no sense"),
    ("optimized_model_filepath", 5, "makes no sense"),
    ("intra_op_num_threads", -1, "makes no sense"),
    ("intra_op_num_threads", "2", "makes no sense"),
    ("graph_optimization_level", 99, "makes no sense"),
    ("log_severity_level", 7, "makes no sense"),
    ("profile_file_prefix", 5, "makes no sense"),
)


@pytest.mark.parametrize(("name", "value", "expected"), VALUES)
def test_values_that_cannot_be_honoured_are_refused_where_they_are_set(name: str, value: Any, expected: str) -> None:
    with pytest.raises(OptionError, match=expected) as caught:
        setattr(SessionOptions(), name, value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("execution_mode", ExecutionMode.ORT_PARALLEL, "intra_op_num_threads"),
        ("execution_order", ExecutionOrder.PRIORITY_BASED, "little memory"),
        ("enable_mem_reuse", False, "share memory"),
    ],
)
def test_values_without_effect_are_told_of_and_kept(name: str, value: Any, expected: str) -> None:
    told = SessionOptions()
    with pytest.warns(GlowWarning, match=f"has no effect .hint: .*{expected}") as caught:
        setattr(told, name, value)
    assert (getattr(told, name), caught[0].filename) == (value, __file__)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [("session.set_denormal_as_zero", "1", "denormal numbers"), ("session.load_model_format", "ORT", "ONNX files")],
)
def test_keys_that_would_change_results_or_files_are_refused(key: str, value: str, expected: str) -> None:
    with pytest.raises(OptionError, match=expected):
        SessionOptions().add_session_config_entry(key, value)
    with pytest.raises(OptionError, match="does not have configuration with key: "):
        SessionOptions().get_session_config_entry(key)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("session.intra_op.allow_spinning", "0", "sleep"),
        ("session.disable_prepacking", "1", "packed when"),
        ("session.intra_op_thread_affinities", "1;2", "taskset"),
        ("session.no_such_key", "1", "there is no setting 'session.no_such_key' here"),
    ],
)
def test_keys_without_effect_are_told_of_and_kept(key: str, value: str, expected: str) -> None:
    told, call = SessionOptions(), RunOptions()
    with pytest.warns(GlowWarning, match=expected):
        told.add_session_config_entry(key, value)
    assert told.get_session_config_entry(key) == value
    with pytest.warns(GlowWarning, match="there is no setting"):
        call.add_run_config_entry(key, value)
    InferenceSession(adding(), told)


def test_options_that_are_none() -> None:
    theirs: Any = onnxruntime.SessionOptions()
    with pytest.raises(OptionError, match="sess_options cannot be of the type"):
        InferenceSession(adding(), theirs)


# ---- providers -------------------------------------------------------------------------------------------------


def test_providers_are_both_the_cpu() -> None:
    assert glow_mlir.get_available_providers() == ["GlowExecutionProvider", "CPUExecutionProvider"]
    session = InferenceSession(adding(), providers=["CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    session.set_providers(["GlowExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["GlowExecutionProvider", "CPUExecutionProvider"]
    session.disable_fallback()
    with pytest.raises(OptionError, match="no fallback provider"):
        session.enable_fallback()


def test_a_provider_that_is_not_here_is_told_of_and_passed_over() -> None:
    with pytest.warns(UserWarning, match="no provider 'CUDAExecutionProvider' here: the model runs on the CPU") as told:
        session = InferenceSession(
            adding(), providers=[("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"]
        )
    assert told[0].filename == __file__
    assert session.get_providers() == ["CPUExecutionProvider"]
    with pytest.warns(UserWarning, match="no provider 'CUDAExecutionProvider' here"):
        alone = InferenceSession(adding(), providers=["CUDAExecutionProvider"])
    assert alone.get_providers() == ["CPUExecutionProvider"]
    with pytest.raises(OptionError, match="Unknown Provider Type: NoExecutionProvider "):
        alone.set_providers(["NoExecutionProvider"])


def test_a_provider_that_is_named_twice_is_told_of() -> None:
    with pytest.warns(
        UserWarning, match="'GlowExecutionProvider' is listed twice .hint: the first options apply"
    ) as told:
        session = InferenceSession(
            adding(), providers=[("GlowExecutionProvider", {"threads": 2}), "GlowExecutionProvider"]
        )
    assert told[0].filename == __file__
    assert session.options.threads == 2


def test_options_of_our_provider_are_keywords() -> None:
    told = [("GlowExecutionProvider", {"threads": 2, "target": "scalar", "cache": "0"})]
    session = InferenceSession(adding((1000, 300)), providers=told)
    assert (session.options.threads, session.options.target) == (2, "scalar")
    assert session.get_provider_options()["GlowExecutionProvider"] == {"threads": "2", "target": "scalar", "cache": "0"}
    added = SessionOptions()
    added.add_provider("GlowExecutionProvider", {"accuracy": "strict"})
    assert added.has_providers()
    assert InferenceSession(adding(), added).options.accuracy == "strict"


WRONG_PROVIDERS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"providers": ["CUDAExecutionprovider"]}, "Unknown Provider Type: CUDAExecutionprovider "),
    ({"providers": ["CPUExecutionProvider", "Cpu"]}, "Unknown Provider Type: Cpu "),
    ({"providers": []}, "the list of providers is empty"),
    ({"providers": "CPUExecutionProvider"}, "is no list of providers"),
    ({"providers": [5]}, "5 is no provider"),
    ({"providers": ["CPUExecutionProvider"], "provider_options": []}, "0 provider_options for 1"),
    ({"provider_options": [{}]}, "provider_options need providers"),
    ({"providers": ["CPUExecutionProvider"], "provider_options": 3}, "provider_options=3 is no list"),
    ({"providers": ["CPUExecutionProvider"], "provider_options": ["a"]}, "is no provider"),
    ({"providers": [("CPUExecutionProvider", {})], "provider_options": [{}]}, "is no provider"),
    ({"providers": [("CPUExecutionProvider", {"a": 1})]}, "has no option 'a'"),
    ({"providers": [("GlowExecutionProvider", {"a": 1})]}, "has no option 'a' .hint: it has accuracy"),
    ({"providers": [("GlowExecutionProvider", {"threads": "x"})]}, "threads='x' is invalid"),
    ({"providers": [("GlowExecutionProvider", {"threads": 2})], "threads": 3}, "threads=3 conflicts"),
)


@pytest.mark.parametrize(("wrong", "expected"), WRONG_PROVIDERS)
def test_wrong_providers_are_refused_in_one_line(wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(OptionError, match=expected) as caught:
        InferenceSession(adding(), **wrong)
    assert "\n" not in str(caught.value)


def test_providers_do_not_change_their_options() -> None:
    with pytest.raises(OptionError, match="create another session"):
        InferenceSession(adding()).set_providers([("GlowExecutionProvider", {"threads": 2})])


# ---- calls beside the caller -----------------------------------------------------------------------------------


def test_errors_of_a_call_beside_are_a_text() -> None:
    session, done, told = InferenceSession(adding()), threading.Event(), list[Any]()

    def callback(*arguments: Any) -> None:
        told.append(arguments)
        done.set()

    session.run_async(None, {"x": np.zeros((5, 5), np.float32)}, callback, "mine")
    assert done.wait(30)
    ((results, data, error),) = told
    assert (results, data) == ([], "mine")
    assert error.startswith("input 'x' must be float32[2, 3], not float32[5, 5]")
    with pytest.raises(InputError, match="input 'x' is missing"):
        session.run_async(None, {}, callback, None)


def test_what_a_callback_raises_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    caught, done = list[Any](), threading.Event()

    def hook(arguments: Any) -> None:
        caught.append(arguments.exc_type)
        done.set()

    def callback(results: Any, data: Any, error: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(threading, "excepthook", hook)
    InferenceSession(adding()).run_async(None, {"x": np.zeros((2, 3), np.float32)}, callback)
    assert done.wait(30)
    assert caught == [ZeroDivisionError]


def test_arguments_of_another_type_are_refused() -> None:
    session, x = InferenceSession(adding()), {"x": np.zeros((2, 3), np.float32)}
    wrong: Any = {"terminate": True}
    with pytest.raises(InputError, match="run_options cannot be of the type 'dict'"):
        session.run(None, x, wrong)
    with pytest.raises(InputError, match="run_options cannot be of the type 'dict'"):
        session.run_async(None, x, print, None, wrong)
    for feed in (None, ["x"], 5):
        with pytest.raises(InputError, match="inputs cannot be of the type"):
            session.run_async(None, cast("Any", feed), print)
    with pytest.raises(InputError, match="values of the state cannot be of the type 'int'"):
        session.set_state(cast("Any", 5))
    with pytest.raises(InputError, match="5 is no list of outputs"):
        session.run(cast("Any", 5), x)
    with pytest.raises(InputError, match="a callback cannot be of the type 'NoneType'"):
        session.run_async(None, x, cast("Any", None))


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("add_external_initializers", (None, None), "'NoneType' is no list of constants"),
        ("add_external_initializers", ("w", "w"), "'str' is no list of constants"),
        ("add_external_initializers_from_files_in_memory", (["w"], [5], [3]), "the content of 'w' is a 'int'"),
        ("add_external_initializers_from_files_in_memory", (["w"], [b"1"], ["3"]), "and its length '3'"),
        ("add_provider", ("CPUExecutionProvider", 5), "cannot be of the type 'int'"),
        ("__setattr__", ("enable_profiling", np.ones(2)), "makes no sense"),
    ],
)
def test_what_methods_cannot_take_is_told_in_one_line(name: str, arguments: tuple[Any, ...], expected: str) -> None:
    with pytest.raises(GlowError, match=expected) as caught:
        getattr(SessionOptions(), name)(*arguments)
    assert "\n" not in str(caught.value)


def test_options_pickle() -> None:
    told = options(intra_op_num_threads=2, graph_optimization_level=GraphOptimizationLevel.ORT_ENABLE_BASIC)
    told.add_initializer("w", OrtValue(np.ones(3)))
    again = pickle.loads(pickle.dumps(told))
    assert (again.intra_op_num_threads, again.left_out) == (2, told.left_out)
    assert again.initializers["w"].numpy().tolist() == [1, 1, 1]
    assert repr(again).startswith("SessionOptions(intra_op_num_threads=2")
