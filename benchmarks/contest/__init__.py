"""What `benchmarks/peers.py` is made of: environments, workers, turns, figures, reports."""
