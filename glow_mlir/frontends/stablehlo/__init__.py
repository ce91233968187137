"""Import of StableHLO, the programs of JAX, Flax and Keras."""
