"""A neural-network compiler on xDSL and llvmlite, after Glow (arXiv 1805.00907)."""
