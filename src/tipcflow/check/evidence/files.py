"""Are all files that were fetched from the nodes available, unchanged, where the run is evaluated?"""

from tipcflow.check.context import CheckContext
from tipcflow.domain import CheckResult, Facts, Status
from tipcflow.domain.numbers.units import first_names

NAME = "ran.files"
_SHOWN = 3
_SHARED = "TIPCFLOW_HOME, or use one TIPCFLOW_STORE"


def ran_files(_: Facts, context: CheckContext) -> list[CheckResult]:
    """One result for the run if a fetched file is missing or changed: `infra_failure`, because the certificate
    would name evidence that is not kept."""
    lost = context.lost_files
    if lost is None or not (lost.missing or lost.changed or lost.unstored):
        return []
    reasons = []
    # A reason has limited space: with an error of the object store, one name is enough.
    shown = 1 if lost.why else _SHOWN
    if lost.missing:
        place = "neither on this machine nor in the object store" if lost.url else "not on this machine"
        reasons.append(
            f"{len(lost.missing)} of {lost.kept} fetched files are {place}: "
            f"{first_names(list(lost.missing), shown)}"
        )
    if lost.changed:
        count = len(lost.changed)
        reasons.append(
            f"{count} fetched file{'s were' if count > 1 else ' was'} changed after the step: "
            f"{first_names(list(lost.changed), shown)}"
        )
    if lost.unstored:
        reasons.append(
            f"{len(lost.unstored)} of {lost.kept} fetched files are not in the object store: "
            f"{first_names(list(lost.unstored), shown)}"
        )
    if lost.why:
        reasons.append(lost.why)
    elif lost.missing:
        reasons.append(f"all workers must share one {'TIPCFLOW_STORE' if lost.url else _SHARED}")
    values = {"missing": list(lost.missing), "changed": list(lost.changed), "kept": lost.kept}
    if lost.url:
        values["unstored"] = list(lost.unstored)
    return [CheckResult(check=NAME, status=Status.INFRA_FAILURE, reason="; ".join(reasons), values=values)]
