"""
Mutants of requests of OpenAI's API: chats, completions, embeddings, ranked documents, streamed and not.

Each is answered, or refused as OpenAI's clients read it, within seconds and little memory; the server goes on.
"""

from __future__ import annotations

import atexit
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from fuzzing import Fuzzer
from json_mutants import text_of
from request_mutants import peak

SERVER = Path(__file__).with_name("text_server.py")

SECONDS = 5.0
"""The processor's seconds that a request may take of the server."""

MEMORY = 500 << 20
"""The bytes that all mutants together may add to those of the server."""

TOOL = {
    "type": "function",
    "function": {
        "name": "go",
        "description": "Go there.",
        "parameters": {"type": "object", "properties": {"to": {"enum": ["a", "b"]}}, "required": ["to"]},
    },
}

SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}

BODIES: Mapping[str, Mapping[str, Any]] = {
    "/v1/chat/completions": {
        "model": "text",
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "he", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "go", "arguments": '{"to": "a"}'}}]},
            {"role": "tool", "content": "b", "tool_call_id": "1"},
            {"role": "user", "content": [{"type": "text", "text": "lo"}]},
        ],
        "max_tokens": 3, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "seed": 1, "n": 2, "stop": ["x", "y"],
        "stream": True, "stream_options": {"include_usage": True}, "logprobs": True, "top_logprobs": 2,
        "logit_bias": {"3": 1, "5": -100}, "presence_penalty": 0.1, "user": "me", "cache_salt": "s",
    },
    "/v1/chat/completions?": {
        "model": "text", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 9, "tools": [TOOL],
        "tool_choice": "required", "parallel_tool_calls": False,
    },
    "/v1/chat/completions??": {
        "model": "text", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 9, "temperature": 0,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
    },
    "/v1/completions": {
        "model": "text", "prompt": ["hello", [1, 2, 3]], "max_tokens": 4, "n": 2, "logprobs": 1, "echo": False,
        "min_p": 0.1, "typical_p": 0.9, "repetition_penalty": 1.1, "ignore_eos": True, "context_shift": False,
        "n_keep": 3, "best_of": 1, "suffix": "", "frequency_penalty": 0.3, "stream": False,
    },
    "/v1/embeddings": {"model": "vectors", "input": ["a cat", [6, 7]], "encoding_format": "float", "dimensions": 8},
    "/v1/rerank": {"model": "ranker", "query": "a", "documents": ["b", {"text": "c"}], "top_n": 2,
                   "return_documents": True},
}  # fmt: skip
"""Path, with as many question marks as tell those of one path apart → a request."""

REFUSED = range(400, 500)


@dataclass
class Served:
    """The server that all mutants are sent to."""

    process: subprocess.Popen[str]
    port: int
    own: int
    """The bytes that it takes before the first of them."""


@cache
def served() -> Served:
    """The server, which ends with this process."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, close_fds=True
    )
    assert process.stdout is not None
    found = Served(process, int(process.stdout.readline()), 0)
    owner = os.getpid()
    atexit.register(lambda: process.kill() if os.getpid() == owner else None)
    for path, body in BODIES.items():
        status, text = _answer(found, "POST", path.rstrip("?"), json.dumps(body).encode())
        assert status == 200, text
    found.own = peak(process.pid)
    return found


def mutant(seed: int) -> tuple[str, str, bytes]:
    """Method, path and body of a seed."""
    random = Random(f"text {seed}")
    path = random.choice([*BODIES])
    body = text_of(BODIES[path], random)
    path = path.rstrip("?")
    if random.randrange(20) == 0:
        path = random.choice(["/v1/models/text", "/v1/models/%00", "/v1/", "/v1/models/" + "a" * 3000, path + "/x"])
    return "GET" if random.randrange(40) == 0 else "POST", path, body


def check(seed: int) -> None:
    """Send the request of a seed; raises `AssertionError` for what is no answer."""
    server = served()
    begin = _seconds(server.process.pid)
    status, text = _answer(server, *mutant(seed))
    taken = _seconds(server.process.pid) - begin
    assert taken < SECONDS, f"the answer took {taken:.1f} s"
    if status in REFUSED:
        _check_error(json.loads(text))
    else:
        assert status == 200, f"{status} {text[:200]!r}"
        for event in text.split(b"\n\n") if text.startswith(b"data: ") else ():
            assert not event or event == b"data: [DONE]" or json.loads(event.removeprefix(b"data: "))
    taken = peak(server.process.pid) - server.own
    assert taken < MEMORY, f"the server took {taken >> 20} MiB"
    status, text = _answer(server, "GET", "/v1/models", b"")
    assert (status, len(json.loads(text)["data"])) == (200, 3)


def _check_error(data: Any) -> None:
    """Check the object of an error."""
    assert set(data) == {"error"}, data
    assert set(data["error"]) == {"message", "type", "param", "code"}, data
    message = data["error"]["message"]
    assert message, data
    assert message.isprintable(), message
    assert "Traceback" not in message, message


def _seconds(pid: int) -> float:
    """The processor's seconds that a process has taken, with those of its children that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _answer(server: Served, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Status and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=100)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def show(seed: int) -> str:
    """A line of a request."""
    method, path, body = mutant(seed)
    return f"{method} {path} {body[:2000]!r}"


STAGES = {"": Fuzzer(check, served, show, seconds=100)}
