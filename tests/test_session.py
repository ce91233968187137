"""`InferenceSession`: what it accepts, what it refuses, and that artifacts from the cache are the right ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from garbage import collect_garbage
from onnx import TensorProto, helper
from small_models import counter, with_weight

from glow_mlir.api.model_compiler import ModelCompiler
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.api.session_entry import as_typed
from glow_mlir.backends.interface import get_backend, runnable_targets
from glow_mlir.errors import InputError, ModelError, OptionError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.text import write_module
from glow_mlir.runtime import host
from glow_mlir.runtime.cache import ArtifactCache
from glow_mlir.runtime.cores import usable_cores
from glow_mlir.runtime.identity import ContentIndex

BACKENDS = pytest.mark.parametrize("backend", ["cpu", "interpreter"])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactCache:
    """A cache of the test's own."""
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
    return ArtifactCache()


def adding(shape: tuple[int, ...] = (2, 3), weight: float | Sequence[float] = 1.0) -> onnx.ModelProto:
    """y = x + w."""
    return with_weight(weight, shape)


def result(session: InferenceSession, x: Any) -> np.ndarray:
    (y,) = session.run(None, {"x": x})
    return y


def test_second_session_comes_from_the_cache() -> None:
    x = np.ones((2, 3), np.float32)
    first, second = InferenceSession(adding()), InferenceSession(adding())
    assert first.compile_seconds
    assert not second.compile_seconds
    np.testing.assert_array_equal(result(first, x), result(second, x))


@pytest.mark.parametrize("name", ["code.0.o", "constants.bin"])
def test_damaged_artifact_is_compiled_again(cache: ArtifactCache, name: str) -> None:
    model = adding(weight=[1, 2, 3])
    InferenceSession(model)
    (folder,) = cache.directory.iterdir()
    file = folder / name
    file.write_bytes(bytes(file.stat().st_size))
    again = InferenceSession(model)
    assert again.compile_seconds
    assert result(again, np.ones((2, 3), np.float32)).tolist() == [[2, 3, 4], [2, 3, 4]]


def test_same_model_beside_other_weights_is_another_model(tmp_path: Path) -> None:
    results: list[float] = []
    for weight in (1.0, 5.0):
        folder = tmp_path / str(weight)
        folder.mkdir()
        path = folder / "m.onnx"
        onnx.save(adding(weight=weight), path, save_as_external_data=True, location="w.bin", size_threshold=0)
        os.utime(folder / "w.bin", ns=(5, 5))
        results.append(float(result(InferenceSession(path), np.zeros((2, 3), np.float32))[0, 0]))
    assert results == [1, 5]


def with_weights_beside(folder: Path, weight: float) -> Path:
    """A model in a new folder, its weights in the file `w.bin` there; the model's file is the same for all weights."""
    folder.mkdir()
    path = folder / "m.onnx"
    onnx.save(adding(weight=weight), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    return path


def test_same_models_beside_other_weights_do_not_take_turns_in_the_cache(tmp_path: Path) -> None:
    paths = [with_weights_beside(tmp_path / str(weight), weight) for weight in (1.0, 5.0)]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert [bool(InferenceSession(path).compile_seconds) for path in paths * 2] == [True, True, False, False]


def test_a_moment_without_weights_costs_no_artifact(tmp_path: Path) -> None:
    path = with_weights_beside(tmp_path / "model", 1.0)
    InferenceSession(path)
    weights, aside = tmp_path / "model" / "w.bin", tmp_path / "aside"
    weights.rename(aside)
    with pytest.raises(ModelError, match="'w' cannot be read"):
        InferenceSession(path)
    aside.rename(weights)
    assert not InferenceSession(path).compile_seconds


def test_model_from_the_cache_is_not_opened(tmp_path: Path) -> None:
    """Nor is onnx imported, also where weights lie in other files."""
    path = with_weights_beside(tmp_path / "model", 1.0)
    InferenceSession(path)
    script = f"""
import sys
from glow_mlir.api.model_compiler import ModelCompiler
from glow_mlir.api.onnxruntime.inference_session import InferenceSession

assert not InferenceSession({str(path)!r}).compile_seconds
assert not {{"onnx", "xdsl"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)


@pytest.mark.parametrize("name", ["/etc/hostname", "../secret", "link", "to/secret"])
def test_files_that_a_model_may_not_have_are_not_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model could name a file that has no end."""
    path = with_weights_beside(tmp_path / "model", 1.0)
    (tmp_path / "secret").write_text("secret")
    (path.parent / "link").symlink_to(tmp_path / "secret")
    (path.parent / "to").symlink_to(tmp_path)
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data[0].value = name
    path.write_bytes(model.SerializeToString())
    read, digest = list[Path](), ContentIndex.digest

    def noted(self: ContentIndex, file: Path) -> str:
        read.append(file)
        return digest(self, file)

    monkeypatch.setattr(ContentIndex, "digest", noted)
    for _ in range(2):
        with pytest.raises(ModelError, match="'w' cannot be read"):
            InferenceSession(path)
    assert set(read) == {path}


@pytest.mark.parametrize("name", ["m.onnx", "w.bin"])
@pytest.mark.parametrize("times", [1, 99])
def test_file_that_changes_while_it_is_compiled(
    name: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found under the digest of a file is never made of a later content."""
    path, left = tmp_path / "m.onnx", times

    def save(weight: float) -> None:
        (tmp_path / "w.bin").unlink(missing_ok=True)
        model = adding(weight=weight)
        onnx.save(model, path, save_as_external_data=name == "w.bin", location="w.bin", size_threshold=0)

    save(1.0)
    first = [path.read_bytes() for path in (path, tmp_path / name)]
    compiled = ModelCompiler._compiled  # pyright: ignore[reportPrivateUsage]

    def disturbed(self: ModelCompiler, *arguments: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            save(5.0 + left)
        return compiled(self, *arguments)

    monkeypatch.setattr(ModelCompiler, "_compiled", disturbed)
    if times > 1:
        with pytest.raises(ModelError, match=r"m\.onnx: its files changed during compilation \(hint: "):
            InferenceSession(path)
        left = 0
    else:
        assert result(InferenceSession(path), np.zeros((2, 3), np.float32))[0, 0] == 5
    for file, content in zip((path, tmp_path / name), first, strict=True):
        file.write_bytes(content)
    assert result(InferenceSession(path), np.zeros((2, 3), np.float32))[0, 0] == 1


@BACKENDS
@pytest.mark.parametrize("name", ["m.onnx", "w.bin", "m.weights"])
def test_model_outlives_its_files(name: str, backend: str, tmp_path: Path) -> None:
    """A mapped file that is cut off would end the process."""
    path, shape = tmp_path / "m.onnx", (200, 300)
    model = adding(shape, range(300))
    onnx.save(model, path, save_as_external_data=name == "w.bin", location="w.bin")
    if name == "m.weights":
        path = tmp_path / "m.mlir"
        write_module(import_model(model), path)
        collect_garbage()
    session = InferenceSession(path, backend=backend)
    collect_garbage()
    maps = Path("/proc/self/maps")
    # Where the system does not tell, the next lines do, in a worse way.
    assert not maps.exists() or str(tmp_path / name) not in maps.read_text()
    os.truncate(tmp_path / name, 10)
    assert (result(session, np.zeros(shape, np.float32)) == np.arange(300)).all()


def test_weights_of_a_function_belong_to_the_model(tmp_path: Path) -> None:
    """The artifact depends on files that only a function of the model refers to."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="w.bin")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    body = [helper.make_node("Constant", [], ["w"], value=weight), helper.make_node("Add", ["a", "w"], ["b"])]
    model = adding()
    model.functions.append(helper.make_function("local", "Shift", ["a"], ["b"], body, opsets[:1]))
    model.graph.node[0].CopyFrom(helper.make_node("Shift", ["x"], ["y"], domain="local"))
    model.opset_import.append(opsets[1])
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    for number in (1.0, 5.0):
        (tmp_path / "w.bin").write_bytes(np.full(6, number, np.float32).tobytes())
        assert result(InferenceSession(path), np.zeros((2, 3), np.float32))[0, 0] == number


def test_weights_of_a_module_in_a_file_belong_to_it(tmp_path: Path) -> None:
    """Where other ones lie under their name than those it was written with, no artifact of the first is used."""
    module, paths = import_model(adding((20,), range(20))), [tmp_path / f"{name}.mlir" for name in "ab"]
    for path in paths:
        write_module(module, path)
    x = np.zeros(20, np.float32)
    assert result(InferenceSession(paths[0]), x)[1] == 1
    weights = paths[1].with_suffix(".weights").rename(tmp_path / "linked")
    paths[1].with_suffix(".weights").symlink_to(weights)
    weights.write_bytes(weights.read_bytes().replace(np.float32(1).tobytes(), np.float32(9).tobytes()))
    del module
    collect_garbage()
    with pytest.raises(ModelError, match=r"b\.weights: node '\w+': weights \S+ are damaged"):
        InferenceSession(paths[1])


def test_model_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, parsed = tmp_path / "m.onnx", list[bytes]()
    onnx.save(adding(), path)
    load = onnx.load_model_from_string

    def counted(data: bytes) -> onnx.ModelProto:
        parsed.append(data)
        return load(data)

    monkeypatch.setattr(onnx, "load_model_from_string", counted)
    InferenceSession(path)
    assert len(parsed) == 1


def test_artifact_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    InferenceSession(adding())
    monkeypatch.setattr("glow_mlir.api.model_compiler.source_stamp", lambda: "edited")
    assert InferenceSession(adding()).compile_seconds


@BACKENDS
def test_input_of_any_layout_is_read(backend: str) -> None:
    session = InferenceSession(adding(), backend=backend)
    plain = np.arange(6, dtype=np.float32).reshape(2, 3)
    misaligned = np.frombuffer(b"." + plain.tobytes(), np.float32, 6, 1).reshape(2, 3)
    assert not misaligned.flags.aligned
    for x in (plain.astype(">f4"), np.asfortranarray(plain), misaligned, plain[::-1, ::-1][::-1, ::-1]):
        np.testing.assert_array_equal(result(session, x), plain + 1)


@pytest.mark.parametrize("dtype", ["f8", ">f8", "i4", "V4"])
def test_input_of_another_type_is_refused(dtype: str) -> None:
    with pytest.raises(InputError, match="must be float32"):
        result(InferenceSession(adding()), np.zeros((2, 3), dtype))


def test_a_session_says_what_it_takes_and_gives() -> None:
    session = InferenceSession(adding())
    assert repr(session) == "<InferenceSession main(x: float32[2, 3]) -> (y: float32[2, 3])>"


def test_numbers_and_lists_become_the_type_of_the_input() -> None:
    session = InferenceSession(adding())
    for x in ([[1, 2, 3], [4, 5, 6]], ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)), [list(map(np.int8, (1, 2, 3))), [4, 5, 6]]):
        np.testing.assert_array_equal(result(session, x), [[2, 3, 4], [5, 6, 7]])
    with pytest.raises(InputError, match=r"must be float32\[2, 3\], not bool\[2, 3\]"):
        result(session, [[True] * 3] * 2)


@pytest.mark.parametrize(
    ("value", "dtype", "found"),
    [
        (2, "uint8", "uint8"),
        (256, "uint8", "int64"),
        (-1, "uint8", "int64"),
        (0.5, "int32", "float64"),
        (np.float64(0.5), "float16", "float16"),
        ([], "int32", "int32"),
        ([1], "bool", "int64"),
        (np.zeros(1), "float32", "float64"),
    ],
)
def test_only_numbers_that_a_type_has_become_of_that_type(value: object, dtype: str, found: str) -> None:
    assert as_typed("x", value, np.dtype(dtype)).dtype == found


@BACKENDS
def test_scalars_stay_scalars(backend: str) -> None:
    y = result(InferenceSession(adding(()), backend=backend), np.float32(2))
    assert y.shape == ()
    assert y == 3


def test_code_that_this_machine_cannot_run_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "llvm_triple", lambda: "x86_64-unknown-linux-gnu")
    monkeypatch.setattr(host, "llvm_features", dict[str, bool])
    assert runnable_targets(get_backend("cpu")) == ["host", "scalar", "sse2"]
    with pytest.raises(OptionError, match="@main: it lacks the architecture aarch64"):
        InferenceSession(adding(), target="neon")
    with pytest.raises(OptionError, match="@main: it lacks avx2"):
        InferenceSession(adding(), target="avx512")
    with pytest.raises(OptionError, match="no target is called 'avx3'"):
        InferenceSession(adding(), target="avx3")


def test_named_targets_of_this_machine_run() -> None:
    for target in runnable_targets(get_backend("cpu")):
        assert result(InferenceSession(adding(), target=target), np.ones((2, 3), np.float32))[0, 0] == 2


def test_threads_take_turns_on_state(tmp_path: Path) -> None:
    path = tmp_path / "counter.mlir"
    path.write_text(counter(1000000))
    session = InferenceSession(path)
    x = np.ones(1_000_000, np.float32)
    with ThreadPoolExecutor(4) as pool:
        found = [y for (y,) in pool.map(partial(session.run, None), [{"x": x}] * 100)]
    # Each call sees a state of its own, all elements of it alike.
    assert sorted(float(y.min()) for y in found) == list(range(1, 101))
    assert sorted(float(y.max()) for y in found) == list(range(1, 101))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_fork_while_another_thread_has_the_turn(tmp_path: Path) -> None:
    """In a process of its own, whose children must not wait for a thread that they do not have."""
    path = tmp_path / "counter.mlir"
    path.write_text(counter(1000000))
    script = f"""
import os, threading
import numpy as np
from glow_mlir.api.model_compiler import ModelCompiler
from glow_mlir.api.onnxruntime.inference_session import InferenceSession

session = InferenceSession({str(path)!r})
x = np.ones(1_000_000, np.float32)
ended = threading.Event()

def call():
    while not ended.is_set():
        session.run(None, {{"x": x}})

caller = threading.Thread(target=call)
caller.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        session.run(None, {{"x": x}})
        os._exit(0)
    print(os.waitpid(child, 0)[1], end="")
ended.set()
caller.join()
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "0" * 20, done.stderr


def exponential(size: int) -> bytes:
    """y = exp(x), of that many elements."""
    shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "graph", shape[:1], shape[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_threads_give_the_same_bits(threads: int) -> None:
    x = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    session = InferenceSession(exponential(x.size), threads=threads)
    assert session.machine_entry.entry.threads == (threads or usable_cores())
    assert result(session, x).tobytes() == result(InferenceSession(exponential(x.size)), x).tobytes()


def test_what_is_small_needs_no_threads() -> None:
    assert InferenceSession(adding(), threads=4).machine_entry.entry.threads == 1


def test_threads_are_part_of_the_key() -> None:
    model = exponential(100_000)
    assert InferenceSession(model, threads=2).compile_seconds
    assert InferenceSession(model, threads=3).compile_seconds
    assert not InferenceSession(model, threads=2).compile_seconds


@pytest.mark.parametrize("threads", [-1, 1025, 2.0, "2", True])
def test_no_number_of_threads(threads: Any) -> None:
    with pytest.raises(OptionError, match=f"threads={threads!r} is no number of threads"):
        InferenceSession(adding(), threads=threads)


def test_number_of_threads_may_be_one_of_numpy() -> None:
    threads: Any = np.int64(2)
    assert InferenceSession(exponential(100_000), threads=threads).machine_entry.entry.threads == 2


WRONG_OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "pipeline": ({"pipeline": "my"}, "^pipeline cannot be of the type 'str'"),
    "disable": ({"disable": "cse"}, r"disable='cse' is no list of passes \(hint: disable=\['cse'\]\)"),
    "path": ({"path_or_bytes": "m\0.onnx"}, "expected a path"),
}


@pytest.mark.parametrize("case", WRONG_OPTIONS)
@pytest.mark.parametrize("cached", [False, True])
def test_options_of_another_type_are_refused(case: str, cached: bool) -> None:
    options, expected = WRONG_OPTIONS[case]
    arguments: dict[str, Any] = {"path_or_bytes": adding(), "cache": cached, **options}
    with pytest.raises(OptionError, match=expected):
        InferenceSession(**arguments)


@BACKENDS
@pytest.mark.parametrize(
    ("names", "inputs", "expected"),
    [
        (None, None, "inputs cannot be of the type 'NoneType'"),
        (None, [1, 2], "inputs cannot be of the type 'list'"),
        (None, {"x": [[1, 2, 3], [1]]}, "input 'x' is not an array"),
        ("y", {"x": np.zeros((2, 3), np.float32)}, "'y' is no list of outputs"),
    ],
)
def test_arguments_of_another_type_are_refused(backend: str, names: Any, inputs: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        InferenceSession(adding(), backend=backend).run(names, inputs)


@BACKENDS
def test_outputs_are_named_by_whatever_can_be_gone_through(backend: str) -> None:
    session, inputs = InferenceSession(adding(), backend=backend), {"x": np.ones((2, 3), np.float32)}
    wanted = session.run(None, inputs)
    for names in (("y",), {"y": 0}, np.array(["y"]), iter(["y"]), (name for name in "y")):
        np.testing.assert_array_equal(session.run(cast("Any", names), inputs), wanted)


def test_sessions_with_threads_called_from_many() -> None:
    """Two sessions share one pool; whoever finds it busy computes alone."""
    sessions = [InferenceSession(exponential(size), threads=3) for size in (100_000, 150_000)]
    inputs = [np.full(size, seed, np.float32) for seed, size in enumerate((100_000, 150_000) * 20)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(result, sessions * 20, inputs))
    for x, y in zip(inputs, found, strict=True):
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-5)


@pytest.mark.parametrize("model", [bytes, bytearray, memoryview])
def test_bytes_of_any_kind_are_a_model(model: type) -> None:
    session = InferenceSession(model(adding().SerializeToString()))
    assert result(session, np.ones((2, 3), np.float32))[0, 0] == 2


@pytest.mark.parametrize(
    "model", [5, None, [b""], helper.make_node("Add", ["x"], ["y"])], ids=lambda model: type(model).__name__
)
@BACKENDS
def test_anything_else_is_no_model(model: Any, backend: str) -> None:
    with pytest.raises(OptionError, match=r"a model cannot be .* give a path, the bytes"):
        InferenceSession(model, backend=backend)
