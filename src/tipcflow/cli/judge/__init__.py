"""`tipcflow judge`: series and stored runs, judged as the checks of a run judge; nothing is changed."""

from tipcflow.cli.judge.command import judge

__all__ = ["judge"]
