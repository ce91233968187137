"""`load_bundle`: results of the session, no compiler, and a line for each bundle that cannot be run."""

from __future__ import annotations

import ctypes
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT, run_python
from in_process import run_tool

import glow_mlir
from glow_mlir.errors import CancelledError, GlowError
from glow_mlir.options.quantization import Quantization
from glow_mlir.support.activity import warning_to
from glow_mlir.tools import glow_compile, glow_profile

DIGITS = ROOT / "examples" / "digits.onnx"
IMAGES = np.random.default_rng(0).random((2, 1, 8, 8), np.float32)

WITHOUT_COMPILER = """
import sys
import numpy as np
import glow_mlir
bundle = glow_mlir.load_bundle(sys.argv[1])
(found,) = bundle.run(None, {"image": np.load(sys.argv[2])})
np.save(sys.argv[2], found)
assert not {"xdsl", "onnx"} & set(sys.modules), "the compiler is there"
"""


def compiled(folder: Path, *arguments: object) -> None:
    """Run `glow-compile` on the digits example in a folder."""
    argv = [str(DIGITS), "--bind", "N=2", "-o", "out", *map(str, arguments)]
    done = run_tool(glow_compile.main, argv, program="glow-compile", directory=folder)
    assert done.code == 0, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle of the digits example for this machine."""
    made = tmp_path_factory.mktemp("digits")
    compiled(made)
    return made / "out"


def test_bundles_run_as_sessions_do_and_without_the_compiler(folder: Path, tmp_path: Path) -> None:
    session = glow_mlir.InferenceSession(DIGITS, dimensions={"N": 2}, cache=False)
    expected = session.run(None, {"image": IMAGES})
    bundle = glow_mlir.load_bundle(folder)
    assert bundle.get_inputs() == session.get_inputs()
    assert bundle.get_outputs() == session.get_outputs()
    np.testing.assert_array_equal(bundle.run(None, {"image": IMAGES}), expected)
    np.save(tmp_path / "array.npy", IMAGES)
    run_python(WITHOUT_COMPILER, str(folder), str(tmp_path / "array.npy"))
    np.testing.assert_array_equal(np.load(tmp_path / "array.npy"), expected[0])


def test_limits_and_terminate_that_bundles_do_not_heed_are_warned_of_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, options, warnings = glow_mlir.load_bundle(folder), glow_mlir.RunOptions(), list[str]()
    with warning_to(lambda warning: warnings.append(str(warning))):
        bundle.run(None, {"image": IMAGES}, options)
        assert not warnings
        options.time_limit = 20
        for _ in range(2):
            with warning_to(lambda warning: warnings.append(str(warning))):  # One listener hears words once.
                bundle.run(None, {"image": IMAGES}, options)
        assert warnings == ["time_limit cannot interrupt bundles (hint: sessions of the model support it)"]
        entry = bundle.session_entry()
        run = entry.run

        def terminated(*given: Any) -> Any:
            options.terminate = True
            return run(*given)

        monkeypatch.setattr(entry, "run", terminated)
        bundle.run(None, {"image": IMAGES}, options)
    assert warnings[1:] == ["terminate cannot interrupt bundles (hint: sessions of the model support it)"]
    with pytest.raises(CancelledError, match="terminate is set"):
        bundle.run(None, {"image": IMAGES}, options)


def test_each_model_of_a_bundle_has_a_profile_of_its_own(tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", image=IMAGES)
    argv = [str(DIGITS), "--bind", "N=2", "--dataset", "images.npz", "-o", "profile.json"]
    assert run_tool(glow_profile.main, argv, program="glow-profile", directory=tmp_path).code == 0
    argv = [f"float={DIGITS}", f"int8={DIGITS}", "--bind", "N=2", "--load-profile", "int8=profile.json", "-o", "out"]
    done = run_tool(glow_compile.main, argv, program="glow-compile", directory=tmp_path)
    assert done.code == 0, done.stderr
    bundle = glow_mlir.load_bundle(tmp_path / "out")
    # C has a word that is called float.
    for entry, quantize in (("float_", None), ("int8", Quantization(tmp_path / "profile.json"))):
        session = glow_mlir.InferenceSession(DIGITS, dimensions={"N": 2}, cache=False, quantize=quantize)
        found = bundle.run(None, {"image": IMAGES}, entry=entry)
        np.testing.assert_array_equal(found, session.run(None, {"image": IMAGES}))


def test_a_damaged_bundle_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "bundle")
    weights = bytearray((folder / "digits.weights.bin").read_bytes())
    weights[100] ^= 1
    (tmp_path / "bundle" / "digits.weights.bin").write_bytes(weights)
    with pytest.raises(GlowError, match="do not belong together"):
        glow_mlir.load_bundle(tmp_path / "bundle")
    (tmp_path / "bundle" / "digits.weights.bin").write_bytes(b"")
    with pytest.raises(GlowError, match="do not belong together"):
        glow_mlir.load_bundle(tmp_path / "bundle")
    shutil.copy(folder / "digits.weights.bin", tmp_path / "bundle")
    manifest = tmp_path / "bundle" / "digits.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "entries": []}))
    with pytest.raises(GlowError, match="do not belong together"):
        glow_mlir.load_bundle(tmp_path / "bundle")
    with pytest.raises(GlowError, match="there is no bundle here"):
        glow_mlir.load_bundle(tmp_path)
    with pytest.raises(GlowError, match="there is no bundle 'other' here"):
        glow_mlir.load_bundle(folder, "other")


def test_a_bundle_for_another_machine_is_refused(tmp_path: Path) -> None:
    compiled(tmp_path, "--target", "riscv32", "--emit", "archive")
    with pytest.raises(GlowError, match=r"cannot run code for the target of @digits_run_call: it lacks the arch"):
        glow_mlir.load_bundle(tmp_path / "out")
    assert (tmp_path / "out" / "digits.a").read_bytes().startswith(b"!<arch>\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.onnx"], "cannot be read"),
        (["a.onnx", "b.onnx"], "has no entry"),
        (["x=a.onnx", "x=b.onnx"], "two models are the entry 'x'"),
        ([f"x={DIGITS}", f"y={DIGITS}", "--load-profile", "p.json"], "'p.json' does not say whose profile it is"),
        ([f"x={DIGITS}", "--load-profile", "z=p.json"], "there is no entry 'z' (hint: ENTRY=FILE, with one of x)"),
        ([str(DIGITS), "--load-profile", "z=p.json"], "there is no entry 'z' (hint: --load-profile FILE"),
        ([str(DIGITS)], "1 dimension has no size"),
        ([str(DIGITS), "--bind", "N=1", "--emit", "wasm", "--target", "scalar"], "there is no form 'wasm'"),
    ],
)
def test_a_failed_compilation_leaves_nothing(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = run_tool(glow_compile.main, [*arguments, "-o", "out"], program="glow-compile", directory=tmp_path)
    assert done.code == 1
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.extra
def test_a_bundle_is_a_shared_library(tmp_path: Path) -> None:
    if shutil.which("ld") is None and shutil.which("ld.lld") is None:
        pytest.skip("there is no linker: neither ld nor ld.lld is installed")
    compiled(tmp_path, "--emit", "shared", "--constants", "object")
    library = ctypes.CDLL(str(tmp_path / "out" / "digits.so"))
    library.digits_error_text.restype = ctypes.c_char_p
    assert library.digits_error_text(library.digits_run(None)) == b"the arguments, or a pointer to a buffer, are null"
    constants = (ctypes.c_uint8 * 16).in_dll(library, "digits_constants")
    assert bytes(constants) == (tmp_path / "out" / "digits.weights.bin").read_bytes()[:16]
