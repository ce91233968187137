"""Kernels of ensembles of decision trees."""
