"""Training: losses, optimizers and whole steps as graphs of `glow_high`."""
