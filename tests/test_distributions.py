"""What is installed is what `importlib.metadata` says, which is asked only where folders do not tell."""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile
from pathlib import Path

import pytest
from checkout import run_python
from package_sites import install

from glow_mlir.support.distributions import entry_points, versions

GROUP = "glow_mlir.operators"


@pytest.fixture(name="site")
def fixture_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that Python looks in first."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def test_versions_are_those_that_distributions_say() -> None:
    names = ("glow-mlir", "xdsl", "llvmlite", "numpy", "onnx", "typing.extensions", "ml_dtypes")
    known = versions((*names, "no-such-distribution"))
    assert known == {name: importlib.metadata.version(name) for name in names}
    assert tuple(known) == names


def test_the_first_of_several_is_installed(site: Path) -> None:
    install(site, "numpy", "0.0.1", "")
    assert versions(["NumPy"]) == {"NumPy": "0.0.1"}


def test_archives_and_other_finders_are_asked(
    site: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "only-zipped", "3.1", "zipped = nowhere:PACKAGE")
    archive = tmp_path_factory.mktemp("archive") / "site.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in site.rglob("*"):
            if path.is_file():
                file.write(path, path.relative_to(site))
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path[1:]])
    assert versions(["only-zipped", "xdsl"]) == {"only-zipped": "3.1", "xdsl": importlib.metadata.version("xdsl")}
    assert [point.name for point in entry_points(GROUP)] == ["zipped"]


@pytest.mark.parametrize("kind", ["dist-info", "egg-info"])
def test_entry_points_are_found(site: Path, kind: str) -> None:
    assert not [point for point in entry_points(GROUP) if point.name == "given"]
    install(site, "offers", "1.0", "given = somewhere:PACKAGE")
    (site / "offers-1.0.dist-info").rename(site / f"offers-1.0.{kind}")
    (found,) = [point for point in entry_points(GROUP) if point.name == "given"]
    assert (found.value, found.group) == ("somewhere:PACKAGE", GROUP)


def test_what_records_say_is_not_imported_without_need() -> None:
    code = (
        "import sys\n"
        "from glow_mlir.api.model_compiler import compiler_versions\n"
        "from glow_mlir.dialects.packages import packages\n"
        "print(compiler_versions(), len(packages()), 'importlib.metadata' in sys.modules)"
    )
    assert run_python(code).endswith("1 False\n")
