"""Commands about all chains: `tipcflow today`, `coverage`, `flaky`.

Public: nothing.
"""
