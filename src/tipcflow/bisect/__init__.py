"""Which commit changed a metric or broke a chain: a search that tolerates noise.

Public: `__all__`.
"""

from tipcflow.bisect.likelihood import Levels, Noise, log_failures, log_levels
from tipcflow.bisect.search import Assessment, Candidate, Search

__all__ = ["Assessment", "Candidate", "Levels", "Noise", "Search", "log_failures", "log_levels"]
