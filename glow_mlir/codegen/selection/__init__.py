"""The interface of kernels, and the choices that selection writes on instructions."""
