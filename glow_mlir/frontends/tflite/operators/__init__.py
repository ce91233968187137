"""The importers of TensorFlow Lite's builtin operators, one file for each family."""
