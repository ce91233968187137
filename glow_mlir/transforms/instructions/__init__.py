"""Passes that fuse, select and instrument instructions (`glow_low`)."""
