"""Machine code as values and loops: typed emission of the `llvm` dialect."""
