"""Accounting of the memory of requests, which is charged before it is allocated."""

from __future__ import annotations

from typing import Protocol


class Holder(Protocol):
    """The account of the memory of all requests."""

    def hold(self, size: int) -> None:
        """Charge bytes; raises `OverloadError` beyond the limit."""
        ...

    def release(self, size: int) -> None:
        """Return charged bytes."""
        ...


class Charge:
    """The memory charged to one request until `release`; `holder` is `None` if nothing is accounted."""

    def __init__(self, holder: Holder | None = None) -> None:
        self._holder = holder
        self.size = 0
        """The number of charged bytes."""

    def add(self, size: int) -> None:
        """Charge more bytes, before they are allocated; raises `OverloadError` beyond the limit."""
        if self._holder is not None:
            self._holder.hold(size)
        self.size += size

    def give_back(self, size: int) -> None:
        """Return some of the bytes."""
        if self._holder is not None:
            self._holder.release(size)
        self.size -= size

    def release(self) -> None:
        """Return all bytes."""
        if self.size:
            self.give_back(self.size)
