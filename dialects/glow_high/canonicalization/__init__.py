"""Rewrites of single operators to simpler forms, one file per operator family; `canonicalize` applies them."""
