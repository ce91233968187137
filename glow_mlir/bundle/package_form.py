"""Package forms: the files by which a build system finds a bundle."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from glow_mlir.bundle.archive import archive
from glow_mlir.bundle.compile import Bundle
from glow_mlir.runtime.bundle import OBJECT_SUFFIX
from glow_mlir.support.dataclass import dataclass

Content = Callable[[Bundle, str], str | bytes | None]
"""The contents of a file for a bundle with a library file of that name; `None` for no such file."""


def archived(bundle: Bundle, _: str) -> bytes:
    """The object in an archive, which build systems call a static library."""
    return archive(f"{bundle.name}{OBJECT_SUFFIX}", bundle.artifact.code[0])


def accept(bundle: Bundle) -> None:
    """Accept any bundle."""


@dataclass(frozen=True)
class PackageForm:
    """
    A package form: the paths and contents of its files in addition to those of the bundle.

    In a path, `{name}` stands for the bundle's name, `{cpu}` for its processor. With `has_constants`, the object
    contains the constants, because the built program has no files. `check` raises `OptionError` for a bundle that the
    build system does not support.
    """

    files: Mapping[str, Content]
    has_constants: bool = False
    check: Callable[[Bundle], None] = accept

    def contents(self, bundle: Bundle, library: str) -> dict[str, bytes]:
        """The files of the package by path; raises `OptionError` if the bundle cannot be packaged."""
        self.check(bundle)
        cpu = bundle.layout.target.cpu
        found = {path.format(name=bundle.name, cpu=cpu): make(bundle, library) for path, make in self.files.items()}
        texts = {path: content for path, content in found.items() if content is not None}
        return {path: text.encode() if isinstance(text, str) else text for path, text in texts.items()}

    @property
    def shared(self) -> set[str]:
        """The paths that do not depend on the bundle, and may belong to other files."""
        return {path for path in self.files if "{" not in path}

    def patterns(self, name: str) -> list[str]:
        """Patterns of the package's file paths for a bundle of that name, for any processor."""
        return [path.format(name=name, cpu="*") for path in self.files]
