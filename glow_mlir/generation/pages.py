"""
Pages of keys and values: who holds them, and which of them begin a later sequence as well.

A sequence has a list of pages (PagedAttention, Kwon et al. 2023). A full page is known by its tokens and all before
them: a sequence that begins with the same tokens shares it instead of computing it again. Keys and values of a token do
not depend on what else is computed in a call, so sharing does not change a result.
"""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping, Sequence

import numpy as np

from glow_mlir.errors import ExecutionError

Digest = bytes
"""The digest of the tokens of a page and of all pages before it."""


class PagePool:
    """`count` pages of `tokens` tokens each."""

    def __init__(self, count: int, tokens: int) -> None:
        self.count, self.tokens = count, tokens
        self.reset()

    def reset(self, held: Mapping[int, int] | None = None) -> None:
        """Start over: no page is known, and only sequences hold some that are in `held`, with their numbers."""
        holders = held or {}
        self._free = [page for page in range(self.count - 1, -1, -1) if page not in holders]
        self._holders = [holders.get(page, 0) for page in range(self.count)]
        self._digests: dict[int, Digest] = {}
        """Page → its digest, for pages that are known by their tokens."""
        self._known: dict[Digest, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        """Known pages that no sequence holds, the least recently used one first."""

    @property
    def available(self) -> int:
        """The number of pages that can be taken."""
        return len(self._free) + len(self._idle)

    def needed(self, length: int) -> int:
        """The number of pages of a sequence of `length` tokens."""
        return -(-length // self.tokens)

    def take(self) -> int:
        """A page for a sequence; the page that nobody used for longest is forgotten if none is free."""
        if self._free:
            page = self._free.pop()
        elif self._idle:
            page, _ = self._idle.popitem(last=False)
            del self._known[self._digests.pop(page)]
        else:
            raise ExecutionError("all pages of keys and values are in use")
        self._holders[page] = 1
        return page

    def grow(self, pages: list[int], length: int) -> None:
        """Append pages to those of a sequence until it has enough for `length` tokens."""
        while len(pages) < self.needed(length):
            pages.append(self.take())

    def release(self, page: int) -> None:
        """Give a page back; one that is known by its tokens is kept for later sequences while there is room."""
        self._holders[page] -= 1
        if self._holders[page]:
            return
        if page in self._digests:
            self._idle[page] = None
        else:
            self._free.append(page)

    def publish(self, page: int, digest: Digest) -> None:
        """Make a full page known by its digest; nothing changes if another page is known by it."""
        if digest not in self._known and page not in self._digests:
            self._known[digest], self._digests[page] = page, digest

    def shared(self, digests: Sequence[Digest]) -> list[int]:
        """Take the longest run of known pages at the beginning of a sequence, which has these digests."""
        found: list[int] = []
        for digest in digests:
            page = self._known.get(digest)
            if page is None:
                break
            self._holders[page] += 1
            self._idle.pop(page, None)
            found.append(page)
        return found

    def hold(self, page: int) -> None:
        """Take a page that a sequence has for another one, too."""
        self._holders[page] += 1

    def is_shared(self, page: int) -> bool:
        """Whether several sequences hold a page, none of which may write to it."""
        return self._holders[page] > 1

    def forget(self) -> None:
        """Forget the tokens of all pages, so that no later sequence shares one."""
        for page in self._idle:
            self._free.append(page)
        self._idle.clear()
        self._known.clear()
        self._digests.clear()


class HeldPages:
    """Pages of sequences that are no requests: they hold them until they are closed or forgotten."""

    def __init__(self, pool: PagePool) -> None:
        self.pool = pool
        self._held: Counter[int] = Counter()
        self._left: deque[int] = deque()
        """Pages that sequences do not need any more; anybody appends to it, at any time."""

    @property
    def count(self) -> int:
        """The number of pages, each counted once."""
        return len(self._held)

    def reset(self) -> None:
        """Take back all pages of requests."""
        self.pool.reset(self._held)

    def grow(self, pages: list[int], length: int) -> None:
        """As `PagePool.grow`."""
        before = len(pages)
        try:
            self.pool.grow(pages, length)
        finally:
            # Where pages are lacking, some are taken, and given back like others.
            self._held.update(pages[before:])

    def share(self, pages: Sequence[int]) -> list[int]:
        """The pages of a sequence for another one."""
        for page in pages:
            self.pool.hold(page)
        self._held.update(pages)
        return list(pages)

    def leave(self, pages: Sequence[int]) -> None:
        """Give pages back, in the order in which they are to be forgotten; allowed at any time, in any thread."""
        self._left.extend(pages)

    def collect(self) -> None:
        """Return what was given back to the pool."""
        while self._left:
            page = self._left.popleft()
            self._held[page] -= 1
            if not self._held[page]:
                del self._held[page]
            self.pool.release(page)


def digest_of(before: Digest, tokens: np.ndarray) -> Digest:
    """The digest of a page with these tokens [page], behind pages with the digest `before`."""
    return hashlib.blake2b(before + np.ascontiguousarray(tokens, np.int64).tobytes(), digest_size=16).digest()


def first_digest(salt: str, adapter: int) -> Digest:
    """What the digests of sequences begin with: only those with the same salt and adapter share pages."""
    data, own = salt.encode(errors="surrogatepass"), adapter.to_bytes(16, "little")
    return hashlib.blake2b(data, digest_size=16, salt=own, person=b"glow pages").digest()
