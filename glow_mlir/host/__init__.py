"""Networks behind queues: run many requests at once on the devices of a host (Glow's paper, §4.5)."""
