"""Constants outside the IR: weights and their digests, values computed when asked for, and packed forms."""
