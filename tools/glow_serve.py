"""`glow-serve`: serve models by the Open Inference Protocol, over HTTP and gRPC."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glow_mlir.errors import OptionError, joined
from glow_mlir.options.hosting import HostingOptions
from glow_mlir.options.placement import PlacementOptions
from glow_mlir.options.policy import Policy
from glow_mlir.support.activity import warn
from glow_mlir.tools.arguments.bounded_numbers import byte_count, byte_count_to, count, natural, ranged, seconds
from glow_mlir.tools.arguments.generator_arguments import add_generator_arguments, opened_embedder, opened_generator
from glow_mlir.tools.arguments.option_arguments import add_options, given_options
from glow_mlir.tools.arguments.repeated_options import OncePerName
from glow_mlir.tools.arguments.run_arguments import add_model_arguments, model_options
from glow_mlir.tools.command_line import EXIT_OK, STDOUT, ArgumentGroup, abandon, new_parser, run_tool

if TYPE_CHECKING:
    from glow_mlir.generation.embedder import Embedder
    from glow_mlir.generation.generator import Generator as TextGenerator
    from glow_mlir.serving.repository import ModelRepository, Named
    from glow_mlir.serving.server import Server
    from glow_mlir.serving.service import Service

PROGRAM = "glow-serve"
DESCRIPTION = (
    "Serve models by the Open Inference Protocol (KServe v2, which clients of Triton speak), over HTTP and gRPC, and "
    "decoders of text by OpenAI's API. Each MODEL is a file, which is served by its name without the ending, or "
    "a repository: a folder with a folder for each model, which has one for each version. What is said here holds for "
    "all of them, unless the config.json of a model in a repository says otherwise."
)
EXAMPLES = """
glow-serve digits.onnx
glow-serve smollm2.gguf --context 4096 --parallel 8
glow-serve digits.onnx --batch 32 --delay 0.002 --replicas 2 --workers processes
glow-serve repository --port 9000 --host 0.0.0.0 --token-file token --tls-certificate cert.pem --tls-key key.pem
"""

TOKEN = "GLOW_SERVE_TOKEN"
"""The environment variable that holds the token if no file is given."""

GRPC_PORT = 8001
"""The port of gRPC if none is given."""

message_bytes = byte_count_to(2 << 30)
port = ranged(int, 0, 65535, "a port from 0, which is a free one, to 65535")


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Parse the options; raises `OptionError` for invalid ones."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="a model's file, a decoder or an encoder of text (.gguf, or a folder of safetensors), or the folder of a "
        + "repository; "
        + "NAME=PATH serves one model by a name",
    )
    where = parser.add_argument_group("where it is")
    where.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: this machine's own)")
    where.add_argument(
        "--port", type=port, default=8000, metavar="N", help="HTTP port, 0 for a free one (default: 8000)"
    )
    where.add_argument(
        "--grpc-port", type=port, metavar="N", help=f"gRPC port (default: {GRPC_PORT}, none for decoders of text alone)"
    )
    where.add_argument("--no-grpc", action="store_true", help="serve HTTP only")
    how = parser.add_argument_group("how models are served")
    add_options(how, HostingOptions)
    add_options(how, Policy, only=("threads",))
    add_options(how, PlacementOptions, only=("devices", "partition"))
    add_model_arguments(how)
    how.add_argument(
        "--memory-bytes", type=byte_count, default=0, metavar="BYTES", help="unload models beyond this size"
    )
    texts = parser.add_argument_group("decoders of text, served by OpenAI's API")
    add_generator_arguments(texts, parallel=8)
    texts.add_argument(
        "--adapter",
        dest="adapters",
        type=named_adapter,
        action=OncePerName,
        default=[],
        metavar="NAME=PATH",
        help="a low-rank adapter of the decoder, served as a model of that name: a folder of PEFT, or a GGUF file",
    )
    _add_limits(parser.add_argument_group("what is refused"))
    access = parser.add_argument_group("who may ask")
    access.add_argument("--token-file", type=Path, metavar="FILE", help=f"the Bearer token of requests (or ${TOKEN})")
    access.add_argument(
        "--model-control", action="store_true", help="let clients load and unload models; remote clients need a token"
    )
    access.add_argument(
        "--shared-memory", action="store_true", help="clients share memory of this machine, and at its address alone"
    )
    access.add_argument("--tls-certificate", type=Path, metavar="FILE", help="PEM, with those it is signed by")
    access.add_argument("--tls-key", type=Path, metavar="FILE", help="private key as PEM")
    parser.add_argument(
        "--grace",
        type=natural,
        default=30,
        metavar="SECONDS",
        help="time for running requests at shutdown (default: 30)",
    )
    return parser.parse_args(arguments)


def _add_limits(limits: ArgumentGroup) -> None:
    """Add the options that bound requests."""
    limits.add_argument("--max-body", type=byte_count, default=256 << 20, metavar="BYTES", help="(default: 256M)")
    limits.add_argument(
        "--max-message",
        type=message_bytes,
        default=32 << 20,
        metavar="BYTES",
        help="largest gRPC message (default: 32M)",
    )
    limits.add_argument(
        "--max-memory", type=byte_count, default=2 << 30, metavar="BYTES", help="memory of all requests (default: 2G)"
    )
    limits.add_argument(
        "--max-requests", type=count, default=1024, metavar="N", help="requests at once (default: 1024)"
    )
    limits.add_argument(
        "--request-limit", type=seconds, default=60.0, metavar="SECONDS", help="longest time of a request (default: 60)"
    )


def token_of(args: Namespace) -> str:
    """The token that requests must present; raises `OptionError` for a file without one."""
    if args.token_file is None:
        return os.environ.get(TOKEN, "")
    try:
        found = args.token_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot be read: {error}", file=str(args.token_file)) from error
    if not found or not found.isascii() or not found.isprintable():
        raise OptionError("has no token: a line of ASCII", file=str(args.token_file))
    return found


def named_model(text: str) -> Named:
    """Parse a path, or NAME=PATH."""
    from glow_mlir.serving.repository import Named

    name, is_named, path = text.partition("=")
    return Named(name, Path(path)) if is_named and name and "/" not in name else Named("", Path(text))


def named_adapter(text: str) -> tuple[str, str]:
    """Parse NAME=PATH; raises `ArgumentTypeError` for anything else."""
    name, _, path = text.partition("=")
    if not name or not path:
        raise ArgumentTypeError(f"expected NAME=PATH, not '{text}'")
    return name, path


def name_of(named: Named) -> str:
    """The name by which a decoder of text is served."""
    return named.name or (named.path.name if named.path.is_dir() else named.path.stem)


def grpc_port_of(args: Namespace, *, has_models: bool) -> int | None:
    """The port of gRPC; `None` if it is not wanted, or by default if no model can be asked over it."""
    if args.no_grpc or (args.grpc_port is None and not (has_models or args.model_control)):
        return None
    return GRPC_PORT if args.grpc_port is None else args.grpc_port


def hosting_keywords(args: Namespace) -> dict[str, Any]:
    """The hosting options shared by all models."""
    return {**model_options(args), **given_options(args, HostingOptions, Policy, PlacementOptions)}


def run(arguments: list[str]) -> int:
    """Run the tool on its arguments."""
    import asyncio

    from glow_mlir.host.host import Host
    from glow_mlir.serving.metrics import metrics
    from glow_mlir.serving.packages import package
    from glow_mlir.serving.repository import ModelRepository
    from glow_mlir.serving.server import Addresses, Encryption, Server, serve
    from glow_mlir.serving.service import Limits, Service
    from glow_mlir.support.file_kinds import is_decoder

    args = parse_arguments(arguments)
    token = token_of(args)
    named = [named_model(text) for text in args.models]
    texts = [item for item in named if is_decoder(item.path)]
    with Host(memory_bytes=args.memory_bytes) as host:
        others = [item for item in named if item not in texts]
        repository = ModelRepository(host, others, hosting_keywords(args))
        limits = Limits(
            body_bytes=args.max_body,
            message_bytes=min(args.max_message, args.max_body),
            memory_bytes=args.max_memory,
            requests=args.max_requests,
            request_seconds=args.request_limit,
        )
        service = Service(
            repository,
            limits=limits,
            metrics=lambda: metrics(host, () if service.generators is None else service.generators.data()),
            control=args.model_control,
            shared_memory=args.shared_memory,
            token=token,
        )
        addresses = Addresses(args.host, args.port, grpc_port_of(args, has_models=bool(others)))
        server = Server(service, addresses, Encryption(args.tls_certificate, args.tls_key))
        with closing(server), generating(service, texts, args):
            load_all(repository)
            with asyncio.Runner(loop_factory=package("uvloop").new_event_loop) as runner:
                runner.run(serve(server, args.grace, partial(serving_notice, args, repository, service)))
        host.close(wait=args.grace)
    return EXIT_OK


@contextmanager
def generating(service: Service, models: Sequence[Named], args: Namespace) -> Generator[None]:
    """
    Load decoders and encoders of text, which the service offers inside the `with` statement.

    Raises `OptionError` for adapters without one decoder that they belong to.
    """
    if not models and not args.adapters:
        yield
        return
    from glow_mlir.generation.embedder import makes_vectors
    from glow_mlir.serving.generators import Generators

    embedders = {name_of(item) for item in models if makes_vectors(str(item.path))}
    if args.adapters and len(models) - len(embedders) != 1:
        raise OptionError("--adapter needs one decoder of text", hint="serve one by each glow-serve")

    def opened(item: Named) -> TextGenerator | Embedder:
        path = str(item.path)
        return opened_embedder(path, args) if name_of(item) in embedders else opened_generator(path, args, adapters)

    adapters = dict(args.adapters) or None
    service.generators = Generators({name_of(item): opened(item) for item in models})
    try:
        yield
    finally:
        service.generators.close()


def load_all(repository: ModelRepository) -> None:
    """Load all models; raises an error if none is ready."""
    from glow_mlir.serving.models import READY

    errors = repository.load_all()
    if errors and not any(state.state == READY for state in repository.names()):
        raise joined(errors)


def serving_notice(args: Namespace, repository: ModelRepository, service: Service, server: Server) -> None:
    """Print the addresses of the server and the state of each model; failure to print does not stop the server."""
    texts = [] if service.generators is None else service.generators.names()
    try:
        for protocol, number in server.ports.items():
            print(f"{protocol}: port {number}", flush=True)
    except OSError as error:
        abandon(sys.stdout)
        warn(OptionError(f"cannot be written: {error.strerror}", file=STDOUT))
    try:
        for line in start_lines(args, repository, texts, server.ports):
            print(f"{PROGRAM}: {line}", file=sys.stderr, flush=True)
    except OSError:
        abandon(sys.stderr)


def start_lines(
    args: Namespace, repository: ModelRepository, texts: Sequence[str], ports: Mapping[str, int]
) -> list[str]:
    """A line for each address, and one for each model: ready, or the reason why not; `texts` are decoders of text."""
    from glow_mlir.serving.models import READY

    host = f"[{args.host}]" if ":" in args.host else args.host
    encryption = "" if args.tls_certificate is None else "s"
    lines = [f"{protocol}{encryption}://{host}:{number}" for protocol, number in ports.items()]
    url = lines[0]
    lines += [f"model {name}: ready, below {url}/v1" for name in texts]
    for state in repository.names():
        version = f" version {state.version}" if state.version else ""
        status = "ready" if state.state == READY else f"not ready: {state.reason or state.state.lower()}"
        lines.append(f"model {state.name}{version}: {status}")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-serve`; the exit code: 0 success, 1 wrong input or options, 2 a bug in the compiler."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())
