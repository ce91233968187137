"""On which devices a model runs, and which computes what."""

from __future__ import annotations

from glow_mlir.options.declaration import Flag, Options, Words, option
from glow_mlir.support.dataclass import dataclass

PREFERRED = "preferred"
"""The way of placing operators where nobody says another: on the first device listed that executes them."""

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
        flag=Flag("--partition", unsaid=PREFERRED),
    )
    placement: str = option(
        "",
        "a JSON file that says of some nodes on what device they are, as docs/devices.md tells",
        flag=Flag("--placement", "FILE"),
    )
    placement_profile: str = option(
        "",
        "a JSON file with measured seconds of nodes on devices, as docs/devices.md tells",
        flag=Flag("--placement-profile", "FILE"),
    )


def backends_named(devices: str) -> list[str]:
    """The backends of a text of devices, each once; what is wrong with it is told where devices are made of it."""
    names = (part.strip() for part in devices.split(","))
    return list(
        dict.fromkeys(name.partition(":")[0] for name in names if name and "=" not in name and name[0] not in "+-")
    )
