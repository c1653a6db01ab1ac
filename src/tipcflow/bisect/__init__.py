"""Which commit changed a metric or broke a chain: a search that tolerates noise.

Public: `__all__`.
"""

from tipcflow.bisect.batch import error_of_failures, error_of_levels
from tipcflow.bisect.likelihood import Levels, failure_outcomes, level_outcomes, log_failures, log_levels
from tipcflow.bisect.noise import Noise
from tipcflow.bisect.priors import ChainFiles, Touches, prior_probabilities, touches
from tipcflow.bisect.search import Assessment, Candidate, Search

__all__ = [
    "Assessment",
    "Candidate",
    "ChainFiles",
    "Levels",
    "Noise",
    "Search",
    "Touches",
    "error_of_failures",
    "error_of_levels",
    "failure_outcomes",
    "level_outcomes",
    "log_failures",
    "log_levels",
    "prior_probabilities",
    "touches",
]
