"""
mlserver with a perceptron, in an environment that has it.

    python mlserver_perceptron.py FOLDER HTTP_PORT GRPC_PORT METRICS_PORT [lean]

It has its own defaults, or, where it is to be lean, what takes it least time: it computes in the process that answers,
and has neither metrics nor a log of requests.
"""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from perceptron import perceptron

mlserver: Any = import_module("mlserver")
types: Any = import_module("mlserver.types")
numpy_codec: Any = import_module("mlserver.codecs").NumpyCodec
settings: Any = import_module("mlserver.settings")


class Perceptron(mlserver.MLModel):
    """The model as a class of mlserver's."""

    async def load(self) -> bool:
        """Read it."""
        self._run = perceptron(Path(self.settings.parameters.uri))
        return True

    async def predict(self, payload: Any) -> Any:
        """Answer a request."""
        result = self._run(numpy_codec.decode_input(payload.inputs[0]).astype("float32", copy=False))
        output = numpy_codec.encode_output("y", result)
        return types.InferenceResponse(model_name="mlp", outputs=[output])


async def main() -> None:
    """Serve until it is ended."""
    http, grpc, metrics = map(int, sys.argv[2:5])
    lean = {"metrics_endpoint": None, "parallel_workers": 0, "debug": False} if "lean" in sys.argv else {}
    config = settings.Settings(host="127.0.0.1", http_port=http, grpc_port=grpc, metrics_port=metrics, **lean)
    tensors = [
        types.MetadataTensor(name=name, datatype="FP32", shape=[1, width]) for name, width in (("x", 784), ("y", 10))
    ]
    model = settings.ModelSettings(
        name="mlp",
        implementation="mlserver_perceptron.Perceptron",
        inputs=tensors[:1],
        outputs=tensors[1:],
        parameters=settings.ModelParameters(uri=sys.argv[1]),
    )
    await mlserver.MLServer(config).start([model])


if __name__ == "__main__":
    asyncio.run(main())
