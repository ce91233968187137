"""What every test shares: FileCheck files as tests, and how hypothesis behaves."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import TextIO

import breadth
import pytest
import time_limits
from beside_calls import settle
from filecheck_runner import FileCheckFile, is_filecheck_test
from hypothesis import settings

# Which packages of operators an environment has is no matter of the tests; those that want one name it.
os.environ["GLOW_PACKAGES"] = ""

# What a test compiles for PyTorch has to compile: nothing is left to PyTorch because of a failure.
os.environ["GLOW_FALLBACK"] = "error"

STDERR = pytest.StashKey[TextIO]()
"""The standard error of the process, which no test captures."""


def pytest_configure(config: pytest.Config) -> None:
    """Two busy cores make deadlines a matter of luck; in CI the same commit has to give the same answer twice."""
    breadth.begin(bool(config.getoption("--short")))
    count = breadth.examples(settings.get_profile("default").max_examples)
    is_ci = bool(os.environ.get("CI"))
    settings.register_profile("ours", deadline=None, max_examples=count, derandomize=is_ci, print_blob=is_ci)
    settings.load_profile("ours")
    config.stash[STDERR] = os.fdopen(os.dup(2), "w", encoding="utf-8")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close what was opened."""
    config.stash[STDERR].close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a short run has no time for; limit the time of the others."""
    time_limits.limit_sweeps(items)
    if config.getoption("--short"):
        kept = breadth.in_short_run(items)
        left = set(items) - set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """No test can hang: what pytest-timeout does not end, the system does."""
    with time_limits.ended_without_python(item, item.config.stash[STDERR]):
        return (yield)


@pytest.fixture
def hears_ctrl_c() -> Generator[None]:
    """For tests that send SIGINT, here or to processes that they start."""
    with time_limits.interruptible():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where all extras have to be there, a test that needs one is not skipped."""
    report = yield
    if report.skipped and item.get_closest_marker("extra") and item.config.getoption("--extras"):
        report.outcome = "failed"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    """What sessions of a test compile beside their calls is no matter of the next one."""
    settle()
    yield


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> FileCheckFile | None:
    """Collect the FileCheck tests."""
    if is_filecheck_test(file_path):
        return FileCheckFile.from_parent(parent, path=file_path)
    return None


def pytest_collection_finish() -> None:
    """Keep what is collected out of the way of the garbage collector, which would go through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """How broad the run is; for ONNX's backend suite: write down what it gives, run all of it on other processors."""
    parser.addoption("--extras", action="store_true", help="fail, instead of skipping, where an extra is missing")
    parser.addoption("--short", action="store_true", help="leave out what is long or needs extras, as `make test` does")
    text = "write the outcomes of ONNX's backend suite as its expected failures"
    parser.addoption("--write-expected-failures", action="store_true", help=text)
    parser.addoption("--all-node-tests", action="store_true", help="run all node tests on other processors")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Count what the tests of ONNX's backend suite gave, if they ran."""
    reports = [report for name in ("passed", "failed") for report in terminalreporter.stats.get(name, [])]
    found = [value for report in reports for key, value in report.user_properties if key == "onnx_suite"]
    if not found or hasattr(config, "workerinput"):
        return  # each worker of pytest-xdist comes here too, and knows its own share only
    from onnx_suite import counts_by_tier, write_expected_failures

    terminalreporter.section("ONNX's backend suite")
    for line in counts_by_tier((name, verdict) for name, verdict, _ in found):
        terminalreporter.line(line)
    if config.getoption("--write-expected-failures"):
        write_expected_failures({name: (verdict, reason) for name, verdict, reason in found})
