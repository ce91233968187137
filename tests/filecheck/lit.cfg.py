"""
Configuration for real lit: `make filecheck`, or `lit -v tests/filecheck` inside the environment.

pytest runs the same files in process, and `tests/support/run_lines.py` says what a RUN line may use.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import lit.formats

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from mlir_tools import MLIR_TOOLS, ROOT, available_features, find_mlir_tool
from run_lines import MACROS, SUFFIXES

# lit puts these two names into the namespace of this file, and knows nothing of types.
config: Any = globals()["config"]
lit_config: Any = globals()["lit_config"]

config.name = "glow-mlir"
config.suffixes = set(SUFFIXES)
config.excludes = {"Inputs"}
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(ROOT / "build" / "filecheck")
config.test_format = lit.formats.ShTest()

# Our own programs come first: those of the environment that lit itself runs in.
config.environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
config.substitutions.extend(MACROS.items())
# Which packages of operators the environment has is no matter of these tests.
config.environment["GLOW_PACKAGES"] = ""

# lit has a `diff` of its own, which knows few options; a path is what it leaves alone.
config.substitutions.append((r"(?<![\w./-])diff(?![\w./-])", shutil.which("diff") or "diff"))

for name, variable in MLIR_TOOLS.items():
    if path := find_mlir_tool(name):
        config.environment[variable] = path
        # Not inside a path or a longer word; lit matches substitutions as regular expressions.
        config.substitutions.append((rf"(?<![\w./-]){name}(?![\w./-])", path))
config.available_features |= available_features()

if lit_config.maxIndividualTestTimeIsSupported[0]:
    lit_config.maxIndividualTestTime = 60
