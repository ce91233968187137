"""Import of graphs traced by PyTorch."""
