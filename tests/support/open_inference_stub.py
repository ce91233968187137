"""Asks a server of tests by the stub of `open-inference-grpc`, as a program of its own: `PORT`."""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np
import pytest

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.full((2, 4), 10, np.float32)


def ask_by_grpc(port: str) -> None:
    """All that the stub has."""
    grpc, protocol, service = (
        import_module(name) for name in ("grpc", "open_inference.grpc.protocol", "open_inference.grpc.service")
    )
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = service.GRPCInferenceServiceStub(channel)
        assert stub.ServerLive(protocol.ServerLiveRequest()).live
        assert stub.ServerReady(protocol.ServerReadyRequest()).ready
        assert stub.ModelReady(protocol.ModelReadyRequest(name="sums", version="3")).ready
        assert stub.ServerMetadata(protocol.ServerMetadataRequest()).name == "glow"
        metadata = stub.ModelMetadata(protocol.ModelMetadataRequest(name="sums"))
        assert [item.name for item in metadata.outputs] == ["sum", "difference"]
        tensors = [
            {"name": name, "datatype": "FP32", "shape": array.shape, "contents": {"fp32_contents": array.ravel()}}
            for name, array in (("a", A), ("b", B))
        ]
        found = stub.ModelInfer(protocol.ModelInferRequest(model_name="sums", id="seven", inputs=tensors))
        assert (found.model_version, found.id) == ("3", "seven")
        numbers = [np.frombuffer(raw, np.float32).reshape(2, 4) for raw in found.raw_output_contents] or [
            np.reshape(item.contents.fp32_contents, item.shape) for item in found.outputs
        ]
        np.testing.assert_array_equal(numbers, [A + B, A - B])
        tensors[0]["name"] = "z"
        with pytest.raises(grpc.RpcError, match="there is no input 'z'"):
            stub.ModelInfer(protocol.ModelInferRequest(model_name="sums", inputs=tensors))


if __name__ == "__main__":
    ask_by_grpc(sys.argv[1])
