"""Passes that assign targets and devices, and partition a module among devices."""
