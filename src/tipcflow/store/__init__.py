"""The store room (see docs/architecture.md)."""
