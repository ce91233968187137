"""The CUDA backend: device functions through LLVM's NVPTX, launched by the driver, or emulated on the CPU."""
