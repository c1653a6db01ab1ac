"""Messages to teams: problems that began or ended, and the weekly digest.

Public: `message`.
"""
