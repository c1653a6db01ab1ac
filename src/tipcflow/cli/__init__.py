"""The command line (see docs/architecture.md)."""
