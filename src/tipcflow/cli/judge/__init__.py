"""`tipcflow judge`: re-evaluates series and stored runs with the checks of a run; read-only.

Public: nothing.
"""

from tipcflow.cli.judge.command import judge

__all__ = ["judge"]
