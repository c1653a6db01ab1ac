"""Teams that are notified about chains.

Public: `team`.
"""
