"""The transport room (see docs/architecture.md)."""
