"""Helpers independent of compilers: files, numbers from users, progress of long work."""
