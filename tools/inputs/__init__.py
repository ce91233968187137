"""Inputs of runs: data sets, images, and arrays from files."""
