"""`glow-simulate` in process: tables, files, and a line for every mistake."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from in_process import Finished, run_tool

from glow_mlir.tools import glow_simulate

SERVED: dict[str, Any] = {
    "stages": [
        {"name": "encoder", "device": "gpu", "seconds": {"fixed": 0.002, "per_row": 0.0001}},
        {"name": "head", "device": "cpu", "seconds": [0.001, 0.0012], "after": {"encoder": 0.00005}},
    ],
    "depth": 2,
    "batch": {"size": 8, "delay": 0.001},
    "queue": 64,
    "arrivals": {"clients": 16, "each_replica": True},
    "kinds": [{"name": "one", "weight": 2}, {"name": "more", "size": [1, 3], "priority": 1, "deadline": 0.5}],
    "requests": 500,
}


def simulated(folder: Path, description: object, *arguments: str) -> Finished:
    """Run the tool on a description."""
    (folder / "served.json").write_text(json.dumps(description), "utf-8")
    return run_tool(glow_simulate.main, ["served.json", *arguments], program="glow-simulate", directory=folder)


def test_a_row_for_each_number_of_devices(tmp_path: Path) -> None:
    found = simulated(tmp_path, SERVED, "--devices", "2,5,20")
    assert (found.code, found.stderr) == (0, b"")
    rows = [line.split() for line in found.stdout.decode().splitlines()[2:]]
    assert [row[:2] for row in rows] == [["2", "1"], ["5", "2"], ["20", "10"]]


def test_devices_are_those_of_a_replica_by_default(tmp_path: Path) -> None:
    found = simulated(tmp_path, SERVED, "--json", "-")
    (row,) = json.loads(found.stdout)
    assert (row["devices"], row["replicas"], row["requests"], row["answered"]) == (2, 1, 500, 500)
    assert set(row["utilisation"]) == {"gpu", "cpu"}
    assert set(row["by_kind"]) == {"one", "more"}
    assert row["latency"]["p50"] <= row["latency"]["p99"] <= row["latency"]["p999"]


def test_numbers_on_the_command_line_come_first(tmp_path: Path) -> None:
    texts = [
        simulated(tmp_path, SERVED, "--json", "-", "--requests", "300", "--seed", seed).stdout
        for seed in ("1", "1", "2")
    ]
    assert texts[0] == texts[1] != texts[2]
    assert json.loads(texts[0])[0]["answered"] == 300


def test_picture_is_svg_with_a_point_for_each_row(tmp_path: Path) -> None:
    found = simulated(tmp_path, SERVED, "--devices", "2,4,8", "--plot", "served.svg")
    assert found.code == 0
    picture = ElementTree.parse(tmp_path / "served.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert picture.tag == f"{space}svg"
    assert len(picture.findall(f".//{space}circle")) == 6
    assert len(picture.findall(f".//{space}polyline")) == 2


def test_picture_of_one_row(tmp_path: Path) -> None:
    assert simulated(tmp_path, SERVED, "--plot", "served.svg").code == 0
    assert ElementTree.parse(tmp_path / "served.svg").getroot() is not None


def test_trace_has_what_devices_did(tmp_path: Path) -> None:
    assert simulated(tmp_path, SERVED, "--trace", "trace.json", "--requests", "50").code == 0
    events = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    names = {event["name"] for event in events if event["ph"] == "X"}
    assert names == {"encoder", "head"}


def changed(path: str, value: object) -> dict[str, Any]:
    """The description with another value at a path of keys and numbers; `None` removes the key."""
    whole = deepcopy(SERVED)
    *front, last = (int(key) if key.isdigit() else key for key in path.split("."))
    place: Any = whole
    for key in front:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return whole


WRONG: dict[str, tuple[str, object, str]] = {
    "no stages": ("stages", None, "'stages' is missing"),
    "empty stages": ("stages", [], "'stages' is no list with something in it"),
    "stage": ("stages.0", 3, "'stages[0]' is no object"),
    "no device": ("stages.1.device", None, "'stages[1].device' is missing"),
    "device": ("stages.1.device", 3, "'stages[1].device' is no name"),
    "no seconds": ("stages.0.seconds", None, "'stages[0].seconds' is missing"),
    "seconds": ("stages.0.seconds", "fast", "'stages[0].seconds' is no number"),
    "negative": ("stages.0.seconds", -1, "'stages[0].seconds' is no number"),
    "not a number": ("stages.0.seconds", float("nan"), "'stages[0].seconds' is no number"),
    "infinite": ("stages.1.seconds", [0.1, float("inf")], "'stages[1].seconds[1]' is no number"),
    "measured": ("stages.0.seconds", {"fixed": [0.1, -1], "per_row": 2}, "'stages[0].seconds.fixed[1]' is no number"),
    "boolean": ("stages.0.seconds.fixed", True, "'stages[0].seconds.fixed' is no number"),
    "law": ("stages.0.seconds", {"fixd": 1, "per_row": 2}, "'stages[0].seconds.fixd' means nothing (hint: fixed?)"),
    "same name": ("stages.1.name", "encoder", "'stages[1].name' is 'encoder' again"),
    "later": ("stages.1.after", {"tail": 0}, "'stages[1].after.tail' is no earlier stage (hint: there are encoder)"),
    "hop": ("stages.1.after.encoder", [0.1], "'stages[1].after.encoder' is no number of seconds"),
    "share": ("stages.1.share", 1.5, "stage 'head' has a share of 1.5"),
    "depth": ("depth", 0, "'depth' is no count"),
    "size": ("batch.size", 2.5, "'batch.size' is no count"),
    "batch": ("batch.delays", 1, "'batch.delays' means nothing (hint: delay?)"),
    "key": ("que", 1, "'que' means nothing (hint: queue?)"),
    "queue": ("queue", "long", "'queue' is no count"),
    "calls": ("calls", {"tpu": 2}, "no stage is on device 'tpu' (hint: there are gpu, cpu)"),
    "no arrivals": ("arrivals", None, "'arrivals' is missing"),
    "two arrivals": ("arrivals", {"clients": 1, "rate": 2}, "'arrivals' says clients and rate"),
    "no clients": ("arrivals", {}, "'arrivals' says nothing"),
    "no rate": ("arrivals", {"rate": 0}, "0.0 requests come a second"),
    "arrivals' law": ("arrivals", {"rate": 1, "law": "zipf"}, "'arrivals.law' is no law of arrivals"),
    "each": ("arrivals.each_replica", 1, "'arrivals.each_replica' must be true or false"),
    "times": ("arrivals", {"times": [1, 0.5]}, "the times of a trace decrease"),
    "kind": ("kinds.0.name", None, "'kinds[0].name' is missing"),
    "rows": ("kinds.1.size", [0], "'kinds[1].size' is no count"),
    "kinds": ("kinds.1.name", "one", "kinds of requests have no names of their own"),
    "warmup": ("warmup", 500, "500 of 500 requests are left out"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_description_is_a_line_with_file_and_key(case: str, tmp_path: Path) -> None:
    path, value, reason = WRONG[case]
    found = simulated(tmp_path, changed(path, value))
    assert found.code == 1
    line = found.stderr.decode()
    assert line.startswith("served.json: error: ")
    assert reason in line
    assert "(hint: " in line
    assert line.count("\n") == 1
    assert found.stdout == b""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--devices", "1"], "served.json: error: a replica takes 2 devices, and there are 1"),
        (["--devices", "2,zwei"], "expected numbers of devices from 1 to 100,000 between commas, got 'zwei'"),
        (["--devices", "2,2"], "a number of devices is given twice in '2,2'"),
        (["--devices", "2,4", "--trace", "t.json"], "argument --trace: there are several numbers of devices"),
        (["--plot", "served.json"], "served.json: error: cannot be written: it is read as well"),
        (["--plot", "-"], "--plot, --trace need a file"),
        (["--requests", "0"], "expected a whole number from 1"),
    ],
)
def test_wrong_arguments_are_a_line(arguments: list[str], reason: str, tmp_path: Path) -> None:
    found = simulated(tmp_path, SERVED, *arguments)
    assert found.code == 1
    assert reason in found.stderr.decode()
    assert found.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{", "is no JSON"), ("[]", "is not a JSON object"), ("[" * 100_000, "is no JSON"), ("\xff", "")],
)
def test_damaged_file_is_a_line(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "served.json").write_bytes(text.encode("latin-1"))
    found = run_tool(glow_simulate.main, ["served.json"], program="glow-simulate", directory=tmp_path)
    assert found.code == 1
    assert found.stderr.decode().startswith(f"served.json: error: {reason}")
    assert found.stderr.count(b"\n") == 1


def test_missing_file_is_a_line(tmp_path: Path) -> None:
    found = run_tool(glow_simulate.main, ["served.json"], program="glow-simulate", directory=tmp_path)
    assert found.stderr.decode().startswith("served.json: error: cannot be read")
