"""PyTorch's random numbers, by our generator."""
