"""
Triton from PyPI with a perceptron, in an environment that has nvidia-pytriton.

    python pytriton_perceptron.py FOLDER HTTP_PORT GRPC_PORT METRICS_PORT [BATCH]

With a BATCH, Triton puts up to so many requests into one call.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from perceptron import perceptron

configuration: Any = import_module("pytriton.model_config")
triton: Any = import_module("pytriton.triton")


def main() -> None:
    """Serve until it is ended."""
    folder, http, grpc, metrics, *batch = sys.argv[1:]
    size = int(batch[0]) if batch else 0
    run = perceptron(Path(folder))

    def infer(requests: list[Any]) -> list[dict[str, np.ndarray]]:
        """Answer the requests of a call, each of which has one row."""
        if len(requests) == 1:
            return [{"y": run(requests[0]["x"])}]
        results = run(np.concatenate([request["x"] for request in requests]))
        return [{"y": result} for result in np.split(results, len(requests))]

    front = () if size else (1,)
    tensors = [
        configuration.Tensor(name=name, dtype=np.float32, shape=(*front, width))
        for name, width in (("x", 784), ("y", 10))
    ]
    said = configuration.ModelConfig(batching=size > 0, **({"max_batch_size": size} if size else {}))
    ports = triton.TritonConfig(
        http_port=int(http), grpc_port=int(grpc), metrics_port=int(metrics), allow_metrics=False
    )
    with triton.Triton(config=ports) as server:
        server.bind("mlp", infer, tensors[:1], tensors[1:], config=said)
        server.serve()


if __name__ == "__main__":
    main()
