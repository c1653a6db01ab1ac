"""Rules that extract names and values from log lines.

Public: `line_format`.
"""
