"""A backend of another distribution compiles and runs models, in sessions and in every tool, with no edit elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import ROOT
from package_sites import BACKEND_PACKAGE, install_example, output, run

MODEL = ROOT / "examples" / "digits.onnx"
BACKEND = BACKEND_PACKAGE / "null_backend" / "backend.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the example is installed, as its own pyproject.toml says."""
    folder = tmp_path_factory.mktemp("site")
    install_example(folder, BACKEND_PACKAGE)
    return folder


def tool(name: str) -> tuple[str, str]:
    """The arguments of Python that run a tool."""
    return "-m", f"glow_mlir.tools.{name}"


def test_backend_is_short() -> None:
    assert len(BACKEND.read_text(encoding="utf-8").splitlines()) < 60


SESSION = """
import sys
import numpy as np
from glow_mlir import InferenceSession
session = InferenceSession(sys.argv[1], backend="null", dimensions={"N": 2})
(image,) = session.get_inputs()
(scores,) = session.run(None, {image.name: np.ones(image.shape, np.float32)})
assert scores.shape == (2, 10) and scores.dtype == np.float32 and not scores.any()
assert session.compile_seconds["allocated"] > 0
"""


def test_session_runs_it(site: Path) -> None:
    output(site, "-c", SESSION, MODEL)


def test_passes_find_it_by_the_target_of_functions(site: Path) -> None:
    text = output(
        site, *tool("glow_import"), MODEL, "--bind", "N=1", "--stage", "allocated", "--backend", "null", "-o", "-"
    )
    assert 'target = #glow.target<backend = "null">' in text
    assert "activations = " in text
    assert text.count('kernel = "null"') >= 5


def test_glow_opt_knows_its_pipeline(site: Path, tmp_path: Path) -> None:
    assert "\nnull\n" in output(site, *tool("glow_opt"), "--list-pipelines")
    module = tmp_path / "m.mlir"
    output(site, *tool("glow_import"), MODEL, "--bind", "N=1", "-o", module)
    assert "glow_low.dealloc" in output(
        site, *tool("glow_opt"), module, "--pipeline", "null", "--stop-after", "stacked"
    )


def test_glow_run_runs_measures_draws_and_dumps(site: Path, tmp_path: Path) -> None:
    page, values, phases = (tmp_path / name for name in ("page.html", "values", "phases"))
    options = ("--bind", "N=1", "--backend", "null")
    assert "min" in output(site, *tool("glow_run"), MODEL, *options, "--iterations", "1", "--warmup", "0")
    output(site, *tool("glow_run"), MODEL, *options, "--dump-html", page, "--dump-phases", phases)
    assert "arena" in page.read_text(encoding="utf-8")
    assert (phases / "08-allocated.mlir").exists()
    output(site, *tool("glow_run"), MODEL, *options, "--dump-values", values)
    assert list(values.glob("*.npy"))


def test_its_results_are_wrong_and_the_check_says_so(site: Path) -> None:
    finished = run(site, *tool("glow_run"), MODEL, "--bind", "N=1", "--backend", "null", "--check", "interpreter")
    assert finished.returncode == 1
    assert "first wrong" in finished.stdout


@pytest.mark.parametrize("option", ["--profile", "--tune", "--stats=-"])
def test_what_it_does_not_do_is_one_line(site: Path, option: str) -> None:
    finished = run(site, *tool("glow_run"), MODEL, "--bind", "N=1", "--backend", "null", option)
    assert finished.returncode == 1
    (line,) = finished.stderr.splitlines()
    assert "needs machine code (hint: --backend cpu)" in line


def test_unknown_backend_is_one_line(site: Path) -> None:
    finished = run(site, *tool("glow_run"), MODEL, "--bind", "N=1", "--backend", "nil")
    assert finished.returncode == 1
    assert "no backend 'nil' (hint: there are cpu, cuda, heterogeneous, interpreter, null, opencl)" in finished.stderr


def test_environment_says_which_packages_are_loaded(site: Path) -> None:
    command = (*tool("glow_opt"), "--list-pipelines")
    assert "\nnull\n" in output(site, *command)
    assert "\nnull\n" not in output(site, *command, packages="")
    finished = run(site, *command, packages="nil")
    assert finished.returncode == 1
    assert "GLOW_PACKAGES: there is no operator package 'nil' (hint: installed are " in finished.stderr
