"""From the llvm dialect to machine code through llvmlite: emission, JIT, objects, cache."""
