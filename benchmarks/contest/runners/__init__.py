"""
One module per engine, run by the engine's own Python.

Each has `load(job, inputs)`, which returns a `Runner`, and may have `prepare(job)`, which converts the model to a file
of the engine's own, once.
"""
