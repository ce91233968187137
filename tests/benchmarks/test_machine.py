"""Cores and the peak of the machine."""

from __future__ import annotations

import argparse

import pytest

from contest.machine import add_core, cores_from, machine, on_cores, usable_cores
from contest.probe import Probe


def test_cores_go_on_from_the_first_and_around(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("contest.machine.usable_cores", lambda: [2, 3, 5])
    assert cores_from(3, 1) == [3]
    assert cores_from(3, 3) == [3, 5, 2]


@pytest.mark.parametrize(("first", "threads"), [(2, 4), (4, 1)])
def test_cores_that_are_not_there_are_refused(first: int, threads: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("contest.machine.usable_cores", lambda: [2, 3, 5])
    with pytest.raises(ValueError, match="do not fit"):
        cores_from(first, threads)


def test_process_goes_back_to_its_cores():
    before = usable_cores()
    with on_cores(before[:1]):
        assert usable_cores() == before[:1]
    assert usable_cores() == before


def test_probe_finds_a_peak_and_leaves_the_process_where_it_was():
    before = usable_cores()
    probe = Probe(before[:1])
    assert 0 < probe.measure() <= probe.best
    assert probe.best > 1e9
    assert usable_cores() == before


def test_machine_has_a_name():
    assert "cores" in machine()


def test_a_core_that_is_not_there_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("contest.machine.usable_cores", lambda: [2, 3, 5])
    parser = argparse.ArgumentParser()
    add_core(parser)
    assert (parser.parse_args([]).core, parser.parse_args(["--core", "5"]).core) == (2, 5)
    for core in ("77", "-1", "two"):
        with pytest.raises(SystemExit):
            parser.parse_args([f"--core={core}"])
        assert f"--core: expected a core of 2, 3, 5, got '{core}'" in capsys.readouterr().err
