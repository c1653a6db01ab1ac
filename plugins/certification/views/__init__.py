"""A run as rows, texts and pictures that a template prints."""
