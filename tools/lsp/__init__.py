"""The language server: documents, their index, and answers to editors."""
