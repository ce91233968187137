"""Import of TensorFlow Lite models."""
