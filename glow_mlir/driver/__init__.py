"""What drives a compilation: pipelines as values, the driver of their passes, its log and its reproducers."""
