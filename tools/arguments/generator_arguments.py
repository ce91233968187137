"""The options of decoders of text, for the tools that run some."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from glow_mlir.options.generation import ACTIVATIONS, CACHES
from glow_mlir.support.activity import watching
from glow_mlir.tools.arguments.bounded_numbers import count, natural
from glow_mlir.tools.command_line import ArgumentGroup
from glow_mlir.tools.inputs.text_files import text_of
from glow_mlir.tools.reports.progress import Progress

if TYPE_CHECKING:
    from glow_mlir.generation.embedder import Embedder
    from glow_mlir.generation.generator import Generator
    from glow_mlir.generation.transcriber import Transcriber

T = TypeVar("T")


def add_generator_arguments(group: ArgumentGroup, parallel: int) -> None:
    """Add the options; `parallel` is the default of how many are continued together."""
    group.add_argument("--context", type=count, metavar="N", help="tokens of a sequence at most")
    group.add_argument(
        "--parallel",
        type=count,
        default=parallel,
        metavar="N",
        help=f"sequences that are continued together ({parallel})",
    )
    group.add_argument(
        "--activations",
        choices=ACTIVATIONS,
        help="what rows are rounded to in front of quantized weights (as the file says, or int15)",
    )
    group.add_argument("--cache", choices=CACHES, default="float16", help="element type of keys and values (float16)")
    group.add_argument(
        "--speculation", type=natural, default=0, metavar="N", help="tokens that are guessed from the text before (0)"
    )
    group.add_argument("--tokenizer", metavar="FILE", help="a tokenizer.json, instead of the model's tokenizer")
    group.add_argument("--template", metavar="FILE", help="a file with the template of chats, instead of the model's")


def opened_generator(path: str, args: Namespace, adapters: Mapping[str, str] | None = None) -> Generator:
    """Open and compile a decoder, with a progress line; `adapters` are those of `Generator`."""
    from glow_mlir.generation.generator import Generator

    template = None if args.template is None else text_of(args.template)
    given = {"parallel": args.parallel, "cache": args.cache, "speculation": args.speculation, "template": template}
    return _prepared(Generator, path, args, adapters=adapters, **given)


def opened_embedder(path: str, args: Namespace, **given: Any) -> Embedder:
    """Open and compile a model for embeddings or scores, with a progress line; further options of it may be given."""
    from glow_mlir.generation.embedder import Embedder

    return _prepared(Embedder, path, args, **given)


def opened_transcriber(path: str, args: Namespace, beams: int) -> Transcriber:
    """Open and compile a speech model for so many beams, with a progress line."""
    from glow_mlir.generation.transcriber import Transcriber

    return _prepared(Transcriber, path, args, beams=beams, cache=args.cache)


def _prepared(kind: Callable[..., T], path: str, args: Namespace, **given: Any) -> T:
    """A model with the options that all kinds have, and those that are given."""
    progress = Progress()
    options = {} if args.threads is None else {"threads": args.threads}
    progress.say(f"preparing {Path(path).name}")
    try:
        with watching(progress.say):
            return kind(
                path, context=args.context, activations=args.activations, tokenizer=args.tokenizer, **given, **options
            )
    finally:
        progress.clear()
