"""Passes from one dialect to the next one down the ladder."""
