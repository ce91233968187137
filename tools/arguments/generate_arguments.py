"""The options of `glow-generate`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from glow_mlir.errors import OptionError
from glow_mlir.generation.sampling import Sampling
from glow_mlir.options.generation import POOLINGS, TASKS
from glow_mlir.options.policy import Policy
from glow_mlir.tools.arguments.bounded_numbers import count, natural
from glow_mlir.tools.arguments.generator_arguments import add_generator_arguments
from glow_mlir.tools.arguments.option_arguments import add_options
from glow_mlir.tools.command_line import ArgumentGroup, new_parser

PROGRAM = "glow-generate"

DESCRIPTION = (
    "Continue a text, or answer the messages of a chat, with a decoder in a GGUF file or a folder of safetensors. Or "
    "embed texts, or rank them, with a decoder or an encoder: one line of JSON for each. Or write down what is said in "
    "a sound, with Whisper in a folder."
)

EXAMPLES = """\
glow-generate model.gguf --prompt 'Once upon a time' --max-tokens 60
glow-generate model.gguf --chat 'What is the capital of France?'
glow-generate model.gguf                                # a chat: lines of the terminal are messages
glow-generate model.gguf --prompt-file question.txt --temperature 0.7 --top-p 0.9 --seed 1
glow-generate bge-small-en-v1.5 --embed 'a first text' 'a second text'
glow-generate bge-reranker-v2-m3 --rank 'What is the capital of France?' 'Paris is.' 'London is not.'
glow-generate whisper-base --audio speech.wav --language en --num-beams 5
"""

SAMPLING: dict[str, tuple[Any, str]] = {
    "temperature": (float, "divides the logits; 0 chooses the most likely token"),
    "top_k": (int, "keep that many of the most likely tokens; 0 keeps all"),
    "top_p": (float, "keep the most likely tokens until their probabilities add up to that"),
    "min_p": (float, "keep tokens that are at least that many times as likely as the most likely one"),
    "typical_p": (float, "keep the most typical tokens until their probabilities add up to that"),
    "repetition_penalty": (float, "divides the logits of tokens that the text has already"),
    "presence_penalty": (float, "is subtracted from the logits of tokens that the output has"),
    "frequency_penalty": (float, "likewise, as often as the output has them"),
    "seed": (int, "equal seeds choose equal tokens"),
}
"""Option of sampling → its type and help text."""


KINDS = ("prompt", "prompt_file", "chat", "embed", "rank", "audio")
"""The options that say what is done, of which one may be given."""


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Parse the options; raises `OptionError` for invalid ones."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="a .gguf file, or a folder with config.json, tokenizer.json and .safetensors")
    _add_prompt(parser.add_argument_group("prompt (without one: a chat in the terminal)"))
    _add_vectors(parser.add_argument_group("vectors and scores"))
    _add_speech(parser.add_argument_group("speech"))
    group = parser.add_argument_group("choice of tokens (default: the most likely one)")
    for name, (kind, text) in SAMPLING.items():
        group.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="X" if kind is float else "N", help=text)
    group = parser.add_argument_group("engine")
    add_generator_arguments(group, parallel=1)
    add_options(group, Policy, only=("threads",))
    group.add_argument("--adapter", metavar="PATH", help="a low-rank adapter: a folder of PEFT, or a GGUF file")
    group.add_argument("--timings", action="store_true", help="print tokens a second to stderr")
    args = parser.parse_args(arguments)
    given = [name for name in KINDS if getattr(args, name) is not None]
    if len(given) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in given[:2])
        raise OptionError(f"{first} and {second} exclude each other")
    if args.json_schema is not None and args.json_schema_file is not None:
        raise OptionError("--json-schema and --json-schema-file exclude each other")
    if args.keep is not None and not args.context_shift:
        raise OptionError("--keep is for --context-shift")
    if args.system is not None and given and given[0] != "chat":
        raise OptionError("--system is for chats", hint="use --chat")
    for name in ("language", "task", "timestamps", "num_beams", "length_penalty"):
        if args.audio is None and getattr(args, name) not in (None, False):
            raise OptionError(f"--{name.replace('_', '-')} is for --audio")
    if args.rank is not None and len(args.rank) < 2:
        raise OptionError("--rank needs a query and documents")
    return args


def _add_vectors(group: ArgumentGroup) -> None:
    group.add_argument(
        "--embed", nargs="+", metavar="TEXT", help="print the vectors of texts; - are the lines of stdin"
    )
    group.add_argument("--dimensions", type=count, metavar="N", help="cut vectors to that many elements")
    group.add_argument("--pooling", choices=POOLINGS, help="how tokens make a vector (default: as the files say)")
    group.add_argument(
        "--rank", nargs="+", metavar=("QUERY", "DOCUMENT"), help="print how well documents answer a query"
    )
    group.add_argument("--truncate", action="store_true", help="cut texts that are too long, instead of refusing them")


def _add_speech(group: ArgumentGroup) -> None:
    group.add_argument("--audio", metavar="FILE", help="write down what is said in a WAV file at 16 kHz")
    group.add_argument("--language", metavar="CODE", help="its language, such as en (default: the likeliest one)")
    group.add_argument("--task", choices=TASKS, help="write what is said, or translate it into English (transcribe)")
    group.add_argument("--timestamps", action="store_true", help="print a line for each segment, with its time")
    group.add_argument("--num-beams", type=count, metavar="N", help="sequences that are searched together (1)")
    group.add_argument("--length-penalty", type=float, metavar="X", help="above 0 for longer results of beams (1)")


def _add_prompt(group: ArgumentGroup) -> None:
    group.add_argument("--prompt", metavar="TEXT", help="text to continue")
    group.add_argument("--prompt-file", metavar="FILE", help="a file with text to continue; - is stdin")
    group.add_argument("--chat", metavar="TEXT", help="a message to answer, in the model's template")
    group.add_argument("--system", metavar="TEXT", help="the system's message in front of a chat")
    group.add_argument("--max-tokens", type=natural, metavar="N", help="tokens of an answer at most")
    group.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end the answer there; repeatable")
    group.add_argument("--json-schema", metavar="JSON", help="a schema of JSON that the answer fits")
    group.add_argument("--json-schema-file", metavar="FILE", help="a file with that schema; - is stdin")
    group.add_argument("--context-shift", action="store_true", help="forget the oldest tokens if the context is full")
    group.add_argument("--keep", type=natural, metavar="N", help="first tokens that --context-shift never forgets")
    group.add_argument("--ignore-end", action="store_true", help="go on behind the end of the text")


def sampling_of(args: Namespace) -> dict[str, Any]:
    """The options of `Sampling` that are given; the most likely token is chosen without any but penalties."""
    found: dict[str, Any] = {name: value for name in SAMPLING if (value := getattr(args, name)) is not None}
    draws = {"temperature", "top_k", "top_p", "min_p", "typical_p", "seed"} & found.keys()
    given: dict[str, Any] = found if draws else {**found, "temperature": 0.0}
    Sampling(**given)
    return given
