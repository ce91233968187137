"""Partitioning among devices: costs of operators and transfers, and assignments of least cost."""
