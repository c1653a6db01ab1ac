"""Expected, found and missing evidence of a run.

Public: `__all__`, `expected`, `result`.
"""

from tipcflow.check.evidence.expected import expected
from tipcflow.check.evidence.files import ran_files
from tipcflow.check.evidence.found import found_in
from tipcflow.check.evidence.log_lines import ran_log
from tipcflow.check.evidence.missing import Missing, missing_in
from tipcflow.check.evidence.proofs import proven_by, require_proofs
from tipcflow.check.evidence.removed import ran_removed
from tipcflow.check.evidence.result import evidence_section, ran_evidence

__all__ = [
    "Missing",
    "evidence_section",
    "expected",
    "found_in",
    "missing_in",
    "proven_by",
    "ran_evidence",
    "ran_files",
    "ran_log",
    "ran_removed",
    "require_proofs",
]
