"""From selected and allocated glow_low to machine code."""
