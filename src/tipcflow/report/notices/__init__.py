"""Messages to teams: alerts and other problems that began or ended, and the weekly digest.

Public: `alerts`, `message`.
"""
