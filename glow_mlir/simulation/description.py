"""JSON descriptions of systems and their load, explained in docs/simulation.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from glow_mlir.errors import OptionError
from glow_mlir.simulation.arrivals import RETRY, Arrivals, ClosedLoop, FixedRate, Kind, Load, Poisson, Trace
from glow_mlir.simulation.service import Affine, Exponential, Fixed, Law, Measured
from glow_mlir.simulation.system import Batching, Hop, Replica, Stage, System, replicated
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.json_text import parsed_json

MOST = 10**9
"""The largest count in a description."""

HINT = "docs/simulation.md describes the file"


@dataclass(frozen=True)
class Description:
    """A system with one replica, its load, and whether clients or rate are per replica."""

    system: System
    load: Load
    seed: int = 0
    is_for_each: bool = False

    @property
    def devices(self) -> int:
        """The number of devices of a replica."""
        return len(self.system.devices)

    def on(self, devices: int) -> tuple[System, Load]:
        """
        The system with as many replicas as fit on the devices, and its load.

        Raises `OptionError` if not even one fits.
        """
        count = devices // self.devices
        if not count:
            raise OptionError(
                f"a replica takes {self.devices} devices, and there are {devices}", hint="--devices of more"
            )
        return replicated(self.system, count), self._load(count)

    def _load(self, count: int) -> Load:
        if not self.is_for_each:
            return self.load
        match self.load.arrivals:
            case ClosedLoop(clients) as loop:
                return replace(self.load, arrivals=replace(loop, clients=clients * count))
            case Poisson(rate) | FixedRate(rate) as given:
                return replace(self.load, arrivals=replace(given, rate=rate * count))
            case Trace():
                return self.load


def read_description(path: Path) -> Description:
    """Read the description in a file; raises `OptionError` with file and key if it is invalid."""
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise OptionError(f"cannot be read: {error}", file=str(path)) from error
    try:
        return parsed_description(text)
    except OptionError as error:
        raise OptionError(error.reason, file=str(path), hint=error.hint or HINT) from error


def parsed_description(text: str) -> Description:
    """Parse a description; raises `OptionError` with the key if it is invalid."""
    try:
        data = parsed_json(text)
    except ValueError as error:
        raise OptionError(f"is no JSON: {error}") from error
    whole = _Object.of(data, "")
    system = System(
        replicas=(_replica(whole),),
        batching=_batching(whole.inner("batch", {})),
        depth=whole.count("depth", 1),
        queue=whole.count("queue", 1) if "queue" in whole.data else None,
        overhead=whole.number("overhead", 0.0),
        cores=whole.count("cores", 1),
        calls=_calls(whole),
    )
    arrivals, is_for_each = _arrivals(whole.inner("arrivals"))
    kinds = tuple(map(_kind, whole.objects("kinds"))) if "kinds" in whole.data else (Kind(),)
    load = Load(arrivals, whole.count("requests", 100_000), kinds, whole.count("warmup", 0, least=0))
    seed = whole.count("seed", 0, least=0)
    whole.end()
    system.check()
    load.check()
    return Description(system, load, seed, is_for_each)


@dataclass(frozen=True)
class _Object:
    """A JSON object, its path in errors, and the keys read so far."""

    data: Mapping[str, Any]
    json_path: str
    asked: set[str]

    @staticmethod
    def of(data: Any, json_path: str) -> _Object:
        """The object at a path; raises `OptionError` for anything else."""
        if not isinstance(data, dict):
            raise OptionError(f"'{json_path}' is no object" if json_path else "is not a JSON object", hint=HINT)
        return _Object(cast("dict[str, Any]", data), json_path, set())

    def key(self, name: str) -> str:
        """The path of a key."""
        return f"{self.json_path}.{name}" if self.json_path else name

    def get(self, name: str, *default: Any) -> Any:
        """The value of a key; raises `OptionError` if it is missing and has no default."""
        self.asked.add(name)
        if name not in self.data and not default:
            raise OptionError(f"'{self.key(name)}' is missing", hint=HINT)
        return self.data.get(name, *default)

    def inner(self, name: str, *default: Any) -> _Object:
        """The object at a key."""
        return _Object.of(self.get(name, *default), self.key(name))

    def objects(self, name: str) -> list[_Object]:
        """The objects in the list at a key."""
        found = _list(self.get(name), self.key(name))
        return [_Object.of(item, f"{self.key(name)}[{number}]") for number, item in enumerate(found)]

    def number(self, name: str, *default: float) -> float:
        """A nonnegative number."""
        return _number(self.get(name, *default), self.key(name))

    def count(self, name: str, *default: int, least: int = 1) -> int:
        """A whole number."""
        return _count(self.get(name, *default), self.key(name), least)

    def text(self, name: str, *default: str) -> str:
        """A nonempty text."""
        found = self.get(name, *default)
        if not isinstance(found, str) or not found:
            raise OptionError(f"'{self.key(name)}' is no name", hint="a text that is not empty")
        return found

    def end(self) -> None:
        """Raise `OptionError` for keys that were not read."""
        for name in self.data.keys() - self.asked:
            near = get_close_matches(name, self.asked, n=1) or sorted(self.asked)
            raise OptionError(f"'{self.key(name)}' means nothing", hint=f"{' or '.join(near)}?")


def _list(data: Any, json_path: str) -> list[Any]:
    if not isinstance(data, list) or not data:
        raise OptionError(f"'{json_path}' is no list with something in it", hint=HINT)
    return cast("list[Any]", data)


def _number(data: Any, json_path: str) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float) or not 0 <= data < math.inf:
        raise OptionError(f"'{json_path}' is no number", hint="a finite number from 0 on")
    return float(data)


def _count(data: Any, json_path: str, least: int = 1) -> int:
    if isinstance(data, bool) or not isinstance(data, int) or not least <= data <= MOST:
        raise OptionError(f"'{json_path}' is no count", hint=f"a whole number from {least} to {MOST}")
    return data


def _batching(data: _Object) -> Batching:
    found = Batching(data.count("size", 1), data.number("delay", 0.0))
    data.end()
    return found


def _calls(whole: _Object) -> dict[str, int]:
    data = whole.inner("calls", {})
    return {name: data.count(name) for name in data.data}


def _replica(whole: _Object) -> Replica:
    """The stages; by default, each follows the previous one."""
    found: list[Stage] = []
    names: list[str] = []
    for number, data in enumerate(whole.objects("stages")):
        name = data.text("name", f"stage {number}")
        if name in names:
            raise OptionError(f"'{data.key('name')}' is '{name}' again", hint="stages have names of their own")
        after = _hops(data, names)
        law = _law(data.get("seconds"), data.key("seconds"))
        found.append(Stage(name, data.text("device"), law, after, data.number("share", 1.0)))
        names.append(name)
        data.end()
    return tuple(found)


def _hops(data: _Object, names: Sequence[str]) -> tuple[Hop, ...]:
    """The predecessors of a stage: names of earlier stages → seconds, or `{"fixed": …, "per_row": …}`."""
    given = data.inner("after", {names[-1]: 0.0} if names else {})
    found: list[Hop] = []
    for name in given.data:
        if name not in names:
            listed = ", ".join(names) or "none"
            raise OptionError(f"'{given.key(name)}' is no earlier stage", hint=f"there are {listed}")
        match _law(given.data[name], given.key(name)):
            case Fixed(seconds):
                found.append(Hop(names.index(name), seconds))
            case Affine(fixed, per_row):
                found.append(Hop(names.index(name), fixed, per_row))
            case _:
                raise OptionError(f"'{given.key(name)}' is no number of seconds", hint="hops take fixed seconds")
    return tuple(found)


def _law(data: Any, json_path: str) -> Law:
    """
    A law of seconds: a number, a list of measured values, `{"fixed": …, "per_row": …}` or `{"exponential": …}`.

    `fixed` may also be a list of measured values.
    """
    if isinstance(data, list):
        return Measured(_samples(data, json_path))
    if not isinstance(data, dict):
        return Fixed(_number(data, json_path))
    given = _Object.of(cast("Any", data), json_path)
    law: Law
    if "exponential" in given.data:
        law = Exponential(given.number("exponential"))
    elif isinstance(fixed := given.get("fixed", 0.0), list):
        law = Measured(_samples(fixed, given.key("fixed")), given.number("per_row"))
    else:
        law = Affine(given.number("fixed", 0.0), given.number("per_row"))
    given.end()
    return law


def _samples(data: Any, json_path: str) -> tuple[float, ...]:
    """Measured seconds."""
    return tuple(_number(item, f"{json_path}[{number}]") for number, item in enumerate(_list(data, json_path)))


def _arrivals(data: _Object) -> tuple[Arrivals, bool]:
    """The arrival process, and whether it is given per replica."""
    is_for_each = data.get("each_replica", False)
    if not isinstance(is_for_each, bool):
        raise OptionError(f"'{data.key('each_replica')}' must be true or false")
    ways: dict[str, Callable[[_Object], Arrivals]] = {"clients": _loop, "rate": _rate, "times": _trace}
    stated = [name for name in ways if name in data.data]
    if len(stated) != 1:
        raise OptionError(
            f"'{data.json_path}' says {' and '.join(stated) or 'nothing'}", hint=f"one of {', '.join(ways)}"
        )
    found = ways[stated[0]](data)
    data.end()
    return found, is_for_each


def _loop(data: _Object) -> Arrivals:
    return ClosedLoop(data.count("clients"), data.number("think", 0.0), data.number("retry", RETRY))


def _rate(data: _Object) -> Arrivals:
    rate, law = data.number("rate"), data.get("law", "poisson")
    if law not in ("poisson", "fixed"):
        raise OptionError(f"'{data.key('law')}' is no law of arrivals", hint="poisson or fixed")
    return Poisson(rate) if law == "poisson" else FixedRate(rate)


def _trace(data: _Object) -> Arrivals:
    json_path = data.key("times")
    times = _list(data.get("times"), json_path)
    return Trace(tuple(_number(time, f"{json_path}[{number}]") for number, time in enumerate(times)))


def _kind(data: _Object) -> Kind:
    size = data.get("size", 1)
    json_path = data.key("size")
    sizes = [size] if isinstance(size, int) else _list(size, json_path)
    found = Kind(
        name=data.text("name"),
        weight=data.number("weight", 1.0),
        sizes=tuple(_count(item, json_path) for item in sizes),
        priority=data.count("priority", 0, least=0),
        deadline=data.number("deadline") if "deadline" in data.data else math.inf,
    )
    data.end()
    return found
