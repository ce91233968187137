"""
GGUF files: metadata, tensors mapped from the file, and their quantized blocks as numbers or operands of products.

`GgufFile.open(path)` reads header, metadata and tensor table; `GgufTensor.array()` dequantizes, and
`GgufTensor.weight()` has operands of `glow_high.blockwise_matmul`, computed from the file on demand. The format is that
of ggml, versions 2 and 3: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""
