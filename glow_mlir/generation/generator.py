"""A decoder of text that answers prompts: tokenizer, template, engine and samplers of one model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import InputError, OptionError
from glow_mlir.frontends.decoders.adapters import Adapter
from glow_mlir.frontends.decoders.genai_folder import GenaiFolder
from glow_mlir.frontends.decoders.models import DecoderModel, open_model
from glow_mlir.generation.embedder import Embedder, Text
from glow_mlir.generation.engine import Engine, EngineLimits
from glow_mlir.generation.generation import Completion, Generation, Sink
from glow_mlir.generation.grammar import Grammar, GrammarCompiler
from glow_mlir.generation.model_texts import ModelTexts
from glow_mlir.generation.pages import PagePool
from glow_mlir.generation.request import ContextShift, Mask, Request
from glow_mlir.generation.sampler import Sampler
from glow_mlir.generation.sampling import Sampling
from glow_mlir.generation.session_calls import SessionCalls
from glow_mlir.generation.template import ChatTemplate
from glow_mlir.generation.token_ids import token_ids
from glow_mlir.generation.token_sequence import TokenSequence, append
from glow_mlir.generation.tokenizer import Tokenizer
from glow_mlir.generation.tool_grammar import FREE, grammar_of_calls
from glow_mlir.options.generation import ACTIVATIONS, CONTEXT
from glow_mlir.support.activity import caution
from glow_mlir.support.file_kinds import GENAI
from glow_mlir.support.parallel_work import both, in_pauses

ROWS = 512
"""The tokens of a call at most."""

PAGE = 64
"""The tokens of a page."""

UNBOUNDED = 1 << 62
"""As many tokens as come."""

Message = Mapping[str, Any]
Prompt = str | Sequence[int] | Sequence[Message]
"""Text, token ids, or the messages of a chat."""


class Generator:
    """
    A decoder in a GGUF file, or in a folder of a checkpoint or of onnxruntime-genai, ready to continue prompts.

    ```python
    generator = glow_mlir.Generator("model.gguf")
    print(generator.generate("Once upon a time", max_tokens=40))
    for piece in generator.stream([{"role": "user", "content": "Why is the sky blue?"}]):
        print(piece.text, end="")
    ```

    - `context`: the number of tokens that a sequence may have, by default the model's, but at most 8,192.
    - `parallel`: how many sequences are continued together; more wait.
    - `activations`: `int15`, `int8` or `float32`: what rows are rounded to in front of quantized weights. 15 bits take
      about as long as 8 and keep the results of f32 to 4 digits more. By default what a folder of onnxruntime-genai
      says, otherwise 15 bits.
    - `cache`: the element type of keys and values: `float16`, `bfloat16`, `float32`, or `int8` with a scale for each
      token and head.
    - `speculation`: the number of tokens that are guessed from the text so far, and checked together; 0 for none.
    - `tokenizer`: a `tokenizer.json` to use instead of the model's own; `template`: likewise, text of Jinja.
    - `adapters`: name → a folder of PEFT, or a GGUF file, with a low-rank adapter (LoRA) that requests may choose.
    - `options`: further options of the session, such as `threads`.

    Raises `ModelError` for damaged files, and `OptionError` for options out of range or packages that are missing.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        context: int | None = None,
        parallel: int = 4,
        activations: str | None = None,
        cache: str = "float16",
        speculation: int = 0,
        tokenizer: str | Path | None = None,
        template: str | None = None,
        adapters: Mapping[str, str | Path] | None = None,
        **options: Any,
    ) -> None:
        if activations is not None and activations not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise OptionError(f"activations cannot be '{activations}'", hint=f"they are one of {known}")
        if parallel < 1 or speculation < 0:
            raise OptionError("parallel must be at least 1, and speculation at least 0")
        self.model = model = open_model(path).bounded(context, CONTEXT)
        _tell_unused(model)
        self._texts = texts = ModelTexts(model, tokenizer, template)
        if not texts.is_whole:
            # The session needs the digests of the files, which another thread computes meanwhile.
            both(lambda: model.origin(by_content=True), texts.check)
        self.speculation = speculation
        given: dict[str, Any] = {"context": context, "activations": activations, "tokenizer": tokenizer, **options}
        self._open_embedder = partial(Embedder, path, **given)
        self._adapters = {name: Adapter.open(each) for name, each in (adapters or {}).items()}
        self._compiler: GrammarCompiler | None = None
        self._embedder: Embedder | None = None
        config = self.model.config
        pages = parallel * -(-config.context // PAGE)
        outputs = parallel * (1 + speculation)
        program = self.model.program(
            pages=pages,
            rows=max(ROWS, outputs),
            outputs=outputs,
            sequences=parallel,
            page=PAGE,
            cache=cache,
            left_bits=None if activations is None else ACTIVATIONS[activations],
            adapters=[*self._adapters.values()],
        )
        source: Any = program
        sampler = Sampler(config.vocabulary)
        with in_pauses(*sampler.prepare()):
            session = InferenceSession(source, dimensions=program.dimensions, **options)
        limits = EngineLimits(program.rows, parallel, outputs, config.context, adapters=len(self._adapters))
        self.engine = Engine(SessionCalls(session), sampler, PagePool(pages, PAGE), limits)

    @property
    def tokenizer(self) -> Tokenizer:
        """What turns text into token ids, and back."""
        return self._texts.tokenizer

    @property
    def template(self) -> ChatTemplate | None:
        """The template that makes one text of messages; `None` if the model has none."""
        return self._texts.template

    def generate(self, prompt: Prompt, **options: Any) -> Completion:
        """The continuation of a prompt; the options are those of `stream`."""
        return self.stream(prompt, **options).completion

    def choices(self, prompt: Prompt, count: int, **options: Any) -> list[Completion]:
        """Several continuations of a prompt, computed together; seeds count up from `seed`."""
        seed = options.pop("seed", None)
        seeds = [None if seed is None else seed + number for number in range(count)]
        running = [self.stream(prompt, seed=each, **options) for each in seeds]
        return [each.completion for each in running]

    def stream(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = None,
        stop: str | Sequence[str] = (),
        ignore_end: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] = "auto",
        parallel_tool_calls: bool = True,
        schema: Mapping[str, Any] | str | None = None,
        grammar: Grammar | None = None,
        salt: str = "",
        adapter: str | None = None,
        context_shift: bool = False,
        keep: int | None = None,
        **sampling: Any,
    ) -> Generation:
        """
        Begin to continue a prompt: text, token ids, or messages of a chat such as `{"role": "user", "content": "…"}`.

        - `max_tokens`: by default as many as the context has left.
        - `stop`: strings that end the text, which does not contain them; `ignore_end`: whether to go on behind the end.
        - `tools`: what the template shows as callable functions; `tool_choice`, as OpenAI has it: `none` shows none,
          and with `required`, or an object that names a function, the text is calls that fit the schemas of the tools,
          and one only without `parallel_tool_calls`.
        - `schema`: a schema that the text fits, which is JSON; or another `grammar`.
        - `salt`: prompts share computed beginnings only where this is equal.
        - `adapter`: the name of the adapter that is added to the model's weights; by default none is.
        - `context_shift`: whether to go on where the context is full, as often as it is, without half of the tokens
          behind the first `keep` ones, the oldest; there is no bound then but `max_tokens`. By default those in front
          of a text are kept.
        - `sampling`: the options of `Sampling`, such as `temperature` or `seed`.

        Raises `InputError` for prompts that are empty or too long, and `OptionError` for options out of range.
        """
        ids = self.tokens_of(prompt, tools=None if tool_choice == "none" else tools)
        stops = [stop] if isinstance(stop, str) else list(stop)
        if not all(stops):
            raise OptionError("a stop string is empty")
        count = self._count(len(ids), max_tokens, context_shift)
        chosen_by = _sampling(sampling, self.model.config.vocabulary)
        sink = Sink(self.tokenizer, stops, frozenset() if ignore_end else self.tokenizer.ends)
        calls = None if tool_choice in FREE else self._calls(tools, tool_choice, parallel_tool_calls)
        mask = self._mask([calls, grammar, None if schema is None else Grammar.of_schema(schema)])
        shift = self._shift(keep) if context_shift else None
        number, draft = self._adapter(adapter), self.speculation
        request = Request(ids, chosen_by, count, sink, salt=salt, mask=mask, draft=draft, adapter=number, shift=shift)
        self.engine.submit(request)
        return Generation(self.engine, request, sink)

    def embed(self, texts: Text | Sequence[Text], **options: Any) -> np.ndarray:
        """
        The vectors of texts, as `Embedder.embed` makes them, whose options these are.

        The program for it is compiled when it is needed first. `Embedder` alone takes half of the memory.
        """
        if self._embedder is None:
            self._embedder = self._open_embedder()
        return self._embedder.embed(texts, **options)

    def sequence(self, *, adapter: str | None = None) -> TokenSequence:
        """A sequence without tokens, for loops that choose them otherwise than `stream` does."""
        return TokenSequence(self.engine, self.model.config.vocabulary, self._adapter(adapter))

    @property
    def adapters(self) -> list[str]:
        """The names of the adapters."""
        return list(self._adapters)

    def _adapter(self, name: str | None) -> int:
        """The number of an adapter, 0 for none; raises `OptionError` for a name that was not given."""
        if name is None:
            return 0
        if name not in self._adapters:
            known = ", ".join(self._adapters) or "given as Generator(…, adapters={name: folder})"
            raise OptionError(f"there is no adapter '{name}'", hint=f"adapters are {known}")
        return self.adapters.index(name) + 1

    def append(
        self, tokens: Mapping[TokenSequence, Iterable[int]], *, wanted: int = 1
    ) -> dict[TokenSequence, np.ndarray]:
        """Append tokens to several sequences in as few calls as possible; see `TokenSequence.append`."""
        return append(tokens, wanted=wanted)

    def _count(self, length: int, max_tokens: int | None, is_shifted: bool) -> int:
        """The number of tokens that may follow a prompt of that length; raises `InputError` if that is too long."""
        context = self.engine.limits.context
        left = context - length
        count = (UNBOUNDED if is_shifted else max(left, 0)) if max_tokens is None else max_tokens
        if count < 0 or (left < 1 and (max_tokens is None or is_shifted)):
            reason = f"the prompt has {length} tokens, and the context {context}"
            raise InputError(reason if count >= 0 else f"max_tokens is {count}", hint="give a larger context")
        if count > max(left, 0) and not is_shifted:
            reason = f"{length} tokens of the prompt and {count} new ones"
            hint = f"max_tokens can be {left} at most" if left > 0 else "give a larger context, or a shorter prompt"
            raise InputError(f"{reason} are more than the context of {context}", hint=hint)
        return count

    def _shift(self, keep: int | None) -> ContextShift:
        """What a full context forgets; raises `OptionError` if nothing is left to forget."""
        context = self.engine.limits.context
        kept = len(self.tokenizer.frame.before) if keep is None else keep
        if not 0 <= kept < context - 1:
            raise OptionError(f"keep cannot be {kept}", hint=f"it is from 0 to {context - 2}, behind which tokens drop")
        return ContextShift(context, kept)

    def _calls(self, tools: Sequence[Any] | None, choice: str | Mapping[str, Any], is_parallel: bool) -> Grammar:
        """The grammar of an answer that calls tools."""
        template = None if self.template is None else self.template.text
        return grammar_of_calls(tools, choice, is_parallel=is_parallel, template=template)

    def _mask(self, grammars: Sequence[Grammar | None]) -> Mask | None:
        """The constraint by the grammar that is given, if there is one; raises `InputError` for several."""
        given = [grammar for grammar in grammars if grammar is not None]
        if len(given) > 1:
            raise InputError("of tool_choice, schema and grammar only one can constrain a text")
        if not given:
            return None
        if self._compiler is None:
            self._compiler = GrammarCompiler(self.tokenizer, self.model.config.vocabulary)
        return self._compiler.constraint(given[0])

    def tokens_of(self, prompt: Prompt, *, tools: Sequence[Mapping[str, Any]] | None = None) -> list[int]:
        """The token ids of a prompt; raises `InputError` for messages if the model has no template."""
        if isinstance(prompt, str):
            return self.tokenizer.encode(prompt, begin=True)
        if all(isinstance(item, Mapping) for item in prompt) and len(prompt):
            # A message's text is text: only the template writes control tokens.
            messages, functions = self.tokenizer.guarded(list(prompt)), self.tokenizer.guarded(tools)
            return self.tokenizer.encode(self.rendered(messages, tools=functions), special=True)
        return token_ids(_numbers(prompt), self.model.config.vocabulary)

    def rendered(self, messages: Iterable[Any], *, tools: Sequence[Mapping[str, Any]] | None = None) -> str:
        """The text of a chat's messages with the beginning of an answer."""
        if self.template is None:
            hint = "give text, or a template"
            raise InputError(f"{self.model.path.name} has no template for messages", hint=hint)
        return self.template.render(list(messages), tools=None if tools is None else list(tools))


def _tell_unused(model: DecoderModel) -> None:
    """Say which settings of a folder are not used, since all models have the same defaults of a request."""
    if isinstance(model.source, GenaiFolder) and model.source.unused:
        given = ", ".join(f"{name}={value!r:.40}" for name, value in model.source.unused.items())
        hint = "requests choose how tokens are chosen"
        caution(OptionError(f"not used: {given}", file=str(model.path / GENAI), node="search", hint=hint))


def _sampling(options: Mapping[str, Any], vocabulary: int) -> Sampling:
    try:
        found = Sampling(**options)
    except TypeError as error:
        raise OptionError(f"options of sampling: {error}") from error
    if found.logit_bias and (token := max(found.logit_bias)) >= vocabulary:
        raise OptionError(f"logit_bias has the token {token}", hint=f"the vocabulary has {vocabulary} tokens")
    return found


def _numbers(prompt: Sequence[Any]) -> Sequence[Any]:
    if any(isinstance(item, bool) or not isinstance(item, int | np.integer) for item in prompt):
        raise InputError("a prompt is text, token ids, or messages with role and content")
    return prompt
