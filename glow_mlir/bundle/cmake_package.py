"""A bundle as a CMake package."""

from __future__ import annotations

from pathlib import Path

from glow_mlir.bundle.compile import Bundle
from glow_mlir.bundle.linking import SUFFIXES
from glow_mlir.bundle.package_form import PackageForm
from glow_mlir.runtime.bundle import OBJECT_SUFFIX, WEIGHTS_SUFFIX

_LIBRARIES = {
    OBJECT_SUFFIX: ("OBJECT", "IMPORTED_OBJECTS"),
    SUFFIXES["archive"]: ("STATIC", "IMPORTED_LOCATION"),
    SUFFIXES["shared"]: ("SHARED", "IMPORTED_LOCATION"),
}
"""Suffix of a library → its CMake type, and the property for its path."""


def config(bundle: Bundle, library: str) -> str | None:
    """The package file: an imported target `NAME::NAME`, and `NAME_WEIGHTS`, the file of the constants."""
    if (kind := Path(library).suffix) not in _LIBRARIES:
        return None
    name, (form, slot) = bundle.name, _LIBRARIES[kind]
    return f"""\
# find_package({name} REQUIRED PATHS …), then target_link_libraries(program PRIVATE {name}::{name}).
if(NOT TARGET {name}::{name})
  add_library({name}::{name} {form} IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    {slot} "${{CMAKE_CURRENT_LIST_DIR}}/{library}"
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
endif()
set({name}_WEIGHTS "${{CMAKE_CURRENT_LIST_DIR}}/{name}{WEIGHTS_SUFFIX}")
"""


CMAKE = PackageForm({"{name}-config.cmake": config})
"""The files for `find_package`: cmake-packages(7)."""
