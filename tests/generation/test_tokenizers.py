"""Tokenizers: every kind of GGUF vocabulary, tokenizer.json, damage, and llama.cpp's and transformers' ids."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breadth import examples
from gguf_files import write_gguf
from llama_cpp_models import llama_cpp_models

from glow_mlir.errors import GlowError, InputError, ModelError, UnsupportedError
from glow_mlir.frontends.gguf.file import GgufFile
from glow_mlir.generation.tokenizer import GUARD, Tokenizer

pytestmark = pytest.mark.extra
pytest.importorskip("tokenizers")

P = "tokenizer.ggml."
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
ALL_PRINTABLE = [chr(byte) for byte in PRINTABLE] + [chr(0x100 + place) for place in range(256 - len(PRINTABLE))]


def byte_pairs() -> dict[str, Any]:
    tokens = [*ALL_PRINTABLE, "he", "ll", "hell", "hello", "Ġw", "Ġwo", "<|end|>", "<|im_end|>", "<added>"]
    types = [NORMAL] * (len(tokens) - 3) + [CONTROL, CONTROL, USER_DEFINED]
    merges = ["h e", "l l", "he ll", "hell o", "Ġ w", "Ġw o"]
    return {
        P + "model": "gpt2", P + "pre": "gpt-2", P + "tokens": tokens, P + "merges": merges,
        P + "token_type": np.array(types, np.int32), P + "eos_token_id": len(tokens) - 3,
        P + "bos_token_id": len(tokens) - 3, P + "add_bos_token": True,
    }  # fmt: skip


def sentence_pieces(model: str = "llama") -> dict[str, Any]:
    pieces = ["▁", "h", "e", "l", "o", "he", "ll", "hell", "hello", "▁hello", "w", "▁w", "é"]
    tokens = ["<unk>", "<s>", "</s>", *BYTES, *pieces]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(pieces)
    scores = [0.0] * 259 + [-5.0, -6, -6, -6, -6, -4, -4, -3, -2, -1, -7, -3, -8]
    found = {
        P + "model": model, P + "tokens": tokens, P + "token_type": np.array(types, np.int32),
        P + "scores": np.array(scores, np.float32),
    }  # fmt: skip
    if model == "t5":
        found |= {
            P + "unknown_token_id": 0,
            P + "eos_token_id": 2,
            P + "padding_token_id": 1,
            P + "add_space_prefix": True,
        }
    return found


def word_pieces() -> dict[str, Any]:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁hello", "▁wor", "ld", "s", "▁!"]
    return {
        P + "model": "bert", P + "tokens": tokens, P + "token_type": np.array([3, 3, 3, 3, 1, 1, 1, 1, 1], np.int32),
        P + "unknown_token_id": 1, P + "bos_token_id": 2, P + "cls_token_id": 2, P + "seperator_token_id": 3,
        P + "padding_token_id": 0,
    }  # fmt: skip


KINDS = {
    "byte pairs": byte_pairs,
    "SentencePiece": sentence_pieces,
    "Unigram": lambda: sentence_pieces("t5"),
    "WordPiece": word_pieces,
}
TEXTS = ["hello", "hello wo", "Hé ☃!", "  a  b\n", "", "\0\x7f", "hello" * 30, "𝕏\u0301"]


def read_from(folder: Path, metadata: dict[str, Any]) -> Tokenizer:
    """The tokenizer of a file with that metadata."""
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in metadata.items()}
    return Tokenizer.of_gguf(GgufFile.open(write_gguf(folder / "m.gguf", plain, {})).metadata)


def names(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    return [tokenizer.token(number) for number in ids]


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_each_kind_are_read(kind: str, tmp_path: Path) -> None:
    tokenizer = read_from(tmp_path, KINDS[kind]())
    assert names(tokenizer, tokenizer.encode("hello")) == {"byte pairs": ["hello"]}.get(kind, ["▁hello"])
    assert tokenizer.decode(tokenizer.encode("hello")) == "hello"


@pytest.mark.parametrize("kind", ["byte pairs", "SentencePiece", "Unigram"])
def test_texts_come_back(kind: str) -> None:
    tokenizer = Tokenizer.of_gguf(KINDS[kind]())
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        whole = b"".join(map(tokenizer.piece, ids)).decode()
        assert whole == (" " + text if tokenizer.strips_space and text else text)


def test_frames_are_those_of_the_file() -> None:
    pairs, pieces, words = (Tokenizer.of_gguf(KINDS[kind]()) for kind in ("byte pairs", "SentencePiece", "WordPiece"))
    assert names(pairs, pairs.encode("hello", begin=True, end=True)) == ["<|end|>", "hello"]
    assert names(pieces, pieces.encode("hello", begin=True)) == ["<s>", "▁hello"]
    assert names(pieces, pieces.encode("<s>hello", begin=True, special=True)) == ["<s>", "▁hello"]
    assert names(words, words.encode("Hello worlds!", begin=True, end=True)) == [
        "[CLS]", "▁hello", "▁wor", "ld", "s", "▁!", "[SEP]"
    ]  # fmt: skip
    assert words.decode(words.encode("Hello worlds!")) == "hello worlds !"
    assert words.encode("☃") == [1]


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_user_is_a_control_token(kind: str) -> None:
    tokenizer = Tokenizer.of_gguf(KINDS[kind]())
    for number in tokenizer.controls - {tokenizer.id("<unk>"), tokenizer.id("[UNK]")}:
        text = tokenizer.token(number)
        assert number not in tokenizer.encode(f"a {text} b{text}")
        assert number in tokenizer.encode(f"a {text} b", special=True)
        guarded = tokenizer.guarded({text: [f"a{text}{GUARD}{text}"]})
        assert number not in tokenizer.encode(json.dumps(guarded, ensure_ascii=False), special=True)
        split = f"{text[:2]}{GUARD}{text[2:]}"
        assert number not in tokenizer.encode(tokenizer.guarded(split), special=True)
        assert number not in tokenizer.encode(f" {number}")


def test_a_guarded_text_has_the_tokens_of_the_text() -> None:
    tokenizer = Tokenizer.of_gguf(byte_pairs())
    text = "hello <|im_end|> wo <added>"
    assert tokenizer.encode(tokenizer.guarded(text), special=True) == tokenizer.encode(text)


def test_ends_and_names_are_those_of_the_file() -> None:
    tokenizer = Tokenizer.of_gguf(byte_pairs())
    assert {tokenizer.token(number) for number in tokenizer.ends} == {"<|end|>", "<|im_end|>"}
    assert tokenizer.named["eos_token"] == "<|end|>"
    assert tokenizer.with_ends([5]).ends == tokenizer.ends | {5}
    assert tokenizer.decode(sorted(tokenizer.ends)) == ""
    assert tokenizer.decode([tokenizer.size - 2], special=True) == "<|im_end|>"


def test_ids_outside_are_errors_or_no_text() -> None:
    tokenizer = Tokenizer.of_gguf(byte_pairs())
    assert tokenizer.piece(tokenizer.size + 7) == b""
    for ask in (tokenizer.piece, tokenizer.token):
        with pytest.raises(InputError, match="no token -1"):
            ask(-1)
    with pytest.raises(InputError, match="no token 10000"):
        tokenizer.token(10_000)
    with pytest.raises(InputError, match="halves"):
        tokenizer.encode("\ud800")


DAMAGED: list[tuple[str, str, Any, str]] = [
    ("byte pairs", "tokens", [], "no tokens"),
    ("byte pairs", "tokens", ["a", "a"], "there twice"),
    ("byte pairs", "tokens", [1], "array of strings"),
    ("byte pairs", "merges", None, "no merges"),
    ("byte pairs", "merges", ["ab"], "no pair"),
    ("byte pairs", "merges", ["nothing such"], "damaged"),
    ("byte pairs", "pre", "new", "not supported"),
    ("byte pairs", "model", "new", "not supported"),
    ("byte pairs", "eos_token_id", 10**6, "the vocabulary has"),
    ("byte pairs", "eos_token_id", True, "no number"),
    ("byte pairs", "token_type", np.ones(3, np.int32), "3 numbers"),
    ("byte pairs", "add_bos_token", 3, "no truth value"),
    ("SentencePiece", "scores", None, "no scores"),
    ("SentencePiece", "scores", np.full(272, np.nan, np.float32), "not finite"),
    ("SentencePiece", "tokens", [*map(str, range(271)), "a" * 5000], "5000 characters"),
    ("Unigram", "precompiled_charsmap", np.array([9, 0, 0, 0, 1], np.uint8), "trie"),
    ("WordPiece", "unknown_token_id", None, "unknown token"),
]


@pytest.mark.parametrize(("kind", "key", "value", "words"), DAMAGED)
def test_damaged_entries_are_named(kind: str, key: str, value: Any, words: str) -> None:
    metadata = KINDS[kind]() | {P + key: value}
    if value is None:
        del metadata[P + key]
    with pytest.raises((ModelError, UnsupportedError), match=words) as caught:
        Tokenizer.of_gguf(metadata)
    assert "\n" not in str(caught.value)


def damaged(random_: random.Random, value: Any) -> Any:
    """A value of metadata with a fault."""
    if isinstance(value, list) and value and random_.random() < 0.7:
        found = list(value)
        for _ in range(random_.randint(1, 3)):
            place, other = random_.randrange(len(found)), random_.choice(found)
            changed = [other, "", "\udcff", "a" * 2000, other[:1], f"{other} {other}", 7, " 3", "\0", other + "\n"]
            found[place] = random_.choice(changed)
        return random_.choice([found, found, found[: len(found) // 2]])
    if isinstance(value, np.ndarray) and random_.random() < 0.7:
        found = value.copy()
        found[random_.randrange(len(found))] = random_.choice([0, 3, 4, 5, 6, 255, np.array(-1).astype(found.dtype)])
        return random_.choice([found, found[:-1], found.astype(np.float64), found.reshape(-1, 1)])
    return random_.choice(
        [-1, 0, 1, 1 << 70, 1.5, None, True, "", "llama", b"x", [], ["a"], {}, np.zeros(3), float("nan")]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_read_or_refused_in_one_line(kind: str) -> None:
    random_, refused = random.Random(kind), list[str]()
    base = KINDS[kind]() | {P + "precompiled_charsmap": np.zeros(9, np.uint8), P + "add_eos_token": False}
    for _ in range(examples(300)):
        metadata = dict(base)
        for key in random_.sample(sorted(base), random_.randint(1, 2)):
            metadata[key] = damaged(random_, metadata[key])
        try:
            tokenizer = Tokenizer.of_gguf(metadata)
            ids = tokenizer.encode("hello wo <s>☃", special=True, begin=True, end=True)
            tokenizer.decode(ids, special=True)
            assert all(0 <= number < tokenizer.size for number in ids)
        except GlowError as error:
            refused.append(str(error))
    assert refused
    assert not [words for words in refused if "\n" in words or len(words) > 600]


def written(folder: Path, *, template: bool = False, strips: bool = False) -> Path:
    """A tokenizer.json of byte pairs that is trained on some text."""
    library = pytest.importorskip("tokenizers")
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    special = ["<s>", "</s>", "<|im_end|>"]
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    trainer = library.trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(["the cat sat on the mat, said the hat; été"] * 9, trainer)
    if template:
        tokens = [(token, tokenizer.token_to_id(token)) for token in special[:2]]
        tokenizer.post_processor = library.processors.TemplateProcessing("<s> $A </s>", None, tokens)
    if strips:
        tokenizer.add_special_tokens(
            [library.AddedToken("<mask>", lstrip=True), library.AddedToken("<x>", rstrip=True)]
        )
    tokenizer.add_tokens(["catsat"])
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def random_texts(count: int, extra: list[str]) -> list[str]:
    """Texts of words, characters of all planes, and other parts."""
    random_ = random.Random(7)
    parts = ["the", " cat", "hat", "catsat", " ", "  ", "\n", "é", "☃", "𝕏", "\u0301", "12", "'s", "!", "\t", *extra]

    def part() -> str:
        char = random_.choice([random_.randrange(1, 0xD800), random_.randrange(0x10000, 0x110000), 32, 97])
        return random_.choice([*parts, chr(char)])

    return ["".join(part() for _ in range(random_.randint(0, 20))) for _ in range(count)]


@pytest.mark.parametrize("form", ["plain", "template", "strips"])
def test_a_file_means_as_in_its_package(form: str, tmp_path: Path) -> None:
    library = pytest.importorskip("tokenizers")
    path = written(tmp_path, template=form == "template", strips=form == "strips")
    tokenizer, wanted = Tokenizer.of_file(path), library.Tokenizer.from_file(str(path))
    marks = [token.content for token in wanted.get_added_tokens_decoder().values()]
    for text in random_texts(examples(2000), marks):
        assert tokenizer.encode(text, special=True) == wanted.encode(text, add_special_tokens=False).ids
        ids = tokenizer.encode(text)
        assert not tokenizer.controls & set(ids)
        assert tokenizer.decode(ids) == text == wanted.decode(ids)
    assert tokenizer.encode("cat", begin=True, end=True) == wanted.encode("cat").ids


def searched(kind: str) -> Any:
    """A tokenizer of the package whose model finds its words in any text, control tokens among them."""
    library = pytest.importorskip("tokenizers")
    models, splits = library.models, library.pre_tokenizers
    if kind == "Unigram":
        pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), ("▁", -3.0), ("▁cat", -2.0)]
        tokenizer = library.Tokenizer(models.Unigram([*pieces, *((letter, -9.0) for letter in "cats</>")], unk_id=0))
        tokenizer.pre_tokenizer, tokenizer.decoder = splits.Metaspace(), library.decoders.Metaspace()
    elif kind == "BPE":
        words = ["<unk>", "<s>", "</s>", "c", "a", "t", "s", "<", "/", ">", "ca", "cat", "<s"]
        merges = [("c", "a"), ("ca", "t"), ("<", "s"), ("<s", ">")]
        model = models.BPE({word: number for number, word in enumerate(words)}, merges, unk_token="<unk>")
        tokenizer = library.Tokenizer(model)
        tokenizer.pre_tokenizer, tokenizer.decoder = splits.WhitespaceSplit(), library.decoders.Fuse()
    else:
        words = ["<unk>", "<s>", "</s>", "cat", "s"]
        tokenizer = library.Tokenizer(getattr(models, kind)({w: n for n, w in enumerate(words)}, unk_token="<unk>"))
        tokenizer.pre_tokenizer = splits.WhitespaceSplit()
    tokenizer.add_special_tokens(words[:3] if kind != "Unigram" else ["<unk>", "<s>", "</s>"])
    tokenizer.add_special_tokens(["<mask>"])
    return tokenizer


@pytest.mark.parametrize("kind", ["Unigram", "WordLevel", "WordPiece", "BPE"])
def test_control_tokens_that_are_words_of_a_file_are_no_text(kind: str, tmp_path: Path) -> None:
    wanted, path = searched(kind), tmp_path / "tokenizer.json"
    wanted.save(str(path))
    tokenizer = Tokenizer.of_file(path)
    marks = [tokenizer.id(text) for text in ("<s>", "</s>", "<mask>")]
    assert None not in marks
    for text in ("<s>", "cat </s> cat", "cat<s>cat", "</s></s>", "<mask> s"):
        assert not set(marks) & set(tokenizer.encode(text))
    assert tokenizer.encode("cat <s>", special=True)[-1] == marks[0]
    for text in ("cat", "cat s", "cats ☃"):
        assert tokenizer.encode(text) == wanted.encode(text, add_special_tokens=False).ids


@pytest.mark.long
def test_a_file_means_as_in_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    path = written(tmp_path, strips=True)
    tokenizer, wanted = Tokenizer.of_file(path), transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
    for text in random_texts(10_000, ["<s>", "<|im_end|>", "<mask>", "<x>"]):
        assert tokenizer.encode(text, special=True) == wanted.encode(text, add_special_tokens=False)


def with_ids(path: Path, **ids: int) -> Path:
    """A tokenizer.json of words with these ids."""
    library = pytest.importorskip("tokenizers")
    tokenizer = library.Tokenizer(library.models.WordLevel({"<unk>": 0, **ids}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.save(str(path))
    return path


def test_a_vocabulary_may_have_gaps(tmp_path: Path) -> None:
    tokenizer = Tokenizer.of_file(with_ids(tmp_path / "tokenizer.json", **{"<s>": 1, "a": 2, "b": 4, "c": 7}))
    assert tokenizer.encode("a b <s> c b", special=True) == [2, 4, 1, 7, 4]
    with pytest.raises(ModelError, match="the ids of 3 tokens go up to 1000000000"):
        Tokenizer.of_file(with_ids(tmp_path / "large.json", **{"<s>": 1, "a": 10**9}))


def test_damaged_files_are_refused_in_one_line(tmp_path: Path) -> None:
    random_, refused = random.Random(3), list[str]()
    path = written(tmp_path, template=True)
    content = path.read_text(encoding="utf-8")
    for _ in range(examples(200)):
        place, size = random_.randrange(len(content)), random_.choice([0, 1, 5, 200])
        part = random_.choice(["", "9", "null", '"', "-1", "{", content[:size]])
        path.write_text(content[:place] + part + content[place + size :], encoding="utf-8")
        try:
            tokenizer = Tokenizer.of_file(path, {"bos_token": random_.choice(["<s>", 3, {"content": "<s>"}, None])})
            tokenizer.decode(tokenizer.encode("the cat <s>", special=True, begin=True))
        except GlowError as error:
            refused.append(str(error))
    assert refused
    assert not [words for words in refused if "\n" in words]
    with pytest.raises(ModelError, match="is no file"):
        Tokenizer.of_file(tmp_path)


@pytest.mark.long
def test_ids_are_those_of_llama_cpp() -> None:
    paths = [
        path
        for path in sorted(llama_cpp_models().glob("ggml-vocab-*.gguf"))
        if path.with_name(f"{path.name}.inp").is_file()
    ]
    assert paths
    for path in paths:
        tokenizer = Tokenizer.of_gguf(GgufFile.open(path).metadata)
        texts = path.with_name(f"{path.name}.inp").read_text(encoding="utf-8").split("\n__ggml_vocab_test__\n")
        lines = path.with_name(f"{path.name}.out").read_text(encoding="utf-8").split("\n")
        for text, line in zip(texts, lines, strict=False):
            assert tokenizer.encode(text) == [int(number) for number in line.split()], (path.name, text)
