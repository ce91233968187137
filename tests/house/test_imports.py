"""Importing stays cheap: nobody pays for a heavy package before using it. Each check runs a new Python."""

from __future__ import annotations

import pytest
from checkout import run_python

REPORT = "import sys; print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))"


def loaded_by(code: str) -> set[str]:
    """Return the top-level packages that a snippet loads."""
    *_, last = run_python(f"{code}\n{REPORT}").splitlines()
    assert last.startswith("LOADED ")
    return set(last.split()[1:])


def test_the_package_itself_loads_nothing_heavy() -> None:
    assert not loaded_by("import glow_mlir") & {"llvmlite", "ml_dtypes", "onnx", "rich", "xdsl"}


def test_the_universe_loads_no_frontend_and_no_llvm() -> None:
    assert not loaded_by("import glow_mlir.ir.universe") & {"llvmlite", "onnx", "rich"}


TOOLS = (
    *(
        "glow_bench",
        "glow_compile",
        "glow_generate",
        "glow_import",
        "glow_opt",
        "glow_profile",
        "glow_run",
        "glow_serve",
    ),
    *("glow_simulate", "glow_train"),
)


@pytest.mark.parametrize("tool", TOOLS)
def test_help_of_a_tool_loads_no_frontend_and_no_llvm(tool: str) -> None:
    code = (
        f"from glow_mlir.tools.{tool} import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit as stop:\n    assert not stop.code"
    )
    assert not loaded_by(code) & {"llvmlite", "onnx"}
