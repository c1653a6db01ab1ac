"""Training log parsers: formats, scanning, streaming."""
