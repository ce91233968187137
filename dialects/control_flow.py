"""What branches and loops of both dialects have in common."""

from __future__ import annotations

from abc import ABC

from xdsl.irdl import IRDLOperation


class ControlFlowOp(IRDLOperation, ABC):
    """
    An op whose regions hold operations of the program: they run where the op stands, not at all, once or several times.

    Values of the regions around are visible inside. A body of scalar operations, as a stack has one, is no such region.
    """
