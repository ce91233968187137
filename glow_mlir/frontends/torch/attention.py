"""PyTorch's attention."""
