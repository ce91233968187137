"""Networks behind queues: what runs many requests at once on the devices of a host (Glow's paper, §4.5)."""
