"""Kernels of operators that index notation and a body define: `generic`, `windows` and reads at indices."""
