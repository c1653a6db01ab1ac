"""Notifies teams of alerts, and of other changes of their chains' states. The state is that of stored verdicts and
alerts; documents of runs mark what was sent.

Public: `notify`.
"""
