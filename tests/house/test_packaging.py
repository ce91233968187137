"""What an installation contains: exactly the packages of the checkout, and the two rooms from the top."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from checkout import ROOT, files, packages_on_disk, pyproject, run_python

LINKED_ROOMS = ("dialects", "tools")


def test_package_list_is_what_the_folders_say() -> None:
    assert sorted(pyproject()["tool"]["setuptools"]["packages"]) == packages_on_disk()


@pytest.mark.parametrize("room", LINKED_ROOMS)
def test_rooms_on_top_are_linked_into_the_package(room: str) -> None:
    link = ROOT / "glow_mlir" / room
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{room}"


def test_no_module_of_the_tools_hides_a_standard_one() -> None:
    # `python tools/x.py` puts the folder first on the path: a `profile.py` there would break the interpreter.
    assert not sys.stdlib_module_names & {path.stem for path in (ROOT / "tools").rglob("*.py")}


def test_modules_below_the_tests_are_not_a_package() -> None:
    # xDSL's wheel installs a package `tests`; one of ours would be mistaken for it, or it for ours.
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_type_checker_sees_every_folder_with_code() -> None:
    folders = {path.relative_to(ROOT).parts[0] for path in files(".py")}
    expected = {f"glow_mlir/{folder}" if folder in LINKED_ROOMS else folder for folder in folders}
    assert set(pyproject()["tool"]["basedpyright"]["include"]) == expected


TOP = ("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "SECURITY.md", "pyproject.toml")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to build from, so that neither old build folders leak in nor new ones stay behind."""
    folder = tmp_path_factory.mktemp("source")
    for name in TOP:
        shutil.copy(ROOT / name, folder)
    for name in ("glow_mlir", *LINKED_ROOMS):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def built_wheel(source: Path, output: Path) -> Path:
    """The wheel that pip builds from a folder or from a source distribution, without a network."""
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(output), str(source)], check=True
    )
    (built,) = output.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(source, tmp_path_factory.mktemp("wheel"))


def test_wheel_installs_one_name_and_both_rooms(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (top_level,) = (name for name in names if name.endswith("/top_level.txt"))
        assert archive.read(top_level).decode().split() == ["glow_mlir"]
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in files(".py")
        if path.relative_to(ROOT).parts[0] in ("glow_mlir", *LINKED_ROOMS)
    }
    expected = {name if name.startswith("glow_mlir/") else f"glow_mlir/{name}" for name in expected}
    assert {name for name in names if name.endswith(".py")} == expected
    assert "glow_mlir/py.typed" in names
    assert {f"glow_mlir/pictures/page.{kind}" for kind in ("css", "html", "js")} <= set(names)


def test_source_distribution_makes_the_same_wheel(source: Path, wheel: Path, tmp_path: Path) -> None:
    code = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    run_python(code, str(tmp_path), cwd=source)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as members:
        names = {name.partition("/")[2] for name in members.getnames()}
    assert set(TOP) <= names
    tops = {name.partition("/")[0] for name in names} - set(TOP)
    assert tops == {"", "glow_mlir", *LINKED_ROOMS, "PKG-INFO", "setup.cfg", "glow_mlir.egg-info"}
    assert contents(built_wheel(archive, tmp_path)) == contents(wheel)


def contents(wheel: Path) -> dict[str, int]:
    """The files of a wheel with their checksums."""
    with zipfile.ZipFile(wheel) as archive:
        return {item.filename: item.CRC for item in archive.infolist()}


def test_wheel_works_where_there_is_no_checkout(wheel: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import glow_mlir.dialects, glow_mlir.tools\n"
        "print(glow_mlir.dialects.__file__, glow_mlir.tools.__file__)"
    )
    for origin in run_python(code, str(wheel), cwd=tmp_path).split():
        assert origin.startswith(str(wheel))
