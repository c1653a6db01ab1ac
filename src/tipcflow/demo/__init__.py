"""The demo room (see docs/architecture.md)."""
