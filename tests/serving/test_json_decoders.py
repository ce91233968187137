"""Processes that read long JSON: one that fails is asked nothing more, and none is held to what was asked before."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import numpy as np
import pytest
from running_servers import needed

from glow_mlir.runtime.signature import Argument
from glow_mlir.serving import json_decoders
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.json_decoders import DECODER, JsonDecoders
from glow_mlir.support.child_process import ChildProcess

pytestmark = pytest.mark.extra

INPUTS = [Argument("x", "int64", ("n",))]


def text(count: int, value: int) -> bytes:
    item = {"name": "x", "datatype": "INT64", "shape": [count], "data": [value] * count}
    return json.dumps({"inputs": [item]}).encode()


def decoded(decoders: JsonDecoders, body: bytes) -> np.ndarray[Any, Any]:
    found = asyncio.run(decoders.decoded(body, INPUTS, 1 << 30, Charge()))
    return found["inputs"][0]["data"]


def test_the_rest_of_an_answer_is_no_other_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    needed("orjson")
    decoders = JsonDecoders()

    def no_memory(*args: object) -> None:
        raise MemoryError

    try:
        with monkeypatch.context() as patch:
            patch.setattr(json_decoders.np, "empty", no_memory)
            with pytest.raises(MemoryError):
                decoded(decoders, text(300_000, 1))
        decoders = JsonDecoders()
        assert not json_decoders._children.idle  # pyright: ignore[reportPrivateUsage]
        assert decoded(decoders, text(300_000, 2)).tolist() == [2] * 300_000
    finally:
        decoders.close()


def test_a_short_request_sets_no_limit_to_the_next() -> None:
    needed("orjson")
    child = ChildProcess(DECODER)
    try:
        for body in (text(2, 1), text(2, 3) + b" " * (96 << 20)):
            child.send(pickle.dumps((INPUTS, 16 * len(body))), body)
            parts = child.receive(1)
            assert parts, len(body)
            found = pickle.loads(parts[0])
            assert not isinstance(found, Exception), found
            (_, dtype, count), array = found.arrays[0], np.empty(2, np.int64)
            assert (dtype, count) == ("int64", 2)
            child.receive_into(memoryview(array.view(np.uint8).data))
        assert array.tolist() == [3, 3]
    finally:
        child.close()
