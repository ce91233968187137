"""The glow_low dialect: address-only instructions over buffers."""
