"""Commands about all chains: `tipcflow today`, `changes`, `coverage`, `flaky`, `matrix`.

Public: nothing.
"""
