"""Infrastructure of all passes: contexts, registries, text, locations, rewriting and emission of ops."""
