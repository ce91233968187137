"""Pure functions from IR to facts: liveness, ranges, cost."""
