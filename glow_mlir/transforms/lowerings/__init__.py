"""Lowerings of composite operators to simpler ones, one file per operator family."""
