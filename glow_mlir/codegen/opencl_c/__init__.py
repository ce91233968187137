"""From functions of the `llvm` dialect to OpenCL C."""
