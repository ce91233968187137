"""
A server with a small generator, embedder and ranker, as a process: prints its port, and ends with its standard input.

`python tests/support/text_server.py`
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))

from served_models import FakeModels
from small_encoders import write_encoder
from small_generators import write_model

from glow_mlir.generation.embedder import Embedder
from glow_mlir.generation.generator import Generator
from glow_mlir.serving.generators import Generators
from glow_mlir.serving.http_server import HttpServer
from glow_mlir.serving.service import Service

CONTEXT = 384


async def serve(generators: Generators) -> None:
    """Serve until the standard input ends."""
    service = Service(FakeModels([]))
    service.generators = generators
    http = HttpServer(service, "127.0.0.1", 0)
    print(await http.start(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await http.stop(0.1)


def main() -> None:
    """Make the models, and serve them."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        models = {
            "text": Generator(write_model(folder / "text.gguf", context=CONTEXT), threads=1, cache="float32"),
            "vectors": Embedder(write_encoder(folder / "vectors.gguf"), threads=1),
            "ranker": Embedder(write_encoder(folder / "ranker.gguf", labels=1), threads=1),
        }
        with closing(Generators(models)) as generators:
            asyncio.run(serve(generators))


if __name__ == "__main__":
    main()
