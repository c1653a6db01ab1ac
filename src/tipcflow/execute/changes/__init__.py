"""Which chains of a repository a change concerns: the suite's files at a commit, its chains, the changed paths.

Public: `__all__`, `choose`, `fitted`.
"""

from tipcflow.execute.changes.choose import Candidates, candidates, changed_between, choose
from tipcflow.execute.changes.fitted import fit_chains

__all__ = ["Candidates", "candidates", "changed_between", "choose", "fit_chains"]
