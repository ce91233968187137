"""The command-line tools: arguments, printing and exit codes, nothing another module imports."""
