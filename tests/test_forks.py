"""What begins anew in a child of `os.fork`."""

from __future__ import annotations

import pytest
from forked import child

from glow_mlir.support.forks import reset_in_forks


class Counted:
    """Counts how often it begins anew, unless it fails at that."""

    def __init__(self, *, fails: bool = False) -> None:
        self.times = 0
        self._fails = fails
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Count, or fail."""
        if self._fails:
            raise ValueError
        self.times += 1


def test_all_that_is_there_begins_anew_though_one_fails(capfd: pytest.CaptureFixture[str]) -> None:
    failing, counted, gone = Counted(fails=True), Counted(), Counted()
    del gone
    assert child(lambda: counted.times == 1)
    assert counted.times == failing.times == 0
    assert "ValueError" in capfd.readouterr().err
