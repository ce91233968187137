"""The devices on which a model runs, and the distribution of its operators."""

from __future__ import annotations

import re
from collections.abc import Iterator

from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Flag, Options, Words, option
from glow_mlir.support.dataclass import dataclass

_NAME = re.compile(r"(?P<backend>[\w.-]+?)(?::(?P<number>\d+))?")

HOST = "host"
"""The target of this process's machine, or of the device that a backend compiles for there."""

PREFERRED = "preferred"
"""The default placement of operators: on the first device listed that executes them."""

STRATEGIES = (PREFERRED, "latency", "pipeline")
"""The strategies for placing operators on devices."""

SHARED: dict[str, tuple[str, ...]] = {
    "tensor-parallel": ("split-products", "shard-tables"),
    "data-parallel": ("split-batch",),
}
"""Ways in which devices share operators → the passes that split these; other operators are placed by latency."""


@dataclass(frozen=True, eq=False, repr=False)
class PlacementOptions(Options):
    """Several devices, and the distribution of operators among them."""

    GROUP = "placement"

    devices: str = option(
        "",
        "devices that share the model, as cpu,opencl:0: a backend and a number each, with fields of its target behind",
        flag=Flag("--devices", "LIST"),
    )
    partition: str = option(
        "",
        "distribution of operators: to the first device listed that can, for the least time, by stages of a pipeline, "
        "or each to all devices, by parts of products and tables or of the batch",
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
    """The backends in a text of devices, each once; errors in the text are reported where the devices are created."""
    return list(dict.fromkeys(name.partition(":")[0] for name, _ in _parts(devices) if name))


def devices_named(devices: str) -> Iterator[tuple[str, int, list[str]]]:
    """
    The backend of each device in a text such as `opencl:1,cpu,threads=2,cpu`, its number, by default the next one, and
    the fields after it; raises `OptionError` for an invalid device.
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
    """Each name in a text, and the fields after it."""
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
