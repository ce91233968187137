"""ONNX's package means the same, however it is loaded. Each check runs a new Python."""

from __future__ import annotations

import pytest
from checkout import run_python

INSTALL = "from glow_mlir.support import onnx_loader; onnx_loader.install()"

MEMBERS = """
import onnx
for name in onnx.__all__:
    member = getattr(onnx, name)
    print(name, type(member).__name__.lstrip("_").replace("LazyModule", "module"), sorted(vars(member))[:200]
          if type(member).__name__ in ("module", "_LazyModule") else "")
"""

TOUCH = "import onnx\nfor name in onnx.__all__:\n    getattr(getattr(onnx, name), '__doc__')\n"


def test_the_package_has_what_it_has_elsewhere() -> None:
    ours = run_python(f"{INSTALL}\n{TOUCH}{MEMBERS}")
    assert ours.count(" module ") > 8
    assert ours == run_python(f"{TOUCH}{MEMBERS}")


def test_what_nobody_uses_is_not_loaded() -> None:
    code = "import sys, onnx\nfrom onnx import checker, defs, helper, numpy_helper, shape_inference\n"
    report = "print(*{'argparse', 'tarfile', 'google.protobuf.json_format'} & sys.modules.keys())"
    assert run_python(f"{INSTALL}\n{code}{report}").split() == []
    assert len(run_python(f"{code}{report}").split()) == 3


@pytest.mark.parametrize(
    "use",
    [
        "import onnx.compose; print(onnx.compose.merge_models.__name__)",
        "from onnx import parser; print(parser.parse_graph('g (float[1] x) => (float[1] x) {}').name)",
        "from onnx.version_converter import convert_version; print(convert_version.__name__)",
        "import onnx; print(onnx.load_model_from_string(onnx.ModelProto(ir_version=8).SerializeToString()).ir_version)",
        "import onnx.utils, onnx.printer; print(onnx.utils.Extractor.__name__, onnx.printer.to_text.__name__)",
    ],
)
def test_what_waits_works(use: str) -> None:
    for before in (f"{INSTALL}\nimport onnx", f"import onnx\n{INSTALL}", INSTALL):
        assert run_python(f"{before}\n{use}") == run_python(use)
