"""
Mutants of the files of decoders and encoders of text, up to the network that is made of them.

GGUF files: their entries, tensors, and bytes of the header. Folders: `config.json`, the header of safetensors,
`tokenizer.json` and the files beside it. Each is read, or refused in one clean error, soon and in little memory.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fuzzing import Fuzzer
from gguf_files import gguf_bytes, random_blocks, write_gguf
from json_mutants import FLOATS, NUMBERS, TEXTS, damaged, text_of
from mutants import is_small
from small_encoders import write_encoder
from small_generators import write_model
from template_mutants import ATTACKS, MESSAGES

from glow_mlir.frontends.decoders.models import open_model
from glow_mlir.frontends.gguf.file import GgufFile
from glow_mlir.generation.pooling import Pooling, network_path
from glow_mlir.generation.text_files import template_of, tokenizer_of
from glow_mlir.options.generation import CONTEXT

TEXT = "hello wo <|im_end|>☃ été"

WIDTH, HIDDEN, LAYERS, HEADS = 32, 48, 2, 4

CONFIG: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": WIDTH,
    "intermediate_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 64},
    "hidden_act": "silu",
    "sliding_window": 8,
    "layer_types": ["full_attention", "sliding_attention"],
    "tie_word_embeddings": True,
    "eos_token_id": [1, 2],
    "bos_token_id": 0,
    "vocab_size": 0,
}  # fmt: skip

FAMILIES = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "phi3", "gpt2",
            "smollm3", "olmo2", "granite", "bert", "modernbert", "nomic_bert")  # fmt: skip


def read(path: Path) -> None:
    """Read all of a model: tokenizer, template, pooling, and the module of its network."""
    model = open_model(network_path(path))
    pooling = Pooling.of_model(model, path)
    model = model.bounded(None, CONTEXT)
    tokenizer = tokenizer_of(model, None)
    ids = tokenizer.encode(TEXT, special=True, begin=True, end=True)
    tokenizer.decode(ids, special=True)
    assert all(0 <= number < tokenizer.size for number in ids)
    template = template_of(model, tokenizer, None)
    pooling.size(model.network.width)
    result = next(iter(model.results))
    given: dict[str, Any] = {"pages": 4, "rows": 8, "outputs": 2, "sequences": 2, "page": 64, "result": result}
    program = model.program(**given, cache="float16", left_bits=None)
    program.module(program.dimensions).verify()
    if template is not None:
        template.render(MESSAGES, tools=None)


# ---- GGUF


@cache
def gguf_models() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Entries and tensors of a decoder and of an encoder."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            write_model(Path(folder) / "model.gguf", "Q4_0"),
            write_encoder(Path(folder) / "encoder.gguf", labels=1),
        ]
        return [_parts(path) for path in paths]


def _parts(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    file = GgufFile.open(path)
    tensors = {name: (each.type.name, each.shape, each.raw.tobytes()) for name, each in file.tensors.items()}
    entries = {name: _plain(value) for name, value in file.metadata.items()}
    return entries, tensors


def _plain(value: Any) -> Any:
    """A value as the writer takes it."""
    if isinstance(value, np.ndarray):
        return 9, (5 if value.dtype.kind == "i" else 6, value.tolist())
    return value


def gguf_mutant(seed: int) -> bytes:
    """The file of a seed."""
    random = Random(f"gguf {seed}")
    entries, tensors = (dict(each) for each in random.choice(gguf_models()))
    if random.randrange(2):
        for _ in range(random.choice([1, 1, 2, 4])):
            _change_file(entries, tensors, random)
        return gguf_bytes(entries, tensors)
    data = gguf_bytes(entries, tensors)
    body = sum(len(content) + -len(content) % 32 for _, _, content in tensors.values())
    header = bytearray(data[: len(data) - body])
    for _ in range(random.choice([1, 1, 2, 4])):
        # The vocabulary is most of a header: its beginning and its end are changed more often.
        place = random.choice(
            [random.randrange(len(header)), random.randrange(600), len(header) - random.randrange(1200)]
        )
        size = random.choice([1, 4, 8])
        number = random.choice([0, 1, 2, 255, 1 << 16, (1 << 31) - 1, (1 << 60), (1 << 64) - 1, random.getrandbits(64)])
        header[place : place + size] = number.to_bytes(8, "little")[:size]
    found = bytes(header) + data[len(data) - body :]
    return damaged(found, random) if random.randrange(8) == 0 else found


def _change_file(entries: dict[str, Any], tensors: dict[str, Any], random: Random) -> None:
    """Change an entry or a tensor."""
    if random.randrange(3):
        name = random.choice(sorted(entries))
        if random.randrange(8) == 0:
            del entries[name]
        else:
            entries[name] = _entry(entries[name], random)
        return
    name = random.choice(sorted(tensors))
    kind, shape, content = tensors.pop(name)
    if random.randrange(2):
        wrong = random.choice([1 << 60, 1 << 32, 0, 1, 3, shape[-1] * 2])
        shape = random.choice([(*shape[:-1], wrong), (wrong, *shape[1:]), shape[::-1], (1, *shape), shape[1:]])
        tensors[name] = kind, shape, content
    elif random.randrange(2):
        tensors[random.choice([name + "2", "rope_freqs.weight", "token_embd.weight", "output.weight"])] = (
            kind,
            shape,
            content,
        )
    else:
        tensors[name] = random.choice(["F16", "BF16", "Q8_0", "Q6_K", "F32"]), shape, content


def _entry(value: Any, random: Random) -> Any:
    """Another value of an entry, with its type."""
    if isinstance(value, list) and random.randrange(2):
        items = list(value)
        items[random.randrange(len(items))] = random.choice(["", items[0], "a" * 3000, " b", "é", "\0"])
        return random.choice([items, items[: len(items) // 2], items * 2])
    whole = random.choice([number for number in NUMBERS if 0 <= number < 1 << 64])
    deep: Any = (0, [1])
    for _ in range(random.choice([3, 9])):
        deep = (9, [deep])
    return random.choice(
        [
            (10, whole), (11, max(-(1 << 63), min(whole, (1 << 63) - 1))), (6, random.choice(FLOATS)), (7, True),
            (12, random.choice(FLOATS)), random.choice([*ATTACKS.values()]), (9, (4, [1, 2])), (9, (8, [])), (9, deep),
            random.choice([text for text in TEXTS if text.isprintable()]),
        ]
    )  # fmt: skip


def check_gguf(seed: int) -> bool:
    """Whether the file of a seed is read; raises where it is neither that nor refused cleanly."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        path.write_bytes(gguf_mutant(seed))
        return is_small(lambda: read(path))


# ---- folders


@cache
def tokenizers() -> list[dict[str, Any]]:
    """Files of tokenizers: of byte pairs, of pieces with probabilities, and of words."""
    import tokenizers as library

    found: list[dict[str, Any]] = []
    special = ["<s>", "</s>", "<|im_end|>", "[UNK]"]
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    trainers = library.trainers
    models = library.models
    for model, splitter, decoder, trainer in (
        (models.BPE(), library.pre_tokenizers.ByteLevel(), library.decoders.ByteLevel(),
         trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet)),
        (models.Unigram(), library.pre_tokenizers.Metaspace(), library.decoders.Metaspace(),
         trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="[UNK]")),
        (models.WordPiece(unk_token="[UNK]"), library.pre_tokenizers.BertPreTokenizer(), library.decoders.WordPiece(),
         trainers.WordPieceTrainer(vocab_size=120, special_tokens=special)),
    ):  # fmt: skip
        tokenizer = library.Tokenizer(model)
        tokenizer.pre_tokenizer, tokenizer.decoder = splitter, decoder
        tokenizer.normalizer = library.normalizers.Sequence(
            [library.normalizers.NFC(), library.normalizers.Replace(library.Regex(" {3,}"), "  ")]
        )
        tokenizer.train_from_iterator(["the cat sat on the mat, said the hat; été hello"] * 9, trainer)
        pair = "<s> $A </s> $B </s>"
        ids = [(token, tokenizer.token_to_id(token)) for token in special[:2]]
        tokenizer.post_processor = library.processors.TemplateProcessing("<s> $A </s>", pair, ids)
        found.append(json.loads(tokenizer.to_str()))
    return found


SETTINGS: Mapping[str, Any] = {
    "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False}, "add_bos_token": True,
    "chat_template": "{% for m in messages %}{{ bos_token }}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}",
}  # fmt: skip

MODULES = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
           {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]  # fmt: skip

POOLING = {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True, "include_prompt": True}


def _weights(vocabulary: int) -> tuple[dict[str, Any], bytes]:
    """The header and the bytes of a file of safetensors with the weights of the small decoder."""
    shapes = {"model.embed_tokens": (vocabulary, WIDTH), "model.norm": (WIDTH,)}
    for layer in range(LAYERS):
        sizes = {
            "self_attn.q_proj": (32, WIDTH), "self_attn.k_proj": (16, WIDTH), "self_attn.v_proj": (16, WIDTH),
            "self_attn.o_proj": (WIDTH, 32), "mlp.gate_proj": (HIDDEN, WIDTH), "mlp.up_proj": (HIDDEN, WIDTH),
            "mlp.down_proj": (WIDTH, HIDDEN), "input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,),
        }  # fmt: skip
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in sizes.items()}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for number, (name, shape) in enumerate(shapes.items()):
        content = random_blocks("F32", shape, number)
        offsets = [len(body), len(body) + len(content)]
        header[f"{name}.weight"] = {"dtype": "F32", "shape": list(shape), "data_offsets": offsets}
        body += content
    return header, body


def _write_folder(folder: Path, seed: int) -> str:
    """Write the folder of a seed; the name of its file that is damaged."""
    random = Random(f"folder {seed}")
    tokenizer = random.choice(tokenizers())
    vocabulary: Any = tokenizer["model"]["vocab"]
    header, body = _weights(len(vocabulary))
    files: dict[str, Any] = {
        "config.json": {
            **CONFIG,
            "vocab_size": len(vocabulary),
            "model_type": random.choice(["llama"] * 30 + [*FAMILIES]),
        },
        "model.safetensors": header,
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": SETTINGS,
        "modules.json": MODULES,
        "1_Pooling/config.json": POOLING,
    }
    (folder / "1_Pooling").mkdir()
    chosen = random.choice(["config.json", "model.safetensors", "tokenizer.json", *files])
    for name, value in files.items():
        data = text_of(value, random) if name == chosen else json.dumps(value).encode()
        if name == "model.safetensors":
            size = len(data)
            if name == chosen and random.randrange(6) == 0:
                size = random.choice([number % (1 << 64) for number in NUMBERS])
            data = size.to_bytes(8, "little") + data + body[: random.choice([len(body), len(body), 7])]
        (folder / name).write_bytes(data)
    return chosen


def check_folder(seed: int) -> bool:
    """Whether the folder of a seed is read; raises where it is neither that nor refused cleanly."""
    with tempfile.TemporaryDirectory() as folder:
        _write_folder(Path(folder), seed)
        return is_small(lambda: read(Path(folder)))


def show_folder(seed: int) -> str:
    """The damaged file of a seed."""
    with tempfile.TemporaryDirectory() as folder:
        name = _write_folder(Path(folder), seed)
        return f"{name}: {(Path(folder) / name).read_bytes()[:3000]!r}"


def _prepared(parts: Callable[[], object]) -> Callable[[], None]:
    """What a fuzzer does first: make its parts, and read a file that is whole, which imports all that is needed."""

    def prepare() -> None:
        parts()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.gguf"
            read(write_gguf(path, *gguf_models()[0]))

    return prepare


STAGES: Mapping[str, Fuzzer] = {
    "gguf": Fuzzer(check_gguf, _prepared(gguf_models), seconds=60, memory=500 << 20),
    "folder": Fuzzer(check_folder, _prepared(tokenizers), show_folder, seconds=60, memory=500 << 20),
}
