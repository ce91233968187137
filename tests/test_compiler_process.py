"""A process that only runs models has another one compile: what it gets of that, and what happens where that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from onnx import TensorProto, helper
from small_models import adding

from glow_mlir import InferenceSession
from glow_mlir.api import compiler_process

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

BEGIN = """
    import os, signal, sys, threading, time, warnings
    from pathlib import Path
    import numpy as np
    sys.path.insert(0, {support!r})
    from glow_mlir import InferenceSession
    from glow_mlir.api import compiler_process
    path = sys.argv[1]
    has_compiler = lambda: bool({{"xdsl", "onnx"}} & set(sys.modules))
    def run(session):
        given = {{item.name: np.ones([size if isinstance(size, int) else 3 for size in item.shape], np.float32)
                 for item in session.get_inputs()}}
        return session.run(None, given)
    children = lambda: [int(name) for name in os.listdir("/proc") if name.isdigit() and parent_of(name) == os.getpid()]
    def parent_of(name):
        try:
            return int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return 0
"""
"""What the processes of the tests begin with."""

THREAD = "threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
"""With a further thread, a process is started and none forked."""


def process(
    tmp_path: Path,
    body: str,
    model: bytes | None = None,
    environment: dict[str, str] | None = None,
    flags: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """A process that begins with `BEGIN`, with a cache of its own."""
    path = tmp_path / "model.onnx"
    path.write_bytes(adding() if model is None else model)
    code = textwrap.dedent(BEGIN.format(support=str(ROOT / "tests" / "support"))) + textwrap.dedent(body)
    known = {**os.environ, "GLOW_CACHE_DIR": str(tmp_path / "cache"), **(environment or {})}
    # OpenBLAS has threads where there are cores for them, and what has threads is not forked.
    known["OPENBLAS_NUM_THREADS"] = "1"
    command = [sys.executable, *flags, "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=known, cwd=ROOT)


def passes(tmp_path: Path, body: str, model: bytes | None = None, environment: dict[str, str] | None = None) -> str:
    """What a process prints that ends well and says nothing else."""
    done = process(tmp_path, body, model, environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def free(axes: tuple[str | int, ...] = ("N", 4)) -> bytes:
    """A model with a free dimension."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, axes) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "free", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10).SerializeToString()


@pytest.mark.parametrize("begin", ["", THREAD], ids=["forked", "started"])
@pytest.mark.parametrize("model", ["path", "Path(path).read_bytes()"], ids=["file", "memory"])
@pytest.mark.parametrize("cache", [True, False])
def test_a_process_that_runs_a_model_imports_no_compiler(tmp_path: Path, begin: str, model: str, cache: bool) -> None:
    body = f"""
        session = InferenceSession({model}, cache={cache})
        assert session.compile_seconds["import"] > 0
        run(session)
        assert not has_compiler()
    """
    passes(tmp_path, begin + textwrap.dedent(body))
    stored = list((tmp_path / "cache").glob("v*/*/manifest.json"))
    assert len(stored) == cache


def test_the_artifact_is_that_which_the_process_itself_makes(tmp_path: Path) -> None:
    body = """
        if sys.argv[1:] and os.environ.get("HERE"):
            import xdsl.ir
        run(InferenceSession(path))
        print(has_compiler())
    """
    keys: list[str] = []
    contents: list[bytes] = []
    for here in ("", "1"):
        folder = tmp_path / f"here{here}"
        folder.mkdir()
        assert passes(folder, body, environment={"HERE": here}) == f"{bool(here)}\n"
        (artifact,) = (folder / "cache").glob("v*/*/code.0.o")
        keys.append(artifact.parent.name)
        contents.append(artifact.read_bytes() + (artifact.parent / "manifest.json").read_bytes())
    assert keys[0] == keys[1]
    assert contents[0] == contents[1]


@pytest.mark.parametrize("begin", ["", THREAD], ids=["forked", "started"])
@pytest.mark.parametrize("cache", [True, False])
def test_sizes_of_calls_are_compiled_there(tmp_path: Path, begin: str, cache: bool) -> None:
    body = f"""
        session = InferenceSession(path, cache={cache})
        for rows in (3, 5, 7):
            (found,) = session.run(None, {{"x": np.full((rows, 4), -1, np.float32)}})
            assert found.shape == (rows, 4) and not found.any()
        from beside_calls import settle
        settle()
        session.run(None, {{"x": np.ones((9, 4), np.float32)}})
        assert session.specializations[-1].is_range
        assert not has_compiler()
    """
    passes(tmp_path, begin + textwrap.dedent(body), free())


def test_one_process_serves_several_sessions_and_ends_when_nobody_asks(tmp_path: Path) -> None:
    body = """
        from glow_mlir.api import compiler_server
        compiler_server.REST = 3.0
        run(InferenceSession(path, cache=False))
        first = children()
        run(InferenceSession(path, cache=False))
        assert children() == first and len(first) == 1
        end = time.monotonic() + 30
        while compiler_process._CALLED.idle[0].lives and time.monotonic() < end:
            time.sleep(0.05)
        assert not children()
        run(InferenceSession(path, cache=False))
        assert children() and children() != first
    """
    passes(tmp_path, body)


@pytest.mark.parametrize("begin", ["", THREAD], ids=["forked", "started"])
def test_mistakes_are_those_of_the_user_and_one_line(tmp_path: Path, begin: str) -> None:
    body = """
        from glow_mlir.errors import ModelError, TimeLimitError, UnsupportedOperatorsError
        def told(kind, model, **keywords):
            try:
                InferenceSession(model, **keywords)
            except kind as error:
                print(error)
        told(ModelError, b"this is no model", cache=False)
        told(UnsupportedOperatorsError, Path(sys.argv[1]).read_bytes().replace(b"Relu", b"Rely"))
        told(TimeLimitError, path, compile_time_limit=1e-3, cache=False, dimensions={"N": 2})
        told(ModelError, "missing.onnx")
        assert not has_compiler()
    """
    lines = passes(tmp_path, begin + textwrap.dedent(body), free()).splitlines()
    assert len(lines) == 4
    assert "1 operator is not supported by the importer: Rely" in lines[1]
    assert "the compilation took longer than its limit of 0.001 seconds" in lines[2]
    assert lines[3].startswith("missing.onnx: cannot be read: No such file or directory")


def test_what_is_said_meanwhile_is_told_here(tmp_path: Path) -> None:
    body = """
        from glow_mlir.errors import UnsupportedError
        from glow_mlir.support import activity
        from glow_mlir.api import compiler_server
        from glow_mlir.api.model_compiler import ModelCompiler
        def make(*_):
            activity.say("packing")
            activity.warn(UnsupportedError("a warning"))
            activity.caution(UnsupportedError("a caution"))
            raise UnsupportedError("an error", node="node")
        ModelCompiler.make = make
        said, warned = [], []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                InferenceSession(path)
            except UnsupportedError as error:
                assert error.node == "node"
        assert [str(item.message) for item in caught] == ["a caution"], caught
        with activity.watching(said.append), activity.warning_to(warned.append):
            try:
                InferenceSession(path)
            except UnsupportedError:
                pass
        assert "packing" in said and [str(item) for item in warned] == ["a warning", "a caution"]
    """
    passes(tmp_path, body)


SLOW = """
    from glow_mlir.api.model_compiler import ModelCompiler
    make = ModelCompiler.make
    def slow(*given):
        {first}
        time.sleep(float(os.environ.get("SLOW", 0)))
        return make(*given)
    ModelCompiler.make = slow
"""


@pytest.mark.parametrize(
    ("number", "kind", "said"),
    [
        (signal.SIGKILL, "OutOfMemoryError", "the compiler process was killed (hint: it may have run out of"),
        (signal.SIGABRT, "CompilerBugError", "the compiler process ended with signal 6"),
        (signal.SIGSEGV, "CompilerBugError", "the compiler process ended with signal 11"),
    ],
)
def test_an_end_in_the_middle_is_one_line_and_the_next_session_compiles(
    tmp_path: Path, number: int, kind: str, said: str
) -> None:
    first = f"Path({str(tmp_path / 'done')!r}).exists() or os.kill(os.getpid(), {int(number)})"
    body = f"""
        from glow_mlir import errors
        try:
            InferenceSession(path)
        except errors.{kind} as error:
            print(error)
        Path({str(tmp_path / "done")!r}).touch()
        run(InferenceSession(path))
        assert not has_compiler()
    """
    assert passes(tmp_path, textwrap.dedent(SLOW.format(first=first)) + textwrap.dedent(body)).startswith(said)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.usefixtures("hears_ctrl_c")
def test_a_process_that_ends_in_the_middle_takes_the_other_along(tmp_path: Path, number: int) -> None:
    first = f"Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))"
    body = f"""
        def end():
            while not os.path.exists({str(tmp_path / "pid")!r}):
                time.sleep(0.01)
            os.kill(os.getpid(), {int(number)})
        InferenceSession(path, cache=False)
        Path({str(tmp_path / "pid")!r}).unlink()
        os.environ["SLOW"] = "60"
        threading.Thread(target=end, daemon=True).start()
        InferenceSession(path, cache=False)
    """
    done = process(tmp_path, textwrap.dedent(SLOW.format(first=first)) + textwrap.dedent(body))
    assert done.returncode == -number
    child = int((tmp_path / "pid").read_text())
    for _ in range(500):
        if not Path("/proc", str(child)).exists():
            break
        time.sleep(0.01)
    assert not Path("/proc", str(child)).exists()


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_the_compilation_alone(tmp_path: Path) -> None:
    body = """
        os.environ["SLOW"] = "60"
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, 1)
        begin = time.monotonic()
        try:
            InferenceSession(path)
        except KeyboardInterrupt:
            pass
        assert time.monotonic() - begin < 20 and not children()
        os.environ["SLOW"] = "0"
        run(InferenceSession(path))
    """
    passes(tmp_path, textwrap.dedent(SLOW.format(first="pass")) + textwrap.dedent(body))


def test_where_nothing_can_be_stored_artifacts_are_handed_over(tmp_path: Path) -> None:
    """Those of ranges of sizes as well."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    body = """
        from beside_calls import settle
        session = InferenceSession(path)
        run(session)
        settle()
        session.run(None, {"x": np.ones((9, 4), np.float32)})
        assert session.specializations[-1].is_range and not has_compiler()
    """
    passes(tmp_path, body, free())


def test_a_request_that_is_cancelled_leaves_what_was_imported(tmp_path: Path) -> None:
    """A limit that is shorter than the start of a compiler holds, and the next call has a compiler."""
    body = """
        from glow_mlir import RunOptions
        from glow_mlir.errors import TimeLimitError
        from glow_mlir.support import child_process
        usual, child_process.LOOK = child_process.LOOK, 1  # A fast machine answers before anybody would look.
        session = InferenceSession(path, cache=False, time_limit=0.2)
        short, failed = RunOptions(), 0
        short.time_limit = 0.001
        for number in range(200):
            try:
                session.run(None, {"x": np.ones((2, 4), np.float32)}, None if number else short)
                break
            except TimeLimitError:
                failed += 1
                child_process.LOOK = usual
        assert 0 < failed < 199 and len(children()) <= 2, failed
    """
    passes(tmp_path, body, free())


def test_models_at_once_wait_for_none_of_the_others(tmp_path: Path) -> None:
    body = """
        os.environ["SLOW"] = "60"
        threading.Thread(target=InferenceSession, args=(Path(path).read_bytes(),), daemon=True).start()
        while not compiler_process._CALLED._all:
            time.sleep(0.01)
        time.sleep(0.5)
        os.environ["SLOW"] = "0"
        run(InferenceSession(path, cache=False))
    """
    passes(tmp_path, textwrap.dedent(SLOW.format(first="pass")) + textwrap.dedent(body))


@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1), (0, 1, 2)])
@pytest.mark.parametrize("begin", ["", THREAD], ids=["forked", "started"])
def test_standard_streams_may_be_closed(tmp_path: Path, closed: Sequence[int], begin: str) -> None:
    """Sockets then have their descriptors."""
    body = f"""
        for number in {closed}:
            os.close(number)
        run(InferenceSession(path, cache=False))
        os._exit(has_compiler())
    """
    passes(tmp_path, begin + textwrap.dedent(body))


def test_python_that_says_something_as_it_starts_answers_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome')")
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = process(tmp_path, THREAD + "run(InferenceSession(path))\nassert not has_compiler()", None, environment)
    assert (done.returncode, done.stdout) == (0, "welcome\n")


def test_who_takes_the_ends_of_children_loses_nothing(tmp_path: Path) -> None:
    body = """
        from glow_mlir.errors import CompilerBugError
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            InferenceSession(path)
        except CompilerBugError:
            print("told")
    """
    slow = SLOW.format(first="os.kill(os.getpid(), signal.SIGSEGV)")
    assert passes(tmp_path, textwrap.dedent(slow) + textwrap.dedent(body)) == "told\n"


def test_an_isolated_process_has_isolated_ones(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('this is not the library')")
    body = "assert not has_compiler()\nInferenceSession(path)\nassert not has_compiler()"
    root = f"sys.path.insert(0, {str(ROOT)!r})\n"
    environment = {"PYTHONPATH": str(tmp_path)}
    code = textwrap.dedent(BEGIN.format(support=str(ROOT / "tests" / "support"))).replace(
        "from glow", f"{root}from glow", 1
    )
    (tmp_path / "model.onnx").write_bytes(adding())
    command = [sys.executable, "-I", "-c", code + THREAD + body, str(tmp_path / "model.onnx")]
    known = {**os.environ, **environment, "GLOW_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=known)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_model_that_only_this_process_can_open_is_compiled_here(tmp_path: Path) -> None:
    body = """
        file = os.memfd_create("model")
        os.write(file, Path(path).read_bytes())
        run(InferenceSession(f"/proc/self/fd/{file}"))
        assert has_compiler()
    """
    passes(tmp_path, body)


def test_options_that_only_this_process_knows_are_compiled_here(tmp_path: Path) -> None:
    body = """
        class Precision(str): pass
        run(InferenceSession(path, precision=Precision("f32")))
        class Local: pass
        def local():
            class Precision(str): pass
            return Precision("f32")
        run(InferenceSession(path, precision=local(), cache=False))
    """
    passes(tmp_path, THREAD + textwrap.dedent(body))


@pytest.mark.parametrize("cache", [True, False])
def test_a_model_that_is_replaced_meanwhile_is_taken_whole(tmp_path: Path, cache: bool) -> None:
    """What was compiled of one file is not run as another one."""
    (tmp_path / "other.onnx").write_bytes(free(("N", 4096)))
    body = f"""
        made, other = compiler_process.made, {str(tmp_path / "other.onnx")!r}
        def replaced(*given, **others):
            found = made(*given, **others)
            if os.path.exists(other):
                os.replace(other, path)
            return found
        from glow_mlir.api import model_compiler
        model_compiler.made = replaced
        session = InferenceSession(path, cache={cache})
        assert session.run(None, {{"x": np.full((3, 4096), -1, np.float32)}})[0].shape == (3, 4096)
    """
    passes(tmp_path, body, free())


@pytest.mark.parametrize("cache", [True, False])
def test_where_no_process_can_be_started_the_process_compiles_itself(tmp_path: Path, cache: bool) -> None:
    body = f"""
        def refused(*_, **__):
            raise OSError("no more processes")
        os.fork = refused
        import subprocess
        subprocess.Popen = refused
        run(InferenceSession(path, cache={cache}))
        assert has_compiler()
    """
    passes(tmp_path, body)


def test_a_fork_has_a_process_of_its_own(tmp_path: Path) -> None:
    body = """
        run(InferenceSession(path, cache=False))
        (mine,) = children()
        child = os.fork()
        if not child:
            run(InferenceSession(path, cache=False))
            os._exit(children() == [mine] or has_compiler())
        assert os.waitpid(child, 0)[1] == 0
        run(InferenceSession(path, cache=False))
        assert children() == [mine]
    """
    passes(tmp_path, body)


def test_files_of_the_parent_are_not_held_open(tmp_path: Path) -> None:
    """Whoever reads a pipe of the parent's is told of its end."""
    body = """
        reader, writer = os.pipe()
        os.set_inheritable(writer, True)
        run(InferenceSession(path, cache=False))
        os.close(writer)
        assert children() and os.read(reader, 1) == b""
    """
    passes(tmp_path, body)


def test_a_session_where_the_compiler_is_compiles_itself() -> None:
    import xdsl.ir

    assert xdsl.ir
    before = list(compiler_process._CALLED.idle)  # pyright: ignore[reportPrivateUsage]
    session = InferenceSession(adding(), cache=False)
    session.run(None, {item.name: np.ones(item.shape, np.float32) for item in session.get_inputs()})
    assert compiler_process._CALLED.idle == before  # pyright: ignore[reportPrivateUsage]
