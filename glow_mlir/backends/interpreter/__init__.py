"""The reference backend: runs any stage of the ladder on numpy."""
