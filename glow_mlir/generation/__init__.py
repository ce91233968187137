"""
Generation of text: tokenizers, templates, samplers, and an engine that computes many sequences in one call.

`Generator` in `generator.py` opens a decoder and answers prompts; `Engine` in `engine.py` schedules requests, whose
keys and values are in pages (`pages.py`).
"""
