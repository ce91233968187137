"""Constants outside the IR: weights and their digests, deferred values, and packed forms."""
