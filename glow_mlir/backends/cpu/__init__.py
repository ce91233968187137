"""The CPU backend: machine code through LLVM."""
