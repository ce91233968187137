"""Operations of upstream MLIR's `llvm` dialect that xDSL lacks or restricts, one file per family."""
