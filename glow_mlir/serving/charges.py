"""Accounting of the memory of requests, which is charged before it is allocated."""

from __future__ import annotations

from typing import Protocol


class Holder(Protocol):
    """The account of the memory of all requests."""

    def hold(self, size: int) -> None:
        """Keep so many bytes; raises `OverloadError` where that is more than may be."""
        ...

    def release(self, size: int) -> None:
        """Keep so many bytes no more."""
        ...


class Charge:
    """The memory charged to one request until `release`; `holder` is `None` if nothing is accounted."""

    def __init__(self, holder: Holder | None = None) -> None:
        self._holder = holder
        self.size = 0
        """How many bytes that is."""

    def add(self, size: int) -> None:
        """Take so many bytes more, before they are there; raises `OverloadError` where there are not so many."""
        if self._holder is not None:
            self._holder.hold(size)
        self.size += size

    def give_back(self, size: int) -> None:
        """Take so many bytes less."""
        if self._holder is not None:
            self._holder.release(size)
        self.size -= size

    def release(self) -> None:
        """Take nothing any more."""
        if self.size:
            self.give_back(self.size)
