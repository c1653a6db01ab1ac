"""Typed configuration files and settings (docs/reference/configuration.md)."""
