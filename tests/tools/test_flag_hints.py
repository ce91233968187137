"""Hints of tools have flags, and those of Python keywords, of the same errors."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from checkout import ROOT
from onnx_models import model_of, node, value

from glow_mlir import InferenceSession
from glow_mlir.backends.cuda.devices import EMULATION_HINT
from glow_mlir.errors import ModelError, OptionError
from glow_mlir.tools.arguments.flag_hints import with_flags
from glow_mlir.tools.glow_import import main as glow_import
from glow_mlir.tools.glow_run import main as glow_run

DIGITS = str(ROOT / "examples" / "digits.onnx")


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("devices='cuda,target=emulated-sm_80'", "--devices cuda,target=emulated-sm_80"),
        ("backend='cuda' with target='avx2'", "--backend cuda with --target avx2"),
        ("threads=4, or ram_bytes=1000", "--threads 4, or --ram-limit 1000"),
        ("dimensions={'y.trips': N} makes room", "--bind y.trips=N makes room"),
        ("dimensions={'a': 1, 'b': 2}", "--bind a=1 --bind b=2"),
        ("dimensions={'threads': 4}", "--bind threads=4"),
        ("dimensions={…}", "dimensions={…}"),
        ("dimensions={'n': (1, 64)} makes room", "dimensions={'n': (1, 64)} makes room"),
        ('dimensions={"it\'s": 3} works', 'dimensions={"it\'s": 3} works'),
        ("strict=True; cache=False", "--strict; --no-cache"),
        ("with strict=False it is taken", "without --strict it is taken"),
        ("avx2,vector_bits=128,threads=2", "avx2,vector_bits=128,threads=2"),
        ("limits=SpecializationLimits(number=8)", "limits=SpecializationLimits(number=8)"),
        ("options={'zipmap': False}", "options={'zipmap': False}"),
        ("alpha='b'", "alpha='b'"),
    ],
)
def test_keywords_are_flags(hint: str, expected: str) -> None:
    assert with_flags(hint) == expected


def test_devices_have_targets_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert glow_run([DIGITS, "--devices", "cuda", "--target", "emulated-sm_80"]) == 1
    assert "(hint: --devices cuda,target=emulated-sm_80)" in capsys.readouterr().err
    with pytest.raises(OptionError, match=r"\(hint: devices='cuda,target=emulated-sm_80'\)"):
        InferenceSession(DIGITS, devices="cuda", target="emulated-sm_80")
    assert "--" not in EMULATION_HINT


def test_strict_tools_say_what_is_assumed_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_of([node("Neg", "a", "y", "late"), node("Relu", "x", "a", "early")])
    onnx.save(model, tmp_path / "model.onnx")
    assert glow_import([str(tmp_path / "model.onnx"), "-o", str(tmp_path / "model.mlir"), "--strict"]) == 1
    assert "; without --strict they are sorted)" in capsys.readouterr().err
    with pytest.raises(ModelError, match="; with strict=False they are sorted"):
        InferenceSession(model, cache=False, strict=True)


def test_a_dimension_that_is_called_unknown_goes_by_its_place() -> None:
    model = model_of([node("Relu")], [value("x", shape=("?",))])
    with pytest.raises(
        OptionError, match=r"no free dimension '\?' \(hint: free dimensions: 'x\.0'; one without a name"
    ):
        InferenceSession(model, cache=False, dimensions={"?": 3})
