"""Files about the project say what holds: versions agree, workflows and hooks name what there is."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import yaml
from checkout import ROOT, make_targets, pyproject

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> str:
    """The text of a file at the top."""
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version() -> None:
    version = pyproject()["project"]["version"]
    assert yaml.safe_load(read("CITATION.cff"))["version"] == version
    newest = re.search(r"^## (\S+?),? ", read("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version


def test_oldest_python_is_the_same_everywhere() -> None:
    oldest = pyproject()["project"]["requires-python"].removeprefix(">=")
    assert f"Python ≥ {oldest}" in read("README.md")
    assert f"Python {oldest} and later" in read("docs/versions.md")
    assert pyproject()["tool"]["basedpyright"]["pythonVersion"] == oldest
    (matrix,) = re.findall(r"matrix: \{ python: (\[.*?\]) \}", read(".github/workflows/test.yml"))
    assert oldest in yaml.safe_load(matrix)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_runs_what_there_is(workflow: Any) -> None:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        program, *arguments = command.split()
        assert (ROOT / program).is_file() if program != "make" else set(arguments) <= make_targets()


def test_hooks_before_commits_are_commands_of_the_environment() -> None:
    lint = read("Makefile").partition("\nlint:")[2].partition("\n\n")[0]
    (repository,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    for hook in repository["hooks"]:
        assert hook["entry"].split()[0].replace(".venv/bin", "$(BIN)") in lint


def test_security_page_names_options_that_there_are() -> None:
    folders = (ROOT / "tools", ROOT / "glow_mlir" / "options")
    sources = "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.glob("*.py"))
    for option in re.findall(r"`(--[\w-]+)`", read("SECURITY.md")):
        assert f'"{option}"' in sources


TOP = {
    *(
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        "MANIFEST.in",
        "Makefile",
        "README.md",
        "SECURITY.md",
    ),
    *("mkdocs.yml", "pyproject.toml", ".ci", ".github", ".gitignore", ".pre-commit-config.yaml"),
    *("benchmarks", "dialects", "docs", "examples", "glow_mlir", "tests", "tools"),
}
"""What stands at the top of the repository."""


def test_nothing_else_stands_at_the_top() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {line.partition("/")[0] for line in done.stdout.splitlines()} == TOP


def test_oldest_pytorch_is_what_a_job_tests() -> None:
    (torch,) = pyproject()["project"]["optional-dependencies"]["torch"]
    found = subprocess.run(["make", "--dry-run", "--always-make", "oldest"], cwd=ROOT, capture_output=True, text=True)
    assert f"torch=={re.match(r'torch>=([0-9.]+)', torch)[1]}.*" in found.stdout  # pyright: ignore[reportOptionalSubscript]
    jobs = yaml.safe_load(read(".github/workflows/test-all.yml"))["jobs"]
    assert any(step.get("run") == "make oldest" for job in jobs.values() for step in job["steps"])


def test_the_site_has_an_environment_of_its_own() -> None:
    done = subprocess.run(["make", "--dry-run", "--always-make", "docs"], cwd=ROOT, capture_output=True, text=True)
    assert "'.[docs]'" in done.stdout
    assert "test-all" not in done.stdout
