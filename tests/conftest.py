"""What every test shares: FileCheck files as tests, and how hypothesis behaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from filecheck_runner import FileCheckFile, is_filecheck_test
from hypothesis import settings

# Two busy cores make deadlines a matter of luck; in CI the same commit has to give the same answer twice.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> FileCheckFile | None:
    """Collect the FileCheck tests."""
    if is_filecheck_test(file_path):
        return FileCheckFile.from_parent(parent, path=file_path)
    return None
