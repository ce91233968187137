"""
A bundle as a module of Zephyr.

https://docs.zephyrproject.org/latest/develop/modules.html has the files, and the extensions of CMake have
`zephyr_library_import`, which links a library that is there already.
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
"""Family of a target, and bits of its pointers → what Kconfig calls boards that run its code."""


def module(bundle: Bundle, _: str) -> str:
    """What makes a folder a module, and says where its other files are."""
    return f"""\
# west build … -- -DEXTRA_ZEPHYR_MODULES=(this folder, with its whole path)
name: {_target(bundle)}
build:
  cmake: zephyr
  kconfig: zephyr/Kconfig
"""


def kconfig(bundle: Bundle, _: str) -> str:
    """The symbol that switches the bundle on, for boards that can run it."""
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
    """What the build does with the module."""
    name = bundle.name
    return f"""\
if(CONFIG_{_symbol(bundle)})
  zephyr_library_import({_target(bundle)} "${{CMAKE_CURRENT_LIST_DIR}}/../{name}{SUFFIXES["archive"]}")
  zephyr_include_directories("${{CMAKE_CURRENT_LIST_DIR}}/..")
endif()
"""


def boards(target: Target) -> str:
    """The condition of Kconfig under which a board runs code for a target, and links it; empty where none does."""
    if target.is_cortex_m:
        # Objects that pass floats in different registers do not link.
        return f"CPU_CORTEX_M && {'' if target.linking.float_abi == 'hard' else '!'}FP_HARDABI"
    return _ARCHITECTURES.get((target.family, target.pointer_bits), "")


def check(bundle: Bundle) -> None:
    """Raise `OptionError` for a target without boards."""
    target = bundle.layout.target
    if not boards(target) or not bundle.artifact.code[0].startswith(elf.MAGIC):
        raise OptionError(f"Zephyr has no boards for {target.triple}", hint="--target cortex-m4, …, or --package cmake")


def _target(bundle: Bundle) -> str:
    """What CMake and west call it, apart from all that is Zephyr's own."""
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
"""What `EXTRA_ZEPHYR_MODULES`, or a manifest of west, leads to."""
