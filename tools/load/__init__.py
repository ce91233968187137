"""A load generator for servers of the inference protocol."""
