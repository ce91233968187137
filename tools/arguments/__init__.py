"""Flags of the tools: declared options, and the arguments that several tools share."""
