"""Helpers that know nothing of compilers: files, numbers from users, progress of long work."""
