"""Client of GitHub's REST API for one repository, through an App installation.

Public: `__all__`, `app`, `connect`.
"""

from tipcflow.github.client.client import Client, PullState
from tipcflow.github.client.connect import connect

__all__ = ["Client", "PullState", "connect"]
