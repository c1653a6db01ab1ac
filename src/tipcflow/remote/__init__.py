"""The remote room (see docs/architecture.md)."""
