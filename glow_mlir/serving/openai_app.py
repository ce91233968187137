"""
OpenAI's API over HTTP: models, chat completions and completions, also as streams of events.

https://platform.openai.com/docs/api-reference
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar
from uuid import uuid4

from glow_mlir.errors import InputError, OptionError
from glow_mlir.generation.generation import Completion, Generation
from glow_mlir.generation.generator import Generator
from glow_mlir.generation.tool_calls import ToolCallStream
from glow_mlir.serving.errors import DisconnectedError
from glow_mlir.serving.generators import Generators, pieces
from glow_mlir.serving.handlers import Handler, answering, data_of
from glow_mlir.serving.json_text import write_json
from glow_mlir.serving.openai_errors import error_of, failed
from glow_mlir.serving.openai_requests import TextRequest, chat_request, completion_request
from glow_mlir.serving.openai_responses import Format, Usage, list_data, model_data
from glow_mlir.serving.packages import package
from glow_mlir.serving.service import Service

EVENTS = "text/event-stream"

DONE = b"data: [DONE]\n\n"
"""The end of a stream."""

T = TypeVar("T")


class OpenAiApp:
    """The handlers of paths below /v1."""

    def __init__(self, service: Service, generators: Generators) -> None:
        self._service, self._generators = service, generators

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths and their handlers, which answer errors themselves."""
        found: list[tuple[str, str, Handler]] = [
            ("GET", "/v1/models", self.models),
            ("GET", "/v1/models/{name:path}", self.model),
            ("POST", "/v1/chat/completions", self.chat),
            ("POST", "/v1/completions", self.complete),
        ]
        return [(method, path, answering(handler, failed)) for method, path, handler in found]

    async def models(self, request: Any) -> Any:
        """All models."""
        return list_data(map(self._model, self._generators.names()))

    async def model(self, request: Any) -> Any:
        """One model."""
        return self._model(request.path_params["name"])

    def _model(self, name: str) -> dict[str, Any]:
        model, adapter = self._generators.find(name)
        return model_data(name, model.created, model.context, None if adapter is None else model.name)

    async def chat(self, request: Any) -> Any:
        """The answer to the messages of a chat."""
        return await self._answer(request, chat_request(await data_of(self._service, request)), is_chat=True)

    async def complete(self, request: Any) -> Any:
        """The continuation of prompts."""
        return await self._answer(request, completion_request(await data_of(self._service, request)), is_chat=False)

    async def _answer(self, request: Any, wanted: TextRequest, *, is_chat: bool) -> Any:
        generator, adapter = self._generators.generator(wanted.model)
        started = await asyncio.to_thread(_begin, generator, wanted, adapter)
        has_tools = is_chat and bool(wanted.options.get("tools")) and wanted.options.get("tool_choice") != "none"
        name = f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid4().hex}"
        form = Format(is_chat, name, int(time.time()), wanted.model, generator.tokenizer, wanted.logprobs, has_tools)
        if wanted.is_streamed:
            return _Stream(form, started, wanted.count if wanted.has_usage else 0)
        try:
            found = await unless_disconnected(request, _together([_whole(generation) for generation in started]))
        finally:
            # A task that is cancelled before it runs does not end its generation.
            _close(started)
        choices = [form.choice(index, each.text, each.choices, each.finish_reason) for index, each in enumerate(found)]
        return form.whole(choices, _usage(started, wanted.count))


class _Stream:
    """The response of a stream; its generations end with it, also if the client left before the first event."""

    def __init__(self, form: Format, started: Sequence[Generation], usage: int) -> None:
        self._form, self._started, self._usage = form, started, usage

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        response = package("starlette.responses").StreamingResponse
        events = _events(self._form, self._started, self._usage)
        try:
            await response(events, media_type=EVENTS)(scope, receive, send)
        finally:
            _close(self._started)


def _close(started: Sequence[Generation]) -> None:
    """Cancel those that are not finished."""
    for generation in started:
        generation.close()


def _begin(generator: Generator, wanted: TextRequest, adapter: str | None) -> list[Generation]:
    """Begin all continuations of a request; cancels those that began if one cannot."""
    begun: list[Generation] = []
    options: dict[str, Any] = {**wanted.options, "logprobs": wanted.logprobs, "adapter": adapter}
    seed = options.pop("seed", None)
    try:
        for prompt in wanted.prompts:
            for number in range(wanted.count):
                given: dict[str, Any] = options if seed is None else {**options, "seed": seed + number}
                begun.append(generator.stream(prompt, **given))
    except OptionError as error:
        # Options are a client's here.
        _close(begun)
        raise InputError(error.reason, hint=error.hint) from None
    except BaseException:
        _close(begun)
        raise
    return begun


async def _whole(generation: Generation) -> Completion:
    """A finished continuation."""
    async with aclosing(pieces(generation)) as found:
        async for _ in found:
            continue
    return generation.completion


async def _together(waiting: Sequence[Awaitable[Completion]]) -> list[Completion]:
    """The results of all; the others are cancelled if one fails."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_awaited(each)) for each in waiting]
    return [task.result() for task in tasks]


async def _awaited(each: Awaitable[Completion]) -> Completion:
    return await each


async def unless_disconnected(request: Any, work: Awaitable[T]) -> T:
    """The result of work, which is cancelled if the client closes its connection; raises `DisconnectedError` then."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_disconnection(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise DisconnectedError("the client has closed the connection")
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnection(request: Any) -> None:
    """Wait until the client closes its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        continue


def _usage(started: Sequence[Generation], count: int) -> Usage:
    """The numbers of tokens of all continuations, `count` of each prompt, which counts once."""
    requests = [generation.request for generation in started]
    prompts = requests[::count]
    return Usage(
        sum(request.prompt_length for request in prompts),
        sum(request.reused for request in prompts),
        sum(request.chosen_count for request in requests),
        sum(request.dropped for request in requests),
    )


async def _events(form: Format, started: Sequence[Generation], usage: int) -> AsyncGenerator[bytes]:
    """
    The events of a stream: parts of all continuations as they are computed.

    With `usage`, the number of continuations of each prompt, the numbers of tokens are in the end.
    """
    queue: asyncio.Queue[dict[str, Any] | BaseException | None] = asyncio.Queue()
    tasks = [asyncio.create_task(_follow(form, index, each, queue)) for index, each in enumerate(started)]
    left = len(tasks)
    try:
        while left:
            item = await queue.get()
            if item is None:
                left -= 1
            elif isinstance(item, BaseException):
                yield _event(error_of(item)[1])
                return
            else:
                yield _event(form.chunk([item]))
        if usage:
            yield _event(form.chunk([], _usage(started, usage)))
        yield DONE
    finally:
        for task in tasks:
            task.cancel()


async def _follow(form: Format, index: int, generation: Generation, queue: asyncio.Queue[Any]) -> None:
    """Put the parts of a continuation into a queue, then `None`, or the error that ended it."""
    offset, tools, sent = 0, ToolCallStream() if form.has_tools else None, 0
    try:
        if form.is_chat:
            queue.put_nowait(form.first(index))
        async with aclosing(pieces(generation)) as found:
            async for piece in found:
                text = piece.text if tools is None else tools.put(piece.text)
                if text or form.logprobs is not None:
                    queue.put_nowait(form.piece(index, text, piece.choices, offset))
                offset += len(text)
                if tools is not None and len(tools.calls) > sent:
                    queue.put_nowait(form.calls(index, tools.calls, sent))
                    sent = len(tools.calls)
        reason = generation.completion.finish_reason
        if tools is not None:
            if text := tools.finish():
                queue.put_nowait(form.piece(index, text, (), offset))
            if len(tools.calls) > sent:
                queue.put_nowait(form.calls(index, tools.calls, sent))
            reason = "tool_calls" if tools.calls else reason
        queue.put_nowait(form.last(index, reason))
        queue.put_nowait(None)
    except Exception as error:
        queue.put_nowait(error)


def _event(data: Any) -> bytes:
    return b"data: " + write_json(data) + b"\n\n"
