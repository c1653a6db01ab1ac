"""The cli room (see docs/architecture.md)."""
