"""Passes that stay within a dialect: one per file, named like the file, in packages by purpose."""
