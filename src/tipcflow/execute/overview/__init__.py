"""Overviews of all chains, from the metrics database and the configuration: the same for pages and commands.

Public: `alerts`, `changes`, `coverage`, `decisions`, `flaky`, `matrix`, `node_history`, `nodes`, `pulls`,
`scaling`, `today`, `versions`.
"""
