"""The verdict of a run as JUnit XML: steps, legs and checks are test cases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from tipcflow.domain import CheckResult, Facts, Failure, LegKey, Run, Status
from tipcflow.report.rows import LegRow, StepRow, leg_rows, step_rows

# JUnit has three outcomes other than passed. Blocked or never started work is skipped; its cause is the failure.
_ELEMENTS = {
    Status.FAILED: "failure",
    Status.REGRESSION: "failure",
    Status.UNCONFIRMED: "failure",
    Status.INFRA_FAILURE: "error",
    Status.CONFIG_ERROR: "error",
    Status.CANCELLED: "error",
    Status.BLOCKED: "skipped",
    Status.NOT_RUN: "skipped",
    Status.INSUFFICIENT_DATA: "skipped",
}


@dataclass(frozen=True)
class ReportedRun:
    """One run in a report; `name` is the test case of its verdict; rows may be empty.

    Attributes:
        neutral: whether the run is `unconfirmed` and its policy makes that neutral.
    """

    chain: str
    name: str
    status: Status | None
    reason: str
    steps: Sequence[StepRow] = ()
    legs: Sequence[LegRow] = ()
    checks: Sequence[CheckResult] = ()
    neutral: bool = False


def junit(facts: Facts, run: Run, results: Iterable[CheckResult], *, neutral: bool = False) -> str:
    """One test suite each for steps, legs and checks; characters that XML forbids are written as `\\x1b`.

    A non-gating check is a passed test case with its result in `system-out`, a quarantined failure is skipped. The
    run's own status is also a test case (`verdict`), so a run that did nothing is not an empty, green report.

    Args:
        neutral: report `unconfirmed` as skipped, with its reason, instead of as a failure.
    """
    rows = (tuple(step_rows(facts)), tuple(leg_rows(facts)), tuple(results))
    root = ElementTree.Element("testsuites", name=_clean(run.chain))
    _add_run(root, ReportedRun(run.chain, run.id, run.status, run.reason, *rows, neutral=neutral), prefix="")
    return _document(root)


def junit_of_runs(runs: Iterable[ReportedRun]) -> str:
    """As `junit`, for runs of several chains: suites and class names begin with `<chain>.`."""
    root = ElementTree.Element("testsuites", name="tipcflow")
    for run in runs:
        # CI systems group test cases by the text before the last dot, the package.
        _add_run(root, run, prefix=f"{run.chain.replace('/', '.')}.")
    return _document(root)


def _add_run(root: ElementTree.Element, run: ReportedRun, *, prefix: str) -> None:
    names = {name: _clean(prefix + name) for name in ("steps", "legs", "checks", "verdict")}
    steps = [
        _case(names["steps"], row.step, row.status, row.reason, row.seconds, row.failure) for row in run.steps
    ]
    _suite(root, names["steps"], steps)
    legs = [_case(names["legs"], str(LegKey(row.step, row.leg)), row.status, row.reason) for row in run.legs]
    _suite(root, names["legs"], legs)
    _suite(root, names["checks"], [_check_case(names["checks"], result, run.neutral) for result in run.checks])
    reason = run.reason or ("" if run.status else "the run has no status")
    verdict = _case(names["verdict"], run.name, run.status or Status.FAILED, reason, neutral=run.neutral)
    _suite(root, names["verdict"], [verdict])


def _document(root: ElementTree.Element) -> str:
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(root: ElementTree.Element, name: str, cases: list[ElementTree.Element]) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=name, tests=str(len(cases)))
    for attribute, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(element) is not None for case in cases)))
    suite.extend(cases)


def _check_case(suite: str, result: CheckResult, neutral: bool) -> ElementTree.Element:
    about = " ".join(part for part in (result.check, result.step, result.leg) if part)
    if result.measured.quarantine is not None:
        case = _case(suite, about, Status.PASS, "")
        message = _clean(f"quarantined: {result.status}: {result.reason}")
        ElementTree.SubElement(case, "skipped", message=message, type="quarantined")
        return case
    status = result.status if result.gating else Status.PASS
    reason = result.reason if result.gating else f"{result.status}: {result.reason}"
    return _case(suite, about, status, reason, neutral=neutral)


def _case(
    suite: str,
    name: str,
    status: Status,
    reason: str,
    seconds: float = 0.0,
    failure: Failure | None = None,
    *,
    neutral: bool = False,
) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=suite, name=_clean(name), time=f"{seconds:.3f}")
    element = "skipped" if neutral and status is Status.UNCONFIRMED else _ELEMENTS.get(status)
    if element:
        message = _clean(f"{status}: {reason}" if reason else status.value)
        child = ElementTree.SubElement(case, element, message=message, type=status.value)
        if failure is not None:
            child.text = _clean(f"{failure.headline}\n{failure.remedy.advice}\n{failure.log_line}".rstrip())
    elif reason:
        ElementTree.SubElement(case, "system-out").text = _clean(reason)
    return case


def _clean(text: str) -> str:
    """The text with characters that XML 1.0 forbids escaped."""
    return "".join(sign if _allowed(ord(sign)) else f"\\x{ord(sign):02x}" for sign in text)


def _allowed(code: int) -> bool:
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )
