"""Training log parsers: formats, scanning, streaming.

Public: `formats`, `kinds`, `progress`, `side`, `stream`.
"""
