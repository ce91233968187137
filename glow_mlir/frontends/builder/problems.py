"""Unsupported nodes of a model: collected node by node, and raised together."""

from __future__ import annotations

from dataclasses import field

from glow_mlir.errors import InputValuesError, UnsupportedError, UnsupportedOperatorsError
from glow_mlir.support.dataclass import dataclass


@dataclass
class Problems:
    """The nodes of a model that are not supported."""

    unknown: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Kind and name of each node without an importer."""
    errors: list[UnsupportedError] = field(default_factory=list[UnsupportedError])
    """Errors of importers, for forms of nodes that they do not support."""

    def mark(self) -> tuple[int, int]:
        """The current number of problems, for `forget_since`."""
        return len(self.unknown), len(self.errors)

    def forget_since(self, mark: tuple[int, int]) -> None:
        """Forget the problems found since `mark`, before another attempt."""
        del self.unknown[mark[0] :], self.errors[mark[1] :]

    def raise_all(self) -> None:
        """
        Raise one error for all problems, if there are any.

        `UnsupportedOperatorsError` lists several problems; a single error is raised unchanged. If only values of inputs
        are missing, `InputValuesError` names them.
        """
        if not self.unknown and len(self.errors) == 1:
            raise self.errors[0]
        missing = [error for error in self.errors if isinstance(error, InputValuesError)]
        if not self.unknown and missing and len(missing) == len(self.errors):
            names = dict.fromkeys(name for error in missing for name in error.inputs)
            trip_capacities = dict.fromkeys(capacity for error in missing for capacity in error.trip_capacities)
            raise InputValuesError(
                missing[0].reason, list(names), node=missing[0].node, trip_capacities=list(trip_capacities)
            )
        if self.unknown or self.errors:
            listed = [*self.unknown, *((error.reason, error.node) for error in self.errors)]
            hints = {error.hint for error in self.errors}
            if not self.unknown and len(hints) == 1:
                raise UnsupportedOperatorsError(listed, hint=hints.pop())
            raise UnsupportedOperatorsError(listed)
