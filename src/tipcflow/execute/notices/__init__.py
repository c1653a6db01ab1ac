"""Notifies teams of changes of their chains' states. The state is that of stored verdicts; documents of runs mark
what was sent.

Public: `notify`.
"""
