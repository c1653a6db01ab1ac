"""How the CLI prints: tables, live progress, verdicts, short names.

Public: nothing.
"""
