"""Whether version B differs from version A: pairs of runs, and an interval that permits a look after each pair.

Public: `__all__`.
"""

from tipcflow.ab.ratio import Outcome, Ratio, least_pairs, outcome_of, ratio_of

__all__ = ["Outcome", "Ratio", "least_pairs", "outcome_of", "ratio_of"]
