"""The compilation driver: pipelines as values, the pass runner, the compilation log, and reproducers."""
