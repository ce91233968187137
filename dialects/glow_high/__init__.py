"""The glow_high dialect: a neural network as typed SSA tensors, one operation per node."""
