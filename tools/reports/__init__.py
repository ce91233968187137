"""Output of the tools: tables, traces, progress, dumps and pages."""
