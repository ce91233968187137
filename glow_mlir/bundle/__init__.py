"""Bundles: compiled models as files for C programs, without any runtime."""
