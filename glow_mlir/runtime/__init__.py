"""The run-time support of compiled models: numpy and ctypes, without compiler code."""
