"""What a kernel says of itself, and what selection writes on instructions."""
