"""The params room (see docs/architecture.md)."""
