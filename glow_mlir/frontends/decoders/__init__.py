"""
Decoders and encoders of text from GGUF files and folders of safetensors: one network, and families as differences.

The surface for generation:

- `models.open_model(path) -> DecoderModel`: a `.gguf` file, or a folder with `config.json` and `*.safetensors`. Raises
  `ModelError` for a damaged file and `UnsupportedError` for another family, in one line.
- `DecoderModel.config -> DecoderConfig`: sizes and forms; `config.context` is the longest sequence, `config.vocabulary`
  the number of logits.
- `DecoderModel.metadata -> Mapping[str, Any]`: entries of the file; for GGUF these are the tokenizer and the template
  (`tokenizer.ggml.tokens`, `tokenizer.chat_template`, …), for a folder the content of `config.json`.
- `DecoderModel.path -> Path`: the file or the folder, which has `tokenizer.json` beside the weights.
- `DecoderModel.program(*, pages, rows=512, outputs=1, sequences=1, page=64, cache="float16", left_bits=None,
  result="logits") -> DecoderProgram`: a model for sessions, `InferenceSession(program, dimensions=program.dimensions)`.

Inputs of a program, all int64: `tokens`, `positions` (negative: padding) and `sequences` [rows], `table` [sequences,
pages], `last` [outputs], the rows of which results are wanted. Encoders, whose rows see all of their text, take
`lengths` [sequences], the numbers of tokens, and some take `types` [rows] of tokens. Output: `logits` [outputs,
vocabulary] of f32, with `result="hidden"` `hidden` [outputs, width], the rows behind the last norm, or with
`result="scores"` `scores` [outputs, labels] of a head for classes. Keys and values are state: `keys.0`, `values.0`, …,
of `pages` pages of `page` tokens each; those of an encoder serve all layers.
"""
