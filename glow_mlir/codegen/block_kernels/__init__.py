"""Kernels of devices whose threads work in blocks (`codegen.blocks`): one file each, with its table in `tables.py`."""
