"""Server errors, with their HTTP and gRPC statuses."""

from __future__ import annotations

import asyncio
import concurrent.futures
from functools import cache
from typing import NamedTuple

from glow_mlir.errors import (
    CancelledError,
    GlowError,
    InputError,
    NetworkHangsError,
    QueueFullError,
    TimeLimitError,
    UnknownNetworkError,
    printable,
)

MAX_WORDS = 1 << 12
"""The maximum length of an error text: gRPC clients reject longer ones, and lose the status."""

OMITTED = " ... "
"""The replacement for the middle of a longer text."""


class UnknownModelError(UnknownNetworkError):
    """An unknown model, or version of a model."""


class UnauthorizedError(GlowError):
    """A request without the required token."""


class ForbiddenError(GlowError):
    """A forbidden request, for every client or for this one."""


class NotOfferedError(GlowError):
    """A request of the protocol that this server does not implement."""


class NotReadyError(GlowError):
    """A model that does not accept requests now."""


class OverloadError(GlowError):
    """A request beyond the maximum number of concurrent requests."""


class BodyTooLargeError(InputError):
    """A request body beyond the maximum size, also after decompression."""


class SlowBodyError(TimeLimitError):
    """A request body that did not arrive in time."""


class EncodingError(InputError):
    """A request body in an unknown encoding."""


class ResponseTooLargeError(GlowError):
    """A response beyond the maximum size of a gRPC message."""


class MediaTypeError(InputError):
    """A request body that is not declared as JSON."""


class DisconnectedError(CancelledError):
    """A client that has disconnected."""


class Status(NamedTuple):
    """The status of an error: the HTTP number, and the name of the gRPC code."""

    http: int
    grpc: str


INTERNAL = Status(500, "INTERNAL")
"""The status of errors that are not the client's fault."""

STATUSES: dict[type[BaseException], Status] = {
    InputError: Status(400, "INVALID_ARGUMENT"),
    UnauthorizedError: Status(401, "UNAUTHENTICATED"),
    ForbiddenError: Status(403, "PERMISSION_DENIED"),
    NotOfferedError: Status(501, "UNIMPLEMENTED"),
    UnknownNetworkError: Status(404, "NOT_FOUND"),
    NotReadyError: Status(503, "UNAVAILABLE"),
    NetworkHangsError: Status(503, "UNAVAILABLE"),
    QueueFullError: Status(503, "RESOURCE_EXHAUSTED"),
    OverloadError: Status(503, "RESOURCE_EXHAUSTED"),
    BodyTooLargeError: Status(413, "RESOURCE_EXHAUSTED"),
    ResponseTooLargeError: Status(413, "RESOURCE_EXHAUSTED"),
    SlowBodyError: Status(408, "DEADLINE_EXCEEDED"),
    EncodingError: Status(415, "INVALID_ARGUMENT"),
    MediaTypeError: Status(415, "INVALID_ARGUMENT"),
    TimeLimitError: Status(504, "DEADLINE_EXCEEDED"),
    TimeoutError: Status(504, "DEADLINE_EXCEEDED"),
    CancelledError: Status(499, "CANCELLED"),
    asyncio.CancelledError: Status(499, "CANCELLED"),
    concurrent.futures.CancelledError: Status(499, "CANCELLED"),
    GlowError: INTERNAL,
}
"""Kind of error → its status; other kinds use that of the nearest base class."""


def status_of(error: BaseException) -> Status:
    """The status of an error."""
    return _status_of_kind(type(error))


@cache
def _status_of_kind(kind: type[BaseException]) -> Status:
    return next((STATUSES[base] for base in kind.__mro__ if base in STATUSES), INTERNAL)


def shortened(text: str, most: int) -> str:
    """Shorten a text to `most` characters by replacing its middle."""
    if len(text) <= most:
        return text
    half = (most - len(OMITTED)) // 2
    return f"{text[:half]}{OMITTED}{text[len(text) - half :]}"


def words_of(error: BaseException) -> str:
    """The error text for a client: one line of bounded length for our errors, and nothing specific for others."""
    if isinstance(error, GlowError):
        # Names in a request may be as long as the request, and slow to print.
        return shortened(printable(shortened(error.line, MAX_WORDS)), MAX_WORDS)
    status = status_of(error)
    return "the server failed" if status is INTERNAL else f"the request ended: {status.grpc}"
