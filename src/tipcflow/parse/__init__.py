"""The parse room (see docs/architecture.md)."""
