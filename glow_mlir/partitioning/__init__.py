"""Which device computes what: costs of operators on devices and of transfers, and the assignments that cost least."""
