"""What all passes stand on: contexts, registries, text, locations, and how ops are replaced and emitted."""
