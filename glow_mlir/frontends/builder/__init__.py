"""What every front end builds modules of `glow_high` with, whatever its models are written in."""
