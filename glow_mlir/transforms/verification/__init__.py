"""Passes that check the promises of a stage."""
