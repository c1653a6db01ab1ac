"""The check room (see docs/architecture.md)."""
