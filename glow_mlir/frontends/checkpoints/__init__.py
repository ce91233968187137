"""
Folders of checkpoints: `config.json`, and `model.safetensors` or several files with an index.

The format of the files is that of safetensors (https://github.com/huggingface/safetensors): tensors are mapped.
"""
