"""Copies of sessions and their pickles, and how they show themselves in notebooks."""

from __future__ import annotations

import copy
import html
import multiprocessing
import pickle
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from small_models import adding, counter, with_weight

from glow_mlir import InferenceSession, OrtValue, SessionOptions, load_bundle
from glow_mlir.api.models import import_any
from glow_mlir.errors import OptionError
from glow_mlir.runtime.code_sizes import SIZE_WORDS, code_sizes
from glow_mlir.tools.glow_compile import main as glow_compile
from glow_mlir.tools.glow_run import statistics

X = {"x": np.ones(3, np.float32)}


@pytest.fixture(params=["path", "bytes", "proto"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    proto = with_weight(5)
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    return {"path": path, "bytes": path.read_bytes(), "proto": proto}[request.param]


def copies(session: Any) -> list[Any]:
    return [copy.copy(session), copy.deepcopy(session), pickle.loads(pickle.dumps(session))]


def test_copies_are_of_the_same_model_and_options(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = model.relative_to(tmp_path) if isinstance(model, Path) else model
    told = SessionOptions()
    told.add_initializer("w", OrtValue(np.full(3, 7, np.float32)))
    session = InferenceSession(source, told, providers=["CPUExecutionProvider"], target="scalar")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for other in copies(session):
        assert other is not session
        assert other.run(None, X)[0].tolist() == [8, 8, 8]
        assert (other.get_providers(), other.options) == (session.get_providers(), session.options)
        assert not other.compile_seconds


def test_copies_begin_with_the_state_of_the_moment(tmp_path: Path) -> None:
    path = tmp_path / "counter.mlir"
    path.write_text(counter())
    session, x = InferenceSession(path), {"x": np.ones(4, np.float32)}
    session.run(None, x)
    others = copies(session)
    session.run(None, x)
    for other in others:
        assert other.run(None, x)[0].tolist() == [2, 2, 2, 2]
        assert other.get_state()["s"].tolist() == [2, 2, 2, 2]
        other.reset_state()
        assert other.get_state()["s"].tolist() == [0, 0, 0, 0]


def test_a_module_in_memory_is_copied_and_not_pickled() -> None:
    session = InferenceSession(import_any(with_weight(1), {}))
    assert copy.deepcopy(session).run(None, X)[0].tolist() == [2, 2, 2]
    with pytest.raises(OptionError, match=r"a session of a module in memory cannot be pickled .hint: write it"):
        pickle.dumps(session)


def test_bundles_are_copied(tmp_path: Path) -> None:
    onnx.save(with_weight(5), tmp_path / "m.onnx")
    assert glow_compile([str(tmp_path / "m.onnx"), "-o", str(tmp_path / "bundle")]) == 0
    for other in copies(load_bundle(tmp_path / "bundle")):
        assert other.run(None, X)[0].tolist() == [6, 6, 6]


def test_sessions_go_to_other_processes() -> None:
    session = InferenceSession(with_weight(5))
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        (y,) = pool.submit(session.run, None, X).result(60)
        (again,) = pool.submit(session.run, None, X).result(60)
    assert y.tolist() == again.tolist() == [6, 6, 6]


def test_nothing_is_left_to_say_at_the_end_of_a_process(tmp_path: Path) -> None:
    onnx.save(with_weight(5), tmp_path / "m.onnx")
    script = f"""
import pickle, copy, numpy as np
from glow_mlir import InferenceSession
session = InferenceSession({str(tmp_path / "m.onnx")!r})
others = [copy.deepcopy(session), pickle.loads(pickle.dumps(session))]
session.run_async(None, {{"x": np.ones(3, np.float32)}}, lambda results, data, error: print(results[0][0], error))
try:
    pickle.dumps(session.machine_entry)
except Exception:
    pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("6.0 \n", "")


# ---- pages -----------------------------------------------------------------------------------------------------


def cells(page: str) -> list[str]:
    return re.findall(r"<td>(.*?)</td>", page)


def test_a_page_shows_arguments_target_memory_and_stages() -> None:
    session = InferenceSession(with_weight(5), target="scalar")
    shown = cells(session._repr_html_())  # pyright: ignore[reportPrivateUsage]
    assert ["input", "x", "tensor(float)", "3"] == shown[:4]
    for wanted in ("scalar", "cpu", "constants", "optimized", "total"):
        assert any(wanted in cell for cell in shown), wanted
    again = cells(InferenceSession(with_weight(5), target="scalar")._repr_html_())  # pyright: ignore[reportPrivateUsage]
    assert "from the cache" in again


def test_a_page_has_many_features_only_when_it_is_unfolded() -> None:
    session = InferenceSession(with_weight(5), target="host")
    page = session._repr_html_()  # pyright: ignore[reportPrivateUsage]
    entry = session.machine_entry.entry
    assert entry.machine in cells(page)
    assert len(entry.machine) < 200
    seen, folded = re.sub(r"<details>.*?</details>", "", page), re.search(r"<details>(.*?)</details>", page)
    assert html.escape(entry.target) not in seen
    assert folded is not None
    assert html.escape(entry.target) in folded[1]


def test_a_page_and_statistics_have_the_same_sizes() -> None:
    session = InferenceSession(with_weight(5), target="scalar")
    sizes = code_sizes(session.machine_code, session.machine_entry)
    assert sizes.keys() == SIZE_WORDS.keys() <= statistics(session.compiled).keys()
    assert sizes["code_bytes"] > 0
    shown = cells(session._repr_html_())  # pyright: ignore[reportPrivateUsage]
    assert [shown[shown.index(words) + 1] for words in SIZE_WORDS.values()] == [
        f"{size} bytes" if size < 1024 else f"{size / 1024:.3g} KiB" for size in sizes.values()
    ]


def test_a_page_of_a_model_that_is_compiled_when_it_is_called() -> None:
    session = InferenceSession(adding(("N", None)))
    shown = cells(session._repr_html_())  # pyright: ignore[reportPrivateUsage]
    assert "N, ?" in shown
    assert "compiled when called" in shown
    session.run(None, {"x": np.ones((2, 3), np.float32)})
    assert any("N=2" in cell for cell in cells(session._repr_html_()))  # pyright: ignore[reportPrivateUsage]


def test_names_in_a_page_are_no_markup(tmp_path: Path) -> None:
    hostile = "<script>alert('&')</script>"
    path = tmp_path / "<b>.onnx"
    path.write_bytes(adding(name=hostile))
    page = InferenceSession(path)._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "<script" not in page
    assert "<b>.onnx" not in page
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;" in page


def test_pages_of_other_backends_have_no_memory_to_show() -> None:
    session = InferenceSession(with_weight(1), backend="interpreter")
    assert "interpreter" in cells(session._repr_html_())  # pyright: ignore[reportPrivateUsage]
