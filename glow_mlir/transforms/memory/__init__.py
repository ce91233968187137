"""Passes that order instructions, share buffers and plan memory."""
