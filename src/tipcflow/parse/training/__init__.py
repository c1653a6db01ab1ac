"""Training logs: formats, scanning, streams."""
