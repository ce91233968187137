"""Summary of the parts of a model on each of several devices, printed by glow-run."""

from __future__ import annotations

from dataclasses import asdict, field

from xdsl.dialects.builtin import ModuleOp

from glow_mlir.driver.pipelines import HOST_PROGRAM, PLACED, Stage
from glow_mlir.partitioning.report import DeviceShare, PlannedStep, add_host_programs, planned_steps, shares_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.reports.tables import Alignment, print_table

COLUMNS: dict[str, Alignment] = {
    "device": "left",
    "operators": "right",
    "multiply-adds": "right",
    "constants": "right",
    "calls": "right",
    "transfers": "right",
    "bytes": "right",
    "refused": "right",
}
REFUSED: dict[str, Alignment] = {"device": "left", "operator": "left", "reason": "left"}


@dataclass
class PlacementSummary:
    """An observer of stages that records the placement on devices."""

    shares: list[DeviceShare] = field(default_factory=list[DeviceShare])
    plan: list[PlannedStep] = field(default_factory=list[PlannedStep])
    """The work given to queues, in order."""
    key: str = "devices"

    def __call__(self, stage: Stage, module: ModuleOp, seconds: float) -> None:
        """Record the decisions of a stage."""
        if stage.name == PLACED.name:
            self.shares = shares_of(module)
        elif stage.name == HOST_PROGRAM.name and self.shares:
            self.plan = planned_steps(module)
            add_host_programs(self.shares, self.plan)

    def show(self) -> None:
        """Print the parts on each device, and the refused operators; nothing for a module that was already placed."""
        if not self.shares:
            return
        whole = sum(share.multiply_adds for share in self.shares) or 1
        rows = [
            [
                share.device,
                f"{share.operators}",
                f"{share.multiply_adds:,} ({share.multiply_adds / whole:.1%})",
                f"{share.constant_bytes:,} B",
                f"{share.partitions}",
                f"{share.transfers}",
                f"{share.transferred:,}",
                f"{len(share.refused)}",
            ]
            for share in self.shares
        ]
        print_table("devices", COLUMNS, rows)
        refused = [[share.device, *item] for share in self.shares for item in share.refused.items()]
        if refused:
            print_table("refused by devices", REFUSED, refused)

    def data(self) -> list[dict[str, object]]:
        """The summary as JSON data."""
        return [asdict(share) for share in self.shares]
