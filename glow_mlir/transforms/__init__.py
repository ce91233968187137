"""Passes that stay within a dialect, one per file, named like the file, in rooms by purpose."""
