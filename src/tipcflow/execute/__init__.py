"""The execute room (see docs/architecture.md)."""
