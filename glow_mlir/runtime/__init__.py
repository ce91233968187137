"""What a compiled model needs at run time: numpy and ctypes, no compiler code."""
