"""The available package forms."""

from __future__ import annotations

from collections.abc import Mapping

from glow_mlir.bundle.arduino_library import ARDUINO
from glow_mlir.bundle.cmake_package import CMAKE
from glow_mlir.bundle.package_form import PackageForm
from glow_mlir.bundle.zephyr_module import ZEPHYR

PACKAGES: Mapping[str, PackageForm] = {"cmake": CMAKE, "zephyr": ZEPHYR, "arduino": ARDUINO}
"""Value of `--package` → form."""

DEFAULT = "cmake"
