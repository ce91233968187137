"""Passes that assign targets and devices, and split a module between these."""
