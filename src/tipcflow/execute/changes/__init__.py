"""Which chains of a repository a change affects: the suite's files at a commit, its chains, the changed paths.

Public: `__all__`, `choose`, `fitted`.
"""

from tipcflow.execute.changes.builds import BuildChain, chains_of_build, requested_build
from tipcflow.execute.changes.choose import Candidates, candidates, changed_between, choose
from tipcflow.execute.changes.fitted import fit_chains
from tipcflow.execute.changes.noisy import NoisyChain, noisy_chains
from tipcflow.execute.changes.recorded import FalseGreen, Selections, false_green, measure, with_opened

__all__ = [
    "BuildChain",
    "Candidates",
    "FalseGreen",
    "NoisyChain",
    "Selections",
    "candidates",
    "chains_of_build",
    "changed_between",
    "choose",
    "false_green",
    "fit_chains",
    "measure",
    "noisy_chains",
    "requested_build",
    "with_opened",
]
