"""The command-line tools: arguments, printing and exit codes. No other package imports them."""
