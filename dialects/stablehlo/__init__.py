"""The dialects `stablehlo` and `chlo`, in which JAX, Flax and Keras hand over programs."""
