"""The IRs of the compiler as xDSL dialects: definitions, verifiers and folders."""
