"""Replacements of parts of xDSL that cost time. docs/xdsl-patches.md says how much each saves."""
