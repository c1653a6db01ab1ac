"""Overviews of all chains, as models for pages, JSON, CSV and the command line; no I/O.

Public: `coverage`, `flaky`, `text`, `today`.
"""
