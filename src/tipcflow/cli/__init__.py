"""The command line (see docs/architecture.md).

Public: `main`.
"""
