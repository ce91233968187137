"""Passes that verify the invariants of a stage."""
