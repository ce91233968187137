"""What a form of package is: the files by which a build system finds a bundle."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from glow_mlir.bundle.archive import archive
from glow_mlir.bundle.compile import Bundle
from glow_mlir.runtime.bundle import OBJECT_SUFFIX
from glow_mlir.support.dataclass import dataclass

Content = Callable[[Bundle, str], str | bytes | None]
"""What a file has of a bundle, whose library has that name of a file; none where there is no such file."""


def archived(bundle: Bundle, _: str) -> bytes:
    """The object in an archive, which is what build systems call a static library."""
    return archive(f"{bundle.name}{OBJECT_SUFFIX}", bundle.artifact.code[0])


def accept(bundle: Bundle) -> None:
    """Take any bundle."""


@dataclass(frozen=True)
class PackageForm:
    """
    A form of package: the paths of its files beside those of the bundle, and what they have.

    In a path, `{name}` stands for that of the bundle, `{cpu}` for that of its processor. Where `has_constants`, the
    constants are in the object: what is built has no files. `check` raises `OptionError` for a bundle that the build
    system cannot take.
    """

    files: Mapping[str, Content]
    has_constants: bool = False
    check: Callable[[Bundle], None] = accept

    def contents(self, bundle: Bundle, library: str) -> dict[str, bytes]:
        """The files of the package by their paths; raises `OptionError` where there is none of the bundle."""
        self.check(bundle)
        cpu = bundle.layout.target.cpu
        found = {path.format(name=bundle.name, cpu=cpu): make(bundle, library) for path, make in self.files.items()}
        texts = {path: content for path, content in found.items() if content is not None}
        return {path: text.encode() if isinstance(text, str) else text for path, text in texts.items()}

    @property
    def shared(self) -> set[str]:
        """The paths that are the same for all bundles, and may be those of others' files."""
        return {path for path in self.files if "{" not in path}

    def patterns(self, name: str) -> list[str]:
        """What the paths of the files match for a bundle of that name, for any processor."""
        return [path.format(name=name, cpu="*") for path in self.files]
