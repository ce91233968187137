"""
A bundle as a Zephyr module.

https://docs.zephyrproject.org/latest/develop/modules.html describes the files. Zephyr's CMake extension
`zephyr_library_import` links an existing library.
"""

from __future__ import annotations

from glow_mlir.bundle.compile import Bundle
from glow_mlir.bundle.linking import SUFFIXES
from glow_mlir.bundle.package_form import PackageForm, archived
from glow_mlir.codegen.llvm import elf
from glow_mlir.dialects.target import Target
from glow_mlir.errors import OptionError

_ARCHITECTURES = {
    ("x86", 64): "64BIT && (X86 || ARCH_POSIX)",
    ("aarch64", 64): "ARM64",
    ("riscv", 64): "RISCV && 64BIT",
    ("riscv", 32): "RISCV && !64BIT",
}
"""Family and pointer bits of a target → Kconfig condition for boards that run its code."""


def module(bundle: Bundle, _: str) -> str:
    """The file that makes a folder a module, with the paths of its other files."""
    return f"""\
# west build … -- -DEXTRA_ZEPHYR_MODULES=(this folder, with its whole path)
name: {_target(bundle)}
build:
  cmake: zephyr
  kconfig: zephyr/Kconfig
"""


def kconfig(bundle: Bundle, _: str) -> str:
    """The Kconfig symbol that enables the bundle, for boards that can run it."""
    report, layout = bundle.report, bundle.layout
    return f"""\
config {_symbol(bundle)}
\tbool "The model '{bundle.name}', as glow-compile made it"
\tdepends on {boards(layout.target)}
\thelp
\t  For {layout.target.machine}.
\t  It takes {report.flash} bytes of flash, {report.mutables + report.activations} of RAM that the program gives,
\t  and at most {report.stack} of the stack of the thread that calls it.
"""


def cmake_lists(bundle: Bundle, _: str) -> str:
    """The build rules of the module."""
    name = bundle.name
    return f"""\
if(CONFIG_{_symbol(bundle)})
  zephyr_library_import({_target(bundle)} "${{CMAKE_CURRENT_LIST_DIR}}/../{name}{SUFFIXES["archive"]}")
  zephyr_include_directories("${{CMAKE_CURRENT_LIST_DIR}}/..")
endif()
"""


def boards(target: Target) -> str:
    """The Kconfig condition for boards that run and link code for a target; empty if there are none."""
    if target.is_cortex_m:
        # Objects with different float ABIs do not link.
        return f"CPU_CORTEX_M && {'' if target.linking.float_abi == 'hard' else '!'}FP_HARDABI"
    return _ARCHITECTURES.get((target.family, target.pointer_bits), "")


def check(bundle: Bundle) -> None:
    """Raise `OptionError` for a target without boards."""
    target = bundle.layout.target
    if not boards(target) or not bundle.artifact.code[0].startswith(elf.MAGIC):
        raise OptionError(f"Zephyr has no boards for {target.triple}", hint="--target cortex-m4, …, or --package cmake")


def _target(bundle: Bundle) -> str:
    """The name of the module in CMake and west, distinct from Zephyr's own."""
    return f"glow_bundle_{bundle.name}"


def _symbol(bundle: Bundle) -> str:
    return _target(bundle).upper()


ZEPHYR = PackageForm(
    {
        "{name}" + SUFFIXES["archive"]: archived,
        "zephyr/module.yml": module,
        "zephyr/Kconfig": kconfig,
        "zephyr/CMakeLists.txt": cmake_lists,
    },
    has_constants=True,
    check=check,
)
"""The folder for `EXTRA_ZEPHYR_MODULES`, or a west manifest."""
