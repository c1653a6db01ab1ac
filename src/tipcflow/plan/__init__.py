"""The plan room (see docs/architecture.md)."""
