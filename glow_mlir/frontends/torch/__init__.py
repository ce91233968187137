"""Import of graphs that PyTorch traces."""
