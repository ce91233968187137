"""
Tokenizers of the package `tokenizers` for vocabularies of GGUF files.

Control tokens have other names in these, so that no text can be one: `Tokenizer` finds them itself where it may. Tokens
that the maker of the vocabulary added to its words are found before all else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.generation.pre_tokenizers import PRE_TOKENIZERS, PreTokenizer
from glow_mlir.generation.vocabulary import BYTE, NORMAL, PREFIX, SPACE, UNUSED, USER_DEFINED, Vocabulary
from glow_mlir.support.optional_packages import imported

MAX_LENGTH = 1 << 10
"""The maximum number of characters of a token whose merges are derived from scores: there is one a position."""


def package(module: str = "tokenizers") -> Any:
    """A module of the package `tokenizers`; raises `OptionError` if it is not installed."""
    return imported(module, "generate", "generation of text needs the package tokenizers")


def pre_tokenizer_of(vocabulary: Vocabulary) -> PreTokenizer:
    """The pre-tokenizer of byte pairs; raises `UnsupportedError` for an unknown one."""
    name = vocabulary.pre or "default"
    if name not in PRE_TOKENIZERS:
        reason = f"the pre-tokenizer '{name}' is not supported"
        raise UnsupportedError(reason, node=f"{PREFIX}pre", hint="give the model's tokenizer.json")
    return PRE_TOKENIZERS[name]


def built(vocabulary: Vocabulary, controls: Collection[int]) -> Any:
    """A tokenizer for a vocabulary with those control tokens; raises `ModelError` if it contradicts itself."""
    names = _names(vocabulary, controls)
    tokenizer = guarded(lambda: _BUILDERS[vocabulary.kind](vocabulary, names), "")
    user_defined = np.flatnonzero(vocabulary.types == USER_DEFINED).tolist()
    added = package().AddedToken
    texts = [vocabulary.tokens[number] for number in user_defined if number not in controls]
    tokenizer.add_tokens([added(text, normalized=False, special=False) for text in texts if text in names])
    return tokenizer


def guarded(build: Callable[[], Any], file: str) -> Any:
    """What `build` returns; raises `ModelError` where the package fails, which also panics."""
    try:
        return build()
    except GlowError:
        raise
    except BaseException as error:
        # Panics of Rust are no exceptions; interrupts are neither, and have to go on.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        words = " ".join(str(error).split())
        raise ModelError(f"the tokenizer is damaged: {words:.200}", file=file) from error


def _names(vocabulary: Vocabulary, controls: Collection[int]) -> dict[str, int]:
    """Id by name; where no text may be a token, its name has a space, which no part of a text has."""
    names = dict(vocabulary.ids)
    for number in {*controls, *_no_texts(vocabulary)}:
        del names[vocabulary.tokens[number]]
        names[f" {number}"] = number
    if len(names) != len(vocabulary.tokens):
        raise ModelError("a token is a space and a number", node=f"{PREFIX}tokens")
    return names


def _no_texts(vocabulary: Vocabulary) -> list[int]:
    """Tokens with bytes that are not UTF-8."""
    if _is_text("".join(vocabulary.tokens)):
        return []
    return [number for number, token in enumerate(vocabulary.tokens) if not _is_text(token)]


def _is_text(token: str) -> bool:
    try:
        token.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _unknown(vocabulary: Vocabulary, names: Mapping[str, int]) -> str | None:
    """The name of the token for what the vocabulary lacks."""
    number = vocabulary.named.get("unk_token")
    if number is None:
        return None
    return f" {number}" if f" {number}" in names else vocabulary.tokens[number]


def _byte_pairs(vocabulary: Vocabulary, names: Mapping[str, int]) -> Any:
    """GPT-2's byte pairs, and Gemma 4's."""
    form = pre_tokenizer_of(vocabulary)
    if vocabulary.merges is None:
        raise ModelError("the vocabulary has no merges", node=f"{PREFIX}merges", hint="give the model's tokenizer.json")
    merges = [tuple(merge.split(" ")) for merge in vocabulary.merges]
    if any(len(pair) != 2 or not all(pair) for pair in merges):  # Few vocabularies have tokens with spaces.
        merges = [_pair(merge) for merge in vocabulary.merges]
    models, normalizers, splits = _parts()
    options = {} if form.in_bytes else {"byte_fallback": True, "unk_token": _unknown(vocabulary, names)}
    model = models.BPE(vocab=names, merges=merges, ignore_merges=form.ignore_merges, **options)
    tokenizer = package().Tokenizer(model)
    regex = package().Regex
    parts = [splits.Split(regex(text), "isolated") for text in form.splits]
    if form.in_bytes:
        parts.append(splits.ByteLevel(add_prefix_space=vocabulary.adds_space, use_regex=False))
    else:
        tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    tokenizer.pre_tokenizer = splits.Sequence(parts)
    return tokenizer


def _pair(merge: str) -> tuple[str, str]:
    """Two tokens with a space between."""
    left, _, right = merge[1:].partition(" ")
    if not right:
        raise ModelError(f"the merge '{merge:.40}' is no pair of tokens", node=f"{PREFIX}merges")
    return merge[:1] + left, right


def _sentence_pieces(vocabulary: Vocabulary, names: Mapping[str, int]) -> Any:
    """SentencePiece's byte pairs: those are merged first whose token has the highest score."""
    models, normalizers, _ = _parts()
    merges = _merges_of_scores(vocabulary, names)
    model = models.BPE(
        vocab=names, merges=merges, unk_token=_unknown(vocabulary, names), fuse_unk=True, byte_fallback=True
    )
    tokenizer = package().Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(_spaces(vocabulary.adds_space))
    return tokenizer


def _spaces(adds_space: bool) -> list[Any]:
    """Normalizers that write spaces as SentencePiece does, with one before the text if it adds one."""
    _, normalizers, _ = _parts()
    prefix = [normalizers.Prepend(SPACE)] if adds_space else []
    return [*prefix, normalizers.Replace(" ", SPACE)]


def _merges_of_scores(vocabulary: Vocabulary, names: Mapping[str, int]) -> list[tuple[str, str]]:
    """All pairs of tokens that make a token, those with the highest score first, and of these the longest left one."""
    scores = _scores(vocabulary)
    merged = np.isin(vocabulary.types, (NORMAL, USER_DEFINED, UNUSED)).tolist()
    found = sorted(
        (-scores[number], -len(left), len(left) - len(token), left, right)
        for number, token in enumerate(vocabulary.tokens)
        if merged[number] and token in names
        for left, right in _halves(token, names)
    )
    return [pair[3:] for pair in found]


def _halves(token: str, names: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The pairs of tokens that a token can be made of."""
    if len(token) > MAX_LENGTH:
        raise ModelError(f"a token has {len(token)} characters, more than {MAX_LENGTH}", node=f"{PREFIX}tokens")
    for cut in range(1, len(token)):
        if (left := token[:cut]) in names and (right := token[cut:]) in names:
            yield left, right


def _scores(vocabulary: Vocabulary) -> list[float]:
    if vocabulary.scores is None:
        raise ModelError("the vocabulary has no scores", node=f"{PREFIX}scores")
    return vocabulary.scores.tolist()


def _word_pieces(vocabulary: Vocabulary, names: Mapping[str, int]) -> Any:
    """BERT's: the file has `▁` before the first piece of a word, instead of `##` before others."""
    models, normalizers, splits = _parts()
    spelled = {
        name[1:] if name.startswith(SPACE) else name if name.startswith(" ") else f"##{name}": number
        for name, number in names.items()
    }
    if len(spelled) != len(names):
        raise ModelError("a piece of words is there twice", node=f"{PREFIX}tokens")
    unknown = vocabulary.named.get("unk_token")
    if unknown is None:
        raise ModelError("the vocabulary has no unknown token", node=f"{PREFIX}unknown_token_id")
    word = next(name for name, number in spelled.items() if number == unknown)
    tokenizer = package().Tokenizer(models.WordPiece(vocab=spelled, unk_token=word))
    lower_case, strip_accents = vocabulary.lower_case, vocabulary.strip_accents
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower_case, strip_accents=strip_accents)
    tokenizer.pre_tokenizer = splits.BertPreTokenizer()
    return tokenizer


def _unigram(vocabulary: Vocabulary, names: Mapping[str, int]) -> Any:
    """SentencePiece's unigram language model: the most likely pieces of a text."""
    models, normalizers, _ = _parts()
    scores = np.where(vocabulary.types == USER_DEFINED, 0, _scores(vocabulary)).tolist()
    pieces = [(name, scores[number]) for name, number in sorted(names.items(), key=lambda item: item[1])]
    has_bytes = bool((vocabulary.types == BYTE).any())
    model = models.Unigram(pieces, unk_id=vocabulary.named.get("unk_token"), byte_fallback=has_bytes)
    tokenizer = package().Tokenizer(model)
    steps: list[Any] = [normalizers.Precompiled(vocabulary.character_map)] if vocabulary.character_map else []
    if vocabulary.joins_spaces:
        regex = package().Regex
        steps += [normalizers.Replace(regex("^ +| +$"), ""), normalizers.Replace(regex(" {2,}"), " ")]
    tokenizer.normalizer = normalizers.Sequence([*steps, *_spaces(vocabulary.adds_space or vocabulary.joins_spaces)])
    return tokenizer


def _parts() -> tuple[Any, Any, Any]:
    """The modules of models, normalizers and pre-tokenizers."""
    return tuple(package(f"tokenizers.{name}") for name in ("models", "normalizers", "pre_tokenizers"))


_BUILDERS: Mapping[str, Callable[[Vocabulary, Mapping[str, int]], Any]] = {
    "gpt2": _byte_pairs,
    "gemma4": _byte_pairs,
    "llama": _sentence_pieces,
    "bert": _word_pieces,
    "t5": _unigram,
}
