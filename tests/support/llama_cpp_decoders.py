"""Decoders in llama.cpp: files that its own converter writes, and the logits that it computes from them in f32."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_cpp_models import llama_cpp_models

CONTEXT = 256
"""The tokens of a context, of which llama.cpp allots no fewer."""

CONVERT = """
import sys
from pathlib import Path
sources, folder, path, vocabulary = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
sys.path[:0] = [str(sources / "gguf-py"), str(sources)]
import gguf
from conversion import ModelBase, ModelType, get_model_architecture, get_model_class
kind = get_model_class(get_model_architecture(ModelBase.load_hparams(folder, False), ModelType.TEXT))
def set_vocab(self):
    self._set_vocab_none()
    self.gguf_writer.add_vocab_size(vocabulary)
kind.set_vocab = set_vocab
kind(folder, gguf.LlamaFileType.ALL_F32, path).write()
"""
"""Convert a checkpoint, whose tokenizer is not read."""


def converted(decoder: Any, folder: Path) -> Path:
    """The file that llama.cpp's converter makes of a decoder of transformers."""
    sources, path = llama_cpp_models().parent, folder / "converted.gguf"
    decoder.save_pretrained(folder)
    # Some classes of the converter count tokens, or want a size that transformers no longer writes.
    vocabulary = {f"t{number}": number for number in range(decoder.config.vocab_size)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}, "added_tokens": []}))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({"n_ctx": CONTEXT, **config}))
    arguments = [str(sources), str(folder), str(path), str(decoder.config.vocab_size)]
    found = subprocess.run([sys.executable, "-c", CONVERT, *arguments], capture_output=True, text=True, check=False)
    assert not found.returncode, found.stderr
    return path


class LlamaCpp:
    """A file in llama.cpp, with keys and values of f32; `logits` appends tokens to a sequence."""

    def __init__(self, path: Path) -> None:
        self.c: Any = pytest.importorskip("llama_cpp.llama_cpp")
        self._silent = self.c.llama_log_callback(lambda level, text, data: None)
        self.c.llama_log_set(self._silent, None)
        self.c.llama_backend_init()
        self._model = self.c.llama_model_load_from_file(str(path).encode(), self.c.llama_model_default_params())
        assert self._model, "llama.cpp refuses the file"
        options = self.c.llama_context_default_params()
        options.n_ctx = options.n_batch = options.n_ubatch = CONTEXT
        options.n_seq_max, options.n_threads, options.n_threads_batch = 2, 1, 1
        options.type_k = options.type_v = 0
        options.flash_attn_type, options.swa_full, options.kv_unified = 0, True, True
        self._context = self.c.llama_init_from_model(self._model, options)
        assert self._context

    def logits(self, tokens: np.ndarray, positions: np.ndarray, sequences: np.ndarray | int = 0) -> np.ndarray:
        """The logits of all rows."""
        count = len(tokens)
        size = self.c.llama_vocab_n_tokens(self.c.llama_model_get_vocab(self._model))
        owners = np.broadcast_to(sequences, (count,))
        batch = self.c.llama_batch_init(count, 0, 1)
        batch.n_tokens = count
        for row in range(count):
            batch.token[row], batch.pos[row] = int(tokens[row]), int(positions[row])
            batch.n_seq_id[row], batch.seq_id[row][0], batch.logits[row] = 1, int(owners[row]), 1
        assert not self.c.llama_decode(self._context, batch)
        rows = [np.ctypeslib.as_array(self.c.llama_get_logits_ith(self._context, row), (size,)) for row in range(count)]
        found = np.stack([row.copy() for row in rows])
        self.c.llama_batch_free(batch)
        return found

    def truncate(self, sequence: int, length: int) -> None:
        """Keep the first tokens of a sequence."""
        assert self.c.llama_memory_seq_rm(self.c.llama_get_memory(self._context), sequence, length, -1)

    def close(self) -> None:
        """Free context and model."""
        self.c.llama_free(self._context)
        self.c.llama_model_free(self._model)
