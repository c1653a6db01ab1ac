"""Overviews of all chains, as models for pages, JSON, CSV and the command line; no I/O.

Public: `alerts`, `audit`, `changes`, `coverage`, `decisions`, `flaky`, `matrix`, `node_history`, `nodes`,
`proposals`, `pulls`, `scaling`, `text`, `today`, `versions`.
"""
