"""Errors of a server, and the status of HTTP and gRPC of each."""

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
"""The characters that a client is told of an error: gRPC's clients take no longer ones, and lose the status then."""

OMITTED = " ... "
"""What stands for the middle of a longer text."""


class UnknownModelError(UnknownNetworkError):
    """A model, or a version of one, that the server does not have."""


class UnauthorizedError(GlowError):
    """A request without the token that the server asks for."""


class ForbiddenError(GlowError):
    """A request that this server answers to nobody, or not to this client."""


class NotOfferedError(GlowError):
    """A request of the protocol that this server has no answer for, whoever asks."""


class NotReadyError(GlowError):
    """A model that takes no requests now."""


class OverloadError(GlowError):
    """A request that comes while the server has as many as it takes at once."""


class BodyTooLargeError(InputError):
    """A body of a request that is larger than the server takes, or grows to more."""


class SlowBodyError(TimeLimitError):
    """A body of a request that did not come in the time for it."""


class EncodingError(InputError):
    """A body of a request in an encoding that the server does not know."""


class ResponseTooLargeError(GlowError):
    """A response that is larger than a message of gRPC may be."""


class MediaTypeError(InputError):
    """A body of a request that does not say that it is JSON."""


class DisconnectedError(CancelledError):
    """A client that is gone."""


class Status(NamedTuple):
    """The status of an error: the number of HTTP, and the name of the code of gRPC."""

    http: int
    grpc: str


INTERNAL = Status(500, "INTERNAL")
"""The status of an error that is no fault of the client."""

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
"""Kinds of errors → what tells of them; a kind that is not here goes by the nearest of its bases."""


def status_of(error: BaseException) -> Status:
    """The status of an error."""
    return _status_of_kind(type(error))


@cache
def _status_of_kind(kind: type[BaseException]) -> Status:
    return next((STATUSES[base] for base in kind.__mro__ if base in STATUSES), INTERNAL)


def shortened(text: str, most: int) -> str:
    """The first and the last part of a text that has more characters than `most`."""
    if len(text) <= most:
        return text
    half = (most - len(OMITTED)) // 2
    return f"{text[:half]}{OMITTED}{text[len(text) - half :]}"


def words_of(error: BaseException) -> str:
    """What a client is told of an error: the line of one of ours, of bounded length, and nothing of any other."""
    if isinstance(error, GlowError):
        # Names of a request may be as long as that is, and take long to print.
        return shortened(printable(shortened(error.line, MAX_WORDS)), MAX_WORDS)
    status = status_of(error)
    return "the server failed" if status is INTERNAL else f"the request ended: {status.grpc}"
