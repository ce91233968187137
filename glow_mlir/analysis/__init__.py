"""Analyses: pure functions from IR to facts such as liveness, ranges and cost."""
