"""On which devices a model runs, and which computes what."""

from __future__ import annotations

import re
from collections.abc import Iterator

from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Flag, Options, Words, option
from glow_mlir.support.dataclass import dataclass

_NAME = re.compile(r"(?P<backend>[\w.-]+?)(?::(?P<number>\d+))?")

HOST = "host"
"""The target that is the machine of this process, or the device beside it that a backend compiles for."""

PREFERRED = "preferred"
"""The default placement of operators: on the first device listed that executes them."""

STRATEGIES = (PREFERRED, "latency", "pipeline")
"""How operators are placed on devices."""

SHARED: dict[str, tuple[str, ...]] = {
    "tensor-parallel": ("split-products", "shard-tables"),
    "data-parallel": ("split-batch",),
}
"""The ways in which devices share operators, the rest of which is placed by latency → the passes that split them."""


@dataclass(frozen=True, eq=False, repr=False)
class PlacementOptions(Options):
    """Several devices, and what runs on which of them."""

    GROUP = "placement"

    devices: str = option(
        "",
        "devices that share the model, as cpu,opencl:0: a backend and a number each, with fields of its target behind",
        flag=Flag("--devices", "LIST"),
    )
    partition: str = option(
        "",
        "which device computes what: the first listed that can, what takes the least time, stages of a pipeline, "
        "each a part of products and tables, or of the batch",
        domain=Words(("", *STRATEGIES, *SHARED)),
        flag=Flag("--partition", default_text=PREFERRED),
    )
    placement: str = option(
        "",
        "a JSON file that assigns nodes to devices (docs/devices.md)",
        flag=Flag("--placement", "FILE"),
    )
    placement_profile: str = option(
        "",
        "a JSON file with measured seconds of nodes on devices (docs/devices.md)",
        flag=Flag("--placement-profile", "FILE"),
    )


def backends_named(devices: str) -> list[str]:
    """The backends of a text of devices, each once; what is wrong with it is told where devices are made of it."""
    return list(dict.fromkeys(name.partition(":")[0] for name, _ in _parts(devices) if name))


def devices_named(devices: str) -> Iterator[tuple[str, int, list[str]]]:
    """
    The backend of each device in a text such as `opencl:1,cpu,threads=2,cpu`, its number, by default the next one, and
    the fields behind it; raises `OptionError` for what is no device.
    """
    taken: dict[str, int] = {}
    for name, fields in _parts(devices):
        match = _NAME.fullmatch(name)
        if match is None:
            raise OptionError(f"'{name}' is no device", hint="a backend, or one of several: cpu, opencl:1")
        backend = match["backend"]
        number = taken.get(backend, 0) if match["number"] is None else int(match["number"])
        taken[backend] = max(taken.get(backend, 0), number + 1)
        yield backend, number, fields


def _parts(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each name in a text, and the fields behind it."""
    name, fields = "", list[str]()
    for part in text.split(","):
        entry = part.strip()
        is_field = "=" in entry or (fields and fields[-1].startswith("features=") and entry[:1] in ("+", "-"))
        if is_field and name:
            fields.append(entry)
            continue
        if name:
            yield name, fields
        name, fields = entry, []
    yield name, fields
